"""The progress of a stream through a table: its start, the extent of a batch, and the reads between two offsets.

    begin       the whole table first (every present row, then new ones), the oldest snapshot, only new rows, a
                snapshot, or a time
    step        snapshot by snapshot along the chain of parents. Appends are read; rewrites of files change no rows
                and are skipped; rules decide about the others
    admit       as many files, rows and bytes as limits allow, at least one file. Counts of whole snapshots come
                from their summaries; manifests are read if a limit splits a snapshot

Nothing is skipped silently: an offset whose snapshot is no longer in the chain raises an error that explains what is
lost and how to continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from frazil.errors import InvalidRequestError, SnapshotNotFoundError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.scan.changelog import Changelog
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.iso8601 import show_ms
from frazil.spec.manifest import ManifestContent
from frazil.spec.snapshot import MAIN_BRANCH, Operation, Snapshot, SnapshotHead, Summary
from frazil.spec.snapshot_history import ancestor_heads
from frazil.streams.files import (
    FilesPart,
    NumberedFiles,
    StreamFiles,
    end_of_manifests,
    end_of_snapshot,
    number_files,
    number_manifests,
)
from frazil.streams.offsets import START, StreamOffset

_IDLE_MS = 10 * 60 * 1000
"""Snapshots without rows are skipped together; after this time, a batch without rows records the progress."""


class NotAppends(Enum):
    """What a stream does with a snapshot that changed or removed rows."""

    ERROR = "error"
    SKIP = "skip"
    ADDED_FILES = "added-files"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The start of a stream without an offset; by default, the whole table first."""

    is_earliest: bool = False
    is_latest: bool = False
    snapshot_id: int | None = None
    """The snapshot whose additions come first."""
    after_snapshot_id: int | None = None
    timestamp_ms: int | None = None
    """The time of the first snapshot whose additions are read."""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """The limits of a batch: files exactly; rows and bytes up to the file that reaches them."""

    files: int | None = None
    rows: int | None = None
    size_bytes: int | None = None


NO_LIMITS = StreamLimits()


@dataclass(frozen=True, slots=True)
class StreamRules:
    """What a stream reads: its branch, and its handling of snapshots that do not only append."""

    branch: str = MAIN_BRANCH
    not_appends: NotAppends = NotAppends.ERROR
    skips_deletes: bool = False
    skips_overwrites: bool = False

    @property
    def has_changes(self) -> bool:
        """Whether the rows of a stream are changes."""
        return self.not_appends is NotAppends.CHANGES


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The reads between two offsets: live files, added files, changes of rows."""

    whole: StreamFiles | None = None
    added: StreamFiles | None = None
    changes: Changelog | None = None
    change_ids: tuple[int, ...] = ()
    """The snapshots whose changes are read, in order."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The unread part of a table."""

    snapshots: int
    files: int
    rows: int
    size_bytes: int


class _Step(Enum):
    READ = "read"
    SKIP = "skip"
    CHANGE = "change"


@dataclass
class _Budget:
    """The remaining limits of a batch."""

    limits: StreamLimits
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    is_used: bool = False

    @property
    def is_full(self) -> bool:
        limits = self.limits
        return (
            (limits.files is not None and self.files >= limits.files)
            or (limits.rows is not None and self.rows >= limits.rows)
            or (limits.size_bytes is not None and self.size_bytes >= limits.size_bytes)
        )

    def holds(self, counts: tuple[int, int, int]) -> bool:
        """Return whether all the files fit."""
        sums = (self.files + counts[0], self.rows + counts[1], self.size_bytes + counts[2])
        limits = (self.limits.files, self.limits.rows, self.limits.size_bytes)
        return all(limit is None or total <= limit for total, limit in zip(sums, limits, strict=True))

    def take(self, counts: tuple[int, int, int]) -> None:
        self.files += counts[0]
        self.rows += counts[1]
        self.size_bytes += counts[2]
        self.is_used = True

    def take_files(self, files: NumberedFiles) -> int | None:
        """Take files one by one; return the number of the first that does not fit, or None."""
        for number, rows, size in zip(files.numbers.tolist(), files.rows.tolist(), files.sizes.tolist(), strict=True):
            if self.is_full:
                return int(number)
            self.take((1, rows, size))
        return None


@dataclass(frozen=True)
class TableStream:
    """One state of a table, as read by a stream."""

    loaded: LoadedTable
    rules: StreamRules = field(default_factory=StreamRules)
    cache: ManifestCache | None = None
    end_snapshot_id: int | None = None
    """The last snapshot of the stream; by default, the branch's newest."""

    @property
    def head_id(self) -> int | None:
        """The newest snapshot to read."""
        if self.end_snapshot_id is not None:
            return self.end_snapshot_id
        metadata = self.loaded.metadata
        if self.rules.branch == MAIN_BRANCH:
            return metadata.current_snapshot_id
        return metadata.ref(self.rules.branch).snapshot_id

    def check_reaches(self, snapshot_id: int) -> None:
        """Refuse an end that is no longer in the history of the branch."""
        head = self.head_id
        heads = [] if head is None else ancestor_heads(self.loaded.metadata.snapshots, head)
        if not any(head.snapshot_id == snapshot_id for head in heads):
            raise SnapshotNotFoundError(
                f"Cannot read the stream of {self.loaded.name} up to snapshot {snapshot_id}: branch "
                f"{self.rules.branch!r} was set back or replaced, or the snapshot has expired",
                hint="Run the query again: it then ends at the table's present state.",
            )

    # Start

    def begin(self, start: StreamStart) -> StreamOffset:
        """Return the offset at which a new stream begins."""
        head = self.head_id
        before_all = replace(START, since_ms=start.timestamp_ms or 0)
        if start.snapshot_id is not None:
            self._ancestor(start.snapshot_id, "stream-from-snapshot")
            return StreamOffset(start.snapshot_id, 0)
        if start.after_snapshot_id is not None:
            return self._done(self._ancestor(start.after_snapshot_id, "stream-after-snapshot"))
        if head is None:
            return before_all
        if start.timestamp_ms is not None:
            first = None
            for ancestor in ancestor_heads(self.loaded.metadata.snapshots, head):
                if ancestor.timestamp_ms < start.timestamp_ms:
                    break
                first = ancestor
            return before_all if first is None else self._from_oldest(first)
        if start.is_latest:
            return self._done(self._snapshot(head))
        if start.is_earliest:
            *_, oldest = ancestor_heads(self.loaded.metadata.snapshots, head)
            is_first = oldest.parent_snapshot_id is None
            return StreamOffset(oldest.snapshot_id, 0, scan_all_files=not is_first)
        return StreamOffset(head, 0, scan_all_files=True)

    def _from_oldest(self, first: SnapshotHead) -> StreamOffset:
        parent = first.parent_snapshot_id
        if parent is not None and self.loaded.metadata.snapshots.find_head(parent) is None:
            raise InvalidRequestError(
                f"Cannot begin a stream of {self.loaded.name} at a time: snapshots before {first.snapshot_id} of "
                f"{show_ms(first.timestamp_ms)} have expired, and some may be of that time",
                hint=f"Use stream-from-timestamp {first.timestamp_ms + 1} or later, or stream-from-snapshot=earliest.",
            )
        return StreamOffset(first.snapshot_id, 0)

    def _ancestor(self, snapshot_id: int, option: str) -> Snapshot:
        head = self.head_id
        heads = [] if head is None else ancestor_heads(self.loaded.metadata.snapshots, head)
        if not any(head.snapshot_id == snapshot_id for head in heads):
            raise SnapshotNotFoundError(
                f"Cannot begin a stream of {self.loaded.name} with {option} {snapshot_id}: branch "
                f"{self.rules.branch!r} has no such snapshot",
                hint="It may have expired. stream-from-snapshot also accepts earliest and latest.",
            )
        return self._snapshot(snapshot_id)

    # Extent of a batch

    def advance(self, start: StreamOffset, limits: StreamLimits = NO_LIMITS) -> StreamOffset:
        """Return the end offset of the next batch, or the start offset if there is nothing to read."""
        budget = _Budget(limits)
        after = self._after(start)
        last_read: Snapshot | None = None
        if not self._is_done(start, after):
            started = self._snapshot(start.snapshot_id)
            if start.scan_all_files or self._step(started, budget) is not _Step.SKIP:
                rest = self._take_rest(started, start, budget)
                if rest is not None:
                    return rest
            last_read = started
        passed: Snapshot | None = None
        for head in after:
            snapshot = self._snapshot(head.snapshot_id)
            step = self._step(snapshot, budget)
            if step is None or (budget.is_full and step is not _Step.SKIP):
                break
            if step is _Step.SKIP:
                passed = snapshot
                continue
            counts = _counts(snapshot)
            if self.rules.has_changes:
                if budget.is_used and (counts is None or not budget.holds(counts)):
                    break
                budget.take(counts or (1, 0, 0))
            elif counts is not None and counts[0] > 0 and budget.holds(counts):
                budget.take(counts)
            else:
                files = number_files(self.loaded, snapshot, is_whole=False, cache=self.cache)
                first = budget.take_files(files)
                if first is not None:
                    is_begun = len(files.numbers) > 0 and first > int(files.numbers[0])
                    if is_begun:
                        return StreamOffset(snapshot.snapshot_id, first)
                    break
                if len(files.numbers) == 0:
                    # A snapshot without files makes no batch.
                    passed = snapshot
                    continue
            last_read, passed = snapshot, None
        return self._end(start, after, last_read, passed, budget)

    def _end(
        self,
        start: StreamOffset,
        after: Sequence[SnapshotHead],
        snapshot: Snapshot | None,
        passed: Snapshot | None,
        budget: _Budget,
    ) -> StreamOffset:
        if budget.is_used:
            last = passed or snapshot
        else:
            last = (passed or snapshot) if self._is_idle(start, after, passed or snapshot) else None
        return start if last is None else self._done(last)

    def _is_idle(self, start: StreamOffset, after: Sequence[SnapshotHead], last: Snapshot | None) -> bool:
        """Return whether a batch without rows should be run, to record progress before the offset expires."""
        if last is None or not after:
            return False
        if self.loaded.metadata.snapshots.find_head(start.snapshot_id) is None and not start.is_start:
            return True
        return last.timestamp_ms - after[0].timestamp_ms >= _IDLE_MS

    def _take_rest(self, snapshot: Snapshot, start: StreamOffset, budget: _Budget) -> StreamOffset | None:
        """Take the rest of the snapshot that an offset is in; return the offset to stop at in it, or None."""
        counts = _counts(snapshot)
        is_unread = start.position == 0 and not start.scan_all_files
        if is_unread and (self.rules.has_changes or (counts is not None and budget.holds(counts))):
            budget.take(counts or (1, 0, 0))
            return None
        if start.scan_all_files and budget.limits == NO_LIMITS:
            budget.is_used = True
            return None
        files = number_files(self.loaded, snapshot, is_whole=start.scan_all_files, cache=self.cache)
        first = budget.take_files(files.after(start.position))
        if first is None:
            return None
        return StreamOffset(snapshot.snapshot_id, first, start.scan_all_files)

    def _done(self, snapshot: Snapshot) -> StreamOffset:
        """Return the offset after all files of a snapshot."""
        end = end_of_snapshot(self.loaded, snapshot, cache=self.cache)
        return StreamOffset(snapshot.snapshot_id, end, is_done=True)

    # Reads between two offsets

    def between(self, start: StreamOffset, end: StreamOffset) -> StreamBatch:
        """Return the reads from one offset to another."""
        if end == start or end.is_start:
            return StreamBatch()
        ended = TableStream(self.loaded, self.rules, self.cache, end.snapshot_id)
        after = ended._after(start)
        whole, runs, parts = None, list[tuple[int, ...]](), list[FilesPart]()
        if not ended._is_done(start, after):
            is_same = start.snapshot_id == end.snapshot_id and start.scan_all_files == end.scan_all_files
            files_part = FilesPart(start.snapshot_id, start.position, *((end.position,) if is_same else ()))
            if start.scan_all_files:
                whole = StreamFiles(parts=(files_part,), is_whole=True)
            elif self._step(self._snapshot(start.snapshot_id), None) is not _Step.SKIP:
                parts.append(files_part)
        if end.scan_all_files and end.snapshot_id != start.snapshot_id:
            raise InvalidRequestError(
                f"Cannot read a batch of {self.loaded.name}: its end {end.text} is not reached from {start.text}"
            )
        read = [head for head in after if self._step(self._snapshot(head.snapshot_id), None) is not _Step.SKIP]
        last = read[-1] if read and read[-1].snapshot_id == end.snapshot_id else None
        cut = None
        if last is not None and end.position < end_of_snapshot(
            self.loaded, self._snapshot(end.snapshot_id), cache=self.cache
        ):
            cut = FilesPart(end.snapshot_id, 0, end.position)
            read = read[:-1]
        if self.rules.has_changes:
            started = self.loaded.metadata.snapshots.find_head(start.snapshot_id)
            if parts and start.position == 0 and started is not None:
                parts, read = [], [started, *read]
            if cut is not None or (parts and self._step(self._snapshot(start.snapshot_id), None) is _Step.CHANGE):
                raise InvalidRequestError(
                    f"Cannot read changes of {self.loaded.name} between {start.text} and {end.text}: an offset is "
                    "within a snapshot",
                    hint="Let the query finish the snapshot with the options it was started with.",
                )
            return self._changes(whole, parts, read)
        for index, snapshot_head in enumerate(read):
            snapshot = self._snapshot(snapshot_head.snapshot_id)
            follows = index > 0 and snapshot_head.parent_snapshot_id == read[index - 1].snapshot_id
            if follows and snapshot.operation == Operation.APPEND:
                runs[-1] = (*runs[-1], snapshot_head.snapshot_id)
            else:
                runs.append((snapshot_head.snapshot_id,))
        parts += [] if cut is None else [cut]
        added = StreamFiles(tuple(runs), tuple(parts)) if runs or parts else None
        return StreamBatch(whole, added)

    @staticmethod
    def _changes(whole: StreamFiles | None, parts: list[FilesPart], read: list[SnapshotHead]) -> StreamBatch:
        added = StreamFiles(parts=tuple(parts)) if parts else None
        if not read:
            return StreamBatch(whole, added)
        window = Changelog(read[0].parent_snapshot_id, read[-1].snapshot_id)
        return StreamBatch(whole, added, window, tuple(snapshot_head.snapshot_id for snapshot_head in read))

    # Lag

    def latest(self) -> StreamOffset | None:
        """Return the offset after the whole table, or None if it is empty."""
        head = self.head_id
        return None if head is None else self._done(self._snapshot(head))

    def lag(self, offset: StreamOffset) -> Lag:
        """Return the unread part after an offset, by the summaries of snapshots.

        For the snapshot that the offset is in, the remaining files are counted.
        """
        after = self._after(offset)
        unread = [
            snapshot
            for snapshot_head in after
            if not self._is_skipped(snapshot := self._snapshot(snapshot_head.snapshot_id))
        ]
        counts = [_counts(snapshot) or (0, 0, 0) for snapshot in unread]
        if not self._is_done(offset, after):
            started = self._snapshot(offset.snapshot_id)
            if offset.scan_all_files or not self._is_skipped(started):
                files = number_files(self.loaded, started, is_whole=offset.scan_all_files, cache=self.cache)
                rest = files.after(offset.position)
                counts.append((len(rest.numbers), int(rest.rows.sum()), int(rest.sizes.sum())))
        return Lag(len(counts), *(sum(count[index] for count in counts) for index in range(3)))

    # Steps

    def _snapshot(self, snapshot_id: int) -> Snapshot:
        return self.loaded.metadata.snapshot(snapshot_id)

    def _after(self, offset: StreamOffset) -> list[SnapshotHead]:
        """Return the snapshots after that of an offset, oldest first; refuse an offset that is not in the chain."""
        metadata, head = self.loaded.metadata, self.head_id
        if head is None:
            if offset.is_start:
                return []
            raise self._lost(offset, f"branch {self.rules.branch!r} has no snapshot", None)
        if metadata.snapshots.find_head(head) is None:
            raise self._lost(offset, f"snapshot {head}, the end of the stream, has expired", None)
        after: list[SnapshotHead] = []
        for ancestor in ancestor_heads(metadata.snapshots, head):
            if ancestor.snapshot_id == offset.snapshot_id:
                return after[::-1]
            if offset.is_start and ancestor.timestamp_ms < (offset.since_ms or 0):
                return after[::-1]
            after.append(ancestor)
        oldest = after[-1]
        parent = oldest.parent_snapshot_id
        if parent is None and offset.is_start:
            return after[::-1]
        if parent is not None and parent == offset.snapshot_id:
            return after[::-1]
        if offset.is_start:
            raise self._lost(offset, f"the snapshots before {oldest.snapshot_id} have expired", oldest)
        if metadata.snapshots.find_head(offset.snapshot_id) is not None:
            raise self._lost(
                offset,
                f"branch {self.rules.branch!r} was set back or replaced: its snapshot {head} does not descend from "
                f"snapshot {offset.snapshot_id}",
                None,
            )
        if parent is None:
            reason = (
                f"snapshot {offset.snapshot_id} does not belong to the table: the table was replaced, set back, or the "
                "checkpoint is of another table"
            )
            raise self._lost(offset, reason, None)
        reason = (
            f"snapshot {offset.snapshot_id} and its successors up to snapshot {parent} have expired; the "
            f"oldest remaining is {oldest.snapshot_id} of {show_ms(oldest.timestamp_ms)}"
        )
        raise self._lost(offset, reason, oldest)

    def _lost(self, offset: StreamOffset, reason: str, oldest: SnapshotHead | None) -> SnapshotNotFoundError:
        restart = "stream-from-snapshot=earliest" if oldest is None else f"stream-from-snapshot={oldest.snapshot_id}"
        return SnapshotNotFoundError(
            f"Cannot continue the stream of {self.loaded.name} from {offset.text}: {reason}",
            hint=f"Start with a new checkpoint: without options it reads the whole table first; {restart} or "
            "stream-from-snapshot=latest leave out older rows. stream-guard keeps snapshots that a stream needs.",
        )

    def _is_done(self, offset: StreamOffset, after: Sequence[SnapshotHead]) -> bool:
        """Return whether no file remains of the snapshot that an offset is in."""
        if offset.is_start or offset.is_done:
            return True
        snapshot = self.loaded.metadata.find_snapshot(offset.snapshot_id)
        if snapshot is not None:
            if offset.scan_all_files:
                return False
            return offset.position >= end_of_snapshot(self.loaded, snapshot, cache=self.cache)
        if not offset.scan_all_files and after and offset.position >= self._end_from_child(offset, after[0]):
            return True
        raise self._lost(offset, f"snapshot {offset.snapshot_id} has expired before it was read to its end", None)

    def _end_from_child(self, offset: StreamOffset, child: SnapshotHead) -> int:
        """Return the number after the last file of an expired snapshot, by the list of its successor.

        For offsets of Iceberg Java, which do not record that they are done.
        """
        snapshot = self._snapshot(child.snapshot_id)
        listed = [
            manifest
            for manifest in read_manifest_list(self.loaded.storage, snapshot, self.cache)
            if manifest.content is ManifestContent.DATA
        ]
        own = [manifest for manifest in listed if manifest.added_snapshot_id == offset.snapshot_id]
        rewritten = [manifest for manifest in listed if manifest.added_snapshot_id in (None, child.snapshot_id)]
        if any(manifest.has_existing_files or manifest.has_deleted_files for manifest in rewritten) or not own:
            # Its manifests may have been merged, so it is unknown which of its files were read.
            return offset.position + 1
        expired = Snapshot(offset.snapshot_id, 0, manifest_list="", manifests=None)
        return end_of_manifests(number_manifests(self.loaded, expired, is_whole=False, manifests=own, cache=self.cache))

    def _is_skipped(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is skipped entirely."""
        operation, rules = snapshot.operation, self.rules
        if operation in (Operation.APPEND, Operation.REPLACE):
            return operation == Operation.REPLACE
        is_skipped = {Operation.DELETE: rules.skips_deletes, Operation.OVERWRITE: rules.skips_overwrites}
        return rules.not_appends is NotAppends.SKIP or is_skipped.get(operation or "", False)

    def _step(self, snapshot: Snapshot, budget: _Budget | None) -> _Step | None:
        """Return how the stream handles a snapshot, or None if the batch ends before it because it would be refused."""
        operation, rules = snapshot.operation, self.rules
        if self._is_skipped(snapshot):
            return _Step.SKIP
        if operation == Operation.APPEND:
            return _Step.READ
        if rules.not_appends is NotAppends.CHANGES:
            return _Step.CHANGE
        if rules.not_appends is NotAppends.ADDED_FILES:
            return _Step.READ
        if budget is not None and budget.is_used:
            return None
        raise UnsupportedError(
            f"Cannot stream {self.loaded.name} past snapshot {snapshot.snapshot_id} of "
            f"{show_ms(snapshot.timestamp_ms)}: it is not an append ({operation or 'it has no operation'})",
            hint="Choose what to do with the option streaming-changes: changes (rows with _change_type, added and "
            "removed), added-files (rows of files that it added, including old rows), or skip (leave it out).",
        )


def _counts(snapshot: Snapshot) -> tuple[int, int, int] | None:
    """Return the files, rows and bytes that a snapshot added by its summary, or None if it lacks them."""
    summary = snapshot.summary
    if summary is None:
        return None
    texts = [summary.get(text) for text in (Summary.ADDED_DATA_FILES, Summary.ADDED_RECORDS, Summary.ADDED_FILES_SIZE)]
    if texts[0] is None:
        # Some writers leave out counts of zero, others leave out all counts.
        texts = ["0", "0", "0"] if Summary.TOTAL_DATA_FILES in summary else texts
    if any(text is None or not (text.isascii() and text.isdigit()) for text in texts):
        return None
    files, rows, size_bytes = (int(text or 0) for text in texts)
    return files, rows, size_bytes
