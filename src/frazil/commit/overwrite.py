"""Replace data files: named files (copy-on-write), or all that a filter covers.

Named files must be live when the commit happens and must not have got deletes since they were read, or their
replacements would bring deleted rows back. A filter covers whole files; a file of which only some rows match is an
error. A concurrent compaction conflicts with named files, but not with a filter, since no row changed. Under
serializable isolation the commit is also refused if other writers added rows that the operation would have read. There
is no default for what an overwrite read: pass `read=None` to replace whatever other writers did meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from frazil.codec.encode_manifest import entries_to_table
from frazil.codec.manifest_avro import ManifestColumns
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.append import check_data_only, check_still_readable
from frazil.commit.change_files import FileChanges, change_files
from frazil.commit.conflicts import (
    ReadSet,
    check_added_data_files,
    check_deleted_data_files,
    check_new_delete_files,
    check_new_deletes_for_files,
    check_still_whole,
    open_window,
)
from frazil.commit.match_files import FileMatcher
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import FALSE, Predicate
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from frazil.spec.partition_key import partition_key_of
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Operation, Snapshot


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace data files with others.

    `removed` are named files; `where` removes all files that hold only rows of a filter. With `must_match`, every added
    file must hold only rows of the filter.
    """

    added: tuple[DataFile, ...]
    read: ReadSet | None
    removed: tuple[DataFile, ...] = ()
    where: Predicate = FALSE
    target: Target = MAIN
    must_match: bool = False
    written_schema: Schema | None = None

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that replaces the files in the present state of the branch."""
        check_data_only(self.added)
        check_data_only(self.removed)
        check_still_readable(loaded.metadata, self.written_schema, context)
        parent = find_parent(loaded.metadata, self.target.branch)
        self._validate(loaded, context, parent)
        writer = ManifestWriter(loaded, context)
        if self.must_match:
            self._check_match(loaded, writer)
        changes = FileChanges(
            tuple(AddedFile(file) for file in self.added),
            removed_paths=frozenset(file.file_path for file in self.removed),
            removed_from=frozenset(map(partition_key_of, self.removed)),
            where=self.where,
            case_sensitive=True if self.read is None else self.read.case_sensitive,
        )
        changed = change_files(writer, parent, changes)
        if not self.added and not changed.has_removed:
            return NOTHING
        return snapshot_changes(writer, changed, parent, self.target, self._operation(changes))

    def _validate(self, loaded: LoadedTable, context: CommitContext, parent: Snapshot | None) -> None:
        if self.read is None:
            return
        window = open_window(loaded, context, self.read, parent, self.target.branch)
        check_new_deletes_for_files(window, self.removed)
        if self.where != FALSE:
            covered = replace(self.read, predicate=self.where)
            check_new_delete_files(window, covered)
            # The filter also covers rows that a compaction moved.
            check_deleted_data_files(window, covered, includes_moved=False)
            check_still_whole(window, covered)
        if self.read.is_serializable:
            check_added_data_files(window, self.read)

    def _operation(self, changes: FileChanges) -> str:
        if not self.added:
            return Operation.DELETE
        return Operation.OVERWRITE if changes.removes_data else Operation.APPEND

    def _check_match(self, loaded: LoadedTable, writer: ManifestWriter) -> None:
        matcher = FileMatcher(
            loaded.metadata,
            writer.specs,
            self.where,
            case_sensitive=True if self.read is None else self.read.case_sensitive,
        )
        for spec_id in {spec.spec_id for spec in self.added}:
            group = [spec for spec in self.added if spec.spec_id == spec_id]
            loaded.metadata.spec(spec_id)
            partition_type = writer.specs[spec_id][1]
            rows = entries_to_table(
                [ManifestEntry(EntryStatus.ADDED, data_file) for data_file in group], partition_type
            )
            files = ManifestColumns(rows, {}, ManifestContent.DATA, writer.format_version, spec_id, partition_type)
            _, every = matcher.match(files, np.ones(len(files), dtype=bool))
            for file, is_inside in zip(group, every.tolist(), strict=True):
                if not is_inside and file.record_count > 0:
                    raise InvalidRequestError(
                        f"Cannot overwrite where {self.where}: rows of {file.file_path!r} may not match",
                        hint="The new rows must lie within the overwritten range.",
                    )
