"""Compression of Avro blocks, with a limit on the inflated size. Avro specification: "Object Container Files".

Blocks come from untrusted files, so no length is trusted: output stops at the caller's limit, and frames that
announce more are refused before memory is allocated.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import zstandard

from frazil.errors import InvalidPropertyError
from frazil.spec.frozen_map import FrozenMap

inflater: Any = zlib
try:
    # Up to 45 % faster; not every platform has a wheel.
    from isal import isal_zlib
except ImportError:
    pass
else:
    inflater = isal_zlib

_REFUSED: tuple[type[Exception], ...] = (
    zlib.error,
    inflater.error,
    zstandard.ZstdError,
    lzma.LZMAError,
    pa.ArrowException,
    OSError,
    EOFError,
    ValueError,
)
_RAW_DEFLATE = -15
_SLICE = 512
_MAX_WINDOW = 1 << 27
"""The largest window that a zstd frame or xz stream may request: the limit of their default settings."""

ZLIB_REMAINDER = 4
"""Bytes allowed after a deflate stream: some writers strip the zlib wrapper but leave part of its checksum.

isal reads up to six bytes ahead without reporting them, so with it five and six bytes pass too.
"""


class CodecRefusal(Exception):
    """A block that does not inflate, or exceeds the limit; the container adds the block's position."""


def decompress_block(codec: str, data: bytes | memoryview, limit: int) -> bytes:
    """Return a block's content, or raise `CodecRefusal`; `codec` must be one of `AVRO_CODECS`."""
    if codec == "null":
        if len(data) > limit:
            raise _too_large(limit)
        return bytes(data)
    try:
        if codec == "deflate":
            return _inflate(data, limit)
        return _DECOMPRESSORS[codec](bytes(data), limit)
    except _REFUSED as error:
        raise CodecRefusal(f"it is not valid {codec} data ({str(error)[:120]})") from error


def _too_large(limit: int) -> CodecRefusal:
    return CodecRefusal(f"it inflates to more than {limit} bytes")


def _inflate(data: bytes | memoryview, limit: int) -> bytes:
    stream = inflater.decompressobj(_RAW_DEFLATE)
    content: bytes = stream.decompress(data, limit + 1)
    if len(content) > limit:
        raise _too_large(limit)
    if not stream.eof:
        raise CodecRefusal("its deflate data is cut short")
    if len(stream.unused_data) > ZLIB_REMAINDER:
        raise CodecRefusal(f"{len(stream.unused_data)} bytes follow its deflate data")
    return content


def _unsnappy(data: bytes, limit: int) -> bytes:
    if len(data) < 5:
        raise CodecRefusal("its snappy data is cut short")
    body, checksum = data[:-4], int.from_bytes(data[-4:], "big")
    size = _snappy_length(body)
    if size > limit:
        raise _too_large(limit)
    content: bytes = pa.Codec("snappy").decompress(body, decompressed_size=size, asbytes=True)
    if zlib.crc32(content) != checksum:
        raise CodecRefusal("its snappy checksum does not match")
    return content


def _snappy_length(body: bytes) -> int:
    """Return the length at the head of raw snappy data: a varint of at most 32 bits."""
    length = 0
    for index, byte in enumerate(body[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    raise CodecRefusal("its snappy length is malformed")


def _unzstd(data: bytes, limit: int) -> bytes:
    announced = zstandard.frame_content_size(data)
    if announced > limit:
        raise _too_large(limit)
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    if announced > 0:
        # One pass into a buffer of the announced size; more data is an error.
        return decompressor.decompress(data, max_output_size=announced, allow_extra_data=False)
    # The frame does not say its size. A slice this short cannot inflate to more than 16 MiB, so checking
    # between slices bounds the memory.
    pieces: list[bytes] = []
    total = 0
    stream = decompressor.decompressobj()
    rest = memoryview(data)
    while rest:
        if stream.eof:
            stream = decompressor.decompressobj()
        piece = stream.decompress(bytes(rest[:_SLICE]))
        rest = rest[_SLICE:] if not stream.eof else rest[min(_SLICE, len(rest)) - len(stream.unused_data) :]
        total += len(piece)
        if total > limit:
            raise _too_large(limit)
        pieces.append(piece)
    if not stream.eof:
        raise CodecRefusal("its zstandard data is cut short")
    return b"".join(pieces)


def _finish(stream: Any, data: bytes, limit: int, name: str) -> bytes:
    content: bytes = stream.decompress(data, limit + 1)
    if len(content) > limit:
        raise _too_large(limit)
    if not stream.eof:
        raise CodecRefusal(f"its {name} data is cut short")
    if stream.unused_data:
        raise CodecRefusal(f"{len(stream.unused_data)} bytes follow its {name} data")
    return content


def _unbzip2(data: bytes, limit: int) -> bytes:
    return _finish(bz2.BZ2Decompressor(), data, limit, "bzip2")


def _unxz(data: bytes, limit: int) -> bytes:
    return _finish(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_WINDOW), data, limit, "xz")


_DECOMPRESSORS: Mapping[str, Callable[[bytes, int], bytes]] = FrozenMap(
    {"deflate": _inflate, "snappy": _unsnappy, "zstandard": _unzstd, "bzip2": _unbzip2, "xz": _unxz}
)

AVRO_CODECS = ("null", *_DECOMPRESSORS)
"""The codec names of the Avro specification, as in a file's header."""

_DEFLATE_LEVEL = 5
"""On manifests, higher levels take up to ten times as long and save less than two per cent, if anything."""
_DEFLATE_MEMORY = 9
"""The zlib maximum, 256 KiB: slightly smaller output at no cost in time."""

_WRITTEN_AS: Mapping[str, tuple[str, int | None, tuple[int, int] | None]] = FrozenMap(
    {
        "none": ("null", None, None),
        "uncompressed": ("null", None, None),
        "gzip": ("deflate", _DEFLATE_LEVEL, (0, 9)),
        "deflate": ("deflate", _DEFLATE_LEVEL, (0, 9)),
        "snappy": ("snappy", None, None),
        "zstd": ("zstandard", 3, (1, 22)),
        "zstandard": ("zstandard", 3, (1, 22)),
    }
)


def compressor(codec: str, level: int | None = None) -> tuple[str, Callable[[bytes], bytes]]:
    """Return the Avro name of a codec and the function that compresses a block with it.

    `codec` is a value of the property `write.manifest.compression-codec`: gzip (Avro's deflate), zstd,
    snappy or none.
    """
    spelling = _WRITTEN_AS.get(codec.lower())
    if spelling is None:
        raise InvalidPropertyError(
            f"Cannot compress with {codec[:40]!r}: the codec is not known", hint="Use gzip, zstd, snappy or none."
        )
    name, default, levels = spelling
    if level is not None and levels is not None and not levels[0] <= level <= levels[1]:
        raise InvalidPropertyError(
            f"Cannot compress with {codec} at level {level}: its levels are {levels[0]} to {levels[1]}"
        )
    chosen = level if level is not None else default
    if name == "deflate":
        return name, lambda data: _deflate(data, _DEFLATE_LEVEL if chosen is None else chosen)
    if name == "zstandard":
        return name, lambda data: zstandard.ZstdCompressor(level=3 if chosen is None else chosen).compress(data)
    return (name, _snappy) if name == "snappy" else (name, bytes)


def _deflate(data: bytes, level: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE, _DEFLATE_MEMORY)
    return stream.compress(data) + stream.flush()


def _snappy(data: bytes) -> bytes:
    body: bytes = pa.Codec("snappy").compress(data, asbytes=True)
    return body + zlib.crc32(data).to_bytes(4, "big")
