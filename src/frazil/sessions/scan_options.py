"""Read options, as `spark.read.option(...)` takes them, to a scan. Both spellings where Iceberg Java changed them.

    snapshot-id, versionAsOf            a snapshot's id; versionAsOf takes the name of a branch or tag too
    as-of-timestamp                     milliseconds from 1970
    timestampAsOf                       a time as text, in the session's zone where it names none
    branch, tag                         a reference
    start-snapshot-id, end-snapshot-id  what was appended after the one, up to and with the other
    split-size, file-open-cost          how files are cut and packed, in bytes
    lookback                            groups that are kept open while files are packed

For changes of rows, the window is `start-snapshot-id` or `start-timestamp`, and `end-snapshot-id` or `end-timestamp`,
times in milliseconds from 1970; without a start it begins with the oldest snapshot, without an end it goes up to now.

Names are compared without regard to case, as Spark does. `jar/options.py` lists what is honoured, refused and warned
about.
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
    taken: OptionList = READ_OPTIONS,
) -> Scan:
    """Make the scan that read options ask for; refuse those that contradict each other, or a state that was chosen."""
    known = taken.check(options)
    table = _with_lookback(table, known)
    states = [name for name in _STATES if name in known]
    window = [name for name in _WINDOW if name in known]
    _check(states, window, known, is_chosen=choice != CURRENT)
    if states:
        choice = _choice_of(table, states[0], known[states[0]], time_zone)
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
            split_bytes=_size(known, "split-size", scan_options.split_bytes),
            open_file_cost_bytes=_size(known, "file-open-cost", scan_options.open_file_cost_bytes),
        ),
    )
    if not window:
        return scan
    end = _whole(known, "end-snapshot-id") if "end-snapshot-id" in known else None
    found = replace(scan, appends=Appends(_whole(known, "start-snapshot-id"), end))
    # Refuses now what the window's snapshots do not allow.
    found.plan()
    return found


def scan_changes(
    table: LoadedTable,
    options: Mapping[str, object],
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    scan_options: ScanOptions = DEFAULT_OPTIONS,
) -> Scan:
    """Make the scan of the rows that snapshots added and removed; a state that is chosen is the end of the window."""
    known = READ_OPTIONS.check(options)
    table = _with_lookback(table, known)
    window = {name: _whole(known, name) for name in (*_WINDOW, *_CHANGES_ONLY) if name in known}
    end = window.get("end-snapshot-id")
    if choice != CURRENT:
        named = [name for name in window if name.startswith("end-")]
        if named:
            raise InvalidRequestError(f"Cannot read changes up to a state and with the option {named[0]} too: give one")
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
            split_bytes=_size(known, "split-size", scan_options.split_bytes),
            open_file_cost_bytes=_size(known, "file-open-cost", scan_options.open_file_cost_bytes),
        ),
    )
    found = replace(scan, changelog=changelog)
    # Refuses now what the window's snapshots do not allow.
    found.plan()
    return found


def _with_lookback(table: LoadedTable, known: Mapping[str, str]) -> LoadedTable:
    if "lookback" not in known:
        return table
    properties = FrozenMap({**table.metadata.properties, SPLIT_LOOKBACK.name: known["lookback"].strip()})
    return replace(table, metadata=replace(table.metadata, properties=properties))


def _check(states: list[str], window: list[str], known: Mapping[str, str], *, is_chosen: bool) -> None:
    if is_chosen and (states or window):
        raise InvalidRequestError(
            f"Cannot read a table in a state and with the option {(states or window)[0]} too: give one of them"
        )
    if len(states) > 1:
        raise InvalidRequestError(
            f"Cannot read a table with the options {' and '.join(states)}: each names a state", hint="Give one."
        )
    if states and window:
        raise InvalidRequestError(
            f"Cannot read what was appended with the option {states[0]} too",
            hint="Leave it out; end-snapshot-id says up to where.",
        )
    if window == ["end-snapshot-id"]:
        raise InvalidRequestError(
            "Cannot read what was appended up to end-snapshot-id: start-snapshot-id is not given",
            hint="Give the snapshot after which to begin.",
        )
    changes = [name for name in _CHANGES_ONLY if name in known]
    if changes:
        raise InvalidRequestError(
            f"Cannot read a table with the option {changes[0]}: it is for changes of rows only",
            hint="Use start-snapshot-id and end-snapshot-id, or read the table's changes.",
        )


def _choice_of(table: LoadedTable, name: str, text: str, time_zone: str) -> SnapshotChoice:
    """Return the state that an option names."""
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


def _whole(known: Mapping[str, str], name: str) -> int:
    return int(known[name].strip())


def _size(known: Mapping[str, str], name: str, otherwise: int | None) -> int | None:
    return _whole(known, name) if name in known else otherwise
