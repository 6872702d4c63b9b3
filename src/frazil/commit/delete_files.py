"""Remove data files, by path or by a filter that covers all their rows. No data is read or written.

A delete by filter is evaluated on the present state of the table at each attempt, so other writers never conflict with
it. A file that they added and that the filter covers only in part is an error, as it would have been at first.
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
            raise InvalidRequestError(f"Cannot delete the files {self.paths!r}: pass a set of paths")
        object.__setattr__(self, "paths", frozenset(self.paths))

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot that removes the files from the present branch, or nothing if none is left."""
        parent = find_parent(loaded.metadata, self.target.branch)
        writer = ManifestWriter(loaded, context)
        changes = FileChanges(
            removed_paths=self.paths, where=self.where, must_find=self.must_find, case_sensitive=self.case_sensitive
        )
        changed = change_files(writer, parent, changes)
        if not changed.removed_data:
            return NOTHING
        return snapshot_changes(writer, changed, parent, self.target, Operation.DELETE)
