"""Options of `spark.readStream` to what a stream of a table reads, from where, and how much at a time.

    stream-from-snapshot        earliest, latest, or a snapshot's id: what it added comes first
    stream-after-snapshot       a snapshot's id: what came after it
    stream-from-timestamp       milliseconds from 1970: the first snapshot at or after it comes first
    branch                      a branch
    streaming-changes           where rows were not only added: error, skip, added-files, changes
    streaming-skip-delete-snapshots, streaming-skip-overwrite-snapshots
                                those are left out
    streaming-max-files-per-micro-batch, streaming-max-rows-per-micro-batch, streaming-max-bytes-per-micro-batch
                                how much a batch reads
    identifier-columns, compute-updates
                                for changes: the columns by which a removed and an added row are an update, if not the
                                table's identifier fields, and whether they are told as one
    deduplicationMode           for changes: none has rows too that were merely copied; dropCarryovers
    stream-guard                a name: expiry spares what the stream of that name still needs
    split-size, file-open-cost  how files are cut and packed, in bytes

Without a start the whole table comes first, then what is new. Names are compared without regard to case, as Spark
does. `jar/options.py` lists what is honoured, refused and warned about.
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
"""What Iceberg Java takes for no limit."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What the options of a stream ask for."""

    start: StreamStart
    rules: StreamRules
    limits: StreamLimits
    identifiers: tuple[str, ...] | None = None
    computes_updates: bool | None = None
    """Where it is not said: if the table has identifier fields."""
    keeps_copies: bool = False
    """Whether changes have rows too that were merely copied."""
    guard: str | None = None
    split_bytes: int | None = None
    open_file_cost_bytes: int | None = None


def stream_options(options: Mapping[str, str], branch: str | None = None) -> StreamOptions:
    """Return what the options of a stream ask for; refuse those that are not known, or contradict each other."""
    known = {name: text.strip() for name, text in STREAM_READ_OPTIONS.check(options).items()}
    named = known.get("branch")
    if named is not None and branch is not None and named != branch:
        raise InvalidRequestError(f"Cannot stream the branches {branch!r} and {named!r} at once: give one")
    start = _start(known)
    limits = {field: _limit(known, name) for name, field in _MOST.items()}
    identifiers = known.get(_IDENTIFIERS)
    rules = StreamRules(
        branch=named or branch or MAIN_BRANCH,
        not_appends=_not_appends(known),
        skips_deletes=_flag(known, _SKIP_DELETES),
        skips_overwrites=_flag(known, _SKIP_OVERWRITES),
    )
    return StreamOptions(
        start,
        rules,
        StreamLimits(**limits),
        None if identifiers is None else tuple(identifier.strip() for identifier in identifiers.split(",")),
        _flag(known, _UPDATES, otherwise=True) if _UPDATES in known or identifiers else None,
        known.get(_COPIES, "").lower() == "none",
        known.get(_GUARD),
        _whole(known, "split-size"),
        _whole(known, "file-open-cost"),
    )


def update_identifiers(schema: Schema, given: tuple[str, ...] | None, *, computes: bool | None) -> tuple[str, ...]:
    """Return the columns by which a removed and an added row are an update; none where both are told.

    Where it is not said whether to compute updates, they are, if the table has identifier fields.
    """
    known = (
        tuple(schema.name_of(field_id) for field_id in sorted(schema.identifier_field_ids)) if given is None else given
    )
    if computes and not known:
        raise InvalidRequestError(
            "Cannot compute updates: the table has no identifier fields",
            hint="Set them, or name columns with the option identifier-columns.",
        )
    unknown = [name for name in known if schema.find_field(name, case_sensitive=False) is None]
    if unknown:
        raise InvalidRequestError(
            f"Cannot compute updates by {unknown[0]!r}: the table has no such column",
            hint=f"The columns are: {', '.join(field.name for field in schema.fields)}.",
        )
    return () if computes is False else known


def _start(known: Mapping[str, str]) -> StreamStart:
    given = [name for name in (_FROM_SNAPSHOT, _AFTER_SNAPSHOT, _FROM_TIME) if name in known]
    if len(given) > 1:
        raise InvalidRequestError(f"Cannot begin a stream with both {given[0]} and {given[1]}: give one")
    if not given:
        return StreamStart()
    if given[0] == _FROM_TIME:
        return StreamStart(timestamp_ms=_whole(known, _FROM_TIME))
    if given[0] == _AFTER_SNAPSHOT:
        return StreamStart(after_snapshot_id=_whole(known, _AFTER_SNAPSHOT))
    word = known[_FROM_SNAPSHOT].lower()
    if word in ("earliest", "latest"):
        return StreamStart(is_earliest=word == "earliest", is_latest=word == "latest")
    if not word.removeprefix("-").isdigit() or not word.isascii():
        raise InvalidRequestError(
            f"Cannot begin a stream with {_FROM_SNAPSHOT}={word[:60]!r}: it is no snapshot's id",
            hint="It may be earliest or latest too.",
        )
    return StreamStart(snapshot_id=int(word))


def _not_appends(known: Mapping[str, str]) -> NotAppends:
    found = NotAppends(known.get(CHANGES_OPTION, NotAppends.ERROR.value).lower())
    skips = next((option for option in (_SKIP_DELETES, _SKIP_OVERWRITES) if _flag(known, option)), None)
    if found is NotAppends.CHANGES and skips is not None:
        raise InvalidRequestError(f"Cannot stream changes with {skips}: changes leave nothing out", hint="Give one.")
    for name in (_IDENTIFIERS, _UPDATES, _COPIES):
        if name in known and found is not NotAppends.CHANGES:
            raise InvalidRequestError(f"Cannot use {name} without {CHANGES_OPTION}=changes: it is for changes of rows")
    return found


def _limit(known: Mapping[str, str], name: str) -> int | None:
    found = _whole(known, name)
    return None if found is None or (found >= _ALL and not name.startswith("streaming-max-bytes")) else found


def _whole(known: Mapping[str, str], name: str) -> int | None:
    return int(known[name]) if name in known else None


def _flag(known: Mapping[str, str], name: str, *, otherwise: bool = False) -> bool:
    return known[name].lower() == "true" if name in known else otherwise
