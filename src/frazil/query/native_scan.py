"""The files of a plan that DuckDB reads itself, as queries over them.

Footers tell how each file stores its columns (`column_types.py`). Files that store them alike are read together: a
column by its name in these files, cast if its type was promoted, or its default if the files lack it. Deleted positions
are excluded by file number and row number. All other files are read by frazil as Arrow: other formats, equality
deletes, files without field ids, files in object stores, and those that do not store columns exactly as the format
does.

    SELECT "id", "old name" AS "kind" FROM read_parquet(['/a.parquet', '/b.parquet'], …)
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
"""Returns the columns of Parquet files by path; unreadable files are omitted."""

FILE_BITS: Final = 40
"""A row is identified by its file number above these bits, and its position below."""
_GLOB: Final = frozenset("*?[]{}")
_VIRTUAL_COLUMNS: Final = frozenset({"filename", "file_index", "file_row_number"})
_SAME_NAMES: Final = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}
_TEXT_DEFAULTS: Final = (BooleanType, IntType, LongType, StringType, DecimalType)


@dataclass
class FileGroup:
    """Files that store the columns of a query alike."""

    columns: tuple[str, ...]
    """The columns of the query, as expressions over the files."""
    whole: list[str]
    with_deletes: list[FileScanTask]
    paths_with_deletes: list[str]
    deleted: pa.Table | None = None
    """The deleted rows in `paths_with_deletes`: one column, `row`."""


@dataclass(frozen=True)
class NativeFiles:
    """The files that DuckDB reads itself, and the locations of those that frazil reads."""

    groups: tuple[FileGroup, ...] = ()
    others: frozenset[str] = frozenset()

    @property
    def paths(self) -> list[str]:
        """All paths that DuckDB opens."""
        return [path for group in self.groups for path in (*group.whole, *group.paths_with_deletes)]


def choose_native(
    tasks: Sequence[FileScanTask],
    view: TableView,
    fields: Sequence[NestedField],
    storage: Storage,
    describe: Describe,
    cache: DeleteCache,
) -> NativeFiles:
    """Choose the files of a plan that DuckDB reads itself, for the columns of a query."""
    # A file that is checked to be inside the roots must be the one that is opened, so frazil opens it.
    if is_fenced(storage) or any(duckdb_type(field.field_type) is None for field in fields):
        return NativeFiles(others=frozenset(task.data_file.file_path for task in tasks))
    paths: dict[str, str] = {}
    for task in tasks:
        path = _native_path(task, storage)
        if path is not None:
            paths[task.data_file.file_path] = path
    footers = describe(list(paths.values())) if paths else {}
    projections: dict[tuple[int, tuple[ParquetColumn, ...], bool], tuple[str, ...] | None] = {}
    groups: dict[tuple[tuple[ParquetColumn, ...], tuple[str, ...]], FileGroup] = {}
    others: set[str] = set()
    for task in tasks:
        location = task.data_file.file_path
        stored = footers.get(paths.get(location, ""))
        if stored is None:
            others.add(location)
            continue
        key = (task.data_file.spec_id, stored, bool(task.delete_files))
        if key not in projections:
            projections[key] = _projection(stored, fields, view, task)
        columns = projections[key]
        if columns is None:
            others.add(location)
            continue
        group = groups.setdefault((stored, columns), FileGroup(columns, [], [], []))
        if task.delete_files:
            group.with_deletes.append(task)
            group.paths_with_deletes.append(paths[location])
        else:
            group.whole.append(paths[location])
    for group in groups.values():
        if group.with_deletes:
            group.deleted = _deleted_rows(group.with_deletes, storage, cache)
    return NativeFiles(tuple(groups.values()), frozenset(others))


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


def _projection(
    stored: tuple[ParquetColumn, ...], fields: Sequence[NestedField], view: TableView, task: FileScanTask
) -> tuple[str, ...] | None:
    """Return the columns of a query as expressions over files, or None if DuckDB does not read them exactly."""
    by_id = {column.field_id: column for column in stored}
    names = {column.name.lower() for column in stored}
    if None in by_id or len(by_id) != len(stored) or len(names) != len(stored):
        return None
    if task.delete_files and not names.isdisjoint(_VIRTUAL_COLUMNS):
        return None
    columns: list[str] = []
    for field in fields:
        column = by_id.get(field.field_id)
        if column is None:
            value = _missing_value(field, view, task)
        else:
            value = _stored_value(column, field)
        if value is None:
            return None
        columns.append(value)
    return tuple(columns)


def _stored_value(column: ParquetColumn, field: NestedField) -> str | None:
    if not is_stored_as(column, field):
        return None
    type_name = duckdb_type(field.field_type)
    # Parts of nested columns must have the same names and order as in the table.
    is_same = column.duckdb == type_name or _SAME_NAMES.get(column.duckdb or "") == type_name
    return quoted(column.name) if is_same else f"CAST({quoted(column.name)} AS {type_name})"


def _missing_value(field: NestedField, view: TableView, task: FileScanTask) -> str | None:
    """Return the value of a column for files that lack it: its default, or null."""
    is_partition_value = any(
        field.field_id in partition_field.source_ids and isinstance(partition_field.transform, Identity)
        for partition_field in view.spec_of(task.data_file).fields
    )
    if is_partition_value:
        return None
    value = field.initial_default
    if value is not None and not isinstance(field.field_type, _TEXT_DEFAULTS):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"CAST({'NULL' if value is None else text_literal(text)} AS {duckdb_type(field.field_type)})"


def _deleted_rows(tasks: Sequence[FileScanTask], storage: Storage, cache: DeleteCache) -> pa.Table:
    def positions_of(task: FileScanTask) -> Any:
        vector = load_positions(storage, task, cache)
        return np.empty(0, np.int64) if vector is None else vector.to_numpy().astype(np.int64)

    parts = map_in_order(positions_of, tasks, threads=default_threads())
    rows = [field_rows + (number << FILE_BITS) for number, field_rows in enumerate(parts)]
    return pa.table({"row": pa.array(np.concatenate(rows), pa.int64())})


def scan_sql(files: NativeFiles, fields: Sequence[tuple[str, NestedField]], deletes_name: str) -> list[str]:
    """Return queries over the native files. `fields` have unique names; the deleted rows of group N are `… N`."""
    options = "hive_partitioning = false"
    if any(has_floats(field.field_type) for _, field in fields):
        # DuckDB then does not prune rows by statistics, which ignore NaN.
        options += ", can_have_nan = true"
    queries: list[str] = []
    for number, group in enumerate(files.groups):
        columns = [f"{value} AS {quoted(name)}" for value, (name, _) in zip(group.columns, fields, strict=True)]
        select = f"SELECT {', '.join(columns) or '1'} FROM read_parquet"
        if group.whole:
            queries.append(f"{select}({_list(group.whole)}, {options})")
        if group.paths_with_deletes:
            row = f"(file_index::BIGINT << {FILE_BITS}) + file_row_number"
            deleted = quoted(f"{deletes_name} {number}")
            source = f"({_list(group.paths_with_deletes)}, {options})"
            queries.append(f"{select}{source} WHERE {row} NOT IN (SELECT row FROM {deleted})")
    return queries


def _list(paths: Sequence[str]) -> str:
    return f"[{', '.join(map(text_literal, paths))}]"
