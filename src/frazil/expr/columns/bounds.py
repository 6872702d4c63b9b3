"""Decode the bounds of one column for many files at once. Specification: "Binary single-value serialization".

The input are the bytes of one column's lower or upper bounds, one value or null per file; the result is an Arrow column
in the form of `comparable.py`. An unusable bound becomes null and proves nothing: NaN, a length that no writer
produces, a date outside the range of nanoseconds.

Types may have been promoted since a file was written, which the length reveals ("Schema Evolution").
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.expr.columns.comparable import comparable_type
from frazil.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
)

_MICROS_PER_DAY = 86_400_000_000
_NANOS_PER_DAY = _MICROS_PER_DAY * 1000
_MAX_NANO_DAYS = (2**63 - 1) // _NANOS_PER_DAY


def decode_bounds(data: Any, data_type: Type) -> Any:
    """Decode a binary column of bounds to comparable values, with null for unusable bounds."""
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if data.type != pa.large_binary():
        data = data.cast(pa.large_binary())
    if isinstance(data_type, DecimalType):
        return _decode_decimals(data, data_type)
    widths = _WIDTHS.get(type(data_type))
    if widths is None:
        return data
    return _decode_fixed(data, data_type, widths)


# For each type: the length of a bound, its numpy type, and the factor of its values.
_WIDTHS: dict[type[Type], dict[int, tuple[str, int]]] = {
    BooleanType: {1: ("u1", 1)},
    IntType: {4: ("<i4", 1)},
    DateType: {4: ("<i4", 1)},
    LongType: {4: ("<i4", 1), 8: ("<i8", 1)},
    TimeType: {8: ("<i8", 1)},
    TimestampType: {4: ("<i4", _MICROS_PER_DAY), 8: ("<i8", 1)},
    TimestamptzType: {8: ("<i8", 1)},
    TimestampNsType: {4: ("<i4", _NANOS_PER_DAY), 8: ("<i8", 1)},
    TimestamptzNsType: {8: ("<i8", 1)},
    FloatType: {4: ("<f4", 1)},
    DoubleType: {4: ("<f4", 1), 8: ("<f8", 1)},
}
_RESULTS: dict[type[Type], str] = {
    BooleanType: "i1",
    IntType: "i4",
    DateType: "i4",
    LongType: "i8",
    TimeType: "i8",
    TimestampType: "i8",
    TimestamptzType: "i8",
    TimestampNsType: "i8",
    TimestamptzNsType: "i8",
    FloatType: "f4",
    DoubleType: "f8",
}


def _decode_fixed(data: Any, data_type: Type, widths: dict[int, tuple[str, int]]) -> Any:
    starts, lengths, raw, valid = _layout(data)
    name = _RESULTS[type(data_type)]
    if len(data) and valid.all() and (lengths == lengths[0]).all():
        # Nearly always all bounds are present with equal lengths, so they are contiguous.
        width = int(lengths[0])
        form, factor = widths.get(width, ("", 0))
        if factor == 1 and np.dtype(form).kind == "i":
            return pa.array(raw[starts[0] : starts[0] + width * len(data)].view(form).astype(name))
    values = np.zeros(len(data), dtype=name)
    usable = np.zeros(len(data), dtype=bool)
    for width, (form, factor) in widths.items():
        rows = valid & (lengths == width)
        if not rows.any():
            continue
        decoded = _take(raw, starts[rows], width).view(form)[:, 0]
        fits = np.ones(len(decoded), dtype=bool)
        if factor == _NANOS_PER_DAY:
            fits = np.abs(decoded.astype(np.int64)) <= _MAX_NANO_DAYS
            decoded = np.where(fits, decoded, 0)
        if isinstance(data_type, BooleanType):
            decoded = decoded != 0
        elif isinstance(data_type, FloatType | DoubleType):
            fits = ~np.isnan(decoded)
        values[rows] = decoded.astype(name) * factor if factor != 1 else decoded.astype(name)
        usable[rows] = fits
    return pa.array(values, mask=~usable)


def _decode_decimals(data: Any, data_type: DecimalType) -> Any:
    """Decode unscaled big-endian two's complement numbers of up to 16 bytes as decimals."""
    starts, lengths, raw, valid = _layout(data)
    wide = np.zeros((len(data), 16), dtype=np.uint8)
    usable = np.zeros(len(data), dtype=bool)
    for width in np.unique(lengths[valid]):
        if not 1 <= width <= 16:
            continue
        rows = np.nonzero(valid & (lengths == width))[0]
        digits = _take(raw, starts[rows], int(width))
        wide[rows] = np.where(digits[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
        wide[rows[:, None], np.arange(int(width))] = digits[:, ::-1]
        usable[rows] = True
    target = comparable_type(data_type)
    bitmap = pa.array(usable).buffers()[1]
    return pa.Array.from_buffers(target, len(data), [bitmap, pa.py_buffer(wide.tobytes())])


def _layout(
    data: Any,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the start and length of each value, the bytes of all, and which values are not null."""
    _, offset_buffer, value_buffer = data.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64, count=len(data) + 1, offset=data.offset * 8)
    raw = np.frombuffer(value_buffer, dtype=np.uint8) if value_buffer is not None else np.zeros(0, dtype=np.uint8)
    valid = np.ones(len(data), bool) if data.null_count == 0 else data.is_valid().to_numpy(zero_copy_only=False)
    return offsets[:-1], np.diff(offsets), raw, valid


def _take(raw: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(raw[starts[:, None] + np.arange(width)])
