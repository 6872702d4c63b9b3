"""What Python answers when Spark asks about lakes: tables, rows, changes, statements. See `spark/jvm/door.py`."""

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
    SqlSyntaxError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.lake.said_table import said_table
from frazil.lake.scan import ALL_COLUMNS
from frazil.lake.sql_session import Place, Relation, SqlSession, State, is_suffix, state_of_options, version_state
from frazil.lake.table import OneCommit, Table, hold
from frazil.lake.verbs import TableVerbs
from frazil.lake.write_rows import evolution_of
from frazil.sessions import row_counts, system
from frazil.sessions.alter_table import alter_table
from frazil.sessions.answer import Answer
from frazil.sessions.change_feeds import FEED_OPTION, asked_changes, changes_frame
from frazil.sessions.question import TABLES, Kept, Question, checked_target, recall, remember
from frazil.sessions.run_ddl import create_with_schema, find_table, optional_columns
from frazil.sessions.run_show import table_properties
from frazil.sessions.run_statement import run_statement
from frazil.sessions.source_names import BY_PATH, find_relation, no_lake, source_name
from frazil.sessions.spark_engine import find_view, hidden_columns
from frazil.sessions.sql_context import SqlContext
from frazil.sessions.stream_sinks import SINK_VERBS
from frazil.sessions.stream_sources import STREAM_VERBS, named_stream
from frazil.sessions.write_options import by_place, create_options, default_text, read_write_options
from frazil.spark.change.resolved import Resolved, schema_of_ddl, schema_of_json
from frazil.spark.jvm.door import current_place, session_id
from frazil.spark.read.file_facts import FILE_FACTS, with_file_facts
from frazil.spark.stream.source_frames import StreamColumns, stream_schema
from frazil.spark.types import from_spark_schema, shown_schema
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.transforms import Bucket, Truncate
from frazil.sql import statements as s
from frazil.sql.for_spark import evolution_as_option, script_for_spark
from frazil.sql.parse import parse_statement
from frazil.sql.quote_names import quote

_KEPT_PLANS = 200
_plans: OrderedDict[Any, Any] = OrderedDict()
_statements: OrderedDict[str, tuple[s.Statement, Answer | None]] = OrderedDict()


def answer(spark: Any, verb: str, told: Mapping[str, Any], objects: Any) -> Any:
    """Answer one question of Spark's: text as JSON, an object of Java's, or None for what there is not."""
    return _VERBS[verb](Question(spark, told, objects))


# Names


def _source(question: Question) -> str:
    told = question.told
    return json.dumps(source_name(question.session(told["current"], told["namespace"]), told["options"]))


def _refuse_name(question: Question) -> None:
    raise no_lake(question.session(), tuple(question.told["name"]))


def _load(question: Question) -> str | None:
    told = question.told
    session = question.own_session()
    engine = question.engine(session)
    place = _place_of_name(question, session)
    try:
        relation = find_relation(session, place)
    except NotFoundError:
        if place.name[0] == BY_PATH:
            raise
        view = find_view(place)
        if view is None:
            return None
        if "version" in told or "micros" in told:
            raise InvalidRequestError(f"Cannot read {place} as of another time: it is a view") from None
        if told.get("writes"):
            checked_target(Kept(None, place, view))
        if told.get("streams"):
            raise InvalidRequestError(f"Cannot stream {place}: it is a view") from None
        frame = question.engine().view_frame(place, view)
        return _loaded(Kept(None, place, view, frame), place, frame.schema.json(), Schema(()), question, {}, [])
    if told.get("streams"):
        return _loaded_stream(question, place, relation, told.get("options", {}))
    changes = asked_changes(told, engine.setting("spark.sql.session.timeZone") or "UTC")
    if changes is not None:
        return _loaded_changes(question, place, relation, changes)
    states = [relation.state, state_of_options(told.get("options", {}))]
    if "version" in told:
        states.append(version_state(told["version"]))
    if "micros" in told:
        states.append(State(as_of_ms=told["micros"] // 1000))
    relation = replace(relation, state=engine.state_of(relation, states))
    kept = Kept(relation, place)
    if told.get("writes"):
        checked_target(kept)
    scan = engine.scan_of(relation, {})
    if scan is None:
        schema, hidden = engine.frame_of(relation).schema, Schema(())
        return _loaded(kept, place, schema.json(), hidden, question, {}, [])
    table = relation.table
    return _loaded(
        kept,
        place,
        _columns_with_defaults(scan.schema, question.spark),
        hidden_columns(scan),
        question,
        table_properties(table),
        _partitions(table),
    )


def _loaded_stream(question: Question, place: Place, relation: Relation, options: Mapping[str, str]) -> str:
    """Answer with a table as a stream."""
    schema, stream = named_stream(question, relation, options)
    kept, table = Kept(relation, place), relation.table
    properties = table_properties(table)
    return _loaded(kept, place, schema, Schema(()), question, properties, _partitions(table), stream=stream)


def _loaded_changes(question: Question, place: Place, relation: Relation, changes: Mapping[str, Any]) -> str:
    """Answer with the changes of a table; where only Spark knows whether they are a stream, as both."""
    options = question.told.get("options", {})
    branch = state_of_options({key: one for key, one in options.items() if key.lower() == "branch"})
    relation = replace(relation, state=branch if branch.is_given else relation.state)
    columns = StreamColumns(relation.table.schema, has_changes=True)
    schema = stream_schema(columns, question.spark).json()
    stream = None
    if "changes" in question.told:
        _, stream = named_stream(question, relation, {"streaming-changes": "changes"})
        stream["changes"], stream["asked"] = dict(changes), dict(options)
    kept = Kept(relation, place, changes=changes)
    return _loaded(kept, place, schema, Schema(()), question, {}, [], stream=stream)


def _place_of_name(question: Question, session: SqlSession) -> Place:
    """Return what a name points at; `t.snapshots` may be of a table in the current namespace."""
    place = question.place
    if not is_suffix(place.name[1:]):
        return place
    catalog, namespace = current_place(question.spark)
    if catalog != place.lake_name:
        return place
    return replace(session, catalog=catalog, namespace=namespace).find_place(place.name) or place


def _columns_with_defaults(schema: Schema, spark: Any) -> str:
    """Return columns as Spark writes them, with what DEFAULT means for each."""
    defaults = {part.name: default_text(part) for part in schema.fields if part.write_default is not None}
    columns = []
    for one in shown_schema(schema, spark).jsonValue()["fields"]:
        if one["name"] in defaults:
            text = defaults[one["name"]]
            one["metadata"] = {**one["metadata"], "CURRENT_DEFAULT": text, "EXISTS_DEFAULT": text}
        columns.append(one)
    return json.dumps({"type": "struct", "fields": columns})


def _endings(name: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [name[at:] for at in range(len(name))]


def _assigned(path: Sequence[str], qualifiers: Sequence[tuple[str, ...]], source: Schema) -> str:
    """Return the column that an assignment is to, in lower case, without the table's alias or name before it."""
    lower = tuple(part.lower() for part in path)
    columns = {part.name.lower() for part in source.fields}
    for qualifier in qualifiers:
        size = len(qualifier)
        is_own = size < len(lower) and lower[:size] == tuple(part.lower() for part in qualifier)
        if is_own and lower[size] in columns:
            return lower[size]
    return lower[0]


def _evolve(question: Question) -> str:
    """Answer with a table as a MERGE will make it: with the columns of the source that it assigns."""
    told = question.told
    place, table, _ = question.target()
    source = _schema_of(told["source"])
    only: set[str] | None = None
    if told["assigned"] is not None:
        qualifiers = [tuple(told["aliases"])] if told["aliases"] else _endings((place.lake_name, *place.name))
        only = {_assigned(path, qualifiers, source) for path in told["assigned"]}
    evolution = evolution_of(source, only)
    given_up = OneCommit(table._catalog, table._cache).table(table._begin())
    given_up._run(evolution)
    schema = given_up._begin().metadata.current_schema
    kept = replace(question.kept(), evolution=evolution)
    return _loaded(
        kept,
        kept.place,
        _columns_with_defaults(schema, question.spark),
        Schema(()),
        question,
        table_properties(table),
        _partitions(table),
        evolves=True,
    )


def _loaded(
    kept: Kept,
    place: Place,
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
    if question.told.get("evolves"):
        # What an INSERT brings is compared with the schema when it is written.
        evolves = takes_any = True
    return json.dumps(
        {
            "key": remember(TABLES, kept),
            "name": str(place),
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
    for one in table.spec.fields:
        part = schema.find_field(one.source_id)
        if part is None or one.transform.is_void:
            continue
        column = schema.name_of(part.field_id).split(".")
        transform = one.transform
        if isinstance(transform, Bucket):
            found.append({"name": "bucket", "arguments": [transform.num_buckets, column]})
        elif isinstance(transform, Truncate):
            found.append({"name": "truncate", "arguments": [transform.width, column]})
        else:
            name = str(transform)
            found.append({"name": name if name == "identity" else f"{name}s", "arguments": [column]})
    return found


def _table_exists(question: Question) -> str | None:
    place = question.place
    try:
        question.own_session().relation(place)
    except NotFoundError:
        return None if find_view(place) is None else "true"
    return "true"


def _list_tables(question: Question) -> str | None:
    if not question.namespace:
        # A lake itself holds namespaces alone.
        return "[]"
    if not question.lake.catalog.namespace_exists(question.namespace):
        return None
    return json.dumps([one[-1] for one in question.lake.list_tables(question.namespace)])


def _list_namespaces(question: Question) -> str | None:
    if question.namespace and not question.lake.catalog.namespace_exists(question.namespace):
        return None
    return json.dumps([list(one) for one in question.lake.list_namespaces(question.namespace)])


def _namespace(question: Question) -> str | None:
    try:
        return json.dumps(dict(question.lake.catalog.load_namespace_properties(question.namespace)))
    except NamespaceNotFoundError:
        return None


def _create_namespace(question: Question) -> None:
    question.lake.catalog.create_namespace(question.namespace, question.told["properties"])


def _alter_namespace(question: Question) -> None:
    told = question.told
    question.lake.catalog.update_namespace_properties(question.namespace, told["set"], told["removed"])


def _drop_namespace(question: Question) -> str:
    place = Place(question.told["catalog"], question.lake, question.namespace)
    name = (place.lake_name, *place.name)
    run_statement(
        SqlContext(question.session(), None), s.DropNamespace(name, cascade=question.told["cascade"], if_exists=False)
    )
    return "true"


# Rows


def _read(question: Question) -> Any:
    """Return the plan of a table, a view or a metadata table; that of a table's state is made once a session."""
    kept, told = question.kept(), question.told
    if kept.relation is None:
        return kept.frame._jdf.queryExecution().analyzed()
    relation = kept.relation
    if kept.changes is not None:
        frame = changes_frame(question.spark, relation, kept.changes, told["options"])
        return frame._jdf.queryExecution().analyzed()
    if any(key.lower() == FEED_OPTION and value.lower() == "true" for key, value in told["options"].items()):
        raise InvalidRequestError(
            f"Cannot read the change feed of {relation.place} by format and path",
            hint='Name the table: spark.read.option("readChangeFeed", "true").table(…).',
        )
    location = relation.table._loaded.metadata_location
    if location is None or relation.metadata_table is not None:
        return _plan(question, relation)
    key = (
        session_id(question.spark),
        told["settings"],
        location,
        relation.state,
        tuple(sorted(told["options"].items())),
        tuple(told["hidden"]),
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
    scan = engine.scan_of(relation, question.told["options"])
    if scan is None:
        return engine.frame_of(relation)._jdf.queryExecution().analyzed()
    facts = FILE_FACTS.name
    asked = [one for one in question.told["hidden"] if one != facts]
    own = [part.name for part in scan.schema.fields]
    frame = replace(scan, columns=(ALL_COLUMNS, *asked)).to_spark(question.spark)
    if scan.changelog is not None:
        # How and when a row changed comes last.
        frame = frame.select(*map(quote, [*own, *asked]))
    if facts in question.told["hidden"]:
        frame = with_file_facts(frame, str(relation.place))
    return frame._jdf.queryExecution().analyzed()


def _write(question: Question, verb: str) -> str:
    place, table, branch = question.target()
    given = read_write_options(question.engine(), table, branch, question.told["options"])
    frame = question.frame(1)
    evolves = question.told["evolves"]
    merges = evolves or given.merges_schema
    if merges and not evolves and not read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        raise InvalidRequestError(
            f"Cannot change the schema of {place} with a write: the table does not allow it",
            hint="Set write.spark.accept-any-schema=true.",
        )
    if not question.told["by-name"] and question.told["any-schema"]:
        frame = by_place(frame, table.schema.fields, place, may_differ=merges)
    target = said_table(table, given.said)
    target._changed_rows = None
    if verb == "append":
        made = target.append(frame, merge_schema=merges, **given.arguments)
    elif verb == "overwrite-partitions" or given.is_dynamic:
        made = target.overwrite_partitions(frame, merge_schema=merges, **given.arguments)
    else:
        where = question.expression(question.told["where"])
        if where.sql_text == "true":
            made = target.overwrite(frame, merge_schema=merges, **given.arguments)
        else:
            made = target.overwrite(frame, where=where, merge_schema=merges, **given.arguments)
    return row_counts.inserted(target, made)


def _target(question: Question) -> tuple[TableVerbs, dict[str, Any]]:
    """Return the table that a change is of, as its options say, and the arguments of the verb."""
    _, table, branch = question.target()
    given = read_write_options(question.engine(), table, branch, question.told.get("options", {}))
    target = said_table(table, given.said)
    target._changed_rows = None
    return target, given.arguments


def _delete(question: Question) -> str:
    table, options = _target(question)
    made = table.delete(question.expression(question.told["where"]), engine="spark", **options)
    return row_counts.deleted(table, made)


def _truncate(question: Question) -> None:
    table, options = _target(question)
    table.delete("true", **options)


def _analyze(question: Question) -> None:
    """ANALYZE TABLE: counts of rows and bytes are in manifests, so that NOSCAN finds them there."""
    place, table, branch = question.target()
    told = question.told
    if told.get("partition"):
        raise UnsupportedError(
            f"Cannot analyze a partition of {place}: statistics are of whole tables",
            hint=f"Leave PARTITION out; {place}.partitions has counts of each.",
        )
    if branch is not None:
        raise UnsupportedError(f"Cannot analyze the branch {branch!r} of {place}: statistics are of the table")
    if not told.get("noscan"):
        table.maintain.compute_table_stats(columns=told.get("columns"))


def _values(question: Question, told: Sequence[Mapping[str, Any]]) -> dict[str, Resolved]:
    return {quote(one["column"]): question.expression(one["value"]) for one in told}


def _update(question: Question) -> str:
    table, options = _target(question)
    if "where" in question.told:
        options["where"] = question.expression(question.told["where"])
    values = _values(question, question.told["values"])
    made = table.update(values, engine="spark", **options) if values else None
    return row_counts.updated(table, made)


def _merge(question: Question) -> str:
    _, table, branch = question.target()
    given = read_write_options(question.engine(), table, branch, question.told["options"])
    evolution = question.kept().evolution
    if evolution is None:
        return row_counts.merged(_run_merge(question, said_table(table, given.said), given.arguments))
    with table.transaction() as changes:
        changes._run(evolution)
        made = _run_merge(question, said_table(changes, given.said), given.arguments)
    return row_counts.merged(made)


def _run_merge(question: Question, table: TableVerbs, options: Mapping[str, Any]) -> Snapshot | None:
    builder: Any = table.merge(question.frame(1), on=question.expression(question.told["on"]), **options)
    for one in question.told["clauses"]:
        condition = question.expression(one["where"]) if "where" in one else None
        clause = getattr(builder, f"when_{one['when']}")(condition)
        if one["do"] == "delete":
            builder = clause.delete()
        else:
            builder = getattr(clause, one["do"])(_values(question, one["values"]))
    made: Snapshot | None = builder.execute()
    return made


# Tables


def _create(question: Question) -> None:
    told, place = question.told, question.place
    existing = find_table(place)
    if existing is not None:
        # Others' changes since the query read the table are conflicts.
        of_itself = [one for one in question.read_tables() if one.metadata.table_uuid == existing.metadata.table_uuid]
        existing = hold(min([existing, *of_itself], key=lambda one: one.metadata.last_updated_ms))
    if existing is not None and not told.get("replaces"):
        if told.get("if-not-exists"):
            return
        raise TableAlreadyExistsError(f"Cannot create {place}: there is a table of that name")
    if existing is None and not told.get("creates", True):
        raise TableNotFoundError(
            f"Cannot replace {place}: there is no such table", hint="Use CREATE OR REPLACE TABLE to create it."
        )
    frame = None if "schema" in told else question.frame(0)
    if frame is None:
        schema = _schema_of(told["schema"])
    else:
        schema = optional_columns(question.engine().schema_of(frame))
    properties = dict(told["properties"])
    location = told.get("location") or properties.pop("location", None)
    provider = told.get("provider") or properties.pop("provider", None)
    comment = told.get("comment")
    if comment is not None:
        properties["comment"] = comment
    properties |= {key.removeprefix("option."): value for key, value in told.get("table-options", {}).items()}
    _check_layout(place, told["partitions"])
    statement = s.CreateTable(
        (place.lake_name, *place.name),
        (),
        tuple(_term(one) for one in told["partitions"]),
        provider,
        location,
        FrozenMap(properties),
        creates=told.get("creates", True),
        replaces=told.get("replaces", False),
    )
    options = told.get("options", {})
    if any(key.lower() == "branch" for key in options):
        raise InvalidRequestError(
            f"Cannot create {place} and write to a branch of it at once",
            hint="Leave the branch out; write to it when the table is there.",
        )
    properties_of_snapshot, said = create_options(question.engine(), options)
    create_with_schema(place, existing, statement, schema, frame, properties_of_snapshot, said)


def _schema_of(text: str) -> Schema:
    return from_spark_schema(schema_of_json(text))


_LAYOUTS = {
    "sorted_bucket": (
        "with sortBy: buckets of a lake's table are not sorted one by one",
        "Give the table a sort order: ALTER TABLE … WRITE ORDERED BY.",
    ),
    "cluster_by": ("with clusterBy: there is no clustering by columns", "Partition it, or give it a sort order."),
}


def _check_layout(place: Place, terms: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what Spark's writers may ask for and a table cannot be laid out by."""
    for one in terms:
        if one["name"] in _LAYOUTS:
            reason, hint = _LAYOUTS[one["name"]]
            raise UnsupportedError(f"Cannot create {place} {reason}", hint=hint)
        if one["name"] == "bucket" and len(one["arguments"]) > 2:
            raise UnsupportedError(
                f"Cannot create {place} with buckets of {len(one['arguments']) - 1} columns: a bucket is of one column",
                hint="Give each column a bucket of its own: partitionedBy(bucket(…, …), bucket(…, …)).",
            )


def _term(told: Mapping[str, Any]) -> str:
    arguments = [".".join(map(quote, one)) if isinstance(one, list) else str(one) for one in told["arguments"]]
    return arguments[0] if told["name"] == "identity" else f"{told['name']}({', '.join(arguments)})"


def _drop(question: Question) -> str | None:
    place = question.place
    if not place.lake.table_exists(place.name):
        return None
    place.lake.drop_table(place.name, purge=question.told.get("purge", False))
    return "true"


def _alter(question: Question) -> None:
    place, session = question.place, question.own_session()
    context = SqlContext(session, question.engine(session))
    alter_table(context, (place.lake_name, *place.name), question.told["changes"])


def _rename(question: Question) -> None:
    question.lake.rename_table(question.place.name, tuple(question.told["to"]))


# Statements that only lakes have, and those that lakes answer in words of their own.

_SHOWN = (
    s.DescribeFunction,
    s.ShowCurrentNamespace,
    s.DescribeNamespace,
    s.ShowNamespaces,
    s.ShowTables,
    s.ShowViews,
    s.DescribeTable,
    s.ShowCreateTable,
    s.ShowProperties,
    s.ShowColumns,
    s.ShowPartitions,
)


_NO_TABLE = (s.CreateNamespace, s.DropNamespace, s.AlterNamespace, s.CreateView, s.CreateTable, s.CreateTableLike)


def _parse(question: Question) -> str | None:
    told = question.told
    session = question.session(told["current"], told["namespace"])
    if not session.lakes:
        return None
    statement = _own_statement(told["text"], session)
    if statement is None:
        return None
    context = SqlContext(session, question.engine(session))
    found = run_statement(context, statement) if isinstance(statement, _SHOWN) else None
    ddl = "" if found is None else found.ddl
    columns = schema_of_ddl(ddl).json() if ddl else '{"type":"struct","fields":[]}'
    key = remember(_statements, (statement, found))
    told = {"key": key, "columns": columns, "shown": type(statement).__name__}
    changed = () if found is not None or isinstance(statement, _NO_TABLE) else getattr(statement, "name", ())
    place = session.find_place(changed)
    if place is not None:
        told |= {"catalog": place.lake_name, "name": place.name}
    return json.dumps(told)


def _own_statement(text: str, session: SqlSession) -> s.Statement | None:
    """Return a statement that a lake answers itself; None where Spark does, with the lake's tables."""
    statement = parse_statement(text, session.is_ours)
    return None if isinstance(statement, s.CreateTable) and statement.query is not None else statement


def _script(question: Question) -> str:
    told = question.told
    session = question.session(told["current"], told["namespace"])

    def is_ours(text: str) -> bool:
        try:
            return _own_statement(text, session) is not None
        except SqlSyntaxError:
            # It is said when the statement is run.
            return True

    return script_for_spark(told["text"], is_ours) if session.lakes else told["text"]


def _statement(question: Question) -> Any:
    told = question.told
    statement, found = _statements[told["key"]]
    session = question.session(told["current"], told["namespace"])
    if found is None:
        found = run_statement(SqlContext(session, question.engine(session)), statement)
    if not found.columns:
        return None
    return question.spark.createDataFrame(list(found.rows), found.ddl)._jdf


_VERBS: dict[str, Callable[[Question], Any]] = {
    "source": _source,
    "no-lake": _refuse_name,
    "load": _load,
    "table-exists": _table_exists,
    "list-tables": _list_tables,
    "list-namespaces": _list_namespaces,
    "namespace": _namespace,
    "create-namespace": _create_namespace,
    "alter-namespace": _alter_namespace,
    "drop-namespace": _drop_namespace,
    "read": _read,
    "append": lambda question: _write(question, "append"),
    "overwrite": lambda question: _write(question, "overwrite"),
    "overwrite-partitions": lambda question: _write(question, "overwrite-partitions"),
    "delete": _delete,
    "truncate": _truncate,
    "analyze": _analyze,
    "update": _update,
    "evolve": _evolve,
    "merge": _merge,
    **system.VERBS,
    "create": _create,
    "alter": _alter,
    "drop": _drop,
    "rename": _rename,
    "parse": _parse,
    "script": _script,
    "evolution-as-option": lambda question: evolution_as_option(question.told["text"]),
    "statement": _statement,
    **STREAM_VERBS,
    **SINK_VERBS,
}
