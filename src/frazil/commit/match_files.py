"""Match files against a filter for a delete by filter: files that hold only matching rows, and files that hold some.

Each file has two results: `some` is false only if no row can match, `every` is true only if all rows are known to. The
partition tuple decides what it can, for each file by its own spec; the metrics decide the residual filter. Files are
matched as columns, grouped by partition.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import ConcurrentChangeError
from frazil.expr.bind import bind
from frazil.expr.columns.masks import row_mask
from frazil.expr.columns.partition_keys import partition_tuples
from frazil.expr.columns.stats_masks import Mask, may_match_mask, to_mask
from frazil.expr.predicates import FALSE, Always, Bound, BoundTransform, Predicate, leaves_of
from frazil.expr.project_partition import project_strict
from frazil.scan.prune import Pruner, metrics_mask, strict_mask, struct_of
from frazil.spec.manifest import ManifestFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType


class FileMatcher:
    """One filter over the files of a table, with names of the current schema, or bound to an earlier schema."""

    def __init__(
        self,
        metadata: TableMetadata,
        specs: dict[int, tuple[PartitionSpec, StructType]],
        where: Predicate,
        *,
        case_sensitive: bool = True,
    ) -> None:
        self._predicate = bind(metadata.current_schema, where, case_sensitive=case_sensitive)
        _check_unchanged(metadata.current_schema, self._predicate)
        self._pruner = Pruner(self._predicate, specs)
        self._specs = specs

    def may_match_manifest(self, manifest: ManifestFile) -> bool:
        """Return whether a manifest can hold files with matching rows."""
        return self._predicate != FALSE and self._pruner.keeps_manifest(manifest)

    def may_match(self, files: ManifestColumns, candidates: Mask) -> Mask:
        """Return which candidates may hold a matching row, by partition and metrics."""
        if self._predicate == FALSE:
            return np.zeros(len(files), dtype=bool)
        return self._pruner.prune_files(files, candidates).keep

    def match(self, files: ManifestColumns, candidates: Mask) -> tuple[Mask, Mask]:
        """Return which candidates may hold a matching row, and which are known to hold only matching rows."""
        some = self.may_match(files, candidates)
        if not some.any():
            return some, some
        spec, partition_type = self._specs[files.spec_id]
        strict = project_strict(self._predicate, spec, partition_type)
        if isinstance(strict, Always):
            by_partition: Mask = np.full(len(files), strict.value, dtype=bool)
        else:
            by_partition = to_mask(row_mask(strict, struct_of(files)))
        every = some & by_partition
        undecided = some & ~every
        if undecided.any():
            self._match_residuals(files, undecided, some, every)
        return some, every

    def _match_residuals(self, files: ManifestColumns, undecided: Mask, some: Mask, every: Mask) -> None:
        residuals = self._pruner.for_spec(files.spec_id).residuals
        tuples = partition_tuples(files)
        groups: dict[Predicate, list[int]] = defaultdict(list)
        residual_of: dict[tuple[object, ...], Predicate] = {}
        for index in np.flatnonzero(undecided).tolist():
            values = tuples[index]
            if values not in residual_of:
                residual_of[values] = residuals.of(values)
            groups[residual_of[values]].append(index)
        for residual, indexes in groups.items():
            if isinstance(residual, Always):
                some[indexes] = every[indexes] = residual.value
                continue
            chosen = replace(files, table=files.table.take(pa.array(indexes)))
            has_rows = chosen.column("record_count").to_numpy() != 0
            some[indexes] = has_rows & metrics_mask(residual, chosen, may_match_mask, unknown=True)
            every[indexes] = strict_mask(residual, chosen)
            # A file without rows has no row that does not match, so it may be removed with the others.
            some[indexes] |= every[indexes]


def _check_unchanged(schema: Schema, predicate: Predicate) -> None:
    """Refuse a filter bound to columns that have since been renamed, retyped or dropped: its meaning changed."""
    for leaf in leaves_of(predicate):
        assert isinstance(leaf, Bound)
        before = leaf.term.reference if isinstance(leaf.term, BoundTransform) else leaf.term
        now = schema.find_field(before.field_id)
        name = ".".join(before.path)
        if now is None or schema.name_of(before.field_id) != name or now.field_type != before.field.field_type:
            raise ConcurrentChangeError(
                f"Cannot commit: the column {name!r} of the condition has changed",
                hint="Another writer changed the schema, and nothing was committed. Run the operation again.",
            )
