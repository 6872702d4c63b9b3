"""Statistics of columns over all files of a snapshot: nulls, bounds, bytes, and distinct values if measured.

Manifests are read a few at a time and summed one by one. Bounds of text may be truncated, so they are bounds rather
than values. Distinct values come from the table metadata's descriptions of statistics files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.manifest_avro import ManifestColumns
from frazil.expr.columns.manifest_columns import bounds_of, counts_of
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_chosen_manifests, read_rows, with_content
from frazil.metadata_tables.readable_metrics import bound_values
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.spec.manifest import ManifestContent
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import GeographyType, GeometryType, PrimitiveType, Type, VariantType

_FIELDS: Final = ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
_SKETCH: Final = "apache-datasketches-theta-v1"


@dataclass(slots=True)
class ColumnFigures:
    """The metrics of a column, with None for metrics that no file has."""

    bytes: int | None = None
    values: int | None = None
    nulls: int | None = None
    lower: Any = None
    upper: Any = None


def column_figures(
    loaded: LoadedTable, field_ids: Sequence[int], choice: SnapshotChoice = CURRENT, *, threads: int | None = None
) -> dict[int, ColumnFigures]:
    """Return the metrics of columns."""
    fields = loaded.metadata.current_schema.fields_by_id
    kinds = {
        field_id: fields[field_id].field_type
        for field_id in field_ids
        if field_id in fields and isinstance(fields[field_id].field_type, PrimitiveType)
    }

    def add_up(files: ManifestColumns) -> dict[int, ColumnFigures]:
        return {field_id: _figures(files, field_id, data_type) for field_id, data_type in kinds.items()}

    manifests = with_content(read_chosen_manifests(loaded, choice), ManifestContent.DATA)
    figures = {field_id: ColumnFigures() for field_id in kinds}
    for row in read_rows(loaded, manifests, _FIELDS, add_up, only_live=True, threads=threads):
        for field_id, added in row.items():
            _merge(figures[field_id], added)
    return figures


def distinct_values(metadata: TableMetadata) -> tuple[int | None, dict[int, int]]:
    """Return the last snapshot with measured distinct values, and the number of each column."""
    ids = {head.snapshot_id for head in metadata.snapshots.heads}
    measured = [statistics_file for statistics_file in metadata.statistics if statistics_file.snapshot_id in ids]
    current = metadata.current_snapshot_id
    measured.sort(key=lambda statistics_file: statistics_file.snapshot_id == current)
    if not measured:
        return None, {}
    counts = {}
    for blob in measured[-1].blob_metadata:
        text = blob.properties.get("ndv", "")
        if blob.type == _SKETCH and len(blob.fields) == 1 and text.isascii() and text.isdigit() and len(text) < 20:
            counts[blob.fields[0]] = int(text)
    return measured[-1].snapshot_id, counts


def _figures(files: ManifestColumns, field_id: int, data_type: Type) -> ColumnFigures:
    figures = ColumnFigures(
        pc.sum(counts_of(files, field_id, "column_sizes")).as_py(),
        pc.sum(counts_of(files, field_id, "value_counts")).as_py(),
        pc.sum(counts_of(files, field_id, "null_value_counts")).as_py(),
    )
    if not isinstance(data_type, GeometryType | GeographyType | VariantType):
        target = to_arrow_type(data_type)
        target = target.storage_type if isinstance(target, pa.BaseExtensionType) else target
        figures.lower = _extreme(bound_values(bounds_of(files, field_id, "lower_bounds"), data_type, target), pc.min)
        figures.upper = _extreme(bound_values(bounds_of(files, field_id, "upper_bounds"), data_type, target), pc.max)
    return figures


def _extreme(values: pa.Array, choose: Any) -> Any:
    try:
        scalar = choose(values)
        return scalar.as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        # A type that Arrow cannot compare, or a time that Python cannot represent.
        return None


def _merge(into: ColumnFigures, added: ColumnFigures) -> None:
    for name in ("bytes", "values", "nulls"):
        own, other = getattr(into, name), getattr(added, name)
        setattr(into, name, other if own is None else own if other is None else own + other)
    into.lower = _better(into.lower, added.lower, is_lower=True)
    into.upper = _better(into.upper, added.upper, is_lower=False)


def _better(own: Any, other: Any, *, is_lower: bool) -> Any:
    if own is None or other is None:
        return other if own is None else own
    return min(own, other) if is_lower else max(own, other)
