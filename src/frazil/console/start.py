"""Starts what `frazil ui` runs: a server with a console, and the REST catalog of the same lake below `/v1/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from frazil.catalog.base import Catalog
from frazil.catalog.read_only import ReadOnlyCatalog
from frazil.console.app import console_routes, read_only
from frazil.serve.start import serve


def show(
    catalog: Catalog,
    *,
    listen: tuple[str, int, str | None, str | None],
    token: str | None,
    state: str | None,
    properties: Mapping[str, str],
    may_write: bool,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the console of a lake until a signal. Without `may_write`, REST clients cannot change anything either."""
    serve(
        catalog if may_write else ReadOnlyCatalog(catalog, read_only),
        listen=listen,
        token=token,
        secrets=None,
        state=state,
        properties=properties,
        on_ready=on_ready,
        beside=partial(console_routes, may_write=may_write),
    )
