"""`frazil ui`: the lake in the browser, with helpers for `frazil serve --ui`."""

from __future__ import annotations

import atexit
import html
import os
import shutil
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.serve_command import (
    TOKEN_VARIABLE,
    address_with_token,
    check_installed,
    is_loopback,
    log_requests,
    ready,
    state_path,
)
from frazil.cli.session import opened_catalog
from frazil.cli.start_token import Open, TokenFile, new_token

Write = Annotated[bool, typer.Option("--write", help="Let the console run maintenance; otherwise it is read-only")]


def ui(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="The address to listen on; beyond the loopback with a token")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="The port to listen on; 0 for any")] = 8182,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar=TOKEN_VARIABLE, help="Require this token. Preferably set it in the environment"),
    ] = None,
    certificate: Annotated[str | None, typer.Option("--tls-cert", help="TLS: a file with the certificate")] = None,
    key: Annotated[str | None, typer.Option("--tls-key", help="TLS: a file with its key")] = None,
    write: Write = False,
    is_open: Open = False,
    token_file: TokenFile = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each request to a catalog service")] = False,
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
        needs_token = token is None and is_loopback(host)
        generated = new_token(is_needed=needs_token, is_open=is_open, token_file=token_file)
        from frazil.console.start import show

        show(
            opened,
            listen=(host, port, certificate, key),
            token=token if generated is None else generated,
            state=state_path(settings, None, makes=False),
            properties=settings.properties,
            may_write=write,
            on_ready=partial(_open, opens=not no_browser, token=generated),
        )


def _open(uri: str, *, opens: bool, token: str | None) -> None:
    ready(uri, what="The console is on", token=token)
    if opens and has_screen():
        import_module("webbrowser").open(uri if token is None else _private_page(address_with_token(uri, token)))


def _private_page(address: str) -> str:
    """Return the address of a redirecting file that only this user can read, so that no command line has the token."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-ui-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    page = folder / "open.html"
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(address)}">')
    return page.as_uri()


def has_screen() -> bool:
    """Return whether a browser can open a window; in a plain terminal, one would take over the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
