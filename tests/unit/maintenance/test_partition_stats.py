"""Partition statistics: what is counted, how it is stored, and that others read it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.datafile.partition_stats_file import partition_stats_schema
from frazil.errors import InvalidRequestError
from tests.support.damage import Damaged, rows
from tests.support.partition_stats_lab import compute, rows_of


@pytest.mark.parametrize("version", [2, 3])
def test_counts_equal_the_partitions_table(version: int) -> None:
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


def test_remaining_rows_are_exact_if_only_vectors_delete() -> None:
    table = frazil.connect("memory:").create_table("db.t", "id bigint, k string", partition_by=["k"], format_version=3)
    table.append(pa.table({"id": [1, 2, 3], "k": ["b", "a", None]}))
    found = rows_of(table, compute(table))
    assert [one["partition"]["k"] for one in found.to_pylist()] == [None, "a", "b"]
    assert [one["total_record_count"] for one in found.to_pylist()] == [1, 1, 1]
    ids = {one.name: one.metadata[b"PARQUET:field_id"] for one in found.schema}
    assert (ids["partition"], ids["spec_id"], ids["dv_count"]) == (b"1", b"2", b"13")


def test_snapshot_keeps_its_existing_statistics() -> None:
    table = Damaged(2).table
    made = compute(table)
    assert compute(table) == made
    oldest = next(iter(table.snapshots)).snapshot_id
    other = compute(table, oldest)
    assert other is not None and other.snapshot_id == oldest
    assert len(table.metadata.partition_statistics) == 2


def test_update_reads_only_later_changes(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table("db.t", "id bigint, k string", partition_by=["k"])
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    for number in range(3):
        table.append(pa.table({"id": [number], "k": ["a"]}))
    compute(table)
    old = [one["path"] for one in table.inspect.manifests().to_pylist()]
    table.append(pa.table({"id": [9], "k": ["b"]}))
    for one in old:
        Path(one.removeprefix("file://")).unlink()
    found = rows_of(table, compute(table)).to_pylist()
    assert [(one["partition"]["k"], one["data_file_count"]) for one in found] == [("a", 3), ("b", 1)]
    shown = table.inspect.partitions().to_pylist()
    assert [(one["partition"]["k"], one["record_count"]) for one in shown] == [("a", 3), ("b", 1)]


@pytest.mark.parametrize("version", [2, 3])
def test_partitions_table_is_the_same_with_and_without_statistics(version: int) -> None:
    table = Damaged(version).table
    with table.update_spec() as update:
        update.add_field("bucket(4, id)")
    table.append(rows(100, 104))
    without = table.inspect.partitions()
    compute(table)
    with_stats = table.refresh().inspect.partitions()
    assert with_stats.schema == without.schema
    assert sorted(map(repr, with_stats.to_pylist())) == sorted(map(repr, without.to_pylist()))


def test_inconsistent_statistics_are_not_used(tmp_path: Path) -> None:
    table = frazil.connect(tmp_path).create_table("db.t", "id bigint, k string", partition_by=["k"])
    table.append(pa.table({"id": [1, 2], "k": ["a", "b"]}))
    made = compute(table)
    assert made is not None
    path = Path(made.statistics_path.removeprefix("file://"))
    good = pq.read_table(path)
    at = good.column_names.index("data_record_count")
    wrong = good.set_column(at, good.schema.field(at), pa.array([5, 5], pa.int64()))
    for data in (wrong, None):
        if data is None:
            path.write_bytes(b"no Parquet")
        else:
            pq.write_table(data, path)
        assert [one["record_count"] for one in table.inspect.partitions().to_pylist()] == [1, 1]
        table.append(pa.table({"id": [3], "k": ["a"]}))
        assert sum(rows_of(table, compute(table)).column("data_record_count").to_pylist()) == table.scan().count()
        table.rollback_to(made.snapshot_id)
    path.unlink()
    assert table.inspect.partitions().num_rows == 2


def test_dry_run_writes_nothing() -> None:
    table = Damaged(2).table
    stored = {one.path for one in table.state.storage.list(table.location)}
    made = table.maintain.compute_partition_stats(dry_run=True)
    assert made is not None and made.file_size_in_bytes > 0
    assert table.refresh().metadata.partition_statistics == ()
    assert {one.path for one in table.state.storage.list(table.location)} == stored


def test_columns_match_the_specification() -> None:
    for version, required in ((2, False), (3, True)):
        fields = {one.name: one for one in partition_stats_schema(Damaged(version).table.metadata).fields}
        assert ("dv_count" in fields) == required
        assert fields["position_delete_record_count"].required == required
        assert fields["data_record_count"].required and not fields["total_record_count"].required


def test_unpartitioned_table_is_refused_and_an_empty_one_has_none() -> None:
    lake = frazil.connect("memory:")
    with pytest.raises(InvalidRequestError, match="has no partitions"):
        compute(lake.create_table("db.a", "id bigint"))
    assert compute(lake.create_table("db.b", "id bigint", partition_by=["id"])) is None
