"""Sort rows by a table's sort order. Specification: "Sorting".

Part of the write path: the rows of one file are sorted by the transforms of the order's columns, each with its
direction and null order. Floating-point values are ordered as specified, by integers of the same order: -NaN,
-Infinity, negative numbers, -0, 0, positive numbers, Infinity, NaN. The sort is stable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.datafile.partition_values import column_at, find_path
from frazil.errors import UnsupportedError
from frazil.expr.columns.transforms import transform_column
from frazil.spec.schema import Schema
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder, check_sort_order
from frazil.spec.types import Type


class RowSorter:
    """Sorts rows of one schema by a sort order.

    `schema` is that of the rows; columns of the table's schema that a file does not store are always null.
    """

    def __init__(self, schema: Schema, order: SortOrder, table_schema: Schema | None = None) -> None:
        for field in order.fields:
            if field.transform.is_unknown:
                raise UnsupportedError(
                    f"Cannot sort by {field}: this version does not know the transform {field.transform}",
                    hint="Write with no sort order, or with the software that created the order.",
                )
        check_sort_order(schema if table_schema is None else table_schema, order)
        self._fields: list[tuple[SortField, tuple[int, ...], Type]] = []
        self._keys: list[tuple[str, str]] = []
        for field in order.fields:
            path = find_path(schema, field.source_id)
            if path is None or field.transform.is_void:
                continue
            direction = "descending" if field.direction is SortDirection.DESC else "ascending"
            self._keys += [(f"null{len(self._fields)}", "ascending"), (f"value{len(self._fields)}", direction)]
            self._fields.append((field, path, schema.field(field.source_id).field_type))

    @property
    def has_keys(self) -> bool:
        """Whether rows can differ: terms with constant values make any order valid."""
        return bool(self._keys)

    def keys(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return the columns by which rows are compared: for each field a flag that places nulls, and the values."""
        columns: list[Any] = []
        for field, path, source in self._fields:
            values = transform_column(field.transform, column_at(rows, path), source)
            is_null = values.is_null()
            columns.append(is_null if field.null_order is NullOrder.NULLS_LAST else pc.invert(is_null))
            columns.append(_sortable(values))
        return pa.table(columns, names=[name for name, _ in self._keys])

    def sort(self, keys: pa.Table) -> npt.NDArray[np.int64] | None:
        """Return the order of rows with these keys, or None if they are sorted already."""
        # A flag that is the same for all rows would only slow down the comparison.
        sort_keys = [
            (name, direction) for name, direction in self._keys if name.startswith("value") or _varies(keys[name])
        ]
        if not sort_keys or keys.num_rows < 2:
            return None
        # Positions are far below the maximum, so their bits can be viewed as signed without a copy.
        order = pc.sort_indices(keys, sort_keys=sort_keys).to_numpy().view(np.int64)
        return None if bool((order[:-1] < order[1:]).all()) else order


def _varies(flags: pa.ChunkedArray) -> bool:
    return bool(pc.any(flags).as_py()) and not bool(pc.all(flags).as_py())


def _sortable(array: Any) -> Any:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if not pa.types.is_floating(array.type):
        return array
    wide, flip = (np.int32, 0x7FFFFFFF) if array.type.bit_width == 32 else (np.int64, 0x7FFFFFFFFFFFFFFF)
    values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
    # NaNs of one sign are equal, regardless of their other bits.
    nan = np.copysign(np.array(np.nan, values.dtype), values)
    bits = np.where(np.isnan(values), nan, values).view(wide)
    # Negative numbers are stored as sign and magnitude; inverting them puts -0 just before 0.
    ordered = bits ^ (bits >> (bits.dtype.itemsize * 8 - 1) & wide(flip))
    return (
        pa.array(ordered, mask=array.is_null().to_numpy(zero_copy_only=False))
        if array.null_count
        else pa.array(ordered)
    )
