"""Spark opens what it is given: no path outside `read.roots`, and none of a scheme that nobody named, reaches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.commit.append import Append
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.errors import FrazilError
from frazil.spec.data_file import DataFile, FileContent, FileFormat

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
WITH_IDS = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


@contextmanager
def fenced(tmp_path: Path, **properties: str) -> Iterator[frazil.Lake]:
    """Open a lake that may read its warehouse and one folder more."""
    roots = {"read.roots": str(tmp_path / "allowed"), **properties}
    with frazil.connect(tmp_path / "lake", properties=roots) as lake:
        yield lake


def make(tmp_path: Path, name: Callable[[Path], str], *, as_deletes: bool = False) -> None:
    """Make a table, without any fence, that names a file; `name` says how the file outside is named."""
    outside = tmp_path / "outside" / "f.parquet"
    outside.parent.mkdir()
    pq.write_table(ROWS.cast(WITH_IDS), outside)
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ROWS.schema)
        table.append(ROWS)
        content = FileContent.EQUALITY_DELETES if as_deletes else FileContent.DATA
        ids = (1,) if as_deletes else None
        size = outside.stat().st_size
        file = DataFile(name(outside), FileFormat.PARQUET, 3, size, content=content, equality_ids=ids)
        action = RowDelta((file,), None) if as_deletes else Append((file,))
        commit_actions(lake._catalog, table.state, action)


def linked_file(outside: Path) -> str:
    link = outside.parents[1] / "lake" / "db" / "t" / "data" / "link.parquet"
    link.symlink_to(outside)
    return str(link)


def linked_folder(outside: Path) -> str:
    link = outside.parents[1] / "lake" / "db" / "t" / "data" / "alias"
    link.symlink_to(outside.parent)
    return f"file://{link}/f.parquet"


@pytest.mark.parametrize("as_deletes", [False, True], ids=["data", "deletes"])
@pytest.mark.parametrize("name", [str, lambda one: f"file:{one}", linked_file, linked_folder])
def test_file_outside_the_roots_is_not_passed_to_spark(
    spark: SparkSession, tmp_path: Path, name: Callable[[Path], str], as_deletes: bool
) -> None:
    make(tmp_path, name, as_deletes=as_deletes)
    with fenced(tmp_path) as lake, pytest.raises(FrazilError, match="outside the folders that may be read"):
        lake.table("db.t").scan().to_spark(spark).collect()
    if name in (linked_file, linked_folder):
        # A link must stay inside the root that it is in, whatever other roots there are.
        return
    with fenced(tmp_path, **{"read.roots": str(tmp_path / "outside")}) as lake:
        assert lake.table("db.t").scan().to_spark(spark).count() == (0 if as_deletes else 6)


@pytest.mark.parametrize("as_deletes", [False, True], ids=["data", "deletes"])
def test_server_named_by_metadata_receives_no_request(spark: SparkSession, tmp_path: Path, as_deletes: bool) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/latest/meta-data/x.parquet"
        make(tmp_path, lambda _: address, as_deletes=as_deletes)
        with frazil.connect(tmp_path / "lake") as lake, pytest.raises(FrazilError, match="a http: location"):
            lake.table("db.t").scan().to_spark(spark).collect()
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []


@pytest.mark.extended
def test_spark_writes_nothing_outside_the_roots(spark: SparkSession, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", ROWS.schema, properties={"write.data.path": str(tmp_path / "outside")})
    with fenced(tmp_path) as lake:
        frame = spark.createDataFrame([(1,)], "id bigint")
        with pytest.raises(FrazilError, match="outside the folders that may be read"):
            lake.table("db.t").append(frame)
    assert not (tmp_path / "outside").exists()
