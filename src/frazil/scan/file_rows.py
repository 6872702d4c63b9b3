"""Planned files as rows: the columns that a plan keeps, as values and as one table over all partition specs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns, iter_entries
from frazil.codec.manifest_fields import ARROW_TYPES, partition_arrow_type
from frazil.expr.columns.manifest_columns import partition_children
from frazil.spec.data_file import DataFile
from frazil.spec.partitioning import unified_partition_type
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType

FILE_FIELDS = (
    "status",
    "sequence_number",
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "split_offsets",
    "sort_order_id",
    "first_row_id",
)
"""The columns of a manifest that every plan reads."""

_SHOWN = tuple(name for name in FILE_FIELDS if name not in ("status", "partition"))


def data_files_of(files: ManifestColumns) -> Iterator[tuple[DataFile, int]]:
    """Yield planned files as values, each with its data sequence number."""
    for entry in iter_entries(files):
        yield entry.data_file, entry.sequence_number or 0


@dataclass(frozen=True, slots=True)
class UnifiedFiles:
    """Planned files of any spec under one partition type: the union of all specs' fields."""

    partition_type: StructType

    @property
    def schema(self) -> pa.Schema:
        """The columns of `table_of`."""
        fields = [pa.field(name, ARROW_TYPES[name]) for name in _SHOWN]
        return pa.schema(
            [
                *fields,
                pa.field("spec_id", pa.int32()),
                pa.field("partition", partition_arrow_type(self.partition_type)),
                pa.field("delete_files", pa.list_(pa.int32())),
            ]
        )

    def table_of(self, files: ManifestColumns, deletes: list[tuple[int, ...]] | None) -> pa.Table:
        """Return one batch of planned files in the columns of `schema`."""
        count = len(files)
        applying = [()] * count if deletes is None else deletes
        columns = [files.column(name).cast(ARROW_TYPES[name]) for name in _SHOWN]
        columns.append(pa.array([files.spec_id] * count, pa.int32()))
        columns.append(self._partition(files))
        columns.append(pa.array(applying, pa.list_(pa.int32())))
        return pa.table(columns, schema=self.schema)

    def empty(self) -> pa.Table:
        """Return a table of no files."""
        return pa.Table.from_batches([], schema=self.schema)

    def _partition(self, files: ManifestColumns) -> pa.Array:
        partition_type = self.partition_type
        return pa.Array.from_buffers(
            partition_arrow_type(partition_type), len(files), [None], children=partition_children(files, partition_type)
        )


def unify_partitions(metadata: TableMetadata) -> UnifiedFiles:
    """Return the unified partition type, by which files of all of a table's specs fit one table."""
    partition_type = unified_partition_type(
        metadata.partition_specs, metadata.current_schema, other_schemas=metadata.schemas
    )
    return UnifiedFiles(partition_type)
