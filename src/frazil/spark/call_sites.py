"""Columns that frazil makes do not tell Spark where they were made.

PySpark notes the caller's line with each column, to show it in error messages, and asks the JVM half a dozen times for
that: about half of all calls of a read or a write. Lines within frazil would help nobody, so they are not noted; those
of the user's own columns, and of other threads, still are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyspark.errors.utils as theirs

_local = threading.local()
_is_noted: Callable[[], bool] | None = getattr(theirs, "is_debugging_enabled", None)


@contextmanager
def without_call_sites() -> Iterator[None]:
    """Make columns in this thread without noting where; also a decorator."""
    before = getattr(_local, "is_off", False)
    _local.is_off = True
    try:
        yield
    finally:
        _local.is_off = before


def _is_noted_here() -> bool:
    return not getattr(_local, "is_off", False) and _is_noted is not None and _is_noted()


if _is_noted is not None:
    patched: Any = theirs
    patched.is_debugging_enabled = _is_noted_here
