"""SHOW, DESCRIBE, DROP, REFRESH, COMMENT ON: what looks at a lake or takes something out of it."""

from __future__ import annotations

from frazil.spec.frozen_map import FrozenMap
from frazil.sql.cursor import Cursor, NotOurs
from frazil.sql.parse_create import NAMESPACE_WORDS
from frazil.sql.parse_types import parse_key
from frazil.sql.statements import (
    AlterNamespace,
    DescribeFunction,
    DescribeNamespace,
    DescribeTable,
    DropNamespace,
    DropTable,
    DropView,
    Name,
    RefreshTable,
    SetProperties,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProperties,
    ShowTables,
    ShowViews,
    Statement,
    Truncate,
)
from frazil.text.tokens import QUOTED, STRING, WORD

_QUERY_WORDS = frozenset({"QUERY", "SELECT", "WITH", "VALUES", "FROM", "FUNCTION", "INSERT", "MAP", "REDUCE"})


def parse_show(cursor: Cursor) -> Statement:
    """Read what follows SHOW."""
    if cursor.take_words("CURRENT"):
        cursor.expect_any(*NAMESPACE_WORDS)
        cursor.accept("namespace", ())
        return ShowCurrentNamespace()
    if cursor.take_any("NAMESPACES", "DATABASES", "SCHEMAS"):
        name, pattern = _where(cursor, "namespaces")
        return ShowNamespaces(name, pattern)
    if cursor.take_words("TABLES"):
        name, pattern = _where(cursor, "namespace")
        return ShowTables(name, pattern)
    if cursor.take_words("TABLE", "EXTENDED"):
        name, pattern = _where(cursor, "namespace")
        return ShowTables(name, pattern, is_extended=True)
    if cursor.take_words("VIEWS"):
        name, pattern = _where(cursor, "namespace")
        return ShowViews(name, pattern)
    if cursor.take_words("TBLPROPERTIES"):
        name = _table(cursor)
        key = None
        if cursor.take_mark("("):
            key = parse_key(cursor)
            cursor.expect_mark(")")
        return ShowProperties(name, key)
    if cursor.take_words("CREATE", "TABLE"):
        name = _table(cursor)
        if cursor.at_words("AS", "SERDE"):
            cursor.fail("tables of a lake have no serde")
        return ShowCreateTable(name)
    if cursor.take_words("COLUMNS"):
        cursor.expect_any("IN", "FROM")
        name = cursor.name("the name of a table")
        if cursor.take_any("IN", "FROM"):
            name = (*cursor.name("a namespace"), *name[-1:])
        cursor.accept("table", name)
        return ShowColumns(name)
    if cursor.take_words("PARTITIONS"):
        return ShowPartitions(_table(cursor))
    raise NotOurs


def _table(cursor: Cursor) -> Name:
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    return name


def _where(cursor: Cursor, entity: str) -> tuple[Name, str | None]:
    """Read [IN name] [[LIKE] pattern]."""
    name: Name = ()
    if cursor.take_any("IN", "FROM"):
        name = cursor.name("a namespace")
    cursor.accept(entity, name)
    pattern = None
    if cursor.take_words("LIKE") or cursor.peek().kind == STRING:
        pattern = cursor.string("a pattern in quotes")
    return name, pattern


def parse_describe(cursor: Cursor) -> Statement:
    """Read what follows DESCRIBE or DESC."""
    if cursor.at_any(NAMESPACE_WORDS) and cursor.peek(1).kind in (WORD, QUOTED):
        cursor.take()
        is_extended = cursor.take_words("EXTENDED")
        name = cursor.name("the name of a namespace")
        cursor.accept("namespace", name)
        return DescribeNamespace(name, is_extended)
    if cursor.at_words("FUNCTION") and not cursor.peek(1).is_mark("."):
        cursor.take()
        cursor.take_words("EXTENDED")
        name = cursor.name("the name of a function")
        cursor.accept("function", name)
        return DescribeFunction(name)
    is_procedure = cursor.at_words("PROCEDURE") and cursor.peek(1).kind in (WORD, QUOTED)
    if cursor.at_any(_QUERY_WORDS) or is_procedure:
        raise NotOurs
    cursor.take_words("TABLE")
    is_extended = cursor.take_any("EXTENDED", "FORMATTED") is not None
    name = _table(cursor)
    if cursor.at_words("AS", "JSON"):
        cursor.fail("tables of a lake are not described as JSON", hint="Read t.metadata in Python.")
    if cursor.at_words("PARTITION"):
        cursor.fail("one partition is not described", hint="Select from the table's .partitions.")
    column = cursor.name("a column") if cursor.peek().kind in (WORD, QUOTED) else None
    return DescribeTable(name, is_extended, column)


def parse_drop(cursor: Cursor) -> Statement:
    """Read what follows DROP."""
    if cursor.take_any(*NAMESPACE_WORDS):
        if_exists = cursor.take_words("IF", "EXISTS")
        name = cursor.name("the name of a namespace")
        cursor.accept("namespace", name)
        how = cursor.take_any("RESTRICT", "CASCADE")
        return DropNamespace(name, if_exists, how == "CASCADE")
    if cursor.take_words("VIEW"):
        if_exists = cursor.take_words("IF", "EXISTS")
        name = cursor.name("the name of a view")
        cursor.accept("view", name)
        return DropView(name, if_exists)
    cursor.expect_words("TABLE")
    if_exists = cursor.take_words("IF", "EXISTS")
    name = _table(cursor)
    return DropTable(name, if_exists, cursor.take_words("PURGE"))


def parse_truncate(cursor: Cursor) -> Statement:
    """Read what follows TRUNCATE."""
    cursor.expect_words("TABLE")
    name = _table(cursor)
    if cursor.at_words("PARTITION"):
        cursor.fail("partitions are not truncated", hint="Use DELETE FROM with a condition.")
    return Truncate(name)


def parse_refresh(cursor: Cursor) -> Statement:
    """Read what follows REFRESH."""
    cursor.expect_words("TABLE")
    return RefreshTable(_table(cursor))


def parse_comment(cursor: Cursor) -> Statement:
    """Read what follows COMMENT."""
    cursor.expect_words("ON")
    is_namespace = cursor.take_any(*NAMESPACE_WORDS) is not None
    if not is_namespace:
        cursor.expect_words("TABLE")
    name = cursor.name()
    cursor.accept("namespace" if is_namespace else "table", name)
    cursor.expect_words("IS")
    comment = "" if cursor.take_words("NULL") else cursor.string("text in quotes or NULL")
    properties = FrozenMap({"comment": comment})
    return AlterNamespace(name, properties) if is_namespace else SetProperties(name, properties)
