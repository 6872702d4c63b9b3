"""The layout of a Parquet file by its footer, for display."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from frazil.datafile.open_file import open_file, reading
from frazil.storage.base import Storage

MAX_GROUPS = 500


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group with its rows, and its size before and after compression."""

    rows: int
    bytes: int
    stored_bytes: int
    codec: str


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """A file's writer and row groups, up to a maximum number."""

    created_by: str
    row_groups: tuple[RowGroup, ...]
    all_groups: int


def read_parquet_layout(storage: Storage, path: str) -> ParquetLayout:
    """Read the layout from a file's footer."""
    file = open_file(storage, path)
    try:
        with reading("Parquet file", path, "Parquet", file):
            metadata = pq.read_metadata(file.handle)
            groups = []
            for position in range(min(metadata.num_row_groups, MAX_GROUPS)):
                group = metadata.row_group(position)
                columns = [group.column(index) for index in range(min(group.num_columns, 1000))]
                codecs = sorted({str(column.compression) for column in columns})
                stored = sum(column.total_compressed_size for column in columns)
                groups.append(RowGroup(group.num_rows, group.total_byte_size, stored, ", ".join(codecs)))
            return ParquetLayout(metadata.created_by or "", tuple(groups), metadata.num_row_groups)
    finally:
        file.close()
