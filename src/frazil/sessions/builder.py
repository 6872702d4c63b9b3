"""`frazil.session(…)`: a builder like PySpark's, whose session has lakes from the start.

    spark = frazil.session("warehouse").appName("nightly").getOrCreate()
    spark = frazil.session().getOrCreate()          with the lakes of Spark's settings, `spark/jvm/session_builder.py`

A lake in S3 or Azure's store brings the Hadoop file system of Spark's version, and credentials: also one that a file
of the user's names, and one of a catalog service that says where its files are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from frazil.sessions.attach import attach
from frazil.spark.jvm.file_systems import place_of_files
from frazil.spark.jvm.session_builder import LakeSettings, OpenedLake, SessionBuilder
from frazil.storage.choose import stores_of
from frazil.table.connect import connect


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
    made = SessionBuilder(_open)
    return made if warehouse is None else made.lake(name, warehouse, catalog=catalog, properties=properties)


def _open(settings: LakeSettings) -> OpenedLake:
    lake = connect(
        settings.warehouse, catalog=settings.catalog, name=settings.catalog_name, properties=settings.properties
    )
    stores = stores_of(lake.catalog.storage)
    return OpenedLake(
        place_of_files(lake.catalog.warehouse, stores),
        stores,
        lambda spark, name: attach(spark, lake, name),
        lake.close,
    )
