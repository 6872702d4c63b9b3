"""Hashes seen: the same answers as a set, in eight bytes for each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frazil.expr.columns.seen_hashes import SeenHashes

HASHES = st.lists(st.one_of(st.integers(-3, 30), st.sampled_from([-(2**63), 2**63 - 1])), max_size=12)


@given(st.lists(HASHES, max_size=12))
def test_membership_equals_a_set(batches: list[list[int]]) -> None:
    seen, model = SeenHashes(), set[int]()
    for batch in batches:
        expected = []
        for one in batch:
            expected.append(one not in model)
            model.add(one)
        assert seen.add(np.array(batch, np.int64)).tolist() == expected
    assert len(seen) == len(model)


def test_many_hashes_take_eight_bytes_each() -> None:
    random = np.random.default_rng(1)
    seen = SeenHashes()
    for _ in range(200):
        assert seen.add(random.integers(-(2**63), 2**63 - 1, 1000)).all()
    assert len(seen) == 200_000
    assert seen.size_bytes == 8 * 200_000
