"""Z-order of rows: close in several columns at once, so that a filter on any of them excludes most files.

A row's z-value is computed from ranks, not from the bytes of its values: each column is divided into ranges of equally
many rows, so that a column with few or skewed values weighs as much as one whose values fill their type. The bits of
the ranks are interleaved, starting with the highest bit of the first column, and rows are sorted by the result. Nulls
come first.

Ranks are meaningful only among the rows that are sorted together, which suffices for a file's bounds. If those are too
many for memory, ranks are those in a sample: with `SAMPLE_ROWS` rows, a rank is off by a few thousandths at most, far
less than the range of a column that a file covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

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
"""The bits of a z-value; two columns have 31 bits each, more than rows have ranks."""


SAMPLE_ROWS: Final = 1 << 16
_MAX_SAMPLE_BYTES: Final = 32 << 20
_Z_VALUE: Final = "place"


class ZOrder:
    """The z-order of rows of a schema by some columns.

    Without a sample, rows are ranked among themselves, so they must all be in one table. `sample` has rows with at
    least these columns, and `sample_schema` is their schema.
    """

    def __init__(
        self,
        schema: Schema,
        field_ids: Sequence[int],
        sample: pa.Table | None = None,
        sample_schema: Schema | None = None,
    ) -> None:
        if not 0 < len(field_ids) <= MAX_BITS:
            raise InvalidRequestError(f"Cannot sort in z-order of {len(field_ids)} columns: pass one to {MAX_BITS}")
        self._bits = MAX_BITS // len(field_ids)
        self._columns = [_sorter(schema, field_id) for field_id in field_ids]
        self._sampled: list[_SampledRanks] | None = None
        if sample is not None:
            within = schema if sample_schema is None else sample_schema
            sorters = [_sorter(within, field_id) for field_id in field_ids]
            self._sampled = [_SampledRanks(sorter, sorter.keys(sample), self._bits) for sorter in sorters]

    def keys(self, rows: pa.Table) -> pa.Table:
        """Return the z-values of rows."""
        if self._sampled is None:
            ranks = [_ranks(column, column.keys(rows), self._bits) for column in self._columns]
        else:
            ranks = [
                sampled.of(column.keys(rows)) for column, sampled in zip(self._columns, self._sampled, strict=True)
            ]
        return pa.table({_Z_VALUE: interleave(ranks, self._bits)})

    def sort(self, keys: pa.Table) -> npt.NDArray[np.int64] | None:
        """Return the order of rows by their z-values, or None if they are sorted."""
        values = keys.column(_Z_VALUE).to_numpy()
        if len(values) < 2 or bool((values[:-1] <= values[1:]).all()):
            return None
        return np.argsort(values, kind="stable")


def draw_sample(batches: Iterable[pa.RecordBatch], schema: pa.Schema, row_count: int) -> pa.Table:
    """Return about `SAMPLE_ROWS` of the rows, reproducibly, or fewer if they are large."""
    random = np.random.default_rng(0)
    share = min(SAMPLE_ROWS / max(row_count, 1), 1.0)
    chosen: list[pa.Table] = []
    size = 0
    for batch in batches:
        mask = pa.array(random.random(batch.num_rows) < share)
        drawn = pa.Table.from_batches([batch]).filter(mask)
        chosen.append(drawn)
        size += drawn.nbytes
        while size > _MAX_SAMPLE_BYTES and any(batch.num_rows for batch in chosen):
            share /= 2
            rows = pa.concat_tables(chosen)
            chosen = [rows.filter(pa.array(random.random(rows.num_rows) < 0.5))]
            size = chosen[0].nbytes
    return pa.concat_tables(chosen) if chosen else schema.empty_table()


def interleave(ranks: Sequence[npt.NDArray[np.uint64]], bits: int) -> npt.NDArray[np.uint64]:
    """Interleave the bits of ranks, from the highest of `bits` bits down."""
    values = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            values = (values << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return values


def _sorter(schema: Schema, field_id: int) -> RowSorter:
    order = SortOrder(1, (SortField((field_id,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_FIRST),))
    return RowSorter(schema, order)


def _ranks(sorter: RowSorter, keys: pa.Table, bits: int) -> npt.NDArray[np.uint64]:
    """Return each row's rank in one column, scaled to a number of bits; equal rows have equal ranks."""
    count = keys.num_rows
    if not sorter.has_keys or count < 2:
        return np.zeros(count, np.uint64)
    order = sorter.sort(keys)
    # Equal rows have the rank of the first: each value takes as much of the range as it has rows.
    is_new = _is_new(keys if order is None else keys.take(pa.array(order)))
    first = np.maximum.accumulate(np.where(is_new, np.arange(count), 0))
    ranks = np.empty(count, np.uint64)
    ranks[np.arange(count) if order is None else order] = _scaled(first, count, bits)
    return ranks


class _SampledRanks:
    """Ranks of rows in one column, interpolated from a sample of the rows; see `_ranks`."""

    def __init__(self, sorter: RowSorter, sample: pa.Table, bits: int) -> None:
        self._sorter = sorter
        self._bits = bits
        self._count = sample.num_rows
        if not sorter.has_keys or self._count == 0:
            return
        order = sorter.sort(sample)
        keys = sample if order is None else sample.take(pa.array(order))
        is_new = _is_new(keys)
        is_new[0] = True
        self._values = keys.filter(pa.array(is_new))
        # The number of sampled rows before each value; above the last value, all of them.
        self._before = np.append(np.flatnonzero(is_new), self._count)

    def of(self, keys: pa.Table) -> npt.NDArray[np.uint64]:
        """Return the ranks of rows with these keys."""
        count = keys.num_rows
        if not self._sorter.has_keys or self._count == 0:
            return np.zeros(count, np.uint64)
        # Rows sort before an equal value of the sample, so the values before them are smaller.
        together = pa.concat_tables([keys, self._values])
        order = self._sorter.sort(together)
        if order is None:
            order = np.arange(together.num_rows)
        is_sample = order >= count
        smaller = np.empty(together.num_rows, np.int64)
        smaller[order] = np.cumsum(is_sample)
        before = np.minimum(self._before[smaller[:count]], self._count - 1)
        return _scaled(before, self._count, self._bits)


def _is_new(keys: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which of sorted keys differ from their predecessor, except the first."""
    count = keys.num_rows
    is_new = np.zeros(count, bool)
    for column in keys.columns:
        values = column.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            raise InvalidRequestError(
                "Cannot sort in z-order: the rows of a column that are sorted at once exceed 2 GiB",
                hint="Lower sort-memory-bytes.",
            )
        before, after = values.slice(0, max(count - 1, 0)), values.slice(1)
        differs = pc.fill_null(pc.not_equal(before, after), False)
        is_new[1:] |= pc.or_(differs, pc.xor(before.is_null(), after.is_null())).to_numpy(zero_copy_only=False)
    return is_new


def _scaled(first: npt.NDArray[np.int64], count: int, bits: int) -> npt.NDArray[np.uint64]:
    scaled = (first.astype(np.float64) / count * float(1 << min(bits, 52))).astype(np.uint64)
    return scaled << np.uint64(max(bits - 52, 0))
