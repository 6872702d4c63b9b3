"""Variable-length integers with seven bits per byte, as in Avro, Thrift and Protocol Buffers.

Signed integers are zigzag-encoded: 0, -1, 1, -2 are 0, 1, 2, 3. Loops over the rows of a manifest and the fields of a
Parquet footer decode them inline (`avro_rows.py`, `datafile/thrift_compact.py`) to avoid a call for each.
"""

from __future__ import annotations


class BadVarint(ValueError):
    """A number of more than 64 bits, or a negative length."""


def read_varint(data: bytes, offset: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at an offset and the offset after it; raise IndexError if it ends past `end`."""
    value = shift = 0
    while True:
        if offset >= end:
            raise IndexError
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
        if shift > 63:
            raise BadVarint("a number has more than 64 bits")


def read_zigzag(data: bytes, offset: int, end: int) -> tuple[int, int]:
    """Return the signed number at an offset and the offset after it; raise IndexError if it ends past `end`."""
    value, offset = read_varint(data, offset, end)
    return (value >> 1) ^ -(value & 1), offset


def encode_varint(value: int) -> bytes:
    """Encode an unsigned number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Encode a signed number of at most 64 bits."""
    return encode_varint((value << 1) ^ (value >> 63))
