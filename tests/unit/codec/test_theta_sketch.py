"""Theta sketches: hashes and bytes as Apache DataSketches has them, estimates, unions, broken bytes.

The bytes in the tests are what version 5.2 of the DataSketches library for Python serialises.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from frazil.codec.theta_sketch import (
    EMPTY_SKETCH,
    NO_HASHES,
    NOMINAL_ENTRIES,
    Hashes,
    encode_theta_sketch,
    hash_buffer,
    hash_bytes_of,
    hash_fixed,
)
from frazil.errors import InvalidPuffinError
from tests.support.theta_sketches import decode_theta_sketch


def hashes_of(start: int, end: int) -> Hashes:
    return hash_fixed(np.arange(start, end, dtype="<i8").view(np.uint8).reshape(-1, 8))


def test_sketches_are_byte_identical_to_the_datasketches_library() -> None:
    assert encode_theta_sketch(EMPTY_SKETCH).hex() == "01030300001ecc93"
    one = EMPTY_SKETCH.with_hashes(hashes_of(1, 2))
    assert encode_theta_sketch(one).hex() == "01030300001acc9315f97dcbbd86a105"
    three = one.with_hashes(hashes_of(2, 3)).with_hashes(hash_bytes_of([b"hello"]))
    assert encode_theta_sketch(three).hex() == (
        "02030300001acc93030000000000000015f97dcbbd86a105d5e01a54eabddb10c397fc1281709d1e"
    )


def test_sketches_round_trip_through_bytes() -> None:
    for count in (0, 1, 2, 100, 5000):
        sketch = EMPTY_SKETCH.with_hashes(hashes_of(0, count))
        back = decode_theta_sketch(encode_theta_sketch(sketch))
        assert np.array_equal(back.hashes, sketch.hashes) and back.theta == sketch.theta


def test_small_counts_are_exact_and_large_ones_approximate() -> None:
    assert EMPTY_SKETCH.with_hashes(hashes_of(0, NOMINAL_ENTRIES)).estimate == NOMINAL_ENTRIES
    for count in (5_000, 200_000):
        sketch = EMPTY_SKETCH.with_hashes(hashes_of(0, count))
        assert len(sketch.hashes) == NOMINAL_ENTRIES
        assert abs(sketch.estimate - count) < 0.05 * count


def test_union_equals_the_sketch_of_all_values() -> None:
    whole = EMPTY_SKETCH.with_hashes(hashes_of(0, 30_000))
    parts = [EMPTY_SKETCH.with_hashes(hashes_of(at, at + 12_000)) for at in (0, 9_000, 18_000)]
    united = parts[0].union(*parts[1:])
    assert np.array_equal(united.hashes, whole.hashes) and united.theta == whole.theta
    bit_by_bit = EMPTY_SKETCH
    for at in range(0, 30_000, 1000):
        bit_by_bit = bit_by_bit.with_hashes(hashes_of(at, at + 1000))
    assert encode_theta_sketch(bit_by_bit) == encode_theta_sketch(whole)


def test_equal_values_hash_alike_in_every_representation() -> None:
    chance = random.Random(1)
    values = [chance.randbytes(chance.randint(0, 40)) for _ in range(500)]
    one_by_one = np.concatenate([hash_bytes_of([one]) for one in values])
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(one) for one in values], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    assert set(one_by_one.tolist()) == set(hash_bytes_of(values).tolist())
    assert set(one_by_one.tolist()) == set(hash_buffer(data, starts, lengths).tolist())
    assert len(hash_bytes_of([b"", b""])) == 0 == len(NO_HASHES)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x03\x03",
        bytes.fromhex("01020300001ecc93"),
        bytes.fromhex("01030200001ecc93"),
        bytes.fromhex("01030300001bcc93") + b"x" * 8,
        bytes.fromhex("02030300001acc93"),
        bytes.fromhex("02030300001acc93ffffffff00000000"),
        bytes.fromhex("02030300001acc94") + b"\0" * 8,
        bytes.fromhex("09030300001acc93") + b"\0" * 80,
    ],
)
def test_corrupted_sketches_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidPuffinError, match="theta sketch"):
        decode_theta_sketch(data)
