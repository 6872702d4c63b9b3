"""What commands share: the lake that was named, the way to print, and errors as exit codes.

Exit codes: 0 done, 1 the request failed, 2 wrong usage, 130 stopped by ctrl-C. What opens a lake is imported when one
is opened, so that help and usage errors are there at once.
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
from frazil.cli.lake_options import LakeOptions, give_connection, given_after
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
    """The lake and the form of results; what is not given comes from the environment."""

    warehouse: str | None
    catalog: str | None
    form: OutputFormat
    properties: Mapping[str, str] = field(default_factory=dict)
    trust: str = "all"
    name: str = "lake"

    def open_lake(self, *, makes: bool) -> frazil.Lake:
        """Open the lake that was named; one that is not there is made where the command makes things."""
        self._look(makes)
        return frazil.connect(self._named(), **self._how())

    def open_catalog(self, *, makes: bool, more_roots: Sequence[str] | None = None) -> Any:
        """Open the catalog of the lake that was named: enough for names and metadata, and sooner there."""
        self._look(makes)
        from frazil.lake.open_catalog import open_catalog

        return open_catalog(self._named(), **self._how(), more_roots=more_roots)

    def _how(self) -> dict[str, Any]:
        return {"catalog": self.catalog, "name": self.name, "properties": self.properties, "trust": self.trust}

    def _look(self, makes: bool) -> None:
        """Refuse a lake that is not there, or tell that it is made."""
        from frazil.lake.open_catalog import lake_exists

        if lake_exists(self._named(), self.catalog):
            return
        if not makes or self.trust == "none":
            raise NotFoundError(
                f"Cannot open the lake {self._named()!r}: there is none",
                hint="Check its path or name. `frazil table create` and `frazil sql` create a lake that is missing.",
            )
        typer.echo(f"A new lake is made in {self._named()}.", err=True)

    def _named(self) -> str:
        if self.warehouse is None:
            raise wrong_usage(
                "Cannot open a lake: no warehouse was named", "Give --warehouse FOLDER, or set FRAZIL_WAREHOUSE."
            )
        return self.warehouse

    def show(self, rows: pa.Table | Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> None:
        """Print rows."""
        if names is None:
            names = (list(rows[0]) if rows else []) if isinstance(rows, Sequence) else rows.column_names
        print_paged(render_rows(rows, names, self.form, width=terminal_width()))

    def show_more(self, rows: pa.RecordBatch, *, is_first: bool) -> None:
        """Print rows that others follow, or have come before."""
        typer.echo(render_more(rows, self.form, width=terminal_width(), is_first=is_first))


def wrong_usage(message: str, hint: str | None = None) -> typer.Exit:
    """Print what is wrong with the words of a command; return what ends it with the exit code for that."""
    typer.echo(str(InvalidRequestError(message, hint=hint)), err=True)
    return typer.Exit(WRONG_USAGE)


def terminal_width() -> int | None:
    """Return how wide the terminal is that rows are printed to; None where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def confirm(question: str, *, is_agreed: bool) -> None:
    """Ask before what cannot be undone; leave where the answer is no. Where nobody can be asked, refuse."""
    if is_agreed:
        return
    if not sys.stdin.isatty():
        raise InvalidRequestError(
            f"Cannot ask '{question}': standard input is no terminal", hint="Give --yes to answer yes."
        )
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(FAILED)


def settings_of(context: typer.Context) -> Settings:
    """Return the options before the command, and over them those after it."""
    options = context.find_root().obj
    assert isinstance(options, LakeOptions)
    places = [options, *given_after(context)]
    for lake_options in places[1:]:
        options = options.under(lake_options)
    properties: dict[str, str] = {}
    for lake_options in places:
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
    """Open the lake for one command; an error is printed and the command fails."""
    with reported():
        settings = settings_of(context)
        lake = settings.open_lake(makes=makes)
        with lake, _found_near(lake.list_tables, lake.list_views):
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
            with _found_near(catalog.list_tables, catalog.list_views):
                yield catalog, settings
        finally:
            catalog.close()


@contextmanager
def _found_near(*lists: Callable[[tuple[str, ...]], Sequence[tuple[str, ...]]]) -> Iterator[None]:
    """Say in the error about a table or view that is not there which name may be meant."""
    try:
        yield
    except (TableNotFoundError, ViewNotFoundError) as error:
        named = NOT_FOUND.fullmatch(error.message)
        if error.hint is None and named is not None:
            error.hint = f"Did you mean {near}?" if (near := _near(named["name"], lists)) else LISTED
        raise


def _near(name: str, lists: Sequence[Callable[[tuple[str, ...]], Sequence[tuple[str, ...]]]]) -> str | None:
    namespace = tuple(name.split(".")[:-1])
    try:
        there = [".".join(found) for listed in lists for found in listed(namespace)]
    except FrazilError:
        return None
    return next(iter(get_close_matches(name, there, 1, 0.8)), None)


@contextmanager
def reported() -> Iterator[None]:
    """Print an error of frazil's or Spark's and exit with 1."""
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("\nStopped.", err=True)
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        if not is_users(error):
            raise
        if was_stopped(error):
            typer.echo("\nStopped.", err=True)
            raise typer.Exit(STOPPED) from None
        typer.echo(error_text(_told_of_java(error)), err=True)
        raise typer.Exit(FAILED) from None


def _told_of_java(error: Exception) -> Exception:
    """Return an error of Spark's that its Java did not start as what is wrong with Java, where that is known."""
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return error
    try:
        check_java()
    except UnsupportedError as better:
        return better
    return error


def is_users(error: Exception) -> bool:
    """Return whether an error is about what was asked for: frazil's, or Spark's about a statement or a job."""
    return isinstance(error, FrazilError) or type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def was_stopped(error: BaseException) -> bool:
    """Return whether an error is what came of ctrl-C: a job that is cancelled fails while the key is dealt with."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, KeyboardInterrupt):
            return True
        found = found.__context__
    return False


def error_text(error: Exception) -> str:
    """Return an error as a person reads it: of Spark's without plans and stack traces."""
    if isinstance(error, FrazilError):
        return str(error)
    text = visible(str(error), keeps_lines=True).partition("\n\nJVM stacktrace")[0]
    text = re.split(r";\n(?=['+ ]*[A-Z])", text)[0]
    lines = [line for line in text.splitlines() if not re.match(r"\s+at |\s*\.\.\. \d+ more", line)]
    return "\n".join(lines).strip()


def connection_properties(texts: Sequence[str] | None, file: str | None) -> dict[str, str]:
    """Return the properties of a connection: those of a file, lines of NAME=VALUE, and over them those given."""
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
    """Return who asks a catalog service, where the environment says it: FRAZIL_TOKEN, FRAZIL_CREDENTIAL."""
    if not (address or "").lower().startswith(("http://", "https://")):
        return {}
    variables = {"token": "FRAZIL_TOKEN", "credential": "FRAZIL_CREDENTIAL"}
    return {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}


def take_properties(context: typer.Context, texts: Sequence[str] | None) -> dict[str, str]:
    """Return the properties of a table that is made; those that only connections have are given to the connection."""
    given = pairs_of(texts, "property")
    from frazil.lake.open_catalog import connection_names

    known = connection_names(settings_of(context).warehouse or "")
    ours = [name for name in given if name in known or name.startswith("header.")]
    give_connection(context, [f"{name}={given.pop(name)}" for name in ours])
    return given


def pairs_of(texts: Sequence[str] | None, what: str) -> dict[str, str]:
    """Return options of the command line, written NAME=VALUE."""
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
