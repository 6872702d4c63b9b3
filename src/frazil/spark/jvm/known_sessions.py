"""A cache of PySpark's session objects by session id.

Creating one takes several calls to the JVM, and every batch of a stream runs in the same two sessions. The last few
created ones are kept alive; the others live as long as they are referenced.
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
_last_created: deque[SparkSession] = deque(maxlen=4)


def note_session(key: str, spark: SparkSession) -> None:
    """Cache a session that PySpark created."""
    with _lock:
        _sessions[key] = spark


def find_session(key: str) -> SparkSession | None:
    """Return the cached session of an id, or None."""
    with _lock:
        return _sessions.get(key)


def session_of(java: Any, context: SparkContext) -> SparkSession:
    """Return the PySpark session for a Java session, creating it if it is not cached."""
    key = str(java.sessionUUID())
    with _lock:
        session = _sessions.get(key)
        if session is None:
            session = _sessions[key] = SparkSession(context, java)
            _last_created.append(session)
        return session
