"""A small Spark session with a lake, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frazil.errors import InvalidRequestError
from frazil.sessions.builder import session
from frazil.spark.session import active_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@contextmanager
def local_session(
    warehouse: str | os.PathLike[str], *, name: str = "lake", config: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a Spark session with two threads and the lake in a folder; stop it at the end.

    `name` is the lake's name in the session, and `config` has further settings of Spark. A session that runs already
    is an error: its settings would win.
    """
    if active_session() is not None:
        raise InvalidRequestError(
            "Cannot start a Spark session for tests: one is running", hint="Stop it, or share one fixture."
        )
    builder = session(warehouse, name=name).master("local[2]").appName("tests")
    for key, value in {**_SETTINGS, **(config or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
