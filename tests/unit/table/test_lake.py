"""A lake from a user's side: open, create, write, read, change, and what happens when two do it at once."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.table.lake import Lake

UTC = datetime.UTC
DDL = "id bigint not null, ts timestamptz, kind string"


def rows(start: int, end: int, day: int = 1) -> pa.Table:
    moment = datetime.datetime(2024, 1, day, 12, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(range(start, end), pa.int64()),
            "ts": pa.array([moment] * (end - start), pa.timestamp("us", "UTC")),
            "kind": [f"k{at % 3}" for at in range(start, end)],
        }
    )


@pytest.fixture(params=["sqlite", "filesystem", "memory"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        opened = frazil.connect("memory:", catalog="memory")
    else:
        opened = frazil.connect(tmp_path / "wh", catalog=None if request.param == "sqlite" else "filesystem")
    with opened:
        yield opened


def ids(table: frazil.Table, *arguments: Any, **options: Any) -> list[int]:
    found: list[int] = table.scan(*arguments, columns=["id"], **options).to_arrow().column("id").to_pylist()
    return sorted(found)


def test_format_version_may_be_a_property(lake: Lake) -> None:
    made = [
        lake.create_table("db.a", DDL, properties={"format-version": "3", "k": "v"}),
        lake.create_table("db.b", "v variant", properties={"format-version": "3"}, format_version=3),
        lake.create_table("db.c", DDL),
    ]
    assert [one.format_version for one in made] == [3, 3, 2]
    assert made[0].properties["k"] == "v"
    assert "format-version" not in made[0].properties
    for version, given in (("3", 2), ("two", None), ("9", None)):
        with pytest.raises(frazil.FrazilError, match=rf"format.version.*{version}"):
            lake.create_table("db.d", DDL, properties={"format-version": version}, format_version=given)
    assert not lake.table_exists("db.d")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_appended_rows_are_read_back(lake: Lake, version: int) -> None:
    table = lake.create_table("db.events", DDL, partition_by=["day(ts)"], sort_by=["id"], format_version=version)
    assert table.scan().count() == 0
    snapshot = table.append(rows(0, 10))
    assert snapshot is not None
    assert snapshot.operation == "append"
    table.append(rows(10, 20, day=2))
    again = lake.table("db.events")
    assert ids(again) == list(range(20))
    assert ids(again, "ts >= '2024-01-02' and id < 15") == list(range(10, 15))
    assert again.scan("kind = 'k0'").count() == 7
    assert again.scan(limit=3).to_arrow().num_rows == 3
    assert [one.snapshot_id for one in again.history()] == [one.snapshot_id for one in again.snapshots]


def test_empty_append_makes_no_snapshot(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    assert table.append(rows(0, 0)) is None
    assert table.current_snapshot is None


def test_whole_file_delete_needs_no_engine(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL, partition_by=["day(ts)"])
    table.append(rows(0, 5))
    table.append(rows(5, 10, day=2))
    snapshot = table.delete("ts < '2024-01-02'")
    assert snapshot is not None
    assert snapshot.operation == "delete"
    assert ids(table) == list(range(5, 10))
    table.delete("id = 7")
    assert ids(table) == [5, 6, 8, 9]


def test_overwrites_replace_rows_in_one_snapshot(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL, partition_by=["day(ts)"])
    table.append(rows(0, 5))
    table.append(rows(5, 10, day=2))
    table.overwrite_partitions(rows(100, 103, day=2))
    assert ids(table) == [0, 1, 2, 3, 4, 100, 101, 102]
    table.overwrite(rows(200, 202), where="ts < '2024-01-02'")
    assert ids(table) == [100, 101, 102, 200, 201]
    table.overwrite(rows(300, 301))
    assert ids(table) == [300]
    assert len(table.snapshots) == 5


def test_schema_changes_and_old_rows_use_the_new_one(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL, format_version=3)
    table.append(rows(0, 2))
    with table.update_schema() as update:
        update.rename_column("kind", "type")
        update.add_column("score", "double", default=0.5, after="id")
    assert [part.name for part in table.schema] == ["id", "score", "ts", "type"]
    assert table.scan(columns=["score", "type"]).to_arrow().to_pylist() == [
        {"score": 0.5, "type": "k0"},
        {"score": 0.5, "type": "k1"},
    ]


def test_exception_inside_an_update_changes_nothing(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    before = table.metadata_location
    with pytest.raises(ZeroDivisionError), table.update_schema() as update:
        update.add_column("x", "int")
        raise ZeroDivisionError
    assert table.refresh().metadata_location == before
    with pytest.raises(AttributeError, match="no such change"), table.update_schema() as update:
        update.paint_column("x")  # type: ignore[attr-defined]


def test_partitioning_changes_apply_to_new_files_only(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL, partition_by=["day(ts)"])
    table.append(rows(0, 3))
    with table.update_spec() as update:
        update.remove_field("ts_day").add_field("bucket(4, id)")
    table.append(rows(3, 9))
    assert ids(table) == list(range(9))
    assert ids(table, "id = 4") == [4]


def test_several_changes_are_one_commit(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    with table.transaction() as tx:
        tx.append(rows(0, 3))
        tx.set_properties({"owner": "me"})
        tx.append(rows(3, 5))
        assert tx.scan().count() == 5
        assert lake.table("db.t").scan().count() == 0
    assert ids(table) == list(range(5))
    assert table.properties["owner"] == "me"
    with pytest.raises(ZeroDivisionError), table.transaction() as tx:
        tx.append(rows(5, 6))
        raise ZeroDivisionError
    assert ids(table.refresh()) == list(range(5))


def test_several_tables_commit_atomically(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        first, second = (lake.create_table(f"db.{name}", DDL) for name in "ab")
        with lake.transaction() as tx:
            tx.table("db.a").append(rows(0, 2))
            tx.table("db.b").append(rows(2, 5))
        assert ids(first.refresh()) == [0, 1]
        assert ids(second.refresh()) == [2, 3, 4]
        with pytest.raises(ZeroDivisionError), lake.transaction() as tx:
            tx.table("db.a").append(rows(9, 10))
            raise ZeroDivisionError
        assert ids(first.refresh()) == [0, 1]


def test_branches_and_tags_select_their_rows(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows(0, 2))
    table.create_tag("eom")
    table.create_branch("audit")
    table.append(rows(2, 4), branch="audit")
    assert ids(table) == [0, 1]
    assert ids(table, ref="audit") == [0, 1, 2, 3]
    table.fast_forward("main", to="audit")
    assert ids(table) == [0, 1, 2, 3]
    assert ids(table, ref="eom") == [0, 1]
    first = table.snapshots[0].snapshot_id
    table.rollback_to(first)
    assert ids(table) == [0, 1]
    table.drop_branch("audit")
    assert sorted(table.refs) == ["eom", "main"]


def test_two_handles_append_without_losing_rows(lake: Lake) -> None:
    first = lake.create_table("db.t", DDL)
    second = lake.table("db.t")
    first.append(rows(0, 2))
    second.append(rows(2, 4))
    assert ids(first.refresh()) == [0, 1, 2, 3]


def test_scan_stays_at_its_snapshot(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows(0, 2))
    scan = table.scan()
    table.append(rows(2, 4))
    assert scan.count() == 2
    assert table.scan().count() == 4


def test_metadata_tables_are_arrow_tables(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows(0, 2))
    assert table.inspect.snapshots().num_rows == 1
    assert table.inspect.files(columns=["record_count"]).to_pylist() == [{"record_count": 2}]
    assert "partitions" in dir(table.inspect)
    with pytest.raises(AttributeError, match="there are:"):
        _ = table.inspect.nonsense


def test_tables_are_listed_registered_and_dropped(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows(0, 2))
    assert lake.list_tables("db") == [("db", "t")]
    assert lake.list_namespaces() == [("db",)]
    location = table.metadata_location
    assert location is not None
    lake.drop_table("db.t")
    assert not lake.table_exists("db.t")
    with pytest.raises(frazil.TableNotFoundError):
        lake.table("db.t")


def test_invalid_requests_have_a_hint(lake: Lake) -> None:
    table = lake.create_table("db.t", DDL)
    with pytest.raises(frazil.TableAlreadyExistsError):
        lake.create_table("db.t", DDL)
    with pytest.raises(frazil.TextSyntaxError):
        lake.create_table("db.u", "id bigint not nul")
    with pytest.raises(frazil.InvalidRequestError, match="lists of terms"):
        lake.create_table("db.u", DDL, partition_by="day(ts)")
    with pytest.raises(frazil.InvalidRequestError, match="list of names"):
        table.scan(columns="id")
    with pytest.raises(frazil.FrazilError, match="nope"):
        table.append(pa.table({"id": [1], "nope": [2]}))
    with pytest.raises(frazil.TextSyntaxError, match="a part is"):
        lake.table("db..t")
    assert table.refresh().current_snapshot is None


def test_special_characters_are_allowed_in_names(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        table = lake.create_table(("my db", 'a."b"%_'), DDL)
        table.append(rows(0, 1))
        assert ids(lake.table('`my db`.`a."b"%_`')) == [0]


def test_existing_lake_is_reopened(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "wh") as lake:
        lake.create_table("db.t", DDL).append(rows(0, 3))
    with frazil.connect(tmp_path / "wh") as lake:
        assert ids(lake.table("db.t")) == [0, 1, 2]


@pytest.mark.parametrize("version", [0, 4, -1])
def test_unknown_format_version_is_refused(version: int) -> None:
    with pytest.raises(frazil.FrazilError, match=str(version)):
        frazil.connect("memory:").create_table("db.t", "id bigint", format_version=version)
