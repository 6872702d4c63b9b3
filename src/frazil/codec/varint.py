"""Integers of as many bytes as they need, seven bits in each: Avro, Thrift and Protocol Buffers have them.

With a sign they are zigzag: 0, -1, 1, -2 are 0, 1, 2, 3. Loops over the rows of a manifest and over the fields of a
Parquet footer read them in place (`avro_rows.py`, `datafile/thrift_compact.py`), since a call for each would cost more.
"""

from __future__ import annotations


class BadVarint(ValueError):
    """A number of more than 64 bits, or a negative length."""


def read_varint(data: bytes, offset: int, end: int) -> tuple[int, int]:
    """Return the number without a sign at an offset, and the offset after it; IndexError where it ends past `end`."""
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
    """Return the number with a sign at an offset, and the offset after it; IndexError where it ends past `end`."""
    value, offset = read_varint(data, offset, end)
    return (value >> 1) ^ -(value & 1), offset


def encode_varint(value: int) -> bytes:
    """Return a number without a sign."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_zigzag(value: int) -> bytes:
    """Return a number of at most 64 bits with its sign."""
    return encode_varint((value << 1) ^ (value >> 63))
