"""Split input into statements at semicolons, keeping scripts (`BEGIN … END`) in one piece."""

from __future__ import annotations

from typing import NamedTuple

from frazil.query.engine import split_statements
from frazil.text.tokens import BROKEN, Token, cut_tokens, without_hints

_OPENS_ANYWHERE = frozenset({"BEGIN", "CASE"})
_OPENS_A_STATEMENT = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})
_BEFORE_A_STATEMENT = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})


class Statement(NamedTuple):
    """A statement without its semicolon, and its first line."""

    text: str
    line: int


def cut_statements(text: str) -> tuple[list[Statement], str]:
    """Return the statements that end with a semicolon, and the rest after the last one."""
    statements: list[Statement] = []
    first: Token | None = None
    last: Token | None = None
    depth = 0
    rest = 0
    for token in without_hints(cut_tokens(text)):
        if token.kind == BROKEN:
            break
        if token.is_mark(";") and depth == 0:
            if first is not None and last is not None:
                statements.append(Statement(text[first.start : last.end], text.count("\n", 0, first.start) + 1))
            first, last, rest = None, None, token.end
            continue
        if first is None:
            first = token
        if first.upper == "BEGIN":
            depth += _step(token, last)
        last = token
    return statements, text[rest:]


def all_statements(text: str) -> list[Statement]:
    """Return every statement of a text; the last one does not need a semicolon."""
    statements, rest = cut_statements(text)
    tokens = list(without_hints(cut_tokens(rest)))
    if tokens:
        line = text.count("\n", 0, len(text) - len(rest) + tokens[0].start) + 1
        statements.append(Statement(rest[tokens[0].start :].rstrip(), line))
    return statements


def cut_local_statements(text: str) -> list[Statement]:
    """Return every statement of a text in DuckDB's dialect."""
    statements: list[Statement] = []
    offset = 0
    for piece in split_statements(text):
        plain = piece.strip()
        start = text.find(piece, offset)
        lines_before = text.count("\n", 0, max(start, 0) + len(piece) - len(piece.lstrip()))
        offset = max(start, 0) + len(piece)
        if plain.rstrip(";").strip():
            statements.append(Statement(plain.rstrip(";").rstrip(), lines_before + 1))
    return statements


def _step(token: Token, last: Token | None) -> int:
    """Return the change of nesting depth by a word of a script: `END IF` closes one level, as does `END`."""
    word = token.upper
    before = "" if last is None else last.upper
    if before == "END":
        return 0
    if word == "END":
        return -1
    if word in _OPENS_ANYWHERE:
        return 1
    is_first = last is None or last.is_mark(";") or last.is_mark(":") or before in _BEFORE_A_STATEMENT
    return 1 if word in _OPENS_A_STATEMENT and is_first else 0
