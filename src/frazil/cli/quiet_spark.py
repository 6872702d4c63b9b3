"""Start Spark without log output: the JVM logs to a file, which is shown if the start fails.

The JVM keeps the standard error that it was started with. On a terminal its lines would appear between prompts and
rows; errors of queries are returned anyway.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import typer

from frazil.cli.find_java import check_java
from frazil.cli.start import allow_pandas
from frazil.table.lake import Lake
from frazil.verbs.on_spark import active_session, check_pyspark, choose_session
from frazil.visible_text import visible

_LINES_SHOWN = 20


def start_spark(lake: Lake) -> Any:
    """Return the active session, or start a local one, with a notice on a terminal."""
    if lake.attached_spark is None and active_session() is None:
        check_pyspark()
        check_java()
    allow_pandas()
    # Spark's Python code logs the errors it raises.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    is_terminal = sys.stderr.isatty()
    began = time.monotonic()
    if is_terminal:
        typer.echo("Starting Spark …", err=True, nl=False)
    with _silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        session = choose_session(None, lake)
    if is_terminal:
        typer.echo(f"\r\x1b[KSpark {session.version}, started in {time.monotonic() - began:.1f} s", err=True)
    return session


@contextmanager
def _silenced() -> Iterator[None]:
    """Redirect standard error of this process and its children to a file."""
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(original, 2)
            tail = _tail(log)
            if tail or sys.stderr.isatty():
                typer.echo(f"\n{tail}", err=True)
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()[-_LINES_SHOWN:]
    return "\n".join(visible(line) for line in lines)
