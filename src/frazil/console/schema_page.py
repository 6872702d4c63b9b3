"""The schema of a table: its columns with statistics of their values, and all its versions."""

from __future__ import annotations

from typing import Any, Final

from frazil.console.visit import PageSection, Visit
from frazil.metadata_tables.column_figures import column_figures, distinct_values
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer
from frazil.spec.schema import Schema
from frazil.spec.schema_difference import schema_changes
from frazil.spec.types import NestedField, PrimitiveType
from frazil.sql.type_names import plain_type_name
from frazil.table.cells import cell_text

PAGE_COLUMNS: Final = 100
MAX_VERSIONS: Final = 50
MAX_CHANGES: Final = 30


def schema_page(visit: Visit) -> Answer:
    """Show columns, the statistics of those on the page, and what each version changed."""
    table, metadata = visit.table, visit.table.metadata
    schema, query = metadata.current_schema, visit.text("q").lower()
    matches = [field for field in schema.fields_by_id.values() if query in schema.name_of(field.field_id).lower()]
    page = max(visit.number("page") or 1, 1)
    page_fields = matches[(page - 1) * PAGE_COLUMNS : page * PAGE_COLUMNS]
    key = ("columns", visit.state_key, tuple(field.field_id for field in page_fields))
    return visit.page(
        "schema.html",
        {"columns": PageSection(key, f"columns of {table.name}", lambda: _columns(visit, schema, page_fields))},
        tab="schema",
        table=table,
        total=len(matches),
        page=page,
        pages=-(-len(matches) // PAGE_COLUMNS),
        versions=_versions(visit),
    )


def _columns(visit: Visit, schema: Schema, page_fields: list[NestedField]) -> Html:
    figures = column_figures(visit.table.state, [field.field_id for field in page_fields])
    measured_at, distinct = distinct_values(visit.table.metadata)
    lines: list[dict[str, Any]] = []
    for field in page_fields:
        figure = figures.get(field.field_id)
        depth = len(schema.ancestors_of(field.field_id))
        lines.append(
            {
                "field": field,
                "depth": min(depth, 8),
                "name": schema.name_of(field.field_id),
                "is_simple": isinstance(field.field_type, PrimitiveType),
                "is_key": field.field_id in schema.identifier_field_ids,
                "type": cell_text(plain_type_name(field.field_type)),
                "figures": figure,
                "lower": None if figure is None else cell_text(figure.lower),
                "upper": None if figure is None else cell_text(figure.upper),
                "distinct": distinct.get(field.field_id),
                "default": cell_text(field.write_default),
            }
        )
    return visit.html("schema_columns.html", lines=lines, measured_at=measured_at, has_distinct=bool(distinct))


def _versions(visit: Visit) -> list[dict[str, Any]]:
    schemas = visit.table.metadata.schemas
    versions: list[dict[str, Any]] = []
    for index in range(len(schemas) - 1, max(len(schemas) - 1 - MAX_VERSIONS, -1), -1):
        changes = schema_changes(schemas[index - 1], schemas[index]) if index else []
        versions.append(
            {
                "schema": schemas[index],
                "is_current": schemas[index].schema_id == visit.table.metadata.current_schema_id,
                "changes": changes[:MAX_CHANGES],
                "further": max(len(changes) - MAX_CHANGES, 0),
                "is_first": index == 0,
            }
        )
    return versions
