"""The metadata tables beside PyIceberg's, of the same tables on disk. Needs no JVM, so it runs with the unit tests.

PyIceberg shows timestamps without a zone and in milliseconds, has no nested columns in `readable_metrics`, names the
columns there in the schema's order, and lacks what version 3 added; the rest must be the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.table_metadata_json import decode_table_metadata
from frazil.loaded import LoadedTable
from frazil.metadata_tables.tables import read_metadata_table
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.spec.types import DOUBLE, INT, LONG, STRING, TIMESTAMPTZ, DecimalType
from frazil.storage.local import LocalStorage
from tests.support.builders import field, schema
from tests.support.tables import TableBuilder

pyiceberg = pytest.importorskip("pyiceberg.table")

DAY = 86_400_000_000
TABLES = (
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "manifests",
    "all_manifests",
    "partitions",
    "snapshots",
    "history",
    "refs",
    "metadata_log_entries",
)


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "ts": 0, "kind": "a", "price": None, "score": 0.5},
        {"id": number + 1, "ts": DAY, "kind": None, "price": None, "score": None},
        {"id": number + 2, "ts": None, "kind": "é" * 30, "price": None, "score": -0.0},
    ]


def busy_table(folder: Path, version: int) -> TableBuilder:
    """A table with everything that PyIceberg shows: evolution of columns and partitions, deletes, branches."""
    columns = schema(
        field(1, "id", INT),
        field(2, "ts", TIMESTAMPTZ),
        field(3, "kind", STRING),
        field(4, "price", DecimalType(9, 2)),
        field(5, "score", DOUBLE),
    )
    table = TableBuilder(
        columns,
        partition_by=["day(ts)"],
        format_version=version,
        storage=LocalStorage(durable=False),
        location=f"file://{folder}/t",
    )
    first = table.append(rows(1))
    table.update_schema(lambda u: u.set_type("id", LONG))
    table.update_spec(lambda u: u.add_field("bucket(4, id)"))
    table.append(rows(10))
    table.load()
    if version > 1:
        table.commit(table.write_position_deletes({first[0]: [0]}))
        table.commit(
            table.write_equality_deletes([{"id": 1}], ["id"], spec=table.metadata.spec(0), partition=first[1].partition)
        )
    table.commit(deleted=[first[2]])
    table.set_ref("old", 1, "tag")
    table.set_ref("audit", 2)
    return table


def plain(value: Any) -> Any:
    """Return a value in a form in which order of fields and zones of times do not matter."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value


def comparable(table: pa.Table, names: list[str]) -> list[str]:
    return sorted(repr(plain(row)) for row in table.select(names).to_pylist())


def both(loaded: LoadedTable) -> Any:
    return pyiceberg.StaticTable.from_metadata(loaded.metadata_location)


def assert_same(ours: pa.Table, theirs: pa.Table) -> None:
    ours.validate(full=True)
    assert set(theirs.column_names) <= set(ours.column_names)
    assert comparable(ours, theirs.column_names) == comparable(theirs, theirs.column_names)
    own = [name for name in ours.column_names if name in theirs.column_names]
    assert own == theirs.column_names


@pytest.mark.parametrize("version", [1, 2])
def test_metadata_tables_have_the_rows_of_pyiceberg(tmp_path: Path, version: int) -> None:
    loaded = busy_table(tmp_path, version).load()
    theirs = both(loaded)
    for name in TABLES:
        assert_same(read_metadata_table(loaded, name), getattr(theirs.inspect, name)())


@pytest.mark.parametrize("name", ["files", "data_files", "delete_files", "partitions"])
def test_time_travel_has_the_rows_of_pyiceberg(tmp_path: Path, name: str) -> None:
    loaded = busy_table(tmp_path, 2).load()
    theirs = both(loaded)
    for snapshot in loaded.metadata.snapshots:
        ours = read_metadata_table(loaded, name, choice=SnapshotChoice(snapshot_id=snapshot.snapshot_id))
        found = getattr(theirs.inspect, name)(snapshot_id=snapshot.snapshot_id)
        if name == "partitions" and snapshot.snapshot_id == 1:
            # Its type there has only the specs of the snapshot's own manifests.
            assert ours.column("record_count").to_pylist() == found.column("record_count").to_pylist()
            continue
        assert_same(ours, found)


@pytest.mark.parametrize("version", [1, 2])
def test_entries_equal_those_of_pyiceberg(tmp_path: Path, version: int) -> None:
    table = TableBuilder(
        schema(),
        partition_by=["day(ts)"],
        format_version=version,
        storage=LocalStorage(durable=False),
        location=f"file://{tmp_path}/t",
    )
    made = table.write_partitions([{"id": 1, "ts": 0, "kind": "a"}, {"id": 2, "ts": DAY, "kind": "b"}])
    # It cannot show entries of files without column sizes.
    table.commit(*(replace(one, column_sizes={1: 10, 2: 20}) for one in made))
    table.commit(deleted=[made[0]])
    loaded = table.load()
    theirs = both(loaded).inspect.entries()
    ours = read_metadata_table(loaded, "entries")
    head = ["status", "snapshot_id", "sequence_number", "file_sequence_number", "readable_metrics"]
    assert comparable(ours, head) == comparable(theirs, head)
    assert [row["file_path"] for row in ours.column("data_file").to_pylist()] == [
        row["file_path"] for row in theirs.column("data_file").to_pylist()
    ]


def test_metadata_tables_of_a_pyiceberg_table_equal_those_of_pyiceberg(tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog.memory")
    catalog = catalogs.InMemoryCatalog("c", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    data = pa.table({"id": pa.array([1, 2, 3]), "name": ["a", "b", None], "x": [1.5, float("nan"), 2.0]})
    theirs = catalog.create_table("db.t", data.schema)
    theirs.append(data)
    theirs.append(data.slice(1))
    theirs.delete("id = 2")
    storage = LocalStorage(durable=False)
    text = storage.read(theirs.metadata_location)
    loaded = LoadedTable(("db", "t"), decode_table_metadata(text), theirs.metadata_location, storage)
    for name in TABLES:
        found = getattr(theirs.inspect, name)()
        if "partition" in found.column_names:
            found = found.drop_columns(["partition"])
        assert_same(read_metadata_table(loaded, name), found)
    entries = theirs.inspect.entries()
    assert comparable(read_metadata_table(loaded, "entries"), ["status", "readable_metrics"]) == comparable(
        entries, ["status", "readable_metrics"]
    )
