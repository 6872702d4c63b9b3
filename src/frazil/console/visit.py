"""One request to the console and the pages that answer it: what was asked, templates, and parts that may come later."""

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
"""How long a part that is asked for alone is waited for."""


@dataclass
class Console:
    """One console: the lake it shows, and what its requests share."""

    service: Service
    lake: Lake
    may_write: bool
    guard: Guard
    jobs: Jobs
    figures: LakeFigures
    templates: jinja2.Environment
    rows: dict[Any, Html] = field(default_factory=dict)
    """Rows of the first page that were made, by what they say (`lake_page.py`)."""
    runs: dict[str, Any] = field(default_factory=dict)
    """What was begun from pages, by id (`run_pages.py`)."""
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(16, thread_name_prefix="frazil-pages")
    )

    def close(self) -> None:
        """Wait for what goes on, and begin nothing more."""
        self.threads.shutdown(cancel_futures=True)
        self.jobs.close()
        self.figures.close()


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page that takes its time: the key of its state, what it does, and what makes its markup."""

    key: Hashable
    what: str
    make: Callable[[], Html]
    is_query: bool = False
    """Whether it runs SQL of a user."""


@dataclass
class Visit:
    """One request, and who sent it."""

    console: Console
    names: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    caller: Caller = ANYONE
    is_known: bool = False
    """Whether it is known who asks; others are not told even where the lake is."""
    is_own: bool = True
    """Whether the request is from a page of this console, or typed in."""

    @property
    def lake(self) -> Lake:
        """The lake."""
        return self.console.lake

    @property
    def may_write(self) -> bool:
        """Whether this caller may run maintenance here."""
        return self.console.may_write and self.console.guard.may_write(self.caller)

    @cached_property
    def table(self) -> Table:
        """The table that the path names."""
        return self.lake.table(parse_name(self.names[0]))

    @property
    def state_key(self) -> Hashable:
        """What names the state of the table that was loaded."""
        metadata = self.table.metadata
        return (self.table.identifier, self.table.metadata_location, metadata.last_updated_ms)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.lake.catalog.now_ms()

    def number(self, name: str) -> int | None:
        """Return a number of the query; None where it is not given."""
        text = self.query.get(name, "").strip()
        if text == "":
            return None
        if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit() or len(text) > 20:
            raise InvalidRequestError(f"Cannot use {name}={text[:40]!r}: it is not a number")
        return int(text)

    def choice(self) -> SnapshotChoice:
        """Return the state that `at` names: a branch or tag, a snapshot's id, or a time; the current one without."""
        moment = self.text("at")
        if moment == "":
            return CURRENT
        if moment in self.table.metadata.refs:
            return SnapshotChoice(ref=moment)
        if moment.isascii() and moment.isdigit() and len(moment) < 20:
            return SnapshotChoice(snapshot_id=int(moment))
        return SnapshotChoice(as_of_ms=milliseconds_of(moment))

    def text(self, name: str) -> str:
        """Return a text of the query, empty where it is not given."""
        return self.query.get(name, "").strip()

    # Answers

    def html(self, template: str, **values: Any) -> Html:
        """Return a template's markup."""
        return Html(self.console.templates.get_template(template).render(visit=self, **values))

    def page(
        self, template: str, parts: Mapping[str, PageSection] | None = None, *, code: int = 200, **values: Any
    ) -> Answer:
        """Return a page; parts that are not there in a moment have an empty element in it, and follow."""
        known = dict(parts or {})
        asked = self.query.get("part")
        if asked is not None:
            if asked not in known:
                raise InvalidRequestError(f"Cannot show the part {asked[:40]!r}: the page has none of that name")
            return self._part(known[asked])
        jobs = {name: self._begin(page_section) for name, page_section in known.items()}
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
        return html_answer(self._made(job))

    def _place(self, name: str, job: Job) -> Html:
        if job.is_done:
            return self._made(job)
        address = "?" + urlencode({**self.query, "part": name})
        return self.html("part_pending.html", job=job, address=address)

    def _made(self, job: Job) -> Html:
        if job.error is None:
            made: Html = job.result
            return made
        reason, hint = reason_of(job.error)
        return self.html("part_failed.html", told=reason, hint=hint)


def html_answer(body: Html, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return markup as an answer."""
    return Answer(
        code, body.encode("utf-8", "replace"), {"content-type": "text/html; charset=utf-8", **(headers or {})}
    )


def redirect(address: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the answer that leads elsewhere in the console."""
    return Answer(303, b"", {"location": address, **(headers or {})})


def name_text(identifier: Identifier) -> str:
    """Return a name as people write it, which `parse_name` reads again."""
    return quote_path(identifier)


def table_address(identifier: Identifier, page: str = "", /, **query: object) -> str:
    """Return the link to a page of a table: the same for the same name, as long as the table has it."""
    tail = f"/{page}" if page else ""
    asked = {key.rstrip("_"): str(value) for key, value in query.items() if value is not None and value != ""}
    return f"/tables/{quote(name_text(identifier), safe='')}{tail}" + (f"?{urlencode(asked)}" if asked else "")


def make_templates(version: str) -> jinja2.Environment:
    """Return the templates: everything that is not markup is escaped, and an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("frazil.console"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        # What is not trusted steers nothing, neither a page nor the order of what is read.
        finalize=lambda value: visible(value, keeps_lines=True) if type(value) is str else value,
    )
    made.filters |= {
        "size": show_bytes,
        "count": show_count,
        "short": show_short,
        "time": show_time,
        "name": name_text,
        "python": repr,
        "when": _when,
        "moment": _moment,
    }
    made.globals |= {"address": table_address, "ago": show_ago, "version": version}
    # Compiled now: the first page is to be as quick as the others.
    for name in made.list_templates():
        made.get_template(name)
    return made


def _moment(timestamp_ms: int, now_ms: int) -> Html:
    """Return a time to the minute, for lists of times, with how long ago it was."""
    text = show_time(timestamp_ms)
    return element(
        "time", text[:16] if text.endswith("UTC") else text, title=f"{text}, {show_ago(timestamp_ms, now_ms)}"
    )


def _when(timestamp_ms: int, now_ms: int) -> Html:
    return element("time", show_ago(timestamp_ms, now_ms), title=show_time(timestamp_ms))
