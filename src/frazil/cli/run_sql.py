"""`frazil sql`: statements from the command line, a file, standard input, or typed on a terminal."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import typer

from frazil.cli.complete_sql import LAKE, complete_sql
from frazil.cli.cut_statements import Statement, all_statements
from frazil.cli.quiet_spark import start_spark
from frazil.cli.render import OutputFormat, render_rows
from frazil.cli.session import FAILED, Settings, error_text, is_users, terminal_width, was_stopped
from frazil.cli.shell import Shell, history_file
from frazil.errors import InvalidRequestError
from frazil.lake.lake import Lake
from frazil.maintenance.report import counted
from frazil.session.attach import attach, detach

MAX_ROWS = 1000
"""Rows of an answer that a table for people shows; JSON and CSV have all."""


def run_sql(lake: Lake, settings: Settings, text: str | None, file: str | None) -> None:
    """Run the statements that were given, or ask for some."""
    if text is not None and file is not None:
        raise InvalidRequestError("Cannot take statements from the command line and from a file: give one of them")
    is_asked = text is None and file is None and sys.stdin.isatty()
    statements = [] if is_asked else all_statements(_read(text, file))
    if not is_asked and not statements:
        raise InvalidRequestError("Cannot run SQL: there is no statement")
    spark = start_spark(lake)
    attach(spark, lake, LAKE)
    try:
        if is_asked:
            _talk(spark, lake, settings)
        else:
            _run_all(spark, settings, statements, file)
    finally:
        detach(spark)


def _read(text: str | None, file: str | None) -> str:
    if text is not None:
        return text
    if file is None or file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"Cannot read statements from {file!r}: {error}") from None


def _run_all(spark: Any, settings: Settings, statements: list[Statement], file: str | None) -> None:
    for number, one in enumerate(statements, 1):
        try:
            _show(settings, spark.sql(one.text), None)
        except Exception as error:
            if not is_users(error) or was_stopped(error):
                raise
            if len(statements) > 1:
                place = f" of {file}" if file is not None else ""
                typer.echo(f"Statement {number} of {len(statements)}, line {one.line}{place}:", err=True)
            typer.echo(error_text(error), err=True)
            raise typer.Exit(FAILED) from None


def _talk(spark: Any, lake: Lake, settings: Settings) -> None:
    def run(text: str) -> None:
        began = time.monotonic()
        _show(settings, spark.sql(text), began)

    typer.echo(f"The lake {settings.warehouse} is `{LAKE}`. Statements end with ;  help tells more, ctrl-D leaves.")
    Shell(run, lambda word, typed: complete_sql(lake, word, typed), history_file()).loop()


def _show(settings: Settings, frame: Any, began: float | None) -> None:
    """Print an answer; with its time, where somebody waits for it."""
    count = "done"
    is_table = settings.form is OutputFormat.TABLE
    if frame.columns:
        rows = (frame.limit(MAX_ROWS + 1) if is_table else frame).toArrow()
        count = counted(min(rows.num_rows, MAX_ROWS), "row")
        if is_table and rows.num_rows > MAX_ROWS:
            rows, count = rows.slice(0, MAX_ROWS), f"the first {count}"
        typer.echo(render_rows(rows, frame.columns, settings.form, width=terminal_width(), has_count=False))
    if is_table and began is not None:
        typer.echo(f"({count}, {time.monotonic() - began:.1f} s)")
    elif is_table and frame.columns:
        typer.echo(f"({count})")
