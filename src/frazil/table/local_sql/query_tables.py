"""What a query in this process reads: names resolved in a lake, scans planned, and all of it handed to DuckDB.

Each table of the lake is read in one state, however often and by whichever views it is named. Every reference has a
scan of its own, since conditions differ; references with the same files share one.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.catalog.names import format_name
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import view_table
from frazil.errors import FrazilError, InvalidRequestError, NotFoundError, TableNotFoundError, UnsupportedError
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.metadata_tables.tables import read_metadata_table
from frazil.query.column_types import duckdb_type
from frazil.query.engine import quoted
from frazil.query.filter_values import constant_of
from frazil.query.filters import find_filters
from frazil.query.limits import Limits
from frazil.query.native_scan import NativeFiles, choose_native, scan_sql
from frazil.query.prepared import SCHEMA, ArrowSource, Engine, PreparedQuery
from frazil.query.syntax import Query, TableReference, parse_query
from frazil.scan.plan import Plan
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField
from frazil.sql.statements import VIEW_SCHEMA_MODE, Name
from frazil.table.lake import Lake
from frazil.table.local_sql.query_summaries import summary_text
from frazil.table.local_sql.view_queries import (
    recursive_view_error,
    spark_types,
    spark_types_of,
    view_columns,
    view_text,
)
from frazil.table.parse_name import parse_name
from frazil.table.scan import Scan
from frazil.table.sql_session import CHANGES, FullName, Relation, SqlSession, version_state
from frazil.table.view import View


@dataclass(frozen=True)
class ReadTable:
    """A table that a query reads: what planning left of it."""

    name: str
    scan: Scan
    plan: Plan
    native: NativeFiles
    file_count: int

    def explain(self) -> str:
        """Return as text which files are read, and by whom."""
        lines = [f"{self.name}:", *(f"  {line}" for line in self.plan.explain().splitlines())]
        with_deletes = sum(len(group.with_deletes) for group in self.native.groups)
        lines.append(f"  read by DuckDB: {len(self.native.paths)} files, {with_deletes} with deletes")
        lines.append(f"  read by frazil: {len(self.native.others)} files")
        lines += [f"    {path}" for path in (*self.native.paths, *sorted(self.native.others))]
        return "\n".join(lines)


class QueryTables:
    """Resolves the names of a query and of the views that it reads, and collects what DuckDB is given."""

    def __init__(
        self,
        lake: Lake,
        engine: Engine,
        parameters: Mapping[str, object],
        frames: Mapping[str, pa.Table],
        limits: Limits,
    ) -> None:
        self._lake = lake
        self._engine = engine
        self._name = lake.catalog.name
        self._session = SqlSession({self._name: lake}, self._name)
        self._parameters = parameters
        self._limits = limits
        self._states: dict[tuple[Any, ...], LoadedTable] = {}
        self._reading: list[Name] = []
        """The views whose queries are being resolved, the outermost first."""
        self._frames = {name.lower(): (f"frame {number}", rows) for number, (name, rows) in enumerate(frames.items())}
        self._tables: dict[str, pa.Table] = dict(self._frames.values())
        self._sources: dict[str, ArrowSource] = {}
        self._views: list[tuple[str, str, str]] = []
        self._known: dict[tuple[Any, ...], str] = {}
        self._has_deletes = False
        self.read: list[ReadTable] = []
        self.failures: list[FrazilError] = []
        self.summaries: list[Name] = []
        """Tables of which metadata has the answer."""

    # --- names

    def add_query(self, query: Query, namespace: Name = (), catalogs: frozenset[str] = frozenset()) -> str:
        """Resolve the tables of a query, and return its text with their names in DuckDB."""
        names: dict[TableReference, str] = {}
        scans: dict[TableReference, Scan] = {}
        for table in query.tables:
            path = _within(table.path, namespace, catalogs)
            if len(path) == 1:
                names[table] = self._frame(table, path[0])
                continue
            found = self._open(table, path)
            if isinstance(found, Scan):
                scans[table] = found
            else:
                names[table] = found
        if len(scans) == 1 and len(query.tables) == 1:
            summary = summary_text(query, next(iter(scans.values())))
            if summary is not None:
                self.summaries.append(query.tables[0].path)
                return summary
        schemas = {id(table.node): (table, _visible_schema(scan.schema)) for table, scan in scans.items()}
        filters = find_filters(query.node, schemas, self._parameters)
        for table, scan in scans.items():
            names[table] = self._add_scan(query, table, scan, filters.get(table, TRUE))
        for table, name in names.items():
            if table.start is None:
                self._add_plain_name(table, name)
        return query.replace_tables(names)

    def _frame(self, table: TableReference, name: str) -> str:
        if name.lower() not in self._frames or self._reading:
            raise TableNotFoundError(
                f"Cannot find the table {name}: it has no namespace, and no WITH and no argument has that name",
                hint=f'Write namespace.table, or give your own data: lake.sql("…", {name}=frame).',
            )
        return quoted(self._frames[name.lower()][0])

    def _open(self, table: TableReference, path: Name) -> Scan | str:
        """Return the scan of a table, or the name in DuckDB of a view or a metadata table."""
        problem: FrazilError | None = None
        candidates = dict.fromkeys((path, _split(path)))
        for candidate in candidates:
            try:
                relation = self._relation(candidate)
            except (NotFoundError, InvalidRequestError) as error:
                if len(candidates) == 1 and isinstance(error, InvalidRequestError):
                    raise
                problem = problem or error
                view = self._find_view(candidate)
                if view is None:
                    continue
                if table.version is not None or table.timestamp is not None:
                    raise InvalidRequestError(f"Cannot read {view.name} as of another time: it is a view") from error
                return self._add_view(view)
            if relation.metadata_table is not None:
                return self._add_metadata(relation, table)
            return self._scan(relation, table)
        assert problem is not None
        raise problem

    def _relation(self, name: Name) -> Relation:
        if len(name) > 2 and name[0] == self._name:
            name = name[1:]
        relation = self._session.relation(FullName(self._name, self._lake, name, self._readers))
        loaded = relation.table.state
        first = self._states.setdefault((loaded.identifier, loaded.metadata.table_uuid), loaded)
        if loaded.metadata_location == first.metadata_location:
            return relation
        same = replace(loaded, metadata=first.metadata, metadata_location=first.metadata_location)
        return replace(relation, table=self._lake._table(same))

    @property
    def _readers(self) -> tuple[Name, ...]:
        """The views that are being resolved, the outermost first, if the catalog wants to know."""
        return tuple(self._reading) if self._lake.catalog.has_readers_by_views else ()

    def _find_view(self, name: Name) -> View | None:
        name = name[1:] if len(name) > 2 and name[0] == self._name else name
        try:
            return self._lake._view_for(name, self._readers)
        except (NotFoundError, UnsupportedError, InvalidRequestError):
            return None

    # --- states

    def _scan(self, relation: Relation, table: TableReference) -> Scan:
        state = relation.state
        if table.version is not None or table.timestamp is not None:
            if state.is_given:
                raise InvalidRequestError(f"Cannot read {format_name(table.path)} in two states: give one")
            if table.timestamp is not None:
                return relation.table.scan(as_of=self._moment(table))
            state = version_state(self._version(table))
        return relation.table.scan(snapshot_id=state.snapshot_id, as_of=state.as_of_ms, ref=state.reference)

    def _version(self, table: TableReference) -> str:
        assert table.version is not None
        constant = constant_of(table.version, self._parameters)
        if constant is None or constant.category not in ("number", "text"):
            raise InvalidRequestError(
                f"Cannot read a version of {format_name(table.path)}: it is not a constant",
                hint="Write AT (VERSION => 123), AT (VERSION => 'tag') or AT (VERSION => $version).",
            )
        return str(constant.value)

    def _moment(self, table: TableReference) -> Any:
        node = table.timestamp
        assert node is not None
        if node.get("type") == "VALUE_PARAMETER":
            value = self._parameters.get(node["identifier"])
            if isinstance(value, datetime.datetime) and value.tzinfo is None:
                return value.replace(tzinfo=datetime.UTC)
            return value
        constant = constant_of(node, self._parameters)
        if constant is not None and constant.category in ("text", "date"):
            return str(constant.value)
        if constant is not None and constant.category in ("timestamp", "timestamptz"):
            moment = datetime.datetime.fromisoformat(constant.value)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        raise InvalidRequestError(
            f"Cannot read {format_name(table.path)} as of a time: it is not a constant",
            hint="Write AT (TIMESTAMP => '2026-01-01 00:00:00') or AT (TIMESTAMP => $moment).",
        )

    # --- what DuckDB is given

    def _new_name(self, name: Sequence[str]) -> str:
        text = ".".join(name)
        taken = {taken for _, taken, _ in self._views} | self._tables.keys() | self._sources.keys()
        lower = {name.lower() for name in taken}
        number, chosen = 1, text
        while chosen.lower() in lower:
            number += 1
            chosen = f"{text} ({number})"
        return chosen

    def _add_plain_name(self, table: TableReference, name: str) -> None:
        """Let a name that has no place in the parse tree be found as it is written."""
        if len(table.path) == 1 and table.path[0].lower() in self._frames:
            self._views.append(("main", table.path[0], f"SELECT * FROM {name}"))
            return
        if len(table.path) != 2 or table.version is not None or table.timestamp is not None:
            raise UnsupportedError(
                f"Cannot read {format_name(table.path)} here: the statement takes names of two parts",
                hint=f"Write a query: FROM {format_name(table.path)}.",
            )
        schema, plain = table.path
        if (schema, plain) not in {(known, view) for known, view, _ in self._views}:
            self._views.append((schema, plain, f"SELECT * FROM {name}"))

    def _add_metadata(self, relation: Relation, table: TableReference) -> str:
        if relation.metadata_table == CHANGES:
            raise UnsupportedError(
                f"Cannot read {format_name(table.path)} here: changes are read on Spark",
                hint="Or give them as an argument: lake.sql('… from changes', changes=t.changes(…)).",
            )
        state = relation.state
        if table.version is not None:
            state = version_state(self._version(table))
        elif table.timestamp is not None:
            scan = relation.table.scan(as_of=self._moment(table))
            state = replace(state, snapshot_id=None if scan.snapshot is None else scan.snapshot.snapshot_id)
        choice = state.choice
        rows = read_metadata_table(relation.table.state, str(relation.metadata_table), choice=choice)
        name = self._new_name(table.path)
        self._tables[name] = rows
        return quoted(name)

    def _add_scan(self, query: Query, table: TableReference, scan: Scan, predicate: Predicate) -> str:
        scan = self._narrowed(scan, predicate)
        fields = _visible_fields(scan.schema)
        visible = frozenset({table.visible_name.lower()})
        columns = [
            (name, field)
            for name, field in fields
            if duckdb_type(field.field_type) is not None or query.mentions(name, visible)
        ]
        snapshot = scan.snapshot
        key = (
            scan.table.identifier,
            scan.table.referenced_by,
            None if snapshot is None else snapshot.snapshot_id,
            scan.table_schema.schema_id,
            str(scan.predicate),
            tuple(field.field_id for _, field in columns),
        )
        if key not in self._known:
            self._known[key] = self._add_files(table, scan, columns)
        return self._known[key]

    def _narrowed(self, scan: Scan, predicate: Predicate) -> Scan:
        if predicate == TRUE:
            return scan
        narrowed = replace(scan, predicate=predicate)
        try:
            narrowed.plan()
        except FrazilError:
            return scan  # a literal that does not fit the column; DuckDB tests it
        return narrowed

    def _add_files(self, table: TableReference, scan: Scan, fields: list[tuple[str, NestedField]]) -> str:
        plan = scan.plan()
        tasks = list(scan._tasks())
        view = view_table(scan.table.metadata, scan.table_schema)
        cache = DeleteCache(scan.options.delete_cache_bytes)
        native = choose_native(
            tasks, view, [field for _, field in fields], scan.table.storage, self._engine.describe, cache
        )
        name = self._new_name(table.path)
        self.read.append(ReadTable(name, scan, plan, native, len(tasks)))
        deletes = f"{name} deleted rows"
        for number, group in enumerate(native.groups):
            if group.deleted is not None:
                self._tables[f"{deletes} {number}"] = group.deleted
                self._has_deletes = True
        queries = scan_sql(native, fields, deletes)
        if native.others or not queries:
            # Arrow's datasets take longer to load than most queries.
            from frazil.table.local_sql.query_sources import arrow_source

            source = f"{name} read by frazil"
            self._sources[source] = arrow_source(scan, native.others if native.paths else None, self.failures)
            names = self._sources[source].schema.names
            queries.append(f"SELECT {_arrow_columns(fields, scan.schema, names)} FROM {quoted(source)}")
        self._views.append((SCHEMA, name, " UNION ALL ".join(queries)))
        return f"{SCHEMA}.{quoted(name)}"

    # --- views

    def _add_view(self, view: View) -> str:
        if view.identifier in self._reading:
            raise recursive_view_error(view.identifier, len(self._reading))
        key = ("view", view.identifier, view.metadata.view_uuid, tuple(self._readers))
        if key in self._known:
            return self._known[key]
        self._reading.append(view.identifier)
        try:
            version = view.current_version
            catalogs = frozenset({self._name, version.default_catalog or self._name})
            text = view_text(view, lambda name: self._column_types(view, name, catalogs))
            parsed = parse_query(text, self._engine.serialize)
            if parsed.parameters:
                raise UnsupportedError(f"Cannot read the view {view.name}: its query has parameters")
            inner = self.add_query(parsed, version.default_namespace or view.identifier[:-1], catalogs)
            probe = self._engine.run(self.prepared(inner))
            try:
                columns = probe.columns
            finally:
                probe.close()
            name = self._new_name(view.identifier)
            self._views.append((SCHEMA, name, view_columns(view, inner, columns)))
        finally:
            self._reading.pop()
        self._known[key] = f"{SCHEMA}.{quoted(name)}"
        return self._known[key]

    def _column_types(self, view: View, name: Name, catalogs: frozenset[str]) -> Mapping[str, str]:
        """Return Spark's types of the columns of a table or a view that a view's query names."""
        path = _within(name, view.current_version.default_namespace or view.identifier[:-1], catalogs)
        try:
            return spark_types(self._relation(path).table.schema)
        except NotFoundError:
            inner = self._find_view(path)
            if inner is None:
                raise
        if inner.schema.fields and inner.properties.get(VIEW_SCHEMA_MODE, "").upper() != "EVOLUTION":
            return spark_types(inner.schema)
        probe = self._engine.run(self.prepared(f"SELECT * FROM {self._add_view(inner)}"))
        try:
            return spark_types_of(probe.columns)
        finally:
            probe.close()

    # --- the result

    def prepared(self, text: str, parameters: frozenset[str] = frozenset()) -> PreparedQuery:
        """Return a query with everything that was resolved so far."""
        paths = [path for table in self.read for path in table.native.paths]
        return PreparedQuery(
            text,
            {name: self._parameters[name] for name in parameters},
            tuple(dict.fromkeys(paths)),
            dict(self._tables),
            dict(self._sources),
            tuple(self._views),
            self._limits,
            self._has_deletes,
        )

    def explain(self) -> str:
        """Return as text which files of each table are read."""
        lines = [f"{format_name(name)}: answered from metadata" for name in self.summaries]
        lines += [table.explain() for table in self.read]
        return "\n".join(lines) or "no table of the lake is read"

    def find_missing_file(self) -> str | None:
        """Return the path of a file that DuckDB should read and that is gone, or None."""
        return next((path for table in self.read for path in table.native.paths if not Path(path).exists()), None)


def _within(path: Name, namespace: Name, catalogs: frozenset[str]) -> Name:
    """Return a name in full: one part is in the namespace, and a catalog before two or more is left out."""
    if not namespace:
        return path
    if len(path) == 1:
        return (*namespace, *path)
    return path[1:] if len(path) > 2 and path[0] in catalogs else path


def _split(path: Name) -> Name:
    """Return a name with the parts that dots separate inside of its parts: `"lake.a.b".t`."""
    parts: list[str] = []
    for step in path:
        parts += parse_name(step) if "." in step else (step,)
    return tuple(parts)


def _visible_fields(schema: Schema) -> list[tuple[str, NestedField]]:
    """Return the columns by the names that DuckDB shows; those that differ by case alone get a number, as in DuckDB."""
    taken: set[str] = set()
    fields: list[tuple[str, NestedField]] = []
    for field in schema.fields:
        name, number = field.name, 0
        while name.lower() in taken:
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name.lower())
        fields.append((name, field))
    return fields


def _visible_schema(schema: Schema) -> Schema:
    """Return the columns whose names are unique in any case: conditions on others prune nothing."""
    lower = [field.name.lower() for field in schema.fields]
    return schema if len(set(lower)) == len(lower) else Schema(())


def _arrow_columns(fields: Sequence[tuple[str, NestedField]], schema: Schema, names: Sequence[str]) -> str:
    columns: list[str] = []
    names_by_id = {field.field_id: name for field, name in zip(schema.fields, names, strict=True)}
    for name, field in fields:
        type_name = duckdb_type(field.field_type)
        column = quoted(names_by_id[field.field_id])
        value = column if type_name is None else f"CAST({column} AS {type_name})"
        columns.append(f"{value} AS {quoted(name)}")
    return ", ".join(columns) or "1"
