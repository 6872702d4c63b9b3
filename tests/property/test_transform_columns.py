"""Over every type and layout, a transformed column equals its values transformed one by one."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID as UuidValue

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import SchemaMismatchError
from frazil.expr.columns.murmur3 import hash_longs, hash_slices
from frazil.expr.columns.transforms import transform_column
from frazil.spec.decimals import decimal_of
from frazil.spec.murmur3 import hash_bytes, hash_long
from frazil.spec.transforms import DAY, HOUR, IDENTITY, MONTH, VOID, YEAR, Bucket, Transform, Truncate
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    Type,
)

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
DAY_US = 86_400_000_000


def integers(low: int, high: int, *units: int) -> st.SearchStrategy[int]:
    """Integers, with the ends of the range and the edges of units around zero much more often."""
    edges = {low, low + 1, high - 1, high, 0, 1, -1}
    for unit in units:
        edges |= {unit * count + off for count in (-2, -1, 1, 2) for off in (-1, 0, 1)}
    return st.one_of(
        st.sampled_from(sorted(one for one in edges if low <= one <= high)),
        st.integers(low, high),
        st.integers(-1000, 1000),
    )


INTS = integers(-(2**31), INT_MAX)
LONGS = integers(-(2**63), LONG_MAX)
MICROS = integers(-(2**63), LONG_MAX, 1_000_000, 3_600_000_000, DAY_US)
NANOS = integers(-(2**63), LONG_MAX, 1000, 10**9, 3600 * 10**9, DAY_US * 1000)
TEXT = st.one_of(st.text(max_size=12), st.text(min_size=90, max_size=110), st.sampled_from(["", "😀😀é", "a" * 400]))
BYTES = st.one_of(st.binary(max_size=12), st.binary(min_size=90, max_size=110))


def decimals(kind: DecimalType) -> st.SearchStrategy[Decimal]:
    top = 10**kind.precision - 1
    return integers(-top, top, 256, 2**16).map(lambda unscaled: decimal_of(unscaled, kind.scale))


D9, D18, D38 = DecimalType(9, 2), DecimalType(18, 0), DecimalType(38, 10)
VALUES: dict[Type, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    BOOLEAN: (pa.bool_(), st.booleans()),
    INT: (pa.int32(), INTS),
    LONG: (pa.int64(), LONGS),
    FLOAT: (pa.float32(), st.floats(width=32, allow_nan=False)),
    DOUBLE: (pa.float64(), st.floats(allow_nan=False)),
    DATE: (pa.date32(), INTS),
    TIME: (pa.time64("us"), st.integers(0, DAY_US - 1)),
    TIMESTAMP: (pa.timestamp("us"), MICROS),
    TIMESTAMPTZ: (pa.timestamp("us", "UTC"), MICROS),
    TIMESTAMP_NS: (pa.timestamp("ns"), NANOS),
    TIMESTAMPTZ_NS: (pa.timestamp("ns", "UTC"), NANOS),
    STRING: (pa.string(), TEXT),
    BINARY: (pa.binary(), BYTES),
    UUID: (pa.binary(16), st.uuids()),
    FixedType(5): (pa.binary(5), st.binary(min_size=5, max_size=5)),
    FixedType(0): (pa.binary(0), st.just(b"")),
    D9: (pa.decimal128(9, 2), decimals(D9)),
    D18: (pa.decimal128(18, 0), decimals(D18)),
    D38: (pa.decimal128(38, 10), decimals(D38)),
}
TRANSFORMS: list[Transform] = [
    IDENTITY,
    Bucket(16),
    Bucket(INT_MAX),
    Truncate(10),
    Truncate(INT_MAX),
    YEAR,
    MONTH,
    DAY,
    HOUR,
    VOID,
]
CASES = [(one, kind) for one in TRANSFORMS for kind in VALUES if one.can_transform(kind)]


def arrow(values: list[Any], arrow_type: pa.DataType) -> Any:
    """An array of internal values; integers become dates and times bit for bit."""
    plain = [one.bytes if isinstance(one, UuidValue) else one for one in values]
    if pa.types.is_temporal(arrow_type):
        return pa.array(plain, pa.int32() if arrow_type.bit_width == 32 else pa.int64()).view(arrow_type)
    return pa.array(plain, arrow_type)


def in_layouts(array: Any, padding: list[Any], arrow_type: pa.DataType) -> dict[str, Any]:
    """The same column as a whole, as a slice of a longer one, in chunks and as a dictionary."""
    longer = pa.concat_arrays([arrow(padding, arrow_type), array, arrow(padding, arrow_type)])
    half = len(array) // 2
    return {
        "whole": array,
        "slice": longer.slice(len(padding), len(array)),
        "chunks": pa.chunked_array([array.slice(0, half), array.slice(half)], array.type),
        "dictionary": array.dictionary_encode(),
        "sliced dictionary": longer.dictionary_encode().slice(len(padding), len(array)),
    }


@pytest.mark.parametrize("transform, kind", CASES, ids=lambda one: str(one))
@settings(max_examples=max(1, settings().max_examples // 5))  # there are many cases
@given(data=st.data())
def test_column_transform_equals_scalar_transform(transform: Transform, kind: Type, data: Any) -> None:
    arrow_type, values = VALUES[kind]
    column = data.draw(st.lists(st.none() | values, max_size=12))
    padding = data.draw(st.lists(st.none() | values, min_size=1, max_size=9))
    result_type = VALUES[transform.result_type(kind)][0]
    array = arrow(column, arrow_type)
    try:
        expected = arrow([transform.apply(one, kind) for one in column], result_type)
    except SchemaMismatchError as problem:
        for layout in in_layouts(array, padding, arrow_type).values():
            with pytest.raises(SchemaMismatchError) as caught:
                transform_column(transform, layout, kind)
            if problem.message != caught.value.message:  # a dictionary may meet another bad value first
                assert "not fit" in caught.value.message
        return
    for name, layout in in_layouts(array, padding, arrow_type).items():
        result = transform_column(transform, layout, kind)
        assert isinstance(result, pa.Array), name
        assert result.type == result_type, name
        assert result.equals(expected), name
        result.validate(full=True)


@given(st.lists(LONGS, max_size=50))
def test_hashes_of_integers_equal_the_scalar_hash(values: list[int]) -> None:
    assert hash_longs(np.array(values, dtype=np.int64)).tolist() == [hash_long(one) for one in values]


@given(st.lists(st.one_of(st.binary(max_size=9), st.binary(min_size=80, max_size=120)), max_size=40))
def test_hashes_of_byte_strings_equal_the_scalar_hash(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), dtype=np.uint8)
    lengths = np.array([len(one) for one in values], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])[:-1]
    assert hash_slices(data, starts, lengths).tolist() == [hash_bytes(one) for one in values]


@given(st.integers(-(2**62), 2**62), st.sampled_from([YEAR, MONTH, DAY, HOUR, Truncate(7), IDENTITY]))
def test_order_preserving_transforms_preserve_order(value: int, transform: Transform) -> None:
    assert transform.preserves_order
    kind = LONG if isinstance(transform, Truncate) else TIMESTAMP_NS
    assert transform.apply(value, kind) <= transform.apply(value + 1, kind)


@given(st.dates())
def test_dates_map_to_their_year_month_and_day(date: datetime.date) -> None:
    days = (date - datetime.date(1970, 1, 1)).days
    assert YEAR.human_text(YEAR.apply(days, DATE), INT) == f"{date.year:04d}"
    assert MONTH.human_text(MONTH.apply(days, DATE), INT) == f"{date.year:04d}-{date.month:02d}"
    assert DAY.human_text(DAY.apply(days, DATE), DATE) == date.isoformat()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_double_round_trips(value: float) -> None:
    text = IDENTITY.human_text(value, DOUBLE)
    assert float(text) == value and math.copysign(1, float(text)) == math.copysign(1, value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_text_of_a_float_round_trips(value: float) -> None:
    text = IDENTITY.human_text(value, FLOAT)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
