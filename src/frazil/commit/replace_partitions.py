"""Dynamic overwrite: every partition that gets a new file loses its old ones; unpartitioned, the whole table does.

Partitions are compared within one spec. A file that another writer added under another spec might hold rows of a
replaced partition undetected, so such a file is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.append import check_data_only, check_still_readable
from frazil.commit.change_files import FileChanges, change_files
from frazil.commit.conflicts import (
    ReadSet,
    check_added_data_files,
    check_added_in_partitions,
    check_deleted_data_files,
    check_deleted_in_partitions,
    check_deletes_in_partitions,
    check_new_delete_files,
    check_no_other_specs,
    open_window,
)
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.expr.predicates import FALSE, TRUE
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, PartitionKey
from frazil.spec.partition_key import partition_key_of
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Operation, Snapshot, Summary


@dataclass(frozen=True, slots=True)
class ReplacePartitions:
    """Replace everything in the partitions of new data files; `read` names the snapshot that it started from."""

    added: tuple[DataFile, ...]
    read: ReadSet | None
    target: Target = MAIN
    written_schema: Schema | None = None

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that replaces the partitions in the present state of the branch."""
        if not self.added:
            return NOTHING
        check_data_only(self.added)
        check_still_readable(loaded.metadata, self.written_schema, context)
        parent = find_parent(loaded.metadata, self.target.branch)
        is_whole = any(loaded.metadata.spec(spec.spec_id).is_unpartitioned for spec in self.added)
        keys = frozenset(partition_key_of(file) for file in self.added)
        self._validate(loaded, context, parent, keys, is_whole=is_whole)
        writer = ManifestWriter(loaded, context)
        changes = FileChanges(
            tuple(AddedFile(file) for file in self.added),
            where=TRUE if is_whole else FALSE,
            dropped_partitions=frozenset() if is_whole else keys,
        )
        changed = change_files(writer, parent, changes)
        return snapshot_changes(
            writer, changed, parent, self.target, Operation.OVERWRITE, extra={Summary.REPLACE_PARTITIONS: "true"}
        )

    def _validate(
        self,
        loaded: LoadedTable,
        context: CommitContext,
        parent: Snapshot | None,
        keys: frozenset[PartitionKey],
        *,
        is_whole: bool,
    ) -> None:
        if self.read is None:
            return
        window = open_window(loaded, context, self.read, parent, self.target.branch)
        if is_whole:
            everything = ReadSet(self.read.snapshot_id, TRUE, self.read.isolation)
            check_new_delete_files(window, everything)
            check_deleted_data_files(window, everything)
            if self.read.is_serializable:
                check_added_data_files(window, everything)
            return
        check_deletes_in_partitions(window, keys)
        check_deleted_in_partitions(window, keys)
        check_no_other_specs(window, {key[0] for key in keys})
        if self.read.is_serializable:
            check_added_in_partitions(window, keys)
