"""Choose the data files to rewrite together, by metadata alone, with Iceberg Java's arithmetic.

    choose     files below or above the limits of size, with many deletes, or with a large share of deleted rows
    group      by partition, in the order of the plan, up to the maximum size and number of files of a group; files of
               other specs than that of the new files are grouped together, since their rows may go to any partition
    keep       groups worth the work: enough files, more than a file's worth, a file that is too large, or deletes
    order      by the requested order

A filter chooses whole files, and does not restrict the deletes that apply to them: rewritten rows have all deletes
applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from frazil.commit.new_snapshot import MAIN, Target, find_parent
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.maintenance.rewrite_options import DataOptions, JobOrder, SizeOptions
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.partition_key import partition_key_of
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.spec.sorting import UNSORTED, SortOrder

Strategy: TypeAlias = Literal["binpack", "sort", "zorder"]
STRATEGIES: tuple[Strategy, ...] = ("binpack", "sort", "zorder")


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """What to rewrite and how. `order` belongs to the strategy `sort`, `zorder_ids` are the columns of `zorder`."""

    options: DataOptions
    strategy: Strategy = "binpack"
    order: SortOrder = UNSORTED
    zorder_ids: tuple[int, ...] = ()
    where: Predicate = TRUE
    case_sensitive: bool = True
    target: Target = MAIN


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Files that are rewritten together, and the size of the new files."""

    number: int
    tasks: tuple[FileScanTask, ...]
    expected_files: int
    output_bytes: int

    @property
    def input_bytes(self) -> int:
        """The size of the files."""
        return sum(task.data_file.file_size_in_bytes for task in self.tasks)


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """The groups to rewrite, of one snapshot."""

    loaded: LoadedTable
    request: RewriteRequest
    snapshot: Snapshot | None
    spec: PartitionSpec
    groups: tuple[RewriteGroup, ...] = field(default=())

    @property
    def data_sequence_number(self) -> int | None:
        """The number that new files keep, so that later equality deletes reach their rows, or None for a new one."""
        if self.snapshot is None or self.loaded.metadata.format_version < 2:
            return None
        return self.snapshot.sequence_number if self.request.options.use_starting_sequence_number else None


def plan_rewrite(
    loaded: LoadedTable,
    request: RewriteRequest,
    *,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> RewritePlan:
    """Return the groups of files to rewrite."""
    metadata, options = loaded.metadata, request.options
    spec_id = options.output_spec_id
    if spec_id is not None and spec_id not in metadata.specs_by_id:
        raise InvalidRequestError(
            f"Cannot write files of partition spec {spec_id}: the table has no such spec",
            hint=f"Its specs are: {', '.join(map(str, sorted(metadata.specs_by_id)))}.",
        )
    spec = metadata.default_spec if spec_id is None else metadata.spec(spec_id)
    snapshot = find_parent(metadata, request.target.branch)
    plan = RewritePlan(loaded, request, snapshot, spec)
    if snapshot is None:
        return plan
    sizes = options.sizes
    tasks = _tasks(loaded, request, cache, threads)
    groups: list[RewriteGroup] = []
    remaining = options.max_files
    for members in _partitions(tasks, spec.spec_id):
        for group in _worth_groups(members, options, sizes):
            chosen = group if remaining is None else group[:remaining]
            if remaining is not None:
                remaining -= len(chosen)
            if chosen:
                groups.append(_group(len(groups) + 1, chosen, sizes))
    return replace(plan, groups=tuple(_ordered(groups, sizes.job_order)))


def plan_again(
    loaded: LoadedTable,
    plan: RewritePlan,
    groups: Iterable[RewriteGroup],
    *,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> RewritePlan:
    """Return the groups of an older plan on the present table: remaining files, with their present deletes."""
    old_groups = list(groups)
    paths = {task.data_file.file_path for group in old_groups for task in group.tasks}
    everything = replace(plan.request, where=TRUE)
    present = {
        task.data_file.file_path: task
        for task in _tasks(loaded, everything, cache, threads)
        if task.data_file.file_path in paths
    }
    sizes = plan.request.options.sizes
    new_groups = []
    for rewrite_group in old_groups:
        tasks = [present[path] for task in rewrite_group.tasks if (path := task.data_file.file_path) in present]
        if tasks:
            new_groups.append(_group(rewrite_group.number, tasks, sizes))
    snapshot = find_parent(loaded.metadata, plan.request.target.branch)
    return RewritePlan(loaded, plan.request, snapshot, plan.spec, tuple(new_groups))


def within_budget(plan: RewritePlan, budget_bytes: int) -> RewritePlan:
    """Limit a plan to some bytes of input: groups that remove most files per byte come first."""
    sizes = plan.request.options.sizes
    remaining = budget_bytes
    groups: list[RewriteGroup] = []
    by_worth = sorted(
        plan.groups,
        key=lambda rewrite_group: (
            (len(rewrite_group.tasks) - rewrite_group.expected_files) / (rewrite_group.input_bytes + 1)
        ),
        reverse=True,
    )
    for group in by_worth:
        tasks = []
        for task in group.tasks:
            if _bytes(task) > remaining:
                break
            tasks.append(task)
            remaining -= _bytes(task)
        # A group that is cut must still be worth rewriting.
        if len(tasks) == len(group.tasks) or (len(tasks) > 1 and is_worth(tasks, _bytes, sizes)):
            groups.append(_group(group.number, tasks, sizes))
        else:
            remaining += sum(map(_bytes, tasks))
    return replace(plan, groups=tuple(groups))


def _tasks(
    loaded: LoadedTable, request: RewriteRequest, cache: ManifestCache | None, threads: int | None
) -> Iterator[FileScanTask]:
    """Yield the files that may hold rows of the filter, with all their deletes and no residual filter."""
    branch = request.target.branch
    is_branch = loaded.metadata.find_ref(branch) is not None and branch != MAIN_BRANCH
    choice = SnapshotChoice(ref=branch) if is_branch else SnapshotChoice()

    def planned(predicate: Predicate) -> Iterator[FileScanTask]:
        plan = plan_scan(
            loaded, predicate, choice=choice, case_sensitive=request.case_sensitive, cache=cache, threads=threads
        )
        return plan.iter_tasks()

    if request.where == TRUE:
        yield from planned(TRUE)
        return
    # A filtered plan leaves out deletes of rows outside the filter, but those rows are rewritten too.
    paths = {task.data_file.file_path for task in planned(request.where)}
    if paths:
        yield from (task for task in planned(TRUE) if task.data_file.file_path in paths)


def _partitions(tasks: Iterable[FileScanTask], spec_id: int) -> Iterator[list[FileScanTask]]:
    """Yield files by partition of the spec; files of other specs together."""
    groups: dict[tuple[Any, ...] | None, list[FileScanTask]] = {}
    for task in tasks:
        key = partition_key_of(task.data_file) if task.data_file.spec_id == spec_id else None
        groups.setdefault(key, []).append(task)
    yield from groups.values()


def _worth_groups(
    members: list[FileScanTask], options: DataOptions, sizes: SizeOptions
) -> Iterator[list[FileScanTask]]:
    """Yield the groups of one partition that are worth rewriting."""

    def has_deletes(task: FileScanTask) -> bool:
        return has_many_deletes(task, options)

    chosen = members
    if not sizes.rewrite_all:
        chosen = [member for member in members if _is_wrong_size(member, sizes) or has_deletes(member)]
    for group in pack(chosen, _bytes, sizes.max_group_bytes, sizes.max_group_files):
        if sizes.rewrite_all or is_worth(group, _bytes, sizes) or any(map(has_deletes, group)):
            yield group


def _bytes(task: FileScanTask) -> int:
    return task.data_file.file_size_in_bytes


def _is_wrong_size(task: FileScanTask, sizes: SizeOptions) -> bool:
    return not sizes.min_bytes <= _bytes(task) <= sizes.max_bytes


def has_many_deletes(task: FileScanTask, options: DataOptions) -> bool:
    """Return whether a file has enough deletes, or deleted rows, to be worth rewriting."""
    if not task.delete_files:
        return False
    if len(task.delete_files) >= options.delete_file_threshold:
        return True
    # The number of deleted rows is known only for delete files that refer to a single data file.
    own = [
        delete_file.data_file
        for delete_file in task.delete_files
        if delete_file.data_file.referenced_data_file is not None
    ]
    rows = task.data_file.record_count
    return rows > 0 and min(sum(file.record_count for file in own), rows) / rows >= options.delete_ratio_threshold


def is_worth(group: list[Any], size_of: Callable[[Any], int], sizes: SizeOptions) -> bool:
    """Return whether the files of a group are worth rewriting because of their sizes."""
    total = sum(map(size_of, group))
    several = len(group) > 1
    return (several and (len(group) >= sizes.min_input_files or total > sizes.target_bytes)) or total > sizes.max_bytes


def pack(items: Iterable[Any], size_of: Callable[[Any], int], max_bytes: int, max_count: int) -> Iterator[list[Any]]:
    """Yield items in order, in groups of at most a size and a number."""
    group: list[Any] = []
    total = 0
    for item in items:
        size = size_of(item)
        if group and (total + size > max_bytes or len(group) >= max_count):
            yield group
            group, total = [], 0
        group.append(item)
        total += size
    if group:
        yield group


def _group(number: int, tasks: list[FileScanTask], sizes: SizeOptions) -> RewriteGroup:
    total = sum(map(_bytes, tasks))
    # Whole files are rewritten, without a residual filter.
    whole = tuple(replace(task, residual=TRUE) for task in tasks)
    return RewriteGroup(number, whole, sizes.expected_files(total), sizes.output_bytes(total))


def _ordered(groups: list[RewriteGroup], order: JobOrder) -> list[RewriteGroup]:
    if order is JobOrder.NONE:
        return groups
    by_bytes = order in (JobOrder.BYTES_ASC, JobOrder.BYTES_DESC)
    is_descending = order in (JobOrder.BYTES_DESC, JobOrder.FILES_DESC)
    return sorted(
        groups,
        key=lambda rewrite_group: rewrite_group.input_bytes if by_bytes else len(rewrite_group.tasks),
        reverse=is_descending,
    )


def own_position_deletes(tasks: Iterable[FileScanTask]) -> list[DataFile]:
    """Return the position delete files that refer to one of the data files and no other."""
    own: dict[str, DataFile] = {}
    for task in tasks:
        for delete_file in task.delete_files:
            file = delete_file.data_file
            is_file = file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector
            if is_file and file.referenced_data_file == task.data_file.file_path:
                own[file.file_path] = file
    return list(own.values())
