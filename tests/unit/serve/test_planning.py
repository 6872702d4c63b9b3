"""Scans that the server plans: the same files as a plan made here, at once or by tasks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors
from frazil.expr.predicates import TRUE
from frazil.serve import planning
from frazil.table.lake import Lake
from frazil.table.table import Table
from tests.support.served_lake import Served, table_path


def make(server: Served, db: str, files: int = 4, **options: Any) -> Table:
    lake = Lake(server.catalog)
    table = lake.create_table((db, "t"), "id bigint, kind string", **options)
    for at in range(files):
        table.append(pa.table({"id": pa.array([at * 10, at * 10 + 1], pa.int64()), "kind": [f"k{at}", f"k{at}"]}))
    return table


def delete_first_rows(table: Table, count: int) -> None:
    """Delete the first row of some files, by deletion vectors."""
    loaded = table.state
    files = [one.data_file for one in table.scan().plan().tasks][:count]
    vectors = write_deletion_vectors([DeletedRows.of(one, [0]) for one in files], loaded)
    assert loaded.metadata.current_snapshot is not None
    read = ReadSet(loaded.metadata.current_snapshot.snapshot_id, TRUE)
    commit_actions(table._catalog, loaded, RowDelta(tuple(vectors), read, "delete", tuple(files)))


def paths_of(tasks: list[dict[str, Any]]) -> set[str]:
    return {one["data-file"]["file-path"] for one in tasks}


def planned(table: Table, condition: str = "true", **choice: Any) -> set[str]:
    return {one.data_file.file_path for one in table.scan(condition, **choice).plan().tasks}


def test_small_plan_is_returned_at_once(server: Served, db: str) -> None:
    table = make(server, db, partition_by=["kind"])
    plan = server.post(f"{table_path('t', db)}/plan", {}).json
    assert plan["status"] == "completed"
    assert "plan-tasks" not in plan
    assert paths_of(plan["file-scan-tasks"]) == planned(table)
    file = plan["file-scan-tasks"][0]["data-file"]
    assert (file["content"], file["file-format"], file["record-count"], file["spec-id"]) == ("data", "parquet", 2, 0)
    assert file["partition"][0].startswith("k")
    assert "lower-bounds" not in file


def test_filters_prune_and_leave_a_residual(server: Served, db: str) -> None:
    table = make(server, db, partition_by=["kind"])
    path = f"{table_path('t', db)}/plan"
    given: list[Any] = [
        {
            "type": "and",
            "left": {"type": "eq", "term": "kind", "value": "k1"},
            "right": {"type": "gt", "term": "id", "value": 10},
        },
        {
            "type": "and",
            "left": {"type": "eq", "left": {"type": "reference", "name": "kind"}, "right": "k1"},
            "right": {"type": "gt", "left": {"type": "reference", "name": "id"}, "right": 10},
        },
    ]
    for one in given:
        (task,) = server.post(path, {"filter": one}).json["file-scan-tasks"]
        assert task["data-file"]["file-path"] in planned(table, "kind = 'k1' and id > 10")
        assert task["residual-filter"] == {"type": "gt", "term": "id", "value": 10}
    folded = {"type": "eq", "term": "KIND", "value": "k1"}
    assert server.post(path, {"filter": folded}).code == 400
    assert len(server.post(path, {"filter": folded, "case-sensitive": False}).json["file-scan-tasks"]) == 1


def test_snapshot_and_incremental_plans(server: Served, db: str) -> None:
    table = make(server, db)
    ids = [one.snapshot_id for one in table.snapshots]
    path = f"{table_path('t', db)}/plan"
    old = server.post(path, {"snapshot-id": ids[0], "use-snapshot-schema": True}).json
    assert paths_of(old["file-scan-tasks"]) == planned(table, snapshot_id=ids[0])
    between = server.post(path, {"start-snapshot-id": ids[0], "end-snapshot-id": ids[2]}).json
    assert len(between["file-scan-tasks"]) == 2
    bad: list[Any] = [
        {"snapshot-id": 7},
        {"snapshot-id": ids[0], "end-snapshot-id": ids[1]},
        {"start-snapshot-id": ids[0]},
        {"select": ["none"]},
        {"filter": {"type": "fly"}},
        {"filter": {"type": "eq", "term": "none", "value": 1}},
        {"filter": 7},
        {"stats-fields": "id"},
    ]
    for body in bad:
        refused = server.post(path, body)
        assert (refused.code, refused.error) == (400, "BadRequestException"), body


def test_deletes_are_referenced_by_index_and_sent_once(server: Served, db: str) -> None:
    table = make(server, db, format_version=3)
    delete_first_rows(table, 2)
    plan = server.post(f"{table_path('t', db)}/plan", {}).json
    deleted = [one for one in plan["file-scan-tasks"] if "delete-file-references" in one]
    assert len(deleted) == 2
    for task in deleted:
        (number,) = task["delete-file-references"]
        vector = plan["delete-files"][number]
        assert (vector["content"], vector["file-format"]) == ("position-deletes", "puffin")
        assert vector["referenced-data-file"] == task["data-file"]["file-path"]
        assert vector["content-size-in-bytes"] > 0
    clean = server.post(f"{table_path('t', db)}/plan", {"filter": {"type": "lt", "term": "id", "value": 5}}).json
    assert "delete-files" not in clean


def test_metrics_are_sent_for_requested_columns(server: Served, db: str) -> None:
    make(server, db, 1)
    plan = server.post(f"{table_path('t', db)}/plan", {"stats-fields": ["id"]}).json
    file = plan["file-scan-tasks"][0]["data-file"]
    assert file["lower-bounds"] == {"keys": [1], "values": ["0000000000000000"]}
    assert file["value-counts"] == {"keys": [1], "values": [2]}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_are_the_same_with_and_without_metrics(server: Served, db: str, version: int) -> None:
    make(server, db, 3, partition_by=["kind", "bucket(4, id)"], sort_by=["id"], format_version=version)
    path = f"{table_path('t', db)}/plan"
    plain = [one["data-file"] for one in server.post(path, {}).json["file-scan-tasks"]]
    full = [one["data-file"] for one in server.post(path, {"stats-fields": ["id"]}).json["file-scan-tasks"]]
    assert [{name: one[name] for name in plain[0]} for one in full] == plain
    assert plain[0]["split-offsets"]
    assert ("first-row-id" in plain[0]) == (version == 3)


def test_large_plan_is_returned_by_tasks(server: Served, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(server, db, 5, properties={"commit.manifest-merge.enabled": "false"})
    monkeypatch.setattr(planning, "FILES_AT_ONCE", 2)
    monkeypatch.setattr(planning, "FILES_IN_TASK", 2)
    path = table_path("t", db)
    plan = server.post(f"{path}/plan", {}).json
    assert (len(plan["plan-tasks"]), "file-scan-tasks" in plan) == (3, False)
    again = server.get(f"{path}/plan/{plan['plan-id']}").json
    assert again["plan-tasks"] == plan["plan-tasks"]
    found: list[dict[str, Any]] = []
    for one in reversed(plan["plan-tasks"]):
        found += server.post(f"{path}/tasks", {"plan-task": one}).json["file-scan-tasks"]
    assert (len(found), paths_of(found)) == (5, planned(table))


@pytest.mark.parametrize("at_once", [0, 1, 3])
def test_few_matching_files_of_many_are_returned_at_once_and_others_by_tasks(
    server: Served, db: str, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    table = make(server, db, 5, properties={"commit.manifest-merge.enabled": "false"})
    monkeypatch.setattr(planning, "FILES_AT_ONCE", at_once)
    monkeypatch.setattr(planning, "FILES_IN_TASK", 1)
    path = table_path("t", db)
    plan = server.post(f"{path}/plan", {"filter": {"type": "gt-eq", "term": "id", "value": 20}}).json
    wanted = planned(table, "id >= 20")
    assert len(wanted) == 3
    now = plan.get("file-scan-tasks", [])
    assert len(now) == at_once
    assert server.get(f"{path}/plan/{plan['plan-id']}").json.get("file-scan-tasks", []) == now
    assert ("plan-tasks" in plan) == (at_once < 3)
    later = [
        file
        for task in plan.get("plan-tasks", [])
        for file in server.post(f"{path}/tasks", {"plan-task": task}).json["file-scan-tasks"]
    ]
    assert (len(now) + len(later), paths_of([*now, *later])) == (3, wanted)


def test_unknown_cancelled_and_foreign_plans_are_reported(
    server: Served, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(server, db, 3)
    server.make_table("other", db)
    monkeypatch.setattr(planning, "FILES_AT_ONCE", 0)
    path, other = table_path("t", db), table_path("other", db)
    plan = server.post(f"{path}/plan", {}).json
    plan_id, task = plan["plan-id"], plan["plan-tasks"][0]
    for body in ({"plan-task": "x"}, {"plan-task": f"{plan_id}.99"}, {"plan-task": f"{plan_id}.-1"}):
        refused = server.post(f"{path}/tasks", body)
        assert (refused.code, refused.error) == (404, "NoSuchPlanTaskException"), body
    assert server.post(f"{other}/tasks", {"plan-task": task}).error == "NoSuchPlanTaskException"
    assert server.get(f"{other}/plan/{plan_id}").error == "NoSuchPlanIdException"
    assert server.get(f"{table_path('none', db)}/plan/{plan_id}").error == "NoSuchTableException"
    assert server.ask("DELETE", f"{path}/plan/{plan_id}").code == 204
    assert server.ask("DELETE", f"{path}/plan/{plan_id}").error == "NoSuchPlanIdException"
    assert server.post(f"{path}/tasks", {"plan-task": task}).code == 404


def test_empty_table_has_no_tasks(server: Served, db: str) -> None:
    server.make_table("t", db)
    assert server.post(f"{table_path('t', db)}/plan", b"").json["file-scan-tasks"] == []
    assert server.post(f"{table_path('none', db)}/plan", {}).error == "NoSuchTableException"


def test_reports_are_stored_and_invalid_ones_refused(server: Served, db: str) -> None:
    server.make_table("t", db)
    path = f"{table_path('t', db)}/metrics"
    report = {"report-type": "commit-report", "table-name": "t", "snapshot-id": 1, "operation": "append", "metrics": {}}
    assert server.post(path, report).code == 204
    (kept,) = server.service.state.reports((db, "t"))
    assert kept["operation"] == "append"
    assert kept["received-ms"] > 0
    for bad in ({"report-type": "weather", "table-name": "t"}, {"report-type": "scan-report"}):
        assert server.post(path, bad).code == 400
    assert server.post(f"{table_path('none', db)}/metrics", report).error == "NoSuchTableException"
