"""What Spark's optimiser is told of a relation: bytes, rows, and distinct values of columns where they are known.

Bytes and rows are those of the files that a scan's own filter leaves, from manifests. Rows deleted by position are
taken off; rows deleted by value cannot be counted. Distinct values come from table statistics (specification:
"Table Statistics") of the very snapshot that is read; those of other snapshots say nothing certain about it.

Spark uses rows and columns where its cost-based optimiser is on (`spark.sql.cbo.enabled`), bytes always.
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
    """Bytes and rows, and by column its distinct values and whether it is known to hold no null."""

    size_bytes: int
    rows: int
    columns: Mapping[str, tuple[int, bool]] = FrozenMap()

    @property
    def columns_text(self) -> str:
        """The columns as the driver's Java reads them: name, distinct values, `!` for no nulls, apart by NUL."""
        return "\0".join(
            f"{name}\0{count}\0{'!' if is_full else ''}" for name, (count, is_full) in self.columns.items()
        )


def distinct_values(metadata: TableMetadata, snapshot_id: int | None) -> dict[int, int]:
    """Return the estimated distinct values of columns in a snapshot, by field id, where statistics tell them."""
    found: dict[int, int] = {}
    for file in metadata.statistics:
        if file.snapshot_id != snapshot_id:
            continue
        for blob in file.blob_metadata:
            text = blob.properties.get(NDV, "")
            if blob.type == THETA_SKETCH_V1 and len(blob.fields) == 1 and text.isdigit():
                found[blob.fields[0]] = int(text)
    return found


def relation_stats(
    scan: ScanFiles, group: FileGroup, columns: Mapping[str, NestedField], distinct: Mapping[int, int]
) -> RelationStats:
    """Return what is known of a group of files; `columns` are the fields by their names in the relation."""
    size = rows = 0
    used: set[int] = set()
    for planned in scan.batches(group, None):
        size += pc.sum(planned.files.column("file_size_in_bytes")).as_py() or 0
        rows += pc.sum(planned.files.column("record_count")).as_py() or 0
        used.update(*(planned.batch.deletes or ()))
    known = scan.plan().delete_files
    files = [known[number].data_file for number in used]
    rows -= sum(file.record_count for file in files if file.content is FileContent.POSITION_DELETES)
    rows = max(rows, 0)
    distinct_counts = {
        name: (min(distinct[column.field_id], rows), column.required)
        for name, column in columns.items()
        if column.field_id in distinct
    }
    return RelationStats(max(size, 1), rows, distinct_counts)
