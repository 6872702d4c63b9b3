"""Sets of 64-bit positions as Roaring bitmaps. Specification: Puffin file format, "`deletion-vector-v1` blob type".

The portable form of a 64-bit set is a list of 32-bit bitmaps, each keyed by the upper half of its positions:

    count, 8 bytes | key, 4 bytes | 32-bit bitmap | key | 32-bit bitmap | ...        all little-endian

    32-bit bitmap:  3A 30 00 00 | containers, 4 bytes                       without run containers
                    3B 30 | containers - 1, 2 bytes | a bit for each: run?  with run containers
                    (key, cardinality - 1), 2 bytes each, for each container
                    offset, 4 bytes, for each container; omitted with runs and fewer than 4 containers
                    containers: runs | up to 4096 values, 2 bytes each | 8192 bytes, a bit for each value

A 32-bit bitmap does not state its size, so its layout is walked here to find the next key. That walk checks
what the library would skip (sizes of runs, the offsets) and that no bytes are missing. The library then
checks the content of the containers (order, overlap, cardinality) before a bitmap can be used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from frazil.errors import InvalidPuffinError

HEADING = "`deletion-vector-v1` blob type"

MAX_KEY = 2**31 - 1
"""The largest upper half of a position: the most significant bit of a position must be 0."""

MAX_BITMAPS = 1 << 16
"""The most bitmaps allowed; more would take much memory for rows that no file has."""

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192
_SMALLEST_BITMAP = 8


def decode_roaring64(data: bytes) -> tuple[tuple[int, FrozenBitMap], ...]:
    """Decode a 64-bit set into its 32-bit bitmaps by ascending key; bitmaps may be empty."""
    if len(data) < 8:
        raise corrupt(f"{len(data)} bytes are too few for the count of bitmaps")
    (count,) = struct.unpack_from("<Q", data)
    if count > (len(data) - 8) // (4 + _SMALLEST_BITMAP):
        raise corrupt(f"{len(data)} bytes cannot hold {count} bitmaps")
    if count > MAX_BITMAPS:
        raise corrupt(f"it has {count} bitmaps, above the limit of {MAX_BITMAPS}")
    bitmaps = []
    offset, last_key = 8, -1
    for _ in range(count):
        if offset + 4 > len(data):
            raise corrupt(f"the bytes end at {len(data)}, before the key of a bitmap")
        (key,) = struct.unpack_from("<I", data, offset)
        if key > MAX_KEY:
            raise corrupt(f"the key {key} is above {MAX_KEY}: positions have at most 63 bits")
        if key <= last_key:
            raise corrupt(f"the key {key} follows the key {last_key}, and keys must ascend")
        offset, last_key = offset + 4, key
        end = _bitmap_end(data, offset)
        try:
            bitmaps.append((key, FrozenBitMap.deserialize(data[offset:end])))
        except ValueError as error:
            raise corrupt(f"the bitmap of key {key} is not valid ({error})") from error
        offset = end
    if offset != len(data):
        raise corrupt(f"{len(data) - offset} bytes follow the last bitmap")
    return tuple(bitmaps)


def encode_roaring64(bitmaps: Iterable[tuple[int, FrozenBitMap]]) -> bytes:
    """Encode 32-bit bitmaps under ascending keys as a 64-bit set, with their containers unchanged."""
    parts = []
    for key, bitmap in bitmaps:
        parts += [struct.pack("<I", key), bitmap.serialize()]
    return b"".join((struct.pack("<Q", len(parts) // 2), *parts))


def corrupt(reason: str) -> InvalidPuffinError:
    """Return the error for bytes that are not a deletion vector."""
    return InvalidPuffinError(f"Cannot read the deletion vector: {reason}", heading=HEADING)


def _bitmap_end(data: bytes, start: int) -> int:
    """Return the end of the 32-bit bitmap at an offset, checking its layout."""
    if start + _SMALLEST_BITMAP > len(data):
        raise _cut_off(data)
    (cookie,) = struct.unpack_from("<I", data, start)
    if cookie == _COOKIE_WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, start + 4)
        offset, has_runs = start + 8, False
    elif cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        offset, has_runs = start + 4, True
    else:
        raise corrupt(f"a bitmap starts with {cookie:#010x}, which is not a valid cookie")
    if count > _MAX_CONTAINERS:
        raise corrupt(f"a bitmap has {count} containers")
    run_flags_at = offset
    offset += (count + 7) // 8 if has_runs else 0
    header_end = offset + 4 * count
    has_offsets = not has_runs or count >= _OFFSETS_FROM
    containers_start = header_end + (4 * count if has_offsets else 0)
    if containers_start > len(data):
        raise _cut_off(data)
    header = np.frombuffer(data, "<u2", 2 * count, offset)
    cardinalities = header[1::2].astype(np.int64) + 1
    sizes = np.where(cardinalities <= _MAX_ARRAY, 2 * cardinalities, _BITSET_BYTES)
    if has_runs:
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, run_flags_at)
        is_run = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
        _measure_runs(data, containers_start, cardinalities, sizes, is_run)
    ends = containers_start + np.cumsum(sizes)
    end = int(ends[-1]) if count else containers_start
    if end > len(data):
        raise _cut_off(data)
    if has_offsets and count:
        offsets = np.frombuffer(data, "<u4", count, header_end)
        if not np.array_equal(offsets, ends - sizes - start):
            raise corrupt("the offsets of a bitmap do not point at its containers")
    return end


def _measure_runs(
    data: bytes,
    start: int,
    cardinalities: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    is_run: npt.NDArray[np.bool_],
) -> None:
    """Store the sizes of run containers, in order, since each can only be located after those before it."""
    offset = start
    done = 0
    for index in np.flatnonzero(is_run).tolist():
        offset += int(sizes[done:index].sum())
        if offset + 2 > len(data):
            raise _cut_off(data)
        (runs,) = struct.unpack_from("<H", data, offset)
        sizes[index] = 2 + 4 * runs
        if offset + 2 + 4 * runs > len(data):
            raise _cut_off(data)
        # Lengths are stored minus one.
        values = int(np.frombuffer(data, "<u2", 2 * runs, offset + 2)[1::2].sum(dtype=np.int64)) + runs
        if values != int(cardinalities[index]):
            raise corrupt(f"a run container of {values} values says it has {cardinalities[index]}")
        offset += 2 + 4 * runs
        done = index + 1


def _cut_off(data: bytes) -> InvalidPuffinError:
    return corrupt(f"the bytes end at {len(data)}, inside a bitmap")
