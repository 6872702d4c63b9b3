"""The history of a table as a graph of branches, and the difference of two snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frazil.console.visit import PageSection, Visit
from frazil.errors import InvalidRequestError
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer
from frazil.spec.snapshot_history import is_ancestor_of
from frazil.table.cells import MAX_COLUMNS, rows_of, type_text
from frazil.table.difference import Difference
from frazil.table.history import MAX_LINES, history_lines

SHOWN_ROWS: Final = 200
SHOWN_FILES: Final = 200


def history_page(visit: Visit) -> Answer:
    """Show snapshots, the newest first."""
    table = visit.table
    page = max(visit.number("page") or 1, 1)
    return visit.page(
        "history.html",
        tab="history",
        table=table,
        lines=history_lines(table.metadata, (page - 1) * MAX_LINES),
        page=page,
        pages=-(-len(table.metadata.snapshots) // MAX_LINES),
        now_ms=visit.now_ms,
    )


def difference_page(visit: Visit) -> Answer:
    """Show the differences between two snapshots, relative to the older one."""
    table, metadata = visit.table, visit.table.metadata
    ids = [visit.number("from"), visit.number("to")]
    if ids[1] is None:
        ids[1] = metadata.current_snapshot_id
    if ids[0] is None and ids[1] is not None:
        ids[0] = metadata.snapshot(ids[1]).parent_snapshot_id
    if ids[0] is None or ids[1] is None:
        raise InvalidRequestError("Cannot compare snapshots: two are required", hint="Choose two in the history.")
    before, after = (metadata.snapshot(snapshot_id) for snapshot_id in ids if snapshot_id is not None)
    if is_ancestor_of(metadata, before.snapshot_id, after.snapshot_id):
        before, after = after, before
    difference = table.difference(before.snapshot_id, after.snapshot_id)
    key = (visit.state_key, before.snapshot_id, after.snapshot_id)

    def section(name: str, make: Callable[[Visit, Difference], Html]) -> PageSection:
        return PageSection((name, key), f"difference of {table.name}", lambda: make(visit, difference))

    return visit.page(
        "difference.html",
        {"rows": section("difference of rows", _rows), "files": section("difference of files", _files)},
        tab="history",
        table=table,
        before=before,
        after=after,
        changes=difference.schema,
        now_ms=visit.now_ms,
    )


def _rows(visit: Visit, difference: Difference) -> Html:
    rows = difference.rows
    drawn = rows.rows.slice(0, SHOWN_ROWS)
    names = [
        column_name
        for column_name in drawn.column_names
        if not column_name.startswith("_change") and column_name != "_commit_snapshot_id"
    ]
    kinds = drawn.column("_change_type").to_pylist()
    drawn = drawn.select(names[:MAX_COLUMNS])
    return visit.html(
        "difference_rows.html",
        rows=rows,
        names=drawn.column_names,
        types=[type_text(field.type) for field in drawn.schema],
        lines=list(zip(kinds, rows_of(drawn), strict=True)),
        further_columns=max(len(names) - MAX_COLUMNS, 0),
    )


def _files(visit: Visit, difference: Difference) -> Html:
    return visit.html("difference_files.html", files=difference.files, limit=SHOWN_FILES)
