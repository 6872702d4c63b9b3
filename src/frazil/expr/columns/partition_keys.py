"""The partitions of a manifest's files, read from its columns, as tuples of values and as hashable keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.partition_arrow import values_of
from frazil.spec.data_file import PartitionKey
from frazil.spec.partition_key import key_value


def partition_tuples(files: ManifestColumns) -> list[tuple[Any, ...]]:
    """Return each file's partition values, in the order of its spec's fields."""
    parts = files.partition_type.fields
    if not parts:
        return [()] * len(files)
    return list(zip(*_values(files), strict=True))


def partition_keys(files: ManifestColumns) -> list[PartitionKey]:
    """Return the key of each file's partition, comparable with those of other manifests and of new files."""
    if not files.partition_type.fields:
        return [(files.spec_id,)] * len(files)
    columns = [
        map(key_value, column) if any(isinstance(value, float) for value in column) else column
        for column in _values(files)
    ]
    return [(files.spec_id, *values) for values in zip(*columns, strict=True)]


def _values(files: ManifestColumns) -> list[list[Any]]:
    chunks = files.column("partition").chunks
    return [
        values_of(pa.chunked_array([chunk.field(index) for chunk in chunks]), field.field_type) if chunks else []
        for index, field in enumerate(files.partition_type.fields)
    ]
