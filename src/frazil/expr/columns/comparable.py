"""Arrow columns and literals in a form with the specification's order.

Comparisons use one representation per type, for rows, partition values and bounds alike: integers for dates and times,
UTF-8 bytes for text (byte order is code point order), bytes for uuid, fixed and binary, Arrow decimals for decimals.
Nothing is copied unless a cast requires it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_type
from frazil.spec.decimals import decimal_of, unscaled_value
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    IntType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)

_INT64_KINDS = (TimeType, TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)
_BYTES_KINDS = (StringType, UuidType, FixedType, BinaryType)


def comparable_type(data_type: Type) -> pa.DataType | None:
    """Return the Arrow type for comparing values of a type, or None for the column's own."""
    if isinstance(data_type, BooleanType):
        return pa.int8()
    if isinstance(data_type, IntType | DateType):
        return pa.int32()
    if isinstance(data_type, _INT64_KINDS):
        return pa.int64()
    if isinstance(data_type, _BYTES_KINDS):
        return pa.large_binary()
    if isinstance(data_type, DecimalType):
        return pa.decimal128(38, data_type.scale)
    return None


def to_comparable(array: Any, data_type: Type) -> Any:
    """Convert a column of a type to its comparable form."""
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 0:
            return pa.array([], type=comparable_type(data_type) or array.type)
        return pa.chunked_array([to_comparable(chunk, data_type) for chunk in array.chunks])
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    target = comparable_type(data_type)
    if target is None or array.type == target:
        return array
    if pa.types.is_temporal(array.type):
        # A cast between units would be wrong; a view gives the integers of the unit.
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(target)


def from_comparable(array: Any, data_type: Type) -> Any:
    """Convert comparable values back to a column of the type; text that is not UTF-8 becomes null."""
    target = to_arrow_type(data_type)
    if isinstance(data_type, StringType):
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid:
            return pa.array([_text_or_none(value) for value in array.to_pylist()], pa.large_string())
    if isinstance(data_type, (*_INT64_KINDS, DateType)):
        return array.view(target)
    if isinstance(data_type, BooleanType | IntType | DecimalType):
        return array.cast(target)
    return array


def _text_or_none(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def literal_scalar(value: Any, data_type: Type) -> Any:
    """Return a value of a type, represented as in `spec/types.py`, as a scalar for comparisons."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, UUID):
        value = value.bytes
    elif isinstance(value, bool):
        value = int(value)
    target = comparable_type(data_type)
    if isinstance(value, Decimal) and isinstance(data_type, DecimalType):
        unscaled = unscaled_value(value, data_type.scale)
        value = value if unscaled is None else decimal_of(unscaled, data_type.scale)
    if isinstance(value, float):
        return pa.scalar(value, pa.float64())
    return pa.scalar(value, target)


def literal_array(values: tuple[Any, ...], data_type: Type) -> Any:
    """Return literals of a type as an array for comparisons."""
    scalars = [literal_scalar(value, data_type).as_py() for value in values]
    if any(isinstance(value, float) and value == 0 for value in scalars):
        # Set lookups compare bits, but both zeros are one value.
        scalars += [0.0, -0.0]
    return pa.array(
        scalars, type=comparable_type(data_type) or (pa.float64() if isinstance(scalars[0], float) else pa.int64())
    )


def is_nan_mask(array: Any) -> Any:
    """Return whether each value is NaN, or null if it is null."""
    if pa.types.is_floating(array.type):
        return pc.is_nan(array)
    return pc.and_not(pc.is_valid(array), pc.is_valid(array))
