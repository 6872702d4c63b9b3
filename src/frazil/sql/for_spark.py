"""Texts for Spark's parser that say the same in words it knows.

A statement of a script that only lakes know is parsed when it is run: `EXECUTE IMMEDIATE '…'` takes its place. Where
Spark has no INSERT WITH SCHEMA EVOLUTION, an option of the table's name says it.
"""

from __future__ import annotations

from collections.abc import Callable

from frazil.spec.token_cursor import Token
from frazil.sql.tokens import cut_tokens

EVOLUTION_OPTION = "frazil.schema-evolution"
_BEFORE_STATEMENT = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_OURS = frozenset({"ALTER", "CALL", "COMMENT", "CREATE", "DESC", "DESCRIBE", "DROP", "REFRESH", "SHOW"})
_EVOLVING = ("INSERT", "WITH", "SCHEMA", "EVOLUTION")


def script_for_spark(text: str, is_ours: Callable[[str], bool]) -> str:
    """Return a script whose statements that a lake answers itself are parsed when they are run."""
    tokens = list(cut_tokens(text))
    made: list[str] = []
    at = 0
    start: int | None = None
    for index, token in enumerate(tokens):
        if start is None:
            before = tokens[index - 1] if index else None
            begins = before is not None and (before.is_mark(";") or before.upper in _BEFORE_STATEMENT)
            start = token.start if begins and token.upper in _OURS else None
        if start is not None and token.is_mark(";"):
            statement = text[start : token.start].rstrip()
            if is_ours(statement):
                made += [text[at:start], f"EXECUTE IMMEDIATE {_string(statement)}"]
                at = token.start
            start = None
    return "".join([*made, text[at:]])


def _string(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{inner}'"


def evolution_as_option(text: str) -> str:
    """Return a statement whose INSERT WITH SCHEMA EVOLUTION is an option of the table's name."""
    tokens = list(cut_tokens(text))
    made: list[str] = []
    at = 0
    for index in range(len(tokens)):
        found = tuple(token.upper for token in tokens[index : index + len(_EVOLVING)])
        if found != _EVOLVING or index + len(_EVOLVING) == len(tokens):
            continue
        after = _after_name(tokens, index + len(_EVOLVING))
        has_options = [token.upper or token.text for token in tokens[after : after + 2]] == ["WITH", "("]
        made += [text[at : tokens[index].end], text[tokens[index + len(_EVOLVING) - 1].end : tokens[after - 1].end]]
        at = tokens[after - 1].end
        if has_options:
            made.append(f" WITH ('{EVOLUTION_OPTION}'='true', ")
            at = tokens[after + 1].end
        else:
            made.append(f" WITH ('{EVOLUTION_OPTION}'='true')")
    return "".join([*made, text[at:]])


def _after_name(tokens: list[Token], at: int) -> int:
    """Return the place after INTO or OVERWRITE, TABLE, and a name or a call of IDENTIFIER."""
    while at < len(tokens) and tokens[at].upper in ("INTO", "OVERWRITE", "TABLE"):
        at += 1
    at += 1
    if at < len(tokens) and tokens[at].is_mark("("):
        depth = 0
        while at < len(tokens):
            depth += tokens[at].is_mark("(") - tokens[at].is_mark(")")
            at += 1
            if depth == 0:
                return at
    while at < len(tokens) and tokens[at].is_mark("."):
        at += 2
    return min(at, len(tokens))
