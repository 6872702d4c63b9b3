"""Maintenance of a service's tables, of a service that does not say where its warehouse is."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

import frazil
from tests.support.served_lake import served


def test_tables_of_a_rest_catalog_are_maintained_like_others(tmp_path: Path) -> None:
    with served(tmp_path / "w") as server, frazil.connect(server.uri) as lake:
        table = lake.create_table("db.t", "id bigint")
        for at in range(3):
            table.append(pa.table({"id": pa.array([at], pa.int64())}))
        stray = Path(table.location.removeprefix("file://")) / "data" / "stray.parquet"
        stray.write_bytes(b"left behind")
        os.utime(stray, (1_500_000_000, 1_500_000_000))
        found = table.maintain.remove_orphan_files(dry_run=True)
        assert [one.rpartition("/")[2] for one in found.orphan_file_locations] == ["stray.parquet"]
        assert stray.exists()
        table.maintain.rewrite_data_files(options={"rewrite-all": "true"})
        table.maintain.rewrite_manifests()
        table.expire_snapshots(retain_last=1, older_than="2100-01-01T00:00:00Z")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
        assert table.check(bounds=True).ok
