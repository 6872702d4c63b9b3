"""Types of DuckDB's results in Arrow: whole numbers of 128 bits as decimals, JSON as text.

DuckDB hands uuids to Arrow as such only together with other types of its own, which are turned into plain ones here.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import EngineError

_WHOLE: Final = pa.decimal128(38, 0)
_LARGEST: Final = 10**38 - 1


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without types that only DuckDB knows."""
    if not any(isinstance(field.type, pa.BaseExtensionType) for field in batch.schema):
        return batch
    columns = [_plain(column) for column in batch.columns]
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without types that only DuckDB knows."""
    return plain_batch(pa.RecordBatch.from_pylist([], schema=schema)).schema


def _plain(column: pa.Array) -> pa.Array:
    data_type = column.type
    if not isinstance(data_type, pa.BaseExtensionType) or isinstance(data_type, pa.UuidType):
        return column
    if isinstance(data_type, pa.Bool8Type):
        return column.storage.cast(pa.bool_())
    if isinstance(data_type, pa.OpaqueType) and data_type.type_name == "hugeint":
        # Both are 128 bits, two's complement, least significant byte first.
        storage = column.storage
        made = pa.Array.from_buffers(_WHOLE, len(storage), storage.buffers(), offset=storage.offset)
        if len(made) and (made.null_count < len(made)) and _exceeds(made):
            raise EngineError(
                "Cannot return the rows of the query: a whole number has more than 38 digits",
                hint="Cast it to DOUBLE or VARCHAR.",
            )
        return made
    return column.storage


def _exceeds(column: pa.Array) -> bool:
    low, high = pc.min_max(column).values()
    return max(abs(int(low.as_py())), abs(int(high.as_py()))) > _LARGEST
