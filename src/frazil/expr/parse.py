"""Parse the text of a condition: `ts >= '2024-01-01' and kind in ('a', 'b')`. A subset of Spark SQL.

    or        and ("or" and)*
    and       not ("and" not)*
    not       ("not" | "!") not | "(" or ")" | test
    test      side compare side | side [not] in (literal, …) | side [not] between literal and literal
              | term [not] like 'prefix%' [escape 'c'] | term is [not] (null | true | false)
              | term is [not] distinct from literal | startswith(term, 'prefix') | isnan(term) | isnull(term)
              | isnotnull(term) | true | false | term                                   (a boolean column on its own)
    side      term | literal                             (at most one of the two is a term)
    term      name | [catalog "."] system "." transform "(" [number ","] name ")"
    name      part ("." part)*                           part: a word or `quoted`
    literal   'text' | number | true | false | null | X'hex' | :parameter | cast('NaN' or '[-]Infinity' as double)
              | (date | time | timestamp | timestamp_ltz | timestamp_ntz) 'text'

`lex.py` reads words and literals. What is accepted means what Spark says it means; what is not is for Spark, and the
error says so. SQL has three truth values and a condition keeps rows where the whole is true: each part is parsed into
two predicates, one for where SQL says true and one for where it says false, and `not` swaps them. Leaves are
`SqlTest`s, which binding writes in two values once the column's type is known (`sql_tests.py`).
"""

from __future__ import annotations

import datetime
import math
import operator
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from frazil.errors import FrazilError, InvalidRequestError
from frazil.expr.lex import WHAT, LiteralCursor, cut, read_hex, read_number, read_text
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    And,
    Op,
    Or,
    Predicate,
    Reference,
    SqlTest,
    Term,
    TransformTerm,
    TypedText,
    all_of,
    any_of,
)
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.text_place import syntax_error
from frazil.spec.token_cursor import END, MARK, NUMBER, STRING, Token
from frazil.spec.transforms import Transform, parse_transform

MAX_TEXT_LENGTH = 8_000_000
MAX_DEPTH = 200
NO_PARAMETERS: Mapping[str, object] = FrozenMap()

_COMPARISONS = {
    "=": Op.EQ,
    "==": Op.EQ,
    "!=": Op.NOT_EQ,
    "<>": Op.NOT_EQ,
    "<": Op.LT,
    "<=": Op.LT_EQ,
    ">": Op.GT,
    ">=": Op.GT_EQ,
}
_MIRRORED = {Op.LT: Op.GT, Op.LT_EQ: Op.GT_EQ, Op.GT: Op.LT, Op.GT_EQ: Op.LT_EQ}
_COMPUTED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NOT_EQ: operator.ne,
    Op.LT: operator.lt,
    Op.LT_EQ: operator.le,
    Op.GT: operator.gt,
    Op.GT_EQ: operator.ge,
}
_NO_NUMBERS = {"infinity": math.inf, "-infinity": -math.inf, "nan": math.nan}
_TYPED_LITERALS = frozenset({"date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_TRANSFORMS = {
    "bucket": "bucket",
    "truncate": "truncate",
    "years": "year",
    "months": "month",
    "days": "day",
    "hours": "hour",
    "year": "year",
    "month": "month",
    "day": "day",
    "hour": "hour",
}
_CONSTANTS = {"true": True, "false": False, "null": None}
_FUNCTIONS = frozenset({"startswith", "isnan", "isnull", "isnotnull"})
_RESERVED = frozenset({"and", "or", "not", "in", "is", "like", "between", "null", "true", "false", "escape"})
_ON_SPARK = "Conditions are a subset of Spark SQL. For the rest filter on Spark: `scan().to_spark().where(…)`."


@dataclass(frozen=True, slots=True)
class _Truth:
    """Where SQL says true, and where it says false; elsewhere it says null."""

    true: Predicate
    false: Predicate

    def negated(self) -> _Truth:
        return _Truth(self.false, self.true)


_ALWAYS, _NEVER, _UNKNOWN = _Truth(TRUE, FALSE), _Truth(FALSE, TRUE), _Truth(FALSE, FALSE)


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any
    token: Token


def parse_predicate(text: str, parameters: Mapping[str, object] = NO_PARAMETERS) -> Predicate:
    """Return the predicate that a condition's text describes; refuse what does not parse, showing the position.

    Parameters stand where the text says `:name`, as values: nothing in them is read as SQL.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise syntax_error(WHAT, text[:80], 0, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
    return _Parser(text, parameters).parse()


class _Parser(LiteralCursor):
    def __init__(self, text: str, parameters: Mapping[str, object]) -> None:
        super().__init__(text, WHAT, cut(text))
        self._depth = 0
        self._parameters = parameters
        self._used: set[str] = set()

    def parse(self) -> Predicate:
        if self.peek().kind == END:
            self.fail("the condition is empty", self.peek(), "Leave it out to mean every row.")
        truth = self._or()
        if self.peek().kind != END:
            self.fail("expected `and`, `or` or the end", hint=_ON_SPARK)
        unused = sorted(set(self._parameters) - self._used)
        if unused:
            raise InvalidRequestError(
                f"Cannot use the parameter {unused[0]!r}: the condition does not name it",
                hint=f"Write :{unused[0]} where its value is meant.",
            )
        return truth.true

    def _or(self) -> _Truth:
        parts = [self._and()]
        while self.take_words("or"):
            parts.append(self._and())
        if len(parts) == 1:
            return parts[0]
        return _Truth(_any(truth.true for truth in parts), _all(truth.false for truth in parts))

    def _and(self) -> _Truth:
        parts = [self._not()]
        while self.take_words("and"):
            parts.append(self._not())
        if len(parts) == 1:
            return parts[0]
        return _Truth(_all(truth.true for truth in parts), _any(truth.false for truth in parts))

    def _not(self) -> _Truth:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"the condition is nested deeper than {MAX_DEPTH} levels", self.peek())
        try:
            if self.take_words("not") or self.take_mark("!"):
                return self._not().negated()
            if self.take_mark("("):
                inner = self._or()
                self.expect_mark(")")
                return inner
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> _Truth:
        start = self.peek()
        if start.word in _FUNCTIONS and self.peek(1).text == "(":
            return self._function()
        left = self._side()
        symbol = self.peek().text if self.peek().kind == MARK else ""
        if symbol in _COMPARISONS or symbol == "<=>":
            self.take()
            return self._comparison(symbol, left, self._side(), start)
        if isinstance(left, _Literal):
            if isinstance(left.value, bool):
                return _ALWAYS if left.value else _NEVER
            self.fail("expected a comparison after the literal", hint=_ON_SPARK)
        return self._term_test(left, start)

    def _comparison(self, symbol: str, left: Term | _Literal, right: Term | _Literal, start: Token) -> _Truth:
        op = _COMPARISONS.get(symbol)
        if isinstance(left, _Literal) and isinstance(right, _Literal):
            return self._computed(op, left.value, right.value, start)
        if not isinstance(left, _Literal) and not isinstance(right, _Literal):
            self.fail("a column is compared with a literal here, not with another column", self.since(start), _ON_SPARK)
        if isinstance(left, _Literal):
            left, right, op = right, left, None if op is None else _MIRRORED.get(op, op)
        assert isinstance(right, _Literal)
        assert not isinstance(left, _Literal)
        return self._same(left, right.value) if op is None else self._compare(op, left, right.value)

    def _computed(self, op: Op | None, left: Any, right: Any, start: Token) -> _Truth:
        """Return what comparing two literals of one kind gives."""
        if left is None or right is None:
            if op is None:
                return _ALWAYS if left is right else _NEVER
            return _UNKNOWN
        kinds = [str if isinstance(side, str) else bool if isinstance(side, bool) else int for side in (left, right)]
        if kinds[0] is not kinds[1] or not all(isinstance(side, str | int | Decimal) for side in (left, right)):
            self.fail("these two literals are not compared here", self.since(start), _ON_SPARK)
        return _ALWAYS if _COMPUTED[op or Op.EQ](left, right) else _NEVER

    def _compare(self, op: Op, term: Term, value: Any) -> _Truth:
        if op is Op.NOT_EQ:
            return self._pair(Op.EQ, term, value).negated()
        return self._pair(op, term, value)

    def _same(self, term: Term, value: Any) -> _Truth:
        """Return `<=>`: equal, or both null; never unknown."""
        if value is None:
            return self._pair(Op.IS_NULL, term)
        equal = self._pair(Op.EQ, term, value)
        return _Truth(equal.true, any_of(equal.false, SqlTest(Op.IS_NULL, term)))

    def _pair(self, op: Op, term: Term, *literals: Any) -> _Truth:
        return _Truth(SqlTest(op, term, literals), SqlTest(op, term, literals, is_true=False))

    def _function(self) -> _Truth:
        name = self.take().word
        self.expect_mark("(")
        term = self._term()
        if name == "startswith":
            self.expect_mark(",")
            truth = self._pair(Op.STARTS_WITH, term, self._string("a prefix"))
        else:
            truth = self._pair(Op.IS_NAN if name == "isnan" else Op.IS_NULL, term)
        self.expect_mark(")")
        return truth.negated() if name == "isnotnull" else truth

    def _term_test(self, term: Term, start: Token) -> _Truth:
        if self.take_words("is"):
            return self._is(term)
        negated = self.take_words("not")
        for word, method in self._tests.items():
            if self.take_words(word):
                truth = method(self, term)
                return truth.negated() if negated else truth
        if negated:
            self.fail("expected `in`, `between` or `like` after `not`", hint=_ON_SPARK)
        if isinstance(term, Reference) and (
            self.peek().kind == END or self.peek().word in ("and", "or") or self.peek().text == ")"
        ):
            return self._pair(Op.EQ, term, True)
        if self.peek().word == "starts":
            self.fail("`starts with` is not Spark SQL", self.peek(), f"Write startswith({term}, '…').")
        return self.fail(f"expected a comparison after {self.since(start).text!r}", hint=_ON_SPARK)

    def _is(self, term: Term) -> _Truth:
        negated = self.take_words("not")
        if self.take_words("null"):
            truth = self._pair(Op.IS_NULL, term)
        elif (word := self.take_any("true", "false")) is not None:
            truth = self._same(term, word == "true")
        elif self.take_words("distinct", "from"):
            truth = self._same(term, self._literal().value).negated()
        elif self.peek().word == "nan":
            self.fail("`is nan` is not Spark SQL", self.peek(), f"Write isnan({term}).")
        else:
            self.fail("expected `null`, `true` or `false` after `is`", hint=_ON_SPARK)
        return truth.negated() if negated else truth

    def _in(self, term: Term) -> _Truth:
        self.expect_mark("(")
        values = [self._literal().value]
        while self.take_mark(","):
            values.append(self._literal().value)
        if not self.take_mark(")"):
            self.fail("expected `,` or `)`")
        return self._pair(Op.IN, term, *values)

    def _between(self, term: Term) -> _Truth:
        low = self._compare(Op.GT_EQ, term, self._literal().value)
        self.expect_words("and")
        high = self._compare(Op.LT_EQ, term, self._literal().value)
        return _Truth(all_of(low.true, high.true), any_of(low.false, high.false))

    def _like(self, term: Term) -> _Truth:
        token = self.peek()
        pattern, escape = self._string("a pattern"), "\\"
        if self.take_words("escape"):
            start = self.peek()
            escape = self._string("a character")
            if len(escape) != 1:
                self.fail("the escape is one character", start)
        literal, ends_open = self._read_pattern(pattern, escape, token)
        prefix = self._pair(Op.STARTS_WITH, term, literal)
        if ends_open:
            return prefix
        # Text that is the pattern also starts with it, which is only said of text.
        equal = self._pair(Op.EQ, term, literal)
        return _Truth(all_of(prefix.true, equal.true), any_of(prefix.false, equal.false))

    def _read_pattern(self, pattern: str, escape: str, token: Token) -> tuple[str, bool]:
        """Return a LIKE pattern's literal start, and whether it ends in `%`."""
        literal, offset = [], 0
        while offset < len(pattern):
            char = pattern[offset]
            if char == escape:
                if offset + 1 == len(pattern) or pattern[offset + 1] not in ("%", "_", escape):
                    reason = (
                        f"the pattern {pattern!r} has {escape!r} before a character that is none of %, _ and {escape}"
                    )
                    self.fail(reason, token)
                literal.append(pattern[offset + 1])
                offset += 2
                continue
            if char in "%_":
                if pattern[offset:].strip("%") == "":
                    return "".join(literal), True
                self.fail(
                    f"the pattern {pattern!r} has a wildcard before its end",
                    token,
                    "Here a pattern is `like 'prefix%'`; a literal % or _ is escaped with a backslash. "
                    "Other patterns are for Spark: `scan().to_spark().where(…)`.",
                )
            literal.append(char)
            offset += 1
        return "".join(literal), False

    _tests: dict[str, Callable[[_Parser, Term], _Truth]] = {
        "in": _in,
        "between": _between,
        "like": _like,
    }

    def _string(self, what: str) -> str:
        if self.peek().kind == "parameter":
            parameter = self.take()
            value = self._parameter(parameter)
            if isinstance(value, str):
                return value
            self.fail(f"expected {what}: the parameter is no text", parameter)
        if self.peek().kind != STRING:
            self.fail(f"expected {what} in single quotes", hint=_ON_SPARK)
        return self.strings()

    def _side(self) -> Term | _Literal:
        token = self.peek()
        typed = token.word in _TYPED_LITERALS and self.peek(1).kind == STRING
        is_literal = token.kind in (STRING, NUMBER, "hex", "parameter") or token.text in ("-", "+") or typed
        if is_literal or self._is_cast() or token.word in ("true", "false", "null"):
            return self._literal()
        return self._term()

    def _literal(self) -> _Literal:
        token = self.peek()
        is_typed = token.word in _TYPED_LITERALS and self.peek(1).kind == STRING
        if token.kind == STRING:
            return _Literal(self.strings(), token)
        if token.text in ("-", "+") or token.kind == NUMBER:
            return self._number()
        if self._is_cast():
            return self._no_number()
        if token.kind not in ("hex", "parameter") and token.word not in _CONSTANTS and not is_typed:
            self.fail("expected a literal", hint=_ON_SPARK)
        self.take()
        if token.kind == "hex":
            return _Literal(self.read(read_hex, token), token)
        if token.kind == "parameter":
            return _Literal(self._parameter(token), token)
        if is_typed:
            return _Literal(TypedText(token.word, self.read(read_text, self.take())), token)
        return _Literal(_CONSTANTS[token.word], token)

    def _number(self) -> _Literal:
        sign = self.peek()
        if sign.kind != NUMBER:
            self.take()
        if self.peek().kind != NUMBER:
            self.fail(f"expected a number after {sign.text!r}", hint=_ON_SPARK)
        return _Literal(self.read(read_number, self.take(), "-" if sign.text == "-" else ""), sign)

    def _is_cast(self) -> bool:
        return self.peek().word == "cast" and self.peek(1).text == "("

    def _no_number(self) -> _Literal:
        start = self.take()
        self.expect_mark("(")
        value = _NO_NUMBERS.get(self._string("infinity or NaN").lower())
        self.expect_words("as", "double")
        self.expect_mark(")")
        if value is None:
            self.fail("the only casts here are those of infinity and NaN to double", self.since(start), _ON_SPARK)
        return _Literal(value, start)

    def _parameter(self, token: Token) -> Any:
        name = token.text[1:]
        if name not in self._parameters:
            self.fail(f"the parameter {token.text} has no value", token, f"Give it by name: {name}=….")
        self._used.add(name)
        return parameter_value(name, self._parameters[name])

    def _term(self) -> Term:
        start = self.peek()
        parts = self._path()
        if self.peek().text == "(":
            return self._transform(parts, start)
        return Reference(".".join(parts))

    def _path(self) -> list[str]:
        names = [self._name()]
        while self.take_mark("."):
            names.append(self._name())
        return names

    def _name(self) -> str:
        name = self.take_name(_RESERVED)
        if name is None:
            self.fail("expected a column name", hint="Names that are not plain words go in backticks.")
        return name

    def _transform(self, parts: list[str], start: Token) -> TransformTerm:
        """Return a function of a lake's: `system.bucket(16, id)`, with the catalog's name before it or not."""
        name = _TRANSFORMS.get(parts[-1].lower())
        call = self.since(start)
        if name is None or len(parts) not in (2, 3) or parts[-2].lower() != "system":
            hint = _ON_SPARK
            if name is not None and len(parts) == 1:
                plural = next(written for written, transform in _TRANSFORMS.items() if transform == name)
                hint = f"The partition transform is a lake's function: `lake.system.{plural}(…)`. {_ON_SPARK}"
            self.fail(f"{'.'.join(parts)!r} is not a function of conditions", call, hint)
        self.expect_mark("(")
        parameter = None
        if self.peek().kind == NUMBER:
            parameter = self.take().text
            self.expect_mark(",")
        reference = Reference(".".join(self._path()))
        self.expect_mark(")")
        return TransformTerm(self._transform_named(name, parameter, call), reference)

    def _transform_named(self, name: str, parameter: str | None, call: Token) -> Transform:
        if (parameter is not None) is not (name in ("bucket", "truncate")) or not (parameter or "0").isdigit():
            usage = f"{name}(number, column)" if name in ("bucket", "truncate") else f"{name}s(column)"
            self.fail(f"the function is {usage}", call)
        try:
            return parse_transform(name if parameter is None else f"{name}[{parameter}]")
        except FrazilError as error:
            raise self.error(error.message, call, error.hint) from error


def _all(predicates: Iterable[Predicate]) -> Predicate:
    """Return a conjunction in which nothing is folded: tests beside `false` are checked against the schema too."""
    return And(_flat(predicates, And))


def _any(predicates: Iterable[Predicate]) -> Predicate:
    return Or(_flat(predicates, Or))


def _flat(predicates: Iterable[Predicate], cls: type[And] | type[Or]) -> tuple[Predicate, ...]:
    return tuple(
        child
        for predicate in predicates
        for child in (predicate.children if isinstance(predicate, cls) else (predicate,))
    )


def parameter_value(name: str, value: Any) -> Any:
    """Return a Python value as the literal that Spark would make of it."""
    value = python_value(name, value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        type_name = "timestamp_ntz" if value.tzinfo is None else "timestamp"
        return TypedText(type_name, value.isoformat(sep=" "))
    if isinstance(value, datetime.time):
        return TypedText("time", value.isoformat("microseconds"))
    if isinstance(value, datetime.date):
        return TypedText("date", value.isoformat())
    if value is None or isinstance(value, bool | int | float | Decimal | str | bytes):
        return value
    raise _no_literal(name, f"a {type(value).__name__}")


def python_value(name: str, value: Any) -> Any:
    """Return a parameter as a plain value of Python; refuse values that no engine has.

    Members of enumerations and other subclasses become the text or the number that they are.
    """
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        value = _of_numpy(name, value)
    for plain, convert in _PLAIN.items():
        if isinstance(value, plain) and not isinstance(value, bool):
            value = convert(value)
    is_lone = isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
    if is_lone or (isinstance(value, Decimal) and not value.is_finite()):
        raise _no_literal(name, repr(value) if is_lone else str(value))
    if isinstance(value, datetime.datetime) and value != value:  # NaT of pandas
        raise _no_literal(name, str(value))
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        raise _no_literal(name, f"{value.isoformat()}, a time of day with a zone,")
    return value


_PLAIN: dict[type, Callable[[Any], Any]] = {int: int.__index__, float: float.__float__, str: str.__str__}


def _no_literal(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot use the parameter {name!r}: {what} is no literal")


def _of_numpy(name: str, value: Any) -> Any:
    """Return a value of NumPy's as Python's; times in nanoseconds would become numbers."""
    type_name = type(value).__name__
    if value.ndim:
        raise _no_literal(name, f"a {type_name}")
    if type_name not in ("datetime64", "timedelta64") or isinstance(value.item(), datetime.date):
        return value.item()
    exact = value.astype(f"{type_name}[us]")
    if exact != value:
        raise InvalidRequestError(f"Cannot use the parameter {name!r}: {value} is no whole number of microseconds")
    return exact.item()
