"""Whether a text can be a query, as far as its words tell. Spark's own parser decides where there is one.

A view is a query. Whoever writes one without Spark is told at once where it begins like a command; when Spark reads a
view, its parser refuses every command, wherever it hides (`spark/jvm/exact_sql.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from frazil.text.tokens import BROKEN, MARK, QUOTED, WORD, Token, cut_tokens, without_hints

_STARTS = frozenset({"SELECT", "FROM", "VALUES", "TABLE", "WITH", "MAP", "REDUCE"})
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_AFTER_INSERT = frozenset({"INTO", "OVERWRITE", "WITH"})


def find_no_query(text: str) -> str | None:
    """Return the word by which a text is no query, in capitals; None where it may be one."""
    tokens = list(without_hints(cut_tokens(text)))
    if tokens and tokens[-1].kind == BROKEN:
        return tokens[-1].text
    position = _skip_open(tokens, 0)
    if position >= len(tokens) or tokens[position].upper not in _STARTS:
        return _word(tokens, position)
    if tokens[position].upper == "WITH":
        position = _skip_open(tokens, _skip_definitions(tokens, position + 1))
        if position >= len(tokens) or tokens[position].upper in _CHANGES:
            return _word(tokens, position)
    for token, following in pairwise(tokens):
        if token.upper == "INSERT" and following.upper in _AFTER_INSERT:
            return "INSERT"
    last = next((index for index, token in enumerate(tokens) if token.is_mark(";")), len(tokens))
    more = next((token for token in tokens[last:] if not token.is_mark(";")), None)
    return None if more is None else "; " + more.text.upper()


def without_semicolons(text: str) -> str:
    """Return a text without the semicolons at its end."""
    tokens = list(without_hints(cut_tokens(text)))
    while tokens and tokens[-1].is_mark(";"):
        text = text[: tokens.pop().start]
    return text


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text.upper() if index < len(tokens) else "nothing"


def _skip_open(tokens: Sequence[Token], index: int) -> int:
    while index < len(tokens) and tokens[index].is_mark("("):
        index += 1
    return index


def _skip_definitions(tokens: Sequence[Token], index: int) -> int:
    """Return the index after the definitions of a WITH: the first word that follows a closing mark and no comma."""
    depth = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind == MARK and token.text in "([{":
            depth += 1
        elif token.kind == MARK and token.text in ")]}":
            depth -= 1
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if depth == 0 and following is not None and following.kind in (WORD, QUOTED, MARK):
                is_open = following.is_mark(",") or following.upper in ("AS", "MAX", "USING")
                if not is_open:
                    return index + 1
        index += 1
    return index
