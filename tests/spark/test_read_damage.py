from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.errors import FieldNotFoundError, InvalidDataFileError, MissingFileError
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.table.scan import scan_table
from tests.spark.read_cases import check_table, local_table, read_files
from tests.spark.settings import settings

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
ROWS = [{"id": at, "name": f"n{random.Random(at).random()}"} for at in range(500)]


def test_file_deleted_after_planning_is_reported_with_table_and_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path / "a folder", SCHEMA)
    file = table.write_data(ROWS)
    table.commit(file)
    frame = scan_table(table.load()).to_spark(spark)
    assert len(read_files(frame)) == 1
    Path(file.file_path.removeprefix("file://")).unlink()
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        with pytest.raises(Exception, match=r"table=db\.t&snapshot=1"):
            frame.collect()
        with pytest.raises(MissingFileError, match="there is no such file") as caught, engine_errors("read"):
            frame.collect()
    assert caught.value.context == {"table": "db.t", "snapshot": "1"}
    assert file.file_path.removeprefix("file://") in caught.value.message
    assert "check()" in str(caught.value.hint)


def test_frazil_call_reports_the_bad_file_and_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    file = table.write_data(ROWS)
    table.commit(file)
    path = Path(file.file_path.removeprefix("file://"))
    path.write_bytes(b"x" * path.stat().st_size)
    frame = scan_table(table.load()).to_spark(spark)
    with pytest.raises(InvalidDataFileError, match="not a Parquet file") as caught, engine_errors("read"):
        frame.collect()
    assert path.name in caught.value.message
    assert caught.value.context["snapshot"] == "1"


@pytest.mark.parametrize("file_format", ["avro", "orc"])
@pytest.mark.parametrize("damage", ["missing", "garbage"])
def test_bad_file_read_in_python_is_reported_with_table_and_snapshot(
    spark: SparkSession, tmp_path: Path, file_format: str, damage: str
) -> None:
    table = local_table(tmp_path, SCHEMA)
    file = table.write_data(ROWS, file_format=file_format)
    table.commit(file)
    path = Path(file.file_path.removeprefix("file://"))
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"x" * path.stat().st_size)
    frame = scan_table(table.load(), columns=["id", "_pos"]).to_spark(spark)
    with pytest.raises(Exception, match="Cannot") as there:
        frame.collect()
    with (
        pytest.raises(MissingFileError if damage == "missing" else InvalidDataFileError) as here,
        engine_errors("read"),
    ):
        frame.collect()
    for text in (str(there.value), str(here.value)):
        assert path.name in text
        assert "table: db.t" in text
        assert "snapshot: 1" in text
        assert "check() lists" in text


def test_snapshot_expired_before_execution_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    table.append(ROWS)
    frame = scan_table(table.load()).to_spark(spark)
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(Exception, match="create the DataFrame again") as caught:
        frame.filter("id = 7").count()
    assert "table: db.t" in str(caught.value)
    assert "snapshot: 1" in str(caught.value)


def test_deletes_for_another_file_than_recorded_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    file = table.write_data(ROWS)
    table.commit(file)
    deletes = table.write_position_deletes({"file:///elsewhere/x.parquet": [1, 2]})
    table.commit(replace(deletes, referenced_data_file=file.file_path, lower_bounds={}, upper_bounds={}))
    scan = scan_table(table.load())
    with pytest.raises(InvalidDataFileError, match="elsewhere") as here:
        scan.to_arrow()
    assert "another table" in str(here.value.hint)
    with pytest.raises(Exception, match="elsewhere") as there:
        scan.to_spark(spark).count()
    for text in (deletes.file_path.rsplit("/", 1)[-1], "table: db.t", "snapshot: 2", "Hint:"):
        assert text in str(there.value)


def test_dropped_column_is_reported_with_table_and_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    table.append(ROWS)
    table.update_schema(lambda update: update.drop_column("name"))
    for predicate, columns in (("name = 'x'", None), (None, ["name"])):
        with pytest.raises(FieldNotFoundError, match="name") as caught:
            scan_table(table.load(), predicate, columns=columns).to_spark(spark)
        assert "table: db.t" in str(caught.value)
        assert "snapshot: 1" in str(caught.value)
    with pytest.raises(Exception, match="name"):
        scan_table(table.load()).to_spark(spark).filter("name = 'x'")


def test_internal_path_marker_appears_only_in_errors(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    table.append(ROWS)
    check_table(spark, table, "id = 3", columns=["id", "_file"])
    frame = scan_table(table.load()).to_spark(spark)
    assert "#" not in "".join(frame.inputFiles())
