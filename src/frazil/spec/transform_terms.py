"""Parser of transforms: `day(ts)`, `bucket(16, id)`, `` `a b` ``.

It parses the terms that users pass to `partition_by`, `sort_by` and `update_spec`. A term is a column, or one
transform of one column. Names of transforms are those of Spark DDL, in any case; the number may come before or after
the column. Columns are dotted paths whose parts may be quoted with backticks. `spec/partitioning.py` and
`spec/sorting.py` parse the text after a term.
"""

from __future__ import annotations

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.spec.transforms import DAY, HOUR, IDENTITY, MONTH, VOID, YEAR, Bucket, Transform, Truncate
from frazil.text.token_cursor import TokenCursor
from frazil.text.tokens import END, NUMBER, QUOTED, WORD, Token, cut_tokens

MAX_TERM_LENGTH = 10_000

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


class TermReader(TokenCursor):
    """A token reader for one term."""

    def __init__(self, text: str, what: str) -> None:
        if len(text) > MAX_TERM_LENGTH:
            raise TextSyntaxError(
                f"Cannot parse the {what}: it has {len(text)} characters, more than {MAX_TERM_LENGTH}"
            )
        super().__init__(text, f"the {what}", cut_tokens(text))

    def name(self) -> str:
        """Consume a plain or quoted name."""
        token = self.peek()
        if token.kind not in (WORD, QUOTED) or token.text[0].isdigit():
            self.fail("expected a name")
        return self.take().value

    def column(self) -> str:
        """Consume a column's full name."""
        names = [self.name()]
        while self.take_mark("."):
            names.append(self.name())
        return ".".join(names)

    def end(self) -> None:
        """Refuse any remaining text."""
        if self.peek().kind != END:
            self.fail("expected the end")


def read_term(reader: TermReader) -> tuple[str, Transform]:
    """Parse a column, or a transform of a column, and return the column's name and the transform."""
    first = reader.peek()
    if first.kind != WORD or not reader.peek(1).is_mark("("):
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
        if not number.text.isdigit():
            reader.fail("expected a whole number", number)
        if len(number.text) > 10:
            reader.fail("the number does not fit 32 bits", number)
        try:
            return column, _WITH_NUMBER[function](int(number.text))
        except InvalidRequestError as problem:
            raise reader.error(problem.message.partition(": ")[2], number) from problem
    names = ", ".join(sorted({*_UNARY, *_WITH_NUMBER}))
    return reader.fail(f"unknown transform {first.text!r} (supported: {names})", first)


def _read_numbered(reader: TermReader) -> tuple[str, Token]:
    if reader.peek().kind == NUMBER:
        number = reader.take()
        reader.expect_mark(",")
        column = reader.column()
    else:
        column = reader.column()
        reader.expect_mark(",")
        if reader.peek().kind != NUMBER:
            reader.fail("expected a number")
        number = reader.take()
    reader.expect_mark(")")
    return column, number
