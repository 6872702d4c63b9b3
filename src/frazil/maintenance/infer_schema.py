"""Infer the columns of existing files without a catalog, for adopting a folder as a table.

columns      those of the first file, with fresh ids; Parquet INT96 becomes a timestamp with time zone, as in Spark
partitions   names of `name=value` folders that are not columns of the file: integers, dates, or else strings
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from frazil.codec.arrow_schema import from_arrow_schema
from frazil.datafile.open_file import open_file, reading
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_avro import AvroReader
from frazil.errors import InvalidRequestError
from frazil.spec.data_file import FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, INT, LONG, STRING, NestedField, Type
from frazil.storage.base import Storage

_WHOLE: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_INT_RANGE: Final = range(-(2**31), 2**31)
_LONG_RANGE: Final = range(-(2**63), 2**63)


def infer_schema(
    storage: Storage, path: str, size: int, file_format: FileFormat, *, format_version: int
) -> tuple[NestedField, ...]:
    """Return the columns of a file with fresh ids."""
    if file_format is FileFormat.AVRO:
        with closing(AvroReader(storage, path, ReadRules(Schema(())))) as reader:
            arrow = pa.schema([(field.name, field.arrow) for field in reader.schema.fields])
        return _fields(arrow, frozenset(), format_version)
    file = open_file(storage, path, size=size)
    try:
        with reading(f"{file_format.value} file", path, "Column Projection", file):
            if file_format is FileFormat.ORC:
                arrow = orc.ORCFile(file.handle).schema
                instants: frozenset[str] = frozenset()
            else:
                parquet = pq.ParquetFile(file.handle, arrow_extensions_enabled=False)
                arrow = parquet.schema_arrow
                instants = _int96_columns(parquet)
    finally:
        file.close()
    return _fields(arrow, instants, format_version)


def _fields(arrow: pa.Schema, instants: Collection[str], format_version: int) -> tuple[NestedField, ...]:
    plain = [_plain(field, is_instant=field.name in instants, keeps_nanos=format_version >= 3) for field in arrow]
    return from_arrow_schema(pa.schema(plain), format_version=format_version, has_fresh_ids=True).fields


def with_partitions(
    fields: Sequence[NestedField], folders: Iterable[Mapping[str, str | None]]
) -> tuple[Schema, tuple[str, ...]]:
    """Return a schema with the columns that exist only in folders, and the names of all partition folders."""
    values: dict[str, set[str]] = {}
    names: list[tuple[str, ...]] = []
    for folder in folders:
        names.append(tuple(folder))
        for name, value in folder.items():
            kept = values.setdefault(name, set())
            if value is not None:
                kept.add(value)
    if len(set(names)) > 1:
        different = sorted(set(names))[:2]
        raise InvalidRequestError(
            f"Cannot infer the partitions: some files are in folders of {different[0]}, others of {different[1]}",
            hint="Pass a folder whose files are all partitioned alike.",
        )
    known = {field.name for field in fields}
    fresh = count(Schema(tuple(fields)).highest_field_id + 1)
    added = [
        NestedField(next(fresh), name, _type_of(texts), required=False)
        for name, texts in values.items()
        if name not in known
    ]
    return Schema((*fields, *added)), tuple(values)


def _type_of(texts: set[str]) -> Type:
    """Return the narrowest type of all values of a partition column."""
    if texts and all(_WHOLE.fullmatch(text) and str(int(text)) == text for text in texts):
        numbers = [int(text) for text in texts]
        if all(number in _INT_RANGE for number in numbers):
            return INT
        if all(number in _LONG_RANGE for number in numbers):
            return LONG
    if texts and all(_is_date(text) for text in texts):
        return DATE
    return STRING


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2024-01-01") and datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _int96_columns(parquet: Any) -> frozenset[str]:
    schema = parquet.schema
    columns = [schema.column(index) for index in range(len(schema))]
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def _plain(field: pa.Field, *, is_instant: bool, keeps_nanos: bool) -> pa.Field:
    """Return a field that the format supports: nullable, without ids, and with times in microseconds if required."""
    data_type = field.type
    if is_instant:
        data_type = pa.timestamp("us", "UTC")
    elif pa.types.is_timestamp(data_type) and (
        data_type.unit in ("s", "ms") or (data_type.unit == "ns" and not keeps_nanos)
    ):
        data_type = pa.timestamp("us", data_type.tz)
    return pa.field(field.name, data_type, nullable=True)
