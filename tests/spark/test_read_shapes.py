"""Files that are not as the table's schema is: without ids, without columns, of other partitions and formats."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.codec.name_mapping_json import encode_name_mapping
from frazil.errors import FrazilError, InvalidDataFileError
from frazil.sessions.scan_options import scan_with_options
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.name_mapping import MappedField, NameMapping, create_name_mapping
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, UUID, DecimalType, ListType, MapType, NestedField, StructType
from frazil.storage.choose import choose_storage
from frazil.storage.memory import MemoryStorage
from frazil.table.scan import scan_table
from tests.spark.read_cases import (
    READS_STRUCTS_BY_PYTHON,
    check_same,
    check_table,
    count_read_files,
    file_scans,
    local_table,
    read_files,
)
from tests.spark.settings import settings
from tests.support.s3_server import BUCKET, running
from tests.support.tables import TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "name", STRING),
        NestedField(3, "s", StructType((NestedField(4, "a", INT), NestedField(5, "b", STRING)))),
        NestedField(6, "l", ListType(7, StructType((NestedField(8, "x", INT),)))),
        NestedField(9, "m", MapType(10, STRING, 11, StructType((NestedField(12, "x", INT),)))),
    )
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "one", "s": {"a": 1, "b": "x"}, "l": [{"x": 1}, None], "m": {"k": {"x": 5}}},
    {"id": 2, "name": None, "s": None, "l": None, "m": None},
    {"id": 3, "name": "three", "s": {"a": None, "b": None}, "l": [], "m": {"k": None}},
]


def set_mapping(table: TableBuilder, mapping: NameMapping) -> None:
    text = encode_name_mapping(mapping)
    named = {**table.metadata.properties, "schema.name-mapping.default": text}
    table.metadata = replace(table.metadata, properties=FrozenMap(named))


def mapped_table(folder: Path, schema: Schema = SCHEMA, **options: Any) -> TableBuilder:
    table = local_table(folder, schema, **options)
    set_mapping(table, create_name_mapping(table.schema))
    return table


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_without_ids_are_read_by_name_mapping(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    table = mapped_table(tmp_path, format_version=3)
    file = table.write_data(ROWS, with_ids=False, file_format=file_format)
    table.commit(file)
    table.append([{"id": 10, "name": "ids", "s": {"a": 7, "b": "q"}, "l": None, "m": None}])
    table.commit(*table.write_vectors({file: [1]}))
    columns = ["*", "_pos", "_row_id", "_last_updated_sequence_number", "_file"]
    rows = check_table(spark, table, "name = 'one'", "s.a = 1", "s.a is null", "id > 1", columns=columns)
    assert sorted(row["id"] for row in rows) == [1, 3, 10]
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.filter("name = 'one'").count() == 1
    assert [row[0] for row in frame.filter("s.b = 'x'").select("s.a").collect()] == [1]


def test_renamed_columns_are_found_by_all_their_names(spark: SparkSession, tmp_path: Path) -> None:
    table = mapped_table(tmp_path)
    table.append(ROWS, with_ids=False)

    def rename(update: Any) -> None:
        update.rename_column("name", "title")
        update.rename_column("s.b", "c")
        update.rename_column("l.element.x", "y")
        update.rename_column("m.value.x", "y")

    table.update_schema(rename)
    one = MappedField(("id",), 1), MappedField(("name", "title"), 2)
    s = MappedField(("s",), 3, (MappedField(("a",), 4), MappedField(("b", "c"), 5)))
    l = MappedField(("l",), 6, (MappedField(("element",), 7, (MappedField(("x", "y"), 8),)),))  # noqa: E741
    value = MappedField(("value",), 11, (MappedField(("x", "y"), 12),))
    m = MappedField(("m",), 9, (MappedField(("key",), 10), value))
    set_mapping(table, NameMapping((*one, s, l, m)))
    new = {"id": 4, "title": "new", "s": {"a": 1, "c": "z"}, "l": [{"y": 1}], "m": {"q": {"y": 2}}}
    table.append([new], with_ids=False)
    table.append([{**new, "id": 5}])
    check_table(spark, table, "title = 'new'", "s.c = 'x'", "s.c is null", "title is null")
    frame = scan_table(table.load()).to_spark(spark)
    assert sorted(row[0] for row in frame.filter("title is not null").select("id").collect()) == [1, 3, 4, 5]
    assert len(read_files(frame.filter("id = 5"))) == 1


@pytest.mark.extended
def test_float_bounds_of_row_groups_without_ids_are_ignored(spark: SparkSession, tmp_path: Path) -> None:
    parts = StructType((NestedField(4, "y", DOUBLE),))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "x", DOUBLE), NestedField(3, "s", parts)))
    table = mapped_table(tmp_path, schema)
    values = [1.0, float("nan"), -0.0, 3.0]
    rows = [{"id": at, "x": value, "s": {"y": value}} for at, value in enumerate(values)]
    table.append(rows, with_ids=False)
    table.append(rows)
    frame = scan_table(table.load()).to_spark(spark)
    for column in ("x", "s.y"):
        # Spark takes NaN for the largest number, and the two zeros for one.
        assert frame.filter(f"{column} > 5").count() == 2, column
        assert frame.filter(f"{column} = double('NaN')").count() == 2, column
        assert frame.filter(f"{column} = 0.0d").count() == 2, column
        assert frame.filter(f"{column} < 0.0d").count() == 0, column
    assert len(read_files(frame.filter("id = 77"))) == 0


def test_files_without_ids_and_mapping_are_refused_with_a_hint(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    table.append(ROWS, with_ids=False)
    table.update_schema(lambda update: update.rename_column("name", "title"))
    # As Iceberg Java reads them: top-level columns by their order.
    assert scan_table(table.load(), "title = 'one'").to_arrow().column("id").to_pylist() == [1]
    frame = scan_table(table.load()).to_spark(spark)
    for setting in ("true", "false"):
        with settings(spark, {"spark.sql.parquet.fieldId.read.ignoreMissing": setting}):
            with pytest.raises(Exception, match=r"table=db\.t&snapshot=1.*name-mapping"):
                frame.collect()
    with pytest.raises(InvalidDataFileError, match="no field ids") as caught, engine_errors("read"):
        frame.collect()
    assert "name-mapping" in str(caught.value.hint)


def test_reassigned_mapped_name_does_not_match_the_old_column(spark: SparkSession, tmp_path: Path) -> None:
    table = mapped_table(tmp_path)
    table.append(ROWS, with_ids=False)
    fields = tuple(one for one in create_name_mapping(table.schema).fields if one.field_id != 2)
    set_mapping(table, NameMapping(fields))
    rows = check_table(spark, table, "name is null", "name = 'one'")
    assert {row["name"] for row in rows} == {None}


def test_missing_columns_use_partition_value_or_default(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG, required=True),
            NestedField(2, "region", STRING),
            NestedField(3, "ratio", DOUBLE),
            NestedField(4, "s", StructType((NestedField(5, "a", INT), NestedField(6, "part", INT)))),
        )
    )
    table = mapped_table(tmp_path, schema, partition_by=["region", "ratio", "s.part"], format_version=3)
    bare = Schema((NestedField(1, "id", LONG), NestedField(4, "s", StructType((NestedField(5, "a", INT),)))))
    files = [
        table.write_data(
            [{"id": at, "s": {"a": 1}}, {"id": at + 100, "s": {"a": 1} if part is not None else None}],
            schema=bare,
            with_ids=False,
            partition=(region, ratio, part),
        )
        for at, (region, ratio, part) in enumerate([("eu", 0.5, 1), ("us", -0.0, 2), (None, None, None)])
    ]
    only_id = Schema((NestedField(1, "id", LONG),))
    files.append(table.write_data([{"id": 7}], schema=only_id, with_ids=False, partition=("as", 1.0, 9)))
    table.commit(*files)
    table.update_schema(lambda update: update.add_column("more", STRING, default="none"))
    table.update_schema(lambda update: update.add_column("s.extra", INT, default=3))
    set_mapping(table, create_name_mapping(table.schema))
    rows = check_table(spark, table, "region = 'eu'", "ratio > 0", "s.part = 2", "more = 'none'", columns=["*", "_pos"])
    assert {row["region"] for row in rows} == {"eu", "us", None, "as"}
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.filter("region = 'eu'").count() == 2
    assert frame.filter("s.extra = 3").count() == 6
    check_table(spark, table, "s.extra = 3", "s.extra is null", columns=["id", "s.extra"])
    assert scan_table(table.load(), "s.extra = 3").to_arrow().num_rows == 6
    if not READS_STRUCTS_BY_PYTHON:
        assert len(read_files(frame.filter("region = 'eu'"))) == 1


def test_files_with_ids_use_partition_values_for_missing_identity_columns(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "region", STRING), NestedField(3, "u", UUID)))
    table = local_table(tmp_path, schema, partition_by=["region"])
    bare = Schema((NestedField(1, "id", LONG),))
    table.commit(table.write_data([{"id": 1}], schema=bare, partition=("eu",)))
    table.append([{"id": 2, "region": "us", "u": None}])
    rows = check_table(spark, table, "region = 'eu'", "region = 'us'")
    assert sorted((row["id"], row["region"]) for row in rows) == [(1, "eu"), (2, "us")]


@pytest.mark.extended
def test_files_with_ids_use_partition_values_for_missing_nested_fields(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG),
            NestedField(2, "ratio", DOUBLE),
            NestedField(3, "s", StructType((NestedField(4, "a", INT), NestedField(5, "part", INT)))),
        )
    )
    table = local_table(tmp_path, schema, partition_by=["ratio", "s.part"])
    bare = Schema((NestedField(1, "id", LONG), NestedField(3, "s", StructType((NestedField(4, "a", INT),)))))
    table.commit(
        table.write_data([{"id": 1, "s": {"a": 7}}], schema=bare, partition=(0.5, 9)),
        table.write_data([{"id": 2}], schema=Schema((NestedField(1, "id", LONG),)), partition=(-0.0, 8)),
        table.write_data([{"id": 3, "s": None}], schema=bare, partition=(None, None)),
    )
    table.append([{"id": 4, "ratio": -0.0, "s": {"a": 1, "part": 2}}])
    filters = ("ratio = 0.5", "ratio = 0", "s.part = 9", "s.part > 7", "ratio is null")
    rows = check_table(spark, table, *filters, columns=["*", "_pos"])
    found = {row["id"]: (row["ratio"], row["s"]) for row in rows}
    assert found[1] == (0.5, {"a": 7, "part": 9})
    assert found[2] == (0.0, {"a": None, "part": 8})
    assert found[3][0] is None
    assert str(found[4][0]) == "-0.0"
    check_table(spark, table, "s.part = 9", columns=["id", "s.part"])


@pytest.mark.extended
def test_files_from_before_a_spec_change_are_read_and_pruned(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "region", STRING), NestedField(3, "n", INT)))
    table = local_table(tmp_path, schema)
    table.append([{"id": 1, "region": "eu", "n": 1}, {"id": 2, "region": "us", "n": 2}])
    table.update_spec(lambda update: update.add_field("region"))
    table.append([{"id": 3, "region": "eu", "n": 3}, {"id": 4, "region": "us", "n": 4}])
    table.update_spec(lambda update: update.remove_field("region"))
    table.update_spec(lambda update: update.add_field("n"))
    table.append([{"id": 5, "region": "eu", "n": 5}, {"id": 6, "region": "us", "n": 6}])
    table.update_schema(lambda update: update.rename_column("region", "area"))
    table.append([{"id": 7, "area": None, "n": None}])
    rows = check_table(
        spark, table, "area = 'eu'", "n = 5", "area is null", columns=["*", "_spec_id", "_partition", "_file"]
    )
    assert len(rows) == 7
    frame = scan_table(table.load()).to_spark(spark)
    assert len(read_files(frame.filter("area = 'eu' and id = 3"))) == 1
    assert frame.filter("area = 'eu'").count() == 3


@pytest.mark.extended
def test_identity_column_is_promoted_with_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "n", INT)))
    table = local_table(tmp_path, schema, partition_by=["n"])
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": None}])
    table.update_schema(lambda update: update.set_type("n", LONG))
    table.append([{"id": 3, "n": 2**40}])
    check_table(spark, table, "n = 1", f"n = {2**40}", "n is null")


@pytest.mark.extended
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_support_deletes_and_evolution(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    table = local_table(tmp_path, SCHEMA, format_version=3)
    first = table.write_data(ROWS, file_format=file_format)
    second = table.write_data([{**ROWS[0], "id": 20}, {**ROWS[0], "id": 21}])
    table.commit(first, second)
    table.commit(*table.write_vectors({first: [1]}))
    table.commit(table.write_equality_deletes([{"id": 21}, {"id": 3}], ["id"], file_format=file_format))

    def evolve(update: Any) -> None:
        update.rename_column("name", "title")
        update.rename_column("s.a", "z")

    table.update_schema(evolve)
    table.update_schema(lambda update: update.add_column("name", STRING))
    table.append([{**ROWS[1], "id": 30, "title": "t", "name": "n"}], file_format=file_format)
    columns = ["*", "_pos", "_file", "_row_id", "_spec_id", "_last_updated_sequence_number"]
    rows = check_table(spark, table, "name is null", "title = 'one'", "s.z = 1", columns=columns)
    assert sorted(row["id"] for row in rows) == [1, 20, 30]
    check_table(spark, table, columns=["id", "_deleted"])
    frame = scan_table(table.load(), columns=["id", "name", "_partition"]).to_spark(spark)
    assert frame.filter("name is null").count() == 2


def test_in_memory_tables_are_read_in_python(spark: SparkSession) -> None:
    table = TableBuilder(SCHEMA, storage=MemoryStorage(), format_version=3)
    file = table.write_data(ROWS)
    table.commit(file)
    table.commit(*table.write_vectors({file: [0]}))
    rows = check_table(spark, table, "id = 3", columns=["*", "_pos", "_file"])
    assert sorted(row["id"] for row in rows) == [2, 3]


def test_missing_required_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = mapped_table(tmp_path)
    bare = Schema((NestedField(2, "name", STRING),))
    table.commit(table.write_data([{"name": "x"}], schema=bare, with_ids=False))
    with pytest.raises(FrazilError, match="required"):
        scan_table(table.load()).to_spark(spark)
    assert scan_table(table.load(), columns=["name"]).to_spark(spark).count() == 1


def test_incremental_appends_are_read_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    for at in range(4):
        table.append([{**ROWS[0], "id": at}])
    table.commit(table.write_equality_deletes([{"id": 2}], ["id"]))
    loaded = table.load()
    scan = scan_with_options(loaded, {"start-snapshot-id": "1", "end-snapshot-id": "4"})
    assert sorted(row["id"] for row in check_same(spark, scan)) == [1, 2, 3]
    frame = scan.to_spark(spark)
    assert frame.filter("id = 3").count() == 1
    assert len(read_files(frame.filter("id = 3"))) == 1
    later = scan_with_options(loaded, {"start-snapshot-id": "2"}, predicate="id > 2")
    assert [row["id"] for row in check_same(spark, later)] == [3]


def test_split_size_properties_and_options_are_respected(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, Schema((NestedField(1, "id", LONG),)))
    for start in range(0, 60, 10):
        table.append([{"id": at} for at in range(start, start + 10)])
    loaded = table.load()
    whole = scan_table(loaded).to_spark(spark).rdd.getNumPartitions()
    small = scan_with_options(loaded, {"split-size": "700", "file-open-cost": "1"}).to_spark(spark)
    assert small.rdd.getNumPartitions() > whole
    assert small.count() == 60
    table.set_properties(read__split__target_size="700", read__split__open_file_cost="1")
    assert scan_table(table.load()).to_spark(spark).rdd.getNumPartitions() == small.rdd.getNumPartitions()
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") != "700"


def test_joins_prune_identity_partitions_dynamically(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "region", STRING)))
    table = local_table(tmp_path, schema, partition_by=["region"], format_version=3)
    files = table.write_partitions([{"id": at, "region": f"r{at % 8}"} for at in range(80)])
    table.commit(*files)
    table.commit(*table.write_vectors({files[3]: [0]}))
    frame = scan_table(table.load()).to_spark(spark)
    small = spark.createDataFrame([("r3", 1), ("r5", 2)], "region string, weight int").filter("weight > 0")
    joined = frame.join(F.broadcast(small), "region")
    assert len(joined.collect()) == 19
    assert count_read_files(joined) == 2


@pytest.mark.extended
def test_storage_unreachable_for_spark_is_read_in_python(spark: SparkSession) -> None:
    with running() as server:
        storage = choose_storage(server.properties)
        location = f"s3://{BUCKET}/spark/{uuid4()}"
        table = TableBuilder(SCHEMA, storage=storage, location=location, format_version=3, keeps_ids=True)
        file = table.write_data(ROWS)
        table.commit(file)
        table.commit(*table.write_vectors({file: [0]}))
        table.commit(table.write_equality_deletes([{"id": 3}], ["id"]))
        table.append([{**ROWS[0], "id": 9}])
        with pytest.warns(UserWarning, match="read on the driver"):
            rows = check_table(spark, table, "id = 9", columns=["*", "_pos", "_file"])
        assert sorted(row["id"] for row in rows) == [2, 9]


@pytest.mark.extended
def test_storage_is_read_on_executors_with_its_own_credentials(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Any = spark.sparkContext
    with running() as server:
        given = dict(server.properties)
        keys = {
            "AWS_ACCESS_KEY_ID": given.pop("s3.access-key-id"),
            "AWS_SECRET_ACCESS_KEY": given.pop("s3.secret-access-key"),
        }
        for name, value in keys.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(context.environment, name, value)
        storage = choose_storage({**given, "s3.use-environment": "true"})
        location = f"s3://{BUCKET}/spark/{uuid4()}"
        table = TableBuilder(SCHEMA, storage=storage, location=location, keeps_ids=True)
        table.append(ROWS)
        scan = scan_table(table.load())
        assert len(check_same(spark, scan)) == 3


def orc_scans(frame: DataFrame) -> int:
    return sum("orc" in node.toString().lower().split("batched")[0] for node in file_scans(frame))


@pytest.mark.extended
def test_orc_without_renames_is_read_natively_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG, required=True),
            NestedField(2, "name", STRING),
            NestedField(3, "price", DecimalType(9, 2)),
            NestedField(4, "part", INT),
        )
    )
    table = local_table(tmp_path, schema, partition_by=["part"], format_version=3)
    rows = [{"id": at, "name": f"n{at}" if at % 3 else None, "price": Decimal(at), "part": at % 2} for at in range(20)]
    files = table.write_partitions(rows, file_format="orc")
    table.commit(*files)
    table.append([{"id": 100, "name": "parquet", "price": None, "part": None}])
    checked = check_table(
        spark, table, "name = 'n4'", "part = 1", "id > 15", "price = 4", columns=["*", "_file", "_spec_id"]
    )
    assert len(checked) == 21
    frame = scan_table(table.load()).to_spark(spark)
    assert orc_scans(frame) == 1
    assert len(read_files(frame.filter("part = 1 and id < 50"))) == 1
    table.commit(*table.write_vectors({files[0]: [0, 1]}))
    assert len(check_table(spark, table, "id < 5", "name is null")) == 19
    assert orc_scans(scan_table(table.load()).to_spark(spark)) == 1
    assert len(check_table(spark, table, columns=["id", "_pos"])) == 19
    table.update_schema(lambda update: update.rename_column("name", "title"))
    assert len(check_table(spark, table, "title = 'n5'")) == 19
    assert orc_scans(scan_table(table.load()).to_spark(spark)) == 0
    assert orc_scans(scan_table(table.load(), columns=["id", "price"]).to_spark(spark)) == 1
