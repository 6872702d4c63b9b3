"""The metrics mode of each column of a table. Specification: "Data File Fields".

Used when the metrics of data files are collected. The mode of a column is, in this order: its own property, at least
`truncate(16)` if the table is sorted by it, the table's default mode. A table without a default mode measures only its
first columns, up to a limit, since a wide table's metadata would otherwise become too large.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.errors import InvalidPropertyError
from frazil.spec import properties as known
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.metrics_mode import FULL, NONE, TRUNCATE_16, MetricsMode, parse_metrics_mode
from frazil.spec.properties import read_column_properties, read_property
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.spec.schema import Schema
from frazil.spec.sorting import SortOrder
from frazil.spec.types import NestedType

__all__ = ["MetricsMode", "parse_metrics_mode"]

POSITION_DELETE_METRICS_MODES: Mapping[int, MetricsMode] = FrozenMap(
    {DELETE_FILE_PATH.field_id: FULL, DELETE_POS.field_id: FULL}
)
"""The modes of a position delete file: always full, since readers find its data files by bounds."""


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sort_order: SortOrder | None = None
) -> dict[int, MetricsMode]:
    """Return the metrics mode of every column that holds values, including nested ones, by field id.

    Properties that name no column of the schema are ignored; `check_metrics_columns` refuses them. An invalid mode is
    an error, while Iceberg Java would fall back to another mode.
    """
    leaves = _leaves(schema)
    default = read_property(properties, known.DEFAULT_METRICS_MODE)
    limit = read_property(properties, known.METRICS_MAX_INFERRED_COLUMN_DEFAULTS)
    if known.DEFAULT_METRICS_MODE.name in properties or len(leaves) <= limit:
        modes = dict.fromkeys(leaves, default)
        rest = default
    else:
        modes = {field_id: default if index < limit else NONE for index, field_id in enumerate(leaves)}
        rest = NONE
    for field_id in () if sort_order is None else sort_order.order_preserving_source_ids:
        if field_id in modes:
            modes[field_id] = rest if rest.has_bounds else TRUNCATE_16
    for column, mode in read_column_properties(properties, known.METRICS_MODE_COLUMN).items():
        field = schema.find_field(column)
        if field is not None and mode is not None and field.field_id in modes:
            modes[field.field_id] = mode
    return modes


def check_metrics_columns(schema: Schema, properties: Mapping[str, str]) -> None:
    """Refuse metrics properties of columns that the schema does not have, when properties are set."""
    for column in read_column_properties(properties, known.METRICS_MODE_COLUMN):
        if schema.find_field(column) is None:
            raise InvalidPropertyError(
                f"Cannot use the property {known.METRICS_MODE_COLUMN.key(column)}: the schema has no column {column!r}",
                hint=f"The columns are: {', '.join(field.name for field in schema.fields) or '(none)'}.",
            )


def _leaves(schema: Schema) -> list[int]:
    """Return the ids of fields with values; in each struct, list or map, direct children come first."""
    leaves: list[int] = []
    stack: list[NestedType] = [schema.struct]
    while stack:
        parts = stack.pop().fields
        leaves += [field.field_id for field in parts if not isinstance(field.field_type, NestedType)]
        stack += [field.field_type for field in reversed(parts) if isinstance(field.field_type, NestedType)]
    return leaves
