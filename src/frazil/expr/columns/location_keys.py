"""Keys and hashes of whole columns of file locations, to identify millions of files in use.

A key is the result of `storage/locations.location_key`. Nearly all locations are their own keys: absolute URIs without
escapes, dots or repeated slashes. Two patterns over the column find the exceptions, and only those are normalized
individually.

A hash has 64 bits and is valid only in this process. Two files with equal hashes count as one, so it must be used so
that a collision keeps a file too many and never loses one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.storage.locations import NOT_PLAIN, PLAIN, location_key

Hashes = npt.NDArray[np.int64]


def location_keys(locations: pa.Array | pa.ChunkedArray) -> list[str]:
    """Return the key of each location in a column."""
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
