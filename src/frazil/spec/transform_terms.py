"""Transforms written as text: `day(ts)`, `bucket(16, id)`, `` `a b` ``.

What users put into `partition_by`, `sort_by` and `update_spec`. A term is a column, or one transform of one
column. Names are as in Spark's DDL, case does not matter for them; the number may come before or after
the column. Columns are dotted paths whose parts may be quoted with backticks. `TermReader` is the cursor
under this grammar; `spec/partitioning.py` and `spec/sorting.py` read what may follow a term.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.spec.text_place import syntax_error
from frazil.spec.transforms import DAY, HOUR, IDENTITY, MONTH, VOID, YEAR, Bucket, Transform, Truncate

MAX_TERM_LENGTH = 10_000

_TOKEN = re.compile(r"(?P<word>[^\W\d]\w*)|(?P<number>\d+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<mark>[(),.])")
_SPACE = re.compile(r"\s*")

_UNARY: dict[str, Transform] = {
    "identity": IDENTITY,
    "year": YEAR,
    "years": YEAR,
    "month": MONTH,
    "months": MONTH,
    "day": DAY,
    "days": DAY,
    "date": DAY,
    "hour": HOUR,
    "hours": HOUR,
    "date_hour": HOUR,
    "void": VOID,
}
_WITH_NUMBER: dict[str, type[Bucket] | type[Truncate]] = {"bucket": Bucket, "truncate": Truncate}


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, quoted name or mark of a term."""

    kind: str
    text: str
    start: int
    end: int


class TermReader:
    """A cursor over the text of one term."""

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self.what = what
        if len(text) > MAX_TERM_LENGTH:
            raise TextSyntaxError(
                f"Cannot parse the {what}: it has {len(text)} characters, more than {MAX_TERM_LENGTH}"
            )
        self._tokens = self._split()
        self._at = 0

    def _split(self) -> list[Token]:
        tokens = []
        at = _SPACE.match(self.text, 0).end()  # type: ignore[union-attr]
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None or found.lastgroup is None:
                reason = "the quoted name does not end" if self.text[at] == "`" else "unexpected character"
                raise self.fail(reason, at, at + 1)
            text = found[found.lastgroup]
            if found.lastgroup == "quoted":
                text = text.replace("``", "`")
            tokens.append(Token(found.lastgroup, text, found.start(), found.end()))
            at = _SPACE.match(self.text, found.end()).end()  # type: ignore[union-attr]
        return tokens

    def peek(self, ahead: int = 0) -> Token:
        """Return a coming token without taking it; past the end its kind is `end`."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else Token("end", "", len(self.text), len(self.text) + 1)

    def take(self) -> Token:
        """Return the next token and step over it."""
        token = self.peek()
        self._at += 1
        return token

    def take_mark(self, mark: str) -> bool:
        """Step over a mark if it comes next, and return whether it did."""
        matches = self.peek().kind == "mark" and self.peek().text == mark
        self._at += matches
        return matches

    def take_word(self, *words: str) -> str | None:
        """Step over one of these words, in any case, and return it, or None."""
        token = self.peek()
        if token.kind == "word" and token.text.lower() in words:
            self._at += 1
            return token.text.lower()
        return None

    def name(self) -> str:
        """Return one plain or quoted name."""
        token = self.take()
        if token.kind not in ("word", "quoted"):
            raise self.fail("expected a name", token.start, token.end)
        return token.text

    def column(self) -> str:
        """Return a column's full name."""
        parts = [self.name()]
        while self.take_mark("."):
            parts.append(self.name())
        return ".".join(parts)

    def end(self) -> None:
        """Refuse anything that is left."""
        token = self.peek()
        if token.kind != "end":
            raise self.fail(f"unexpected {token.text!r}", token.start, token.end)

    def expect_mark(self, mark: str) -> None:
        """Step over a mark or refuse what comes instead."""
        if not self.take_mark(mark):
            token = self.peek()
            raise self.fail(f"expected {mark!r}", token.start, token.end)

    def fail(self, reason: str, start: int, end: int) -> TextSyntaxError:
        """Return (not raise) the error for a place in the text, with the line and the place underlined."""
        return syntax_error(f"the {self.what}", self.text, start, reason, length=end - start)


def read_term(reader: TermReader) -> tuple[str, Transform]:
    """Read a column, or a transform of one, and return the column's name and the transform."""
    first = reader.peek()
    follows = reader.peek(1)
    if first.kind != "word" or follows.kind != "mark" or follows.text != "(":
        return reader.column(), IDENTITY
    reader.take()
    reader.take()
    function = first.text.lower()
    if function in _UNARY:
        column = reader.column()
        reader.expect_mark(")")
        return column, _UNARY[function]
    if function in _WITH_NUMBER:
        column, number = _read_numbered(reader)
        if len(number.text) > 10:
            raise reader.fail("the number does not fit 32 bits", number.start, number.end)
        try:
            return column, _WITH_NUMBER[function](int(number.text))
        except InvalidRequestError as problem:
            raise reader.fail(problem.message.partition(": ")[2], number.start, number.end) from problem
    known = ", ".join(sorted({*_UNARY, *_WITH_NUMBER}))
    raise reader.fail(f"unknown transform {first.text!r} (known: {known})", first.start, first.end)


def _read_numbered(reader: TermReader) -> tuple[str, Token]:
    if reader.peek().kind == "number":
        number = reader.take()
        reader.expect_mark(",")
        column = reader.column()
    else:
        column = reader.column()
        reader.expect_mark(",")
        number = reader.take()
        if number.kind != "number":
            raise reader.fail("expected a number", number.start, number.end)
    reader.expect_mark(")")
    return column, number
