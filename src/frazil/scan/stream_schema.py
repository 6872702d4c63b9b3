"""Whether a stream can go on after its table's columns have changed.

A stream shows the columns that the table had when its query was started. They are read by their field ids, so columns
that were added since, or stand in another order, do not matter; they appear when the query is started again. A column
that was dropped, renamed, has another type or may be null now cannot be shown as it was.
"""

from __future__ import annotations

from frazil.errors import SchemaMismatchError
from frazil.spec.schema import Schema


def check_stream_schema(table: str, schema: Schema, current: Schema) -> None:
    """Refuse to go on with columns that the table does not have as they were."""
    for field_id, was in schema.fields_by_id.items():
        now = current.find_field(field_id)
        if now is None:
            change = "was dropped"
        elif current.name_of(field_id) != schema.name_of(field_id):
            change = f"is called {current.name_of(field_id)!r} now"
        elif now.field_type != was.field_type and not was.field_type.is_nested:
            change = f"is {now.field_type} now, and was {was.field_type}"
        elif was.required and not now.required:
            change = "may be null now"
        else:
            continue
        raise SchemaMismatchError(
            f"Cannot go on with the stream of {table}: column {schema.name_of(field_id)!r} {change}",
            hint="Start the query again, with the same checkpoint: it then has the table's columns as they are.",
        )
