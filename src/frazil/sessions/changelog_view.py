"""The procedure `create_changelog_view`: a temporary view of the rows that changed between two snapshots.

Parameters, defaults and rows are those of Iceberg Java. Rows that were merely copied by a rewrite are omitted. With
identifier columns or `compute_updates`, a removed and an added row of one identity are an update; with `net_changes`,
rows that were added and removed within the window are omitted.
"""

from __future__ import annotations

from typing import Any

from frazil.errors import InvalidRequestError
from frazil.sessions.sql_context import SqlContext
from frazil.spark.read import changelog_view as room
from frazil.table.sql_session import FullName
from frazil.table.table import Table


def create_changelog_view(context: SqlContext, full_name: FullName, table: Table, values: dict[str, Any]) -> str:
    """Create the view requested by a call's arguments; return its name."""
    engine = context.spark("read changes")
    identifiers: list[str] | None = values["identifier_columns"]
    computes_updates = identifiers is not None if values["compute_updates"] is None else values["compute_updates"]
    is_net = bool(values["net_changes"])
    if computes_updates and is_net:
        raise InvalidRequestError(
            "Cannot compute net changes and updates at once",
            hint="Omit net_changes, or identifier_columns and compute_updates.",
        )
    frame = engine.changes(full_name, table, values["options"] or {})
    if computes_updates:
        schema = table.schema
        table_identifiers = [schema.name_of(field_id) for field_id in sorted(schema.identifier_field_ids)]
        frame = room.with_updates(
            frame, table_identifiers if identifiers is None else [_unquoted(name) for name in identifiers]
        )
    else:
        frame = (room.net_changes if is_net else room.without_carry_overs)(frame)
    name: str = values["changelog_view"] or f"`{full_name.name[-1].replace('`', '``')}_changes`"
    frame.createOrReplaceTempView(name)
    return name


def _unquoted(name: str) -> str:
    is_quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if is_quoted else name
