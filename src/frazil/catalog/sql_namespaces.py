"""Namespaces of the SQL catalog, by their properties and by the names of tables. See `catalog/sql.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from frazil.catalog.database import Database, DuplicateKey, Run
from frazil.catalog.idempotency_records import SqlIdempotencyRecords
from frazil.catalog.names import Namespace, namespace_exists, namespace_not_empty, namespace_not_found
from frazil.errors import InvalidRequestError

EXISTS: Final = "exists"
"""The property of a namespace that has no others."""
MAX_KEY_CHARS: Final = 255
MAX_VALUE_CHARS: Final = 1000

_HOLDERS: Final = (("iceberg_namespace_properties", "namespace"), ("iceberg_tables", "table_namespace"))
"""The columns that name namespaces."""


class SqlNamespaces:
    """Namespaces under a catalog's name; every method is one transaction or one read."""

    def __init__(self, database: Database, catalog_name: str, records: SqlIdempotencyRecords) -> None:
        self._database = database
        self._catalog = catalog_name
        self._records = records

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace that does not exist."""
        _check_properties(properties)
        try:
            with self._database.transaction() as run:
                if self.exists(namespace, run):
                    raise namespace_exists(namespace)
                # In a fixed order, so that two concurrent creators do not deadlock.
                for key, value in sorted({**properties, EXISTS: "true"}.items()):
                    run(
                        "INSERT INTO iceberg_namespace_properties "
                        "(catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?)",
                        self._catalog,
                        namespace_text(namespace),
                        key,
                        value,
                    )
                self._records.write(run)
        except DuplicateKey:
            raise namespace_exists(namespace) from None

    def drop(self, namespace: Namespace) -> None:
        """Remove an existing, empty namespace."""
        text = namespace_text(namespace)
        with self._database.transaction() as run:
            if not self.exists(namespace, run):
                raise namespace_not_found(namespace)
            inside = run(
                "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? "
                "AND (table_namespace = ? OR substr(table_namespace, 1, ?) = ?) LIMIT 1",
                *self._prefix(text),
            ).rows
            if inside:
                raise namespace_not_empty(namespace, f"{inside[0][0]}.{inside[0][1]}")
            below = run(
                "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ? "
                "AND substr(namespace, 1, ?) = ? LIMIT 1",
                self._catalog,
                len(text) + 1,
                f"{text}.",
            ).rows
            if below:
                raise namespace_not_empty(namespace, f"the namespace {below[0][0]}")
            run(
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?",
                self._catalog,
                text,
            )
            self._records.write(run)

    def exists(self, namespace: Namespace, run: Run | None = None) -> bool:
        """Return whether a namespace was created or contains something, as seen by the transaction `run`, if any."""
        values = self._prefix(namespace_text(namespace))
        for table, column in _HOLDERS:
            sql = (
                f"SELECT 1 FROM {table} WHERE catalog_name = ? AND ({column} = ? OR substr({column}, 1, ?) = ?) LIMIT 1"
            )
            if run(sql, *values).rows if run is not None else self._database.read(sql, *values):
                return True
        return False

    def check_exists(self, namespace: Namespace) -> None:
        """Raise an error if a namespace does not exist."""
        if not self.exists(namespace):
            raise namespace_not_found(namespace)

    def list(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the child namespaces of an existing namespace, or the top-level ones, in order."""
        if parent:
            self.check_exists(parent)
        text = f"{namespace_text(parent)}." if parent else ""
        namespaces: set[Namespace] = set()
        for table, column in _HOLDERS:
            rows = self._database.read(
                f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = ? AND substr({column}, 1, ?) = ?",
                self._catalog,
                len(text),
                text,
            )
            namespaces.update(namespace_parts(name)[: len(parent) + 1] for (name,) in rows)
        # Clients of Iceberg Java may have tables without a namespace.
        return tuple(sorted(name for name in namespaces if len(name) == len(parent) + 1 and "" not in name))

    def properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of an existing namespace."""
        self.check_exists(namespace)
        rows = self._database.read(
            "SELECT property_key, property_value FROM iceberg_namespace_properties "
            "WHERE catalog_name = ? AND namespace = ?",
            self._catalog,
            namespace_text(namespace),
        )
        return {key: value for key, value in rows if key != EXISTS and value is not None}

    def update(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties of an existing namespace."""
        removed_keys = sorted(set(removals))
        _check_properties(updates)
        _check_properties(dict.fromkeys(removed_keys, ""))
        text = namespace_text(namespace)
        with self._database.transaction() as run:
            if not self.exists(namespace, run):
                raise namespace_not_found(namespace)
            delete = (
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ? AND property_key = ?"
            )
            removed = [key for key in removed_keys if run(delete, self._catalog, text, key).count > 0]
            # Other clients omit this property if there are others; without any row the namespace would vanish.
            for key, value in sorted({**updates, EXISTS: "true"}.items()):
                run(
                    "INSERT INTO iceberg_namespace_properties "
                    "(catalog_name, namespace, property_key, property_value) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (catalog_name, namespace, property_key) "
                    "DO UPDATE SET property_value = excluded.property_value",
                    self._catalog,
                    text,
                    key,
                    value,
                )
            self._records.write(run, json.dumps(removed))

    def _prefix(self, text: str) -> tuple[object, ...]:
        return self._catalog, text, len(text) + 1, f"{text}."


def namespace_text(namespace: Namespace) -> str:
    """Return a namespace as stored in its column."""
    return ".".join(namespace)


def namespace_parts(text: str) -> Namespace:
    """Return the namespace stored in a column."""
    return tuple(text.split("."))


def _check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if key == EXISTS:
            raise InvalidRequestError(f"Cannot change the property {EXISTS!r}: it marks the namespace as existing")
        if len(key) > MAX_KEY_CHARS or len(value) > MAX_VALUE_CHARS:
            raise InvalidRequestError(
                f"Cannot keep the property {key[:60]!r} in a SQL catalog: names may have at most {MAX_KEY_CHARS} "
                f"characters, values {MAX_VALUE_CHARS}"
            )
