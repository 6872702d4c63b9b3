"""Types from their JSON, by themselves: tables have them only in schemas."""

from __future__ import annotations

from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import HEADING, _decode_type
from frazil.errors import CorruptTableError, InvalidMetadataError
from frazil.spec.types import (
    Type,
)


def decode_type(
    json_type: Any,
    *,
    where: str = "the type",
    heading: str = HEADING,
    error: type[CorruptTableError] = InvalidMetadataError,
) -> Type:
    """Read a type from its JSON form: text, or an object for a struct, list or map."""
    holder = JsonObject({where: json_type}, heading=heading, error=error)
    return _decode_type(holder, where, depth=0)
