"""A hash index of the source's keys, for the join of a merge; the source is the build side.

The values of each key column are numbered 0, 1, 2 and so on by Arrow's hash tables; the numbers of several columns are
combined into one, which is made dense again after each column, so that different keys never share one. Integers in a
narrow range need no hashing: they are array indexes. Rows of the table are streamed in batches; memory is that of the
source's keys.

NaN equals NaN, and both zeros are equal. Null equals null if the comparison is `<=>`, otherwise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.change_rows.merge_clauses import SHOWN_KEYS

Codes = npt.NDArray[np.int64]
_NONE = -1
_ROOM = 1 << 24
"""The maximum number of slots in an array of positions, unless four per key are more."""


class KeyIndex:
    """The keys of a source, indexed once for many look-ups."""

    def __init__(self, keys: Sequence[pa.Array], count: int, *, are_null_safe: Sequence[bool]) -> None:
        self._columns = [
            _Column(plain_keys(key), is_null_safe=safe) for key, safe in zip(keys, are_null_safe, strict=True)
        ]
        codes = np.zeros(count, np.int64)
        self._dense: list[_Dense] = []
        for index, column in enumerate(self._columns):
            codes = column.codes if index == 0 else _combined(codes, column.codes, column.size)
            if index:
                dense = _Dense(codes)
                self._dense.append(dense)
                codes = dense.of(codes)
        self._groups = _Groups(codes)

    @property
    def some_twice(self) -> list[int]:
        """One row of the source for each key that occurs several times; at most one more than `SHOWN_KEYS`."""
        return self._groups.some_twice

    @property
    def needs_no_hashing(self) -> bool:
        """Whether small batches of table rows are looked up as quickly as large ones."""
        return len(self._columns) == 1 and self._columns[0].has_places

    def find(self, keys: Sequence[pa.Array], count: int) -> tuple[Codes, Codes]:
        """Return the matching pairs of table rows and source rows, in the order of the table rows."""
        if len(keys) == 1:
            return self._groups.find(*self._columns[0].find_some(plain_keys(keys[0])))
        codes = np.zeros(count, np.int64)
        for index, (column, values) in enumerate(zip(self._columns, keys, strict=True)):
            column_codes = column.find(plain_keys(values))
            codes = column_codes if index == 0 else _combined(codes, column_codes, column.size)
            if index:
                codes = self._dense[index - 1].of(codes)
        return self._groups.find(*_known_codes(codes))


def plain_keys(values: pa.Array) -> pa.Array:
    """Normalize keys so that equal ones have equal bytes."""
    if isinstance(values.type, pa.BaseExtensionType):
        return values.storage
    if pa.types.is_floating(values.type):
        zeroed = pc.add(values, pa.scalar(0.0, values.type))
        return pc.if_else(pc.is_nan(zeroed), pa.scalar(float("nan"), values.type), zeroed)
    if pa.types.is_null(values.type):
        return values.cast(pa.int32())
    return values


def _combined(codes: Codes, more: Codes, size: int) -> Codes:
    return np.where((codes < 0) | (more < 0), _NONE, codes * max(size, 1) + more)


def _known_codes(codes: Codes) -> tuple[Codes, Codes]:
    """Return the rows that have a number, and the numbers."""
    rows = np.flatnonzero(codes >= 0)
    return rows, codes[rows]


class _Column:
    """The values of one key column in the source, with their numbers.

    An array of positions has the number plus one at each value of the source. It starts as zeros, for which the system
    allocates pages only when they are written; its last slot is for values out of range.
    """

    def __init__(self, values: pa.Array, *, is_null_safe: bool) -> None:
        self._is_null_safe = is_null_safe
        self._places: npt.NDArray[np.int32] | None = None
        self._low = 0
        self.size: int
        self.codes: Codes
        if pa.types.is_integer(values.type) and len(values) > values.null_count:
            self._make_places(values)
        if self._places is not None:
            self.codes = self.find(values)
            return
        encoded = values.dictionary_encode(null_encoding="encode" if is_null_safe else "mask")
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        self._known = encoded.dictionary
        self.size = len(self._known)
        self.codes = _numbers(encoded.indices)

    def _make_places(self, values: pa.Array) -> None:
        bounds = pc.min_max(values)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        room = high - low + 1
        if room > max(4 * len(values), _ROOM):
            return
        self._low = low
        self._places = np.zeros(room + 1, np.int32)
        present = np.unique(values.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)) - low
        self._places[present] = np.arange(1, len(present) + 1, dtype=np.int32)
        self.size = len(present) + 1  # null has the last

    @property
    def has_places(self) -> bool:
        """Whether values are looked up by their positions."""
        return self._places is not None

    def find(self, values: pa.Array) -> Codes:
        """Return the number of each value, or -1 if it is not in the source."""
        if self._places is None:
            # If null equals nothing, it is not in the index.
            return _numbers(pc.index_in(values, value_set=self._known))
        return self._numbers_at(values).astype(np.int64) - 1

    def find_some(self, values: pa.Array) -> tuple[Codes, Codes]:
        """Return the values that are in the source, and their numbers."""
        if self._places is None:
            return _known_codes(self.find(values))
        numbers = self._numbers_at(values)
        rows = np.flatnonzero(numbers)
        return rows, numbers[rows].astype(np.int64) - 1

    def _numbers_at(self, values: pa.Array) -> npt.NDArray[np.int32]:
        """Return the number of each value plus one, or 0 if it is not in the source."""
        assert self._places is not None
        missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        plain = values.fill_null(self._low) if values.null_count else values
        integers = plain.to_numpy(zero_copy_only=False)
        indexes = (
            integers - np.int64(self._low) if integers.dtype == np.int64 else integers.astype(np.int64) - self._low
        )
        # As unsigned integers, values below the range are far above it.
        unsigned = indexes.view(np.uint64)
        np.minimum(unsigned, np.uint64(len(self._places) - 1), out=unsigned)
        numbers: npt.NDArray[np.int32] = self._places.take(indexes, mode="clip")
        if missing is not None:
            numbers[missing] = self.size if self._is_null_safe else 0
        return numbers


class _Dense:
    """Makes the combinations of two numbers dense again, from 0 on."""

    def __init__(self, codes: Codes) -> None:
        self._known = pa.array(np.unique(codes[codes >= 0]))

    def of(self, codes: Codes) -> Codes:
        return _numbers(pc.index_in(pa.array(codes), value_set=self._known))


def _numbers(indices: pa.Array) -> Codes:
    numbers: Codes = indices.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


class _Groups:
    """The rows of the source, grouped by the number of their key."""

    def __init__(self, codes: Codes) -> None:
        keyed = np.flatnonzero(codes >= 0)
        order = keyed[np.argsort(codes[keyed], kind="stable")]
        self._rows = order
        size = int(codes.max()) + 1 if len(codes) else 0
        self._counts = np.bincount(codes[keyed], minlength=max(size, 0)) if len(keyed) else np.zeros(0, np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._is_single = bool((self._counts <= 1).all())

    @property
    def some_twice(self) -> list[int]:
        again = np.flatnonzero(self._counts > 1)[: SHOWN_KEYS + 1]
        return [int(row) for row in self._rows[self._starts[again]]]

    def find(self, table_rows: Codes, key_codes: Codes) -> tuple[Codes, Codes]:
        """Return pairs of table rows and source rows, given table rows and the numbers of their keys."""
        # Numbers beyond the groups belong to values without a source row.
        is_present = key_codes < len(self._counts)
        if not is_present.all():
            table_rows, key_codes = table_rows[is_present], key_codes[is_present]
        counts = self._counts[key_codes]
        if self._is_single:
            has_row = counts > 0
            return table_rows[has_row], self._rows[self._starts[key_codes[has_row]]]
        table = np.repeat(table_rows, counts)
        first = np.repeat(self._starts[key_codes], counts)
        within = np.arange(len(table)) - np.repeat(np.cumsum(counts) - counts, counts)
        return table, self._rows[first + within]
