"""The token of a server on the loopback that was given none: random, made at each start, and shown once.

Other users of the machine can reach the loopback too. So a server without a token makes one and prints an address that
holds it, on standard output; `--token-file` writes it to a file that only this user reads, and `--open` turns it off.
"""

from __future__ import annotations

import os
import secrets
import stat
from typing import Annotated

import typer

from frazil.errors import InvalidRequestError, StorageError

Open = Annotated[
    bool, typer.Option("--open", help="Ask for no token: every user of this machine may come in. On the loopback alone")
]
TokenFile = Annotated[
    str | None,
    typer.Option("--token-file", help="Write the token of this start to a file that only you can read"),
]


def new_token(*, is_needed: bool, is_open: bool, token_file: str | None) -> str | None:
    """Return a new token, and write it to a file if one is named; None if no token is to be made."""
    if not is_needed and (is_open or token_file is not None):
        raise InvalidRequestError(
            "Cannot use --open and --token-file here: a token or secrets were given, or others can reach the address",
            hint="They are for a server on 127.0.0.1 without a token.",
        )
    if is_open and token_file is not None:
        raise InvalidRequestError("Cannot use both --open and --token-file: with --open there is no token")
    if is_open or not is_needed:
        return None
    made = secrets.token_urlsafe(24)
    if token_file is not None:
        _write(token_file, made)
    return made


def show_address(address: str) -> None:
    """Print the address with the token, one line on standard output."""
    typer.echo(address)


def _write(path: str, token: str) -> None:
    try:
        # A file that is there may be another user's, or be readable by others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or not stat.S_ISREG(found.st_mode):
                raise StorageError(f"Cannot write the token to {path}: it is not a file of yours", path=path)
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
            file.write(f"{token}\n")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"Cannot write the token to {path}: {error.strerror or error}", path=path) from error
