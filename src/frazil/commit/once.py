"""Writes that happen once: an application and a version name a write, and a second one of the same name does nothing.

Where it is written down. In the summary of the snapshot, and, since snapshots expire, in a property of the table for
each branch and application: `frazil.once.<branch>.<application>`, the last versions with the snapshot of each. The
property is part of the same commit, which requires the branch to be where it was: of two writers of the same name one
commits, and the other one finds it done when its commit is prepared again.

What done means. The write is in the history of the branch that is written to. A write that was rolled back, or that
is on another branch, is not, and may be done again. Of a snapshot that has expired the chain of parents still tells
as far as it goes: a chain that passes by the snapshot's sequence number without it never had it. What lies behind the
end of the chain is taken as the property says; so rollbacks, moves of branches and expiry take out of the properties
what is not in the history any more, while the chain still tells.

Versions. A whole number is in order: one that is not above the last is done, as for Delta's `txnVersion` and epochs
of streams. A text is done where that very text was written. The last `_NUMBERS` and `_TEXTS` versions of an
application are kept, and the last `_APPLICATIONS` applications of a branch; what is older counts for as long as its
snapshot is there.

Epochs of streams have the names of Iceberg's jar in the summary, so that a query moves between the two. Beside them is
what the epoch was read from: of two checkpoints that began as copies of one, each may have an epoch of that number, and
one that has other input is not done.
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
    """The name of a write: who writes, and the how-manyth or which of its writes it is.

    That of an epoch of a stream has the names of Iceberg's jar in summaries; an epoch that changes nothing leaves no
    record, since it changes nothing when it is run again.
    """

    application: str
    version: Version
    is_epoch: bool = False
    input_digest: str | None = None
    """Of an epoch, by what its input is known, where that can be told."""

    def summary(self) -> dict[str, str]:
        """Return what the snapshot of the write says."""
        if self.is_epoch:
            properties = {QUERY_ID: self.application, EPOCH_ID: str(self.version)}
            return properties if self.input_digest is None else {**properties, EPOCH_INPUT: self.input_digest}
        key = NUMBER_VERSION if isinstance(self.version, int) else TEXT_VERSION
        return {APPLICATION: self.application, key: str(self.version)}

    def is_covered_by(self, version: Version) -> bool:
        """Return whether a write is done where another one of its application is."""
        if isinstance(self.version, int) and isinstance(version, int):
            return self.version <= version
        return self.version == version and type(self.version) is type(version)


def parse_once(value: object) -> Once:
    """Return what a caller gives as the name of a write: a pair of an application and a version."""
    if isinstance(value, Once):
        return value
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidRequestError(
            f"Cannot write once as {value!r}: it is no pair of an application and a version",
            hint='Write once=("job-7", "2026-11-16"), or once=("job-7", 12).',
        )
    application, version = value
    if not isinstance(application, str) or not 0 < len(application) <= _MAX_LENGTH:
        raise InvalidRequestError(
            f"Cannot write once as {application!r}: the application is no text of 1 to {_MAX_LENGTH} characters"
        )
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise InvalidRequestError(
            f"Cannot write once as version {version!r} of {application!r}: it is neither a text nor a whole number",
            hint="Texts are compared for being the same; numbers are in order.",
        )
    if isinstance(version, str) and not 0 < len(version) <= _MAX_LENGTH:
        raise InvalidRequestError(
            f"Cannot write once as version {version!r} of {application!r}: a text has 1 to {_MAX_LENGTH} characters"
        )
    if isinstance(version, int) and abs(version) > _MAX_NUMBER:
        raise InvalidRequestError(
            f"Cannot write once as version {version} of {application!r}: it has more than 64 bits"
        )
    return Once(application, version)


@dataclass(frozen=True, slots=True)
class DoneAt:
    """A version that is done, the snapshot that the branch was at then, None for none, and its sequence number."""

    version: Version
    snapshot_id: int | None
    sequence_number: int
    input_digest: str | None = None


_BROKEN: Any = DoneAt("", None, None)  # type: ignore[arg-type]


class _History:
    """The snapshots that a branch came to be from, as far as the table has them, from a head."""

    def __init__(self, metadata: TableMetadata, branch: str, head_id: int | None) -> None:
        self._metadata = metadata
        self.branch = branch
        self._head_id = head_id

    @cached_property
    def ids(self) -> dict[int, SnapshotHead]:
        """The snapshots by id, the newest first."""
        if self._head_id is None:
            return {}
        return {ancestor.snapshot_id: ancestor for ancestor in ancestor_heads(self._metadata.snapshots, self._head_id)}

    @property
    def oldest(self) -> SnapshotHead | None:
        return next(reversed(self.ids.values()), None)

    def has(self, done: DoneAt, branch: str) -> bool:
        """Return whether what was done on a branch is in this history."""
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
        other = history_of(self._metadata, branch)
        return other.oldest is not None and (other.oldest.snapshot_id in self.ids or oldest.snapshot_id in other.ids)


def history_of(metadata: TableMetadata, branch: str) -> _History:
    """Return the history of a branch; one that is not there yet begins with the current snapshot."""
    ref = metadata.find_ref(branch)
    if ref is not None:
        return _History(metadata, branch, ref.snapshot_id)
    return _History(metadata, branch, metadata.current_snapshot_id)


# Records: properties of the table


def _record_prefix(branch: str) -> str:
    # A name may have dots; escaped, the first one ends it.
    return f"{RECORD_PREFIX}{branch.replace('%', '%25').replace('.', '%2E')}."


def _branch_of(name: str) -> tuple[str, str]:
    branch, _, application = name.removeprefix(RECORD_PREFIX).partition(".")
    return branch.replace("%2E", ".").replace("%25", "%"), application


def _parse_record(name: str, text: str) -> tuple[DoneAt, ...]:
    try:
        found = tuple(DoneAt(*values) for values in json.loads(text))
    except (ValueError, TypeError):
        found = (_BROKEN,)
    for done in found:
        is_number = isinstance(done.sequence_number, int) and isinstance(done.snapshot_id, int | None)
        if not is_number or not isinstance(done.version, int | str) or not isinstance(done.input_digest, str | None):
            raise InvalidRequestError(
                f"Cannot tell which writes are done: the property {name} is {text[:100]!r}",
                hint="Only writes set it. Remove it where every write that it told of is to be forgotten.",
            )
    return found


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
    """Return by application what is done on a branch that is put at a snapshot, whichever branch it was done on."""
    history = _History(metadata, branch, snapshot_id)
    found: dict[str, list[DoneAt]] = {}
    for own, application, all_done in _records(metadata):
        kept = [done for done in all_done if history.has(done, own)]
        known = found.setdefault(application, [])
        known += [done for done in kept if done not in known]
    ordered = {name: sorted(records, key=lambda done: done.sequence_number) for name, records in found.items()}
    return {name: tuple(_shortened(records)) for name, records in ordered.items() if records}


def move_records(metadata: TableMetadata, branch: str, snapshot_id: int | None) -> tuple[TableUpdate, ...]:
    """Return what becomes of the records of a branch that is put at a snapshot."""
    if not any(name.startswith(RECORD_PREFIX) for name in metadata.properties):
        return ()
    return _set_records(metadata, branch, records_at(metadata, branch, snapshot_id))


def drop_records(metadata: TableMetadata, branch: str) -> tuple[TableUpdate, ...]:
    """Return the removal of the records of a branch."""
    return _set_records(metadata, branch, {})


def _set_records(
    metadata: TableMetadata, branch: str, records: Mapping[str, Sequence[DoneAt]]
) -> tuple[TableUpdate, ...]:
    prefix = _record_prefix(branch)
    wanted = {f"{prefix}{application}": _record_text(all_done) for application, all_done in records.items()}
    present = {name for name in metadata.properties if name.startswith(prefix)}
    new = {name: text for name, text in wanted.items() if metadata.properties.get(name) != text}
    gone = tuple(sorted(present - wanted.keys()))
    updates: list[TableUpdate] = []
    if new:
        updates.append(SetProperties(FrozenMap(new)))
    if gone:
        updates.append(RemoveProperties(gone))
    return tuple(updates)


def keep_record(metadata: TableMetadata, branch: str, application: str, done: DoneAt) -> tuple[TableUpdate, ...]:
    """Return what writes down that a write to a branch is done, and forgets what is long ago."""
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
    """Return the name of the write that made a snapshot, by its summary; None where it has none."""
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
    """Return where a write was done before, None where it is not in the branch.

    With `is_staged` it is looked for among all snapshots: no branch leads to one that is staged. Of an epoch that very
    one is returned, where it is known, and not one after it. One that was read from other input is refused.
    """
    done = _find_done(metadata, branch, once, is_staged=is_staged)
    if done is None or done.version != once.version or None in (done.input_digest, once.input_digest):
        return done
    if done.input_digest != once.input_digest:
        raise another_way(once)
    return done


def another_way(once: Once) -> InvalidRequestError:
    """Return the error of an epoch that is not what was written under its number."""
    return InvalidRequestError(
        f"Cannot write batch {once.version} of the query {once.application}: the table has one of that number, or a "
        "later one, that was read from other input",
        hint="The checkpoint is a copy or an old state of one that has gone another way. Go on with the one that wrote "
        "last, or begin with a new one.",
    )


def _find_done(metadata: TableMetadata, branch: str, once: Once, *, is_staged: bool) -> DoneAt | None:
    if is_staged:
        return next(_made_by(metadata, reversed(tuple(metadata.snapshots.ids)), once), None)
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
    # What the record does not have: writes of Iceberg's jar, and of an application that was forgotten.
    for done in _made_by(metadata, history.ids, once, until=None if later else newest):
        if not once.is_epoch or done.version == once.version:
            return done
        later = later or done
    if later is not None:
        return later
    if own is None:
        for other, application, all_done in _records(metadata):
            if application == once.application and other != branch:
                found = [
                    earlier
                    for earlier in all_done
                    if once.is_covered_by(earlier.version) and history.has(earlier, other)
                ]
                if found:
                    return next((earlier for earlier in found if earlier.version == once.version), found[-1])
    return None


def _made_by(metadata: TableMetadata, snapshot_ids: Any, once: Once, *, until: int | None = None) -> Iterator[DoneAt]:
    for snapshot_id in snapshot_ids:
        if snapshot_id == until:
            return
        snapshot = metadata.snapshot(snapshot_id)
        made = once_of_summary(snapshot.summary)
        if made is not None and made.application == once.application and once.is_covered_by(made.version):
            yield DoneAt(made.version, snapshot_id, snapshot.sequence_number, made.input_digest)


# The action


@dataclass(frozen=True, slots=True)
class RecordOnly:
    """Nothing to change: all that is committed is that the write is done."""

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return nothing; `WriteOnce` adds the record."""
        return Changes()


@dataclass(frozen=True, slots=True)
class WriteOnce:
    """An action that is skipped where it was done before, by this application under this version."""

    action: Action
    once: Once
    branch: str
    is_staged: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return what the action changes and that it is done; nothing, and that it is skipped, where it was."""
        metadata = loaded.metadata
        done = find_done(metadata, self.branch, self.once, is_staged=self.is_staged)
        if done is not None:
            return Changes(is_skipped=done.snapshot_id != context.snapshot_id)
        changes = self.action.prepare(loaded, context)
        return changes if self.is_staged else with_record(metadata, self.branch, self.once, changes)


def with_record(
    metadata: TableMetadata, branch: str, once: Once, changes: Changes, head: SnapshotHead | None = None
) -> Changes:
    """Return changes that also write down that a write is done: by the snapshot they add, or by a head."""
    made: SnapshotHead | None = next(
        (update.snapshot for update in changes.updates if isinstance(update, AddSnapshot)), head
    )
    if made is None and once.is_epoch:
        return changes
    if made is None:
        made = next(iter(history_of(metadata, branch).ids.values()), None)
    done = DoneAt(once.version, None, 0, once.input_digest)
    if made is not None:
        done = replace(done, snapshot_id=made.snapshot_id, sequence_number=made.sequence_number)
    record = keep_record(metadata, branch, once.application, done)
    requirements = changes.requirements or (*table_requirement(metadata), ref_requirement(metadata, branch))
    return replace(changes, updates=(*changes.updates, *record), requirements=requirements)
