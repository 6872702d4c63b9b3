"""`frazil.session(…)`: a builder like PySpark's, whose session has lakes from the start.

    spark = frazil.session("warehouse").appName("nightly").getOrCreate()
    spark = frazil.session().getOrCreate()          with the lakes of Spark's settings, `spark/jvm/session_builder.py`

A lake in S3 brings the Hadoop file system of Spark's own version, and its keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from frazil.lake.connect import connect
from frazil.sessions.attach import attach
from frazil.spark.jvm.session_builder import LakeSettings, SessionBuilder


def session(
    warehouse: str | os.PathLike[str] | None = None,
    *,
    catalog: str | None = None,
    name: str = "lake",
    properties: Mapping[str, str] | None = None,
) -> SessionBuilder:
    """Return a builder of a Spark session that has a lake; without one, lakes are in Spark's settings.

    It is PySpark's builder: `.master(…)`, `.appName(…)`, `.config(…)`, and `.lake(name, warehouse, …)` for more lakes.
    What a session has and a builder lacks (`sql`, `table`, `read`) starts the session and is the session's.
    `name` is the lake's name in the session; the others are what `frazil.connect` takes.
    """
    made = SessionBuilder(_attach)
    return made if warehouse is None else made.lake(name, warehouse, catalog=catalog, properties=properties)


def _attach(spark: Any, name: str, lake: LakeSettings) -> None:
    opened = connect(lake.warehouse, catalog=lake.catalog, name=lake.catalog_name, properties=lake.properties)
    attach(spark, opened, name)
