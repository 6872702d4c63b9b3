"""The SQL catalog: pointers in the two tables of Iceberg Java's JDBC catalog, read and moved by plain SQL.

Columns, keys and lengths are those of Iceberg Java, so that JdbcCatalog, PyIceberg's SqlCatalog and this catalog,
opened
on one database under one catalog name, see each other's tables and compete fairly:

    iceberg_tables                 catalog_name, table_namespace, table_name (the key), metadata_location,
                                   previous_metadata_location, iceberg_type ('TABLE', 'VIEW'; null is a table)
    iceberg_namespace_properties   catalog_name, namespace, property_key (the key), property_value

A namespace is stored as its parts joined by dots, so a part with a dot would be ambiguous: such namespaces are refused.
(Iceberg Java treats `('a.b',)` and `('a', 'b')` as one.) Tables may have dots in their names. A namespace exists if it
has a property - `exists` is set if there is no other - or contains a table or a namespace. Prefixes are compared by
`substr`, not LIKE, since `%` and `_` have no special meaning here and SQLite's LIKE ignores case.

The commit is one statement:

    UPDATE iceberg_tables SET metadata_location = new, previous_metadata_location = old
    WHERE <key> AND metadata_location = old AND <is a table>

If a row changed, it is committed; if not, another writer moved the pointer. The database serializes such statements on
one row, so of several writers that start from one location one succeeds. For several tables, several such statements
run in one transaction, in the order of their names, so that two transactions cannot deadlock.

For failures see `catalog/database.py`. A lost response to COMMIT is an unknown outcome; it is resolved by reading the
row under its lock, or by trying to insert it, which waits until no commit can be in flight.

A database of the older layout, without `iceberg_type`, is used unchanged: it has tables and no views. `enable_views`
adds the column; older clients continue to work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from frazil.catalog.base import random_id, system_ms
from frazil.catalog.database import Database, DuplicateKey, Run
from frazil.catalog.idempotency_records import SqlIdempotencyRecords
from frazil.catalog.names import (
    Identifier,
    Namespace,
    format_name,
    namespace_not_found,
    table_exists,
    table_not_found,
    view_exists,
    view_not_found,
)
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.catalog.pointers import EntityType, Pointer, PointerChange, Pointers, Stale
from frazil.catalog.sql_namespaces import SqlNamespaces, namespace_parts, namespace_text
from frazil.errors import InvalidMetadataError, InvalidRequestError, StorageError, UnsupportedError
from frazil.storage.base import Storage

MAX_NAMESPACE_CHARS: Final = 255
MAX_LOCATION_CHARS: Final = 1000

_CREATE_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS iceberg_tables (
        catalog_name VARCHAR(255) NOT NULL,
        table_namespace VARCHAR(255) NOT NULL,
        table_name VARCHAR(255) NOT NULL,
        metadata_location VARCHAR(1000),
        previous_metadata_location VARCHAR(1000),
        iceberg_type VARCHAR(5),
        PRIMARY KEY (catalog_name, table_namespace, table_name)
    )"""
_CREATE_PROPERTIES: Final = """
    CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
        catalog_name VARCHAR(255) NOT NULL,
        namespace VARCHAR(255) NOT NULL,
        property_key VARCHAR(255),
        property_value VARCHAR(1000),
        PRIMARY KEY (catalog_name, namespace, property_key)
    )"""
_KEY: Final = "catalog_name = ? AND table_namespace = ? AND table_name = ?"


class _Rollback(Exception):
    """Ends a transaction without a commit."""


class SqlPointers(Pointers):
    """Pointers in the tables of a database, under a catalog's name."""

    def __init__(self, database: Database, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self.idempotency_records = SqlIdempotencyRecords(database, catalog_name)
        self._namespaces = SqlNamespaces(database, catalog_name, self.idempotency_records)
        self._create_tables()
        self._has_types = self._find_types()

    def __repr__(self) -> str:
        return f"SqlPointers({self._database.label!r}, {self._catalog!r})"

    # Validation

    def check_identifier(self, identifier: Identifier) -> None:
        """Refuse a namespace that could be confused with another."""
        self.check_namespace(identifier[:-1])

    def check_namespace(self, namespace: Namespace) -> None:
        """Refuse a namespace that could be confused with another."""
        for level in namespace:
            if "." in level:
                raise InvalidRequestError(
                    f"Cannot use the namespace {level!r} in a SQL catalog: with its dot it could be confused with "
                    f"{' in '.join(repr(step) for step in reversed(level.split('.')))}"
                )
        if len(namespace_text(namespace)) > MAX_NAMESPACE_CHARS:
            raise InvalidRequestError(
                f"Cannot use the namespace {format_name(namespace)[:60]!r}... in a SQL catalog: it has more than "
                f"{MAX_NAMESPACE_CHARS} characters in all"
            )

    def check_location(self, location: str) -> None:
        """Refuse a location that does not fit its column."""
        if len(location) > MAX_LOCATION_CHARS or "\0" in location:
            raise InvalidRequestError(
                f"Cannot keep the metadata location {location[:60]!r}... in a SQL catalog: it has {len(location)} "
                f"characters, more than {MAX_LOCATION_CHARS}, or a NUL character"
            )

    # Pointers

    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None."""
        return self._pointer(identifier, self._database.read(self._select(), *self._key(identifier)))

    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, Identifier | None]:
        """Wait for changes in flight, then return a name's pointer, and the name that has the change's location."""
        key = self._key(change.identifier)
        rows: list[tuple[Any, ...]] = []
        holders: list[tuple[Any, ...]] = []
        with contextlib.suppress(_Rollback), self._database.transaction() as run:
            if change.expected is None and self._insert(run, change):
                # A row that is being inserted cannot be locked, but inserting it again waits. Nobody was inserting it.
                run(f"DELETE FROM iceberg_tables WHERE {_KEY}", *key)
            rows = run(self._select() + self._database.row_lock, *key).rows
            holders = run(
                "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? "
                "AND (metadata_location = ? OR previous_metadata_location = ?)",
                self._catalog,
                change.location,
                change.location,
            ).rows
            raise _Rollback
        holder = (*namespace_parts(holders[0][0]), holders[0][1]) if holders else None
        return self._pointer(change.identifier, rows), holder

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Apply all changes or none; return the stale one, if any."""
        stale: PointerChange | None = None
        with contextlib.suppress(_Rollback), self._database.transaction() as run:
            for change in sorted(changes, key=lambda change: change.identifier):
                if not self._move(run, change):
                    stale = change
                    raise _Rollback
            self.idempotency_records.write(run, changes[0].location)
        return None if stale is None else Stale(stale, self.find(stale.identifier))

    def _move(self, run: Run, change: PointerChange) -> bool:
        """Move or create a pointer; return whether it was as expected."""
        key = self._key(change.identifier)
        if change.expected is not None:
            updated = run(
                f"UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
                f"WHERE {_KEY} AND metadata_location = ? AND {self._is(change.entity_type)}",
                change.location,
                change.expected,
                *key,
                change.expected,
            )
            return updated.count == 1
        if not self._namespaces.exists(change.identifier[:-1], run):
            raise namespace_not_found(change.identifier[:-1])
        return self._insert(run, change)

    def _insert(self, run: Run, change: PointerChange) -> bool:
        """Create a pointer; return whether its name was free. Waits for concurrent inserts of that name."""
        columns, placeholders = "", ""
        values: tuple[str, ...] = ()
        if self._has_types:
            columns, placeholders, values = ", iceberg_type", ", ?", (change.entity_type.value,)
        elif change.entity_type is EntityType.VIEW:
            raise self._no_views()
        inserted = run(
            "INSERT INTO iceberg_tables "
            f"(catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location{columns}) "
            f"VALUES (?, ?, ?, ?, NULL{placeholders}) "
            "ON CONFLICT (catalog_name, table_namespace, table_name) DO NOTHING",
            *self._key(change.identifier),
            change.location,
            *values,
        )
        return inserted.count == 1

    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer that is at `expected`, or anywhere if that is None; return it, or None if there was none."""
        with self._database.transaction() as run:
            rows = run(self._select() + self._database.row_lock, *self._key(identifier)).rows
            if (
                not rows
                or _entity_type(identifier, rows[0][2]) is not entity_type
                or expected not in (None, rows[0][0])
            ):
                return None
            run(f"DELETE FROM iceberg_tables WHERE {_KEY}", *self._key(identifier))
            self.idempotency_records.write(run, rows[0][0])
        # The location may be null; the row can be dropped nevertheless.
        return Pointer(entity_type, rows[0][0] or "", rows[0][1])

    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Rename a pointer to a free name in an existing namespace."""
        try:
            with self._database.transaction() as run:
                pointer = self._pointer(source, run(self._select() + self._database.row_lock, *self._key(source)).rows)
                if pointer is None or pointer.entity_type is not entity_type:
                    raise table_not_found(source) if entity_type is EntityType.TABLE else view_not_found(source)
                if source == target:
                    return
                if not self._namespaces.exists(target[:-1], run):
                    raise namespace_not_found(target[:-1])
                other = self._pointer(target, run(self._select(), *self._key(target)).rows)
                if other is not None:
                    raise table_exists(target) if other.entity_type is EntityType.TABLE else view_exists(target)
                run(
                    f"UPDATE iceberg_tables SET table_namespace = ?, table_name = ? WHERE {_KEY}",
                    namespace_text(target[:-1]),
                    target[-1],
                    *self._key(source),
                )
                self.idempotency_records.write(run)
        except DuplicateKey:
            raise table_exists(target) from None

    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of one type in an existing namespace, in order."""
        self._namespaces.check_exists(namespace)
        rows = self._database.read(
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? "
            f"AND {self._is(entity_type)}",
            self._catalog,
            namespace_text(namespace),
        )
        return tuple(sorted((*namespace, name) for (name,) in rows if isinstance(name, str)))

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return all names of tables and views with their metadata files."""
        rows = self._database.read(
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ? "
            "AND metadata_location IS NOT NULL",
            self._catalog,
        )
        # A SQLite file may hold values of any type in any column; rows with other types than text are skipped.
        texts = [row for row in rows if all(isinstance(value, str) for value in row)]
        return [((*namespace_parts(namespace), name), location) for namespace, name, location in texts]

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace that does not exist."""
        self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an existing, empty namespace."""
        self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""
        return self._namespaces.exists(namespace)

    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the child namespaces of an existing namespace, or the top-level ones, in order."""
        return self._namespaces.list(parent)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of an existing namespace."""
        return self._namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of an existing namespace."""
        self._namespaces.update(namespace, updates, removals)

    def enable_views(self) -> None:
        """Add the column that distinguishes views from tables to a database of the older layout."""
        if not self._has_types:
            with contextlib.suppress(StorageError), self._database.transaction() as run:
                run("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
            self._has_types = self._find_types()
            if not self._has_types:
                raise StorageError(f"Cannot add the column iceberg_type to iceberg_tables in {self._database.label}")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # Parts of statements

    def _create_tables(self) -> None:
        for table, statement in (
            ("iceberg_tables", _CREATE_TABLES),
            ("iceberg_namespace_properties", _CREATE_PROPERTIES),
        ):
            if self._database.columns(table):
                continue
            if not self._database.may_write:
                raise StorageError(f"Cannot open {self._database.label}: it has no table {table}")
            try:
                with self._database.transaction() as run:
                    run(statement)
            except (DuplicateKey, StorageError):
                # Two clients that create a table at once can both get an error.
                if not self._database.columns(table):
                    raise

    def _find_types(self) -> bool:
        return "iceberg_type" in self._database.columns("iceberg_tables")

    def _select(self) -> str:
        entity_type = "iceberg_type" if self._has_types else "NULL"
        return f"SELECT metadata_location, previous_metadata_location, {entity_type} FROM iceberg_tables WHERE {_KEY}"

    def _is(self, entity_type: EntityType) -> str:
        if entity_type is EntityType.VIEW:
            return f"iceberg_type = '{entity_type.value}'" if self._has_types else "1 = 0"
        return f"(iceberg_type = '{entity_type.value}' OR iceberg_type IS NULL)" if self._has_types else "1 = 1"

    def _key(self, identifier: Identifier) -> tuple[str, str, str]:
        return self._catalog, namespace_text(identifier[:-1]), identifier[-1]

    def _pointer(self, identifier: Identifier, rows: Sequence[tuple[Any, ...]]) -> Pointer | None:
        if not rows:
            return None
        location, previous, entity_type = rows[0]
        if not isinstance(location, str):
            raise InvalidMetadataError(
                f"Cannot load {format_name(identifier)}: the catalog has no metadata location for it",
                heading="Table Metadata",
            )
        return Pointer(_entity_type(identifier, entity_type), location, previous)

    def _no_views(self) -> UnsupportedError:
        return UnsupportedError(
            f"Cannot create a view in {self._database.label}: its tables have the older layout without views",
            hint="Add the column with enable_views(); older clients continue to work.",
        )


class SqlCatalog(PointerCatalog):
    """A catalog in a SQL database; `open_database` in `catalog/open_database.py` opens one by its URI."""

    def __init__(
        self,
        name: str,
        warehouse: str,
        database: Database,
        storage: Storage,
        *,
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
        delete_roots: Sequence[str] = (),
    ) -> None:
        pointers = SqlPointers(database, name)
        super().__init__(name, warehouse, storage, pointers, now_ms=now_ms, new_id=new_id, delete_roots=delete_roots)
        self._sql = pointers
        self.idempotency_records: SqlIdempotencyRecords | None = pointers.idempotency_records
        self._label = database.label

    def __repr__(self) -> str:
        return f"SqlCatalog({self.name!r}, {self.warehouse!r}, {self._label!r})"

    def enable_views(self) -> None:
        """Add the column that distinguishes views from tables to a database of the older layout."""
        self._sql.enable_views()


def _entity_type(identifier: Identifier, text: str | None) -> EntityType:
    if text is None or text == EntityType.TABLE.value:
        return EntityType.TABLE
    if text == EntityType.VIEW.value:
        return EntityType.VIEW
    raise UnsupportedError(f"Cannot load {format_name(identifier)}: its type in the catalog, {text}, is not supported")
