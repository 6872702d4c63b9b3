"""Tables and views of lakes on Spark: a table in the requested state, a view's query in the view's own context."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from frazil.catalog.names import format_name
from frazil.errors import InvalidRequestError, NotFoundError, UnsupportedError
from frazil.jar.options import METADATA_OPTIONS, READ, SETTING_PREFIX, check_settings
from frazil.sessions.scan_options import scan_changes, scan_with_options
from frazil.spark.jvm.door import session_settings
from frazil.spark.read.column_values import cast_columns
from frazil.spark.read.metadata_frames import metadata_frame
from frazil.spark.read.view_queries import ViewQuery
from frazil.spark.types import from_spark_schema
from frazil.spark.write.store_assignment import check_bound
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.reserved_columns import DELETED, METADATA_COLUMNS, PARTITION_NAME, ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.sql.statements import VIEW_SCHEMA_MODE, Name
from frazil.sql.type_names import spark_type_name
from frazil.storage.read_only import untrusted
from frazil.table.lake import TRUSTED_VIEWS
from frazil.table.open_catalog import TRUST_NONE
from frazil.table.scan import Scan, ScanOptions
from frazil.table.sql_session import (
    CHANGES,
    FILE_FORMATS,
    SPARK_CATALOG,
    STATE_OPTIONS,
    FullName,
    Relation,
    SqlSession,
    State,
)
from frazil.table.table import Table
from frazil.table.view import View, find_query_columns

_views = threading.local()
"""The views being resolved: Spark requests the views inside them during resolution."""


class SparkEngine:
    """The query engine of one session."""

    def __init__(self, spark: Any, session: SqlSession) -> None:
        self.spark = spark
        self.session = session

    # Queries

    def query(self, text: str) -> Any:
        """Return the DataFrame of a query."""
        query = ViewQuery(self.spark, text)
        command = query.find_refused(is_trusted=True)
        if command is not None:
            raise InvalidRequestError(f"Cannot use a command where a query belongs: Spark reads {command[1]}")
        frame, _ = query.to_frame(lambda entity, name: None, is_trusted=True)
        return frame

    def state_of(self, relation: Relation, states: Sequence[State]) -> State:
        """Return the one given state; by default, the audit branch of the session, if there is one."""
        given_states = [state for state in states if state.is_given]
        if len(given_states) > 1:
            raise InvalidRequestError(f"Cannot read {relation.full_name} in two states at once: use one of them")
        if not given_states and read_property(relation.table.properties, WRITE_AUDIT_PUBLISH_ENABLED):
            branch = self.setting("spark.wap.branch")
            if branch and relation.table.metadata.find_ref(branch) is not None:
                return State(branch=branch)
        return given_states[0] if given_states else relation.state

    def frame_of(self, relation: Relation, options: Mapping[str, str] | None = None) -> Any:
        """Return the DataFrame of a table in a state, or of one of its metadata tables."""
        scan = self.scan_of(relation, options or {})
        if scan is not None:
            return scan.to_spark(self.spark)
        table, name = relation.table, str(relation.metadata_table)
        return metadata_frame(self.spark, table.state, name, choice=relation.state.choice, cache=table._cache)

    def scan_of(self, relation: Relation, options: Mapping[str, str]) -> Scan | None:
        """Return the scan of a table, or of its changes; other metadata tables have no scan."""
        table, state = relation.table, relation.state
        if state.branch is not None or state.tag is not None:
            ref = table.metadata.ref(state.branch or state.tag or "")
            ref_type = "branch" if state.branch is not None else "tag"
            if ref.type != ref_type:
                raise InvalidRequestError(
                    f"Cannot read {ref_type} {state.reference!r} of {relation.full_name}: it is a {ref.type}"
                )
        scan_options = ScanOptions(manifest_cache=table._cache)
        if relation.metadata_table == CHANGES:
            options = {**self.read_settings(), **options}
            return scan_changes(table.state, options, choice=state.choice, scan_options=scan_options)
        if relation.metadata_table is not None:
            METADATA_OPTIONS.check(options)
            return None
        read_options = {key: value for key, value in options.items() if key.lower() not in STATE_OPTIONS}
        return scan_with_options(
            table.state,
            {**self.read_settings(), **read_options},
            choice=state.choice,
            scan_options=scan_options,
        )

    def read_settings(self) -> dict[str, str]:
        """Return the session's settings for all reads, as read options."""
        settings = check_settings(self.settings(SETTING_PREFIX))
        by_option = {
            option.name: (option.setting or "").removeprefix(SETTING_PREFIX)
            for option in READ
            if option.answer == "honoured"
        }
        return {name: settings[setting] for name, setting in by_option.items() if setting in settings}

    def changes(self, full_name: FullName, table: Table, options: Mapping[str, str]) -> Any:
        """Return the changes of a table's rows as a DataFrame."""
        return self.frame_of(Relation(full_name, table, metadata_table=CHANGES), options=options)

    # Views

    def view_frame(self, full_name: FullName, view: View) -> Any:
        """Return the DataFrame of a view's query, under the view's own columns."""
        if full_name.lake.trust == TRUST_NONE:
            # A query is code of its author; its text can still be read.
            raise untrusted(f"run view {full_name}")
        version = view.current_version
        if "spark" not in view.dialects:
            raise UnsupportedError(
                f"Cannot read view {full_name}: it has no query in Spark's dialect",
                hint=f"Its dialects are: {', '.join(sorted(view.dialects)) or '(none)'}.",
            )
        names = self._names_of(full_name, version.default_catalog, version.default_namespace)
        with _reading(full_name):
            frame = self._query_of_view(f"read view {full_name}", full_name, view.sql_for("spark"), names)
            return self._as_declared(frame, view, full_name)

    def _as_declared(self, frame: Any, view: View, full_name: FullName) -> Any:
        """Return a view's rows under its own columns, names and types, according to its WITH SCHEMA mode.

        EVOLUTION takes whatever the query returns now, TYPE EVOLUTION its types under the view's names. BINDING accepts
        narrower types than the view's; without a mode, and with COMPENSATION, values are cast.
        that the view's are wider than; without it, and with COMPENSATION, values are cast.
        """
        mode, fields = view.properties.get(VIEW_SCHEMA_MODE, "COMPENSATION").upper(), view.schema.fields
        if not fields or mode == "EVOLUTION":
            return frame
        is_case_sensitive = self.setting("spark.sql.caseSensitive") == "true"
        chosen = find_query_columns(view, frame.columns, case_sensitive=is_case_sensitive)
        if chosen != tuple(range(len(frame.columns))):
            numbered = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
            frame = numbered.select(*(f"c{number}" for number in chosen))
        renamed = frame.toDF(*(field.name for field in fields))
        if mode == "TYPE EVOLUTION":
            return renamed
        if mode == "BINDING":
            check_bound(renamed, fields, str(full_name))
        cast = {
            field.name: spark_type_name(field.field_type)
            for field, (_, type_name) in zip(fields, frame.dtypes, strict=True)
            if type_name != spark_type_name(field.field_type)
        }
        return cast_columns(renamed, cast) if cast else renamed

    def _query_of_view(self, what: str, full_name: FullName, text: str, names: _ViewNames) -> Any:
        """Return the DataFrame of a view's query, which may be untrusted: only a query is allowed."""
        is_trusted = full_name.lake.trusts_views
        query = ViewQuery(self.spark, text)
        _check_view(what, query.find_refused(is_trusted=is_trusted))
        for entity, parts in query.names:
            if not is_trusted and entity == "table" and _is_path(parts) and names.session.find_full_name(parts) is None:
                _check_view(what, ("code", format_name(parts)))
        frame, refused = query.to_frame(names.qualified, is_trusted=is_trusted)
        _check_view(what, refused)
        return frame

    def _names_of(self, full_name: FullName, catalog: str | None, namespace: Name) -> _ViewNames:
        """Return the name resolution of a view: from its own catalog and namespace, without temporary objects."""
        lake_name = catalog if catalog in self.session.lakes else None
        if lake_name is None and catalog != SPARK_CATALOG:
            lake_name = full_name.lake_name
        session = SqlSession(
            self.session.lakes,
            lake_name,
            () if lake_name is None else namespace,
            is_foreign_catalog=self.session.is_foreign_catalog,
        )
        return _ViewNames(session, () if lake_name is not None else namespace)

    def view_schema(self, text: str, full_name: FullName, names: Sequence[str] = ()) -> tuple[Schema, list[str]]:
        """Return a view's columns, under its own names if it has some, and the names in its query.

        Refuse a query that uses a temporary object, or the view itself.
        """
        for entity, parts in ViewQuery(self.spark, text).names:
            if entity == "table" and len(parts) == 1 and self.session.is_temporary_view(parts):
                raise InvalidRequestError(
                    f"Cannot create view {full_name}: it uses {parts[0]!r}, a temporary view that ends with the session"
                )
        catalog = self.session.catalog or SPARK_CATALOG
        namespace = self.session.namespace if self.session.catalog is not None else self.current_namespace()
        with _reading(full_name, is_made=True):
            view_names = self._names_of(full_name, catalog, namespace)
            frame = self._query_of_view(f"create view {full_name}", full_name, text, view_names)
            if names and len(names) != len(frame.columns):
                raise InvalidRequestError(
                    f"Cannot create view {full_name}: it names {len(names)} columns, but the query has "
                    f"{len(frame.columns)}"
                )
            return self.schema_of(frame.toDF(*names) if names else frame), list(frame.columns)

    def current_namespace(self) -> Name:
        """Return the namespace of Spark's built-in catalog."""
        return (str(self.spark._jsparkSession.sessionState().catalog().getCurrentDatabase()),)

    # Values and types

    def evaluate(self, expressions: Sequence[str]) -> tuple[Any, ...]:
        """Return the values of constant expressions."""
        return tuple(self.query("select " + ", ".join(expressions)).first())

    def schema_of(self, frame: Any) -> Schema:
        """Return the schema of a DataFrame in the format's types."""
        schema: Schema = from_spark_schema(frame.schema)
        return schema

    @property
    def user(self) -> str:
        """The user of the session: the owner of created objects."""
        return str(self.spark.sparkContext.sparkUser())

    def setting(self, name: str) -> str | None:
        """Return a setting of the session."""
        value: str | None = self.spark.conf.get(name, None)
        return value

    def settings(self, prefix: str) -> Mapping[str, str]:
        """Return the settings of the session that begin with a prefix."""
        return session_settings(self.spark, prefix)


@dataclass(frozen=True, slots=True)
class _ViewNames:
    """The name resolution within a view."""

    session: SqlSession
    namespace: Name
    """The namespace for names of Spark's built-in catalog that have no catalog."""

    def qualified(self, entity: str, name: Name) -> Name | None:
        """Return a name with its catalog and namespace, or None if it has them or needs none."""
        if entity == "function":
            is_ours = self.session.catalog is not None and len(name) == 2 and name[0].lower() == "system"
            return (self.session.catalog or "", *name) if is_ours else None
        full_name = self.session.find_full_name(name)
        if full_name is not None:
            return (full_name.lake_name, *full_name.name)
        if not self.namespace or len(name) > 2 or _is_path(name):
            return None
        if len(name) == 1:
            return (SPARK_CATALOG, *self.namespace, *name)
        is_elsewhere = (
            name[0] in (SPARK_CATALOG, "global_temp")
            or name[0].lower() in FILE_FORMATS
            or self.session.is_foreign_catalog(name[0])
        )
        return None if is_elsewhere else (SPARK_CATALOG, *name)


@dataclass(frozen=True, slots=True)
class _OpenView:
    """A view whose query is being resolved."""

    full_name: FullName
    is_made: bool
    """Whether it is about to be created: its creator reads with their own rights."""


def _open_views() -> list[_OpenView]:
    open_views: list[_OpenView] = _views.__dict__.setdefault("names", [])
    return open_views


@contextmanager
def _reading(full_name: FullName, *, is_made: bool = False) -> Iterator[None]:
    """Register a view while its query is resolved; refuse one that reads itself."""
    open_views = _open_views()
    if str(full_name) in (str(view.full_name) for view in open_views):
        raise InvalidRequestError(f"Cannot read view {full_name}: it reads itself, by way of {len(open_views)} views")
    open_views.append(_OpenView(full_name, is_made))
    try:
        yield
    finally:
        open_views.pop()


def hidden_columns(scan: Scan) -> Schema:
    """Return the metadata columns of a scan, besides the table's own columns."""
    left_out = {field.name.lower() for field in scan.table_schema.fields}
    if scan.table.metadata.format_version < 3:
        left_out |= {row_lineage_column.name for row_lineage_column in ROW_LINEAGE_COLUMNS}
    if scan.changelog is not None:
        left_out.add(DELETED.name)
    names = tuple(
        metadata_column for metadata_column in (*METADATA_COLUMNS, PARTITION_NAME) if metadata_column not in left_out
    )
    return replace(scan, columns=names, changelog=None).schema if names else Schema(())


def read_by_views(full_name: FullName) -> FullName:
    """Return a name with the views of its lake through which it is being read, if that matters to the catalog.

    Views of other lakes are unknown to this catalog: only the views after them count.
    """
    if not full_name.lake.catalog.has_readers_by_views:
        return full_name
    chain: list[Name] = []
    for view in reversed(_open_views()):
        if view.is_made or view.full_name.lake is not full_name.lake:
            break
        chain.append(view.full_name.name)
    return replace(full_name, views=tuple(reversed(chain)))


def find_view(full_name: FullName) -> View | None:
    """Return the view of a name, or None if it does not exist."""
    try:
        return full_name.lake._view_for(full_name.name, full_name.views)
    except NotFoundError:
        return None


def _check_view(what: str, refused: tuple[str, str] | None) -> None:
    """Refuse anything other than a query."""
    if refused is None:
        return
    entity, name = refused
    if entity == "command":
        raise InvalidRequestError(
            f"Cannot {what}: its text is a Spark command ({name})",
            hint="A view is a query: SELECT, VALUES or TABLE.",
        )
    raise InvalidRequestError(
        f"Cannot {what}: its query uses {name}, which may run code or open files by their path",
        hint=f'If authors of views may do that, connect the lake with properties={{"{TRUSTED_VIEWS}": "true"}}.',
    )


def _is_path(parts: Name) -> bool:
    """Return whether a name can be a file path, as in csv.`/data/x.csv`."""
    return len(parts) == 2 and any(mark in parts[1] for mark in "/:\\")
