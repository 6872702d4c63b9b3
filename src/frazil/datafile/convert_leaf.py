"""Values of a file's column as values of the table's type. Specification: "Schema Evolution", "Data Type Mappings".

A file holds the type its column had when it was written, in whatever width and unit its format and writer chose.
Only what keeps every value is converted: promotions of the specification, other units of the same times, other
layouts of the same bytes. What would lose something is refused, at once where the types tell, else at the
first value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import is_binary, is_text
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)

Convert = Callable[[Any], Any]

_PER_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def keep(array: pa.Array) -> pa.Array:
    """Return an array as it is: the conversion of a column that needs none."""
    return array


def leaf_converter(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    """Return the function that makes arrays of a file's type arrays of the table's, or None where none may."""
    if source == target:
        return keep
    if pa.types.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if pa.types.is_dictionary(source):
        return _after(lambda array: array.dictionary_decode(), source.value_type, data_type, target)
    if pa.types.is_run_end_encoded(source):
        return _after(pc.run_end_decode, source.value_type, data_type, target)
    if isinstance(source, pa.BaseExtensionType):
        return _after(lambda array: array.storage, source.storage_type, data_type, target)
    if isinstance(target, pa.BaseExtensionType):
        inner = leaf_converter(source, data_type, target.storage_type)
        return None if inner is None else lambda array: pa.ExtensionArray.from_storage(target, inner(array))
    maker = _MAKERS.get(type(data_type))
    return None if maker is None else maker(source, data_type, target)


def _after(first: Convert, source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    then = leaf_converter(source, data_type, target)
    return None if then is None else lambda array: then(first(array))


def _cast_to(target: pa.DataType) -> Convert:
    return lambda array: array.cast(target)


def _numbers(*accepted: pa.DataType) -> Callable[[pa.DataType, Type, pa.DataType], Convert | None]:
    def make(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
        return _cast_to(target) if source in accepted else None

    return make


def _decimal(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    # A wider column than the table's is read as long as its values fit; a cast checks each.
    if pa.types.is_decimal(source) and source.scale == target.scale:
        return _cast_to(target)
    return None


def _date(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    return _cast_to(target) if pa.types.is_date(source) else None


def _time(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    if pa.types.is_time(source):
        return _cast_to(target)
    return (lambda array: array.view(target)) if pa.types.is_int64(source) else None


def _timestamp(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    if pa.types.is_date32(source):
        if target.tz is not None:
            return None
        factor = _PER_DAY[target.unit]
        return lambda array: pc.multiply_checked(array.view(pa.int32()).cast(pa.int64()), factor).view(target)
    if not pa.types.is_timestamp(source):
        return None
    have, want = _PER_SECOND[source.unit], _PER_SECOND[target.unit]
    if have == want:
        # Values are from 1970 in UTC, or without a zone: the number is the same either way.
        return lambda array: array.view(target)
    if have < want:
        return lambda array: pc.multiply_checked(array.view(pa.int64()), want // have).view(target)
    plain = pa.timestamp(target.unit)
    return lambda array: array.view(pa.timestamp(source.unit)).cast(plain).view(target)


def _string(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    return _cast_to(target) if is_text(source) or is_binary(source) else None


def _binary(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    if is_text(source) or is_binary(source) or pa.types.is_fixed_size_binary(source):
        return _cast_to(target)
    return None


def _fixed(source: pa.DataType, data_type: Type, target: pa.DataType) -> Convert | None:
    # Where lengths differ from value to value, the cast checks each.
    return _cast_to(target) if is_binary(source) else None


_SMALL = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
_MAKERS: dict[type[Type], Callable[[pa.DataType, Type, pa.DataType], Convert | None]] = {
    BooleanType: _numbers(),
    IntType: _numbers(*_SMALL),
    LongType: _numbers(*_SMALL, pa.int32(), pa.uint32()),
    FloatType: _numbers(pa.float16()),
    DoubleType: _numbers(pa.float16(), pa.float32()),
    DecimalType: _decimal,
    DateType: _date,
    TimeType: _time,
    TimestampType: _timestamp,
    TimestamptzType: _timestamp,
    TimestampNsType: _timestamp,
    TimestamptzNsType: _timestamp,
    StringType: _string,
    BinaryType: _binary,
    GeometryType: _binary,
    GeographyType: _binary,
    FixedType: _fixed,
    UuidType: _fixed,
}
