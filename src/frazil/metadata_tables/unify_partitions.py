"""The `partition` column of metadata tables: tuples of all of a table's specs in one type.

Manifests hold tuples of their own spec. The unified type has, by field id, the fields of all specs whose source column
the table still has (`spec/partitioning.active_partition_type`). If a spec lacks a field, or has it as void, the value
is null. A table without such fields has no `partition` column.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_field
from frazil.codec.manifest_fields import PARTITION_ID
from frazil.spec.partitioning import active_partition_type
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import NestedField, StructType


def metadata_partition_type(metadata: TableMetadata) -> StructType:
    """Return the type of the `partition` column of a table's metadata tables."""
    return active_partition_type(metadata.partition_specs, metadata.current_schema)


def partition_fields(data_type: StructType) -> list[pa.Field]:
    """Return the `partition` column, or nothing if the table has no partition fields."""
    if len(data_type) == 0:
        return []
    return [to_arrow_field(NestedField(PARTITION_ID, "partition", data_type, required=True), with_ids=False)]


def partition_array(children: list[Any], target: pa.DataType, data_type: StructType) -> pa.Array:
    """Return fields of the unified type as a `partition` column; `target` may have a subset of the fields."""
    positions = {field.name: index for index, field in enumerate(data_type.fields)}
    chosen = [as_type(children[positions[field.name]], field.type) for field in target]
    return pa.Array.from_buffers(target, len(children[0]), [None], children=chosen)


def as_type(array: Any, target: pa.DataType) -> Any:
    """Return an array of plain Arrow values as a type that may be an extension of theirs."""
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
    return array.cast(target)
