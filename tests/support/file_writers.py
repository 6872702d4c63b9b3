"""Data and delete files for tests, in three formats, with the metrics a writer records.

Files look like those of Iceberg Java: field ids in each format's own place, no Arrow schema inside Parquet,
`unknown` columns not stored, bounds truncated to 16.
"""

from __future__ import annotations

import io
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.avro_types import encode_avro_schema, make_avro_name
from frazil.codec.single_value import encode_bound
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.datafile.value_arrays import array_of, values_of
from frazil.expr.columns.comparable import to_comparable
from frazil.spec.data_file import FileFormat
from frazil.spec.decimals import unscaled_value
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    LONG,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)

Rows = list[dict[str, Any]]
BOUND_LENGTH = 16


def rows_to_table(rows: Rows, schema: Schema) -> pa.Table:
    """Return rows of values, as `spec/types.py` holds them, as a table of a schema; missing columns are null."""
    arrow = to_arrow_schema(schema)
    columns = [
        array_of([row.get(part.name) for row in rows], part.field_type, arrow.field(at).type)
        for at, part in enumerate(schema.fields)
    ]
    return pa.table(columns, schema=arrow)


def table_to_rows(table: pa.Table, schema: Schema) -> Rows:
    """Return a table of a schema as rows of values, as `spec/types.py` holds them."""
    columns = [values_of(table.column(part.name), part.field_type) for part in schema.fields]
    names = [part.name for part in schema.fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if columns else []


def stored_schema(schema: Schema) -> Schema:
    """Return a schema without fields of type unknown, which files do not store."""
    return replace(schema, fields=_stored(schema.fields), identifier_field_ids=())


def _stored(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    kept = []
    for part in fields:
        kind = part.field_type
        if isinstance(kind, UnknownType):
            continue
        if isinstance(kind, StructType):
            part = replace(part, field_type=StructType(_stored(kind.fields)))
        kept.append(part)
    return tuple(kept)


# --- bytes of each format


def encode_parquet(
    table: pa.Table,
    schema: Schema,
    *,
    with_ids: bool = True,
    row_group_size: int | None = None,
    store_schema: bool = False,
    **options: Any,
) -> bytes:
    """Return a Parquet file of a table whose columns are those of a schema."""
    kept = stored_schema(schema)
    arrow = to_arrow_schema(kept, with_ids=with_ids)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, arrow, store_schema=store_schema, **options) as writer:
        writer.write_table(_as_stored(table, kept, arrow), row_group_size=row_group_size)
    return bytes(sink.getvalue())


def _as_stored(table: pa.Table, kept: Schema, arrow: pa.Schema) -> pa.Table:
    columns = []
    for part, target in zip(kept.fields, arrow, strict=True):
        column = table.column(part.name)
        if column.type != target.type:
            # The plain way: through values. Only nested `unknown` fields and missing ids come here.
            column = array_of(values_of(column, part.field_type), part.field_type, target.type)
        columns.append(column)
    return pa.table(columns, schema=arrow)


def split_offsets_of(data: bytes) -> tuple[int, ...]:
    """Return where the row groups of a Parquet file start."""
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    starts = []
    for at in range(metadata.num_row_groups):
        column = metadata.row_group(at).column(0)
        dictionary = column.dictionary_page_offset
        starts.append(min(column.data_page_offset, dictionary) if dictionary else column.data_page_offset)
    return tuple(starts)


_ORC_INSTANTS: dict[type[Type], str] = {
    TimestampType: "MICROS",
    TimestamptzType: "MICROS",
    TimestampNsType: "NANOS",
    TimestamptzNsType: "NANOS",
}


def encode_orc(table: pa.Table, schema: Schema, *, with_ids: bool = True, **options: Any) -> bytes:
    """Return an ORC file of a table, with Iceberg Java's attributes."""
    kept = stored_schema(schema)
    arrow = pa.schema([_orc_field(part, with_ids) for part in kept.fields])
    columns = []
    for part, target in zip(kept.fields, arrow, strict=True):
        columns.append(_orc_column(values_of(table.column(part.name), part.field_type), part.field_type, target.type))
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table(columns, schema=arrow), sink, **options)
    return bytes(sink.getvalue())


def _orc_field(part: NestedField, with_ids: bool) -> pa.Field:
    kind = part.field_type
    metadata = {"iceberg.id": str(part.field_id), "iceberg.required": str(part.required).lower()} if with_ids else {}
    arrow: pa.DataType
    if isinstance(kind, TimeType | LongType):
        arrow, metadata["iceberg.long-type"] = pa.int64(), "TIME" if isinstance(kind, TimeType) else "LONG"
    elif isinstance(kind, UuidType):
        arrow, metadata["iceberg.binary-type"] = pa.binary(), "UUID"
    elif isinstance(kind, FixedType):
        arrow = pa.binary()
        metadata |= {"iceberg.binary-type": "FIXED", "iceberg.length": str(kind.length)}
    elif isinstance(kind, VariantType):
        arrow = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
        metadata["iceberg.struct-type"] = "VARIANT"
    elif isinstance(kind, StructType):
        arrow = pa.struct([_orc_field(one, with_ids) for one in kind.fields])
    elif isinstance(kind, ListType):
        arrow = pa.list_(_orc_field(kind.element_field, with_ids))
    elif isinstance(kind, MapType):
        arrow = pa.map_(_orc_field(kind.key_field, with_ids), _orc_field(kind.value_field, with_ids))
    else:
        arrow = to_arrow_schema(Schema((part,))).field(0).type
        if type(kind) in _ORC_INSTANTS:
            metadata["iceberg.timestamp-unit"] = _ORC_INSTANTS[type(kind)]
    return pa.field(part.name, arrow, nullable=part.optional, metadata=metadata)


def _orc_column(values: list[Any], kind: Type, arrow: pa.DataType) -> pa.Array:
    return array_of(*_orc_form(values, kind), arrow)


def _orc_form(values: list[Any], kind: Type) -> tuple[list[Any], Type]:
    """Return values and their type as ORC stores them: times as longs, uuids as bytes."""
    stored = _orc_type(kind)
    return [_orc_value(value, kind) for value in values], stored


def _orc_type(kind: Type) -> Type:
    if isinstance(kind, TimeType):
        return LONG
    if isinstance(kind, UuidType | FixedType):
        return BINARY
    if isinstance(kind, StructType):
        return StructType(tuple(replace(part, field_type=_orc_type(part.field_type)) for part in kind.fields))
    if isinstance(kind, ListType):
        return replace(kind, element_type=_orc_type(kind.element_type))
    if isinstance(kind, MapType):
        return replace(kind, key_type=_orc_type(kind.key_type), value_type=_orc_type(kind.value_type))
    return kind


def _orc_value(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, UuidType):
        return value.bytes
    if isinstance(kind, StructType):
        return {part.name: _orc_value(value[part.name], part.field_type) for part in kind.fields}
    if isinstance(kind, ListType):
        return [_orc_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        return {_orc_value(key, kind.key_type): _orc_value(one, kind.value_type) for key, one in value.items()}
    return value


def encode_avro(
    table: pa.Table, schema: Schema, *, with_ids: bool = True, codec: str = "deflate", **options: Any
) -> bytes:
    """Return an Avro file of a table."""
    document = encode_avro_schema(_avro_storable(schema.struct), "table")
    if not with_ids:
        document = _without_ids(document)
    rows = [_avro_value(row, schema.struct) for row in table_to_rows(table, schema)]
    sink = io.BytesIO()
    fastavro.writer(sink, document, rows, codec=codec, **options)
    return sink.getvalue()


def _avro_storable(kind: Any) -> Any:
    """Return a type with what the metadata writer does not know (variants, geometries) as what Avro stores."""
    if isinstance(kind, StructType):
        return StructType(tuple(replace(part, field_type=_avro_storable(part.field_type)) for part in kind.fields))
    if isinstance(kind, ListType):
        return replace(kind, element_type=_avro_storable(kind.element_type))
    if isinstance(kind, MapType):
        return replace(kind, key_type=_avro_storable(kind.key_type), value_type=_avro_storable(kind.value_type))
    return BINARY if isinstance(kind, GeometryType | GeographyType) else kind


def _without_ids(node: Any) -> Any:
    if isinstance(node, dict):
        ids = ("field-id", "element-id", "key-id", "value-id")
        return {key: _without_ids(value) for key, value in node.items() if key not in ids}
    return [_without_ids(one) for one in node] if isinstance(node, list) else node


def _avro_value(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        taken: dict[str, Any] = {}
        for part in kind.fields:
            name = make_avro_name(part.name)
            taken[f"{name}_f{part.field_id}" if name in taken else name] = _avro_value(
                value[part.name], part.field_type
            )
        return taken
    if isinstance(kind, ListType):
        return [_avro_value(one, kind.element_type) for one in value]
    if isinstance(kind, MapType):
        pairs = [(_avro_value(key, kind.key_type), _avro_value(one, kind.value_type)) for key, one in value.items()]
        if isinstance(kind.key_type, StringType):
            return dict(pairs)
        return [{"key": key, "value": one} for key, one in pairs]
    if isinstance(kind, UuidType):
        return value.bytes
    if isinstance(kind, DecimalType):
        unscaled = unscaled_value(value, kind.scale)
        assert unscaled is not None
        size = (int(10**kind.precision - 1).bit_length() + 8) // 8
        return unscaled.to_bytes(size, "big", signed=True)
    return value


def encode_file(table: pa.Table, schema: Schema, file_format: FileFormat | str, **options: Any) -> bytes:
    """Return a file of any format."""
    encoders = {FileFormat.PARQUET: encode_parquet, FileFormat.ORC: encode_orc, FileFormat.AVRO: encode_avro}
    return encoders[FileFormat(file_format)](table, schema, **options)


# --- metrics


@dataclass
class Metrics:
    """What a writer records of a file, by field id."""

    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)


def metrics_of(table: pa.Table, schema: Schema, *, bound_length: int | None = BOUND_LENGTH) -> Metrics:
    """Return the metrics of a table whose columns are those of a schema; a bound length of None truncates nothing."""
    metrics = Metrics()
    for part in stored_schema(schema).fields:
        column = table.column(part.name)
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        _collect(array, part, metrics, bound_length or 2**30)
    return metrics


def _collect(array: pa.Array, part: NestedField, metrics: Metrics, bound_length: int) -> None:
    kind = part.field_type
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if isinstance(kind, StructType):
        for at, one in enumerate(kind.fields):
            _collect(pc.struct_field(array, at), one, metrics, bound_length)
    elif isinstance(kind, ListType):
        _collect(array.flatten(), kind.element_field, metrics, 0)
    elif isinstance(kind, MapType):
        _collect(array.keys, kind.key_field, metrics, 0)
        _collect(array.items, kind.value_field, metrics, 0)
    else:
        _collect_leaf(array, part, metrics, bound_length)


def _collect_leaf(array: pa.Array, part: NestedField, metrics: Metrics, bound_length: int) -> None:
    field_id, kind = part.field_id, part.field_type
    metrics.value_counts[field_id] = len(array)
    metrics.null_value_counts[field_id] = array.null_count
    if isinstance(kind, FloatType | DoubleType):
        nan = pc.fill_null(pc.is_nan(array), False)
        metrics.nan_value_counts[field_id] = pc.sum(nan).as_py() or 0
        array = array.filter(pc.invert(nan))
    has_bounds = bound_length > 0 and isinstance(kind, PrimitiveType)
    if not has_bounds or isinstance(kind, GeometryType | GeographyType):
        return
    found = pc.min_max(to_comparable(array, kind)).as_py()
    if found["min"] is None:
        return
    lower, upper = _internal(found["min"], kind), _internal(found["max"], kind)
    if isinstance(kind, FloatType | DoubleType):
        lower, upper = (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    upper = truncate_upper_bound(upper, kind, bound_length)
    metrics.lower_bounds[field_id] = encode_bound(truncate_lower_bound(lower, kind, bound_length), kind)
    if upper is not None:
        metrics.upper_bounds[field_id] = encode_bound(upper, kind)


def _internal(value: Any, kind: Type) -> Any:
    if isinstance(kind, StringType):
        return value.decode()
    if isinstance(kind, UuidType):
        return uuid.UUID(bytes=value)
    return bool(value) if str(kind) == "boolean" else value
