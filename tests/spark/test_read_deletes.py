"""Deletes of every kind on Spark: equal to what is read in this process, as bits and as joins; and bad ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID as Uuid

import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import FrazilError
from frazil.spark.read.relation import UNION_CODEGEN, ReadRequest, read_on_spark
from frazil.spark.session import setting
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, DOUBLE, INT, LONG, STRING, UUID, NestedField, StructType
from frazil.table.scan import Scan, scan_table
from tests.spark.history_model import arrow_rows, spark_rows
from tests.spark.read_cases import check_table, local_table
from tests.spark.settings import settings
from tests.support.scan_model import same_rows
from tests.support.tables import TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "part", INT),
        NestedField(3, "text", STRING),
        NestedField(4, "day", DATE),
        NestedField(5, "s", StructType((NestedField(6, "x", INT), NestedField(7, "y", STRING)))),
    )
)
MEANING: dict[str, Callable[[int], bool]] = {
    "id >= 15": lambda at: at >= 15,
    "id >= 25": lambda at: at >= 25,
    "part = 2 and id > 21": lambda at: at > 21,
    "part = 1": lambda at: at < 20,
    "id = 11": lambda at: at == 11,
    "id in (10, 12)": lambda at: at in (10, 12),
}


def rows_of(rng: random.Random, count: int, start: int) -> list[dict[str, Any]]:
    return [
        {
            "id": start + at,
            "part": rng.choice([1, 2, None]),
            "text": rng.choice(["a", "b", "", None]),
            "day": rng.choice([0, 1, None]),
            "s": rng.choice([None, {"x": rng.choice([1, 2, None]), "y": "q"}, {"x": None, "y": None}]),
        }
        for at in range(count)
    ]


def with_joins(spark: SparkSession, scan: Scan) -> DataFrame:
    """Return a scan whose deleted positions are joined, however few they are."""
    request = ReadRequest(
        scan.table, scan.snapshot, scan.table_schema, scan.schema, scan.predicate, vector_budget_bytes=-1
    )
    return read_on_spark(spark, request)


def check_deletes(spark: SparkSession, table: TableBuilder) -> list[dict[str, Any]]:
    """Check a table under all ways to apply deletes, and with deleted rows shown."""
    rows = check_table(spark, table, "id > 5", columns=["*", "_pos"])
    shown = scan_table(table.load(), columns=["id", "_deleted", "_pos"])
    expected = arrow_rows(shown.to_arrow(), shown.schema)
    assert same_rows(spark_rows(shown.to_spark(spark)), expected)
    if any(entry.data_file.content == 1 for entry in table.live_files()):
        scan = scan_table(table.load(), columns=["*", "_pos"])
        assert same_rows(spark_rows(with_joins(spark, scan)), rows)
        assert same_rows(spark_rows(with_joins(spark, shown)), expected)
    return rows


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_table_with_deletes_of_every_kind_reads_correctly(
    spark: SparkSession, tmp_path: Path, version: int, is_partitioned: bool
) -> None:
    rng = random.Random(version * 2 + is_partitioned)
    table = local_table(tmp_path, SCHEMA, partition_by=["part"] if is_partitioned else [], format_version=version)
    files = []
    for start in (0, 20, 40):
        files += table.append(rows_of(rng, 20, start))
        table.commit(
            table.write_equality_deletes(
                [{"id": start + 1}, {"id": start + 2}],
                ["id"],
                spec=table.spec,
                partition=(1,) if is_partitioned else (),
            )
        )
        file = files[-1]
        table.commit(table.write_position_deletes({file: [0, file.record_count - 1]}, names_file=start == 20))
    first = files[0]
    same = [one for one in files if one.partition == first.partition]
    table.commit(table.write_position_deletes({one: [1] for one in same}, file_format="avro"))
    table.commit(
        table.write_equality_deletes(
            [{"text": None, "day": 1}, {"text": "b", "day": None}],
            ["text", "day"],
            spec=table.spec,
            partition=(2,) if is_partitioned else (),
        )
    )
    if version == 3:
        table.commit(*table.write_vectors({files[1]: [0, 1], files[-1]: [0, 1, 2]}))
    table.append(rows_of(rng, 10, 100))
    rows = check_deletes(spark, table)
    assert 10 < len(rows) < 70


@pytest.mark.parametrize("is_fused", ["true", "false"])
def test_files_without_deletes_are_read_separately_or_together(
    spark: SparkSession, tmp_path: Path, is_fused: str
) -> None:
    rng = random.Random(3)
    table = local_table(tmp_path, SCHEMA, format_version=3)
    first, *_ = table.append(rows_of(rng, 20, 0))
    table.commit(*table.write_vectors({first: [0, 7, 19]}))
    table.append(rows_of(rng, 20, 20))
    is_known = setting(spark, UNION_CODEGEN) is not None
    with settings(spark, {UNION_CODEGEN: is_fused}):
        rows = check_table(spark, table, "id > 5", columns=["*", "_pos"])
        plan = scan_table(table.load()).to_spark(spark)._jdf.queryExecution().optimizedPlan().toString()
    assert sorted(one["id"] for one in rows) == [at for at in range(40) if at not in (0, 7, 19)]
    assert plan.startswith("Union") is (is_known and is_fused == "true")


def test_plan_has_no_union_if_all_files_have_deletes(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA, format_version=3)
    files = [one for start in (0, 10) for one in table.append(rows_of(random.Random(1), 10, start))]
    table.commit(*table.write_vectors({one: [3] for one in files}))
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.count() == 18
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Union" not in plan
    assert "struct(" not in plan


@pytest.mark.extended
@pytest.mark.parametrize("is_fused", ["true", "false"])
def test_filter_that_prunes_deletes_loses_no_rows(spark: SparkSession, tmp_path: Path, is_fused: str) -> None:
    table = local_table(tmp_path, SCHEMA, partition_by=["part"])
    for part in (1, 2):
        rows = [{"id": at, "part": part, "text": "a", "day": 0, "s": None} for at in range(part * 10, part * 10 + 10)]
        (file,) = table.append(rows)
        table.commit(table.write_position_deletes({file: [0]}))
        table.commit(table.write_equality_deletes([{"id": part * 10 + 1}], ["id"], spec=table.spec, partition=(part,)))
    with settings(spark, {UNION_CODEGEN: is_fused}):
        frame = scan_table(table.load()).to_spark(spark)
        for condition, is_meant in MEANING.items():
            kept = [at for at in range(10, 30) if at not in (10, 11, 20, 21) and is_meant(at)]
            assert sorted(row.id for row in frame.filter(condition).collect()) == kept


def test_equality_deletes_on_nested_fields_and_nulls_apply(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(7)
    table = local_table(tmp_path, SCHEMA)
    table.append(rows_of(rng, 30, 0))
    table.commit(table.write_equality_deletes([{"s": {"x": 1}}], ["s.x"]))
    table.append(rows_of(rng, 10, 30))
    table.commit(table.write_equality_deletes([{"s": None}], ["s.y"]))
    rows = check_deletes(spark, table)
    assert all(row["s"] is not None and row["s"]["y"] is not None for row in rows)


@pytest.mark.extended
def test_deletes_by_dropped_or_renamed_columns_apply(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(8)
    table = local_table(tmp_path, SCHEMA)
    table.append(rows_of(rng, 30, 0))
    table.commit(table.write_equality_deletes([{"text": "a"}], ["text"]))
    table.commit(table.write_equality_deletes([{"s": {"x": 1}}], ["s.x"]))
    table.commit(table.write_equality_deletes([{"day": 1}], ["day"]))

    def change(update: Any) -> None:
        update.drop_column("text")
        update.drop_column("s.x")
        update.rename_column("day", "date")

    table.update_schema(change)

    def again(update: Any) -> None:
        update.add_column("text", LONG)
        update.add_column("s.x", STRING)
        update.add_column("day", INT)

    table.update_schema(again)
    table.append([{"id": 100, "part": 1, "date": 1, "s": {"y": "n", "x": "new"}, "text": 5, "day": 3}])
    rows = check_deletes(spark, table)
    assert all(row["date"] != 1 or row["id"] == 100 for row in rows)


@pytest.mark.extended
def test_deletes_written_under_older_specs_apply(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(9)
    table = local_table(tmp_path, SCHEMA, partition_by=["part"])
    table.append(rows_of(rng, 20, 0))
    old = table.spec
    table.update_spec(lambda update: update.remove_field("part"))
    table.append(rows_of(rng, 20, 20))
    table.commit(table.write_equality_deletes([{"text": "a"}], ["text"], spec=old, partition=(1,)))
    table.commit(table.write_equality_deletes([{"id": 3}, {"id": 23}], ["id"]))
    table.update_spec(lambda update: update.add_field("bucket(2, id)"))
    table.append(rows_of(rng, 20, 40))
    rows = check_deletes(spark, table)
    assert {3, 23}.isdisjoint({row["id"] for row in rows})


@pytest.mark.extended
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_equality_deletes_in_other_formats_and_types_apply(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "u", UUID), NestedField(3, "d", DATE)))
    table = local_table(tmp_path, schema)
    table.append([{"id": at, "u": Uuid(int=at % 3), "d": at % 4} for at in range(12)])
    table.commit(table.write_equality_deletes([{"u": Uuid(int=1), "d": 1}], ["u", "d"], file_format=file_format))
    table.commit(table.write_equality_deletes([{"u": Uuid(int=2)}], ["u"]))
    rows = check_deletes(spark, table)
    assert len(rows) == 7


def test_equality_deletes_on_floating_point_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, Schema((NestedField(1, "id", LONG), NestedField(2, "f", DOUBLE))))
    table.append([{"id": 1, "f": 0.0}])
    table.commit(table.write_equality_deletes([{"f": -0.0}], ["f"]))
    scan = scan_table(table.load())
    with pytest.raises(FrazilError, match="compared exactly") as here:
        scan.to_arrow()
    with pytest.raises(type(here.value), match="compared exactly"):
        scan.to_spark(spark)


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_bad_deletion_vector_is_reported_with_table_snapshot_and_file(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    table = local_table(tmp_path, SCHEMA, format_version=3)
    file = table.write_data(rows_of(random.Random(1), 20, 0))
    table.commit(file)
    (vector,) = table.write_vectors({file: [1, 2, 3]})
    table.commit(vector)
    path = Path(vector.file_path.removeprefix("file://"))
    if damage == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        assert vector.content_offset is not None
        data[vector.content_offset + 12] ^= 0xFF
        path.write_bytes(bytes(data))
    frame = scan_table(table.load()).to_spark(spark)
    with pytest.raises(Exception, match="Cannot") as caught:
        frame.count()
    text = str(caught.value)
    assert path.name in text
    assert "table: db.t" in text
    assert "snapshot: 2" in text


def test_missing_delete_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    for number, kind in enumerate(("position", "equality")):
        table = local_table(tmp_path / kind, SCHEMA)
        file = table.write_data(rows_of(random.Random(1), 20, 0))
        table.commit(file)
        deletes = (
            table.write_position_deletes({file: [1]})
            if kind == "position"
            else table.write_equality_deletes([{"id": 1}], ["id"])
        )
        table.commit(deletes)
        path = Path(deletes.file_path.removeprefix("file://"))
        path.unlink()
        with pytest.raises(Exception, match=path.name):
            scan_table(table.load()).to_spark(spark).count()
        assert number < 2


def test_positions_of_unknown_files_delete_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    file = table.write_data(rows_of(random.Random(1), 20, 0))
    table.commit(file)
    table.commit(table.write_position_deletes({"file:///elsewhere/x.parquet": [1, 2], file.file_path: [3]}))
    assert len(check_deletes(spark, table)) == 19
