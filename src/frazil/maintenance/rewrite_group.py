"""Rewrite one group of data files in this process: rows as they are, less those that are deleted.

    read      each file with its deletes applied, by the current schema; in v3 with the row lineage columns, which the
              new files store, so that every row keeps its id and the number of its last change
    arrange   nothing for bin-packing, and rows then stream through; sorted or in z-order, all of the group at once
    write     under the output spec, to files of the group's size

What may fail: nothing refers to new files before a commit, and a failure deletes them again as far as that is safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import read_task, view_table
from frazil.datafile.read_tasks import read_in_order
from frazil.datafile.sort_rows import RowSorter
from frazil.datafile.write import DataFileWriter
from frazil.datafile.write_target import WriteTarget, write_target
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.plan_rewrite import RewriteGroup, RewritePlan
from frazil.maintenance.zorder import zorder_rows
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder

SORTED_AT_ONCE_BYTES: Final = 256 << 20
"""The most bytes of files whose rows are sorted in this process's memory at once."""
_TAKEN_AT_ONCE: Final = 1 << 17
"""How many sorted rows are written at a time; the others stay where they are."""


def rewritten_schema(loaded: LoadedTable) -> Schema:
    """Return the columns that rewritten files hold: the table's, and in v3 the row lineage columns."""
    fields = loaded.metadata.current_schema.fields
    if loaded.metadata.format_version >= 3:
        fields += ROW_LINEAGE_COLUMNS
    return Schema(fields, loaded.metadata.current_schema_id)


def rewrite_group(plan: RewritePlan, group: RewriteGroup, *, threads: int = 1) -> list[DataFile]:
    """Write the rows of a group's files to new files and return their descriptions; nothing is committed."""
    loaded, request = plan.loaded, plan.request
    schema = rewritten_schema(loaded)
    target = replace(write_target(loaded, spec_id=plan.spec.spec_id), sort_order=UNSORTED)
    batches = _read(loaded, schema, group, threads)
    if request.strategy == "binpack":
        return _write(target, schema, batches, group, threads)
    # In one piece each, or every take of some rows would look through all of them.
    rows = pa.Table.from_batches(batches, to_arrow_schema(schema)).combine_chunks()
    files = _write(target, schema, _arranged(plan, schema, rows), group, threads)
    order_id = find_order_id(loaded, request.order) if request.strategy == "sort" else None
    return files if order_id is None else [replace(one, sort_order_id=order_id) for one in files]


def _arranged(plan: RewritePlan, schema: Schema, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a group in the order that was asked for, some at a time."""
    request = plan.request
    if rows.num_rows < 2:
        yield from rows.to_batches()
        return
    order: npt.NDArray[np.int64] | None
    try:
        if request.strategy == "zorder":
            order = zorder_rows(rows, schema, request.zorder_ids)
        else:
            sorter = RowSorter(schema, request.order, plan.loaded.metadata.current_schema)
            order = sorter.sort(sorter.keys(rows)) if sorter.has_keys else None
        if order is None:
            yield from rows.to_batches()
            return
        for start in range(0, rows.num_rows, _TAKEN_AT_ONCE):
            yield from rows.take(pa.array(order[start : start + _TAKEN_AT_ONCE])).to_batches()
    except pa.ArrowException as error:
        raise InvalidRequestError(
            f"Cannot sort the {rows.num_rows} rows of a group of files: {error}",
            hint="Lower max-file-group-size-bytes, so that fewer are sorted at once.",
        ) from error


def find_order_id(loaded: LoadedTable, order: SortOrder) -> int | None:
    """Return the id under which the table knows a sort order, None where it does not."""
    known = [one for one in loaded.metadata.sort_orders if one.is_sorted and one.same_order(order)]
    return known[0].order_id if known else None


def _read(loaded: LoadedTable, schema: Schema, group: RewriteGroup, threads: int) -> Iterator[pa.RecordBatch]:
    view = view_table(loaded.metadata)
    read = partial(read_task, view=view, projection=schema, storage=loaded.storage, cache=DeleteCache())
    return read_in_order(read, group.tasks, threads=threads)


def _write(
    target: WriteTarget, schema: Schema, batches: Iterator[pa.RecordBatch], group: RewriteGroup, threads: int
) -> list[DataFile]:
    with DataFileWriter(
        target,
        to_arrow_schema(schema),
        target_file_bytes=group.output_bytes,
        threads=threads,
        partition_id=group.number,
    ) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.close()
