"""Partitions as keys: the spec's id and the values of its fields, comparable across manifests and new files.

Values compare as in `scan/delete_index.py`: floats by their bits, all NaN alike. Tuples of different specs are
never equal, since their fields mean different things.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.partition_arrow import values_of
from frazil.scan.delete_index import PartitionKey
from frazil.spec.data_file import DataFile


def partition_key(spec_id: int, values: Iterable[Any]) -> PartitionKey:
    """Return the key of a partition."""
    return (spec_id, *(_float_key(one) if isinstance(one, float) else one for one in values))


def partition_key_of(file: DataFile) -> PartitionKey:
    """Return the key of a file's partition."""
    return partition_key(file.spec_id, file.partition)


def partition_tuples(files: ManifestColumns) -> list[tuple[Any, ...]]:
    """Return each file's partition values, in the order of its spec's fields."""
    parts = files.partition_type.fields
    if not parts:
        return [()] * len(files)
    chunks = files.column("partition").chunks
    columns = [
        values_of(pa.chunked_array([one.field(at) for one in chunks]), part.field_type) if chunks else []
        for at, part in enumerate(parts)
    ]
    return list(zip(*columns, strict=True))


def _float_key(value: float) -> bytes:
    return b"nan" if value != value else struct.pack("<d", value)
