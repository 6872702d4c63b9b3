"""Summaries of the partition values of a manifest's files. Specification: "Manifest Lists"."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.partition_arrow import to_plain_integers, values_of
from frazil.codec.single_value import encode_value
from frazil.spec.manifest import FieldSummary
from frazil.spec.types import StructType, Type


def summarize_partitions(partition: pa.Array, partition_type: StructType) -> tuple[FieldSummary, ...]:
    """Return the summary of each field of a `partition` column."""
    return tuple(
        _summarize(partition.field(index), field.field_type) for index, field in enumerate(partition_type.fields)
    )


def _summarize(column: pa.Array, data_type: Type) -> FieldSummary:
    has_null = column.null_count > 0
    values = column.drop_null()
    has_nan = False
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        has_nan = bool(pc.any(is_nan).as_py())
        values = values.filter(pc.invert(is_nan))
    if len(values) == 0:
        return FieldSummary(has_null, has_nan)
    if pa.types.is_floating(values.type):
        low, high = _float_bounds(values)
    else:
        plain = to_plain_integers(values)
        bounds = pc.min_max(plain).as_py()
        low, high = values_of(pa.array([bounds["min"], bounds["max"]], plain.type), data_type)
    return FieldSummary(has_null, has_nan, encode_value(low, data_type), encode_value(high, data_type))


def _float_bounds(values: pa.Array) -> tuple[float, float]:
    """Return the minimum and maximum of values without NaN, ordering -0.0 before +0.0."""
    numbers = values.to_numpy()
    low, high = float(numbers.min()), float(numbers.max())
    negative = np.signbit(numbers[numbers == 0])
    if low == 0:
        low = -0.0 if negative.any() else 0.0
    if high == 0:
        high = -0.0 if negative.all() else 0.0
    return low, high
