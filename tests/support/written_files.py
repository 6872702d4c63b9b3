"""What tests of written files share: targets, reading back, metrics the slow way.

The oracle of metrics is plain Python over rows of values, with no code of the writer in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from frazil.codec.single_value import decode_bound
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.datafile.write_target import WriteTarget
from frazil.spec.data_file import DataFile
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.sorting import build_sort_order
from frazil.spec.types import (
    BinaryType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    UnknownType,
    VariantType,
)
from frazil.spec.values import sort_key_function
from frazil.storage.base import Storage
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import Rows, rows_to_table, table_to_rows

LOCATION = "memory://warehouse/db/table"


def ids(prefix: str = "id") -> Callable[[], str]:
    """Return a source of ids that is the same in every run."""
    numbers = count()
    return lambda: f"{prefix}-{next(numbers)}"


def settings(keywords: Mapping[str, str]) -> dict[str, str]:
    """Return properties given as keywords, with `__` for dots and `_` for dashes."""
    return {key.replace("__", ".").replace("_", "-"): value for key, value in keywords.items()}


def target(
    schema: Schema,
    *,
    partition_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    storage: Storage | None = None,
    location: str = LOCATION,
    format_version: int = 3,
    properties: Mapping[str, str] | None = None,
    **more: str,
) -> WriteTarget:
    """Return a place to write files of a schema to; properties may be keywords with `__` for dots, `_` for dashes."""
    chosen = {**settings(more), **(properties or {})}
    return WriteTarget(
        schema,
        location,
        MemoryStorage() if storage is None else storage,
        build_partition_spec(schema, partition_by),
        build_sort_order(schema, sort_by),
        {"write.parquet.compression-codec": "zstd", **chosen},
        format_version,
    )


def read_file(storage: Storage, file: DataFile, schema: Schema) -> pa.Table:
    """Return the rows of one file, read by this package's own reader."""
    batches = list(read_columns(storage, file, schema, ReadRules(schema)))
    return pa.Table.from_batches(batches) if batches else rows_to_table([], schema)


def read_rows(storage: Storage, files: Sequence[DataFile], schema: Schema) -> Rows:
    """Return the rows of files as values, file by file."""
    return [row for file in files for row in table_to_rows(read_file(storage, file, schema), schema)]


def comparable(value: Any) -> Any:
    """Return a value that equals itself: NaNs and zeros by their bits, dicts and lists in a form that can be sorted."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else math.copysign(1, value), None if math.isnan(value) else value)
    if isinstance(value, Mapping):
        return ("dict", tuple(sorted((repr(comparable(key)), repr(comparable(one))) for key, one in value.items())))
    if isinstance(value, list | tuple):
        return ("list", tuple(comparable(one) for one in value))
    return value


def same_rows(left: Rows, right: Rows) -> bool:
    """Return whether two lists hold the same rows, in any order."""
    return sorted(repr(comparable(row)) for row in left) == sorted(repr(comparable(row)) for row in right)


# --- metrics the slow way


def measured_fields(
    fields: Sequence[NestedField], above: tuple[str, ...] = ()
) -> Iterator[tuple[NestedField, tuple[str, ...]]]:
    """Yield the fields that get metrics, with their way through structs."""
    for part in fields:
        kind = part.field_type
        if isinstance(kind, StructType):
            yield from measured_fields(kind.fields, (*above, part.name))
        elif not isinstance(kind, ListType | MapType | UnknownType):
            yield part, (*above, part.name)


def value_at(row: Any, way: tuple[str, ...]) -> Any:
    for name in way:
        row = None if row is None else row.get(name)
    return row


def check_metrics(file: DataFile, rows: Rows, schema: Schema, modes: Mapping[int, MetricsMode]) -> None:
    """Compare every count and bound of a file with what its rows say."""
    assert file.record_count == len(rows)
    seen: set[int] = set()
    for part, way in measured_fields(schema.fields):
        mode, kind, at = modes[part.field_id], part.field_type, part.field_id
        values = [value_at(row, way) for row in rows]
        if not mode.has_counts:
            for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
                assert at not in (getattr(file, name) or {})
            continue
        seen.add(at)
        present = [value for value in values if value is not None]
        nans = [value for value in present if isinstance(value, float) and math.isnan(value)]
        assert (file.value_counts or {})[at] == len(values)
        assert (file.null_value_counts or {})[at] == len(values) - len(present)
        if isinstance(kind, FloatType | DoubleType):
            assert (file.nan_value_counts or {})[at] == len(nans)
        else:
            assert at not in (file.nan_value_counts or {})
        if not isinstance(kind, VariantType | GeometryType | GeographyType):
            numbers = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
            check_bounds(file, at, numbers if mode.has_bounds else [], kind, mode)
    assert set(file.value_counts or {}) == seen


def check_bounds(file: DataFile, field_id: int, values: list[Any], kind: Type, mode: MetricsMode) -> None:
    """Compare the bounds of a column with its values: sound, and as tight as the mode allows."""
    lower, upper = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if not values:
        assert lower is None
        assert upper is None
        return
    key = sort_key_function(kind)
    smallest, largest = min(values, key=key), max(values, key=key)
    assert lower is not None
    found_low = decode_bound(lower, kind)
    assert key(found_low) <= key(smallest)
    is_cut = isinstance(kind, StringType | BinaryType) and mode.length is not None
    if is_cut:
        assert mode.length is not None
        assert found_low == smallest[: mode.length]
    elif isinstance(kind, FloatType | DoubleType):
        assert found_low == smallest
        assert smallest != 0 or math.copysign(1, found_low) == -1
    else:
        assert found_low == smallest
    if upper is None:
        # Only where no shorter value is above the largest.
        assert is_cut
        last = "\U0010ffff" if isinstance(kind, StringType) else b"\xff"
        assert largest[: mode.length] == last * (mode.length or 0)
        return
    found_high = decode_bound(upper, kind)
    assert key(found_high) >= key(largest)
    if is_cut and len(largest) > (mode.length or 0):
        assert len(found_high) <= (mode.length or 0)
        # No value that is at most as long lies between the largest and the bound.
        assert found_high[:-1] == largest[: len(found_high) - 1]
        step = (
            ord(found_high[-1]) - ord(largest[len(found_high) - 1])
            if isinstance(found_high, str)
            else found_high[-1] - largest[len(found_high) - 1]
        )
        assert step == 1 or (step == 0x801 and found_high[-1] == "\ue000")
    elif isinstance(kind, FloatType | DoubleType):
        assert found_high == largest
        assert largest != 0 or math.copysign(1, found_high) == 1
    else:
        assert found_high == largest
