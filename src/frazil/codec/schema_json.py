"""Schemas and types as JSON. Specification: "Schemas" (Appendix C).

Used for everything that holds a schema: table and view metadata, headers of manifests, catalogs. Reading is
strict about the requirements of the specification and keeps unrecognised fields in `extra`, to be written back;
writing produces the canonical form, in the field order of Iceberg Java.

A table may hold thousands of schemas of thousands of columns, so ordinary columns (a primitive type, no
default, no unrecognised fields) take a short path, and decoded type names are cached.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.codec.single_value_json import decode_json_value, encode_json_value
from frazil.errors import InvalidRequestError
from frazil.spec import types as ft
from frazil.spec.defaults import NULL_DEFAULT_TYPES, default_problem
from frazil.spec.schema import INITIAL_SCHEMA_ID, MAX_NESTING_DEPTH, Schema

HEADING = "Schemas"

_INT_MAX = 2**31 - 1
_DECIMAL = re.compile(r"decimal\s*\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.ASCII | re.IGNORECASE)
_FIXED = re.compile(r"fixed\s*\[\s*(\d{1,10})\s*\]", re.ASCII | re.IGNORECASE)
_GEOMETRY = re.compile(r"geometry\s*(?:\(([^()]*)\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(([^(),]*)(?:,([^(),]*))?\))?", re.IGNORECASE)
_MAX_TYPE_CHARS = 1000
_PLAIN_FIELDS = frozenset(("id", "name", "required", "type", "doc"))


def decode_schema(obj: JsonObject) -> Schema:
    """Read a schema from its JSON object."""
    if obj.string("type") != "struct":
        raise obj.fail(f"the type of a schema is struct, found {obj.raw('type')!r}", field="type")
    schema_id = obj.int32("schema-id", INITIAL_SCHEMA_ID)
    identifiers = tuple(dict.fromkeys(obj.int32s("identifier-field-ids", ())))
    fields = _decode_fields(obj, depth=1)
    try:
        return Schema(fields, schema_id, identifiers, obj.extra())
    except InvalidRequestError as error:
        raise obj.fail(_reason(error)) from None


def encode_schema(schema: Schema) -> dict[str, Any]:
    """Return a schema as a JSON object."""
    encoded: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        encoded["identifier-field-ids"] = list(schema.identifier_field_ids)
    encoded["fields"] = [_encode_field(field) for field in schema.fields]
    encoded.update(schema.extra)
    return encoded


def encode_type(data_type: ft.Type) -> Any:
    """Return a type in its JSON form."""
    if isinstance(data_type, ft.StructType):
        return {"type": "struct", "fields": [_encode_field(field) for field in data_type.fields], **data_type.extra}
    if isinstance(data_type, ft.ListType):
        return {
            "type": "list",
            "element-id": data_type.element_id,
            "element": encode_type(data_type.element_type),
            "element-required": data_type.element_required,
            **data_type.extra,
        }
    if isinstance(data_type, ft.MapType):
        return {
            "type": "map",
            "key-id": data_type.key_id,
            "key": encode_type(data_type.key_type),
            "value-id": data_type.value_id,
            "value": encode_type(data_type.value_type),
            "value-required": data_type.value_required,
            **data_type.extra,
        }
    # The parameters of geospatial types are always written, as in the specification's table.
    if isinstance(data_type, ft.GeometryType):
        return f"geometry({data_type.crs})"
    if isinstance(data_type, ft.GeographyType):
        return f"geography({data_type.crs}, {data_type.algorithm})"
    return str(data_type)


def _encode_field(field: ft.NestedField) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": encode_type(field.field_type),
    }
    if field.doc is not None:
        encoded["doc"] = field.doc
    if field.initial_default is not None:
        encoded["initial-default"] = encode_json_value(field.initial_default, field.field_type)
    if field.write_default is not None:
        encoded["write-default"] = encode_json_value(field.write_default, field.field_type)
    encoded.update(field.extra)
    return encoded


def _decode_fields(owner: JsonObject, depth: int) -> tuple[ft.NestedField, ...]:
    fields = []
    for index, value in enumerate(owner.list("fields")):
        field = _plain_field(value)
        if field is None:
            where = f"{owner.path_of('fields')}[{index}]"
            field = _decode_field(JsonObject(value, where=where, heading=owner.heading, error=owner.error), depth)
        fields.append(field)
    return tuple(fields)


def _plain_field(value: Any) -> ft.NestedField | None:
    """Return a column of a simple type without defaults or unrecognised fields, or None for any other, even invalid."""
    if type(value) is not dict or not _PLAIN_FIELDS.issuperset(value):
        return None
    json_type = value.get("type")
    data_type = ft.SIMPLE_TYPES.get(json_type) if type(json_type) is str else None
    field_id, name, required, doc = value.get("id"), value.get("name"), value.get("required"), value.get("doc")
    if (
        data_type is None
        or type(field_id) is not int
        or not 0 <= field_id <= ft.MAX_FIELD_ID
        or type(name) is not str
        or type(required) is not bool
        or (doc is not None and type(doc) is not str)
        or (required and type(data_type) is ft.UnknownType)
    ):
        return None
    return ft.NestedField(field_id, name, data_type, required, doc)


def _decode_field(obj: JsonObject, depth: int) -> ft.NestedField:
    field_id = _decode_field_id(obj, "id")
    name = obj.string("name")
    data_type = _decode_type(obj, "type", depth)
    required = obj.boolean("required")
    if required:
        _check_may_be_required(obj, data_type, name)
    doc = obj.string("doc", None)
    initial_default = _decode_default(obj, "initial-default", data_type)
    write_default = _decode_default(obj, "write-default", data_type)
    return ft.NestedField(field_id, name, data_type, required, doc, initial_default, write_default, obj.extra())


def _decode_field_id(obj: JsonObject, field: str) -> int:
    field_id: int = obj.int32(field)
    if not 0 <= field_id <= ft.MAX_FIELD_ID:
        reason = "ids are not negative" if field_id < 0 else f"ids above {ft.MAX_FIELD_ID} are for metadata columns"
        raise obj.fail(f"{field_id} cannot be the id of a table's field: {reason}", field=field)
    return field_id


def _check_may_be_required(obj: JsonObject, data_type: ft.Type, name: str) -> None:
    if isinstance(data_type, ft.UnknownType):
        raise obj.fail(f"{name!r} has the type unknown and is required; fields of type unknown are optional")


def _decode_default(obj: JsonObject, field: str, data_type: ft.Type) -> Any:
    json_value = obj.raw(field)
    if json_value is None:
        return None
    if isinstance(data_type, NULL_DEFAULT_TYPES):
        raise obj.fail(f"fields of type {data_type} must default to null", field=field)
    value = decode_json_value(json_value, data_type, where=obj.path_of(field), heading=obj.heading, error=obj.error)
    problem = default_problem(value, data_type)
    if problem is not None:
        raise obj.fail(problem, field=field)
    return value


def _decode_type(owner: JsonObject, field: str, depth: int) -> ft.Type:
    json_type = owner.raw(field)
    if isinstance(json_type, str):
        try:
            return decode_type_name(json_type)
        except InvalidRequestError as error:
            raise owner.fail(_reason(error), field=field) from None
    obj = owner.object(field)
    form = obj.string("type")
    if depth >= MAX_NESTING_DEPTH:
        raise obj.fail(f"types are nested deeper than {MAX_NESTING_DEPTH} levels")
    if form == "struct":
        fields = _decode_fields(obj, depth + 1)
        return ft.StructType(fields, obj.extra())
    if form == "list":
        element = _decode_type(obj, "element", depth + 1)
        required = obj.boolean("element-required")
        if required:
            _check_may_be_required(obj, element, "element")
        return ft.ListType(_decode_field_id(obj, "element-id"), element, required, obj.extra())
    if form == "map":
        key, value = _decode_type(obj, "key", depth + 1), _decode_type(obj, "value", depth + 1)
        required = obj.boolean("value-required")
        _check_may_be_required(obj, key, "key")
        if required:
            _check_may_be_required(obj, value, "value")
        key_id, value_id = _decode_field_id(obj, "key-id"), _decode_field_id(obj, "value-id")
        return ft.MapType(key_id, key, value_id, value, required, obj.extra())
    raise obj.fail(f"expected struct, list or map, found {form[:80]!r}", field="type")


@lru_cache(maxsize=4096)
def decode_type_name(text: str) -> ft.Type:
    """Return the type without fields that a JSON string such as `decimal(9, 2)` names.

    White space around parameters and any case of the name are accepted, as in Iceberg Java.
    """
    simple = ft.SIMPLE_TYPES.get(text) or ft.SIMPLE_TYPES.get(text.lower())
    if simple is not None:
        return simple
    if len(text) <= _MAX_TYPE_CHARS:
        if match := _DECIMAL.fullmatch(text):
            return ft.DecimalType(int(match[1]), int(match[2]))
        if (match := _FIXED.fullmatch(text)) and int(match[1]) <= _INT_MAX:
            return ft.FixedType(int(match[1]))
        if match := _GEOMETRY.fullmatch(text):
            return ft.GeometryType(ft.DEFAULT_CRS if match[1] is None else match[1].strip())
        if match := _GEOGRAPHY.fullmatch(text):
            crs = ft.DEFAULT_CRS if match[1] is None else match[1].strip()
            algorithm: Any = ft.DEFAULT_EDGE_ALGORITHM if match[2] is None else match[2].strip().lower()
            return ft.GeographyType(crs, algorithm)
    excerpt = text if len(text) <= 80 else text[:77] + "..."
    raise InvalidRequestError(f"Cannot read the type {excerpt!r}: no such type")


def _reason(error: InvalidRequestError) -> str:
    """Return an error's message as the reason inside another error."""
    message = error.message.removeprefix("Cannot make the schema: ").removeprefix("Cannot use the schema: ")
    return message[:1].lower() + message[1:] if message.startswith("Cannot ") else message
