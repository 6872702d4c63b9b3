"""`frazil serve`: the lake as a REST catalog."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.session import Settings, opened_catalog
from frazil.errors import InvalidRequestError

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
        str | None, typer.Option("--state", help=f"Where to keep keys and reports; {STATE_FILE} in the lake's folder")
    ] = None,
    vend: Annotated[
        str, typer.Option("--vend", help="Keys for the object store that clients get: none, keys or session")
    ] = "none",
    role: Annotated[str, typer.Option("--role-arn", help="The role whose keys clients get, with --vend session")] = "",
    sign: Annotated[bool, typer.Option("--sign", help="Sign clients' requests to the object store")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Write no line for each request")] = False,
) -> None:
    """Serve the lake as a REST catalog.

    \b
    frazil serve -w warehouse
    frazil serve -w warehouse --port 0
    FRAZIL_SERVE_TOKEN=… frazil serve -w warehouse --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    with opened_catalog(context, makes=True) as (opened, settings):
        if find_spec("uvicorn") is None or find_spec("starlette") is None or find_spec("httptools") is None:
            raise InvalidRequestError(
                "Cannot serve: what that takes is not installed", hint="pip install 'frazil[serve]'."
            )
        start = import_module("frazil.serve.start")
        _log(is_quiet=quiet)
        start.serve(
            opened,
            listen=(host, port, certificate, key),
            token=token,
            secrets=None if secrets is None else _read(secrets),
            state=_state_path(settings, state),
            properties=settings.properties,
            vend=vend,
            role=role,
            signs=sign,
            on_ready=_ready,
        )


def _ready(uri: str) -> None:
    typer.echo(f"Serving on {uri}", err=True)
    sys.stderr.flush()


def _log(*, is_quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("frazil.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING if is_quiet or name == "uvicorn" else logging.INFO)
        logger.propagate = False


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read the secrets in {file}: {error}") from error


def _state_path(settings: Settings, given: str | None) -> str | None:
    if given is not None:
        return given
    warehouse = settings.warehouse or ""
    folder = Path(warehouse.removeprefix("file://")).expanduser()
    return os.fspath(folder / STATE_FILE) if folder.is_dir() else None
