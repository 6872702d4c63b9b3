"""Rewrite one group of data files in this process: their live rows, unchanged.

    read      each file with its deletes applied, by the current schema; in v3 with the row lineage columns, which the
              new files store, so that every row keeps its id and the sequence number of its last change
    arrange   nothing for bin-packing, which streams rows; otherwise sort the whole group, or arrange it in z-order,
              with at most `sort-memory-bytes` in memory at a time (`datafile/sort_batches.py`)
    write     with the output spec, to files of the group's size

Failures: nothing references new files before a commit, and after a failure they are deleted if that is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import read_task, view_table
from frazil.datafile.read_tasks import read_in_order
from frazil.datafile.rows_writer import DEFAULT_HELD_BYTES
from frazil.datafile.sort_batches import NewFile, RowOrder, sort_batches
from frazil.datafile.sort_rows import RowSorter
from frazil.datafile.write import DataFileWriter
from frazil.datafile.write_target import WriteTarget, write_target
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.plan_rewrite import RewriteGroup, RewritePlan
from frazil.maintenance.zorder import ZOrder, draw_sample
from frazil.progress import count
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder

_WRITTEN_BYTES: Final = DEFAULT_HELD_BYTES // 2
"""The memory of the writer of sorted rows: less than otherwise, since the sort uses some too."""


def rewritten_schema(loaded: LoadedTable) -> Schema:
    """Return the columns of rewritten files: the table's, and in v3 the row lineage columns."""
    fields = loaded.metadata.current_schema.fields
    if loaded.metadata.format_version >= 3:
        fields += ROW_LINEAGE_COLUMNS
    return Schema(fields, loaded.metadata.current_schema_id)


def rewrite_group(
    plan: RewritePlan,
    group: RewriteGroup,
    *,
    threads: int = 1,
    groups_at_once: int = 1,
    new_file: NewFile | None = None,
) -> list[DataFile]:
    """Write the rows of a group's files to new files and return their descriptions; nothing is committed.

    Memory is shared by all groups that are rewritten at once. `new_file` opens files for spilled rows.
    """
    loaded, request = plan.loaded, plan.request
    schema = rewritten_schema(loaded)
    target = replace(write_target(loaded, spec_id=plan.spec.spec_id), sort_order=UNSORTED)
    batches = _read(loaded, schema, group, threads)
    write = partial(_write, target, schema, group=group, threads=threads)
    if request.strategy == "binpack":
        with closing(batches):
            return write(batches, held_bytes=DEFAULT_HELD_BYTES // groups_at_once)
    held_bytes = max(request.options.sort_bytes // groups_at_once, 1)
    arranged = _arrange(plan, schema, group, batches, threads, held_bytes, new_file)
    with closing(batches), closing(arranged):
        files = write(arranged, held_bytes=_WRITTEN_BYTES // groups_at_once)
    order_id = find_order_id(loaded, request.order) if request.strategy == "sort" else None
    return files if order_id is None else [replace(file, sort_order_id=order_id) for file in files]


def _arrange(
    plan: RewritePlan,
    schema: Schema,
    group: RewriteGroup,
    batches: Iterator[pa.RecordBatch],
    threads: int,
    held_bytes: int,
    new_file: NewFile | None,
) -> Generator[pa.RecordBatch]:
    """Yield the rows of a group in the requested order, a batch at a time."""
    request = plan.request
    choose: Callable[[bool], RowOrder] = partial(_choose_zorder, plan, schema, group, threads)
    if request.strategy == "sort":
        sorter = RowSorter(schema, request.order, plan.loaded.metadata.current_schema)
        if not sorter.has_keys:
            yield from batches
            return
        choose = lambda _: sorter  # noqa: E731
    try:
        arrow = to_arrow_schema(schema)
        yield from sort_batches(batches, arrow, choose, held_bytes=held_bytes, new_file=new_file)
    except pa.ArrowException as error:
        raise InvalidRequestError(
            f"Cannot sort the rows of {len(group.tasks)} files: {error}",
            hint="Lower sort-memory-bytes, so that fewer rows are sorted at once.",
        ) from error


def _choose_zorder(plan: RewritePlan, schema: Schema, group: RewriteGroup, threads: int, is_all: bool) -> ZOrder:
    """Return the z-order of a group's rows; if they are not all in memory, read a sample of its columns first."""
    ids = plan.request.zorder_ids
    if is_all:
        return ZOrder(schema, ids)
    columns = schema.project(ids)
    rows = sum(task.data_file.record_count for task in group.tasks)
    with closing(_read(plan.loaded, columns, group, threads)) as batches:
        sample = draw_sample(batches, to_arrow_schema(columns), rows)
    return ZOrder(schema, ids, sample, columns)


def find_order_id(loaded: LoadedTable, order: SortOrder) -> int | None:
    """Return the table's id of a sort order, or None if the table does not have it."""
    matching = [
        sort_order
        for sort_order in loaded.metadata.sort_orders
        if sort_order.is_sorted and sort_order.same_order(order)
    ]
    return matching[0].order_id if matching else None


def _read(loaded: LoadedTable, schema: Schema, group: RewriteGroup, threads: int) -> Generator[pa.RecordBatch]:
    view = view_table(loaded.metadata)
    read = partial(read_task, view=view, projection=schema, storage=loaded.storage, cache=DeleteCache())
    return read_in_order(read, group.tasks, threads=threads)


def _write(
    target: WriteTarget,
    schema: Schema,
    batches: Iterator[pa.RecordBatch],
    *,
    group: RewriteGroup,
    threads: int,
    held_bytes: int,
) -> list[DataFile]:
    with DataFileWriter(
        target,
        to_arrow_schema(schema),
        target_file_bytes=group.output_bytes,
        held_bytes=held_bytes,
        threads=threads,
        partition_id=group.number,
    ) as writer:
        for batch in batches:
            writer.write(batch)
            count("rows written", batch.num_rows)
        return writer.close()
