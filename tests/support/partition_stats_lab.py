"""Partition statistics of a table, computed and read back."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.maintenance.partition_stats import compute_partition_stats
from frazil.spec.statistics import PartitionStatisticsFile


def compute(table: frazil.Table, snapshot_id: int | None = None) -> PartitionStatisticsFile | None:
    """Compute the statistics of a snapshot, the current one unless given; let the table show them."""
    _, made = compute_partition_stats(table._catalog, table.refresh().state, snapshot_id, threads=1)
    table.refresh()
    return made


def rows_of(table: frazil.Table, file: PartitionStatisticsFile | None) -> pa.Table:
    """Return the rows of a statistics file, whose size is as it says."""
    assert file is not None
    data = table.state.storage.read(file.statistics_path)
    assert len(data) == file.file_size_in_bytes
    return pq.read_table(io.BytesIO(data))
