"""`frazil serve`: serve the lake as a REST catalog."""

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
"""The file in a lake's folder that holds a server's own state."""


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="The address to listen on; beyond the loopback with a token")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="The port to listen on; 0 for any")] = 8181,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar=TOKEN_VARIABLE, help="Require this token. Preferably set it in the environment"),
    ] = None,
    secrets: Annotated[
        str | None,
        typer.Option("--secrets", help="A file of lines: token|client NAME SECRET read|write"),
    ] = None,
    certificate: Annotated[str | None, typer.Option("--tls-cert", help="TLS: a file with the certificate")] = None,
    key: Annotated[str | None, typer.Option("--tls-key", help="TLS: a file with its key")] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", help=f"The file for idempotency keys and reports; {STATE_FILE} of the lake by default"),
    ] = None,
    vend: Annotated[
        str, typer.Option("--vend", help="Credentials for the object store vended to clients: none, keys or session")
    ] = "none",
    role: Annotated[
        str, typer.Option("--role-arn", help="The role whose credentials are vended, with --vend session")
    ] = "",
    sign: Annotated[bool, typer.Option("--sign", help="Sign clients' requests to the object store")] = False,
    read_root: Annotated[
        list[str] | None,
        typer.Option("--read-root", help="A further folder to read and write, besides the warehouse. May be repeated"),
    ] = None,
    is_open: Open = False,
    token_file: TokenFile = None,
    console: Annotated[bool, typer.Option("--ui", help="Also serve the console at the same address")] = False,
    write: Annotated[bool, typer.Option("--write", help="With --ui: let the console run maintenance")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log each request")] = False,
) -> None:
    """Serve the lake as a REST catalog.

    \b
    frazil serve -w warehouse
    frazil serve -w warehouse --ui
    frazil serve -w warehouse --open
    FRAZIL_SERVE_TOKEN=… frazil serve -w warehouse --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    if write and not console:
        raise typer.BadParameter("--write applies to the console, so it needs --ui")
    with opened_catalog(context, makes=True, more_roots=read_root or ()) as (opened, settings):
        check_installed()
        log_requests(is_quiet=quiet)
        needs_token = token is None and secrets is None and is_loopback(host)
        generated = new_token(is_needed=needs_token, is_open=is_open, token_file=token_file)
        extra = {}
        if console:
            from frazil.console.app import console_routes

            extra["beside"] = partial(console_routes, may_write=write)
        from frazil.serve.start import serve

        serve(
            opened,
            listen=(host, port, certificate, key),
            token=token if generated is None else generated,
            secrets=None if secrets is None else _read(secrets),
            state=state_path(settings, state),
            properties=settings.properties,
            vend=vend,
            role=role,
            signs=sign,
            on_ready=partial(ready, token=generated),
            **extra,
        )


def check_installed() -> None:
    """Refuse to serve if required packages are not installed."""
    if any(find_spec(module) is None for module in ("uvicorn", "starlette", "httptools", "jinja2")):
        raise InvalidRequestError(
            "Cannot serve: the extra `serve` is not installed", hint="pip install 'frazil[serve]'."
        )


def ready(uri: str, what: str = "Serving on", token: str | None = None) -> None:
    """Print the server's address, with its token if one was generated."""
    typer.echo(f"{what} {uri}", err=True)
    if token is not None:
        show_address(address_with_token(uri, token))
    sys.stderr.flush()
    sys.stdout.flush()


def address_with_token(uri: str, token: str) -> str:
    """Return the address that opens the console and contains the token for other clients."""
    return f"{uri}/?token={token}"


def is_loopback(host: str) -> bool:
    """Return whether a name or address is a loopback of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def log_requests(*, is_quiet: bool) -> None:
    """Log requests to standard error; with `is_quiet`, only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_IndentedFormatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("frazil.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING if is_quiet or name == "uvicorn" else logging.INFO)
        logger.propagate = False


class _IndentedFormatter(logging.Formatter):
    """Indents further lines of records, so that text of a client or a table cannot pass for a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        first, *further = visible(super().format(record), keeps_lines=True).splitlines() or [""]
        return "\n".join([first, *(f"    {line}" for line in further)])


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read the secrets in {file}: {error}") from error


def state_path(settings: Settings, requested: str | None, *, makes: bool = True) -> str | None:
    """Return the file of a server's own state: as requested, or in the lake's folder, or None."""
    if requested is not None:
        return requested
    warehouse = settings.warehouse or ""
    path = Path(warehouse.removeprefix("file://")).expanduser() / STATE_FILE
    return os.fspath(path) if path.exists() or (makes and path.parent.is_dir()) else None
