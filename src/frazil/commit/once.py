"""Idempotent writes: a key of an application and a version identifies a write, and a repetition does nothing.

Storage. The key is in the summary of the snapshot and, since snapshots expire, in a table property for each branch and
application: `frazil.once.<branch>.<application>`, the last versions with the snapshot of each. The property is part of
the same commit, which requires that the branch has not moved: of two writers with the same key one commits, and the
other finds the write done when its commit is prepared again.

Meaning of done. The write is in the history of the target branch. A write that was rolled back, or that is on another
branch, is not, and may be repeated. For a snapshot that has expired, the chain of parents still decides as far as it
reaches: a chain that passes the snapshot's sequence number without the snapshot never contained it. Beyond the end of
the chain the property is trusted; so rollbacks, moves of branches and expiry remove from the properties whatever is no
longer in the history, while the chain can still tell.

Versions. Integers are ordered: one that is not above the last is done, as for Delta's `txnVersion` and epochs of
streams. A string is done if that exact string was written. The last `_NUMBERS` and `_TEXTS` versions of an application
are kept, and the last `_APPLICATIONS` applications of a branch; older ones count as long as their snapshots exist.

Epochs of streams use the names of the Iceberg jar in the summary, so that a query can move between the two. A digest of
the epoch's input is stored with them: two checkpoints that began as copies of one may each have an epoch of that
number, and an epoch with other input is not done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from frazil.changes.updates import AddSnapshot, RemoveProperties, SetProperties, TableUpdate
from frazil.commit.action import Action, Changes, CommitContext
from frazil.commit.new_snapshot import ref_requirement, table_requirement
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import MAIN_BRANCH, SnapshotHead
from frazil.spec.snapshot_history import ancestor_heads
from frazil.spec.table_metadata import TableMetadata

RECORD_PREFIX: Final = "frazil.once."
APPLICATION: Final = "frazil-once-application"
TEXT_VERSION: Final = "frazil-once-version"
NUMBER_VERSION: Final = "frazil-once-number"
QUERY_ID: Final = "spark.sql.streaming.queryId"
EPOCH_ID: Final = "spark.sql.streaming.epochId"
EPOCH_INPUT: Final = "frazil-stream-input"

_NUMBERS = 10
_TEXTS = 100
_APPLICATIONS = 200
_MAX_LENGTH = 500
_MAX_NUMBER = (1 << 63) - 1

Version = int | str


@dataclass(frozen=True, slots=True)
class Once:
    """The idempotency key of a write: an application, and the number or name of the write.

    The key of a stream's epoch uses the names of the Iceberg jar in summaries. An epoch that changes nothing leaves no
    record, since repeating it changes nothing.
    """

    application: str
    version: Version
    is_epoch: bool = False
    input_digest: str | None = None
    """For an epoch, a digest of its input, if known."""

    def summary(self) -> dict[str, str]:
        """Return the summary properties of the write's snapshot."""
        if self.is_epoch:
            properties = {QUERY_ID: self.application, EPOCH_ID: str(self.version)}
            return properties if self.input_digest is None else {**properties, EPOCH_INPUT: self.input_digest}
        key = NUMBER_VERSION if isinstance(self.version, int) else TEXT_VERSION
        return {APPLICATION: self.application, key: str(self.version)}

    def is_covered_by(self, version: Version) -> bool:
        """Return whether a write counts as done if another version of its application is done."""
        if isinstance(self.version, int) and isinstance(version, int):
            return self.version <= version
        return self.version == version and type(self.version) is type(version)


def parse_once(value: object) -> Once:
    """Return the idempotency key from a caller's argument: a pair of an application and a version."""
    if isinstance(value, Once):
        return value
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidRequestError(
            f"Cannot write once as {value!r}: it is not a pair of an application and a version",
            hint='Write once=("job-7", "2026-11-16"), or once=("job-7", 12).',
        )
    application, version = value
    if not isinstance(application, str) or not 0 < len(application) <= _MAX_LENGTH:
        raise InvalidRequestError(
            f"Cannot write once as {application!r}: the application must be a string of 1 to {_MAX_LENGTH} characters"
        )
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise InvalidRequestError(
            f"Cannot write once as version {version!r} of {application!r}: it is neither a string nor an integer",
            hint="Strings are compared for equality; integers are ordered.",
        )
    if isinstance(version, str) and not 0 < len(version) <= _MAX_LENGTH:
        raise InvalidRequestError(
            f"Cannot write once as version {version!r} of {application!r}: it must have 1 to {_MAX_LENGTH} characters"
        )
    if isinstance(version, int) and abs(version) > _MAX_NUMBER:
        raise InvalidRequestError(
            f"Cannot write once as version {version} of {application!r}: it does not fit in 64 bits"
        )
    return Once(application, version)


@dataclass(frozen=True, slots=True)
class DoneAt:
    """A version that is done, the snapshot of the branch at that time, or None, and its sequence number."""

    version: Version
    snapshot_id: int | None
    sequence_number: int
    input_digest: str | None = None


_BROKEN: Any = DoneAt("", None, None)  # type: ignore[arg-type]


class _BranchHistory:
    """The history of a branch from a head, as far as the table still has the snapshots."""

    def __init__(self, metadata: TableMetadata, branch: str, head_id: int | None) -> None:
        self._metadata = metadata
        self.branch = branch
        self._head_id = head_id

    @cached_property
    def ids(self) -> dict[int, SnapshotHead]:
        """The snapshots by id, newest first."""
        if self._head_id is None:
            return {}
        return {ancestor.snapshot_id: ancestor for ancestor in ancestor_heads(self._metadata.snapshots, self._head_id)}

    @property
    def oldest(self) -> SnapshotHead | None:
        return next(reversed(self.ids.values()), None)

    def has(self, done: DoneAt, branch: str) -> bool:
        """Return whether a write recorded on a branch is in this history."""
        if done.snapshot_id is None:
            return branch == self.branch
        if done.snapshot_id in self.ids:
            return True
        oldest = self.oldest
        if self._metadata.snapshots.find_head(done.snapshot_id) is not None or oldest is None:
            return False
        if oldest.parent_snapshot_id is None:
            return False
        if oldest.parent_snapshot_id == done.snapshot_id:
            return True
        if 0 < oldest.sequence_number <= done.sequence_number:
            return False
        if branch == self.branch:
            return True
        other_history = history_of(self._metadata, branch)
        return other_history.oldest is not None and (
            other_history.oldest.snapshot_id in self.ids or oldest.snapshot_id in other_history.ids
        )


def history_of(metadata: TableMetadata, branch: str) -> _BranchHistory:
    """Return the history of a branch; a branch that does not exist yet begins with the current snapshot."""
    ref = metadata.find_ref(branch)
    if ref is not None:
        return _BranchHistory(metadata, branch, ref.snapshot_id)
    return _BranchHistory(metadata, branch, metadata.current_snapshot_id)


# Records in table properties


def _record_prefix(branch: str) -> str:
    # A name may contain dots; they are escaped, so that the first one ends it.
    return f"{RECORD_PREFIX}{branch.replace('%', '%25').replace('.', '%2E')}."


def _branch_of(name: str) -> tuple[str, str]:
    branch, _, application = name.removeprefix(RECORD_PREFIX).partition(".")
    return branch.replace("%2E", ".").replace("%25", "%"), application


def _parse_record(name: str, text: str) -> tuple[DoneAt, ...]:
    try:
        records = tuple(DoneAt(*values) for values in json.loads(text))
    except (ValueError, TypeError):
        records = (_BROKEN,)
    for done in records:
        is_number = isinstance(done.sequence_number, int) and isinstance(done.snapshot_id, int | None)
        if not is_number or not isinstance(done.version, int | str) or not isinstance(done.input_digest, str | None):
            raise InvalidRequestError(
                f"Cannot read the records of idempotent writes: the property {name} is {text[:100]!r}",
                hint="Only writes set it. Remove it to forget all writes that it records.",
            )
    return records


def _record_text(all_done: Sequence[DoneAt]) -> str:
    values = [
        [
            done.version,
            done.snapshot_id,
            done.sequence_number,
            *([] if done.input_digest is None else [done.input_digest]),
        ]
        for done in all_done
    ]
    return json.dumps(values, separators=(",", ":"))


def _records(metadata: TableMetadata) -> Iterator[tuple[str, str, tuple[DoneAt, ...]]]:
    """Yield branch, application and versions of every record."""
    for name, text in metadata.properties.items():
        if name.startswith(RECORD_PREFIX):
            yield *_branch_of(name), _parse_record(name, text)


def _shortened(all_done: Sequence[DoneAt]) -> list[DoneAt]:
    numbers = [done for done in all_done if isinstance(done.version, int)][-_NUMBERS:]
    texts = [done for done in all_done if isinstance(done.version, str)][-_TEXTS:]
    return [done for done in all_done if done in numbers or done in texts]


def records_at(metadata: TableMetadata, branch: str, snapshot_id: int | None) -> dict[str, tuple[DoneAt, ...]]:
    """Return, by application, the writes that are done on a branch set to a snapshot, recorded on any branch."""
    history = _BranchHistory(metadata, branch, snapshot_id)
    by_application: dict[str, list[DoneAt]] = {}
    for own, application, all_done in _records(metadata):
        in_history = [done for done in all_done if history.has(done, own)]
        merged = by_application.setdefault(application, [])
        merged += [done for done in in_history if done not in merged]
    ordered = {name: sorted(records, key=lambda done: done.sequence_number) for name, records in by_application.items()}
    return {name: tuple(_shortened(records)) for name, records in ordered.items() if records}


def move_records(metadata: TableMetadata, branch: str, snapshot_id: int | None) -> tuple[TableUpdate, ...]:
    """Return the updates of the records of a branch that is set to a snapshot."""
    if not any(name.startswith(RECORD_PREFIX) for name in metadata.properties):
        return ()
    return _set_records(metadata, branch, records_at(metadata, branch, snapshot_id))


def drop_records(metadata: TableMetadata, branch: str) -> tuple[TableUpdate, ...]:
    """Return the removal of a branch's records."""
    return _set_records(metadata, branch, {})


def _set_records(
    metadata: TableMetadata, branch: str, records: Mapping[str, Sequence[DoneAt]]
) -> tuple[TableUpdate, ...]:
    prefix = _record_prefix(branch)
    texts = {f"{prefix}{application}": _record_text(all_done) for application, all_done in records.items()}
    present = {name for name in metadata.properties if name.startswith(prefix)}
    new = {name: text for name, text in texts.items() if metadata.properties.get(name) != text}
    removed = tuple(sorted(present - texts.keys()))
    updates: list[TableUpdate] = []
    if new:
        updates.append(SetProperties(FrozenMap(new)))
    if removed:
        updates.append(RemoveProperties(removed))
    return tuple(updates)


def keep_record(metadata: TableMetadata, branch: str, application: str, done: DoneAt) -> tuple[TableUpdate, ...]:
    """Return the updates that record a write to a branch as done, and drop old records."""
    if metadata.find_ref(branch) is None and branch != MAIN_BRANCH:
        records = records_at(metadata, branch, metadata.current_snapshot_id)
    else:
        records = {name: all_done for own, name, all_done in _records(metadata) if own == branch}
        history = history_of(metadata, branch)
        records[application] = tuple(
            earlier for earlier in records.get(application, ()) if history.has(earlier, branch)
        )
    others = (earlier for earlier in records.get(application, ()) if earlier.version != done.version)
    records[application] = tuple(_shortened((*others, done)))
    if len(records) > _APPLICATIONS:
        by_age = sorted(
            records, key=lambda name: max((earlier.sequence_number for earlier in records[name]), default=0)
        )
        for name in [earlier for earlier in by_age if earlier != application][: len(records) - _APPLICATIONS]:
            del records[name]
    return _set_records(metadata, branch, records)


# Summaries


def once_of_summary(summary: Mapping[str, str] | None) -> Once | None:
    """Return the idempotency key of the write that created a snapshot, or None, from its summary."""
    if summary is None:
        return None
    if APPLICATION in summary:
        number = _number(summary.get(NUMBER_VERSION))
        version = summary.get(TEXT_VERSION) if number is None else number
        return None if version is None else Once(summary[APPLICATION], version)
    epoch = _number(summary.get(EPOCH_ID))
    if QUERY_ID not in summary or epoch is None:
        return None
    return Once(summary[QUERY_ID], epoch, is_epoch=True, input_digest=summary.get(EPOCH_INPUT))


def _number(text: str | None) -> int | None:
    if text is None or len(text) > 20 or not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit():
        return None
    return int(text)


def find_done(metadata: TableMetadata, branch: str, once: Once, *, is_staged: bool = False) -> DoneAt | None:
    """Return the record of an earlier write with the same key, or None if it is not in the branch.

    With `is_staged` all snapshots are searched, since no branch leads to a staged one. For an epoch, that exact epoch
    is returned if known, rather than a later one. An epoch read from other input is refused.
    """
    done = _find_done(metadata, branch, once, is_staged=is_staged)
    if done is None or done.version != once.version or None in (done.input_digest, once.input_digest):
        return done
    if done.input_digest != once.input_digest:
        raise diverged_epoch_error(once)
    return done


def diverged_epoch_error(once: Once) -> InvalidRequestError:
    """Return the error for an epoch that differs from the one written under its number."""
    return InvalidRequestError(
        f"Cannot write batch {once.version} of the query {once.application}: the table has this batch, or a later one, "
        "read from other input",
        hint="The checkpoint is a copy or an old state of another one that has diverged. Continue with the one that "
        "wrote last, or start with a new one.",
    )


def _find_done(metadata: TableMetadata, branch: str, once: Once, *, is_staged: bool) -> DoneAt | None:
    if is_staged:
        return next(_writes_of(metadata, reversed(tuple(metadata.snapshots.ids)), once), None)
    history = history_of(metadata, branch)
    own = metadata.properties.get(f"{_record_prefix(branch)}{once.application}")
    recorded = () if own is None else _parse_record(f"{_record_prefix(branch)}{once.application}", own)
    newest: int | None = None
    later: DoneAt | None = None
    for done in reversed(recorded):
        if history.has(done, branch):
            if once.is_covered_by(done.version):
                if not once.is_epoch or done.version == once.version:
                    return done
                later = later or done
            newest = done.snapshot_id if newest is None else newest
    # Writes that the record lacks: by the Iceberg jar, and by dropped applications.
    for done in _writes_of(metadata, history.ids, once, until=None if later else newest):
        if not once.is_epoch or done.version == once.version:
            return done
        later = later or done
    if later is not None:
        return later
    if own is None:
        for other, application, all_done in _records(metadata):
            if application == once.application and other != branch:
                covered = [
                    earlier
                    for earlier in all_done
                    if once.is_covered_by(earlier.version) and history.has(earlier, other)
                ]
                if covered:
                    return next((earlier for earlier in covered if earlier.version == once.version), covered[-1])
    return None


def _writes_of(metadata: TableMetadata, snapshot_ids: Any, once: Once, *, until: int | None = None) -> Iterator[DoneAt]:
    for snapshot_id in snapshot_ids:
        if snapshot_id == until:
            return
        snapshot = metadata.snapshot(snapshot_id)
        key = once_of_summary(snapshot.summary)
        if key is not None and key.application == once.application and once.is_covered_by(key.version):
            yield DoneAt(key.version, snapshot_id, snapshot.sequence_number, key.input_digest)


# The action


@dataclass(frozen=True, slots=True)
class RecordOnly:
    """An action without changes: the commit only records that the write is done."""

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return nothing; `WriteOnce` adds the record."""
        return Changes()


@dataclass(frozen=True, slots=True)
class WriteOnce:
    """An action that is skipped if it is already done, by this application under this version."""

    action: Action
    once: Once
    branch: str
    is_staged: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the changes of the action with its record, or an empty, skipped change if it is already done."""
        metadata = loaded.metadata
        done = find_done(metadata, self.branch, self.once, is_staged=self.is_staged)
        if done is not None:
            return Changes(is_skipped=done.snapshot_id != context.snapshot_id)
        changes = self.action.prepare(loaded, context)
        return changes if self.is_staged else with_record(metadata, self.branch, self.once, changes)


def with_record(
    metadata: TableMetadata, branch: str, once: Once, changes: Changes, head: SnapshotHead | None = None
) -> Changes:
    """Return changes that also record a write as done: at the snapshot they add, or at a head."""
    written: SnapshotHead | None = next(
        (update.snapshot for update in changes.updates if isinstance(update, AddSnapshot)), head
    )
    if written is None and once.is_epoch:
        return changes
    if written is None:
        written = next(iter(history_of(metadata, branch).ids.values()), None)
    done = DoneAt(once.version, None, 0, once.input_digest)
    if written is not None:
        done = replace(done, snapshot_id=written.snapshot_id, sequence_number=written.sequence_number)
    record = keep_record(metadata, branch, once.application, done)
    requirements = changes.requirements or (*table_requirement(metadata), ref_requirement(metadata, branch))
    return replace(changes, updates=(*changes.updates, *record), requirements=requirements)
