"""Metadata tables as DataFrames: `lake.db.t.snapshots` and the others, where SQL or a reader asks for one.

The driver reads a metadata table as Arrow (`inspect/tables.py`) when the frame is made, and its rows travel with the
plan: they are few beside the table's own. Columns that are known to be needed can be named, the others are then not
decoded. Columns, their order and their types are Iceberg Java's, in the form that Spark shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyspark.sql.types as st
from pyspark.sql import DataFrame, SparkSession

from frazil.inspect.tables import metadata_table_schema, read_metadata_table
from frazil.loaded import LoadedTable
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
    """Return a metadata table of a table as a DataFrame, of the state that was loaded.

    Those of one snapshot take a choice of it; asking the others for one is refused.
    """
    return frame_of_table(spark, read_metadata_table(loaded, name, choice=choice, columns=columns, cache=cache))


def metadata_frame_schema(loaded: LoadedTable, name: str) -> st.StructType:
    """Return the columns of a metadata table as Spark shows them; nothing is read."""
    return shown_struct(metadata_table_schema(loaded.metadata, name))
