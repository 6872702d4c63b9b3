"""Schemas as users give them: text, a `frazil.Schema` or a `pyarrow.Schema`."""

from __future__ import annotations

import pyarrow as pa

from frazil.codec.arrow_schema import from_arrow_schema
from frazil.errors import InvalidRequestError
from frazil.spec.parse_type import parse_schema
from frazil.spec.schema import Schema


def schema_of(schema: Schema | pa.Schema | str, format_version: int) -> Schema:
    """Return a schema given as text, Arrow schema or value."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema, format_version=format_version, has_fresh_ids=True)
    raise InvalidRequestError(
        f"Cannot make a schema of {type(schema).__name__}",
        hint="Give text, a frazil.Schema or a pyarrow.Schema.",
    )
