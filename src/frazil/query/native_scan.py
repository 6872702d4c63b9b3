"""The files of a plan that DuckDB reads itself, as the text of a query over them.

DuckDB's Parquet reader takes columns by field id, fills columns that a file lacks with their default, and promotes
types. It reads NaN correctly if it is told that there may be some. Deleted positions are left out by the number of
the file and of the row. All other files are read by frazil as Arrow: other formats, equality deletes, files without
field ids, stores, and whatever is not stored exactly as the format says.

    SELECT c1 AS "id", c2 AS "kind" FROM read_parquet(['/a.parquet', '/b.parquet'], schema = MAP {1: …, 2: …}, …)
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import TableView
from frazil.errors import FrazilError
from frazil.query.column_types import ParquetColumn, duckdb_type, has_floats, is_stored_as
from frazil.query.engine import quoted, text_literal
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import FileFormat
from frazil.spec.transforms import Identity
from frazil.spec.types import (
    BooleanType,
    DecimalType,
    IntType,
    LongType,
    NestedField,
    StringType,
)
from frazil.storage.base import Storage
from frazil.storage.choose import is_fenced, storage_of
from frazil.storage.local import LocalStorage, local_path
from frazil.threads import default_threads, map_in_order

Footers: TypeAlias = Mapping[str, tuple[ParquetColumn, ...]]
Describe: TypeAlias = Callable[[Sequence[str]], Footers]
"""Returns the columns of Parquet files, by path; files that cannot be read are left out."""

FILE_BITS: Final = 40
"""A row is known by the number of its file above these bits, and its position below."""
_GLOB: Final = frozenset("*?[]{}")
_TEXT_DEFAULTS: Final = (BooleanType, IntType, LongType, StringType, DecimalType)


@dataclass(frozen=True)
class NativeFiles:
    """Files that DuckDB reads itself: those without deletes, and those with deleted positions."""

    whole: tuple[str, ...] = ()
    with_deletes: tuple[str, ...] = ()
    deleted: pa.Table | None = None
    """The rows that are deleted in `with_deletes`: one column, `row`."""
    others: frozenset[str] = frozenset()
    """The locations of files that frazil reads."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that DuckDB opens."""
        return (*self.whole, *self.with_deletes)


def choose_native(
    tasks: Sequence[FileScanTask],
    view: TableView,
    fields: Sequence[NestedField],
    storage: Storage,
    describe: Describe,
    cache: DeleteCache,
) -> NativeFiles:
    """Return which files of a plan DuckDB reads itself, for the columns that a query needs."""
    # What is checked to be inside of the roots must be what is opened, so frazil opens it.
    if is_fenced(storage) or any(duckdb_type(field.field_type) is None for field in fields):
        return NativeFiles(others=frozenset(task.data_file.file_path for task in tasks))
    paths: dict[str, str] = {}
    for task in tasks:
        path = _native_path(task, storage)
        if path is not None:
            paths[task.data_file.file_path] = path
    footers = describe(list(paths.values())) if paths else {}
    known: dict[tuple[int, tuple[ParquetColumn, ...]], bool] = {}
    whole: list[str] = []
    deleted: list[FileScanTask] = []
    others: set[str] = set()
    for task in tasks:
        location = task.data_file.file_path
        columns = footers.get(paths.get(location, ""))
        key = None if columns is None else (task.data_file.spec_id, columns)
        if key is not None and key not in known:
            known[key] = _is_readable(key[1], fields, view, task)
        if key is None or not known[key]:
            others.add(location)
        elif task.delete_files:
            deleted.append(task)
        else:
            whole.append(paths[location])
    return NativeFiles(
        tuple(whole),
        tuple(paths[task.data_file.file_path] for task in deleted),
        _deleted_rows(deleted, storage, cache) if deleted else None,
        frozenset(others),
    )


def _native_path(task: FileScanTask, storage: Storage) -> str | None:
    file = task.data_file
    if (
        file.file_format is not FileFormat.PARQUET
        or file.key_metadata is not None
        or task.has_equality_deletes
        or task.storage is not None
    ):
        return None
    try:
        if not isinstance(storage_of(storage, file.file_path), LocalStorage):
            return None
        path = local_path(file.file_path)
        is_file = stat.S_ISREG(Path(path).stat().st_mode)
    except (FrazilError, OSError):
        return None  # frazil reads it, and raises the error that belongs to it
    return path if is_file and _GLOB.isdisjoint(path) else None


def _is_readable(
    columns: tuple[ParquetColumn, ...], fields: Sequence[NestedField], view: TableView, task: FileScanTask
) -> bool:
    by_id = {column.field_id: column for column in columns}
    if None in by_id or len(by_id) != len(columns):
        return False
    for field in fields:
        column = by_id.get(field.field_id)
        if column is None:
            spec = view.spec_of(task.data_file)
            is_partition_value = any(
                field.field_id in field_rows.source_ids and isinstance(field_rows.transform, Identity)
                for field_rows in spec.fields
            )
            has_default = field.initial_default is not None
            if is_partition_value or (has_default and not isinstance(field.field_type, _TEXT_DEFAULTS)):
                return False
        elif not is_stored_as(column, field):
            return False
    return True


def _deleted_rows(tasks: Sequence[FileScanTask], storage: Storage, cache: DeleteCache) -> pa.Table:
    def positions_of(task: FileScanTask) -> Any:
        vector = load_positions(storage, task, cache)
        return np.empty(0, np.int64) if vector is None else vector.to_numpy().astype(np.int64)

    parts = map_in_order(positions_of, tasks, threads=default_threads())
    rows = [field_rows + (number << FILE_BITS) for number, field_rows in enumerate(parts)]
    return pa.table({"row": pa.array(np.concatenate(rows), pa.int64())})


def scan_sql(files: NativeFiles, fields: Sequence[tuple[str, NestedField]], deletes_name: str) -> list[str]:
    """Return queries over the native files: of those without deletes, and of those with. `fields` have unique names."""
    columns = ", ".join(f"{_internal(field)} AS {quoted(name)}" for name, field in fields) or "1"
    schema = f"MAP {{{', '.join(_schema_entry(field) for _, field in fields)}}}"
    options = f"schema = {schema}, hive_partitioning = false"
    if any(has_floats(field.field_type) for _, field in fields):
        options += ", can_have_nan = true"

    def select(paths: Sequence[str]) -> str:
        return f"SELECT {columns} FROM read_parquet([{', '.join(map(text_literal, paths))}], {options})"

    queries = [select(files.whole)] if files.whole else []
    if files.with_deletes:
        row = f"(file_index::BIGINT << {FILE_BITS}) + file_row_number"
        queries.append(f"{select(files.with_deletes)} WHERE {row} NOT IN (SELECT row FROM {deletes_name})")
    return queries


def _internal(field: NestedField) -> str:
    return f"c{field.field_id}"


def _schema_entry(field: NestedField) -> str:
    default = "NULL"
    if field.initial_default is not None:
        value = field.initial_default
        default = text_literal(str(value).lower() if isinstance(value, bool) else str(value))
    type_name = text_literal(duckdb_type(field.field_type) or "")
    return f"{field.field_id}: {{name: '{_internal(field)}', type: {type_name}, default_value: {default}}}"
