"""Handles requests for tables that streams write to: one commit per batch, exactly once.

A batch is identified by its query and its number (`commit/once.py`), so that a batch repeated by Spark after a crash is
recognized as done, whatever has expired since and whichever branch it is on. A batch of the same number from a copied
checkpoint that has diverged is refused. Output modes: `append` adds the rows, `complete`
replaces all rows, `update` replaces rows by their keys and adds the others.

The table is loaded again for each batch. A batch that conflicts with another writer's change is retried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frazil.commit.once import Once, diverged_epoch_error, find_done
from frazil.commit.read_ahead import read_ahead
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.jar.options import STREAM_WRITE_OPTIONS
from frazil.sessions import requests as r
from frazil.sessions.context import Context, Reply, checked_target, full_name_of, handler, own_names
from frazil.sessions.resolved_name import ResolvedName
from frazil.sessions.source_names import BY_PATH, check_path, find_relation
from frazil.sessions.stream_compaction import Compaction, Compactions, compaction_of
from frazil.sessions.write_options import once_of_options, read_write_options
from frazil.spark.change.resolved import schema_of_json
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import (
    SPARK_ACCEPT_ANY_SCHEMA,
    SPARK_FANOUT_ENABLED,
    WRITE_DISTRIBUTION_MODE,
    read_property,
)
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.table.sql_session import FullName
from frazil.table.table import Table, hold
from frazil.table.writable import with_overrides
from frazil.verbs.write_overrides import WriteOverrides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UPSERT_KEYS = "upsert-keys"
_TRIES = 10
_WAIT_SECONDS = 0.2


def _target(request: r.OfSink, options: Mapping[str, str]) -> tuple[FullName, Table, str | None]:
    """Return the current table that a stream writes to, and the branch in its name."""
    full_name = full_name_of(request)
    relation = checked_target(ResolvedName(find_relation(own_names(request), full_name), full_name))
    check_path(relation, options)
    table = relation.table
    if request.uuid is not None and table.metadata.table_uuid != request.uuid:
        raise InvalidRequestError(
            f"Cannot continue to stream to {full_name}: another table has replaced it since the query was started",
            hint="Start the query again to write to the new table.",
        )
    return relation.full_name, table, relation.state.branch


def _open(request: r.SinkOpen, context: Context) -> Reply:
    """Refuse unsuitable targets when the query is started, before its first batch."""
    if request.name[0] == BY_PATH:
        raise InvalidRequestError(
            f"Cannot stream to {request.name[-1]!r}: it is a path, and only catalog tables can be written",
            hint="Use the table's name in its lake.",
        )
    full_name, table, _ = _target(request, request.options or {})
    if request.options is not None:
        _check_options(full_name, STREAM_WRITE_OPTIONS.check(request.options))
    if read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        return
    column_names = {field.name.lower() for field in table.schema.fields}
    names = [field.name for field in schema_of_json(request.columns).fields]
    unknown = [name for name in names if name.lower() not in column_names]
    if unknown:
        raise InvalidRequestError(
            f"Cannot stream to {full_name}: the table has no column {unknown[0]!r}",
            hint=f"Its columns are: {', '.join(field.name for field in table.schema.fields)}.",
        )


def _batch(request: r.SinkBatch, context: Context) -> Reply:
    full_name, table, branch = _target(request, request.options)
    options = STREAM_WRITE_OPTIONS.check(request.options)
    compaction = _check_options(full_name, options)
    write_options = read_write_options(context.spark, table, branch, options, STREAM_WRITE_OPTIONS)
    once = Once(request.query, request.batch, is_epoch=True, input_digest=request.input)
    arguments = {**write_options.arguments, "once": once}
    overrides = write_options.overrides
    if read_property({**table.properties, **overrides.properties}, SPARK_FANOUT_ENABLED):
        properties = FrozenMap({WRITE_DISTRIBUTION_MODE.name: "none", **overrides.properties})
        overrides = replace(overrides, properties=properties)
    write = _writer(request, context.frame(0), full_name, overrides, options, arguments)
    done = find_done(table.metadata, arguments.get("branch") or MAIN_BRANCH, once)
    if done is not None and done.version != once.version and not context.frame(0).isEmpty():
        # Later batches are committed, and this one is no longer recorded; an empty one leaves no record.
        raise diverged_epoch_error(once)
    snapshot = _retrying(write, table)
    if snapshot is not None and request.mode == "append":
        read_ahead(table.state, snapshot, table._cache)
    if compaction is not None:
        compactions = context.remembered.compactions.recall(request.query, Compactions)
        compactions.count(table, arguments.get("branch"), snapshot, compaction)


def _check_options(full_name: FullName, options: Mapping[str, str]) -> Compaction | None:
    """Refuse contradictory options; return the compaction that they configure."""
    if once_of_options(options) is not None:
        raise InvalidRequestError(
            f"Cannot stream to {full_name} with once-application: batches of a stream are identified by their query",
            hint="Omit the options; they identify writes in foreachBatch.",
        )
    return compaction_of(full_name, options)


def _writer(
    request: r.SinkBatch,
    frame: DataFrame,
    full_name: FullName,
    overrides: WriteOverrides,
    options: Mapping[str, str],
    arguments: Mapping[str, Any],
) -> Callable[[Table], Snapshot | None]:
    def write(table: Table) -> Snapshot | None:
        target, merges = with_overrides(table, overrides), _merges_schema(full_name, table, options)
        if request.mode == "append":
            return target.append(frame, merge_schema=merges, **arguments)
        if request.mode == "complete":
            return target.overwrite(frame, merge_schema=merges, **arguments)
        if merges:
            raise InvalidRequestError(f"Cannot stream to {full_name} in update mode and change its schema")
        return target.upsert(frame, _keys(full_name, table, options), engine="spark", **arguments)

    return write


def _merges_schema(full_name: FullName, table: Table, options: Mapping[str, str]) -> bool:
    merges = any(options.get(option, "").strip().lower() == "true" for option in ("mergeschema", "merge-schema"))
    if merges and not read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        raise InvalidRequestError(
            f"Cannot change the schema of {full_name} with a stream: the table does not allow it",
            hint="Set write.spark.accept-any-schema=true.",
        )
    return merges


def _keys(full_name: FullName, table: Table, options: Mapping[str, str]) -> list[str]:
    """Return the columns that identify the rows of the table which a batch replaces."""
    if UPSERT_KEYS in options:
        return [piece.strip() for piece in options[UPSERT_KEYS].split(",")]
    schema = table.schema
    columns = [schema.name_of(field_id) for field_id in sorted(schema.identifier_field_ids)]
    if not columns:
        raise InvalidRequestError(
            f"Cannot stream to {full_name} in update mode: no key columns are defined",
            hint=f'Set identifier fields of the table, or the option {UPSERT_KEYS}: "id, day".',
        )
    return columns


def _retrying(write: Callable[[Table], Snapshot | None], table: Table) -> Snapshot | None:
    """Write to a newly loaded table; retry on the new state if the same rows changed meanwhile."""
    for turn in range(1, _TRIES):
        try:
            return write(hold(table))
        except ConcurrentChangeError:
            time.sleep(_WAIT_SECONDS * turn)
            table = table.refresh()
    return write(hold(table))


SINK_HANDLERS = dict((handler(r.SinkOpen, _open), handler(r.SinkBatch, _batch)))
