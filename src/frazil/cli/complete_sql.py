"""What the tab key offers in `frazil sql`: keywords, and names of the lake as far as they are typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from frazil.errors import FrazilError
from frazil.inspect.tables import METADATA_TABLES
from frazil.lake.lake import Lake
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
    """Return what a word can become, given the statement as far as it is typed."""
    try:
        found = _names(lake, word) if "." in word else _words(lake, word, typed)
    except FrazilError:
        # A table that cannot be read is for the statement to say, not for the tab key.
        found = []
    # What is offered is typed: an end of a line in a name would run the statement.
    return sorted({name for name in found if name == visible(name)})[:_MAX_OFFERED]


def _words(lake: Lake, word: str, typed: str) -> Iterable[str]:
    """Keywords in the case that is typed, the lake, and columns of the tables that the statement names."""
    change: Callable[[str], str] = str.lower if word == word.lower() else str.upper
    yield from (change(keyword) for keyword in KEYWORDS if keyword.startswith(word.upper()))
    if LAKE.startswith(word):
        yield f"{LAKE}."
    for name in _TABLE_NAME.findall(typed):
        if word and "." in name and lake.table_exists(name):
            yield from (field.name for field in lake.table(name).schema.fields if field.name.startswith(word))


def _names(lake: Lake, word: str) -> Iterable[str]:
    """Namespaces, tables, views and metadata tables below the part of a name that is whole."""
    head, _, begun = word.rpartition(".")
    first, *parts = head.split(".")
    if first != LAKE:
        return []
    space = tuple(parts)
    if len(space) > 1 and lake.table_exists(space):
        offered = [f"{head}.{metadata_table}" for metadata_table in METADATA_TABLES]
    else:
        offered = [f"{head}.{namespace[-1]}." for namespace in lake.list_namespaces(space)]
        if space:
            offered += [f"{head}.{name[-1]}" for name in [*lake.list_tables(space), *lake.list_views(space)]]
        else:
            offered.append(f"{head}.system.")
    return [name for name in offered if name.startswith(f"{head}.{begun}")]
