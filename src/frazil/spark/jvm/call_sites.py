"""Columns that frazil makes do not tell Spark where they were made.

PySpark notes the caller's line with each column, to show it in error messages, and asks the JVM half a dozen times for
that: about half of all calls of a read or a write. Lines within frazil would help nobody, so they are not noted; those
of the user's own columns, and of other threads, still are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyspark.errors.utils as theirs

_local = threading.local()


class _Replacement:
    """Another function in the place of PySpark's, while columns are being made in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses = 0
        self._original: Any = None

    def enter(self) -> None:
        with self._lock:
            self._uses += 1
            if self._uses == 1:
                self._original = getattr(theirs, "is_debugging_enabled", None)
                self._put(self._is_noted)

    def leave(self) -> None:
        with self._lock:
            self._uses -= 1
            if self._uses == 0:
                self._put(self._original)

    def _put(self, function: Any) -> None:
        if self._original is not None:
            vars(theirs)["is_debugging_enabled"] = function

    def _is_noted(self) -> bool:
        return not getattr(_local, "is_off", False) and bool(self._original())


_replacement = _Replacement()


@contextmanager
def without_call_sites() -> Iterator[None]:
    """Make columns in this thread without noting where; also a decorator."""
    before = getattr(_local, "is_off", False)
    _local.is_off = True
    _replacement.enter()
    try:
        yield
    finally:
        _replacement.leave()
        _local.is_off = before
