"""`spark.catalog` for lakes: the current catalog and namespace, and lists of what is in a lake."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from frazil.errors import NamespaceNotFoundError, NotFoundError
from frazil.lake.sql_session import Place, SqlSession
from frazil.sql.quote_names import quote_path
from frazil.sql.type_names import live_fields, spark_type_name


def answer_catalog(
    session: SqlSession, names: Any, spark: Any, method: str, arguments: tuple[Any, ...], not_ours: Any
) -> Any:
    """Answer a method of `spark.catalog`; what is not about a lake is `not_ours`."""
    answers = _Answers(session, names, spark, not_ours)
    run: Callable[..., Any] = getattr(answers, f"answer_{method}")
    return run(*arguments)


class _Answers:
    """One method for each of `spark.catalog`, under its name."""

    def __init__(self, session: SqlSession, names: Any, spark: Any, not_ours: Any) -> None:
        self._session = session
        self._names = names
        self._spark = spark
        self._not_ours = not_ours

    def answer_currentCatalog(self) -> Any:  # noqa: N802 - PySpark's names
        return self._session.catalog or self._not_ours

    def answer_setCurrentCatalog(self, name: str) -> Any:  # noqa: N802
        session = self._session
        if name in session.lakes:
            session.catalog, session.namespace = name, ()
            return None
        session.catalog, session.namespace = None, ()
        return self._not_ours

    def answer_listCatalogs(self, pattern: str | None = None) -> Any:  # noqa: N802
        found = [
            self._names.CatalogMetadata(name=name, description=None)
            for name in self._session.lakes
            if pattern is None or fnmatch.fnmatch(name, pattern)
        ]
        return [*self._names.own_catalogs(self._spark, pattern), *found]

    def answer_currentDatabase(self) -> Any:  # noqa: N802
        return self._not_ours if self._session.catalog is None else quote_path(self._session.namespace)

    def answer_setCurrentDatabase(self, name: str) -> Any:  # noqa: N802
        place = self._namespace(name)
        if place is None:
            return self._not_ours
        if not place.lake.catalog.namespace_exists(place.name):
            raise NamespaceNotFoundError(f"Cannot use {place}: there is no such namespace")
        self._session.catalog, self._session.namespace = place.lake_name, place.name
        return None

    def answer_listDatabases(self, pattern: str | None = None) -> Any:  # noqa: N802
        if self._session.catalog is None:
            return self._not_ours
        lake = self._session.lakes[self._session.catalog]
        return [
            self._names.Database(quote_path(one), self._session.catalog, None, "")
            for one in lake.list_namespaces()
            if pattern is None or fnmatch.fnmatch(quote_path(one), pattern)
        ]

    def answer_databaseExists(self, name: str) -> Any:  # noqa: N802
        place = self._namespace(name)
        return self._not_ours if place is None else place.lake.catalog.namespace_exists(place.name)

    def answer_listTables(self, name: str | None = None, pattern: str | None = None) -> Any:  # noqa: N802
        place = self._namespace(name)
        if place is None:
            return self._not_ours
        kinds = [(one, "MANAGED") for one in place.lake.list_tables(place.name)]
        kinds += [(one, "VIEW") for one in place.lake.list_views(place.name)]
        return [
            self._names.Table(one[-1], place.lake_name, list(one[:-1]), None, kind, False)
            for one, kind in sorted(kinds)
            if pattern is None or fnmatch.fnmatch(one[-1], pattern)
        ]

    def answer_listColumns(self, name: str, database: str | None = None) -> Any:  # noqa: N802
        place = self._table(name, database)
        if place is None:
            return self._not_ours
        table = self._session.relation(place).table
        sources = {field.source_id for field in live_fields(table.spec) if field.transform.is_identity}
        return [
            self._names.Column(
                part.name,
                part.doc,
                spark_type_name(part.field_type),
                part.optional,
                part.field_id in sources,
                False,
                False,
            )
            for part in table.schema.fields
        ]

    def answer_tableExists(self, name: str, database: str | None = None) -> Any:  # noqa: N802
        place = self._table(name, database)
        if place is None:
            return self._not_ours
        try:
            self._session.relation(place)
        except NotFoundError:
            return place.lake.catalog.namespace_exists(place.name[:-1]) and place.lake.view_exists(place.name)
        return True

    def answer_refreshTable(self, name: str) -> Any:  # noqa: N802
        place = self._table(name, None)
        if place is None:
            return self._not_ours
        self._session.relation(place)
        return None

    def _namespace(self, name: str | None) -> Place | None:
        parts = () if name is None else self._names.parse_name(self._spark, name)
        return None if parts is None else self._session.find_namespace(parts)

    def _table(self, name: str, database: str | None) -> Place | None:
        parts = self._names.parse_name(self._spark, name)
        if parts is None:
            return None
        if database is not None:
            parts = (*(self._names.parse_name(self._spark, database) or ()), *parts)
        return self._session.find_place(parts)
