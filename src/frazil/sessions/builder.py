"""`frazil.session(…)`: a builder like PySpark's, for a session with lakes.

    spark = frazil.session("warehouse").appName("nightly").getOrCreate()
    spark = frazil.session().getOrCreate()          with the lakes in Spark's settings, `spark/jvm/session_builder.py`

For a lake in S3 or Azure it adds the matching Hadoop file system and credentials, also if the user's configuration
names
a file system, and for a catalog service that determines the file locations.
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
    """Return a builder of a Spark session with a lake; without a warehouse, lakes come from Spark's settings.

    It extends PySpark's builder: `.master(…)`, `.appName(…)`, `.config(…)`, with `.lake(name, warehouse, …)` for more
    lakes. Attributes of sessions that builders lack (`sql`, `table`, `read`) start the session and are then looked up
    in it. `name` is the lake's name in the session; the other arguments are those of `frazil.connect`.
    """
    builder = SessionBuilder(_open)
    return builder if warehouse is None else builder.lake(name, warehouse, catalog=catalog, properties=properties)


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
