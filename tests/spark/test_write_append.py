"""Appends of DataFrames: what is accepted, what the files are like, and that nothing changes where one fails."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.codec.arrow_schema import FIELD_ID_KEY
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.write_target import write_target
from frazil.spark.write import native_write
from frazil.spec.partition_key import values_key
from tests.spark.settings import settings
from tests.support.s3_server import BUCKET, running

UTC = datetime.UTC


def rows_of(table: frazil.Table, key: str = "id") -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: (row[key] is None, row[key]))


def data_files(table: frazil.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect.data_files().to_pylist()
    return found


def local(path: str) -> str:
    return path.removeprefix("file://")


def stored_files(table: frazil.Table) -> list[str]:
    return [str(one) for one in Path(local(table.location), "data").rglob("*") if one.is_file()]


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 100).select("id", F.concat(F.lit("v"), F.col("id").cast("string")).alias("text"))


def test_columns_are_matched_by_name_in_any_order_and_case(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, s struct<a: int, b: string>, extra double", format_version=3)
    with table.update_schema() as update:
        update.add_column("level", "int", default=7)
    frame = spark.sql("select struct('x' as B, 1 as a) as S, 5 as ID")
    snapshot = table.append(frame)
    assert snapshot is not None
    assert snapshot.operation == "append"
    assert snapshot.summary is not None
    assert snapshot.summary["engine-name"] == "spark"
    assert rows_of(table) == [{"id": 5, "s": {"a": 1, "b": "x"}, "extra": None, "level": 7}]


def test_empty_append_makes_no_snapshot(spark: SparkSession, lake: frazil.Lake, numbers: DataFrame) -> None:
    table = lake.create_table("db.t", "id bigint, text string")
    assert table.append(numbers.filter("id < 0")) is None
    assert table.refresh().current_snapshot is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 1 as id, 2 as other", "other: the table has no such column"),
        ("select 'x' as id", "id: string cannot be written as long"),
        ("select 1 as id, array(1) as text", "text: array<int> cannot be written as string"),
        ("select 1 as text", "id: it is required, but missing in the data"),
        ("select 1 as id, 'a' as text, 'b' as TEXT", "the data has another column for 'text'"),
    ],
)
def test_incompatible_frame_is_refused_naming_its_columns(
    spark: SparkSession, lake: frazil.Lake, query: str, message: str
) -> None:
    table = lake.create_table("db.t", "id bigint not null, text string")
    with pytest.raises(frazil.SchemaMismatchError, match="Cannot write the data") as problem:
        table.append(spark.sql(query))
    assert message in str(problem.value)
    assert table.refresh().current_snapshot is None


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 3000000000 as small", "the value 3000000000 does not fit int"),
        ("select 1.5D as small", "the value 1.5 does not fit int"),
        ("select double('nan') as small", "the value NaN does not fit int"),
        ("select 12345678.9 as price", "the value 12345678.9 does not fit decimal"),
        ("select 1.005 as price", "the value 1.005 does not fit decimal"),
        ("select if(id > 3, null, id) as must from range(9)", "required column 'must': a value is null"),
        ("select struct(if(id > 3, null, 1) as a) as s from range(9)", "required column 's.a': a value is null"),
    ],
)
def test_invalid_value_leaves_the_table_unchanged(
    spark: SparkSession, lake: frazil.Lake, query: str, message: str, ansi: str
) -> None:
    ddl = "small int, price decimal(9, 2), must bigint not null, s struct<a: int not null>"
    table = lake.create_table("db.t", ddl)
    frame = spark.sql(query)
    frame = frame.select("*", F.lit(1).alias("must")) if "must" not in frame.columns else frame
    with settings(spark, {"spark.sql.ansi.enabled": ansi}), pytest.raises(frazil.SchemaMismatchError) as problem:
        table.append(frame)
    assert message in str(problem.value)
    assert table.refresh().current_snapshot is None
    assert stored_files(table) == []


@pytest.fixture
def policy(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    name = "spark.sql.storeAssignmentPolicy"
    yield lambda value: spark.conf.set(name, value)
    spark.conf.unset(name)


def test_strict_policy_accepts_only_widening_types(
    spark: SparkSession, lake: frazil.Lake, policy: Callable[[str], None]
) -> None:
    table = lake.create_table("db.t", "i int, l bigint, d double, p decimal(12, 2), n timestamp, day date, text string")
    widening = "select 1 as l, 2L as d, 3 as p, date'2024-01-01' as n, 4 as text"
    policy("strict")
    table.append(spark.sql(f"{widening} where false"))
    values = {
        "i": ("bigint", "1L"),
        "d": ("decimal(2,1)", "1.5"),
        "p": ("double", "1.5D"),
        "l": ("void", "null"),
        "day": ("timestamp", "timestamp'2024-01-01 00:00:00'"),
    }
    source = spark.sql("select 1 as one")
    for name, (kind, value) in values.items():
        for change in (
            partial(table.append, spark.sql(f"select {value} as {name}")),
            partial(table.update, {name: value}),
            table.merge(source, "target.i = source.one").when_matched().update({name: value}).execute,
        ):
            with pytest.raises(frazil.SchemaMismatchError, match=rf"{name}: {re.escape(kind)}.* cannot be written"):
                change()
    policy("legacy")
    with pytest.raises(frazil.InvalidRequestError, match="storeAssignmentPolicy is legacy"):
        table.append(spark.sql(widening))
    with pytest.raises(frazil.InvalidRequestError, match="storeAssignmentPolicy is legacy"):
        table.update({"i": "1"})
    assert table.refresh().current_snapshot is None


@pytest.mark.extended
def test_failing_source_function_is_an_engine_error_with_its_cause(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint")
    frame = spark.range(10).select(
        F.when(F.col("id") == 7, F.raise_error(F.lit("seven"))).otherwise(F.col("id")).alias("id")
    )
    with pytest.raises(frazil.EngineError, match="seven"):
        table.append(frame)
    assert table.refresh().current_snapshot is None
    assert stored_files(table) == []


def test_every_field_in_files_has_an_id_and_user_settings_do_not_apply(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table(
        "db.t", "id bigint not null, d date, ts timestamptz, n timestamp, s struct<a: int, t: struct<b: string>>"
    )
    hostile = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.fieldId.write.enabled": "false",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.files.maxRecordsPerFile": "1",
        "spark.sql.parquet.compression.codec": "gzip",
    }
    with settings(spark, hostile):
        table.append(
            spark.sql(
                "select id, date'1500-01-01' as d, timestamp'1500-01-01 00:00:00Z' as ts, "
                "timestamp_ntz'1500-01-01 00:00:00' as n, struct(1 as a, struct('x' as b) as t) as s from range(3)"
            )
        )
        assert {name: spark.conf.get(name) for name in hostile} == hostile
    row = rows_of(table)[0]
    assert row["d"] == datetime.date(1500, 1, 1)
    assert row["ts"] == datetime.datetime(1500, 1, 1, tzinfo=UTC)
    assert row["n"] == datetime.datetime(1500, 1, 1)
    for one in data_files(table):
        file = pq.ParquetFile(local(one["file_path"]))
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
        ids = _ids(file.schema_arrow)
        assert ids == {part.field_id: part.name for part in table.schema.fields_by_id.values()}
        assert not file.schema_arrow.field("id").nullable
    assert all(not one.endswith(".crc") and not one.endswith("_SUCCESS") for one in stored_files(table))


def _ids(fields: Any) -> dict[int, str]:
    found = {}
    for field in fields:
        found[int(field.metadata[FIELD_ID_KEY])] = field.name
        if pa.types.is_struct(field.type):
            found |= _ids(list(field.type))
    return found


ALL_TYPES = (
    "id bigint, flag boolean, small int, f float, d double, price decimal(20, 3), day date, ts timestamptz, "
    "local timestamp, text string, raw binary, s struct<a: int, b: string>"
)
MORE_TYPES = (
    "id bigint, u uuid, code fixed(3), clock time, ns timestamp_ns, nstz timestamptz_ns, "
    "tags list<string>, attrs map<string, struct<x: int not null>>, deep list<list<struct<y: decimal(9,2)>>>"
)
ALL_QUERY = """
    select id, id % 2 = 0 as flag, cast(id as int) as small, cast(id / 3 as float) as f,
           if(id = 3, double('nan'), id / 3) as d, cast(id as decimal(10, 1)) as price,
           date_add(date'1969-12-01', cast(id as int)) as day, timestamp_micros(id * 1000003 - 5000000) as ts,
           timestamp_ntz'1969-12-31 23:59:59.999999' as local, if(id = 4, null, concat('é', id)) as text,
           cast(concat('b', id) as binary) as raw, if(id = 5, null, struct(cast(id as int) as a, 'q' as b)) as s
    from range(10)"""
MORE_QUERY = """
    select id, concat('00000000-0000-0000-0000-00000000000', id) as u, cast('abc' as binary) as code,
           '23:59:59.999999' as clock, timestamp_ntz'1969-12-31 23:59:59.999999' as ns,
           timestamp'2024-01-01 00:00:00.000001Z' as nstz, if(id = 1, null, array('x', null)) as tags,
           map('k', struct(1 as x)) as attrs, array(array(struct(1.5 as y)), null) as deep
    from range(10)"""


@pytest.mark.parametrize(("ddl", "query"), [(ALL_TYPES, ALL_QUERY), (MORE_TYPES, MORE_QUERY)], ids=["native", "arrow"])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_every_type_round_trips(spark: SparkSession, lake: frazil.Lake, ddl: str, query: str, file_format: str) -> None:
    table = lake.create_table("db.t", ddl, format_version=3, properties={"write.format.default": file_format})
    table.append(spark.sql(query))
    here = lake.create_table("db.here", ddl, format_version=3)
    here.append(table.scan().to_arrow())
    assert rows_of(table)[2] == rows_of(here)[2]
    assert len(rows_of(table)) == 10
    row = rows_of(table)[7]
    if ddl is ALL_TYPES:
        assert row["price"] == Decimal("7.000")
        assert row["day"] == datetime.date(1969, 12, 8)
        assert row["raw"] == b"b7"
        assert row["s"] == {"a": 7, "b": "q"}
        assert rows_of(table)[5]["s"] is None
        assert row["local"] == datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    else:
        assert str(row["u"]) == "00000000-0000-0000-0000-000000000007"
        assert row["clock"] == datetime.time(23, 59, 59, 999999)
        assert row["tags"] == ["x", None]
        assert row["attrs"] == [("k", {"x": 1})]
        assert row["deep"] == [[{"y": Decimal("1.50")}], None]
    assert table.check(bounds=True).ok


@pytest.mark.extended
def test_metrics_of_native_files_equal_those_of_the_python_writer(spark: SparkSession, lake: frazil.Lake) -> None:
    theirs = lake.create_table("db.theirs", ALL_TYPES)
    theirs.append(spark.sql(ALL_QUERY).coalesce(1))
    ours = lake.create_table("db.ours", ALL_TYPES)
    ours.append(theirs.scan().to_arrow())
    (native,), (arrow,) = data_files(theirs), data_files(ours)
    for name in ("record_count", "value_counts", "null_value_counts"):
        assert native[name] == arrow[name]
    floating = {theirs.schema.field(name).field_id for name in ("f", "d")}
    for name in ("lower_bounds", "upper_bounds"):
        mine = {key: value for key, value in arrow[name] if key not in floating}
        assert {key: value for key, value in native[name] if key not in floating} == mine
    # A column with NaN has no bounds in a file of Spark's; it must not claim any.
    assert theirs.schema.field("d").field_id not in dict(native["lower_bounds"])
    assert native["split_offsets"] == [4]
    assert theirs.check(bounds=True).ok


@pytest.mark.extended
@pytest.mark.parametrize(
    "terms",
    [
        ["bucket(4, id)", "day(ts)", "text", "truncate(3, id)", "month(day)", "hour(local)", "flag", "price"],
        ["text", "hour(ts)", "year(day)", "day(local)", "truncate(2, text)", "bucket(3, day)", "bucket(5, ts)"],
        ["text", "year(ts)", "day(day)", "month(local)", "raw", "bucket(2, local)", "small"],
    ],
)
def test_rows_are_in_the_partition_recorded_for_their_file(
    spark: SparkSession, lake: frazil.Lake, terms: list[str]
) -> None:
    table = lake.create_table("db.t", ALL_TYPES, partition_by=terms)
    special = F.element_at(
        F.array(F.lit(""), F.lit(None), F.lit("a/b=c %20'\"\\"), F.lit("x" * 300), F.lit("é")),
        (F.col("id") % 5 + 1).cast("int"),
    )
    frame = spark.sql(ALL_QUERY).withColumn("text", special)
    table.append(frame.unionAll(frame))
    check_partitions(table)
    texts = {one["partition"]["text"] for one in data_files(table)}
    assert texts == {"", None, "a/b=c %20'\"\\", "x" * 300, "é"}
    # Rows of a partition come together: one file each.
    assert len(data_files(table)) == 10
    assert table.check(bounds=True).ok


def test_buckets_of_text_bytes_decimals_and_uuids_are_exact(spark: SparkSession, lake: frazil.Lake) -> None:
    ddl = "id bigint, text string, raw binary, price decimal(20, 3), u uuid"
    terms = ["bucket(7, text)", "bucket(5, raw)", "bucket(3, price)", "truncate(100, price)", "bucket(2, u)"]
    table = lake.create_table("db.t", ddl, partition_by=terms)
    query = (
        "select id, if(id = 1, null, concat('é', id)) as text, cast(concat('b', id) as binary) as raw, "
        "cast(id * 100.7 - 300 as decimal(20, 3)) as price, uuid() as u from range(30)"
    )
    table.append(spark.sql(query))
    check_partitions(table)
    assert table.scan().count() == 30


def check_partitions(table: frazil.Table) -> None:
    spec = table.spec
    for task in table.refresh().scan().plan().tasks:
        file = task.data_file
        batch = pq.ParquetFile(local(file.file_path)).read().combine_chunks().to_batches()[0]
        groups = Partitioner(table.schema, spec).group(batch)
        assert [values_key(one) for one in groups.partitions] == [values_key(file.partition)]


@pytest.mark.extended
def test_sorted_table_gets_range_sorted_files(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, k string", sort_by=["k desc nulls last", "id"])
    frame = spark.range(0, 1000, numPartitions=4).select(
        "id", F.when(F.col("id") % 10 > 0, (F.col("id") % 10).cast("string")).alias("k")
    )
    table.append(frame)
    spans = []
    for one in data_files(table):
        assert one["sort_order_id"] == table.sort_order.order_id
        read = pq.read_table(local(one["file_path"])).to_pylist()
        keys = [("\uffff" if row["k"] is None else chr(200 - ord(row["k"])), row["id"]) for row in read]
        assert keys == sorted(keys)
        spans.append((keys[0], keys[-1]))
    spans.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    assert table.scan().count() == 1000


@pytest.mark.extended
def test_partitioned_sorted_files_are_sorted_within_partitions(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"], sort_by=["id desc"])
    table.append(spark.range(0, 300, numPartitions=3).select("id", (F.col("id") % 3).cast("string").alias("k")))
    for one in data_files(table):
        ids = pq.read_table(local(one["file_path"])).column("id").to_pylist()
        assert ids == sorted(ids, reverse=True)
    assert table.scan().count() == 300


def test_without_distribution_each_task_writes_its_own_files(spark: SparkSession, lake: frazil.Lake) -> None:
    options = {"write.distribution-mode": "none"}
    table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"], properties=options)
    frame = spark.range(0, 300, numPartitions=3).select("id", (F.col("id") % 20).cast("string").alias("k"))
    table.append(frame)
    assert len(data_files(table)) == 60
    check_partitions(table)


def test_branches_properties_and_staged_writes(spark: SparkSession, lake: frazil.Lake, numbers: DataFrame) -> None:
    table = lake.create_table("db.t", "id bigint, text string", properties={"write.wap.enabled": "true"})
    table.append(numbers)
    snapshot = table.append(numbers, branch="audit", snapshot_properties={"job": "nightly"})
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["job"] == "nightly"
    assert (table.scan().count(), table.scan(ref="audit").count()) == (100, 200)
    staged = table.append(numbers, snapshot_properties={"wap.id": "w1"})
    assert staged is not None
    assert table.scan().count() == 100
    table.publish_changes("w1")
    assert table.scan().count() == 200


@pytest.mark.extended
def test_merge_schema_adds_columns_in_the_same_commit(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id int, s struct<a: int>")
    table.append(spark.sql("select 1 as id, struct(1 as a) as s"))
    versions = len(table.metadata.metadata_log)
    snapshot = table.append(
        spark.sql("select 2L as id, struct(2 as a, 'x' as b) as s, 'new' as more"), merge_schema=True
    )
    assert snapshot is not None
    assert table.current_snapshot == snapshot
    assert len(table.metadata.metadata_log) == versions + 1
    assert rows_of(table) == [
        {"id": 1, "s": {"a": 1, "b": None}, "more": None},
        {"id": 2, "s": {"a": 2, "b": "x"}, "more": "new"},
    ]


@pytest.mark.extended
def test_overwrite_adds_columns_in_the_same_commit(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, k string", partition_by=["k"])
    table.append(spark.sql("select 1L as id, 'a' as k union all select 2, 'b' union all select 3, 'b'"))
    wider = spark.sql("select 4L as id, 'b' as k, 7 as more")
    with pytest.raises(frazil.SchemaMismatchError, match="more"):
        table.overwrite(wider, "k = 'b'")
    made = table.overwrite_partitions(wider, merge_schema=True)
    assert made is not None
    assert made == table.current_snapshot
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == [
        "{'id': 1, 'k': 'a', 'more': None}",
        "{'id': 4, 'k': 'b', 'more': 7}",
    ]
    widest = spark.sql("select 5L as id, 'c' as k, 8 as more, true as yes")
    table.overwrite(widest, "id = 1", merge_schema=True)
    assert sorted((row["id"], row["yes"]) for row in table.scan().to_arrow().to_pylist()) == [(4, None), (5, True)]
    assert len(table.snapshots) == 3
    assert table.check().ok


@pytest.mark.extended
def test_appends_and_overwrites_join_transactions(spark: SparkSession, lake: frazil.Lake, numbers: DataFrame) -> None:
    table = lake.create_table("db.t", "id bigint, text string")
    with table.transaction() as tx:
        tx.append(numbers)
        tx.delete("id < 10")
        tx.overwrite(numbers.filter("id < 5"), where="id between 20 and 29")
    assert sorted(row["id"] for row in rows_of(table)) == [*range(5), *range(10, 20), *range(30, 100)]


def test_lake_in_memory_accepts_spark_rows(spark: SparkSession, numbers: DataFrame) -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "id bigint, text string", partition_by=["bucket(3, id)"])
        table.append(numbers)
        assert [row["id"] for row in rows_of(table)] == list(range(100))
        assert len(data_files(table)) == 3


def test_unreachable_store_is_reported_with_bytes_and_the_setting_to_add(spark: SparkSession, tmp_path: Path) -> None:
    with running() as server:
        place = f"s3://{BUCKET}/written/{uuid4()}"
        with frazil.connect(place, catalog=f"sqlite:///{tmp_path}/c.db", properties=server.properties) as far:
            far.create_namespace("db")
            table = far.create_table("db.t", "id bigint")
            with pytest.warns(
                UserWarning, match=r"^800 bytes are written on the driver, to s3:.*hadoop-aws:"
            ) as caught:
                table.append(spark.range(100))
            # Older Sparks leave sockets to Python, which warns of them.
            assert [one.category for one in caught if one.category is not ResourceWarning] == [UserWarning]
            assert table.scan().count() == 100


@pytest.mark.parametrize("folder", ["file:///data", "s3://bucket/data"])
def test_job_success_marker_is_found_wherever_the_table_is(lake: frazil.Lake, folder: str) -> None:
    target = write_target(lake.create_table("db.m", "id bigint").state)
    options = native_write._options(target, folder, None)
    is_local = folder.startswith("file:")
    assert options["mapreduce.fileoutputcommitter.marksuccessfuljobs"] == str(not is_local).lower()
    assert ("fs.file.impl" in options) == is_local
