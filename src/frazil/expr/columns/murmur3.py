"""The 32-bit hash over whole columns. Specification: "Appendix B: 32-bit Hash Requirements".

The hashes equal those of `spec/murmur3.py`, but are computed in bulk: NumPy does every step of Murmur3 for all rows of
a block before the next step. Integers take two steps. Byte strings of different lengths are sorted by length, so that
the rows with words left are always a prefix of the block.

A step over a whole block costs the same for one row as for a few hundred, so rows longer than `LONG` bytes, which the C
library hashes faster, are passed to it one by one.
"""

from __future__ import annotations

from typing import Any

import mmh3
import numpy as np
import numpy.typing as npt

UInt8s = npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

BLOCK = 32_768
"""The rows of a block: the arrays of a step stay in the processor's cache."""

LONG = 96

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADDED = np.uint32(0xE6546B64)
_FIVE = np.uint32(5)
_FINAL_1 = np.uint32(0x85EBCA6B)
_FINAL_2 = np.uint32(0xC2B2AE35)
_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)


def hash_longs(values: Int64s) -> Int32s:
    """Return the hashes of 64-bit integers."""
    return hash_fixed(np.ascontiguousarray(values, dtype="<i8").view(np.uint8), len(values), 8)


def hash_fixed(data: UInt8s, rows: int, width: int) -> Int32s:
    """Return the hashes of consecutive byte strings of equal length in a buffer."""
    if width % 4 != 0 or width > LONG:
        return hash_slices(data, np.arange(rows, dtype=np.int64) * width, np.full(rows, width, dtype=np.int64))
    hashes = np.empty(rows, dtype=np.uint32)
    words = data[: rows * width].view("<u4").reshape(rows, width // 4)
    for start in range(0, rows, BLOCK):
        columns = words[start : start + BLOCK]
        block = np.zeros(len(columns), dtype=np.uint32)
        for index in range(width // 4):
            _add_word(block, columns[:, index].astype(np.uint32))
        _finish(block, np.uint32(width))
        hashes[start : start + BLOCK] = block
    return hashes.view(np.int32)


def hash_slices(data: UInt8s, starts: Int64s, lengths: Int64s) -> Int32s:
    """Return the hashes of byte strings, each a slice of one buffer."""
    if len(data) < 4:
        data = np.concatenate([data, np.zeros(4 - len(data), dtype=np.uint8)])
    hashes = np.empty(len(starts), dtype=np.uint32)
    for start in range(0, len(starts), BLOCK):
        stop = start + BLOCK
        hashes[start:stop] = _hash_block(data, starts[start:stop], lengths[start:stop])
    signed = hashes.view(np.int32)
    is_long = lengths > LONG
    if is_long.any():
        view = data.data
        for row in np.flatnonzero(is_long).tolist():
            offset = int(starts[row])
            signed[row] = mmh3.mmh3_32_sintdigest(view[offset : offset + int(lengths[row])], 0)
    return signed


def _hash_block(data: UInt8s, starts: Int64s, lengths: Int64s) -> UInt32s:
    """Return the hashes of slices that are not long; those of long ones are invalid."""
    # The word at every byte offset, unaligned, little-endian.
    words: Any = np.ndarray(shape=(len(data) - 3,), dtype="<u4", buffer=data, strides=(1,))
    lengths = np.where(lengths > LONG, 0, lengths)
    order = np.argsort(LONG - lengths.astype(np.int16), kind="stable")
    starts, lengths = starts[order], lengths[order]
    whole_words = lengths >> 2
    hashes = np.zeros(len(starts), dtype=np.uint32)
    longest = int(whole_words[0])
    # The number of rows with more than 0, 1, 2, … words.
    rows_left = np.searchsorted(-whole_words, -np.arange(longest), side="left")
    for word, rows in enumerate(rows_left.tolist()):
        _add_word(hashes[:rows], words[starts[:rows] + 4 * word].astype(np.uint32, copy=False))
    tails = lengths & 3
    tail_starts = starts + (lengths - tails)
    # A tail at the end of the buffer is read from the last whole word, shifted down.
    behind = np.maximum(tail_starts - (len(data) - 4), 0)
    last = words[tail_starts - behind].astype(np.uint32, copy=False) >> (behind * 8).astype(np.uint32)
    hashes ^= _scramble(last & _TAIL_MASKS[tails])
    _finish(hashes, lengths.astype(np.uint32))
    unsorted = np.empty_like(hashes)
    unsorted[order] = hashes
    return unsorted


def _scramble(words: UInt32s) -> UInt32s:
    words *= _C1
    high = words >> np.uint32(17)
    words <<= np.uint32(15)
    words |= high
    words *= _C2
    return words


def _add_word(hashes: UInt32s, words: UInt32s) -> None:
    hashes ^= _scramble(words)
    high = hashes >> np.uint32(19)
    hashes <<= np.uint32(13)
    hashes |= high
    hashes *= _FIVE
    hashes += _ADDED


def _finish(hashes: UInt32s, lengths: UInt32s | np.uint32) -> None:
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _FINAL_1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _FINAL_2
    hashes ^= hashes >> np.uint32(16)
