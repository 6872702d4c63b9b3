"""Replace files with others that hold the same rows: compaction, and rewriting of delete files.

Rows do not change, so appends never conflict. A replaced file that was removed conflicts, and so does a delete that
another writer added to a replaced data file, since it would not reach the rows in their new file. Equality deletes
reach them if the new files keep the data sequence number of the old; position deletes never do.

Rewritten delete files keep their data sequence number, or they would delete newer rows. A deletion vector made from
position delete files must include all deletes of its data file, and be its only vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.commit.action import Changes, CommitContext
from frazil.commit.append import check_data_only
from frazil.commit.change_files import FileChanges, change_files, delete_key
from frazil.commit.conflicts import ReadSet, check_data_files_exist, check_new_deletes_for_files, open_window
from frazil.commit.included_deletes import check_deletes_included
from frazil.commit.merge_vectors import find_live_vectors
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.partition_key import partition_key_of
from frazil.spec.snapshot import Operation, Snapshot


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Replace files with others that hold the same rows or the same deletes.

    `start_snapshot_id` is the snapshot that the files were read from. `data_sequence_number` is that of the new data
    files, if they keep an old one. New delete files carry the number they keep. `included_deletes` are position delete
    files whose positions new vectors include, and that stay because they also refer to other data files.
    """

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    start_snapshot_id: int | None
    removed_deletes: tuple[DataFile, ...] = ()
    added_deletes: tuple[AddedFile, ...] = ()
    data_sequence_number: int | None = None
    target: Target = MAIN
    included_deletes: tuple[DataFile, ...] = ()

    def __post_init__(self) -> None:
        check_data_only(self.removed)
        check_data_only(self.added)
        for file in (*self.removed_deletes, *(added_delete.file for added_delete in self.added_deletes)):
            if file.content is FileContent.DATA:
                raise InvalidRequestError(f"Cannot rewrite {file.file_path!r} as a delete file: it holds data")
        if not self.removed and not self.removed_deletes:
            raise InvalidRequestError("Cannot rewrite files: there are none to replace")
        if self.added and not self.removed:
            raise InvalidRequestError("Cannot rewrite files: data files are added, but none are replaced")
        if self.added_deletes and not self.removed_deletes:
            raise InvalidRequestError("Cannot rewrite files: delete files are added, but none are replaced")
        for added in self.added_deletes:
            if added.sequence_number is None:
                raise InvalidRequestError(
                    f"Cannot rewrite delete file {added.file.file_path!r}: its data sequence number is missing",
                    hint="Set it to the number of the files it replaces, or it would delete newer rows.",
                )
        before, after = _rows(self.removed), _rows(self.added)
        if after > before:
            raise InvalidRequestError(f"Cannot rewrite files: {after} rows would replace {before}")

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that replaces the files in the present state of the branch."""
        parent = find_parent(loaded.metadata, self.target.branch)
        window = open_window(loaded, context, ReadSet(self.start_snapshot_id), parent, self.target.branch)
        check_new_deletes_for_files(window, self.removed, ignores_equality=self.data_sequence_number is not None)
        writer = ManifestWriter(loaded, context)
        vectors = [added_delete.file for added_delete in self.added_deletes if added_delete.file.is_deletion_vector]
        if vectors:
            # A vector of a removed file would dangle, and its rows would be in another file.
            check_data_files_exist(
                window, {vector.referenced_data_file or "" for vector in vectors}, counts_deletes=True
            )
            self._check_vectors(writer, parent, vectors)
        changes = FileChanges(
            (*(AddedFile(file, self.data_sequence_number) for file in self.added), *self.added_deletes),
            removed_paths=frozenset(file.file_path for file in self.removed),
            removed_from=frozenset(map(partition_key_of, self.removed)),
            removed_deletes=frozenset(delete_key(removed_delete) for removed_delete in self.removed_deletes),
        )
        changed = change_files(writer, parent, changes)
        return snapshot_changes(writer, changed, parent, self.target, Operation.REPLACE)

    def _check_vectors(self, writer: ManifestWriter, parent: Snapshot | None, vectors: list[DataFile]) -> None:
        """Refuse vectors of data files that got another one concurrently, and those that omit existing deletes."""
        removed = {delete_key(removed_delete) for removed_delete in self.removed_deletes}
        base = writer.read_base(parent)
        live = find_live_vectors(writer, base, {vector.referenced_data_file or "" for vector in vectors})
        for path, vector in live.items():
            if delete_key(vector) not in removed:
                raise ConcurrentChangeError(
                    f"Cannot commit: the data file {path!r} has a deletion vector that is not replaced",
                    hint="Another writer deleted rows of it, and nothing was committed. Run the rewrite again.",
                )
        first = [vector for vector in vectors if vector.referenced_data_file not in live]
        check_deletes_included(writer, base, first, {*removed, *map(delete_key, self.included_deletes)})


def _rows(files: tuple[DataFile, ...]) -> int:
    return sum(file.record_count for file in files)
