"""A set of hashes at eight bytes each, for identifying millions of files.

It consists of sorted arrays of growing sizes: new hashes are added as an array of their own, which is merged with the
last one while that is no larger. So there are few arrays, each hash is merged a logarithmic number of times, and there
are no objects per hash.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class SeenHashes:
    """A set of hashes."""

    def __init__(self) -> None:
        self._levels: list[npt.NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    @property
    def size_bytes(self) -> int:
        """The size of the hashes."""
        return sum(level.nbytes for level in self._levels)

    def add(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Add hashes and return which of them are new; of repeated ones, the first."""
        distinct, first = np.unique(hashes, return_index=True)
        is_new = np.ones(len(distinct), np.bool_)
        for level in self._levels:
            index = np.minimum(np.searchsorted(level, distinct), len(level) - 1)
            is_new &= level[index] != distinct
        chosen = np.zeros(len(hashes), np.bool_)
        chosen[first[is_new]] = True
        self._push(distinct[is_new])
        return chosen

    def contains(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which hashes have been added."""
        is_known = np.zeros(len(hashes), np.bool_)
        for level in self._levels:
            index = np.minimum(np.searchsorted(level, hashes), len(level) - 1)
            is_known |= level[index] == hashes
        return is_known

    def _push(self, fresh: npt.NDArray[np.int64]) -> None:
        if len(fresh) == 0:
            return
        while self._levels and len(self._levels[-1]) <= len(fresh):
            fresh = np.sort(np.concatenate((self._levels.pop(), fresh)), kind="stable")
        self._levels.append(fresh)
