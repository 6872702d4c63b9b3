"""Files of others as part of a table: partitions from folders and bounds, names, duplicates, what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import frazil
from frazil.errors import FrazilError, InvalidDataFileError, InvalidRequestError
from frazil.maintenance.add_files import AddFilesResult, add_files, partition_folders
from frazil.spec.data_file import FileFormat
from frazil.spec.properties import DEFAULT_NAME_MAPPING
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.storage.local import LocalStorage
from tests.support.file_writers import encode_file


def write(folder: Path, name: str, data: dict[str, Any]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(data), path)
    return path


def new_table(tmp_path: Path, schema: str = "id bigint, kind string", **options: Any) -> frazil.Table:
    return frazil.connect(str(tmp_path / "lake")).create_table("db.t", schema, **options)


def add(table: frazil.Table, source: Any, **options: Any) -> AddFilesResult:
    _, result = add_files(table._catalog, table.refresh().state, source, threads=1, **options)
    table.refresh()
    return result


def ids(table: frazil.Table, where: str | None = None) -> list[int]:
    found: list[int] = sorted(table.scan(where).to_arrow().column("id").to_pylist())
    return found


def test_files_of_a_folder_are_added_in_place(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for at in range(3):
        write(tmp_path / "in", f"{at}.parquet", {"kind": ["a", None], "id": [at, at + 10]})
    write(tmp_path / "in", "_SUCCESS/x.parquet", {"id": [99]})
    assert add(table, str(tmp_path / "in")) == AddFilesResult(3, 1)
    assert ids(table) == [0, 1, 2, 10, 11, 12]
    assert DEFAULT_NAME_MAPPING.name in table.properties
    assert all(one.data_file.file_path.startswith("file:///") for one in table.scan().plan().tasks)
    assert len(table.scan("id = 12").plan().tasks) == 1, "bounds come from footers"
    assert table.check(bounds=True).ok
    with table.update_schema() as update:
        update.rename_column("kind", "sort")
        update.add_column("more", "int")
    assert table.scan(columns=["sort"]).to_arrow().column(0).null_count == 3


def test_partitions_are_read_from_folder_names(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, kind string, day date", partition_by=["kind", "day"])
    root = tmp_path / "with=mark" / "in"
    write(root, "kind=a%20b/day=2024-01-02/0.parquet", {"id": [1]})
    write(root, "kind=__HIVE_DEFAULT_PARTITION__/day=2024-01-03/0.parquet", {"id": [2]})
    assert add(table, f"file://{root}") == AddFilesResult(2, 2)
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": 1, "kind": "a b", "day": datetime.date(2024, 1, 2)},
        {"id": 2, "kind": None, "day": datetime.date(2024, 1, 3)},
    ]
    assert ids(table, "kind = 'a b'") == [1]


def test_partitions_are_derived_from_unambiguous_bounds(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, ts timestamp", partition_by=["day(ts)", "bucket(4, id)"])
    moments = [datetime.datetime(2024, 1, 1, hour) for hour in (1, 23)]
    write(tmp_path / "in", "0.parquet", {"id": [7, 7], "ts": pa.array(moments, pa.timestamp("us"))})
    assert add(table, str(tmp_path / "in")) == AddFilesResult(1, 1)
    assert table.check(bounds=True).ok
    several = write(tmp_path, "x.parquet", {"id": [7, 8], "ts": pa.array(moments, pa.timestamp("us"))})
    with pytest.raises(InvalidDataFileError, match="may span several partitions of 'id_bucket"):
        add(table, [str(several)])


def test_files_can_be_selected_by_partition(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["kind"])
    for kind in "ab":
        write(tmp_path / "in", f"kind={kind}/0.parquet", {"id": [ord(kind)]})
    assert add(table, str(tmp_path / "in"), partition_filter={"kind": "b"}) == AddFilesResult(1, 1)
    assert ids(table) == [98]
    with pytest.raises(InvalidRequestError, match="not in a folder of that name"):
        add(table, str(tmp_path / "in"), partition_filter={"nope": "b"})


def test_file_is_added_once_unless_duplicates_are_allowed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = write(tmp_path / "in", "0.parquet", {"id": [1]})
    add(table, [str(path)])
    with pytest.raises(InvalidRequestError, match="is already in the table"):
        add(table, [f"file:{path}"])
    with pytest.raises(InvalidRequestError, match="listed twice"):
        add(table, [str(path), f"file://{path}"], checks_duplicates=True)
    add(table, [str(path)], checks_duplicates=False)
    assert ids(table) == [1, 1]


def test_file_added_concurrently_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = write(tmp_path / "in", "0.parquet", {"id": [1]})
    stale = table.state
    add(table, [str(path)])
    with pytest.raises(FrazilError, match="is already in the table"):
        add_files(table._catalog, stale, [str(path)], threads=1)
    assert ids(table.refresh()) == [1]


def test_dry_run_adds_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write(tmp_path / "in", "0.parquet", {"id": [1]})
    before = table.metadata
    assert add(table, str(tmp_path / "in"), dry_run=True) == AddFilesResult(1, 1)
    assert table.refresh().metadata == before


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("0.parquet", {"id": ["text"]}, FrazilError),
        ("0.parquet", {"id": [1.5]}, FrazilError),
        ("kind=x/0.orc", {"id": [1]}, InvalidDataFileError),
        ("part-0", {"id": ["text"]}, FrazilError),
    ],
)
def test_incompatible_files_are_refused(
    tmp_path: Path, name: str, data: dict[str, Any], error: type[FrazilError]
) -> None:
    table = new_table(tmp_path)
    write(tmp_path / "in", name, data)
    with pytest.raises(error):
        add(table, str(tmp_path / "in"))
    assert table.refresh().current_snapshot is None


def test_invalid_folders_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, n int", partition_by=["n"])
    with pytest.raises(InvalidRequestError, match="no data files found"):
        add(table, str(tmp_path / "nowhere"))
    write(tmp_path / "in", "n=many/0.parquet", {"id": [1]})
    with pytest.raises(InvalidDataFileError, match="n='many'"):
        add(table, str(tmp_path / "in"))


def test_non_parquet_files_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "readme.txt").write_text("hello, this is no file of rows")
    with pytest.raises(FrazilError):
        add(table, str(tmp_path / "in"))


def test_folder_names_are_read_literally() -> None:
    assert partition_folders("a=1/b%3Dc=x%2Fy/f=.parquet") == {"a": "1", "b=c": "x/y"}


AVRO_SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": ["null", "string"]},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "unknown to the table", "type": "int"},
    ],
}
MOMENT = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)


def write_foreign(folder: Path, name: str, ids: list[int], *, kind: str) -> Path:
    """Write rows in a format, without field ids; the last row has no kind."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds: list[str | None] = [*(f"k{one}" for one in ids[:-1]), None]
    if kind == "avro":
        rows = [
            {"id": one, "kind": text, "ts": MOMENT, "unknown to the table": 1}
            for one, text in zip(ids, kinds, strict=True)
        ]
        with path.open("wb") as file:
            fastavro.writer(file, AVRO_SCHEMA, rows)
        return path
    rows_table = pa.table(
        {
            "kind": pa.array(kinds, pa.string()),
            "ts": pa.array([MOMENT] * len(ids), pa.timestamp("us", "UTC")),
            "id": ids,
            "unknown to the table": pa.array([1] * len(ids), pa.int32()),
        }
    )
    orc.write_table(rows_table, path)
    return path


@pytest.mark.parametrize("kind", ["orc", "avro"])
@pytest.mark.parametrize("ending", ["by name", "by bytes"])
def test_orc_and_avro_folders_are_added_with_exact_bounds(tmp_path: Path, kind: str, ending: str) -> None:
    table = new_table(tmp_path, "id bigint, kind string, ts timestamptz, later int")
    end = f".{kind}" if ending == "by name" else ""
    for at in range(3):
        write_foreign(tmp_path / "in", f"part-{at}{end}", [at * 10, at * 10 + 1], kind=kind)
    assert add(table, str(tmp_path / "in")) == AddFilesResult(3, 1)
    assert ids(table) == [0, 1, 10, 11, 20, 21]
    assert ids(table, "kind is null") == [1, 11, 21]
    assert len(table.scan("id > 15").plan().tasks) == 1, "bounds come from the rows"
    rows = table.scan("id = 10").to_arrow().to_pylist()
    assert rows == [{"id": 10, "kind": "k10", "ts": MOMENT, "later": None}]
    assert table.check(bounds=True).ok
    assert table.maintain.rewrite_data_files(options={"rewrite-all": True}).added_data_files_count == 1
    assert ids(table) == [0, 1, 10, 11, 20, 21]


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_orc_and_avro_partitions_come_from_folders_and_bounds(tmp_path: Path, kind: str) -> None:
    table = new_table(tmp_path, "id bigint, ts timestamptz, part string", partition_by=["part", "day(ts)"])
    write_foreign(tmp_path / "in", f"part=a/0.{kind}", [1, 2], kind=kind)
    write_foreign(tmp_path / "in", f"part=b/0.{kind}", [3], kind=kind)
    assert add(table, str(tmp_path / "in")) == AddFilesResult(2, 2)
    assert ids(table, "part = 'b'") == [3]
    assert len(table.scan("ts < '2024-05-06T00:00:00Z'").plan().tasks) == 0
    assert table.check(bounds=True).ok


def test_file_that_is_not_a_data_file_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text("id,kind\n1,a\n")
    with pytest.raises(InvalidDataFileError, match="not Parquet, ORC or Avro"):
        add(table, str(tmp_path / "in"))
    with pytest.raises(FrazilError):
        add(table, str(tmp_path / "in"), file_format=FileFormat.ORC)


def numbered(names: dict[str, int]) -> pa.Table:
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)}) for name, number in names.items()]
    return pa.table([pa.array([number * 10]) for number in names.values()], schema=pa.schema(fields))


def write_numbered(path: Path, names: dict[str, int]) -> str:
    """Write a row of whole numbers into a file whose columns have ids, in the way of its format."""
    if path.suffix == ".parquet":
        pq.write_table(numbered(names), path)
    elif path.suffix == ".orc":
        storage, schema = (
            LocalStorage(durable=False),
            Schema(tuple(NestedField(n, name, LONG) for name, n in names.items())),
        )
        storage.create(f"file://{path}", encode_file(pa.table(numbered(names).to_pydict()), schema, "orc"))
    else:
        fields = [{"name": name, "type": "long", "field-id": number} for name, number in names.items()]
        with path.open("wb") as out:
            fastavro.writer(
                out,
                {"type": "record", "name": "r", "fields": fields},
                [{name: number * 10 for name, number in names.items()}],
            )
    return str(path)


@pytest.mark.parametrize("ending", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"v": 2, "k": 1}, "its column 'v' has the field id 2, which is 'k' in the table"),
        ({"v": 1, "k": 3}, "its column 'k' has the field id 3, which the table does not have"),
        ({"v": 1, "other": 2}, "its column 'other' has the field id 2, which is 'k' in the table"),
    ],
)
def test_files_with_foreign_column_ids_are_refused(
    tmp_path: Path, ending: str, names: dict[str, int], reason: str
) -> None:
    table = new_table(tmp_path, "v bigint, k bigint")
    path = write_numbered(tmp_path / f"f.{ending}", names)
    with pytest.raises(InvalidDataFileError, match=reason) as caught:
        add(table, [path])
    assert "without ids" in str(caught.value.hint)
    assert path in str(caught.value)


@pytest.mark.parametrize("ending", ["parquet", "orc", "avro"])
def test_files_with_the_column_ids_of_the_table_are_accepted(tmp_path: Path, ending: str) -> None:
    table = new_table(tmp_path, "v bigint, k bigint")
    with table.update_schema() as update:
        update.rename_column("k", "key")
    path = write_numbered(tmp_path / f"f.{ending}", {"k": 2, "v": 1})
    add(table, [path])
    assert table.scan().to_arrow().to_pylist() == [{"v": 10, "key": 20}]


def test_duplicate_or_partial_column_ids_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, "v bigint, k bigint")
    twice = numbered({"v": 1, "k": 2})
    twice = twice.rename_columns(["v", "k"]).cast(
        pa.schema([pa.field(name, pa.int64(), metadata={"PARQUET:field_id": "1"}) for name in ("v", "k")])
    )
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InvalidDataFileError, match="the same field id 1"):
        add(table, [str(tmp_path / "twice.parquet")])
    some = numbered({"v": 1}).append_column("k", pa.array([5]))
    pq.write_table(some, tmp_path / "some.parquet")
    with pytest.raises(InvalidDataFileError, match="its column 'k' has no field id, but others have"):
        add(table, [str(tmp_path / "some.parquet")])


def test_exported_file_is_added_to_another_table_by_name(tmp_path: Path) -> None:
    lake = frazil.connect(str(tmp_path / "lake"))
    source = lake.create_table("db.a", "k bigint, v bigint, s struct<a: bigint, b: bigint>")
    source.append([{"k": 1, "v": 100, "s": {"a": 1, "b": 2}}])
    target = lake.create_table("db.b", "v bigint, s struct<b: bigint, a: bigint>, k bigint")
    pq.write_table(source.scan().to_arrow(), tmp_path / "f.parquet")
    add(target, [str(tmp_path / "f.parquet")])
    assert target.scan().to_arrow().to_pylist() == [{"v": 100, "s": {"b": 2, "a": 1}, "k": 1}]
