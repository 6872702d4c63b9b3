"""Theta sketches, which estimate how many distinct values a column has.

They are blobs of type `apache-datasketches-theta-v1` of the Puffin specification. A sketch keeps the smallest hashes of
all values; the smaller they are, the more distinct values there must be. Up to 4,096 values it is exact. Sketches of
parts can be merged into a sketch of the whole.

    hash      the first half of MurmurHash3 x64 128 of a value's single-value bytes, with the seed 9001, without its
              lowest bit; a value without bytes is not counted, as in Iceberg Java
    bytes     the compact, ordered form of Apache DataSketches, version 3: preamble, theta unless exact, hashes

Hashes are computed over whole columns, in groups of values of equal length.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from frazil.errors import InvalidPuffinError
from frazil.spec.puffin import THETA_SKETCH_V1

NOMINAL_ENTRIES: Final = 4096
SEED: Final = 9001
_SEED_HASH: Final = 0x93CC
_MAX_THETA: Final = (1 << 63) - 1
_PREAMBLE: Final = struct.Struct("<BBBBBBH")
_SERIAL_VERSION: Final = 3
_COMPACT_FAMILY: Final = 3
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED = 2, 4, 8, 16
_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)

Hashes = npt.NDArray[np.uint64]
NO_HASHES: Final[Hashes] = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class ThetaSketch:
    """The smallest hashes of some values, in order; all of them if `theta` is its maximum."""

    hashes: Hashes
    theta: int = _MAX_THETA

    @property
    def estimate(self) -> float:
        """The estimated number of distinct values."""
        return float(len(self.hashes)) if self.theta == _MAX_THETA else len(self.hashes) / (self.theta / (1 << 63))

    def union(self, *others: ThetaSketch) -> ThetaSketch:
        """Return the sketch of the values of this and other sketches."""
        theta = min(self.theta, *(other.theta for other in others)) if others else self.theta
        merged = np.unique(np.concatenate([self.hashes, *(other.hashes for other in others)]))
        return _smallest(merged[merged < np.uint64(theta)], theta)

    def with_hashes(self, hashes: Hashes) -> ThetaSketch:
        """Return this sketch extended by values, given as hashes."""
        return self.union(_smallest(np.unique(hashes), _MAX_THETA))


EMPTY_SKETCH: Final = ThetaSketch(NO_HASHES)


def _smallest(hashes: Hashes, theta: int) -> ThetaSketch:
    if len(hashes) <= NOMINAL_ENTRIES:
        return ThetaSketch(hashes, theta)
    return ThetaSketch(hashes[:NOMINAL_ENTRIES], int(hashes[NOMINAL_ENTRIES]))


# Hashes


def hash_fixed(values: npt.NDArray[np.uint8]) -> Hashes:
    """Return the hashes of values of equal length, given as rows of bytes; values of no bytes have none."""
    count, length = values.shape
    if length == 0:
        return NO_HASHES
    low, high = _murmur3(values, count, length)
    hashes: Hashes = (low + high) >> np.uint64(1)
    # Zero marks an empty slot in a sketch.
    nonzero: Hashes = hashes[hashes != 0]
    return nonzero


def hash_bytes_of(values: Sequence[bytes]) -> Hashes:
    """Return the hashes of values of any length."""
    by_length: dict[int, list[bytes]] = {}
    for value in values:
        by_length.setdefault(len(value), []).append(value)
    parts = [
        hash_fixed(np.frombuffer(b"".join(group), np.uint8).reshape(len(group), length))
        for length, group in by_length.items()
        if length > 0
    ]
    return np.concatenate(parts) if parts else NO_HASHES


def hash_buffer(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    """Return the hashes of values in one buffer."""
    parts = []
    for length in np.unique(lengths).tolist():
        if length == 0:
            continue
        offsets = starts[lengths == length]
        parts.append(hash_fixed(data[offsets[:, None] + np.arange(length)]))
    return np.concatenate(parts) if parts else NO_HASHES


def _murmur3(values: npt.NDArray[np.uint8], count: int, length: int) -> tuple[Hashes, Hashes]:
    """Return the two halves of MurmurHash3 x64 128 before their final addition."""
    h1, h2 = np.full(count, SEED, np.uint64), np.full(count, SEED, np.uint64)
    blocks = length // 16
    words = np.ascontiguousarray(values[:, : blocks * 16]).view("<u8").reshape(count, blocks * 2)
    for index in range(blocks):
        h1 ^= _mix_first(words[:, 2 * index])
        h1 = _rotate_left(h1, 27) + h2
        h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= _mix_second(words[:, 2 * index + 1])
        h2 = _rotate_left(h2, 31) + h1
        h2 = h2 * np.uint64(5) + np.uint64(0x38495AB5)
    rest = length - blocks * 16
    if rest:
        tail = np.zeros((count, 16), np.uint8)
        tail[:, :rest] = values[:, blocks * 16 :]
        last = tail.view("<u8")
        if rest > 8:
            h2 ^= _mix_second(last[:, 1])
        h1 ^= _mix_first(last[:, 0])
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    return _finish(h1), _finish(h2)


def _mix_first(words: Hashes) -> Hashes:
    return _rotate_left(words * _C1, 31) * _C2


def _mix_second(words: Hashes) -> Hashes:
    return _rotate_left(words * _C2, 33) * _C1


def _rotate_left(words: Hashes, bits: int) -> Hashes:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finish(words: Hashes) -> Hashes:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))


# Bytes


def encode_theta_sketch(sketch: ThetaSketch) -> bytes:
    """Return a sketch in the compact, ordered form."""
    count = len(sketch.hashes)
    is_exact = sketch.theta == _MAX_THETA
    is_empty = count == 0 and is_exact
    longs = 3 if not is_exact else 1 if count <= 1 else 2
    flags = _READ_ONLY | _COMPACT | _ORDERED | (_EMPTY if is_empty else 0)
    data = _PREAMBLE.pack(longs, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
    if longs > 1:
        data += struct.pack("<II", count, 0)
    if longs > 2:
        data += struct.pack("<Q", sketch.theta)
    return data + sketch.hashes.astype("<u8").tobytes()


def _corrupt(reason: str) -> InvalidPuffinError:
    return InvalidPuffinError(f"Cannot read a theta sketch: {reason}", heading=f"{THETA_SKETCH_V1} blob type")
