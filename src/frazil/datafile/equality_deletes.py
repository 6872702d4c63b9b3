"""Rows deleted by their values. Specification: "Equality Delete Files".

A row is deleted if some delete row equals it in all delete columns, with null equal to null. The planner has decided
which delete files apply. Here, files that compare the same columns are merged into one set of keys, in which many rows
are looked up at once.

With one column that is a lookup. With several, each column's values are replaced by their number among the deletes, and
numbers are combined pairwise; a row drops out at the first column whose value no delete has. There is no loop over
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.errors import InvalidDataFileError, InvalidRequestError
from frazil.expr.bind import reference_to
from frazil.expr.columns.comparable import to_comparable
from frazil.expr.columns.masks import term_column
from frazil.scan.tasks import DeleteTask
from frazil.spec.delete_schemas import EQUALITY_HEADING, check_equality_field, equality_read_schema
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType
from frazil.storage.base import Storage

Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]


class _Lookup:
    """The numbered distinct values of one column, looked up with Arrow's hash tables."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.count = len(values)
        self.nbytes = int(values.nbytes)

    def numbers(self, column: pa.Array) -> _Numbers:
        """Return the number of each value, or -1 if it has none; null is a value."""
        indexes = pc.fill_null(pc.index_in(column, value_set=self._values), -1)
        numbers: _Numbers = indexes.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers

    def mask(self, column: pa.Array) -> Mask:
        """Return which values have a number."""
        is_known: Mask = pc.is_in(column, value_set=self._values).to_numpy(zero_copy_only=False).astype(bool)
        return is_known


class _IntegerLookup(_Lookup):
    """A lookup for integers, the most common keys: a bit table excludes most rows before the search."""

    _FACTOR = np.uint64(0x9E3779B97F4A7C15)

    def __init__(self, values: pa.Array) -> None:
        super().__init__(values)
        self._sorted = np.sort(values.drop_null().to_numpy().astype(np.int64))
        self._null_number = len(self._sorted) if values.null_count else -1
        # About sixteen slots per value, so that few other values share one.
        self._shift = np.uint64(64 - min(24, max(4, (16 * len(self._sorted)).bit_length())))
        self._table = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._table[self._slots(self._sorted)] = True
        self.nbytes = int(self._sorted.nbytes + self._table.nbytes)

    def _slots(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return (values.view(np.uint64) * self._FACTOR) >> self._shift

    def numbers(self, column: pa.Array) -> _Numbers:
        """Return the number of each value, or -1 if it has none; null is a value."""
        plain = pc.fill_null(column, 0) if column.null_count else column
        values = plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        numbers = np.full(len(values), -1, dtype=np.int64)
        if len(self._sorted):
            rows = np.flatnonzero(self._table[self._slots(values)])
            candidates = values[rows]
            positions = np.minimum(np.searchsorted(self._sorted, candidates), len(self._sorted) - 1)
            is_found = self._sorted[positions] == candidates
            numbers[rows[is_found]] = positions[is_found]
        if column.null_count:
            numbers[column.is_null().to_numpy(zero_copy_only=False)] = self._null_number
        return numbers

    def mask(self, column: pa.Array) -> Mask:
        """Return which values have a number."""
        return self.numbers(column) >= 0


class KeySet:
    """Keys of one or several columns, in comparable form."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        distinct = [pc.unique(column) for column in columns]
        # The column with the most values comes first, since it leaves the fewest rows.
        self._order = sorted(range(len(columns)), key=lambda index: -len(distinct[index]))
        self._lookups = [_lookup_of(distinct[index]) for index in self._order]
        self._joined: list[_Numbers] = []
        if len(columns) == 1:
            return
        state = self._lookups[0].numbers(columns[self._order[0]])
        for position, lookup in zip(self._order[1:], self._lookups[1:], strict=True):
            keys, state = np.unique(state * lookup.count + lookup.numbers(columns[position]), return_inverse=True)
            self._joined.append(keys)

    @property
    def nbytes(self) -> int:
        """The size of the keys."""
        return sum(lookup.nbytes for lookup in self._lookups) + sum(int(column.nbytes) for column in self._joined)

    def mask(self, columns: Sequence[pa.Array]) -> Mask:
        """Return which rows have one of the keys; columns are in the order of the constructor."""
        first = columns[self._order[0]]
        if not self._joined:
            return self._lookups[0].mask(first)
        state = self._lookups[0].numbers(first)
        rows = np.flatnonzero(state >= 0)
        state = state[rows]
        for step, keys in enumerate(self._joined, 1):
            if len(rows) == 0:
                break
            lookup = self._lookups[step]
            numbers = lookup.numbers(columns[self._order[step]].take(pa.array(rows)))
            joined = state * lookup.count + numbers
            positions = np.minimum(np.searchsorted(keys, joined), len(keys) - 1)
            is_found = (numbers >= 0) & (keys[positions] == joined)
            rows, state = rows[is_found], positions[is_found]
        mask = np.zeros(len(first), dtype=np.bool_)
        mask[rows] = True
        return mask


def _lookup_of(values: pa.Array) -> _Lookup:
    return _IntegerLookup(values) if pa.types.is_integer(values.type) else _Lookup(values)


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """The deletes of one set of columns that apply to a data file; `schema` has those columns for a reader."""

    schema: Schema
    field_ids: tuple[int, ...]
    keys: KeySet

    def mask(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows of a batch of `schema` are deleted."""
        return self.keys.mask(key_columns(rows, self.schema, self.field_ids))


def key_columns(rows: pa.RecordBatch, schema: Schema, field_ids: Sequence[int]) -> list[pa.Array]:
    """Return the columns to compare; they are null below a null struct."""
    columns = []
    for field_id in field_ids:
        reference = reference_to(schema, field_id)
        columns.append(to_comparable(term_column(reference, rows), reference.result_type))
    return columns


def load_equality_deletes(
    storage: Storage, tasks: Sequence[DeleteTask], schemas: Sequence[Schema], rules: ReadRules, cache: DeleteCache
) -> list[EqualityDeletes]:
    """Read equality delete files, grouped by columns; `schemas` are the table's, newest first."""
    groups: dict[tuple[int, ...], list[DeleteTask]] = {}
    for task in tasks:
        groups.setdefault(tuple(sorted(set(task.data_file.equality_ids or ()))), []).append(task)
    loaded = []
    for field_ids, members in groups.items():
        schema = equality_columns(schemas, field_ids, members[0].data_file.file_path)
        paths = tuple(sorted(task.data_file.file_path for task in members))

        def make(
            schema: Schema = schema, field_ids: tuple[int, ...] = field_ids, members: list[DeleteTask] = members
        ) -> tuple[KeySet | None, int]:
            parts = [_read(storage, task, schema, field_ids, rules, cache) for task in members]
            columns = [
                _joined([columns_of_part[index] for columns_of_part in parts]) for index in range(len(field_ids))
            ]
            if len(columns[0]) == 0:
                return None, 0
            keys = KeySet(columns)
            return keys, keys.nbytes

        keys = cache.load(("keys", field_ids, paths, schema.schema_id), make)
        if keys is not None:
            loaded.append(EqualityDeletes(schema, field_ids, keys))
    return loaded


def equality_columns(schemas: Sequence[Schema], field_ids: tuple[int, ...], path: str) -> Schema:
    """Return the columns to compare, all optional, since they are null in data files older than the column."""
    try:
        schema = equality_read_schema(schemas, field_ids)
        for field_id in field_ids:
            check_equality_field(schema, field_id)
    except InvalidRequestError as error:
        raise InvalidDataFileError(error.message, path=path, heading=EQUALITY_HEADING) from error
    return Schema(tuple(_as_optional(field) for field in schema.fields), schema.schema_id)


def _as_optional(nested_field: NestedField) -> NestedField:
    data_type = nested_field.field_type
    if isinstance(data_type, StructType):
        data_type = StructType(tuple(_as_optional(field) for field in data_type.fields))
    return replace(nested_field, field_type=data_type, required=False)


def _read(
    storage: Storage,
    task: DeleteTask,
    schema: Schema,
    field_ids: tuple[int, ...],
    rules: ReadRules,
    cache: DeleteCache,
) -> list[pa.Array]:
    """Return the key columns of one delete file, cached for other groups with the same file."""

    def make() -> tuple[list[pa.Array], int]:
        batches: list[list[pa.Array]] = [[] for _ in field_ids]
        for batch in read_columns(storage, task.data_file, schema, rules):
            for index, column in enumerate(key_columns(batch, schema, field_ids)):
                batches[index].append(column)
        columns = [_joined(parts) for parts in batches]
        return columns, sum(int(column.nbytes) for column in columns)

    return cache.load(("equality", task.data_file.file_path, schema.schema_id), make)


def _joined(arrays: list[Any]) -> pa.Array:
    filled = [array for array in arrays if len(array) > 0]
    return pa.concat_arrays(filled) if filled else pa.nulls(0)
