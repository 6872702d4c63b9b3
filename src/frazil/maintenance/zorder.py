"""Rows in z-order: close in several columns at once, so that a filter on any one of them leaves most files out.

A row's z-value comes from ranks, not from the bytes of its values: each column is cut into equally many rows, so that
a column of few or skewed values weighs as much as one whose values fill their type. The bits of the ranks are
interleaved, the highest bit of the first column first, and rows are sorted by the number they make. Nulls come first.

Ranks mean something among the rows that are sorted together, and that is all a file's bounds need. Where those are too
many for memory, ranks are those in a sample: of `SAMPLE_ROWS` rows, a rank is off by a few thousandths at most, far
less than the part of a column that a file covers.
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
"""Of one number that says where a row goes; two columns have 31 bits each, more than rows have ranks."""


SAMPLE_ROWS: Final = 1 << 16
_MAX_SAMPLE_BYTES: Final = 32 << 20
_PLACE: Final = "place"


class ZOrder:
    """The z-order of rows of a schema by some columns.

    Without a sample, rows are ranked among those that they come with: all at once. `sample` is rows with at least
    these columns, and `sample_schema` their schema.
    """

    def __init__(
        self,
        schema: Schema,
        field_ids: Sequence[int],
        sample: pa.Table | None = None,
        sample_schema: Schema | None = None,
    ) -> None:
        if not 0 < len(field_ids) <= MAX_BITS:
            raise InvalidRequestError(f"Cannot sort in z-order of {len(field_ids)} columns: give one to {MAX_BITS}")
        self._bits = MAX_BITS // len(field_ids)
        self._columns = [_sorter(schema, field_id) for field_id in field_ids]
        self._sampled: list[_SampledRanks] | None = None
        if sample is not None:
            within = schema if sample_schema is None else sample_schema
            sorters = [_sorter(within, field_id) for field_id in field_ids]
            self._sampled = [_SampledRanks(sorter, sorter.keys(sample), self._bits) for sorter in sorters]

    def keys(self, rows: pa.Table) -> pa.Table:
        """Return the numbers by which rows are sorted."""
        if self._sampled is None:
            ranks = [_ranks(column, column.keys(rows), self._bits) for column in self._columns]
        else:
            ranks = [
                sampled.of(column.keys(rows)) for column, sampled in zip(self._columns, self._sampled, strict=True)
            ]
        return pa.table({_PLACE: interleave(ranks, self._bits)})

    def sort(self, keys: pa.Table) -> npt.NDArray[np.int64] | None:
        """Return the order of rows with these numbers, or None where they are sorted."""
        places = keys.column(_PLACE).to_numpy()
        if len(places) < 2 or bool((places[:-1] <= places[1:]).all()):
            return None
        return np.argsort(places, kind="stable")


def draw_sample(batches: Iterable[pa.RecordBatch], schema: pa.Schema, row_count: int) -> pa.Table:
    """Return about `SAMPLE_ROWS` of the rows, the same ones each time; fewer where they are large."""
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
    """Return numbers made of the bits of ranks in turn, from the highest of `bits` bits down."""
    made = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            made = (made << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return made


def _sorter(schema: Schema, field_id: int) -> RowSorter:
    order = SortOrder(1, (SortField((field_id,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_FIRST),))
    return RowSorter(schema, order)


def _ranks(sorter: RowSorter, keys: pa.Table, bits: int) -> npt.NDArray[np.uint64]:
    """Return where each row stands in one column, from 0 up to the largest number of some bits; equal rows alike."""
    count = keys.num_rows
    if not sorter.has_keys or count < 2:
        return np.zeros(count, np.uint64)
    places = sorter.sort(keys)
    # The rank of the first of equal rows: each value takes as much of the range as it has rows.
    is_new = _is_new(keys if places is None else keys.take(pa.array(places)))
    first = np.maximum.accumulate(np.where(is_new, np.arange(count), 0))
    found = np.empty(count, np.uint64)
    found[np.arange(count) if places is None else places] = _scaled(first, count, bits)
    return found


class _SampledRanks:
    """Where rows stand in one column, by a sample of them; by a sample of all rows, as `_ranks` says."""

    def __init__(self, sorter: RowSorter, sample: pa.Table, bits: int) -> None:
        self._sorter = sorter
        self._bits = bits
        self._count = sample.num_rows
        if not sorter.has_keys or self._count == 0:
            return
        places = sorter.sort(sample)
        keys = sample if places is None else sample.take(pa.array(places))
        is_new = _is_new(keys)
        is_new[0] = True
        self._values = keys.filter(pa.array(is_new))
        # Before a value come so many rows of the sample; above the last value, all of them.
        self._before = np.append(np.flatnonzero(is_new), self._count)

    def of(self, keys: pa.Table) -> npt.NDArray[np.uint64]:
        """Return where rows with these keys stand."""
        count = keys.num_rows
        if not self._sorter.has_keys or self._count == 0:
            return np.zeros(count, np.uint64)
        # Rows come before a value of the sample that is equal to theirs: what then stands before them is smaller.
        together = pa.concat_tables([keys, self._values])
        places = self._sorter.sort(together)
        if places is None:
            places = np.arange(together.num_rows)
        is_sample = places >= count
        smaller = np.empty(together.num_rows, np.int64)
        smaller[places] = np.cumsum(is_sample)
        before = np.minimum(self._before[smaller[:count]], self._count - 1)
        return _scaled(before, self._count, self._bits)


def _is_new(keys: pa.Table) -> npt.NDArray[np.bool_]:
    """Return of sorted keys which differ from the one before; not the first."""
    count = keys.num_rows
    is_new = np.zeros(count, bool)
    for column in keys.columns:
        values = column.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            raise InvalidRequestError(
                "Cannot sort in z-order: a column has more than 2 GiB of rows that are sorted at once",
                hint="Lower sort-memory-bytes.",
            )
        before, after = values.slice(0, max(count - 1, 0)), values.slice(1)
        differs = pc.fill_null(pc.not_equal(before, after), False)
        is_new[1:] |= pc.or_(differs, pc.xor(before.is_null(), after.is_null())).to_numpy(zero_copy_only=False)
    return is_new


def _scaled(first: npt.NDArray[np.int64], count: int, bits: int) -> npt.NDArray[np.uint64]:
    scaled = (first.astype(np.float64) / count * float(1 << min(bits, 52))).astype(np.uint64)
    return scaled << np.uint64(max(bits - 52, 0))
