"""Change rows without rewriting their files: data files, position deletes, equality deletes and deletion vectors.

Every merge-on-read DELETE, UPDATE and MERGE ends here. What other writers did since the rows were read decides:

    always            a data file that new deletes are about was removed by an overwrite or a compaction: its rows
                      are elsewhere now. (Removed by a delete, there is nothing left to delete.)
    DELETE            an UPDATE or MERGE deleted rows of the same files: it may have written them anew, and this
                      delete would miss them. Stricter than Iceberg Java, which loses the delete. Other DELETEs
                      are no conflict; in v3 the vectors are united.
    UPDATE, MERGE     any delete that may be about rows that were read; a data file removed by a delete; another
                      vector for one of the files: a row would be changed twice
    serializable      rows that the operation would have read were added

Equality deletes of an upsert that did not read the table conflict with nothing: sequence numbers order them.

In v3 there are no new position delete files, and one deletion vector at most for each data file. The first one of a
data file includes what position delete files from before v3 say of it, or it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.append import check_data_only, check_still_readable
from frazil.commit.change_files import DeleteKey, FileChanges, change_files, delete_key
from frazil.commit.conflicts import (
    ReadSet,
    check_added_data_files,
    check_added_vectors,
    check_data_files_exist,
    check_new_delete_files,
    check_new_deletes_for_files,
    open_window,
    removed_data_files,
)
from frazil.commit.included_deletes import check_deletes_included
from frazil.commit.merge_vectors import find_live_vectors, merge_vectors
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.partition_key import partition_key_of
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Operation, Snapshot

Command: TypeAlias = Literal["delete", "update", "merge"]


@dataclass(frozen=True, slots=True)
class RowDelta:
    """Add data files and deletes to a branch.

    `command` is what the user asked for; `read` what it read, None for a blind upsert. `referenced` are the data
    files that position delete files are about, where the delete files do not name them. `removed` are data files
    that go whole, `removed_deletes` delete files whose deletes the added ones include, as for vectors;
    `included_deletes` are position delete files that stay, since they are about other data files too.
    """

    added: tuple[DataFile, ...]
    read: ReadSet | None
    command: Command = "update"
    referenced: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    removed_deletes: tuple[DataFile, ...] = ()
    target: Target = MAIN
    written_schema: Schema | None = None
    included_deletes: tuple[DataFile, ...] = ()

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that changes the rows of the branch as it is now."""
        if not (self.added or self.removed or self.removed_deletes):
            return NOTHING
        check_data_only(self.removed)
        check_still_readable(loaded.metadata, self.written_schema, context)
        referenced = self._referenced()
        self._check_request(referenced)
        parent = find_parent(loaded.metadata, self.target.branch)
        gone = self._validate(loaded, context, parent, referenced)
        writer = ManifestWriter(loaded, context)
        wanted = tuple(delete for delete in self.added if delete.referenced_data_file not in gone)
        added, removed_deletes = self._merge_vectors(loaded, context, writer, parent, wanted)
        if not (added or self.removed or removed_deletes):
            return NOTHING
        changes = FileChanges(
            tuple(AddedFile(file) for file in added),
            removed_paths=frozenset(file.file_path for file in self.removed),
            removed_from=frozenset(map(partition_key_of, self.removed)),
            removed_deletes=removed_deletes,
        )
        changed = change_files(writer, parent, changes)
        return snapshot_changes(
            writer, changed, parent, self.target, self._operation(), files=frozenset(file.file_path for file in added)
        )

    def _referenced(self) -> tuple[DataFile, ...]:
        """Return the data files of the table that new position deletes are about, each with its partition."""
        own = {file.file_path for file in self.added if file.content is FileContent.DATA}
        found = {file.file_path: file for file in self.referenced}
        for delete in self.added:
            path = delete.referenced_data_file
            if delete.content is FileContent.POSITION_DELETES and path is not None and path not in found:
                found[path] = DataFile(
                    path, FileFormat.PARQUET, 0, 0, spec_id=delete.spec_id, partition=delete.partition
                )
        return tuple(file for path, file in found.items() if path not in own)

    def _check_request(self, referenced: tuple[DataFile, ...]) -> None:
        both = {file.file_path for file in referenced} & {file.file_path for file in self.removed}
        if both:
            raise InvalidRequestError(f"Cannot remove data file {min(both)!r}: new deletes are about rows of it")
        if self.read is None and (referenced or self.removed):
            raise InvalidRequestError(
                "Cannot commit deletes of rows by their position without the snapshot they were read from",
                hint="Give the read set of the operation.",
            )

    def _validate(
        self, loaded: LoadedTable, context: CommitContext, parent: Snapshot | None, referenced: tuple[DataFile, ...]
    ) -> frozenset[str]:
        """Refuse what conflicts; return the data files that a DELETE need not delete from, since they are gone."""
        if self.read is None:
            return frozenset()
        window = open_window(loaded, context, self.read, parent, self.target.branch)
        paths = {file.file_path for file in referenced}
        vectors = {delete.referenced_data_file or "" for delete in self.added if delete.is_deletion_vector}
        is_delete = self.command == "delete"
        check_data_files_exist(window, paths, counts_deletes=not is_delete)
        check_new_deletes_for_files(window, self.removed)
        if is_delete:
            # Vectors of the same files are among these.
            check_new_deletes_for_files(window, referenced, operations=frozenset({Operation.OVERWRITE}))
        else:
            check_new_delete_files(window, self.read)
            check_added_vectors(window, vectors)
        if self.read.is_serializable:
            check_added_data_files(window, self.read)
        return removed_data_files(window, paths) if is_delete else frozenset()

    def _merge_vectors(
        self,
        loaded: LoadedTable,
        context: CommitContext,
        writer: ManifestWriter,
        parent: Snapshot | None,
        wanted: tuple[DataFile, ...],
    ) -> tuple[tuple[DataFile, ...], frozenset[DeleteKey]]:
        """Return the files to add with one vector for each data file, and the deletes to remove."""
        removed = frozenset(delete_key(removed_delete) for removed_delete in self.removed_deletes)
        targets = {delete.referenced_data_file or "" for delete in self.added if delete.is_deletion_vector}
        vectors = [delete for delete in wanted if delete.is_deletion_vector]
        if not targets:
            return wanted, removed
        base = writer.read_base(parent)
        live = find_live_vectors(writer, base, targets)
        first = [vector for vector in vectors if vector.referenced_data_file not in live]
        check_deletes_included(writer, base, first, {*removed, *map(delete_key, self.included_deletes)})
        merged = merge_vectors(loaded, context, vectors, live, removed)
        others = tuple(delete for delete in wanted if not delete.is_deletion_vector)
        # Deletes that were to be replaced, and that another writer's vectors have replaced already, may be gone.
        replaced = {path for path in targets if path in live and delete_key(live[path]) not in removed}
        stale = {
            delete_key(removed_delete)
            for removed_delete in self.removed_deletes
            if removed_delete.referenced_data_file in (targets if removed_delete.is_deletion_vector else replaced)
        }
        return (*others, *merged.added), (removed - stale) | merged.replaced

    def _operation(self) -> str:
        has_data = any(file.content is FileContent.DATA for file in self.added)
        has_deletes = any(file.content is not FileContent.DATA for file in self.added) or bool(self.removed)
        if not has_data:
            return Operation.DELETE
        return Operation.OVERWRITE if has_deletes else Operation.APPEND
