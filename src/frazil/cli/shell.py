"""`frazil sql` on a terminal: multi-line statements, history, completion, and errors that do not end the session.

A statement runs when a semicolon ends it. Lines are edited with readline, if Python has it. The history is stored in a
file of the user, each statement in one piece regardless of its lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from frazil.cli.cut_statements import cut_statements
from frazil.cli.session import error_text, is_user_error, was_stopped

try:
    import readline as _readline
except ImportError:
    # Some builds of Python lack it; lines are then read without editing.
    readline: Any = None
else:
    readline = _readline

PROMPT = "frazil> "
CONTINUED = "   ...> "
MAX_HISTORY = 1000
HELP = """Statements end with a semicolon, and may have many lines. Tables of the lake are lake.namespace.table.
  show namespaces in lake;           describe lake.db.t;
  show tables in lake.db;            select * from lake.db.t limit 10;
  select * from lake.db.t.snapshots; select * from lake.db.t version as of 'tag';
tab completes, the arrows recall earlier statements, ctrl-C drops a statement or stops the running one,
help shows this, quit or ctrl-D exits."""
LOCAL_HELP = """Statements are DuckDB's and end with a semicolon. Tables of the lake are namespace.table.
  describe db.t;                     select * from db.t limit 10;
  select * from db.t.snapshots;      select * from db.t at (version => 'tag');
tab completes, the arrows recall earlier statements, ctrl-C drops a statement or stops the running one,
help shows this, quit or ctrl-D exits."""
_NEWLINE_IN_FILE = "\x01"

Run = Callable[[str], None]
Complete = Callable[[str, str], list[str]]


def history_file() -> Path:
    """Return the history file: FRAZIL_HISTORY, or a file below the user's state folder."""
    named = os.environ.get("FRAZIL_HISTORY")
    if named is not None:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "frazil" / "history"


class Shell:
    """Reads statements from a terminal and runs them until the user exits."""

    def __init__(self, run: Run, complete: Complete, history: Path, text_of_help: str = HELP) -> None:
        self._help = text_of_help
        self._run = run
        self._complete = complete
        self._history = history
        self._buffer = ""
        self._completions: list[str] = []

    def loop(self) -> None:
        """Run the prompt."""
        self._set_up()
        try:
            while self._run_line():
                pass
        finally:
            self._save_history()

    def _run_line(self) -> bool:
        """Read a line and run the statements it completes; return whether to continue. Ctrl-C drops the input."""
        try:
            return self._handle(input(CONTINUED if self._buffer else PROMPT))
        except EOFError:
            typer.echo()
            return False
        except KeyboardInterrupt:
            typer.echo()
            self._buffer = ""
            return True

    def _handle(self, line: str) -> bool:
        if not self._buffer.strip():
            word = line.strip().rstrip(";").lower()
            if word in ("quit", "exit", "\\q"):
                return False
            if word in ("help", "?", "\\?"):
                typer.echo(self._help)
                return True
        self._buffer += line + "\n"
        statements, rest = cut_statements(self._buffer)
        if statements:
            self._remember(self._buffer[: len(self._buffer) - len(rest)].strip())
        for statement in statements:
            if not self._run_statement(statement.text):
                rest = ""
                break
        self._buffer = rest if rest.strip() else ""
        return True

    def _run_statement(self, text: str) -> bool:
        """Run a statement; on an error or ctrl-C, print it and return False, which drops the rest of the input."""
        try:
            self._run(text)
        except KeyboardInterrupt:
            typer.secho("\nStopped.", fg="yellow", err=True)
            return False
        except Exception as error:
            if not is_user_error(error):
                raise
            if was_stopped(error):
                typer.secho("\nStopped.", fg="yellow", err=True)
                return False
            typer.secho(error_text(error), fg="red", err=True)
            return False
        return True

    # readline

    def _set_up(self) -> None:
        if readline is None:
            return
        readline.set_auto_history(False)
        readline.set_history_length(MAX_HISTORY)
        readline.clear_history()
        for entry in self._load_history():
            readline.add_history(entry)
        readline.set_completer(self._complete_word)
        readline.set_completer_delims(" \t\n(),;=<>'\"`")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def _complete_word(self, word: str, index: int) -> str | None:
        if index == 0:
            self._completions = self._complete(word, self._buffer + readline.get_line_buffer())
        return self._completions[index] if index < len(self._completions) else None

    def _remember(self, text: str) -> None:
        if readline is not None:
            size = readline.get_current_history_length()
            if size == 0 or readline.get_history_item(size) != text:
                readline.add_history(text)

    def _load_history(self) -> list[str]:
        try:
            lines = self._history.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        return [line.replace(_NEWLINE_IN_FILE, "\n") for line in lines[-MAX_HISTORY:]]

    def _save_history(self) -> None:
        if readline is None:
            return
        size = readline.get_current_history_length()
        entries = [readline.get_history_item(index) for index in range(max(1, size - MAX_HISTORY + 1), size + 1)]
        try:
            self._history.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._history, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.writelines(entry.replace("\n", _NEWLINE_IN_FILE) + "\n" for entry in entries)
        except OSError as error:
            print(f"Cannot save the history: {error}", file=sys.stderr)
