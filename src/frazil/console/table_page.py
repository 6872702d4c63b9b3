"""A table at a glance: its size, how it grew, what its health says and what to do about it."""

from __future__ import annotations

from typing import Final

from frazil.console.commands import remedy_of
from frazil.console.lake_figures import engine_of, figures_of, summary_number
from frazil.console.visit import Part, Visit
from frazil.lake.table import Table
from frazil.maintenance.table_health import table_health
from frazil.pictures.markup import Html
from frazil.pictures.plots import MAX_POINTS, Point, draw_growth
from frazil.pictures.style import operation_kind
from frazil.pictures.words import show_bytes, show_count
from frazil.serve.exchange import Answer
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.snapshot_history import ancestor_heads
from frazil.sql.type_names import order_terms, partition_terms

MAX_PROPERTIES: Final = 200


def table_page(visit: Visit) -> Answer:
    """Show a table's figures, growth, health, shape and properties."""
    table = visit.table
    metadata = table.metadata
    found = growth_snapshots(table)
    return visit.page(
        "table.html",
        {"health": Part(("health", visit.state_key), f"health of {table.name}", lambda: _health(visit, table))},
        tab="",
        table=table,
        figures=figures_of(table._loaded),
        rows_plot=draw_growth(
            [_point(one, Summary.TOTAL_RECORDS, Summary.TOTAL_POSITION_DELETES) for one in found], "Rows"
        ),
        bytes_plot=draw_growth([_point(one, Summary.TOTAL_FILES_SIZE) for one in found], "Bytes", show_bytes),
        partitioned=", ".join(partition_terms(metadata.current_schema, metadata.default_spec)),
        sorted_by=", ".join(order_terms(metadata.current_schema, metadata.default_sort_order)),
        properties=sorted(metadata.properties.items())[:MAX_PROPERTIES],
        further_properties=max(len(metadata.properties) - MAX_PROPERTIES, 0),
        refs=sorted(metadata.refs.items())[:MAX_PROPERTIES],
        now_ms=visit.now_ms,
    )


def growth_snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots of the current line, the oldest first: as many as a plot can show, the rest is not read."""
    current = table.metadata.current_snapshot
    if current is None:
        return []
    ids = [one.snapshot_id for one in ancestor_heads(table.metadata.snapshots, current.snapshot_id)]
    step = max(-(-len(ids) // MAX_POINTS), 1)
    return [table.metadata.snapshot(one) for one in reversed(ids[::step])]


def _point(snapshot: Snapshot, key: str, less: str | None = None) -> Point:
    value = (summary_number(snapshot, key) or 0) - (0 if less is None else summary_number(snapshot, less) or 0)
    told = [snapshot.operation or "no summary", engine_of(snapshot) or ""]
    added = summary_number(snapshot, Summary.ADDED_RECORDS)
    if added:
        told.append(f"+{show_count(added)} rows")
    return Point(
        snapshot.timestamp_ms,
        max(value, 0),
        " · ".join(one for one in told if one),
        operation_kind(snapshot.operation),
    )


def _health(visit: Visit, table: Table) -> Html:
    report = table_health(table._loaded, now_ms=visit.now_ms)
    kinds = tuple(one.kind for one in report.problems)
    visit.console.figures.keep_health(table.identifier, table.metadata_location, kinds)
    warehouse = visit.lake.catalog.warehouse
    findings = [
        (one, remedy, [] if remedy is None else remedy.texts(table.identifier, warehouse))
        for one in report.problems
        for remedy in [remedy_of(one)]
    ]
    return visit.html("health.html", table=table, report=report, findings=findings)
