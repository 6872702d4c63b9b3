"""What Python answers when Spark asks about tables: what names stand for, what is in namespaces, plans of rows."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.errors import (
    InvalidRequestError,
    NamespaceNotFoundError,
    NotFoundError,
)
from frazil.lake.scan import ALL_COLUMNS
from frazil.lake.sql_session import FullName, Relation, SqlSession, State, is_suffix, state_of_options, version_state
from frazil.lake.table import OneCommit, Table
from frazil.lake.write_rows import evolution_of
from frazil.sessions.change_feeds import FEED_OPTION, asked_changes, changes_frame
from frazil.sessions.question import TABLES, Question, ResolvedName, checked_target, recall, remember
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
from frazil.spec.options import VIEW_OPTIONS
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.spec.schema import Schema
from frazil.spec.transforms import Bucket, Truncate
from frazil.sql import statements as s
from frazil.sql.quote_names import quote

_KEPT_PLANS = 200

_plans: OrderedDict[Any, Any] = OrderedDict()


def _source(question: Question) -> str:
    payload = question.payload
    return json.dumps(source_name(question.session(payload["current"], payload["namespace"]), payload["options"]))


def _refuse_name(question: Question) -> None:
    raise no_lake(question.session(), tuple(question.payload["name"]))


def _load(question: Question) -> str | None:
    payload = question.payload
    session = question.own_session()
    engine = question.engine(session)
    full_name = read_by_views(_place_of_name(question, session))
    try:
        relation = find_relation(session, full_name)
    except NotFoundError:
        if full_name.name[0] == BY_PATH:
            raise
        view = find_view(full_name)
        if view is None:
            return None
        if "version" in payload or "micros" in payload or state_of_options(payload.get("options", {})).is_given:
            raise InvalidRequestError(f"Cannot read {full_name} in another state: it is a view") from None
        if payload.get("writes"):
            checked_target(ResolvedName(None, full_name, view))
        if payload.get("streams"):
            raise InvalidRequestError(f"Cannot stream {full_name}: it is a view") from None
        if asked_changes(payload, "UTC") is not None:
            raise InvalidRequestError(f"Cannot read changes of {full_name}: it is a view") from None
        frame = question.engine().view_frame(full_name, view)
        return _loaded(
            ResolvedName(None, full_name, view, frame), full_name, frame.schema.json(), Schema(()), question, {}, []
        )
    changes = asked_changes(payload, engine.setting("spark.sql.session.timeZone") or "UTC")
    if payload.get("streams"):
        return _loaded_stream(question, full_name, relation, changes)
    if changes is not None:
        return _loaded_changes(question, full_name, relation, changes)
    states = [relation.state, state_of_options(payload.get("options", {}))]
    if "version" in payload:
        states.append(version_state(payload["version"]))
    if "micros" in payload:
        states.append(State(as_of_ms=payload["micros"] // 1000))
    relation = replace(relation, state=engine.state_of(relation, states))
    kept = ResolvedName(relation, full_name)
    if payload.get("writes"):
        checked_target(kept)
    scan = engine.scan_of(relation, {})
    if scan is None:
        schema, hidden = engine.frame_of(relation).schema, Schema(())
        return _loaded(kept, full_name, schema.json(), hidden, question, {}, [])
    table = relation.table
    return _loaded(
        kept,
        full_name,
        _columns_with_defaults(scan.schema, question.spark),
        hidden_columns(scan),
        question,
        table_properties(table),
        _partitions(table),
    )


def _loaded_stream(
    question: Question, full_name: FullName, relation: Relation, changes: Mapping[str, Any] | None
) -> str:
    """Answer with a table as a stream, or with its changes."""
    schema, stream = named_stream(question, relation, question.payload.get("options", {}), changes)
    if not question.payload.get("by-format"):
        stream = checked_stream(question, relation, stream)
    kept, table = ResolvedName(relation, full_name), relation.table
    properties = table_properties(table)
    return _loaded(kept, full_name, schema, Schema(()), question, properties, _partitions(table), stream=stream)


def _loaded_changes(question: Question, full_name: FullName, relation: Relation, changes: Mapping[str, Any]) -> str:
    """Answer with the changes of a table; where only Spark knows whether they are a stream, as both."""
    options = question.payload.get("options", {})
    branch = state_of_options({key: value for key, value in options.items() if key.lower() == "branch"})
    relation = replace(relation, state=branch if branch.is_given else relation.state)
    columns = StreamColumns(relation.table.schema, has_changes=True)
    schema = stream_schema(columns, question.spark).json()
    stream = None
    if "changes" in question.payload:
        _, stream = named_stream(question, relation, options, changes)
    kept = ResolvedName(relation, full_name, changes=changes)
    return _loaded(kept, full_name, schema, Schema(()), question, {}, [], stream=stream)


def _place_of_name(question: Question, session: SqlSession) -> FullName:
    """Return what a name points at; `t.snapshots` may be of a table in the current namespace."""
    full_name = question.full_name
    if not is_suffix(full_name.name[1:]):
        return full_name
    catalog, namespace = current_place(question.spark)
    if catalog != full_name.lake_name:
        return full_name
    return replace(session, catalog=catalog, namespace=namespace).find_full_name(full_name.name) or full_name


def _columns_with_defaults(schema: Schema, spark: Any) -> str:
    """Return columns as Spark writes them, with what DEFAULT means for each."""
    defaults = {field.name: default_text(field) for field in schema.fields if field.write_default is not None}
    columns = []
    for field in shown_schema(schema, spark).jsonValue()["fields"]:
        if field["name"] in defaults:
            text = defaults[field["name"]]
            field["metadata"] = {**field["metadata"], "CURRENT_DEFAULT": text, "EXISTS_DEFAULT": text}
        columns.append(field)
    return json.dumps({"type": "struct", "fields": columns})


def _endings(name: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [name[index:] for index in range(len(name))]


def _assigned(path: Sequence[str], qualifiers: Sequence[tuple[str, ...]], source: Schema) -> str:
    """Return the column that an assignment is to, in lower case, without the table's alias or name before it."""
    lower = tuple(step.lower() for step in path)
    columns = {field.name.lower() for field in source.fields}
    for qualifier in qualifiers:
        size = len(qualifier)
        is_own = size < len(lower) and lower[:size] == tuple(step.lower() for step in qualifier)
        if is_own and lower[size] in columns:
            return lower[size]
    return lower[0]


def _evolve(question: Question) -> str:
    """Answer with a table as a MERGE will make it: with the columns of the source that it assigns."""
    payload = question.payload
    full_name, table, _ = question.target()
    source = from_spark_schema(schema_of_json(payload["source"]))
    only: set[str] | None = None
    if payload["assigned"] is not None:
        qualifiers = (
            [tuple(payload["aliases"])] if payload["aliases"] else _endings((full_name.lake_name, *full_name.name))
        )
        only = {_assigned(path, qualifiers, source) for path in payload["assigned"]}
    evolution = evolution_of(source, only)
    given_up = OneCommit(table._catalog, table._cache).table(table._begin())
    given_up._run(evolution)
    schema = given_up._begin().metadata.current_schema
    kept = replace(question.kept(), evolution=evolution)
    return _loaded(
        kept,
        kept.full_name,
        _columns_with_defaults(schema, question.spark),
        Schema(()),
        question,
        table_properties(table),
        _partitions(table),
        evolves=True,
    )


def _loaded(
    kept: ResolvedName,
    full_name: FullName,
    schema: str,
    hidden: Schema,
    question: Question,
    properties: Mapping[str, str],
    partitions: list[dict[str, Any]],
    *,
    evolves: bool = False,
    stream: Mapping[str, Any] | None = None,
) -> str:
    table = None if kept.relation is None else kept.relation.table
    takes_any = table is not None and read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA)
    if question.payload.get("evolves"):
        # What an INSERT brings is compared with the schema when it is written.
        evolves = takes_any = True
    return json.dumps(
        {
            "key": remember(TABLES, kept),
            "name": str(full_name),
            "schema": schema,
            "hidden": json.dumps({"type": "struct", "fields": _hidden_fields(hidden, question.spark)}),
            "properties": dict(properties),
            "partitions": partitions,
            "any-schema": takes_any and kept.evolution is None,
            "evolves": evolves,
            "stream": stream,
            "uuid": None if table is None else table.metadata.table_uuid,
        }
    )


def _hidden_fields(hidden: Schema, spark: Any) -> list[dict[str, Any]]:
    """Return metadata columns as Spark writes them; a table of files also has what Spark says of its files."""
    fields: list[dict[str, Any]] = shown_schema(hidden, spark).jsonValue()["fields"]
    return [*fields, FILE_FACTS.jsonValue()] if fields else fields


def _partitions(table: Table) -> list[dict[str, Any]]:
    found = []
    schema = table.schema
    for field in table.spec.fields:
        source = schema.find_field(field.source_id)
        if source is None or field.transform.is_void:
            continue
        column = schema.name_of(source.field_id).split(".")
        transform = field.transform
        if isinstance(transform, Bucket):
            found.append({"name": "bucket", "arguments": [transform.num_buckets, column]})
        elif isinstance(transform, Truncate):
            found.append({"name": "truncate", "arguments": [transform.width, column]})
        else:
            name = str(transform)
            found.append({"name": name if name == "identity" else f"{name}s", "arguments": [column]})
    return found


def _table_exists(question: Question) -> str | None:
    full_name = question.full_name
    try:
        question.own_session().relation(full_name)
    except NotFoundError:
        return None if find_view(full_name) is None else "true"
    return "true"


def _list_tables(question: Question) -> str | None:
    if not question.namespace:
        # A lake itself holds namespaces alone.
        return "[]"
    if not question.lake.catalog.namespace_exists(question.namespace):
        return None
    return json.dumps([table[-1] for table in question.lake.list_tables(question.namespace)])


def _list_namespaces(question: Question) -> str | None:
    if question.namespace and not question.lake.catalog.namespace_exists(question.namespace):
        return None
    return json.dumps([list(namespace) for namespace in question.lake.list_namespaces(question.namespace)])


def _namespace(question: Question) -> str | None:
    try:
        return json.dumps(dict(question.lake.catalog.load_namespace_properties(question.namespace)))
    except NamespaceNotFoundError:
        return None


def _create_namespace(question: Question) -> None:
    catalog, properties = question.lake.catalog, dict(question.payload["properties"])
    if not catalog.has_namespace_properties:
        # Spark adds it to every namespace.
        properties.pop(OWNER, None)
    catalog.create_namespace(question.namespace, properties)


def _alter_namespace(question: Question) -> None:
    payload = question.payload
    question.lake.catalog.update_namespace_properties(question.namespace, payload["set"], payload["removed"])


def _drop_namespace(question: Question) -> str:
    full_name = FullName(question.payload["catalog"], question.lake, question.namespace)
    name = (full_name.lake_name, *full_name.name)
    run_statement(
        SqlContext(question.session(), None),
        s.DropNamespace(name, cascade=question.payload["cascade"], if_exists=False),
    )
    return "true"


def _read(question: Question) -> Any:
    """Return the plan of a table, a view or a metadata table; that of a table's state is made once a session."""
    kept, payload = question.kept(), question.payload
    if kept.relation is None:
        VIEW_OPTIONS.check(payload["options"])
        return kept.frame._jdf.queryExecution().analyzed()
    relation = kept.relation
    check_path(relation, payload["options"])
    if kept.changes is not None:
        frame = changes_frame(question.spark, relation, kept.changes, payload["options"])
        return frame._jdf.queryExecution().analyzed()
    if any(key.lower() == FEED_OPTION and value.lower() == "true" for key, value in payload["options"].items()):
        raise InvalidRequestError(
            f"Cannot read the change feed of {relation.full_name} by format and path",
            hint='Name the table: spark.read.option("readChangeFeed", "true").table(…).',
        )
    location = relation.table.state.metadata_location
    if location is None or relation.metadata_table is not None:
        return _plan(question, relation)
    key = (
        session_id(question.spark),
        payload["settings"],
        location,
        relation.table.state.referenced_by,
        relation.state,
        tuple(sorted(payload["options"].items())),
        tuple(payload["hidden"]),
    )
    return recall(_plans, key, lambda: _plan(question, relation), _KEPT_PLANS)


def forget_plans(spark: Any = None) -> None:
    """Forget the plans of a session; without one, of all."""
    own = None if spark is None else session_id(spark)
    for key in list(_plans):
        if own is None or key[0] == own:
            _plans.pop(key, None)


def _plan(question: Question, relation: Relation) -> Any:
    engine = question.engine(question.own_session())
    scan = engine.scan_of(relation, question.payload["options"])
    if scan is None:
        return engine.frame_of(relation)._jdf.queryExecution().analyzed()
    facts = FILE_FACTS.name
    asked = [name for name in question.payload["hidden"] if name != facts]
    own = [field.name for field in scan.schema.fields]
    frame = replace(scan, columns=(ALL_COLUMNS, *asked)).to_spark(question.spark)
    if scan.changelog is not None:
        # How and when a row changed comes last.
        frame = frame.select(*map(quote, [*own, *asked]))
    if facts in question.payload["hidden"]:
        frame = with_file_facts(frame, str(relation.full_name))
    return frame._jdf.queryExecution().analyzed()


TABLE_VERBS: dict[str, Callable[[Question], Any]] = {
    "source": _source,
    "no-lake": _refuse_name,
    "load": _load,
    "evolve": _evolve,
    "table-exists": _table_exists,
    "list-tables": _list_tables,
    "list-namespaces": _list_namespaces,
    "namespace": _namespace,
    "create-namespace": _create_namespace,
    "alter-namespace": _alter_namespace,
    "drop-namespace": _drop_namespace,
    "read": _read,
}
