"""Binary variants. Specification: "Semi-structured Types", and the Variant encoding of Parquet, version 1.

A variant is stored as two byte strings: the metadata, a dictionary of object field names, and the value.
Data files store them as the two fields of a group, bounds in manifests one after the other.

    metadata   version, flags | count | count + 1 offsets | names                    offsets of 1 to 4 bytes
    primitive  type           | its bytes
    string     length         | UTF-8                                                below 64 bytes
    object     sizes          | count | ids of names | count + 1 offsets | values     in order of names
    array      sizes          | count | count + 1 offsets | values

Every count, offset and length is checked against the available bytes before use. Nesting is limited, and so is the
number of values relative to the bytes: fields of an object may share one stored value, so without that limit a few
hundred bytes could expand without end.

Names of an object must be unique and sorted. The specification sorts by UTF-8 bytes; the order of UTF-16 code units,
which Iceberg Java writes and which differs only for names with characters beyond the first 65,536, is accepted too.
Types that are added to the encoding later are refused as unsupported.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from frazil.errors import CorruptTableError, InvalidDataFileError, InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.variant import (
    DECIMAL_DIGITS,
    HEADING,
    INTEGER_BITS,
    MAX_SCALE,
    MAX_VARIANT_DEPTH,
    VARIANT_NULL,
    VariantKind,
    VariantValue,
    decimal_parts,
)

EMPTY_METADATA = b"\x01\x00\x00"
"""The metadata of a value without object fields."""

_VERSION = 1
_SORTED = 0x10
_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)
_TRUE, _FALSE = 1, 2
_MAX_SHORT_STRING = 63
_SPARE_VALUES = 1024
_VALUES_PER_BYTE = 16

_KINDS_BY_ID: dict[int, VariantKind] = {
    0: VariantKind.NULL,
    _TRUE: VariantKind.BOOLEAN,
    _FALSE: VariantKind.BOOLEAN,
    3: VariantKind.INT8,
    4: VariantKind.INT16,
    5: VariantKind.INT32,
    6: VariantKind.INT64,
    7: VariantKind.DOUBLE,
    8: VariantKind.DECIMAL4,
    9: VariantKind.DECIMAL8,
    10: VariantKind.DECIMAL16,
    11: VariantKind.DATE,
    12: VariantKind.TIMESTAMPTZ,
    13: VariantKind.TIMESTAMP,
    14: VariantKind.FLOAT,
    15: VariantKind.BINARY,
    16: VariantKind.STRING,
    17: VariantKind.TIME,
    18: VariantKind.TIMESTAMPTZ_NS,
    19: VariantKind.TIMESTAMP_NS,
    20: VariantKind.UUID,
}
_IDS_BY_KIND = {kind: number for number, kind in _KINDS_BY_ID.items()}

_FIXED_SIZES = {
    VariantKind.NULL: 0,
    VariantKind.BOOLEAN: 0,
    **{key: bits // 8 for key, bits in INTEGER_BITS.items()},
    VariantKind.FLOAT: 4,
    VariantKind.DOUBLE: 8,
    VariantKind.DECIMAL4: 5,
    VariantKind.DECIMAL8: 9,
    VariantKind.DECIMAL16: 17,
    VariantKind.UUID: 16,
}


def decode_metadata(
    data: bytes, start: int = 0, *, error: type[CorruptTableError] = InvalidDataFileError
) -> tuple[tuple[str, ...], int]:
    """Return the names in a variant's metadata, and the offset of the byte after it."""
    if start >= len(data):
        raise _corrupt(error, "the metadata is empty")
    header = data[start]
    if header & 0x0F != _VERSION:
        raise UnsupportedError(
            f"Cannot read the variant: version {header & 0x0F} of the encoding is not known", heading=HEADING
        )
    size = (header >> 6) + 1
    offset = start + 1
    if offset + size > len(data):
        raise _corrupt(error, "the metadata is cut off")
    count = int.from_bytes(data[offset : offset + size], "little")
    offset += size
    bytes_start = offset + (count + 1) * size
    if bytes_start > len(data):
        raise _corrupt(error, f"the metadata of {len(data) - start} bytes cannot hold {count} names")
    offsets = _read_uints(data, offset, size, count + 1)
    end = bytes_start + offsets[-1]
    if offsets[0] != 0 or end > len(data):
        raise _corrupt(error, f"the names of the metadata lie from {offsets[0]} to {offsets[-1]}, outside its bytes")
    names = []
    for low, high in pairwise(offsets):
        if high < low:
            raise _corrupt(error, f"a name of the metadata ends at {high}, before its start at {low}")
        names.append(_decode_text(data[bytes_start + low : bytes_start + high], error))
    if header & _SORTED and not _is_ordered(names):
        raise _corrupt(error, "the names of the metadata are not sorted and unique, as its header says")
    return tuple(names), end


def decode_value(
    names: tuple[str, ...], data: bytes, *, error: type[CorruptTableError] = InvalidDataFileError
) -> VariantValue:
    """Decode a variant's value, using the names of its metadata; all bytes must be used up."""
    decoder = _Decoder(names, data, error)
    value, end = decoder.decode(0, len(data), 0)
    if end != len(data):
        raise _corrupt(error, f"{len(data) - end} bytes follow the value")
    return value


class _Decoder:
    """A decoder of one value, with the state that all of its parts share."""

    def __init__(self, names: tuple[str, ...], data: bytes, error: type[CorruptTableError]) -> None:
        self._names = names
        self._data = data
        self._error = error
        self._left = _SPARE_VALUES + _VALUES_PER_BYTE * len(data)

    def decode(self, offset: int, limit: int, depth: int) -> tuple[VariantValue, int]:
        """Return the value at an offset, which must end by `limit`, and its end."""
        if offset >= limit:
            raise self._corrupt("a value has no bytes")
        self._left -= 1
        if self._left < 0:
            raise self._corrupt("its shared parts expand to far more values than it has bytes")
        if depth > MAX_VARIANT_DEPTH:
            raise UnsupportedError(
                f"Cannot read the variant: it is nested deeper than {MAX_VARIANT_DEPTH} levels", heading=HEADING
            )
        basic_type, header = self._data[offset] & 0x3, self._data[offset] >> 2
        if basic_type == _PRIMITIVE:
            return self._primitive(header, offset + 1, limit)
        if basic_type == _SHORT_STRING:
            return self._text(offset + 1, header, limit), offset + 1 + header
        if basic_type == _OBJECT:
            return self._object(header, offset + 1, limit, depth)
        return self._array(header, offset + 1, limit, depth)

    def _primitive(self, number: int, offset: int, limit: int) -> tuple[VariantValue, int]:
        kind = _KINDS_BY_ID.get(number)
        if kind is None:
            raise UnsupportedError(
                f"Cannot read the variant: its primitive type {number} is not known", heading=HEADING
            )
        if kind is VariantKind.STRING or kind is VariantKind.BINARY:
            size = self._uint(offset, 4, limit)
            start = offset + 4
            if kind is VariantKind.STRING:
                return self._text(start, size, limit), start + size
            return VariantValue(kind, self._slice(start, size, limit)), start + size
        size = _FIXED_SIZES[kind]
        payload = self._slice(offset, size, limit)
        if kind is VariantKind.NULL:
            return VARIANT_NULL, offset
        if kind is VariantKind.BOOLEAN:
            return VariantValue(kind, number == _TRUE), offset
        if kind in DECIMAL_DIGITS:
            return VariantValue(kind, self._decimal(kind, payload)), offset + size
        return VariantValue(kind, _FIXED_DECODERS[kind](payload)), offset + size

    def _decimal(self, kind: VariantKind, payload: bytes) -> Decimal:
        scale, unscaled = payload[0], int.from_bytes(payload[1:], "little", signed=True)
        if scale > MAX_SCALE:
            raise self._corrupt(f"a decimal has the scale {scale}, above {MAX_SCALE}")
        if abs(unscaled) >= 10 ** DECIMAL_DIGITS[kind]:
            raise self._corrupt(f"a {kind} has more than {DECIMAL_DIGITS[kind]} digits")
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    def _object(self, header: int, position: int, limit: int, depth: int) -> tuple[VariantValue, int]:
        offset_size, id_size = (header & 0x3) + 1, ((header >> 2) & 0x3) + 1
        count_size = 4 if header & 0x10 else 1
        count = self._uint(position, count_size, limit)
        ids_at = position + count_size
        offsets_at = ids_at + count * id_size
        values_at = offsets_at + (count + 1) * offset_size
        if values_at > limit:
            raise self._corrupt(f"an object of {count} fields does not fit its {limit - position} bytes")
        ids = _read_uints(self._data, ids_at, id_size, count)
        offsets = _read_uints(self._data, offsets_at, offset_size, count + 1)
        length = offsets.pop()
        end = self._values_end(values_at, length, limit, offsets)
        if ids and max(ids) >= len(self._names):
            raise self._corrupt(f"the field id {max(ids)} is not in a dictionary of {len(self._names)} names")
        names = [self._names[number] for number in ids]
        if not _is_ordered(names):
            raise self._corrupt("the fields of an object are not unique and in order of their names")
        ends = _ends_by_offset(offsets, length)
        parts = {}
        for name, offset in zip(names, offsets, strict=True):
            parts[name], _ = self.decode(values_at + offset, values_at + ends[offset], depth + 1)
        return VariantValue(VariantKind.OBJECT, FrozenMap(parts)), end

    def _array(self, header: int, offset: int, limit: int, depth: int) -> tuple[VariantValue, int]:
        offset_size = (header & 0x3) + 1
        count_size = 4 if header & 0x4 else 1
        count = self._uint(offset, count_size, limit)
        offsets_at = offset + count_size
        values_at = offsets_at + (count + 1) * offset_size
        if values_at > limit:
            raise self._corrupt(f"an array of {count} values does not fit its {limit - offset} bytes")
        offsets = _read_uints(self._data, offsets_at, offset_size, count + 1)
        end = self._values_end(values_at, offsets[-1], limit, offsets)
        parts = []
        for low, high in pairwise(offsets):
            variant_value, _ = self.decode(values_at + low, values_at + high, depth + 1)
            parts.append(variant_value)
        return VariantValue(VariantKind.ARRAY, tuple(parts)), end

    def _values_end(self, values_at: int, length: int, limit: int, offsets: list[int]) -> int:
        if values_at + length > limit:
            raise self._corrupt(f"values of {length} bytes end outside the {limit - values_at} available bytes")
        if offsets and max(offsets) > length:
            raise self._corrupt(f"a value starts at {max(offsets)}, outside the {length} bytes of values")
        return values_at + length

    def _uint(self, offset: int, size: int, limit: int) -> int:
        return int.from_bytes(self._slice(offset, size, limit), "little")

    def _slice(self, offset: int, size: int, limit: int) -> bytes:
        if offset + size > limit:
            raise self._corrupt(f"a value needs {size} bytes where {max(limit - offset, 0)} are left")
        return self._data[offset : offset + size]

    def _text(self, offset: int, size: int, limit: int) -> VariantValue:
        return VariantValue(VariantKind.STRING, _decode_text(self._slice(offset, size, limit), self._error))

    def _corrupt(self, reason: str) -> CorruptTableError:
        return _corrupt(self._error, reason)


def encode_variant(value: VariantValue) -> tuple[bytes, bytes]:
    """Encode a variant as metadata and value, with a sorted dictionary of its names."""
    names = sorted(set(_walk_names(value)), key=_encode_text)
    ids = {name: number for number, name in enumerate(names)}
    return encode_metadata(names), _encode_value(value, ids, 0)


def encode_metadata(names: list[str]) -> bytes:
    """Encode names as metadata, marked as sorted if they are."""
    if not names:
        return EMPTY_METADATA
    encoded = [_encode_text(name) for name in names]
    offsets = _offsets(encoded)
    size = _uint_size(max(offsets[-1], len(names)))
    is_sorted = all(low < high for low, high in pairwise(encoded))
    header = _VERSION | (_SORTED if is_sorted else 0) | (size - 1) << 6
    return b"".join((bytes([header]), len(names).to_bytes(size, "little"), _write_uints(offsets, size), *encoded))


def _walk_names(value: VariantValue) -> Iterator[str]:
    stack = [(value, 0)]
    while stack:
        variant_value, depth = stack.pop()
        if depth > MAX_VARIANT_DEPTH:
            raise InvalidRequestError(
                f"Cannot write the variant: it is nested deeper than {MAX_VARIANT_DEPTH} levels", heading=HEADING
            )
        if variant_value.kind is VariantKind.OBJECT:
            yield from variant_value.value
            stack += [(child, depth + 1) for child in variant_value.value.values()]
        elif variant_value.kind is VariantKind.ARRAY:
            stack += [(child, depth + 1) for child in variant_value.value]


def _encode_value(value: VariantValue, ids: Mapping[str, int], depth: int) -> bytes:
    kind = value.kind
    if kind is VariantKind.OBJECT:
        return _encode_object(value.value, ids, depth)
    if kind is VariantKind.ARRAY:
        return _encode_array(value.value, ids, depth)
    if kind is VariantKind.STRING:
        text = _encode_text(value.value)
        if len(text) <= _MAX_SHORT_STRING:
            return bytes([len(text) << 2 | _SHORT_STRING]) + text
        return _primitive_header(kind) + _uint32(len(text)) + text
    if kind is VariantKind.BINARY:
        return _primitive_header(kind) + _uint32(len(value.value)) + bytes(value.value)
    if kind is VariantKind.BOOLEAN:
        return bytes([(_TRUE if value.value else _FALSE) << 2])
    if kind in DECIMAL_DIGITS:
        unscaled, scale = decimal_parts(value.value)
        size = _FIXED_SIZES[kind] - 1
        return _primitive_header(kind) + bytes([scale]) + unscaled.to_bytes(size, "little", signed=True)
    if kind in INTEGER_BITS:
        number: int = value.value
        return _primitive_header(kind) + number.to_bytes(_FIXED_SIZES[kind], "little", signed=True)
    return _primitive_header(kind) + _FIXED_ENCODERS[kind](value.value)


def _encode_object(parts: Mapping[str, VariantValue], ids: Mapping[str, int], depth: int) -> bytes:
    # Ids are in the order of names because the dictionary is sorted.
    fields = sorted(((ids[name], variant_value) for name, variant_value in parts.items()), key=lambda field: field[0])
    values = [_encode_value(variant_value, ids, depth + 1) for _, variant_value in fields]
    offsets = _offsets(values)
    offset_size, id_size = _uint_size(offsets[-1]), _uint_size(len(ids))
    is_large = len(fields) > 0xFF
    header = _OBJECT | (offset_size - 1) << 2 | (id_size - 1) << 4 | is_large << 6
    return b"".join(
        (
            bytes([header]),
            len(fields).to_bytes(4 if is_large else 1, "little"),
            _write_uints([number for number, _ in fields], id_size),
            _write_uints(offsets, offset_size),
            *values,
        )
    )


def _encode_array(parts: tuple[VariantValue, ...], ids: Mapping[str, int], depth: int) -> bytes:
    values = [_encode_value(variant_value, ids, depth + 1) for variant_value in parts]
    offsets = _offsets(values)
    offset_size = _uint_size(offsets[-1])
    is_large = len(values) > 0xFF
    header = _ARRAY | (offset_size - 1) << 2 | is_large << 4
    count = len(values).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes([header]), count, _write_uints(offsets, offset_size), *values))


def _primitive_header(kind: VariantKind) -> bytes:
    return bytes([_IDS_BY_KIND[kind] << 2])


def _offsets(parts: list[bytes]) -> list[int]:
    offsets = [0]
    for encoded in parts:
        offsets.append(offsets[-1] + len(encoded))
    if offsets[-1] > 0xFFFFFFFF:
        raise InvalidRequestError(f"Cannot write the variant: {offsets[-1]} bytes are too many", heading=HEADING)
    return offsets


def _uint_size(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _uint32(value: int) -> bytes:
    if value > 0x7FFFFFFF:
        raise InvalidRequestError(f"Cannot write the variant: {value} bytes are too many", heading=HEADING)
    return struct.pack("<I", value)


def _write_uints(values: list[int], size: int) -> bytes:
    return b"".join(value.to_bytes(size, "little") for value in values)


def _read_uints(data: bytes, offset: int, size: int, count: int) -> list[int]:
    return [
        int.from_bytes(data[index : index + size], "little") for index in range(offset, offset + size * count, size)
    ]


def _ends_by_offset(offsets: list[int], length: int) -> dict[int, int]:
    """Return the end of the value at each offset: the next larger offset, or the end of all values."""
    ordered = sorted(set(offsets))
    return dict(zip(ordered, [*ordered[1:], length], strict=True)) if ordered else {}


def _is_ordered(names: list[str]) -> bool:
    """Return whether names are unique and ascend, by code points (as in UTF-8) or by UTF-16 code units."""
    if all(low < high for low, high in pairwise(names)):
        return True
    units = [name.encode("utf-16-be") for name in names]
    return all(low < high for low, high in pairwise(units))


def _decode_text(data: bytes, error: type[CorruptTableError]) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise _corrupt(error, "a string is not UTF-8") from cause


def _encode_text(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as cause:
        raise InvalidRequestError(
            f"Cannot write the variant: {text[:40]!r} has no UTF-8 form", heading=HEADING
        ) from cause


def _corrupt(error: type[CorruptTableError], reason: str) -> CorruptTableError:
    return error(f"Cannot read the variant: {reason}", heading=HEADING)


_FIXED_DECODERS: dict[VariantKind, Callable[[bytes], Any]] = {
    **{bits: lambda payload: int.from_bytes(payload, "little", signed=True) for bits in INTEGER_BITS},
    VariantKind.FLOAT: lambda payload: struct.unpack("<f", payload)[0],
    VariantKind.DOUBLE: lambda payload: struct.unpack("<d", payload)[0],
    VariantKind.UUID: lambda payload: uuid.UUID(bytes=payload),
}

_FIXED_ENCODERS: dict[VariantKind, Callable[[Any], bytes]] = {
    VariantKind.NULL: lambda value: b"",
    VariantKind.FLOAT: lambda value: struct.pack("<f", value),
    VariantKind.DOUBLE: lambda value: struct.pack("<d", value),
    VariantKind.UUID: lambda value: value.bytes,
}
