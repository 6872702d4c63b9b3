"""`frazil sql`: statements from the command line, a file, standard input, or an interactive terminal.

They run on a local Spark session in Spark's dialect or, with `--local`, in this process in DuckDB's dialect
(`table/local_sql/run_sql.py`).
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from frazil.cli.complete_sql import LAKE, complete_sql
from frazil.cli.cut_statements import Statement, all_statements, cut_local_statements
from frazil.cli.pager import print_paged
from frazil.cli.render import OutputFormat, render_rows
from frazil.cli.session import FAILED, Settings, error_text, is_user_error, terminal_width, was_stopped, wrong_usage
from frazil.cli.shell import HELP, LOCAL_HELP, Shell, history_file
from frazil.errors import InvalidRequestError
from frazil.maintenance.report import counted
from frazil.table.lake import Lake

MAX_ROWS = 1000
"""The most rows of a result in a table; JSON and CSV contain all."""
AFFECTED = "num_affected_rows"
"""The first column of the result of a statement that changes rows."""


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a statement: its columns, and its rows, all or the first of them."""

    columns: list[str]
    rows: Callable[[int | None], pa.Table]


_Run = Callable[[str], _Result]


def run_sql(lake: Lake, settings: Settings, text: str | None, file: str | None, *, is_local: bool = False) -> None:
    """Run statements, or prompt for them; on Spark, or with `is_local` in this process."""
    if text is not None and file is not None:
        raise wrong_usage("Cannot take statements from the command line and from a file: pass only one of them")
    is_interactive = text is None and file is None and sys.stdin.isatty()
    cut = cut_local_statements if is_local else all_statements
    statements = [] if is_interactive else cut(_read(text, file))
    if not is_interactive and not statements:
        raise InvalidRequestError("Cannot run SQL: there is no statement")
    with contextlib.ExitStack() as stack:
        run = _run_locally(lake) if is_local else _run_on_spark(lake, stack)
        if is_interactive:
            _run_interactively(run, lake, settings, LOCAL_HELP if is_local else HELP)
        else:
            _run_all(run, settings, statements, file)


def _run_on_spark(lake: Lake, stack: contextlib.ExitStack) -> _Run:
    # Importing the Spark modules takes longer than most local queries.
    from frazil.cli.quiet_spark import start_spark
    from frazil.sessions import attach as sessions

    spark = start_spark(lake)
    sessions.attach(spark, lake, LAKE)
    stack.callback(sessions.detach, spark)

    def run(text: str) -> _Result:
        frame = spark.sql(text)
        return _Result(frame.columns, lambda max_rows: (frame if max_rows is None else frame.limit(max_rows)).toArrow())

    return run


def _run_locally(lake: Lake) -> _Run:
    def run(text: str) -> _Result:
        result = lake.sql(text)
        return _Result(result.column_names, lambda max_rows: _first_rows(result, max_rows))

    return run


def _first_rows(result: Any, max_rows: int | None) -> pa.Table:
    if max_rows is None:
        return result.to_arrow()
    batches: list[pa.RecordBatch] = []
    for batch in result.to_batches():
        batches.append(batch.slice(0, max_rows))
        max_rows -= batch.num_rows
        if max_rows <= 0:
            break
    return pa.Table.from_batches(batches, schema=result.arrow_schema)


def _read(text: str | None, file: str | None) -> str:
    if text is not None:
        return text
    if file is None or file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise InvalidRequestError(f"Cannot read statements from {file!r}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"Cannot read statements from {file!r}: it is not UTF-8 text") from error


def _run_all(run: _Run, settings: Settings, statements: list[Statement], file: str | None) -> None:
    for number, statement in enumerate(statements, 1):
        try:
            _show(settings, run(statement.text), None)
        except Exception as error:
            if not is_user_error(error) or was_stopped(error):
                raise
            if len(statements) > 1:
                origin = f" of {file}" if file is not None else ""
                typer.echo(f"Statement {number} of {len(statements)}, line {statement.line}{origin}:", err=True)
            typer.echo(error_text(error), err=True)
            raise typer.Exit(FAILED) from None


def _run_interactively(run: _Run, lake: Lake, settings: Settings, text_of_help: str) -> None:
    def timed(text: str) -> None:
        began = time.monotonic()
        _show(settings, run(text), began)

    typer.echo(f"The lake {settings.warehouse} is `{LAKE}`. Statements end with ;  help shows more, ctrl-D exits.")
    Shell(timed, lambda word, typed: complete_sql(lake, word, typed), history_file(), text_of_help).loop()


def _show(settings: Settings, answer: _Result, began: float | None) -> None:
    """Print a result, with its time in interactive use."""
    count = "done"
    is_table = settings.form is OutputFormat.TABLE
    if answer.columns[:1] == [AFFECTED]:
        # Scripts get only the rows of queries.
        changed = answer.rows(None)[AFFECTED].to_pylist()
        count = "done" if None in changed else f"{counted(sum(changed), 'row')} changed"
    elif answer.columns:
        rows = answer.rows(MAX_ROWS + 1 if is_table else None)
        count = counted(min(rows.num_rows, MAX_ROWS), "row")
        if is_table and rows.num_rows > MAX_ROWS:
            rows, count = rows.slice(0, MAX_ROWS), f"the first {count}"
        print_paged(render_rows(rows, answer.columns, settings.form, width=terminal_width(), has_count=False))
    if is_table and began is not None:
        typer.echo(f"({count}, {time.monotonic() - began:.1f} s)")
    elif is_table and answer.columns and answer.columns[0] != AFFECTED:
        typer.echo(f"({count})")
