"""Rows in z-order: close in several columns at once, so that a filter on any one of them leaves most files out.

A row's place comes from its ranks, not from the bytes of its values: each column is cut into equally many rows, so that
a column of few or skewed values weighs as much as one whose values fill their type. The bits of the ranks are
interleaved, the highest bit of the first column first, and rows are sorted by the number they make. Nulls come first.

Ranks mean something among the rows that are sorted together, and that is all a file's bounds need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.datafile.sort_rows import RowSorter
from frazil.errors import InvalidRequestError
from frazil.spec.schema import Schema
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spec.transforms import IDENTITY

MAX_BITS = 63
"""Of one number that says where a row goes; two columns have 31 bits each, more than rows have ranks."""


def zorder_rows(rows: pa.Table, schema: Schema, field_ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the order in which rows of a schema lie close together in all of some columns."""
    if not 0 < len(field_ids) <= MAX_BITS:
        raise InvalidRequestError(f"Cannot sort in z-order of {len(field_ids)} columns: give one to {MAX_BITS}")
    bits = MAX_BITS // len(field_ids)
    ranks = [_ranks(rows, schema, field_id, bits) for field_id in field_ids]
    return np.argsort(interleave(ranks, bits), kind="stable")


def interleave(ranks: Sequence[npt.NDArray[np.uint64]], bits: int) -> npt.NDArray[np.uint64]:
    """Return numbers made of the bits of ranks in turn, from the highest of `bits` bits down."""
    made = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for one in ranks:
            made = (made << np.uint64(1)) | ((one >> np.uint64(bit)) & np.uint64(1))
    return made


def _ranks(rows: pa.Table, schema: Schema, field_id: int, bits: int) -> npt.NDArray[np.uint64]:
    """Return where each row stands in one column, from 0 up to the largest number of some bits; equal rows alike."""
    order = SortOrder(1, (SortField((field_id,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_FIRST),))
    sorter = RowSorter(schema, order)
    keys = sorter.keys(rows)
    count = rows.num_rows
    if not sorter.has_keys or count < 2:
        return np.zeros(count, np.uint64)
    places = sorter.sort(keys)
    sorted_keys = keys if places is None else keys.take(pa.array(places))
    is_new = np.zeros(count, bool)
    for column in sorted_keys.columns:
        values = column.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            raise InvalidRequestError("Cannot sort in z-order: a column has more than 2 GiB in one group of files")
        before, after = values.slice(0, count - 1), values.slice(1)
        differs = pc.fill_null(pc.not_equal(before, after), False)
        is_new[1:] |= pc.or_(differs, pc.xor(before.is_null(), after.is_null())).to_numpy(zero_copy_only=False)
    # The place of the first of equal rows: each value takes as much of the range as it has rows.
    first = np.maximum.accumulate(np.where(is_new, np.arange(count), 0))
    scaled = (first.astype(np.float64) / count * float(1 << min(bits, 52))).astype(np.uint64)
    found = np.empty(count, np.uint64)
    found[np.arange(count) if places is None else places] = scaled << np.uint64(max(bits - 52, 0))
    return found
