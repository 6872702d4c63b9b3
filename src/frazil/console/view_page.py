"""One view: its query, in each dialect, and its columns."""

from __future__ import annotations

from frazil.console.visit import Visit
from frazil.serve.exchange import Answer
from frazil.table.parse_name import parse_name


def view_page(visit: Visit) -> Answer:
    """Show a view."""
    view = visit.lake.view(parse_name(visit.names[0]))
    queries = [(dialect, view.sql_for(dialect)) for dialect in sorted(view.dialects)]
    return visit.page("view.html", view=view, queries=queries, fields=view.schema.fields[:500])
