"""The table of deleted positions."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import InvalidDataFileError, InvalidPuffinError, MissingFileError
from frazil.metadata_tables.position_deletes import iter_position_deletes, position_deletes
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.spec.types import INT, LONG, STRING, ListType, StructType
from tests.support.builders import field, schema
from tests.support.tables import TableBuilder

DAY = 86_400_000_000
FORMATS = ["parquet", "orc", "avro"]


def rows(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(table)]


def test_columns_and_types_match_iceberg_java() -> None:
    found = position_deletes(TableBuilder(schema(), partition_by=["kind"]).load())
    assert [(part.name, str(part.type), part.nullable) for part in found.schema] == [
        ("file_path", "string", False),
        ("pos", "int64", False),
        ("row", "struct<id: int64, ts: timestamp[us, tz=UTC], kind: string>", True),
        ("partition", "struct<kind: string>", False),
        ("spec_id", "int32", False),
        ("delete_file_path", "string", False),
    ]
    unpartitioned = position_deletes(TableBuilder(schema(), format_version=3).load())
    assert unpartitioned.column_names == [
        "file_path",
        "pos",
        "row",
        "spec_id",
        "delete_file_path",
        "content_offset",
        "content_size_in_bytes",
    ]
    assert (found.num_rows, unpartitioned.num_rows) == (0, 0)


@pytest.mark.parametrize("file_format", FORMATS)
def test_positions_are_read_from_delete_files_of_every_format(file_format: str) -> None:
    table = TableBuilder(schema(), partition_by=["day(ts)"])
    one, two = table.append([{"id": 1, "ts": 0}, {"id": 2, "ts": DAY}])
    deletes = table.write_position_deletes({one: [0, 7], "memory://gone": [3]}, file_format=file_format)
    table.commit(deletes, table.write_position_deletes({two: [0]}, file_format=file_format))
    first, second = datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)
    found = shown(position_deletes(table.load()))
    assert sorted((path, pos, partition["ts_day"]) for path, pos, _, partition, _, _ in found) == sorted(
        [
            (one.file_path, 0, first),
            (one.file_path, 7, first),
            ("memory://gone", 3, first),
            (two.file_path, 0, second),
        ]
    )
    assert {row[5] for row in found if row[0] != two.file_path} == {deletes.file_path}


@pytest.mark.parametrize("file_format", FORMATS)
def test_deleted_rows_use_the_current_schema(file_format: str) -> None:
    inner = StructType((field(4, "x", INT), field(5, "y", STRING)))
    table = TableBuilder(
        schema(field(1, "a", INT, required=True), field(2, "p", inner), field(3, "t", ListType(6, INT)))
    )
    kept = {"a": 7, "p": {"x": 1, "y": "q"}, "t": [1, None]}
    (file,) = table.append([kept])
    table.commit(table.write_position_deletes({file: [0]}, rows={(file.file_path, 0): kept}, file_format=file_format))
    table.update_schema(
        lambda u: (
            u.set_type("a", LONG)
            .rename_column("p.y", "z")
            .drop_column("p.x")
            .add_column("more", STRING)
            .move_first("t")
        )
    )
    (row,) = rows(position_deletes(table.load()))
    assert row["row"] == {"t": [1, None], "a": 7, "p": {"z": "q"}, "more": None}
    (part,) = rows(position_deletes(table.load(), columns=["row.p", "pos"]))
    assert part == {"row": {"p": {"z": "q"}}, "pos": 0}


def test_files_with_and_without_rows_are_combined() -> None:
    table = TableBuilder(schema())
    (file,) = table.append([{"id": 1, "kind": "a"}])
    stored = {(file.file_path, 0): {"id": 1, "ts": None, "kind": "a"}}
    table.commit(table.write_position_deletes({file: [0]}, rows=stored))
    table.commit(table.write_position_deletes({file: [0]}))
    found = position_deletes(table.load(), columns=["row"]).column(0).to_pylist()
    assert found == [None, {"id": 1, "ts": None, "kind": "a"}]


def test_deletion_vectors_show_their_position() -> None:
    table = TableBuilder(schema(), partition_by=["kind"], format_version=3)
    one, two = table.append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}])
    first, second = table.write_vectors({one: [5, 1 << 33], two: [0]})
    table.commit(first, second)
    found = shown(position_deletes(table.load()))
    assert found == [
        (one.file_path, 5, None, {"kind": "a"}, 0, *where(first)),
        (one.file_path, 1 << 33, None, {"kind": "a"}, 0, *where(first)),
        (two.file_path, 0, None, {"kind": "b"}, 0, *where(second)),
    ]


def where(file: Any) -> tuple[str, int | None, int | None]:
    return file.file_path, file.content_offset, file.content_size_in_bytes


def test_delete_files_from_before_the_upgrade_have_no_offset() -> None:
    table = TableBuilder(schema())
    (file,) = table.append([{"id": 1}])
    table.commit(table.write_position_deletes({file: [0]}))
    table.upgrade(3)
    (other,) = table.append([{"id": 2}])
    (vector,) = table.write_vectors({other: [0]})
    table.commit(vector)
    found = position_deletes(table.load(), columns=["file_path", "content_offset"])
    assert sorted(shown(found)) == sorted([(other.file_path, vector.content_offset), (file.file_path, None)])


def test_equality_deletes_and_removed_delete_files_are_excluded() -> None:
    table = TableBuilder(schema())
    (file,) = table.append([{"id": 1}])
    old = table.write_position_deletes({file: [0]})
    table.commit(old, table.write_equality_deletes([{"id": 9}], ["id"]))
    table.commit(deleted=[old])
    assert position_deletes(table.load()).num_rows == 0
    before = position_deletes(table.load(), choice=SnapshotChoice(snapshot_id=2))
    assert before.column("delete_file_path").to_pylist() == [old.file_path]


def test_partitions_of_delete_files_share_one_type() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    (one,) = table.append([{"id": 1, "kind": "a"}])
    table.update_spec(lambda u: u.remove_field("kind").add_field("bucket(4, id)"))
    (two,) = table.append([{"id": 1, "kind": "a"}])
    table.commit(table.write_position_deletes({one: [0]}), table.write_position_deletes({two: [0]}))
    found = position_deletes(table.load(), columns=["partition", "spec_id"])
    assert sorted(shown(found), key=lambda row: row[1]) == [
        ({"kind": "a", "id_bucket_4": None}, 0),
        ({"kind": None, "id_bucket_4": 0}, 1),
    ]


def test_rows_stream_by_file_and_large_vectors_in_parts() -> None:
    table = TableBuilder(schema(), format_version=3)
    one, two = table.append([{"id": 1}])[0], table.append([{"id": 2}])[0]
    table.commit(*table.write_vectors({one: range(300_000), two: [1]}))
    parts = list(iter_position_deletes(table.load(), columns=["pos"]))
    assert len(parts) == 4
    whole = pa.concat_tables(parts).column(0).to_pylist()
    assert whole == [*range(300_000), 1]


def test_computed_columns_alone_still_have_one_row_per_position() -> None:
    table = TableBuilder(schema())
    (file,) = table.append([{"id": 1}])
    deletes = table.write_position_deletes({file: [0, 1, 2]})
    table.commit(deletes)
    assert position_deletes(table.load(), columns=["delete_file_path"]).column(0).to_pylist() == [deletes.file_path] * 3
    assert position_deletes(table.load(), columns=["row"]).column(0).to_pylist() == [None] * 3


def test_damaged_delete_files_are_refused_with_their_path() -> None:
    table = TableBuilder(schema(), format_version=3)
    (file,) = table.append([{"id": 1}])
    (vector,) = table.write_vectors({file: [0]})
    table.commit(vector)
    table.storage.replace(vector.file_path, b"\0" * vector.file_size_in_bytes)
    with pytest.raises(InvalidPuffinError) as caught:
        position_deletes(table.load())
    assert caught.value.context["path"] == vector.file_path
    old = TableBuilder(schema())
    (data,) = old.append([{"id": 1}])
    deletes = old.write_position_deletes({data: [0]})
    old.commit(deletes)
    old.storage.replace(deletes.file_path, b"PAR1" + b"\0" * (deletes.file_size_in_bytes - 8) + b"PAR1")
    with pytest.raises(InvalidDataFileError) as refused:
        position_deletes(old.load())
    assert refused.value.context["path"] == deletes.file_path
    old.storage.delete(deletes.file_path)
    with pytest.raises(MissingFileError):
        position_deletes(old.load())


def test_delete_file_without_positions_is_refused() -> None:
    table = TableBuilder(schema())
    file = table.write_equality_deletes([{"id": 1}], ["id"])
    position = table.write_position_deletes({"memory://x": [0]})
    table.commit(replace(position, file_path=file.file_path, file_size_in_bytes=file.file_size_in_bytes))
    with pytest.raises(InvalidDataFileError, match="file_path") as caught:
        position_deletes(table.load())
    assert caught.value.context["path"] == file.file_path
