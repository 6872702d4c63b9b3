"""Find the deleted rows of data files on Spark: the data half of `maintenance/convert_equality_deletes.py`.

Reads positions, the deleted flag and the columns that deletes compare; `row_positions.py` collects the positions of
deleted rows. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from frazil.codec.deletion_vector import DeletionVector
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import checkpoint_rows, start_over_if_lost
from frazil.spark.read.relation import ReadRequest
from frazil.spark.read.row_positions import ACTION_COLUMN, FILE_COLUMN, POS_COLUMN, read_positions
from frazil.spark.read.target_rows import FileChoice, read_chosen
from frazil.spark.write.progress import showing_progress
from frazil.spec.reserved_columns import DELETED, FILE, POS
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot

_POSITION_COLUMNS = Schema((FILE, POS, DELETED))


def finder_on(
    spark: SparkSession, cache: ManifestCache | None = None
) -> Callable[[LoadedTable, Snapshot, Sequence[FileScanTask]], dict[str, DeletionVector]]:
    """Return a function that finds the deleted rows of data files on a session, by path of the file."""
    return lambda loaded, snapshot, tasks: find_deleted(spark, loaded, snapshot, tasks, cache)


def find_deleted(
    spark: SparkSession,
    loaded: LoadedTable,
    snapshot: Snapshot,
    tasks: Sequence[FileScanTask],
    cache: ManifestCache | None = None,
) -> dict[str, DeletionVector]:
    """Return the positions of deleted rows in a snapshot by the path of their data file."""
    request = ReadRequest(
        loaded, snapshot, loaded.metadata.current_schema, _POSITION_COLUMNS, cache=cache, as_stored=True
    )

    def find() -> dict[str, DeletionVector]:
        choice = FileChoice({task.data_file.file_path: DeletionVector() for task in tasks})
        with engine_errors(f"find deleted rows of {loaded.name}"):
            frame = read_chosen(spark, request, choice)
            if frame is None:
                return {}
            deleted = frame.filter(F.col(DELETED.name)).select(
                F.col(FILE.name).alias(FILE_COLUMN), F.col(POS.name).alias(POS_COLUMN), F.lit(1).alias(ACTION_COLUMN)
            )
            found = read_positions(checkpoint_rows(deleted))
        return {choice.path_of(number): vector for number, vector in found.positions.items()}

    with showing_progress(spark, f"find deleted rows of {loaded.name}"):
        return start_over_if_lost(find)
