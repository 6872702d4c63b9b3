"""Statistics of a relation for Spark's optimiser: bytes, rows, and the number of distinct values of columns.

Bytes and rows come from the manifest entries that match the scan's own filter. Rows deleted by position are
subtracted; rows deleted by value cannot be counted. Numbers of distinct values come from the table statistics
(specification: "Table Statistics") of the scanned snapshot only, since those of other snapshots prove nothing.

Spark always uses bytes; it uses rows and columns if its cost-based optimiser is enabled (`spark.sql.cbo.enabled`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from frazil.spark.read.planned_files import FileGroup, ScanFiles
from frazil.spec.data_file import FileContent
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.puffin import NDV, THETA_SKETCH_V1
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import NestedField


@dataclass(frozen=True)
class RelationStats:
    """Bytes, rows, and for each column its number of distinct values and whether it has no nulls."""

    size_bytes: int
    rows: int
    columns: Mapping[str, tuple[int, bool]] = FrozenMap()

    @property
    def columns_text(self) -> str:
        """The columns as text for the Java side: name, distinct values and `!` for no nulls, separated by NUL."""
        return "\0".join(
            f"{name}\0{count}\0{'!' if is_full else ''}" for name, (count, is_full) in self.columns.items()
        )


def distinct_values(metadata: TableMetadata, snapshot_id: int | None) -> dict[int, int]:
    """Return the estimated numbers of distinct values in a snapshot, by field id, for columns with statistics."""
    counts: dict[int, int] = {}
    for file in metadata.statistics:
        if file.snapshot_id != snapshot_id:
            continue
        for blob in file.blob_metadata:
            text = blob.properties.get(NDV, "")
            if blob.type == THETA_SKETCH_V1 and len(blob.fields) == 1 and text.isdigit():
                counts[blob.fields[0]] = int(text)
    return counts


def relation_stats(
    scan: ScanFiles, group: FileGroup, columns: Mapping[str, NestedField], distinct: Mapping[int, int]
) -> RelationStats:
    """Return the statistics of a group of files; `columns` maps names in the relation to fields."""
    size = rows = 0
    used: set[int] = set()
    for planned in scan.batches(group, None):
        size += pc.sum(planned.files.column("file_size_in_bytes")).as_py() or 0
        rows += pc.sum(planned.files.column("record_count")).as_py() or 0
        used.update(*(planned.batch.deletes or ()))
    delete_files = scan.plan().delete_files
    files = [delete_files[number].data_file for number in used]
    rows -= sum(file.record_count for file in files if file.content is FileContent.POSITION_DELETES)
    rows = max(rows, 0)
    distinct_counts = {
        name: (min(distinct[column.field_id], rows), column.required)
        for name, column in columns.items()
        if column.field_id in distinct
    }
    return RelationStats(max(size, 1), rows, distinct_counts)
