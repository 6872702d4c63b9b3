"""Which manifests and which files can hold a match: one filter, made ready for any manifest of a table.

Planning asks three times, each time with less left: a manifest's partition summaries, its files'
partition tuples, its files' metrics. Files are judged as whole columns (`columns/`), never one by one.
Each manifest is judged with the partition spec it was written with.
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
from frazil.columns.bounds import decode_bounds
from frazil.columns.comparable import from_comparable, to_comparable
from frazil.columns.manifest_columns import BoundName, CountName, bounds_of, counts_of, single_chunk
from frazil.columns.masks import row_mask
from frazil.columns.stats_masks import Mask, StatsColumns, may_match_mask, must_match_mask, to_mask
from frazil.columns.transforms import transform_column
from frazil.errors import SchemaMismatchError
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
    """A filter as one partition spec sees it."""

    spec: PartitionSpec
    partition_type: StructType
    inclusive: Predicate
    residuals: Residuals


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is left of a manifest's files: a mask, and how many each step dropped."""

    keep: Mask
    dropped_by_partition: int
    dropped_by_metrics: int


class Pruner:
    """One bound filter over one table's partition specs."""

    def __init__(self, predicate: Predicate, specs: dict[int, tuple[PartitionSpec, StructType]]) -> None:
        self.predicate = predicate
        self._specs = specs
        self._filters: dict[int, SpecFilter] = {}
        self._lock = Lock()

    def for_spec(self, spec_id: int) -> SpecFilter:
        """Return the filter as a spec sees it, made on first use."""
        with self._lock:
            known = self._filters.get(spec_id)
            if known is None:
                spec, partition_type = self._specs[spec_id]
                inclusive = project_inclusive(self.predicate, spec, partition_type)
                known = SpecFilter(spec, partition_type, inclusive, Residuals(self.predicate, spec, partition_type))
                self._filters[spec_id] = known
            return known

    @property
    def needs_metrics(self) -> bool:
        """Whether files are judged by their metrics."""
        return bool(field_ids_of(self.predicate))

    def keeps_manifest(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest's summaries leave room for a match."""
        seen = self.for_spec(manifest.partition_spec_id)
        return may_hold_match(seen.inclusive, manifest, seen.partition_type)

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
    """Return which files of a manifest hold nothing but rows that match a bound predicate, by their metrics."""
    counts = files.column("record_count").to_numpy()
    is_empty: Mask = counts == 0
    return is_empty | metrics_mask(predicate, files, must_match_mask, unknown=False)


_LeafMask = Callable[..., Mask]
_FEW_FILES = 64


def metrics_mask(predicate: Predicate, files: ManifestColumns, test: _LeafMask, *, unknown: bool) -> Mask:
    """Return what metrics say of each file of a manifest; `unknown` stands where they can say nothing."""
    return _decide(predicate, files, test, unknown, {})


def _decide(
    node: Predicate, files: ManifestColumns, test: _LeafMask, unknown: bool, known: dict[BoundTerm, StatsColumns]
) -> Mask:
    # No closure calls itself here: it would keep the manifest until the garbage collector runs.
    if isinstance(node, And | Or):
        combine = np.logical_and if isinstance(node, And) else np.logical_or
        result = _decide(node.children[0], files, test, unknown, known)
        for child in node.children[1:]:
            result = combine(result, _decide(child, files, test, unknown, known))
        return result
    if isinstance(node, Always):
        return np.full(len(files), node == TRUE, dtype=bool)
    if not isinstance(node, Bound):
        return np.full(len(files), unknown, dtype=bool)
    if node.term not in known:
        known[node.term] = stats_columns(node.term, files)
    return test(node.op, node.literals, known[node.term], node.term.result_type)


def stats_columns(term: BoundTerm, files: ManifestColumns) -> StatsColumns:
    """Return what the metrics of many files prove of a term.

    Of few files it is remembered with their manifest: that takes little memory, and as long to work out as for many.
    """
    if len(files) > _FEW_FILES:
        return _stats_columns(term, files)
    known = files.known_stats
    found: StatsColumns | None = known.get(term)
    if found is None:
        found = known[term] = _stats_columns(term, files)
    return found


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
    # What is NaN is not null: where every value is, no null count is needed.
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
    found = _transformed(term, decode_bounds(data, result_type))
    if wrapped is None:
        return found
    # Where values may have wrapped around, those of the transform are not between its bounds.
    lower = from_comparable(decode_bounds(bounds_of(files, term.field_id, "lower_bounds"), result_type), result_type)
    return pc.if_else(pc.fill_null(pc.greater(lower, wrapped.last), False), found, pa.scalar(None, found.type))


def _wrapped_range(term: BoundTerm) -> WrappedRange | None:
    if not isinstance(term, BoundTransform) or not isinstance(term.transform, Truncate):
        return None
    return term.transform.wrapped_range(term.reference.result_type)


def _transformed(term: BoundTransform, bounds: pa.Array) -> pa.Array:
    """Return decoded bounds after an order-preserving transform, in the form to compare."""
    source = term.reference.result_type
    try:
        transformed = transform_column(term.transform, from_comparable(bounds, source), source)
    except SchemaMismatchError:
        # A bound at the type's end has no truncation that fits.
        return decode_bounds(pa.nulls(len(bounds), pa.binary()), term.result_type)
    return to_comparable(transformed, term.result_type)
