"""Locations of files as keys and hashes, a column at a time: for telling by the million which files are in use.

A key is what `storage/locations.location_key` makes of a location. Nearly all locations are their own keys: absolute
URIs without escapes, dots or repeated slashes. Which ones are is found by two patterns over the column, and only the
others are taken apart one by one.

A hash is of 64 bits and of this process only. Two files of one hash are taken for one, so what is asked must be such
that this keeps a file too many and never loses one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.storage.locations import NOT_PLAIN, PLAIN, location_key

Hashes = npt.NDArray[np.int64]


def location_keys(locations: pa.Array | pa.ChunkedArray) -> list[str]:
    """Return the key of each location of a column."""
    plain = pc.and_not(
        pc.match_substring_regex(locations, PLAIN), pc.match_substring_regex(locations, NOT_PLAIN)
    ).to_numpy(zero_copy_only=False)
    keys: list[str] = locations.to_pylist()
    for index in np.flatnonzero(~plain).tolist():
        keys[index] = location_key(keys[index])
    return keys


def hashes_of(keys: list[str]) -> Hashes:
    """Return the hash of each key."""
    return np.fromiter(map(hash, keys), np.int64, len(keys))
