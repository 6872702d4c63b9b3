"""Remove data files: named ones, or all that hold only rows of a filter. No data is read or written.

A delete by filter is evaluated on the table as it is at each attempt, so other writers never conflict with it; a
file that they added and that the filter covers only in part is an error, as it would have been at first.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.change_files import FileChanges, change_files
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import FALSE, Predicate
from frazil.loaded import LoadedTable
from frazil.spec.snapshot import Operation


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Remove data files by path and by filter. With `must_find`, every path must be a live file."""

    paths: frozenset[str] = frozenset()
    where: Predicate = FALSE
    target: Target = MAIN
    must_find: bool = True
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.paths, str):
            raise InvalidRequestError(f"Cannot delete the files {self.paths!r}: give a set of paths")
        object.__setattr__(self, "paths", frozenset(self.paths))

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that removes the files from the branch as it is now; nothing where none is left."""
        parent = find_parent(loaded.metadata, self.target.branch)
        writer = ManifestWriter(loaded, context)
        changes = FileChanges(
            removed_paths=self.paths, where=self.where, must_find=self.must_find, case_sensitive=self.case_sensitive
        )
        changed = change_files(writer, parent, changes)
        if not changed.removed_data:
            return NOTHING
        return snapshot_changes(writer, changed, parent, self.target, Operation.DELETE)
