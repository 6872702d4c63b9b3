"""Partitions as keys: equal where the bits are, all NaN alike, and not across specs."""

from __future__ import annotations

import struct

from frazil.spec.partition_key import partition_key, values_key

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]


def test_nan_is_one_partition_and_zeros_are_two() -> None:
    assert values_key((float("nan"), 1)) == values_key((OTHER_NAN, 1))
    assert values_key((0.0,)) != values_key((-0.0,))
    assert values_key((1.5,)) == values_key((1.5,))


def test_values_keep_their_type() -> None:
    assert values_key((1, "a", None, b"nan", True)) == (1, "a", None, b"nan", True)
    assert values_key((1.0,)) != values_key((1,))


def test_partitions_of_different_specs_differ() -> None:
    assert partition_key(0, ("a",)) != partition_key(1, ("a",))
    assert partition_key(0, ()) == (0,)
