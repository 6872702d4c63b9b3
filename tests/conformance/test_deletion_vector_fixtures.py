"""Iceberg Java's deletion vectors and Roaring's 64-bit samples, both ways, byte for byte.

Specification: Puffin file format, "`deletion-vector-v1` blob type".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frazil.codec.deletion_vector import DeletionVector, decode_deletion_vector, encode_deletion_vector
from frazil.codec.roaring import decode_roaring64, encode_roaring64
from frazil.errors import InvalidPuffinError


def place(bitmap: int, container: int, value: int) -> int:
    return (bitmap << 32) + (container << 16) + value


def span(bitmap: int, container: int, start: int, end: int) -> range:
    return range(place(bitmap, container, start), place(bitmap, container, end))


VECTORS: dict[str, list[int]] = {
    "empty": [],
    "small-alternating-values": [1, 3, 5, 7, 9],
    "small-and-large-values": [100, 101, 2147483747, 2147483748],
    "all-container-types": [
        place(0, 0, 5), place(0, 0, 7), *span(0, 1, 1, 1000), *span(0, 2, 1, 65535),
        place(1, 0, 10), place(1, 0, 20), *span(1, 1, 10, 500), *span(1, 2, 1, 65535),
    ],
}  # fmt: skip


def fixture(fixtures_dir: Path, name: str) -> bytes:
    path = fixtures_dir / "deletion-vectors" / name
    if not path.is_file():
        pytest.skip(f"no fixture at {path}")
    return path.read_bytes()


@pytest.mark.parametrize("name", VECTORS)
def test_deletion_vectors_of_iceberg_java_are_read(fixtures_dir: Path, name: str) -> None:
    data = fixture(fixtures_dir, f"{name}-position-index.bin")
    vector = decode_deletion_vector(data, record_count=len(VECTORS[name]))
    assert vector.to_numpy().tolist() == VECTORS[name]


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_byte_identical_to_those_of_iceberg_java(fixtures_dir: Path, name: str) -> None:
    data = fixture(fixtures_dir, f"{name}-position-index.bin")
    positions = VECTORS[name]
    assert encode_deletion_vector(DeletionVector(positions)) == data
    assert encode_deletion_vector(DeletionVector(np.array(positions, dtype=np.uint64))) == data
    assert encode_deletion_vector(decode_deletion_vector(data)) == data


@pytest.mark.parametrize("name", ["64map32bitvals", "64mapempty", "64mapspreadvals"])
def test_roaring_samples_round_trip(fixtures_dir: Path, name: str) -> None:
    data = fixture(fixtures_dir, f"{name}.bin")
    assert encode_roaring64(decode_roaring64(data)) == data


def test_roaring_samples_have_the_expected_positions(fixtures_dir: Path) -> None:
    spread = DeletionVector.from_bitmaps(decode_roaring64(fixture(fixtures_dir, "64mapspreadvals.bin")))
    assert spread.to_numpy().tolist() == [(key << 32) + low for key in range(10) for low in range(10)]
    small = DeletionVector.from_bitmaps(decode_roaring64(fixture(fixtures_dir, "64map32bitvals.bin")))
    assert list(small) == list(range(10))


def test_roaring_sample_with_high_keys_is_refused(fixtures_dir: Path) -> None:
    with pytest.raises(InvalidPuffinError, match="the key 4022190063 is above 2147483647"):
        decode_roaring64(fixture(fixtures_dir, "64maphighvals.bin"))
