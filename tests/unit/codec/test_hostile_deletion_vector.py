"""Deletion vectors that were damaged or made to do harm, with a checksum that fits: each is refused.

A vector that is read wrongly deletes rows or brings them back without a word, so nothing is let pass.
"""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest

from frazil.codec.deletion_vector import (
    DeletionVector,
    decode_deletion_vector,
    encode_deletion_vector,
    read_deletion_vector,
)
from frazil.codec.roaring import MAX_BITMAPS
from frazil.errors import InvalidPuffinError

HEADING = "`deletion-vector-v1` blob type"
MAGIC = b"\xd1\xd3\x39\x64"


def blob(positions: bytes, *, magic: bytes = MAGIC) -> bytes:
    """Return a blob of serialized positions, framed as it should be."""
    body = magic + positions
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def bitmaps(*items: tuple[int, bytes]) -> bytes:
    """Return 32-bit bitmaps under their keys."""
    return struct.pack("<Q", len(items)) + b"".join(struct.pack("<I", key) + data for key, data in items)


def arrays(*containers: tuple[int, list[int]], offsets: list[int] | None = None, count: int | None = None) -> bytes:
    """Return a 32-bit bitmap of array containers."""
    header = b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers)
    start, places = 8 + 8 * len(containers), []
    for _, values in containers:
        places.append(start)
        start += 2 * len(values)
    places = places if offsets is None else offsets
    body = b"".join(struct.pack(f"<{len(values)}H", *values) for _, values in containers)
    size = len(containers) if count is None else count
    return struct.pack("<II", 12346, size) + header + struct.pack(f"<{len(places)}I", *places) + body


def runs(*pairs: tuple[int, int], cardinality: int | None = None) -> bytes:
    """Return a 32-bit bitmap of one run container; lengths are stored less one."""
    size = sum(length + 1 for _, length in pairs) if cardinality is None else cardinality
    body = b"".join(struct.pack("<HH", start, length) for start, length in pairs)
    return struct.pack("<IBHH", 12347, 1, 0, (size - 1) % 65536) + struct.pack("<H", len(pairs)) + body


def bitset(words: bytes, cardinality: int) -> bytes:
    """Return a 32-bit bitmap of one bitset container."""
    return struct.pack("<IIHHI", 12346, 1, 0, cardinality - 1, 16) + words


ONE = arrays((0, [1, 2, 7]))
GOOD = blob(bitmaps((0, ONE)))

BLOBS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "0 bytes are fewer"),
    "too short": (bytes(19), "19 bytes are fewer"),
    "length one more": (struct.pack(">i", len(GOOD) - 7) + GOOD[4:], "its length field says"),
    "length negative": (struct.pack(">i", -1) + GOOD[4:], "its length field says -1"),
    "length little-endian": (struct.pack("<i", len(GOOD) - 8) + GOOD[4:], "its length field says"),
    "a byte after the checksum": (GOOD + b"\0", "its length field says"),
    "a byte missing": (GOOD[:-1], "its length field says"),
    "other magic": (blob(bitmaps((0, ONE)), magic=b"\x64\x39\xd3\xd1"), "where the magic d1d33964 belongs"),
    "checksum changed": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "CRC-32"),
    "a position changed": (GOOD[:-6] + b"\x09" + GOOD[-5:], "CRC-32"),
    "checksum little-endian": (GOOD[:-4] + GOOD[-4:][::-1], "CRC-32"),
    "more bitmaps than bytes": (blob(struct.pack("<Q", 2) + bitmaps((0, ONE))[8:]), "before the key of a bitmap"),
    "bitmaps beyond counting": (blob(struct.pack("<Q", 2**64 - 1) + ONE), "cannot hold 18446744073709551615 bitmaps"),
    "fewer bitmaps than bytes": (blob(struct.pack("<Q", 0) + bitmaps((0, ONE))[8:]), "bytes follow the last bitmap"),
    "too many bitmaps": (
        blob(bitmaps(*((key, arrays()) for key in range(MAX_BITMAPS + 1)))),
        f"above the limit of {MAX_BITMAPS}",
    ),
    "key with the sign bit": (blob(bitmaps((2**31, ONE))), "at most 63 bits"),
    "keys descending": (blob(bitmaps((1, ONE), (0, ONE))), "keys must ascend"),
    "keys repeated": (blob(bitmaps((1, ONE), (1, ONE))), "keys must ascend"),
    "other cookie": (blob(bitmaps((0, b"\0\0\0\0" + ONE[4:]))), "not a valid cookie"),
    "cookie with upper bits": (blob(bitmaps((0, struct.pack("<I", 12346 | 1 << 16) + ONE[4:]))), "not a valid cookie"),
    "too many containers": (blob(bitmaps((0, arrays((0, [1]), count=65537)))), "65537 containers"),
    "containers beyond the bytes": (blob(bitmaps((0, arrays((0, [1]), count=65536)))), "inside a bitmap"),
    "containers descending": (blob(bitmaps((0, arrays((2, [1]), (1, [1]))))), "not valid"),
    "containers repeated": (blob(bitmaps((0, arrays((1, [1]), (1, [2]))))), "not valid"),
    "array descending": (blob(bitmaps((0, arrays((0, [5, 3, 1]))))), "not valid"),
    "array repeated": (blob(bitmaps((0, arrays((0, [5, 5]))))), "not valid"),
    "array cut off": (blob(bitmaps((0, ONE[:-2]))), "inside a bitmap"),
    "array longer than it says": (blob(bitmaps((0, ONE + b"\x09\0"))), "2 bytes follow the last bitmap"),
    "offset elsewhere": (blob(bitmaps((0, arrays((0, [1, 2]), offsets=[20])))), "do not point at its containers"),
    "offsets swapped": (
        blob(bitmaps((0, arrays((0, [1]), (1, [2]), offsets=[26, 24])))),
        "do not point at its containers",
    ),
    "bitset with fewer bits": (blob(bitmaps((0, bitset(b"\x55" * 8192, 40_000)))), "not valid"),
    "bitset without bits": (blob(bitmaps((0, bitset(bytes(8192), 5000)))), "not valid"),
    "bitset cut off": (blob(bitmaps((0, bitset(b"\x55" * 8191, 32_768)))), "inside a bitmap"),
    "no runs": (blob(bitmaps((0, runs(cardinality=65536)))), "run container of 0 values"),
    "runs overlapping": (blob(bitmaps((0, runs((1, 10), (5, 3))))), "not valid"),
    "runs descending": (blob(bitmaps((0, runs((100, 3), (5, 3))))), "not valid"),
    "runs touching": (blob(bitmaps((0, runs((1, 2), (4, 2))))), "not valid"),
    "run beyond its container": (blob(bitmaps((0, runs((65535, 10))))), "not valid"),
    "run with another cardinality": (blob(bitmaps((0, runs((1, 2), cardinality=700)))), "of 3 values says it has 700"),
    "runs cut off": (blob(bitmaps((0, runs((1, 2), (9, 2))[:-4]))), "inside a bitmap"),
    "run flags cut off": (blob(bitmaps((0, struct.pack("<II", 12347 | 65535 << 16, 0)))), "inside a bitmap"),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOBS)
def test_damaged_vector_is_refused_with_its_heading(name: str) -> None:
    data, reason = BLOBS[name]
    with pytest.raises(InvalidPuffinError, match=reason) as caught:
        decode_deletion_vector(data)
    assert caught.value.context["heading"] == HEADING
    assert caught.value.message.startswith("Cannot read the deletion vector: ")


def test_builders_of_these_cases_build_valid_vectors_too() -> None:
    assert list(decode_deletion_vector(GOOD)) == [1, 2, 7]
    assert list(decode_deletion_vector(blob(bitmaps((0, runs((1, 2), (9, 0))), (3, ONE))))) == [
        1, 2, 3, 9, (3 << 32) + 1, (3 << 32) + 2, (3 << 32) + 7,
    ]  # fmt: skip
    assert decode_deletion_vector(blob(bitmaps((0, bitset(b"\x55" * 8192, 32_768))))).cardinality == 32_768


def test_empty_gap_bitmaps_are_read_and_dropped() -> None:
    vector = decode_deletion_vector(blob(bitmaps((0, arrays()), (1, ONE), (2, arrays()))))
    assert [key for key, _ in vector.bitmaps()] == [1]
    assert encode_deletion_vector(vector) == blob(bitmaps((1, ONE)))


def test_every_truncation_with_a_valid_checksum_is_refused() -> None:
    positions = bitmaps((0, runs((1, 2), (9, 30))), (1, ONE))
    for length in range(len(positions)):
        with pytest.raises(InvalidPuffinError):
            decode_deletion_vector(blob(positions[:length]))


def test_billions_of_positions_stay_compressed() -> None:
    everything = DeletionVector(range(1 << 30))
    data = encode_deletion_vector(everything)
    assert len(data) < 1 << 20
    vector = decode_deletion_vector(data)
    assert vector.cardinality == 1 << 30
    assert vector.mask(12345, 10).all()
    with pytest.raises(InvalidPuffinError, match="1073741824 positions where 10 are recorded"):
        decode_deletion_vector(data, record_count=10)


def test_corrupted_bytes_with_a_valid_checksum_never_crash() -> None:
    chance = random.Random(20240611)
    sources = [
        encode_deletion_vector(DeletionVector(positions))[8:-4]
        for positions in (
            np.arange(0, 200_000, 3),
            np.arange(70_000),
            np.array([1, 5, 70_000, 1 << 33, (1 << 33) + 5]),
            np.concatenate([np.arange(start, start + 50) for start in range(0, 400_000, 20_000)]),
        )
    ]
    survived = 0
    for _ in range(1500):
        data = bytearray(chance.choice(sources))
        for _ in range(chance.choice((1, 1, 2, 5))):
            data[chance.randrange(min(len(data), chance.choice((64, 1 << 30))))] = chance.choice(
                (0, 1, 255, chance.randrange(256))
            )
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        try:
            vector = decode_deletion_vector(blob(bytes(data)))
        except InvalidPuffinError:
            continue
        survived += 1
        assert len(vector.to_numpy()) == vector.cardinality
        assert decode_deletion_vector(encode_deletion_vector(vector)) == vector
    assert survived > 50


@pytest.mark.parametrize("offset, size", [(-1, 50), (0, -1), (0, 19), (0, 1 << 40)])
def test_invalid_blob_range_is_not_read(offset: int, size: int) -> None:
    with pytest.raises(InvalidPuffinError, match="cannot hold one"):
        read_deletion_vector(lambda *_: pytest.fail("nothing must be read"), offset, size)


def test_file_ending_inside_the_vector_is_refused() -> None:
    with pytest.raises(InvalidPuffinError, match="bytes came back where"):
        read_deletion_vector(lambda offset, length: GOOD[: length - 1], 4, len(GOOD))
