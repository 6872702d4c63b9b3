"""A lake in an object store: commits race, answers are lost, and every row that was acknowledged is there once."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.storage.choose import choose_storage
from frazil.table.lake import Lake
from tests.support.s3_server import BUCKET, Planned, S3Server


def test_racing_commits_with_lost_responses_are_all_counted(s3_server: S3Server) -> None:
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


@pytest.mark.parametrize("catalog", ["sqlite", "filesystem"])
def test_lake_in_an_s3_bucket_works_like_a_local_one(s3_server: S3Server, tmp_path: Path, catalog: str) -> None:
    warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    uri = f"sqlite:///{tmp_path}/catalog.db" if catalog == "sqlite" else catalog
    with frazil.connect(warehouse, catalog=uri, properties=s3_server.properties) as lake:
        table = lake.create_table(
            "db.t", "id bigint not null, kind string", partition_by=["kind"], format_version=3, sort_by=["id desc"]
        )
        assert table.location.startswith(warehouse)
        for start in (0, 100):
            data = pa.table({"id": range(start, start + 100), "kind": ["a", "b"] * 50})
            table.append(data, snapshot_properties={"job": "nightly"})
        assert table.scan("id >= 50 and kind = 'a'").count() == 75
        assert table.scan(columns=["id"], limit=3).to_arrow().num_rows == 3
        table.delete("kind = 'b'")
        table.create_tag("cleaned")
        table.overwrite_partitions(pa.table({"id": [7], "kind": ["a"]}))
        assert table.scan().to_arrow().to_pylist() == [{"id": 7, "kind": "a"}]
        assert table.scan(ref="cleaned").count() == 100
        report = table.check(bounds=True)
        assert report.ok, str(report)
        assert report.facts["data_files"] == 5
        missing = next(iter(table.scan(ref="cleaned").plan().tasks)).data_file.file_path
        choose_storage(s3_server.properties).delete(missing)
        assert [(one.kind, one.path) for one in table.check()] == [("missing-file", missing)]
        table.drop_tag("cleaned")
        expired = table.expire_snapshots(older_than=2**62)
        assert len(expired.data_files) == 4, "one that is gone already is deleted too"
        assert table.check(bounds=True).ok
    with frazil.connect(warehouse, catalog=uri, properties=s3_server.properties) as again:
        assert again.table("db.t").scan().count() == 1
        again.drop_table("db.t", purge=True)
        assert not any(one.path.endswith(".parquet") for one in choose_storage(s3_server.properties).list(warehouse))


def test_table_in_a_bucket_can_be_registered_in_a_local_warehouse(s3_server: S3Server, tmp_path: Path) -> None:
    properties = s3_server.properties
    with frazil.connect(f"s3://{BUCKET}/{uuid.uuid4().hex}", catalog="filesystem", properties=properties) as far:
        table = far.create_table("db.t", "id bigint")
        table.append(pa.table({"id": [1, 2, 3]}))
        location = table.metadata_location
    assert location is not None
    with frazil.connect(tmp_path / "wh", properties=properties) as lake:
        lake.create_namespace("db")
        near = lake.register_table("db.t", location.replace("s3://", "s3a://"))
        assert near.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
        assert near.check(bounds=True).ok
