"""Long output on a terminal goes through a pager: the one that PAGER names, or `less`.

PAGER= or PAGER=cat turns it off. What is printed to a file or a pipe is printed as it is.
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
"""Leave where all fits on the screen, show colours, and leave the text on the screen; LESS says otherwise."""

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def print_paged(text: str) -> None:
    """Print a text, in a pager where it is longer than the terminal that somebody reads it on."""
    command = _pager() if text.count("\n") >= shutil.get_terminal_size().lines - 1 else None
    if command is None:
        typer.echo(text)
        return
    before = signal.getsignal(signal.SIGINT)
    # Ctrl-C is the pager's while it runs.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        if os.environ.get("NO_COLOR"):
            text = _STYLE.sub("", text)
        settings = {"LESS": LESS_OPTIONS, **os.environ}
        subprocess.run(command, input=f"{text}\n".encode(errors="backslashreplace"), env=settings, check=False)
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> list[str] | None:
    """Return the command of the pager; None where nobody watches, none is wanted or none is there."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        return None
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return None
    if not command or command[0] == "cat" or shutil.which(command[0]) is None:
        return None
    return command
