"""The final part of a row-level change for all engines, from the found rows to the commit.

DELETE, UPDATE, MERGE and OVERWRITE differ in how they find rows and what replaces them. From there on they are the
same,
in two modes:

    copy-on-write    files with such rows are rewritten without them, together with the new rows
    merge-on-read    rows are deleted in place, by position: deletion vectors in v3, delete files in v2; new rows are
                     written to separate files

Positions decide, and the condition is not evaluated again. A file without remaining rows is removed as a whole, in both
modes. Files without matching rows are not touched. In v3 rows keep their IDs, and the sequence number of their last
change unless they change now.

`frazil.spark.change.change_rows` is the implementation on Spark, `change_rows/change_rows.py` that in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.action import PlannedChange
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.overwrite import Overwrite
from frazil.commit.row_delta import Command, RowDelta
from frazil.datafile.apply_deletes import load_positions, position_tasks
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.expr.bind import bind
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import Plan
from frazil.scan.tasks import FileScanTask
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import DistributionMode, IsolationLevel, RowLevelMode, read_property
from frazil.spec.property_kinds import Property
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, UnknownType
from frazil.threads import default_threads


@dataclass(frozen=True, slots=True)
class Rules:
    """The properties that configure a command."""

    mode: Property[RowLevelMode]
    isolation: Property[IsolationLevel]
    distribution: Property[DistributionMode | None]


_RULES: Mapping[Command, Rules] = {
    "delete": Rules(known.DELETE_MODE, known.DELETE_ISOLATION_LEVEL, known.DELETE_DISTRIBUTION_MODE),
    "update": Rules(known.UPDATE_MODE, known.UPDATE_ISOLATION_LEVEL, known.UPDATE_DISTRIBUTION_MODE),
    "merge": Rules(known.MERGE_MODE, known.MERGE_ISOLATION_LEVEL, known.MERGE_DISTRIBUTION_MODE),
}


@dataclass(frozen=True, slots=True)
class Settled:
    """The treatment of files: those with remaining rows, by path with the deleted rows, and those removed as a whole.

    `staying` is the number of remaining rows in the former, or None if it is unknown without reading them.
    """

    kept: Mapping[str, DeletionVector]
    gone: tuple[FileScanTask, ...]
    staying: int | None


class RowLevelChange:
    """One row-level change of one branch of a table, based on the snapshot that it reads."""

    def __init__(
        self, loaded: LoadedTable, command: Command, target: Target, cache: ManifestCache | None = None
    ) -> None:
        self.loaded = loaded
        self.command = command
        self.target = target
        self.schema: Schema = loaded.metadata.current_schema
        self.parent = find_parent(loaded.metadata, target.branch)
        self.cache = cache
        self.rules = _RULES[command]
        self.deletes = DeleteCache()

    @property
    def has_lineage(self) -> bool:
        """Whether rows have IDs."""
        return self.loaded.metadata.format_version >= 3

    @property
    def is_merge_on_read(self) -> bool:
        """Whether rows are deleted by position."""
        metadata = self.loaded.metadata
        return metadata.format_version >= 2 and read_property(metadata.properties, self.rules.mode) == "merge-on-read"

    @property
    def stored_fields(self) -> list[NestedField]:
        """The stored columns: all but those of type unknown."""
        return [field for field in self.schema.fields if not isinstance(field.field_type, UnknownType)]

    def plan_files(self, predicate: Predicate) -> dict[str, FileScanTask]:
        """Return the files that can contain rows of a filter, by path."""
        if self.parent is None:
            return {}
        bound = bind(self.schema, predicate)
        plan = Plan(self.loaded, self.parent, self.schema, bound, self.cache, default_threads())
        return {task.data_file.file_path: task for task in plan.iter_tasks()}

    def read_set_of(self, predicate: Predicate) -> ReadSet:
        """Return the read set of a change, which the commit compares with concurrent changes."""
        isolation = read_property(self.loaded.metadata.properties, self.rules.isolation)
        snapshot_id = None if self.parent is None else self.parent.snapshot_id
        return ReadSet(snapshot_id, bind(self.schema, predicate), isolation)

    def settle(
        self,
        positions: Mapping[str, DeletionVector],
        tasks: Mapping[str, FileScanTask],
        whole: Sequence[FileScanTask] = (),
    ) -> Settled:
        """Return the treatment of the files with deleted rows, and of files that are removed as a `whole`."""
        gone = [*whole]
        kept: dict[str, DeletionVector] = {}
        staying: int | None = 0
        for path, vector in positions.items():
            task = tasks[path]
            before = load_positions(self.loaded.storage, task, self.deletes)
            all_deleted = vector if before is None else vector.union(before)
            if all_deleted.cardinality == task.data_file.record_count:
                gone.append(task)
                continue
            kept[path] = vector
            if len(position_tasks(task)) != len(task.delete_files):
                staying = None
            elif staying is not None:
                staying += task.data_file.record_count - all_deleted.cardinality
        return Settled(kept, tuple(gone), staying)

    def count_rows(self, found: int, whole: Sequence[FileScanTask]) -> int | None:
        """Return the number of deleted rows: those that were `found`, and all rows of `whole` files.

        None if equality deletes hide rows of such a file.
        """
        for task in whole:
            if len(position_tasks(task)) != len(task.delete_files):
                return None
            gone = load_positions(self.loaded.storage, task, self.deletes)
            found += task.data_file.record_count - (0 if gone is None else gone.cardinality)
        return found

    def plan_rewrite(
        self, read: ReadSet, settled: Settled, tasks: Mapping[str, FileScanTask], files: Sequence[DataFile]
    ) -> PlannedChange | None:
        """Return the commit that replaces files, or None if nothing changes."""
        removed = tuple(task.data_file for task in (*settled.gone, *(tasks[path] for path in settled.kept)))
        if not files and not removed:
            return None
        action = Overwrite(tuple(files), read, removed=removed, target=self.target, written_schema=self.schema)
        return PlannedChange(action, tuple(file.file_path for file in files))

    def plan_deltas(
        self, read: ReadSet, settled: Settled, tasks: Mapping[str, FileScanTask], files: Sequence[DataFile]
    ) -> PlannedChange | None:
        """Write deletes for the deleted rows; return the commit with the new files, or None if nothing changes."""
        kept = settled.kept
        removed_deletes: list[DataFile] = []
        included: list[DataFile] = []
        deletes: list[DataFile] = []
        if kept and self.loaded.metadata.format_version >= 3:
            rows = []
            for path, vector in kept.items():
                task = tasks[path]
                before = load_positions(self.loaded.storage, task, self.deletes)
                rows.append(DeletedRows.of(task.data_file, vector if before is None else vector.union(before)))
                for delete in position_tasks(task):
                    old = delete.data_file
                    is_own = old.is_deletion_vector or old.referenced_data_file == path
                    (removed_deletes if is_own else included).append(old)
            deletes = write_deletion_vectors(rows, self.loaded, may_clean_up=True)
        elif kept:
            rows = [DeletedRows.of(tasks[path].data_file, vector) for path, vector in kept.items()]
            deletes = write_position_deletes(rows, self.loaded, may_clean_up=True)
        if not files and not deletes and not settled.gone:
            return None
        action = RowDelta(
            (*files, *deletes),
            read,
            self.command,
            referenced=tuple(tasks[path].data_file for path in kept),
            removed=tuple(settled_file.data_file for settled_file in settled.gone),
            removed_deletes=tuple(dict.fromkeys(removed_deletes)),
            target=self.target,
            written_schema=self.schema,
            included_deletes=tuple(dict.fromkeys(included)),
        )
        return PlannedChange(action, tuple(dict.fromkeys(file.file_path for file in (*files, *deletes))))


def noted(planned: PlannedChange, summary: Mapping[str, str]) -> PlannedChange:
    """Add entries to the summary of a commit; those of the user take precedence."""
    action: Any = planned.action
    target = replace(action.target, properties=FrozenMap({**summary, **action.target.properties}))
    return replace(planned, action=replace(action, target=target))
