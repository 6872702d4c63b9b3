"""Which rows of a source have the keys of rows of a table: the join of a merge, the source being the side that is kept.

Each key column is written as numbers, its values in the source being 0, 1, 2 and so on, by Arrow's hash tables; several
columns become one number, which is made dense again after each of them, so that no two keys share one. Whole numbers
that lie close together need no hashing: they are array indexes. Rows of the table come by, many at a time, and are
let go of again; memory is that of the source's keys.

NaN is a key like any other, and both zeros are one. Null meets null where the comparison is `<=>`, else nothing.
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
"""So many slots, or four for each key, an array of positions may have."""


class KeyIndex:
    """The keys of a source: made once, asked many times."""

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
        """Rows of the source whose key others have too, one for each such key; one more than `SHOWN_KEYS` at most."""
        return self._groups.some_twice

    @property
    def needs_no_hashing(self) -> bool:
        """Whether rows of the table are found as quickly few at a time as many."""
        return len(self._columns) == 1 and self._columns[0].has_places

    def find(self, keys: Sequence[pa.Array], count: int) -> tuple[Codes, Codes]:
        """Return which rows of a table meet which of the source: pairs of positions, in the order of the table's."""
        if len(keys) == 1:
            return self._groups.find(*self._columns[0].find_some(plain_keys(keys[0])))
        codes = np.zeros(count, np.int64)
        for index, (column, values) in enumerate(zip(self._columns, keys, strict=True)):
            found = column.find(plain_keys(values))
            codes = found if index == 0 else _combined(codes, found, column.size)
            if index:
                codes = self._dense[index - 1].of(codes)
        return self._groups.find(*_known_codes(codes))


def plain_keys(values: pa.Array) -> pa.Array:
    """Return keys so that equal ones are equal bytes."""
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
    """Return which rows have a number, and the numbers."""
    found = np.flatnonzero(codes >= 0)
    return found, codes[found]


class _Column:
    """The values of one key column in the source, each with its number.

    An array of positions has the number plus one where a value is the source's: it begins as zeros, of which the
    system makes no page before one is written; its last slot is for values that lie outside.
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
        known = np.unique(values.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)) - low
        self._places[known] = np.arange(1, len(known) + 1, dtype=np.int32)
        self.size = len(known) + 1  # null has the last

    @property
    def has_places(self) -> bool:
        """Whether values are found by their positions."""
        return self._places is not None

    def find(self, values: pa.Array) -> Codes:
        """Return the number of each value, -1 for one that the source does not have."""
        if self._places is None:
            # Where null meets nothing, it is not among what is known.
            return _numbers(pc.index_in(values, value_set=self._known))
        return self._numbers_at(values).astype(np.int64) - 1

    def find_some(self, values: pa.Array) -> tuple[Codes, Codes]:
        """Return which values the source has, and their numbers."""
        if self._places is None:
            return _known_codes(self.find(values))
        numbers = self._numbers_at(values)
        found = np.flatnonzero(numbers)
        return found, numbers[found].astype(np.int64) - 1

    def _numbers_at(self, values: pa.Array) -> npt.NDArray[np.int32]:
        """Return the number of each value plus one, 0 for one that the source does not have."""
        assert self._places is not None
        missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        plain = values.fill_null(self._low) if values.null_count else values
        own = plain.to_numpy(zero_copy_only=False)
        indexes = own - np.int64(self._low) if own.dtype == np.int64 else own.astype(np.int64) - self._low
        # As unsigned numbers, those below are far above.
        unsigned = indexes.view(np.uint64)
        np.minimum(unsigned, np.uint64(len(self._places) - 1), out=unsigned)
        found: npt.NDArray[np.int32] = self._places.take(indexes, mode="clip")
        if missing is not None:
            found[missing] = self.size if self._is_null_safe else 0
        return found


class _Dense:
    """Numbers that were put together of two, as numbers from 0 on again."""

    def __init__(self, codes: Codes) -> None:
        self._known = pa.array(np.unique(codes[codes >= 0]))

    def of(self, codes: Codes) -> Codes:
        return _numbers(pc.index_in(pa.array(codes), value_set=self._known))


def _numbers(indices: pa.Array) -> Codes:
    found: Codes = indices.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


class _Groups:
    """The rows of the source by the number of their key."""

    def __init__(self, codes: Codes) -> None:
        known = np.flatnonzero(codes >= 0)
        order = known[np.argsort(codes[known], kind="stable")]
        self._rows = order
        size = int(codes.max()) + 1 if len(codes) else 0
        self._counts = np.bincount(codes[known], minlength=max(size, 0)) if len(known) else np.zeros(0, np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)])
        self._is_single = bool((self._counts <= 1).all())

    @property
    def some_twice(self) -> list[int]:
        again = np.flatnonzero(self._counts > 1)[: SHOWN_KEYS + 1]
        return [int(row) for row in self._rows[self._starts[again]]]

    def find(self, found: Codes, chosen: Codes) -> tuple[Codes, Codes]:
        """Return pairs of rows of the table and of the source, of rows of the table with the numbers of their keys."""
        # Numbers that no row of the source has are known to the columns and to no group.
        is_there = chosen < len(self._counts)
        if not is_there.all():
            found, chosen = found[is_there], chosen[is_there]
        counts = self._counts[chosen]
        if self._is_single:
            has_row = counts > 0
            return found[has_row], self._rows[self._starts[chosen[has_row]]]
        table = np.repeat(found, counts)
        first = np.repeat(self._starts[chosen], counts)
        within = np.arange(len(table)) - np.repeat(np.cumsum(counts) - counts, counts)
        return table, self._rows[first + within]
