"""Prune manifests and files that cannot hold a match: one filter, prepared for any manifest of a table.

Planning prunes in three steps, each on the remainder of the one before: by a manifest's partition summaries, by its
files' partition tuples, and by its files' metrics. Files are tested as whole columns (`expr/columns/`), never one by
one, with the partition spec of their manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import SchemaMismatchError
from frazil.expr.columns.bounds import decode_bounds
from frazil.expr.columns.comparable import from_comparable, to_comparable
from frazil.expr.columns.manifest_columns import BoundName, CountName, bounds_of, counts_of, single_chunk
from frazil.expr.columns.masks import row_mask
from frazil.expr.columns.stats_masks import Mask, StatsColumns, may_match_mask, must_match_mask, to_mask
from frazil.expr.columns.transforms import transform_column
from frazil.expr.evaluate_manifest import may_hold_match
from frazil.expr.predicates import TRUE, Always, And, Bound, BoundTerm, BoundTransform, Or, Predicate, field_ids_of
from frazil.expr.project_partition import project_inclusive
from frazil.expr.residual import Residuals
from frazil.spec.manifest import ManifestFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.transforms import Truncate, WrappedRange
from frazil.spec.types import DoubleType, FloatType, GeographyType, GeometryType, PrimitiveType, StructType

METRIC_FIELDS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
"""The columns of a manifest that metrics pruning needs."""


@dataclass(frozen=True, slots=True)
class SpecFilter:
    """A filter projected to one partition spec."""

    spec: PartitionSpec
    partition_type: StructType
    inclusive: Predicate
    residuals: Residuals


@dataclass(frozen=True, slots=True)
class Pruned:
    """The remaining files of a manifest as a mask, and how many each step dropped."""

    keep: Mask
    dropped_by_partition: int
    dropped_by_metrics: int


class Pruner:
    """One bound filter over the partition specs of a table."""

    def __init__(self, predicate: Predicate, specs: dict[int, tuple[PartitionSpec, StructType]]) -> None:
        self.predicate = predicate
        self._specs = specs
        self._filters: dict[int, SpecFilter] = {}
        self._lock = Lock()

    def for_spec(self, spec_id: int) -> SpecFilter:
        """Return the filter projected to a spec, cached after the first use."""
        with self._lock:
            spec_filter = self._filters.get(spec_id)
            if spec_filter is None:
                spec, partition_type = self._specs[spec_id]
                inclusive = project_inclusive(self.predicate, spec, partition_type)
                spec_filter = SpecFilter(
                    spec, partition_type, inclusive, Residuals(self.predicate, spec, partition_type)
                )
                self._filters[spec_id] = spec_filter
            return spec_filter

    @property
    def needs_metrics(self) -> bool:
        """Whether files are pruned by their metrics."""
        return bool(field_ids_of(self.predicate))

    def keeps_manifest(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest's summaries allow a match."""
        spec_filter = self.for_spec(manifest.partition_spec_id)
        return may_hold_match(spec_filter.inclusive, manifest, spec_filter.partition_type)

    def prune_files(self, files: ManifestColumns, candidates: Mask) -> Pruned:
        """Return which candidates of a manifest can hold a match."""
        by_partition = candidates & self._partition_mask(files)
        by_metrics = by_partition
        if self.needs_metrics and by_partition.any():
            counts = files.column("record_count").to_numpy()
            by_metrics = (
                by_partition & (counts != 0) & metrics_mask(self.predicate, files, may_match_mask, unknown=True)
            )
        kept, before = int(by_metrics.sum()), int(by_partition.sum())
        return Pruned(by_metrics, int(candidates.sum()) - before, before - kept)

    def _partition_mask(self, files: ManifestColumns) -> Mask:
        inclusive = self.for_spec(files.spec_id).inclusive
        if isinstance(inclusive, Always):
            return np.full(len(files), inclusive.value, dtype=bool)
        return to_mask(row_mask(inclusive, struct_of(files)))


def struct_of(files: ManifestColumns) -> pa.StructArray:
    """Return a manifest's partition tuples as one array."""
    return single_chunk(files.column("partition"))


def strict_mask(predicate: Predicate, files: ManifestColumns) -> Mask:
    """Return which files of a manifest hold only rows that match a bound predicate, by their metrics."""
    counts = files.column("record_count").to_numpy()
    is_empty: Mask = counts == 0
    return is_empty | metrics_mask(predicate, files, must_match_mask, unknown=False)


_LeafMask = Callable[..., Mask]
_FEW_FILES = 64


def metrics_mask(predicate: Predicate, files: ManifestColumns, test: _LeafMask, *, unknown: bool) -> Mask:
    """Return the test result of each file of a manifest by its metrics, or `unknown` if they are inconclusive."""
    return _decide(predicate, files, test, unknown, {})


def _decide(
    node: Predicate, files: ManifestColumns, test: _LeafMask, unknown: bool, cached: dict[BoundTerm, StatsColumns]
) -> Mask:
    # Not a recursive closure, which would keep the manifest alive until the garbage collector runs.
    if isinstance(node, And | Or):
        combine = np.logical_and if isinstance(node, And) else np.logical_or
        result = _decide(node.children[0], files, test, unknown, cached)
        for child in node.children[1:]:
            result = combine(result, _decide(child, files, test, unknown, cached))
        return result
    if isinstance(node, Always):
        return np.full(len(files), node == TRUE, dtype=bool)
    if not isinstance(node, Bound):
        return np.full(len(files), unknown, dtype=bool)
    if node.term not in cached:
        cached[node.term] = stats_columns(node.term, files)
    return test(node.op, node.literals, cached[node.term], node.term.result_type)


def stats_columns(term: BoundTerm, files: ManifestColumns) -> StatsColumns:
    """Return what the metrics of many files prove of a term.

    For few files the result is cached with their manifest: it is small, and takes as long to compute as for many.
    """
    if len(files) > _FEW_FILES:
        return _stats_columns(term, files)
    cached = files.known_stats
    stats: StatsColumns | None = cached.get(term)
    if stats is None:
        stats = cached[term] = _stats_columns(term, files)
    return stats


def _stats_columns(term: BoundTerm, files: ManifestColumns) -> StatsColumns:
    field_id, result_type = term.field_id, term.reference.result_type
    count = len(files)
    nothing = np.zeros(count, dtype=bool)
    values, has_values = _counts(files, field_id, "value_counts")
    nulls, has_nulls = _counts(files, field_id, "null_value_counts")
    if isinstance(result_type, FloatType | DoubleType):
        nans, has_nans = _counts(files, field_id, "nan_value_counts")
    else:
        nans, has_nans = np.zeros(count, dtype=np.int64), ~nothing
    # NaN is not null: if all values are NaN, no null count is needed.
    has_nulls = has_nulls | (has_values & has_nans & (values == nans))
    counts_nulls_exactly = len(term.reference.path) == 1
    has_no_null = has_nulls & (nulls == 0) if counts_nulls_exactly else nothing
    lower, upper = _bounds(term, files, "lower_bounds"), _bounds(term, files, "upper_bounds")
    return StatsColumns(
        lower,
        upper,
        has_no_null=~nothing if not term.may_be_null else has_no_null,
        has_no_nan=has_nans & (nans == 0),
        is_all_null=has_values & has_nulls & (values == nulls),
        is_all_null_or_nan=has_values & has_nulls & has_nans & (values == nulls + nans),
    )


def _counts(files: ManifestColumns, field_id: int, name: CountName) -> tuple[npt.NDArray[np.int64], Mask]:
    column = counts_of(files, field_id, name)
    if column.null_count == 0:
        return column.to_numpy(), np.ones(len(column), dtype=bool)
    valid = to_mask(pc.is_valid(column))
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False), valid


def _bounds(term: BoundTerm, files: ManifestColumns, name: BoundName) -> pa.Array:
    result_type = term.reference.result_type
    wrapped = _wrapped_range(term)
    usable = isinstance(result_type, PrimitiveType) and not isinstance(result_type, GeometryType | GeographyType)
    data = bounds_of(files, term.field_id, name) if usable else pa.nulls(len(files), pa.binary())
    if not isinstance(term, BoundTransform):
        return decode_bounds(data, result_type)
    if not term.transform.preserves_order:
        return decode_bounds(pa.nulls(len(files), pa.binary()), term.result_type)
    transformed = _transformed(term, decode_bounds(data, result_type))
    if wrapped is None:
        return transformed
    # If values may have wrapped around, the transformed values are not between the transformed bounds.
    lower = from_comparable(decode_bounds(bounds_of(files, term.field_id, "lower_bounds"), result_type), result_type)
    return pc.if_else(
        pc.fill_null(pc.greater(lower, wrapped.last), False), transformed, pa.scalar(None, transformed.type)
    )


def _wrapped_range(term: BoundTerm) -> WrappedRange | None:
    if not isinstance(term, BoundTransform) or not isinstance(term.transform, Truncate):
        return None
    return term.transform.wrapped_range(term.reference.result_type)


def _transformed(term: BoundTransform, bounds: pa.Array) -> pa.Array:
    """Return decoded bounds after an order-preserving transform, in the form to compare."""
    source = term.reference.result_type
    try:
        column = transform_column(term.transform, from_comparable(bounds, source), source)
    except SchemaMismatchError:
        # A bound at the end of the type's range has no truncation that fits the type.
        return decode_bounds(pa.nulls(len(bounds), pa.binary()), term.result_type)
    return to_comparable(column, term.result_type)
