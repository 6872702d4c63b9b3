"""The decoder of theta sketches, which lakes write and do not read."""

from __future__ import annotations

import struct

import numpy as np

from frazil.codec.theta_sketch import (
    _COMPACT_FAMILY,
    _EMPTY,
    _MAX_THETA,
    _PREAMBLE,
    _SEED_HASH,
    _SERIAL_VERSION,
    EMPTY_SKETCH,
    ThetaSketch,
    _corrupt,
)

_BIG_ENDIAN = 1


def decode_theta_sketch(data: bytes) -> ThetaSketch:
    """Decode a compact sketch from any writer."""
    if len(data) < _PREAMBLE.size:
        raise _corrupt(f"it has {len(data)} bytes")
    first, version, family, _, _, flags, seed_hash = _PREAMBLE.unpack_from(data)
    longs = first & 0x3F
    if version != _SERIAL_VERSION or family != _COMPACT_FAMILY or longs not in (1, 2, 3) or flags & _BIG_ENDIAN:
        raise _corrupt(f"version {version}, family {family} and preamble {longs} are not those of a compact sketch")
    if flags & _EMPTY:
        return EMPTY_SKETCH
    if seed_hash != _SEED_HASH:
        raise _corrupt("it has another seed")
    if len(data) < longs * 8:
        raise _corrupt(f"it ends after {len(data)} bytes")
    count = 1 if longs == 1 else struct.unpack_from("<I", data, 8)[0]
    theta = _MAX_THETA if longs < 3 else struct.unpack_from("<Q", data, 16)[0]
    if len(data) != longs * 8 + count * 8:
        raise _corrupt(f"it has {len(data)} bytes for {count} hashes")
    hashes = np.frombuffer(data, "<u8", count, longs * 8).astype(np.uint64)
    return ThetaSketch(np.sort(hashes), theta)
