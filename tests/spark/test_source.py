"""`format("iceberg")` through the Python Data Source API: names, folders and metadata files, filters, errors."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import datasource as ds

import frazil
from frazil.errors import InvalidRequestError, TableNotFoundError
from frazil.expr.predicates import TRUE
from frazil.sessions.source_tables import LakeAddress, SourceTables, register_source
from frazil.spark.read.source import pruning_filter
from frazil.table.scan import scan_table
from tests.spark.history_model import make_history, shown_rows, spark_rows
from tests.support.scan_model import same_rows

SOURCE = "iceberg_in_python"
"""Where lakes were attached in this process, `iceberg` is theirs."""
SETTING = "spark.sql.python.filterPushdown.enabled"
HAS_PUSHDOWN = hasattr(ds.DataSourceReader, "pushFilters")


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A lake with a table of two snapshots and three files."""
    folder = tmp_path / "lake"
    with frazil.connect(folder) as lake:
        table = lake.create_table(
            "db.t", "id bigint not null, kind string, price decimal(9,2), key uuid", partition_by=["kind"]
        )
        table.append(pa.table({"id": [1, 2, 3], "kind": ["a", "b", "b"], "price": [Decimal("1.50")] * 3}))
        table.append(
            pa.table(
                {"id": [4], "kind": [None], "price": [None]},
                pa.schema([("id", pa.int64()), ("kind", pa.string()), ("price", pa.decimal128(9, 2))]),
            )
        )
    return folder


@pytest.fixture
def source(spark: SparkSession, warehouse: Path) -> SparkSession:
    """The session, with the source registered for the lake."""
    register_source(spark, {"lake": LakeAddress(str(warehouse))}, name=SOURCE)
    return spark


def ids(frame: pyspark.sql.DataFrame) -> list[int]:
    return sorted(one.id for one in frame.select("id").collect())


@pytest.mark.extended
def test_table_is_read_by_name_folder_and_metadata_file(source: SparkSession, warehouse: Path) -> None:
    with frazil.connect(warehouse) as lake:
        table = lake.table("db.t")
        folder, state = table.location, table.metadata_location
    frame = source.read.format(SOURCE).load("lake.db.t")
    assert [(one.name, one.dataType.simpleString(), one.nullable) for one in frame.schema] == [
        ("id", "bigint", False),
        ("kind", "string", True),
        ("price", "decimal(9,2)", True),
        ("key", "string", True),
    ]
    assert ids(frame) == [1, 2, 3, 4]
    for path in (folder, folder.removeprefix("file://"), state):
        assert ids(source.read.format(SOURCE).load(path)) == [1, 2, 3, 4]


def test_options_select_snapshot_columns_and_rows(source: SparkSession, warehouse: Path) -> None:
    with frazil.connect(warehouse) as lake:
        first = lake.table("db.t").snapshots[0].snapshot_id
    reader = source.read.format(SOURCE)
    assert ids(reader.option("snapshot-id", str(first)).load("lake.db.t")) == [1, 2, 3]
    narrow = source.read.format(SOURCE).option("columns", "kind, id").option("filter", "id >= 2")
    frame = narrow.load("lake.db.t")
    assert frame.columns == ["kind", "id"]
    assert ids(frame) == [2, 3, 4]


def test_unreadable_source_is_reported_by_name(source: SparkSession, warehouse: Path) -> None:
    for path, words in (
        ("lake.db.nothing", "db.nothing"),
        ("pond.db.t", "no lake is registered as 'pond'"),
        (f"{warehouse}/nowhere", "nowhere"),
    ):
        with pytest.raises(PySparkException, match=words):
            source.read.format(SOURCE).load(path)
    with pytest.raises(PySparkException, match="snapshot"):
        source.read.format(SOURCE).option("snapshot-id", "12").load("lake.db.t")
    with pytest.raises(PySparkException, match="the name or path is missing"):
        source.read.format(SOURCE).load()


def test_lost_data_file_is_reported_by_name(source: SparkSession, warehouse: Path) -> None:
    with frazil.connect(warehouse) as lake:
        lost = lake.table("db.t").inspect.files().column("file_path")[0].as_py()
    frame = source.read.format(SOURCE).load("lake.db.t")
    Path(lost.removeprefix("file://")).unlink()
    with pytest.raises(PySparkException, match=Path(lost).name):
        frame.collect()


def test_different_schema_is_refused(source: SparkSession) -> None:
    with pytest.raises(PySparkException, match="with the schema"):
        source.read.format(SOURCE).schema("id int").load("lake.db.t").collect()


def test_folder_with_two_newest_metadata_files_is_refused(warehouse: Path) -> None:
    with frazil.connect(warehouse) as lake:
        state = Path(str(lake.table("db.t").metadata_location).removeprefix("file://"))
    state.with_name(state.name.replace("00002-", "00002-0")).write_bytes(state.read_bytes())
    with pytest.raises(InvalidRequestError, match="which state"):
        SourceTables().load(str(state.parent.parent))


def test_folder_without_metadata_is_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no metadata file"):
        SourceTables().load(str(tmp_path))


def test_shown_address_hides_secrets() -> None:
    address = LakeAddress("w", "postgresql://user:hidden@host/db", properties={"s3.secret-access-key": "hidden"})
    assert "hidden" not in repr(address)
    assert "hidden" not in repr(SourceTables({"lake": address}, {"s3.secret-access-key": "hidden"}))


@pytest.mark.extended
@pytest.mark.skipif(not HAS_PUSHDOWN, reason="this Spark offers no filters to Python data sources")
def test_filters_reach_the_planner(spark: SparkSession, warehouse: Path) -> None:
    """A file that a filter rules out is never opened: it may even be gone."""
    with frazil.connect(warehouse) as lake:
        files = lake.table("db.t").inspect.files().to_pylist()
    lost = next(one["file_path"] for one in files if one["partition"]["kind"] == "b")
    Path(lost.removeprefix("file://")).unlink()
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "true")
    try:
        register_source(spark, {"lake": LakeAddress(str(warehouse))}, name=SOURCE)
        frame = spark.read.format(SOURCE).load("lake.db.t")
        assert ids(frame.filter("kind = 'a'")) == [1]
        assert ids(frame.filter("kind is null")) == [4]
        assert ids(frame.filter("kind in ('a', 'z') and id < 10 and price = 1.5")) == [1]
        with pytest.raises(PySparkException, match=Path(lost).name):
            frame.filter("id >= 2").collect()
    finally:
        spark.conf.set(SETTING, before or "false")
        register_source(spark, {"lake": LakeAddress(str(warehouse))}, name=SOURCE)


@pytest.mark.skipif(not HAS_PUSHDOWN, reason="this Spark offers no filters to Python data sources")
def test_inconclusive_filter_keeps_all_files(warehouse: Path) -> None:
    with frazil.connect(warehouse) as lake:
        schema = lake.table("db.t").schema
    sure = [
        (ds.EqualTo(("kind",), "a"), 'kind = "a"'),
        (ds.Not(ds.EqualTo(("id",), 3)), "id"),
        (ds.In(("id",), (1, None, 2)), "id"),
        (ds.GreaterThan(("price",), Decimal("1.25")), "price"),
        (ds.IsNull(("key",)), "key"),
        (ds.Not(ds.In(("kind",), ("a", "b"))), "kind"),
        (ds.StringStartsWith(("kind",), "a"), "kind"),
        (ds.EqualNullSafe(("kind",), None), "kind"),
    ]
    for one, _ in sure:
        assert pruning_filter(one, schema) != TRUE, one
    unsure = [
        ds.EqualTo(("key",), "00000000-0000-0000-0000-000000000000"),
        ds.Not(ds.GreaterThan(("id",), 3)),
        ds.Not(ds.In(("id",), (1, None))),
        ds.In(("id",), (None,)),
        ds.EqualTo(("nothing",), 1),
        ds.StringContains(("kind",), "a"),
    ]
    for one in unsure:
        assert pruning_filter(one, schema) == TRUE, one


@pytest.mark.extended
@pytest.mark.parametrize("version", [2, 3])
def test_random_history_reads_as_the_model(spark: SparkSession, tmp_path: Path, version: int) -> None:
    history = make_history(tmp_path, 3, version, formats=("parquet", "orc", "avro"))
    loaded = history.table.load()
    assert loaded.metadata_location is not None
    columns = "*,_file,_pos,_row_id,_last_updated_sequence_number,_spec_id"
    register_source(spark, name=SOURCE)
    frame = spark.read.format(SOURCE).option("columns", columns).load(loaded.metadata_location)
    expected = shown_rows(history.rows(), history.table.schema)
    assert same_rows(spark_rows(frame), expected)
    assert scan_table(loaded).count() == len(expected)
