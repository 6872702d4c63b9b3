"""The join of a merge finds every pair of equal keys, and no other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.change_rows.key_index import KeyIndex

TYPES = {"int": pa.int64(), "text": pa.string(), "float": pa.float64(), "small": pa.int32()}


def value(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.2:
        return None
    if kind == "text":
        return chance.choice("abc")
    if kind == "float":
        return chance.choice([0.0, -0.0, float("nan"), 1.5])
    return chance.randrange(-3, 4) * (chance.choice([1, 10**12]) if kind == "int" else 1)


def is_equal(one: Any, two: Any, *, is_null_safe: bool) -> bool:
    if one is None or two is None:
        return is_null_safe and one is two
    if one != one or two != two:
        return bool(one != one and two != two)
    return bool(one == two)


@pytest.mark.parametrize("seed", range(200))
def test_matches_are_pairs_of_equal_keys(seed: int) -> None:
    chance = random.Random(seed)
    kinds = [chance.choice(list(TYPES)) for _ in range(chance.choice([1, 1, 2, 3]))]
    safe = [chance.random() < 0.5 for _ in kinds]
    source, table = (
        [[value(chance, kind) for _ in range(count)] for kind in kinds]
        for count in (chance.randrange(20), chance.randrange(20))
    )
    counts = len(source[0]), len(table[0])
    arrays = [
        [pa.array(column, TYPES[kind]) for column, kind in zip(side, kinds, strict=True)] for side in (source, table)
    ]
    index = KeyIndex(arrays[0], counts[0], are_null_safe=safe)
    ours, theirs = index.find(arrays[1], counts[1])
    wanted = {
        (here, there)
        for here in range(counts[1])
        for there in range(counts[0])
        if all(is_equal(table[at][here], source[at][there], is_null_safe=safe[at]) for at in range(len(kinds)))
    }
    assert sorted(zip(ours.tolist(), theirs.tolist(), strict=True)) == sorted(wanted)
    assert (np.diff(ours) >= 0).all()


def test_duplicate_key_is_reported() -> None:
    index = KeyIndex([pa.array([3, 1, None, 1, None])], 5, are_null_safe=[True])
    assert index.some_twice == [1, 2]
    assert KeyIndex([pa.array([3, 1, None])], 3, are_null_safe=[True]).some_twice == []
    assert KeyIndex([pa.array([float("nan"), float("nan")])], 2, are_null_safe=[True]).some_twice == [0]
    assert KeyIndex([pa.array([None, None], pa.int64())], 2, are_null_safe=[False]).some_twice == []
