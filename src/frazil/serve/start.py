"""Starts what `frazil serve` runs: a service over a catalog, its application, and a server that runs until a signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from starlette.routing import BaseRoute

from frazil.catalog.base import Catalog
from frazil.serve.app import make_app
from frazil.serve.auth import Auth, Right, Secret, parse_auth_file
from frazil.serve.run_server import Listen, check_listen, run_server
from frazil.serve.server_state import ServerState
from frazil.serve.service import Service
from frazil.serve.store_access import StoreAccess


def serve(
    catalog: Catalog,
    *,
    listen: tuple[str, int, str | None, str | None],
    token: str | None,
    secrets: str | None,
    state: str | None,
    properties: Mapping[str, str],
    vend: str = "none",
    role: str = "",
    signs: bool = False,
    on_ready: Callable[[str], None],
    beside: Callable[[Service], AbstractContextManager[Sequence[BaseRoute]]] = lambda _: nullcontext(()),
) -> None:
    """Serve a catalog until a signal; `beside` opens what else is served, such as a console."""
    tokens, clients = ([], []) if secrets is None else parse_auth_file(secrets)
    if token is not None:
        tokens = [*tokens, Secret("token", token, Right.WRITE)]
    address = Listen(*listen)
    roots = (catalog.warehouse, *catalog.delete_roots)
    access = StoreAccess(properties, vend=vend, role=role, signs=signs, roots=roots, now_ms=catalog.now_ms)
    server_state = ServerState(None if state is None else Path(state))
    try:
        auth = Auth(tokens, clients, key=server_state.signing_key())
        service = Service(catalog, server_state, auth, access)
        check_listen(address, service)
        with beside(service) as routes:
            app = make_app(service, more_routes=routes)
            try:
                run_server(app, service, address, on_ready)
            finally:
                app.close()
    finally:
        server_state.close()
