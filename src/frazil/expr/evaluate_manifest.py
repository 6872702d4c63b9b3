"""Decide from a manifest's partition summaries whether any of its files can match. Specification: "Manifest Lists"."""

from __future__ import annotations

from typing import Any

from frazil.codec.single_value import decode_bound
from frazil.errors import CorruptTableError
from frazil.expr.column_stats import ColumnStats, may_match
from frazil.expr.predicates import Always, And, Bound, Or, Predicate
from frazil.spec.manifest import FieldSummary, ManifestFile
from frazil.spec.types import DoubleType, FloatType, StructType, Type


def may_hold_match(predicate: Predicate, manifest: ManifestFile, partition_type: StructType) -> bool:
    """Return False only where no file of the manifest is in a partition that satisfies the predicate.

    The predicate is bound to the partition type of the manifest's own spec (`project_inclusive`).
    A manifest without summaries is kept.
    """
    if manifest.partitions is None or len(manifest.partitions) != len(partition_type.fields):
        return True
    positions = {field.field_id: index for index, field in enumerate(partition_type.fields)}
    return _may(predicate, manifest.partitions, positions)


def _may(predicate: Predicate, summaries: tuple[FieldSummary, ...], positions: dict[int, int]) -> bool:
    if isinstance(predicate, And):
        return all(_may(child, summaries, positions) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_may(child, summaries, positions) for child in predicate.children)
    if isinstance(predicate, Always):
        return predicate.value
    if not isinstance(predicate, Bound):
        return True
    index = positions.get(predicate.term.field_id)
    if index is None:
        return True
    return may_match(predicate.op, predicate.literals, summary_stats(summaries[index], predicate.term.result_type))


def summary_stats(summary: FieldSummary, data_type: Type) -> ColumnStats:
    """Return what a summary says of a partition field: without bounds, all values are null or NaN."""
    has_nan = summary.contains_nan if isinstance(data_type, FloatType | DoubleType) else False
    has_no_value = summary.lower_bound is None and summary.upper_bound is None
    return ColumnStats(
        _decode(summary.lower_bound, data_type),
        _decode(summary.upper_bound, data_type),
        has_null=summary.contains_null,
        has_nan=has_nan,
        all_null=has_no_value and has_nan is False,
        all_null_or_nan=has_no_value,
    )


def _decode(data: bytes | None, data_type: Type) -> Any:
    """Return a bound, or None where there is none, or none that can be read."""
    try:
        return None if data is None else decode_bound(data, data_type)
    except CorruptTableError:
        return None
