"""Conversion between Iceberg and Avro types. Specification: "Avro" (Appendix A).

`encode_avro_schema` returns the schema for files of a struct type, as Iceberg Java writes it: field ids as `field-id`
and `element-id`, maps with non-string keys as arrays of pairs. `type_of` returns the type of a stored value, for
readers without an expected type.
"""

from __future__ import annotations

from typing import Any

from frazil.codec.avro_schema import AvroType
from frazil.errors import InvalidRequestError
from frazil.spec import types as ft


def encode_avro_schema(struct: ft.StructType, name: str) -> dict[str, Any]:
    """Return the Avro schema of a struct type as JSON values; `name` is the record's."""
    return _record(struct, name, set())


def _record(struct: ft.StructType, name: str, named: set[str]) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    used_names: set[str] = set()
    for nested_field in struct.fields:
        avro_name = make_avro_name(nested_field.name)
        if avro_name in used_names:
            avro_name = f"{avro_name}_f{nested_field.field_id}"
        used_names.add(avro_name)
        avro_type = _encode(nested_field.field_type, nested_field.field_id, named)
        field: dict[str, Any] = {
            "name": avro_name,
            "type": _optional(avro_type) if nested_field.optional else avro_type,
        }
        if nested_field.doc is not None:
            field["doc"] = nested_field.doc
        if nested_field.optional:
            field["default"] = None
        if avro_name != nested_field.name:
            field["iceberg-field-name"] = nested_field.name
        field["field-id"] = nested_field.field_id
        fields.append(field)
    return {"type": "record", "name": name, "fields": fields}


def _optional(avro_type: Any) -> Any:
    return avro_type if avro_type == "null" else ["null", avro_type]


def _encode(data_type: ft.Type, field_id: int, named: set[str]) -> Any:
    if isinstance(data_type, ft.StructType):
        return _record(data_type, f"r{field_id}", named)
    if isinstance(data_type, ft.ListType):
        items = _encode(data_type.element_type, data_type.element_id, named)
        return {
            "type": "array",
            "items": items if data_type.element_required else _optional(items),
            "element-id": data_type.element_id,
        }
    if isinstance(data_type, ft.MapType):
        return _encode_map(data_type, named)
    if isinstance(data_type, ft.UnknownType):
        return "null"
    simple = _SIMPLE.get(data_type)
    if simple is not None:
        return simple
    if isinstance(data_type, ft.GeometryType | ft.GeographyType):
        return "bytes"
    if isinstance(data_type, ft.VariantType):
        return {
            "type": "record",
            "name": f"r{field_id}",
            "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
            "logicalType": "variant",
        }
    if data_type == ft.UUID:
        return _fixed("uuid_fixed", 16, named, logicalType="uuid")
    if isinstance(data_type, ft.FixedType) and data_type.length > 0:
        return _fixed(f"fixed_{data_type.length}", data_type.length, named)
    if isinstance(data_type, ft.DecimalType):
        return _fixed(
            f"decimal_{data_type.precision}_{data_type.scale}",
            decimal_bytes(data_type.precision),
            named,
            logicalType="decimal",
            precision=data_type.precision,
            scale=data_type.scale,
        )
    raise InvalidRequestError(f"Cannot write a field of type {data_type} to Avro")


def _encode_map(data_type: ft.MapType, named: set[str]) -> dict[str, Any]:
    # The key comes first: a name is defined at its first occurrence in the text.
    key = _encode(data_type.key_type, data_type.key_id, named)
    value = _encode(data_type.value_type, data_type.value_id, named)
    value = value if data_type.value_required else _optional(value)
    if isinstance(data_type.key_type, ft.StringType):
        return {"type": "map", "values": value, "key-id": data_type.key_id, "value-id": data_type.value_id}
    pair: dict[str, Any] = {
        "type": "record",
        "name": f"k{data_type.key_id}_v{data_type.value_id}",
        "fields": [
            {"name": "key", "type": key, "field-id": data_type.key_id},
            {"name": "value", "type": value, "field-id": data_type.value_id},
        ],
    }
    if not data_type.value_required:
        pair["fields"][1]["default"] = None
    return {"type": "array", "items": pair, "logicalType": "map"}


def _fixed(name: str, size: int, named: set[str], **properties: Any) -> Any:
    """Return a fixed type, as a mere name if the schema already defines it."""
    if name in named:
        return name
    named.add(name)
    return {"type": "fixed", "name": name, "size": size, **properties}


def decimal_bytes(precision: int) -> int:
    """Return how many bytes unscaled values of a precision need in two's complement."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


_SIMPLE: dict[ft.Type, Any] = {
    ft.BOOLEAN: "boolean",
    ft.INT: "int",
    ft.LONG: "long",
    ft.FLOAT: "float",
    ft.DOUBLE: "double",
    ft.STRING: "string",
    ft.BINARY: "bytes",
    ft.DATE: {"type": "int", "logicalType": "date"},
    ft.TIME: {"type": "long", "logicalType": "time-micros"},
    ft.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    ft.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    ft.TIMESTAMP_NS: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    ft.TIMESTAMPTZ_NS: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}


def make_avro_name(name: str) -> str:
    """Return a name that Avro allows: ASCII letters, digits and underscores, not starting with a digit.

    Other characters become `_x` and their code, and a leading digit gets an underscore. Non-ASCII letters are escaped
    too: Iceberg Java keeps them, but the Avro specification and stricter readers forbid them.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    escaped = []
    for index in range(0, len(units), 2):
        char = chr(int.from_bytes(units[index : index + 2], "big"))
        if char.isascii() and (char.isalpha() or char == "_" or (char.isdigit() and index > 0)):
            escaped.append(char)
        else:
            escaped.append(f"_{char}" if char.isascii() and char.isdigit() else f"_x{ord(char):X}")
    return "".join(escaped)


def type_of(avro_type: AvroType) -> ft.Type | None:
    """Return the primitive type of a stored value, or None if it is not primitive or not supported."""
    logical = avro_type.logical
    if avro_type.kind == "int":
        return ft.DATE if logical == "date" else ft.INT
    if avro_type.kind == "long":
        return _LONGS.get((logical, avro_type.adjusts_to_utc), ft.TIME if logical == "time-micros" else ft.LONG)
    if logical == "decimal" and avro_type.kind in ("fixed", "bytes"):
        is_valid = 1 <= avro_type.precision <= ft.MAX_DECIMAL_PRECISION and avro_type.scale <= avro_type.precision
        return ft.DecimalType(avro_type.precision, avro_type.scale) if is_valid else None
    if logical == "uuid" and (avro_type.kind == "string" or avro_type.size == 16):
        return ft.UUID
    return ft.FixedType(avro_type.size) if avro_type.kind == "fixed" else _PLAIN.get(avro_type.kind)


_LONGS: dict[tuple[str | None, bool], ft.Type] = {
    ("timestamp-millis", False): ft.TIMESTAMP,
    ("timestamp-millis", True): ft.TIMESTAMPTZ,
    ("timestamp-micros", False): ft.TIMESTAMP,
    ("timestamp-micros", True): ft.TIMESTAMPTZ,
    ("timestamp-nanos", False): ft.TIMESTAMP_NS,
    ("timestamp-nanos", True): ft.TIMESTAMPTZ_NS,
}
_PLAIN: dict[str, ft.Type] = {
    "null": ft.UNKNOWN,
    "boolean": ft.BOOLEAN,
    "float": ft.FLOAT,
    "double": ft.DOUBLE,
    "bytes": ft.BINARY,
    "string": ft.STRING,
}
