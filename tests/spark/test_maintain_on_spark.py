"""Data files rewritten on Spark: the same rows, ids and deletes as when they are rewritten in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.spark.write.zorder_columns import bits_of
from tests.support.damage import DDL, rows
from tests.support.equality_delete_writer import write_equality_deletes


def with_deletes(lake: frazil.Lake, version: int, **options: Any) -> frazil.Table:
    """Six appends to two partitions, with rows deleted by position and by value."""
    table = lake.create_table("db.t", DDL, partition_by=["kind"], format_version=version, **options)
    for at in range(12):
        table.append(rows(at * 10, at * 10 + 10, "ab"[at % 2]))
    if version < 2:
        return table
    tasks = list(table.scan().plan().tasks)
    found = [DeletedRows.of(one.data_file, [0, 3]) for one in tasks[:3]]
    loaded = table.state
    positions = write_deletion_vectors(found, loaded) if version == 3 else write_position_deletes(found, loaded)
    values = write_equality_deletes(pa.table({"id": [5, 16]}), loaded, ["id"], partition=("a",))
    head = table.current_snapshot
    assert head is not None
    files = tuple(one.data_file for one in tasks[:3])
    table._run(RowDelta((*positions, *values), ReadSet(head.snapshot_id), "delete", files))
    return table


def content(table: frazil.Table, **choice: Any) -> list[str]:
    columns = [one.name for one in table.schema.fields]
    if table.format_version >= 3:
        columns += ["_row_id", "_last_updated_sequence_number"]
    return sorted(map(repr, table.scan(columns=columns, **choice).to_arrow().to_pylist()))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rewritten_files_hold_the_same_rows(spark: SparkSession, lake: frazil.Lake, version: int) -> None:
    table = with_deletes(lake, version)
    before = content(table)
    result = table.maintain.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True, on_spark=True)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (12, 2)
    assert content(table) == before
    assert table.inspect.delete_files().num_rows == 0
    report = table.check(bounds=True)
    assert report.ok, str(report)
    assert {one.data_file.sort_order_id for one in table.scan().plan().tasks} <= {0, None}


@pytest.mark.extended
@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_are_converted_alike_on_spark_and_locally(
    spark: SparkSession, lake: frazil.Lake, version: int, form: str
) -> None:
    table = with_deletes(lake, version, properties={"write.format.default": form})
    more = write_equality_deletes(pa.table({"id": [103, 21, 47]}), table.state, ["id"], partition=("a",))
    head = table.current_snapshot
    assert head is not None
    table._run(RowDelta(tuple(more), ReadSet(head.snapshot_id), "delete"))
    head = table.current_snapshot
    assert head is not None
    before = content(table)
    result = table.maintain.convert_equality_deletes(on_spark=True)
    # The position of 103 is deleted already.
    assert (result.converted_delete_files_count, result.deleted_rows_count) == (2, 3)
    assert content(table) == before
    assert 2 not in table.inspect.delete_files().column("content").to_pylist()
    there = sorted((one.data_file.file_path, len(one.delete_files)) for one in table.scan().plan().tasks)
    table.rollback_to(head.snapshot_id)
    assert table.maintain.convert_equality_deletes(on_spark=False) == result
    assert sorted((one.data_file.file_path, len(one.delete_files)) for one in table.scan().plan().tasks) == there
    assert content(table) == before
    report = table.check()
    assert report.ok, str(report)


@pytest.mark.extended
def test_rows_are_sorted_by_the_table_order_or_another(spark: SparkSession, lake: frazil.Lake) -> None:
    table = with_deletes(lake, 3)
    table.set_sort_order(["score desc nulls last", "id"])
    before = content(table)
    table.maintain.rewrite_data_files("sort", rewrite_all=True, on_spark=True)
    assert content(table) == before
    tasks = list(table.scan().plan().tasks)
    assert {one.data_file.sort_order_id for one in tasks} == {table.sort_order.order_id}
    table.maintain.rewrite_data_files("sort", "id desc", rewrite_all=True, on_spark=True)
    assert content(table) == before
    assert {one.data_file.sort_order_id for one in table.scan().plan().tasks} == {0}
    for kind in "ab":
        ids = table.scan(f"kind = '{kind}'", columns=["id"]).to_arrow().column(0).to_pylist()
        assert ids == sorted(ids, reverse=True)
    assert table.check(bounds=True).ok


@pytest.mark.extended
def test_files_of_an_older_spec_are_rewritten_to_the_new_one(spark: SparkSession, lake: frazil.Lake) -> None:
    table = with_deletes(lake, 3)
    with table.update_spec() as update:
        update.add_field("bucket(2, id)")
    before = content(table)
    result = table.maintain.rewrite_data_files(rewrite_all=True, on_spark=True)
    assert result.rewritten_data_files_count == 12
    assert {one.data_file.spec_id for one in table.scan().plan().tasks} == {table.spec.spec_id}
    assert content(table) == before
    assert table.check(bounds=True).ok


def test_rewrite_respects_filter_and_branch(spark: SparkSession, lake: frazil.Lake) -> None:
    table = with_deletes(lake, 3)
    table.create_branch("audit")
    table.append(rows(500, 510), branch="audit")
    main, audit = content(table), content(table, ref="audit")
    result = table.maintain.rewrite_data_files(where="kind = 'a'", branch="audit", rewrite_all=True, on_spark=True)
    assert result.rewritten_data_files_count == 7
    assert (content(table), content(table, ref="audit")) == (main, audit)


@pytest.mark.extended
def test_values_without_a_spark_type_survive(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table(
        "db.u", "id bigint, u uuid, t time, n timestamp_ns, d decimal(38, 10), f fixed(3), b binary", format_version=3
    )
    for at in range(5):
        table.append(
            [
                {
                    "id": at,
                    "u": f"00000000-0000-0000-0000-00000000000{at}",
                    "t": "12:34:56.789",
                    "n": "2024-01-01T00:00:00.123456789",
                    "d": "1.5",
                    "f": b"abc",
                    "b": b"",
                }
            ]
        )
    before = content(table)
    assert table.maintain.rewrite_data_files(on_spark=True).rewritten_data_files_count == 5
    assert content(table) == before


@pytest.mark.extended
@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_clustered_in_z_order(spark: SparkSession, lake: frazil.Lake, version: int) -> None:
    table = with_deletes(lake, version)
    before = content(table)
    result = table.maintain.rewrite_data_files("zorder", "id, ts, kind", rewrite_all=True, on_spark=True)
    assert result.rewritten_data_files_count == 12
    assert content(table) == before
    assert table.check(bounds=True).ok
    with table.update_spec() as update:
        update.remove_field("kind")
        update.add_field("bucket(3, id)")
    table.maintain.rewrite_data_files("zorder", "score, id", rewrite_all=True, on_spark=True)
    assert content(table) == before
    assert {one.data_file.spec_id for one in table.scan().plan().tasks} == {1}
    assert table.check(bounds=True).ok


@pytest.mark.extended
def test_z_order_on_spark_lets_a_filter_on_either_column_skip_most_files(
    spark: SparkSession, lake: frazil.Lake
) -> None:
    random = np.random.default_rng(1)
    table = lake.create_table("db.z", "a bigint, b double, c string")
    for _ in range(4):
        a = random.integers(0, 10_000, 20_000)
        table.append(pa.table({"a": a, "b": random.random(20_000) ** 3, "c": [f"text {one:05}" for one in a]}))
    size = sum(one.data_file.file_size_in_bytes for one in table.scan().plan().tasks)
    frazil.attach(spark, lake)
    try:
        spark.sql(
            "call lake.system.rewrite_data_files(table => 'db.z', strategy => 'sort', sort_order => 'zorder(b, c)', "
            f"options => map('rewrite-all', 'true', 'target-file-size-bytes', '{size // 64}'))"
        )
    finally:
        frazil.detach(spark)
    options = {"rewrite-all": "true", "target-file-size-bytes": str(size // 64)}
    table.refresh().maintain.rewrite_data_files("sort", "zorder(b, c)", options=options, on_spark=True)
    every = len(table.scan().plan().tasks)
    assert every >= 32
    assert table.scan().count() == 80_000
    for where in ("c = 'text 05000'", "b > 0.5 and b < 0.505", "b < 0.000001"):
        left = len(table.scan(where).plan().tasks)
        assert 0 < left <= every / 3, (where, left, every)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("files", "columns", "bits"), [(1, 2, 3), (64, 2, 5), (64, 1, 8), (1000, 2, 7), (1000, 4, 4), (10**6, 2, 8)]
)
def test_columns_are_split_more_finely_than_files(files: int, columns: int, bits: int) -> None:
    assert bits_of(files, columns) == bits
    assert bits == 8 or 2 ** (bits * columns) >= 8 * files


@pytest.mark.extended
def test_candidate_files_come_from_a_view(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    table = with_deletes(lake, 2)
    folder = Path(table.location.removeprefix("file://")) / "data"
    for name in ("old", "young", "unlisted"):
        (folder / f"{name}.parquet").touch()
    live = [one.data_file.file_path for one in table.scan().plan().tasks]
    listed = [(path, "2020-01-01 00:00:00") for path in [*live, f"file://{folder}/old.parquet"]]
    listed += [(f"file://{folder}/young.parquet", "2100-01-01 00:00:00")]
    frame = spark.createDataFrame(listed, "file_path string, last_modified string")
    frame.selectExpr("file_path", "cast(last_modified as timestamp) as last_modified").createOrReplaceTempView("seen")
    frame.selectExpr("file_path").createOrReplaceTempView("half")
    frazil.attach(spark, lake)
    try:
        call = "call lake.system.remove_orphan_files(table => 'db.t', file_list_view => '{}', dry_run => {})"
        for dry_run in (True, False):
            found = [one[0] for one in spark.sql(call.format("seen", dry_run)).collect()]
            assert found == [f"file://{folder}/old.parquet"]
            assert (folder / "old.parquet").exists() is dry_run
        with pytest.raises(AnalysisException, match="last_modified"):
            spark.sql(call.format("half", True))
    finally:
        frazil.detach(spark)
    assert {one.name for one in folder.iterdir()} >= {"young.parquet", "unlisted.parquet"}
    assert table.maintain.remove_orphan_files(file_list=spark.table("seen"), dry_run=True).orphan_file_locations == (
        f"file://{folder}/old.parquet",
    )
    assert table.check().ok


def test_dry_runs_show_what_calls_would_do(spark: SparkSession, lake: frazil.Lake) -> None:
    table = with_deletes(lake, 2)
    table.delete("kind = 'b'")
    before = table.metadata_location
    frazil.attach(spark, lake)
    try:
        for call, found in {
            "expire_snapshots('db.t', timestamp'2100-01-01', dry_run => true)": "deleted_bytes",
            "rewrite_data_files('db.t', options => map('rewrite-all', 'true'), dry_run => true)": None,
            "rewrite_manifests('db.t', dry_run => true)": None,
            "rewrite_position_delete_files('db.t', map('rewrite-all', 'true'), dry_run => true)": None,
            "convert_equality_deletes('db.t', dry_run => true)": None,
            "remove_dangling_deletes('db.t', dry_run => true)": None,
            "compute_table_stats('db.t', columns => array('id'), dry_run => true)": None,
            "compute_partition_stats('db.t', dry_run => true)": None,
            "optimize('db.t', dry_run => true)": None,
        }.items():
            row = spark.sql(f"call lake.system.{call}").first()
            assert row is not None, call
            shown = row.asDict()
            # Nothing dangles: whole files went, and their deletes with them.
            is_nothing = call.startswith("remove_dangling")
            assert any(value not in (0, None, "") for value in shown.values()) is not is_nothing, call
            if found is not None:
                assert shown[found] > 0
            assert table.refresh().metadata_location == before, call
        with pytest.raises(AnalysisException, match=r"(?s)`older`.*Did you mean one of the following.*`older_than`"):
            spark.sql("call lake.system.expire_snapshots(table => 'db.t', older => 1)")
        with pytest.raises(AnalysisException, match="The options are: delete-file-threshold, "):
            spark.sql("call lake.system.rewrite_data_files('db.t', options => map('target-size', '1'))")
    finally:
        frazil.detach(spark)


@pytest.mark.parametrize("version", [2, 3])
def test_column_statistics_equal_those_computed_locally(spark: SparkSession, lake: frazil.Lake, version: int) -> None:
    table = with_deletes(lake, version)
    random = np.random.default_rng(1)
    many = pa.table({"id": random.integers(0, 10**6, 20_000), "kind": ["a"] * 20_000, "score": random.random(20_000)})
    for part in (many.slice(0, 10_000), many.slice(10_000)):
        table.append(part)
    here = table.maintain.compute_table_stats(dry_run=True, on_spark=False)
    there = table.maintain.compute_table_stats(dry_run=True, on_spark=True)
    assert here is not None
    assert there is not None
    assert there.blob_metadata == here.blob_metadata
    assert there.file_size_in_bytes == here.file_size_in_bytes
    assert table.maintain.compute_table_stats(on_spark=True) is not None
    assert table.check().ok
