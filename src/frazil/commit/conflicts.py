"""Changes of other writers since an operation read the table, and whether it may still commit: one function per rule.

The window is the snapshots after the one that was read, up to the head of the same branch. If it cannot be walked,
because the snapshot has expired or is not an ancestor of the head, the operation is refused: the changes are unknown,
which does not mean that there are none. Snapshots of the same transaction are not a conflict; an operation that read
one of them is taken to have read the state that the transaction started from.

    added_data_files          data that matches the read set was added            (append, overwrite)
    new_delete_files          deletes that may apply to the read set were added   (overwrite, delete; vectors: replace)
    deleted_data_files        data that matches the read set was removed         (overwrite, delete; replace on request)
    still_whole               matching rows now share a file with others          (replace)
    data_files_exist          a file that new deletes refer to was removed       (overwrite, replace; delete on request)
    new_deletes_for_files     a replaced file got new deletes                     (overwrite, delete; vectors: replace)
    added_vectors             a file got another deletion vector                  (overwrite, delete, replace)
    files_of_other_specs      data of another partition spec was added            (append, overwrite)
    rows_unchanged            any row was added, changed or deleted               (append, overwrite, delete)
    columns_unchanged         the table's columns were changed
    same_ids                  they were, and files use columns added by the same transaction

Filters are inclusive, by each file's own spec and metrics: a file that may match conflicts. Only manifests that the
window's snapshots wrote are read, as columns. A snapshot without an operation may have done anything.

Every refusal is a ConcurrentChangeError. It is never retried: the operation must be run again.

Specification: "Optimistic Concurrency", which leaves the rules to writers. These are Iceberg Java's, or stricter if a
comment says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.encode_manifest import entries_to_table
from frazil.codec.manifest_avro import ManifestColumns
from frazil.commit.action import CommitContext
from frazil.commit.match_files import FileMatcher
from frazil.commit.new_snapshot import find_parent
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.expr.columns.partition_keys import partition_keys
from frazil.expr.columns.stats_masks import Mask, to_mask
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.delete_index import DELETE_FIELDS, DeleteIndex
from frazil.scan.prune import METRIC_FIELDS
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.data_file import DataFile, FileContent, FileFormat, PartitionKey
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.properties import IsolationLevel
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Operation, Snapshot
from frazil.spec.snapshot_history import ancestor_ids_between
from frazil.threads import map_in_order

_FIELDS = ("status", "snapshot_id", "content", "file_path", "file_format", "partition", "record_count", *METRIC_FIELDS)
_APPENDING = frozenset({Operation.APPEND, Operation.OVERWRITE})
_DELETING = frozenset({Operation.OVERWRITE, Operation.DELETE})
_REMOVING = frozenset({Operation.OVERWRITE, Operation.REPLACE, Operation.DELETE})
_HINT = "Another writer changed what this operation read, and nothing was committed. Run it again."


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What an operation read before it wrote: a snapshot of the branch, and a filter of its rows.

    `snapshot_id` is None if the branch had no snapshot yet. The filter is bound to the schema that the operation read,
    so renaming a column does not change its meaning. Under `snapshot` isolation an operation is refused if another
    writer changed the same files or rows; under `serializable`, also if another writer added rows that it would have
    read.
    """

    snapshot_id: int | None
    predicate: Predicate = TRUE
    isolation: IsolationLevel = "serializable"
    case_sensitive: bool = True

    @property
    def is_serializable(self) -> bool:
        """Whether concurrently added rows conflict."""
        return self.isolation == "serializable"


class Window:
    """The snapshots of a branch after the one that an operation read, with the files they wrote."""

    def __init__(self, loaded: LoadedTable, context: CommitContext, snapshots: Sequence[Snapshot]) -> None:
        self._loaded = loaded
        self._context = context
        self._specs = partition_types(loaded.metadata)
        self.snapshots = snapshots

    def written(
        self,
        content: ManifestContent,
        status: EntryStatus,
        operations: Collection[str],
        fields: Iterable[str] = _FIELDS,
        *,
        includes: Callable[[ManifestFile], bool] = lambda manifest: True,
    ) -> Iterator[tuple[Snapshot, ManifestColumns]]:
        """Yield the entries of one status written by snapshots of the given operations, snapshot by snapshot."""
        for snapshot in self.snapshots:
            if snapshot.operation is not None and snapshot.operation not in operations:
                continue
            chosen = [
                manifest
                for manifest in self._manifests[snapshot.snapshot_id]
                if manifest.content is content and _may_have(manifest, status) and includes(manifest)
            ]
            for manifest in chosen:
                files = self._read(manifest, fields)
                is_own = pc.equal(files.column("snapshot_id"), snapshot.snapshot_id)
                mask = to_mask(pc.and_(pc.equal(files.column("status"), status.value), is_own))
                if mask.any():
                    yield snapshot, replace(files, table=files.table.filter(pa.array(mask)))

    @cached_property
    def _manifests(self) -> dict[int, list[ManifestFile]]:
        """The manifests that each snapshot wrote itself."""
        storage = self._loaded.storage

        def read_one(snapshot: Snapshot) -> tuple[int, list[ManifestFile]]:
            key = ("manifests of", snapshot.snapshot_id)
            manifests: list[ManifestFile] | None = self._context.written.find(key)
            if manifests is None:
                own = (None, snapshot.snapshot_id)
                manifests = [
                    manifest for manifest in read_manifest_list(storage, snapshot) if manifest.added_snapshot_id in own
                ]
                self._context.written.keep(key, manifests)
            return snapshot.snapshot_id, manifests

        threads = min(self._context.threads, max(len(self.snapshots), 1))
        return dict(map_in_order(read_one, self.snapshots, threads=threads))

    def _read(self, manifest: ManifestFile, fields: Iterable[str]) -> ManifestColumns:
        partition_type = self._specs[manifest.partition_spec_id][1]
        return read_manifest(
            self._loaded.storage, manifest, partition_type, frozenset(fields), cache=self._context.cache
        )

    def matcher(self, read: ReadSet) -> FileMatcher:
        """Return the filter of a read set."""
        return FileMatcher(self._loaded.metadata, self._specs, read.predicate, case_sensitive=read.case_sensitive)

    def deletes_for(self, deletes: ManifestColumns, files: Sequence[DataFile]) -> list[str]:
        """Return the data files that the deletes of a snapshot apply to, regardless of sequence numbers."""
        index = DeleteIndex([deletes], self._loaded.metadata)
        paths: list[str] = []
        for spec_id in {file.spec_id for file in files}:
            group = [file for file in files if file.spec_id == spec_id]
            entries = [ManifestEntry(EntryStatus.EXISTING, file, None, 0, 0) for file in group]
            partition_type = self._specs[spec_id][1]
            columns = ManifestColumns(
                entries_to_table(entries, partition_type),
                {},
                ManifestContent.DATA,
                self._loaded.metadata.format_version,
                spec_id,
                partition_type,
            )
            paths += [
                file.file_path for file, numbers in zip(group, index.deletes_for(columns), strict=True) if numbers
            ]
        return paths


def open_window(
    loaded: LoadedTable, context: CommitContext, read: ReadSet, parent: Snapshot | None, branch: str
) -> Window:
    """Return the window of an operation on a branch; refuse one whose history is unknown."""
    start_id = read.snapshot_id
    if start_id is not None and start_id in context.own_ids and context.first is not None:
        first = find_parent(context.first, branch)
        start_id = None if first is None else first.snapshot_id
    after = _snapshots_after(loaded, start_id, parent)
    return Window(loaded, context, [snapshot for snapshot in after if snapshot.snapshot_id not in context.own_ids])


def _snapshots_after(loaded: LoadedTable, start_id: int | None, parent: Snapshot | None) -> list[Snapshot]:
    metadata = loaded.metadata
    if parent is None:
        if start_id is None:
            return []
        raise _unknown_history(start_id, "the branch no longer has a snapshot")
    try:
        ids = ancestor_ids_between(metadata, after_snapshot_id=start_id, to_snapshot_id=parent.snapshot_id)
    except InvalidRequestError as problem:
        raise _unknown_history(start_id, problem.message) from problem
    return [metadata.snapshot(snapshot_id) for snapshot_id in ids]


def _unknown_history(start_id: int | None, reason: str) -> ConcurrentChangeError:
    start = "an empty table" if start_id is None else f"snapshot {start_id}"
    return ConcurrentChangeError(
        f"Cannot commit: the changes since {start} are unknown: {reason}",
        hint="The snapshot that was read has expired, or the branch was moved. Run the operation again.",
    )


def _may_have(manifest: ManifestFile, status: EntryStatus) -> bool:
    if status is EntryStatus.ADDED:
        return manifest.has_added_files
    return manifest.has_deleted_files if status is EntryStatus.DELETED else manifest.has_existing_files


# Rules over a filter


def check_added_data_files(window: Window, read: ReadSet) -> None:
    """Refuse if data was added that the operation would have read."""
    matcher = window.matcher(read)
    written = window.written(ManifestContent.DATA, EntryStatus.ADDED, _APPENDING, includes=matcher.may_match_manifest)
    for snapshot, files in written:
        _refuse_any(
            files, matcher.may_match(files, _all(files)), f"data that can match {read.predicate} was added", snapshot
        )


def check_new_delete_files(window: Window, read: ReadSet) -> None:
    """Refuse if deletes were added that may apply to rows that the operation read."""
    matcher = window.matcher(read)
    written = window.written(ManifestContent.DELETES, EntryStatus.ADDED, _REMOVING, includes=matcher.may_match_manifest)
    for snapshot, files in written:
        mask = _counted(files, snapshot) & matcher.may_match(files, _all(files))
        _refuse_any(files, mask, f"deletes that can match {read.predicate} were added", snapshot)


def check_deleted_data_files(window: Window, read: ReadSet, *, includes_moved: bool = True) -> None:
    """Refuse if data that the operation read was removed, by default even if its rows were only moved.

    Iceberg Java always includes moved rows.
    """
    matcher = window.matcher(read)
    operations = _REMOVING if includes_moved else _DELETING
    written = window.written(ManifestContent.DATA, EntryStatus.DELETED, operations, includes=matcher.may_match_manifest)
    for snapshot, files in written:
        _refuse_any(
            files, matcher.may_match(files, _all(files)), f"data that can match {read.predicate} was removed", snapshot
        )


def check_still_whole(window: Window, read: ReadSet) -> None:
    """Refuse if a compaction moved rows that the operation replaces into a file with other rows."""
    matcher = window.matcher(read)
    replacing = (Operation.REPLACE,)
    written = window.written(ManifestContent.DATA, EntryStatus.ADDED, replacing, includes=matcher.may_match_manifest)
    for snapshot, files in written:
        some, every = matcher.match(files, _all(files))
        what = f"rows that match {read.predicate} were moved into a file with others"
        _refuse_any(files, some & ~every, what, snapshot)


# Rules over the whole table


def check_rows_unchanged(window: Window) -> None:
    """Refuse if any row was added, changed or deleted; rewritten files hold the same rows."""
    for snapshot in window.snapshots:
        if snapshot.operation != Operation.REPLACE:
            raise ConcurrentChangeError(
                f"Cannot commit: rows were changed by snapshot {snapshot.snapshot_id}",
                hint=_HINT,
                snapshot_id=snapshot.snapshot_id,
            )


def check_columns_unchanged(context: CommitContext) -> None:
    """Refuse if the columns of the table changed since the transaction began."""
    first, base = context.first, context.base
    if first is None or base is None:
        return
    if (first.current_schema, first.last_column_id) != (base.current_schema, base.last_column_id):
        raise ConcurrentChangeError("Cannot commit: the schema was changed", hint=_HINT)


def check_same_ids(written: Schema, context: CommitContext) -> None:
    """Refuse files for columns that the same transaction added, if another writer changed the schema since.

    Added again to another schema, the columns get other ids than those in the files, which may then belong to other
    columns.
    """
    if context.first is not None and written != context.first.current_schema:
        check_columns_unchanged(context)


# Rules over partitions


def check_added_in_partitions(window: Window, keys: Collection[PartitionKey]) -> None:
    """Refuse if data was added to partitions that the operation replaces."""
    for snapshot, files in window.written(ManifestContent.DATA, EntryStatus.ADDED, _APPENDING):
        _refuse_any(files, _in_partitions(files, keys), "data was added to a partition that is replaced", snapshot)


def check_deletes_in_partitions(window: Window, keys: Collection[PartitionKey]) -> None:
    """Refuse if deletes were added to partitions that the operation replaces, or to all partitions."""
    specs = {key[0] for key in keys}
    for snapshot, files in window.written(ManifestContent.DELETES, EntryStatus.ADDED, _REMOVING):
        # Equality deletes of an unpartitioned spec apply to every partition.
        is_global = len(files.partition_type.fields) == 0 and files.spec_id not in specs
        mask = _counted(files, snapshot) & (_all(files) if is_global else _in_partitions(files, keys))
        _refuse_any(files, mask, "deletes were added to a partition that is replaced", snapshot)


def check_deleted_in_partitions(window: Window, keys: Collection[PartitionKey]) -> None:
    """Refuse if data was removed from partitions that the operation replaces."""
    for snapshot, files in window.written(ManifestContent.DATA, EntryStatus.DELETED, _REMOVING):
        _refuse_any(files, _in_partitions(files, keys), "data was removed from a partition that is replaced", snapshot)


def check_no_other_specs(window: Window, spec_ids: Collection[int]) -> None:
    """Refuse if data of another partition spec was added: its partitions cannot be compared.

    Stricter than Iceberg Java, which does not see such files.
    """
    for snapshot, files in window.written(ManifestContent.DATA, EntryStatus.ADDED, _APPENDING):
        if files.spec_id not in spec_ids:
            _refuse_any(files, _all(files), f"data of partition spec {files.spec_id} was added", snapshot)


# Rules over named files


def check_data_files_exist(window: Window, paths: Collection[str], *, counts_deletes: bool) -> None:
    """Refuse if a data file that new deletes refer to was removed; by a delete only if `counts_deletes`.

    A file that a delete removed has no rows left to delete. If an overwrite or a compaction removed it, its rows are in
    other files, which the deletes would not reach.
    """
    targets = pa.array(sorted(paths), pa.string())
    operations = _REMOVING if counts_deletes else _REMOVING - {Operation.DELETE}
    fields = ("status", "snapshot_id", "file_path")
    for snapshot, files in window.written(ManifestContent.DATA, EntryStatus.DELETED, operations, fields):
        mask = to_mask(pc.is_in(files.column("file_path"), value_set=targets))
        _refuse_any(files, mask, "a data file that deletes refer to was removed", snapshot)


def removed_data_files(window: Window, paths: Collection[str]) -> frozenset[str]:
    """Return the data files that were removed since, for operations that can continue without them."""
    targets = pa.array(sorted(paths), pa.string())
    fields = ("status", "snapshot_id", "file_path")
    removed: set[str] = set()
    for _, files in window.written(ManifestContent.DATA, EntryStatus.DELETED, _REMOVING, fields):
        hit = files.column("file_path").filter(pc.is_in(files.column("file_path"), value_set=targets))
        removed |= set(hit.to_pylist())
    return frozenset(removed)


def check_new_deletes_for_files(
    window: Window,
    files: Sequence[DataFile],
    *,
    ignores_equality: bool = False,
    operations: Collection[str] = _REMOVING,
) -> None:
    """Refuse if deletes were added that apply to data files that the operation replaces or refers to.

    Equality deletes are ignored if the new files keep the old sequence number, since they apply to those too.
    """
    if not files:
        return
    fields = ("snapshot_id", *DELETE_FIELDS)
    for snapshot, deletes in window.written(ManifestContent.DELETES, EntryStatus.ADDED, operations, fields):
        mask = _counted(deletes, snapshot)
        if ignores_equality:
            mask &= deletes.column("content").to_numpy() != FileContent.EQUALITY_DELETES.value
        if not mask.any():
            continue
        chosen = replace(deletes, table=deletes.table.filter(pa.array(mask)))
        hit = window.deletes_for(chosen, files)
        if hit:
            raise _conflict("deletes were added to a data file", min(hit), snapshot)


def check_added_vectors(window: Window, paths: Collection[str]) -> None:
    """Refuse if a data file got a deletion vector that the new vector of the file does not include."""
    targets = pa.array(sorted(paths), pa.string())
    fields = ("status", "snapshot_id", "file_path", "file_format", "referenced_data_file")
    for snapshot, files in window.written(ManifestContent.DELETES, EntryStatus.ADDED, _REMOVING, fields):
        is_vector = pc.equal(files.column("file_format"), FileFormat.PUFFIN.value)
        is_same = pc.is_in(files.column("referenced_data_file"), value_set=targets)
        mask = to_mask(pc.and_(is_vector, is_same))
        _refuse_any(files, mask, "a deletion vector was added to a data file that gets another", snapshot)


# Common to the rules


def _counted(deletes: ManifestColumns, snapshot: Snapshot) -> Mask:
    """Return which added deletes are new: a `replace` only moves deletes, except that its vectors may hold more."""
    if snapshot.operation is None or snapshot.operation in _DELETING:
        return _all(deletes)
    return to_mask(pc.equal(deletes.column("file_format"), FileFormat.PUFFIN.value))


def _all(files: ManifestColumns) -> Mask:
    return np.ones(len(files), dtype=bool)


def _in_partitions(files: ManifestColumns, keys: Collection[PartitionKey]) -> Mask:
    own = keys if isinstance(keys, set | frozenset) else set(keys)
    matches = [partition_key in own for partition_key in partition_keys(files)]
    return np.array(matches, dtype=bool)


def _refuse_any(files: ManifestColumns, mask: Mask, what: str, snapshot: Snapshot) -> None:
    if mask.any():
        raise _conflict(what, files.column("file_path")[int(np.argmax(mask))].as_py(), snapshot)


def _conflict(what: str, path: str, snapshot: Snapshot) -> ConcurrentChangeError:
    return ConcurrentChangeError(
        f"Cannot commit: {what} by snapshot {snapshot.snapshot_id} ({path})",
        hint=_HINT,
        snapshot_id=snapshot.snapshot_id,
    )
