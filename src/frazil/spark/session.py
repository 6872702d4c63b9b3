"""The active Spark session, or a local one started on demand."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import InvalidRequestError

_lock = threading.Lock()
_unknown: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def active_session() -> SparkSession | None:
    """Return the session that is active in this thread or process, or None."""
    session = SparkSession.getActiveSession()
    # A stopped session remains the active one until another is created.
    return None if session is None or is_stopped(session) else session


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a classic session was stopped; Spark Connect clients detect that themselves."""
    return hasattr(spark, "_jsparkSession") and spark.sparkContext._jsc is None


def check_running(spark: SparkSession) -> SparkSession:
    """Return the session; raise if it was stopped."""
    if is_stopped(spark):
        raise InvalidRequestError(
            "Cannot use the Spark session: it was stopped",
            hint="Create another one with SparkSession.builder.getOrCreate(), and attach the lake to it.",
        )
    return spark


def setting(spark: SparkSession, name: str) -> str | None:
    """Return the value of a setting, or its default; None if this version of Spark does not have the setting."""
    # Spark's errors are slow, and an unknown setting remains unknown.
    unknown = _unknown.setdefault(spark, set())
    if name in unknown:
        return None
    try:
        # If a default were passed, Spark would return it in place of its own.
        return str(spark.conf.get(name))
    except PySparkException:
        unknown.add(name)
        return None


def local_session() -> SparkSession:
    """Return the active session, or start a local one with a thread per processor."""
    with _lock:
        active = active_session()
        if active is not None:
            return active
        session = (
            SparkSession.builder.master("local[*]")
            .appName("frazil")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        return session
