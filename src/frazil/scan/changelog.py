"""Row-level changes between two snapshots: the files to read, and which of their rows. Change feeds begin here.

The window is the ancestry of the end snapshot back to the start, which is exclusive. Snapshots that only rewrite files
(`replace`) change no rows and are skipped; the others are numbered from 0, oldest first. A snapshot changes rows in
four ways. Each is a task with the deletes that hide rows and, if the file stays, the deletes that select its changed
rows:

    added file        INSERT   rows that remain after the snapshot's own deletes
    removed file      DELETE   rows that were live before it
    added deletes     DELETE   in remaining files, rows that were live before and that the deletes now remove
    removed deletes   INSERT   in remaining files, rows that are restored

The state before a snapshot is read from the snapshot itself, whose manifests list what it removed, since its parent may
have expired. All rows are read with the table's current schema. Rows that a rewrite of files merely copied appear
twice, as removed and as added; the reader of the feed decides whether to cancel them out.

Iceberg Java's changelog scan refuses snapshots with deletes; this one reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_fields import COLUMNS
from frazil.errors import InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import Mask
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.delete_index import DELETE_FIELDS, DeleteIndex
from frazil.scan.explain import PlanCounts
from frazil.scan.file_rows import FILE_FIELDS, data_files_of
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import FileBatch, Plan, add_counts, rows_of
from frazil.scan.prune import METRIC_FIELDS
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.scan.tasks import DeleteTask, FileScanTask
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.snapshot import Operation, Snapshot
from frazil.spec.snapshot_history import ancestor_heads, ancestor_ids, ancestor_ids_between
from frazil.spec.table_metadata import TableMetadata
from frazil.threads import default_threads, map_in_order

INSERT = "INSERT"
DELETE = "DELETE"

CHANGE_TYPE_FIELD = "change_type"
CHANGE_ORDINAL_FIELD = "change_ordinal"
COMMIT_SNAPSHOT_FIELD = "commit_snapshot_id"
SINGLED_OUT_BY_FIELD = "singled_out_by"
BY_VALUE_FIELD = "by_value"
"""Columns of a batch's files besides those of the manifest; the last says whether an equality delete is involved."""

_OWN_FIELDS = (CHANGE_TYPE_FIELD, CHANGE_ORDINAL_FIELD, COMMIT_SNAPSHOT_FIELD, SINGLED_OUT_BY_FIELD, BY_VALUE_FIELD)


@dataclass(frozen=True, slots=True)
class Changelog:
    """The changes after one snapshot, up to and including another; without a start, from the oldest ancestor on."""

    after_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    is_empty: bool = False
    """Whether the window contains no snapshot."""


@dataclass(frozen=True, slots=True)
class ChangelogTask(FileScanTask):
    """One data file with changed rows; the deletes of the task hide rows.

    With `singled_out_by`, only the rows that these deletes remove are changed.
    """

    change_type: str = INSERT
    change_ordinal: int = 0
    commit_snapshot_id: int = 0
    singled_out_by: tuple[DeleteTask, ...] | None = None


def changelog_between(
    metadata: TableMetadata,
    *,
    start_snapshot_id: int | None = None,
    end_snapshot_id: int | None = None,
    start_ms: int | None = None,
    end_ms: int | None = None,
) -> Changelog:
    """Return the window between two snapshots or times, with an exclusive start and an inclusive end.

    Times are resolved along the current snapshot's ancestry: a start is the first snapshot not before it, which is left
    out if it has exactly that time; an end is the last snapshot not after it.
    """
    if start_snapshot_id is not None and start_ms is not None:
        raise InvalidRequestError("Cannot read changes with both start-snapshot-id and start-timestamp: pass only one")
    if end_snapshot_id is not None and end_ms is not None:
        raise InvalidRequestError("Cannot read changes with both end-snapshot-id and end-timestamp: pass only one")
    if start_ms is not None and end_ms is not None and start_ms >= end_ms:
        raise InvalidRequestError(
            f"Cannot read changes from start-timestamp {start_ms} to end-timestamp {end_ms}: the end is not later"
        )
    nothing = Changelog(is_empty=True)
    current = metadata.current_snapshot
    heads = [] if current is None else list(ancestor_heads(metadata.snapshots, current.snapshot_id))
    if start_ms is not None:
        if current is None or start_ms > current.timestamp_ms:
            return nothing
        start_snapshot_id = _start_of(metadata, [head.snapshot_id for head in heads], start_ms)
    if end_ms is not None:
        end_snapshot_id = next((head.snapshot_id for head in heads if head.timestamp_ms <= end_ms), None)
        if end_snapshot_id is None or end_snapshot_id == start_snapshot_id:
            return nothing
    return Changelog(start_snapshot_id, end_snapshot_id)


def _start_of(metadata: TableMetadata, ids: Sequence[int], start_ms: int) -> int | None:
    """Return the snapshot after which changes begin: the newest one before a time, or the one of that time."""
    last: Snapshot | None = None
    for snapshot in (metadata.snapshot(snapshot_id) for snapshot_id in ids):
        if snapshot.timestamp_ms <= start_ms:
            return snapshot.snapshot_id
        last = snapshot
    if last is not None and last.parent_snapshot_id is not None:
        raise InvalidRequestError(
            f"Cannot read changes from start-timestamp {start_ms}: the snapshots before snapshot {last.snapshot_id} "
            "have expired",
            hint=f"Start at {last.timestamp_ms}, or with start-snapshot-id {last.parent_snapshot_id}.",
        )
    return None


def plan_changelog(
    loaded: LoadedTable,
    predicate: Predicate | str = TRUE,
    *,
    window: Changelog = Changelog(),  # noqa: B008 - a frozen value
    case_sensitive: bool = True,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> ChangelogPlan:
    """Plan the files that hold the rows changed in a window; reads no manifest before the plan is used."""
    metadata = loaded.metadata
    end = metadata.current_snapshot if window.to_snapshot_id is None else metadata.snapshot(window.to_snapshot_id)
    start = window.after_snapshot_id
    if end is None and start is not None:
        raise InvalidRequestError(
            f"Cannot plan the changes after snapshot {start}: {loaded.name} has no current snapshot"
        )
    unbound = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    bound = bind(metadata.current_schema, unbound, case_sensitive=case_sensitive)
    ids: Sequence[int] = ()
    if end is not None and not window.is_empty:
        ids = (
            tuple(ancestor_ids(metadata, end.snapshot_id))
            if start is None
            else ancestor_ids_between(metadata, after_snapshot_id=start, to_snapshot_id=end.snapshot_id)
        )
    plan = ChangelogPlan(loaded, end, metadata.current_schema, bound, cache, threads or default_threads())
    plan.changed_ids = tuple(
        snapshot_id for snapshot_id in reversed(ids) if metadata.snapshot(snapshot_id).operation != Operation.REPLACE
    )
    return plan


class _NumberedDeletes:
    """The deletes of all snapshots of a plan under one numbering."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._indexes: list[DeleteIndex] = []
        self._total = 0

    def add(self, index: DeleteIndex) -> int:
        """Add a snapshot's deletes; return the number of the first."""
        start = self._total
        self._starts.append(start)
        self._indexes.append(index)
        self._total += len(index.tasks)
        return start

    def task(self, number: int) -> DeleteTask:
        """Return a delete by its number."""
        index = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self._indexes[index].task(number - self._starts[index])

    @property
    def tasks(self) -> Sequence[DeleteTask]:
        """All deletes by number."""
        return [task for index in self._indexes for task in index.tasks]


@dataclass(frozen=True)
class _DeletesState:
    """The deletes before or after a snapshot, with the number of the first of them in the plan."""

    index: DeleteIndex
    start: int

    def deletes_for(self, files: ManifestColumns) -> list[tuple[int, ...]]:
        """Return for each data file the numbers of the deletes that apply to it."""
        if self.index.is_empty:
            return [()] * len(files)
        return [tuple(self.start + number for number in numbers) for numbers in self.index.deletes_for(files)]


class ChangelogPlan(Plan):
    """The files whose rows were changed by snapshots, with the changes. Created by `plan_changelog`."""

    changed_ids: tuple[int, ...] = ()
    _subject = "the changes"

    @cached_property
    def _numbered(self) -> _NumberedDeletes:
        return _NumberedDeletes()

    @property
    def delete_files(self) -> Sequence[DeleteTask]:
        """The deletes that may apply, of all snapshots; reads the plan to its end."""
        for _ in self.batches():
            pass
        return self._numbered.tasks

    def iter_tasks(self) -> Iterator[ChangelogTask]:
        """Yield the tasks as manifests are read, oldest snapshot first."""
        for batch in self.batches():
            yield from self.tasks_of(batch)

    def tasks_of(self, batch: FileBatch) -> Iterator[ChangelogTask]:
        """Yield the tasks of one batch of this plan's files."""
        residuals = self._pruner.for_spec(batch.files.spec_id).residuals
        own = {name: batch.files.column(name).to_pylist() for name in _OWN_FIELDS}
        plain = replace(batch.files, table=batch.files.table.drop_columns(list(_OWN_FIELDS)))
        task = self._numbered.task
        for index, (file, sequence_number) in enumerate(data_files_of(plain)):
            singled_out = own[SINGLED_OUT_BY_FIELD][index]
            yield ChangelogTask(
                file,
                sequence_number,
                () if batch.deletes is None else tuple(map(task, batch.deletes[index])),
                residuals.of(file.partition),
                change_type=own[CHANGE_TYPE_FIELD][index],
                change_ordinal=own[CHANGE_ORDINAL_FIELD][index],
                commit_snapshot_id=own[COMMIT_SNAPSHOT_FIELD][index],
                singled_out_by=None if singled_out is None else tuple(map(task, singled_out)),
            )

    def _read(self) -> Iterator[FileBatch]:
        for ordinal, snapshot_id in enumerate(self.changed_ids):
            snapshot = self.loaded.metadata.snapshot(snapshot_id)
            yield from _SnapshotChanges(self, snapshot, ordinal).batches()


class _SnapshotChanges:
    """The changes of one snapshot."""

    def __init__(self, plan: ChangelogPlan, snapshot: Snapshot, ordinal: int) -> None:
        self._plan = plan
        self._id = snapshot.snapshot_id
        self._ordinal = ordinal
        self._manifests = read_manifest_list(plan.loaded.storage, snapshot)
        written = [manifest for manifest in self._manifests if manifest.added_snapshot_id in (None, self._id)]
        self._written = [manifest for manifest in written if manifest.content is ManifestContent.DATA]
        self._has_own_deletes = any(manifest.content is ManifestContent.DELETES for manifest in written)

    def batches(self) -> Iterator[FileBatch]:
        """Yield the files of the snapshot's changes."""
        before, after = self._states()
        needs_values = before.index.has_equality_deletes or after.index.has_equality_deletes
        fields = {*FILE_FIELDS, "snapshot_id"}
        if self._plan._pruner.needs_metrics or needs_values:
            fields |= {*METRIC_FIELDS}
        for files in self._files(self._written, fields, self._is_changed):
            is_added = files.column("status").to_numpy() == EntryStatus.ADDED.value
            for mask, state, change_type in ((is_added, after, INSERT), (~is_added, before, DELETE)):
                if mask.any():
                    chosen = rows_of(files, mask)
                    deletes = state.deletes_for(chosen)
                    yield self._batch(chosen, deletes, None, change_type)
        if self._has_own_deletes:
            manifests = [
                manifest
                for manifest in self._manifests
                if manifest.content is ManifestContent.DATA and manifest.has_live_files
            ]
            for files in self._files(manifests, fields, self._is_kept):
                yield from self._row_changes(files, before, after)

    def _row_changes(self, files: ManifestColumns, before: _DeletesState, after: _DeletesState) -> Iterator[FileBatch]:
        """Yield the remaining files whose deletes changed."""
        earlier, later = before.deletes_for(files), after.deletes_for(files)
        for hiding, singling, change_type in ((earlier, later, DELETE), (later, earlier, INSERT)):
            has_more = [
                bool(singled) and not self._names(singled) <= self._names(hidden)
                for hidden, singled in zip(hiding, singling, strict=True)
            ]
            mask = np.array(has_more, dtype=bool)
            if mask.any():
                chosen = [index for index, is_more in enumerate(has_more) if is_more]
                yield self._batch(
                    rows_of(files, mask),
                    [hiding[index] for index in chosen],
                    [singling[index] for index in chosen],
                    change_type,
                )

    def _names(self, numbers: tuple[int, ...]) -> frozenset[tuple[str, int | None]]:
        files = [self._plan._numbered.task(number).data_file for number in numbers]
        return frozenset((file.file_path, file.content_offset) for file in files)

    def _batch(
        self,
        files: ManifestColumns,
        deletes: list[tuple[int, ...]],
        singling: list[tuple[int, ...]] | None,
        change_type: str,
    ) -> FileBatch:
        count = len(files)
        task = self._plan._numbered.task
        all_deletes = (
            deletes if singling is None else [delete + two for delete, two in zip(deletes, singling, strict=True)]
        )
        by_value = [
            any(task(number).data_file.content is FileContent.EQUALITY_DELETES for number in numbers)
            for numbers in all_deletes
        ]
        kept_columns = [name for name in COLUMNS if name in files.table.column_names and name not in METRIC_FIELDS]
        table = files.table.select(kept_columns)
        own = {
            CHANGE_TYPE_FIELD: pa.repeat(pa.scalar(change_type, pa.string()), count),
            CHANGE_ORDINAL_FIELD: pa.repeat(pa.scalar(self._ordinal, pa.int32()), count),
            COMMIT_SNAPSHOT_FIELD: pa.repeat(pa.scalar(self._id, pa.int64()), count),
            SINGLED_OUT_BY_FIELD: pa.array([None] * count if singling is None else singling, pa.list_(pa.int32())),
            BY_VALUE_FIELD: pa.array(by_value, pa.bool_()),
        }
        for name, values in own.items():
            table = table.append_column(name, values)
        is_applied = singling is not None or any(deletes)
        return FileBatch(replace(files, table=table), deletes if is_applied else None)

    # Masks of entries

    def _is_changed(self, files: ManifestColumns) -> Mask:
        is_own: Mask = files.column("snapshot_id").to_numpy() == self._id
        is_existing: Mask = files.column("status").to_numpy() == EntryStatus.EXISTING.value
        return is_own & ~is_existing

    def _is_kept(self, files: ManifestColumns) -> Mask:
        return live_mask(files) & ~self._is_changed(files)

    def _was_live(self, files: ManifestColumns) -> Mask:
        is_deleted: Mask = ~live_mask(files)
        return self._is_kept(files) | (is_deleted & self._is_changed(files))

    # Reading

    def _states(self) -> tuple[_DeletesState, _DeletesState]:
        """Return the deletes before and after the snapshot that may affect its changes."""
        manifests = [manifest for manifest in self._manifests if manifest.content is ManifestContent.DELETES]
        if not self._has_own_deletes and all(manifest.deleted_files_count == 0 for manifest in self._written):
            # Files that were only added are not affected by older deletes.
            oldest = min((manifest.min_sequence_number for manifest in self._written), default=0)
            manifests = [manifest for manifest in manifests if self._written and manifest.sequence_number >= oldest]
        fields = {*DELETE_FIELDS, "snapshot_id"}
        deletes = list(self._read(manifests, fields))
        return self._state(deletes, self._was_live), self._state(deletes, live_mask)

    def _state(self, deletes: list[ManifestColumns], selects: Callable[[ManifestColumns], Mask]) -> _DeletesState:
        chosen = []
        for files in deletes:
            kept = rows_of(files, self._plan._pruner.prune_files(files, selects(files)).keep)
            if len(kept):
                chosen.append(kept)
        index = DeleteIndex(chosen, self._plan.loaded.metadata)
        return _DeletesState(index, self._plan._numbered.add(index))

    def _files(
        self, manifests: list[ManifestFile], fields: set[str], selects: Callable[[ManifestColumns], Mask]
    ) -> Iterator[ManifestColumns]:
        """Yield the selected entries that can match, manifest by manifest."""
        plan = self._plan

        def read(manifest: ManifestFile) -> tuple[ManifestColumns, PlanCounts]:
            return plan._files_of(manifest, fields, selects=selects)

        for kept, counts in map_in_order(read, self._chosen(manifests), threads=plan._threads):
            add_counts(plan.data_counts, counts)
            if len(kept):
                yield kept

    def _read(self, manifests: list[ManifestFile], fields: set[str]) -> Iterator[ManifestColumns]:
        plan = self._plan

        def read(manifest: ManifestFile) -> ManifestColumns:
            partition_type = plan._specs[manifest.partition_spec_id][1]
            return read_manifest(plan.loaded.storage, manifest, partition_type, fields, cache=plan._cache)

        return map_in_order(read, self._chosen(manifests), threads=plan._threads)

    def _chosen(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Return the manifests that can hold a match."""
        for manifest in manifests:
            self._plan._check_spec(manifest)
        return [manifest for manifest in manifests if self._plan._pruner.keeps_manifest(manifest)]
