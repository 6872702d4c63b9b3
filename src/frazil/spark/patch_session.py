"""PySpark's entry points, taught to ask whether a name is a lake's. Undone exactly when the last session is detached.

PySpark has no place to plug a catalog in from Python. Some methods of its classes are therefore replaced, for all
sessions of the process, by ones that look whether the session in hand is attached and, if so, ask its `Hooks`; whatever
those do not claim, and every other session, goes to the method that was there. Only classic sessions: Spark
Connect's parser is out of reach.

    SparkSession.sql, .table          DataFrameReader.table, .load (format iceberg)
    DataFrame.writeTo, .mergeInto     DataFrameWriter.save (format iceberg), .saveAsTable, .insertInto
    Catalog.currentCatalog, .setCurrentDatabase, .listTables, .tableExists and their like
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.sql_formatter import SQLStringFormatter

from frazil.sql.quote_names import quote

NOT_OURS: Any = object()
"""What a hook returns for a name that is no lake's."""

_RECORD = "_frazil_record"
_SESSION_ID = "_frazil_session_id"
_lock = threading.RLock()
_hooks: dict[str, Hooks] = {}
_replaced: list[tuple[type, str, Any]] = []
_MISSING: Any = object()


class Hooks(Protocol):
    """What an attached session does in place of PySpark; each may return NOT_OURS."""

    def sql(self, run: Callable[..., Any], text: str, args: Any) -> Any:
        """Run a statement."""

    def table(self, name: str, options: dict[str, str]) -> Any:
        """Return a table as a DataFrame."""

    def write_to(self, frame: Any, name: str) -> Any:
        """Return a writer for a table."""

    def merge_into(self, frame: Any, name: str, condition: Any) -> Any:
        """Return a merge into a table."""

    def save(self, frame: Any, name: str, record: WriteRecord, *, by_position: bool, replaces: bool) -> Any:
        """Write a DataFrame to a table, as the first API of writers does; to overwrite may be to replace the table."""

    def catalog(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Answer a method of `spark.catalog`."""


@dataclass
class WriteRecord:
    """What was said to a reader or a writer before it read or wrote."""

    format: str | None = None
    mode: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    """A table's partitions by hash, as terms."""
    sort_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


def session_id(spark: SparkSession) -> str:
    """Return what tells sessions apart: several Python objects may stand for one."""
    found = spark.__dict__.get(_SESSION_ID)
    if found is None:
        found = str(spark._jsparkSession.sessionUUID())
        spark.__dict__[_SESSION_ID] = found
    return str(found)


def hook(spark: SparkSession, hooks: Hooks) -> None:
    """Let hooks answer for a session; the first one puts the replacements in."""
    with _lock:
        if not _hooks:
            _replace_all()
        _hooks[session_id(spark)] = hooks


def unhook(spark: SparkSession) -> None:
    """Leave a session as it was; with the last one the replacements go."""
    with _lock:
        _hooks.pop(session_id(spark), None)
        if not _hooks:
            _restore_all()


def find_hooks(spark: Any) -> Any:
    """Return the hooks of a session, or None."""
    if not _hooks or not hasattr(spark, "_jsparkSession"):
        return None
    return _hooks.get(session_id(spark))


def _replace(kind: type, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(kind, name)
    _replaced.append((kind, name, kind.__dict__.get(name, _MISSING)))
    setattr(kind, name, functools.wraps(original)(make(original)))


def _restore_all() -> None:
    while _replaced:
        kind, name, original = _replaced.pop()
        if original is _MISSING:
            delattr(kind, name)
        else:
            setattr(kind, name, original)


def _replace_all() -> None:
    _replace(SparkSession, "sql", _sql)
    _replace(SparkSession, "table", _table)
    for name in ("format", "option", "options"):
        _replace(DataFrameReader, name, _recording(name))
    _replace(DataFrameReader, "table", _read_table)
    _replace(DataFrameReader, "load", _load)
    _replace(DataFrame, "writeTo", _write_to)
    if hasattr(DataFrame, "mergeInto"):
        _replace(DataFrame, "mergeInto", _merge_into)
    for name in ("format", "mode", "option", "options", "partitionBy", "bucketBy", "sortBy", "clusterBy"):
        if hasattr(DataFrameWriter, name):
            _replace(DataFrameWriter, name, _recording(name))
    _replace(DataFrameWriter, "save", _save)
    _replace(DataFrameWriter, "saveAsTable", _save_as_table)
    _replace(DataFrameWriter, "insertInto", _insert_into)
    for name in CATALOG_METHODS:
        if hasattr(Catalog, name):
            _replace(Catalog, name, _of_catalog(name))


CATALOG_METHODS = (
    "currentCatalog",
    "setCurrentCatalog",
    "listCatalogs",
    "currentDatabase",
    "setCurrentDatabase",
    "listDatabases",
    "databaseExists",
    "listTables",
    "listColumns",
    "tableExists",
    "refreshTable",
)


# Sessions


def _sql(original: Any) -> Any:
    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - PySpark's name
        hooks = find_hooks(self)
        if hooks is None:
            return original(self, sqlQuery, args, **kwargs)

        def run(text: str, args: Any = None) -> Any:
            return original(self, text, args)

        if not kwargs:
            return hooks.sql(run, sqlQuery, args)
        formatter = SQLStringFormatter(self)
        try:
            return hooks.sql(run, formatter.format(sqlQuery, **kwargs), args)
        finally:
            formatter.clear()

    return sql


def _table(original: Any) -> Any:
    def table(self: SparkSession, tableName: str) -> Any:  # noqa: N803
        hooks = find_hooks(self)
        found = NOT_OURS if hooks is None else hooks.table(tableName, {})
        return original(self, tableName) if found is NOT_OURS else found

    return table


# Readers and writers


def _record(target: Any) -> WriteRecord:
    found = target.__dict__.get(_RECORD)
    if found is None:
        found = target.__dict__[_RECORD] = WriteRecord()
    return found  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_NOTED = {"partitionBy": "partition_by", "sortBy": "sort_by", "clusterBy": "cluster_by"}


def _names(values: list[Any]) -> tuple[str, ...]:
    """Return the columns that a writer is given: a list, or several arguments, or a list and more."""
    first = values[0] if values and isinstance(values[0], list | tuple) else values[:1]
    return tuple(str(one) for one in (*first, *values[1:]))


def _recording(name: str) -> Callable[[Any], Any]:
    """Return a replacement that notes what is said, and says it on."""

    def make(original: Any) -> Any:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            record = _record(self)
            values = [*arguments, *(() if name == "options" else named.values())]
            if name == "format":
                record.format = str(values[0])
            elif name == "mode":
                record.mode = None if values[0] is None else str(values[0])
            elif name == "option":
                record.options[str(values[0])] = _text(values[1])
            elif name == "options":
                record.options |= {key: _text(value) for key, value in named.items()}
            elif name == "bucketBy":
                record.buckets = tuple(f"bucket({values[0]}, {quote(one)})" for one in _names(values[1:]))
            else:
                setattr(record, _NOTED[name], _names(values))
            return original(self, *arguments, **named)

        return method

    return make


def _read_table(original: Any) -> Any:
    def table(self: DataFrameReader, tableName: str) -> Any:  # noqa: N803
        hooks = find_hooks(self._spark)
        found = NOT_OURS if hooks is None else hooks.table(tableName, dict(_record(self).options))
        return original(self, tableName) if found is NOT_OURS else found

    return table


def _is_iceberg(record: WriteRecord) -> bool:
    return record.format is not None and record.format.lower() in ("iceberg", "org.apache.iceberg.spark.source")


def _load(original: Any) -> Any:
    def load(self: DataFrameReader, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:  # noqa: A002
        hooks = find_hooks(self._spark)
        record = _record(self)
        if format is not None:
            record.format = format
        if hooks is not None and _is_iceberg(record):
            asked = {**record.options, **{key: _text(value) for key, value in options.items()}}
            name = path if isinstance(path, str) else asked.get("path")
            found = NOT_OURS if name is None else hooks.table(name, asked)
            if found is not NOT_OURS:
                return found
        return original(self, path, format, schema, **options)

    return load


def _write_to(original: Any) -> Any:
    def writeTo(self: Any, table: str) -> Any:  # noqa: N802 - PySpark's name
        hooks = find_hooks(self.sparkSession)
        found = NOT_OURS if hooks is None else hooks.write_to(self, table)
        return original(self, table) if found is NOT_OURS else found

    return writeTo


def _merge_into(original: Any) -> Any:
    def mergeInto(self: Any, table: str, condition: Any) -> Any:  # noqa: N802
        hooks = find_hooks(self.sparkSession)
        found = NOT_OURS if hooks is None else hooks.merge_into(self, table, condition)
        return original(self, table, condition) if found is NOT_OURS else found

    return mergeInto


def _said(self: Any, format: Any, mode: Any, partition_by: Any, options: dict[str, Any]) -> WriteRecord:  # noqa: A002
    """Return what a writer was told, with what the last call says."""
    before = _record(self)
    columns = [partition_by] if isinstance(partition_by, str) else partition_by
    return WriteRecord(
        format if format is not None else before.format,
        mode if mode is not None else before.mode,
        {**before.options, **{key: _text(value) for key, value in options.items()}},
        before.partition_by if columns is None else tuple(columns),
        before.buckets,
        before.sort_by,
        before.cluster_by,
    )


def _save(original: Any) -> Any:
    def save(
        self: DataFrameWriter,
        path: Any = None,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        hooks = find_hooks(self._spark)
        if hooks is not None:
            record = _said(self, format, mode, partitionBy, options)
            name = path if path is not None else record.options.get("path")
            if name is not None and _is_iceberg(record):
                if hooks.save(self._df, name, record, by_position=False, replaces=False) is not NOT_OURS:
                    return
        original(self, path, format, mode, partitionBy, **options)

    return save


def _save_as_table(original: Any) -> Any:
    def saveAsTable(  # noqa: N802
        self: DataFrameWriter,
        name: str,
        format: Any = None,  # noqa: A002
        mode: Any = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        hooks = find_hooks(self._spark)
        if hooks is not None:
            record = _said(self, format, mode, partitionBy, options)
            if hooks.save(self._df, name, record, by_position=False, replaces=True) is not NOT_OURS:
                return
        original(self, name, format, mode, partitionBy, **options)

    return saveAsTable


def _insert_into(original: Any) -> Any:
    def insertInto(self: DataFrameWriter, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803
        hooks = find_hooks(self._spark)
        if hooks is not None:
            record = _said(self, None, None, None, {})
            if overwrite is not None:
                record.mode = "overwrite" if overwrite else "append"
            record.mode = record.mode or "append"
            if hooks.save(self._df, tableName, record, by_position=True, replaces=False) is not NOT_OURS:
                return
        original(self, tableName, overwrite)

    return insertInto


# The catalog


def _of_catalog(name: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def method(self: Catalog, *arguments: Any, **named: Any) -> Any:
            hooks = find_hooks(self._sparkSession)
            given = (*arguments, *named.values())
            found = NOT_OURS if hooks is None else hooks.catalog(name, given)
            return original(self, *arguments, **named) if found is NOT_OURS else found

        return method

    return make
