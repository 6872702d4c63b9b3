"""Describe existing files for a commit: Parquet by its footer, ORC and Avro by reading the rows.

Used by `maintenance/add_files.py`. The statistics of an ORC footer are not decoded, and an Avro file has none, so their
columns are read once and measured as by a writer: bounds are then exact and can determine partitions. Columns are
matched by name; a file with field ids is accepted if all its columns have the table's ids. Specification: "Column
Projection", "Data File Fields".
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from frazil.datafile.collect_metrics import MetricsCollector
from frazil.datafile.describe_parquet import DescribeRules, describe_parquet
from frazil.datafile.project import Projection, needed_leaves
from frazil.datafile.raw_batch import FileReader, ReadRules
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS, open_reader, read_columns, resolve
from frazil.datafile.read_orc import OrcReader
from frazil.errors import InvalidDataFileError
from frazil.spec.column_projection import ResolvedColumn
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.metrics_mode import MetricsMode
from frazil.spec.name_mapping import NameMapping
from frazil.spec.schema import Schema
from frazil.storage.base import Storage

DATA_FORMATS: Final = (FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO)
_MAGICS: Final = {b"PAR1": FileFormat.PARQUET, b"ORC": FileFormat.ORC, b"Obj\x01": FileFormat.AVRO}


def find_format(storage: Storage, path: str, size: int) -> FileFormat:
    """Return the format of a data file: by the end of its name, or else by its first bytes."""
    named = {f".{data_format.value}": data_format for data_format in DATA_FORMATS}
    ending = path[path.rfind(".") :].lower() if "." in path.rpartition("/")[2] else ""
    if ending in named:
        return named[ending]
    start = storage.read_range(path, 0, min(size, 4))
    for magic, magic_format in _MAGICS.items():
        if start.startswith(magic):
            return magic_format
    raise InvalidDataFileError(
        f"Cannot add the file: it starts with {start!r}, which is not Parquet, ORC or Avro", path=path
    )


class FileDescriber:
    """Describes existing files for a table of one schema."""

    def __init__(
        self,
        storage: Storage,
        schema: Schema,
        modes: Mapping[int, MetricsMode],
        mapping: NameMapping,
        *,
        history: tuple[Schema, ...],
        spec_id: int = 0,
    ) -> None:
        self._storage = storage
        self._schema = schema
        self._modes = modes
        self._spec_id = spec_id
        self._parquet_rules = DescribeRules(schema, modes, mapping, needs_ids=False, history=history)
        self._rules = ReadRules(schema, mapping, history)

    def describe(self, path: str, size: int, file_format: FileFormat) -> DataFile:
        """Describe a file, without its partition."""
        if file_format is FileFormat.PARQUET:
            return describe_parquet(
                self._storage, path, self._parquet_rules, size_bytes=size, spec_id=self._spec_id
            ).file
        return self._read(DataFile(path, file_format, 0, size, spec_id=self._spec_id))

    def _read(self, file: DataFile) -> DataFile:
        with closing(open_reader(self._storage, file, self._rules)) as reader:
            rows = sum(batch.length for batch in reader.batches((), batch_rows=DEFAULT_BATCH_ROWS))
            stored = self._stored(reader, file.file_path)
            offsets = tuple(stripe.offset for stripe in reader.stripes) if isinstance(reader, OrcReader) else None
        collector = MetricsCollector(stored, self._modes)
        if stored.fields:
            for batch in read_columns(self._storage, file, stored, self._rules):
                collector.add(pa.Table.from_batches([batch]))
            if collector.row_count != rows:
                raise InvalidDataFileError(
                    f"Cannot add the file: it declares {rows} rows but contains {collector.row_count}",
                    path=file.file_path,
                )
        metrics = collector.metrics()
        return replace(
            file,
            record_count=rows,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=offsets or None,
        )

    def _stored(self, reader: FileReader, path: str) -> Schema:
        """Return the columns that a file stores whole; others are not measured."""
        stored_ids = reader.schema.field_ids
        optional = [field for field in self._schema.fields if field.field_id in stored_ids]
        columns = resolve(Schema(tuple(optional)), reader.schema, path) if optional else ()
        return Schema(tuple(column.field for column in columns if not _has_constant(column)))

    def check_readable(self, file: DataFile, partition_values: Mapping[int, Any]) -> None:
        """Refuse a file that the table could not read."""
        with closing(open_reader(self._storage, file, self._rules)) as reader:
            columns = resolve(self._schema, reader.schema, file.file_path, partition_values=partition_values)
            leaves = needed_leaves(columns, reader.schema.fields)
            Projection(columns, reader.pruned(leaves).fields)


def _has_constant(column: ResolvedColumn) -> bool:
    return column.is_constant or any(_has_constant(inner) for inner in column.parts)
