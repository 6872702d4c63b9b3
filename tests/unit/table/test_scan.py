from __future__ import annotations

import datetime as dt
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.delete_cache import DeleteCache
from frazil.errors import (
    FieldNotFoundError,
    InvalidRequestError,
    MissingFileError,
    ReferenceNotFoundError,
    SnapshotNotFoundError,
    StorageError,
    TextSyntaxError,
    UnsupportedError,
)
from frazil.expr.predicates import at_least, equal
from frazil.spec.schema import Schema
from frazil.spec.types import INT, LONG, STRING, ListType, NestedField, StructType
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.table.scan import Scan, ScanOptions, scan_table
from tests.support.file_writers import Rows, table_to_rows
from tests.support.tables import START_MS, STEP_MS, TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "Kind", STRING),
        NestedField(3, "info", StructType((NestedField(4, "a", INT), NestedField(5, "b", STRING)))),
        NestedField(6, "list", ListType(7, StructType((NestedField(8, "x", INT), NestedField(9, "y", INT))))),
    )
)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "Kind": "ab"[number % 2],
        "info": {"a": number, "b": str(number)},
        "list": [{"x": number, "y": -number}],
    }


ROWS: Rows = [row(number) for number in range(20)]


def make_table(version: int = 3, **options: Any) -> TableBuilder:
    """A table of two files, ids 0 to 9 and 10 to 19, a snapshot each."""
    table = TableBuilder(SCHEMA, format_version=version, **options)
    table.append(ROWS[:10])
    table.append(ROWS[10:])
    return table


def ids(scan: Scan) -> list[int]:
    return sorted(scan.to_arrow().column("id").to_pylist())


def test_table_without_snapshots_has_no_rows() -> None:
    scan = scan_table(TableBuilder(SCHEMA).load())
    assert scan.snapshot is None
    assert scan.to_arrow().equals(to_arrow_schema(SCHEMA).empty_table())
    assert list(scan.to_batches()) == []
    assert scan.count() == 0
    assert len(scan.to_pandas()) == 0


def test_rows_are_read_as_written() -> None:
    scan = scan_table(make_table().load())
    table = scan.to_arrow()
    assert table.schema.equals(to_arrow_schema(scan.schema, with_ids=False), check_metadata=True)
    assert sorted(table_to_rows(table, scan.schema), key=lambda one: one["id"]) == ROWS


def test_rows_have_no_field_ids() -> None:
    scan = scan_table(make_table().load())
    for schema in (scan.arrow_schema, scan.to_arrow().schema, next(iter(scan.to_batches())).schema):
        assert b"field_id" not in schema.serialize().to_pybytes()
    for column in scan.to_arrow().columns:
        assert b"field_id" not in pa.schema([("x", column.type)]).serialize().to_pybytes()


def test_columns_have_the_requested_order() -> None:
    loaded = make_table().load()
    loaded_names = [one.name for one in loaded.metadata.current_schema.fields]
    scan = scan_table(loaded, columns=["_pos", "list.x", "id", "info.b", "Kind", "info.a", "_pos"])
    assert [scan.schema.names_by_id[one] for one in scan.schema.fields_by_id] == [
        "_pos", "list", "list.element", "list.element.x", "id", "info", "info.a", "info.b", "Kind",
    ]  # fmt: skip
    table = scan.to_arrow()
    assert table.column_names == ["_pos", "list", "id", "info", "Kind"]
    assert table.slice(19).to_pylist() == [
        {"_pos": 9, "list": [{"x": 9}], "id": 9, "info": {"a": 9, "b": "9"}, "Kind": "b"}
    ]
    assert scan_table(loaded, columns=["_file", "*", "id"]).arrow_schema.names == ["_file", *loaded_names]


def test_names_may_ignore_case() -> None:
    loaded = make_table().load()
    with pytest.raises(FieldNotFoundError, match="'kind'"):
        scan_table(loaded, columns=["kind"])
    scan = scan_table(loaded, "KIND = 'a' and ID < 5", columns=["kind", "_POS"], case_sensitive=False)
    assert scan.to_arrow().to_pydict() == {"Kind": ["a"] * 3, "_pos": [0, 2, 4]}


@pytest.mark.parametrize(
    "arguments, error, reason",
    [
        ({"columns": ["nope"]}, FieldNotFoundError, "'nope'"),
        ({"columns": ["info.nope"]}, FieldNotFoundError, "info.nope"),
        ({"columns": []}, InvalidRequestError, "no columns"),
        ({"columns": "id"}, InvalidRequestError, "not a list of names"),
        ({"predicate": "nope = 1"}, FieldNotFoundError, "nope"),
        ({"predicate": "id = "}, TextSyntaxError, "Cannot"),
        ({"predicate": "id = true"}, UnsupportedError, "no common type"),
        ({"snapshot_id": 99}, SnapshotNotFoundError, "99"),
        ({"ref": "nope"}, ReferenceNotFoundError, "nope"),
        ({"as_of": START_MS}, SnapshotNotFoundError, "no snapshot"),
        ({"snapshot_id": 1, "ref": "main"}, InvalidRequestError, "at once"),
        ({"as_of": dt.datetime(2024, 1, 1)}, InvalidRequestError, "no time zone"),
        ({"as_of": "2024-01-01T00:00:00"}, InvalidRequestError, "no time zone"),
        ({"as_of": "soon"}, InvalidRequestError, "not a time"),
        ({"as_of": True}, InvalidRequestError, "point in time"),
        ({"limit": -1}, InvalidRequestError, "limit -1"),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_scan_is_refused_when_created(arguments: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        scan_table(make_table().load(), **arguments)


def test_text_beside_a_number_is_refused_when_rows_are_read() -> None:
    scan = scan_table(make_table().load(), "id = 'x'")
    with pytest.raises(InvalidRequestError, match="the value 'x' does not fit"):
        scan.to_arrow()


def test_predicates_may_be_objects() -> None:
    loaded = make_table().load()
    assert ids(scan_table(loaded, at_least("id", 18))) == [18, 19]
    assert ids(scan_table(loaded, equal("info.b", "7") | equal("id", 3))) == [3, 7]


def test_scan_keeps_its_snapshot() -> None:
    table = make_table()
    scan = scan_table(table.load())
    table.append([row(99)])
    assert ids(scan) == list(range(20))
    assert ids(scan_table(table.load())) == [*range(20), 99]


def test_older_snapshots_are_read_by_id_time_and_name() -> None:
    table = make_table()
    table.set_ref("then", 1, "tag")
    table.set_ref("work", 1)
    table.commit(table.write_data([row(50)]), branch="work")
    loaded = table.load()
    first = START_MS + STEP_MS
    instant = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
    for arguments in (
        {"snapshot_id": 1},
        {"ref": "then"},
        {"as_of": first},
        {"as_of": instant},
        {"as_of": instant.astimezone(dt.timezone(dt.timedelta(hours=5)))},
        {"as_of": instant.isoformat()},
        {"as_of": instant.strftime("%Y-%m-%d %H:%M:%S.500Z")},
    ):
        assert ids(scan_table(loaded, **arguments)) == list(range(10)), arguments
    assert ids(scan_table(loaded, ref="work")) == [*range(10), 50]
    assert ids(scan_table(loaded, ref="main")) == list(range(20))


def test_snapshot_uses_its_own_schema_and_branch_that_of_the_table() -> None:
    table = make_table()
    table.update_schema(lambda u: u.rename_column("Kind", "sort").drop_column("list"))
    loaded = table.load()
    assert scan_table(loaded, snapshot_id=1).to_arrow().column_names == ["id", "Kind", "info", "list"]
    assert scan_table(loaded, ref="main").to_arrow().column_names == ["id", "sort", "info"]
    assert ids(scan_table(loaded, "Kind = 'a'", snapshot_id=1)) == [0, 2, 4, 6, 8]
    with pytest.raises(FieldNotFoundError):
        scan_table(loaded, "Kind = 'a'")


def test_batches_are_streamed_within_bounds() -> None:
    table = TableBuilder(SCHEMA)
    files = [
        table.write_data([row(number) for number in range(at, at + 50)], row_group_size=10) for at in range(0, 500, 50)
    ]
    table.commit(*files)
    loaded = table.load()
    batches = list(scan_table(loaded).to_batches(batch_rows=7))
    assert max(one.num_rows for one in batches) == 7
    assert [number for one in batches for number in one.column("id").to_pylist()] == list(range(500))
    with pytest.raises(InvalidRequestError, match="0 rows"):
        scan_table(loaded).to_batches(batch_rows=0)


def test_plan_order_is_kept_with_any_number_of_threads() -> None:
    table = TableBuilder(SCHEMA)
    table.commit(*[table.write_data([row(number)]) for number in range(30)])
    loaded = table.load()
    for threads in (1, 2, 8):
        scan = scan_table(loaded, options=ScanOptions(threads=threads))
        assert scan.to_arrow().column("id").to_pylist() == list(range(30))


@pytest.mark.parametrize("limit", [0, 1, 9, 10, 11, 20, 100])
def test_limit_stops_early(limit: int) -> None:
    scan = scan_table(make_table().load(), limit=limit)
    assert scan.to_arrow().num_rows == scan.count() == min(limit, 20)
    assert sum(one.num_rows for one in scan.to_batches(batch_rows=3)) == min(limit, 20)


def test_limit_reads_no_more_files_than_needed() -> None:
    table = TableBuilder(SCHEMA)
    files = [table.write_data([row(number)]) for number in range(50)]
    table.commit(*files)
    for file in files[25:]:
        table.storage.delete(file.file_path)
    scan = scan_table(table.load(), limit=5, options=ScanOptions(threads=2))
    assert scan.to_arrow().column("id").to_pylist() == [0, 1, 2, 3, 4]


def test_missing_file_fails_the_scan() -> None:
    table = make_table()
    table.storage.delete(table.live_files()[0].data_file.file_path)
    scan = scan_table(table.load())
    with pytest.raises(MissingFileError):
        scan.to_arrow()
    with pytest.raises(MissingFileError):
        list(scan.to_batches())


def test_exact_counts_come_from_metadata() -> None:
    table = make_table(partition_by=["Kind"])
    files = [one.data_file for one in table.live_files()]
    table.commit(*table.write_vectors({files[0]: [0, 1], files[3]: [2]}))
    for file in files:
        table.storage.delete(file.file_path)
    for entry in table.live_files():
        if entry.data_file.is_deletion_vector:
            table.storage.delete(entry.data_file.file_path)
    loaded = table.load()
    assert scan_table(loaded).count() == 17
    assert scan_table(loaded, "Kind = 'a'").count() + scan_table(loaded, "Kind != 'a'").count() == 17
    assert scan_table(loaded, "id < 0").count() == 0
    assert scan_table(loaded, "false").count() == 0
    with pytest.raises(MissingFileError):
        scan_table(loaded, "id < 5").count()


def test_position_delete_files_are_counted_without_data_files() -> None:
    table = make_table(version=2)
    files = [one.data_file for one in table.live_files()]
    # Positions that are deleted twice, and one beyond the end of the file.
    table.commit(table.write_position_deletes({files[0]: [0, 1]}), table.write_position_deletes({files[0]: [1, 2]}))
    table.commit(table.write_position_deletes({files[1]: [9, 10, 11]}))
    expected = scan_table(table.load()).to_arrow().num_rows
    for file in files:
        table.storage.delete(file.file_path)
    assert scan_table(table.load()).count() == expected == 16


def test_counts_with_equality_deletes_or_filters_read_the_rows() -> None:
    table = make_table()
    table.commit(table.write_equality_deletes([{"id": 3}, {"id": 77}], ["id"]))
    loaded = table.load()
    assert scan_table(loaded).count() == 19
    assert scan_table(loaded, "id < 10 and info.a > 1").count() == 7
    assert scan_table(loaded, "id < 10", limit=2).count() == 2


def test_files_without_recorded_counts_are_read() -> None:
    table = make_table()
    scan = scan_table(table.load())
    (task, *_) = scan.plan().tasks
    unknown = replace(task, data_file=replace(task.data_file, record_count=-1))
    assert scan._count(unknown, DeleteCache()) == 10


def test_pandas_is_imported_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = scan_table(make_table().load(), "id < 2", columns=["id", "Kind"])
    assert scan.to_pandas().to_dict("list") == {"id": [0, 1], "Kind": ["a", "b"]}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidRequestError, match="pandas is not installed"):
        scan.to_pandas()


def test_large_files_are_read_in_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.table.scan._PART_BYTES", 500)
    table = TableBuilder(SCHEMA, format_version=3, storage=LocalStorage(durable=False), location=f"file://{tmp_path}/t")
    (file,) = table.append([row(number) for number in range(100)], row_group_size=5)
    assert file.file_size_in_bytes > 2000
    table.commit(*table.write_vectors({file: [0, 50, 99]}))
    scan = scan_table(table.load(), columns=["id", "_pos"])
    assert len(list(scan._parts())) > 3
    expected = [number for number in range(100) if number not in (0, 50, 99)]
    assert scan.to_arrow().to_pydict() == {"id": expected, "_pos": expected}


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_fault_at_any_read_is_raised_and_never_loses_rows(file_format: str) -> None:
    table = TableBuilder(SCHEMA, format_version=2)
    (file,) = table.append(ROWS, file_format=file_format)
    table.commit(table.write_position_deletes({file: [3]}, file_format=file_format))
    table.commit(table.write_equality_deletes([{"id": 5}], ["id"], file_format=file_format))
    loaded = table.load()

    def scan(*faults: Fault) -> tuple[Scan, FailingStorage]:
        storage = FailingStorage(table.storage, *faults)
        failing = replace(loaded, storage=storage)
        return scan_table(failing, "id >= 0", options=ScanOptions(threads=1)), storage

    whole, storage = scan()
    expected = [number for number in range(20) if number not in (3, 5)]
    assert ids(whole) == expected
    # The manifest list, three manifests and three small files: each is fetched once. Avro does not tell its end.
    assert len(storage.calls) == (10 if file_format == "avro" else 7)
    for call in range(1, len(storage.calls) + 1):
        broken, _ = scan(Fault(call, FaultKind.IO_ERROR))
        with pytest.raises(StorageError):
            broken.to_arrow()
        assert ids(broken) == expected


def test_scan_repr_shows_its_columns_and_filter() -> None:
    scan = scan_table(make_table().load(), "id > 3", columns=["id"])
    assert scan.snapshot is not None
    assert scan.snapshot.snapshot_id == 2
    assert scan.arrow_schema.names == ["id"]
    assert "id > 3" in scan.plan().explain()
    assert isinstance(scan.to_arrow(), pa.Table)


def test_pickled_scan_reads_the_same_rows_without_its_cache(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint, kind string")
        table.append(pa.table({"id": [1, 2, 3], "kind": ["a", "b", "c"]}))
        scan = table.scan("id > 1", columns=["kind"])
        expected = scan.to_arrow()
        table.append(pa.table({"id": [4], "kind": ["d"]}))
        small = pickle.dumps(scan)
    again = pickle.loads(small)
    assert again.to_arrow() == expected
    assert again.options.manifest_cache is None
