"""LZ4 frames of a known content size. Specification: Puffin file format, "Compression codecs".

Puffin compresses with a single LZ4 frame whose header states the size of the content. The LZ4 library in
Arrow writes frames without that size, so this module assembles frames from its blocks:

    magic 04 22 4D 18 | FLG | BD | content size, 8 bytes | header checksum | blocks | end mark, 4 zero bytes

Reading checks the header and walks the blocks before anything is decompressed: the size is stated and
within the limit, the ratio is possible for LZ4, and nothing follows the frame. The library then decompresses the
bytes and verifies the frame's checksums.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from frazil.errors import InvalidPuffinError

HEADING = "Compression codecs"

_MAGIC = b"\x04\x22\x4d\x18"
_VERSION = 0x40
_INDEPENDENT_BLOCKS = 0x20
_BLOCK_CHECKSUMS = 0x10
_CONTENT_SIZE = 0x08
_CONTENT_CHECKSUM = 0x04
_RESERVED_FLAG = 0x02
_DICTIONARY = 0x01
_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LARGEST_BLOCK = 7
_STORED = 0x80000000
_HEADER_LENGTH = 15
_MAX_RATIO = 256
"""An LZ4 sequence expands each of its bytes to at most 255."""


def encode_lz4_frame(data: bytes) -> bytes:
    """Compress bytes as one LZ4 frame that states their size."""
    descriptor = struct.pack("<BBQ", _VERSION | _INDEPENDENT_BLOCKS | _CONTENT_SIZE, _LARGEST_BLOCK << 4, len(data))
    parts = [_MAGIC, descriptor, bytes([_header_checksum(descriptor)])]
    codec = pa.Codec("lz4_raw")
    step = _BLOCK_SIZES[_LARGEST_BLOCK]
    for start in range(0, len(data), step):
        block = data[start : start + step]
        packed = codec.compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += [struct.pack("<I", len(packed)), packed]
        else:
            parts += [struct.pack("<I", len(block) | _STORED), block]
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def decode_lz4_frame(data: bytes, *, max_bytes: int) -> bytes:
    """Decompress one LZ4 frame, refusing content of more than `max_bytes`."""
    size = _check_frame(data)
    if size > max_bytes:
        raise InvalidPuffinError(
            f"Cannot decompress LZ4 data: the content of {size} bytes is above the limit of {max_bytes}",
            heading=HEADING,
        )
    if size > len(data) * _MAX_RATIO:
        raise _corrupt(f"{len(data)} bytes cannot hold the stated content of {size} bytes")
    try:
        # A stream returns no more than was decompressed; one extra byte reveals excess content.
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream:
            content = stream.read(size + 1)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(str(error)) from error
    if len(content) != size:
        raise _corrupt(f"the content has {len(content)} bytes or more, and {size} are stated")
    return bytes(content)


def _check_frame(data: bytes) -> int:
    """Check a frame's header and the layout of its blocks, and return the stated content size."""
    if data[:4] != _MAGIC:
        raise _corrupt("it does not start with the magic of an LZ4 frame")
    if len(data) < _HEADER_LENGTH:
        raise _corrupt(f"the frame is cut off after {len(data)} bytes")
    flags, block_descriptor, size, checksum = struct.unpack_from("<BBQB", data, 4)
    if flags & 0xC0 != _VERSION or flags & _RESERVED_FLAG:
        raise _corrupt(f"the frame flags {flags:#04x} belong to an unsupported version")
    if not flags & _CONTENT_SIZE:
        raise _corrupt("the frame does not state its content size")
    if flags & _DICTIONARY:
        raise _corrupt("the frame needs a dictionary")
    block_limit = _BLOCK_SIZES.get(block_descriptor >> 4)
    if block_limit is None or block_descriptor & 0x8F:
        raise _corrupt(f"the block descriptor {block_descriptor:#04x} is not supported")
    if checksum != _header_checksum(data[4:14]):
        raise _corrupt("the checksum of the frame header does not match")
    offset = _HEADER_LENGTH
    trailer = 4 if flags & _BLOCK_CHECKSUMS else 0
    while True:
        if offset + 4 > len(data):
            raise _corrupt("the frame is cut off before its end mark")
        (stored,) = struct.unpack_from("<I", data, offset)
        offset += 4
        if stored == 0:
            break
        length = stored & ~_STORED
        if length > block_limit:
            raise _corrupt(f"a block of {length} bytes is above the frame's limit of {block_limit}")
        offset += length + trailer
    offset += 4 if flags & _CONTENT_CHECKSUM else 0
    if offset != len(data):
        raise _corrupt(f"the frame ends at byte {offset} of {len(data)}")
    return int(size)


def _corrupt(reason: str) -> InvalidPuffinError:
    return InvalidPuffinError(f"Cannot decompress LZ4 data: {reason}", heading=HEADING)


def _header_checksum(descriptor: bytes) -> int:
    return (_xxh32_short(descriptor) >> 8) & 0xFF


_PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2246822519, 3266489917, 668265263, 374761393
_PRIME_1 = 2654435761
_MASK = 0xFFFFFFFF


def _xxh32_short(data: bytes) -> int:
    """Return the 32-bit xxHash, with seed 0, of fewer than 16 bytes, the most that a frame header has."""
    value = (_PRIME_5 + len(data)) & _MASK
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        value = (_rotated((value + word * _PRIME_3) & _MASK, 17) * _PRIME_4) & _MASK
    for byte in data[whole:]:
        value = (_rotated((value + byte * _PRIME_5) & _MASK, 11) * _PRIME_1) & _MASK
    value = ((value ^ (value >> 15)) * _PRIME_2) & _MASK
    value = ((value ^ (value >> 13)) * _PRIME_3) & _MASK
    return value ^ (value >> 16)


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK
