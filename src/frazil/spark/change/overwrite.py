"""OVERWRITE: replace the rows that match a condition. Other rows of the same files are rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.errors import FrazilError
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.change.change_rows import RowChange
from frazil.spark.change.delete import find_rows
from frazil.spark.read.kept_rows import start_over_if_lost
from frazil.spark.write.progress import showing_progress
from frazil.spec.data_file import DataFile


def plan_overwrite(
    spark: SparkSession,
    loaded: LoadedTable,
    files: Sequence[DataFile],
    where: Any,
    target: Target,
    *,
    cache: ManifestCache | None = None,
) -> PlannedChange | None:
    """Plan to replace the rows that match a condition by files that are already written."""

    def plan() -> PlannedChange | None:
        change = RowChange(spark, loaded, "delete", target, cache)
        matches = find_rows(change, where)
        return change.finish(matches.positions, whole=matches.whole, added=files, is_rewrite=True)

    try:
        with showing_progress(spark, f"overwrite rows of {loaded.name}"):
            return start_over_if_lost(plan)
    except FrazilError as error:
        if error.may_clean_up:
            loaded.storage.delete_many([file.file_path for file in files])
        raise
