"""Metadata tables as DataFrames: `lake.db.t.snapshots` and the others.

The driver reads a metadata table as Arrow (`metadata_tables/tables.py`) when the frame is created, and ships its rows
with the plan: they are few compared with the table's own. If the needed columns are named, the others are not decoded.
Columns, their order and their types are Iceberg Java's, in the shown form.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.types as st
from pyspark.sql import DataFrame, SparkSession

from frazil.loaded import LoadedTable
from frazil.metadata_tables.tables import metadata_table_schema, read_metadata_table
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.arrow_types import frame_of_table, shown_struct


def metadata_frame(
    spark: SparkSession,
    loaded: LoadedTable,
    name: str,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
) -> DataFrame:
    """Return a metadata table of the loaded state as a DataFrame.

    Only the metadata tables of one snapshot accept a choice of snapshot.
    """
    return frame_of_table(spark, read_metadata_table(loaded, name, choice=choice, columns=columns, cache=cache))


def metadata_frame_schema(loaded: LoadedTable, name: str) -> st.StructType:
    """Return the schema of a metadata table in shown form, without reading anything."""
    return shown_struct(metadata_table_schema(loaded.metadata, name))
