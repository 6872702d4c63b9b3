"""Puffin files that were damaged or made to do harm: each ends in frazil's error, under the specification's heading."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import zstandard

from frazil.codec.lz4_frame import decode_lz4_frame, encode_lz4_frame
from frazil.codec.puffin import PuffinWriter, decode_blob, decode_puffin_footer, range_reader, read_puffin_footer
from frazil.errors import CorruptTableError, InvalidPuffinError, UnsupportedError

BLOB: dict[str, Any] = {"type": "t", "fields": [1], "snapshot-id": 2, "sequence-number": 1, "offset": 4, "length": 8}


def puffin(payload: bytes, *, body: bytes = bytes(8), flags: int = 0, size: int | None = None) -> bytes:
    """Return a file with a footer payload as given."""
    tail = struct.pack("<iI", len(payload) if size is None else size, flags)
    return b"PFA1" + body + b"PFA1" + payload + tail + b"PFA1"


def footer_of(**changes: Any) -> bytes:
    """Return a payload with one blob, some of its fields changed or (...) left out."""
    blob = {key: value for key, value in (BLOB | changes).items() if value is not ...}
    return msgspec.json.encode({"blobs": [blob]})


GOOD = puffin(footer_of())

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "File structure"),
    "only the magic": (b"PFA1", "File structure"),
    "shorter than a footer": (b"PFA1PFA1" + bytes(8), "File structure"),
    "other first magic": (b"PAR1" + GOOD[4:], "File structure"),
    "other last magic": (GOOD[:-1] + b"2", "Footer structure"),
    "other footer magic": (GOOD.replace(b"PFA1{", b"PFB1{"), "Footer structure"),
    "cut off at the end": (GOOD[:-1], "Footer structure"),
    "bytes after the footer": (GOOD + b"\0", "Footer structure"),
    "negative payload size": (puffin(footer_of(), size=-1), "Footer structure"),
    "smallest payload size": (puffin(footer_of(), size=-(2**31)), "Footer structure"),
    "payload larger than the file": (puffin(footer_of(), size=2**31 - 1), "Footer structure"),
    "payload over the header": (puffin(footer_of(), size=len(footer_of()) + 12), "Footer structure"),
    "payload one byte short": (puffin(footer_of(), size=len(footer_of()) - 1), "Footer structure"),
    "no payload": (puffin(b""), "Footer Payload"),
    "payload of other text": (puffin(b"blobs: []"), "Footer Payload"),
    "payload not UTF-8": (puffin(b'{"blobs":[],"properties":{"a":"\xff"}}'), "Footer Payload"),
    "payload with half a surrogate pair": (puffin(b'{"blobs":[],"properties":{"a":"\\ud800"}}'), "Footer Payload"),
    "payload with text after it": (puffin(b'{"blobs":[]} 1'), "Footer Payload"),
    "payload nested without end": (puffin(b'{"blobs":' + b"[" * 100_000), "Footer Payload"),
    "payload with a number of a million digits": (
        puffin(b'{"blobs":[],"x":' + b"9" * 1_000_000 + b"}"),
        "Footer Payload",
    ),
    "payload that is a list": (puffin(b"[]"), "FileMetadata"),
    "blobs missing": (puffin(b"{}"), "FileMetadata"),
    "blobs null": (puffin(b'{"blobs":null}'), "FileMetadata"),
    "blobs an object": (puffin(b'{"blobs":{}}'), "FileMetadata"),
    "properties a list": (puffin(b'{"blobs":[],"properties":[]}'), "FileMetadata"),
    "properties of numbers": (puffin(b'{"blobs":[],"properties":{"a":1}}'), "FileMetadata"),
    "a blob that is a number": (puffin(b'{"blobs":[1]}'), "BlobMetadata"),
    "type missing": (puffin(footer_of(type=...)), "BlobMetadata"),
    "type empty": (puffin(footer_of(type="")), "BlobMetadata"),
    "fields missing": (puffin(footer_of(fields=...)), "BlobMetadata"),
    "fields of strings": (puffin(footer_of(fields=["1"])), "BlobMetadata"),
    "fields above 32 bits": (puffin(footer_of(fields=[2**31])), "BlobMetadata"),
    "snapshot id missing": (puffin(footer_of(**{"snapshot-id": ...})), "BlobMetadata"),
    "sequence number a string": (puffin(footer_of(**{"sequence-number": "1"})), "BlobMetadata"),
    "offset a fraction": (puffin(footer_of(offset=4.5)), "BlobMetadata"),
    "offset true": (puffin(footer_of(offset=True)), "BlobMetadata"),
    "offset negative": (puffin(footer_of(offset=-4)), "BlobMetadata"),
    "offset in the header": (puffin(footer_of(offset=3)), "BlobMetadata"),
    "length negative": (puffin(footer_of(length=-1)), "BlobMetadata"),
    "length into the footer": (puffin(footer_of(length=9)), "BlobMetadata"),
    "length and offset beyond 64 bits": (puffin(footer_of(offset=2**63 - 1, length=2**63 - 1)), "BlobMetadata"),
    "length above 64 bits": (puffin(footer_of(length=2**63)), "BlobMetadata"),
    "codec a number": (puffin(footer_of(**{"compression-codec": 1})), "BlobMetadata"),
    "blob properties of numbers": (puffin(footer_of(properties={"a": 1})), "BlobMetadata"),
    "compressed payload that is not": (puffin(footer_of(), flags=1), "Compression codecs"),
    "compressed payload cut off": (puffin(encode_lz4_frame(footer_of())[:-5], flags=1), "Compression codecs"),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused_with_its_heading(name: str) -> None:
    data, heading = FILES[name]
    with pytest.raises(InvalidPuffinError) as caught:
        decode_puffin_footer(data)
    assert caught.value.context["heading"] == heading
    assert caught.value.message.startswith("Cannot ")


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused_through_ranged_reads(name: str) -> None:
    data, _ = FILES[name]
    with pytest.raises(InvalidPuffinError):
        read_puffin_footer(range_reader(data), len(data))


@pytest.mark.parametrize("flags", [2, 0x80, 0x100, 0x01000000, 0x80000000, 3])
def test_unknown_flags_are_refused(flags: int) -> None:
    with pytest.raises(UnsupportedError, match="footer flags") as caught:
        decode_puffin_footer(puffin(footer_of(), flags=flags))
    assert caught.value.context["heading"] == "Footer structure"


def test_every_truncation_is_refused() -> None:
    writer = PuffinWriter({"created-by": "x"}, compress_footer=True)
    writer.add_blob("t", b"abc" * 30, fields=[1], snapshot_id=1, sequence_number=1, compression_codec="zstd")
    data = writer.finish()
    for length in range(len(data)):
        with pytest.raises(CorruptTableError):
            decode_puffin_footer(data[:length])


def test_short_reads_of_a_storage_are_refused() -> None:
    with pytest.raises(InvalidPuffinError, match="bytes came back where"):
        read_puffin_footer(lambda offset, length: GOOD[offset : offset + length - 1], len(GOOD))


def test_oversized_footer_is_refused_before_reading() -> None:
    payload = msgspec.json.encode({"blobs": [], "x": "y" * 50_000})
    data = puffin(payload)
    asked: list[int] = []

    def read_range(offset: int, length: int) -> bytes:
        asked.append(length)
        return data[offset : offset + length]

    with pytest.raises(InvalidPuffinError, match="above the limit of 20000"):
        read_puffin_footer(read_range, len(data), max_footer_bytes=20_000)
    assert max(asked) <= 20_000


def test_compressed_footer_expanding_beyond_the_limit_is_refused() -> None:
    payload = encode_lz4_frame(b'{"blobs":[]}' + b" " * 1_000_000)
    with pytest.raises(InvalidPuffinError, match="above the limit of 100000"):
        decode_puffin_footer(puffin(payload, flags=1), max_footer_bytes=100_000)


def zstd(data: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


ZSTD_HEADER = b"\x28\xb5\x2f\xfd"

ZSTD_BLOBS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "magic"),
    "other magic": (b"\x1f\x8b" + bytes(20), "magic"),
    "a skippable frame": (struct.pack("<II", 0x184D2A50, 4) + b"abcd", "magic"),
    "only a header": (zstd(b"abc")[:5], "Cannot decompress"),
    "cut off": (zstd(b"abcdefgh" * 100)[:-2], "Cannot decompress"),
    "checksum changed": (zstd(b"abcdefgh" * 9, write_checksum=True)[:-1] + b"\0", "checksum"),
    "two frames": (zstd(b"abc") + zstd(b"def"), "unused data"),
    "bytes after the frame": (zstd(b"abc") + b"\0", "unused data"),
    "no content size": (zstd(b"abc", write_content_size=False), "does not state its content size"),
    "content of a terabyte": (ZSTD_HEADER + b"\xe0" + struct.pack("<Q", 1 << 40) + b"\x03\0\0", "above the limit"),
    "content larger than the frame can hold": (
        ZSTD_HEADER + b"\xe0" + struct.pack("<Q", 1 << 29) + b"\x03\0\0",
        "cannot hold the stated content",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ZSTD_BLOBS)
def test_damaged_zstandard_blob_is_refused(name: str) -> None:
    data, reason = ZSTD_BLOBS[name]
    with pytest.raises(InvalidPuffinError, match=reason) as caught:
        decode_blob(data, "zstd")
    assert caught.value.context["heading"] == "Compression codecs"


FRAME = encode_lz4_frame(b"hello" * 1000)


def with_header(change: Callable[[bytearray], None]) -> bytes:
    """Return the frame with its header changed and the header's checksum made right again."""
    frame = bytearray(FRAME)
    change(frame)
    for checksum in range(256):
        frame[14] = checksum
        try:
            decode_lz4_frame(bytes(frame), max_bytes=1 << 62)
        except InvalidPuffinError as error:
            if "checksum of the frame header" in str(error):
                continue
        break
    return bytes(frame)


def set_content_size(size: int) -> bytes:
    """Return the frame with another content size in a valid header."""

    def change(frame: bytearray) -> None:
        frame[6:14] = struct.pack("<Q", size)

    return with_header(change)


LZ4_BLOBS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "magic"),
    "legacy frame": (b"\x02\x21\x4c\x18" + bytes(20), "magic"),
    "only a header": (FRAME[:10], "cut off"),
    "no end mark": (FRAME[:-4], "cut off before its end mark"),
    "bytes after the frame": (FRAME + b"\0", "the frame ends at byte"),
    "two frames": (FRAME + FRAME, "the frame ends at byte"),
    "version 2": (FRAME[:4] + b"\xa8" + FRAME[5:], "an unsupported version"),
    "reserved flag": (FRAME[:4] + b"\x6a" + FRAME[5:], "an unsupported version"),
    "dictionary": (FRAME[:4] + b"\x69" + FRAME[5:], "needs a dictionary"),
    "block size 3": (FRAME[:5] + b"\x30" + FRAME[6:], "block descriptor"),
    "header checksum": (FRAME[:14] + bytes([FRAME[14] ^ 1]) + FRAME[15:], "checksum of the frame header"),
    "block beyond the frame": (FRAME[:15] + struct.pack("<I", 3 << 20) + FRAME[19:], "cut off before its end mark"),
    "block above the limit": (FRAME[:15] + struct.pack("<I", 5 << 20) + FRAME[19:], "above the frame's limit"),
    "content size one more": (set_content_size(5001), "Cannot decompress"),
    "content size one less": (set_content_size(4999), "Cannot decompress"),
    "content size zero": (set_content_size(0), "Cannot decompress"),
    "content of a terabyte": (set_content_size(1 << 40), "above the limit"),
    "content larger than the frame can hold": (set_content_size(1 << 29), "cannot hold the stated content"),
    "blocks that are not LZ4": (FRAME[:19] + b"\xff" * (len(FRAME) - 23) + bytes(4), "Cannot decompress"),
}


@pytest.mark.parametrize("name", LZ4_BLOBS)
def test_damaged_lz4_blob_is_refused(name: str) -> None:
    data, reason = LZ4_BLOBS[name]
    with pytest.raises(InvalidPuffinError, match=reason) as caught:
        decode_blob(data, "lz4")
    assert caught.value.context["heading"] == "Compression codecs"


@pytest.mark.parametrize(
    "codec, data",
    [
        ("zstd", ZSTD_BLOBS["content larger than the frame can hold"][0]),
        ("lz4", LZ4_BLOBS["content larger than the frame can hold"][0]),
    ],
)
def test_stated_size_alone_allocates_nothing(codec: str, data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidPuffinError):
            decode_blob(data, codec)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
