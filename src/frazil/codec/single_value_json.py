"""Single values as JSON. Specification: "JSON single-value serialization" (Appendix D).

Default values in schemas have this form (`codec/schema_json.py`). Python values are the internal ones of
`spec/types.py`; JSON values are those of a JSON parser. Writing follows the canonical forms: fractions of a second
without trailing zeros, hexadecimal and uuids in lower case, UTC as `+00:00`.

Numbers that JSON cannot hold (NaN and the infinities) are refused both ways: JSON encoders silently turn them into
null or text, which would change the default.
"""

from __future__ import annotations

import math
import re
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from frazil.errors import (
    CorruptTableError,
    FrazilError,
    InvalidMetadataError,
    SchemaMismatchError,
    UnsupportedError,
)
from frazil.spec import iso8601
from frazil.spec import types as ft
from frazil.spec.decimals import decimal_of, fits_precision, scale_of, unscaled_value
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.values import map_key, shortest_float32, show_value

HEADING = "JSON single-value serialization"

_DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,6})?", re.ASCII)
_MAX_DECIMAL_CHARS = 128
_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_HEX_TEXT = re.compile(r"(?:[0-9a-fA-F]{2})*", re.ASCII)


class _Refused(Exception):
    """The reason why a value does not fit its type; converted to the caller's error class by the public functions."""


def decode_json_value(
    json_value: Any,
    data_type: ft.Type,
    *,
    where: str = "the value",
    heading: str = HEADING,
    error: type[CorruptTableError] = InvalidMetadataError,
) -> Any:
    """Decode a JSON single value of a type; JSON null is None."""
    try:
        return _decode(json_value, data_type)
    except _Refused as refusal:
        raise error(f"Cannot read {where}: {refusal}", heading=heading) from None


def encode_json_value(value: Any, data_type: ft.Type) -> Any:
    """Encode a value of a type as a JSON single value; None is JSON null."""
    try:
        return _encode(value, data_type)
    except _Refused as refusal:
        raise SchemaMismatchError(f"Cannot write {show_value(value)} as a JSON value: {refusal}") from None


def _decode(json_value: Any, data_type: ft.Type) -> Any:
    if json_value is None:
        return None
    decoder = _DECODERS.get(type(data_type))
    if decoder is None:
        raise _no_form(data_type)
    return decoder(json_value, data_type)


def _encode(value: Any, data_type: ft.Type) -> Any:
    if value is None:
        return None
    encoder = _ENCODERS.get(type(data_type))
    if encoder is None:
        raise _no_form(data_type)
    return encoder(value, data_type)


def _no_form(data_type: ft.Type) -> Exception:
    if isinstance(data_type, ft.UnknownType):
        return _Refused("a value of type unknown is always null")
    return UnsupportedError(
        f"Cannot convert a {data_type} value between Python and JSON: the specification has no form for it"
    )


def _unexpected(expected: str, found: Any) -> _Refused:
    return _Refused(f"expected {expected}, found {show_value(found)}")


def _text(json_value: Any, data_type: ft.Type) -> str:
    if not isinstance(json_value, str):
        raise _unexpected(f"text for {data_type}", json_value)
    return json_value


# --- booleans and numbers


def _decode_boolean(json_value: Any, data_type: ft.Type) -> bool:
    if not isinstance(json_value, bool):
        raise _unexpected("true or false", json_value)
    return json_value


def _decode_integer(json_value: Any, data_type: ft.Type) -> int:
    if not isinstance(json_value, int) or isinstance(json_value, bool):
        raise _unexpected(f"an integer for {data_type}", json_value)
    bits = 32 if isinstance(data_type, ft.IntType) else 64
    if not -(1 << (bits - 1)) <= json_value < 1 << (bits - 1):
        raise _Refused(f"{show_value(json_value)} does not fit the {bits} bits of {data_type}")
    return json_value


def _decode_floating(json_value: Any, data_type: ft.Type) -> float:
    if not isinstance(json_value, int | float) or isinstance(json_value, bool):
        raise _unexpected(f"a number for {data_type}", json_value)
    try:
        number = float(json_value)
        if isinstance(data_type, ft.FloatType):
            number = _round_to_float32(number)
    except OverflowError:
        raise _Refused(f"{show_value(json_value)} is out of the range of {data_type}") from None
    if not math.isfinite(number):
        raise _Refused(f"{number} is not a JSON number")
    return number


def _encode_floating(value: Any, data_type: ft.Type) -> float:
    number = _decode_floating(value, data_type)
    return shortest_float32(number) if isinstance(data_type, ft.FloatType) else number


def _round_to_float32(number: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def _decode_decimal(json_value: Any, data_type: ft.Type) -> Decimal:
    assert isinstance(data_type, ft.DecimalType)
    text = _text(json_value, data_type)
    if len(text) > _MAX_DECIMAL_CHARS or _DECIMAL_TEXT.fullmatch(text) is None:
        raise _unexpected(f"a decimal such as {_decimal_example(data_type)} for {data_type}", text)
    return _checked_decimal(Decimal(text), data_type)


def _checked_decimal(value: Any, data_type: ft.DecimalType) -> Decimal:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise _unexpected(f"a decimal for {data_type}", value)
    if scale_of(value) != data_type.scale:
        raise _Refused(
            f"{show_value(value)} has the scale {scale_of(value)}, not the scale {data_type.scale} of {data_type}"
        )
    unscaled = unscaled_value(value, data_type.scale)
    if unscaled is None or not fits_precision(unscaled, data_type.precision):
        raise _Refused(f"{show_value(value)} has more than the {data_type.precision} digits of {data_type}")
    return decimal_of(unscaled, data_type.scale)


def _encode_decimal(value: Any, data_type: ft.Type) -> str:
    assert isinstance(data_type, ft.DecimalType)
    return format(_checked_decimal(value, data_type), "f")


def _decimal_example(data_type: ft.DecimalType) -> str:
    return "14" if data_type.scale == 0 else f"14.{'2'.ljust(data_type.scale, '0')}"


# --- dates and times


def _decode_date(json_value: Any, data_type: ft.Type) -> int:
    days = iso8601.parse_date(_text(json_value, data_type))
    if days is None:
        raise _unexpected("a date such as 2017-11-16", json_value)
    return _fitting(days, 32, json_value, data_type)


def _decode_time(json_value: Any, data_type: ft.Type) -> int:
    nanos = iso8601.parse_time(_text(json_value, data_type))
    if nanos is None:
        raise _unexpected("a time such as 22:31:08.123456", json_value)
    return _to_micros(nanos, json_value, data_type)


def _decode_timestamp(json_value: Any, data_type: ft.Type) -> int:
    has_zone = isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType)
    parsed = iso8601.parse_timestamp(_text(json_value, data_type), needs_t=True)
    if parsed is None:
        example = f"2017-11-16T22:31:08.123456{'+00:00' if has_zone else ''}"
        raise _unexpected(f"a {data_type} such as {example}", json_value)
    nanos, offset = parsed
    if has_zone and offset != 0:
        raise _Refused(f"the zone offset of a {data_type} must be +00:00, found {show_value(json_value)}")
    if not has_zone and offset is not None:
        raise _Refused(f"a {data_type} must not have a zone offset, found {show_value(json_value)}")
    value = nanos if _is_nanos(data_type) else _to_micros(nanos, json_value, data_type)
    return _fitting(value, 64, json_value, data_type)


def _is_nanos(data_type: ft.Type) -> bool:
    return isinstance(data_type, ft.TimestampNsType | ft.TimestamptzNsType)


def _to_micros(nanos: int, json_value: Any, data_type: ft.Type) -> int:
    micros, rest = divmod(nanos, 1000)
    if rest != 0:
        raise _Refused(f"{show_value(json_value)} is finer than the microseconds of {data_type}")
    return micros


def _fitting(value: int, bits: int, json_value: Any, data_type: ft.Type) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise _Refused(f"{show_value(json_value)} is out of the range of {data_type}")
    return value


def _encode_date(value: Any, data_type: ft.Type) -> str:
    return iso8601.format_date(_whole(value, 32, data_type))


def _encode_time(value: Any, data_type: ft.Type) -> str:
    micros = _whole(value, 64, data_type)
    if not 0 <= micros < iso8601.MICROS_PER_DAY:
        raise _Refused(f"{micros} microseconds are not a time of day")
    return iso8601.format_time(micros * 1000)


def _encode_timestamp(value: Any, data_type: ft.Type) -> str:
    ticks = _whole(value, 64, data_type)
    text = iso8601.format_timestamp(ticks if _is_nanos(data_type) else ticks * 1000)
    return f"{text}+00:00" if isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType) else text


def _whole(value: Any, bits: int, data_type: ft.Type) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unexpected(f"an integer for {data_type}", value)
    return _fitting(value, bits, value, data_type)


# --- text and bytes


def _decode_string(json_value: Any, data_type: ft.Type) -> str:
    text = _text(json_value, data_type)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("the text holds a lone surrogate, which UTF-8 cannot encode") from None
    return text


def _decode_uuid(json_value: Any, data_type: ft.Type) -> uuid.UUID:
    text = _text(json_value, data_type)
    if _UUID_TEXT.fullmatch(text) is None:
        raise _unexpected("a uuid such as f79c3e09-677c-4bbd-a479-3f349cb785e7", text)
    return uuid.UUID(text)


def _encode_uuid(value: Any, data_type: ft.Type) -> str:
    if not isinstance(value, uuid.UUID):
        raise _unexpected("a UUID", value)
    return str(value)


def _decode_bytes(json_value: Any, data_type: ft.Type) -> bytes:
    text = _text(json_value, data_type)
    if isinstance(data_type, ft.FixedType) and len(text) != 2 * data_type.length:
        raise _Refused(
            f"expected {2 * data_type.length} hexadecimal digits for {data_type}, found {len(text)} characters"
        )
    if _HEX_TEXT.fullmatch(text) is None:
        raise _unexpected("an even number of hexadecimal digits", text)
    return bytes.fromhex(text)


def _encode_bytes(value: Any, data_type: ft.Type) -> str:
    if not isinstance(value, bytes):
        raise _unexpected(f"bytes for {data_type}", value)
    if isinstance(data_type, ft.FixedType) and len(value) != data_type.length:
        raise _Refused(f"expected {data_type.length} bytes for {data_type}, found {len(value)}")
    return value.hex()


# --- nested values


def _decode_struct(json_value: Any, data_type: ft.Type) -> dict[str, Any]:
    assert isinstance(data_type, ft.StructType)
    if not isinstance(json_value, dict):
        raise _unexpected("an object by field id", json_value)
    by_id = {str(field.field_id): field for field in data_type.fields}
    for key in json_value:
        if key not in by_id:
            raise _Refused(f"the struct has no field with the id {show_value(key)}")
    # Only the fields that are present: the rest of a struct default comes from its fields' own defaults.
    return FrozenMap(
        (field.name, _decode(json_value[key], field.field_type)) for key, field in by_id.items() if key in json_value
    )


def _encode_struct(value: Any, data_type: ft.Type) -> dict[str, Any]:
    assert isinstance(data_type, ft.StructType)
    if not isinstance(value, dict):
        raise _unexpected("a dict by field name", value)
    names = {field.name for field in data_type.fields}
    for name in value:
        if name not in names:
            raise _Refused(f"the struct has no field named {show_value(name)}")
    present = (field for field in data_type.fields if value.get(field.name) is not None)
    return {str(field.field_id): _encode(value[field.name], field.field_type) for field in present}


def _decode_list(json_value: Any, data_type: ft.Type) -> list[Any]:
    assert isinstance(data_type, ft.ListType)
    if not isinstance(json_value, list):
        raise _unexpected("a list", json_value)
    if data_type.element_required and any(item is None for item in json_value):
        raise _Refused("a null element in a list of required elements")
    return [_decode(item, data_type.element_type) for item in json_value]


def _encode_list(value: Any, data_type: ft.Type) -> list[Any]:
    assert isinstance(data_type, ft.ListType)
    if not isinstance(value, list | tuple):
        raise _unexpected("a list", value)
    if data_type.element_required and any(item is None for item in value):
        raise _Refused("a null element in a list of required elements")
    return [_encode(item, data_type.element_type) for item in value]


def _decode_map(json_value: Any, data_type: ft.Type) -> dict[Any, Any]:
    assert isinstance(data_type, ft.MapType)
    keys, values = (json_value.get("keys"), json_value.get("values")) if isinstance(json_value, dict) else (None, None)
    if not isinstance(keys, list) or not isinstance(values, list):
        raise _unexpected("an object of keys and values", json_value)
    if len(keys) != len(values):
        raise _Refused(f"a map with {len(keys)} keys and {len(values)} values")
    pairs: dict[Any, Any] = {}
    for json_key, json_item in zip(keys, values, strict=True):
        _check_pair(json_key, json_item, data_type)
        key = map_key(_decode(json_key, data_type.key_type))
        if key in pairs:
            raise _Refused(f"the key {show_value(json_key)} occurs twice")
        pairs[key] = _decode(json_item, data_type.value_type)
    return FrozenMap(pairs)


def _encode_map(value: Any, data_type: ft.Type) -> dict[str, Any]:
    assert isinstance(data_type, ft.MapType)
    if not isinstance(value, dict):
        raise _unexpected("a dict", value)
    for key, item in value.items():
        _check_pair(key, item, data_type)
    return {
        "keys": [_encode(key, data_type.key_type) for key in value],
        "values": [_encode(item, data_type.value_type) for item in value.values()],
    }


def _check_pair(key: Any, value: Any, data_type: ft.MapType) -> None:
    if key is None:
        raise _Refused("a null key in a map")
    if value is None and data_type.value_required:
        raise _Refused("a null value in a map of required values")


# --- geometries


# The geometry codecs are imported lazily: they need numpy, and every catalog needs the rest of this module.


def _decode_geometry(json_value: Any, data_type: ft.Type) -> bytes:
    from frazil.codec.wkt import wkt_to_wkb

    try:
        return wkt_to_wkb(_text(json_value, data_type))
    except FrazilError as error:
        raise _Refused(f"expected a geometry as text, such as POINT (30 10): {error.message}") from None


def _encode_geometry(value: Any, data_type: ft.Type) -> str:
    if not isinstance(value, bytes):
        raise _unexpected(f"WKB bytes for {data_type}", value)
    from frazil.codec.wkt import wkb_to_wkt

    try:
        return wkb_to_wkt(value)
    except FrazilError as error:
        raise _Refused(error.message) from None


_DECODERS: dict[type[ft.Type], Callable[[Any, Any], Any]] = {
    ft.BooleanType: _decode_boolean,
    ft.IntType: _decode_integer,
    ft.LongType: _decode_integer,
    ft.FloatType: _decode_floating,
    ft.DoubleType: _decode_floating,
    ft.DecimalType: _decode_decimal,
    ft.DateType: _decode_date,
    ft.TimeType: _decode_time,
    ft.TimestampType: _decode_timestamp,
    ft.TimestamptzType: _decode_timestamp,
    ft.TimestampNsType: _decode_timestamp,
    ft.TimestamptzNsType: _decode_timestamp,
    ft.StringType: _decode_string,
    ft.UuidType: _decode_uuid,
    ft.FixedType: _decode_bytes,
    ft.BinaryType: _decode_bytes,
    ft.GeometryType: _decode_geometry,
    ft.GeographyType: _decode_geometry,
    ft.StructType: _decode_struct,
    ft.ListType: _decode_list,
    ft.MapType: _decode_map,
}

_ENCODERS: dict[type[ft.Type], Callable[[Any, Any], Any]] = {
    **_DECODERS,  # booleans, integers and text are the same on both sides
    ft.FloatType: _encode_floating,
    ft.DoubleType: _encode_floating,
    ft.DecimalType: _encode_decimal,
    ft.DateType: _encode_date,
    ft.TimeType: _encode_time,
    ft.TimestampType: _encode_timestamp,
    ft.TimestamptzType: _encode_timestamp,
    ft.TimestampNsType: _encode_timestamp,
    ft.TimestamptzNsType: _encode_timestamp,
    ft.UuidType: _encode_uuid,
    ft.FixedType: _encode_bytes,
    ft.BinaryType: _encode_bytes,
    ft.GeometryType: _encode_geometry,
    ft.GeographyType: _encode_geometry,
    ft.StructType: _encode_struct,
    ft.ListType: _encode_list,
    ft.MapType: _encode_map,
}
