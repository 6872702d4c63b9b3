"""Partitions as keys of mappings: the spec's id and the values of its fields.

In Python, NaN is not equal to itself and the two zeros are equal, but partitions are distinguished by bits, with all
NaN alike. Keys of different specs are not equal, since their fields mean different things.
`expr/columns/partition_keys.py` has the keys of a manifest's files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Protocol

from frazil.spec.data_file import PartitionKey

_NAN = b"nan"


class InPartition(Protocol):
    """An object that belongs to a partition, such as a file."""

    @property
    def spec_id(self) -> int:
        """The partition spec's id."""

    @property
    def partition(self) -> tuple[Any, ...]:
        """The values of the spec's fields."""


def partition_key(spec_id: int, values: Iterable[Any]) -> PartitionKey:
    """Return the key of a partition."""
    return (spec_id, *values_key(values))


def values_key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the key of a partition among the partitions of one spec."""
    return tuple(map(key_value, values))


def partition_key_of(file: InPartition) -> PartitionKey:
    """Return the key of a file's partition."""
    return partition_key(file.spec_id, file.partition)


def key_value(value: Any) -> Any:
    """Return a comparable form of a partition value, equal for values with the same bits."""
    if not isinstance(value, float):
        return value
    return _NAN if value != value else struct.pack("<d", value)
