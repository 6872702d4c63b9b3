"""OpenLineage events: what is told of verbs and reads, and that nothing goes wrong where they cannot be sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidRequestError

pytest.importorskip("openlineage.client", reason="openlineage-python is an extra")


class Told:
    """The events of a lake, in a file."""

    def __init__(self, lake: frazil.Lake, path: Path) -> None:
        self.lake = lake
        self.path = path

    def events(self) -> list[dict[str, Any]]:
        """Return the events so far, and forget them."""
        self.lake.catalog.lineage.flush()
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.path.unlink(missing_ok=True)
        return [json.loads(one) for one in lines]

    def last(self) -> dict[str, Any]:
        """Return the event that ends the one run there was."""
        start, end = self.events()
        assert start["eventType"] == "START"
        assert (start["run"]["runId"], start["job"]) == (end["run"]["runId"], end["job"])
        return end


def use_file(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    use_file(monkeypatch, tmp_path / "events.json")
    properties = {"openlineage.enabled": "true", "openlineage.job-namespace": "team", "openlineage.job-name": "night"}
    properties["openlineage.parent"] = "airflow/dag.task/3f1c2f1e-5a0a-4a2a-8d42-0f1f4b7f6f10"
    with frazil.connect(tmp_path / "lake", properties=properties) as lake:
        lake.create_table("db.t", "id bigint, kind string")
        yield Told(lake, tmp_path / "events.json")
        lake.catalog.lineage.flush(60)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": ["a"] * len(ids)})


def test_write_is_reported_with_its_snapshot(told: Told) -> None:
    table = told.lake.table("db.t")
    made = table.append(rows(1, 2, 3))
    assert made is not None
    event = told.last()
    assert (event["eventType"], event["job"]) == (
        *("COMPLETE",),
        {"namespace": "team", "name": "night.append.db.t", "facets": {}},
    )
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("file", table.location.removeprefix("file://"))
    facets = output["facets"]
    assert [(one["name"], one["type"]) for one in facets["schema"]["fields"]] == [("id", "long"), ("kind", "string")]
    assert facets["version"]["datasetVersion"] == str(made.snapshot_id)
    assert facets["symlinks"]["identifiers"][0]["name"] == "db.t"
    counts = output["outputFacets"]["outputStatistics"]
    assert (counts["rowCount"], counts["fileCount"]) == (3, 1)
    assert event["inputs"] == []


@pytest.mark.parametrize(
    "verb", ["delete", "update", "upsert", "merge", "overwrite", "overwrite_partitions", "transaction", "once"]
)
def test_every_verb_is_one_run(told: Told, verb: str) -> None:
    table = told.lake.table("db.t")
    table.append(rows(1, 2, 3))
    told.events()
    if verb == "delete":
        table.delete("id = 1")
    elif verb == "update":
        table.update({"kind": "'b'"}, where="id = 1")
    elif verb == "upsert":
        table.upsert(rows(3, 4), ["id"])
    elif verb == "merge":
        table.merge(rows(3, 4), "target.id = source.id").when_not_matched().insert_all().execute()
    elif verb == "transaction":
        with table.transaction() as changes:
            changes.append(rows(7))
            changes.append(rows(8))
    elif verb == "once":
        table.append(rows(9), once=("night", 1))
    else:
        getattr(table, verb)(rows(5))
    event = told.last()
    assert event["eventType"] == "COMPLETE"
    assert event["job"]["name"] == f"night.{'append' if verb == 'once' else verb}.db.t"
    reads = verb in ("delete", "update", "upsert", "merge")
    assert [one["name"] for one in event["inputs"]] == ([one["name"] for one in event["outputs"]] if reads else [])
    (output,) = event["outputs"]
    current = table.refresh().current_snapshot
    assert current is not None
    assert output["facets"]["version"]["datasetVersion"] == str(current.snapshot_id)


def test_read_is_reported_with_its_snapshot(told: Told) -> None:
    table = told.lake.table("db.t")
    made = table.append(rows(1, 2, 3))
    assert made is not None
    told.events()
    assert table.scan("id > 1").count() == 2
    told.events()
    table.scan("id > 1").to_arrow()
    event = told.last()
    assert event["job"]["name"] == "night.scan.db.t"
    (given,) = event["inputs"]
    assert given["facets"]["version"]["datasetVersion"] == str(made.snapshot_id)
    assert given["inputFacets"]["inputStatistics"]["rowCount"] == 3
    assert event["outputs"] == []


def test_failed_write_is_reported_with_its_error(told: Told) -> None:
    with pytest.raises(FrazilError):
        told.lake.table("db.t").append(pa.table({"other": [1]}))
    event = told.last()
    assert event["eventType"] == "FAIL"
    assert "other" in event["run"]["facets"]["errorMessage"]["message"]
    assert event["run"]["facets"]["parent"]["job"]["name"] == "dag.task"
    with pytest.raises(ZeroDivisionError), told.lake.transaction() as changes:
        changes.table("db.t").append(rows(1))
        raise ZeroDivisionError
    assert told.last()["eventType"] == "FAIL"
    assert told.lake.table("db.t").scan().count() == 0


def test_nothing_is_reported_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_file(monkeypatch, tmp_path / "events.json")
    with frazil.connect(tmp_path / "lake") as lake:
        assert lake.catalog.lineage is None
        lake.create_table("db.t", "id bigint, kind string").append(rows(1))
    assert not (tmp_path / "events.json").exists()
    with pytest.raises(InvalidRequestError, match="it is true or false"):
        frazil.connect(tmp_path / "lake", properties={"openlineage.enabled": "yes"})
    with pytest.raises(InvalidRequestError, match="it is namespace/job/run"):
        frazil.connect(tmp_path / "lake", properties={"openlineage.parent": "dag"})


def test_failing_transport_stops_no_write_and_is_reported_once(told: Told, recwarn: pytest.WarningsRecorder) -> None:
    lineage = told.lake.catalog.lineage
    has_ended = threading.Event()

    class Broken:
        def emit(self, event: object) -> None:
            has_ended.wait(60)
            raise ConnectionError("nobody listens")

    lineage._client = Broken()
    for one in range(3):
        told.lake.table("db.t").append(rows(one))
    assert told.lake.table("db.t").scan().count() == 3
    has_ended.set()
    lineage.flush(60)
    lost = [one for one in recwarn if "OpenLineage events are lost" in str(one.message)]
    assert len(lost) == 1
