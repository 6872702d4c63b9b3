"""A manifest may be wrong about a file's size. Spark cuts files by it: rows are right all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.lake.scan import Scan, scan_table
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from tests.spark.read_cases import local_table, read_files
from tests.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
ROWS = [{"id": at, "name": f"n{at * 7919}"} for at in range(4000)]
ELSEWHERE = "viewfs://sizes/t"
"""The table's folder under another scheme: to frazil and Spark, a file system that is not this machine's."""


@pytest.fixture(params=["local", "elsewhere"])
def place(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """Where files are: here, or where looking at each would be a request."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.sizes.link./t", f"file://{tmp_path}/t")
    settings.setBoolean("fs.viewfs.impl.disable.cache", True)
    return str(request.param)


def put(table: TableBuilder, place: str, *files: DataFile, **sizes: int) -> LoadedTable:
    """Commit files under the paths that a place knows them by, and return the table there."""
    there = [replace(one, file_path=moved(table, place, one.file_path), **sizes) for one in files]  # type: ignore[arg-type]
    table.commit(*there)
    loaded = table.load()
    if place == "local":
        return loaded
    return replace(loaded, metadata=replace(loaded.metadata, location=ELSEWHERE))


def moved(table: TableBuilder, place: str, path: str) -> str:
    return path if place == "local" else path.replace(table.metadata.location, ELSEWHERE)


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[None]:
    """Files are cut into many parts."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    for name in names:
        spark.conf.set(name, "3000")
    yield
    for name in names:
        spark.conf.unset(name)


def rows_of(scan: Scan, spark: SparkSession) -> list[dict[str, Any]]:
    return [one.asDict() for one in scan.to_spark(spark).orderBy("id").collect()]


WRONG: list[Callable[[int], int]] = [lambda _: 0, lambda size: size // 3, lambda size: size * 3]


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_are_right_whatever_the_manifest_says_of_sizes(
    spark: SparkSession, tmp_path: Path, place: str, file_format: str, wrong: Callable[[int], int]
) -> None:
    table = local_table(tmp_path, SCHEMA, format_version=1)
    cut: dict[str, Any] = {"row_group_size": 300} if file_format == "parquet" else {}
    file = table.write_data(ROWS, file_format=file_format, **cut)
    loaded = put(table, place, file, file_size_in_bytes=wrong(file.file_size_in_bytes))
    scan = scan_table(loaded)
    assert len(read_files(scan.to_spark(spark))) > 2, "the file is not cut"
    assert rows_of(scan, spark) == ROWS
    if file_format == "parquet":
        assert scan_table(loaded, columns=["id", "_pos"]).to_spark(spark).filter("id = _pos").count() == len(ROWS)


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_deletes_apply_whatever_the_manifest_says_of_sizes(
    spark: SparkSession, tmp_path: Path, place: str, kind: str
) -> None:
    table = local_table(tmp_path, SCHEMA)
    data = table.write_data(ROWS)
    put(table, place, data)
    if kind == "position":
        deletes = table.write_position_deletes({moved(table, place, data.file_path): range(100)})
        place = "local"  # deletes by position are read here, not by Spark
    else:
        deletes = table.write_equality_deletes([{"id": at} for at in range(100)], [1])
    loaded = put(table, place, deletes, file_size_in_bytes=1)
    assert rows_of(scan_table(loaded), spark) == ROWS[100:]


def test_planning_asks_only_for_sizes_that_are_in_doubt(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    file = table.write_data(ROWS)
    columns = {1: file.file_size_in_bytes // 3, 2: file.file_size_in_bytes // 3}
    gone = replace(file, file_path=f"{ELSEWHERE}/gone.parquet", column_sizes=columns)
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.sizes.link./t", f"file://{tmp_path}/t")
    loaded = put(table, "elsewhere", gone)
    assert read_files(scan_table(loaded).to_spark(spark)) == ["gone.parquet"]
    loaded = put(table, "elsewhere", replace(gone, file_path=f"{ELSEWHERE}/lost.parquet"), file_size_in_bytes=99)
    with pytest.raises(Exception, match=r"lost\.parquet: there is no such file"):
        read_files(scan_table(loaded).to_spark(spark))


def test_a_file_that_is_empty_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    (file,) = table.append(ROWS)
    Path(file.file_path.removeprefix("file://")).write_bytes(b"")
    with pytest.raises(Exception, match="it is empty"):
        scan_table(table.load()).to_spark(spark).count()
