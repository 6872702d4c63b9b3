"""A manifest may be wrong about a file's size. Spark cuts files by it: rows are right all the same.

They are without a request for each file: planning names files and looks at none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.codec.name_mapping_json import encode_name_mapping
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, NestedField
from frazil.table.scan import Scan, scan_table
from tests.spark.compiled_java import compiled_class
from tests.spark.read_cases import file_scans, local_table, read_files
from tests.support.tables import TableBuilder

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


def put(table: TableBuilder, place: str, *files: DataFile, **sizes: Any) -> LoadedTable:
    """Commit files under the paths that a place knows them by, and return the table there."""
    there = [replace(one, file_path=moved(table, place, one.file_path), **sizes) for one in files]
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
def test_rows_are_correct_whatever_file_sizes_the_manifest_records(
    spark: SparkSession, tmp_path: Path, place: str, file_format: str, wrong: Callable[[int], int]
) -> None:
    table = local_table(tmp_path, SCHEMA, format_version=1)
    cut: dict[str, Any] = {"row_group_size": 300} if file_format == "parquet" else {}
    file = table.write_data(ROWS, file_format=file_format, **cut)
    loaded = put(table, place, file, file_size_in_bytes=wrong(file.file_size_in_bytes))
    scan = scan_table(loaded)
    assert (wrong is WRONG[0] and place != "local") or len(read_files(scan.to_spark(spark))) > 2, "the file is not cut"
    assert rows_of(scan, spark) == ROWS
    if file_format == "parquet":
        assert scan_table(loaded, columns=["id", "_pos"]).to_spark(spark).filter("id = _pos").count() == len(ROWS)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["position", "equality"])
def test_deletes_apply_whatever_file_sizes_the_manifest_records(
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


COUNTED = """
public class CountedFiles extends org.apache.hadoop.fs.RawLocalFileSystem {
  private final java.util.concurrent.atomic.AtomicLong asked = new java.util.concurrent.atomic.AtomicLong();
  public java.net.URI getUri() { return java.net.URI.create("counted:///"); }
  public long asked() { return asked.get(); }
  public org.apache.hadoop.fs.FileStatus getFileStatus(org.apache.hadoop.fs.Path path) throws java.io.IOException {
    asked.incrementAndGet();
    return super.getFileStatus(path);
  }
}
"""


@pytest.fixture
def counted(spark: SparkSession) -> Any:
    """A file system that counts who looks at a file: local ones, as `counted:/...`."""
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    made = (
        compiled_class(spark, COUNTED, "CountedFiles")
        .getConstructors()[0]
        .newInstance(jvm.java.util.ArrayList().toArray())
    )
    uri = jvm.java.net.URI.create("counted:///")
    made.initialize(uri, settings)
    kinds = gateway.new_array(jvm.java.lang.Class, 3)
    for at, name in enumerate(
        ("java.net.URI", "org.apache.hadoop.conf.Configuration", "org.apache.hadoop.fs.FileSystem")
    ):
        kinds[at] = jvm.java.lang.Class.forName(name)
    # Executors of this process find it where file systems are kept, and need not load it.
    keep = kinds[2].getDeclaredMethod("addFileSystemForTesting", kinds)
    keep.setAccessible(True)
    given = jvm.java.util.ArrayList()
    for one in (uri, settings, made):
        given.add(one)
    keep.invoke(None, given.toArray())
    return made


@pytest.mark.parametrize("metrics", ["with_column_sizes", "without_column_sizes"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_planning_opens_no_data_file(
    spark: SparkSession, tmp_path: Path, counted: Any, file_format: str, metrics: str
) -> None:
    table = local_table(tmp_path, SCHEMA)
    files = [table.write_data(ROWS[at : at + 40], file_format=file_format) for at in range(0, 400, 40)]
    sizes = {1: 100, 2: 100} if metrics == "with_column_sizes" else None
    files = [replace(one, column_sizes=sizes, file_size_in_bytes=one.file_size_in_bytes // 2) for one in files]
    location = table.metadata.location.replace("file://", "counted://")
    table.commit(*(replace(one, file_path=one.file_path.replace("file://", "counted://")) for one in files))
    loaded = replace(table.load(), metadata=replace(table.metadata, location=location))
    frame = scan_table(loaded).to_spark(spark)
    assert len(read_files(frame)) == len(files)
    assert len(frame.inputFiles()) == len(files)
    assert counted.asked() == 0
    assert rows_of(scan_table(loaded), spark) == ROWS[:400]
    assert counted.asked() > 0


@pytest.mark.extended
def test_rows_are_correct_in_a_session_with_only_a_view_of_a_frame(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    table = local_table(tmp_path, SCHEMA)
    loaded = put(table, place, table.write_data(ROWS, row_group_size=300), file_size_in_bytes=99)
    scan_table(loaded).to_spark(spark).createOrReplaceGlobalTempView("wrong_sizes")
    try:
        found = spark.newSession().table("global_temp.wrong_sizes")
        assert not list(file_scans(found)), "the session plans scans of whole files"
        assert [one.asDict() for one in found.orderBy("id").collect()] == ROWS
    finally:
        spark.catalog.dropGlobalTempView("wrong_sizes")


def test_files_without_ids_are_read_by_name_whatever_sizes_are_recorded(spark: SparkSession, tmp_path: Path) -> None:
    mapping = encode_name_mapping(create_name_mapping(SCHEMA))
    table = local_table(tmp_path, SCHEMA, properties={"schema.name-mapping.default": mapping})
    files = [table.write_data(ROWS[:2000], with_ids=False), table.write_data(ROWS[2000:])]
    loaded = put(table, "local", *files, file_size_in_bytes=99, column_sizes=None)
    assert rows_of(scan_table(loaded), spark) == ROWS


@pytest.mark.extended
def test_absurd_recorded_size_costs_little(spark: SparkSession, tmp_path: Path, place: str) -> None:
    table = local_table(tmp_path, SCHEMA)
    loaded = put(table, place, table.write_data(ROWS), file_size_in_bytes=1 << 62)
    frame = scan_table(loaded).to_spark(spark)
    assert len(read_files(frame)) <= 128
    assert frame.count() == len(ROWS)


def test_empty_file_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, SCHEMA)
    (file,) = table.append(ROWS)
    Path(file.file_path.removeprefix("file://")).write_bytes(b"")
    with pytest.raises(Exception, match="it is empty"):
        scan_table(table.load()).to_spark(spark).count()
