"""PySpark's objects for sessions of Spark's, by their ids.

To make one takes several calls to the JVM, and a stream asks in the same two sessions for every batch: the last few
that were made are kept, the others live as long as somebody has them.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

_lock = threading.Lock()
_sessions: WeakValueDictionary[str, SparkSession] = WeakValueDictionary()
_last_made: deque[SparkSession] = deque(maxlen=4)


def note_session(key: str, spark: SparkSession) -> None:
    """Take a session that PySpark made."""
    with _lock:
        _sessions[key] = spark


def find_session(key: str) -> SparkSession | None:
    """Return the session of an id, None where it has to be made."""
    with _lock:
        return _sessions.get(key)


def session_of(java: Any, context: SparkContext) -> SparkSession:
    """Return PySpark's object for a session of a context."""
    key = str(java.sessionUUID())
    with _lock:
        found = _sessions.get(key)
        if found is None:
            found = _sessions[key] = SparkSession(context, java)
            _last_made.append(found)
        return found
