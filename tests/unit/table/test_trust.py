"""`connect(…, trust="none")`: a stranger's lake is looked at, and nothing else."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import frazil
from frazil.cli.main import app
from frazil.errors import FrazilError, InvalidRequestError, StorageError
from frazil.storage.choose import READ_ROOTS

FAR_MS = 4_102_444_800_000
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    folder = tmp_path / "warehouse"
    with frazil.connect(folder) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(ROWS)
        table.append(ROWS)
        lake.create_view("db.v", "select 1 as x", schema="x int")
    return folder


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Return every file below a folder with its content and its time; not SQLite's own locks, which a reader takes."""
    return {
        str(one.relative_to(folder)): (hashlib.sha256(one.read_bytes()).hexdigest(), one.stat().st_mtime_ns)
        for one in sorted(folder.rglob("*"))
        if one.is_file() and not one.name.endswith(("-wal", "-shm"))
    }


def test_untrusted_lake_can_be_inspected(warehouse: Path) -> None:
    with frazil.connect(warehouse, trust="none") as lake:
        assert repr(lake).endswith("trust='none')")
        assert lake.list_namespaces() == [("db",)]
        assert lake.list_tables("db") == [("db", "t")]
        table = lake.table("db.t")
        assert table.scan("id > 1").to_arrow().num_rows == 4
        assert table.scan().count() == 6
        assert table.check(bounds=True).ok
        assert table.health() is not None
        assert table.inspect.files().num_rows == 2
        assert lake.view("db.v").sql_for("spark") == "select 1 as x"


def _change_schema(_: frazil.Lake, table: frazil.Table) -> None:
    with table.update_schema() as change:
        change.add_column("more", "int")


WRITES: dict[str, Callable[[frazil.Lake, frazil.Table], Any]] = {
    "append": lambda lake, table: table.append(ROWS),
    "delete": lambda lake, table: table.delete("id > 0"),
    "overwrite": lambda lake, table: table.overwrite(ROWS),
    "properties": lambda lake, table: table.set_properties({"a": "b"}),
    "branch": lambda lake, table: table.create_branch("b"),
    "rollback": lambda lake, table: table.rollback_to(table.metadata.snapshots[0].snapshot_id),
    "schema": _change_schema,
    "expire": lambda lake, table: table.maintain.expire_snapshots(older_than=FAR_MS, retain_last=1),
    "orphans": lambda lake, table: table.maintain.remove_orphan_files(older_than="2020-01-01T00:00:00Z"),
    "rewrite": lambda lake, table: table.maintain.rewrite_data_files(rewrite_all=True),
    "optimize": lambda lake, table: table.maintain.optimize(),
    "stats": lambda lake, table: table.maintain.compute_table_stats(),
    "create": lambda lake, table: lake.create_table("db.new", "id int"),
    "create elsewhere": lambda lake, table: lake.create_table("new.new", "id int"),
    "drop": lambda lake, table: lake.drop_table("db.t"),
    "purge": lambda lake, table: lake.drop_table("db.t", purge=True),
    "rename": lambda lake, table: lake.rename_table("db.t", "db.u"),
    "register": lambda lake, table: lake.register_table("db.r", str(table.metadata_location)),
    "namespace": lambda lake, table: lake.create_namespace("more"),
    "drop namespace": lambda lake, table: lake.drop_namespace("db"),
    "namespace properties": lambda lake, table: lake.set_namespace_properties("db", {"a": "b"}),
    "view": lambda lake, table: lake.create_view("db.w", "select 1", schema="x int"),
    "replace view": lambda lake, table: lake.create_view("db.v", "select 2", schema="x int", replaces=True),
    "drop view": lambda lake, table: lake.drop_view("db.v"),
    "rename view": lambda lake, table: lake.rename_view("db.v", "db.w"),
}


NOTHING_TO_DO = ("orphans", "optimize")


@pytest.mark.parametrize("what", WRITES)
def test_untrusted_lake_cannot_be_changed(warehouse: Path, what: str) -> None:
    before = state_of(warehouse)
    with frazil.connect(warehouse, trust="none") as lake:
        table = lake.table("db.t")
        if what in NOTHING_TO_DO:
            WRITES[what](lake, table)
        else:
            with pytest.raises(InvalidRequestError, match='trust="none"') as caught:
                WRITES[what](lake, table)
            assert caught.value.hint is not None
            assert "without trust" in caught.value.hint
    assert state_of(warehouse) == before


def test_files_outside_the_warehouse_are_not_opened(warehouse: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    with frazil.connect(warehouse) as lake:
        lake.create_table("db.far", "id bigint", location=f"file://{outside}").append(ROWS)
        (warehouse / "link").symlink_to(outside)
    with frazil.connect(warehouse, trust="none") as lake, pytest.raises(InvalidRequestError, match="is outside"):
        lake.table("db.far")
    with frazil.connect(warehouse, trust="none", properties={READ_ROOTS: f"file://{outside}"}) as lake:
        assert lake.table("db.far").scan().count() == 3
        assert lake.table("db.t").scan().count() == 6


def test_pickled_storage_stays_read_only(warehouse: Path) -> None:
    with frazil.connect(warehouse, trust="none") as lake:
        arrived = pickle.loads(pickle.dumps(lake.catalog.storage))
    place = f"file://{warehouse}/db/t/new"
    for name, values in {
        "create": (place, b""),
        "open_new": (place,),
        "create_exclusive": (place, b""),
        "replace": (place, b""),
        "create_folder": (place,),
        "delete_folder": (place,),
        "delete": (place,),
        "delete_many": ([place],),
    }.items():
        with pytest.raises(InvalidRequestError, match='trust="none"'):
            getattr(arrived, name)(*values)
    assert arrived.delete_many([]) == {}
    with pytest.raises(InvalidRequestError, match="is outside"):
        arrived.read("/etc/hostname")


def test_missing_lake_is_not_created(tmp_path: Path) -> None:
    for catalog in (None, "filesystem", f"sqlite:///{tmp_path}/x.db"):
        with pytest.raises(StorageError, match="there is none"):
            frazil.connect(tmp_path / "none", catalog=catalog, trust="none")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "catalog.db").touch()
    with pytest.raises(FrazilError):
        frazil.connect(tmp_path / "empty", trust="none")
    assert (tmp_path / "empty" / "catalog.db").stat().st_size == 0


def test_lake_without_a_database_can_be_inspected(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "w", catalog="filesystem") as lake:
        lake.create_table("db.t", "id bigint").append(ROWS)
    before = state_of(tmp_path)
    with frazil.connect(tmp_path / "w", catalog="filesystem", trust="none") as lake:
        assert lake.table("db.t").scan().count() == 3
        with pytest.raises(InvalidRequestError, match='trust="none"'):
            lake.table("db.t").append(ROWS)
    assert state_of(tmp_path) == before


def test_only_all_and_none_are_valid_trust_levels(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="trust='some'"):
        frazil.connect(tmp_path, trust="some")


def test_cli_inspects_and_does_not_change(warehouse: Path) -> None:
    before = state_of(warehouse)
    shown = CliRunner().invoke(app, ["-w", str(warehouse), "--trust", "none", "table", "show", "db.t"])
    assert shown.exit_code == 0, shown.output
    purge = ["table", "drop", "db.t", "--purge", "--yes"]
    dropped = CliRunner().invoke(app, ["-w", str(warehouse), "--trust", "none", *purge])
    assert dropped.exit_code == 1
    assert 'trust="none"' in dropped.output
    assert state_of(warehouse) == before
