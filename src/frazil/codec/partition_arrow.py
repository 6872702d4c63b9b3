"""Conversion of partition values between Avro forms, Arrow columns and Python values. Specification: "Avro".

A manifest's `partition` column is a struct of Arrow columns, one for each partition field, in the Arrow type of the
field's type (`arrow_type_of`). Avro has fewer types: dates and times are stored as integers, decimals as big-endian
bytes. Python values are those of `spec/types.py`.

Reading accepts types that were promoted since the manifest was written, and results of `day`, which writers declare
either as a date or as an int.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.avro_schema import AvroType
from frazil.codec.avro_types import decimal_bytes
from frazil.errors import SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.decimals import decimal_of, unscaled_value

_MICROS_PER_DAY = 86_400_000_000
# The number of timestamp units per unit of an Avro logical type.
_UNITS_PER: dict[tuple[str | None, bool], int] = {
    ("timestamp-millis", False): 1000,
    ("timestamp-millis", True): 1_000_000,
    ("timestamp-micros", True): 1000,
}


class FormRefusal(Exception):
    """A column whose Avro form cannot hold values of the expected type; the reader adds the field's name."""


def arrow_type_of(data_type: ft.Type) -> pa.DataType:
    """Return the Arrow type of partition values of a type."""
    if not isinstance(data_type, ft.PrimitiveType):
        raise SchemaMismatchError(f"Cannot use {data_type} as the type of partition values")
    return to_arrow_type(data_type, has_extensions=False)


def from_avro_form(array: pa.Array, form: AvroType, data_type: ft.Type, target: pa.DataType | None = None) -> pa.Array:
    """Return an array in its Avro form as the Arrow type of its values, or raise `FormRefusal`.

    `target` is that type, if the caller has it already.
    """
    if target is None:
        target = arrow_type_of(data_type)
    if form.kind == "null" or data_type == ft.UNKNOWN:
        return pa.nulls(len(array), target)
    if form.kind in ("int", "long") and (pa.types.is_integer(target) or pa.types.is_temporal(target)):
        return _from_integers(array, form, data_type, target)
    if form.kind in ("fixed", "bytes"):
        return _from_bytes(array, form, data_type, target)
    if form.kind == "string" and data_type == ft.UUID:
        return _from_uuid_text(array)
    if array.type == target:
        return array
    if form.kind == "float" and data_type == ft.DOUBLE:
        return array.cast(target)
    raise FormRefusal(f"it is stored as {form.kind}, which holds no {data_type}")


def _from_integers(array: pa.Array, form: AvroType, data_type: ft.Type, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    is_nanos = data_type in (ft.TIMESTAMP_NS, ft.TIMESTAMPTZ_NS)
    try:
        if pa.types.is_timestamp(target):
            factor = _UNITS_PER.get((form.logical, is_nanos), 1)
            if form.kind == "int":
                factor = _MICROS_PER_DAY * (1000 if is_nanos else 1)
            array = array.cast(pa.int64())
            return (pc.multiply_checked(array, factor) if factor != 1 else array).view(target)
        if pa.types.is_integer(target):
            return array.cast(target)
        return array.cast(pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
    except pa.ArrowInvalid as error:
        raise FormRefusal(f"a value does not fit {data_type}") from error


def _from_bytes(array: pa.Array, form: AvroType, data_type: ft.Type, target: pa.DataType) -> pa.Array:
    if isinstance(data_type, ft.DecimalType):
        if form.logical == "decimal" and form.scale != data_type.scale:
            raise FormRefusal(f"it is stored with a scale of {form.scale}, which is not {data_type}'s")
        return _decimals_from_bytes(array, data_type, target)
    if data_type not in (ft.BINARY, ft.UUID) and not isinstance(data_type, ft.FixedType):
        raise FormRefusal(f"it is stored as {form.kind}, which holds no {data_type}")
    if array.type == target:
        return array
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        raise FormRefusal(f"a value does not have the length of {data_type}") from None


def _from_uuid_text(array: pa.Array) -> pa.Array:
    try:
        values = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
    except ValueError:
        raise FormRefusal("a value is not a UUID") from None
    return pa.array(values, pa.binary(16))


def _decimals_from_bytes(array: pa.Array, data_type: ft.DecimalType, target: pa.DataType) -> pa.Array:
    """Return big-endian two's complement numbers of 1 to 16 bytes as decimals."""
    column = array.cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(column), 1).to_numpy(zero_copy_only=False)
    if len(column) and (lengths.min() < 1 or lengths.max() > 16):
        raise FormRefusal(f"a value of {lengths.max()} bytes is not a {data_type}")
    wide = np.zeros((len(column), 16), dtype=np.uint8)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.frombuffer(column.buffers()[1], np.int64, len(column) + 1, column.offset * 8)[:-1]
    raw = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    for width in np.unique(lengths[valid]).tolist():
        rows = np.nonzero(valid & (lengths == width))[0]
        digits = raw[offsets[rows][:, None] + np.arange(width)]
        wide[rows] = np.where(digits[:, :1] >= 0x80, 0xFF, 0)
        wide[rows[:, None], np.arange(width)] = digits[:, ::-1]
    decimals = pa.Array.from_buffers(
        pa.decimal128(38, data_type.scale), len(column), [pa.array(valid).buffers()[1], pa.py_buffer(wide.tobytes())]
    )
    try:
        return decimals.cast(target)
    except pa.ArrowInvalid:
        raise FormRefusal(f"a value has more digits than {data_type}") from None


def to_avro_form(array: pa.Array, data_type: ft.Type) -> pa.Array:
    """Return an Arrow array of values of a type in its Avro form."""
    if isinstance(data_type, ft.DecimalType):
        return _decimals_to_bytes(array, decimal_bytes(data_type.precision))
    return to_plain_integers(array)


def to_plain_integers(array: pa.Array) -> pa.Array:
    """Return dates and times as the integers they are stored as, and other arrays unchanged."""
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array


def _decimals_to_bytes(array: pa.Array, width: int) -> pa.Array:
    words: npt.NDArray[np.uint8] = np.frombuffer(array.buffers()[1], np.uint8)
    words = words[array.offset * 16 : (array.offset + len(array)) * 16].reshape(-1, 16)
    big_endian = np.ascontiguousarray(words[:, :width][:, ::-1])
    validity = None if array.null_count == 0 else array.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.binary(width), len(array), [validity, pa.py_buffer(big_endian.tobytes())])


def values_of(array: pa.Array | pa.ChunkedArray, data_type: ft.Type) -> list[Any]:
    """Return an array of partition values as the values of `spec/types.py`."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values_of(chunk, data_type)]
    values: list[Any] = to_plain_integers(array).to_pylist()
    if data_type == ft.UUID:
        return [None if value is None else uuid.UUID(bytes=value) for value in values]
    return values


def array_of(values: Sequence[Any], data_type: ft.Type) -> pa.Array:
    """Return Python values of a type, as in `spec/types.py`, as an Arrow array."""
    target = arrow_type_of(data_type)
    convert: Callable[[Any], Any] | None = None
    plain = target
    if pa.types.is_temporal(target):
        plain = pa.int32() if target.bit_width == 32 else pa.int64()
    elif data_type == ft.UUID:
        convert = _uuid_bytes
    elif isinstance(data_type, ft.DecimalType):
        convert = _exact(data_type)
    try:
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return pa.array(values, plain).view(target) if plain != target else pa.array(values, target)
    except SchemaMismatchError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise SchemaMismatchError(f"Cannot use a partition value as {data_type}: {str(error)[:120]}") from error


def _uuid_bytes(value: uuid.UUID) -> bytes:
    return value.bytes


def _exact(data_type: ft.DecimalType) -> Callable[[Decimal], Decimal]:
    def convert(value: Decimal) -> Decimal:
        unscaled = unscaled_value(value, data_type.scale)
        if unscaled is None:
            raise SchemaMismatchError(
                f"Cannot use a partition value as {data_type}: {str(value)[:60]} is not a multiple of "
                f"10^-{data_type.scale}"
            )
        return decimal_of(unscaled, data_type.scale)

    return convert
