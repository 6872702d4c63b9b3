"""Change feeds in Spark's forms: `CHANGES FROM VERSION …`, `spark.read.changes`, and the option readChangeFeed.

Spark 4.2 and later have syntax for it. In all versions, read options have the same effect:

    spark.read.option("readChangeFeed", "true").option("startingVersion", 3).table("lake.db.t")
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.jar.options import CHANGE_FEED_OPTIONS
from frazil.scan.change_window import ChangeRange, change_window, find_version
from frazil.scan.choose_snapshot import SnapshotChoice, choose_snapshot
from frazil.sessions import requests as r
from frazil.sessions.stream_options import update_identifiers
from frazil.spark.read.relation import ReadRequest
from frazil.spark.stream.source_frames import StreamColumns, changed_rows, stream_schema
from frazil.table.point_in_time import milliseconds_of
from frazil.table.sql_session import CURRENT, Relation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEED_OPTION = "readchangefeed"
_NONE, _DROP, _NET = "none", "dropcarryovers", "netchanges"
_MODES = {_NONE: "none", _DROP: "dropCarryovers", _NET: "netChanges"}


def find_changes(request: r.Load, time_zone: str) -> r.Changes | None:
    """Return the change feed requested by Spark's syntax or by options, or None."""
    if request.changes is not None:
        return request.changes
    lower_options = {key.lower(): value for key, value in request.options.items()}
    if lower_options.get(FEED_OPTION, "false").lower() != "true":
        return None
    versions = [option for option in ("startingversion", "endingversion") if option in lower_options]
    times = [option for option in ("startingtimestamp", "endingtimestamp") if option in lower_options]
    if versions and times:
        raise InvalidRequestError("Cannot read changes by versions and by times at once: use one of them")
    if (versions or times) and not any(option in lower_options for option in ("startingversion", "startingtimestamp")):
        raise InvalidRequestError(
            f"Cannot read changes with {(versions or times)[0]} alone: the start is missing",
            hint="Set startingVersion or startingTimestamp; version 0 is before the first snapshot.",
        )
    return r.Changes(
        start_version=lower_options.get("startingversion"),
        end_version=lower_options.get("endingversion"),
        start_us=_micros(lower_options, "startingtimestamp", time_zone),
        end_us=_micros(lower_options, "endingtimestamp", time_zone),
        has_start=_flag(lower_options, "startingboundinclusive", default=True),
        has_end=_flag(lower_options, "endingboundinclusive", default=True),
        deduplication=lower_options.get("deduplicationmode", _DROP),
        updates=_flag(lower_options, "computeupdates", default=False),
    )


def changes_frame(spark: SparkSession, relation: Relation, changes: r.Changes, options: Mapping[str, str]) -> DataFrame:
    """Return the changes of a table's rows as a DataFrame."""
    CHANGE_FEED_OPTIONS.check(options)
    _check_state(relation)
    table, state = relation.table, relation.state
    metadata = table.metadata
    head, _ = choose_snapshot(metadata, SnapshotChoice(ref=state.branch))
    window = change_window(
        metadata,
        None if head is None else head.snapshot_id,
        ChangeRange(
            changes.start_version,
            changes.end_version,
            changes.start_us,
            changes.end_us,
            changes.has_start,
            changes.has_end,
        ),
    )
    schema = metadata.current_schema
    mode = _mode(changes)
    identifiers = update_identifiers(schema, _identifiers(options), computes=changes.updates)
    if mode == _NONE and identifiers:
        raise InvalidRequestError(
            "Cannot compute updates with deduplicationMode none: rows that were merely copied would be updates",
            hint="Omit deduplicationMode, or use netChanges.",
        )
    if not window.snapshot_ids:
        return spark.createDataFrame([], stream_schema(StreamColumns(schema, has_changes=True), spark))
    snapshot = metadata.snapshot(window.snapshot_ids[-1])
    return changed_rows(
        spark,
        ReadRequest(table.state, snapshot, schema, schema, cache=table._cache),
        window.changelog,
        window.snapshot_ids,
        identifiers,
        keeps_copies=mode == _NONE,
        is_net=mode == _NET,
    )


def stream_options_of(relation: Relation, changes: r.Changes, options: Mapping[str, str]) -> dict[str, str]:
    """Return the equivalent options of a stream."""
    _check_state(relation)
    mode = _mode(changes)
    if mode == _NET:
        raise UnsupportedError(
            "Cannot stream net changes: a stream never ends, so the net result is unknown",
            hint="Omit deduplicationMode, and fold the changes in the query.",
        )
    if changes.end_version is not None or changes.end_us is not None:
        raise InvalidRequestError("Cannot stream changes up to an end: a stream has no end")
    stream_options = {"streaming-changes": "changes", "deduplicationMode": _MODES[mode]}
    stream_options["compute-updates"] = "true" if changes.updates else "false"
    version, time_us = changes.start_version, changes.start_us
    if version is not None:
        metadata = relation.table.metadata
        head, _ = choose_snapshot(metadata, SnapshotChoice(ref=relation.state.branch))
        snapshot = find_version(metadata, None if head is None else head.snapshot_id, version)
        within = "stream-from-snapshot" if changes.has_start else "stream-after-snapshot"
        stream_options |= (
            {"stream-from-snapshot": "earliest"} if snapshot is None else {within: str(snapshot.snapshot_id)}
        )
    if time_us is not None:
        is_whole = time_us % 1000 == 0
        stream_options["stream-from-timestamp"] = str(time_us // 1000 + (0 if is_whole and changes.has_start else 1))
    shared_options = {key: value for key, value in options.items() if key.lower() in _SHARED}
    return {**shared_options, **stream_options}


_SHARED = {
    *("identifier-columns", "split-size", "file-open-cost", "stream-guard", "branch"),
    *("streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"),
    "streaming-max-bytes-per-micro-batch",
}


def _check_state(relation: Relation) -> None:
    if relation.metadata_table is not None:
        raise InvalidRequestError(
            f"Cannot read changes of {relation.full_name}.{relation.metadata_table}: it is a metadata table"
        )
    if relation.state != CURRENT and relation.state != replace(CURRENT, branch=relation.state.branch):
        raise InvalidRequestError(
            f"Cannot read changes of {relation.full_name} in one state: changes are the difference between states",
            hint="Set the range by versions or times.",
        )


def _mode(changes: r.Changes) -> str:
    mode = changes.deduplication.lower()
    if mode not in _MODES:
        raise InvalidRequestError(
            f"Cannot use {mode[:60]!r} as deduplicationMode: it must be one of {', '.join(_MODES.values())}"
        )
    return mode


def _identifiers(options: Mapping[str, str]) -> tuple[str, ...] | None:
    text = next((value for key, value in options.items() if key.lower() == "identifier-columns"), None)
    return None if text is None else tuple(piece.strip() for piece in text.split(","))


def _micros(options: Mapping[str, str], name: str, time_zone: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        parsed = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequestError(
            f"Cannot use {text[:60]!r} as {name}: it is not a time", hint="Write 2026-06-01 12:00:00."
        ) from None
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=ZoneInfo(time_zone))
    return milliseconds_of(aware) * 1000 + aware.microsecond % 1000


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    word = options.get(name, str(default)).lower()
    if word not in ("true", "false"):
        raise InvalidRequestError(f"Cannot use {word[:60]!r} as {name}: it must be true or false")
    return word == "true"
