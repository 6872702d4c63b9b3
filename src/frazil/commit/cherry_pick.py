"""Publish a staged snapshot, or repeat the change of a snapshot on a branch: the end of write-audit-publish.

A snapshot whose parent is the branch's head becomes the head itself. Otherwise its change is repeated if that has the
same meaning: an append adds the same files, and a dynamic overwrite replaces the same partitions if its parent is in
the branch's history and those partitions have not changed since. Any other change was computed from a state that no
longer exists, and is refused.

A snapshot is also refused if the branch has it already: as itself, as the source of an earlier pick, or by its
`wap.id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from frazil.changes.updates import SetSnapshotRef
from frazil.codec.manifest_avro import iter_entries
from frazil.commit.action import Changes, CommitContext
from frazil.commit.append import Append
from frazil.commit.conflicts import (
    ReadSet,
    check_added_in_partitions,
    check_deleted_in_partitions,
    check_deletes_in_partitions,
    open_window,
)
from frazil.commit.new_snapshot import MAIN, Target, find_parent, moved_ref, ref_requirement, table_requirement
from frazil.commit.once import once_of_summary, with_record
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import ConcurrentChangeError, InvalidRequestError, SnapshotNotFoundError
from frazil.expr.columns.stats_masks import to_mask
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestContent
from frazil.spec.partition_key import partition_key_of
from frazil.spec.snapshot import Operation, Snapshot, Summary
from frazil.spec.snapshot_history import ancestors_of, is_ancestor_of
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class CherryPick:
    """Repeat a snapshot's change on a branch."""

    snapshot_id: int
    target: Target = MAIN

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the branch at the snapshot, or a snapshot with the same change on top of it."""
        metadata = loaded.metadata
        picked = metadata.snapshot(self.snapshot_id)
        changes = self._pick(loaded, context, picked)
        once = once_of_summary(picked.summary)
        if once is None or not changes.updates:
            return changes
        return with_record(metadata, self.target.branch, once, changes, picked)

    def _pick(self, loaded: LoadedTable, context: CommitContext, picked: Snapshot) -> Changes:
        metadata = loaded.metadata
        parent = find_parent(metadata, self.target.branch)
        _check_not_picked(metadata, picked, parent)
        if picked.parent_snapshot_id == (None if parent is None else parent.snapshot_id):
            ref = moved_ref(metadata, self.target.branch, picked.snapshot_id)
            return Changes(
                (SetSnapshotRef(self.target.branch, ref),),
                (*table_requirement(metadata), ref_requirement(metadata, self.target.branch)),
            )
        writer = ManifestWriter(loaded, context)
        summary = FrozenMap() if picked.summary is None else picked.summary
        target = replace(self.target, properties=FrozenMap(_repeated(self.target, picked)))
        if picked.operation == Operation.APPEND:
            return Append(tuple(_added_files(writer, picked)), target).prepare(loaded, context)
        if picked.operation == Operation.OVERWRITE and summary.get(Summary.REPLACE_PARTITIONS) == "true":
            files = tuple(_added_files(writer, picked))
            self._check_partitions(loaded, context, picked, parent, files)
            return ReplacePartitions(files, None, target).prepare(loaded, context)
        raise InvalidRequestError(
            f"Cannot cherry-pick snapshot {picked.snapshot_id}: it is not an append, dynamic overwrite or fast-forward",
            hint=f"Its operation is {picked.operation}. Run the operation again on the branch.",
        )

    def _check_partitions(
        self,
        loaded: LoadedTable,
        context: CommitContext,
        picked: Snapshot,
        parent: Snapshot | None,
        files: tuple[DataFile, ...],
    ) -> None:
        start = picked.parent_snapshot_id
        metadata = loaded.metadata
        if start is not None and (parent is None or not is_ancestor_of(metadata, parent.snapshot_id, start)):
            raise ConcurrentChangeError(
                f"Cannot cherry-pick snapshot {picked.snapshot_id}: its parent {start} is not in the history of "
                f"{self.target.branch!r}"
            )
        if any(metadata.spec(file.spec_id).is_unpartitioned for file in files):
            raise ConcurrentChangeError(
                f"Cannot cherry-pick snapshot {picked.snapshot_id}: it replaces the whole table, which has changed"
            )
        window = open_window(loaded, context, ReadSet(start), parent, self.target.branch)
        keys = frozenset(partition_key_of(file) for file in files)
        check_added_in_partitions(window, keys)
        check_deleted_in_partitions(window, keys)
        check_deletes_in_partitions(window, keys)


@dataclass(frozen=True, slots=True)
class PublishChanges:
    """Cherry-pick the snapshot that was staged under a `wap.id`."""

    wap_id: str
    target: Target = MAIN

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the changes that publish the snapshot."""
        matches = [
            snapshot.snapshot_id
            for snapshot in loaded.metadata.snapshots
            if snapshot.summary is not None and snapshot.summary.get(Summary.WAP_ID) == self.wap_id
        ]
        if len(matches) != 1:
            count = "no snapshot is" if not matches else f"{len(matches)} snapshots are"
            raise SnapshotNotFoundError(f"Cannot publish {self.wap_id!r}: {count} staged under that {Summary.WAP_ID}")
        return CherryPick(matches[0], self.target).prepare(loaded, context)


def _repeated(target: Target, picked: Snapshot) -> dict[str, str]:
    """Return the summary properties of the new snapshot, with those that name its source."""
    summary = FrozenMap() if picked.summary is None else picked.summary
    properties = {**target.properties, Summary.SOURCE_SNAPSHOT_ID: str(picked.snapshot_id)}
    once = once_of_summary(summary)
    if once is not None:
        properties |= once.summary()
    if Summary.WAP_ID in summary:
        properties[Summary.PUBLISHED_WAP_ID] = summary[Summary.WAP_ID]
    return properties


def _check_not_picked(metadata: TableMetadata, picked: Snapshot, parent: Snapshot | None) -> None:
    wap_id = None if picked.summary is None else picked.summary.get(Summary.WAP_ID)
    for snapshot in () if parent is None else ancestors_of(metadata, parent.snapshot_id):
        if snapshot.snapshot_id == picked.snapshot_id:
            raise InvalidRequestError(f"Cannot cherry-pick snapshot {picked.snapshot_id}: it is in the branch already")
        if snapshot.summary is None:
            continue
        if snapshot.summary.get(Summary.SOURCE_SNAPSHOT_ID) == str(picked.snapshot_id):
            raise InvalidRequestError(
                f"Cannot cherry-pick snapshot {picked.snapshot_id}: snapshot {snapshot.snapshot_id} repeated it"
            )
        if wap_id is not None and wap_id in (
            snapshot.summary.get(Summary.WAP_ID),
            snapshot.summary.get(Summary.PUBLISHED_WAP_ID),
        ):
            raise InvalidRequestError(
                f"Cannot cherry-pick snapshot {picked.snapshot_id}: {Summary.WAP_ID} {wap_id!r} is published already"
            )


def _added_files(writer: ManifestWriter, snapshot: Snapshot) -> Iterator[DataFile]:
    """Yield the data files that a snapshot added, as new files: without their row ids."""
    for manifest in read_manifest_list(writer.loaded.storage, snapshot):
        if manifest.added_snapshot_id not in (None, snapshot.snapshot_id) or not manifest.has_added_files:
            continue
        files = writer.read(manifest)
        is_added = pc.equal(files.column("status"), EntryStatus.ADDED.value)
        is_own = pc.equal(files.column("snapshot_id"), snapshot.snapshot_id)
        mask = to_mask(pc.and_(is_added, is_own))
        if not mask.any():
            continue
        if manifest.content is ManifestContent.DELETES:
            raise InvalidRequestError(
                f"Cannot cherry-pick snapshot {snapshot.snapshot_id}: it adds deletes, which belong to the rows it read"
            )
        for entry in iter_entries(replace(files, table=files.table.filter(pa.array(mask)))):
            yield replace(entry.data_file, first_row_id=None)
