"""Single values as bytes. Specification: "Binary single-value serialization" and "Bound serialization".

Lower and upper bounds in manifests and partition summaries in manifest lists have this form. A column's type may
have been promoted after its bounds were written. The bytes are then those of the older type, recognised by their
length ("Schema Evolution", the table of bound lengths), and decoding returns a value of the current type.

`encode_value` and `decode_value` are for values, `encode_bound` and `decode_bound` for bounds. Bounds differ from
values for geometry, geography and variant (whose values are plain bytes here), for fixed (older writers shortened the
bounds of long values) and for unknown (whose columns have no bounds).
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from frazil.codec.geo_bounds import decode_geo_bound, encode_geo_bound
from frazil.codec.variant_bounds import decode_variant_bounds, encode_variant_bounds
from frazil.errors import InvalidManifestError, InvalidRequestError, SchemaMismatchError
from frazil.spec import iso8601
from frazil.spec import types as ft
from frazil.spec.decimals import decimal_of, fits_precision, scale_of, unscaled_value
from frazil.spec.values import show_value

HEADING = "Binary single-value serialization"

Decoder: TypeAlias = Callable[[bytes], Any]
Encoder: TypeAlias = Callable[[Any], bytes]

_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_FLOAT32 = struct.Struct("<f")
_FLOAT64 = struct.Struct("<d")


def encode_value(value: Any, data_type: ft.Type) -> bytes:
    """Encode a value of a type as bytes."""
    return value_encoder(data_type)(value)


def decode_value(data: bytes, data_type: ft.Type) -> Any:
    """Decode bytes as a value of a type, converting those of a type that it was promoted from."""
    return value_decoder(data_type)(data)


def encode_bound(value: Any, data_type: ft.Type) -> bytes:
    """Encode a lower or upper bound as bytes.

    A bound of geometry or geography is a `GeoPoint`, one of variant a mapping of JSON paths to values.
    """
    return bound_encoder(data_type)(value)


def bound_encoder(data_type: ft.Type) -> Encoder:
    """Return the function that encodes bounds of a type."""
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return encode_geo_bound
    if isinstance(data_type, ft.VariantType):
        return encode_variant_bounds
    return value_encoder(data_type)


def decode_bound(data: bytes, data_type: ft.Type) -> Any:
    """Decode a lower or upper bound; None for a column of type unknown.

    A bound of geometry or geography is a `GeoPoint`, one of variant a mapping of JSON paths to values.
    """
    return bound_decoder(data_type)(data)


def value_encoder(data_type: ft.Type) -> Encoder:
    """Return the function that encodes values of a type."""
    make = _ENCODERS.get(type(data_type))
    if make is None:
        raise InvalidRequestError(f"Cannot encode a single value of type {data_type}: the type has no binary form")
    return make(data_type)


def value_decoder(data_type: ft.Type) -> Decoder:
    """Return the function that decodes values of a type."""
    make = _DECODERS.get(type(data_type))
    if make is None:
        raise InvalidRequestError(f"Cannot decode a single value of type {data_type}: the type has no binary form")
    return make(data_type)


def bound_decoder(data_type: ft.Type) -> Decoder:
    """Return the function that decodes bounds of a type."""
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return decode_geo_bound
    if isinstance(data_type, ft.VariantType):
        return decode_variant_bounds
    if isinstance(data_type, ft.UnknownType):
        return lambda data: None
    if isinstance(data_type, ft.FixedType):
        return lambda data: _decode_fixed_bound(data, data_type)
    return value_decoder(data_type)


# --- encoding


def _pack_integer(packer: struct.Struct, data_type: ft.Type) -> Encoder:
    def encode(value: Any) -> bytes:
        if type(value) is not int:
            raise _mismatch(value, data_type, "expected an integer")
        try:
            return packer.pack(value)
        except struct.error:
            raise _mismatch(value, data_type, f"it does not fit {packer.size * 8} bits") from None

    return encode


def _pack_floating(packer: struct.Struct, data_type: ft.Type) -> Encoder:
    def encode(value: Any) -> bytes:
        if not isinstance(value, float):
            raise _mismatch(value, data_type, "expected a float")
        try:
            return packer.pack(value)
        except OverflowError:
            raise _mismatch(value, data_type, "it is out of range") from None

    return encode


def _encode_boolean(value: Any, data_type: ft.Type) -> bytes:
    if not isinstance(value, bool):
        raise _mismatch(value, data_type, "expected True or False")
    return b"\x01" if value else b"\x00"


def _encode_string(value: Any, data_type: ft.Type) -> bytes:
    if not isinstance(value, str):
        raise _mismatch(value, data_type, "expected text")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _mismatch(value, data_type, "it holds a lone surrogate, which UTF-8 cannot encode") from None


def _encode_uuid(value: Any, data_type: ft.Type) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise _mismatch(value, data_type, "expected a UUID")
    return value.bytes


def _encode_bytes(value: Any, data_type: ft.Type) -> bytes:
    if not isinstance(value, bytes):
        raise _mismatch(value, data_type, "expected bytes")
    if isinstance(data_type, ft.FixedType) and len(value) != data_type.length:
        raise _mismatch(value, data_type, f"it has {len(value)} bytes")
    return value


def _encode_decimal(value: Any, data_type: ft.DecimalType) -> bytes:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise _mismatch(value, data_type, "expected a finite Decimal")
    if scale_of(value) != data_type.scale:
        raise _mismatch(value, data_type, f"its scale is {scale_of(value)}")
    unscaled = unscaled_value(value, data_type.scale)
    if unscaled is None or not fits_precision(unscaled, data_type.precision):
        raise _mismatch(value, data_type, f"it has more than {data_type.precision} digits")
    return encode_unscaled(unscaled)


def encode_unscaled(unscaled: int) -> bytes:
    """Encode an integer in the fewest bytes of big-endian two's complement."""
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _mismatch(value: Any, data_type: ft.Type, reason: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"Cannot encode {show_value(value)} as {data_type}: {reason}")


_ENCODERS: dict[type[ft.Type], Callable[[Any], Encoder]] = {
    ft.BooleanType: lambda data_type: lambda value: _encode_boolean(value, data_type),
    ft.IntType: lambda data_type: _pack_integer(_INT32, data_type),
    ft.DateType: lambda data_type: _pack_integer(_INT32, data_type),
    ft.LongType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.TimeType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.TimestampType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.TimestamptzType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.TimestampNsType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.TimestamptzNsType: lambda data_type: _pack_integer(_INT64, data_type),
    ft.FloatType: lambda data_type: _pack_floating(_FLOAT32, data_type),
    ft.DoubleType: lambda data_type: _pack_floating(_FLOAT64, data_type),
    ft.DecimalType: lambda data_type: lambda value: _encode_decimal(value, data_type),
    ft.StringType: lambda data_type: lambda value: _encode_string(value, data_type),
    ft.UuidType: lambda data_type: lambda value: _encode_uuid(value, data_type),
    ft.FixedType: lambda data_type: lambda value: _encode_bytes(value, data_type),
    ft.BinaryType: lambda data_type: lambda value: _encode_bytes(value, data_type),
    ft.GeometryType: lambda data_type: lambda value: _encode_bytes(value, data_type),
    ft.GeographyType: lambda data_type: lambda value: _encode_bytes(value, data_type),
}


# --- decoding


def _corrupt(data: bytes, data_type: ft.Type, reason: str) -> InvalidManifestError:
    excerpt = data[:24].hex() + ("..." if len(data) > 24 else "")
    return InvalidManifestError(f"Cannot decode 0x{excerpt} as {data_type}: {reason}", heading=HEADING)


def _wrong_length(data: bytes, data_type: ft.Type, expected: str) -> InvalidManifestError:
    return _corrupt(data, data_type, f"expected {expected} bytes, found {len(data)}")


def _unpack(packer: struct.Struct, data_type: ft.Type) -> Decoder:
    size, unpack = packer.size, packer.unpack

    def decode(data: bytes) -> Any:
        if len(data) != size:
            raise _wrong_length(data, data_type, str(size))
        return unpack(data)[0]

    return decode


def _unpack_promoted(packer: struct.Struct, older: struct.Struct, data_type: ft.Type, factor: int = 1) -> Decoder:
    """Return a decoder of 8 bytes of the type, or 4 bytes of the type it was promoted from, times a factor."""

    def decode(data: bytes) -> Any:
        if len(data) == 8:
            return packer.unpack(data)[0]
        if len(data) != 4:
            raise _wrong_length(data, data_type, "8 (or 4, from before a promotion)")
        value = older.unpack(data)[0]
        if factor == 1:
            return value
        promoted = value * factor
        if not ft.LongType.MIN <= promoted <= ft.LongType.MAX:
            raise _corrupt(data, data_type, f"the date {iso8601.format_date(value)} is out of its range")
        return promoted

    return decode


def _decode_boolean(data: bytes, data_type: ft.Type) -> bool:
    if len(data) != 1:
        raise _wrong_length(data, data_type, "1")
    return data[0] != 0


def _decode_string(data: bytes, data_type: ft.Type) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise _corrupt(data, data_type, f"the bytes are not UTF-8 at offset {error.start}") from None


def _decode_uuid(data: bytes, data_type: ft.Type) -> uuid.UUID:
    if len(data) != 16:
        raise _wrong_length(data, data_type, "16")
    return uuid.UUID(bytes=bytes(data))


def _decode_fixed(data: bytes, data_type: ft.FixedType) -> bytes:
    if len(data) != data_type.length:
        raise _wrong_length(data, data_type, str(data_type.length))
    return bytes(data)


def _decode_fixed_bound(data: bytes, data_type: ft.FixedType) -> bytes:
    if len(data) > data_type.length:
        raise _wrong_length(data, data_type, f"at most {data_type.length}")
    return bytes(data)


def _decode_decimal(data: bytes, data_type: ft.DecimalType) -> Decimal:
    if len(data) == 0:
        raise _wrong_length(data, data_type, "at least 1")
    unscaled = int.from_bytes(data, "big", signed=True)
    if not fits_precision(unscaled, data_type.precision):
        raise _corrupt(data, data_type, f"the value has more than {data_type.precision} digits")
    return decimal_of(unscaled, data_type.scale)


_DECODERS: dict[type[ft.Type], Callable[[Any], Decoder]] = {
    ft.BooleanType: lambda data_type: lambda data: _decode_boolean(data, data_type),
    ft.IntType: lambda data_type: _unpack(_INT32, data_type),
    ft.DateType: lambda data_type: _unpack(_INT32, data_type),
    ft.LongType: lambda data_type: _unpack_promoted(_INT64, _INT32, data_type),
    ft.TimeType: lambda data_type: _unpack(_INT64, data_type),
    ft.TimestampType: lambda data_type: _unpack_promoted(_INT64, _INT32, data_type, iso8601.MICROS_PER_DAY),
    ft.TimestamptzType: lambda data_type: _unpack(_INT64, data_type),
    ft.TimestampNsType: lambda data_type: _unpack_promoted(_INT64, _INT32, data_type, iso8601.NANOS_PER_DAY),
    ft.TimestamptzNsType: lambda data_type: _unpack(_INT64, data_type),
    ft.FloatType: lambda data_type: _unpack(_FLOAT32, data_type),
    ft.DoubleType: lambda data_type: _unpack_promoted(_FLOAT64, _FLOAT32, data_type),
    ft.DecimalType: lambda data_type: lambda data: _decode_decimal(data, data_type),
    ft.StringType: lambda data_type: lambda data: _decode_string(data, data_type),
    ft.UuidType: lambda data_type: lambda data: _decode_uuid(data, data_type),
    ft.FixedType: lambda data_type: lambda data: _decode_fixed(data, data_type),
    ft.BinaryType: lambda data_type: bytes,
    ft.GeometryType: lambda data_type: bytes,
    ft.GeographyType: lambda data_type: bytes,
}
