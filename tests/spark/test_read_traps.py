"""The traps of reading through Spark's own readers, each one set."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, ListType, MapType, NestedField, StructType
from frazil.storage.local import LocalStorage
from frazil.table.scan import scan_table
from tests.spark.read_cases import check_same, check_table, local_table, read_files
from tests.spark.settings import settings
from tests.spark.type_cases import ALL_TYPES, rows_of_all_types
from tests.support.tables import TableBuilder

PLAIN = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "a", INT), NestedField(3, "text", STRING)))
NESTED = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(
            2,
            "s",
            StructType((NestedField(3, "a", INT), NestedField(4, "b", STRING))),
        ),
        NestedField(5, "l", ListType(6, StructType((NestedField(7, "x", INT), NestedField(8, "y", INT))))),
        NestedField(
            9, "m", MapType(10, STRING, 11, StructType((NestedField(12, "x", INT), NestedField(13, "y", INT))))
        ),
    )
)


def plain_rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": at, "a": at % 7, "text": f"row {at}"} for at in range(start, start + count)]


# Names against ids


def test_reused_column_name_filters_the_current_column(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(100), row_group_size=10)
    table.update_schema(lambda update: update.rename_column("a", "b"))
    table.update_schema(lambda update: update.add_column("a", INT))
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.filter("a is null").count() == 100
    assert frame.filter("b = 3").count() == 14
    table.append([{"id": 100, "a": 5, "b": None, "text": "new"}])
    rows = check_table(spark, table, "a is null", "a = 5", "b = 3", "b is null", "a is not null or b = 1")
    assert len(rows) == 101


@pytest.mark.extended
def test_reused_nested_names_refer_to_current_fields(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, NESTED)
    table.append(
        [
            {"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1, "y": 2}], "m": {"k": {"x": 5, "y": 6}}},
            {"id": 2, "s": None, "l": None, "m": None},
            {"id": 3, "s": {"a": None, "b": None}, "l": [None, {"x": None, "y": 4}], "m": {"k": None}},
        ]
    )

    def swap(update: Any) -> None:
        update.rename_column("s.a", "old_a")
        update.rename_column("l.element.x", "old_x")
        update.rename_column("m.value.x", "old_x")

    def re_add(update: Any) -> None:
        update.add_column("s.a", STRING)
        update.add_column("l.element.x", STRING)
        update.add_column("m.value.x", STRING)

    table.update_schema(swap)
    table.update_schema(re_add)
    table.append(
        [
            {
                "id": 4,
                "s": {"old_a": 7, "b": "z", "a": "new"},
                "l": [{"old_x": 1, "y": 2, "x": "n"}],
                "m": {"q": {"old_x": 1, "y": 2, "x": "n"}},
            }
        ]
    )
    check_table(spark, table, "s.a is null", "s.old_a = 1", "s.a = 'new'", "s.b = 'x'")
    frame = scan_table(table.load()).to_spark(spark)
    assert sorted(row[0] for row in frame.filter("s.a is null").select("id").collect()) == [1, 2, 3]
    assert [row[0] for row in frame.filter("s.old_a = 1").select("s.b").collect()] == ["x"]
    assert [row[0] for row in frame.select("l.x", "id").filter("id = 4").collect()] == [["n"]]


@pytest.mark.extended
def test_table_with_expired_schemas_reads_every_column_by_id(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(50))
    table.update_schema(lambda update: update.rename_column("a", "b"))
    table.update_schema(lambda update: update.add_column("a", INT))
    table.append([{"id": 50, "a": 5, "b": None, "text": "new"}])
    kept = tuple(one for one in table.metadata.schemas if one.schema_id == table.schema.schema_id)
    table.metadata = replace(table.metadata, schemas=kept)
    rows = check_table(spark, table, "a is null", "b = 3")
    assert sum(row["a"] is None for row in rows) == 50


def test_filter_on_a_nested_field_reads_only_requested_fields(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, NESTED)
    table.append([{"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1, "y": 2}], "m": {}}, {"id": 2, "s": None}])
    loaded = table.load()
    scan = scan_table(loaded, "s.b = 'x'", columns=["s.a", "l.element.y"])
    assert check_same(spark, scan) == [{"s": {"a": 1}, "l": [{"y": 2}]}]
    assert scan.to_spark(spark).schema.simpleString() == "struct<s:struct<a:int>,l:array<struct<y:int>>>"


# Filters on what all rows of a file share


def test_filters_on_metadata_columns_and_partitions_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN, partition_by=["a"])
    table.append(plain_rows(20))
    table.update_spec(lambda update: update.remove_field("a"))
    table.update_spec(lambda update: update.add_field("bucket(4, id)"))
    table.append(plain_rows(20, start=20))
    scan = scan_table(table.load(), columns=["*", "_file", "_pos", "_spec_id", "_partition"])
    rows = check_same(spark, scan)
    frame = scan.to_spark(spark)
    for spec_id in {row["_spec_id"] for row in rows}:
        expected = sum(row["_spec_id"] == spec_id for row in rows)
        assert frame.filter(F.col("_spec_id") == spec_id).count() == expected
        assert frame.filter(F.col("_spec_id") != spec_id).count() == len(rows) - expected
    one = rows[0]["_file"]
    assert frame.filter(F.col("_file") == one).count() == sum(row["_file"] == one for row in rows)
    assert frame.filter("_partition.a = 3").count() == sum(row["_partition"]["a"] == 3 for row in rows)
    assert frame.filter("_partition.a is null").count() == sum(row["_partition"]["a"] is None for row in rows)
    assert frame.filter("_pos = 0").count() == len({row["_file"] for row in rows})
    assert frame.filter("a = 3 or _spec_id = 2").count() == sum(row["a"] == 3 or row["_spec_id"] == 2 for row in rows)
    assert frame.filter("a = 3 and id > 10").count() == sum(row["a"] == 3 and row["id"] > 10 for row in rows)


@pytest.mark.extended
def test_long_and_null_constants_are_read(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "part", LONG)))
    table = local_table(tmp_path, schema, partition_by=["part"], format_version=3)
    table.append([{"id": at, "part": part} for at, part in enumerate([1, -(2**40), 2**62, None, 0])])
    loaded = table.load()
    scan = scan_table(loaded, columns=["*", "_row_id", "_last_updated_sequence_number", "_partition"])
    check_same(spark, scan)
    frame = scan.to_spark(spark)
    assert frame.filter(f"part = {2**62}").count() == 1
    assert frame.filter("part is null").count() == 1
    assert frame.filter("part + 1 = 2").count() == 1


# Lists of values


@pytest.mark.extended
@pytest.mark.parametrize("count", [3, 11, 10_001])
def test_value_lists_of_any_length_prune_and_filter(spark: SparkSession, tmp_path: Path, count: int) -> None:
    table = local_table(tmp_path, PLAIN)
    for start in (0, 20_000, 40_000):
        table.append(plain_rows(200, start=start))
    loaded = table.load()
    values = [19_950 + at for at in range(count)]
    frame = scan_table(loaded).to_spark(spark)
    expected = sum(0 <= value - start < 200 for value in values for start in (0, 20_000, 40_000))
    found = frame.filter(F.expr(f"id in ({', '.join(map(str, values))})"))
    assert found.count() == expected
    assert len(read_files(found)) == (1 if expected else 0)
    text = f"id in ({', '.join(map(str, values))})"
    assert scan_table(loaded, text).to_spark(spark).count() == expected
    excluded = scan_table(loaded, f"id not in ({', '.join(map(str, values))})").to_spark(spark)
    assert excluded.count() == 600 - expected


def test_lists_with_null_and_text_follow_sql_semantics(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append([*plain_rows(30), {"id": 30, "a": None, "text": None}])
    frame = scan_table(table.load()).to_spark(spark)
    many = ", ".join(f"'row {at}'" for at in range(0, 30, 2))
    assert frame.filter(f"text in ({many}, null)").count() == 15
    assert frame.filter(f"text not in ({many})").count() == 15
    assert frame.filter("a in (1, null)").count() == 5
    assert frame.filter("a not in (1, null)").count() == 0


# Deleted positions


def test_files_without_deletes_keep_their_rows_beside_files_with_deletes(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN, format_version=3)
    first, second, third = (table.write_data(plain_rows(100, start=start)) for start in (0, 100, 200))
    table.commit(first, second, third)
    table.commit(*table.write_vectors({first: [0, 5, 6, 7, 8, 13, 14, 99], third: range(100)}))
    rows = check_table(spark, table, "id > 90", "a = 0", columns=["*", "_pos", "_row_id"])
    assert len(rows) == 192
    deleted = check_table(spark, table, columns=["id", "_deleted"])
    assert sum(row["_deleted"] for row in deleted) == 108


def test_position_deletes_beyond_the_end_delete_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    file = table.write_data(plain_rows(10), row_group_size=3)
    table.commit(file)
    table.commit(table.write_position_deletes({file: [0, 9, 10, 5000]}))
    assert len(check_table(spark, table, columns=["id", "_pos"])) == 8


@pytest.mark.extended
def test_positions_account_for_skipped_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN, format_version=3)
    file = table.write_data(plain_rows(1000), row_group_size=100)
    table.commit(file)
    table.commit(*table.write_vectors({file: [950, 951, 999]}))
    frame = scan_table(table.load(), columns=["id", "_pos"]).to_spark(spark).filter("id >= 945")
    assert sorted(tuple(row) for row in frame.collect()) == [
        (at, at) for at in range(945, 1000) if at not in (950, 951, 999)
    ]


# Paths


@pytest.mark.parametrize(
    "name",
    ["plain", "with space", "per%20cent", "100% +", "ünïcödé 雪", "hash#mark?and=more", "a=b,c;d", "it's [x]{y}"],
)
def test_special_paths_are_read_literally(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    table = local_table(folder, PLAIN, format_version=3)
    first = table.write_data(plain_rows(5))
    second = table.write_data(plain_rows(5, start=5))
    table.commit(first, second)
    table.commit(*table.write_vectors({first: [1]}))
    table.commit(table.write_equality_deletes([{"id": 7}], ["id"]))
    rows = check_table(spark, table, columns=["*", "_file", "_pos"])
    assert len(rows) == 8


@pytest.mark.extended
@pytest.mark.parametrize("spelling", ["file:{}", "file://{}", "{}"])
def test_all_spellings_of_a_local_path_are_readable(spark: SparkSession, tmp_path: Path, spelling: str) -> None:
    table = TableBuilder(PLAIN, storage=LocalStorage(), location=spelling.format(tmp_path / "t"))
    file = table.write_data(plain_rows(10))
    table.commit(file)
    table.commit(table.write_position_deletes({file: [3, 4]}))
    rows = check_table(spark, table, "id > 5", columns=["*", "_file"])
    assert {row["_file"] for row in rows} == {file.file_path}
    assert len(rows) == 8


# Sessions


HOSTILE = {
    "missing files ignored": {"spark.sql.files.ignoreMissingFiles": "true"},
    "corrupt files ignored": {"spark.sql.files.ignoreCorruptFiles": "true"},
    "case sensitive": {"spark.sql.caseSensitive": "true"},
    "no ansi": {"spark.sql.ansi.enabled": "false"},
    "zone": {"spark.sql.session.timeZone": "America/St_Johns"},
    "no vectors": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "no nested vectors": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "no codegen": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "no ids": {
        "spark.sql.parquet.fieldId.read.enabled": "false",
        "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    },
    "legacy dates": {
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    },
    "legacy parquet": {
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.int96AsTimestamp": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true",
    },
    "row filters": {
        "spark.sql.parquet.recordLevelFilter.enabled": "true",
        "spark.sql.parquet.enableVectorizedReader": "false",
    },
    "other text": {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    },
    "no adaptive": {"spark.sql.adaptive.enabled": "false"},
    "ntz": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "no pruning": {
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        "spark.sql.parquet.filterPushdown": "false",
    },
}


@pytest.fixture(scope="module")
def hard_table(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """A table with something of everything: types, deletes of all kinds, names that came back, defaults."""
    names = [part.name for part in ALL_TYPES.fields if part.name.startswith("a_") and part.name != "a_struct"]
    schema = ALL_TYPES.project([ALL_TYPES.field(name).field_id for name in ("id", "part", "list_of_structs", *names)])
    schema_names = [part.name for part in schema.fields]
    table = local_table(tmp_path_factory.mktemp("hard"), schema, partition_by=["part"], format_version=3)
    files = table.write_partitions([{name: row[name] for name in schema_names} for row in rows_of_all_types()])
    table.commit(*files)
    table.commit(*table.write_vectors({files[0]: [0]}))
    table.commit(table.write_equality_deletes([{"id": 4}], ["id"], spec=table.spec, partition=(1,)))
    table.update_schema(lambda update: update.rename_column("a_string", "old_string"))
    table.update_schema(lambda update: update.add_column("a_string", STRING, default='it\'s \\ "new" \n snow 雪'))
    table.update_schema(lambda update: update.add_column("a_new_double", DOUBLE, default=-0.5))
    return table


@pytest.mark.extended
@pytest.mark.parametrize("name", HOSTILE)
def test_no_session_setting_changes_the_rows(spark: SparkSession, hard_table: TableBuilder, name: str) -> None:
    loaded = hard_table.load()
    scan = scan_table(loaded, columns=["*", "_pos", "_row_id", "_spec_id"])
    built_before = scan.to_spark(spark)
    text = "old_string = 'it''s' or a_string = 'no' or id in (1, 2)"
    expected = scan_table(loaded, text).count()
    with settings(spark, HOSTILE[name]):
        rows = check_same(spark, scan)
        assert scan_table(loaded, text).to_spark(spark).count() == expected
        assert built_before.filter("a_new_double = -0.5").count() == len(rows)
        built_inside = scan.to_spark(spark)
    assert built_inside.filter("a_new_double = -0.5 and id >= 0").count() == len(rows)


@pytest.mark.parametrize("damage", ["missing", "truncated", "garbage", "pages"])
@pytest.mark.parametrize("hostile", [True, False])
def test_lost_or_damaged_file_is_an_error_under_any_session_setting(
    spark: SparkSession, tmp_path: Path, damage: str, hostile: bool
) -> None:
    table = local_table(tmp_path, PLAIN)
    file = table.write_data(plain_rows(1000))
    table.commit(file, table.write_data(plain_rows(10, start=2000)))
    path = Path(file.file_path.removeprefix("file://"))
    frame = scan_table(table.load()).to_spark(spark)
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif damage == "garbage":
        path.write_bytes(b"x" * path.stat().st_size)
    else:
        data = path.read_bytes()
        length = int.from_bytes(data[-8:-4], "little") + 8
        path.write_bytes(b"PAR1" + b"\xff" * (len(data) - length - 4) + data[-length:])
    ignore = "true" if hostile else "false"
    with (
        settings(spark, {"spark.sql.files.ignoreMissingFiles": ignore, "spark.sql.files.ignoreCorruptFiles": ignore}),
        pytest.raises(Exception) as caught,
    ):
        frame.agg({"id": "sum"}).collect()
    text = str(caught.value)
    assert path.name in text
    if damage == "missing":
        assert "Cannot read" in text
        assert "table: db.t" in text
        assert "snapshot: 1" in text
        assert "Hint:" in text
    else:
        assert "#table=db.t&snapshot=1&hint=restore-the-file" in text


def test_reading_leaves_the_session_unchanged(spark: SparkSession, hard_table: TableBuilder) -> None:
    before = dict(spark.conf.getAll)
    names = {row[1] for row in spark.sql("show tables").collect()}
    scan_table(hard_table.load()).to_spark(spark).collect()
    assert dict(spark.conf.getAll) == before
    assert {row[1] for row in spark.sql("show tables").collect()} == names


# What Spark does with a relation


def test_required_columns_are_not_nullable(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG, required=True),
            NestedField(2, "part", INT, required=True),
            NestedField(3, "s", StructType((NestedField(4, "x", INT, required=True),)), required=True),
            NestedField(5, "l", ListType(6, INT, element_required=True)),
            NestedField(7, "more", INT),
        )
    )
    table = local_table(tmp_path, schema, partition_by=["part"], format_version=3)
    files = table.write_partitions([{"id": 1, "part": 1, "s": {"x": 1}, "l": [1]}])
    table.commit(*files)
    more = table.write_partitions([{"id": 1, "part": 2, "s": {"x": 1}, "l": [1]}] * 2)
    table.commit(*more)
    table.commit(*table.write_vectors({more[0]: [0]}))
    found: Any = scan_table(table.load()).to_spark(spark).schema
    assert [field.nullable for field in found.fields] == [False, False, False, True, True]
    assert not found["s"].dataType["x"].nullable
    assert not found["l"].dataType.containsNull


def test_self_join_reads_the_table_once(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(50))
    loaded = table.load()
    frame = scan_table(loaded).to_spark(spark)
    joined = frame.alias("l").join(frame.alias("r"), F.expr("l.id = r.id + 1"))
    assert joined.count() == 49
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"}):
        again = scan_table(loaded).to_spark(spark)
        counted = frame.groupBy("a").count().alias("l").join(again.groupBy("a").count().alias("r"), "a")
        plan = counted._jdf.queryExecution().executedPlan().toString()
        assert "ReusedExchange" in plan
        assert counted.count() == 7
        other = scan_table(loaded, "id > 10").to_spark(spark)
        mixed = frame.groupBy("a").count().alias("l").join(other.groupBy("a").count().alias("r"), "a")
        assert "ReusedExchange" not in mixed._jdf.queryExecution().executedPlan().toString()


@pytest.mark.extended
def test_cached_frame_is_not_reused_for_another_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(10))
    frame = scan_table(table.load()).to_spark(spark).cache()
    try:
        assert frame.count() == 10
        table.append(plain_rows(10, start=10))
        assert scan_table(table.load()).to_spark(spark).count() == 20
        assert frame.filter("id >= 0").count() == 10
    finally:
        frame.unpersist()


@pytest.mark.extended
def test_threads_share_a_frame_with_their_own_filters(spark: SparkSession, hard_table: TableBuilder) -> None:
    frame = scan_table(hard_table.load()).to_spark(spark)
    found: dict[int, int] = {}
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            found[number] = frame.filter(F.col("id") >= number).count()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    ids = [row[0] for row in frame.select("id").collect()]
    assert found == {number: sum(one >= number for one in ids) for number in range(6)}


def test_temporary_view_keeps_pruning(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    for start in (0, 100, 200):
        table.append(plain_rows(100, start=start))
    scan_table(table.load()).to_spark(spark).createOrReplaceTempView("trap_view")
    try:
        found = spark.sql("select text from trap_view where id between 120 and 130")
        assert found.count() == 11
        assert len(read_files(found)) == 1
    finally:
        spark.catalog.dropTempView("trap_view")


@pytest.mark.extended
def test_dropped_frames_release_memory(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(10))
    loaded = table.load()
    context: Any = spark.sparkContext
    pool = context._gateway.gateway_property.pool

    def held() -> int:
        return sum(type(one).__name__ == "_Callback" for one in list(pool.dict.values()))

    def settle() -> int:
        for _ in range(20):
            gc.collect()
            context._jvm.System.gc()
            context._jvm.java.lang.Thread.sleep(100)
            if held() <= before:
                break
        return held()

    before = 0
    before = settle()
    for _ in range(10):
        scan_table(loaded).to_spark(spark).count()
    after = settle()
    assert after <= before + 2, (before, after)


def test_table_without_rows_or_snapshot_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, NESTED)
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.count() == 0
    assert [field.name for field in frame.schema.fields] == ["id", "s", "l", "m"]
    file = table.write_data([])
    table.commit(file)
    assert check_table(spark, table, "id = 1") == []


def test_columns_of_any_name_are_readable(spark: SparkSession, tmp_path: Path) -> None:
    names = [
        "a.b",
        "a`b",
        "with space",
        "ünï",
        "_metadata",
        "_file2",
        "select",
        "a\\b",
        "x;y",
        "file path",
        "$",
        "CASE",
    ]
    fields = [NestedField(at + 2, name, INT) for at, name in enumerate(names)]
    schema = Schema((NestedField(1, "id", LONG), *fields))
    table = local_table(tmp_path, schema, format_version=3)
    file = table.write_data([{"id": 1, **{name: at for at, name in enumerate(names)}}, {"id": 2}, {"id": 3}])
    table.commit(file)
    table.commit(*table.write_vectors({file: [2]}))
    check_table(spark, table, "id = 1", columns=["*", "_pos"])
    frame = scan_table(table.load()).to_spark(spark)
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    assert frame.filter(" and ".join(f"{name} = {at}" for at, name in enumerate(quoted))).count() == 1


def test_columns_differing_in_case_are_both_readable(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "a", INT), NestedField(3, "A", INT)))
    table = local_table(tmp_path, schema)
    table.append([{"id": 1, "a": 10, "A": 20}, {"id": 2, "a": None, "A": 30}])
    loaded = table.load()
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        check_same(spark, scan_table(loaded))
        frame = scan_table(loaded).to_spark(spark)
        assert [tuple(row) for row in frame.filter("A = 20").collect()] == [(1, 10, 20)]
    assert scan_table(loaded, "A = 30", columns=["id", "A"]).to_spark(spark).collect()[0][0] == 2


@pytest.mark.extended
def test_arrow_schema_in_the_file_is_ignored(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, PLAIN)
    table.append(plain_rows(5), store_schema=True)
    assert len(check_table(spark, table)) == 5
    assert isinstance(scan_table(table.load()).to_arrow(), pa.Table)


def test_fields_of_renamed_structs_are_read_separately(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, NESTED, format_version=3)
    rows = [{"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1, "y": 2}], "m": {"k": {"x": 5, "y": 6}}}]
    file = table.write_data([*rows, {"id": 2, "s": None, "l": None, "m": None}])
    table.commit(file)

    def rename(update: Any) -> None:
        update.rename_column("s", "t")
        update.rename_column("l.element.x", "z")
        update.rename_column("m", "n")

    table.update_schema(rename)
    frame = scan_table(table.load(), columns=["*", "_pos"]).to_spark(spark)
    found = frame.select("t.b", "l.z", F.expr("n['k'].y"), "_pos", F.expr("t is null")).orderBy("_pos").collect()
    assert [tuple(row) for row in found] == [("x", [1], 6, 0, False), (None, None, None, 1, True)]
    assert frame.filter("t.a = 1").select("t.b").collect()[0][0] == "x"
    assert frame.filter("t.b = 'x'").count() == 1


def test_float_fields_of_structs_are_read_separately(spark: SparkSession, tmp_path: Path) -> None:
    place = StructType((NestedField(3, "lat", DOUBLE), NestedField(4, "name", STRING)))
    table = local_table(tmp_path, Schema((NestedField(1, "id", LONG), NestedField(2, "s", place))))
    table.append([{"id": 1, "s": {"lat": 1.5, "name": "x"}}, {"id": 2, "s": {"lat": float("nan"), "name": "y"}}])
    frame = scan_table(table.load(), columns=["*", "_pos"]).to_spark(spark)
    assert sorted(tuple(row) for row in frame.select("s.name", "_pos").collect()) == [("x", 0), ("y", 1)]
    assert [row[0] for row in frame.filter("s.lat > 2").select("s.name").collect()] == ["y"]
    assert [row[0] for row in frame.filter("s.lat = 1.5").select("id").collect()] == [1]
