"""The common part of commands: opening the lake, output, and errors as exit codes.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 130 stopped by ctrl-C. Modules for opening a lake are imported
on demand, so that help and usage errors are instant.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import frazil
from frazil.cli.find_java import check_java
from frazil.cli.lake_options import LakeOptions, give_connection, options_after
from frazil.cli.pager import print_paged
from frazil.cli.render import OutputFormat, render_more, render_rows
from frazil.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.visible_text import visible

if TYPE_CHECKING:
    import pyarrow as pa

FAILED = 1
WRONG_USAGE = 2
STOPPED = 130
NOT_FOUND = re.compile(r"Cannot find (table|view) (?P<name>.*): the catalog has no such (table|view)", re.DOTALL)
LISTED = "`frazil table list` lists the tables and views."


@dataclass(frozen=True)
class Settings:
    """The lake and the output format, with defaults from the environment."""

    warehouse: str | None
    catalog: str | None
    form: OutputFormat
    properties: Mapping[str, str] = field(default_factory=dict)
    trust: str = "all"
    name: str = "lake"

    def open_lake(self, *, makes: bool) -> frazil.Lake:
        """Open the lake; create a missing one if the command creates things."""
        self._check_exists(makes)
        return frazil.connect(self._warehouse_or_fail(), **self._connection_arguments())

    def open_catalog(self, *, makes: bool, more_roots: Sequence[str] | None = None) -> Any:
        """Open the catalog of the lake, which is faster and suffices for names and metadata."""
        self._check_exists(makes)
        from frazil.table.open_catalog import open_catalog

        return open_catalog(self._warehouse_or_fail(), **self._connection_arguments(), more_roots=more_roots)

    def _connection_arguments(self) -> dict[str, Any]:
        return {"catalog": self.catalog, "name": self.name, "properties": self.properties, "trust": self.trust}

    def _check_exists(self, makes: bool) -> None:
        """Refuse a missing lake, or announce that it is created."""
        from frazil.table.open_catalog import lake_exists

        if lake_exists(self._warehouse_or_fail(), self.catalog):
            return
        if not makes or self.trust == "none":
            raise NotFoundError(
                f"Cannot open the lake {self._warehouse_or_fail()!r}: it does not exist",
                hint="Check its path or name. `frazil table create` and `frazil sql` create a lake that is missing.",
            )
        typer.echo(f"Creating a new lake in {self._warehouse_or_fail()}.", err=True)

    def _warehouse_or_fail(self) -> str:
        if self.warehouse is None:
            raise wrong_usage(
                "Cannot open a lake: no warehouse was set", "Pass --warehouse FOLDER, or set FRAZIL_WAREHOUSE."
            )
        return self.warehouse

    def show(self, rows: pa.Table | Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
        """Print rows."""
        if names is None:
            names = (list(rows[0]) if rows else []) if isinstance(rows, Sequence) else rows.column_names
        print_paged(render_rows(rows, names, self.form, width=terminal_width()))

    def show_more(self, rows: pa.RecordBatch, *, is_first: bool) -> None:
        """Print rows in a sequence of batches."""
        typer.echo(render_more(rows, self.form, width=terminal_width(), is_first=is_first))


def wrong_usage(message: str, hint: str | None = None) -> typer.Exit:
    """Print a usage error; return the exception that exits with its code."""
    typer.echo(str(InvalidRequestError(message, hint=hint)), err=True)
    return typer.Exit(WRONG_USAGE)


def terminal_width() -> int | None:
    """Return the width of the terminal for output, or None for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def confirm(question: str, *, is_agreed: bool) -> None:
    """Ask for confirmation; exit if it is denied, and refuse if there is no terminal."""
    if is_agreed:
        return
    if not sys.stdin.isatty():
        raise InvalidRequestError(
            f"Cannot ask '{question}': standard input is not a terminal", hint="Pass --yes to confirm."
        )
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(FAILED)


def settings_of(context: typer.Context) -> Settings:
    """Return the options before the command, overridden by those after it."""
    options = context.find_root().obj
    assert isinstance(options, LakeOptions)
    levels = [options, *options_after(context)]
    for lake_options in levels[1:]:
        options = options.overridden_by(lake_options)
    properties: dict[str, str] = {}
    for lake_options in levels:
        properties |= connection_properties(lake_options.properties, lake_options.properties_file)
    return Settings(
        options.warehouse,
        options.catalog,
        OutputFormat.TABLE if options.form is None else options.form,
        {**secrets_of_environment(options.warehouse), **properties},
        "all" if options.trust is None else options.trust.value,
        "lake" if options.name is None else options.name,
    )


@contextmanager
def opened(context: typer.Context, *, makes: bool = False) -> Iterator[tuple[frazil.Lake, Settings]]:
    """Open the lake for one command; print errors and exit."""
    with reported():
        settings = settings_of(context)
        lake = settings.open_lake(makes=makes)
        with lake, _suggesting_names(lake.list_tables, lake.list_views):
            yield lake, settings


@contextmanager
def opened_catalog(
    context: typer.Context, *, makes: bool = False, more_roots: Sequence[str] | None = None
) -> Iterator[tuple[Any, Settings]]:
    """Open the catalog for one command; with `more_roots`, only files there and in the warehouse are used."""
    with reported():
        settings = settings_of(context)
        catalog = settings.open_catalog(makes=makes, more_roots=more_roots)
        try:
            with _suggesting_names(catalog.list_tables, catalog.list_views):
                yield catalog, settings
        finally:
            catalog.close()


@contextmanager
def _suggesting_names(*lists: Callable[[tuple[str, ...]], Sequence[tuple[str, ...]]]) -> Iterator[None]:
    """Add the most similar name as a hint to the error for a missing table or view."""
    try:
        yield
    except (TableNotFoundError, ViewNotFoundError) as error:
        named = NOT_FOUND.fullmatch(error.message)
        if error.hint is None and named is not None:
            error.hint = f"Did you mean {similar}?" if (similar := _similar_name(named["name"], lists)) else LISTED
        raise


def _similar_name(name: str, lists: Sequence[Callable[[tuple[str, ...]], Sequence[tuple[str, ...]]]]) -> str | None:
    namespace = tuple(name.split(".")[:-1])
    try:
        names = [".".join(found) for listed in lists for found in listed(namespace)]
    except FrazilError:
        return None
    return next(iter(get_close_matches(name, names, 1, 0.8)), None)


@contextmanager
def reported() -> Iterator[None]:
    """Print a frazil or Spark error and exit with 1."""
    try:
        yield
    except BrokenPipeError:
        # The reader of the output has stopped reading.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("\nStopped.", err=True)
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        if not is_user_error(error):
            raise
        if was_stopped(error):
            typer.echo("\nStopped.", err=True)
            raise typer.Exit(STOPPED) from None
        typer.echo(error_text(_explain_java_failure(error)), err=True)
        raise typer.Exit(FAILED) from None


def _explain_java_failure(error: Exception) -> Exception:
    """Replace Spark's "gateway exited" error by the reason Java did not start, if known."""
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return error
    try:
        check_java()
    except UnsupportedError as reason:
        return reason
    return error


def is_user_error(error: Exception) -> bool:
    """Return whether an error concerns the request: frazil's, or Spark's about a statement or a job."""
    return isinstance(error, FrazilError) or type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def was_stopped(error: BaseException) -> bool:
    """Return whether ctrl-C caused an error: a cancelled job fails while the interrupt is being handled."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__context__
    return False


def error_text(error: Exception) -> str:
    """Return an error's text for users: Spark errors without plans and stack traces."""
    if isinstance(error, FrazilError):
        return str(error)
    text = visible(str(error), keeps_lines=True).partition("\n\nJVM stacktrace")[0]
    text = re.split(r";\n(?=['+ ]*[A-Z])", text)[0]
    lines = [line for line in text.splitlines() if not re.match(r"\s+at |\s*\.\.\. \d+ more", line)]
    return "\n".join(lines).strip()


def connection_properties(texts: Sequence[str] | None, file: str | None) -> dict[str, str]:
    """Return the properties of a connection: those of a file with lines of NAME=VALUE, overridden by `texts`."""
    lines: list[str] = []
    if file is not None:
        try:
            lines = Path(file).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InvalidRequestError(f"Cannot read the properties in {file}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InvalidRequestError(f"Cannot read the properties in {file}: it is not UTF-8 text") from error
    stored = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))]
    spaced = {name.rstrip(): value.lstrip() for name, value in _split(stored, f"property in {file}")}
    return {**spaced, **pairs_of(texts, "property")}


def secrets_of_environment(address: str | None) -> dict[str, str]:
    """Return the credentials for a catalog service from FRAZIL_TOKEN or FRAZIL_CREDENTIAL, if set."""
    if not (address or "").lower().startswith(("http://", "https://")):
        return {}
    variables = {"token": "FRAZIL_TOKEN", "credential": "FRAZIL_CREDENTIAL"}
    return {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}


def take_properties(context: typer.Context, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the properties of a new table; those that only connections have are moved to the connection."""
    properties = pairs_of(texts, "property")
    from frazil.table.open_catalog import connection_names

    settings = settings_of(context)
    connection_only = connection_names(settings.warehouse or "", settings.catalog)
    moved_names = [name for name in properties if name in connection_only or name.startswith("header.")]
    give_connection(context, [f"{name}={properties.pop(name)}" for name in moved_names])
    return properties


def pairs_of(texts: Sequence[str] | None, what: str) -> dict[str, str]:
    """Return command-line options written as NAME=VALUE."""
    try:
        return dict(_split(texts or (), what))
    except InvalidRequestError as error:
        raise wrong_usage(error.message) from None


def _split(texts: Sequence[str], what: str) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise InvalidRequestError(f"Cannot read the {what} {text!r}: it is not NAME=VALUE")
        yield name, value
