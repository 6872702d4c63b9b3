"""Values as SQL literals that mean the same in every session, whatever it says about text, numbers and zones.

No text of a value is ever read as SQL: quotes, backslashes and `$`, by which Spark's variables begin, are written as
numbers. A value has two forms: the one that files store (`stored_literal`), and the one that users see and write
(`shown_literal`), in which a UUID is text.
"""

from __future__ import annotations

import datetime
import math
import re
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
    TimestampType,
    TimestamptzType,
    Type,
    UuidType,
)
from frazil.sql.type_names import spark_type_name

_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000


def shown_literal(value: Any, kind: Type) -> str:
    """Return a value, as the format keeps it, as an expression of the form that users see: what DEFAULT stands for."""
    name = spark_type_name(kind)
    if value is None:
        return f"cast(null as {name})"
    if isinstance(kind, NestedType):
        raise UnsupportedError(f"Cannot write a default of type {name} as an expression")
    if isinstance(kind, BinaryType | FixedType | BooleanType):
        return stored_literal(value, kind)
    return f"cast({text_literal(str(encode_json_value(value, kind)))} as {name})"


def stored_literal(value: Any, kind: Type) -> str:
    """Return a value of a type as a SQL literal of its stored form.

    It means the same in every session, and Spark knows that it is not null.
    """
    if value is None:
        return "NULL"
    if isinstance(kind, BooleanType):
        return "true" if value else "false"
    if isinstance(kind, IntType):
        return f"{value}"
    if isinstance(kind, FloatType | DoubleType):
        letter, name = ("F", "FLOAT") if isinstance(kind, FloatType) else ("D", "DOUBLE")
        return f"{float(value)!r}{letter}" if math.isfinite(value) else f"CAST('{float(value)!r}' AS {name})"
    if isinstance(kind, DecimalType):
        return f"CAST({Decimal(value):f}BD AS DECIMAL({kind.precision},{kind.scale}))"
    if isinstance(kind, StringType):
        return text_literal(value)
    if isinstance(kind, UuidType):
        return f"X'{value.hex}'"
    if isinstance(kind, BinaryType | FixedType | GeometryType | GeographyType):
        return f"X'{bytes(value).hex()}'"
    if isinstance(kind, DateType):
        return f"date_from_unix_date({value})"
    if isinstance(kind, TimestamptzType):
        return f"timestamp_micros({value}L)"
    if isinstance(kind, TimestampType):
        return _local_time(value)
    if kind.is_nested:
        return _nested(value, kind)
    if isinstance(kind, LongType) or isinstance(value, int):
        return f"{value}L"
    raise UnsupportedError(f"Cannot fill a column of type {kind} with a default on Spark")


def _nested(value: Any, kind: Type) -> str:
    if isinstance(kind, StructType):
        parts = (
            f"{text_literal(field.name)}, {stored_literal(value.get(field.name), field.field_type)}"
            for field in kind.fields
        )
        return f"named_struct({', '.join(parts)})"
    if isinstance(kind, ListType):
        return f"array({', '.join(stored_literal(one, kind.element_type) for one in value)})"
    if isinstance(kind, MapType):
        pairs = [
            (stored_literal(key, kind.key_type), stored_literal(one, kind.value_type)) for key, one in value.items()
        ]
        return f"map({', '.join(chain.from_iterable(pairs))})"
    raise UnsupportedError(f"Cannot fill a column of type {kind} with a default on Spark")


def _local_time(micros: int) -> str:
    if not _YEAR_1 <= micros < _YEAR_10000:
        return f"timestampadd(MICROSECOND, {micros}L, timestamp_ntz'1970-01-01')"
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
    return f"timestamp_ntz'{moment.replace(tzinfo=None).isoformat(sep=' ')}'"


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


def plain_text(text: str) -> str:
    """Return text in quotes, for conditions that frazil reads itself: doubled where it has such, or escaped."""
    if "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _is_special(piece: str) -> bool:
    return len(piece) == 1 and (piece in "'\"\\$" or ord(piece) < 32 or 127 <= ord(piece) < 160)
