"""What planning may use of a condition: a predicate that holds at least where Spark SQL says true.

SQL has three truth values, predicates have two. For each part of a condition the walk below answers where it is true,
where it is false, where it is not true and where it is not false: `not` swaps, and the answers of `and` and `or` are
those of their parts. A test of one column with literals is answered exactly (`sql_tests.py`). Any other part may be
true anywhere, so its answer is every row, in each of the four directions. The result is exact if all answers were.

A part that is not answered exactly is computed row by row (`evaluate/condition.py`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from frazil.errors import FrazilError, InvalidRequestError, UnsupportedError
from frazil.expr.bind import bind, bind_term
from frazil.expr.expressions import Call, Cast, Expression, Literal, Name, value_of
from frazil.expr.parse import NO_PARAMETERS, SPARKS_WAY, parse_condition
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    And,
    BoundTerm,
    Op,
    Or,
    Predicate,
    Reference,
    SqlTest,
    Term,
    TransformTerm,
    all_of,
    any_of,
    not_,
)
from frazil.expr.show_sql import show_sql
from frazil.expr.sql_tests import bind_sql_test, depends_on_zone
from frazil.spec.schema import Schema
from frazil.spec.transforms import parse_transform
from frazil.spec.types import TimestampNsType, TimestamptzNsType

TARGET = "target"
"""The name of the table in conditions of changes."""
_COMPARISONS = {"=": Op.EQ, "<": Op.LT, "<=": Op.LT_EQ, ">": Op.GT, ">=": Op.GT_EQ}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NO_NUMBERS = {"infinity": math.inf, "-infinity": -math.inf, "nan": math.nan}
_TRANSFORMS = {
    **{name: name for name in ("bucket", "truncate", "year", "month", "day", "hour")},
    **{f"{name}s": name for name in ("year", "month", "day", "hour")},
}
_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda first, second: bool(first == second),
    "<": lambda first, second: bool(first < second),
    "<=": lambda first, second: bool(first <= second),
    ">": lambda first, second: bool(first > second),
    ">=": lambda first, second: bool(first >= second),
}


class Truth(enum.Enum):
    """Which answer is asked for: where a part is true, false, or not."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"

    @property
    def of_child(self) -> Truth:
        """The answer to ask the child of `not` for."""
        return _OF_CHILD[self]


_OF_CHILD = {
    Truth.TRUE: Truth.FALSE,
    Truth.FALSE: Truth.TRUE,
    Truth.NOT_TRUE: Truth.NOT_FALSE,
    Truth.NOT_FALSE: Truth.NOT_TRUE,
}
_JOINING = (Truth.TRUE, Truth.NOT_FALSE)
"""The answers of a conjunction that are the conjunction of its parts' answers."""
Answer = Callable[[Op, Term, tuple[Any, ...], bool], Predicate | None]
"""Answers where SQL says that a test of a term is true, or false; None if that is unknown."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What planning may use of a condition, and the parts of it, joined by `and`, that it does not decide.

    `problem` is the first reason why a test of a column could not be used.
    """

    predicate: Predicate
    rest: tuple[Expression, ...] = ()
    problem: FrazilError | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the predicate holds exactly where the condition is true."""
        return not self.rest


def extract(
    condition: Expression,
    schema: Schema,
    *,
    case_sensitive: bool = False,
    is_utc: bool | Callable[[], bool] = True,
    may_test_nanos: bool = True,
    truth: Truth = Truth.TRUE,
) -> Extracted:
    """Return what planning may use of a condition on the rows of a schema.

    Tests of times that depend on the session's zone are used if that is UTC; those of nanoseconds, which Spark shows
    as microseconds, if `may_test_nanos`.
    """
    problems: list[FrazilError] = []

    def answer(op: Op, term: Term, literals: tuple[Any, ...], is_true: bool) -> Predicate | None:
        test = SqlTest(op, term, literals, is_true)
        try:
            bound = bind_term(schema, term, case_sensitive=case_sensitive)
            result = bind_sql_test(test, bound)
        except FrazilError as problem:
            problems.append(problem)
            return None
        return None if op is not Op.IS_NULL and _is_for_spark(test, bound) else result

    def _is_for_spark(test: SqlTest, term: BoundTerm) -> bool:
        """Return whether Spark would see other values, or the zone of its session decides."""
        if isinstance(term.result_type, TimestampNsType | TimestamptzNsType) and not may_test_nanos:
            return True
        return depends_on_zone(test, term) and not (is_utc if isinstance(is_utc, bool) else is_utc())

    walk = _Walk(answer, lambda name: _reference(name, schema, case_sensitive=case_sensitive))
    predicates: list[Predicate] = []
    rest: list[Expression] = []
    conjuncts = conjuncts_of(condition) if truth is Truth.TRUE else (condition,)
    for conjunct in conjuncts:
        walk.is_exact = True
        predicates.append(walk.answer_of(conjunct, truth))
        if not walk.is_exact:
            rest.append(conjunct)
    return Extracted(bind(schema, all_of(*predicates)), tuple(rest), problems[0] if problems else None)


def conjuncts_of(condition: Expression) -> tuple[Expression, ...]:
    """Return the parts of a condition that `and` joins at its top."""
    if isinstance(condition, Call) and condition.name == "and":
        return tuple(conjunct for argument in condition.arguments for conjunct in conjuncts_of(argument))
    return (condition,)


def plain_predicate(condition: Expression) -> Predicate:
    """Return a condition as a predicate that is not bound yet; refuse what planning does not decide."""

    def answer(op: Op, term: Term, literals: tuple[Any, ...], is_true: bool) -> Predicate:
        return SqlTest(op, term, literals, is_true)

    walk = _Walk(answer, lambda name: Reference(".".join(name.parts)), all_in=_unfolded(And), any_in=_unfolded(Or))
    result = walk.answer_of(condition, Truth.TRUE)
    if not walk.is_exact:
        raise UnsupportedError(f"Cannot plan with {show_sql(condition)}: only rows can decide it", hint=SPARKS_WAY)
    return result


def parse_predicate(text: str, parameters: Mapping[str, object] = NO_PARAMETERS) -> Predicate:
    """Return the predicate that a condition's text describes; refuse what planning does not decide."""
    return plain_predicate(parse_condition(text, parameters))


def _unfolded(joined: type[And] | type[Or]) -> Callable[..., Predicate]:
    """Return a function that joins predicates unfolded: tests beside `false` are checked against a schema too."""

    def join(*predicates: Predicate) -> Predicate:
        return joined(
            tuple(
                child
                for predicate in predicates
                for child in (predicate.children if isinstance(predicate, joined) else (predicate,))
            )
        )

    return join


def _reference(name: Name, schema: Schema, *, case_sensitive: bool) -> Reference:
    """Return the column that a name means, without the name of the table before it."""
    parts = name.parts
    if len(parts) > 1 and parts[0].lower() == TARGET:
        own = ".".join(parts[1:])
        if schema.find_field(own, case_sensitive=case_sensitive) is not None:
            return Reference(own)
    return Reference(".".join(parts))


class _Walk:
    """One walk over a condition."""

    def __init__(
        self,
        answer: Answer,
        reference: Callable[[Name], Reference],
        all_in: Callable[..., Predicate] = all_of,
        any_in: Callable[..., Predicate] = any_of,
    ) -> None:
        self._answer = answer
        self._reference = reference
        self._all, self._any = all_in, any_in
        self.is_exact = True

    def answer_of(self, expression: Expression, truth: Truth) -> Predicate:
        """Return where an expression is what is asked for, or more rows than that."""
        if isinstance(expression, Call):
            if expression.name in ("and", "or"):
                answers = [self.answer_of(argument, truth) for argument in expression.arguments]
                return (self._all if (truth in _JOINING) is (expression.name == "and") else self._any)(*answers)
            if expression.name == "not" and len(expression.arguments) == 1:
                return self.answer_of(expression.arguments[0], truth.of_child)
        result = self._test(expression, is_true=truth in (Truth.TRUE, Truth.NOT_TRUE))
        if result is None:
            self.is_exact = False
            return TRUE
        return result if truth in (Truth.TRUE, Truth.FALSE) else not_(result)

    def _test(self, expression: Expression, *, is_true: bool) -> Predicate | None:
        """Return exactly where a test is true, or false; None if it is not a test of a column with literals."""
        if isinstance(expression, Name):
            return self._answer(Op.EQ, self._reference(expression), (True,), is_true)
        if isinstance(expression, Literal):
            return (TRUE if expression.value is is_true else FALSE) if expression.kind in ("boolean", "void") else None
        if not isinstance(expression, Call):
            return None
        name, arguments = expression.name, expression.arguments
        if len(arguments) == 2 and (name in _COMPARISONS or name in ("<>", "<=>")):
            return self._comparison(name, arguments[0], arguments[1], is_true=is_true)
        term = self._term(arguments[0]) if arguments else None
        if term is None:
            return None
        if len(arguments) == 1 and name in ("isnull", "isnotnull"):
            return self._answer(Op.IS_NULL, term, (), is_true is (name == "isnull"))
        if len(arguments) == 1 and name == "isnan":
            return self._answer(Op.IS_NAN, term, (), is_true)
        constants = [constant_of(argument) for argument in arguments[1:]]
        if any(constant is None for constant in constants):
            return None
        literals = tuple(value_of(constant) for constant in constants if constant is not None)
        if name == "in":
            return self._answer(Op.IN, term, literals, is_true)
        if name == "startswith" and len(literals) == 1 and isinstance(literals[0], str):
            return self._answer(Op.STARTS_WITH, term, literals, is_true)
        return self._like(term, literals, is_true=is_true) if name == "like" else None

    def _comparison(self, name: str, term_side: Expression, other: Expression, *, is_true: bool) -> Predicate | None:
        first, second = constant_of(term_side), constant_of(other)
        if first is not None and second is not None:
            return _compared(name, value_of(first), value_of(second), is_true=is_true)
        if first is not None:
            term_side, second, name = other, first, _MIRRORED.get(name, name)
        term = self._term(term_side)
        if second is None or term is None:
            return None
        literal = value_of(second)
        if name == "<>":
            return self._answer(Op.EQ, term, (literal,), not is_true)
        if name != "<=>":
            return self._answer(_COMPARISONS[name], term, (literal,), is_true)
        if literal is None:
            return self._answer(Op.IS_NULL, term, (), is_true)
        equal = self._answer(Op.EQ, term, (literal,), is_true)
        if is_true or equal is None:
            return equal
        null = self._answer(Op.IS_NULL, term, (), True)
        return None if null is None else self._any(equal, null)

    def _like(self, term: Term, literals: Sequence[Any], *, is_true: bool) -> Predicate | None:
        """Return a test of a pattern whose only wildcards are `%` at its end."""
        if not all(isinstance(literal, str) for literal in literals):
            return None
        prefix = read_prefix(literals[0], literals[1] if len(literals) > 1 else "\\")
        if prefix is None:
            return None
        start = self._answer(Op.STARTS_WITH, term, (prefix[0],), is_true)
        if prefix[1] or start is None:
            return start
        # Text that is the pattern also starts with it, and only text does.
        equal = self._answer(Op.EQ, term, (prefix[0],), is_true)
        return None if equal is None else (self._all if is_true else self._any)(start, equal)

    def _term(self, expression: Expression) -> Term | None:
        """Return a column, or a transform of one: `system.bucket(16, id)`, with the catalog's name before it or not."""
        if isinstance(expression, Name):
            return self._reference(expression)
        if not isinstance(expression, Call):
            return None
        transform = transform_of(expression)
        column = expression.arguments[-1] if expression.arguments else None
        if transform is None or not isinstance(column, Name):
            return None
        return TransformTerm(transform, self._reference(column))


def transform_of(call: Call) -> Any:
    """Return the transform that a function of a lake is, or None if it is not one."""
    parts = call.name.split(".")
    name = _TRANSFORMS.get(parts[-1])
    if name is None or len(parts) not in (2, 3) or parts[-2] != "system":
        return None
    has_number = name in ("bucket", "truncate")
    if len(call.arguments) != 1 + has_number:
        usage = f"{name}(number, column)" if has_number else f"{name}s(column)"
        raise InvalidRequestError(f"Cannot use {show_sql(call)}: the function is {usage}")
    if not has_number:
        return parse_transform(name)
    number = call.arguments[0]
    if not isinstance(number, Literal) or number.kind != "int":
        raise InvalidRequestError(f"Cannot use {show_sql(call)}: the function is {name}(number, column)")
    return parse_transform(f"{name}[{number.value}]")


def constant_of(expression: Expression) -> Literal | None:
    """Return the literal that an expression is; infinity and NaN are casts of text to double."""
    if isinstance(expression, Literal):
        return expression
    if isinstance(expression, Cast) and expression.type_name == "double" and isinstance(expression.child, Literal):
        text = expression.child.value
        number = _NO_NUMBERS.get(text.lower()) if isinstance(text, str) else None
        return None if number is None else Literal(number, "double")
    return None


def _compared(name: str, first: Any, second: Any, *, is_true: bool) -> Predicate | None:
    """Return what comparing two literals of one kind gives."""
    if first is None or second is None:
        if name != "<=>":
            return FALSE
        return TRUE if (first is second) is is_true else FALSE
    families = [str if isinstance(side, str) else bool if isinstance(side, bool) else int for side in (first, second)]
    if families[0] is not families[1] or not all(isinstance(side, str | int | Decimal) for side in (first, second)):
        return None
    if name == "<>":
        holds = not _ORDERED["="](first, second)
    else:
        holds = _ORDERED["=" if name == "<=>" else name](first, second)
    return TRUE if holds is is_true else FALSE


def read_prefix(pattern: str, escape: str) -> tuple[str, bool] | None:
    """Return a LIKE pattern's literal start, and whether it ends in `%`; None if it has other wildcards."""
    literal: list[str] = []
    offset = 0
    while offset < len(pattern):
        char = pattern[offset]
        if char == escape:
            offset += 1
            if offset == len(pattern) or pattern[offset] not in ("%", "_", escape):
                return None
            char = pattern[offset]
        elif char in "%_":
            return ("".join(literal), True) if pattern[offset:].strip("%") == "" else None
        literal.append(char)
        offset += 1
    return "".join(literal), False
