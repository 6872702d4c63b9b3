"""Rewrite position deletes. Specification: "Position Delete Files", "Deletion Vectors".

    version 2    small position delete files of a partition become fewer, larger ones
    version 3    all position delete files from before the upgrade become deletion vectors: scans read one small blob
                 instead of many files, and new deletes need not merge old files any more

Positions are taken from the deletes that apply to each live data file, so that those of removed files are dropped. New
files keep the newest sequence number of the files they replace. Rows do not change. A concurrent replacement of a
delete file, or a concurrent delete from a data file that gets a vector here, is a conflict: run the procedure again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.catalog.base import Catalog
from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.new_snapshot import MAIN, Target, find_parent
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.write_manifests import AddedFile
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.position_deletes import read_file_positions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.errors import FrazilError
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.maintenance.commit_snapshot import commit_snapshot
from frazil.maintenance.plan_rewrite import is_worth, pack
from frazil.maintenance.rewrite_options import SIZE_OPTIONS, OptionReader, SizeOptions, read_sizes
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.scan.tasks import DeleteTask, FileScanTask
from frazil.spec import properties
from frazil.spec.data_file import DataFile, FileContent, PartitionKey
from frazil.spec.partition_key import partition_key_of
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import MAIN_BRANCH

PROCEDURE = "rewrite_position_delete_files"


@dataclass(frozen=True, slots=True)
class RewritePositionDeletesResult:
    """The numbers of replaced and new delete files; a deletion vector counts as a file with its own size."""

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0


@dataclass(slots=True)
class _Partition:
    """The data files of a partition with position delete files, and those delete files."""

    tasks: list[FileScanTask] = field(default_factory=list)
    deletes: dict[str, DeleteTask] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Group:
    """Delete files that are rewritten together, and their data files."""

    deletes: tuple[DeleteTask, ...]
    tasks: tuple[FileScanTask, ...]

    @property
    def sequence_number(self) -> int:
        return max(delete.data_sequence_number for delete in self.deletes)


@with_progress("rewrite position deletes of")
def rewrite_position_delete_files(
    catalog: Catalog,
    loaded: LoadedTable,
    options: Mapping[str, Any] | None = None,
    *,
    where: Predicate = TRUE,
    target: Target = MAIN,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable, RewritePositionDeletesResult]:
    """Rewrite the position delete files of a branch that are worth it; return the table's new state and a summary.

    `where` chooses data files, by partitions and metrics; the delete files of their partitions are rewritten.
    """
    metadata = loaded.metadata
    table_target = read_property(metadata.properties, properties.DELETE_TARGET_FILE_SIZE_BYTES)
    sizes = read_sizes(OptionReader(PROCEDURE, options or {}, SIZE_OPTIONS), PROCEDURE, table_target)
    makes_vectors = metadata.format_version >= 3
    parent = find_parent(metadata, target.branch)
    if parent is None:
        return loaded, RewritePositionDeletesResult()
    groups = list(_groups(_partitions(loaded, where, target, cache), sizes, makes_vectors=makes_vectors))
    replaced = {delete.data_file.file_path: delete.data_file for group in groups for delete in group.deletes}
    before = sum(file.file_size_in_bytes for file in replaced.values())
    if dry_run or not groups:
        added = sum(len(group.tasks) for group in groups) if makes_vectors else len(groups)
        return loaded, RewritePositionDeletesResult(len(replaced), added, before, before)
    new_files = _write(loaded, groups, makes_vectors=makes_vectors)
    action = RewriteFiles((), (), parent.snapshot_id, tuple(replaced.values()), tuple(new_files), target=target)
    try:
        state, _ = commit_snapshot(catalog, loaded, action, cache=cache)
    except FrazilError as error:
        if error.may_clean_up:
            loaded.storage.delete_many({added_file.file.file_path for added_file in new_files})
        raise
    after = sum(added_file.file.content_size_in_bytes or added_file.file.file_size_in_bytes for added_file in new_files)
    return state, RewritePositionDeletesResult(len(replaced), len(new_files), before, after)


def is_position_file(delete: DeleteTask) -> bool:
    """Return whether a delete is a position delete file rather than a vector."""
    return delete.data_file.content is FileContent.POSITION_DELETES and not delete.data_file.is_deletion_vector


def plan_tasks(
    loaded: LoadedTable, where: Predicate, target: Target, cache: ManifestCache | None
) -> tuple[list[FileScanTask], set[str] | None]:
    """Return all files of a branch with all their deletes, and the paths that a filter selects, or None for all."""
    is_branch = target.branch != MAIN_BRANCH and loaded.metadata.find_ref(target.branch) is not None
    choice = SnapshotChoice(ref=target.branch) if is_branch else SnapshotChoice()
    tasks = list(plan_scan(loaded, TRUE, choice=choice, cache=cache).iter_tasks())
    if where == TRUE:
        return tasks, None
    chosen = plan_scan(loaded, where, choice=choice, cache=cache).iter_tasks()
    return tasks, {task.data_file.file_path for task in chosen}


def _partitions(
    loaded: LoadedTable, where: Predicate, target: Target, cache: ManifestCache | None
) -> Iterable[_Partition]:
    tasks, chosen = plan_tasks(loaded, where, target, cache)
    partitions: dict[PartitionKey, _Partition] = defaultdict(_Partition)
    selected: set[PartitionKey] = set()
    for task in tasks:
        key = partition_key_of(task.data_file)
        if chosen is None or task.data_file.file_path in chosen:
            selected.add(key)
        files = [delete_file for delete_file in task.delete_files if is_position_file(delete_file)]
        if files:
            partitions[key].tasks.append(task)
            partitions[key].deletes.update((file.data_file.file_path, file) for file in files)
    return [partition for key, partition in partitions.items() if key in selected]


def _groups(partitions: Iterable[_Partition], sizes: SizeOptions, *, makes_vectors: bool) -> Iterator[_Group]:
    for partition in partitions:
        if makes_vectors:
            # A vector includes all position deletes of its data file, so a partition is converted whole.
            yield _Group(tuple(partition.deletes.values()), tuple(partition.tasks))
            continue
        chosen = [
            each
            for each in partition.deletes.values()
            if sizes.rewrite_all or not sizes.min_bytes <= _bytes(each) <= sizes.max_bytes
        ]
        for group in pack(chosen, _bytes, sizes.max_group_bytes, sizes.max_group_files):
            if sizes.rewrite_all or is_worth(group, _bytes, sizes):
                paths = {each.data_file.file_path for each in group}
                tasks = [
                    task
                    for task in partition.tasks
                    if any(each.data_file.file_path in paths for each in task.delete_files)
                ]
                yield _Group(tuple(group), tuple(tasks))


def _bytes(task: DeleteTask) -> int:
    return task.data_file.file_size_in_bytes


def _write(loaded: LoadedTable, groups: Sequence[_Group], *, makes_vectors: bool) -> list[AddedFile]:
    written: list[AddedFile] = []
    cache = DeleteCache()
    try:
        for group in counted("groups of delete files written", groups, len(groups)):
            rows = list(_deleted(loaded, group, cache))
            write = write_deletion_vectors if makes_vectors else write_position_deletes
            files: list[DataFile] = write(rows, loaded)
            written += [AddedFile(file, group.sequence_number) for file in files]
    except FrazilError as error:
        if error.may_clean_up:
            loaded.storage.delete_many({added_file.file.file_path for added_file in written})
        raise
    return written


def _deleted(loaded: LoadedTable, group: _Group, cache: DeleteCache) -> Iterator[DeletedRows]:
    """Yield the deleted positions of the group's files in each data file."""
    paths = {delete.data_file.file_path for delete in group.deletes}
    for task in group.tasks:
        own = [delete_file for delete_file in task.delete_files if delete_file.data_file.file_path in paths]
        positions = [read_file_positions(loaded.storage, delete, task.data_file, cache) for delete in own]
        yield DeletedRows.of(task.data_file, DeletionVector().union(*positions))
