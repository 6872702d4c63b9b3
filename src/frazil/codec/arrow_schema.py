"""Conversion between Iceberg and Arrow schemas. Specification: "Schemas and Data Types", "Parquet" (Appendix A).

Rows enter and leave frazil as Arrow, and Parquet files are written through Arrow schemas. A field's metadata holds
its id as `PARQUET:field_id`, which the Parquet reader and writer of Arrow preserve, and its doc as `doc`. Arrow has no
geometry, geography or variant type: such columns use their storage type, with the type name in the metadata as
`frazil.type`.

    boolean bool          date date32              string string          struct struct
    int int32             time time64[us]          uuid arrow.uuid        list list<element>
    long int64            timestamp timestamp[us]  fixed fixed_size_binary  map map<key, value>
    float float           timestamptz the same, UTC  binary binary        unknown null
    double double         ..._ns timestamp[ns]     geometry, geography binary (WKB)
    decimal decimal128                             variant struct<metadata: binary, value: binary>

From Arrow, other widths and encodings of the same values are accepted (large and view types, dictionaries, smaller
integers, coarser times). Lossy conversions are refused with the column's name.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa

from frazil.codec.arrow_arrays import is_binary
from frazil.codec.schema_json import decode_type_name, encode_type
from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec import types as ft
from frazil.spec.fresh_ids import reassign_ids
from frazil.spec.name_mapping import NameMapping, apply_name_mapping
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema

FIELD_ID_KEY = b"PARQUET:field_id"
DOC_KEY = b"doc"
TYPE_KEY = b"frazil.type"

_VARIANT_STORAGE = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
_ARROW_TYPES: dict[ft.Type, pa.DataType] = {
    ft.BOOLEAN: pa.bool_(),
    ft.INT: pa.int32(),
    ft.LONG: pa.int64(),
    ft.FLOAT: pa.float32(),
    ft.DOUBLE: pa.float64(),
    ft.DATE: pa.date32(),
    ft.TIME: pa.time64("us"),
    ft.TIMESTAMP: pa.timestamp("us"),
    ft.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    ft.TIMESTAMP_NS: pa.timestamp("ns"),
    ft.TIMESTAMPTZ_NS: pa.timestamp("ns", "UTC"),
    ft.STRING: pa.string(),
    ft.UUID: pa.uuid(),
    ft.BINARY: pa.binary(),
    ft.UNKNOWN: pa.null(),
    ft.VARIANT: _VARIANT_STORAGE,
}
_UUID_STORAGE = pa.binary(16)


# --- to Arrow


def to_arrow_schema(schema: Schema, *, with_ids: bool = True, has_extensions: bool = True) -> pa.Schema:
    """Return the Arrow form of a schema.

    Without `has_extensions`, a uuid becomes 16 bytes, for code that computes on plain Arrow types.
    """
    return pa.schema(
        [to_arrow_field(field, with_ids=with_ids, has_extensions=has_extensions) for field in schema.fields]
    )


def to_arrow_field(field: ft.NestedField, *, with_ids: bool = True, has_extensions: bool = True) -> pa.Field:
    """Return the Arrow form of a field, with its id, its doc and a type name that Arrow lacks in its metadata."""
    metadata: dict[bytes, bytes] = {}
    if with_ids:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
    if field.doc is not None:
        metadata[DOC_KEY] = field.doc.encode()
    data_type = field.field_type
    if "\0" in field.name:
        # The C interface of Arrow ends names at a NUL, so the name would be cut short.
        raise UnsupportedError(
            f"Cannot show the column {field.name!r}: its name holds a NUL character", hint="Rename the column."
        )
    if field.required and isinstance(data_type, ft.UnknownType):
        raise InvalidRequestError(f"Cannot convert {field.name!r} to Arrow: fields of type unknown are optional")
    if isinstance(data_type, ft.GeometryType | ft.GeographyType | ft.VariantType) or (
        isinstance(data_type, ft.UuidType) and not has_extensions
    ):
        metadata[TYPE_KEY] = str(encode_type(data_type)).encode()
    arrow = to_arrow_type(data_type, with_ids=with_ids, has_extensions=has_extensions)
    return pa.field(field.name, arrow, nullable=field.optional, metadata=metadata or None)


def to_arrow_type(data_type: ft.Type, *, with_ids: bool = True, has_extensions: bool = True) -> pa.DataType:
    """Return the Arrow form of a type."""
    if isinstance(data_type, ft.UuidType) and not has_extensions:
        return _UUID_STORAGE
    simple = _ARROW_TYPES.get(data_type)
    if simple is not None:
        return simple
    if isinstance(data_type, ft.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, ft.FixedType):
        return pa.binary(data_type.length)
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return pa.binary()
    if isinstance(data_type, ft.StructType | ft.ListType | ft.MapType):
        parts = [to_arrow_field(field, with_ids=with_ids, has_extensions=has_extensions) for field in data_type.fields]
        if isinstance(data_type, ft.StructType):
            return pa.struct(parts)
        return pa.list_(parts[0]) if isinstance(data_type, ft.ListType) else pa.map_(*parts)
    raise InvalidRequestError(f"Cannot convert the type {data_type} to Arrow: it has no Arrow form")


# --- from Arrow


def from_arrow_schema(
    arrow: pa.Schema,
    *,
    name_mapping: NameMapping | None = None,
    format_version: int = 3,
    has_fresh_ids: bool = False,
) -> Schema:
    """Return the Iceberg form of an Arrow schema.

    Field ids come from the fields' metadata. If no field has one, they come from the name mapping, which drops
    unmapped columns, or all fields are numbered anew, as with `has_fresh_ids`. Types that the format version lacks
    are refused: nanoseconds and null columns need version 3.
    """
    reader = _Reader(format_version, has_fresh_ids=has_fresh_ids)
    fields = tuple(reader.field(field, field.name, depth=1) for field in arrow)
    if reader.with_id and reader.without_id:
        without, having = reader.without_id[0], reader.with_id[0]
        raise SchemaMismatchError(
            f"Cannot read the Arrow schema: {without!r} has no field id, and {having!r} has one",
            hint="Give every field, nested ones too, a PARQUET:field_id in its metadata, or give none.",
        )
    struct = ft.StructType(fields)
    if reader.without_id:
        if name_mapping is not None and not has_fresh_ids:
            return Schema(apply_name_mapping(_with_fresh_ids(struct), name_mapping).fields)
        struct = _with_fresh_ids(struct)
    return Schema(struct.fields)


def from_arrow_type(arrow: pa.DataType, *, column: str = "value", format_version: int = 3) -> ft.Type:
    """Return the Iceberg form of an Arrow type, with its fields numbered anew; errors name `column`."""
    data_type = _Reader(format_version, has_fresh_ids=True).type_of(arrow, column, depth=0)
    fresh = count(1)
    return reassign_ids(data_type, lambda _: next(fresh))


def _with_fresh_ids(struct: ft.StructType) -> ft.StructType:
    fresh = count(1)
    numbered = reassign_ids(struct, lambda _: next(fresh))
    assert isinstance(numbered, ft.StructType)
    return numbered


class _Reader:
    """Converter of Arrow fields that records which have ids; fields without one get temporary negative ids."""

    def __init__(self, format_version: int, *, has_fresh_ids: bool) -> None:
        self._format_version = format_version
        self._has_fresh_ids = has_fresh_ids
        self.with_id: list[str] = []
        self.without_id: list[str] = []

    def field(self, arrow: pa.Field, path: str, depth: int) -> ft.NestedField:
        field_id = self._field_id(arrow, path)
        doc = (arrow.metadata or {}).get(DOC_KEY)
        data_type = self._kind_of(arrow, path, depth)
        required = not arrow.nullable
        if required and isinstance(data_type, ft.UnknownType):
            raise _refused(path, arrow.type, "a column of nulls cannot be required")
        return ft.NestedField(
            field_id, arrow.name, data_type, required, None if doc is None else doc.decode("utf-8", "replace")
        )

    def _field_id(self, arrow: pa.Field, path: str) -> int:
        text = None if self._has_fresh_ids else (arrow.metadata or {}).get(FIELD_ID_KEY)
        # Parquet files without ids may read as having the id -1.
        if text is None or text == b"-1":
            self.without_id.append(path)
            return -len(self.without_id)
        if not text.isdigit() or len(text) > 10 or int(text) > ft.MAX_FIELD_ID:
            raise SchemaMismatchError(f"Cannot read the Arrow column {path!r}: {text[:40]!r} is not a field id")
        self.with_id.append(path)
        return int(text)

    def _kind_of(self, arrow: pa.Field, path: str, depth: int) -> ft.Type:
        marked = (arrow.metadata or {}).get(TYPE_KEY)
        if marked is None:
            return self.type_of(arrow.type, path, depth)
        try:
            data_type = decode_type_name(marked.decode("utf-8", "replace"))
        except InvalidRequestError as error:
            raise _refused(path, arrow.type, error.message) from None
        storage = to_arrow_type(data_type, has_extensions=False)
        if not arrow.type.equals(storage) and not _is_same_storage(arrow.type, storage):
            raise _refused(path, arrow.type, f"it is marked as {data_type}, which is stored as {storage}")
        return self._checked(data_type, arrow.type, path)

    def type_of(self, arrow: pa.DataType, path: str, depth: int) -> ft.Type:
        if depth > MAX_NESTING_DEPTH:
            raise SchemaMismatchError(
                f"Cannot read the Arrow column {path[:200]!r}: types are nested deeper than {MAX_NESTING_DEPTH} levels"
            )
        if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
            return self.type_of(arrow.value_type, path, depth + 1)
        if pa.types.is_struct(arrow):
            parts = [arrow.field(index) for index in range(arrow.num_fields)]
            return ft.StructType(tuple([self.field(field, f"{path}.{field.name}", depth + 1) for field in parts]))
        if pa.types.is_map(arrow):
            key = self.field(arrow.key_field, f"{path}.key", depth + 1)
            value = self.field(arrow.item_field, f"{path}.value", depth + 1)
            return ft.MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
        if any(is_list(arrow) for is_list in _LIST_CHECKS):
            element = self.field(arrow.value_field, f"{path}.element", depth + 1)
            return ft.ListType(element.field_id, element.field_type, element.required)
        return self._checked(_primitive(arrow, path), arrow, path)

    def _checked(self, data_type: ft.Type, arrow: pa.DataType, path: str) -> ft.Type:
        if data_type.min_format_version <= self._format_version:
            return data_type
        way_out = "Give the column a type" if isinstance(data_type, ft.UnknownType) else "Cast the column"
        hint = f"{'Cast the column to microseconds' if pa.types.is_timestamp(arrow) else way_out}, or use version 3."
        reason = f"the type {data_type} needs format version {data_type.min_format_version}, not {self._format_version}"
        raise _refused(path, arrow, reason, hint)


def _refused(path: str, arrow: pa.DataType, reason: str, hint: str | None = None) -> SchemaMismatchError:
    return SchemaMismatchError(f"Cannot read the Arrow column {path!r} of type {arrow}: {reason}", hint=hint)


def _is_same_storage(arrow: pa.DataType, storage: pa.DataType) -> bool:
    """Return whether an Arrow type is another layout of the given storage type."""
    if pa.types.is_binary(storage):
        return is_binary(arrow)
    if storage.equals(_VARIANT_STORAGE) and pa.types.is_struct(arrow) and arrow.num_fields == 2:
        names = {arrow.field(index).name: arrow.field(index).type for index in range(2)}
        return all(name in names and is_binary(names[name]) for name in ("metadata", "value"))
    return bool(storage.equals(_UUID_STORAGE) and arrow.equals(pa.uuid()))


def _primitive(arrow: pa.DataType, path: str) -> ft.Type:
    if isinstance(arrow, pa.BaseExtensionType):
        return _extension(arrow, path)
    for is_kind, data_type in _PRIMITIVES:
        if is_kind(arrow):
            return data_type
    if pa.types.is_decimal(arrow):
        if arrow.precision > ft.MAX_DECIMAL_PRECISION or not 0 <= arrow.scale <= arrow.precision:
            reason = f"decimals have at most {ft.MAX_DECIMAL_PRECISION} digits and a scale from 0 to their precision"
            raise _refused(path, arrow, reason, "Cast the column first.")
        return ft.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_timestamp(arrow):
        if arrow.unit == "ns":
            return ft.TIMESTAMP_NS if arrow.tz is None else ft.TIMESTAMPTZ_NS
        return ft.TIMESTAMP if arrow.tz is None else ft.TIMESTAMPTZ
    if pa.types.is_time64(arrow) and arrow.unit == "ns":
        raise _refused(path, arrow, "the format's times are in microseconds", "Cast the column to time64[us].")
    if pa.types.is_time(arrow):
        return ft.TIME
    if pa.types.is_fixed_size_binary(arrow):
        return ft.FixedType(arrow.byte_width)
    if pa.types.is_uint64(arrow):
        hint = "Cast the column to int64 if its values fit, or to decimal128(20, 0)."
        raise _refused(path, arrow, "the format has no unsigned 64-bit integers", hint)
    raise _refused(path, arrow, "the format has no such type", "Cast the column to a type the format has.")


def _extension(arrow: Any, path: str) -> ft.Type:
    if arrow.extension_name == "arrow.uuid":
        return ft.UUID
    if arrow.extension_name == "arrow.json":
        return ft.STRING
    reason = f"the format does not know the extension type {arrow.extension_name}"
    raise _refused(path, arrow, reason, "Cast the column to its storage type.")


_LIST_CHECKS: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)

_PRIMITIVES: tuple[tuple[Callable[[Any], bool], ft.Type], ...] = (
    (pa.types.is_boolean, ft.BOOLEAN),
    (pa.types.is_int32, ft.INT),
    (pa.types.is_int64, ft.LONG),
    (pa.types.is_string, ft.STRING),
    (pa.types.is_large_string, ft.STRING),
    (pa.types.is_string_view, ft.STRING),
    (pa.types.is_float64, ft.DOUBLE),
    (pa.types.is_float32, ft.FLOAT),
    (pa.types.is_float16, ft.FLOAT),
    (pa.types.is_int8, ft.INT),
    (pa.types.is_int16, ft.INT),
    (pa.types.is_uint8, ft.INT),
    (pa.types.is_uint16, ft.INT),
    (pa.types.is_uint32, ft.LONG),
    (pa.types.is_date, ft.DATE),
    (is_binary, ft.BINARY),
    (pa.types.is_null, ft.UNKNOWN),
)
