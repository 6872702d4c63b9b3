"""The first page: every table of the lake with its figures, for searching and sorting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.console.lake_figures import TableLine
from frazil.console.visit import PAGE_SECONDS, PART_SECONDS, Console, Visit, name_text, table_address
from frazil.errors import FrazilError
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer, json_answer

PAGE_TABLES: Final = 1_000
MAX_ROWS_KEPT: Final = 10_000
COLUMNS: Final = (
    ("name", "Table"),
    ("rows", "Rows"),
    ("bytes", "Size"),
    ("files", "Files"),
    ("changed", "Last change"),
    ("engine", "Written by"),
    ("version", "Version"),
    ("health", "Health"),
)
_KEYS: Final[dict[str, Callable[[TableLine], Any]]] = {
    "rows": lambda line: line.figures and line.figures.rows,
    "bytes": lambda line: line.figures and line.figures.bytes,
    "files": lambda line: line.figures and line.figures.files,
    "changed": lambda line: line.figures and line.figures.changed_ms,
    "engine": lambda line: line.figures and line.figures.engine,
    "version": lambda line: line.figures and line.figures.version,
    "health": lambda line: None if line.problems is None else len(line.problems),
}


def begin(console: Console) -> None:
    """Start reading tables before the first request, so that the first page is quick."""
    with suppress(FrazilError):
        console.figures.look(list(islice(console.lake.catalog.all_tables(), PAGE_TABLES)), 0)


def lake_page(visit: Visit) -> Answer:
    """Show the tables; figures that are not ready within a moment follow in parts requested by the script."""
    catalog = visit.lake.catalog
    query = visit.text("q").lower()
    tables = [table for table in catalog.all_tables() if query in name_text(table).lower()]
    if visit.query.get("part") == "figures":
        return _figures(visit, tables)
    sort, is_down = visit.text("sort").removeprefix("-"), visit.text("sort").startswith("-")
    cached = visit.console.figures.look(tables, PAGE_SECONDS) if sort in _KEYS else {}
    if sort in _KEYS:
        tables.sort(key=lambda table: _order(cached[table], sort), reverse=is_down)
        tables.sort(key=lambda table: _KEYS[sort](cached[table]) is None)
    elif sort == "name" and is_down:
        tables.reverse()
    page = max(visit.number("page") or 1, 1)
    page_tables = tables[(page - 1) * PAGE_TABLES : page * PAGE_TABLES]
    lines = [cached.get(key) or line for key, line in visit.console.figures.look(page_tables, PAGE_SECONDS).items()]
    with visit.console.figures.paused():
        return _page(visit, lines, len(tables), page)


def _page(visit: Visit, lines: list[TableLine], total: int, page: int) -> Answer:
    largest, now_ms = _largest(lines), visit.now_ms
    return visit.page(
        "lake.html",
        columns=COLUMNS,
        total=total,
        views=list(_views(visit)),
        page=page,
        pages=-(-total // PAGE_TABLES),
        sort=visit.text("sort"),
        sums={
            "rows": sum(line.figures.rows or 0 for line in lines if line.figures),
            "bytes": sum(line.figures.bytes or 0 for line in lines if line.figures),
            "files": sum(line.figures.files or 0 for line in lines if line.figures),
        },
        rows=[row_of(visit, line, largest, now_ms) for line in lines],
        is_pending=any(line.is_pending or (line.problems is None and not line.is_large) for line in lines),
    )


def row_of(visit: Visit, line: TableLine, largest: int, now_ms: int) -> Html:
    """Return the markup of a table's row, cached by its content."""
    key = (line, largest, now_ms // 60_000)
    row_cache = visit.console.rows
    markup = row_cache.get(key)
    if markup is None:
        if len(row_cache) > MAX_ROWS_KEPT:
            row_cache.clear()
        markup = row_cache[key] = visit.html("lake_row.html", one=line, largest=largest, now_ms=now_ms)
    return markup


def _largest(lines: Iterable[TableLine]) -> int:
    return max((line.figures.bytes or 0 for line in lines if line.figures), default=0)


def _order(line: TableLine, sort: str) -> Any:
    value = _KEYS[sort](line)
    return ("" if sort == "engine" else 0) if value is None else value


def _figures(visit: Visit, tables: list[Identifier]) -> Answer:
    """Return the rows that are ready, and the number of pending ones."""
    page = max(visit.number("page") or 1, 1)
    page_tables = tables[(page - 1) * PAGE_TABLES : page * PAGE_TABLES]
    since = visit.number("since") or 0
    lines = visit.console.figures.look(page_tables, PART_SECONDS, with_health=True)
    largest = _largest(lines.values())
    rows = {
        name_text(line.identifier): str(row_of(visit, line, largest, visit.now_ms))
        for line in lines.values()
        if line.stamp > since
    }
    return json_answer(
        {
            "rows": rows,
            "since": max((line.stamp for line in lines.values()), default=0),
            "ready": sum(not line.is_pending for line in lines.values()),
            "of": len(lines),
        }
    )


def _views(visit: Visit) -> list[tuple[str, str]]:
    views = []
    catalog = visit.lake.catalog

    def below(namespace: tuple[str, ...]) -> None:
        for inner in catalog.list_namespaces(namespace):
            for view in catalog.list_views(inner):
                views.append((name_text(view), table_address(view).replace("/tables/", "/views/", 1)))
            below(inner)

    below(())
    return views
