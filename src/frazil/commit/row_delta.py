"""Change rows without rewriting their files: data files, position deletes, equality deletes and deletion vectors.

Every merge-on-read DELETE, UPDATE and MERGE ends here. Conflicts with other writers since the rows were read:

    always            an overwrite or a compaction removed a data file that new deletes refer to: its rows are
                      in other files now. (If a delete removed it, there is nothing left to delete.)
    DELETE            an UPDATE or MERGE deleted rows of the same files: it may have rewritten them, and this
                      delete would miss them. Stricter than Iceberg Java, which loses the delete. Other DELETEs
                      are not a conflict; in v3 the vectors are merged.
    UPDATE, MERGE     any delete that may apply to rows that were read; a data file removed by a delete; another
                      vector for one of the files, since a row would be changed twice
    serializable      rows that the operation would have read were added

Equality deletes of an upsert that did not read the table conflict with nothing, since sequence numbers order them.

In v3 no new position delete files are written, and each data file has at most one deletion vector. The first vector of
a data file must include its position delete files from before v3, or it is refused.
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

    `command` is the statement of the user; `read` its read set, or None for a blind upsert. `referenced` are the data
    files that position delete files refer to, if the delete files do not name them. `removed` are data files that are
    removed whole, `removed_deletes` delete files whose deletes the added ones include, as for vectors;
    `included_deletes` are position delete files that stay, since they also refer to other data files.
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
        """Return the snapshot that changes the rows in the present state of the branch."""
        if not (self.added or self.removed or self.removed_deletes):
            return NOTHING
        check_data_only(self.removed)
        check_still_readable(loaded.metadata, self.written_schema, context)
        referenced = self._referenced()
        self._check_request(referenced)
        parent = find_parent(loaded.metadata, self.target.branch)
        gone = self._validate(loaded, context, parent, referenced)
        writer = ManifestWriter(loaded, context)
        remaining = tuple(delete for delete in self.added if delete.referenced_data_file not in gone)
        added, removed_deletes = self._merge_vectors(loaded, context, writer, parent, remaining)
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
        """Return the data files of the table that new position deletes refer to, each with its partition."""
        own = {file.file_path for file in self.added if file.content is FileContent.DATA}
        referenced = {file.file_path: file for file in self.referenced}
        for delete in self.added:
            path = delete.referenced_data_file
            if delete.content is FileContent.POSITION_DELETES and path is not None and path not in referenced:
                referenced[path] = DataFile(
                    path, FileFormat.PARQUET, 0, 0, spec_id=delete.spec_id, partition=delete.partition
                )
        return tuple(file for path, file in referenced.items() if path not in own)

    def _check_request(self, referenced: tuple[DataFile, ...]) -> None:
        both = {file.file_path for file in referenced} & {file.file_path for file in self.removed}
        if both:
            raise InvalidRequestError(f"Cannot remove data file {min(both)!r}: new deletes refer to its rows")
        if self.read is None and (referenced or self.removed):
            raise InvalidRequestError(
                "Cannot commit deletes of rows by their position without the snapshot they were read from",
                hint="Pass the read set of the operation.",
            )

    def _validate(
        self, loaded: LoadedTable, context: CommitContext, parent: Snapshot | None, referenced: tuple[DataFile, ...]
    ) -> frozenset[str]:
        """Refuse conflicts; return the removed data files, from which a DELETE need not delete any more."""
        if self.read is None:
            return frozenset()
        window = open_window(loaded, context, self.read, parent, self.target.branch)
        paths = {file.file_path for file in referenced}
        vectors = {delete.referenced_data_file or "" for delete in self.added if delete.is_deletion_vector}
        is_delete = self.command == "delete"
        check_data_files_exist(window, paths, counts_deletes=not is_delete)
        check_new_deletes_for_files(window, self.removed)
        if is_delete:
            # This includes vectors of the same files.
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
        added: tuple[DataFile, ...],
    ) -> tuple[tuple[DataFile, ...], frozenset[DeleteKey]]:
        """Return the files to add, with one vector per data file, and the deletes to remove."""
        removed = frozenset(delete_key(removed_delete) for removed_delete in self.removed_deletes)
        targets = {delete.referenced_data_file or "" for delete in self.added if delete.is_deletion_vector}
        vectors = [delete for delete in added if delete.is_deletion_vector]
        if not targets:
            return added, removed
        base = writer.read_base(parent)
        live = find_live_vectors(writer, base, targets)
        first = [vector for vector in vectors if vector.referenced_data_file not in live]
        check_deletes_included(writer, base, first, {*removed, *map(delete_key, self.included_deletes)})
        merged = merge_vectors(loaded, context, vectors, live, removed)
        others = tuple(delete for delete in added if not delete.is_deletion_vector)
        # Deletes to be replaced may be gone, if vectors of another writer have replaced them already.
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
