"""One request to the console and its response: parameters, templates, and parts that may follow later."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode

import jinja2

from frazil.catalog.names import Identifier
from frazil.console.guard import Guard
from frazil.console.jobs import Job, Jobs, reason_of, wait_for
from frazil.console.lake_figures import LakeFigures
from frazil.errors import InvalidRequestError
from frazil.pictures.markup import Html, element
from frazil.pictures.words import show_ago, show_bytes, show_count, show_short, show_time
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.serve.auth import ANYONE, Caller
from frazil.serve.exchange import Answer, json_answer
from frazil.serve.service import Service
from frazil.sql.quote_names import quote_path
from frazil.table.lake import Lake
from frazil.table.parse_name import parse_name
from frazil.table.point_in_time import milliseconds_of
from frazil.table.table import Table
from frazil.visible_text import visible

PAGE_SECONDS: Final = 0.2
"""How long a page waits for its parts."""
PART_SECONDS: Final = 1.0
"""How long to wait for a part that is requested separately."""


@dataclass
class Console:
    """One console: its lake, and the state shared by its requests."""

    service: Service
    lake: Lake
    may_write: bool
    guard: Guard
    jobs: Jobs
    figures: LakeFigures
    templates: jinja2.Environment
    rows: dict[Any, Html] = field(default_factory=dict)
    """Cached rows of the first page, by content (`lake_page.py`)."""
    runs: dict[str, Any] = field(default_factory=dict)
    """The runs started from pages, by ID (`run_pages.py`)."""
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(16, thread_name_prefix="frazil-pages")
    )

    def close(self) -> None:
        """Wait for running work, and start nothing more."""
        self.threads.shutdown(cancel_futures=True)
        self.jobs.close()
        self.figures.close()


@dataclass(frozen=True, slots=True)
class PageSection:
    """A slow part of a page: the key of its state, its description, and the function that creates its markup."""

    key: Hashable
    what: str
    make: Callable[[], Html]
    is_query: bool = False
    """Whether it runs SQL of a user."""


@dataclass
class Visit:
    """One request, and its caller."""

    console: Console
    names: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    caller: Caller = ANYONE
    is_known: bool = False
    """Whether the caller is authenticated; others are not even shown where the lake is."""
    is_own: bool = True
    """Whether the request is from a page of this console, or typed in."""

    @property
    def lake(self) -> Lake:
        """The lake."""
        return self.console.lake

    @property
    def may_write(self) -> bool:
        """Whether this caller may run maintenance."""
        return self.console.may_write and self.console.guard.may_write(self.caller)

    @cached_property
    def table(self) -> Table:
        """The table named in the path."""
        return self.lake.table(parse_name(self.names[0]))

    @property
    def state_key(self) -> Hashable:
        """A key for the loaded state of the table."""
        metadata = self.table.metadata
        return (self.table.identifier, self.table.metadata_location, metadata.last_updated_ms)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.lake.catalog.now_ms()

    def number(self, name: str) -> int | None:
        """Return a number in the query, or None."""
        text = self.query.get(name, "").strip()
        if text == "":
            return None
        if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit() or len(text) > 20:
            raise InvalidRequestError(f"Cannot use {name}={text[:40]!r}: it is not a number")
        return int(text)

    def choice(self) -> SnapshotChoice:
        """Return the state named by `at`: a branch or tag, a snapshot ID, or a time; the current one by default."""
        moment = self.text("at")
        if moment == "":
            return CURRENT
        if moment in self.table.metadata.refs:
            return SnapshotChoice(ref=moment)
        if moment.isascii() and moment.isdigit() and len(moment) < 20:
            return SnapshotChoice(snapshot_id=int(moment))
        return SnapshotChoice(as_of_ms=milliseconds_of(moment))

    def text(self, name: str) -> str:
        """Return a text in the query, or an empty one."""
        return self.query.get(name, "").strip()

    # Responses

    def html(self, template: str, **values: Any) -> Html:
        """Render a template."""
        return Html(self.console.templates.get_template(template).render(visit=self, **values))

    def page(
        self, template: str, parts: Mapping[str, PageSection] | None = None, *, code: int = 200, **values: Any
    ) -> Answer:
        """Return a page; for parts that are not ready within a moment it has an empty element, and they follow."""
        sections = dict(parts or {})
        part_name = self.query.get("part")
        if part_name is not None:
            if part_name not in sections:
                raise InvalidRequestError(f"Cannot show the part {part_name[:40]!r}: the page has no such part")
            return self._part(sections[part_name])
        jobs = {name: self._begin(page_section) for name, page_section in sections.items()}
        wait_for(list(jobs.values()), PAGE_SECONDS)

        def section(name: str) -> Html:
            return self._place(name, jobs[name])

        values.setdefault("is_pending", not all(job.is_done for job in jobs.values()))
        body = self.html(template, part=section, **values)
        return html_answer(body, code=code)

    def _begin(self, page_section: PageSection) -> Job:
        jobs = self.console.jobs
        return jobs.job(page_section.key, page_section.what, page_section.make, is_query=page_section.is_query)

    def _part(self, page_section: PageSection) -> Answer:
        job = self._begin(page_section)
        if not job.wait(PART_SECONDS):
            return json_answer({"text": visible(job.text)}, code=202)
        return html_answer(self._markup(job))

    def _place(self, name: str, job: Job) -> Html:
        if job.is_done:
            return self._markup(job)
        address = "?" + urlencode({**self.query, "part": name})
        return self.html("part_pending.html", job=job, address=address)

    def _markup(self, job: Job) -> Html:
        if job.error is None:
            markup: Html = job.result
            return markup
        reason, hint = reason_of(job.error)
        return self.html("part_failed.html", told=reason, hint=hint)


def html_answer(body: Html, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return markup as a response."""
    return Answer(
        code, body.encode("utf-8", "replace"), {"content-type": "text/html; charset=utf-8", **(headers or {})}
    )


def redirect(address: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a redirect to another page of the console."""
    return Answer(303, b"", {"location": address, **(headers or {})})


def name_text(identifier: Identifier) -> str:
    """Format a name as users write it, so that `parse_name` can read it."""
    return quote_path(identifier)


def table_address(identifier: Identifier, page: str = "", /, **query: object) -> str:
    """Return the link to a page of a table, which stays the same as long as the table has its name."""
    tail = f"/{page}" if page else ""
    parameters = {key.rstrip("_"): str(value) for key, value in query.items() if value is not None and value != ""}
    return f"/tables/{quote(name_text(identifier), safe='')}{tail}" + (
        f"?{urlencode(parameters)}" if parameters else ""
    )


def make_templates(version: str) -> jinja2.Environment:
    """Return the templates: values are escaped, and an unknown name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frazil.console"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        # Untrusted values must not change the direction or order of text.
        finalize=lambda value: visible(value, keeps_lines=True) if type(value) is str else value,
    )
    environment.filters |= {
        "size": show_bytes,
        "count": show_count,
        "short": show_short,
        "time": show_time,
        "name": name_text,
        "python": repr,
        "when": _when,
        "moment": _moment,
    }
    environment.globals |= {"address": table_address, "ago": show_ago, "version": version}
    # Compiled in advance, so that the first page is as quick as the others.
    for name in environment.list_templates():
        environment.get_template(name)
    return environment


def _moment(timestamp_ms: int, now_ms: int) -> Html:
    """Format a time to the minute, for lists, with its age."""
    text = show_time(timestamp_ms)
    return element(
        "time", text[:16] if text.endswith("UTC") else text, title=f"{text}, {show_ago(timestamp_ms, now_ms)}"
    )


def _when(timestamp_ms: int, now_ms: int) -> Html:
    return element("time", show_ago(timestamp_ms, now_ms), title=show_time(timestamp_ms))
