"""Check whether a stream can continue after its table's columns have changed.

A stream returns the columns that the table had when its query was started. They are read by field id, so columns that
were added or reordered since do not matter; they appear when the query is restarted. A column that has since been
dropped, renamed, retyped or made optional cannot be read as before.
"""

from __future__ import annotations

from frazil.errors import SchemaMismatchError
from frazil.spec.schema import Schema


def check_stream_schema(table: str, schema: Schema, current: Schema) -> None:
    """Refuse to continue if the table no longer has the columns of the schema unchanged."""
    for field_id, before in schema.fields_by_id.items():
        now = current.find_field(field_id)
        if now is None:
            change = "was dropped"
        elif current.name_of(field_id) != schema.name_of(field_id):
            change = f"was renamed to {current.name_of(field_id)!r}"
        elif now.field_type != before.field_type and not before.field_type.is_nested:
            change = f"is now {now.field_type}, and was {before.field_type}"
        elif before.required and not now.required:
            change = "may now be null"
        else:
            continue
        raise SchemaMismatchError(
            f"Cannot continue the stream of {table}: column {schema.name_of(field_id)!r} {change}",
            hint="Start the query again, with the same checkpoint: it then reads the table's present columns.",
        )
