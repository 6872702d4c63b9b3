"""Turns read options, as in `spark.read.option(...)`, into a scan. Accepts both spellings that Iceberg Java has had.

    snapshot-id, versionAsOf            a snapshot ID; versionAsOf also accepts the name of a branch or tag
    as-of-timestamp                     milliseconds from 1970
    timestampAsOf                       a time as text, by default in the session's time zone
    branch, tag                         a reference
    start-snapshot-id, end-snapshot-id  the rows appended after the former, up to and including the latter
    split-size, file-open-cost          how files are split and combined, in bytes
    lookback                            the number of groups kept open while files are combined

For changes of rows, the window is `start-snapshot-id` or `start-timestamp`, and `end-snapshot-id` or `end-timestamp`,
with times in milliseconds from 1970; by default it starts with the oldest snapshot and ends now.

Names are case-insensitive, as in Spark. `jar/options.py` lists the options that are honoured, refused or ignored with a
warning.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import replace

from frazil.errors import InvalidRequestError
from frazil.expr.predicates import Predicate
from frazil.jar.options import READ_OPTIONS, OptionList
from frazil.loaded import LoadedTable
from frazil.scan.changelog import changelog_between
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, choose_snapshot
from frazil.scan.incremental import Appends
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.iso8601 import parse_timestamp
from frazil.spec.properties import SPLIT_LOOKBACK
from frazil.table.scan import DEFAULT_OPTIONS, Scan, ScanOptions, scan_table

_STATES = ("snapshot-id", "as-of-timestamp", "versionasof", "timestampasof", "branch", "tag")
_WINDOW = ("start-snapshot-id", "end-snapshot-id")
_CHANGES_ONLY = ("start-timestamp", "end-timestamp")


def scan_with_options(
    table: LoadedTable,
    options: Mapping[str, object],
    *,
    predicate: Predicate | str | None = None,
    columns: Sequence[str] | None = None,
    case_sensitive: bool = True,
    time_zone: str = "UTC",
    choice: SnapshotChoice = CURRENT,
    scan_options: ScanOptions = DEFAULT_OPTIONS,
    option_list: OptionList = READ_OPTIONS,
) -> Scan:
    """Return the scan for read options; refuse contradictory ones, and options for a state if one is chosen."""
    checked = option_list.check(options)
    table = _with_lookback(table, checked)
    states = [name for name in _STATES if name in checked]
    window = [name for name in _WINDOW if name in checked]
    _check(states, window, checked, is_chosen=choice != CURRENT)
    if states:
        choice = _choice_of(table, states[0], checked[states[0]], time_zone)
    scan = scan_table(
        table,
        predicate,
        columns=columns,
        snapshot_id=choice.snapshot_id,
        as_of=choice.as_of_ms,
        ref=choice.ref,
        case_sensitive=case_sensitive,
        options=replace(
            scan_options,
            split_bytes=_size(checked, "split-size", scan_options.split_bytes),
            open_file_cost_bytes=_size(checked, "file-open-cost", scan_options.open_file_cost_bytes),
        ),
    )
    if not window:
        return scan
    end = _whole(checked, "end-snapshot-id") if "end-snapshot-id" in checked else None
    appends_scan = replace(scan, appends=Appends(_whole(checked, "start-snapshot-id"), end))
    # Planning refuses unsuitable snapshots in the window right away.
    appends_scan.plan()
    return appends_scan


def scan_changes(
    table: LoadedTable,
    options: Mapping[str, object],
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    scan_options: ScanOptions = DEFAULT_OPTIONS,
) -> Scan:
    """Return the scan of the rows that snapshots added and removed; a chosen state is the end of the window."""
    checked = READ_OPTIONS.check(options)
    table = _with_lookback(table, checked)
    window = {name: _whole(checked, name) for name in (*_WINDOW, *_CHANGES_ONLY) if name in checked}
    end = window.get("end-snapshot-id")
    if choice != CURRENT:
        end_options = [name for name in window if name.startswith("end-")]
        if end_options:
            raise InvalidRequestError(
                f"Cannot read changes up to a state and with the option {end_options[0]} too: use one of them"
            )
        chosen = choose_snapshot(table.metadata, choice)[0]
        end = None if chosen is None else chosen.snapshot_id
    changelog = changelog_between(
        table.metadata,
        start_snapshot_id=window.get("start-snapshot-id"),
        end_snapshot_id=end,
        start_ms=window.get("start-timestamp"),
        end_ms=window.get("end-timestamp"),
    )
    scan = scan_table(
        table,
        columns=columns,
        options=replace(
            scan_options,
            split_bytes=_size(checked, "split-size", scan_options.split_bytes),
            open_file_cost_bytes=_size(checked, "file-open-cost", scan_options.open_file_cost_bytes),
        ),
    )
    changes_scan = replace(scan, changelog=changelog)
    # Planning refuses unsuitable snapshots in the window right away.
    changes_scan.plan()
    return changes_scan


def _with_lookback(table: LoadedTable, options: Mapping[str, str]) -> LoadedTable:
    if "lookback" not in options:
        return table
    properties = FrozenMap({**table.metadata.properties, SPLIT_LOOKBACK.name: options["lookback"].strip()})
    return replace(table, metadata=replace(table.metadata, properties=properties))


def _check(states: list[str], window: list[str], options: Mapping[str, str], *, is_chosen: bool) -> None:
    if is_chosen and (states or window):
        raise InvalidRequestError(
            f"Cannot read a table in a state and with the option {(states or window)[0]} too: use one of them"
        )
    if len(states) > 1:
        raise InvalidRequestError(
            f"Cannot read a table with the options {' and '.join(states)}: each selects a state",
            hint="Use one of them.",
        )
    if states and window:
        raise InvalidRequestError(
            f"Cannot read what was appended with the option {states[0]} too",
            hint="Omit it; end-snapshot-id sets the end.",
        )
    if window == ["end-snapshot-id"]:
        raise InvalidRequestError(
            "Cannot read what was appended up to end-snapshot-id: start-snapshot-id is missing",
            hint="Set the snapshot after which to begin.",
        )
    changes = [name for name in _CHANGES_ONLY if name in options]
    if changes:
        raise InvalidRequestError(
            f"Cannot read a table with the option {changes[0]}: it is for changes of rows only",
            hint="Use start-snapshot-id and end-snapshot-id, or read the table's changes.",
        )


def _choice_of(table: LoadedTable, name: str, text: str, time_zone: str) -> SnapshotChoice:
    """Return the state that an option selects."""
    if name == "snapshot-id":
        return SnapshotChoice(_whole({name: text}, name))
    if name == "as-of-timestamp":
        return SnapshotChoice(as_of_ms=_whole({name: text}, name))
    if name == "timestampasof":
        return SnapshotChoice(as_of_ms=_milliseconds(text, time_zone))
    if name == "versionasof" and text not in table.metadata.refs and text.strip().isdigit():
        return SnapshotChoice(int(text))
    ref = table.metadata.refs.get(text)
    if ref is not None and name in ("branch", "tag") and ref.type != name:
        raise InvalidRequestError(f"Cannot read {name} {text!r} of {table.name}: it is a {ref.type}")
    return SnapshotChoice(ref=text)


def _milliseconds(text: str, time_zone: str) -> int:
    parsed = parse_timestamp(text.strip().replace(" ", "T", 1))
    if parsed is None:
        parsed = parse_timestamp(f"{text.strip()}T00:00:00")
    if parsed is None:
        raise InvalidRequestError(
            f"Cannot use {text[:60]!r} as timestampAsOf: it is not a time", hint="Write 2024-06-01 12:00:00."
        )
    nanos, offset = parsed
    if offset is not None:
        return (nanos - offset * 10**9) // 1_000_000
    try:
        zone = zoneinfo.ZoneInfo(time_zone)
        local = datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(microseconds=nanos // 1000)
    except (zoneinfo.ZoneInfoNotFoundError, OverflowError, ValueError) as error:
        raise InvalidRequestError(
            f"Cannot use {text[:60]!r} as timestampAsOf in the zone {time_zone}: {error}",
            hint="Write a time with a zone: 2024-06-01T12:00:00Z.",
        ) from error
    return int((local - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1))


def _whole(options: Mapping[str, str], name: str) -> int:
    return int(options[name].strip())


def _size(options: Mapping[str, str], name: str, default: int | None) -> int | None:
    return _whole(options, name) if name in options else default
