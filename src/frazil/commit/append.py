"""Add data files. A fast append leaves existing manifests unchanged; a merge append merges small ones.

Appends that did not read the table never conflict: their rows are added whatever other writers commit. An append of
rows computed from the table itself (INSERT ... SELECT from the same table, a MERGE that only inserts) carries its read
set, and under serializable isolation it is refused if the rows it read have changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.change_files import FileChanges, change_files
from frazil.commit.conflicts import (
    ReadSet,
    check_added_data_files,
    check_deleted_data_files,
    check_new_delete_files,
    check_same_ids,
    open_window,
)
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import AddedFile, ManifestWriter
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.schema import Schema
from frazil.spec.schema_compatibility import check_read_compatible
from frazil.spec.snapshot import Operation
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Append:
    """Add data files to a branch.

    `written_schema` is the schema that the files were written with; the append is refused if the table's schema has
    since changed so that it cannot read them. `read` is set if the rows came from the table. Without files nothing is
    committed, unless `may_be_empty`: a branch of a table without snapshots starts with an empty snapshot.
    """

    files: tuple[DataFile, ...]
    target: Target = MAIN
    is_fast: bool = False
    written_schema: Schema | None = None
    read: ReadSet | None = None
    may_be_empty: bool = False

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that adds the files to the present state of the branch."""
        if not self.files and not self.may_be_empty:
            return NOTHING
        check_data_only(self.files)
        check_still_readable(loaded.metadata, self.written_schema, context)
        parent = find_parent(loaded.metadata, self.target.branch)
        if self.read is not None and self.read.is_serializable:
            window = open_window(loaded, context, self.read, parent, self.target.branch)
            check_added_data_files(window, self.read)
            check_deleted_data_files(window, self.read)
            check_new_delete_files(window, self.read)
        writer = ManifestWriter(loaded, context)
        added = tuple(AddedFile(file) for file in self.files)
        changed = change_files(writer, parent, FileChanges(added, merges=not self.is_fast))
        return snapshot_changes(writer, changed, parent, self.target, Operation.APPEND)


def check_data_only(files: tuple[DataFile, ...]) -> None:
    """Refuse delete files in place of data files."""
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidRequestError(
                f"Cannot add {file.file_path!r}: it holds deletes", hint="Commit deletes with a row delta."
            )


def check_still_readable(metadata: TableMetadata, written: Schema | None, context: CommitContext) -> None:
    """Refuse files whose schema the table can no longer read, for example because they lack a required column."""
    if written is None:
        return
    check_same_ids(written, context)
    current = metadata.current_schema
    problems = check_read_compatible(current, written, format_version=metadata.format_version)
    if problems:
        text = "; ".join(str(problem) for problem in problems[:5])
        raise SchemaMismatchError(
            f"Cannot add files written with schema {written.schema_id}: the table's schema {current.schema_id} "
            f"cannot read them: {text}",
            hint="The schema changed since the files were written. Write them again.",
        )
