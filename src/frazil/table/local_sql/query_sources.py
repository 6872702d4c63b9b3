"""Rows of a query that frazil reads, as Arrow sources for DuckDB: its columns and conditions narrow the scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.expr.columns.arrow_filter import Meaning
from frazil.query.prepared import ArrowSource
from frazil.scan.tasks import FileScanTask
from frazil.table.scan import Scan
from frazil.table.scan_dataset import ScanDataset


def arrow_source(scan: Scan, files: frozenset[str] | None, failures: list[FrazilError]) -> ArrowSource:
    """Return the rows of a scan, or of some of its files; errors are added to `failures`."""
    values = {name: getattr(scan, name) for name in scan.__dataclass_fields__}
    part_of_scan = _PartialScan(**{**values, "files": files})
    names = part_of_scan.arrow_schema.names
    if len({name.lower() for name in names}) == len(names):
        return _Dataset(part_of_scan, failures)
    return _NumberedColumns(part_of_scan, failures)


@dataclass(frozen=True)
class _PartialScan(Scan):
    """A scan of which only some files are read here; DuckDB reads the others."""

    files: frozenset[str] | None = None

    def _tasks(self) -> Iterator[FileScanTask]:
        tasks = super()._tasks()
        if self.files is None:
            return tasks
        return (task for task in tasks if task.data_file.file_path in self.files)


class _Dataset(ScanDataset):
    """A scan that remembers its errors: DuckDB passes on their text alone."""

    def __init__(self, scan: Scan, failures: list[FrazilError]) -> None:
        super().__init__(scan, Meaning.SQL)
        self._failures = failures

    def scanner(self, *arguments: Any, **options: Any) -> Any:
        return _Scanner(super().scanner(*arguments, **options), self._failures)


class _Scanner:
    def __init__(self, scanner: Any, failures: list[FrazilError]) -> None:
        self._scanner = scanner
        self._failures = failures

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except FrazilError as error:
            self._failures.append(error)
            raise

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)


class _NumberedColumns:
    """A scan with columns whose names differ by case alone, which DuckDB cannot tell apart: they are numbered."""

    def __init__(self, scan: Scan, failures: list[FrazilError]) -> None:
        self._scan = scan
        self._failures = failures

    @property
    def schema(self) -> pa.Schema:
        """The columns, by number."""
        schema = self._scan.arrow_schema
        return pa.schema([field.with_name(f"c{number}") for number, field in enumerate(schema)])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""
        try:
            for batch in self._scan.to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        except FrazilError as error:
            self._failures.append(error)
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)
