"""The rows of a table under a filter, by page, at any state; and what a filter prunes, as a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from frazil.console.visit import PageSection, Visit
from frazil.pictures.markup import Html
from frazil.pictures.pruning import draw_pruning
from frazil.scan.plan import plan_scan
from frazil.serve.exchange import Answer
from frazil.table.cells import MAX_COLUMNS, rows_of, type_text
from frazil.table.scan import Scan

PAGE_ROWS: Final = 50
MAX_PAGES: Final = 200
"""Rows are read from the beginning: a later page costs all those before it."""


def rows_page(visit: Visit) -> Answer:
    """Show rows."""
    table = visit.table
    page = min(max(visit.number("page") or 1, 1), MAX_PAGES)
    key = ("rows", visit.state_key, visit.text("filter"), visit.text("columns"), visit.text("at"), page)
    return visit.page(
        "rows.html",
        {"rows": PageSection(key, f"rows of {table.name}", lambda: _rows(visit, make_scan(visit), page))},
        tab="rows",
        table=table,
        refs=sorted(table.refs),
    )


def make_scan(visit: Visit) -> Scan:
    """Return the scan of a page: its filter, columns and state."""
    choice = visit.choice()
    names = [piece.strip() for piece in visit.text("columns").split(",") if piece.strip()]
    return visit.table.scan(
        visit.text("filter") or None,
        columns=names or None,
        snapshot_id=choice.snapshot_id,
        as_of=choice.as_of_ms,
        ref=choice.ref,
    )


def _rows(visit: Visit, scan: Scan, page: int) -> Html:
    names = [field.name for field in scan.schema.fields]
    if len(names) > MAX_COLUMNS and scan.columns is None:
        scan = replace(scan, columns=tuple(names[:MAX_COLUMNS]))
    first, rows_seen = (page - 1) * PAGE_ROWS, 0
    batches: list[pa.RecordBatch] = []
    for batch in scan.to_batches(batch_rows=1_000):
        if rows_seen + batch.num_rows > first:
            start = max(first - rows_seen, 0)
            batches.append(batch.slice(start, PAGE_ROWS + 1 - sum(batch.num_rows for batch in batches)))
        rows_seen += batch.num_rows
        if rows_seen > first + PAGE_ROWS:
            break
    lines = [row for batch in batches for row in rows_of(batch)]
    return visit.html(
        "rows_table.html",
        names=scan.arrow_schema.names,
        types=[type_text(field.type) for field in scan.arrow_schema],
        lines=lines[:PAGE_ROWS],
        first=first,
        page=page,
        has_more=len(lines) > PAGE_ROWS and page < MAX_PAGES,
        further_columns=max(len(names) - MAX_COLUMNS, 0),
        table=visit.table,
    )


def explain_page(visit: Visit) -> Answer:
    """Show what a filter prunes, manifest by manifest."""
    table = visit.table
    key = ("explain", visit.state_key, visit.text("filter"), visit.text("at"))
    return visit.page(
        "explain.html",
        {"plan": PageSection(key, f"plan of {table.name}", lambda: _plan(visit, make_scan(visit)))},
        tab="explain",
        table=table,
        refs=sorted(table.refs),
    )


def _plan(visit: Visit, scan: Scan) -> Html:
    plan = plan_scan(scan.table, scan.predicate, choice=scan.choice, keeps_files=False)
    picture = draw_pruning(plan.pruned_manifests())
    return visit.html(
        "plan.html", picture=picture, told=plan.explain(), data=plan.data_counts, deletes=plan.delete_counts
    )
