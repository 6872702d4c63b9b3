"""ALTER: tables, namespaces and views; with what Iceberg adds to Spark's grammar.

ALTER TABLE name
    ADD COLUMN[S] ...            RENAME COLUMN a TO b        DROP COLUMN[S] [IF EXISTS] ...
    ALTER [COLUMN] a TYPE t | COMMENT c | FIRST | AFTER b | SET|DROP NOT NULL | SET DEFAULT e | DROP DEFAULT, ...
    CHANGE [COLUMN] a b type     REPLACE COLUMNS (...)
    SET TBLPROPERTIES (...)      UNSET TBLPROPERTIES [IF EXISTS] (...)
    SET LOCATION 'x'             RENAME TO name
    ADD PARTITION FIELD term [AS name]     DROP PARTITION FIELD term|name
    REPLACE PARTITION FIELD x WITH term [AS name]
    WRITE [LOCALLY] ORDERED BY ... | UNORDERED | DISTRIBUTED BY PARTITION
    SET|DROP IDENTIFIER FIELDS a, b
    CREATE [OR REPLACE] | REPLACE BRANCH|TAG [IF NOT EXISTS] x [AS OF VERSION n] [RETAIN n DAYS]
        [WITH SNAPSHOT RETENTION [n SNAPSHOTS] [m DAYS]]
    DROP BRANCH|TAG [IF EXISTS] x
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from frazil.spec.frozen_map import FrozenMap
from frazil.sql.cursor import Cursor, NotOurs
from frazil.sql.parse_create import NAMESPACE_WORDS, parse_column, parse_position
from frazil.sql.parse_types import (
    parse_field,
    parse_keys,
    parse_order_terms,
    parse_properties,
    parse_term,
    parse_type,
)
from frazil.sql.statements import (
    AddColumns,
    AddPartitionField,
    AlterColumns,
    AlterNamespace,
    AlterViewQuery,
    ColumnChange,
    ColumnDefinition,
    CreateRef,
    DropColumns,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    Name,
    RefKind,
    RenameColumn,
    RenameTable,
    RenameView,
    ReplaceColumns,
    ReplacePartitionField,
    SetIdentifierFields,
    SetLocation,
    SetProperties,
    SetWriteOrder,
    Statement,
    UnsetProperties,
)
from frazil.text.tokens import END, NUMBER

_UNITS_MS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
_NEW_PROPERTIES = ("PROPERTIES", "DBPROPERTIES")


def parse_alter(cursor: Cursor) -> Statement:
    """Read what follows ALTER."""
    if cursor.take_any(*NAMESPACE_WORDS):
        return _namespace(cursor)
    if cursor.take_words("VIEW"):
        return _view(cursor)
    cursor.expect_words("TABLE")
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    return _table(cursor, name)


def _namespace(cursor: Cursor) -> Statement:
    name = cursor.name("the name of a namespace")
    cursor.accept("namespace", name)
    if cursor.take_words("UNSET"):
        cursor.expect_any(*_NEW_PROPERTIES)
        cursor.take_words("IF", "EXISTS")
        return AlterNamespace(name, removals=parse_keys(cursor))
    cursor.expect_words("SET")
    if cursor.take_words("LOCATION"):
        return AlterNamespace(name, FrozenMap({"location": cursor.string()}))
    cursor.expect_any(*_NEW_PROPERTIES)
    return AlterNamespace(name, parse_properties(cursor))


def _view(cursor: Cursor) -> Statement:
    name = cursor.name("the name of a view")
    cursor.accept("view", name)
    if cursor.take_words("RENAME", "TO"):
        return RenameView(name, cursor.name("a new name"))
    if cursor.take_words("SET", "TBLPROPERTIES"):
        return SetProperties(name, parse_properties(cursor), is_view=True)
    if cursor.take_words("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.take_words("IF", "EXISTS")
        return UnsetProperties(name, parse_keys(cursor), if_exists, is_view=True)
    cursor.take_words("AS")
    return AlterViewQuery(name, cursor.rest())


def _table(cursor: Cursor, name: Name) -> Statement:
    if _is_of_hive(cursor):
        # Spark reads them, and says that tables of catalogs do not have such partitions.
        raise NotOurs
    verb = cursor.expect_any("ADD", "ALTER", "CHANGE", "CREATE", "DROP", "RENAME", "REPLACE", "SET", "UNSET", "WRITE")
    if verb == "ADD":
        return _add(cursor, name)
    if verb in ("ALTER", "CHANGE"):
        return _alter_columns(cursor, name, is_change=verb == "CHANGE")
    if verb == "CREATE":
        return _create_ref(cursor, name, replaces=cursor.take_words("OR", "REPLACE"))
    if verb == "DROP":
        return _drop(cursor, name)
    if verb == "RENAME":
        if cursor.take_words("TO"):
            return RenameTable(name, cursor.name("a new name"))
        cursor.expect_words("COLUMN")
        path = cursor.name("a column")
        cursor.expect_words("TO")
        return RenameColumn(name, path, cursor.identifier("a new name"))
    if verb == "REPLACE":
        return _replace(cursor, name)
    if verb == "SET":
        return _set(cursor, name)
    if verb == "UNSET":
        cursor.expect_words("TBLPROPERTIES")
        if_exists = cursor.take_words("IF", "EXISTS")
        return UnsetProperties(name, parse_keys(cursor), if_exists)
    return _write(cursor, name)


def _is_of_hive(cursor: Cursor) -> bool:
    """Return whether partitions as folders follow, or how Hive reads them: ADD PARTITION (day = 1)."""
    of_hive = (("RECOVER", "PARTITIONS"), ("PARTITION",), ("SET", "SERDE"), ("SET", "SERDEPROPERTIES"))
    before_parts = (("ADD",), ("ADD", "IF", "NOT", "EXISTS"), ("DROP",), ("DROP", "IF", "EXISTS"))
    return any(cursor.at_words(*words) for words in of_hive) or any(
        cursor.at_words(*words, "PARTITION") and cursor.peek(len(words) + 1).is_mark("(") for words in before_parts
    )


# Columns


def _add(cursor: Cursor, name: Name) -> Statement:
    if cursor.take_words("PARTITION", "FIELD"):
        term = parse_term(cursor)
        return AddPartitionField(name, term, _as_name(cursor))
    cursor.expect_any("COLUMN", "COLUMNS", "PARTITION FIELD")
    if_not_exists = cursor.take_words("IF", "NOT", "EXISTS")
    columns: list[ColumnDefinition] = []

    def column() -> None:
        columns.append(parse_column(cursor, is_nested=True, has_position=True))

    if cursor.at_mark("("):
        cursor.parenthesized(column)
    else:
        cursor.listed(column)
    return AddColumns(name, tuple(columns), if_not_exists)


def _drop(cursor: Cursor, name: Name) -> Statement:
    if cursor.take_words("PARTITION", "FIELD"):
        return DropPartitionField(name, parse_field(cursor))
    if cursor.take_words("IDENTIFIER", "FIELDS"):
        return DropIdentifierFields(name, _paths(cursor))
    ref_type = cursor.take_any("BRANCH", "TAG")
    if ref_type is not None:
        if_exists = cursor.take_words("IF", "EXISTS")
        return DropRef(name, _ref_kind(ref_type), cursor.identifier(f"a {ref_type.lower()}"), if_exists)
    cursor.expect_any("COLUMN", "COLUMNS", "PARTITION FIELD", "IDENTIFIER FIELDS", "BRANCH", "TAG")
    if_exists = cursor.take_words("IF", "EXISTS")
    return DropColumns(name, _paths(cursor), if_exists)


def _paths(cursor: Cursor) -> tuple[Name, ...]:
    paths: list[Name] = []
    if cursor.at_mark("("):
        cursor.parenthesized(lambda: paths.append(cursor.name("a column")))
    else:
        cursor.listed(lambda: paths.append(cursor.name("a column")))
    return tuple(paths)


def _alter_columns(cursor: Cursor, name: Name, *, is_change: bool) -> Statement:
    if not cursor.take_any("COLUMN", "COLUMNS") and not is_change:
        cursor.fail("expected COLUMN")
    changes: list[ColumnChange] = []
    cursor.listed(lambda: changes.append(_column_change(cursor, may_redefine=is_change)))
    return AlterColumns(name, tuple(changes))


def _column_change(cursor: Cursor, *, may_redefine: bool) -> ColumnChange:
    change = ColumnChange(cursor.name("a column"))
    words = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP")
    if may_redefine and not cursor.at_any(words):
        # Hive's form: CHANGE a b type, which may rename.
        column = parse_column(cursor, has_position=True)
        new_name = column.path[0]
        return ColumnChange(
            change.path,
            None if new_name == change.path[-1] else new_name,
            column.type,
            column.comment,
            column.position,
        )
    word = cursor.peek().upper
    if word not in words:
        cursor.fail(f"expected {', '.join(words[:-1])} or {words[-1]}")
    if cursor.take_words("TYPE"):
        change = replace(change, type=parse_type(cursor))
        # Both at once, as Iceberg's pages show it; Spark itself takes one change at a time.
        return replace(change, comment=cursor.string()) if cursor.take_words("COMMENT") else change
    if cursor.take_words("COMMENT"):
        return replace(change, comment=cursor.string())
    if cursor.take_words("SET", "NOT", "NULL"):
        return replace(change, is_required=True)
    if cursor.take_words("DROP", "NOT", "NULL"):
        return replace(change, is_required=False)
    if cursor.take_words("SET", "DEFAULT"):
        return replace(change, default=cursor.expression(what="a default"))
    if cursor.take_words("DROP", "DEFAULT"):
        return replace(change, drops_default=True)
    return replace(change, position=parse_position(cursor))


def _replace(cursor: Cursor, name: Name) -> Statement:
    if cursor.take_words("PARTITION", "FIELD"):
        field = parse_field(cursor)
        cursor.expect_words("WITH")
        term = parse_term(cursor)
        return ReplacePartitionField(name, field, term, _as_name(cursor))
    if cursor.at_any(("BRANCH", "TAG")):
        return _create_ref(cursor, name, replaces=True, creates=False)
    cursor.expect_words("COLUMNS")
    columns: list[ColumnDefinition] = []
    cursor.parenthesized(lambda: columns.append(parse_column(cursor)))
    return ReplaceColumns(name, tuple(columns))


def _as_name(cursor: Cursor) -> str | None:
    return cursor.identifier("a name for the field") if cursor.take_words("AS") else None


def _set(cursor: Cursor, name: Name) -> Statement:
    if cursor.take_words("TBLPROPERTIES"):
        return SetProperties(name, parse_properties(cursor))
    if cursor.take_words("LOCATION"):
        return SetLocation(name, cursor.string())
    cursor.expect_words("IDENTIFIER", "FIELDS")
    return SetIdentifierFields(name, _paths(cursor))


# Write order


def _write(cursor: Cursor, name: Name) -> Statement:
    terms: tuple[str, ...] | None = None
    distribution: Literal["none", "hash", "range"] | None = None
    is_distributed = False
    if cursor.peek().kind == END or cursor.at_mark(";"):
        cursor.fail("expected ORDERED BY, LOCALLY ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
    while cursor.peek().kind != END and not cursor.at_mark(";"):
        start = cursor.peek()
        if cursor.take_words("DISTRIBUTED", "BY", "PARTITION"):
            if is_distributed:
                cursor.fail("a second DISTRIBUTED BY", start)
            is_distributed = True
            continue
        if terms is not None:
            cursor.fail("a second order", start)
        if cursor.take_words("UNORDERED"):
            terms, distribution = (), "none"
            continue
        is_local = cursor.take_words("LOCALLY")
        cursor.expect_words("ORDERED", "BY")
        terms, distribution = parse_order_terms(cursor), None if is_local else "range"
    if is_distributed:
        distribution = "hash"
    return SetWriteOrder(name, terms or (), distribution)


# Branches and tags


def _ref_kind(word: str) -> RefKind:
    return "branch" if word == "BRANCH" else "tag"


def _create_ref(cursor: Cursor, name: Name, *, replaces: bool, creates: bool = True) -> Statement:
    ref_kind = _ref_kind(cursor.expect_any("BRANCH", "TAG"))
    if_not_exists = not replaces and cursor.take_words("IF", "NOT", "EXISTS")
    ref = cursor.identifier(f"a {ref_kind}'s name")
    snapshot_id = cursor.whole_number("a snapshot id") if cursor.take_words("AS", "OF", "VERSION") else None
    max_ref_age_ms = _duration(cursor) if cursor.take_words("RETAIN") else None
    keep: int | None = None
    age_ms: int | None = None
    if ref_kind == "branch" and cursor.take_words("WITH", "SNAPSHOT", "RETENTION"):
        if cursor.peek().kind == NUMBER and cursor.peek(1).upper == "SNAPSHOTS":
            start = cursor.peek()
            keep = cursor.whole_number()
            cursor.take()
            if keep <= 0:
                cursor.fail("the number of snapshots must be positive", start)
        if keep is None or cursor.peek().kind == NUMBER:
            age_ms = _duration(cursor)
    return CreateRef(
        name, ref_kind, ref, snapshot_id, max_ref_age_ms, keep, age_ms, if_not_exists, creates, replaces
    )  # fmt: skip


def _duration(cursor: Cursor) -> int:
    start = cursor.peek()
    number = cursor.whole_number("a number of days, hours or minutes")
    unit = cursor.expect_any(*_UNITS_MS)
    if number <= 0:
        cursor.fail("the time must be positive", start)
    return number * _UNITS_MS[unit]
