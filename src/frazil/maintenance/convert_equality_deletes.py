"""Convert equality deletes to position deletes, in version 3 to deletion vectors. Specification: "Row-level Deletes".

Equality deletes are cheap to write and expensive to read: every scan compares every row with them. Here they are
compared for the last time. Each data file that some apply to is read, in this process or on Spark
(`spark/change/find_deleted.py`), and the positions of the equal rows are written; then the equality delete files are
removed. Rows do not change.

The commit is a `delete`, not a `replace`, although it changes no rows: a compaction that began before it has rows in
its new files that only the removed equality deletes would have deleted, and must be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from frazil.catalog.base import Catalog
from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import MAIN, Target, find_parent
from frazil.commit.row_delta import RowDelta
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import read_task, view_table
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.errors import FrazilError
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.maintenance.commit_snapshot import commit_snapshot
from frazil.maintenance.rewrite_position_deletes import is_position_file, plan_tasks
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.reserved_columns import DELETED, POS
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot

Finder: TypeAlias = Callable[[LoadedTable, Snapshot, Sequence[FileScanTask]], Mapping[str, DeletionVector]]
"""Finds the rows of data files that any delete of a snapshot deletes, by path."""

_PROJECTION = Schema((POS, DELETED))


@dataclass(frozen=True, slots=True)
class ConvertEqualityDeletesResult:
    """The numbers of equality delete files removed, and of position delete files or vectors added."""

    converted_delete_files_count: int = 0
    added_delete_files_count: int = 0
    deleted_rows_count: int = 0


@with_progress("convert equality deletes of")
def convert_equality_deletes(
    catalog: Catalog,
    loaded: LoadedTable,
    *,
    target: Target = MAIN,
    dry_run: bool = False,
    finder: Finder | None = None,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable, ConvertEqualityDeletesResult]:
    """Replace a branch's equality deletes by position deletes; return the table's new state and a summary.

    A data file that another writer concurrently rewrites, or deletes rows of, is a conflict. `finder` finds the deleted
    rows of data files; without one, the files are read in this process.
    """
    parent = find_parent(loaded.metadata, target.branch)
    if parent is None:
        return loaded, ConvertEqualityDeletesResult()
    tasks = [task for task in plan_tasks(loaded, TRUE, target, cache)[0] if task.has_equality_deletes]
    equality = {
        delete_file.data_file.file_path: delete_file.data_file
        for task in tasks
        for delete_file in task.delete_files
        if delete_file.data_file.content is FileContent.EQUALITY_DELETES
    }
    if dry_run or not tasks:
        return loaded, ConvertEqualityDeletesResult(len(equality), len(tasks))
    deleted = _find_in_process(loaded, tasks) if finder is None else finder(loaded, parent, tasks)
    positions = DeleteCache()
    new = _beyond_positions(loaded, tasks, deleted, positions)
    changed = [task for task in tasks if task.data_file.file_path in new]
    rows = {task.data_file.file_path: DeletedRows.of(task.data_file, new[task.data_file.file_path]) for task in changed}
    count = sum(row.positions.cardinality for row in rows.values())
    removed = tuple(equality.values())
    state, added = _commit(catalog, loaded, parent.snapshot_id, changed, rows, removed, target, positions, cache)
    return state, ConvertEqualityDeletesResult(len(equality), added, count)


def _find_in_process(loaded: LoadedTable, tasks: list[FileScanTask]) -> dict[str, DeletionVector]:
    """Return the rows that equality deletes delete, by data file."""
    view = view_table(loaded.metadata)
    cache = DeleteCache()
    rows: dict[str, DeletionVector] = {}
    for task in counted("data files compared", tasks, len(tasks)):
        deletes = tuple(
            delete_file
            for delete_file in task.delete_files
            if delete_file.data_file.content is FileContent.EQUALITY_DELETES
        )
        equality_only = replace(task, delete_files=deletes, residual=TRUE)
        positions_found = [
            batch.column(0).to_numpy()[batch.column(1).to_numpy(zero_copy_only=False)]
            for batch in read_task(equality_only, view, _PROJECTION, loaded.storage, cache=cache)
        ]
        positions = DeletionVector(np.concatenate(positions_found)) if positions_found else DeletionVector()
        if not positions.is_empty:
            rows[task.data_file.file_path] = positions
    return rows


def _beyond_positions(
    loaded: LoadedTable, tasks: list[FileScanTask], deleted: Mapping[str, DeletionVector], positions: DeleteCache
) -> dict[str, DeletionVector]:
    """Return deleted rows that no position delete covers yet, by data file."""
    rows: dict[str, DeletionVector] = {}
    for task in tasks:
        new = deleted.get(task.data_file.file_path)
        if new is None:
            continue
        before = load_positions(loaded.storage, task, positions)
        if before is not None:
            new = new.minus(before)
        if not new.is_empty:
            rows[task.data_file.file_path] = new
    return rows


def _commit(
    catalog: Catalog,
    loaded: LoadedTable,
    snapshot_id: int,
    tasks: list[FileScanTask],
    rows: dict[str, DeletedRows],
    equality: tuple[DataFile, ...],
    target: Target,
    positions: DeleteCache,
    cache: ManifestCache | None,
) -> tuple[LoadedTable, int]:
    removed: list[DataFile] = list(equality)
    included: list[DataFile] = []
    if loaded.metadata.format_version >= 3:
        # A vector holds all deleted rows of its file, including those of its present vector or position deletes.
        for task in tasks:
            path = task.data_file.file_path
            before = load_positions(loaded.storage, task, positions)
            if before is not None:
                rows[path] = DeletedRows.of(task.data_file, DeletionVector().union(before, rows[path].positions))
            removed += [
                delete_file.data_file for delete_file in task.delete_files if delete_file.data_file.is_deletion_vector
            ]
            own = [delete_file.data_file for delete_file in task.delete_files if is_position_file(delete_file)]
            removed += [delete for delete in own if delete.referenced_data_file == path]
            included += [delete for delete in own if delete.referenced_data_file != path]
        files = write_deletion_vectors(rows.values(), loaded)
    else:
        files = write_position_deletes(rows.values(), loaded)
    action = RowDelta(
        tuple(files),
        ReadSet(snapshot_id, isolation="snapshot"),
        "delete",
        referenced=tuple(task.data_file for task in tasks),
        removed_deletes=tuple(removed),
        included_deletes=tuple(included),
        target=target,
    )
    try:
        state, _ = commit_snapshot(catalog, loaded, action, cache=cache)
    except FrazilError as error:
        if error.may_clean_up:
            loaded.storage.delete_many({file.file_path for file in files})
        raise
    return state, len(files)
