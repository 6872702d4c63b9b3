"""Few bytes that stand for many: sizes are checked as they are after they were multiplied.

Each test may take two GiB of address space more than the process has: what asks for a tebibyte gets a MemoryError.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.codec.avro_container import AvroOrigin, read_header
from frazil.codec.avro_decode import decode_leaves
from frazil.codec.avro_schema import flatten, parse_schema
from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.errors import FrazilError, InvalidManifestError, InvalidPuffinError, SchemaMismatchError, UnsupportedError
from frazil.metadata_tables import position_deletes
from frazil.metadata_tables.tables import read_metadata_table
from frazil.scan.tasks import FileScanTask
from frazil.spark.read.planned_files import vector_bytes
from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, FixedType, NestedField
from frazil.table.scan import scan_table
from tests.support.avro_builders import container, required
from tests.support.tables import TableBuilder

ROOM_BYTES = 2 << 30
PLAIN = Schema((NestedField(1, "id", LONG),))
FAR = 1 << 40


@pytest.fixture(autouse=True)
def _little_room() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def three_rows(version: int = 3, **fields: Any) -> tuple[TableBuilder, DataFile]:
    table = TableBuilder(PLAIN, format_version=version)
    return table, replace(table.write_data([{"id": at} for at in range(3)]), **fields)


# Deletion vectors


def test_vector_with_positions_beyond_its_file_is_refused_with_the_path() -> None:
    table, file = three_rows()
    (vector,) = table.write_vectors({file: [1, FAR]})
    table.commit(file)
    table.commit_vectors([vector])
    with pytest.raises(InvalidPuffinError, match=f"it deletes row {FAR}, but the file has 3 rows") as caught:
        scan_table(table.load()).to_arrow()
    assert caught.value.context["path"] == vector.file_path


def test_deleted_bitmap_is_bounded_by_the_row_count() -> None:
    _, file = three_rows()
    assert vector_bytes(DeletionVector([1, FAR]), file) == b"\x00\x02"
    assert vector_bytes(DeletionVector(range(1 << 32)), file) == b"\x00\x07"
    assert vector_bytes(DeletionVector([FAR]), file) == b""


@pytest.mark.parametrize("rows", [-1, FAR + 1], ids=["not counted", "a wrong count"])
def test_bitmap_beyond_the_row_count_is_refused(rows: int) -> None:
    _, file = three_rows(record_count=rows)
    with pytest.raises(InvalidManifestError, match=f"row {FAR} is deleted, above the limit"):
        vector_bytes(DeletionVector([1, FAR]), file)


def test_bitmap_matches_the_vector() -> None:
    _, file = three_rows(record_count=3_000_000)
    chosen = np.random.default_rng(7).choice(3_000_000, 5000, replace=False)
    words = np.frombuffer(vector_bytes(DeletionVector(chosen), file), ">u2")
    bits = np.unpackbits(words.astype("<u2").view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == sorted(chosen.tolist())


def test_runs_of_billions_are_processed_in_parts() -> None:
    many = DeletionVector(range(1 << 33))
    assert len(encode_deletion_vector(many)) < 3 << 20
    parts = many.parts(1000)
    assert [next(parts)[0] for _ in range(3)] == [0, 1000, 2000]
    assert many.minus(DeletionVector(range(5, 1 << 33))) == DeletionVector(range(5))
    assert many.below(7) == DeletionVector(range(7))
    assert many.below((1 << 32) + 2).cardinality == (1 << 32) + 2
    assert [part.tolist() for part in DeletionVector([1, 2, 9, FAR, FAR + 3]).parts(2)] == [
        [1, 2],
        [9],
        [FAR, FAR + 3],
    ]


@pytest.mark.extended
def test_deleted_rows_of_a_vector_are_shown_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table, file = three_rows(record_count=1 << 32)
    (vector,) = table.write_vectors({file: range(1 << 32)})
    table.commit(file)
    table.commit_vectors([vector])
    assert next(position_deletes.iter_position_deletes(table.load())).num_rows < 1 << 20
    monkeypatch.setattr(position_deletes, "MAX_TABLE_BYTES", 16 << 20)
    with pytest.raises(UnsupportedError, match="they take more than 16 MiB"):
        read_metadata_table(table.load(), "position_deletes", columns=["pos"])


@pytest.mark.parametrize("rows", [3, FAR], ids=["three rows", "a wrong count"])
def test_position_deletes_beyond_the_end_cost_nothing(rows: int) -> None:
    table, file = three_rows(version=2, record_count=rows)
    table.commit(file)
    table.commit(table.write_position_deletes({file: [1, FAR + 5]}))
    scan = scan_table(table.load())
    assert (scan.count(), scan.to_arrow().num_rows) == (rows - 1, 2)
    (task,) = scan.plan().tasks
    assert isinstance(task, FileScanTask)
    found = load_positions(table.storage, task, DeleteCache())
    assert found is not None
    assert len(vector_bytes(found, replace(file, record_count=3))) == 2


# Avro


def _decode(schema: dict[str, Any], rows: int, content: bytes) -> pa.Table:
    data = container(schema, (rows, content))
    origin = AvroOrigin("manifest", "Manifests", "m.avro")
    header = read_header(data, origin)
    leaves = flatten(parse_schema(header.metadata["avro.schema"], origin), origin)
    return decode_leaves(data, header, leaves, range(len(leaves)), origin)


_MEGABYTE = {"type": "fixed", "name": "f", "size": 1 << 20}
_MANY_PARTS = {
    "type": "record",
    "name": "r",
    "fields": [required(f"p{at}", {**_MEGABYTE, "name": f"f{at}"}, at) for at in range(100)],
}


@pytest.mark.parametrize("kind", [_MEGABYTE, _MANY_PARTS], ids=["fixed", "struct of fixed"])
@pytest.mark.parametrize("rows", [8000, 600_000], ids=["small", "large"])
def test_nulls_that_allocate_a_megabyte_each_are_refused(kind: Any, rows: int) -> None:
    schema = {"type": "record", "name": "row", "fields": [required("a", ["null", kind], 1), required("b", "int", 2)]}
    with pytest.raises(InvalidManifestError, match="inflates to more than"):
        _decode(schema, rows, b"\x00\x02" * rows)


def test_zero_byte_rows_are_refused() -> None:
    schema = {"type": "record", "name": "row", "fields": [required("a", "null", 1)]}
    with pytest.raises(InvalidManifestError, match="declares 1152921504606846976 rows in 0 bytes"):
        _decode(schema, 1 << 60, b"")


@pytest.mark.parametrize("columns", [["id"], ["nothing"], ["_file"]])
def test_avro_file_announcing_impossible_row_counts_is_refused(columns: list[str]) -> None:
    table = TableBuilder(Schema((NestedField(1, "id", LONG), NestedField(2, "nothing", LONG))), keeps_ids=True)
    schema = {"type": "record", "name": "row", "fields": [required("id", "long", 1), required("nothing", "null", 2)]}
    file = table.write_data([{"id": 1}], file_format="avro")
    data = container(schema, (1 << 60, b"\x02"))
    table.storage.replace(file.file_path, data)
    table.commit(replace(file, file_size_in_bytes=len(data)))
    with pytest.raises(FrazilError, match="declares 1152921504606846976 rows in 1 bytes"):
        scan_table(table.load(), columns=columns).to_arrow()


# Constants


def _with_column(column: NestedField, rows: int) -> TableBuilder:
    """Return a table whose file does not store one of its columns."""
    table = TableBuilder(PLAIN, format_version=3, keeps_ids=True)
    table.commit(table.write_data(pa.table({"id": pa.array(range(rows), pa.int64())})))
    schema = replace(table.schema, fields=(*table.schema.fields, column), schema_id=1)
    table.metadata = replace(
        table.metadata, schemas=(*table.metadata.schemas, schema), current_schema_id=1, last_column_id=2
    )
    return table


@pytest.mark.parametrize(
    ("kind", "default", "each"),
    [(STRING, "x" * 500_000, 500_000), (FixedType(500_000), None, 500_000)],
    ids=["large default", "large fixed"],
)
def test_large_constants_produce_small_batches(kind: Any, default: str | None, each: int) -> None:
    rows = 10_000
    table = _with_column(NestedField(2, "wide", kind, initial_default=default, write_default=default), rows)
    seen = 0
    for batch in scan_table(table.load()).to_batches():
        assert batch.nbytes < 200 << 20
        seen += batch.num_rows
        if seen > 1000:
            break
    assert seen > 1000


def test_a_fixed_type_of_gigabytes_is_refused() -> None:
    table = _with_column(NestedField(2, "wide", FixedType(2**31 - 1)), 3)
    with pytest.raises(SchemaMismatchError, match="takes 2147483647 bytes"):
        scan_table(table.load()).to_arrow()
