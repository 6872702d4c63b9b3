"""Rows to data files, here or on Spark: what `append` and `overwrite` do before they commit."""

from __future__ import annotations

from typing import Any

from frazil.datafile.write import write_data_files
from frazil.lake.on_spark import is_spark_frame, spark_room
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile


def write_rows(loaded: LoadedTable, data: Any) -> tuple[DataFile, ...]:
    """Write rows as data files of a table, partitioned and sorted as it asks; nothing refers to them yet.

    A Spark DataFrame is written by its own session, everything else in this process.
    """
    if is_spark_frame(data):
        return tuple(spark_room("write_files").write_frame(data, loaded))
    return tuple(write_data_files(data, loaded))
