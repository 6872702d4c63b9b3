"""Partition and sort transforms over Arrow columns. Specification: "Partition Transforms".

This is the write path's counterpart of `spec/transforms.py`: it converts a column of source values to a column of
partition values, equal to `Transform.apply` value by value, without a Python object per row. Dictionary-encoded columns
are transformed by their dictionaries. Nulls stay null; a value whose result does not fit raises the same error as the
scalar transform.

Results are `int32` for bucket, year, month and hour, `date32` for day, and for identity, truncate and void the Arrow
type of the source: `decimal128`, `timestamp[us]` with zone `UTC`, `fixed_size_binary[16]` for uuid, and so on. Strings
and binaries keep 64-bit offsets if the source has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.expr.columns.murmur3 import BLOCK, Int32s, Int64s, hash_fixed, hash_longs, hash_slices
from frazil.spec.decimals import decimal_of
from frazil.spec.iso8601 import MICROS_PER_DAY, NANOS_PER_DAY
from frazil.spec.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Year
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
    UnknownType,
    UuidType,
)

Column: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"
"""One column of values."""

_ARROW_TYPES: dict[type[Type], Callable[[Any], pa.DataType]] = {
    BooleanType: lambda _: pa.bool_(),
    IntType: lambda _: pa.int32(),
    LongType: lambda _: pa.int64(),
    FloatType: lambda _: pa.float32(),
    DoubleType: lambda _: pa.float64(),
    DecimalType: lambda data_type: pa.decimal128(data_type.precision, data_type.scale),
    DateType: lambda _: pa.date32(),
    TimeType: lambda _: pa.time64("us"),
    TimestampType: lambda _: pa.timestamp("us"),
    TimestamptzType: lambda _: pa.timestamp("us", "UTC"),
    TimestampNsType: lambda _: pa.timestamp("ns"),
    TimestamptzNsType: lambda _: pa.timestamp("ns", "UTC"),
    StringType: lambda _: pa.string(),
    UuidType: lambda _: pa.binary(16),
    FixedType: lambda data_type: pa.binary(data_type.length),
    BinaryType: lambda _: pa.binary(),
    UnknownType: lambda _: pa.null(),
    GeometryType: lambda _: pa.binary(),
    GeographyType: lambda _: pa.binary(),
}


def transform_column(transform: Transform, column: Column, source_type: Type) -> pa.Array[Any]:
    """Return the transform of every value of a column of a source type."""
    if not transform.can_transform(source_type):
        raise InvalidRequestError(f"Cannot apply {transform} to a {source_type} column: it does not accept that type")
    if transform.is_void:
        arrow_type = _ARROW_TYPES.get(type(source_type))
        return pa.nulls(len(column), column.type if arrow_type is None else arrow_type(source_type))
    kernel = _KERNELS.get(type(transform))
    if kernel is None:
        raise UnsupportedError(
            f"Cannot apply the transform {str(transform)!r} to a column: this version does not know it"
        )
    if isinstance(column, pa.ChunkedArray):
        chunks = column.chunks or [pa.array([], type=column.type)]
        return _concatenate([_transform_array(kernel, transform, chunk, source_type) for chunk in chunks])
    return _transform_array(kernel, transform, column, source_type)


Kernel: TypeAlias = "Callable[[Any, pa.Array[Any], Type], pa.Array[Any]]"


def _transform_array(kernel: Kernel, transform: Transform, array: Any, source_type: Type) -> pa.Array[Any]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        if pc.count_distinct(array.indices).as_py() == len(array.dictionary):
            values = kernel(transform, _to_source_type(array.dictionary, source_type), source_type)
            return values.take(array.indices)
        # Dictionary values that no row uses must not fail the column.
        array = array.dictionary_decode()
    return kernel(transform, _to_source_type(array, source_type), source_type)


def _to_source_type(array: Any, source_type: Type) -> Any:
    """Return an array in the Arrow layout that the kernels expect for its type."""
    target = _ARROW_TYPES[type(source_type)](source_type)
    if array.type == target or (
        (pa.types.is_large_string(array.type) and pa.types.is_string(target))
        or (pa.types.is_large_binary(array.type) and pa.types.is_binary(target))
    ):
        return array
    try:
        return array.cast(target)
    except pa.ArrowException as problem:
        raise SchemaMismatchError(
            f"Cannot use a column of Arrow type {array.type} as {source_type}: {problem}"
        ) from problem


def _concatenate(arrays: list[Any]) -> pa.Array[Any]:
    if len(arrays) == 1:
        return arrays[0]
    large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(arrays[0].type)
    is_mixed = any(array.type != arrays[0].type for array in arrays)
    if large is not None and (is_mixed or sum(array.nbytes for array in arrays) > np.iinfo(np.int32).max):
        arrays = [array.cast(large) for array in arrays]
    return pa.concat_arrays(arrays)


def _identity(_: Identity, array: Any, source_type: Type) -> Any:
    return array


def _bucket(transform: Bucket, array: Any, source_type: Type) -> Any:
    hashes = _hashes(array, source_type)
    hashes &= np.int32(0x7FFFFFFF)
    hashes %= np.int32(transform.num_buckets)
    return _with_nulls(hashes, array)


def _hashes(array: Any, source_type: Type) -> Int32s:
    if isinstance(source_type, DecimalType):
        return _decimal_hashes(array)
    if isinstance(source_type, UuidType | FixedType):
        width = array.type.byte_width
        return hash_fixed(_fixed_bytes(array, width), len(array), width)
    if isinstance(source_type, StringType | BinaryType):
        return hash_slices(*_slices(array))
    values = _integers(array)
    if isinstance(source_type, TimestampNsType | TimestamptzNsType):
        values = values // 1000
    return hash_longs(values)


def _decimal_hashes(array: Any) -> Int32s:
    # Two's complement, big-endian; leading bytes that only repeat the sign are skipped.
    rows = len(array)
    big_endian = np.ascontiguousarray(_fixed_bytes(array, 16).reshape(rows, 16)[:, ::-1])
    signs = np.where(big_endian[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    magnitude = big_endian ^ signs
    first = np.argmax(magnitude != 0, axis=1)
    lead = magnitude[np.arange(rows), first]
    first = np.where(lead == 0, 15, first - (lead >= 0x80))
    starts = np.arange(rows, dtype=np.int64) * 16 + first
    return hash_slices(big_endian.reshape(-1), starts, 16 - first)


def _truncate(transform: Truncate, array: Any, source_type: Type) -> Any:
    if isinstance(source_type, StringType):
        return pc.utf8_slice_codeunits(array, 0, transform.width)
    if isinstance(source_type, BinaryType):
        return pc.binary_slice(array, 0, transform.width)
    if isinstance(source_type, DecimalType):
        return _truncate_decimals(transform, array, source_type)
    values = _integers(array)
    # Next to the smallest integer this wraps around, in 64 bits here and in 32 bits below.
    truncated = values // transform.width * transform.width
    return _with_nulls(truncated.astype(array.type.to_pandas_dtype(), copy=False), array)


def _truncate_decimals(transform: Truncate, array: Any, source_type: DecimalType) -> Any:
    words = _fixed_bytes(array, 16).view("<u8").reshape(-1, 2)
    low, high = words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64).view(np.int64)
    # 128 bits modulo the width by long division: each partial remainder is below 2^31, so it leaves room for
    # 32 more bits.
    width = np.uint64(transform.width)
    remainder = (high % np.int64(transform.width)).astype(np.uint64)
    remainder = ((remainder << np.uint64(32)) | (low >> np.uint64(32))) % width
    remainder = ((remainder << np.uint64(32)) | (low & np.uint64(0xFFFFFFFF))) % width
    result = np.empty((len(array), 2), dtype="<u8")
    result[:, 0] = low - remainder
    result[:, 1] = (high - (low < remainder)).view(np.uint64)
    bound = -(10**source_type.precision)
    bound_low, bound_high = np.uint64(bound & (2**64 - 1)), np.int64(bound >> 64)
    new_low, new_high = result[:, 0].astype(np.uint64), result[:, 1].astype(np.uint64).view(np.int64)
    too_low = (new_high < bound_high) | ((new_high == bound_high) & (new_low <= bound_low))
    failed = np.flatnonzero(too_low & _valid(array))
    if len(failed):
        index = int(failed[0])
        value = decimal_of((int(high[index]) << 64) + int(low[index]), source_type.scale)
        raise SchemaMismatchError(f"Cannot apply {transform} to {value}: the result does not fit {source_type}")
    return pa.Array.from_buffers(array.type, len(array), [_validity(array), pa.py_buffer(result)])


def _year(_: Year, array: Any, source_type: Type) -> Any:
    return _with_nulls(_months(_days(array, source_type)) // 12, array)


def _month(_: Month, array: Any, source_type: Type) -> Any:
    return _with_nulls(_months(_days(array, source_type)), array)


def _day(_: Day, array: Any, source_type: Type) -> Any:
    if isinstance(source_type, DateType):
        return array
    return _with_nulls(_days(array, source_type).astype(np.int32), array).view(pa.date32())


def _hour(transform: Hour, array: Any, source_type: Type) -> Any:
    values = _integers(array)
    hours = values // (_units_per_day(source_type) // 24)
    _refuse((hours < IntType.MIN) | (hours > IntType.MAX), transform, values, source_type)
    return _with_nulls(hours.astype(np.int32), array)


def _days(array: Any, source_type: Type) -> Int64s:
    values = _integers(array)
    return values if isinstance(source_type, DateType) else values // _units_per_day(source_type)


def _units_per_day(source_type: Type) -> int:
    return NANOS_PER_DAY if isinstance(source_type, TimestampNsType | TimestamptzNsType) else MICROS_PER_DAY


def _months(days: Int64s) -> Int32s:
    """Return the months since 1970-01 of days since 1970-01-01; the calendar is that of `spec/iso8601.py`."""
    months = np.empty(len(days), dtype=np.int32)
    for start in range(0, len(days), BLOCK):
        shifted = days[start : start + BLOCK] + 719_468
        era = shifted // 146_097
        day_of_era = (shifted - era * 146_097).astype(np.int32)
        year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        month_from_march = (5 * day_of_year + 2) // 153
        years = era.astype(np.int32) * 400 + year_of_era
        months[start : start + BLOCK] = (years - 1970) * 12 + month_from_march + 2
    return months


_KERNELS: dict[type[Transform], Kernel] = {
    Identity: _identity,
    Bucket: _bucket,
    Truncate: _truncate,
    Year: _year,
    Month: _month,
    Day: _day,
    Hour: _hour,
}


# --- between Arrow and NumPy: nulls become zero, or keep the buffer's content for bytes


def _integers(array: Any) -> Int64s:
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    dtype = np.int32 if width == 4 else np.int64
    if buffer is None:
        return np.zeros(len(array), dtype=np.int64)
    values = np.frombuffer(buffer, dtype=dtype, count=array.offset + len(array))[array.offset :]
    wide: Int64s = values.astype(np.int64, copy=False)
    if array.null_count:
        wide = np.where(_valid(array), wide, np.int64(0))
    return wide


def _fixed_bytes(array: Any, width: int) -> npt.NDArray[np.uint8]:
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array) * width, dtype=np.uint8)
    end = (array.offset + len(array)) * width
    return np.frombuffer(buffer, dtype=np.uint8, count=end)[array.offset * width :]


def _slices(array: Any) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else np.zeros(0, dtype=np.uint8)
    if offset_buffer is None or len(array) == 0:
        return data, np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.int64)
    dtype = np.int64 if is_large else np.int32
    offsets = np.frombuffer(offset_buffer, dtype=dtype, count=array.offset + len(array) + 1)[array.offset :]
    starts = offsets.astype(np.int64, copy=False)
    return data, starts[:-1], np.diff(starts)


def _valid(array: Any) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _validity(array: Any) -> Any:
    return None if array.null_count == 0 else pa.py_buffer(np.packbits(_valid(array), bitorder="little"))


def _with_nulls(values: Any, array: Any) -> Any:
    return pa.array(values) if array.null_count == 0 else pa.array(values, mask=~_valid(array))


def _refuse(failed: Any, transform: Transform, values: Int64s, source_type: Type) -> None:
    """Raise the scalar transform's error for the first failed value."""
    if failed.any():
        transform.apply(int(values[int(np.argmax(failed))]), source_type)
