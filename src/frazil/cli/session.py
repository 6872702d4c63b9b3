"""What every command shares: the lake that was named, the way to print, and errors as exit codes.

Exit codes: 0 done, 1 the request failed, 2 wrong usage.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import typer

from frazil.cli.render import OutputFormat, render_rows
from frazil.errors import FrazilError, InvalidRequestError
from frazil.lake.connect import connect
from frazil.lake.lake import Lake

FAILED = 1
WRONG_USAGE = 2


@dataclass(frozen=True)
class Settings:
    """The options before the command; what is not given comes from the environment."""

    warehouse: str | None
    catalog: str | None
    form: OutputFormat

    def open_lake(self) -> Lake:
        """Open the lake that was named."""
        if self.warehouse is None:
            typer.echo("Cannot open a lake: no warehouse was named", err=True)
            typer.echo("Hint: Give --warehouse FOLDER, or set FRAZIL_WAREHOUSE.", err=True)
            raise typer.Exit(WRONG_USAGE)
        return connect(self.warehouse, catalog=self.catalog)

    def show(self, rows: pa.Table | Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
        """Print rows."""
        if names is None:
            names = rows.column_names if isinstance(rows, pa.Table) else list(rows[0]) if rows else []
        typer.echo(render_rows(rows, names, self.form))


def settings_of(context: typer.Context) -> Settings:
    """Return the options before the command."""
    found = context.find_root().obj
    assert isinstance(found, Settings)
    return found


@contextmanager
def opened(context: typer.Context) -> Iterator[tuple[Lake, Settings]]:
    """Open the lake for one command; an error of frazil's is printed and the command fails."""
    settings = settings_of(context)
    with reported():
        lake = settings.open_lake()
        with lake:
            yield lake, settings


@contextmanager
def reported() -> Iterator[None]:
    """Print an error of frazil's and exit with 1."""
    try:
        yield
    except FrazilError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(FAILED) from None
    except BrokenPipeError:
        # The reader of our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def pairs_of(texts: Sequence[str] | None, what: str) -> dict[str, str]:
    """Return options written NAME=VALUE."""
    pairs = {}
    for text in texts or ():
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise InvalidRequestError(f"Cannot read the {what} {text!r}: it is not NAME=VALUE")
        pairs[name] = value
    return pairs
