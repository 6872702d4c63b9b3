"""Options of `spark.readStream`: what a stream of a table reads, its start, and the size of batches.

    stream-from-snapshot        earliest, latest, or a snapshot ID, whose additions come first
    stream-after-snapshot       a snapshot ID: reading starts after it
    stream-from-timestamp       milliseconds from 1970: reading starts with the first snapshot at or after it
    branch                      a branch
    streaming-changes           for snapshots that did not only add rows: error, skip, added-files, changes
    streaming-skip-delete-snapshots, streaming-skip-overwrite-snapshots
                                skip these snapshots
    streaming-max-files-per-micro-batch, streaming-max-rows-per-micro-batch, streaming-max-bytes-per-micro-batch
                                the limits of a batch
    identifier-columns, compute-updates
                                for changes: the columns that identify the two rows of an update, by default the table's
                                identifier fields, and whether updates are reported as such
    deduplicationMode           for changes: none includes rows that were merely copied; dropCarryovers omits them
    stream-guard                a name: expiry retains what the stream of that name still needs
    split-size, file-open-cost  how files are split and combined, in bytes

By default the whole table comes first, then new rows. Names are case-insensitive, as in Spark. `jar/options.py` lists
the options that are honoured, refused or ignored with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frazil.errors import InvalidRequestError
from frazil.jar.options import STREAM_READ_OPTIONS
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.streams.steps import NotAppends, StreamLimits, StreamRules, StreamStart

_FROM_SNAPSHOT, _AFTER_SNAPSHOT, _FROM_TIME = (
    "stream-from-snapshot",
    "stream-after-snapshot",
    "stream-from-timestamp",
)
_SKIP_DELETES, _SKIP_OVERWRITES = "streaming-skip-delete-snapshots", "streaming-skip-overwrite-snapshots"
CHANGES_OPTION = "streaming-changes"
_IDENTIFIERS, _UPDATES, _COPIES, _GUARD = (
    "identifier-columns",
    "compute-updates",
    "deduplicationmode",
    "stream-guard",
)
_MOST = {
    "streaming-max-files-per-micro-batch": "files",
    "streaming-max-rows-per-micro-batch": "rows",
    "streaming-max-bytes-per-micro-batch": "size_bytes",
}
_ALL = 2**31 - 1
"""The value that means no limit in Iceberg Java."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The parsed options of a stream."""

    start: StreamStart
    rules: StreamRules
    limits: StreamLimits
    identifiers: tuple[str, ...] | None = None
    computes_updates: bool | None = None
    """By default, whether the table has identifier fields."""
    keeps_copies: bool = False
    """Whether changes include rows that were merely copied."""
    guard: str | None = None
    split_bytes: int | None = None
    open_file_cost_bytes: int | None = None


def stream_options(options: Mapping[str, str], branch: str | None = None) -> StreamOptions:
    """Parse the options of a stream; refuse unknown and contradictory ones."""
    checked = {name: text.strip() for name, text in STREAM_READ_OPTIONS.check(options).items()}
    branch_option = checked.get("branch")
    if branch_option is not None and branch is not None and branch_option != branch:
        raise InvalidRequestError(
            f"Cannot stream the branches {branch!r} and {branch_option!r} at once: use one of them"
        )
    start = _start(checked)
    limits = {field: _limit(checked, name) for name, field in _MOST.items()}
    identifiers = checked.get(_IDENTIFIERS)
    rules = StreamRules(
        branch=branch_option or branch or MAIN_BRANCH,
        not_appends=_not_appends(checked),
        skips_deletes=_flag(checked, _SKIP_DELETES),
        skips_overwrites=_flag(checked, _SKIP_OVERWRITES),
    )
    return StreamOptions(
        start,
        rules,
        StreamLimits(**limits),
        None if identifiers is None else tuple(identifier.strip() for identifier in identifiers.split(",")),
        _flag(checked, _UPDATES, default=True) if _UPDATES in checked or identifiers else None,
        checked.get(_COPIES, "").lower() == "none",
        checked.get(_GUARD),
        _whole(checked, "split-size"),
        _whole(checked, "file-open-cost"),
    )


def update_identifiers(schema: Schema, columns: tuple[str, ...] | None, *, computes: bool | None) -> tuple[str, ...]:
    """Return the columns that identify the two rows of an update; empty if both rows are reported.

    By default updates are computed if the table has identifier fields.
    """
    identifiers = (
        tuple(schema.name_of(field_id) for field_id in sorted(schema.identifier_field_ids))
        if columns is None
        else columns
    )
    if computes and not identifiers:
        raise InvalidRequestError(
            "Cannot compute updates: the table has no identifier fields",
            hint="Set them, or name columns with the option identifier-columns.",
        )
    unknown = [name for name in identifiers if schema.find_field(name, case_sensitive=False) is None]
    if unknown:
        raise InvalidRequestError(
            f"Cannot compute updates by {unknown[0]!r}: the table has no such column",
            hint=f"The columns are: {', '.join(field.name for field in schema.fields)}.",
        )
    return () if computes is False else identifiers


def _start(options: Mapping[str, str]) -> StreamStart:
    starts = [name for name in (_FROM_SNAPSHOT, _AFTER_SNAPSHOT, _FROM_TIME) if name in options]
    if len(starts) > 1:
        raise InvalidRequestError(f"Cannot begin a stream with both {starts[0]} and {starts[1]}: use one of them")
    if not starts:
        return StreamStart()
    if starts[0] == _FROM_TIME:
        return StreamStart(timestamp_ms=_whole(options, _FROM_TIME))
    if starts[0] == _AFTER_SNAPSHOT:
        return StreamStart(after_snapshot_id=_whole(options, _AFTER_SNAPSHOT))
    word = options[_FROM_SNAPSHOT].lower()
    if word in ("earliest", "latest"):
        return StreamStart(is_earliest=word == "earliest", is_latest=word == "latest")
    if not word.removeprefix("-").isdigit() or not word.isascii():
        raise InvalidRequestError(
            f"Cannot begin a stream with {_FROM_SNAPSHOT}={word[:60]!r}: it is not a snapshot ID",
            hint="It may also be earliest or latest.",
        )
    return StreamStart(snapshot_id=int(word))


def _not_appends(options: Mapping[str, str]) -> NotAppends:
    mode = NotAppends(options.get(CHANGES_OPTION, NotAppends.ERROR.value).lower())
    skips = next((option for option in (_SKIP_DELETES, _SKIP_OVERWRITES) if _flag(options, option)), None)
    if mode is NotAppends.CHANGES and skips is not None:
        raise InvalidRequestError(f"Cannot stream changes with {skips}: changes omit nothing", hint="Use one of them.")
    for name in (_IDENTIFIERS, _UPDATES, _COPIES):
        if name in options and mode is not NotAppends.CHANGES:
            raise InvalidRequestError(f"Cannot use {name} without {CHANGES_OPTION}=changes: it is for changes of rows")
    return mode


def _limit(options: Mapping[str, str], name: str) -> int | None:
    limit = _whole(options, name)
    return None if limit is None or (limit >= _ALL and not name.startswith("streaming-max-bytes")) else limit


def _whole(options: Mapping[str, str], name: str) -> int | None:
    return int(options[name]) if name in options else None


def _flag(options: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    return options[name].lower() == "true" if name in options else default
