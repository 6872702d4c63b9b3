"""Delete files and deletion vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.deletion_vector import DeletionVector, describe_deletion_vector, read_deletion_vector
from frazil.codec.puffin import read_puffin_footer
from frazil.codec.single_value import decode_bound
from frazil.datafile.write import write_data_files
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.datafile.write_target import WriteTarget
from frazil.errors import (
    FieldNotFoundError,
    InvalidRequestError,
    NotFoundError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.spec.data_file import DataFile, FileContent, FileFormat, check_data_file
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA
from frazil.spec.partitioning import PartitionSpec, build_partition_spec
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, StructType
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.memory import MemoryStorage
from tests.support.builders import field, schema
from tests.support.equality_delete_writer import write_equality_deletes
from tests.support.written_files import LOCATION, ids, read_file, read_rows, target

TABLE = schema(
    field(1, "id", LONG, required=True),
    field(2, "day", STRING),
    field(3, "s", StructType((field(4, "x", LONG), field(5, "y", STRING)))),
)
DAY = build_partition_spec(TABLE, ["day"], spec_id=1)


def data_file(name: str, *, spec_id: int = 0, partition: tuple[Any, ...] = (), rows: int = 1000) -> DataFile:
    return DataFile(f"{LOCATION}/data/{name}", FileFormat.PARQUET, rows, 10, spec_id=spec_id, partition=partition)


# --- deletion vectors


def test_vectors_of_one_write_share_a_puffin_file() -> None:
    place = target(TABLE)
    deletes = {"b": [5, 1, 1], "a": range(100), "c": np.array([7])}
    files = write_deletion_vectors(
        [DeletedRows.of(data_file(name, spec_id=1, partition=(name,)), rows) for name, rows in deletes.items()],
        place,
        new_id=ids("op"),
    )
    path = f"{LOCATION}/data/00000-0-op-0-00001-deletes.puffin"
    assert {file.file_path for file in files} == {path}
    assert [file.record_count for file in files] == [2, 100, 1]
    assert [file.partition for file in files] == [("b",), ("a",), ("c",)]
    size = place.storage.size(path)
    footer = read_puffin_footer(lambda at, count: place.storage.read_range(path, at, count), size)
    described = [describe_deletion_vector(blob) for blob in footer.blobs]
    for file, stored, rows in zip(files, described, deletes.values(), strict=True):
        check_data_file(file, 3)
        assert file.is_deletion_vector
        assert (file.spec_id, file.file_size_in_bytes, file.sort_order_id) == (1, size, None)
        assert (file.content_offset, file.content_size_in_bytes) == (
            stored.content_offset,
            stored.content_size_in_bytes,
        )
        assert file.referenced_data_file == stored.referenced_data_file
        assert file.content_offset is not None
        assert file.content_size_in_bytes is not None
        vector = read_deletion_vector(
            lambda at, count: place.storage.read_range(path, at, count),
            file.content_offset,
            file.content_size_in_bytes,
            record_count=file.record_count,
        )
        assert vector == DeletionVector(rows)


def test_deletes_of_a_file_become_one_vector() -> None:
    place = target(TABLE)
    one = data_file("a")
    files = write_deletion_vectors(
        [DeletedRows.of(one, [1]), DeletedRows.of(data_file("b"), []), DeletedRows.of(one, [3])], place
    )
    assert [(file.referenced_data_file, file.record_count) for file in files] == [(one.file_path, 2)]
    assert write_deletion_vectors([DeletedRows.of(one, [])], place) == []
    assert len(list(place.storage.list(LOCATION))) == 1


def test_vectors_require_version_3_and_one_partition_per_file() -> None:
    deletes = [DeletedRows.of(data_file("a"), [1])]
    with pytest.raises(UnsupportedError, match="format version 2 has none"):
        write_deletion_vectors(deletes, target(TABLE, format_version=2))
    other = DeletedRows.of(data_file("a", partition=("x",)), [2])
    with pytest.raises(InvalidRequestError, match="two different partitions"):
        write_deletion_vectors([*deletes, other], target(TABLE))
    nan = DeletedRows.of(data_file("a", partition=(math.nan,)), [2])
    assert (
        len(write_deletion_vectors([nan, DeletedRows.of(data_file("a", partition=(-math.nan,)), [3])], target(TABLE)))
        == 1
    )


def test_positions_beyond_the_file_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"Cannot delete row 1000 of .*: the file has 1000 rows"):
        DeletedRows.of(data_file("a"), [1000])
    with pytest.raises(InvalidRequestError, match="the position -1"):
        DeletedRows.of(data_file("a"), [-1])
    with pytest.raises(InvalidRequestError, match="not a data file"):
        DeletedRows.of(DataFile("x", FileFormat.PARQUET, 1, 1, content=FileContent.POSITION_DELETES), [0])


def test_puffin_file_with_an_unknown_outcome_is_named() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(1, FaultKind.APPLIED_BUT_ERROR))
    with pytest.raises(WriteOutcomeUnknownError) as caught:
        write_deletion_vectors([DeletedRows.of(data_file("a"), [1])], target(TABLE, storage=storage))
    assert len(caught.value.context["unsettled_files"]) == 1  # type: ignore[arg-type]


# --- position delete files


def v2(spec: PartitionSpec = DAY, **options: Any) -> WriteTarget:
    place = target(TABLE, format_version=2, **options)
    return WriteTarget(
        TABLE, LOCATION, place.storage, spec, properties=place.properties, format_version=2,
        older_specs=(build_partition_spec(TABLE, []), DAY),
    )  # fmt: skip


def paths_and_positions(place: WriteTarget, file: DataFile) -> list[tuple[str, int]]:
    table = read_file(place.storage, file, POSITION_DELETE_SCHEMA)
    return list(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))


DELETES = [
    DeletedRows.of(data_file("b", spec_id=1, partition=("x",)), [9, 2]),
    DeletedRows.of(data_file("a", spec_id=1, partition=("x",)), [4, 3, 3]),
    DeletedRows.of(data_file("c", spec_id=1, partition=("y",)), [0]),
    DeletedRows.of(data_file("d"), [1]),
]


def test_each_data_file_has_its_own_delete_file_by_default() -> None:
    place = v2()
    files = write_position_deletes(DELETES, place, new_id=ids("op"))
    assert [file.referenced_data_file for file in files] == [f"{LOCATION}/data/{name}" for name in "abcd"]
    assert [(file.spec_id, file.partition) for file in files] == [(1, ("x",)), (1, ("x",)), (1, ("y",)), (0, ())]
    assert [file.file_path for file in files[1:]] == [
        f"{LOCATION}/data/day=x/00000-0-op-0-00002-deletes.parquet",
        f"{LOCATION}/data/day=y/00000-0-op-0-00003-deletes.parquet",
        f"{LOCATION}/data/00000-0-op-0-00004-deletes.parquet",
    ]
    assert paths_and_positions(place, files[0]) == [(f"{LOCATION}/data/a", 3), (f"{LOCATION}/data/a", 4)]
    for file in files:
        check_data_file(file, 2)
        assert file.content is FileContent.POSITION_DELETES
        assert file.sort_order_id is None
        path = str(file.referenced_data_file).encode()
        assert file.lower_bounds is not None
        assert file.upper_bounds is not None
        assert file.lower_bounds[DELETE_FILE_PATH.field_id] == file.upper_bounds[DELETE_FILE_PATH.field_id] == path


def test_deletes_of_a_partition_are_sorted_by_path_and_position() -> None:
    place = v2()
    files = write_position_deletes(DELETES, place, granularity="partition")
    assert [file.record_count for file in files] == [4, 1, 1]
    assert paths_and_positions(place, files[0]) == [
        (f"{LOCATION}/data/a", 3), (f"{LOCATION}/data/a", 4), (f"{LOCATION}/data/b", 2), (f"{LOCATION}/data/b", 9),
    ]  # fmt: skip
    assert [file.referenced_data_file for file in files] == [None, f"{LOCATION}/data/c", f"{LOCATION}/data/d"]
    lower, upper = files[0].lower_bounds or {}, files[0].upper_bounds or {}
    assert (lower[DELETE_FILE_PATH.field_id], upper[DELETE_FILE_PATH.field_id]) == (
        f"{LOCATION}/data/a".encode(),
        f"{LOCATION}/data/b".encode(),
    )
    assert (decode_bound(lower[DELETE_POS.field_id], LONG), decode_bound(upper[DELETE_POS.field_id], LONG)) == (2, 9)
    by_property = v2(properties={"write.delete.granularity": "partition"})
    assert len(write_position_deletes(DELETES, by_property)) == 3


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_position_deletes_are_written_in_any_format(file_format: str) -> None:
    place = v2(properties={"write.delete.format.default": file_format})
    files = write_position_deletes(DELETES, place, granularity="partition")
    assert {str(file.file_format) for file in files} == {file_format}
    assert len(paths_and_positions(place, files[0])) == 4


@pytest.mark.extended
def test_many_deletes_roll_over_in_order() -> None:
    place = v2(
        properties={"write.delete.target-file-size-bytes": "100000", "write.delete.parquet.compression-codec": "snappy"}
    )
    big = DeletedRows.of(data_file("big", rows=10**7), range(0, 3_000_000, 3))
    files = write_position_deletes([big], place)
    assert len(files) > 1
    assert {file.referenced_data_file for file in files} == {big.file_path}
    positions = [at for file in files for _, at in paths_and_positions(place, file)]
    assert positions == list(range(0, 3_000_000, 3))
    stored = pq.ParquetFile(pa.BufferReader(place.storage.read(files[0].file_path)))
    assert stored.metadata.row_group(0).column(0).compression == "SNAPPY"
    assert "required binary field_id=2147483546 file_path (String)" in str(stored.schema)
    assert "required int64 field_id=2147483545 pos" in str(stored.schema)


@pytest.mark.parametrize("version, reason", [(1, "has no deletes"), (3, "uses deletion vectors instead")])
def test_position_delete_files_require_version_2(version: int, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        write_position_deletes(DELETES, target(TABLE, format_version=version))


def test_unknown_spec_is_refused() -> None:
    with pytest.raises(NotFoundError, match="Cannot find partition spec 9"):
        write_position_deletes([DeletedRows.of(data_file("a", spec_id=9), [1])], v2())


def test_failure_names_the_completed_delete_files() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(3, FaultKind.IO_ERROR, frozenset({"create"})))
    with pytest.raises(StorageError) as caught:
        write_position_deletes(DELETES, v2(storage=storage))
    written: Any = caught.value.context["written_files"]
    assert set(written) == {one.path for one in storage.list(LOCATION)}
    assert len(written) == 2


def test_no_deletes_make_no_files() -> None:
    assert write_position_deletes([], v2()) == []
    assert write_position_deletes([DeletedRows.of(data_file("a"), [])], v2()) == []


# --- equality delete files


def test_equality_delete_values_have_the_ids_of_the_table() -> None:
    place = v2(build_partition_spec(TABLE, []))
    files = write_equality_deletes(pa.table({"id": [3, 4]}), place, ["id"], new_id=ids("op"))
    (file,) = files
    check_data_file(file, 2)
    assert file.file_path == f"{LOCATION}/data/00000-0-op-0-00001-deletes.parquet"
    assert (file.content, file.equality_ids, file.sort_order_id) == (FileContent.EQUALITY_DELETES, (1,), 0)
    assert (file.record_count, file.partition) == (2, ())
    assert read_rows(place.storage, files, schema(field(1, "id", LONG, required=True))) == [{"id": 3}, {"id": 4}]
    assert (file.lower_bounds or {})[1] == (3).to_bytes(8, "little")


def test_extra_columns_are_stored_and_not_compared() -> None:
    place = v2(build_partition_spec(TABLE, []))
    data = pa.table({"s": pa.array([{"x": 7}, None], pa.struct([("x", pa.int64())])), "id": [1, 2]})
    (file,) = write_equality_deletes(data, place, ["s.x"])
    assert file.equality_ids == (4,)
    stored = pq.ParquetFile(pa.BufferReader(place.storage.read(file.file_path))).schema_arrow
    assert stored.names == ["id", "s"]
    assert stored.field("s").type.num_fields == 1


def test_equality_deletes_go_to_the_partition_of_each_row() -> None:
    place = v2()
    data = pa.table({"id": [1, 2, 3], "day": ["x", "y", "x"]})
    files = write_equality_deletes(data, place, [1])
    assert sorted((file.partition, file.record_count) for file in files) == [(("x",), 2), (("y",), 1)]
    assert {file.spec_id for file in files} == {1}
    with pytest.raises(InvalidRequestError, match="the partition field 'day' needs the column of field id 2"):
        write_equality_deletes(pa.table({"id": [1]}), place, ["id"])
    (file,) = write_equality_deletes(pa.table({"id": [1]}), place, ["id"], partition=("z",))
    assert (file.partition, file.spec_id) == (("z",), 1)
    (file,) = write_equality_deletes(pa.table({"id": [1]}), place, ["id"], spec_id=0)
    assert (file.partition, file.spec_id) == ((), 0)
    with pytest.raises(InvalidRequestError, match="2 partition values are given for the 1 fields of spec 1"):
        write_equality_deletes(pa.table({"id": [1]}), place, ["id"], partition=("a", "b"))


def test_unsupported_key_columns_are_refused() -> None:
    place = v2(build_partition_spec(TABLE, []))
    with pytest.raises(InvalidRequestError, match="no column 'day' to compare"):
        write_equality_deletes(pa.table({"id": [1]}), place, ["id", "day"])
    with pytest.raises(FieldNotFoundError, match="no such field"):
        write_equality_deletes(pa.table({"id": [1]}), place, ["gone"])
    with pytest.raises(InvalidRequestError, match="no columns are given"):
        write_equality_deletes(pa.table({"id": [1]}), place, [])
    struct = pa.table({"s": pa.array([{"x": 1, "y": "a"}])})
    with pytest.raises(InvalidRequestError, match="Cannot delete by equality of 's'"):
        write_equality_deletes(struct, place, ["s"])
    with pytest.raises(UnsupportedError, match="format version 1"):
        write_equality_deletes(pa.table({"id": [1]}), target(TABLE, format_version=1), ["id"])


def test_deletes_apply_to_written_data_files() -> None:
    place = target(TABLE)
    (file,) = write_data_files([{"id": at} for at in range(10)], place, new_id=ids())
    (vector,) = write_deletion_vectors([DeletedRows.of(file, [0, 9])], place)
    assert vector.referenced_data_file == file.file_path
    assert vector.record_count == 2


def test_column_names_may_differ_in_case() -> None:
    place = v2(build_partition_spec(TABLE, []))
    (file,) = write_equality_deletes(pa.table({"ID": [1]}), place, ["Id"], case_sensitive=False)
    assert file.equality_ids == (1,)
    assert Schema(TABLE.fields[:1]).field(1).name == "id"
