"""Metrics of a file from the rows written to it. Specification: "Field-level Metrics and Statistics".

Metrics are collected while a file is written, from Arrow columns rather than the file format's own statistics, which
may be missing, truncated or wrong about NaN. The metrics mode of each column (`spec/metrics_config.py`) selects its
metrics. Values inside lists and maps are not measured, as in Iceberg Java, since readers could not attribute them to
rows. Fields of structs are; a field is null wherever an enclosing struct is.

Bounds are valid for every reader: NaN is excluded, a lower bound of zero is -0.0 and an upper one 0.0, so that readers
find the file whether or not they treat the two as equal, and long strings and binaries are truncated by
`codec/truncate_bounds.py`.
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
from frazil.codec.single_value import bound_encoder
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.codec.wkb import decode_wkb
from frazil.errors import FrazilError, SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of a file's columns, by field id."""

    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


class MetricsCollector:
    """Measures the rows of one file in batches; columns are in the order of the schema."""

    __slots__ = ("_columns", "_forms", "_rows")

    def __init__(self, schema: Schema, modes: Mapping[int, MetricsMode]) -> None:
        self._start(
            [
                _Form(nested_field, path, modes[nested_field.field_id])
                for nested_field, path in _measured(schema.fields, ())
                if nested_field.field_id in modes and modes[nested_field.field_id].has_counts
            ]
        )

    def _start(self, forms: list[_Form]) -> None:
        self._rows = 0
        self._forms = forms
        self._columns = [_Column(form) for form in forms]

    def for_another_file(self) -> MetricsCollector:
        """Return a collector of the same columns without rows."""
        collector = MetricsCollector.__new__(MetricsCollector)
        collector._start(self._forms)
        return collector

    @property
    def row_count(self) -> int:
        """The number of rows measured so far."""
        return self._rows

    def add(self, rows: pa.Table) -> None:
        """Measure further rows."""
        self._rows += rows.num_rows
        for column in self._columns:
            column.add(rows.column(column.form.path[0]))

    def metrics(self) -> Metrics:
        """Return the metrics of all rows so far."""
        metrics = Metrics({}, {}, {}, {}, {})
        for column in self._columns:
            column.write(metrics, self._rows)
        return metrics


def _measured(
    fields: tuple[ft.NestedField, ...], parent_path: tuple[int, ...]
) -> list[tuple[ft.NestedField, tuple[int, ...]]]:
    """Return the fields with values, including those in structs, each with its path of indexes."""
    measured: list[tuple[ft.NestedField, tuple[int, ...]]] = []
    for index, nested_field in enumerate(fields):
        data_type = nested_field.field_type
        if isinstance(data_type, ft.StructType):
            measured += _measured(data_type.fields, (*parent_path, index))
        elif not isinstance(data_type, ft.ListType | ft.MapType | ft.UnknownType):
            measured.append((nested_field, (*parent_path, index)))
    return measured


class _Form:
    """The settings for measuring one column, shared by all files of a write."""

    __slots__ = (
        "encode",
        "field_id",
        "has_box",
        "has_order",
        "is_floating",
        "length",
        "name",
        "path",
        "to_value",
        "type",
    )

    def __init__(self, nested_field: ft.NestedField, path: tuple[int, ...], mode: MetricsMode) -> None:
        data_type = nested_field.field_type
        self.field_id = nested_field.field_id
        self.name = nested_field.name
        self.type = data_type
        self.path = path
        self.length = mode.length
        self.is_floating = isinstance(data_type, ft.FloatType | ft.DoubleType)
        self.to_value: Callable[[Any], Any] | None = _to_uuid if isinstance(data_type, ft.UuidType) else None
        self.has_box = mode.has_bounds and isinstance(data_type, ft.GeometryType | ft.GeographyType)
        self.has_order = mode.has_bounds and not self.has_box and not isinstance(data_type, ft.VariantType)
        self.encode = bound_encoder(data_type)


class _Column:
    """The counts and bounds of one column so far."""

    __slots__ = ("_box", "_high", "_low", "_nans", "_nulls", "form")

    def __init__(self, form: _Form) -> None:
        self.form = form
        self._nulls = 0
        self._nans = 0
        self._low: Any = None
        self._high: Any = None
        self._box = GeoBoundsCollector(is_geography=isinstance(form.type, ft.GeographyType)) if form.has_box else None

    def add(self, column: pa.ChunkedArray) -> None:
        path = self.form.path
        for chunk in column.chunks if column.num_chunks != 1 else (column.chunk(0),):
            array = chunk if len(path) == 1 else pc.struct_field(chunk, list(path[1:]))
            self._add(array.storage if isinstance(array.type, pa.BaseExtensionType) else array)

    def _add(self, array: pa.Array) -> None:
        form = self.form
        if form.has_order and len(array) <= _FEW_VALUES and self._add_few(array):
            return
        nulls = array.null_count
        self._nulls += nulls
        nans = 0
        if form.is_floating:
            nans = pc.sum(pc.is_nan(array), min_count=0).as_py()
            self._nans += nans
        if nulls + nans == len(array):
            return
        if self._box is not None:
            _add_geometries(self._box, array, form.name)
        elif form.has_order:
            extremes = pc.min_max(to_plain_integers(array))
            self._widen(extremes["min"].as_py(), extremes["max"].as_py())

    def _add_few(self, array: pa.Array) -> bool:
        """Measure a few values in Python, which is faster than in Arrow; return False if they are not valid text."""
        try:
            values = to_plain_integers(array).to_pylist()
        except UnicodeDecodeError:
            return False
        values_present = [value for value in values if value is not None]
        numbers = [value for value in values_present if value == value] if self.form.is_floating else values_present
        self._nulls += len(values) - len(values_present)
        self._nans += len(values_present) - len(numbers)
        if numbers:
            self._widen(min(numbers), max(numbers))
        return True

    def _widen(self, lowest: Any, highest: Any) -> None:
        to_value = self.form.to_value
        low, high = (lowest, highest) if to_value is None else (to_value(lowest), to_value(highest))
        self._low = low if self._low is None or low < self._low else self._low
        self._high = high if self._high is None or high > self._high else self._high

    def write(self, into: Any, rows: int) -> None:
        form = self.form
        field_id = form.field_id
        into.value_counts[field_id] = rows
        into.null_value_counts[field_id] = self._nulls
        if form.is_floating:
            into.nan_value_counts[field_id] = self._nans
        low, high = self._bounds()
        if low is not None:
            into.lower_bounds[field_id] = form.encode(low)
        if high is not None:
            into.upper_bounds[field_id] = form.encode(high)

    def _bounds(self) -> tuple[Any, Any]:
        if self._box is not None:
            box = self._box.bounding_box()
            return (None, None) if box is None else (box.lower, box.upper)
        if self._low is None:
            return None, None
        low, high = self._low, self._high
        form = self.form
        if form.is_floating:
            return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        if form.length is None:
            return low, high
        return truncate_lower_bound(low, form.type, form.length), truncate_upper_bound(high, form.type, form.length)


def _to_uuid(value: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=value)


_FEW_VALUES = 32
_POINT_BYTES = 21
_POINT_HEAD = np.frombuffer(b"\x01\x01\0\0\0", np.uint8)


def _add_geometries(box: GeoBoundsCollector, array: pa.Array, column: str) -> None:
    """Extend a box by geometries in WKB. Columns of plain points, the most common, are read without a loop."""
    try:
        for value in _corners(array):
            if value is not None:
                box.add_geometry(decode_wkb(value))
    except FrazilError as error:
        raise SchemaMismatchError(f"Cannot write the column {column!r}: a value is not WKB: {error.message}") from error


def _corners(array: pa.Array) -> list[bytes | None]:
    """Return geometries with the same box as an array's: two for plain points, otherwise all."""
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
