"""What Python answers for tables that streams write to: one commit for each batch, which happens once.

    sink-open    a query is started: refuse what cannot be written to; options are known where it is named by its format
    sink-batch   the rows of a batch

A batch is named by its query and its number (`commit/once.py`), so that one that Spark runs again after a crash is
found done, whatever has expired since and whichever branch it is on. One that has the name of another, because the
checkpoint is a copy that went another way, is refused. Output modes: `append` adds the rows, `complete`
replaces all rows, `update` replaces rows by their keys and adds the others.

The table is loaded anew for each batch. A batch that meets another writer's change of the same rows is written again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from frazil.commit.once import Once, diverged_epoch_error, find_done
from frazil.commit.read_ahead import read_ahead
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.lake.sql_session import FullName
from frazil.lake.table import Table, hold
from frazil.lake.write_overrides import WriteOverrides, with_overrides
from frazil.sessions.question import Question, ResolvedName, checked_target
from frazil.sessions.source_names import BY_PATH, check_path, find_relation
from frazil.sessions.stream_compaction import Compaction, compact_after, compaction_of
from frazil.sessions.write_options import once_of_options, read_write_options
from frazil.spark.change.resolved import schema_of_json
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.options import STREAM_WRITE_OPTIONS
from frazil.spec.properties import (
    SPARK_ACCEPT_ANY_SCHEMA,
    SPARK_FANOUT_ENABLED,
    WRITE_DISTRIBUTION_MODE,
    read_property,
)
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot

UPSERT_KEYS = "upsert-keys"
_TRIES = 10
_WAIT_SECONDS = 0.2


def _target(question: Question) -> tuple[FullName, Table, str | None]:
    """Return the table that a stream writes to, as it is now, and the branch that its name carries."""
    full_name = question.full_name
    relation = checked_target(ResolvedName(find_relation(question.own_session(), full_name), full_name))
    check_path(relation, question.payload["options"] or {})
    table = relation.table
    uuid = question.payload["uuid"]
    if uuid is not None and table.metadata.table_uuid != uuid:
        raise InvalidRequestError(
            f"Cannot go on streaming to {full_name}: another table has taken its name since the query was started",
            hint="Start the query again to write to the new table.",
        )
    return relation.full_name, table, relation.state.branch


def _open(question: Question) -> None:
    """Refuse what cannot be written to when the query is started, and not when its first batch comes."""
    if question.full_name.name[0] == BY_PATH:
        raise InvalidRequestError(
            f"Cannot stream to {question.full_name.name[-1]!r}: it is a path, and only tables of a catalog are written",
            hint="Give the table's name in its lake.",
        )
    full_name, table, _ = _target(question)
    if question.payload["options"] is not None:
        _check_options(full_name, STREAM_WRITE_OPTIONS.check(question.payload["options"]))
    if read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        return
    known = {field.name.lower() for field in table.schema.fields}
    names = [field.name for field in schema_of_json(question.payload["columns"]).fields]
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise InvalidRequestError(
            f"Cannot stream to {full_name}: the table has no column {unknown[0]!r}",
            hint=f"Its columns are: {', '.join(field.name for field in table.schema.fields)}.",
        )


def _batch(question: Question) -> None:
    payload = question.payload
    full_name, table, branch = _target(question)
    options = STREAM_WRITE_OPTIONS.check(payload["options"])
    compaction = _check_options(full_name, options)
    asked = read_write_options(question.spark, table, branch, options, STREAM_WRITE_OPTIONS)
    once = Once(payload["query"], payload["batch"], is_epoch=True, input_digest=payload["input"])
    given = {**asked.arguments, "once": once}
    said = asked.said
    if read_property({**table.properties, **said.properties}, SPARK_FANOUT_ENABLED):
        said = replace(said, properties=FrozenMap({WRITE_DISTRIBUTION_MODE.name: "none", **said.properties}))
    write = _writer(question, full_name, said, options, given)
    done = find_done(table.metadata, given.get("branch") or MAIN_BRANCH, once)
    if done is not None and done.version != once.version and not question.frame(0).isEmpty():
        # Later ones are there, and what this one was is not known any more; one without rows left nothing.
        raise diverged_epoch_error(once)
    made = _patiently(write, table)
    if made is not None and payload["mode"] == "append":
        read_ahead(table.state, made, table._cache)
    _compact(question, table, given, made, compaction)


def _check_options(full_name: FullName, options: Mapping[str, str]) -> Compaction | None:
    """Refuse options that contradict each other; return what they say about compaction."""
    if once_of_options(options) is not None:
        raise InvalidRequestError(
            f"Cannot stream to {full_name} with once-application: batches of a stream are known by their query",
            hint="Leave the options out; in foreachBatch they say which write it is.",
        )
    return compaction_of(full_name, options)


def _compact(
    question: Question, table: Table, given: Mapping[str, Any], made: Snapshot | None, compaction: Compaction | None
) -> None:
    if compaction is not None:
        compact_after(question.payload["query"], table, given.get("branch"), made, compaction)


def _writer(
    question: Question,
    full_name: FullName,
    said: WriteOverrides,
    options: Mapping[str, str],
    given: Mapping[str, Any],
) -> Callable[[Table], Snapshot | None]:
    mode, frame = question.payload["mode"], question.frame(0)

    def write(table: Table) -> Snapshot | None:
        target, merges = with_overrides(table, said), _merges_schema(full_name, table, options)
        if mode == "append":
            return target.append(frame, merge_schema=merges, **given)
        if mode == "complete":
            return target.overwrite(frame, merge_schema=merges, **given)
        if merges:
            raise InvalidRequestError(f"Cannot stream to {full_name} in update mode and change its schema")
        return target.upsert(frame, _keys(full_name, table, options), engine="spark", **given)

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
    """Return the columns by which rows of a batch replace those of the table."""
    if UPSERT_KEYS in options:
        return [piece.strip() for piece in options[UPSERT_KEYS].split(",")]
    schema = table.schema
    found = [schema.name_of(field_id) for field_id in sorted(schema.identifier_field_ids)]
    if not found:
        raise InvalidRequestError(
            f"Cannot stream to {full_name} in update mode: no key columns are known",
            hint=f'Give the table identifier fields, or the option {UPSERT_KEYS}: "id, day".',
        )
    return found


def _patiently(write: Callable[[Table], Snapshot | None], table: Table) -> Snapshot | None:
    """Write to a table that was just loaded; where others changed the same rows meanwhile, again on what they made."""
    for turn in range(1, _TRIES):
        try:
            return write(hold(table))
        except ConcurrentChangeError:
            time.sleep(_WAIT_SECONDS * turn)
            table = table.refresh()
    return write(hold(table))


SINK_VERBS: dict[str, Callable[[Question], Any]] = {"sink-open": _open, "sink-batch": _batch}
