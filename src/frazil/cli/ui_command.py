"""`frazil ui`: the lake in the browser, and what `frazil serve --ui` shares with it."""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module
from typing import Annotated

import typer

from frazil.cli.serve_command import (
    TOKEN_VARIABLE,
    check_installed,
    log_requests,
    ready,
    state_path,
)
from frazil.cli.session import opened_catalog

Write = Annotated[
    bool, typer.Option("--write", help="Let the console run maintenance; without it, nothing can be changed")
]


def ui(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Where to listen; others than this machine need a token")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="The port to listen on; 0 is any")] = 8182,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar=TOKEN_VARIABLE, help="Ask for this token. Better given by the environment"),
    ] = None,
    certificate: Annotated[str | None, typer.Option("--tls-cert", help="TLS: a file with the certificate")] = None,
    key: Annotated[str | None, typer.Option("--tls-key", help="TLS: a file with its key")] = None,
    write: Write = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Write a line for each request to a catalog service")
    ] = False,
) -> None:
    """Show the lake in the browser: tables, history, files, rows, SQL. No JVM.

    \b
    frazil ui -w warehouse
    frazil ui -w warehouse --write
    FRAZIL_SERVE_TOKEN=… frazil ui -w warehouse --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    with opened_catalog(context) as (opened, settings):
        check_installed()
        log_requests(is_quiet=not verbose)
        from frazil.console.start import show

        show(
            opened,
            listen=(host, port, certificate, key),
            token=token,
            state=state_path(settings, None, makes=False),
            properties=settings.properties,
            may_write=write,
            on_ready=partial(_open, opens=not no_browser),
        )


def _open(uri: str, *, opens: bool) -> None:
    ready(uri, what="The console is on")
    if opens and has_screen():
        import_module("webbrowser").open(uri)


def has_screen() -> bool:
    """Return whether a browser would have where to show itself: in a terminal alone, one would take it over."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
