"""Syntax errors that show the line, the column, the line's text and an underline."""

from __future__ import annotations

from frazil.errors import TextSyntaxError

_SHOWN_WIDTH = 160


def syntax_error(
    what: str, text: str, start: int, reason: str, *, length: int = 1, hint: str | None = None
) -> TextSyntaxError:
    """Return the error for a text that cannot be parsed at an offset, with the line and an underline."""
    start = min(start, len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    number, column = text.count("\n", 0, start) + 1, start - line_start
    # A long line is cut to an excerpt around the position.
    cut = max(0, column - _SHOWN_WIDTH // 2)
    excerpt = line[cut : cut + _SHOWN_WIDTH].replace("\t", " ")
    width = max(1, min(length, len(excerpt) - (column - cut)))
    return TextSyntaxError(
        f"Cannot parse {what}: {reason}\n"
        f"  line {number}, column {column + 1}:\n"
        f"    {excerpt}\n"
        f"    {' ' * (column - cut)}{'^' * width}",
        hint=hint,
    )
