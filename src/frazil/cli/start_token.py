"""The token of a loopback server without a configured one: random, generated at each start, and shown once.

Other users of the machine can reach the loopback too. So a server without a token generates one and prints an address
that contains it on standard output; `--token-file` writes it to a file that only this user can read, and `--open`
disables it.
"""

from __future__ import annotations

import os
import secrets
import stat
from typing import Annotated

import typer

from frazil.errors import InvalidRequestError, StorageError

Open = Annotated[
    bool, typer.Option("--open", help="Require no token: every user of this machine has access. Only on the loopback")
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", help="Write the generated token to a file that only you can read"),
]


def new_token(*, is_needed: bool, is_open: bool, token_file: str | None) -> str | None:
    """Return a new token, written to a file if one is named, or None if no token is needed."""
    if not is_needed and (is_open or token_file is not None):
        raise InvalidRequestError(
            "Cannot use --open and --token-file here: a token or secrets are set, or the address is not a loopback",
            hint="They are for a server on 127.0.0.1 without a token.",
        )
    if is_open and token_file is not None:
        raise InvalidRequestError("Cannot use both --open and --token-file: with --open there is no token")
    if is_open or not is_needed:
        return None
    token = secrets.token_urlsafe(24)
    if token_file is not None:
        _write(token_file, token)
    return token


def show_address(address: str) -> None:
    """Print the address with the token as one line on standard output."""
    typer.echo(address)


def _write(path: str, token: str) -> None:
    try:
        # An existing file may belong to another user, or be readable by others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
                raise StorageError(f"Cannot write the token to {path}: it is not your file", path=path)
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
            file.write(f"{token}\n")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"Cannot write the token to {path}: {error.strerror or error}", path=path) from error
