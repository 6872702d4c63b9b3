"""Options of writes and reads and settings of the session do what they say; what they do not do is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from tests.spark.settings import settings


@pytest.fixture
def frame(attached: SparkSession) -> DataFrame:
    return attached.range(1000).select("id", (F.col("id") % 4).cast("string").alias("kind"))


def _files(table: frazil.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.refresh().inspect.files().to_pylist()
    return found


def _codec(file: dict[str, Any]) -> str:
    path = file["file_path"].removeprefix("file://").removeprefix("file:")
    return str(pq.ParquetFile(path).metadata.row_group(0).column(0).compression).lower()


def _summary(table: frazil.Table) -> Any:
    snapshot = table.refresh().current_snapshot
    assert snapshot is not None
    return snapshot.summary


def test_compression_codec_applies_to_one_write(frame: DataFrame, attached: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    frame.writeTo("lake.db.t").option("compression-codec", "snappy").append()
    assert [_codec(one) for one in _files(table)] == ["snappy"] * len(_files(table))
    before = dict(table.properties)
    with settings(attached, {"spark.sql.iceberg.compression-codec": "gzip"}):
        frame.writeTo("lake.db.t").overwritePartitions()
        assert {_codec(one) for one in _files(table)} == {"gzip"}
        frame.writeTo("lake.db.t").option("compression-codec", "zstd").overwritePartitions()
        assert {_codec(one) for one in _files(table)} == {"zstd"}
        frame.writeTo("lake.db.made").option("compression-codec", "snappy").create()
        assert {_codec(one) for one in _files(lake.table("db.made"))} == {"snappy"}
    assert dict(table.refresh().properties) == before
    assert "compression" not in str(
        {key: one for key, one in lake.table("db.made").properties.items() if "snappy" in one}
    )


def test_file_format_applies_to_one_write(frame: DataFrame, lake: frazil.Lake, attached: SparkSession) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    frame.writeTo("lake.db.t").option("write-format", "orc").option("compression-codec", "zstd").append()
    frame.writeTo("lake.db.t").option("write-format", "avro").append()
    frame.writeTo("lake.db.t").append()
    assert sorted({one["file_format"] for one in _files(table)}) == ["AVRO", "ORC", "PARQUET"]
    assert attached.table("lake.db.t").count() == 3000


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "codec", "file_format", "little", "much"),
    [
        ("compression-level", "gzip", "parquet", "1", "9"),
        ("compression-level", "zstd", "parquet", "1", "19"),
        ("compression-strategy", "zlib", "orc", "speed", "compression"),
    ],
)
def test_compression_levels_and_strategies_shrink_files(
    attached: SparkSession, lake: frazil.Lake, name: str, codec: str, file_format: str, little: str, much: str
) -> None:
    lake.create_table("db.t", "id bigint, kind string")
    words = "concat_ws(' ', hash(id % 97), hash(id % 89), hash(id % 83), hash(id % 79))"
    rows = attached.range(0, 20_000, 1, 1).selectExpr("id", f"{words} kind")

    def size(**options: str) -> int:
        writer = rows.writeTo("lake.db.t").option("write-format", file_format).option("compression-codec", codec)
        writer.options(**options).overwritePartitions()
        return sum(one["file_size_in_bytes"] for one in _files(lake.table("db.t")))

    assert size(**{name: much}) < size(**{name: little})
    with settings(attached, {f"spark.sql.iceberg.{name}": much}):
        assert size() == size(**{name: much}) < size(**{name: little})


@pytest.mark.extended
def test_target_file_size_of_a_write_is_respected(attached: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    rows = attached.range(200_000).coalesce(1).selectExpr("id", "sha2(cast(id as string), 256) kind")
    rows.writeTo("lake.db.t").append()
    assert len(_files(table)) == 1
    rows.writeTo("lake.db.t").option("target-file-size-bytes", str(2 << 20)).append()
    assert len(_files(table)) > 3


@pytest.mark.extended
def test_distribution_mode_of_a_write_is_respected(attached: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"], sort_by=["id desc"])
    rows = attached.range(0, 1000, 1, 4).selectExpr("id", "cast(id % 2 as string) kind")

    def count(write: Callable[[Any], Any]) -> int:
        write(rows.writeTo("lake.db.t")).overwritePartitions()
        return len(_files(table))

    assert count(lambda one: one.option("distribution-mode", "hash")) == 2
    assert count(lambda one: one.option("distribution-mode", "none")) == 8
    assert count(lambda one: one.option("use-table-distribution-and-ordering", "false")) == 8
    assert {one["sort_order_id"] for one in _files(table)} == {0}
    with settings(attached, {"spark.sql.iceberg.distribution-mode": "none"}):
        assert count(lambda one: one) == 8
        assert count(lambda one: one.option("distribution-mode", "hash")) == 2
    assert {one["sort_order_id"] for one in _files(table)} == {1}
    assert count(lambda one: one.option("distribution-mode", "hash").option("advisory-partition-size", "200")) > 2
    with settings(attached, {"spark.sql.iceberg.advisory-partition-size": "200"}):
        assert count(lambda one: one.option("distribution-mode", "hash")) > 2


@pytest.mark.extended
@pytest.mark.parametrize("fans_out", ["true", "false"])
def test_fanout_option_keeps_a_file_open_per_partition(
    attached: SparkSession, lake: frazil.Lake, fans_out: str
) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    rows = attached.range(0, 2000, 1, 1).selectExpr("id", "cast(id % 40 as string) kind")
    writer = rows.writeTo("lake.db.t").option("distribution-mode", "none")
    writer.option("fanout-enabled", fans_out).append()
    assert len(_files(table)) == 40
    assert attached.table("lake.db.t").selectExpr("sum(id)").first()[0] == 1999000  # type: ignore[index]


@pytest.mark.extended
def test_output_spec_and_sort_order_options_are_respected(frame: DataFrame, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    with table.update_spec() as update:
        update.remove_field("kind")
        update.add_field("bucket(2, id)")
    table.set_sort_order(["id asc"])
    frame.writeTo("lake.db.t").option("output-spec-id", "0").option("output-sort-order-id", "0").append()
    assert {(one["spec_id"], one["sort_order_id"]) for one in _files(table)} == {(0, 0)}
    assert {one["partition"]["kind"] for one in _files(table)} == {"0", "1", "2", "3"}
    assert table.refresh().spec.spec_id == 1
    with pytest.raises(PySparkException, match="spec 7"):
        frame.writeTo("lake.db.t").option("output-spec-id", "7").append()


@pytest.mark.extended
def test_delete_file_options_are_respected(attached: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table(
        "db.t",
        "id bigint, kind string",
        properties={"write.delete.mode": "merge-on-read", "write.distribution-mode": "none"},
        format_version=2,
    )
    attached.range(0, 100, 1, 4).selectExpr("id", "'a' kind").writeTo("lake.db.t").append()

    def delete_files(options: str, where: str) -> list[dict[str, Any]]:
        before = {one["file_path"] for one in table.refresh().inspect.delete_files().to_pylist()}
        attached.sql(f"delete from lake.db.t {options} where {where}")
        after: list[dict[str, Any]] = table.refresh().inspect.delete_files().to_pylist()
        return [one for one in after if one["file_path"] not in before]

    if attached.version < "4.2":
        pytest.skip("DELETE takes no options before Spark 4.2")
    assert len(delete_files("", "id % 10 = 1")) == 4
    made = delete_files("with (`delete-granularity` = 'partition', `delete-format` = 'avro')", "id % 10 = 2")
    assert [one["file_format"] for one in made] == ["AVRO"]
    made = delete_files("with (`target-delete-file-size-bytes` = '1')", "id % 10 = 3")
    assert len(made) >= 4


def test_isolation_options_stop_an_overwrite(frame: DataFrame, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    frame.writeTo("lake.db.t").append()
    start = table.refresh().current_snapshot
    assert start is not None
    table.append([{"id": 5000, "kind": "1"}])
    since = str(start.snapshot_id)
    with pytest.raises(PySparkException, match="added"):
        frame.writeTo("lake.db.t").option("validate-from-snapshot-id", since).overwritePartitions()
    writer = frame.writeTo("lake.db.t").option("validate-from-snapshot-id", since)
    with pytest.raises(PySparkException, match="added"):
        writer.option("isolation-level", "serializable").overwritePartitions()
    # Under snapshot isolation rows that others added are no conflict.
    writer.option("isolation-level", "snapshot").overwritePartitions()
    with pytest.raises(PySparkException, match="snapshot 1"):
        frame.writeTo("lake.db.t").option("validate-from-snapshot-id", "1").overwritePartitions()


def test_snapshot_properties_can_be_session_settings(
    frame: DataFrame, attached: SparkSession, lake: frazil.Lake
) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    with settings(attached, {"spark.sql.iceberg.snapshot-property.team": "billing"}):
        frame.writeTo("lake.db.t").append()
        assert _summary(table)["team"] == "billing"
        frame.writeTo("lake.db.t").option("snapshot-property.team", "sales").append()
        assert _summary(table)["team"] == "sales"
        attached.sql("delete from lake.db.t where id = 3")
        assert _summary(table)["team"] == "billing"
        frame.writeTo("lake.db.made").create()
        assert _summary(lake.table("db.made"))["team"] == "billing"


@pytest.mark.extended
@pytest.mark.parametrize("name", ["mergeSchema", "merge-schema"])
def test_merge_schema_adds_columns_by_option_or_setting(
    frame: DataFrame, attached: SparkSession, lake: frazil.Lake, name: str
) -> None:
    accepts = {"write.spark.accept-any-schema": "true"}
    table = lake.create_table("db.t", "id bigint", properties=accepts)
    frame.writeTo("lake.db.t").option(name, "true").append()
    assert [part.name for part in table.refresh().schema.fields] == ["id", "kind"]
    other = lake.create_table("db.o", "id bigint", properties=accepts)
    with settings(attached, {"spark.sql.iceberg.merge-schema": "true"}):
        frame.writeTo("lake.db.o").append()
    assert [part.name for part in other.refresh().schema.fields] == ["id", "kind"]


@pytest.mark.parametrize("name", ["check-nullability", "check-ordering"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_null_checks_and_column_matching_are_configurable(
    attached: SparkSession, lake: frazil.Lake, name: str, value: str
) -> None:
    table = lake.create_table("db.t", "id bigint not null, kind string")
    rows = attached.sql("select 'a' kind, cast(if(rand() < 2, 1, null) as bigint) id")
    nulls = attached.sql("select 'a' kind, cast(null as bigint) id")
    rows.writeTo("lake.db.t").option(name, value).append()
    with settings(attached, {f"spark.sql.iceberg.{name}": value}):
        rows.writeTo("lake.db.t").append()
        with pytest.raises(PySparkException):
            nulls.writeTo("lake.db.t").append()
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 1, "kind": "a"}] * 2


def test_split_options_shape_read_tasks(attached: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id bigint", properties={"write.distribution-mode": "none"})
    attached.range(0, 100_000, 1, 8).writeTo("lake.db.t").append()

    def tasks(**options: str) -> int:
        return int(attached.read.options(**options).table("lake.db.t").rdd.getNumPartitions())

    wide: dict[str, str] = {"split-size": "1000000000", "file-open-cost": "0"}
    narrow: dict[str, str] = {"split-size": "20000", "file-open-cost": "0"}
    assert tasks(**wide) < tasks(**narrow)
    with settings(attached, {"spark.sql.iceberg.read.split-size": "20000"}):
        assert tasks(**{"file-open-cost": "0"}) == tasks(**narrow)
        assert tasks(**wide) < tasks(**narrow)


def test_misspelt_or_invalid_write_options_are_refused_without_writing(frame: DataFrame, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    for name, value, said in (
        ("target-file-size", "1000", "Did you mean target-file-size-bytes"),
        ("target-file-size-bytes", "big", "a whole number of bytes"),
        ("compression-codec", "rar", "zstd"),
        ("isolation-level", "none", "serializable or snapshot"),
        ("overwrite-mode", "yes", "static or dynamic"),
        ("replaceWhere", "id = 1", "overwrite"),
    ):
        with pytest.raises(PySparkException, match=said):
            frame.writeTo("lake.db.t").option(name, value).append()
    with pytest.raises(PySparkException, match="once"):
        writer = frame.writeTo("lake.db.no").option("once-application", "a").option("once-version", "1")
        writer.create()
    assert table.refresh().current_snapshot is None
    assert not lake.table_exists("db.no")


def test_misspelt_read_options_are_refused(attached: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id bigint")
    with pytest.raises(AnalysisException, match="Did you mean split-size"):
        attached.read.option("split-sizes", "1").table("lake.db.t").collect()


def test_ineffective_options_are_named_in_one_warning(
    frame: DataFrame, attached: SparkSession, lake: frazil.Lake
) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    with pytest.warns(UserWarning, match=r"To write to a table.*header.*shred-variants") as found:
        frame.writeTo("lake.db.t").option("shred-variants", "true").option("header", "true").append()
    assert len(found) == 1
    assert len(_files(table)) >= 1
    with pytest.warns(UserWarning, match=r"To read a table.*vectorization-enabled"):
        assert attached.read.option("vectorization-enabled", "true").table("lake.db.t").count() == 1000
    with (
        settings(attached, {"spark.sql.iceberg.data-planning-mode": "distributed"}),
        pytest.warns(UserWarning, match="data-planning-mode"),
    ):
        assert attached.table("lake.db.t").count() == 1000
