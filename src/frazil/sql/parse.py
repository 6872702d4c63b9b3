"""A statement's text to a statement: which rule reads it, and whether it is ours at all.

Spark's grammar is large and not ours. `parse_statement` reads what a lake has to answer itself: statements that
change or show its tables, namespaces and views, and what Iceberg adds to the grammar. It asks `is_ours` of the
name as soon as it stands there; for other names, and for queries, it returns None and Spark gets the text as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from frazil.sql.cursor import Cursor, IsOurs, NotOurs
from frazil.sql.parse_alter import parse_alter
from frazil.sql.parse_create import parse_create, parse_replace
from frazil.sql.parse_show import (
    parse_comment,
    parse_describe,
    parse_drop,
    parse_refresh,
    parse_show,
    parse_truncate,
)
from frazil.sql.statements import Statement

_RULES: dict[str, Callable[[Cursor], Statement]] = {
    "ALTER": parse_alter,
    "COMMENT": parse_comment,
    "CREATE": parse_create,
    "DESC": parse_describe,
    "DESCRIBE": parse_describe,
    "DROP": parse_drop,
    "REFRESH": parse_refresh,
    "REPLACE": parse_replace,
    "SHOW": parse_show,
    "TRUNCATE": parse_truncate,
}


def parse_statement(text: str, is_ours: IsOurs) -> Statement | None:
    """Return the statement that a text asks a lake for; None where it is a query or not for a lake."""
    cursor = Cursor(text, is_ours)
    try:
        word = cursor.take().upper
        if word not in _RULES:
            return None
        statement = _RULES[word](cursor)
        cursor.end()
    except NotOurs:
        return None
    return statement
