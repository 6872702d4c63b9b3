"""Transforms over the Arrow layouts that readers and engines hand out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.expr.columns.murmur3 import BLOCK, hash_longs, hash_slices
from frazil.expr.columns.transforms import transform_column
from frazil.spec.murmur3 import hash_bytes, hash_long
from frazil.spec.transforms import (
    DAY,
    HOUR,
    IDENTITY,
    MONTH,
    VOID,
    YEAR,
    Bucket,
    Transform,
    Truncate,
    UnknownTransform,
)
from frazil.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    GeometryType,
    ListType,
    Type,
)

WORDS = ["iceberg", None, "", "日本語テキスト", "a" * 200]
BYTES = [None if word is None else word.encode() for word in WORDS]
EXPECTED_BUCKETS = [Bucket(16).apply(word, STRING) for word in WORDS]


@pytest.mark.parametrize(
    "array, kind",
    [
        (pa.array(WORDS, pa.string()), STRING),
        (pa.array(WORDS, pa.large_string()), STRING),
        (pa.array(WORDS, pa.string_view()), STRING),
        (pa.array(WORDS).dictionary_encode(), STRING),
        (pa.array(WORDS, pa.large_string()).dictionary_encode(), STRING),
        (pa.array(BYTES, pa.binary()), STRING),
        (pa.array(BYTES, pa.binary()), BINARY),
        (pa.array(BYTES, pa.large_binary()), BINARY),
        (pa.array(BYTES, pa.binary_view()), BINARY),
        (pa.chunked_array([pa.array(WORDS[:2]), pa.array([], pa.string()), pa.array(WORDS[2:])]), STRING),
        (pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4, 5], pa.array(WORDS)), STRING),
    ],
    ids=lambda one: str(getattr(one, "type", one)),
)
def test_text_and_bytes_of_every_layout_hash_alike(array: Any, kind: Type) -> None:
    result = transform_column(Bucket(16), array, kind)
    assert result.type == pa.int32()
    assert result.to_pylist() == EXPECTED_BUCKETS


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_is_truncated_by_code_points_and_keeps_its_offset_width(arrow_type: pa.DataType) -> None:
    result = transform_column(Truncate(3), pa.array(["iceberg", None, "", "日本語テ", "😀é"], arrow_type), STRING)
    assert result.to_pylist() == ["ice", None, "", "日本語", "😀é"]
    assert result.type == (pa.large_string() if arrow_type == pa.large_string() else pa.string())


def test_bytes_are_truncated_by_bytes() -> None:
    result = transform_column(Truncate(3), pa.array([b"\x01\x02\x03\x04", None, b"", b"\xff"]), BINARY)
    assert result.to_pylist() == [b"\x01\x02\x03", None, b"", b"\xff"]


@pytest.mark.parametrize(
    "array, kind, same",
    [
        (pa.array([1, None, -3], pa.int8()), INT, pa.array([1, None, -3], pa.int32())),
        (pa.array([1, None, -3], pa.int32()), LONG, pa.array([1, None, -3], pa.int64())),
        (pa.array([0, None], pa.date64()), DATE, pa.array([0, None], pa.date32())),
        (pa.array([5, None], pa.time32("s")), TIME, pa.array([5_000_000, None], pa.time64("us"))),
        (pa.array([5, None], pa.timestamp("s")), TIMESTAMP, pa.array([5_000_000, None], pa.timestamp("us"))),
        (
            pa.array([5, None], pa.timestamp("ms", "+02:00")),
            TIMESTAMPTZ,
            pa.array([5000, None], pa.timestamp("us", "UTC")),
        ),
        (pa.array([5, None], pa.timestamp("us")), TIMESTAMP_NS, pa.array([5000, None], pa.timestamp("ns"))),
        (
            pa.array([Decimal("1.5"), None], pa.decimal256(40, 1)),
            DecimalType(9, 2),
            pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        ),
        (pa.array([b"1234", None], pa.binary()), FixedType(4), pa.array([b"1234", None], pa.binary(4))),
        (pa.array([b"1234", None], pa.binary(4)), BINARY, pa.array([b"1234", None], pa.binary())),
        (pa.array([b"x" * 16, None], pa.uuid()), UUID, pa.array([b"x" * 16, None], pa.binary(16))),
        (pa.array([None, None], pa.null()), LONG, pa.array([None, None], pa.int64())),
        (pa.array([None, None], pa.null()), UNKNOWN, pa.array([None, None], pa.null())),
    ],
    ids=lambda one: str(getattr(one, "type", one)),
)
def test_columns_are_cast_to_the_arrow_type_of_their_source(array: Any, kind: Type, same: Any) -> None:
    result = transform_column(IDENTITY, array, kind)
    assert result.type == same.type
    assert result.equals(same)


@pytest.mark.parametrize(
    "array, kind",
    [
        (pa.array(["x"]), LONG),
        (pa.array([2**40]), INT),
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP),
        (pa.array([b"123"], pa.binary()), FixedType(4)),
        (pa.array([Decimal("1.555")], pa.decimal128(9, 3)), DecimalType(9, 2)),
    ],
    ids=lambda one: str(getattr(one, "type", one)),
)
def test_column_of_another_type_is_refused(array: Any, kind: Type) -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot use a column of Arrow type"):
        transform_column(IDENTITY, array, kind)


@pytest.mark.parametrize(
    "transform, expected",
    [
        (YEAR, pa.array([-1, None, 0, 47], pa.int32())),
        (MONTH, pa.array([-1, None, 0, 575], pa.int32())),
        (DAY, pa.array([-1, None, 0, 17501], pa.int32()).view(pa.date32())),
        (HOUR, pa.array([-1, None, 0, 420034], pa.int32())),
    ],
    ids=lambda one: str(getattr(one, "type", one)),
)
def test_times_before_1970_are_in_the_unit_containing_them(transform: Transform, expected: Any) -> None:
    moments = [-1, None, 0, 1_512_123_175_038_194]
    assert transform_column(transform, pa.array(moments, pa.timestamp("us")), TIMESTAMP).equals(expected)
    nanos = pa.array([None if one is None else one * 1000 for one in moments], pa.timestamp("ns"))
    assert transform_column(transform, nanos, TIMESTAMP_NS).equals(expected)


@pytest.mark.parametrize(
    "kind, arrow_type",
    [(STRING, pa.string()), (LONG, pa.int64()), (UUID, pa.binary(16)), (GeometryType(), pa.binary())],
)
def test_void_is_null_of_the_source_type(kind: Type, arrow_type: pa.DataType) -> None:
    result = transform_column(VOID, pa.nulls(3, arrow_type), kind)
    assert result.type == arrow_type
    assert result.null_count == 3


def test_void_accepts_nested_columns() -> None:
    column = pa.chunked_array([pa.array([[1], None])])
    assert transform_column(VOID, column, ListType(1, INT)).to_pylist() == [None, None]


@pytest.mark.parametrize("transform", [IDENTITY, Bucket(4), Truncate(2)])
def test_empty_column_stays_empty(transform: Transform) -> None:
    for empty in (pa.array([], pa.string()), pa.chunked_array([], pa.string())):
        result = transform_column(transform, empty, STRING)
        assert len(result) == 0
        assert result.type == (pa.int32() if isinstance(transform, Bucket) else pa.string())


def test_chunks_with_different_offset_widths_are_joined() -> None:
    chunks = [pa.array(["abc"]).dictionary_encode(), pa.array(["xyz", "xyz"]).dictionary_encode()]
    assert transform_column(Truncate(1), pa.chunked_array(chunks), STRING).to_pylist() == ["a", "x", "x"]


def test_unused_dictionary_value_cannot_fail_the_column() -> None:
    far = pa.array([2**63 - 1, 3_600_000_000], pa.timestamp("us"))
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), far)
    assert transform_column(HOUR, column, TIMESTAMP).to_pylist() == [1, 1]
    with pytest.raises(SchemaMismatchError, match="Cannot apply hour to 9223372036854775807"):
        transform_column(HOUR, far, TIMESTAMP)


@pytest.mark.parametrize("width", [3, 10, 300, 2**31 - 1])
@pytest.mark.parametrize(("kind", "arrow", "bits"), [(INT, pa.int32(), 31), (LONG, pa.int64(), 63)])
def test_truncation_near_the_smallest_integer_wraps_around(width: int, kind: Type, arrow: Any, bits: int) -> None:
    values = [-(2**bits), 1 - 2**bits, 299 - 2**bits, 2**bits - 1, 0, -1]
    assert transform_column(Truncate(width), pa.array(values, arrow), kind).to_pylist() == [
        Truncate(width).apply(one, kind) for one in values
    ]


def test_value_below_null_cannot_fail_the_column() -> None:
    garbage = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([-(2**63), 25], dtype=np.int64))]
    )
    assert transform_column(Truncate(10), garbage, LONG).to_pylist() == [None, 20]
    assert transform_column(HOUR, garbage.view(pa.timestamp("us")), TIMESTAMP).to_pylist() == [None, 0]


def test_overflowing_result_is_refused_with_the_value() -> None:
    with pytest.raises(SchemaMismatchError, match=r"Cannot apply hour to 9223372036854775807: .* do not fit int"):
        transform_column(HOUR, pa.array([2**63 - 1], pa.timestamp("us")), TIMESTAMP)
    with pytest.raises(SchemaMismatchError, match=r"Cannot apply truncate\[10\] to -9.9: the result does not fit"):
        transform_column(Truncate(10), pa.array([Decimal("-9.9")]), DecimalType(2, 1))


def test_unsupported_type_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"Cannot apply bucket\[4\] to a double column"):
        transform_column(Bucket(4), pa.array([1.0]), DOUBLE)
    with pytest.raises(UnsupportedError, match="Cannot apply the transform 'zorder'"):
        transform_column(UnknownTransform("zorder"), pa.array([1]), LONG)


def test_hashes_are_correct_across_blocks() -> None:
    rows = BLOCK + 7
    longs = np.arange(rows, dtype=np.int64) * 1_000_003
    for row in (0, BLOCK - 1, BLOCK, rows - 1):
        assert hash_longs(longs)[row] == hash_long(int(longs[row]))
    lengths = np.arange(rows, dtype=np.int64) % 130
    data = np.arange(int(lengths.sum()), dtype=np.int64).astype(np.uint8)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])
    hashes = hash_slices(data, starts, lengths)
    for row in (0, 1, 95, 96, 97, 129, BLOCK - 1, BLOCK, rows - 1):
        whole = data.tobytes()[starts[row] : starts[row] + lengths[row]]
        assert hashes[row] == hash_bytes(whole)


def test_slices_of_short_buffers_are_hashed() -> None:
    data = np.frombuffer(b"abc", dtype=np.uint8)
    hashes = hash_slices(data, np.array([0, 1, 3]), np.array([3, 1, 0]))
    assert hashes.tolist() == [hash_bytes(b"abc"), hash_bytes(b"b"), hash_bytes(b"")]
    assert hash_slices(data[:0], np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
