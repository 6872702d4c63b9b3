"""Literals in SQL text to Python values, where no engine is needed to know what they mean.

    NULL, TRUE, FALSE, 'text', 1, -1, 1L, 1.5, 1.5BD, 1e3, X'1F', DATE '2024-01-01', ARRAY(1, 2), MAP('a', 'b')

Everything else, timestamps without a zone and expressions among them, is for Spark to evaluate: `NOT_A_LITERAL`.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from frazil.text.tokens import NUMBER, STRING, Token, cut_tokens, without_hints

NOT_A_LITERAL: Final = object()
_WORDS: dict[str, Any] = {"NULL": None, "TRUE": True, "FALSE": False}
_MAX_TEXT = 100_000


def read_literal(text: str) -> Any:
    """Return the value of a literal, or NOT_A_LITERAL."""
    if len(text) > _MAX_TEXT:
        return NOT_A_LITERAL
    tokens = list(without_hints(cut_tokens(text)))
    value, index = _value(tokens, 0)
    return value if index == len(tokens) else NOT_A_LITERAL


def _value(tokens: list[Token], index: int) -> tuple[Any, int]:
    """Return the literal at an index and the index after it; NOT_A_LITERAL and -1 where there is none."""
    nothing = (NOT_A_LITERAL, -1)
    if index >= len(tokens):
        return nothing
    token = tokens[index]
    if token.upper in _WORDS:
        return _WORDS[token.upper], index + 1
    if token.kind == STRING:
        text = token.value
        index += 1
        while index < len(tokens) and tokens[index].kind == STRING:
            text += tokens[index].value
            index += 1
        return text, index
    if token.is_mark("-") or token.is_mark("+"):
        if index + 1 < len(tokens) and tokens[index + 1].kind == NUMBER:
            number = _number(tokens[index + 1].text)
            return (-number if token.text == "-" else number), index + 2
        return nothing
    if token.kind == NUMBER:
        return _number(token.text), index + 1
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is not None and following.kind == STRING and token.upper in ("X", "DATE"):
        if token.upper == "DATE":
            return following.value, index + 2
        try:
            return bytes.fromhex(following.value), index + 2
        except ValueError:
            return nothing
    if following is not None and following.is_mark("(") and token.upper in ("ARRAY", "MAP"):
        return _collection(tokens, index)
    return nothing


def _collection(tokens: list[Token], index: int) -> tuple[Any, int]:
    word = tokens[index].upper
    index += 2
    items: list[Any] = []
    if index < len(tokens) and tokens[index].is_mark(")"):
        return ([] if word == "ARRAY" else {}), index + 1
    while True:
        item, index = _value(tokens, index)
        if item is NOT_A_LITERAL or index >= len(tokens):
            return NOT_A_LITERAL, -1
        items.append(item)
        if tokens[index].is_mark(")"):
            break
        if not tokens[index].is_mark(","):
            return NOT_A_LITERAL, -1
        index += 1
    if word == "ARRAY":
        return items, index + 1
    if len(items) % 2 or any(not isinstance(key, str) for key in items[::2]):
        return NOT_A_LITERAL, -1
    return dict(zip(items[::2], items[1::2], strict=True)), index + 1


def _number(text: str) -> int | float | Decimal:
    upper = text.upper()
    if upper.endswith("BD"):
        return Decimal(upper[:-2])
    if upper[-1] in "LSY":
        return int(upper[:-1])
    if upper[-1] in "FD" or "E" in upper:
        return float(upper.rstrip("FD"))
    try:
        return int(upper) if upper.isdigit() else Decimal(upper)
    except InvalidOperation:
        return float(upper)
