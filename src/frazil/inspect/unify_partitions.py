"""The `partition` column of metadata tables: tuples of all of a table's specs under one type.

Manifests hold tuples of their own spec. The unified type has the fields of all specs whose source column the
table still has (`spec/partitioning.active_partition_type`), by field id; where a spec has no such field, or
has it as void, the value is null. A table without such fields has no `partition` column.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_field
from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_fields import PARTITION_ID
from frazil.codec.partition_arrow import arrow_type_of
from frazil.spec.partitioning import active_partition_type
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import NestedField, StructType


def metadata_partition_type(metadata: TableMetadata) -> StructType:
    """Return the type of the `partition` column of a table's metadata tables."""
    return active_partition_type(metadata.partition_specs, metadata.current_schema)


def partition_fields(kind: StructType) -> list[pa.Field]:
    """Return the `partition` column, or nothing where the table has no partition fields."""
    if len(kind) == 0:
        return []
    return [to_arrow_field(NestedField(PARTITION_ID, "partition", kind, required=True), with_ids=False)]


def unified_children(files: ManifestColumns, kind: StructType) -> list[pa.Array]:
    """Return the fields of the unified type for each file of a manifest, in Arrow's plain types."""
    count = len(files)
    known = {part.field_id: at for at, part in enumerate(files.partition_type.fields)}
    flat = single_chunk(files.column("partition")).flatten()
    children = []
    for part in kind.fields:
        target = arrow_type_of(part.field_type)
        at = known.get(part.field_id)
        # A void field may have another type than the field it took the place of; its values are all null.
        is_same = at is not None and flat[at].type == target
        children.append(flat[at] if is_same else pa.nulls(count, target))
    return children


def partition_array(children: list[Any], target: pa.DataType, kind: StructType) -> pa.Array:
    """Return fields of the unified type as a `partition` column, of which `target` may have a part only."""
    positions = {part.name: at for at, part in enumerate(kind.fields)}
    chosen = [as_type(children[positions[part.name]], part.type) for part in target]
    return pa.Array.from_buffers(target, len(children[0]), [None], children=chosen)


def as_type(array: Any, target: pa.DataType) -> Any:
    """Return an array of plain Arrow values in a type that may be an extension of theirs."""
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
    return array.cast(target)


def single_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
