"""Column types of the format in DuckDB, and the test whether DuckDB reads a Parquet column as exactly such a type.

    boolean BOOLEAN     date DATE                 string VARCHAR         struct STRUCT(…)
    int INTEGER         time TIME                 uuid UUID              list T[]
    long BIGINT         timestamp TIMESTAMP       fixed, binary BLOB     map MAP(K, V)
    float FLOAT         timestamptz TIMESTAMPTZ   decimal DECIMAL(P, S)
    double DOUBLE       …_ns TIMESTAMP_NS, TIMESTAMPTZ_NS

Variants, geometries and columns of unknown type are read by frazil (`None` here). So is a file that stores a column
differently from the format: without field ids, with other names inside a struct, or with times in milliseconds or of 96
bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frazil.query.engine import quoted
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

_PLAIN: Final[Mapping[Type, str]] = {
    BOOLEAN: "BOOLEAN",
    INT: "INTEGER",
    LONG: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    DATE: "DATE",
    TIME: "TIME",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMPTZ: "TIMESTAMPTZ",
    TIMESTAMP_NS: "TIMESTAMP_NS",
    TIMESTAMPTZ_NS: "TIMESTAMPTZ_NS",
    STRING: "VARCHAR",
    UUID: "UUID",
    BINARY: "BLOB",
}
_STORED: Final[Mapping[Type, frozenset[tuple[str, str]]]] = {
    BOOLEAN: frozenset({("BOOLEAN", "BOOLEAN")}),
    INT: frozenset({("INT32", "INTEGER")}),
    LONG: frozenset({("INT64", "BIGINT"), ("INT32", "INTEGER")}),
    FLOAT: frozenset({("FLOAT", "FLOAT")}),
    DOUBLE: frozenset({("DOUBLE", "DOUBLE"), ("FLOAT", "FLOAT")}),
    DATE: frozenset({("INT32", "DATE")}),
    TIME: frozenset({("INT64", "TIME")}),
    TIMESTAMP: frozenset({("INT64", "TIMESTAMP")}),
    TIMESTAMPTZ: frozenset({("INT64", "TIMESTAMP WITH TIME ZONE")}),
    TIMESTAMP_NS: frozenset({("INT64", "TIMESTAMP_NS")}),
    TIMESTAMPTZ_NS: frozenset({("INT64", "TIMESTAMPTZ_NS"), ("INT64", "TIMESTAMP_NS WITH TIME ZONE")}),
    STRING: frozenset({("BYTE_ARRAY", "VARCHAR")}),
    UUID: frozenset({("FIXED_LEN_BYTE_ARRAY", "UUID")}),
    BINARY: frozenset({("BYTE_ARRAY", "BLOB")}),
}
"""How a column may be stored: the physical type, and the type that DuckDB reports for it."""
_MICROS: Final = frozenset({TIME, TIMESTAMP, TIMESTAMPTZ})


def duckdb_type(data_type: Type) -> str | None:
    """Return DuckDB's name of a type, or None if DuckDB has no such type."""
    plain = _PLAIN.get(data_type)
    if plain is not None:
        return plain
    if isinstance(data_type, DecimalType):
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    if isinstance(data_type, FixedType):
        return "BLOB"
    if isinstance(data_type, StructType):
        parts = [(field.name, duckdb_type(field.field_type)) for field in data_type.fields]
        if (
            not parts
            or any(type_name is None for _, type_name in parts)
            or not _are_distinct([name for name, _ in parts])
        ):
            return None
        return f"STRUCT({', '.join(f'{quoted(name)} {inner}' for name, inner in parts)})"
    if isinstance(data_type, ListType):
        element = duckdb_type(data_type.element_type)
        return None if element is None else f"{element}[]"
    if isinstance(data_type, MapType):
        key, value = duckdb_type(data_type.key_type), duckdb_type(data_type.value_type)
        return None if key is None or value is None else f"MAP({key}, {value})"
    return None


def has_floats(data_type: Type) -> bool:
    """Return whether a type is or contains a floating-point number."""
    if isinstance(data_type, FloatType | DoubleType):
        return True
    return data_type.is_nested and any(has_floats(field.field_type) for field in getattr(data_type, "fields", ()))


def _are_distinct(names: Sequence[str]) -> bool:
    return len({name.lower() for name in names}) == len(names)


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A column of a Parquet file, or a part of one, as described by its footer."""

    name: str
    field_id: int | None
    physical: str | None
    type_length: str | None
    logical: str | None
    duckdb: str | None
    repetition: str | None
    children: tuple[ParquetColumn, ...] = ()


def read_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[ParquetColumn, ...]:
    """Build the columns of a file from the rows of `parquet_schema`, which are in depth-first order."""
    elements = iter(rows)
    root = next(elements)
    return tuple(_read_column(elements) for _ in range(root["num_children"] or 0))


def _read_column(elements: Iterator[Mapping[str, Any]]) -> ParquetColumn:
    row = next(elements)
    children = tuple(_read_column(elements) for _ in range(row["num_children"] or 0))
    return ParquetColumn(
        row["name"],
        row["field_id"],
        row["type"],
        row["type_length"],
        row["logical_type"],
        row["duckdb_type"],
        row["repetition_type"],
        children,
    )


def is_stored_as(column: ParquetColumn, field: NestedField) -> bool:
    """Return whether DuckDB reads a stored column exactly as a field of a table."""
    if column.field_id != field.field_id or column.repetition == "REPEATED":
        return False
    data_type = field.field_type
    if isinstance(data_type, StructType):
        return (
            column.physical is None
            and column.logical is None
            and len(column.children) == len(data_type.fields)
            and all(
                child.name == child_field.name and is_stored_as(child, child_field)
                for child, child_field in zip(column.children, data_type.fields, strict=True)
            )
        )
    if isinstance(data_type, ListType):
        return _is_list(column) and is_stored_as(column.children[0].children[0], data_type.element_field)
    if isinstance(data_type, MapType):
        return (
            column.physical is None
            and len(column.children) == 1
            and column.children[0].repetition == "REPEATED"
            and len(column.children[0].children) == 2
            and is_stored_as(column.children[0].children[0], data_type.key_field)
            and is_stored_as(column.children[0].children[1], data_type.value_field)
        )
    return _is_leaf(column, data_type)


def _is_list(column: ParquetColumn) -> bool:
    return (
        column.physical is None
        and len(column.children) == 1
        and column.children[0].repetition == "REPEATED"
        and len(column.children[0].children) == 1
    )


def _is_leaf(column: ParquetColumn, data_type: Type) -> bool:
    if column.children:
        return False
    stored = (column.physical or "", column.duckdb or "")
    if isinstance(data_type, DecimalType):
        precision, scale = _decimal(column.duckdb)
        return scale == data_type.scale and 0 < precision <= data_type.precision
    if isinstance(data_type, FixedType):
        return stored == ("FIXED_LEN_BYTE_ARRAY", "BLOB") and column.type_length == str(data_type.length)
    if data_type in _MICROS and "MICROS=MicroSeconds()" not in (column.logical or ""):
        return False
    return stored in _STORED.get(data_type, frozenset())


def _decimal(duckdb: str | None) -> tuple[int, int]:
    if duckdb is None or not duckdb.startswith("DECIMAL("):
        return 0, -1
    precision, _, scale = duckdb[len("DECIMAL(") : -1].partition(",")
    return int(precision), int(scale)
