"""A lake in an object store: commits race, answers are lost, and every row that was acknowledged is there once."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.lake.lake import Lake
from frazil.storage.choose import choose_storage
from tests.s3_server import BUCKET, Planned, S3Server


def test_commits_that_race_while_answers_are_lost_all_count_once(s3_server: S3Server) -> None:
    warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def lake() -> Lake:
        return Lake(FilesystemCatalog("lake", warehouse, choose_storage(s3_server.properties)))

    lake().create_namespace("db")
    lake().create_table("db.t", pa.schema([("id", pa.int64())]))
    s3_server.plan(
        Planned("lose", method="PUT", text="metadata.json", times=2),
        Planned("twice", method="PUT", text="metadata.json", times=2),
        Planned("error", method="PUT", status=409, code="ConditionalRequestConflict", times=2),
        Planned("error", method="GET", status=503, times=2),
    )

    def write(writer: int) -> None:
        table = lake().table("db.t")
        for at in range(3):
            table.append(pa.table({"id": [writer * 10 + at]}))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    rows = lake().table("db.t").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == [0, 1, 2, 10, 11, 12]
