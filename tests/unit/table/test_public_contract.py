"""The public surface that needs no Spark: every name is there, takes what it should, and does it."""

from __future__ import annotations

import ast
import datetime
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.scan.plan import Plan
from frazil.spec.snapshot import Snapshot
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.lake import Lake, LakeTransaction
from frazil.table.scan import Scan
from frazil.table.table import Table, TransactionTable

UTC = datetime.UTC
DDL = "id bigint not null, ts timestamptz, kind string, payload struct<a: int, b: list<string>>"

SIGNATURES: dict[Any, dict[str, str]] = {
    frazil: {"connect": "warehouse, *, catalog=None, name='lake', properties=None"},
    Lake: {
        "create_namespace": "namespace, properties=None, *, exist_ok=True",
        "list_namespaces": "parent=()",
        "list_tables": "namespace",
        "list_views": "namespace",
        "create_table": "name, schema, *, partition_by=(), sort_by=(), properties=None, format_version=None",
        "table": "name",
        "rename_table": "name, new_name",
        "drop_table": "name, *, purge=False",
        "register_table": "name, metadata_location",
        "create_view": "name, sql",
        "view": "name",
        "transaction": "",
        "close": "",
    },
    Table: {
        "history": "",
        "refresh": "",
        "scan": "predicate=None, *, columns=None, snapshot_id=None, as_of=None, ref=None",
        "append": "data, *, branch='main', snapshot_properties={}",
        "overwrite": "data, where, *, branch='main', snapshot_properties={}",
        "overwrite_partitions": "data, *, branch='main', snapshot_properties={}",
        "delete": "where, *, branch='main', snapshot_properties={}",
        "update_schema": "",
        "update_spec": "",
        "set_sort_order": "terms",
        "set_properties": "properties",
        "remove_properties": "names",
        "upgrade": "format_version",
        "create_branch": "name, snapshot_id=None",
        "create_tag": "name, snapshot_id=None",
        "drop_branch": "name",
        "drop_tag": "name",
        "fast_forward": "branch, *, to",
        "rollback_to": "snapshot_id",
        "set_current_snapshot": "snapshot_id",
        "cherry_pick": "snapshot_id",
        "expire_snapshots": "older_than=None, retain_last=None, snapshot_ids=None",
        "transaction": "",
        "check": "",
        "health": "",
    },
    Scan: {"plan": "", "to_arrow": "", "to_batches": "", "to_pandas": "", "count": ""},
    Plan: {"splits": "target_bytes=None", "to_arrow": "", "explain": ""},
    LakeTransaction: {"table": "name"},
}
"""Names and parameters as the contract has them; a verb may take more, if it has defaults."""

IN_TRANSACTIONS = (
    "append",
    "overwrite",
    "overwrite_partitions",
    "delete",
    "update_schema",
    "update_spec",
    "set_sort_order",
    "set_properties",
    "remove_properties",
    "upgrade",
    "create_branch",
    "create_tag",
    "drop_branch",
    "fast_forward",
    "rollback_to",
    "set_current_snapshot",
    "cherry_pick",
    "expire_snapshots",
)


def shown(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"


@pytest.mark.parametrize(
    ("owner", "name", "expected"),
    [(owner, name, text) for owner, names in SIGNATURES.items() for name, text in names.items()],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "__name__", ""),
)
def test_every_public_method_accepts_its_documented_arguments(owner: Any, name: str, expected: str) -> None:
    parameters = [one for one in inspect.signature(getattr(owner, name)).parameters.values() if one.name != "self"]
    by_name = {one.name: one for one in parameters}
    positional = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    wanted = [one.strip() for one in split_parameters(expected)]
    keyword_only = wanted.index("*") if "*" in wanted else len(wanted)
    for at, text in enumerate(one for one in wanted if one != "*"):
        parameter, has_default, default = text.partition("=")
        assert parameter in by_name, f"{name} takes no {parameter}"
        if at < keyword_only:
            assert positional[at] == parameter
        if has_default:
            assert str(by_name[parameter].default) == str(ast.literal_eval(default)), text
    named = {one.partition("=")[0] for one in wanted}
    for one in parameters:
        is_needed = one.default is inspect.Parameter.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        assert one.name in named or not is_needed, f"{name} needs {one.name}, which the contract does not know"


def split_parameters(text: str) -> list[str]:
    return [one for one in text.split(", ") if one != ""]


@pytest.mark.parametrize("name", IN_TRANSACTIONS)
def test_verbs_mean_the_same_in_a_transaction(name: str) -> None:
    assert inspect.signature(getattr(TransactionTable, name)).parameters.keys() >= {"self"}
    single = inspect.signature(getattr(Table, name)).parameters
    assert list(inspect.signature(getattr(TransactionTable, name)).parameters) == list(single)


@pytest.fixture(params=["sqlite", "memory"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    warehouse: Any = "memory:" if request.param == "memory" else tmp_path / "wh"
    with frazil.connect(warehouse) as opened:
        yield opened


def rows(start: int, end: int) -> pa.Table:
    moment = datetime.datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(range(start, end), pa.int64()),
            "ts": pa.array(
                [moment + datetime.timedelta(days=at) for at in range(start, end)], pa.timestamp("us", "UTC")
            ),
            "kind": [f"k{at % 2}" for at in range(start, end)],
        }
    )


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table(
        "db.events",
        DDL,
        partition_by=["day(ts)", "bucket(16, id)"],
        sort_by=["ts desc nulls last"],
        properties={"write.delete.mode": "merge-on-read"},
        format_version=2,
    )
    made.append(rows(0, 4))
    return made


def test_table_exposes_its_state(lake: Lake, table: Table) -> None:
    assert [one.name for one in table.schema] == ["id", "ts", "kind", "payload"]
    assert len(table.spec.fields) == 2
    assert len(table.sort_order.fields) == 1
    assert table.properties["write.delete.mode"] == "merge-on-read"
    assert table.format_version == 2
    assert table.location in str(table.metadata_location)
    assert table.metadata.location == table.location
    assert isinstance(table.current_snapshot, Snapshot)
    assert len(table.snapshots) == len(table.history()) == 1
    assert list(table.refs) == ["main"]
    assert table.refresh() is table
    assert lake.table("db.events").metadata == table.metadata


def test_scans_are_planned_and_read(table: Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    scan = table.scan("ts >= '2024-01-02' and kind in ('k0', 'k1')", columns=["id", "kind"])
    plan = scan.plan()
    task = plan.tasks[0]
    assert task.data_file.file_path.startswith(table.location)
    assert list(task.delete_files) == []
    assert task.residual is not None
    assert len(plan.splits()) >= 1
    assert len(plan.splits(target_bytes=1)) == 3
    assert plan.to_arrow().num_rows == 3
    assert "data files" in plan.explain()
    assert scan.to_arrow().num_rows == scan.count() == sum(one.num_rows for one in scan.to_batches()) == 3
    if pytest.importorskip("pandas"):
        assert len(scan.to_pandas()) == 3
    table.create_tag("audit")
    now = datetime.datetime.now(UTC) + datetime.timedelta(days=1)
    for chosen in ({"snapshot_id": snapshot.snapshot_id}, {"as_of": now}, {"as_of": now.isoformat()}, {"ref": "audit"}):
        assert table.scan(**chosen).count() == 4


def test_every_write_accepts_branch_and_properties_and_returns_its_snapshot(table: Table) -> None:
    table.create_branch("audit")
    options: dict[str, Any] = {"branch": "audit", "snapshot_properties": {"job": "nightly"}}
    reader = rows(10, 12).to_reader()
    makers: tuple[Callable[[], Snapshot | None], ...] = (
        lambda: table.append(reader, **options),
        lambda: table.overwrite(rows(20, 22), where="ts < '2024-01-02'", **options),
        lambda: table.overwrite_partitions(rows(30, 31), **options),
        lambda: table.delete("ts >= '2024-01-30'", **options),
    )
    for make in makers:
        snapshot = make()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert snapshot.summary["job"] == "nightly"
        assert table.refs["audit"].snapshot_id == snapshot.snapshot_id
        assert table.check().ok
    assert table.scan().count() == 4
    assert table.scan(ref="audit").count() == 7
    assert table.delete("id < -5") is None
    assert table.append(rows(0, 0)) is None


def test_schemas_specs_orders_properties_and_versions_change(table: Table) -> None:
    with table.update_schema() as u:
        u.add_column("score", "double", doc="points", after="kind")
        u.rename_column("kind", "type")
        u.drop_column("payload.b")
        u.make_optional("id")
        u.move_first("ts")
    with table.update_schema() as u:
        u.add_column("key", "int")
        u.allow_incompatible_changes()
        u.make_required("key")
        u.set_type("key", "long")
        u.set_identifier_fields(["key"])
    assert [one.name for one in table.schema] == ["ts", "id", "type", "score", "payload", "key"]
    with table.update_spec() as u:
        u.add_field("hour(ts)")
        u.remove_field("ts_day")
        u.rename_field("id_bucket", "b")
    assert [one.name for one in table.spec.fields][-2:] == ["b", "ts_hour"]
    table.set_sort_order(["id asc nulls first"])
    table.set_properties({"owner": "me"})
    table.remove_properties(["owner", "never-set"])
    assert "owner" not in table.properties
    table.upgrade(3)
    assert table.format_version == 3
    assert table.check(bounds=True).ok


def test_branches_tags_and_history_change(table: Table) -> None:
    first = table.current_snapshot
    assert first is not None
    table.create_branch("audit", snapshot_id=None, min_snapshots_to_keep=2, max_snapshot_age_ms=1, max_ref_age_ms=9)
    assert table.refs["audit"].min_snapshots_to_keep == 2
    staged = table.append(rows(4, 6), branch="audit")
    assert staged is not None
    table.fast_forward("main", to="audit")
    assert table.current_snapshot == staged
    table.rollback_to(first.snapshot_id)
    assert table.cherry_pick(staged.snapshot_id) == staged
    table.set_current_snapshot(first.snapshot_id)
    table.set_current_snapshot(ref="audit")
    table.rollback_to(before=staged.timestamp_ms + 1)
    table.create_tag("eom", first.snapshot_id, max_ref_age_ms=5)
    table.rename_branch("audit", "checked")
    table.set_retention("checked", max_ref_age_ms=0)
    assert table.refs["checked"].max_ref_age_ms is None
    table.replace_branch("checked", first.snapshot_id)
    table.drop_branch("checked")
    table.drop_tag("eom")
    assert list(table.refs) == ["main"]
    with pytest.raises(frazil.ReferenceNotFoundError):
        table.drop_tag("eom")


def test_handle_sees_changes_by_others(lake: Lake, table: Table) -> None:
    other = lake.table("db.events")
    other.create_tag("theirs")
    table.drop_tag("theirs")
    other.append(rows(5, 6))
    table.create_tag("now")
    assert table.refs["now"].snapshot_id == other.snapshots[-1].snapshot_id


def test_writes_are_staged_audited_and_published(table: Table) -> None:
    table.append(rows(4, 5), snapshot_properties={"wap.id": "plain"})
    assert table.scan().count() == 5, "a table that does not ask for it stages nothing"
    table.set_properties({"write.wap.enabled": "true"})
    staged = table.append(rows(5, 7), snapshot_properties={"wap.id": "w1"})
    assert staged is not None
    assert table.scan().count() == 5
    assert table.scan(snapshot_id=staged.snapshot_id).count() == 7
    published = table.publish_changes("w1")
    assert published == table.current_snapshot
    assert table.scan().count() == 7
    with pytest.raises(frazil.InvalidRequestError, match=r"both a branch and a wap\.id"):
        table.append(rows(7, 8), branch="audit", snapshot_properties={"wap.id": "w2"})
    assert table.check().ok


def test_old_snapshots_expire_with_their_files(table: Table) -> None:
    table.overwrite(rows(0, 2), where="id >= 0")
    first, second = table.snapshots
    kept = table.expire_snapshots(retain_last=5, older_than=datetime.datetime.now(UTC) + datetime.timedelta(days=1))
    assert (len(table.snapshots), kept.data_files) == (2, [])
    with pytest.raises(frazil.InvalidRequestError, match="refers to it"):
        table.expire_snapshots(snapshot_ids=[second.snapshot_id])
    gone = table.expire_snapshots(snapshot_ids=[first.snapshot_id])
    assert len(gone.data_files) == 4
    assert len(gone.manifest_lists) == 1
    assert gone.kept == {}
    assert [one.snapshot_id for one in table.snapshots] == [second.snapshot_id]
    assert table.check(bounds=True).ok
    table.append(rows(2, 3))
    with table.transaction() as tx:
        tx.expire_snapshots(older_than="2100-01-01T00:00:00Z")
    assert len(table.snapshots) == 1
    assert table.check().ok
    with pytest.raises(frazil.InvalidRequestError, match="at least"):
        table.expire_snapshots(retain_last=0)
    with pytest.raises(frazil.InvalidRequestError, match="time zone"):
        table.expire_snapshots(older_than="2024-01-01T00:00:00")


def test_statistics_are_set_and_removed(table: Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    table.set_statistics(StatisticsFile(snapshot.snapshot_id, f"{table.location}/s.puffin", 100, 50))
    table.set_partition_statistics(PartitionStatisticsFile(snapshot.snapshot_id, f"{table.location}/p.parquet", 10))
    assert len(table.metadata.statistics) == len(table.metadata.partition_statistics) == 1
    table.remove_statistics(snapshot.snapshot_id)
    table.remove_partition_statistics(snapshot.snapshot_id)
    assert [*table.metadata.statistics, *table.metadata.partition_statistics] == []


def test_transactions_are_one_commit(lake: Lake, table: Table) -> None:
    before = len(table.metadata.metadata_log)
    with table.transaction() as tx:
        with tx.update_schema() as u:
            u.add_column("extra", "int")
        tx.append(rows(50, 52))
        tx.delete("ts < '2024-01-02'")
        tx.create_tag("both")
    assert len(table.metadata.metadata_log) == before + 1
    assert table.scan().count() == 5
    other = lake.create_table("db.other", DDL)
    with lake.transaction() as several:
        several.table("db.events").append(rows(60, 61))
        several.table("db.other").append(rows(60, 61))
    assert (table.refresh().scan().count(), other.refresh().scan().count()) == (6, 1)


def test_every_metadata_table_is_an_arrow_table(table: Table) -> None:
    names = (
        "snapshots history refs files data_files delete_files manifests entries partitions metadata_log_entries "
        "position_deletes all_files all_data_files all_delete_files all_manifests all_entries"
    )
    for name in names.split():
        assert isinstance(getattr(table.inspect, name)(), pa.Table), name


def test_namespaces_and_names(lake: Lake, table: Table) -> None:
    lake.create_namespace("empty", properties={"owner": "me"}, exist_ok=True)
    lake.create_namespace("empty", exist_ok=True)
    with pytest.raises(frazil.NamespaceAlreadyExistsError):
        lake.create_namespace("empty", exist_ok=False)
    assert lake.namespace_properties("empty")["owner"] == "me"
    lake.set_namespace_properties("empty", {"a": "1"}, removals=["owner"])
    assert "owner" not in lake.namespace_properties("empty")
    assert sorted(lake.list_namespaces()) == [("db",), ("empty",)]
    lake.rename_table("db.events", "db.e2")
    assert lake.list_tables("db") == [("db", "e2")]
    location = lake.table("db.e2").metadata_location
    assert location is not None
    lake.drop_table("db.e2")
    assert lake.register_table("db.old", location).scan().count() == 4
    lake.create_view("db.v", "select kind, count(*) n from db.events group by kind")
    assert lake.view("db.v").name == "db.v"
    lake.drop_table("db.old", purge=True)
    lake.drop_namespace("empty")
    assert not lake.namespace_exists("empty")


def test_every_error_is_a_frazil_error_and_exported() -> None:
    errors = [one for one in frazil.__all__ if one.endswith("Error")]
    assert len(errors) > 20
    assert all(issubclass(getattr(frazil, one), frazil.FrazilError) for one in errors)
