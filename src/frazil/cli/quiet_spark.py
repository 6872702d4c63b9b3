"""Start Spark without its noise: what the JVM logs goes to a file, which is shown where the start fails.

The JVM keeps the standard error that it was started with. On a terminal its lines would land between prompts and rows;
what goes wrong in a query comes back as an error anyway.
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
from frazil.lake.lake import Lake
from frazil.lake.on_spark import active_session, check_pyspark, choose_session
from frazil.visible_text import visible

_LINES_SHOWN = 20


def start_spark(lake: Lake) -> Any:
    """Return the session that is active, or start a local one; tell somebody who watches that it takes a while."""
    if lake.attached_spark is None and active_session() is None:
        check_pyspark()
        check_java()
    allow_pandas()
    # Spark's Python logs what it raises.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    is_watched = sys.stderr.isatty()
    began = time.monotonic()
    if is_watched:
        typer.echo("Starting Spark …", err=True, nl=False)
    with _silenced(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        session = choose_session(None, lake)
    if is_watched:
        typer.echo(f"\r\x1b[KSpark {session.version}, started in {time.monotonic() - began:.1f} s", err=True)
    return session


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what this process and those it starts write to standard error to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(kept, 2)
            tail = _tail(log)
            if tail or sys.stderr.isatty():
                typer.echo(f"\n{tail}", err=True)
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()[-_LINES_SHOWN:]
    return "\n".join(visible(line) for line in lines)
