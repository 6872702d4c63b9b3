"""Which Spark session a verb runs on, and what is said where pyspark is not installed.

`import frazil`, catalogs, planning and local reads and writes work with no JVM and no pyspark: what a verb needs of
`frazil.spark` is imported inside it. Its session is, in this order: the one it was given (or that of a DataFrame it was
given), the one the lake is attached to, the active one, the lake's own, which is made on first need.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

from frazil.errors import UnsupportedError

_summaries: WeakKeyDictionary[Any, Mapping[str, str]] = WeakKeyDictionary()
"""By Spark's contexts, what their snapshots say: each of its words is a call to the JVM."""


def check_pyspark() -> None:
    """Refuse to go on without pyspark, and say what to install."""
    if find_spec("pyspark") is None:
        raise UnsupportedError(
            "Cannot run on Spark: pyspark is not installed", hint="Install it: pip install 'frazil[spark]'."
        )


def is_spark_frame(data: object) -> bool:
    """Return whether data is a DataFrame of Spark, without loading pyspark to find out."""
    return type(data).__module__.partition(".")[0] == "pyspark" and hasattr(data, "sparkSession")


def choose_session(given: Any = None, lake: Any = None) -> Any:
    """Return the session a verb runs on."""
    if given is None and lake is not None:
        return lake.spark
    check_pyspark()
    from frazil.spark import session

    if given is None:
        return session.local_session()
    return session.check_running(given.sparkSession if is_spark_frame(given) else given)


def active_session() -> Any:
    """Return the session that is active, None where there is none; pyspark is not loaded to find out."""
    if "pyspark" not in sys.modules:
        return None
    from frazil.spark import session

    return session.active_session()


def session_zone() -> str:
    """Return the time zone of the active session, in which Spark reads times without one; UTC where there is none."""
    active = active_session()
    return "UTC" if active is None else str(active.conf.get("spark.sql.session.timeZone"))


def engine_summary(session: Any) -> Mapping[str, str]:
    """Return what snapshots say of the engine that made them."""
    if not hasattr(session, "_jsparkSession"):
        return {"engine-name": "spark", "engine-version": str(session.version)}
    context = session.sparkContext
    if context not in _summaries:
        application = {"spark.app.id": str(context.applicationId)}
        _summaries[context] = {"engine-name": "spark", "engine-version": str(session.version), **application}
    return _summaries[context]
