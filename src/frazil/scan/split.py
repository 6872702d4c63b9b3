"""Split files into parts and pack parts into groups of similar size: the last step of a plan.

A file is split at its split offsets if they are usable (strictly ascending and inside the file), or else into equal
parts. The weight of a part is its bytes and those of its deletes, but at least the cost of opening its files, so that
many small files do not end up in one group. Packing keeps a few groups open: a part goes into the first that has room;
if none has, a new one is opened and, beyond the limit, the fullest is yielded. Parts of one file that meet in a group
are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from frazil.errors import InvalidRequestError
from frazil.scan.tasks import FileScanTask, TaskGroup
from frazil.spec.data_file import FileFormat

MEBIBYTE = 1024 * 1024
_SPLITTABLE = frozenset({FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO})


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """The size of groups, the cost of opening a file, and the number of open groups while packing."""

    target_bytes: int = 128 * MEBIBYTE
    open_file_cost_bytes: int = 4 * MEBIBYTE
    lookback: int = 10

    def __post_init__(self) -> None:
        if self.target_bytes <= 0 or self.lookback <= 0 or self.open_file_cost_bytes < 0:
            raise InvalidRequestError(
                f"Cannot split with target size {self.target_bytes}, lookback {self.lookback} and open-file cost "
                f"{self.open_file_cost_bytes}: the first two must be positive and the last not negative"
            )


def adaptive_target_bytes(scan_bytes: int, parallelism: int, target_bytes: int) -> int:
    """Return a target size that keeps every core busy if the scan is small, but no less than 16 MB."""
    if parallelism <= 0 or -(-scan_bytes // target_bytes) >= parallelism:
        return target_bytes
    return max(scan_bytes // parallelism, min(16 * MEBIBYTE, target_bytes))


def plan_groups(tasks: Iterable[FileScanTask], options: SplitOptions) -> Iterator[TaskGroup]:
    """Yield groups of about the target size, each as soon as it is full."""
    parts = (split for task in tasks for split in split_task(task, options.target_bytes))
    for packed in _pack(parts, options):
        yield TaskGroup(tuple(_join(packed)))


def split_task(task: FileScanTask, target_bytes: int) -> Iterator[FileScanTask]:
    """Yield the parts of a task: at the file's split offsets, or else of the target size."""
    size = task.data_file.file_size_in_bytes
    if task.length is not None or task.data_file.file_format not in _SPLITTABLE or size <= 0:
        yield task
        return
    offsets = usable_offsets(task)
    if offsets is not None:
        # The first part starts at 0, regardless of the first offset: no row group may fall between parts.
        for start, end in zip((0, *offsets[1:]), (*offsets[1:], size), strict=True):
            yield task.part(start, end - start)
        return
    for start in range(0, size, target_bytes):
        yield task.part(start, min(target_bytes, size - start))


def usable_offsets(task: FileScanTask) -> tuple[int, ...] | None:
    """Return a file's split offsets, or None if they do not ascend or exceed the file."""
    offsets = task.data_file.split_offsets
    if not offsets or offsets[0] < 0 or offsets[-1] >= task.data_file.file_size_in_bytes:
        return None
    is_ascending = all(offset < following for offset, following in pairwise(offsets))
    return offsets if is_ascending else None


def weight_of(task: FileScanTask, open_file_cost_bytes: int) -> int:
    """Return the weight of a task: the bytes of its file and deletes, or the cost of opening them, if that is more."""
    content = task.size_bytes + sum(delete_file.content_bytes for delete_file in task.delete_files)
    return max(content, (1 + len(task.delete_files)) * open_file_cost_bytes)


class _Bin:
    __slots__ = ("parts", "weight")

    def __init__(self) -> None:
        self.parts: list[FileScanTask] = []
        self.weight = 0


def _pack(parts: Iterable[FileScanTask], options: SplitOptions) -> Iterator[list[FileScanTask]]:
    bins: list[_Bin] = []
    for task in parts:
        weight = weight_of(task, options.open_file_cost_bytes)
        room = next((fitting for fitting in bins if fitting.weight + weight <= options.target_bytes), None)
        if room is None:
            room = _Bin()
            bins.append(room)
        room.parts.append(task)
        room.weight += weight
        if len(bins) > options.lookback:
            fullest = max(range(len(bins)), key=lambda index: bins[index].weight)
            yield bins.pop(fullest).parts
    for packed in bins:
        yield packed.parts


def _join(parts: list[FileScanTask]) -> Iterator[FileScanTask]:
    """Yield parts, with neighbours of the same file joined."""
    current = parts[0]
    for task in parts[1:]:
        follows = (
            current.length is not None
            and task.length is not None
            and task.data_file is current.data_file
            and task.start == current.start + current.length
        )
        if follows:
            current = current.part(current.start, (current.length or 0) + (task.length or 0))
        else:
            yield current
            current = task
    yield current
