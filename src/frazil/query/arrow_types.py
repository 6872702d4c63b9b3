"""Types of DuckDB's results in Arrow: whole numbers of 128 bits as decimals, uuids as such, JSON as text.

DuckDB hands these to Arrow exactly only together with other types of its own, which are made plain here, also inside
of lists, structs and maps.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import EngineError

EXACT_ONLY_AS_OWN: Final = frozenset({"hugeint", "uhugeint", "uuid"})
"""Types of DuckDB that it hands over exactly only with `arrow_lossless_conversion`."""
NOT_IN_ARROW: Final = frozenset({"bignum", "bit", "time with time zone", "union"})
_WHOLE: Final = pa.decimal128(38, 0)
_LARGEST: Final = 10**38 - 1


def names_in(data_type: Any) -> frozenset[str]:
    """Return the names of a type of DuckDB and of the types inside of it."""
    inner = data_type.children if data_type.id in ("array", "list", "map", "struct") else ()
    # The size of an array is one of its children.
    return frozenset({data_type.id}).union(*(names_in(child) for _, child in inner if not isinstance(child, int)))


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without types that only DuckDB knows."""
    fields = [field.with_type(_plain_type(field.type)) for field in batch.schema]
    if all(plain.type == field.type for plain, field in zip(fields, batch.schema, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], schema=pa.schema(fields))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without types that only DuckDB knows."""
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if not _has_own(data_type):
        return data_type
    if isinstance(data_type, pa.Bool8Type):
        return pa.bool_()
    if _is_whole_number(data_type):
        return _WHOLE
    if isinstance(data_type, pa.BaseExtensionType):
        return data_type.storage_type
    fields = [data_type.field(number) for number in range(data_type.num_fields)]
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in fields])
    if pa.types.is_map(data_type):
        fields = [data_type.key_field, data_type.item_field]
        return pa.map_(*(field.with_type(_plain_type(field.type)) for field in fields))
    size = data_type.list_size if pa.types.is_fixed_size_list(data_type) else -1
    return pa.list_(fields[0].with_type(_plain_type(fields[0].type)), size)


def _is_whole_number(data_type: pa.DataType) -> bool:
    return isinstance(data_type, pa.OpaqueType) and data_type.type_name in ("hugeint", "uhugeint")


def _has_own(data_type: pa.DataType) -> bool:
    if isinstance(data_type, pa.BaseExtensionType):
        return not isinstance(data_type, pa.UuidType)
    return any(_has_own(data_type.field(number).type) for number in range(data_type.num_fields))


def _plain(column: pa.Array) -> pa.Array:
    data_type = column.type
    if not _has_own(data_type):
        return column
    if isinstance(data_type, pa.Bool8Type):
        return column.storage.cast(pa.bool_())
    if _is_whole_number(data_type):
        return _whole_numbers(column.storage, is_signed=data_type.type_name == "hugeint")
    if isinstance(data_type, pa.BaseExtensionType):
        return column.storage
    plain = _plain_type(data_type)
    if pa.types.is_struct(data_type):
        children = [_plain(column.field(number)) for number in range(data_type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(plain), mask=column.is_null())
    # The parts of lists and maps stay whole, so that the offset of the column keeps its meaning.
    if pa.types.is_map(data_type):
        fields = [plain.key_field, plain.item_field]
        values: pa.Array = pa.StructArray.from_arrays([_plain(column.keys), _plain(column.items)], fields=fields)
    else:
        values = _plain(column.values)
    own_buffers = column.buffers()[: 1 if pa.types.is_fixed_size_list(data_type) else 2]
    return pa.Array.from_buffers(plain, len(column), own_buffers, column.null_count, column.offset, children=[values])


def _whole_numbers(storage: pa.Array, *, is_signed: bool) -> pa.Array:
    """Return whole numbers of 128 bits as decimals, which have the same bytes; refuse those of more digits."""
    decimals = pa.Array.from_buffers(_WHOLE, len(storage), storage.buffers(), offset=storage.offset)
    if decimals.null_count < len(decimals):
        low, high = (int(bound.as_py()) for bound in pc.min_max(decimals).values())
        # An unsigned number that looks negative is larger than all others.
        if high > _LARGEST or low < (-_LARGEST if is_signed else 0):
            raise EngineError(
                "Cannot return the rows of the query: a whole number has more than 38 digits",
                hint="Cast it to DOUBLE or VARCHAR.",
            )
    return decimals
