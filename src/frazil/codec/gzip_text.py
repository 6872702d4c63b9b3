"""Gzip compression of JSON files, with limits. Specification: "Naming for GZIP compressed Metadata JSON files".

A file is recognised by its first bytes, not by its name: writers use `.gz.metadata.json`, older ones
`.metadata.json.gz`, and a copied file may have lost either. The expanded size is limited both absolutely and relative
to the file size, since every byte of a bomb costs several once it is parsed.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Final

from frazil.errors import CorruptTableError, InvalidMetadataError

GZIP_MAGIC: Final = b"\x1f\x8b"
MAX_TEXT_BYTES: Final = 1 << 30
"""The default limit on the size of a text."""
MAX_RATIO: Final = 100
"""The largest ratio of text to file size; metadata compresses about ten times, at most thirty."""
RATIO_FREE_BYTES: Final = 16 << 20
"""The size up to which the ratio does not matter: a few kilobytes may well be very repetitive."""

_PIECE = 1 << 14
_CHUNK = 1 << 20
_HEADER = GZIP_MAGIC + bytes([8, 0, 0, 0, 0, 0, 0, 255])


def is_gzip(data: bytes) -> bool:
    """Return whether bytes start with the gzip magic."""
    return data.startswith(GZIP_MAGIC)


def gzip_text(text: bytes) -> bytes:
    """Compress a text reproducibly, without a time, a file name or a system in the header."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = packer.compress(text) + packer.flush()
    return _HEADER + body + struct.pack("<II", zlib.crc32(text), len(text) & 0xFFFFFFFF)


def gunzip_text(
    data: bytes,
    *,
    max_bytes: int = MAX_TEXT_BYTES,
    heading: str,
    error: type[CorruptTableError] = InvalidMetadataError,
) -> bytes:
    """Decompress a gzip file, including all members if there are several."""
    limit = min(max_bytes, max(RATIO_FREE_BYTES, MAX_RATIO * len(data)))
    view = memoryview(data)
    text = io.BytesIO()
    start = 0
    while start < len(data):
        if data[start : start + len(GZIP_MAGIC)] != GZIP_MAGIC:
            raise error(
                f"Cannot decompress the file: {len(data) - start} bytes follow the compressed text", heading=heading
            )
        try:
            start = _unpack_member(view, start, text, limit)
        except zlib.error as problem:
            raise error(f"Cannot decompress the file: {problem}", heading=heading) from problem
        if text.tell() > limit:
            raise error(
                f"Cannot decompress the file: its {len(data)} bytes expand to more than {limit}",
                hint="If the file is sound, allow larger ones with max_bytes." if limit == max_bytes else None,
                heading=heading,
            )
    return text.getvalue()


def _unpack_member(data: memoryview, start: int, text: io.BytesIO, limit: int) -> int:
    """Append one member's text and return where the member ends; stop once the text exceeds the limit.

    The input is fed in small pieces, since zlib copies the unconsumed rest of a piece each time.
    """
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    while not unpacker.eof:
        piece = data[start : start + _PIECE]
        if not piece:
            raise zlib.error("it ends in the middle")
        start += len(piece)
        pending: bytes | memoryview = piece
        while pending and not unpacker.eof:
            text.write(unpacker.decompress(pending, _CHUNK))
            if text.tell() > limit:
                return start
            pending = unpacker.unconsumed_tail
    return start - len(unpacker.unused_data)
