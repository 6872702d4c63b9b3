"""Values as SQL literals that mean the same in every session, whatever it says about text, numbers and zones.

No text of a value is ever read as SQL: quotes, backslashes and `$`, by which Spark's variables begin, are written as
numbers. A value has two forms: the one that files store (`stored_literal`), and the one that users see and write
(`shown_literal`), in which a UUID is text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from frazil.codec.single_value_json import encode_json_value
from frazil.errors import UnsupportedError
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)
from frazil.sql.type_names import spark_type_name

_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000


def shown_literal(value: Any, data_type: Type) -> str:
    """Return a value, as the format keeps it, as an expression of the form that users see: what DEFAULT stands for."""
    name = spark_type_name(data_type)
    if value is None:
        return f"cast(null as {name})"
    if isinstance(data_type, NestedType):
        raise UnsupportedError(f"Cannot write a default of type {name} as an expression")
    if isinstance(data_type, BinaryType | FixedType | BooleanType):
        return stored_literal(value, data_type)
    return f"cast({text_literal(str(encode_json_value(value, data_type)))} as {name})"


def stored_literal(value: Any, data_type: Type) -> str:
    """Return a value of a type as a SQL literal of its stored form.

    It means the same in every session, and Spark knows that it is not null.
    """
    if value is None:
        return "NULL"
    write = STORED_LITERALS[type(data_type)]
    if write is None:
        raise UnsupportedError(f"Cannot fill a column of type {data_type} with a default on Spark")
    return write(value, data_type)


def _nested(value: Any, data_type: Type) -> str:
    if isinstance(data_type, StructType):
        parts = (
            f"{text_literal(field.name)}, {stored_literal(value.get(field.name), field.field_type)}"
            for field in data_type.fields
        )
        return f"named_struct({', '.join(parts)})"
    if isinstance(data_type, ListType):
        return f"array({', '.join(stored_literal(item, data_type.element_type) for item in value)})"
    if isinstance(data_type, MapType):
        pairs = [
            (stored_literal(key, data_type.key_type), stored_literal(item, data_type.value_type))
            for key, item in value.items()
        ]
        return f"map({', '.join(chain.from_iterable(pairs))})"
    raise UnsupportedError(f"Cannot fill a column of type {data_type} with a default on Spark")


def _local_time(micros: int) -> str:
    if not _YEAR_1 <= micros < _YEAR_10000:
        return f"timestampadd(MICROSECOND, {micros}L, timestamp_ntz'1970-01-01')"
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
    return f"timestamp_ntz'{moment.replace(tzinfo=None).isoformat(sep=' ')}'"


def _floating(value: float, letter: str, name: str) -> str:
    return f"{float(value)!r}{letter}" if math.isfinite(value) else f"CAST('{float(value)!r}' AS {name})"


def _long(value: int, data_type: Type) -> str:
    return f"{value}L"


def _bytes(value: Any, data_type: Type) -> str:
    return f"X'{bytes(value).hex()}'"


def _decimal(value: Any, data_type: Any) -> str:
    return f"CAST({Decimal(value):f}BD AS DECIMAL({data_type.precision},{data_type.scale}))"


def text_literal(value: str) -> str:
    """Return a text as an expression that gives it to the letter."""
    # Sessions differ in what a backslash, a doubled quote or a dollar sign mean inside text.
    pieces = [
        f"char({ord(piece)})" if _is_special(piece) else f"'{piece}'"
        for piece in re.split(r"([\x00-\x1f\x7f-\x9f'\"\\$])", value)
        if piece
    ]
    if len(pieces) == 1 and not pieces[0].startswith("char("):
        return pieces[0]
    return f"concat({', '.join(pieces)})" if pieces else "''"


def _is_special(piece: str) -> bool:
    return len(piece) == 1 and (piece in "'\"\\$" or ord(piece) < 32 or 127 <= ord(piece) < 160)


STORED_LITERALS: Mapping[type[Type], Callable[[Any, Any], str] | None] = {
    BooleanType: lambda value, _: "true" if value else "false",
    IntType: lambda value, _: f"{value}",
    LongType: _long,
    FloatType: lambda value, _: _floating(value, "F", "FLOAT"),
    DoubleType: lambda value, _: _floating(value, "D", "DOUBLE"),
    DecimalType: _decimal,
    StringType: lambda value, _: text_literal(value),
    UuidType: lambda value, _: f"X'{value.hex}'",
    BinaryType: _bytes,
    FixedType: _bytes,
    GeometryType: _bytes,
    GeographyType: _bytes,
    DateType: lambda value, _: f"date_from_unix_date({value})",
    TimeType: _long,
    TimestampType: lambda value, _: _local_time(value),
    TimestamptzType: lambda value, _: f"timestamp_micros({value}L)",
    TimestampNsType: _long,
    TimestamptzNsType: _long,
    StructType: _nested,
    ListType: _nested,
    MapType: _nested,
    VariantType: None,
    UnknownType: None,
}
"""How the stored form of each type's values is written; None where it cannot be."""
