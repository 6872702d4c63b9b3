"""A filter as text without its values, for logs and reports: `id > (4-digit-int) and name = (hash-5e0a12f3)`.

Literals are data. What stays is what helps to read a log: the kind and the size of each literal, and for
text a short hash, so that equal values can be seen to be equal.
"""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal

import mmh3

from frazil.expr.predicates import Always, And, Bound, Not, Or, Predicate, SqlTest, TypedText, Unbound, format_leaf
from frazil.spec.types import (
    DateType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
)

_SHOWN = 3
_DATE = re.compile(r"^-?\d{4,}-\d{2}-\d{2}$")
_TIMESTAMP = re.compile(r"^-?\d{4,}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_TIME = re.compile(r"^\d{2}:\d{2}")
_KINDS: dict[type[Type], str] = {
    DateType: "(date)",
    TimeType: "(time)",
    TimestampType: "(timestamp)",
    TimestamptzType: "(timestamp)",
    TimestampNsType: "(timestamp)",
    TimestamptzNsType: "(timestamp)",
}


def sanitize(predicate: Predicate) -> str:
    """Return a predicate as text in which no literal can be read."""
    if isinstance(predicate, And | Or):
        word, inner = (" and ", Or) if isinstance(predicate, And) else (" or ", And)
        return word.join(
            f"({sanitize(child)})" if isinstance(child, inner) else sanitize(child) for child in predicate.children
        )
    if isinstance(predicate, Not):
        return f"not ({sanitize(predicate.child)})"
    if isinstance(predicate, Unbound | Bound):
        data_type = predicate.term.result_type if isinstance(predicate, Bound) else None
        texts = [sanitize_literal(literal, data_type) for literal in predicate.literals[:_SHOWN]]
        if len(predicate.literals) > _SHOWN:
            texts.append(f"... ({len(predicate.literals)} values)")
        if isinstance(predicate, SqlTest):
            return predicate.format(texts)
        return format_leaf(predicate.op, str(predicate.term), texts)
    return str(predicate) if isinstance(predicate, Always) else "(predicate)"


def sanitize_literal(value: object, data_type: Type | None = None) -> str:
    """Return a literal's kind and size instead of the literal."""
    if data_type is not None and type(data_type) in _KINDS:
        return _KINDS[type(data_type)]
    if isinstance(value, bool):
        return "(boolean)"
    if isinstance(value, int):
        return f"({len(str(abs(value))) if value.bit_length() < 4096 else 'many'}-digit-int)"
    if isinstance(value, float):
        return f"({len(str(int(abs(value)))) if abs(value) < 1e300 else 'many'}-digit-float)"
    if isinstance(value, Decimal):
        return f"({len(value.as_tuple().digits)}-digit-decimal)"
    if isinstance(value, TypedText):
        return f"({value.kind})"
    if isinstance(value, uuid.UUID):
        return f"(hash-{_hash(value.bytes)})"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return f"({type(value).__name__})"
    if isinstance(value, bytes):
        return f"({len(value)}-byte-hash-{_hash(value)})"
    return _sanitize_text(str(value))


def _sanitize_text(text: str) -> str:
    for pattern, replacement in ((_DATE, "(date)"), (_TIMESTAMP, "(timestamp)"), (_TIME, "(time)")):
        if pattern.match(text):
            return replacement
    return f"(hash-{_hash(text.encode('utf-8', 'replace'))})"


def _hash(data: bytes) -> str:
    return f"{mmh3.hash(data, 0, signed=False):08x}"
