"""SQL over the tables of the lake, for small results.

Each query runs in a separate process, which is killed at a deadline (`query/worker.py`).
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import pyarrow as pa

from frazil.console.visit import PageSection, Visit, name_text
from frazil.pictures.markup import Html
from frazil.query.limits import Limits
from frazil.serve.exchange import Answer
from frazil.table.cells import MAX_COLUMNS, rows_of, type_text
from frazil.table.local_sql.run_sql import query as run_query

MAX_ROWS: Final = 1_000
MAX_NAMES: Final = 200
QUERY_SECONDS: Final = 30.0


def sql_page(visit: Visit) -> Answer:
    """Show a query and its result. A query in a link from another site is shown but not run."""
    query = visit.text("q")
    tables = [name_text(table) for table in visit.lake.catalog.all_tables()]
    is_run = query != "" and visit.is_own
    parts = {}
    if is_run:
        # The page's script requests the result of this very run.
        run = visit.text("run") or secrets.token_hex(8)
        visit.query = {**visit.query, "run": run}
        parts["answer"] = PageSection(("sql", run, query), "the query", lambda: _answer(visit, query), is_query=True)
    return visit.page(
        "sql.html",
        parts,
        tab="sql",
        query=query,
        is_run=is_run,
        tables=tables[:MAX_NAMES],
        further=max(len(tables) - MAX_NAMES, 0),
        has_query=query != "",
    )


def _answer(visit: Visit, query: str) -> Html:
    began = time.monotonic()
    limits = Limits(timeout_seconds=QUERY_SECONDS)
    result = run_query(visit.lake, query, parameters={}, frames={}, values={}, limits=limits, is_isolated=True)
    batches: list[pa.RecordBatch] = []
    count = 0
    for batch in result.to_batches():
        batches.append(batch.slice(0, MAX_ROWS - count))
        count += batch.num_rows
        if count > MAX_ROWS:
            break
    rows = pa.Table.from_batches(batches, schema=result.arrow_schema)
    drawn = rows.select(list(range(min(rows.num_columns, MAX_COLUMNS))))
    return visit.html(
        "sql_answer.html",
        names=drawn.column_names,
        types=[type_text(field.type) for field in drawn.schema],
        lines=rows_of(drawn),
        is_cut=count > MAX_ROWS,
        limit=MAX_ROWS,
        seconds=time.monotonic() - began,
        further_columns=max(rows.num_columns - MAX_COLUMNS, 0),
    )
