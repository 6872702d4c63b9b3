"""A condition on the rows of a table: what planning makes of it, and how it is tested without Spark.

A text that `expr/parse.py` knows is a predicate: it prunes files and row groups, and reading tests it. Of any other
expression, the parts that `and` joins and that are predicates prune, and the whole is computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FrazilError
from frazil.evaluate import sql_date_functions, sql_functions, sql_operators, sql_text_functions  # noqa: F401 - they fill the table of functions
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import TARGET, Compiled, Compiler
from frazil.expr.bind import bind, bind_term
from frazil.expr.parse import parse_predicate
from frazil.expr.parse_expression import ParsedExpression, parse_expression
from frazil.expr.predicates import Op, Predicate, SqlTest, all_of, leaves_of
from frazil.expr.sql_tests import depends_on_zone
from frazil.spec.schema import Schema
from frazil.spec.token_cursor import Token
from frazil.spec.types import TimestampNsType, TimestamptzNsType, UnknownType


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as planning knows it, and what else has to be computed, None where that is all.

    `columns` are the columns of the table that the computation reads.
    """

    predicate: Predicate
    test: Compiled | None = None
    columns: tuple[str, ...] = ()


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


def read_condition(where: Any, schema: Schema, session: Session) -> Condition:
    """Return what a condition, SQL text or a predicate, means; refuse what only Spark knows."""
    if isinstance(where, Predicate):
        return Condition(bind(schema, where))
    if not isinstance(where, str):
        raise t.left_to_spark(f"the condition is a {type(where).__name__}, not text")
    found = plain_predicate(where, schema, is_utc=session.is_utc)
    if found is not None:
        return Condition(found)
    parsed = parse_expression(where, "the condition")
    compiler = Compiler({TARGET: table_columns(schema)}, session.now_us)
    test = compiler.condition(parsed.expression, "the condition")
    session.check(compiler)
    return Condition(pruning_of(parsed, schema, session), test, tuple(sorted(name for _, name in compiler.used)))


def pruning_of(parsed: ParsedExpression, schema: Schema, session: Session) -> Predicate:
    """Return what the parts of an expression that are predicates say of the rows of a table."""
    found = [plain_predicate(own_text(conjunct), schema, is_utc=session.is_utc) for _, conjunct in parsed.conjuncts]
    return all_of(*(predicate for predicate in found if predicate is not None))


def own_text(tokens: Sequence[Token]) -> str:
    """Return the text of tokens without `target.` before names."""
    kept: list[str] = []
    for index, token in enumerate(tokens):
        follows = tokens[index + 1].text if index + 1 < len(tokens) else ""
        before = tokens[index - 1].text if index else ""
        is_own = token.word == TARGET and follows == "." and before != "."
        if not is_own and not (
            token.text == "." and index and tokens[index - 1].word == TARGET and _begins(tokens, index - 1)
        ):
            kept.append(token.text)
    return " ".join(kept)


def _begins(tokens: Sequence[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].text != "."


def plain_predicate(where: str, schema: Schema, *, is_utc: bool | Callable[[], bool]) -> Predicate | None:
    """Return a condition's text as a predicate of the planner's, bound to a schema; None where it is none.

    Times whose zone the session decides are none, and columns that Spark shows in another form than they are stored in.
    """
    try:
        parsed = parse_predicate(where)
        found = bind(schema, parsed, case_sensitive=False)
    except FrazilError:
        return None
    for leaf in leaves_of(parsed):
        if isinstance(leaf, SqlTest) and _is_sparks(leaf, schema, is_utc):
            return None
    return found


def _is_sparks(test: SqlTest, schema: Schema, is_utc: bool | Callable[[], bool]) -> bool:
    """Return whether Spark would see other values than these, or its session's zone has a say."""
    if test.op is Op.IS_NULL:
        return False
    term = bind_term(schema, test.term, case_sensitive=False)
    if isinstance(term.result_type, TimestampNsType | TimestamptzNsType):
        return True
    return depends_on_zone(test, term) and not (is_utc if isinstance(is_utc, bool) else is_utc())
