"""Expressions as text of Spark SQL: for the errors and reports that people read, and for Spark."""

from __future__ import annotations

import re

from frazil.expr.expressions import Call, Case, Cast, Expression, Literal, Name, value_of
from frazil.expr.parse import RESERVED
from frazil.expr.predicates import sql_literal

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_OR, _AND, _NOT, _WORDS, _TEST, _BITS, _UNARY = 1, 2, 3, 4, 5, 6, 11
"""How strongly operators bind. A test in words, such as `is null`, is no operand of another test."""
_POWERS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _TEST),
    "|": 6,
    "^": 7,
    "&": 8,
    **dict.fromkeys(("+", "-", "||"), 9),
    **dict.fromkeys(("*", "/", "%", "div"), 10),
}
_SIGNS = {"negative": "-", "positive": "+", "~": "~"}
_SUFFIXES = {"bigint": "L", "smallint": "S", "tinyint": "Y", "float": "F"}


def show_sql(expression: Expression, *, quotes_names: bool = False) -> str:
    """Return an expression as text that parses to it; with `quotes_names`, all names are in backticks."""
    return _shown(expression, quotes_names)[0]


def _shown(expression: Expression, quotes: bool) -> tuple[str, int]:
    """Return the text of an expression, and how strongly its outermost operator binds."""
    if isinstance(expression, Literal):
        return _literal(expression), _UNARY + 1
    if isinstance(expression, Name):
        return ".".join(_name(step, quotes) for step in expression.parts), _UNARY + 1
    if isinstance(expression, Cast):
        word = "try_cast" if expression.is_try else "cast"
        return f"{word}({_shown(expression.child, quotes)[0]} as {expression.type_name})", _UNARY + 1
    if isinstance(expression, Case):
        return _case(expression, quotes), _UNARY + 1
    return _call(expression, quotes)


def _case(case: Case, quotes: bool) -> str:
    parts = ["case"]
    for when, then in case.branches:
        parts += ["when", _shown(when, quotes)[0], "then", _shown(then, quotes)[0]]
    if case.otherwise is not None:
        parts += ["else", _shown(case.otherwise, quotes)[0]]
    return " ".join([*parts, "end"])


def _call(call: Call, quotes: bool) -> tuple[str, int]:
    name, arguments = call.name, call.arguments
    power = _POWERS.get(name)
    if power is not None and len(arguments) > 1:
        # Operators of one strength go from left to right; `and` and `or` in themselves are other nodes.
        first = _inside(arguments[0], power + (power <= _AND), quotes)
        return f" {name} ".join([first, *(_inside(other, power + 1, quotes) for other in arguments[1:])]), power
    if name == "not":
        return _negated(arguments[0], quotes)
    if name in _SIGNS:
        return f"{_SIGNS[name]}({_shown(arguments[0], quotes)[0]})", _UNARY
    if name == "in":
        items = ", ".join(_shown(item, quotes)[0] for item in arguments[1:])
        return f"{_inside(arguments[0], _BITS, quotes)} in ({items})", _WORDS
    if name in ("isnull", "isnotnull"):
        return f"{_inside(arguments[0], _BITS, quotes)} is {'not ' * (name == 'isnotnull')}null", _WORDS
    if name in ("like", "ilike", "rlike"):
        escape = f" escape {_shown(arguments[2], quotes)[0]}" if len(arguments) > 2 else ""
        return f"{_inside(arguments[0], _BITS, quotes)} {name} {_inside(arguments[1], _BITS, quotes)}{escape}", _WORDS
    return f"{name}({', '.join(_shown(argument, quotes)[0] for argument in arguments)})", _UNARY + 1


def _negated(child: Expression, quotes: bool) -> tuple[str, int]:
    if isinstance(child, Call) and child.name == "isnull":
        return _call(Call("isnotnull", child.arguments), quotes)
    if isinstance(child, Call) and child.name in ("in", "like", "ilike", "rlike"):
        operand = _inside(child.arguments[0], _BITS, quotes)
        return f"{operand} not{_call(child, quotes)[0][len(operand) :]}", _WORDS
    return f"not {_inside(child, _NOT, quotes)}", _NOT


def _inside(expression: Expression, least: int, quotes: bool) -> str:
    text, power = _shown(expression, quotes)
    return text if power >= least else f"({text})"


def _literal(literal: Literal) -> str:
    value = value_of(literal)
    if literal.kind in _SUFFIXES and (not isinstance(value, float) or abs(value) < float("inf")):
        return f"{value!r}{_SUFFIXES[literal.kind]}"
    return sql_literal(value)


def _name(name: str, quotes: bool) -> str:
    is_plain = not quotes and _PLAIN.fullmatch(name) is not None and name.lower() not in RESERVED
    return name if is_plain else "`" + name.replace("`", "``") + "`"
