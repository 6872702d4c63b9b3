"""Partition statistics: what is counted, how it is stored, and that others read it."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import InvalidRequestError
from frazil.maintenance.partition_stats import compute_partition_stats, partition_stats_schema
from frazil.spec.statistics import PartitionStatisticsFile
from tests.damage import Damaged


def compute(table: frazil.Table, snapshot_id: int | None = None) -> PartitionStatisticsFile | None:
    state, made = compute_partition_stats(table._catalog, table.refresh()._loaded, snapshot_id, threads=1)
    table._show(state)
    return made


def rows_of(table: frazil.Table, file: PartitionStatisticsFile | None) -> pa.Table:
    assert file is not None
    data = table._loaded.storage.read(file.statistics_path)
    assert len(data) == file.file_size_in_bytes
    return pq.read_table(io.BytesIO(data))


@pytest.mark.parametrize("version", [2, 3])
def test_counts_are_those_of_the_partitions_table(version: int) -> None:
    table = Damaged(version).table
    made = compute(table)
    found = rows_of(table, made)
    shown = {one["partition"]["kind"]: one for one in table.inspect.partitions().to_pylist()}
    for row in found.to_pylist():
        like = shown[row["partition"]["kind"]]
        assert row["data_record_count"] == like["record_count"]
        assert row["data_file_count"] == like["file_count"]
        assert row["position_delete_record_count"] == like["position_delete_record_count"]
        assert row["equality_delete_file_count"] == like["equality_delete_file_count"]
        files = row["position_delete_file_count"] + row.get("dv_count", 0)
        assert files == like["position_delete_file_count"]
        assert row["last_updated_snapshot_id"] == like["last_updated_snapshot_id"]
        assert row["total_record_count"] is None or row["equality_delete_file_count"] == 0
    assert len(shown) == found.num_rows
    assert table.metadata.find_partition_statistics(made.snapshot_id if made else 0) == made
    assert table.check().ok


def test_rows_left_are_known_where_only_vectors_delete() -> None:
    table = frazil.connect("memory:").create_table("db.t", "id bigint, k string", partition_by=["k"], format_version=3)
    table.append(pa.table({"id": [1, 2, 3], "k": ["b", "a", None]}))
    found = rows_of(table, compute(table))
    assert [one["partition"]["k"] for one in found.to_pylist()] == [None, "a", "b"]
    assert [one["total_record_count"] for one in found.to_pylist()] == [1, 1, 1]
    ids = {one.name: one.metadata[b"PARQUET:field_id"] for one in found.schema}
    assert (ids["partition"], ids["spec_id"], ids["dv_count"]) == (b"1", b"2", b"13")


def test_a_snapshot_keeps_the_statistics_it_has() -> None:
    table = Damaged(2).table
    made = compute(table)
    assert compute(table) == made
    oldest = next(iter(table.snapshots)).snapshot_id
    other = compute(table, oldest)
    assert other is not None and other.snapshot_id == oldest
    assert len(table.metadata.partition_statistics) == 2


def test_columns_are_the_specifications() -> None:
    for version, required in ((2, False), (3, True)):
        fields = {one.name: one for one in partition_stats_schema(Damaged(version).table.metadata).fields}
        assert ("dv_count" in fields) == required
        assert fields["position_delete_record_count"].required == required
        assert fields["data_record_count"].required and not fields["total_record_count"].required


def test_a_table_without_partitions_is_refused_and_one_without_rows_has_none() -> None:
    lake = frazil.connect("memory:")
    with pytest.raises(InvalidRequestError, match="has no partitions"):
        compute(lake.create_table("db.a", "id bigint"))
    assert compute(lake.create_table("db.b", "id bigint", partition_by=["id"])) is None
