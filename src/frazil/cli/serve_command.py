"""`frazil serve`: the lake as a REST catalog."""

from __future__ import annotations

import ipaddress
import logging
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.session import Settings, opened_catalog
from frazil.cli.start_token import Open, TokenFile, new_token, show_address
from frazil.errors import InvalidRequestError
from frazil.visible_text import visible

TOKEN_VARIABLE = "FRAZIL_SERVE_TOKEN"
STATE_FILE = "serve.db"
"""The file, in a lake's folder, in which a server keeps what is its own."""


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Where to listen; others than this machine need a token")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="The port to listen on; 0 is any")] = 8181,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar=TOKEN_VARIABLE, help="Ask for this token. Better given by the environment"),
    ] = None,
    secrets: Annotated[
        str | None,
        typer.Option("--secrets", help="A file of lines: token|client NAME SECRET read|write"),
    ] = None,
    certificate: Annotated[str | None, typer.Option("--tls-cert", help="TLS: a file with the certificate")] = None,
    key: Annotated[str | None, typer.Option("--tls-key", help="TLS: a file with its key")] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", help=f"Where to keep idempotency keys and reports; {STATE_FILE} in the lake's folder"),
    ] = None,
    vend: Annotated[
        str, typer.Option("--vend", help="Credentials for the object store that clients get: none, keys or session")
    ] = "none",
    role: Annotated[
        str, typer.Option("--role-arn", help="The role whose credentials clients get, with --vend session")
    ] = "",
    sign: Annotated[bool, typer.Option("--sign", help="Sign clients' requests to the object store")] = False,
    read_root: Annotated[
        list[str] | None,
        typer.Option(
            "--read-root", help="A further folder to read and write in, beside the warehouse. May be repeated"
        ),
    ] = None,
    is_open: Open = False,
    token_file: TokenFile = None,
    console: Annotated[bool, typer.Option("--ui", help="Show the console too, at the same address")] = False,
    write: Annotated[bool, typer.Option("--write", help="With --ui: let the console run maintenance")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write no line for each request")] = False,
) -> None:
    """Serve the lake as a REST catalog.

    \b
    frazil serve -w warehouse
    frazil serve -w warehouse --ui
    frazil serve -w warehouse --open
    FRAZIL_SERVE_TOKEN=… frazil serve -w warehouse --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    if write and not console:
        raise typer.BadParameter("--write is for the console, so it needs --ui")
    with opened_catalog(context, makes=True, more_roots=read_root or ()) as (opened, settings):
        check_installed()
        log_requests(is_quiet=quiet)
        is_needed = token is None and secrets is None and is_loopback(host)
        made = new_token(is_needed=is_needed, is_open=is_open, token_file=token_file)
        beside = {}
        if console:
            from frazil.console.app import console_routes

            beside["beside"] = partial(console_routes, may_write=write)
        from frazil.serve.start import serve

        serve(
            opened,
            listen=(host, port, certificate, key),
            token=token if made is None else made,
            secrets=None if secrets is None else _read(secrets),
            state=state_path(settings, state),
            properties=settings.properties,
            vend=vend,
            role=role,
            signs=sign,
            on_ready=partial(ready, token=made),
            **beside,
        )


def check_installed() -> None:
    """Refuse to serve without what that takes."""
    if any(find_spec(module) is None for module in ("uvicorn", "starlette", "httptools", "jinja2")):
        raise InvalidRequestError(
            "Cannot serve: the extra `serve` is not installed", hint="pip install 'frazil[serve]'."
        )


def ready(uri: str, what: str = "Serving on", token: str | None = None) -> None:
    """Print where the server is, and the address with its token if one was made."""
    typer.echo(f"{what} {uri}", err=True)
    if token is not None:
        show_address(address_with_token(uri, token))
    sys.stderr.flush()
    sys.stdout.flush()


def address_with_token(uri: str, token: str) -> str:
    """Return the address that opens the console, and that holds the token for other clients."""
    return f"{uri}/?token={token}"


def is_loopback(host: str) -> bool:
    """Return whether a name or address leads to this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def log_requests(*, is_quiet: bool) -> None:
    """Write the log of requests to standard error; where quiet, only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneRecord("%(asctime)s %(levelname)s %(message)s"))
    for name in ("frazil.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING if is_quiet or name == "uvicorn" else logging.INFO)
        logger.propagate = False


class _OneRecord(logging.Formatter):
    """Records whose further lines are indented: no text of a client or a table can pass for a record of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        first, *further = visible(super().format(record), keeps_lines=True).splitlines() or [""]
        return "\n".join([first, *(f"    {line}" for line in further)])


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read the secrets in {file}: {error}") from error


def state_path(settings: Settings, given: str | None, *, makes: bool = True) -> str | None:
    """Return where a server keeps what is its own: where it was told, or in the lake's folder; None for nowhere."""
    if given is not None:
        return given
    warehouse = settings.warehouse or ""
    found = Path(warehouse.removeprefix("file://")).expanduser() / STATE_FILE
    return os.fspath(found) if found.exists() or (makes and found.parent.is_dir()) else None
