"""Small values for tests: what a test does not care about has a default here."""

from __future__ import annotations

from frazil.spec.schema import Schema
from frazil.spec.types import LONG, STRING, TIMESTAMPTZ, NestedField, Type


def field(field_id: int, name: str = "", field_type: Type = LONG, *, required: bool = False) -> NestedField:
    """Make a field; its name follows its id where none is given."""
    return NestedField(field_id, name or f"c{field_id}", field_type, required=required)


def schema(*fields: NestedField, schema_id: int = 0, identifier_field_ids: tuple[int, ...] = ()) -> Schema:
    """Make a schema; without fields, a table of events (id, ts, kind)."""
    columns = fields or (
        field(1, "id", LONG, required=True),
        field(2, "ts", TIMESTAMPTZ),
        field(3, "kind", STRING),
    )
    return Schema(columns, schema_id=schema_id, identifier_field_ids=identifier_field_ids)
