"""Rows that snapshots added and removed, as Arrow, in this process: `t.changes(…)`, and what `t.follow(…)` reads.

Each row says how it changed (`_change_type`: INSERT or DELETE), the number of its snapshot in the window, and the
snapshot's id. A row that a snapshot merely copied from one file to another comes out removed and added by it
(`scan/changelog.py`); such pairs are left out, whole snapshots at a time, of which all rows are in memory then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import SnapshotNotFoundError
from frazil.scan.changelog import INSERT, Changelog, changelog_between
from frazil.spec.reserved_columns import CHANGE_COLUMNS, CHANGE_TYPE
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata
from frazil.table.point_in_time import milliseconds_of
from frazil.table.scan import Scan


def changes_window(metadata: TableMetadata, start: object, end: object) -> Changelog:
    """Return the window between two snapshots or times; the start is left out, the end is within."""
    return changelog_between(
        metadata,
        start_snapshot_id=_id_of(metadata, start),
        end_snapshot_id=_id_of(metadata, end),
        start_ms=None if start is None or isinstance(start, int) else milliseconds_of(start),  # type: ignore[arg-type]
        end_ms=None if end is None or isinstance(end, int) else milliseconds_of(end),  # type: ignore[arg-type]
    )


def _id_of(metadata: TableMetadata, given: object) -> int | None:
    if not isinstance(given, int):
        return None
    is_named = any(head.parent_snapshot_id == given for head in metadata.snapshots.heads)
    if metadata.snapshots.find_head(given) is None and not is_named:
        raise SnapshotNotFoundError(
            f"Cannot read changes between snapshots: there is no snapshot {given}",
            hint="It may have expired. Times are given as datetimes or ISO text.",
        )
    return given


def read_changes(scan: Scan) -> pa.Table:
    """Return the changed rows of a scan with a window, without those that were merely copied."""
    plan = scan.plan()
    ids = getattr(plan, "changed_ids", ())
    tables = []
    for ordinal, snapshot_id in enumerate(ids):
        rows = pa.Table.from_batches(changes_of(scan, scan.table.metadata.snapshot(snapshot_id)), scan.arrow_schema)
        index = rows.schema.get_field_index(CHANGE_COLUMNS[1].name)
        number = pa.repeat(pa.scalar(ordinal, rows.schema.field(index).type), rows.num_rows)
        tables.append(rows.set_column(index, rows.schema.field(index), number))
    return pa.concat_tables(tables) if tables else scan.arrow_schema.empty_table()


def changes_of(scan: Scan, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the rows that one snapshot changed, without those that it merely copied."""
    single = replace(scan, changelog=Changelog(snapshot.parent_snapshot_id, snapshot.snapshot_id))
    if snapshot.parent_snapshot_id is None:
        single = replace(scan, changelog=Changelog(None, snapshot.snapshot_id))
    summary = {} if snapshot.summary is None else snapshot.summary
    may_copy = Summary.DELETED_DATA_FILES in summary and Summary.ADDED_DATA_FILES in summary
    if snapshot.summary is not None and not may_copy:
        yield from single.to_batches()
        return
    # Rows that differ in a column that is not shown are no copies.
    whole = replace(single, columns=None)
    are_whole = all(name in whole.arrow_schema.names for name in single.columns or ())
    rows = without_copies((whole if are_whole else single).to_arrow())
    yield from rows.select(single.arrow_schema.names).to_batches()


def without_copies(rows: pa.Table) -> pa.Table:
    """Return changed rows without pairs of a removed and an added row that are the same."""
    own = [name for name in rows.column_names if name not in {change_column.name for change_column in CHANGE_COLUMNS}]
    keys = [pc.cast(pc.dictionary_encode(_comparable(rows.column(name))).combine_chunks().indices, pa.int64())
            if rows.num_rows else pa.array([], pa.int64()) for name in own]  # fmt: skip
    places = pa.array(range(rows.num_rows), pa.int64())
    is_added = pc.equal(rows.column(CHANGE_TYPE.name), INSERT)
    named = {f"k{index}": key for index, key in enumerate(keys)}
    grouped = pa.table({**named, "is_added": is_added, "place": places})
    groups = grouped.group_by(list(named), use_threads=False).aggregate([("is_added", "list"), ("place", "list")])
    kept: list[int] = []
    for added, where in zip(groups["is_added_list"].to_pylist(), groups["place_list"].to_pylist(), strict=True):
        if len(where) == 1:
            kept.append(where[0])
            continue
        inserts = [index for index, is_new in zip(where, added, strict=True) if is_new]
        deletes = [index for index, is_new in zip(where, added, strict=True) if not is_new]
        both = min(len(inserts), len(deletes))
        kept += [*inserts[both:], *deletes[both:]]
    return rows.take(pa.array(sorted(kept), pa.int64()))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as values that can be told apart: those of nested types as text."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _comparable(pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type))
    if pa.types.is_nested(column.type):
        return pa.chunked_array(
            [pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())]
        )
    return column
