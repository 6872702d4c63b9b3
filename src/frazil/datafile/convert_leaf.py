"""Convert values of a file's column to the table's type. Specification: "Schema Evolution", "Data Type Mappings".

A file has the type that its column had when it was written, in the width and unit of its format and writer. Only
lossless conversions are made: promotions of the specification, other units of the same times, other layouts of the same
bytes. Anything else is refused, by type if possible, or else at the first value that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import is_binary, is_text
from frazil.spec import types as ft

Convert = Callable[[Any], Any]

_PER_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def keep(array: pa.Array) -> pa.Array:
    """Return an array unchanged: the conversion of a column that needs none."""
    return array


def leaf_converter(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    """Return the conversion from arrays of a file's type to the table's, or None if there is none."""
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
    make_converter = _CONVERTERS.get(type(data_type))
    return None if make_converter is None else make_converter(source, data_type, target)


def _after(first: Convert, source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    then = leaf_converter(source, data_type, target)
    return None if then is None else lambda array: then(first(array))


def _cast_to(target: pa.DataType) -> Convert:
    return lambda array: array.cast(target)


def _numbers(*accepted: pa.DataType) -> Callable[[pa.DataType, ft.Type, pa.DataType], Convert | None]:
    def make(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
        return _cast_to(target) if source in accepted else None

    return make


def _decimal(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    # A column with a higher precision than the table's is readable if its values fit, which the cast checks.
    if pa.types.is_decimal(source) and source.scale == target.scale:
        return _cast_to(target)
    return None


def _date(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    return _cast_to(target) if pa.types.is_date(source) else None


def _time(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    if pa.types.is_time(source):
        return _cast_to(target)
    return (lambda array: array.view(target)) if pa.types.is_int64(source) else None


def _timestamp(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    if pa.types.is_date32(source):
        if target.tz is not None:
            return None
        factor = _PER_DAY[target.unit]
        return lambda array: pc.multiply_checked(array.view(pa.int32()).cast(pa.int64()), factor).view(target)
    if not pa.types.is_timestamp(source):
        return None
    source_unit, target_unit = _PER_SECOND[source.unit], _PER_SECOND[target.unit]
    if source_unit == target_unit:
        # Values count from 1970 in UTC, or source_unit no zone: the number is the same either way.
        return lambda array: array.view(target)
    if source_unit < target_unit:
        return lambda array: pc.multiply_checked(array.view(pa.int64()), target_unit // source_unit).view(target)
    plain = pa.timestamp(target.unit)
    return lambda array: array.view(pa.timestamp(source.unit)).cast(plain).view(target)


def _string(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    return _cast_to(target) if is_text(source) or is_binary(source) else None


def _binary(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    if is_text(source) or is_binary(source) or pa.types.is_fixed_size_binary(source):
        return _cast_to(target)
    return None


def _fixed(source: pa.DataType, data_type: ft.Type, target: pa.DataType) -> Convert | None:
    # The cast checks the length of each value.
    return _cast_to(target) if is_binary(source) else None


_SMALL = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
_CONVERTERS: dict[type[ft.Type], Callable[[pa.DataType, ft.Type, pa.DataType], Convert | None]] = {
    ft.BooleanType: _numbers(),
    ft.IntType: _numbers(*_SMALL),
    ft.LongType: _numbers(*_SMALL, pa.int32(), pa.uint32()),
    ft.FloatType: _numbers(pa.float16()),
    ft.DoubleType: _numbers(pa.float16(), pa.float32()),
    ft.DecimalType: _decimal,
    ft.DateType: _date,
    ft.TimeType: _time,
    ft.TimestampType: _timestamp,
    ft.TimestamptzType: _timestamp,
    ft.TimestampNsType: _timestamp,
    ft.TimestamptzNsType: _timestamp,
    ft.StringType: _string,
    ft.BinaryType: _binary,
    ft.GeometryType: _binary,
    ft.GeographyType: _binary,
    ft.FixedType: _fixed,
    ft.UuidType: _fixed,
}
