"""Prune row groups and pages of a Parquet file. "Scan Planning"; Parquet's column statistics.

Statistics prove only what they cover: if they are missing, NaN, of an unsigned or otherwise ordered column, or
unreadable, they prove nothing and the row group is read. A column that the file does not store has one value in all
rows, which is a proof too.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal
from uuid import UUID

import pyarrow as pa

from frazil.datafile.file_schema import FileField
from frazil.datafile.parquet_chunks import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    Chunk,
    Footer,
)
from frazil.datafile.parquet_pages import ColumnPages, add_span, rows_of
from frazil.datafile.project import find_field, needed_leaves
from frazil.datafile.raw_batch import RowSelection
from frazil.datafile.read_parquet import ParquetReader
from frazil.expr.column_stats import UNKNOWN_STATS, ColumnStats, has_null, may_match, transform_bounds
from frazil.expr.predicates import Always, And, Bound, BoundTerm, BoundTransform, Or, Predicate
from frazil.spec import types as ft
from frazil.spec.column_projection import ResolvedColumn
from frazil.spec.decimals import decimal_of

_TIMES = (ft.TimeType, ft.TimestampType, ft.TimestamptzType, ft.TimestampNsType, ft.TimestamptzNsType)
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_MICROS_PER_DAY = 86_400_000_000
_MAX_TESTED_PAGES = 2000
"""The pages above which testing each costs more than it saves."""


def row_group_test(
    predicate: Predicate, columns: Sequence[ResolvedColumn], reader: ParquetReader
) -> Callable[[int], RowSelection] | None:
    """Return the test whether a row group, by number, can hold a match, or where; None if all can.

    `columns` are those of the predicate.
    """
    if isinstance(predicate, Always):
        return None if predicate.value else lambda _: False
    fields = reader.schema.fields
    leaves = needed_leaves(columns, fields)
    footer = reader.footer(leaves)

    def decide(chunks: Mapping[int, Chunk], rows: int | None) -> bool:
        return _may_match_any_row(predicate, lambda term: _stats_of(term, columns, fields, chunks, footer, rows))

    def test(group: int) -> RowSelection:
        chunks = footer.groups[group] if group < len(footer.groups) else {}
        rows = reader.rows_of(group)
        if not decide(chunks, rows):
            return False
        pages = reader.pages(group, leaves)
        return True if pages is None else _spans(pages, reader, rows, lambda some: decide(some, None))

    return test


def _spans(
    pages: Mapping[int, ColumnPages], reader: ParquetReader, rows: int, decide: Callable[[Mapping[int, Chunk]], bool]
) -> RowSelection:
    """Return the rows of pages that can hold a match, or True if they are most of the row group."""
    statistics = {
        leaf: chunks for leaf, page in pages.items() if (chunks := page.page_chunks(reader.read_at)) is not None
    }
    cuts = sorted({index for leaf in statistics for index in pages[leaf].firsts})
    if len(cuts) <= 2 or len(cuts) > _MAX_TESTED_PAGES:
        return True
    spans: list[tuple[int, int]] = []
    for first, last in pairwise(cuts):
        page_chunks_at = {
            leaf: chunks[bisect_right(pages[leaf].firsts, first) - 1] for leaf, chunks in statistics.items()
        }
        if decide(page_chunks_at):
            spans = add_span(spans, first, last)
    return spans if 2 * rows_of(spans) < rows else True


def _may_match_any_row(predicate: Predicate, stats: Callable[[BoundTerm], ColumnStats]) -> bool:
    if isinstance(predicate, And):
        return all(_may_match_any_row(child, stats) for child in predicate.children)
    if isinstance(predicate, Or):
        return any(_may_match_any_row(child, stats) for child in predicate.children)
    if isinstance(predicate, Always):
        return predicate.value
    if isinstance(predicate, Bound):
        return may_match(predicate.op, predicate.literals, stats(predicate.term))
    return True


def _stats_of(
    term: BoundTerm,
    columns: Sequence[ResolvedColumn],
    fields: Sequence[FileField],
    chunks: Mapping[int, Chunk],
    footer: Footer,
    rows: int | None,
) -> ColumnStats:
    """Return the statistics of a column over a number of rows, or None for the chunk's own."""
    source = _find_source(term, columns, fields)
    if source is None:
        return UNKNOWN_STATS
    column, file_field = source
    if file_field is None:
        return _constant_stats(term, column.value)
    chunk = chunks.get(file_field.start)
    rows = rows if rows is not None or chunk is None else chunk.num_values
    return UNKNOWN_STATS if chunk is None or rows is None else _stored_stats(term, file_field, chunk, rows, footer)


def _find_source(
    term: BoundTerm, columns: Sequence[ResolvedColumn], fields: Sequence[FileField]
) -> tuple[ResolvedColumn, FileField | None] | None:
    """Return the source of a term's column: a constant, or a stored column; None if it is not that simple."""
    path = term.reference.path
    column = next((column for column in columns if column.field.name == path[0]), None)
    if column is None:
        return None
    if column.is_constant:
        return None if len(path) > 1 else (column, None)
    file_field = find_field(column, fields)
    for name in path[1:]:
        inner = next((child for child in column.parts if child.field.name == name), None)
        # Below a struct that may be null, a constant is not the value of all rows.
        if inner is None or inner.is_constant:
            return None
        column = inner
        file_field = find_field(column, file_field.parts)
    return None if file_field.parts else (column, file_field)


def _constant_stats(term: BoundTerm, value: Any) -> ColumnStats:
    is_nan = isinstance(value, float) and value != value
    bound = None if is_nan else value
    lower, upper = (bound, bound) if not isinstance(term, BoundTransform) else transform_bounds(term, bound, bound)
    return ColumnStats(
        lower,
        upper,
        has_null=value is None,
        has_nan=is_nan,
        all_null=value is None,
        all_null_or_nan=value is None or is_nan,
    )


def _stored_stats(term: BoundTerm, file_field: FileField, chunk: Chunk, rows: int, footer: Footer) -> ColumnStats:
    result_type = term.reference.result_type
    nulls = chunk.null_count
    is_all_null = None if nulls is None else nulls >= rows
    is_float = isinstance(result_type, ft.FloatType | ft.DoubleType)
    lower = upper = None
    if not is_all_null:
        lower, upper = bounds(file_field.arrow, result_type, chunk, is_ordered=file_field.start in footer.ordered)
        if is_float and (lower is None or upper is None):
            # If a writer let NaN into one bound, the other is not reliable either.
            lower = upper = None
    if isinstance(term, BoundTransform):
        lower, upper = transform_bounds(term, lower, upper)
    return ColumnStats(
        lower,
        upper,
        has_null=has_null(term, nulls),
        has_nan=None if is_float else False,
        all_null=is_all_null,
        all_null_or_nan=True if is_all_null else None if is_float else is_all_null,
    )


def bounds(arrow: pa.DataType, data_type: ft.Type, chunk: Chunk, *, is_ordered: bool) -> tuple[Any, Any]:
    """Return the bounds of a chunk as values of the table's type, with None for unusable ones."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    lower, upper = chunk.min_value, chunk.max_value
    if not is_ordered or (lower is None and upper is None):
        # The deprecated bounds compare bytes as signed, which is correct only for numbers.
        if chunk.physical_type not in (INT32, INT64, FLOAT, DOUBLE):
            return None, None
        lower, upper = chunk.old_min, chunk.old_max
    return (
        None if lower is None else _value_of(lower, chunk.physical_type, arrow, data_type),
        None if upper is None else _value_of(upper, chunk.physical_type, arrow, data_type),
    )


def _value_of(raw: bytes, physical_type: int | None, arrow: pa.DataType, data_type: ft.Type) -> Any:
    if physical_type in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY):
        return (
            _decimal(raw, arrow, data_type, "big") if isinstance(data_type, ft.DecimalType) else _bytes(raw, data_type)
        )
    if physical_type in (INT32, INT64):
        if len(raw) != (4 if physical_type == INT32 else 8):
            return None
        if isinstance(data_type, ft.DecimalType):
            return _decimal(raw, arrow, data_type, "little")
        return _integer(int.from_bytes(raw, "little", signed=True), arrow, data_type)
    if physical_type in (FLOAT, DOUBLE):
        return _floating(raw, "<f" if physical_type == FLOAT else "<d", data_type)
    if physical_type == BOOLEAN and isinstance(data_type, ft.BooleanType):
        return raw != b"\x00" if len(raw) == 1 else None
    return None


def _floating(raw: bytes, form: str, data_type: ft.Type) -> float | None:
    if not isinstance(data_type, ft.FloatType | ft.DoubleType) or len(raw) != struct.calcsize(form):
        return None
    value: float = struct.unpack(form, raw)[0]
    return value if value == value else None


def _integer(raw: int, arrow: pa.DataType, data_type: ft.Type) -> int | None:
    if isinstance(data_type, ft.IntType | ft.LongType):
        return raw if pa.types.is_signed_integer(arrow) else None
    if isinstance(data_type, ft.DateType):
        return raw if pa.types.is_date32(arrow) else None
    if not isinstance(data_type, _TIMES):
        return None
    is_nanos = isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType)
    if pa.types.is_date32(arrow):
        return raw * _MICROS_PER_DAY * (1000 if is_nanos else 1)
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow):
        unit, target = _PER_SECOND[arrow.unit], 1_000_000_000 if is_nanos else 1_000_000
        return raw * (target // unit) if unit <= target else None
    return None


def _decimal(
    raw: bytes, arrow: pa.DataType, data_type: ft.DecimalType, order: Literal["big", "little"]
) -> Decimal | None:
    if not pa.types.is_decimal(arrow) or arrow.scale != data_type.scale or len(raw) == 0:
        return None
    return decimal_of(int.from_bytes(raw, order, signed=True), data_type.scale)


def _bytes(raw: bytes, data_type: ft.Type) -> Any:
    if isinstance(data_type, ft.StringType):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            # Truncated inside a character, so its order relative to other values is unknown.
            return None
    if isinstance(data_type, ft.UuidType):
        return UUID(bytes=raw) if len(raw) == 16 else None
    return raw if isinstance(data_type, ft.BinaryType | ft.FixedType) else None
