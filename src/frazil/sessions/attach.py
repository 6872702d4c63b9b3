"""Makes lakes available to a Spark session: `frazil.attach(spark, lake)`, undone by `frazil.detach(spark)`.

From then on `lake` is a Spark catalog like any other (`spark/jvm/door.py`): for SQL, DataFrames, views, scripts, all
clients of the session, and sessions created from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.sessions.answers import answer
from frazil.sessions.attached_lakes import LAKES
from frazil.sessions.remembered import REMEMBERED
from frazil.spark.jvm.door import (
    add_catalog,
    close_door,
    open_door,
    remove_catalog,
    session_id,
    use_builtin_if_catalog_missing,
)
from frazil.spark.jvm.private_names import is_classic, prune_before_joins
from frazil.spark.session import check_running, is_stopped
from frazil.table.lake import Lake
from frazil.table.sql_session import SPARK_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RESERVED_NAMES = frozenset({SPARK_CATALOG, "default", "global_temp", "system", "session", "builtin"})
"""Names that have another meaning in Spark, or that most sessions have a database for."""


def attach(spark: SparkSession, lake: Lake, name: str = "lake") -> Lake:
    """Make a lake's tables available in a Spark session under a name; return the lake.

    Several lakes may be attached under different names; attaching another lake under the same name replaces the first.
    """
    if not isinstance(lake, Lake):
        raise InvalidRequestError(f"Cannot attach {type(lake).__name__}: pass a lake returned by frazil.connect()")
    if not isinstance(name, str) or not name or name.lower() in _RESERVED_NAMES:
        raise InvalidRequestError(
            f"Cannot attach a lake as {name!r}: the name is reserved by Spark", hint="Use another name, such as 'lake'."
        )
    if not is_classic(spark):
        raise UnsupportedError(
            "Cannot attach a lake to a client of Spark Connect: it does not run in the driver",
            hint="Attach it in the server's driver, as `frazil spark-server` does, or use register_source().",
        )
    if open_door(check_running(spark), answer):
        REMEMBERED.forget()
    attached = LAKES.of(spark)
    if attached is None:
        attached = LAKES.begin(spark, prune_before_joins(spark), use_builtin_if_catalog_missing(spark))
    attached.add(name, lake, add_catalog(spark, name, LAKES.keep(lake)))
    lake.attached_spark = spark
    return lake


def detach(spark: SparkSession, name: str | None = None) -> None:
    """Remove all lakes from a session and restore its settings; with a name, remove only that lake.

    A session without lakes is ignored.
    """
    attached = LAKES.of(spark)
    if attached is None:
        return
    if name is not None and name not in attached.lakes:
        raise InvalidRequestError(
            f"Cannot detach {name!r}: no lake is attached under that name",
            hint=f"Attached are: {', '.join(sorted(attached.lakes))}.",
        )
    for lake_name in list(attached.lakes) if name is None else [name]:
        lake = attached.lakes.pop(lake_name)
        replaced = attached.replaced_settings.pop(lake_name)
        if not is_stopped(spark):
            remove_catalog(spark, lake_name, replaced)
        if lake.attached_spark is spark and lake not in attached.lakes.values():
            lake.attached_spark = None
    REMEMBERED.forget_plans(session_id(spark))
    if not attached.lakes:
        LAKES.end(spark)
        if is_stopped(spark):
            return
        for undo in attached.leave:
            undo()
        close_door(spark)
