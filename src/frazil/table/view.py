"""A view as a user holds it: a live handle on a named query. Specification: the view specification.

A view is defined in one or several SQL dialects; each engine takes the one it speaks. Each change is a new version,
and old ones stay for a while: `version.history.num-entries` of them. A change may not silently take a dialect away
from those who use it; `replace.drop-dialect.allowed` lets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.changes.updates import (
    LAST_ADDED,
    AddSchema,
    AddViewVersion,
    RemoveProperties,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    ViewUpdate,
)
from frazil.commit.change_view import change_view
from frazil.commit.summary import frazil_version
from frazil.errors import InvalidRequestError, NotFoundError
from frazil.loaded import LoadedView
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import check_view_properties
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Summary
from frazil.spec.versions import LATEST
from frazil.spec.view_evolution import FIRST_VERSION_ID
from frazil.spec.view_metadata import SqlRepresentation, VersionLogEntry, ViewMetadata, ViewVersion
from frazil.sql.query_text import find_no_query
from frazil.sql.type_names import plain_type_name
from frazil.table.describe import describe, listed
from frazil.table.parse_name import parse_name
from frazil.table.schema_of import schema_of

DEFAULT_DIALECT: Final = "spark"
"""The dialect of a query that is given without one."""

Queries = str | Mapping[str, str]
"""A query in the default dialect, or queries by dialect."""

ENGINE = "frazil"
QUERY_COLUMNS = "spark.query-column-names"
"""The names that a query's columns had when its view was made: in the version's summary, or where Iceberg's jar keeps
them, in the view's properties."""


class View:
    """One view of a lake. Get it from `Lake.view` or `Lake.create_view`."""

    def __init__(self, catalog: Catalog, loaded: LoadedView) -> None:
        self._catalog = catalog
        self._loaded = loaded

    def __repr__(self) -> str:
        columns = [f"{field.name} {plain_type_name(field.field_type)}" for field in self.schema.fields]
        queries = [f"{query.sql} ({query.dialect})" for query in self.current_version.sql_representations]
        return describe(f"View {self.name!r}", columns=listed(columns), query="; ".join(queries))

    @property
    def identifier(self) -> tuple[str, ...]:
        """The names of the namespace and the view."""
        return self._loaded.identifier

    @property
    def name(self) -> str:
        """The identifier as text."""
        return self._loaded.name

    @property
    def metadata(self) -> ViewMetadata:
        """The whole state that this handle shows."""
        return self._loaded.metadata

    @property
    def metadata_location(self) -> str | None:
        """The file that the state was read from."""
        return self._loaded.metadata_location

    @property
    def schema(self) -> Schema:
        """The columns of the current version; none where its maker did not say."""
        return self.metadata.current_schema

    @property
    def current_version(self) -> ViewVersion:
        """The version that queries use."""
        return self.metadata.current_version

    @property
    def versions(self) -> Sequence[ViewVersion]:
        """Every version that has not expired."""
        return self.metadata.versions

    @property
    def dialects(self) -> frozenset[str]:
        """The SQL dialects of the current version."""
        return self.current_version.dialects

    @property
    def properties(self) -> Mapping[str, str]:
        """The view's properties as they are set."""
        return self.metadata.properties

    @property
    def location(self) -> str:
        """The folder that new metadata files go under."""
        return self.metadata.location

    @property
    def sql(self) -> str:
        """The query in Spark's dialect, else in the only one there is."""
        found = self.current_version.sql_representations
        return found[0].sql if len(found) == 1 else self.sql_for(DEFAULT_DIALECT)

    def sql_for(self, dialect: str) -> str:
        """Return the query in a dialect, upper or lower case."""
        found = self.current_version.find_sql(dialect)
        if found is None:
            raise NotFoundError(
                f"Cannot use view {self.name} in the dialect {dialect!r}: it has no query for it",
                hint=f"Its dialects are: {', '.join(sorted(self.dialects)) or '(none)'}.",
            )
        return found.sql

    def history(self) -> tuple[VersionLogEntry, ...]:
        """Return which version was current since when, oldest first."""
        return self.metadata.version_log

    def refresh(self) -> Self:
        """Read the catalog again; refuse another view that has taken the name."""
        self._loaded = self._catalog.refresh_view(self._loaded)
        return self

    # Changes: each starts from the catalog's current state, and after it the handle shows the result. Of two who
    # replace a view at once both are in its history, and the later one's version is current.

    def replace(
        self,
        sql: Queries,
        *,
        schema: Schema | pa.Schema | str | None = None,
        dialect: str = DEFAULT_DIALECT,
        default_namespace: str | tuple[str, ...] | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
        query_columns: Sequence[str] = (),
    ) -> Self:
        """Define the view anew; versions that define the same are one. `properties` are set beside those it has.

        `query_columns` are the names of the query's own columns, in the order of the view's.
        Refused where a dialect would be lost, unless `replace.drop-dialect.allowed` is true.
        """
        check_view_properties(properties or {})
        columns = _columns(schema)
        version = make_version(
            sql,
            dialect=dialect,
            default_namespace=self.identifier[:-1] if default_namespace is None else parse_name(default_namespace),
            default_catalog=default_catalog,
            now_ms=self._catalog.now_ms(),
            query_columns=query_columns,
        )

        return self._change(
            *([SetProperties(FrozenMap(properties))] if properties else []),
            AddSchema(columns),
            AddViewVersion(replace(version, schema_id=LAST_ADDED)),
            SetCurrentViewVersion(),
        )

    def rollback_to(self, version_id: int) -> Self:
        """Make another of the view's versions the current one."""
        return self._change(SetCurrentViewVersion(version_id))

    def set_properties(self, properties: Mapping[str, str]) -> Self:
        """Set properties; refuse values that a later use would refuse."""
        check_view_properties(properties)
        return self._change(SetProperties(FrozenMap(properties)))

    def remove_properties(self, names: Iterable[str]) -> Self:
        """Remove properties; names that are not set are no error."""
        return self._change(RemoveProperties(tuple(names)))

    def set_location(self, location: str) -> Self:
        """Put new metadata files elsewhere; files that exist stay."""
        return self._change(SetLocation(location))

    def _change(self, *updates: ViewUpdate) -> Self:
        self.refresh()
        self._loaded = change_view(self._catalog, self._loaded, updates)
        return self


def create_view(
    catalog: Catalog,
    identifier: tuple[str, ...],
    sql: Queries,
    *,
    schema: Schema | pa.Schema | str | None,
    dialect: str,
    default_namespace: tuple[str, ...],
    default_catalog: str | None,
    properties: Mapping[str, str] | None,
    location: str | None,
    query_columns: Sequence[str] = (),
) -> View:
    """Create a view in a catalog."""
    check_view_properties(properties or {})
    version = make_version(
        sql,
        dialect=dialect,
        default_namespace=default_namespace,
        default_catalog=default_catalog,
        now_ms=catalog.now_ms(),
        query_columns=query_columns,
    )
    return View(
        catalog,
        catalog.create_view(identifier, _columns(schema), version, location=location, properties=properties),
    )


def make_version(
    sql: Queries,
    *,
    dialect: str,
    default_namespace: tuple[str, ...],
    default_catalog: str | None,
    now_ms: int,
    query_columns: Sequence[str] = (),
) -> ViewVersion:
    """Return a version of a view; its ids are given when it is added."""
    queries = {dialect: sql} if isinstance(sql, str) else dict(sql)
    if not queries:
        raise InvalidRequestError("Cannot define a view: there is no query", hint="Give one, or one for each dialect.")
    for name, text in queries.items():
        if not isinstance(name, str) or name.strip() == "":
            raise InvalidRequestError(f"Cannot define a view in the dialect {name!r}: it has no name")
        if not isinstance(text, str) or text.strip() == "":
            raise InvalidRequestError(f"Cannot define a view: the query in the dialect {name!r} is empty")
        found = find_no_query(text) if name.lower() == DEFAULT_DIALECT else None
        if found is not None:
            raise InvalidRequestError(
                f"Cannot define a view by {found}: it is no query", hint="A view is a query: SELECT, VALUES or TABLE."
            )
    return ViewVersion(
        FIRST_VERSION_ID,
        0,
        now_ms,
        tuple(SqlRepresentation(text, name) for name, text in queries.items()),
        default_namespace,
        default_catalog,
        FrozenMap(
            {Summary.ENGINE_NAME: ENGINE, Summary.ENGINE_VERSION: frazil_version()}
            | ({QUERY_COLUMNS: ",".join(query_columns)} if query_columns else {})
        ),
    )


def find_query_columns(view: View, names: Sequence[str], *, case_sensitive: bool = False) -> tuple[int, ...]:
    """Return where a view's columns are among those of its query: by the names they had when the view was made.

    They are the view's own where the names are not known, or are not there any more: by position, all of them.
    """
    count = len(view.schema.fields)
    summary = view.current_version.summary
    known = summary if summary.get(Summary.ENGINE_NAME) == ENGINE else view.properties
    wanted = known.get(QUERY_COLUMNS, "").split(",")
    if not case_sensitive:
        wanted, names = [name.lower() for name in wanted], [name.lower() for name in names]
    if len(wanted) == count and all(names.count(name) == 1 for name in wanted):
        return tuple(names.index(name) for name in wanted)
    if len(names) != count:
        raise InvalidRequestError(
            f"Cannot read view {view.name}: it has {count} columns, and its query now has {len(names)}",
            hint="Replace the view.",
        )
    return tuple(range(count))


def _columns(schema: Schema | pa.Schema | str | None) -> Schema:
    """Return a view's columns; without them it has none, and engines take them from the query."""
    return Schema(()) if schema is None else schema_of(schema, LATEST)
