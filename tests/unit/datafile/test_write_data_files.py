"""The write path from rows to described files."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.datafile.rows_writer import PathList
from frazil.datafile.write import DataFileWriter, write_data_files
from frazil.datafile.write_target import WriteTarget, write_target
from frazil.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.loaded import LoadedTable
from frazil.spec.data_file import FileContent, FileFormat, check_data_file
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.transforms import UnknownTransform, Void
from frazil.spec.types import DOUBLE, INT, LONG, STRING, UNKNOWN, ListType, StructType
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support.builders import field, schema
from tests.support.written_files import LOCATION, ids, read_file, read_rows, target

TABLE = schema(field(1, "id", LONG, required=True), field(2, "day", STRING), field(3, "x", DOUBLE))


def rows(count: int, *, days: int = 3, start: int = 0) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "day": pa.array([f"2024-01-{at % days + 1:02d}" for at in numbers]),
            "x": pa.array([float(at * 7919 % 1000) for at in numbers]),
        }
    )


def test_table_is_written_as_one_described_file() -> None:
    place = target(TABLE)
    (file,) = write_data_files(rows(10), place, new_id=ids("op"))
    assert file.file_path == f"{LOCATION}/data/00000-0-op-0-00001.parquet"
    assert (file.content, file.file_format, file.record_count) == (FileContent.DATA, FileFormat.PARQUET, 10)
    assert file.file_size_in_bytes == place.storage.size(file.file_path)
    assert (file.spec_id, file.partition, file.sort_order_id) == (0, (), 0)
    assert file.first_row_id is None
    check_data_file(file, 3)
    assert read_file(place.storage, file, TABLE).column("id").to_pylist() == list(range(10))


def test_loaded_table_determines_how_files_are_written() -> None:
    storage = MemoryStorage()
    place = target(TABLE, partition_by=["day"], sort_by=["x desc"], storage=storage)
    metadata = TableMetadata(
        format_version=2,
        table_uuid="11111111-1111-1111-1111-111111111111",
        location=LOCATION,
        last_updated_ms=0,
        last_column_id=3,
        schemas=(TABLE,),
        current_schema_id=0,
        partition_specs=(place.spec,),
        sort_orders=(place.sort_order,),
        default_sort_order_id=place.sort_order.order_id,
        properties=FrozenMap({"write.format.default": "avro"}),
    )
    loaded = LoadedTable(("db", "t"), metadata, None, storage)
    files = write_data_files(rows(9), loaded)
    assert {file.partition for file in files} == {("2024-01-01",), ("2024-01-02",), ("2024-01-03",)}
    assert {file.file_format for file in files} == {FileFormat.AVRO}
    assert {file.sort_order_id for file in files} == {place.sort_order.order_id}
    assert write_target(loaded).find_spec(0) == place.spec


def test_no_rows_make_no_files() -> None:
    place = target(TABLE)
    assert write_data_files(rows(0), place) == []
    assert write_data_files(rows(0).to_reader(), place) == []
    assert list(place.storage.list(LOCATION)) == []


def test_partitions_have_folders_and_file_names_are_numbered() -> None:
    place = target(schema(field(1, "a b", STRING), field(2, "n", LONG)), partition_by=["`a b`", "bucket(4, n)"])
    data = pa.table({"a b": ["x/y", "", None, "x/y"], "n": [1, 1, 1, 1]})
    files = write_data_files(data, place, new_id=ids("op"), partition_id=3, task_id=17, threads=1)
    assert [file.file_path for file in files] == [
        f"{LOCATION}/data/a+b=x%2Fy/n_bucket=0/00003-17-op-0-00001.parquet",
        f"{LOCATION}/data/a+b=/n_bucket=0/00003-17-op-0-00002.parquet",
        f"{LOCATION}/data/a+b=null/n_bucket=0/00003-17-op-0-00003.parquet",
    ]
    assert [file.partition for file in files] == [("x/y", 0), ("", 0), (None, 0)]
    assert [file.record_count for file in files] == [2, 1, 1]


def test_file_location_follows_the_properties() -> None:
    place = target(
        TABLE, properties={"write.data.path": "memory://other/place", "write.object-storage.enabled": "true"}
    )
    (file,) = write_data_files(rows(1), place, new_id=ids())
    assert re.fullmatch(
        r"memory://other/place/[01]{4}/[01]{4}/[01]{4}/[01]{8}/db/table/00000-0-id-0-00001.parquet", file.file_path
    )


@pytest.mark.extended
def test_files_have_about_the_target_size() -> None:
    place = target(TABLE)
    count = 280_000
    files = write_data_files(rows(count), place, target_file_bytes=100_000, new_id=ids())
    sizes = [file.file_size_in_bytes for file in files]
    assert len(files) > 3
    assert all(60_000 < size < 150_000 for size in sizes[1:-1])
    assert [row["id"] for row in read_rows(place.storage, files, TABLE)] == list(range(count))
    by_property = target(TABLE, properties={"write.target-file-size-bytes": "100000"})
    assert len(write_data_files(rows(count), by_property, new_id=ids())) == len(files)


def test_orc_file_is_closed_before_it_exceeds_the_target_by_far() -> None:
    place = target(TABLE, write__format__default="orc")
    files = write_data_files(
        rows(200_000).to_reader(max_chunksize=10_000), place, target_file_bytes=300_000, held_bytes=400_000
    )
    assert len(files) > 2
    assert max(file.file_size_in_bytes for file in files) < 900_000


def test_late_rows_of_a_partition_go_to_its_open_file() -> None:
    place = target(TABLE, partition_by=["day"])
    reader = rows(3000).to_reader(max_chunksize=100)
    files = write_data_files(reader, place, held_bytes=10_000, threads=1)
    assert len(files) == 3
    assert all(len(file.split_offsets or ()) > 3 for file in files)
    assert sum(file.record_count for file in files) == 3000


def test_open_files_are_bounded_and_the_largest_idle_one_is_closed_first(tmp_path: Path) -> None:
    place = target(TABLE, partition_by=["id"], storage=LocalStorage(durable=False), location=str(tmp_path))
    with DataFileWriter(place, rows(1).schema, max_open_files=4, held_bytes=1, threads=1, new_id=ids()) as writer:
        for start in range(0, 60, 3):
            writer.write(rows(3, start=start).to_batches()[0])
            temporary = list(tmp_path.rglob("*.tmp"))
            assert len(temporary) <= 5
        files = writer.close()
    assert len(files) == 60
    assert list(tmp_path.rglob("*.tmp")) == []


def test_sorted_table_gets_sorted_files_and_sorted_input_stays_in_one_file() -> None:
    place = target(TABLE, sort_by=["id"])
    mixed = rows(1000).take(pa.array([at * 7919 % 1000 for at in range(1000)]))
    (file,) = write_data_files(mixed, place, new_id=ids())
    assert read_file(place.storage, file, TABLE).column("id").to_pylist() == list(range(1000))
    ordered = rows(1000).to_reader(max_chunksize=50)
    (file,) = write_data_files(ordered, place, new_id=ids("b"), held_bytes=2000, threads=1)
    assert len(file.split_offsets or ()) > 5
    parts = write_data_files(mixed.to_reader(max_chunksize=50), place, new_id=ids("c"), held_bytes=2000, threads=1)
    assert len(parts) > 5
    for one in parts:
        found = read_file(place.storage, one, TABLE).column("id").to_pylist()
        assert found == sorted(found)
        assert one.sort_order_id == 1


def test_spec_with_void_fields_only_is_unpartitioned() -> None:
    place = target(TABLE)
    spec = PartitionSpec(
        2, (PartitionField((2,), 1000, "day_null", Void()), PartitionField((99,), 1001, "gone", Void()))
    )
    (file,) = write_data_files(rows(5), WriteTarget(TABLE, LOCATION, place.storage, spec, properties=place.properties))
    assert (file.spec_id, file.partition) == (2, (None, None))
    assert file.file_path.startswith(f"{LOCATION}/data/00000-0-")


def test_spec_or_order_with_an_unknown_transform_is_refused() -> None:
    place = target(TABLE)
    spec = PartitionSpec(1, (PartitionField((1,), 1000, "p", UnknownTransform("zorder[3]")),))
    with pytest.raises(UnsupportedError, match="unknown transform"):
        write_data_files(rows(1), WriteTarget(TABLE, LOCATION, place.storage, spec))
    order = SortOrder(1, (SortField((1,), UnknownTransform("zorder[3]"), SortDirection.ASC, NullOrder.NULLS_FIRST),))
    with pytest.raises(UnsupportedError, match="does not know the transform"):
        write_data_files(rows(1), WriteTarget(TABLE, LOCATION, place.storage, sort_order=order))


def test_partition_source_of_type_unknown_is_always_null() -> None:
    table = schema(field(1, "id", LONG), field(2, "u", UNKNOWN))
    place = target(table, partition_by=["u"], sort_by=["u", "id desc"])
    (file,) = write_data_files(pa.table({"id": [1, 2]}), place)
    assert file.partition == (None,)
    assert read_file(place.storage, file, schema(field(1, "id", LONG))).column("id").to_pylist() == [2, 1]


def test_encrypted_tables_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="encrypted"):
        target(TABLE, properties={"encryption.key-id": "k"})


def test_writer_accepts_batches_of_one_schema_and_none_after_closing() -> None:
    place = target(TABLE)
    with DataFileWriter(place, rows(1).schema, new_id=ids()) as writer:
        assert writer.files == ()
        writer.write(rows(3).to_batches()[0])
        files = writer.close()
        assert writer.close() == files
        with pytest.raises(InvalidRequestError, match="the writer is closed"):
            writer.write(rows(1).to_batches()[0])
    assert writer.files == tuple(files)
    assert place.storage.exists(files[0].file_path)


@pytest.mark.parametrize("wrong", [{"held_bytes": 0}, {"max_open_files": 0}, {"threads": 0}, {"target_file_bytes": 0}])
def test_invalid_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match="must be positive"):
        write_data_files(rows(1).to_reader(), target(TABLE), **wrong)  # type: ignore[arg-type]


def test_write_location_can_be_overridden(tmp_path: Path) -> None:
    place = target(TABLE, partition_by=["day"], sort_by=["x"], storage=LocalStorage(), location=f"file://{tmp_path}")
    sent = pickle.loads(pickle.dumps(place))
    files = write_data_files(rows(5), sent)
    assert sum(pq.read_metadata(file.file_path.removeprefix("file://")).num_rows for file in files) == 5


# --- what fails


def test_incompatible_columns_write_nothing() -> None:
    place = target(TABLE)
    with pytest.raises(SchemaMismatchError, match="extra: the table has no such column"):
        write_data_files(pa.table({"id": [1], "extra": [2]}), place)
    assert list(place.storage.list(LOCATION)) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_invalid_value_late_in_the_data_reports_completed_files(threads: int) -> None:
    place = target(TABLE, partition_by=["id"])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(6).to_batches(max_chunksize=2)
        yield pa.record_batch({"id": pa.array([None], pa.int64()), "day": ["x"], "x": [1.0]})

    reader = pa.RecordBatchReader.from_batches(rows(1).schema, batches())
    with pytest.raises(SchemaMismatchError, match="required column 'id'") as caught:
        write_data_files(reader, place, held_bytes=1, max_open_files=1, threads=threads)
    written = caught.value.context["written_files"]
    assert isinstance(written, PathList)
    stored = {one.path for one in place.storage.list(LOCATION)}
    assert set(written) == stored
    assert len(stored) > 0
    assert f"written files: {len(stored)}, the first is" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).context["written_files"] == written


def test_error_of_the_input_is_raised_with_a_note() -> None:
    place = target(TABLE, partition_by=["id"])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(6).to_batches(max_chunksize=2)
        raise ZeroDivisionError("the caller's own")

    reader = pa.RecordBatchReader.from_batches(rows(1).schema, batches())
    with pytest.raises(ZeroDivisionError, match="the caller's own") as caught:
        write_data_files(reader, place, held_bytes=1, max_open_files=1, threads=1)
    assert "Files written before this" in caught.value.__notes__[0]


def test_incomplete_files_are_removed(tmp_path: Path) -> None:
    place = target(TABLE, storage=LocalStorage(), location=str(tmp_path), partition_by=["day"])
    with pytest.raises(RuntimeError, match="stop"), DataFileWriter(place, rows(1).schema, held_bytes=1) as writer:
        writer.write(rows(100).to_batches()[0])
        raise RuntimeError("stop")
    assert writer.files == ()
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_failing_storage_stops_the_write_and_other_files_are_known(call: int, threads: int) -> None:
    storage = FailingStorage(MemoryStorage(), Fault(call, FaultKind.NO_SPACE, frozenset({"create"})))
    place = target(TABLE, partition_by=["id"], storage=storage)
    with pytest.raises(StorageError, match="the disk is full") as caught:
        write_data_files(rows(6), place, threads=threads)
    stored = {one.path for one in storage.list(LOCATION)}
    written: Any = caught.value.context.get("written_files", ())
    assert set(written) == stored
    assert "unsettled_files" not in caught.value.context


def test_file_with_an_unknown_outcome_is_not_deletable() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(3, FaultKind.APPLIED_BUT_ERROR, frozenset({"create"})))
    place = target(TABLE, partition_by=["id"], storage=storage)
    with pytest.raises(WriteOutcomeUnknownError) as caught:
        write_data_files(rows(6), place, threads=1)
    written: Any = caught.value.context["written_files"]
    unsettled: Any = caught.value.context["unsettled_files"]
    assert (len(written), len(unsettled)) == (2, 1)
    assert set(unsettled).isdisjoint(written)
    assert caught.value.may_clean_up is False


def test_file_is_never_overwritten() -> None:
    place = target(TABLE)
    (first,) = write_data_files(rows(3), place, new_id=ids())
    before = place.storage.read(first.file_path)
    with pytest.raises(FileAlreadyExistsError):
        write_data_files(rows(5), place, new_id=ids())
    assert place.storage.read(first.file_path) == before


def test_values_arrow_cannot_write_are_a_frazil_error() -> None:
    table = Schema((field(1, "l", ListType(2, StructType((field(3, "x", INT),)))),))
    place = target(table, write__parquet__bloom_filter_max_bytes="1")
    (file,) = write_data_files([{"l": [{"x": 1}]}], place)
    assert file.record_count == 1
