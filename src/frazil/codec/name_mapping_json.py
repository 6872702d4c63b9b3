"""Name mappings as JSON text. Specification: "Name Mapping Serialization" (Appendix C), "Column Projection".

The text is the value of the table property `schema.name-mapping.default`. Unrecognised fields are kept and written
back; a mapping without `names` is read as one with an empty list, as in Iceberg Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json, parse_json
from frazil.errors import InvalidMetadataError, InvalidPropertyError, InvalidRequestError
from frazil.spec.name_mapping import MappedField, NameMapping
from frazil.spec.properties import DEFAULT_NAME_MAPPING
from frazil.spec.schema import MAX_NESTING_DEPTH

HEADING = "Name Mapping Serialization"


def decode_name_mapping(text: str) -> NameMapping:
    """Read a name mapping from its JSON text."""
    # Lone surrogates are passed on, to be refused as text that is not UTF-8.
    decoded = parse_json(text.encode("utf-8", "surrogatepass"), where="the name mapping", heading=HEADING)
    fields = _decode_fields(JsonObject({"name-mapping": decoded}, heading=HEADING), "name-mapping", 1)
    try:
        return NameMapping(fields)
    except InvalidRequestError as error:
        reason = error.message.partition(": ")[2]
        raise InvalidMetadataError(f"Cannot read the name mapping: {reason}", heading=HEADING) from None


def check_name_mapping(properties: Mapping[str, str]) -> None:
    """Refuse an invalid name mapping among properties to be set."""
    text = properties.get(DEFAULT_NAME_MAPPING.name)
    if text is None:
        return
    try:
        decode_name_mapping(text)
    except InvalidMetadataError as error:
        raise InvalidPropertyError(
            f"Cannot use the property {DEFAULT_NAME_MAPPING.name}: {error.message.partition(': ')[2]}",
            hint='Set it to a name mapping as JSON: [{"field-id": 1, "names": ["id"]}].',
        ) from None


def encode_name_mapping(mapping: NameMapping) -> str:
    """Return a name mapping as JSON text."""
    return encode_json([_encode_field(field) for field in mapping.fields]).decode()


def _decode_fields(holder: JsonObject, name: str, depth: int) -> tuple[MappedField, ...]:
    if depth > MAX_NESTING_DEPTH:
        raise holder.fail(f"mappings are nested deeper than {MAX_NESTING_DEPTH} levels", field=name)
    decoded = []
    for item in holder.objects(name):
        names = item.strings("names", ())
        field_id = item.int32("field-id", None)
        fields = _decode_fields(item, "fields", depth + 1) if "fields" in item else None
        item.raw("fields")
        decoded.append(MappedField(names, field_id, fields, item.extra()))
    return tuple(decoded)


def _encode_field(mapped_field: MappedField) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if mapped_field.field_id is not None:
        encoded["field-id"] = mapped_field.field_id
    encoded["names"] = list(mapped_field.names)
    if mapped_field.fields is not None:
        encoded["fields"] = [_encode_field(field) for field in mapped_field.fields]
    encoded.update(mapped_field.extra)
    return encoded
