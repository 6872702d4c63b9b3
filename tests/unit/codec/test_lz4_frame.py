"""LZ4 frames of a known content size. Specification: Puffin file format, "Compression codecs"."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from frazil.codec.lz4_frame import decode_lz4_frame, encode_lz4_frame
from frazil.errors import InvalidPuffinError

LIMIT = 1 << 24


def pseudo_random(size: int) -> bytes:
    """Return bytes that do not compress, the same each time."""
    return b"".join(struct.pack("<I", (at * 2654435761 + 40503) * 2246822519 % 2**32) for at in range(size // 4 + 1))[
        :size
    ]


@pytest.mark.parametrize("size", [0, 1, 12, 13, 64, 65_535, (4 << 20) - 1, 4 << 20, (4 << 20) + 1])
def test_content_of_any_size_round_trips(size: int) -> None:
    for data in (b"ab" * (size // 2 + 1), pseudo_random(min(size, 70_000))):
        assert decode_lz4_frame(encode_lz4_frame(data[:size]), max_bytes=LIMIT) == data[:size]


def test_frame_states_content_size_and_header_checksum() -> None:
    assert encode_lz4_frame(b"hello" * 10)[:15].hex() == "04224d18" + "6870" + "3200000000000000" + "6c"


def test_frames_are_read_by_the_lz4_library() -> None:
    data = b"some text, some text, some text" * 1000
    frame = encode_lz4_frame(data)
    assert pa.Codec("lz4").decompress(frame, len(data), asbytes=True) == data


def test_frame_without_content_size_is_refused() -> None:
    with pytest.raises(InvalidPuffinError, match="does not state its content size"):
        decode_lz4_frame(pa.Codec("lz4").compress(b"hello" * 100, asbytes=True), max_bytes=LIMIT)


def test_oversized_content_is_refused_before_decompression() -> None:
    frame = encode_lz4_frame(bytes(1000))
    assert decode_lz4_frame(frame, max_bytes=1000) == bytes(1000)
    with pytest.raises(InvalidPuffinError, match="1000 bytes is above the limit of 999"):
        decode_lz4_frame(frame, max_bytes=999)
