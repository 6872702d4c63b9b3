"""Maintenance from a page: a dry run, or a run if the console may write; the result has its own page."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from frazil.catalog.names import Identifier
from frazil.console.commands import Remedy, named_remedy
from frazil.console.jobs import Job
from frazil.console.visit import PageSection, Visit, redirect
from frazil.errors import AccessDeniedError, NotFoundError
from frazil.pictures.markup import Html
from frazil.serve.exchange import Answer
from frazil.table.parse_name import parse_name

MAX_RUNS: Final = 200
MAX_ITEMS: Final = 50


@dataclass(frozen=True, slots=True)
class Run:
    """A procedure that was started from a page."""

    run_id: str
    table: Identifier
    remedy: Remedy
    is_dry: bool
    began_ms: int
    job: Job


def begin_run(visit: Visit) -> Answer:
    """Start the procedure of a form, and redirect to its page."""
    name, procedure = visit.names
    remedy = named_remedy(procedure, visit.form.get("kind", ""))
    is_dry = visit.form.get("how") != "run"
    if not is_dry and not visit.may_write:
        raise AccessDeniedError(
            f"Cannot run {procedure}: the console is read-only",
            hint="Start it with --write, and use a token with write access.",
        )
    table = visit.lake.table(parse_name(name))
    run_id = secrets.token_hex(8)

    def make() -> Html:
        result = remedy.run(table, dry_run=is_dry)
        return visit.html("run_result.html", facts=facts_of(result), is_dry=is_dry)

    job = visit.console.jobs.job(("run", run_id), f"{procedure} of {table.name}", make)
    runs = visit.console.runs
    runs[run_id] = Run(run_id, table.identifier, remedy, is_dry, visit.now_ms, job)
    while len(runs) > MAX_RUNS:
        runs.pop(next(iter(runs)))
    return redirect(f"/runs/{run_id}")


def run_page(visit: Visit) -> Answer:
    """Show the result of a run, or its progress."""
    run: Run | None = visit.console.runs.get(visit.names[0])
    if run is None:
        raise NotFoundError("Cannot find the run: it is no longer stored", hint="See the table's history.")

    def raise_displaced() -> Html:
        raise NotFoundError("Cannot find the result of the run: it was displaced by later ones")

    return visit.page(
        "run.html",
        {"result": PageSection(("run", run.run_id), "the run", raise_displaced)},
        tab="activity",
        table=visit.lake.table(run.table),
        run=run,
        texts=run.remedy.texts(run.table, visit.lake.catalog.warehouse),
        now_ms=visit.now_ms,
    )


def facts_of(result: Any) -> list[tuple[str, str]]:
    """Return the result of a procedure as pairs of names and texts."""
    if is_dataclass(result) and not isinstance(result, type):
        return [(field.name.replace("_", " "), _shown(getattr(result, field.name))) for field in fields(result)]
    return [("result", _shown(result))]


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple | set | frozenset):
        lines = [str(item) for item in list(value)[:MAX_ITEMS]]
        more = len(value) - MAX_ITEMS
        return "\n".join([*lines, *([f"… and {more:,} more"] if more > 0 else [])]) or "none"
    return str(value)
