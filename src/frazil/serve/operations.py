"""The operations of the protocol: the method and path of each, its requirements, and its implementation.

The table defines the routes and what `/v1/config` announces. Paths are split at slashes before they are unescaped,
since
names may contain any character, including slashes. A prefix before `namespaces` etc. may be the catalog's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from frazil.catalog.names import format_name
from frazil.errors import AlreadyExistsError, FrazilError, InvalidRequestError
from frazil.serve import access_operations, namespaces, planning, tables, tokens, views
from frazil.serve.auth import Right
from frazil.serve.error_messages import protocol_refusal
from frazil.serve.exchange import Answer, Refusal, Request, decode_identifier, no_content
from frazil.serve.service import Service

Run = Callable[[Service, Request], Answer]

_N: Final = "namespaces/{namespace}"
_T: Final = f"{_N}/tables/{{table}}"
_V: Final = f"{_N}/views/{{view}}"
_ROOTS: Final = frozenset({"namespaces", "tables", "views", "transactions"})


def done_again(_: Service, _request: Request, _result: str) -> Answer:
    """Recreate the response of an operation without content."""
    return no_content()


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the protocol."""

    name: str
    method: str
    template: str
    run: Run
    right: Right = Right.READ
    takes_key: bool = False
    again: Callable[[Service, Request, str], Answer] = done_again
    """Recreates the response from the result, for a repeated request whose response was lost or not stored."""
    can_repeat: Callable[[Request], bool] = lambda _: False
    """Whether a request that may have been carried out can be repeated without a record and is still done once."""
    at_once: int | None = None
    """How many of these requests, for one path, run in threads at once; the others wait for their turn."""
    has_prefix: bool = True
    is_public: bool = False
    """Whether no token is required."""
    body_bytes: int | None = None
    """The maximum size of a body; None for the server's general limit."""
    checks_itself: bool = False
    """Whether the operation checks the caller's right in each namespace of its body, or omits closed ones."""

    def check_rights(self, request: Request) -> None:
        """Refuse a request whose caller lacks the right in the namespace that the path names."""
        if "namespace" in request.names and not self.checks_itself:
            request.check_right(self.right, request.namespace)

    def carry_out(self, service: Service, request: Request) -> Answer:
        """Carry out a request, and translate errors into those of the protocol."""
        try:
            return self.run(service, request)
        except FrazilError as error:
            rename = self._renamed(request) if isinstance(error, AlreadyExistsError) else None
            refusal = protocol_refusal(error, self.about, rename)
            if refusal is None:
                raise
            raise refusal from error

    @property
    def about(self) -> str:
        """The subject of the operation."""
        kinds = ("Namespace", "View", "Table")
        return next((entity for entity in kinds if entity in self.name), "Table")

    def _renamed(self, request: Request) -> tuple[str, str] | None:
        if not self.name.startswith("rename"):
            return None
        body = request.json()
        return format_name(decode_identifier(body, "source")), format_name(decode_identifier(body, "destination"))

    @property
    def endpoint(self) -> str:
        """The operation's name in `/v1/config`."""
        return (
            f"{self.method} /v1/{{prefix}}/{self.template}" if self.has_prefix else f"{self.method} /v1/{self.template}"
        )


def _write(name: str, method: str, template: str, run: Run, **more: Any) -> Operation:
    return Operation(name, method, template, run, more.pop("right", Right.WRITE), takes_key=True, **more)


_OF_ONE_TABLE: Final = 2
"""One commits while the next is read and prepared."""
_OF_SEVERAL_TABLES: Final = 8
"""Their tables are unknown before the body is read, so half of the threads are left for others."""


_SMALL: Final = 16 << 10
_MIDDLE: Final = 1 << 20

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("getConfig", "GET", "config", namespaces.show_config, has_prefix=False),
    Operation(
        "getToken", "POST", "oauth/tokens", tokens.give_token, has_prefix=False, is_public=True, body_bytes=_SMALL
    ),
    Operation("listNamespaces", "GET", "namespaces", namespaces.list_namespaces, checks_itself=True),
    _write(
        "createNamespace",
        "POST",
        "namespaces",
        namespaces.create_namespace,
        again=namespaces.created_again,
        right=Right.ADMIN,
    ),
    Operation("loadNamespaceMetadata", "GET", _N, namespaces.load_namespace),
    Operation("namespaceExists", "HEAD", _N, namespaces.namespace_exists, checks_itself=True),
    _write("dropNamespace", "DELETE", _N, namespaces.drop_namespace, right=Right.ADMIN),
    _write(
        "updateProperties",
        "POST",
        f"{_N}/properties",
        namespaces.update_properties,
        again=namespaces.updated_again,
        right=Right.ADMIN,
    ),
    Operation("listTables", "GET", f"{_N}/tables", tables.list_tables),
    _write(
        "createTable",
        "POST",
        f"{_N}/tables",
        tables.create_table,
        again=tables.created_again,
        can_repeat=lambda _: True,
    ),
    _write("registerTable", "POST", f"{_N}/register", tables.register_table, again=tables.created_again),
    Operation("loadTable", "GET", _T, tables.load_table),
    Operation("tableExists", "HEAD", _T, tables.table_exists),
    _write(
        "updateTable",
        "POST",
        _T,
        tables.update_table,
        again=tables.committed_again,
        can_repeat=tables.can_repeat_commit,
        at_once=_OF_ONE_TABLE,
    ),
    _write("dropTable", "DELETE", _T, tables.drop_table),
    _write("unregisterTable", "POST", f"{_T}/unregister", tables.unregister_table, again=tables.unregistered_again),
    _write("renameTable", "POST", "tables/rename", tables.rename_table),
    _write(
        "commitTransaction",
        "POST",
        "transactions/commit",
        tables.commit_transaction,
        can_repeat=tables.can_repeat_commits,
        at_once=_OF_SEVERAL_TABLES,
    ),
    Operation("loadCredentials", "GET", f"{_T}/credentials", access_operations.load_credentials),
    Operation("signRequest", "POST", f"{_T}/sign", access_operations.sign_request, body_bytes=2 * _MIDDLE),
    Operation("reportMetrics", "POST", f"{_T}/metrics", planning.report_metrics, body_bytes=_MIDDLE),
    Operation("planTableScan", "POST", f"{_T}/plan", planning.plan_table_scan, takes_key=True, body_bytes=_MIDDLE),
    Operation("fetchPlanningResult", "GET", f"{_T}/plan/{{plan-id}}", planning.fetch_planning_result),
    Operation("cancelPlanning", "DELETE", f"{_T}/plan/{{plan-id}}", planning.cancel_planning, takes_key=True),
    Operation("fetchScanTasks", "POST", f"{_T}/tasks", planning.fetch_scan_tasks, takes_key=True, body_bytes=_SMALL),
    Operation("listViews", "GET", f"{_N}/views", views.list_views),
    _write("createView", "POST", f"{_N}/views", views.create_view, again=views.created_again),
    _write("registerView", "POST", f"{_N}/register-view", views.register_view, again=views.created_again),
    Operation("loadView", "GET", _V, views.load_view),
    Operation("viewExists", "HEAD", _V, views.view_exists),
    _write(
        "replaceView",
        "POST",
        _V,
        views.replace_view,
        again=views.replaced_again,
        at_once=_OF_ONE_TABLE,
    ),
    _write("dropView", "DELETE", _V, views.drop_view),
    _write("renameView", "POST", "views/rename", views.rename_view),
    Operation("listFunctions", "GET", f"{_N}/functions", namespaces.list_functions),
    Operation("loadFunction", "GET", f"{_N}/functions/{{function}}", namespaces.load_function),
)


@dataclass(frozen=True, slots=True)
class Found:
    """The operation of a path, and the names in it."""

    operation: Operation
    names: dict[str, str]


class Router:
    """Finds operations by method and path."""

    def __init__(self, operations: Sequence[Operation], prefix: str) -> None:
        self._prefix = prefix
        self._by_shape: dict[tuple[int, str], list[tuple[tuple[str, ...], Operation]]] = {}
        for operation in operations:
            parts = tuple(operation.template.split("/"))
            self._by_shape.setdefault((len(parts), parts[-1] if parts[-1][0] != "{" else ""), []).append(
                (parts, operation)
            )

    def find(self, method: str, raw_path: str) -> Found:
        """Return the operation of a method and an escaped path below `/v1/`, or refuse the request."""
        parts = raw_path.split("/")
        if len(parts) > 1 and parts[0] not in _ROOTS and parts[1] in _ROOTS:
            if unquote(parts[0]) != self._prefix:
                raise Refusal(404, "NoSuchWarehouseException", f"Cannot find the warehouse {unquote(parts[0])[:100]!r}")
            parts = parts[1:]
        allowed: list[str] = []
        for shape in ((len(parts), parts[-1]), (len(parts), "")):
            for template, operation in self._by_shape.get(shape, ()):
                names = _match(template, parts)
                if names is not None:
                    if operation.method == method:
                        return Found(operation, names)
                    allowed.append(operation.method)
        if allowed:
            raise Refusal(
                405,
                "MethodNotAllowedException",
                f"Cannot {method} this: the allowed methods are {', '.join(sorted(set(allowed)))}",
                {"allow": ", ".join(sorted(set(allowed)))},
            )
        raise Refusal(404, "NotFoundException", "Cannot find the path: it is not part of the protocol")


def _match(template: tuple[str, ...], parts: Sequence[str]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for piece, step in zip(template, parts, strict=True):
        if piece[0] == "{":
            if step == "":
                return None
            name = piece[1:-1]
            names["name" if name in ("table", "view", "function") else name] = _unescaped(step)
        elif piece != step:
            return None
    return names


def _unescaped(step: str) -> str:
    try:
        return unquote(step, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequestError("Cannot read the path: a name in it is not UTF-8 text") from None
