"""Describe a Parquet file of another writer for a commit, with counts and bounds from its footer.

Spark's writer does not report metrics, and files added to a table may come from any writer. Only the footer of such a
file is read. Metrics that the footer lacks stay unset: NaN counts always, and the bounds of a column unless all row
groups have them. Specification: "Field-level Metrics and Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.codec.arrow_schema import FIELD_ID_KEY
from frazil.codec.single_value import encode_bound
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.datafile.file_schema import FileField, describe_arrow, is_list, walk, with_ids
from frazil.datafile.open_file import open_file, reading
from frazil.datafile.parquet_chunks import Footer, read_footer
from frazil.datafile.row_groups import bounds
from frazil.errors import InvalidDataFileError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.name_mapping import NameMapping
from frazil.spec.schema import Schema
from frazil.spec.types import DoubleType, FloatType, NestedField, VariantType
from frazil.storage.base import Storage

HEADING = "Parquet"


@dataclass(frozen=True, slots=True)
class DescribeRules:
    """The settings for all files of one write: the table's schema, metrics modes, and names for files without ids."""

    schema: Schema
    modes: Mapping[int, MetricsMode]
    name_mapping: NameMapping | None = None
    needs_ids: bool = True
    history: tuple[Schema, ...] = ()


@dataclass(frozen=True, slots=True)
class ParquetDescription:
    """A file's description from its footer, and the notes of its writer."""

    file: DataFile
    notes: Mapping[str, str]


def describe_parquet(
    storage: Storage,
    path: str,
    rules: DescribeRules,
    *,
    size_bytes: int,
    spec_id: int = 0,
    partition: tuple[Any, ...] = (),
    sort_order_id: int | None = None,
) -> ParquetDescription:
    """Describe a file by its footer; with `needs_ids`, refuse a file whose fields have no ids."""
    file = open_file(storage, path, size=size_bytes)
    try:
        with reading("Parquet file", path, HEADING, file):
            parquet = pq.ParquetFile(file.handle, arrow_extensions_enabled=False)
            metadata = parquet.metadata
            fields = describe_arrow(parquet.schema_arrow, FIELD_ID_KEY)
            if rules.needs_ids:
                _check_ids(fields, path)
            else:
                fields = with_ids(
                    fields, rules.schema, rules.name_mapping, by_position=False, history=rules.history
                ).fields
            leaves = {field.start: field for field in _measured(fields) if field.field_id is not None}
            footer = read_footer(file.handle, leaves)
            sizes, offsets = _layout(metadata, fields)
    finally:
        file.close()
    rows = metadata.num_rows
    metrics = _Metrics()
    for leaf, field in leaves.items():
        mode = rules.modes.get(field.field_id) if field.field_id is not None else None
        table_field = rules.schema.find_field(field.field_id) if field.field_id is not None else None
        if mode is not None and table_field is not None and mode.has_counts:
            _measure(metrics, footer, leaf, field, table_field, mode, rows)
    described = DataFile(
        path,
        FileFormat.PARQUET,
        rows,
        size_bytes,
        spec_id=spec_id,
        partition=partition,
        column_sizes=sizes,
        value_counts=metrics.values,
        null_value_counts=metrics.nulls,
        lower_bounds=metrics.lower,
        upper_bounds=metrics.upper,
        split_offsets=offsets,
        sort_order_id=sort_order_id,
    )
    notes = {
        key.decode(errors="replace"): text.decode(errors="replace") for key, text in (metadata.metadata or {}).items()
    }
    return ParquetDescription(described, notes)


class _Metrics:
    """Metrics by field id."""

    __slots__ = ("lower", "nulls", "upper", "values")

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.nulls: dict[int, int] = {}
        self.lower: dict[int, bytes] = {}
        self.upper: dict[int, bytes] = {}


def _check_ids(fields: Sequence[FileField], path: str) -> None:
    for field in _identified(fields):
        if field.field_id is None:
            raise InvalidDataFileError(
                f"Cannot use the file: its column {field.name!r} has no field id", path=path, heading=HEADING
            )


def _identified(fields: Sequence[FileField]) -> list[FileField]:
    """Return the fields that must have an id; the parts of a variant have none."""
    identified = []
    stack = list(fields)
    while stack:
        file_field = stack.pop()
        identified.append(file_field)
        is_variant = {child.name for child in file_field.parts} == {
            "metadata",
            "value",
        } and file_field.field_id is not None
        if not is_variant or any(field.field_id is not None for field in file_field.parts):
            stack += file_field.parts
    return identified


def _measured(fields: Sequence[FileField]) -> list[FileField]:
    """Return the columns whose values belong to one row each, without those in lists and maps."""
    measured = []
    stack = list(reversed(fields))
    while stack:
        file_field = stack.pop()
        if not file_field.parts:
            measured.append(file_field)
        elif not is_list(file_field.arrow) and not pa.types.is_map(file_field.arrow):
            stack += reversed(file_field.parts)
    return measured


def _layout(metadata: Any, fields: Sequence[FileField]) -> tuple[dict[int, int], tuple[int, ...]]:
    sizes: dict[int, int] = {}
    offsets: list[int] = []
    leaves = [file_field for file_field in walk(fields) if not file_field.parts]
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        for leaf in leaves:
            column = group.column(leaf.start)
            if leaf.start == 0:
                dictionary, data = column.dictionary_page_offset, column.data_page_offset
                offsets.append(data if dictionary is None or dictionary == 0 else min(data, dictionary))
            if leaf.field_id is not None:
                sizes[leaf.field_id] = sizes.get(leaf.field_id, 0) + column.total_compressed_size
    return sizes, tuple(offsets)


def _measure(
    metrics: _Metrics,
    footer: Footer,
    leaf: int,
    file_field: FileField,
    table_field: NestedField,
    mode: MetricsMode,
    rows: int,
) -> None:
    chunks = [group[leaf] for group in footer.groups if leaf in group]
    field_type, field_id = table_field.field_type, table_field.field_id
    if len(chunks) != len(footer.groups) or isinstance(field_type, VariantType):
        return
    metrics.values[field_id] = rows
    nulls = [chunk.null_count for chunk in chunks]
    if all(null is not None for null in nulls):
        metrics.nulls[field_id] = sum(null for null in nulls if null is not None)
    if not mode.has_bounds:
        return
    low = high = None
    for chunk in chunks:
        if chunk.null_count is not None and chunk.num_values is not None and chunk.null_count >= chunk.num_values:
            continue
        lower, upper = bounds(file_field.arrow, field_type, chunk, is_ordered=leaf in footer.ordered)
        if lower is None or upper is None:
            # Without bounds of this row group, the file has none. NaN has this effect on floating-point columns.
            return
        low = lower if low is None or lower < low else low
        high = upper if high is None or upper > high else high
    if low is None or high is None:
        return
    if isinstance(field_type, FloatType | DoubleType):
        low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    if mode.length is not None:
        low, high = (
            truncate_lower_bound(low, field_type, mode.length),
            truncate_upper_bound(high, field_type, mode.length),
        )
    if low is not None:
        metrics.lower[field_id] = encode_bound(low, field_type)
    if high is not None:
        metrics.upper[field_id] = encode_bound(high, field_type)
