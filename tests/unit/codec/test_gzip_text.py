"""Gzip within bounds."""

from __future__ import annotations

import gzip
import random
import time

import pytest

from frazil.codec.gzip_text import MAX_RATIO, RATIO_FREE_BYTES, gunzip_text, gzip_text, is_gzip
from frazil.errors import InvalidMetadataError, InvalidPuffinError

NOISE = random.Random(7).randbytes(300_000)


@pytest.mark.parametrize("text", [b"", b"{}", b"a" * 3_000_000, NOISE, NOISE * 3])
def test_texts_round_trip_and_match_the_standard_library(text: bytes) -> None:
    packed = gzip_text(text)
    assert is_gzip(packed)
    assert gunzip_text(packed, heading="H") == text
    assert gzip.decompress(packed) == text
    assert gunzip_text(gzip.compress(text), heading="H") == text


def test_same_text_gives_the_same_bytes() -> None:
    assert gzip_text(NOISE) == gzip_text(bytes(bytearray(NOISE)))
    assert gzip_text(b"{}")[:10] == bytes.fromhex("1f8b08000000000000ff")


def test_members_are_concatenated() -> None:
    assert gunzip_text(gzip.compress(b"[1") + gzip_text(b"") + gzip.compress(b"]"), heading="H") == b"[1]"


@pytest.mark.parametrize("end", [2, 5, 10, 11, 5_000, -9, -8, -1])
def test_truncated_file_is_refused(end: int) -> None:
    with pytest.raises(InvalidMetadataError, match="Cannot decompress the file: it ends in the middle"):
        gunzip_text(gzip_text(NOISE)[:end], heading="H")


@pytest.mark.parametrize("tail", [b"\0", b"junk", b"\x1f"])
def test_trailing_bytes_are_refused(tail: bytes) -> None:
    with pytest.raises(InvalidMetadataError, match="bytes follow the compressed text"):
        gunzip_text(gzip_text(b"{}") + tail, heading="H")


@pytest.mark.parametrize("place", [2, 200, -8, -1])
def test_corrupted_byte_is_refused(place: int) -> None:
    broken = bytearray(gzip_text(NOISE))
    broken[place] ^= 0x55
    with pytest.raises(InvalidPuffinError, match="Cannot decompress the file: "):
        gunzip_text(bytes(broken), heading="H", error=InvalidPuffinError)


def test_bomb_is_refused_by_its_ratio_before_the_limit() -> None:
    bomb = gzip.compress(NOISE + bytes(60 << 20))
    start = time.process_time()
    with pytest.raises(InvalidMetadataError, match=f"expand to more than {MAX_RATIO * len(bomb)}"):
        gunzip_text(bomb, heading="H")
    assert time.process_time() - start < 2


def test_small_repetitive_file_is_accepted() -> None:
    text = b" " * RATIO_FREE_BYTES
    assert gunzip_text(gzip_text(text), heading="H") == text
    with pytest.raises(InvalidMetadataError, match="expand to more than"):
        gunzip_text(gzip_text(text + b" "), heading="H")


def test_caller_sets_the_limit() -> None:
    packed = gzip_text(b"x" * 1000)
    assert len(gunzip_text(packed, max_bytes=1000, heading="H")) == 1000
    with pytest.raises(InvalidMetadataError, match="more than 999") as caught:
        gunzip_text(packed, max_bytes=999, heading="H")
    assert "max_bytes" in str(caught.value)


def test_many_empty_members_take_linear_time() -> None:
    start = time.process_time()
    assert gunzip_text(gzip_text(b"") * 20_000, heading="H") == b""
    assert time.process_time() - start < 2
