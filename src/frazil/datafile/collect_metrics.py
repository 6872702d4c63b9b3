"""Metrics of a file from the rows written to it. Specification: "Field-level Metrics and Statistics".

Collected while a file is written, from Arrow columns and not from a file format's own statistics: those may be missing,
truncated or wrong about NaN. What each column gets follows its metrics mode (`spec/metrics_config.py`). Values inside
lists and maps are not measured, as in Iceberg Java: readers could not tell to which row they belong. Inside structs
they are; a field is null wherever a struct around it is.

Bounds hold for every reader: NaN is left out, a lower bound of zero is -0.0 and an upper one 0.0, so that a reader
finds the file whether or not it takes the two for equal, and long text and binary is cut as `codec/truncate_bounds.py`
does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.geo_bounds import GeoBoundsCollector
from frazil.codec.partition_arrow import to_plain_integers
from frazil.codec.single_value import encode_bound
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.codec.wkb import decode_wkb
from frazil.errors import FrazilError, SchemaMismatchError
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.schema import Schema
from frazil.spec.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is known of the columns of a file, by field id."""

    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


class MetricsCollector:
    """Measures the rows of one file, a few at a time; rows are of the schema, columns in its order."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, schema: Schema, modes: Mapping[int, MetricsMode]) -> None:
        self._rows = 0
        self._columns = [
            _Column(nested_field, path, modes[nested_field.field_id])
            for nested_field, path in _measured(schema.fields, ())
            if nested_field.field_id in modes and modes[nested_field.field_id].has_counts
        ]

    @property
    def row_count(self) -> int:
        """The rows measured so far."""
        return self._rows

    def add(self, rows: pa.Table) -> None:
        """Measure some more rows."""
        self._rows += rows.num_rows
        for column in self._columns:
            column.add(rows.column(column.path[0]))

    def metrics(self) -> Metrics:
        """Return the metrics of all rows so far."""
        found = Metrics({}, {}, {}, {}, {})
        for column in self._columns:
            column.write(found, self._rows)
        return found


def _measured(fields: tuple[NestedField, ...], above: tuple[int, ...]) -> list[tuple[NestedField, tuple[int, ...]]]:
    """Return the fields that hold values, those in structs included, each with its index."""
    found: list[tuple[NestedField, tuple[int, ...]]] = []
    for index, nested_field in enumerate(fields):
        data_type = nested_field.field_type
        if isinstance(data_type, StructType):
            found += _measured(data_type.fields, (*above, index))
        elif not isinstance(data_type, ListType | MapType | UnknownType):
            found.append((nested_field, (*above, index)))
    return found


class _Column:
    """One column's counts and bounds so far."""

    __slots__ = ("_box", "_field", "_high", "_is_floating", "_low", "_mode", "_nans", "_nulls", "_to_value", "path")

    def __init__(self, nested_field: NestedField, path: tuple[int, ...], mode: MetricsMode) -> None:
        data_type = nested_field.field_type
        self._field = nested_field
        self._mode = mode
        self.path = path
        self._nulls = 0
        self._nans = 0
        self._low: Any = None
        self._high: Any = None
        self._is_floating = isinstance(data_type, FloatType | DoubleType)
        self._to_value: Callable[[Any], Any] = _to_uuid if isinstance(data_type, UuidType) else _same
        is_geo = isinstance(data_type, GeometryType | GeographyType)
        self._box = (
            GeoBoundsCollector(is_geography=isinstance(data_type, GeographyType))
            if is_geo and mode.has_bounds
            else None
        )

    def add(self, column: pa.ChunkedArray) -> None:
        for chunk in column.chunks:
            array = pc.struct_field(chunk, list(self.path[1:])) if len(self.path) > 1 else chunk
            self._add(array.storage if isinstance(array.type, pa.BaseExtensionType) else array)

    def _add(self, array: pa.Array) -> None:
        if len(array) <= _FEW_VALUES and self._box is None and self._add_few(array):
            return
        nulls = array.null_count
        self._nulls += nulls
        nans = 0
        if self._is_floating:
            nans = pc.sum(pc.is_nan(array), min_count=0).as_py()
            self._nans += nans
        if not self._mode.has_bounds or nulls + nans == len(array):
            return
        data_type: Type = self._field.field_type
        if self._box is not None:
            _add_geometries(self._box, array, self._field.name)
        elif not isinstance(data_type, VariantType):
            found = pc.min_max(to_plain_integers(array))
            self._widen(found["min"].as_py(), found["max"].as_py())

    def _add_few(self, array: pa.Array) -> bool:
        """Measure a few values one by one, which takes less than to call Arrow; return whether that could be done."""
        if not self._mode.has_bounds or isinstance(self._field.field_type, VariantType):
            return False
        try:
            values = to_plain_integers(array).to_pylist()
        except UnicodeDecodeError:
            return False
        known = [value for value in values if value is not None]
        numbers = [value for value in known if value == value] if self._is_floating else known
        self._nulls += len(values) - len(known)
        self._nans += len(known) - len(numbers)
        if numbers:
            self._widen(min(numbers), max(numbers))
        return True

    def _widen(self, least: Any, most: Any) -> None:
        low, high = self._to_value(least), self._to_value(most)
        self._low = low if self._low is None or low < self._low else self._low
        self._high = high if self._high is None or high > self._high else self._high

    def write(self, into: Any, rows: int) -> None:
        nested_field, field_type = self._field, self._field.field_type
        into.value_counts[nested_field.field_id] = rows
        into.null_value_counts[nested_field.field_id] = self._nulls
        if self._is_floating:
            into.nan_value_counts[nested_field.field_id] = self._nans
        low, high = self._bounds()
        if low is not None:
            into.lower_bounds[nested_field.field_id] = encode_bound(low, field_type)
        if high is not None:
            into.upper_bounds[nested_field.field_id] = encode_bound(high, field_type)

    def _bounds(self) -> tuple[Any, Any]:
        if self._box is not None:
            box = self._box.bounding_box()
            return (None, None) if box is None else (box.lower, box.upper)
        if self._low is None:
            return None, None
        low, high = self._low, self._high
        if self._is_floating:
            return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        if self._mode.length is None:
            return low, high
        field_type, length = self._field.field_type, self._mode.length
        return truncate_lower_bound(low, field_type, length), truncate_upper_bound(high, field_type, length)


def _same(value: Any) -> Any:
    return value


def _to_uuid(value: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=value)


_FEW_VALUES = 32
_POINT_BYTES = 21
_POINT_HEAD = np.frombuffer(b"\x01\x01\0\0\0", np.uint8)


def _add_geometries(box: GeoBoundsCollector, array: pa.Array, column: str) -> None:
    """Widen a box by geometries in WKB. Columns of plain points, the most common, are read without a loop."""
    try:
        for value in _corners(array):
            if value is not None:
                box.add_geometry(decode_wkb(value))
    except FrazilError as error:
        raise SchemaMismatchError(f"Cannot write the column {column!r}: a value is not WKB: {error.message}") from error


def _corners(array: pa.Array) -> list[bytes | None]:
    """Return geometries with the same box as those of an array: of plain points two, else all."""
    valid = array.drop_null()
    lengths = pc.binary_length(valid).to_numpy(zero_copy_only=False)
    if len(valid) < 3 or (lengths != _POINT_BYTES).any():
        values: list[bytes | None] = array.to_pylist()
        return values
    start = np.frombuffer(valid.buffers()[1], np.int32, 1, valid.offset * 4)[0]
    data = np.frombuffer(valid.buffers()[2], np.uint8, len(valid) * _POINT_BYTES, start).reshape(-1, _POINT_BYTES)
    if (data[:, :5] != _POINT_HEAD).any():
        return list(valid.to_pylist())
    points = np.ascontiguousarray(data[:, 5:]).view("<f8")
    if np.isnan(points).any():
        return list(valid.to_pylist())
    corners = (points.min(axis=0), points.max(axis=0))
    return [_POINT_HEAD.tobytes() + corner.astype("<f8").tobytes() for corner in corners]
