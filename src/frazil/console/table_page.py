"""The overview of a table: its size, its growth, its health and remedies for its problems."""

from __future__ import annotations

from typing import Final

from frazil.console.commands import remedy_of
from frazil.console.visit import PageSection, Visit
from frazil.maintenance.table_health import table_health
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer
from frazil.sql.type_names import order_terms, partition_terms
from frazil.table.table import Table
from frazil.table.table_figures import draw_bytes_growth, draw_rows_growth, figures_of

MAX_PROPERTIES: Final = 200


def table_page(visit: Visit) -> Answer:
    """Show a table's figures, growth, health, shape and properties."""
    table = visit.table
    metadata = table.metadata
    return visit.page(
        "table.html",
        {"health": PageSection(("health", visit.state_key), f"health of {table.name}", lambda: _health(visit, table))},
        tab="",
        table=table,
        figures=figures_of(table.state),
        rows_plot=draw_rows_growth(metadata),
        bytes_plot=draw_bytes_growth(metadata),
        partitioned=", ".join(partition_terms(metadata.current_schema, metadata.default_spec)),
        sorted_by=", ".join(order_terms(metadata.current_schema, metadata.default_sort_order)),
        properties=sorted(metadata.properties.items())[:MAX_PROPERTIES],
        further_properties=max(len(metadata.properties) - MAX_PROPERTIES, 0),
        refs=sorted(metadata.refs.items())[:MAX_PROPERTIES],
        now_ms=visit.now_ms,
    )


def _health(visit: Visit, table: Table) -> Html:
    report = table_health(table.state, now_ms=visit.now_ms)
    kinds = tuple(problem.kind for problem in report.problems)
    visit.console.figures.keep_health(table.identifier, table.metadata_location, kinds)
    warehouse = visit.lake.catalog.warehouse
    findings = [
        (problem, remedy, [] if remedy is None else remedy.texts(table.identifier, warehouse))
        for problem in report.problems
        for remedy in [remedy_of(problem)]
    ]
    return visit.html("health.html", table=table, report=report, findings=findings)
