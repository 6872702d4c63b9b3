"""Sessions: the one that is active, or a local one made on first need."""

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
    found = SparkSession.getActiveSession()
    # A stopped session stays the active one until another is made.
    return None if found is None or is_stopped(found) else found


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session has no Spark any more; a client of Spark Connect finds that out by itself."""
    return hasattr(spark, "_jsparkSession") and spark.sparkContext._jsc is None


def check_running(spark: SparkSession) -> SparkSession:
    """Return a session that was not stopped."""
    if is_stopped(spark):
        raise InvalidRequestError(
            "Cannot use the Spark session: it was stopped",
            hint="Make another one with SparkSession.builder.getOrCreate(), and attach the lake to it.",
        )
    return spark


def setting(spark: SparkSession, name: str) -> str | None:
    """Return what a session's setting is, by default too; None where this Spark does not know it."""
    # Spark's errors take long to arrive, and what a session does not know it does not learn.
    unknown = _unknown.setdefault(spark, set())
    if name in unknown:
        return None
    try:
        # With a default of our own, Spark would return that for what is not set.
        return str(spark.conf.get(name))
    except PySparkException:
        unknown.add(name)
        return None


def local_session() -> SparkSession:
    """Return a local session with as many threads as there are processors, made on first need."""
    with _lock:
        active = active_session()
        if active is not None:
            return active
        made = (
            SparkSession.builder.master("local[*]")
            .appName("frazil")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        made.sparkContext.setLogLevel("ERROR")
        return made
