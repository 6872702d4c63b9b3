"""Handles requests that change the rows of a table, by the verb of the same name, or the table itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from frazil.change_rows.merge_clauses import MergeClause
from frazil.errors import (
    InvalidRequestError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.sessions import requests as r
from frazil.sessions import row_counts
from frazil.sessions.alter_table import alter_table
from frazil.sessions.context import Context, Reply, full_name_of, handler, lake_of, own_names
from frazil.sessions.run_ddl import create_with_schema, find_table, optional_columns
from frazil.sessions.sql_context import SqlContext, with_owner
from frazil.sessions.write_options import WriteOptions, by_place, create_options, read_write_options
from frazil.spark.change.resolved import Resolved, schema_of_json
from frazil.spark.types import from_spark_schema
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.spec.snapshot import Snapshot
from frazil.sql import statements as s
from frazil.sql.quote_names import quote
from frazil.table.sql_session import FullName
from frazil.table.table import Table, hold
from frazil.table.writable import Writable, with_overrides


def _append(request: r.Append, context: Context) -> Reply:
    return _write(request, context, lambda table, frame, arguments: table.append(frame, **arguments))


def _overwrite(request: r.Overwrite, context: Context) -> Reply:
    where = context.expression(request.where)
    condition: dict[str, Any] = {} if where.sql_text == "true" else {"where": where}
    return _write(
        request,
        context,
        lambda table, frame, arguments: table.overwrite(frame, **condition, **arguments),
        lambda table, frame, arguments: table.overwrite_partitions(frame, **arguments),
    )


def _overwrite_partitions(request: r.OverwritePartitions, context: Context) -> Reply:
    return _write(request, context, lambda table, frame, arguments: table.overwrite_partitions(frame, **arguments))


_Verb = Callable[[Writable, Any, dict[str, Any]], Snapshot | None]


def _write(request: r.Write, context: Context, verb: _Verb, if_dynamic: _Verb | None = None) -> Reply:
    full_name, table, branch = context.target(request, request.reads, request.statement)
    options = read_write_options(context.spark, table, branch, request.options)
    frame = context.frame(1)
    merges = request.evolves or options.merges_schema
    if merges and not request.evolves and not read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        raise InvalidRequestError(
            f"Cannot change the schema of {full_name} with a write: the table does not allow it",
            hint="Set write.spark.accept-any-schema=true.",
        )
    if not request.by_name and request.any_schema:
        frame = by_place(frame, table.schema.fields, full_name, may_differ=merges)
    run = if_dynamic if options.is_dynamic and if_dynamic is not None else verb
    snapshot = run(with_overrides(table, options.overrides), frame, {"merge_schema": merges, **options.arguments})
    return r.encode(row_counts.inserted(snapshot))


def _target(request: r.Change, context: Context) -> tuple[Writable, dict[str, Any]]:
    """Return the table of a change with its overrides, and the arguments of the verb."""
    table, options = _table_and_options(request, context)
    return with_overrides(table, options.overrides), options.arguments


def _table_and_options(request: r.Change, context: Context) -> tuple[Table, WriteOptions]:
    _, table, branch = context.target(request, request.reads)
    return table, read_write_options(context.spark, table, branch, request.options)


def _delete(request: r.Delete, context: Context) -> Reply:
    table, arguments = _target(request, context)
    snapshot = table.delete(context.expression(request.where), engine="spark", **arguments)
    return r.encode(row_counts.affected(snapshot))


def _truncate(request: r.Truncate, context: Context) -> Reply:
    _, table, branch = context.target(request)
    options = read_write_options(context.spark, table, branch)
    target = with_overrides(table, options.overrides)
    target.delete("true", **options.arguments)


def _analyze(request: r.Analyze, context: Context) -> Reply:
    """ANALYZE TABLE: counts of rows and bytes are in manifests, so NOSCAN has nothing to compute."""
    full_name, table, branch = context.target(request)
    if request.partition:
        raise UnsupportedError(
            f"Cannot analyze a partition of {full_name}: statistics cover whole tables",
            hint=f"Omit PARTITION; {full_name}.partitions has counts of each.",
        )
    if branch is not None:
        raise UnsupportedError(f"Cannot analyze the branch {branch!r} of {full_name}: statistics cover the table")
    if not request.noscan:
        table.maintain.compute_table_stats(columns=None if request.columns is None else list(request.columns))


def _values(assignments: Sequence[r.Assignment], context: Context) -> dict[str, Resolved]:
    return {quote(assignment.column): context.expression(assignment.value) for assignment in assignments}


def _update(request: r.Update, context: Context) -> Reply:
    table, arguments = _target(request, context)
    if request.where is not None:
        arguments["where"] = context.expression(request.where)
    values = _values(request.values, context)
    snapshot = table.update(values, engine="spark", **arguments) if values else None
    return r.encode(row_counts.affected(snapshot))


def _merge(request: r.Merge, context: Context) -> Reply:
    table, options = _table_and_options(request, context)

    def run(target: Writable) -> Snapshot | None:
        on = context.expression(request.on)
        merge = with_overrides(target, options.overrides).merge(context.frame(1), on=on, **options.arguments)
        for clause in request.clauses:
            condition = None if clause.where is None else context.expression(clause.where)
            values = None if clause.do == "delete" else _values(clause.values, context)
            merge._add(MergeClause(clause.when, clause.do, condition, values))
        return merge.execute()

    evolution = context.table(request).evolution
    if evolution is None:
        return r.encode(row_counts.merged(run(table)))
    with table.transaction() as changes:
        changes._run(evolution)
        snapshot = run(changes)
    return r.encode(row_counts.merged(snapshot))


def _create(request: r.Create, context: Context) -> Reply:
    full_name = full_name_of(request)
    existing = find_table(full_name)
    if existing is not None:
        # Changes by others since the query read the table are conflicts.
        of_itself = [
            table
            for table in context.tables_read(request.reads)
            if table.metadata.table_uuid == existing.metadata.table_uuid
        ]
        existing = hold(min([existing, *of_itself], key=lambda table: table.metadata.last_updated_ms))
    if existing is not None and not request.replaces:
        if request.if_not_exists:
            return
        raise TableAlreadyExistsError(f"Cannot create {full_name}: there is a table of that name")
    if existing is None and not request.creates:
        raise TableNotFoundError(
            f"Cannot replace {full_name}: there is no such table", hint="Use CREATE OR REPLACE TABLE to create it."
        )
    frame = None if request.schema is not None else context.frame(0)
    if request.schema is not None:
        schema = from_spark_schema(schema_of_json(request.schema))
    else:
        schema = optional_columns(context.engine().schema_of(frame))
    properties = dict(request.properties)
    location = request.location or properties.pop("location", None)
    provider = request.provider or properties.pop("provider", None)
    if request.comment is not None:
        properties["comment"] = request.comment
    properties |= {key.removeprefix("option."): value for key, value in request.table_options.items()}
    _check_layout(full_name, request.partitions)
    statement = s.CreateTable(
        (full_name.lake_name, *full_name.name),
        (),
        tuple(_term(term) for term in request.partitions),
        provider,
        location,
        with_owner(FrozenMap(properties), context.engine()),
        creates=request.creates,
        replaces=request.replaces,
    )
    if any(key.lower() == "branch" for key in request.options):
        raise InvalidRequestError(
            f"Cannot create {full_name} and write to a branch of it at once",
            hint="Omit the branch; write to it once the table exists.",
        )
    snapshot_properties, overrides = create_options(context.spark, request.options)
    create_with_schema(full_name, existing, statement, schema, frame, snapshot_properties, overrides)


_LAYOUTS = {
    "sorted_bucket": (
        "with sortBy: buckets cannot be sorted individually",
        "Set a sort order: ALTER TABLE … WRITE ORDERED BY.",
    ),
    "cluster_by": ("with clusterBy: clustering by columns is not supported", "Partition it, or set a sort order."),
}


def _check_layout(full_name: FullName, terms: Sequence[r.Term]) -> None:
    """Refuse layouts of Spark's writers that the format does not have."""
    for term in terms:
        if term.name in _LAYOUTS:
            reason, hint = _LAYOUTS[term.name]
            raise UnsupportedError(f"Cannot create {full_name} {reason}", hint=hint)
        if term.name == "bucket" and len(term.arguments) > 2:
            raise UnsupportedError(
                f"Cannot create {full_name} with buckets of {len(term.arguments) - 1} columns: a bucket has one column",
                hint="Use a separate bucket for each column: partitionedBy(bucket(…, …), bucket(…, …)).",
            )


def _term(term: r.Term) -> str:
    arguments = [
        ".".join(map(quote, argument)) if isinstance(argument, tuple) else str(argument) for argument in term.arguments
    ]
    return arguments[0] if term.name == "identity" else f"{term.name}({', '.join(arguments)})"


def _drop(request: r.Drop, context: Context) -> Reply:
    lake = lake_of(request)
    if not lake.table_exists(request.name):
        return None
    lake.drop_table(request.name, purge=request.purge)
    return "true"


def _alter(request: r.Alter, context: Context) -> Reply:
    names = own_names(request)
    alter_table(SqlContext(names, context.engine(names)), (request.catalog, *request.name), request.changes)


def _rename(request: r.Rename, context: Context) -> Reply:
    lake_of(request).rename_table(request.name, request.to)


WRITE_HANDLERS = dict(
    (
        handler(r.Append, _append),
        handler(r.Overwrite, _overwrite),
        handler(r.OverwritePartitions, _overwrite_partitions),
        handler(r.Delete, _delete),
        handler(r.Truncate, _truncate),
        handler(r.Analyze, _analyze),
        handler(r.Update, _update),
        handler(r.Merge, _merge),
        handler(r.Create, _create),
        handler(r.Alter, _alter),
        handler(r.Drop, _drop),
        handler(r.Rename, _rename),
    )
)
