"""Statements as values: what a text asks for, one class for each kind. Made by `sql/parse.py`.

Names are tuples of parts as written, not resolved: which lake and namespace they mean is for the session to say.
Queries, conditions and expressions stay text, as written (`Span`): Spark is the one to read them. Types and
partition or sort terms are text in the specification's words (`spec/parse_type.py`, `spec/transform_terms.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from frazil.spec.frozen_map import FrozenMap

Name = tuple[str, ...]
Properties = FrozenMap[str, str]
NO_PROPERTIES: Properties = FrozenMap()
VIEW_SCHEMA_MODE = "view.schemaMode"
"""The property of a view that says what WITH SCHEMA said: how its columns follow those of its query."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the statement's text, as written."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends in the statement."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Statement:
    """Base of all statements."""


# Namespaces and the session


@dataclass(frozen=True, slots=True)
class ShowCurrentNamespace(Statement):
    """SHOW CURRENT NAMESPACE."""


@dataclass(frozen=True, slots=True)
class CreateNamespace(Statement):
    """CREATE NAMESPACE name."""

    name: Name
    properties: Properties = NO_PROPERTIES
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropNamespace(Statement):
    """DROP NAMESPACE name."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterNamespace(Statement):
    """ALTER NAMESPACE name SET PROPERTIES, UNSET PROPERTIES, SET LOCATION; COMMENT ON NAMESPACE."""

    name: Name
    updates: Properties = NO_PROPERTIES
    removals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeNamespace(Statement):
    """DESCRIBE NAMESPACE name."""

    name: Name
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowNamespaces(Statement):
    """SHOW NAMESPACES [IN name] [LIKE pattern]."""

    name: Name = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowTables(Statement):
    """SHOW TABLES [IN name] [LIKE pattern]; SHOW TABLE EXTENDED."""

    name: Name = ()
    pattern: str | None = None
    is_extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowViews(Statement):
    """SHOW VIEWS [IN name] [LIKE pattern]."""

    name: Name = ()
    pattern: str | None = None


# Tables


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: first, or after a sibling."""

    after: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE or ADD COLUMNS. `path` has one part but for nested columns that are added."""

    path: Name
    type: str
    is_required: bool = False
    comment: str | None = None
    default: Span | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """CREATE TABLE, CREATE OR REPLACE TABLE, REPLACE TABLE; with a query, CTAS and RTAS."""

    name: Name
    columns: tuple[ColumnDefinition, ...] = ()
    partition_by: tuple[str, ...] = ()
    provider: str | None = None
    location: str | None = None
    properties: Properties = NO_PROPERTIES
    query: Span | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class CreateTableLike(Statement):
    """CREATE TABLE name LIKE source."""

    name: Name
    source: Name
    location: str | None = None
    properties: Properties = NO_PROPERTIES
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable(Statement):
    """DROP TABLE."""

    name: Name
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable(Statement):
    """ALTER TABLE name RENAME TO new_name."""

    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class RefreshTable(Statement):
    """REFRESH TABLE."""

    name: Name


@dataclass(frozen=True, slots=True)
class AddColumns(Statement):
    """ALTER TABLE name ADD COLUMNS."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumns(Statement):
    """ALTER TABLE name DROP COLUMNS."""

    name: Name
    paths: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn(Statement):
    """ALTER TABLE name RENAME COLUMN path TO new_name."""

    name: Name
    path: Name
    new_name: str


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What changes of one column; None and False: it stays."""

    path: Name
    new_name: str | None = None
    type: str | None = None
    comment: str | None = None
    position: Position | None = None
    is_required: bool | None = None
    default: Span | None = None
    drops_default: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumns(Statement):
    """ALTER TABLE name ALTER COLUMN path ..."""

    name: Name
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns(Statement):
    """ALTER TABLE name REPLACE COLUMNS."""

    name: Name
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True)
class SetProperties(Statement):
    """ALTER TABLE or VIEW name SET TBLPROPERTIES; COMMENT ON TABLE."""

    name: Name
    properties: Properties
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class UnsetProperties(Statement):
    """ALTER TABLE or VIEW name UNSET TBLPROPERTIES."""

    name: Name
    keys: tuple[str, ...]
    if_exists: bool = False
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class SetLocation(Statement):
    """ALTER TABLE name SET LOCATION."""

    name: Name
    location: str


@dataclass(frozen=True, slots=True)
class AddPartitionField(Statement):
    """ALTER TABLE name ADD PARTITION FIELD term [AS field_name]."""

    name: Name
    term: str
    field_name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPartitionField(Statement):
    """ALTER TABLE name DROP PARTITION FIELD, by its name or its term."""

    name: Name
    field: str


@dataclass(frozen=True, slots=True)
class ReplacePartitionField(Statement):
    """ALTER TABLE name REPLACE PARTITION FIELD field WITH term [AS field_name]."""

    name: Name
    field: str
    term: str
    field_name: str | None = None


@dataclass(frozen=True, slots=True)
class SetWriteOrder(Statement):
    """ALTER TABLE name WRITE ...: the sort order of new files, and how rows are brought together before writing.

    `distribution` None leaves `write.distribution-mode` as it is.
    """

    name: Name
    terms: tuple[str, ...] = ()
    distribution: Literal["none", "hash", "range"] | None = None


@dataclass(frozen=True, slots=True)
class SetIdentifierFields(Statement):
    """ALTER TABLE name SET IDENTIFIER FIELDS."""

    name: Name
    paths: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class DropIdentifierFields(Statement):
    """ALTER TABLE name DROP IDENTIFIER FIELDS."""

    name: Name
    paths: tuple[Name, ...]


RefKind = Literal["branch", "tag"]


@dataclass(frozen=True, slots=True)
class CreateRef(Statement):
    """ALTER TABLE name CREATE [OR REPLACE] BRANCH or TAG; REPLACE BRANCH or TAG."""

    name: Name
    kind: RefKind
    ref: str
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DropRef(Statement):
    """ALTER TABLE name DROP BRANCH or TAG."""

    name: Name
    kind: RefKind
    ref: str
    if_exists: bool = False


# Looking


@dataclass(frozen=True, slots=True)
class DescribeTable(Statement):
    """DESCRIBE [EXTENDED] name, or one column of it."""

    name: Name
    is_extended: bool = False
    column: Name | None = None


@dataclass(frozen=True, slots=True)
class DescribeFunction(Statement):
    """DESCRIBE FUNCTION name."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowCreateTable(Statement):
    """SHOW CREATE TABLE, for tables and views."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowProperties(Statement):
    """SHOW TBLPROPERTIES name [(key)], for tables and views."""

    name: Name
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns(Statement):
    """SHOW COLUMNS IN name."""

    name: Name


@dataclass(frozen=True, slots=True)
class ShowPartitions(Statement):
    """SHOW PARTITIONS name."""

    name: Name


# Rows


@dataclass(frozen=True, slots=True)
class Truncate(Statement):
    """TRUNCATE TABLE name."""

    name: Name


# Views


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column's name in a view, and its comment."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """CREATE [OR REPLACE] VIEW."""

    name: Name
    query: Span
    columns: tuple[ViewColumn, ...] = ()
    properties: Properties = NO_PROPERTIES
    if_not_exists: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DropView(Statement):
    """DROP VIEW."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameView(Statement):
    """ALTER VIEW name RENAME TO new_name."""

    name: Name
    new_name: Name


@dataclass(frozen=True, slots=True)
class AlterViewQuery(Statement):
    """ALTER VIEW name AS query."""

    name: Name
    query: Span
