"""Page long output on a terminal with the pager in PAGER, or `less`.

PAGER= or PAGER=cat disables it. Output to a file or a pipe is not paged.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import typer

LESS_OPTIONS = "FRX"
"""Exit if all fits on the screen, show colours, and leave the text on the screen; LESS overrides this."""

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def print_paged(text: str) -> None:
    """Print a text, in a pager if it is longer than the terminal."""
    command = _pager() if text.count("\n") >= shutil.get_terminal_size().lines - 1 else None
    if command is None:
        typer.echo(text)
        return
    before = signal.getsignal(signal.SIGINT)
    # Ctrl-C goes to the pager while it runs.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        if os.environ.get("NO_COLOR"):
            text = _STYLE.sub("", text)
        settings = {"LESS": LESS_OPTIONS, **os.environ}
        subprocess.run(command, input=f"{text}\n".encode(errors="backslashreplace"), env=settings, check=False)
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> list[str] | None:
    """Return the pager's command, or None if output is not a terminal, or no pager is wanted or installed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        return None
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return None
    if not command or command[0] == "cat" or shutil.which(command[0]) is None:
        return None
    return command
