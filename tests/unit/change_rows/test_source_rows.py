"""The source of a merge: read once, held or spooled, with the types that Spark would give it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from frazil.change_rows.source_rows import normal_type, open_source
from frazil.errors import SchemaMismatchError
from frazil.spec.parse_type import parse_schema

SCHEMA = parse_schema("id bigint, k string")


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for at in range(count):
        ids = np.arange(at * rows, (at + 1) * rows)
        yield pa.record_batch({"id": ids, "k": pa.array(ids).cast(pa.string())})


def test_large_stream_is_spilled_to_an_unnamed_file() -> None:
    schema = next(batches(1, 1)).schema
    reader = pa.RecordBatchReader.from_batches(schema, batches(20, 500))
    source = open_source(reader, SCHEMA, held_bytes=10_000)
    assert source.count == 10_000
    assert source.table.column("id").num_chunks == 20
    places = np.array([9999, 0, 5, 0, 7500, 499, 500])
    taken = source.take(["k", "id"], places)
    assert taken["source", "id"].to_pylist() == places.tolist()
    assert taken["source", "k"].to_pylist() == [str(one) for one in places]
    assert taken["source", "k"].type == pa.string()


def test_small_stream_is_kept_in_memory() -> None:
    schema = next(batches(1, 1)).schema
    source = open_source(pa.RecordBatchReader.from_batches(schema, batches(20, 10)), SCHEMA)
    assert source.table.column("id").num_chunks == 1
    assert source.take(["id"], np.array([3, 1]))["source", "id"].to_pylist() == [3, 1]


@pytest.mark.parametrize(
    ("given", "wanted", "kind"),
    [
        (pa.large_string(), None, pa.string()),
        (pa.string_view(), None, pa.string()),
        (pa.dictionary(pa.int8(), pa.large_string()), None, pa.string()),
        (pa.uint8(), None, pa.int16()),
        (pa.uint32(), None, pa.int64()),
        (pa.uint64(), None, pa.decimal128(20, 0)),
        (pa.float16(), None, pa.float32()),
        (pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("ns"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("s", "Europe/Berlin"), None, pa.timestamp("us", "UTC")),
        (pa.list_(pa.int64()), None, pa.list_(pa.int64())),
    ],
)
def test_columns_get_the_type_spark_would_infer(
    given: pa.DataType, wanted: pa.DataType | None, kind: pa.DataType
) -> None:
    assert normal_type(given, wanted) == kind


def test_dict_rows_may_have_new_columns() -> None:
    source = open_source([{"id": 1, "op": "d"}, {"id": 2, "n": 5}], SCHEMA)
    assert source.table.to_pylist() == [{"id": 1, "op": "d", "n": None}, {"id": 2, "op": None, "n": 5}]


def test_duplicate_column_names_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="two columns named 'id'"):
        open_source(pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]), SCHEMA)
