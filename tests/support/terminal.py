"""A terminal to test with: a program runs on a pseudo-terminal, keys are typed, and the screen is read."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import pyte

UP = "\x1b[A"
CTRL_C = "\x03"
CTRL_D = "\x04"
TAB = "\t"
ENTER = "\r"


def _own_terminal() -> None:
    """Let ctrl-C reach the program: on its own terminal, and even where these tests run in the background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A program on a terminal of its own. Everything it wrote is in `raw`; `lines()` is what the screen shows."""

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str], columns: int = 100, height: int = 40
    ) -> None:
        self._screen = pyte.Screen(columns, height)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))
        self.raw = b""
        self._pressed_at: int | None = None
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def press(self, keys: str) -> None:
        """Type keys."""
        self._pressed_at = len(self.raw)
        os.write(self._master, keys.encode())

    def lines(self) -> list[str]:
        """Return the lines of the screen that are not empty."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def wait_for(self, text: str, *, seconds: float = 120) -> list[str]:
        """Wait until the last line of the screen has a text; return the screen."""
        until = time.monotonic() + seconds
        while not (self.lines() and text in self.lines()[-1]):
            assert time.monotonic() < until, f"{text!r} does not come; the screen:\n" + "\n".join(self.lines())
            assert self._read(0.1), f"the program ended before {text!r}; the screen:\n" + "\n".join(self.lines())
        self._settle()
        return self.lines()

    def wait_for_prompt(self, prompt: str, *, seconds: float = 120) -> list[str]:
        """Wait until the program asks for a line, after the last keys that were typed; return the screen."""
        until = time.monotonic() + seconds
        while not self._asks(prompt):
            assert time.monotonic() < until, f"{prompt!r} does not come; the screen:\n" + "\n".join(self.lines())
            assert self._read(0.1), f"the program ended before {prompt!r}; the screen:\n" + "\n".join(self.lines())
        self._settle()
        return self.lines()

    def _asks(self, prompt: str) -> bool:
        # The line that was typed ends before there is an answer, so that a prompt on the screen may be the one before.
        has_gone_on = self._pressed_at is None or b"\n" in self.raw[self._pressed_at :]
        lines = self.lines()
        return bool(lines) and lines[-1].strip() == prompt and has_gone_on

    def wait_for_end(self, *, seconds: float = 120) -> int:
        """Wait until the program ends; return its exit code."""
        until = time.monotonic() + seconds
        while self._read(0.1):
            assert time.monotonic() < until, "the program does not end; the screen:\n" + "\n".join(self.lines())
        return self._process.wait(timeout=10)

    def pause(self, seconds: float) -> None:
        """Let the program go on for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._read(0.1):
            pass

    def _settle(self) -> None:
        """Read what comes at once after something that was waited for."""
        while select.select([self._master], [], [], 0.2)[0] and self._read(0):
            pass

    def _read(self, seconds: float) -> bool:
        """Read what has come; return whether more can come."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            found = os.read(self._master, 65536)
        except OSError:
            # The program has closed its side.
            return False
        self.raw += found
        self._stream.feed(found)
        return bool(found)
