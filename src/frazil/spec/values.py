"""Values of the Iceberg types: conversion from and to Python values, text form and order.

The layers above hold values in the internal form of `spec/types.py` (a date is an int, a uuid a UUID). `to_internal`
converts natural Python values (literals in predicates, defaults, rows) and refuses lossy conversions; `to_python` is
the inverse. `sort_key` and `compare_values` order values according to the specification's "Sorting": floating point
with -NaN first, NaN last and -0 before 0, text by code point (the order of its UTF-8 bytes), binary, fixed and uuid by
unsigned bytes.
"""

from __future__ import annotations

import base64
import datetime
import math
import struct
import uuid
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec import iso8601
from frazil.spec import types as ft
from frazil.spec.decimals import decimal_of, fits_precision, unscaled_value
from frazil.spec.frozen_map import FrozenMap

_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH = _EPOCH_UTC.replace(tzinfo=None)
_FLOAT32 = struct.Struct("<f")
_MAX_DECIMAL_CHARS = 128
_TIMESTAMP_TYPES = (ft.TimestampType, ft.TimestamptzType, ft.TimestampNsType, ft.TimestamptzNsType)


class _Refused(Exception):
    """The reason why a value does not fit; `to_internal` adds the value, the type and the path."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.path: list[str] = []


# --- from Python


def to_internal(value: Any, data_type: ft.Type) -> Any:
    """Convert a Python value to the internal form of a type; None stays None.

    In addition to the internal form (an int counts the type's units), it accepts date, time and datetime, ISO text
    for dates, times, timestamps and uuids, int or text for decimals, int for floating point if it is exact, and
    numpy and pandas scalars. A date as a timestamp means its midnight, in UTC for types with a zone. Conversions that
    would lose digits or fractions of a second, or add or drop a zone, are refused.
    """
    try:
        return _convert(value, data_type)
    except _Refused as refusal:
        path_text = f" (at {'.'.join(refusal.path)})" if refusal.path else ""
        raise SchemaMismatchError(
            f"Cannot use {show_value(value)} as {data_type}{path_text}: {refusal.reason}", hint=refusal.hint
        ) from None


def show_value(value: Any) -> str:
    """Return a short `repr` of any value, for error messages."""
    if isinstance(value, int) and value.bit_length() > 256:
        return "a very large integer"
    text = repr(value[:60] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def _convert(value: Any, data_type: ft.Type) -> Any:
    if value is None:
        return None
    if hasattr(value, "dtype") and hasattr(value, "item"):  # a numpy scalar
        value = str(value) if value.dtype.kind == "M" else value.item()
    converter = _CONVERTERS.get(type(data_type))
    if converter is None:
        raise UnsupportedError(f"Cannot convert {show_value(value)} to {data_type}: only null is allowed as a value")
    return converter(value, data_type)


def _to_boolean(value: Any, data_type: ft.Type) -> bool:
    if not isinstance(value, bool):
        raise _Refused(f"expected True or False, not {_type_of(value)}")
    return value


def _to_integer(value: Any, data_type: ft.Type) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Refused(f"expected an int, not {_type_of(value)}")
    return _in_range(int(value), 32 if isinstance(data_type, ft.IntType) else 64)


def _in_range(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise _Refused(f"it does not fit {bits} bits")
    return value


def _to_floating(value: Any, data_type: ft.Type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _Refused(f"expected a number, not {_type_of(value)}")
    try:
        number = float(value)
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0] if isinstance(data_type, ft.FloatType) else number
    except OverflowError:
        raise _Refused("it is out of range") from None
    if isinstance(value, int) and rounded != value:
        raise _Refused(f"the integer has more digits than {data_type} holds")
    if isinstance(value, Decimal) and value.is_finite() and math.isinf(rounded):
        raise _Refused("it is out of range")
    return rounded


def _to_decimal(value: Any, data_type: ft.DecimalType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _Refused(f"expected a decimal, not {_type_of(value)}")
    if isinstance(value, int) and not fits_precision(value, data_type.precision):
        raise _Refused(f"it has more than {data_type.precision} digits")
    if isinstance(value, Decimal):
        number = value
    else:
        text = repr(float(value)) if isinstance(value, float) else str(value)
        if len(text) > _MAX_DECIMAL_CHARS or not text.isascii() or "_" in text:
            raise _Refused("expected a decimal")
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise _Refused("the text is not a decimal") from None
    if not number.is_finite():
        raise _Refused("decimals are finite")
    unscaled = unscaled_value(number, data_type.scale)
    if unscaled is None:
        if number.adjusted() >= data_type.precision - data_type.scale:
            raise _Refused(f"it has more than {data_type.precision - data_type.scale} digits before the point")
        raise _Refused(f"it has more than {data_type.scale} digits after the point", "Round the value first.")
    if not fits_precision(unscaled, data_type.precision):
        raise _Refused(f"it has more than {data_type.precision} digits")
    return decimal_of(unscaled, data_type.scale)


def _to_date(value: Any, data_type: ft.Type) -> int:
    if isinstance(value, str):
        days = iso8601.parse_date(value)
        if days is None:
            raise _Refused("expected a date such as '2017-11-16'")
        return _in_range(days, 32)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return iso8601.days_from_civil(value.year, value.month, value.day)
    if isinstance(value, datetime.datetime):
        raise _Refused("a datetime has a time of day; expected a date", "Use .date() of the value.")
    return _internal_int(value, 32, "a date")


def _to_time(value: Any, data_type: ft.Type) -> int:
    if isinstance(value, str):
        nanos = iso8601.parse_time(value)
        if nanos is None:
            raise _Refused("expected a time such as '22:31:08.123456'")
        return _whole_micros(nanos)
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise _Refused("the time has a zone; expected a time without one")
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    micros = _internal_int(value, 64, "a time")
    if not 0 <= micros < iso8601.MICROS_PER_DAY:
        raise _Refused("it is not a number of microseconds within a day")
    return micros


def _to_timestamp(value: Any, data_type: ft.Type) -> int:
    has_zone = isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType)
    is_nanos = isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType)
    if isinstance(value, str):
        nanos = _parse_timestamp_text(value, has_zone=has_zone)
    elif isinstance(value, datetime.datetime):
        nanos = _nanos_of_datetime(value, has_zone=has_zone)
    elif isinstance(value, datetime.date):
        nanos = iso8601.days_from_civil(value.year, value.month, value.day) * iso8601.NANOS_PER_DAY
    else:
        return _internal_int(value, 64, "a datetime")
    return _in_range(nanos if is_nanos else _whole_micros(nanos), 64)


def _parse_timestamp_text(text: str, *, has_zone: bool) -> int:
    parsed = iso8601.parse_timestamp(text)
    if parsed is None:
        days = iso8601.parse_date(text)
        if days is None:
            zone = "+00:00" if has_zone else ""
            raise _Refused(f"expected a timestamp such as '2017-11-16T22:31:08.123456{zone}'")
        return days * iso8601.NANOS_PER_DAY
    nanos, offset = parsed
    _check_zone(has_zone=has_zone, is_given=offset is not None)
    return nanos - (offset or 0) * 10**9


def _nanos_of_datetime(value: datetime.datetime, *, has_zone: bool) -> int:
    if value != value:  # pandas' NaT
        raise _Refused("it is not a point in time", "Use None for null.")
    is_given = value.utcoffset() is not None
    _check_zone(has_zone=has_zone, is_given=is_given)
    since = value - _EPOCH_UTC if is_given else value.replace(tzinfo=None) - _EPOCH
    micros = since.days * iso8601.MICROS_PER_DAY + since.seconds * 10**6 + since.microseconds
    # pandas' Timestamp is a datetime with nanoseconds of its own.
    return micros * 1000 + int(getattr(value, "nanosecond", 0))


def _check_zone(*, has_zone: bool, is_given: bool) -> None:
    if has_zone and not is_given:
        raise _Refused("the timestamp has no zone; expected one with a zone", "Add 'Z' or an offset such as '+02:00'.")
    if not has_zone and is_given:
        raise _Refused("the timestamp has a zone; expected one without a zone", "Leave the zone out.")


def _whole_micros(nanos: int) -> int:
    micros, rest = divmod(nanos, 1000)
    if rest != 0:
        raise _Refused("it is finer than a microsecond", "Round the value, or use a type with nanoseconds.")
    return micros


def _internal_int(value: Any, bits: int, expected: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Refused(f"expected {expected}, not {_type_of(value)}")
    return _in_range(int(value), bits)


def _to_string(value: Any, data_type: ft.Type) -> str:
    if not isinstance(value, str):
        raise _Refused(f"expected text, not {_type_of(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Refused("it holds a lone surrogate, which UTF-8 cannot encode") from None
    return str(value)


def _to_uuid(value: Any, data_type: ft.Type) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    if isinstance(value, bytes | bytearray | memoryview) and len(bytes(value)) == 16:
        return uuid.UUID(bytes=bytes(value))
    if isinstance(value, str) and len(value) == 36:
        try:
            return uuid.UUID(value)
        except ValueError:
            pass
    raise _Refused("expected a uuid such as 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")


def _to_bytes(value: Any, data_type: ft.Type) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _Refused(f"expected bytes, not {_type_of(value)}")
    data = bytes(value)
    if isinstance(data_type, ft.FixedType) and len(data) != data_type.length:
        raise _Refused(f"it has {len(data)} bytes")
    return data


def _to_unknown(value: Any, data_type: ft.Type) -> None:
    raise _Refused("values of type unknown are always null")


def _to_struct(value: Any, data_type: ft.StructType) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _Refused(f"expected a dict by field name, not {_type_of(value)}")
    fields = {field.name: field for field in data_type.fields}
    for name in value:
        if name not in fields:
            raise _Refused(f"the struct has no field {show_value(name)}", f"The fields are: {', '.join(fields)}.")
    converted = {}
    for name, field in fields.items():
        converted[name] = _convert_part(value.get(name), field.field_type, name, required=field.required)
    return converted


def _to_list(value: Any, data_type: ft.ListType) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise _Refused(f"expected a list, not {_type_of(value)}")
    return [
        _convert_part(item, data_type.element_type, "element", required=data_type.element_required) for item in value
    ]


def _to_map(value: Any, data_type: ft.MapType) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _Refused(f"expected a dict, not {_type_of(value)}")
    converted: dict[Any, Any] = {}
    for key, item in value.items():
        internal = map_key(_convert_part(key, data_type.key_type, "key", required=True))
        if internal in converted:
            raise _Refused(f"two keys stand for {show_value(internal)}")
        converted[internal] = _convert_part(item, data_type.value_type, "value", required=data_type.value_required)
    return converted


def _convert_part(value: Any, data_type: ft.Type, name: str, *, required: bool) -> Any:
    try:
        if value is None and required:
            raise _Refused("a required value is missing")
        return _convert(value, data_type)
    except _Refused as refusal:
        refusal.path.insert(0, name)
        raise


def _type_of(value: Any) -> str:
    return type(value).__name__


def map_key(value: Any) -> Hashable:
    """Return a hashable form of a value: lists as tuples, dicts frozen."""
    if isinstance(value, list | tuple):
        return tuple(map_key(item) for item in value)
    if isinstance(value, dict):
        return FrozenMap((key, map_key(item)) for key, item in value.items())
    return value  # type: ignore[no-any-return]


_CONVERTERS: dict[type[ft.Type], Callable[[Any, Any], Any]] = {
    ft.BooleanType: _to_boolean,
    ft.IntType: _to_integer,
    ft.LongType: _to_integer,
    ft.FloatType: _to_floating,
    ft.DoubleType: _to_floating,
    ft.DecimalType: _to_decimal,
    ft.DateType: _to_date,
    ft.TimeType: _to_time,
    ft.TimestampType: _to_timestamp,
    ft.TimestamptzType: _to_timestamp,
    ft.TimestampNsType: _to_timestamp,
    ft.TimestamptzNsType: _to_timestamp,
    ft.StringType: _to_string,
    ft.UuidType: _to_uuid,
    ft.FixedType: _to_bytes,
    ft.BinaryType: _to_bytes,
    ft.GeometryType: _to_bytes,
    ft.GeographyType: _to_bytes,
    ft.UnknownType: _to_unknown,
    ft.StructType: _to_struct,
    ft.ListType: _to_list,
    ft.MapType: _to_map,
}


# --- to Python


def to_python(value: Any, data_type: ft.Type) -> Any:
    """Convert an internal value to a Python value: date, time, datetime (UTC if the type has a zone), others unchanged.

    Values that `datetime` cannot hold (years beyond 1 to 9999, nanoseconds) are returned as ISO text, which
    `to_internal` accepts.
    """
    if value is None:
        return None
    if isinstance(data_type, ft.DateType):
        year, month, day = iso8601.civil_from_days(value)
        return datetime.date(year, month, day) if 1 <= year <= 9999 else iso8601.format_date(value)
    if isinstance(data_type, ft.TimeType):
        return (_EPOCH + datetime.timedelta(microseconds=value)).time()
    if isinstance(data_type, _TIMESTAMP_TYPES):
        return _to_datetime(value, data_type)
    if isinstance(data_type, ft.StructType):
        return {field.name: to_python(value.get(field.name), field.field_type) for field in data_type.fields}
    if isinstance(data_type, ft.ListType):
        return [to_python(item, data_type.element_type) for item in value]
    if isinstance(data_type, ft.MapType):
        return {
            map_key(to_python(key, data_type.key_type)): to_python(item, data_type.value_type)
            for key, item in value.items()
        }
    return value


def _to_datetime(value: int, data_type: ft.Type) -> datetime.datetime | str:
    epoch = _EPOCH_UTC if isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType) else _EPOCH
    micros, rest = (
        divmod(value, 1000) if isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType) else (value, 0)
    )
    if rest == 0:
        try:
            return epoch + datetime.timedelta(microseconds=micros)
        except OverflowError:
            pass
    return format_value(value, data_type)


# --- to text


def format_value(value: Any, data_type: ft.Type) -> str:
    """Return an internal value as text for display and for partition paths: ISO for times, base64 for bytes.

    The forms are those of Iceberg Java for years from 0 to 9999; other years have the ISO form (`+10000-01-01`).
    """
    if value is None:
        return "null"
    formatter = _FORMATTERS.get(type(data_type))
    return str(value) if formatter is None else formatter(value, data_type)


def _format_time(micros: int, data_type: ft.Type) -> str:
    seconds, fraction = divmod(micros, 10**6)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 == 0 and fraction == 0:
        return text
    text += f":{seconds % 60:02d}"
    if fraction == 0:
        return text
    return f"{text}.{fraction // 1000:03d}" if fraction % 1000 == 0 else f"{text}.{fraction:06d}"


def _format_timestamp(value: int, data_type: ft.Type) -> str:
    nanos = value if isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType) else value * 1000
    text = iso8601.format_timestamp(nanos)
    return f"{text}+00:00" if isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType) else text


def _format_floating(value: float, data_type: ft.Type) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(shortest_float32(value) if isinstance(data_type, ft.FloatType) else value)


def shortest_float32(value: float) -> float:
    """Return the number with the fewest digits that rounds to the same 32-bit float."""
    for digits in range(1, 10):  # nine digits distinguish any two 32-bit floats
        short = float(f"{value:.{digits}g}")
        try:
            if _FLOAT32.unpack(_FLOAT32.pack(short))[0] == value:
                return short
        except OverflowError:
            continue
    return value


def _format_struct(value: Mapping[str, Any], data_type: ft.StructType) -> str:
    inner = ", ".join(
        f"{field.name}: {format_value(value.get(field.name), field.field_type)}" for field in data_type.fields
    )
    return f"{{{inner}}}"


def _format_list(value: list[Any], data_type: ft.ListType) -> str:
    return f"[{', '.join(format_value(item, data_type.element_type) for item in value)}]"


def _format_map(value: Mapping[Any, Any], data_type: ft.MapType) -> str:
    pairs = (
        f"{format_value(key, data_type.key_type)}: {format_value(item, data_type.value_type)}"
        for key, item in value.items()
    )
    return f"{{{', '.join(pairs)}}}"


def _format_bytes(value: bytes, data_type: ft.Type) -> str:
    return base64.b64encode(value).decode("ascii")


_FORMATTERS: dict[type[ft.Type], Callable[[Any, Any], str]] = {
    ft.BooleanType: lambda value, data_type: "true" if value else "false",
    ft.FloatType: _format_floating,
    ft.DoubleType: _format_floating,
    ft.DecimalType: lambda value, data_type: format(value, "f"),
    ft.DateType: lambda value, data_type: iso8601.format_date(value),
    ft.TimeType: _format_time,
    ft.TimestampType: _format_timestamp,
    ft.TimestamptzType: _format_timestamp,
    ft.TimestampNsType: _format_timestamp,
    ft.TimestamptzNsType: _format_timestamp,
    ft.FixedType: _format_bytes,
    ft.BinaryType: _format_bytes,
    ft.GeometryType: _format_bytes,
    ft.GeographyType: _format_bytes,
    ft.StructType: _format_struct,
    ft.ListType: _format_list,
    ft.MapType: _format_map,
}


# --- in order


def compare_values(left: Any, right: Any, data_type: ft.Type) -> int:
    """Return -1, 0 or 1 if one value of a type sorts before, with or after another; neither may be None."""
    key = sort_key_function(data_type)
    left_key, right_key = key(left), key(right)
    return int(left_key > right_key) - int(left_key < right_key)


def sort_key(value: Any, data_type: ft.Type) -> Any:
    """Return a key whose natural order is the order of a type's values; nulls are the caller's responsibility."""
    return sort_key_function(data_type)(value)


def sort_key_function(data_type: ft.Type) -> Callable[[Any], Any]:
    """Return the function that computes sort keys of values of a type.

    Nulls inside structs, lists and maps come first. Geometry, geography and variant have no order.
    """
    if isinstance(data_type, ft.FloatType | ft.DoubleType):
        return _float_key
    if isinstance(data_type, ft.UuidType):
        return _uuid_key
    if isinstance(data_type, ft.StructType):
        parts = [(field.name, _null_first(sort_key_function(field.field_type))) for field in data_type.fields]
        return lambda value: tuple(key(value.get(name)) for name, key in parts)
    if isinstance(data_type, ft.ListType):
        element = _null_first(sort_key_function(data_type.element_type))
        return lambda value: tuple(map(element, value))
    if isinstance(data_type, ft.MapType):
        return _map_key_function(data_type)
    if isinstance(data_type, ft.GeometryType | ft.GeographyType | ft.VariantType):
        raise InvalidRequestError(f"Cannot order values of type {data_type}: the type has no order")
    return _same


def _same(value: Any) -> Any:
    return value


def _uuid_key(value: uuid.UUID) -> int:
    return value.int


def _float_key(value: float) -> int:
    if math.isnan(value):
        value = math.copysign(math.nan, value)  # NaNs of one sign are equal, whatever their other bits
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    # Negative numbers are stored as sign and magnitude: reverse them, so that -0 comes just before 0.
    return bits if bits >= 0 else -1 - (bits & 0x7FFF_FFFF_FFFF_FFFF)


def _null_first(key: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: () if value is None else (key(value),)


def _map_key_function(data_type: ft.MapType) -> Callable[[Any], Any]:
    key_of, value_of = sort_key_function(data_type.key_type), _null_first(sort_key_function(data_type.value_type))

    def key(value: Mapping[Any, Any]) -> Any:
        pairs = sorted(((key_of(key), value_of(other)) for key, other in value.items()), key=lambda pair: pair[0])
        return tuple(left for left, _ in pairs), tuple(other for _, other in pairs)

    return key
