"""Name mappings as JSON text. Specification: "Name Mapping Serialization" (Appendix C), "Column Projection".

The text is the value of a table's property `schema.name-mapping.default`. Reading keeps fields it does not
know, to be written back; a mapping without `names` is read as one with none, as the reference does.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from frazil.codec.json_fields import JsonObject
from frazil.errors import InvalidMetadataError, InvalidRequestError
from frazil.spec.name_mapping import MappedField, NameMapping
from frazil.spec.schema import MAX_NESTING_DEPTH

HEADING = "Name Mapping Serialization"


def decode_name_mapping(text: str) -> NameMapping:
    """Read a name mapping from its JSON text."""
    try:
        decoded = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_fields)
    except (ValueError, RecursionError) as error:
        # Deep nesting and numbers of thousands of digits end here too.
        reason = "it is nested too deep" if isinstance(error, RecursionError) else f"it is not JSON: {error}"
        raise InvalidMetadataError(f"Cannot read the name mapping: {reason}", heading=HEADING) from None
    holder = JsonObject({"name-mapping": decoded}, heading=HEADING)
    fields = _decode_fields(holder, "name-mapping", 1)
    try:
        return NameMapping(fields)
    except InvalidRequestError as error:
        reason = error.message.partition(": ")[2]
        raise InvalidMetadataError(f"Cannot read the name mapping: {reason}", heading=HEADING) from None


def encode_name_mapping(mapping: NameMapping) -> str:
    """Return a name mapping as JSON text."""
    return json.dumps([_encode_field(one) for one in mapping.fields], ensure_ascii=False)


def _decode_fields(holder: JsonObject, name: str, depth: int) -> tuple[MappedField, ...]:
    if depth > MAX_NESTING_DEPTH:
        raise holder.fail(f"mappings are nested deeper than {MAX_NESTING_DEPTH} levels", field=name)
    decoded = []
    for one in holder.objects(name):
        names = one.strings("names", ())
        field_id = one.int32("field-id", None)
        fields = _decode_fields(one, "fields", depth + 1) if "fields" in one else None
        one.raw("fields")
        decoded.append(MappedField(names, field_id, fields, one.extra()))
    return tuple(decoded)


def _encode_field(one: MappedField) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if one.field_id is not None:
        encoded["field-id"] = one.field_id
    encoded["names"] = list(one.names)
    if one.fields is not None:
        encoded["fields"] = [_encode_field(part) for part in one.fields]
    encoded.update(one.extra)
    return encoded


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an object has the same field twice")
    return values


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
