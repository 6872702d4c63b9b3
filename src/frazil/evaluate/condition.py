"""A condition on the rows of a table: what planning uses of it, and how the rest is computed without Spark.

What `expr/extract.py` finds is a predicate: it prunes files and row groups, and reading tests it. Parts of the
condition, joined by `and`, that it does not decide exactly are computed row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FieldNotFoundError, FrazilError, SchemaMismatchError
from frazil.evaluate import sql_date_functions, sql_functions, sql_operators, sql_text_functions  # noqa: F401 - they fill the table of functions
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import TARGET, Compiled, Compiler
from frazil.expr.bind import bind
from frazil.expr.expressions import EXPRESSIONS, Call, Expression
from frazil.expr.extract import extract
from frazil.expr.parse import parse_condition
from frazil.expr.predicates import Predicate
from frazil.spec.schema import Schema
from frazil.spec.types import UnknownType


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as planning uses it, and what else has to be computed, or None if the predicate is exact.

    `columns` are the columns of the table that the computation reads, `rest` is the expression that it computes, and
    `is_zoned` says whether the time zone of the session changes its meaning.
    """

    predicate: Predicate
    test: Compiled | None = None
    columns: tuple[str, ...] = ()
    rest: Expression | None = None
    is_zoned: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """What an expression means depends on: the time of the statement, and whether times without a zone are in UTC."""

    now_us: int = 0
    is_utc: bool = True

    def check(self, compiler: Compiler) -> None:
        """Refuse what the zone of Spark's session decides, where that is not UTC."""
        if compiler.is_zoned and not self.is_utc:
            raise t.left_to_spark("the time zone of Spark's session decides what it means, and that is not UTC")


def table_columns(schema: Schema) -> dict[str, Any]:
    """Return the columns of a table that files store, with the Arrow types of their values."""
    return {
        field.name: to_arrow_type(field.field_type, with_ids=False)
        for field in schema.fields
        if not isinstance(field.field_type, UnknownType)
    }


def read_condition(
    where: Any, schema: Schema, session: Session, *, case_sensitive: bool = False, may_test_nanos: bool = False
) -> Condition:
    """Return what a condition, SQL text or a predicate, means; refuse what only Spark knows."""
    if isinstance(where, Predicate):
        return Condition(bind(schema, where, case_sensitive=case_sensitive))
    if isinstance(where, str):
        where = parse_condition(where)
    if not isinstance(where, EXPRESSIONS):
        raise t.left_to_spark(f"the condition is a {type(where).__name__}, not text")
    extracted = extract(
        where, schema, case_sensitive=case_sensitive, is_utc=session.is_utc, may_test_nanos=may_test_nanos
    )
    if extracted.is_exact:
        return Condition(extracted.predicate)
    rest = extracted.rest[0] if len(extracted.rest) == 1 else Call("and", extracted.rest)
    compiler = Compiler({TARGET: table_columns(schema)}, session.now_us, case_sensitive)
    try:
        test = compiler.condition(rest, "the condition")
        session.check(compiler)
    except FrazilError as problem:
        if extracted.problem is not None and isinstance(problem, FieldNotFoundError | SchemaMismatchError):
            raise extracted.problem from problem
        raise
    return Condition(
        extracted.predicate, test, tuple(sorted(name for _, name in compiler.used)), rest, compiler.is_zoned
    )


def pruning_of(condition: Expression, schema: Schema, session: Session) -> Predicate:
    """Return what the condition of a merge says of the rows of a table that it is true for."""
    return extract(condition, schema, is_utc=session.is_utc, may_test_nanos=False).predicate
