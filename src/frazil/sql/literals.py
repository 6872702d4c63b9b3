"""Literals in SQL text to Python values, if no engine is needed to evaluate them.

    NULL, TRUE, FALSE, 'text', 1, -1, 1L, 1.5, 1.5BD, 1e3, X'1F', DATE '2024-01-01', ARRAY(1, 2), MAP('a', 'b')

Spark evaluates everything else, such as timestamps without a zone and expressions: `NOT_A_LITERAL`.
"""

from __future__ import annotations

from typing import Any, Final

from frazil.errors import FrazilError
from frazil.expr.expressions import Call, Expression, Literal
from frazil.expr.parse import parse_expression

NOT_A_LITERAL: Final = object()
_MAX_TEXT = 100_000
_MOMENTS = ("time", "timestamp", "timestamp_ntz")


def read_literal(text: str) -> Any:
    """Return the value of a literal, or NOT_A_LITERAL."""
    try:
        return NOT_A_LITERAL if len(text) > _MAX_TEXT else _value(parse_expression(text))
    except FrazilError:
        return NOT_A_LITERAL


def _value(expression: Expression) -> Any:
    if isinstance(expression, Literal):
        return NOT_A_LITERAL if expression.kind in _MOMENTS else expression.value
    if not isinstance(expression, Call) or expression.name not in ("array", "map"):
        return NOT_A_LITERAL
    items = [_value(argument) for argument in expression.arguments]
    if NOT_A_LITERAL in items:
        return NOT_A_LITERAL
    if expression.name == "array":
        return items
    if len(items) % 2 or not all(isinstance(key, str) for key in items[::2]):
        return NOT_A_LITERAL
    return dict(zip(items[::2], items[1::2], strict=True))
