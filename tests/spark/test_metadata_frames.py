"""Metadata tables as DataFrames: all of them, their types, and time travel."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.tables import METADATA_TABLES, read_metadata_table
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.spark.arrow_types import shown_array, shown_struct, shown_table
from frazil.spark.read.metadata_frames import metadata_frame, metadata_frame_schema
from frazil.spec.schema import Schema
from frazil.spec.types import BINARY, DATE, INT, LONG, STRING, TIME, UUID, FixedType, NestedField, StructType
from frazil.storage.local import LocalStorage
from tests.support.tables import START_MS, STEP_MS, TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "key", UUID),
        NestedField(3, "at", TIME),
        NestedField(4, "code", FixedType(3)),
        NestedField(5, "info", StructType((NestedField(6, "day", DATE), NestedField(7, "raw", BINARY)))),
        NestedField(8, "part", INT),
        NestedField(9, "text", STRING),
    )
)
KEY = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def row(number: int, part: int | None) -> dict[str, Any]:
    return {
        "id": number,
        "key": KEY,
        "at": 3_723_000_004,
        "code": b"abc",
        "info": {"day": 18321, "raw": b"\x00\x01"},
        "part": part,
        "text": f"t{number}",
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LoadedTable:
    folder: Path = tmp_path_factory.mktemp("metadata-frames")
    builder = TableBuilder(
        SCHEMA, partition_by=["part", "key"], storage=LocalStorage(), location=f"file://{folder}/t", format_version=2
    )
    first = builder.append([row(1, 0), row(2, 0)])[0]
    builder.append([row(3, None)])
    builder.commit(builder.write_position_deletes({first: [1]}))
    builder.commit(builder.write_equality_deletes([{"id": 3}], ["id"], partition=(None, KEY)))
    return builder.load()


@pytest.mark.extended
@pytest.mark.parametrize("name", METADATA_TABLES)
def test_every_metadata_table_is_a_dataframe(spark: SparkSession, table: LoadedTable, name: str) -> None:
    arrow = read_metadata_table(table, name)
    frame = metadata_frame(spark, table, name)
    assert frame.columns == arrow.column_names
    assert frame.schema == metadata_frame_schema(table, name)
    assert [one.nullable for one in frame.schema] == [one.nullable for one in arrow.schema]
    assert len(frame.collect()) == arrow.num_rows > 0


def test_metadata_values_have_spark_types(spark: SparkSession, table: LoadedTable) -> None:
    files = metadata_frame(spark, table, "data_files")
    kinds = {one.name: one.dataType for one in files.schema}
    partition = kinds["partition"]
    assert isinstance(partition, st.StructType)
    assert partition["key"].dataType == st.StringType()
    found = files.orderBy("partition.part").select("partition.*", "record_count", "lower_bounds").collect()
    assert [(one.part, one.key, one.record_count) for one in found] == [(None, str(KEY), 1), (0, str(KEY), 2)]
    assert found[1].lower_bounds[1] == (1).to_bytes(8, "little")
    metrics = files.filter("partition.part = 0").select("readable_metrics.*").collect()[0]
    assert metrics.at.lower_bound == "01:02:03.000004"
    assert metrics.key.upper_bound == str(KEY)
    assert metrics.code.lower_bound == b"abc"
    assert metrics["info.day"].lower_bound == datetime.date(2020, 2, 29)


def test_metadata_timestamps_match_the_snapshots(spark: SparkSession, table: LoadedTable) -> None:
    found = metadata_frame(spark, table, "snapshots").selectExpr("unix_millis(committed_at) ms", "operation", "summary")
    rows = found.collect()
    assert [one.ms for one in rows] == [START_MS + STEP_MS * number for number in range(1, 5)]
    assert [one.operation for one in rows] == ["append", "append", "delete", "delete"]
    assert rows[0].summary["added-records"] == "2"


def test_metadata_table_supports_time_travel(spark: SparkSession, table: LoadedTable) -> None:
    at_first = metadata_frame(spark, table, "files", choice=SnapshotChoice(snapshot_id=1))
    assert at_first.count() == 1
    as_of = metadata_frame(spark, table, "files", choice=SnapshotChoice(as_of_ms=START_MS + 2 * STEP_MS))
    assert as_of.count() == 2
    assert metadata_frame(spark, table, "delete_files", choice=SnapshotChoice(snapshot_id=2)).collect() == []


def test_all_snapshots_tables_refuse_time_travel(spark: SparkSession, table: LoadedTable) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot choose a snapshot"):
        metadata_frame(spark, table, "snapshots", choice=SnapshotChoice(snapshot_id=1))
    with pytest.raises(NotFoundError, match="nonsense"):
        metadata_frame(spark, table, "nonsense")


def test_only_selected_columns_are_read(spark: SparkSession, table: LoadedTable) -> None:
    frame = metadata_frame(spark, table, "files", columns=["record_count", "file_path"])
    assert frame.columns == ["record_count", "file_path"]
    assert sorted(one.record_count for one in frame.collect()) == [1, 1, 1, 2]


def test_metadata_of_an_empty_table_has_columns_but_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    empty = TableBuilder(SCHEMA, storage=LocalStorage(), location=f"file://{tmp_path}/t").load()
    for name in METADATA_TABLES:
        if name != "metadata_log_entries":
            assert metadata_frame(spark, empty, name).collect() == []
            assert metadata_frame(spark, empty, name).columns == metadata_frame_schema(empty, name).names


def test_arrow_values_are_converted_to_spark_types() -> None:
    nanos = pa.array([-1, 1_999, None], pa.timestamp("ns"))
    assert shown_array(nanos, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [-1, 1, None]
    zoned = pa.array([-1_001, None], pa.timestamp("ns", "UTC"))
    assert shown_array(zoned, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist() == [-2, None]
    times = pa.array([0, 86_399_999_999, None], pa.time64("us"))
    assert shown_array(times, pa.string()).to_pylist() == ["00:00:00.000000", "23:59:59.999999", None]
    keys = pa.array([KEY.bytes, None], pa.uuid())
    assert shown_array(keys, pa.string()).to_pylist() == [str(KEY), None]


def test_nested_and_sliced_arrow_values_are_converted() -> None:
    # Arrow makes nested uuids of their bytes, and not of Python values.
    plain = pa.struct([("k", pa.binary(16)), ("t", pa.time64("us"))])
    parts = pa.struct([("k", pa.uuid()), ("t", pa.time64("us"))])
    rows = [[{"k": KEY.bytes, "t": 1}], None, [], [{"k": None, "t": None}, None]]
    lists = pa.array(rows, pa.list_(plain)).cast(pa.list_(parts))
    pairs = pa.array([[("a", KEY.bytes)], None, [], [("b", None)]], pa.map_(pa.string(), pa.binary(16)))
    maps = pairs.cast(pa.map_(pa.string(), pa.uuid()))
    table = pa.table({"l": lists, "m": maps})
    whole = shown_table(table, shown_struct(table.schema)).to_pylist()
    assert whole[0] == {"l": [{"k": str(KEY), "t": "00:00:00.000001"}], "m": [("a", str(KEY))]}
    assert whole[1] == {"l": None, "m": None}
    assert whole[3] == {"l": [{"k": None, "t": None}, None], "m": [("b", None)]}
    cut = table.slice(2)
    assert shown_table(cut, shown_struct(cut.schema)).to_pylist() == whole[2:]
