"""CREATE and REPLACE: tables, namespaces, views.

CREATE [OR REPLACE | EXTERNAL] TABLE [IF NOT EXISTS] name [(columns)] [USING provider] clauses [[AS] query]
REPLACE TABLE name [(columns)] [USING provider] clauses [[AS] query]
clauses   PARTITIONED BY (terms or typed columns), CLUSTERED BY (columns) INTO n BUCKETS, LOCATION, COMMENT,
          TBLPROPERTIES, OPTIONS
column    name type [NOT NULL] [DEFAULT expression] [COMMENT text]
CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] [COMMENT text] [TBLPROPERTIES ...]
    [WITH SCHEMA BINDING | COMPENSATION | TYPE EVOLUTION | EVOLUTION] AS query
"""

from __future__ import annotations

from frazil.spec.frozen_map import FrozenMap
from frazil.sql.cursor import Cursor, NotOurs
from frazil.sql.parse_types import parse_properties, parse_term, parse_type
from frazil.sql.quote_names import quote_path
from frazil.sql.statements import (
    VIEW_SCHEMA_MODE,
    ColumnDefinition,
    CreateNamespace,
    CreateTable,
    CreateTableLike,
    CreateView,
    Name,
    Position,
    Properties,
    Span,
    Statement,
    ViewColumn,
)

QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"})
NAMESPACE_WORDS = ("NAMESPACE", "DATABASE", "SCHEMA")
_PROVIDERS = frozenset({"iceberg", "parquet", "avro", "orc"})
_IDENTIFIER = "Identifier fields are set by ALTER TABLE … SET IDENTIFIER FIELDS; nothing checks that they are unique."
_NO_PLACE = {
    "GENERATED": "Compute the value where rows are written, or in a view.",
    "PRIMARY": _IDENTIFIER,
    "UNIQUE": _IDENTIFIER,
    "CONSTRAINT": "Check rows where they are written.",
    "CHECK": "Check rows where they are written.",
}
_AFTER_DEFAULT = frozenset({"NOT", "COMMENT", "FIRST", "AFTER", "DEFAULT", "GENERATED", "CONSTRAINT", "PRIMARY"})


def parse_create(cursor: Cursor) -> Statement:
    """Read what follows CREATE."""
    replaces = cursor.take_words("OR", "REPLACE")
    if cursor.take_any(*NAMESPACE_WORDS):
        return _namespace(cursor)
    if cursor.take_words("VIEW"):
        return _view(cursor, replaces=replaces)
    # Every table of a lake is one of its own files, where it is told to be: EXTERNAL says nothing more.
    if cursor.take_words("TABLE") or (not replaces and cursor.take_words("EXTERNAL", "TABLE")):
        return _table(cursor, creates=True, replaces=replaces)
    # Temporary views and tables, functions, variables, indexes and the like are Spark's.
    raise NotOurs


def parse_replace(cursor: Cursor) -> Statement:
    """Read what follows REPLACE."""
    cursor.expect_words("TABLE")
    return _table(cursor, creates=False, replaces=True)


def _if_not_exists(cursor: Cursor) -> bool:
    return cursor.take_words("IF", "NOT", "EXISTS")


def _namespace(cursor: Cursor) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("the name of a namespace")
    cursor.accept("namespace", name)
    properties: dict[str, str] = {}
    while True:
        if cursor.take_words("COMMENT"):
            properties["comment"] = cursor.string()
        elif cursor.take_words("LOCATION"):
            properties["location"] = cursor.string()
        elif cursor.take_words("WITH", "PROPERTIES") or cursor.take_words("WITH", "DBPROPERTIES"):
            properties |= parse_properties(cursor)
        else:
            break
    return CreateNamespace(name, FrozenMap(properties), if_not_exists)


class _Clauses:
    """What may follow the columns of a table, in any order and once each."""

    def __init__(self) -> None:
        self.provider: str | None = None
        self.location: str | None = None
        self.own_properties: dict[str, str] = {}
        self.options: dict[str, str] = {}
        self.partition_by: list[str] = []
        self.columns: list[ColumnDefinition] = []
        self._seen: set[str] = set()

    @property
    def properties(self) -> Properties:
        """Properties and, as Spark gives them to a catalog, options: as properties and once more under a prefix."""
        kept = {f"option.{key}": value for key, value in self.options.items()}
        return FrozenMap({**self.own_properties, **self.options, **kept})

    def read(self, cursor: Cursor) -> None:
        while True:
            start = cursor.peek()
            if not self._read_one(cursor):
                return
            word = start.upper
            if word in self._seen:
                cursor.fail(f"a second {word} clause", start)
            self._seen.add(word)

    def _read_one(self, cursor: Cursor) -> bool:
        if cursor.take_words("USING"):
            start = cursor.peek()
            self.provider = ".".join(cursor.name("a table format"))
            if self.provider.lower() not in _PROVIDERS:
                cursor.fail(f"there is no table format {self.provider!r} in a lake", start, "Write USING iceberg.")
        elif cursor.take_words("LOCATION"):
            self.location = cursor.string()
        elif cursor.take_words("COMMENT"):
            self.own_properties["comment"] = cursor.string()
        elif cursor.take_words("TBLPROPERTIES"):
            self.own_properties |= parse_properties(cursor)
        elif cursor.take_words("OPTIONS"):
            start = cursor.peek()
            self.options = dict(parse_properties(cursor))
            path = next((key for key in self.options if key.lower() == "path"), None)
            if path is not None and "LOCATION" in self._seen:
                cursor.fail("a second LOCATION, as the option 'path'", start)
            if path is not None:
                # What Spark's own formats call the location of a table.
                self.location = self.options.pop(path)
                self._seen.add("LOCATION")
        elif cursor.take_words("PARTITIONED", "BY"):
            cursor.parenthesized(lambda: self._partition_item(cursor))
        elif cursor.take_words("CLUSTERED", "BY"):
            self._buckets(cursor)
        else:
            return False
        return True

    def _partition_item(self, cursor: Cursor) -> None:
        ahead = 1
        while cursor.peek(ahead).is_mark("."):
            ahead += 2
        following = cursor.peek(ahead)
        if following.is_mark("(") or following.is_mark(",") or following.is_mark(")"):
            self.partition_by.append(parse_term(cursor))
            return
        column = parse_column(cursor)
        self.columns.append(column)
        self.partition_by.append(quote_path(column.path))

    def _buckets(self, cursor: Cursor) -> None:
        columns: list[Name] = []
        start = cursor.peek()
        cursor.parenthesized(lambda: columns.append(cursor.name("a column")))
        if len(columns) != 1:
            cursor.fail("a table is clustered by one column only", start, "Use PARTITIONED BY (bucket(n, column)).")
        if cursor.at_words("SORTED"):
            cursor.fail("SORTED BY is not allowed here", hint="Use ALTER TABLE ... WRITE ORDERED BY.")
        cursor.expect_words("INTO")
        count = cursor.whole_number()
        cursor.expect_words("BUCKETS")
        self.partition_by.append(f"bucket({count}, {quote_path(columns[0])})")


def _table(cursor: Cursor, *, creates: bool, replaces: bool) -> Statement:
    if_not_exists = creates and _if_not_exists(cursor)
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    if if_not_exists and replaces:
        cursor.fail("OR REPLACE and IF NOT EXISTS exclude each other")
    if cursor.take_words("LIKE"):
        return _table_like(cursor, name, if_not_exists=if_not_exists)
    columns: list[ColumnDefinition] = []
    if cursor.at_mark("(") and cursor.peek(1).upper not in QUERY_STARTS:
        cursor.parenthesized(lambda: columns.append(parse_column(cursor)))
    clauses = _Clauses()
    clauses.read(cursor)
    query: Span | None = None
    if cursor.take_words("AS") or cursor.at_any(QUERY_STARTS) or cursor.at_mark("("):
        if columns or clauses.columns:
            cursor.fail("a table made from a query takes its columns from it", hint="Leave the columns out.")
        query = cursor.rest()
    return CreateTable(
        name,
        tuple(columns + clauses.columns),
        tuple(clauses.partition_by),
        clauses.provider,
        clauses.location,
        clauses.properties,
        query,
        if_not_exists,
        creates,
        replaces,
    )


def _table_like(cursor: Cursor, name: Name, *, if_not_exists: bool) -> Statement:
    source = cursor.name("the name of a table")
    clauses = _Clauses()
    clauses.read(cursor)
    return CreateTableLike(name, source, clauses.location, clauses.properties, if_not_exists)


def parse_column(cursor: Cursor, *, is_nested: bool = False, has_position: bool = False) -> ColumnDefinition:
    """Read a column with its type and what may follow that."""
    path: Name = cursor.name("a column's name") if is_nested else (cursor.identifier("a column's name"),)
    data_type = parse_type(cursor)
    is_required = False
    comment: str | None = None
    default: Span | None = None
    position: Position | None = None
    seen: set[str] = set()
    while True:
        start = cursor.peek()
        if cursor.take_words("NOT", "NULL"):
            is_required = True
        elif cursor.take_words("NULL"):
            pass
        elif cursor.take_words("COMMENT"):
            comment = cursor.string()
        elif cursor.take_words("DEFAULT"):
            default = cursor.expression(_AFTER_DEFAULT, "a default")
        elif has_position and cursor.at_any(("FIRST", "AFTER")):
            position = parse_position(cursor)
        elif cursor.at_any(_NO_PLACE):
            cursor.fail(f"{start.upper} has no place in the format", start, _NO_PLACE[start.upper])
        else:
            return ColumnDefinition(path, data_type, is_required, comment, default, position)
        word = "NULL" if start.upper in ("NOT", "NULL") else "PLACE" if start.upper == "AFTER" else start.upper
        if word in seen:
            cursor.fail(f"a second {start.upper} of one column", start)
        seen.add(word)


def parse_position(cursor: Cursor) -> Position:
    """Read FIRST or AFTER a column."""
    if cursor.take_words("FIRST"):
        return Position()
    cursor.expect_words("AFTER")
    return Position(cursor.identifier("a column"))


def _schema_mode(cursor: Cursor) -> str:
    if cursor.take_words("TYPE"):
        cursor.expect_words("EVOLUTION")
        return "TYPE EVOLUTION"
    return cursor.expect_any("BINDING", "COMPENSATION", "EVOLUTION")


def _view(cursor: Cursor, *, replaces: bool) -> Statement:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("the name of a view")
    cursor.accept("view", name)
    if if_not_exists and replaces:
        cursor.fail("OR REPLACE and IF NOT EXISTS exclude each other")
    columns: list[ViewColumn] = []

    def column() -> None:
        label = cursor.identifier("a column's name")
        columns.append(ViewColumn(label, cursor.string() if cursor.take_words("COMMENT") else None))

    if cursor.at_mark("("):
        cursor.parenthesized(column)
    properties: dict[str, str] = {}
    while True:
        if cursor.take_words("COMMENT"):
            properties["comment"] = cursor.string()
        elif cursor.take_words("TBLPROPERTIES"):
            properties |= parse_properties(cursor)
        elif cursor.take_words("WITH", "SCHEMA"):
            mode = _schema_mode(cursor)
            if mode == "EVOLUTION" and columns:
                cursor.fail("a view WITH SCHEMA EVOLUTION takes its columns from the query", hint="Leave them out.")
            properties[VIEW_SCHEMA_MODE] = mode
        elif cursor.at_words("PARTITIONED"):
            cursor.fail("views of a lake have no such clause")
        else:
            break
    cursor.expect_words("AS")
    known: Properties = FrozenMap(properties)
    return CreateView(name, cursor.rest(), tuple(columns), known, if_not_exists, replaces)
