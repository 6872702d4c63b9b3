"""What a service is told of scans and commits, and keeps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa

import frazil
from tests.support.served_lake import served


def test_server_stores_scan_and_commit_reports_of_clients(tmp_path: Path) -> None:
    with served(tmp_path / "w", state=tmp_path / "serve.db") as server:
        with frazil.connect(server.uri) as lake:
            table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
            for kind in ("a", "b"):
                table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "kind": [kind, kind]}))
            scan = table.scan("kind = 'b' and id in (77777, 1)")
            assert scan.count() == 1
            pickle.dumps(scan.plan().loaded)
        kept = list(reversed(server.service.state.reports(("db", "t"))))
    commits = [one for one in kept if one["report-type"] == "commit-report"]
    assert [one["metrics"]["added-records"]["value"] for one in commits] == [2, 2]
    scans = [one for one in kept if one["report-type"] == "scan-report"]
    assert len(scans) == 1
    found = {name: one["value"] for name, one in scans[0]["metrics"].items()}
    assert (found["result-data-files"], found["total-data-manifests"], found["skipped-data-manifests"]) == (1, 2, 1)
    assert scans[0]["projected-field-names"] == ["id", "kind"]
    assert scans[0]["snapshot-id"] == commits[-1]["snapshot-id"]
    assert "77777" not in json.dumps(scans[0]["filter"])
    assert "(5-digit-int)" in json.dumps(scans[0]["filter"])


def test_reports_can_be_disabled(tmp_path: Path) -> None:
    with served(tmp_path / "w", state=tmp_path / "serve.db") as server:
        off = {"rest-metrics-reporting-enabled": "false"}
        with frazil.connect(server.uri, properties=off) as lake:
            lake.create_table("db.t", "id bigint").append(pa.table({"id": pa.array([1], pa.int64())}))
            assert lake.table("db.t").scan().count() == 1
        assert server.service.state.reports(("db", "t")) == []
