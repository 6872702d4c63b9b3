"""The console as an ASGI application: dispatches paths to pages.

    GET  /                            every table of the lake
    GET  /tables/db.t                 one table: an overview with its health
    GET  /tables/db.t/history         also diff, files, file, schema, rows, explain, activity
    POST /tables/db.t/maintain/NAME   a dry run, or a run if the console may write; redirects to /runs/ID
    GET  /sql                         queries in this process
    GET  /views/db.v                  one view
    GET  /assets/NAME                 styles and script, from the package

Paths are stable, since they are shared. A name is one escaped segment. Blocking work runs in the server's threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as installed_version
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl, unquote

from starlette.routing import BaseRoute, Mount

from frazil.catalog.base import Catalog
from frazil.catalog.read_only import ReadOnlyCatalog
from frazil.console import (
    activity_page,
    files_page,
    history_page,
    lake_page,
    rows_page,
    run_pages,
    schema_page,
    sign_in,
    sql_page,
    table_page,
    view_page,
)
from frazil.console.guard import OWN_HEADERS, Guard, Unauthenticated, is_own
from frazil.console.jobs import Jobs, reason_of
from frazil.console.lake_figures import LakeFigures
from frazil.console.visit import Console, Visit, html_answer, make_templates
from frazil.errors import AccessDeniedError, FrazilError, InvalidRequestError, NotFoundError, StorageError
from frazil.pictures.style import STYLE
from frazil.serve.app import Exchange, Limits, Receive, Scope, Send
from frazil.serve.exchange import Answer, Refusal
from frazil.serve.service import Service
from frazil.serve.telemetry import LOG
from frazil.table.lake import Lake

ASSETS: Final = {"console.css": "text/css", "console.js": "text/javascript", "theme.js": "text/javascript"}
SWITCH_SECONDS: Final = 0.0005
LIMITS: Final = Limits(body_bytes=1 << 20, body_seconds=15.0)
Page = Callable[[Visit], Answer]

PAGES: Final[Mapping[tuple[str, str], Page]] = {
    ("GET", ""): lake_page.lake_page,
    ("GET", "tables/*"): table_page.table_page,
    ("GET", "tables/*/history"): history_page.history_page,
    ("GET", "tables/*/diff"): history_page.difference_page,
    ("GET", "tables/*/files"): files_page.files_page,
    ("GET", "tables/*/file"): files_page.file_page,
    ("GET", "tables/*/schema"): schema_page.schema_page,
    ("GET", "tables/*/rows"): rows_page.rows_page,
    ("GET", "tables/*/explain"): rows_page.explain_page,
    ("GET", "tables/*/activity"): activity_page.activity_page,
    ("POST", "tables/*/maintain/*"): run_pages.begin_run,
    ("GET", "runs/*"): run_pages.run_page,
    ("GET", "sql"): sql_page.sql_page,
    ("GET", "views/*"): view_page.view_page,
}
"""Pages by method and path; a star matches one segment, which is passed to the page."""


@contextmanager
def console_routes(service: Service, *, may_write: bool) -> Iterator[Sequence[BaseRoute]]:
    """Run a console beside a service, as long as it is served."""
    console = make_console(service, may_write=may_write)
    # A shorter switch interval than Python's five milliseconds, so that decoding threads do not delay quick responses.
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    console.threads.submit(lake_page.begin, console)
    try:
        yield [Mount("/", ConsoleApp(console))]
    finally:
        sys.setswitchinterval(before)
        console.close()


def read_only(what: str) -> InvalidRequestError:
    """Return the error for actions that a read-only console does not allow."""
    return InvalidRequestError(f"Cannot {what}: the console was started without --write")


def make_console(service: Service, *, may_write: bool) -> Console:
    """Return a console over a service; without `may_write`, it has no way to change a table."""
    catalog: Catalog = service.catalog
    if not may_write and not isinstance(catalog, ReadOnlyCatalog):
        catalog = ReadOnlyCatalog(catalog, read_only)
    is_ours = not isinstance(catalog, ReadOnlyCatalog)
    return Console(
        service,
        Lake(catalog, cache=service.manifests),
        may_write and is_ours,
        Guard(service),
        Jobs(),
        LakeFigures(catalog),
        make_templates(f"{installed_version('frazil')}-{_fingerprint_of_assets()}"),
    )


@dataclass(frozen=True, slots=True)
class ConsoleApp:
    """The console as an application."""

    console: Console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send)
        try:
            answer = await self._answer(exchange)
        except Exception as error:
            answer = self._failed(error)
            if answer.code >= 500 and not isinstance(error, FrazilError):
                LOG.error("console: request %s failed", exchange.request_id, exc_info=error)
        headers = {"cache-control": "no-store", **OWN_HEADERS, **answer.headers}
        sent = Answer(answer.code, answer.body, headers, answer.error_type)
        try:
            await exchange.send_answer(sent, LIMITS.answer_seconds)
        except TimeoutError:
            return

    async def _answer(self, exchange: Exchange) -> Answer:
        headers, guard = exchange.headers, self.console.guard
        method = "GET" if exchange.method == "HEAD" else exchange.method
        guard.check_place(method, headers)
        path = exchange.raw_path.partition("?")[0]
        parts = [unquote(piece) for piece in path.strip("/").split("/")]
        if parts[0] == "assets" and method == "GET":
            return asset(parts[-1], is_fixed="v" in exchange.query)
        form: dict[str, str] = {}
        if method == "POST":
            form = _form(await exchange.read_body(LIMITS))
            guard.check_form(form)
        visit = Visit(self.console, (), exchange.query, form, is_own=is_own(headers))
        if parts == ["sign-in"]:
            return sign_in.sign_in(visit, method, is_secure=exchange.is_encrypted)
        try:
            visit.caller, visit.is_known = guard.caller_of(headers), True
        except Unauthenticated:
            if method == "GET" and "token" in exchange.query:
                opened = sign_in.sign_in_by_address(
                    visit, path, exchange.query["token"], is_secure=exchange.is_encrypted
                )
                if opened is not None:
                    return opened
            return sign_in.ask(visit, back=path if method == "GET" else "/")
        if visit.caller.is_limited:
            raise AccessDeniedError("Cannot show the console: your token is limited to some namespaces")
        if parts == ["sign-out"] and method == "POST":
            guard.end_session(headers)
            return sign_in.ask(visit, back="/")
        page, visit.names = find_page(method, parts)
        return await asyncio.get_running_loop().run_in_executor(self.console.threads, page, visit)

    def _failed(self, error: Exception) -> Answer:
        if isinstance(error, Refusal):
            code, message, hint = error.code, error.message, None
        else:
            (message, hint), code = reason_of(error), _code(error)
        visit = Visit(self.console, ())
        return html_answer(visit.html("failed.html", code=code, told=message, hint=hint), code=code)


def find_page(method: str, parts: list[str]) -> tuple[Page, tuple[str, ...]]:
    """Return the page of a path, and the segments that match its stars."""
    for (page_method, pattern), page in PAGES.items():
        template = pattern.split("/")
        if page_method == method and len(template) == len(parts):
            pairs = list(zip(template, parts, strict=True))
            if all(step in ("*", other) for step, other in pairs) and not (pattern and "" in parts):
                return page, tuple(other for step, other in pairs if step == "*")
    raise NotFoundError("Cannot find the page: the address does not exist")


def asset(name: str, *, is_fixed: bool) -> Answer:
    """Return an asset of the package."""
    if name not in ASSETS:
        raise NotFoundError("Cannot find the file: it does not exist")
    caching = "public, max-age=31536000, immutable" if is_fixed else "no-cache"
    headers = {"content-type": f"{ASSETS[name]}; charset=utf-8", "cache-control": caching}
    return Answer(200, _read_asset(name), headers)


@cache
def _read_asset(name: str) -> bytes:
    """Read an asset of the package; the styles include the colours of pictures."""
    body = (files("frazil.console") / "assets" / name).read_bytes()
    return STYLE.encode() + body if name == "console.css" else body


def _fingerprint_of_assets() -> str:
    return hashlib.sha256(b"\0".join(_read_asset(name) for name in sorted(ASSETS))).hexdigest()[:12]


def _form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=50))
    except (UnicodeDecodeError, ValueError):
        raise InvalidRequestError("Cannot read the form: it is not escaped text") from None


def _code(error: Exception) -> int:
    if isinstance(error, NotFoundError) and not isinstance(error, StorageError):
        return 404
    if isinstance(error, AccessDeniedError):
        return 403
    return 400 if isinstance(error, InvalidRequestError) else 500
