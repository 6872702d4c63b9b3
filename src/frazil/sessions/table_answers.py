"""Handles requests about tables: the resolution of names, the contents of namespaces, and plans for reading rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from frazil.errors import (
    InvalidRequestError,
    NamespaceNotFoundError,
    NotFoundError,
)
from frazil.jar.options import VIEW_OPTIONS
from frazil.sessions import requests as r
from frazil.sessions.change_feeds import FEED_OPTION, changes_frame, find_changes
from frazil.sessions.context import (
    Context,
    Reply,
    checked_target,
    full_name_of,
    handler,
    lake_of,
    own_names,
)
from frazil.sessions.remembered import remember
from frazil.sessions.resolved_name import ResolvedName
from frazil.sessions.run_show import table_properties
from frazil.sessions.run_statement import run_statement
from frazil.sessions.source_names import BY_PATH, check_path, find_relation, no_lake, source_name
from frazil.sessions.spark_engine import find_view, hidden_columns, read_by_views
from frazil.sessions.sql_context import OWNER, SqlContext
from frazil.sessions.stream_sources import checked_stream, named_stream
from frazil.sessions.write_options import default_text
from frazil.spark.change.resolved import schema_of_json
from frazil.spark.jvm.door import current_place, session_id
from frazil.spark.read.file_facts import FILE_FACTS, with_file_facts
from frazil.spark.stream.source_frames import StreamColumns, stream_schema
from frazil.spark.types import from_spark_schema, shown_schema
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.spec.schema import Schema
from frazil.spec.transforms import Bucket, Truncate
from frazil.sql import statements as s
from frazil.sql.quote_names import quote
from frazil.table.scan import ALL_COLUMNS
from frazil.table.sql_session import FullName, Relation, SqlSession, State, is_suffix, state_of_options, version_state
from frazil.table.table import Table
from frazil.table.view import View
from frazil.verbs.write_rows import evolution_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _source(request: r.Source, context: Context) -> Reply:
    return r.encode(source_name(context.names(request), request.options))


def _refuse_name(request: r.NoLake, context: Context) -> Reply:
    raise no_lake(context.names(), request.name)


@dataclass(frozen=True)
class _Loaded:
    """A table, a metadata table or a view in the form for Spark."""

    name: ResolvedName
    schema: str
    table: Table | None = None
    hidden: Schema | None = None
    stream: r.NamedStream | None = None


def _load(request: r.Load, context: Context) -> Reply:
    names = own_names(request)
    full_name = read_by_views(_full_name(request, context, names))
    try:
        relation = find_relation(names, full_name)
    except NotFoundError:
        if full_name.name[0] == BY_PATH:
            raise
        view = find_view(full_name)
        if view is None:
            return None
        return _encoded(_load_view(request, context, full_name, view), context)
    engine = context.engine(names)
    changes = find_changes(request, engine.setting("spark.sql.session.timeZone") or "UTC")
    if request.purpose in ("stream", "stream-by-format"):
        return _encoded(_load_stream(request, context, full_name, relation, changes), context)
    if changes is not None:
        return _encoded(_load_changes(request, context, full_name, relation, changes), context)
    states = [relation.state, state_of_options(request.options)]
    if request.version is not None:
        states.append(version_state(request.version))
    if request.micros is not None:
        states.append(State(as_of_ms=request.micros // 1000))
    relation = replace(relation, state=engine.state_of(relation, states))
    resolved = ResolvedName(relation, full_name)
    evolves = request.purpose == "evolve"
    if evolves or request.purpose == "write":
        checked_target(resolved)
    scan = engine.scan_of(relation, {})
    if scan is None:
        return _encoded(_Loaded(resolved, engine.frame_of(relation).schema.json()), context, evolves=evolves)
    columns = _columns_with_defaults(scan.schema, context.spark)
    return _encoded(_Loaded(resolved, columns, relation.table, hidden_columns(scan)), context, evolves=evolves)


def _load_view(request: r.Load, context: Context, full_name: FullName, view: View) -> _Loaded:
    if request.version is not None or request.micros is not None or state_of_options(request.options).is_given:
        raise InvalidRequestError(f"Cannot read {full_name} in another state: it is a view") from None
    if request.purpose in ("write", "evolve"):
        checked_target(ResolvedName(None, full_name, view))
    if request.purpose in ("stream", "stream-by-format"):
        raise InvalidRequestError(f"Cannot stream {full_name}: it is a view") from None
    if find_changes(request, "UTC") is not None:
        raise InvalidRequestError(f"Cannot read changes of {full_name}: it is a view") from None
    frame = context.engine().view_frame(full_name, view)
    return _Loaded(ResolvedName(None, full_name, view, frame), frame.schema.json())


def _load_stream(
    request: r.Load, context: Context, full_name: FullName, relation: Relation, changes: r.Changes | None
) -> _Loaded:
    """Return a table, or its changes, as a stream."""
    schema, stream = named_stream(context, relation, request.options, changes)
    if request.purpose == "stream":
        stream = checked_stream(context, relation, stream)
    return _Loaded(ResolvedName(relation, full_name), schema, relation.table, stream=stream)


def _load_changes(
    request: r.Load, context: Context, full_name: FullName, relation: Relation, changes: r.Changes
) -> _Loaded:
    """Return the changes of a table; also as a stream, since only Spark knows which of the two is read."""
    branch = state_of_options({key: value for key, value in request.options.items() if key.lower() == "branch"})
    relation = replace(relation, state=branch if branch.is_given else relation.state)
    columns = StreamColumns(relation.table.schema, has_changes=True)
    schema = stream_schema(columns, context.spark).json()
    stream = None
    if request.changes is not None:
        _, stream = named_stream(context, relation, request.options, changes)
    return _Loaded(ResolvedName(relation, full_name, changes=changes), schema, stream=stream)


def _full_name(request: r.Load, context: Context, names: SqlSession) -> FullName:
    """Return the name to load; `t.snapshots` may refer to a table in the current namespace."""
    full_name = full_name_of(request)
    if not is_suffix(full_name.name[1:]):
        return full_name
    catalog, namespace = current_place(context.spark)
    if catalog != full_name.lake_name:
        return full_name
    return replace(names, catalog=catalog, namespace=namespace).find_full_name(full_name.name) or full_name


def _columns_with_defaults(schema: Schema, spark: SparkSession) -> str:
    """Return columns as Spark's JSON, with their defaults."""
    defaults = {field.name: default_text(field) for field in schema.fields if field.write_default is not None}
    columns = []
    for field in shown_schema(schema, spark).jsonValue()["fields"]:
        if field["name"] in defaults:
            text = defaults[field["name"]]
            field["metadata"] = {**field["metadata"], "CURRENT_DEFAULT": text, "EXISTS_DEFAULT": text}
        columns.append(field)
    return json.dumps({"type": "struct", "fields": columns})


def _name_suffixes(name: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [name[index:] for index in range(len(name))]


def _assigned(path: Sequence[str], qualifiers: Sequence[tuple[str, ...]], source: Schema) -> str:
    """Return the column that an assignment refers to, in lower case, without a prefixed alias or table name."""
    lower = tuple(step.lower() for step in path)
    columns = {field.name.lower() for field in source.fields}
    for qualifier in qualifiers:
        size = len(qualifier)
        is_own = size < len(lower) and lower[:size] == tuple(step.lower() for step in qualifier)
        if is_own and lower[size] in columns:
            return lower[size]
    return lower[0]


def _evolve(request: r.Evolve, context: Context) -> Reply:
    """Return a table as a MERGE will leave it: with the columns of the source that it assigns."""
    full_name, table, _ = context.target(request)
    source = from_spark_schema(schema_of_json(request.source))
    only: set[str] | None = None
    if request.assigned is not None:
        qualifiers = [request.aliases] if request.aliases else _name_suffixes((full_name.lake_name, *full_name.name))
        only = {_assigned(path, qualifiers, source) for path in request.assigned}
    evolution = evolution_of(source, only)
    schema = evolution.applied_to(table.state).metadata.current_schema
    name = replace(context.table(request), evolution=evolution)
    return _encoded(_Loaded(name, _columns_with_defaults(schema, context.spark), table), context, evolves=True)


def _encoded(loaded: _Loaded, context: Context, *, evolves: bool = False) -> str:
    """Store a loaded table, and return it encoded for Spark's side."""
    name, table = loaded.name, loaded.table
    of_name = None if name.relation is None else name.relation.table
    # The columns of an evolving INSERT are compared with the schema during the write.
    is_insert = evolves and name.evolution is None
    takes_any = is_insert or (of_name is not None and read_property(of_name.properties, SPARK_ACCEPT_ANY_SCHEMA))
    hidden = {"type": "struct", "fields": _hidden_fields(loaded.hidden or Schema(()), context.spark)}
    return r.encode(
        r.Loaded(
            key=remember(context.remembered.tables, name),
            name=str(name.full_name),
            schema=loaded.schema,
            hidden=json.dumps(hidden),
            properties={} if table is None else table_properties(table),
            partitions=() if table is None else _partitions(table),
            any_schema=takes_any and name.evolution is None,
            evolves=evolves,
            stream=loaded.stream,
            uuid=None if of_name is None else of_name.metadata.table_uuid,
        )
    )


def _hidden_fields(hidden: Schema, spark: SparkSession) -> list[Any]:
    """Return metadata columns as Spark's JSON; a table of files also has Spark's own metadata columns."""
    fields = shown_schema(hidden, spark).jsonValue()["fields"]
    return [*fields, FILE_FACTS.jsonValue()] if fields else fields


def _partitions(table: Table) -> tuple[r.Term, ...]:
    terms = []
    schema = table.schema
    for field in table.spec.fields:
        source = schema.find_field(field.source_id)
        if source is None or field.transform.is_void:
            continue
        column = tuple(schema.name_of(source.field_id).split("."))
        transform = field.transform
        if isinstance(transform, Bucket):
            terms.append(r.Term(name="bucket", arguments=(transform.num_buckets, column)))
        elif isinstance(transform, Truncate):
            terms.append(r.Term(name="truncate", arguments=(transform.width, column)))
        else:
            name = str(transform)
            terms.append(r.Term(name=name if name == "identity" else f"{name}s", arguments=(column,)))
    return tuple(terms)


def _table_exists(request: r.TableExists, context: Context) -> Reply:
    full_name = full_name_of(request)
    try:
        own_names(request).relation(full_name)
    except NotFoundError:
        return None if find_view(full_name) is None else "true"
    return "true"


def _list_tables(request: r.ListTables, context: Context) -> Reply:
    if not request.namespace:
        # Only namespaces have tables; a lake itself contains just namespaces.
        return "[]"
    lake = lake_of(request)
    if not lake.catalog.namespace_exists(request.namespace):
        return None
    return r.encode([table[-1] for table in lake.list_tables(request.namespace)])


def _list_namespaces(request: r.ListNamespaces, context: Context) -> Reply:
    lake = lake_of(request)
    if request.namespace and not lake.catalog.namespace_exists(request.namespace):
        return None
    return r.encode(lake.list_namespaces(request.namespace))


def _namespace(request: r.Namespace, context: Context) -> Reply:
    try:
        return r.encode(dict(lake_of(request).catalog.load_namespace_properties(request.namespace)))
    except NamespaceNotFoundError:
        return None


def _create_namespace(request: r.CreateNamespace, context: Context) -> Reply:
    catalog, properties = lake_of(request).catalog, dict(request.properties)
    if not catalog.has_namespace_properties:
        # Spark adds it to every namespace.
        properties.pop(OWNER, None)
    catalog.create_namespace(request.namespace, properties)


def _alter_namespace(request: r.AlterNamespace, context: Context) -> Reply:
    lake_of(request).catalog.update_namespace_properties(request.namespace, request.set, list(request.removed))


def _drop_namespace(request: r.DropNamespace, context: Context) -> Reply:
    statement = s.DropNamespace((request.catalog, *request.namespace), cascade=request.cascade, if_exists=False)
    run_statement(SqlContext(context.names(), None), statement)
    return "true"


def _read(request: r.Read, context: Context) -> Reply:
    """Return the plan of a table, view or metadata table; the plan of a table's state is created once per session."""
    name = context.table(request)
    if name.relation is None:
        VIEW_OPTIONS.check(request.options)
        return _analyzed(name.frame)
    relation = name.relation
    check_path(relation, request.options)
    if name.changes is not None:
        return _analyzed(changes_frame(context.spark, relation, name.changes, request.options))
    if any(key.lower() == FEED_OPTION and value.lower() == "true" for key, value in request.options.items()):
        raise InvalidRequestError(
            f"Cannot read the change feed of {relation.full_name} by format and path",
            hint='Name the table: spark.read.option("readChangeFeed", "true").table(…).',
        )
    location = relation.table.state.metadata_location
    if location is None or relation.metadata_table is not None:
        return _plan(request, context, relation)
    key = (
        session_id(context.spark),
        request.settings,
        location,
        relation.table.state.referenced_by,
        relation.state,
        tuple(sorted(request.options.items())),
        request.hidden,
    )
    return context.remembered.plans.recall(key, lambda: _plan(request, context, relation))


def _analyzed(frame: DataFrame | None) -> Reply:
    return None if frame is None else frame._jdf.queryExecution().analyzed()


def _plan(request: r.Read, context: Context, relation: Relation) -> Reply:
    engine = context.engine(own_names(request))
    scan = engine.scan_of(relation, request.options)
    if scan is None:
        return _analyzed(engine.frame_of(relation))
    facts = FILE_FACTS.name
    hidden = [name for name in request.hidden if name != facts]
    column_names = [field.name for field in scan.schema.fields]
    frame = replace(scan, columns=(ALL_COLUMNS, *hidden)).to_spark(context.spark)
    if scan.changelog is not None:
        # The columns of the change come last.
        frame = frame.select(*map(quote, [*column_names, *hidden]))
    if facts in request.hidden:
        frame = with_file_facts(frame, str(relation.full_name))
    return _analyzed(frame)


TABLE_HANDLERS = dict(
    (
        handler(r.Source, _source),
        handler(r.NoLake, _refuse_name),
        handler(r.Load, _load),
        handler(r.Evolve, _evolve),
        handler(r.TableExists, _table_exists),
        handler(r.ListTables, _list_tables),
        handler(r.ListNamespaces, _list_namespaces),
        handler(r.Namespace, _namespace),
        handler(r.CreateNamespace, _create_namespace),
        handler(r.AlterNamespace, _alter_namespace),
        handler(r.DropNamespace, _drop_namespace),
        handler(r.Read, _read),
    )
)
