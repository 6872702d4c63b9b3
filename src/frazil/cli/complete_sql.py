"""Completion in `frazil sql`: keywords, and names of the lake."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from frazil.errors import FrazilError
from frazil.metadata_tables.tables import METADATA_TABLES
from frazil.table.lake import Lake
from frazil.visible_text import visible

LAKE = "lake"
KEYWORDS = (
    "ADD", "ALTER", "AND", "AS", "ASC", "BETWEEN", "BRANCH", "BY", "CALL", "CASE", "COLUMN", "COLUMNS", "COMMENT",
    "COUNT", "CREATE", "CROSS", "DEFAULT", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE", "END", "EXISTS",
    "EXPLAIN", "EXTENDED", "FIELD", "FIELDS", "FROM", "FULL", "GROUP", "HAVING", "IDENTIFIER", "IN", "INNER", "INSERT",
    "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "LOCATION", "MATCHED", "MERGE", "NAMESPACE", "NAMESPACES", "NOT",
    "NULL", "NULLS", "ON", "OR", "ORDER", "ORDERED", "OVERWRITE", "PARTITION", "PARTITIONED", "PROPERTIES", "PURGE",
    "RENAME", "REPLACE", "RETAIN", "RIGHT", "SELECT", "SET", "SHOW", "SNAPSHOT", "SYSTEM_VERSION", "TABLE", "TABLES",
    "TAG", "TBLPROPERTIES", "THEN", "TIMESTAMP", "TYPE", "UNION", "UNSET", "UPDATE", "USE", "USING", "VALUES",
    "VERSION", "VIEW", "VIEWS", "WHEN", "WHERE", "WITH", "WRITE",
)  # fmt: skip
_TABLE_NAME = re.compile(rf"\b{LAKE}\.([\w.]+)")
_MAX_OFFERED = 500


def complete_sql(lake: Lake, word: str, typed: str) -> list[str]:
    """Return the completions of a word, given the statement typed so far."""
    try:
        names = _names(lake, word) if "." in word else _words(lake, word, typed)
    except FrazilError:
        # Errors of a table are reported by the statement, not by completion.
        names = []
    # Completions are typed literally: a newline in a name would run the statement.
    return sorted({name for name in names if name == visible(name)})[:_MAX_OFFERED]


def _words(lake: Lake, word: str, typed: str) -> Iterable[str]:
    """Yield keywords in the typed case, the lake, and columns of the tables that the statement names."""
    change: Callable[[str], str] = str.lower if word == word.lower() else str.upper
    yield from (change(keyword) for keyword in KEYWORDS if keyword.startswith(word.upper()))
    if LAKE.startswith(word):
        yield f"{LAKE}."
    for name in _TABLE_NAME.findall(typed):
        if word and "." in name and lake.table_exists(name):
            yield from (field.name for field in lake.table(name).schema.fields if field.name.startswith(word))


def _names(lake: Lake, word: str) -> Iterable[str]:
    """Return namespaces, tables, views and metadata tables below the complete part of a name."""
    head, _, prefix = word.rpartition(".")
    first, *parts = head.split(".")
    if first != LAKE:
        return []
    space = tuple(parts)
    if len(space) > 1 and lake.table_exists(space):
        candidates = [f"{head}.{metadata_table}" for metadata_table in METADATA_TABLES]
    else:
        candidates = [f"{head}.{namespace[-1]}." for namespace in lake.list_namespaces(space)]
        if space:
            candidates += [f"{head}.{name[-1]}" for name in [*lake.list_tables(space), *lake.list_views(space)]]
        else:
            candidates.append(f"{head}.system.")
    return [name for name in candidates if name.startswith(f"{head}.{prefix}")]
