"""Branches, tags, history and namespaces in the terminal, without a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import frazil
from frazil.cli.main import app

RUNNER = CliRunner()
NAME = "shop.orders"
DAY_MS = 86_400_000


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "lake")
    with frazil.connect(folder) as lake:
        table = lake.create_table(NAME, "id bigint", properties={"write.wap.enabled": "true"})
        for number in (1, 2, 3):
            table.append(pa.table({"id": [number]}))
    return folder


def rows(warehouse: str, *arguments: str) -> list[dict[str, Any]]:
    result = RUNNER.invoke(app, ["-w", warehouse, "-f", "json", *arguments])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def refused(warehouse: str, *arguments: str, code: int = 1) -> str:
    result = RUNNER.invoke(app, ["-w", warehouse, *arguments])
    assert result.exit_code == code, result.output
    return result.output


def ids(warehouse: str) -> list[int]:
    with frazil.connect(warehouse) as lake:
        return [one.snapshot_id for one in lake.table(NAME).snapshots]


def count(warehouse: str, **how: Any) -> int:
    with frazil.connect(warehouse) as lake:
        return lake.table(NAME).scan(**how).count()


def test_branch_is_created_listed_renamed_and_dropped(warehouse: str) -> None:
    first, second, third = ids(warehouse)
    (made,) = rows(warehouse, "branch", "create", NAME, "audit", "--at", str(second), "--keep-snapshots", "5",
                   "--keep-for", "7d", "--lasts-for", "2w")  # fmt: skip
    assert (made["branch"], made["snapshot_id"]) == ("audit", second)
    assert (made["min_snapshots_to_keep"], made["max_snapshot_age_ms"]) == (5, 7 * DAY_MS)
    assert made["max_ref_age_ms"] == 14 * DAY_MS
    assert made["at"].endswith("Z")
    assert [one["branch"] for one in rows(warehouse, "branch", "list", NAME)] == ["audit", "main"]
    assert "it exists as a branch" in refused(warehouse, "branch", "create", NAME, "audit")
    assert rows(warehouse, "branch", "create", NAME, "audit", "--if-not-exists")[0]["snapshot_id"] == second
    assert rows(warehouse, "branch", "create", NAME, "audit", "--replace", "--at", "now")[0]["snapshot_id"] == third
    assert rows(warehouse, "branch", "rename", NAME, "audit", "checked")[0]["branch"] == "checked"
    assert rows(warehouse, "branch", "drop", NAME, "checked") == [{"dropped": "checked", "of": NAME}]
    assert "Cannot" in refused(warehouse, "branch", "drop", NAME, "checked")
    rows(warehouse, "branch", "drop", NAME, "checked", "--if-exists")
    assert first in ids(warehouse)


def test_tag_is_created_at_another_reference_listed_and_dropped(warehouse: str) -> None:
    first = ids(warehouse)[0]
    rows(warehouse, "tag", "create", NAME, "start", "--at", str(first), "--lasts-for", "30d")
    assert rows(warehouse, "tag", "create", NAME, "again", "--at", "start")[0]["snapshot_id"] == first
    found = {one["tag"]: one["max_ref_age_ms"] for one in rows(warehouse, "tag", "list", NAME)}
    assert found == {"again": None, "start": 30 * DAY_MS}
    assert count(warehouse, ref="start") == 1
    rows(warehouse, "tag", "drop", NAME, "start")
    assert [one["tag"] for one in rows(warehouse, "tag", "list", NAME)] == ["again"]


def test_branch_is_fast_forwarded_to_another(warehouse: str) -> None:
    rows(warehouse, "branch", "create", NAME, "audit")
    with frazil.connect(warehouse) as lake:
        lake.table(NAME).append(pa.table({"id": [9]}), branch="audit")
    assert count(warehouse) == 3
    rows(warehouse, "branch", "fast-forward", NAME, "main", "audit")
    assert count(warehouse) == 4
    assert "Cannot" in refused(warehouse, "branch", "fast-forward", NAME, "main", "nothing")


def test_changes_between_snapshots_tags_and_times_are_listed(warehouse: str) -> None:
    first, second, third = ids(warehouse)
    with frazil.connect(warehouse) as lake:
        lake.table(NAME).delete("id = 1")
    rows(warehouse, "tag", "create", NAME, "start", "--at", str(first))

    def seen(*options: str) -> list[tuple[Any, ...]]:
        found = rows(warehouse, "table", "changes", NAME, *options)
        return [(one["id"], one["_change_type"], one["_commit_snapshot_id"]) for one in found]

    assert seen("--from", "start", "--to", str(third)) == [(2, "INSERT", second), (3, "INSERT", third)]
    assert [one[:2] for one in seen("--from", str(third))] == [(1, "DELETE")]
    assert len(seen()) == 4
    assert len(seen("--limit", "2")) == 2
    assert len(seen("--to", "now")) == 4
    assert "id" not in rows(warehouse, "table", "changes", NAME, "--columns", "_file", "--limit", "1")[0]
    assert "Cannot" in refused(warehouse, "table", "changes", NAME, "--from", "999")


def test_table_is_rolled_back_by_id_tag_and_time(warehouse: str) -> None:
    first, second, third = ids(warehouse)
    assert rows(warehouse, "table", "rollback", NAME, str(second)) == [
        {"table": NAME, "branch": "main", "snapshot_id": second}
    ]
    assert count(warehouse) == 2
    rows(warehouse, "table", "set-current", NAME, str(third))
    assert count(warehouse) == 3
    rows(warehouse, "tag", "create", NAME, "start", "--at", str(first))
    rows(warehouse, "table", "rollback", NAME, "start")
    assert count(warehouse) == 1
    rows(warehouse, "table", "set-current", NAME, str(third))
    assert rows(warehouse, "table", "rollback", NAME, "--before", "now")[0]["snapshot_id"] == third
    assert "Cannot" in refused(warehouse, "table", "rollback", NAME, "--before", "7d")
    for wrong in ([], [str(first), "--before", "7d"]):
        assert "either a snapshot or --before" in refused(warehouse, "table", "rollback", NAME, *wrong, code=2)


def test_cherry_pick_and_publish(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        table = lake.table(NAME)
        staged = table.append(pa.table({"id": [8]}), snapshot_properties={"wap.id": "night"})
        assert staged is not None
        other = table.append(pa.table({"id": [7]}), branch="audit")
        assert other is not None
    assert count(warehouse) == 3
    rows(warehouse, "table", "publish", NAME, "night")
    assert count(warehouse) == 4
    rows(warehouse, "table", "cherry-pick", NAME, str(other.snapshot_id))
    assert count(warehouse) == 5


def test_unknown_snapshot_is_refused(warehouse: str) -> None:
    assert "not a time" in refused(warehouse, "tag", "create", NAME, "t", "--at", "nothing")
    assert "12345" in refused(warehouse, "tag", "create", NAME, "t", "--at", "12345")
    assert "length of time" in refused(warehouse, "tag", "create", NAME, "t", "--lasts-for", "yesterday")


def test_properties_are_set_and_removed(warehouse: str) -> None:
    rows(warehouse, "table", "set", NAME, "comment=all of them", "owner=ann")
    with frazil.connect(warehouse) as lake:
        assert lake.table(NAME).properties["comment"] == "all of them"
    rows(warehouse, "table", "unset", NAME, "comment", "never-there")
    with frazil.connect(warehouse) as lake:
        assert "comment" not in lake.table(NAME).properties
        assert lake.table(NAME).properties["owner"] == "ann"
    assert "NAME=VALUE" in refused(warehouse, "table", "set", NAME, "comment", code=2)


def test_namespaces_are_created_listed_and_dropped(warehouse: str) -> None:
    rows(warehouse, "namespace", "create", "raw.inner", "owner=ann")
    assert {"namespace": "raw"} in rows(warehouse, "namespace", "list")
    assert rows(warehouse, "namespace", "list", "raw") == [{"namespace": "raw.inner"}]
    assert rows(warehouse, "namespace", "properties", "raw.inner") == [{"name": "owner", "value": "ann"}]
    rows(warehouse, "namespace", "set", "raw.inner", "team=data")
    rows(warehouse, "namespace", "unset", "raw.inner", "owner")
    assert rows(warehouse, "namespace", "properties", "raw.inner") == [{"name": "team", "value": "data"}]
    rows(warehouse, "namespace", "drop", "raw.inner")
    assert "not empty" in refused(warehouse, "namespace", "drop", "shop")


def test_catalogs_of_one_database_are_distinguished_by_name(tmp_path: Path) -> None:
    database = ["--catalog", f"sqlite:///{tmp_path}/both.db"]
    for name in ("one", "other"):
        place = str(tmp_path / name)
        made = RUNNER.invoke(app, ["-w", place, *database, "--name", name, "table", "create", f"db.{name}", "id int"])
        assert made.exit_code == 0, made.output
    for options in (["--name", "other", "table", "list"], ["table", "list", "--name", "other"]):
        found = RUNNER.invoke(app, ["-w", str(tmp_path / "other"), *database, "-f", "json", *options])
        assert json.loads(found.stdout) == [{"name": "db.other", "kind": "table"}]
    none = RUNNER.invoke(app, ["-w", str(tmp_path / "one"), *database, "-f", "json", "table", "list"])
    assert json.loads(none.stdout) == []


def test_purge_without_a_terminal_requires_yes(warehouse: str) -> None:
    said = refused(warehouse, "table", "drop", NAME, "--purge")
    assert "They cannot be restored" in said
    assert "--yes" in said
    assert count(warehouse) == 3
    rows(warehouse, "table", "drop", NAME, "--purge", "--yes")
    assert not list(Path(warehouse).rglob("*.parquet"))


def test_branch_retention_is_changed_and_removed(warehouse: str) -> None:
    rows(warehouse, "branch", "create", NAME, "audit", "--keep-snapshots", "5", "--lasts-for", "2w")
    (changed,) = rows(warehouse, "branch", "retain", NAME, "audit", "--keep-for", "7d", "--lasts-for", "0")
    assert changed["min_snapshots_to_keep"] == 5
    assert changed["max_snapshot_age_ms"] == 7 * DAY_MS
    assert changed["max_ref_age_ms"] is None
    assert "no setting was given" in refused(warehouse, "branch", "retain", NAME, "audit", code=2)
    assert "it does not exist" in refused(warehouse, "branch", "retain", NAME, "missing", "--keep-for", "7d")


def test_tag_retention_is_changed(warehouse: str) -> None:
    rows(warehouse, "tag", "create", NAME, "eom")
    assert rows(warehouse, "tag", "retain", NAME, "eom", "--lasts-for", "30d")[0]["max_ref_age_ms"] == 30 * DAY_MS
    assert "it does not exist" in refused(warehouse, "tag", "retain", NAME, "main", "--lasts-for", "30d")
