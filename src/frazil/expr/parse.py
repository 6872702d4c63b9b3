"""Parse the SQL-like text of a filter: `ts >= '2024-01-01' and kind in ('a', 'b')`.

    or        and ("or" and)*
    and       not ("and" not)*
    not       "not" not | "(" or ")" | "true" | "false" | test
    test      side compare side | term [not] in (literal, …) | term [not] between literal and literal
              | term [not] like 'prefix%' | term [not] starts with 'prefix' | term is [not] (null | nan)
              | term                                     (a boolean column on its own)
    side      term | literal                             (one of the two is a term)
    term      name | transform "(" [number ","] name ")"
    name      part ("." part)*                           part: a word, `quoted` or "quoted"
    literal   'text' | number | true | false | null | X'hex'
              | (date | time | timestamp | timestamptz | uuid | decimal) 'text'

SQL has three truth values and a filter keeps rows where the whole is true. Each part is parsed into two
predicates of the two-valued kind, one for where SQL says true and one for where it says false; `not`
swaps them. So `not (x = 5)` keeps no row whose x is null, as in SQL, though `!=` in `predicates.py` is true there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from frazil.errors import FrazilError, TextSyntaxError
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    Op,
    Predicate,
    Reference,
    Term,
    TransformTerm,
    all_of,
    any_of,
    is_nan,
    is_null,
    leaf,
    not_nan,
    not_null,
)
from frazil.spec.text_place import syntax_error
from frazil.spec.transforms import Transform, UnknownTransform, parse_transform

MAX_TEXT_LENGTH = 8_000_000
MAX_DEPTH = 200

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<hex>[xX]'[^']*')
  | (?P<text>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)+`|"(?:[^"]|"")+")
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol><=>|<=|>=|<>|!=|==|[=<>().,+-])
    """,
    re.VERBOSE,
)
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
_FALSE_WHERE = {Op.LT: Op.GT_EQ, Op.LT_EQ: Op.GT, Op.GT: Op.LT_EQ, Op.GT_EQ: Op.LT}
_TYPED_LITERALS = frozenset(
    {"date", "time", "timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz", "uuid", "decimal"}
)
_PLURALS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_RESERVED = frozenset({"and", "or", "not", "in", "is", "like", "between", "null", "true", "false"})


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


@dataclass(frozen=True, slots=True)
class _Truth:
    """Where SQL says true, and where it says false; elsewhere it says null."""

    true: Predicate
    false: Predicate

    def negated(self) -> _Truth:
        return _Truth(self.false, self.true)


@dataclass(frozen=True, slots=True)
class _Literal:
    value: Any
    token: _Token


def parse_predicate(text: str) -> Predicate:
    """Return the predicate that a filter's text describes; refuse what does not parse, showing the place."""
    if len(text) > MAX_TEXT_LENGTH:
        raise syntax_error("the filter", text[:80], 0, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._at = 0
        self._depth = 0

    def _tokenize(self) -> list[_Token]:
        tokens, start = [], 0
        while start < len(self._text):
            match = _TOKEN.match(self._text, start)
            if match is None:
                quote = self._text[start] in "'\"`"
                raise self._error(
                    "the quoted text does not end" if quote else f"unexpected {self._text[start]!r}", start
                )
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match.group(), start))
            start = match.end()
        tokens.append(_Token("end", "", len(self._text)))
        return tokens

    def _error(
        self, reason: str, start: int | None = None, length: int = 1, hint: str | None = None
    ) -> TextSyntaxError:
        if start is None:
            start, length = self._next.start, max(1, len(self._next.text))
        return syntax_error("the filter", self._text, start, reason, length=length, hint=hint)

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _advance(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _take(self, *words: str) -> bool:
        """Consume the next tokens if they are these words or symbols, in order."""
        upcoming = self._tokens[self._at : self._at + len(words)]
        if [token.word or token.text for token in upcoming] != list(words):
            return False
        self._at += len(words)
        return True

    def _expect(self, what: str, shown: str | None = None) -> None:
        if not self._take(what):
            raise self._error(f"expected {shown or repr(what)}{self._found()}")

    def _found(self) -> str:
        return ", but the text ends" if self._next.kind == "end" else f", found {self._next.text!r}"

    def parse(self) -> Predicate:
        if self._next.kind == "end":
            raise self._error("the filter is empty", hint="Leave the filter out to read every row.")
        truth = self._or()
        if self._next.kind != "end":
            raise self._error(f"expected `and`, `or` or the end{self._found()}")
        return truth.true

    def _or(self) -> _Truth:
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        if len(parts) == 1:
            return parts[0]
        return _Truth(any_of(*(one.true for one in parts)), all_of(*(one.false for one in parts)))

    def _and(self) -> _Truth:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        if len(parts) == 1:
            return parts[0]
        return _Truth(all_of(*(one.true for one in parts)), any_of(*(one.false for one in parts)))

    def _not(self) -> _Truth:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"the filter is nested deeper than {MAX_DEPTH} levels")
        try:
            if self._take("not"):
                return self._not().negated()
            if self._take("("):
                inner = self._or()
                self._expect(")")
                return inner
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> _Truth:
        start = self._next
        left = self._side()
        op = _COMPARISONS.get(self._next.text) if self._next.kind == "symbol" else None
        if op is not None:
            self._advance()
            return self._comparison(op, left, self._side(), start)
        if self._next.text == "<=>":
            raise self._error("`<=>` is not supported here", hint="Use `=` or `is null`.")
        if isinstance(left, _Literal):
            if isinstance(left.value, bool):
                return _Truth(TRUE, FALSE) if left.value else _Truth(FALSE, TRUE)
            raise self._error(f"expected a comparison after the literal{self._found()}")
        return self._term_test(left, start)

    def _comparison(self, op: Op, left: Term | _Literal, right: Term | _Literal, start: _Token) -> _Truth:
        if isinstance(left, _Literal) is isinstance(right, _Literal):
            between = "two literals" if isinstance(left, _Literal) else "two columns"
            length = self._tokens[self._at - 1].start + len(self._tokens[self._at - 1].text) - start.start
            raise self._error(f"a filter compares a column with a literal, not {between}", start.start, length)
        if isinstance(left, _Literal):
            return self._compare(_MIRRORED.get(op, op), right, left)
        return self._compare(op, left, right)

    def _compare(self, op: Op, term: Any, literal: Any) -> _Truth:
        if literal.value is None:
            return _Truth(FALSE, FALSE)
        test = self._leaf(op, term, literal.value)
        if op in (Op.EQ, Op.NOT_EQ):
            holds = _Truth(self._leaf(Op.EQ, term, literal.value), self._known(Op.NOT_EQ, term, literal.value))
            return holds if op is Op.EQ else holds.negated()
        return _Truth(test, any_of(self._leaf(_FALSE_WHERE[op], term, literal.value), is_nan(term)))

    def _leaf(self, op: Op, term: Term, *literals: Any) -> Predicate:
        try:
            return leaf(op, term, *literals)
        except FrazilError as error:
            raise self._error(error.message, self._tokens[self._at - 1].start, hint=error.hint) from error

    def _known(self, op: Op, term: Term, *literals: Any) -> Predicate:
        """Return a test that is true for null, restricted to where SQL knows the answer."""
        return all_of(not_null(term), self._leaf(op, term, *literals))

    def _term_test(self, term: Term, start: _Token) -> _Truth:
        if self._take("is"):
            return self._is(term)
        negated = self._take("not")
        for word, method in self._tests.items():
            if self._take(word):
                truth = method(self, term)
                return truth.negated() if negated else truth
        if negated:
            raise self._error(f"expected `in`, `between`, `like` or `starts with` after `not`{self._found()}")
        if isinstance(term, Reference) and (
            self._next.kind == "end" or self._next.word in ("and", "or") or self._next.text == ")"
        ):
            return _Truth(self._leaf(Op.EQ, term, True), self._leaf(Op.EQ, term, False))
        last = self._tokens[self._at - 1]
        shown = self._text[start.start : last.start + len(last.text)]
        raise self._error(f"expected a comparison after {shown!r}{self._found()}")

    def _is(self, term: Term) -> _Truth:
        negated = self._take("not")
        if self._take("null"):
            truth = _Truth(is_null(term), not_null(term))
        elif self._take("nan"):
            truth = _Truth(is_nan(term), not_nan(term))
        elif self._take("true") or self._take("false"):
            value = self._tokens[self._at - 1].word == "true"
            truth = _Truth(self._leaf(Op.EQ, term, value), self._leaf(Op.NOT_EQ, term, value))
        else:
            raise self._error(f"expected `null`, `nan`, `true` or `false` after `is`{self._found()}")
        return truth.negated() if negated else truth

    def _in(self, term: Term) -> _Truth:
        self._expect("(")
        values = [self._literal().value]
        while self._take(","):
            values.append(self._literal().value)
        self._expect(")", "`,` or `)`")
        known = [one for one in values if one is not None]
        if not known:
            return _Truth(FALSE, FALSE)
        found = self._leaf(Op.IN, term, *known)
        return _Truth(found, self._known(Op.NOT_IN, term, *known) if len(known) == len(values) else FALSE)

    def _between(self, term: Term) -> _Truth:
        low = self._compare(Op.GT_EQ, term, self._literal())
        self._expect("and")
        high = self._compare(Op.LT_EQ, term, self._literal())
        return _Truth(all_of(low.true, high.true), any_of(low.false, high.false))

    def _starts(self, term: Term) -> _Truth:
        self._expect("with")
        return self._prefix(term, self._string("a prefix"))

    def _prefix(self, term: Term, prefix: str) -> _Truth:
        return _Truth(self._leaf(Op.STARTS_WITH, term, prefix), self._known(Op.NOT_STARTS_WITH, term, prefix))

    def _like(self, term: Term) -> _Truth:
        token = self._next
        literal, ends_open = self._read_pattern(self._string("a pattern"), token)
        if ends_open:
            return _Truth(not_null(term), FALSE) if literal == "" else self._prefix(term, literal)
        return _Truth(self._leaf(Op.EQ, term, literal), self._known(Op.NOT_EQ, term, literal))

    def _read_pattern(self, pattern: str, token: _Token) -> tuple[str, bool]:
        """Return a LIKE pattern's literal start, and whether it ends in `%`."""
        literal, at = [], 0
        while at < len(pattern):
            char = pattern[at]
            if char == "\\" and at + 1 < len(pattern):
                literal.append(pattern[at + 1])
                at += 2
                continue
            if char in "%_":
                if pattern[at:].strip("%") == "":
                    return "".join(literal), True
                raise self._error(
                    f"the pattern {pattern!r} has a wildcard before its end",
                    token.start,
                    len(token.text),
                    hint="A filter understands `like 'prefix%'`; escape a literal % or _ with a backslash.",
                )
            literal.append(char)
            at += 1
        return "".join(literal), False

    _tests: dict[str, Callable[[_Parser, Term], _Truth]] = {
        "in": _in,
        "between": _between,
        "like": _like,
        "starts": _starts,
    }

    def _string(self, what: str) -> str:
        if self._next.kind != "text":
            raise self._error(f"expected {what} in quotes{self._found()}")
        return _unquote(self._advance().text)

    def _side(self) -> Term | _Literal:
        token = self._next
        typed = token.word in _TYPED_LITERALS and self._tokens[self._at + 1].kind == "text"
        if token.kind in ("text", "number", "hex") or token.text in ("-", "+") or typed:
            return self._literal()
        if token.word in ("true", "false", "null"):
            return self._literal()
        return self._term()

    def _literal(self) -> _Literal:
        token = self._advance()
        if token.kind == "text":
            return _Literal(_unquote(token.text), token)
        if token.kind == "hex":
            return _Literal(self._hex(token), token)
        if token.text in ("-", "+") or token.kind == "number":
            return self._number(token)
        if token.word in ("true", "false", "null"):
            return _Literal({"true": True, "false": False, "null": None}[token.word], token)
        if token.word in _TYPED_LITERALS and self._next.kind == "text":
            text = _unquote(self._advance().text)
            return _Literal(text, token)
        self._at -= 1
        raise self._error(f"expected a literal{self._found()}")

    def _number(self, token: _Token) -> _Literal:
        sign = "-" if token.text == "-" else ""
        digits = token if token.kind == "number" else self._advance()
        if digits.kind != "number":
            self._at -= 1
            raise self._error(f"expected a number after {token.text!r}{self._found()}")
        if len(digits.text) > 400:
            raise self._error("the number has too many digits", digits.start, len(digits.text))
        text = sign + digits.text
        try:
            return _Literal(int(text) if digits.text.isdigit() else Decimal(text), token)
        except InvalidOperation:
            raise self._error("the number's exponent is too large", digits.start, len(digits.text)) from None

    def _hex(self, token: _Token) -> bytes:
        try:
            return bytes.fromhex(token.text[2:-1])
        except ValueError:
            reason = "X'…' holds pairs of hexadecimal digits"
            raise self._error(reason, token.start, len(token.text)) from None

    def _term(self) -> Term:
        token = self._next
        if token.kind == "word" and self._tokens[self._at + 1].text == "(" and token.word not in _RESERVED:
            return self._transform()
        return Reference(self._name())

    def _name(self) -> str:
        parts = [self._part()]
        while self._take("."):
            parts.append(self._part())
        return ".".join(parts)

    def _part(self) -> str:
        token = self._next
        if token.kind == "quoted":
            self._advance()
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind == "word" and token.word not in _RESERVED:
            self._advance()
            return token.text
        raise self._error(
            f"expected a column name{self._found()}", hint="Names that are not plain words go in backticks."
        )

    def _transform(self) -> TransformTerm:
        function = self._advance()
        self._expect("(")
        parameter = None
        if self._next.kind == "number":
            parameter = self._advance().text
            self._expect(",")
        reference = Reference(self._name())
        self._expect(")")
        return TransformTerm(self._transform_named(function, parameter), reference)

    def _transform_named(self, function: _Token, parameter: str | None) -> Transform:
        name = _PLURALS.get(function.word, function.word)
        try:
            transform = parse_transform(name if parameter is None else f"{name}[{parameter}]")
        except FrazilError as error:
            raise self._error(error.message, function.start, len(function.text), hint=error.hint) from error
        if isinstance(transform, UnknownTransform):
            raise self._error(
                f"{function.text!r} is not a function a filter can use",
                function.start,
                len(function.text),
                hint="The functions are bucket(N, x), truncate(W, x), year(x), month(x), day(x) and hour(x).",
            )
        return transform


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'")
