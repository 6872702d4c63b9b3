"""Rows in this process to data files: what `append` and `overwrite` do before they commit."""

from __future__ import annotations

from typing import Any

from frazil.datafile.write import write_data_files
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile


def write_rows(loaded: LoadedTable, data: Any) -> tuple[DataFile, ...]:
    """Write rows as data files of a table, partitioned and sorted as it asks; nothing refers to them yet."""
    return tuple(write_data_files(data, loaded))
