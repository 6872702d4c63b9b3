"""The base of the REST catalog: requests with their keys, refusals, pages, parsed tables and views, and reports.

`rest/rest_names.py` adds the operations on namespaces, tables and views, `rest/rest_catalog.py` adds commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from frazil.catalog.base import NO_PLACE, Catalog, random_id, system_ms
from frazil.catalog.names import Identifier, Namespace, format_name
from frazil.codec.json_fields import JsonObject
from frazil.errors import CommitStateUnknownError, ServiceError
from frazil.loaded import LoadedTable, LoadedView
from frazil.rest import service as has
from frazil.rest import settings as names
from frazil.rest.load_result import LoadResult, read_view
from frazil.rest.pages import read_identifier, read_pages
from frazil.rest.refusals import refusal
from frazil.rest.report_metrics import Reporter, commit_report, scan_report
from frazil.rest.service import Service, read_object
from frazil.rest.session import Answered, OutcomeLost, RestSession
from frazil.rest.settings import Settings
from frazil.rest.table_access import TableAccess, Views
from frazil.rest.table_cache import TableCache
from frazil.scan.plan import Plan
from frazil.storage.choose import SchemeStorage
from frazil.storage.origin import is_loopback


class AskedCatalog(Catalog):
    """A catalog that is a service; the base class without operations."""

    def __init__(
        self,
        name: str,
        service: Service,
        session: RestSession,
        settings: Settings,
        storage: SchemeStorage,
        *,
        delete_roots: Sequence[str] = (),
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        given_warehouse = settings.get(names.WAREHOUSE, "")
        warehouse = given_warehouse if "://" in given_warehouse else NO_PLACE
        super().__init__(name, warehouse, storage, now_ms=now_ms, new_id=new_id, delete_roots=delete_roots)
        self.may_name_local_files = is_loopback(service.base)
        self.service = service
        self.session = session
        self.settings = settings
        self.access = TableAccess(service, session, settings, storage, now_ms)
        self._page_size = settings.get(names.PAGE_SIZE)
        self._cache = TableCache(
            settings.whole(names.CACHE_ENTRIES, 100), settings.whole(names.CACHE_AGE_MS, 300_000), now_ms
        )
        self._reporter = Reporter(self._send_report)
        self.has_readers_by_views = True
        self.has_staging = True
        """Whether the service is known to refuse staged tables."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.service.base!r})"

    def close(self) -> None:
        """Send pending reports, and close the connections to the service."""
        self._reporter.close()
        self.session.transport.close()

    def _send_report(self, table: Identifier, body: dict[str, Any]) -> None:
        session = self.access.session_of(table).without_retries()
        session.send("POST", f"{self.service.table(table)}/metrics", body=body)

    @property
    def wants_reports(self) -> bool:
        """Whether the service wants reports of commits and scans."""
        return self.service.has(has.REPORT_METRICS) and self.settings.truth(names.METRICS, default=True)

    def report_scan(self, plan: Plan) -> None:
        """Report a finished plan to the service."""
        self._reporter.report(plan.loaded.identifier, scan_report(plan))

    def report_commit(self, loaded: LoadedTable, snapshot_ids: Iterable[int]) -> None:
        """Report the snapshots of a commit to the service, if it wants reports."""
        for snapshot_id in snapshot_ids if self.wants_reports else ():
            snapshot = loaded.metadata.find_snapshot(snapshot_id)
            if snapshot is not None:
                self._reporter.report(loaded.identifier, commit_report(loaded, snapshot))

    def ask(
        self,
        method: str,
        url: str,
        *,
        what: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send a request; a lost response to a request that may not be repeated raises a CommitStateUnknownError."""
        is_change = method in ("POST", "DELETE")
        try:
            return self.session.send(
                method, url, query=query, body=body, headers=headers, key=self.session.new_key() if is_change else None
            )
        except OutcomeLost as lost:
            raise CommitStateUnknownError(
                f"Cannot tell whether the service did {what}: {lost}", hint="Check the state before you try again."
            ) from lost

    def check(
        self,
        answer: Answered,
        what: str,
        *,
        namespace: Namespace = (),
        table: Identifier | None = None,
        view: Identifier | None = None,
    ) -> None:
        """Raise the error that a refusal stands for."""
        if not answer.reply.is_success:
            raise refusal(self.session, answer.reply, what, namespace=namespace, table=table, view=view)

    def loaded_table(
        self, parts: Identifier, result: LoadResult, *, is_staged: bool = False, views: Views = ()
    ) -> LoadedTable:
        """Return a table for scans and commits, with a storage that has the service's credentials for it."""
        storage = self.access.storage(parts, result, views)
        self.access.keep_token(parts, result.config, views)
        location = None if is_staged else result.metadata_location
        if location is None and not is_staged:
            raise ServiceError(f"Cannot load table {format_name(parts)}: the response has no metadata location")
        return LoadedTable(parts, result.metadata, location, storage, referenced_by=views)

    def loaded_view(self, parts: Identifier, answer: Answered) -> LoadedView:
        """Return the view of a response."""
        metadata, location = read_view(answer.reply, format_name(parts))
        return LoadedView(parts, metadata, location, self.storage)

    def keep_table(self, loaded: LoadedTable, answer: Answered) -> None:
        """Cache the state that a commit led to."""
        self._cache.keep(loaded, answer.reply.headers.get("etag"))

    def forget_table(self, identifier: Identifier) -> None:
        """Remove a table from the cache."""
        self._cache.forget(identifier)

    def _exists(self, endpoint: str, url: str, what: str) -> bool:
        answer = self.ask("HEAD" if self.service.has(endpoint) else "GET", url, what=what)
        if answer.status in (400, 405, 501) and self.service.has(endpoint):
            answer = self.ask("GET", url, what=what)
        if answer.status == 404:
            return False
        self.check(answer, what)
        return True

    def _identifiers(self, url: str, namespace: Namespace, what: str) -> tuple[Identifier, ...]:
        items = self._pages(url, "identifiers", {}, what, namespace)
        return tuple(sorted({read_identifier(item) for item in items if isinstance(item, dict)}))

    def _pages(self, url: str, field: str, query: Mapping[str, str], what: str, namespace: Namespace) -> list[Any]:
        def ask_page(page_query: Mapping[str, str]) -> JsonObject:
            answer = self.ask("GET", url, query=page_query, what=what)
            self.check(answer, what, namespace=namespace)
            return read_object(answer.reply, what)

        first_query = dict(query) if self._page_size is None else {**query, "pageSize": self._page_size}
        return read_pages(ask_page, field, first_query, what)
