"""The stripes of an ORC file with their offsets and rows: the part of its footer that pyarrow does not expose.

The footer is a Protocol Buffers message; only these fields are read, by number:

    FileTail           2 footer
    Footer             3 stripes (repeated), 6 number of rows
    StripeInformation  1 offset, 5 number of rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.codec.varint import BadVarint, read_varint
from frazil.datafile.bad_bytes import BadBytes

_FOOTER, _STRIPES, _ROWS = 2, 3, 6
_STRIPE_OFFSET, _STRIPE_ROWS = 1, 5
_MAX_STRIPES = 1 << 20


@dataclass(frozen=True, slots=True)
class Stripe:
    """One stripe, with its offset and number of rows."""

    offset: int
    rows: int


def decode_stripes(tail: bytes) -> list[Stripe]:
    """Decode the stripes of a file from its tail as returned by pyarrow."""
    try:
        return _stripes(tail)
    except (IndexError, BadVarint):
        raise BadBytes("its footer is truncated") from None


def _stripes(tail: bytes) -> list[Stripe]:
    stripes: list[Stripe] = []
    total = None
    for number, value in _fields(tail):
        if number != _FOOTER or not isinstance(value, bytes):
            continue
        for inner, inner_value in _fields(value):
            if inner == _STRIPES and isinstance(inner_value, bytes):
                stripes.append(_decode_stripe(inner_value))
                if len(stripes) > _MAX_STRIPES:
                    raise BadBytes(f"it has more than {_MAX_STRIPES} stripes")
            elif inner == _ROWS and isinstance(inner_value, int):
                total = inner_value
    if total is not None and sum(stripe.rows for stripe in stripes) != total:
        raise BadBytes(f"its stripes have {sum(stripe.rows for stripe in stripes)} rows, but its footer says {total}")
    return stripes


def _decode_stripe(data: bytes) -> Stripe:
    fields = {number: value for number, value in _fields(data) if isinstance(value, int)}
    return Stripe(fields.get(_STRIPE_OFFSET, 0), fields.get(_STRIPE_ROWS, 0))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message by number: varints as ints, length-delimited fields as bytes."""
    offset, end = 0, len(data)
    while offset < end:
        key, offset = read_varint(data, offset, end)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, offset = read_varint(data, offset, end)
            yield number, value
        elif wire == 2:
            length, offset = read_varint(data, offset, end)
            if offset + length > end:
                raise IndexError
            yield number, data[offset : offset + length]
            offset += length
        elif wire in (1, 5):
            offset += 8 if wire == 1 else 4
        else:
            raise BadBytes(f"its footer has a field of wire type {wire}")
