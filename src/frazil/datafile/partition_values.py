"""Group rows by partition. Specification: "Partitioning".

Part of the write path. Transforms run on whole columns (`expr/columns/transforms.py`), the results become small codes,
and one stable sort orders rows by code, so that there is no loop over rows.

Two rows are in one partition if their values are the same: null is a value distinct from the empty string, all NaNs are
one value, and 0.0 and -0.0 are two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.partition_arrow import values_of
from frazil.errors import InvalidRequestError
from frazil.expr.columns.transforms import transform_column
from frazil.spec.partitioning import PartitionSpec, check_partition_spec, check_writable
from frazil.spec.schema import Schema
from frazil.spec.types import Type

Codes: TypeAlias = "npt.NDArray[np.int64]"

_MAX_COUNTED_CODES = 1 << 22
"""The number of combinations above which the occurring ones are found by sorting instead of counting."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Rows by partition; `order` sorts rows by partition, or is None if they are already sorted.

    Partition `n` has the rows from `starts[n]` to `starts[n + 1]` of that order, and the values `partitions[n]`.
    """

    order: npt.NDArray[np.int64] | None
    starts: list[int]
    partitions: list[tuple[Any, ...]]


class Partitioner:
    """Groups rows of one schema by a partition spec.

    `schema` is that of the rows, with columns in its order; a source that it lacks is always null. With `values`, all
    rows are in that partition.
    """

    def __init__(
        self,
        schema: Schema,
        spec: PartitionSpec,
        table_schema: Schema | None = None,
        *,
        values: tuple[Any, ...] | None = None,
    ) -> None:
        check_writable(spec)
        self._constant = (None,) * len(spec.fields) if values is None and spec.is_unpartitioned else values
        if values is not None:
            return
        whole = schema if table_schema is None else table_schema
        check_partition_spec(whole, spec)
        self._fields = [(field.transform, find_path(schema, field.source_id)) for field in spec.fields]
        self._types: list[tuple[Type, Type]] = [
            (field.source_type(whole), field.result_type(whole)) for field in spec.fields
        ]

    @property
    def is_partitioned(self) -> bool:
        """Whether rows may be in different partitions."""
        return self._constant is None

    def partition_columns(self, rows: pa.Table | pa.RecordBatch) -> list[pa.Array | None]:
        """Return the partition values of rows, one column per field of the spec, or None for all nulls."""
        return [
            None if transform.is_void or path is None else transform_column(transform, column_at(rows, path), source)
            for (transform, path), (source, _) in zip(self._fields, self._types, strict=True)
        ]

    def group(self, rows: pa.Table | pa.RecordBatch) -> RowGroups:
        """Group one or more rows by partition."""
        if self._constant is not None:
            return RowGroups(None, [0, rows.num_rows], [self._constant])
        columns = self.partition_columns(rows)
        codes = _combined_codes([column for column in columns if column is not None], rows.num_rows)
        if codes is None:
            return RowGroups(None, [0, rows.num_rows], [self._values(columns, np.zeros(1, np.int64))[0]])
        order: npt.NDArray[np.int64] | None = None
        if np.any(codes[1:] < codes[:-1]):
            order = np.argsort(_narrow(codes), kind="stable")
            codes = codes[order]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(codes)) + 1))
        first_rows = starts if order is None else order[starts]
        return RowGroups(order, [*starts.tolist(), rows.num_rows], self._values(columns, first_rows))

    def _values(self, columns: Sequence[pa.Array | None], rows: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
        taken = pa.array(rows)
        values = [
            [None] * len(rows) if column is None else values_of(_storage(column).take(taken), result)
            for column, (_, result) in zip(columns, self._types, strict=True)
        ]
        return list(zip(*values, strict=True)) if values else [()] * len(rows)


def find_path(schema: Schema, field_id: int) -> tuple[int, ...] | None:
    """Return the path to a field through columns and structs, by position, or None if the schema lacks the field."""
    target = schema.find_field(field_id)
    if target is None:
        return None
    steps = [*reversed(schema.ancestors_of(field_id)), target]
    fields = schema.fields
    path = []
    for step in steps:
        path.append(next(index for index, field in enumerate(fields) if field.field_id == step.field_id))
        fields = getattr(step.field_type, "fields", ())
    return tuple(path)


def column_at(rows: pa.Table | pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    """Return the values at a path as one array; they are null if an enclosing struct is."""
    column = rows.column(path[0])
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            raise InvalidRequestError("Cannot group the rows: a column has more than 2 GiB; pass smaller batches")
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


def _combined_codes(columns: list[pa.Array], rows: int) -> Codes | None:
    """Return a code per row, equal for rows with equal values, or None if all rows are equal."""
    codes: Codes | None = None
    count = 1
    for column in columns:
        encoded = pc.dictionary_encode(_groupable(column), null_encoding="encode")
        size = len(encoded.dictionary)
        if size <= 1:
            continue
        column_codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes is None:
            codes, count = column_codes, size
            continue
        if count * size > _MAX_COUNTED_CODES:
            codes, count = _renumber(codes)
        codes = codes * size + column_codes
        count *= size
    if codes is None or rows == 0:
        return None
    return codes


def _renumber(codes: Codes) -> tuple[Codes, int]:
    used, numbers = np.unique(codes, return_inverse=True)
    return numbers.astype(np.int64), len(used)


def _groupable(column: pa.Array) -> pa.Array:
    """Return values in a form whose equality is that of partitions."""
    array = _storage(column)
    if not pa.types.is_floating(array.type):
        return array
    # All NaNs become equal; as integers, the two zeros differ.
    quiet = pc.if_else(pc.is_nan(array), pa.scalar(math.nan, array.type), array)
    return quiet.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def _narrow(codes: Codes) -> npt.NDArray[Any]:
    """Return codes in the smallest type that holds them: numpy sorts 16 bits in linear time."""
    largest = int(codes.max())
    for dtype in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(dtype).max:
            return codes.astype(dtype)
    return codes
