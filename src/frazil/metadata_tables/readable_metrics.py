"""The `readable_metrics` column: the metrics of each primitive column, under its name and in its type.

This is a struct with a field for each primitive column of the table's current schema, nested ones under their full
names, sorted by name as in Iceberg Java; each is a struct of six metrics. Bounds are decoded for all files of a
manifest at once. An unusable bound (NaN, a length that no writer produces, text that is not UTF-8) is null. A truncated
bound of a fixed column is padded with zeros, so it stays a bound; bounds of geospatial columns are points.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.manifest_avro import ManifestColumns
from frazil.expr.columns.bounds import decode_bounds
from frazil.expr.columns.comparable import from_comparable
from frazil.expr.columns.manifest_columns import BoundName, CountName, bounds_of, counts_of
from frazil.metadata_tables.unify_partitions import as_type
from frazil.spec import types as ft
from frazil.spec.decimals import decimal_of
from frazil.spec.schema import Schema

READABLE_METRICS = "readable_metrics"

_COUNTS: dict[str, CountName] = {
    "column_size": "column_sizes",
    "value_count": "value_counts",
    "null_value_count": "null_value_counts",
    "nan_value_count": "nan_value_counts",
}
_BOUNDS: dict[str, BoundName] = {"lower_bound": "lower_bounds", "upper_bound": "upper_bounds"}
METRIC_SOURCES: dict[str, str] = {**_COUNTS, **_BOUNDS}
"""The manifest column that each metric is read from."""

_WKB_POINT, _WKB_POINT_Z, _WKB_POINT_M, _WKB_POINT_ZM = (struct.pack("<bi", 1, code) for code in (1, 1001, 2001, 3001))


def readable_metrics_field(schema: Schema) -> pa.Field:
    """Return the column for the primitive columns of a schema."""
    named = [
        (schema.name_of(primitive_field.field_id), primitive_field.field_type)
        for primitive_field in _primitive_fields(schema)
    ]
    # Iceberg Java sorts names by UTF-16 code units, as Java does.
    named.sort(key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))
    return pa.field(READABLE_METRICS, pa.struct([(name, _metrics_type(data_type)) for name, data_type in named]))


def metric_sources(target: pa.DataType) -> set[str]:
    """Return the manifest columns needed for `readable_metrics` of a type, which may be a subset of the whole."""
    return {METRIC_SOURCES[metric.name] for column in target for metric in column.type}


def readable_metrics(files: ManifestColumns, schema: Schema, target: pa.DataType) -> pa.Array:
    """Return the column for the files of a manifest; `target` may have a subset of the columns and metrics."""
    by_name = {
        schema.name_of(primitive_field.field_id): primitive_field for primitive_field in _primitive_fields(schema)
    }
    count = len(files)
    columns = []
    for column in target:
        field = by_name[column.name]
        metrics = [_metric(files, field.field_id, field.field_type, metric) for metric in column.type]
        columns.append(pa.Array.from_buffers(column.type, count, [None], children=metrics))
    return pa.Array.from_buffers(target, count, [None], children=columns)


def _primitive_fields(schema: Schema) -> list[Any]:
    return [field for field in schema.fields_by_id.values() if isinstance(field.field_type, ft.PrimitiveType)]


def _metrics_type(data_type: ft.Type) -> pa.DataType:
    bound = to_arrow_type(data_type)
    return pa.struct([(name, pa.int64()) for name in _COUNTS] + [(name, bound) for name in _BOUNDS])


def _metric(files: ManifestColumns, field_id: int, data_type: ft.Type, target: pa.Field) -> pa.Array:
    count = _COUNTS.get(target.name)
    if count is not None:
        return counts_of(files, field_id, count)
    return bound_values(bounds_of(files, field_id, _BOUNDS[target.name]), data_type, target.type)


def bound_values(data: pa.Array, data_type: ft.Type, target: pa.DataType) -> pa.Array:
    """Convert a column's bounds from bytes to the Arrow type `target`."""
    if isinstance(data_type, ft.UnknownType) or data.null_count == len(data):
        return pa.nulls(len(data), target)
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return pa.array([_wkb_point(value) for value in data.to_pylist()], target)
    if isinstance(data_type, ft.UuidType):
        return as_type(_fixed_width(data, 16, may_be_short=False), target)
    if isinstance(data_type, ft.FixedType):
        return _fixed_width(data, data_type.length, may_be_short=True)
    decoded = decode_bounds(data, data_type)
    if isinstance(data_type, ft.DecimalType):
        # Values with more digits than the precision violate the specification, and do not fit the type.
        largest = pa.scalar(decimal_of(10**data_type.precision - 1, data_type.scale), decoded.type)
        decoded = pc.if_else(pc.less_equal(pc.abs(decoded), largest), decoded, pa.scalar(None, decoded.type))
    return as_type(from_comparable(decoded, data_type), target)


def _fixed_width(data: pa.Array, width: int, *, may_be_short: bool) -> pa.Array:
    target = pa.binary(width)
    lengths = pc.unique(pc.binary_length(data)).drop_null().to_pylist()
    if lengths == [width]:
        return data.cast(target)
    shortest = 0 if may_be_short else width
    return pa.array(
        [
            None if value is None or not shortest <= len(value) <= width else value.ljust(width, b"\0")
            for value in data.to_pylist()
        ],
        target,
    )


def _wkb_point(bound: bytes | None) -> bytes | None:
    """Convert a geospatial bound, which consists of coordinates only, to a WKB point."""
    if bound is None:
        return None
    if len(bound) == 16:
        return _WKB_POINT + bound
    if len(bound) == 24:
        return _WKB_POINT_Z + bound
    if len(bound) != 32:
        return None
    (z,) = struct.unpack_from("<d", bound, 16)
    return _WKB_POINT_M + bound[:16] + bound[24:] if z != z else _WKB_POINT_ZM + bound
