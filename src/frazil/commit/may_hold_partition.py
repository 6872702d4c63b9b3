"""Whether a manifest may hold files of given partitions, by the summaries of its partition fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frazil.codec.single_value import decode_bound
from frazil.errors import CorruptTableError
from frazil.spec.data_file import PartitionKey
from frazil.spec.manifest import FieldSummary, ManifestFile
from frazil.spec.types import DoubleType, FloatType, StructType, Type


def may_hold_partition(manifest: ManifestFile, data_type: StructType, keys: Iterable[PartitionKey]) -> bool:
    """Return False only if the summaries of a manifest rule out all the partitions, which are of its spec."""
    summaries = manifest.partitions
    if summaries is None or len(summaries) != len(data_type.fields):
        return True
    ranges = [_range_of(summary, field.field_type) for summary, field in zip(summaries, data_type.fields, strict=True)]
    return any(all(_may_hold(value, range_) for value, range_ in zip(key[1:], ranges, strict=True)) for key in keys)


def _range_of(summary: FieldSummary, data_type: Type) -> tuple[bool, Any, Any] | None:
    """Return the range of a field's values; None if it is unknown, or not ordered like keys, as for floats."""
    if isinstance(data_type, FloatType | DoubleType):
        return None
    try:
        lower = None if summary.lower_bound is None else decode_bound(summary.lower_bound, data_type)
        upper = None if summary.upper_bound is None else decode_bound(summary.upper_bound, data_type)
    except CorruptTableError:
        return None
    return summary.contains_null, lower, upper


def _may_hold(value: Any, range_: tuple[bool, Any, Any] | None) -> bool:
    if range_ is None:
        return True
    has_null, lower, upper = range_
    if value is None:
        return has_null
    if lower is None or upper is None:
        # If there are no bounds, all values are null.
        return lower is not None or upper is not None
    return bool(lower <= value <= upper)
