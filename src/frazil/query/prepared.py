"""A query that is ready to run: its text, and everything that it reads."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from frazil.errors import UnsupportedError
from frazil.query.arrow_types import EXACT_ONLY_AS_OWN, NOT_IN_ARROW, names_in
from frazil.query.column_types import ParquetColumn, read_columns
from frazil.query.engine import NO_LIMITS, cancelled, connect, engine_errors, lock, quoted, release, without_end
from frazil.query.limits import Limits
from frazil.query.native_scan import Footers
from frazil.query.parameters import duckdb_value
from frazil.query.syntax import SERIALIZE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA: Final = "frazil"
"""The schema in DuckDB of everything that a query reads."""
_MAX_FOOTERS: Final = 100_000
_FOOTERS: Final = """
    SELECT list(file_name), columns FROM (
        SELECT file_name, list(
            {'name': name, 'type': type, 'type_length': type_length, 'repetition_type': repetition_type,
             'num_children': num_children, 'field_id': field_id, 'logical_type': logical_type,
             'duckdb_type': duckdb_type}
            ORDER BY column_id) AS columns
        FROM parquet_schema($1::VARCHAR[]) GROUP BY file_name)
    GROUP BY columns
"""


class ArrowSource(Protocol):
    """Rows that frazil reads: the columns and conditions that DuckDB asks for are pushed down to them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""


@dataclass(frozen=True)
class PreparedQuery:
    """A query over views, tables in memory and Arrow sources, all by their names in the schema `frazil`."""

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    paths: Sequence[str] = ()
    """The files that DuckDB opens itself."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    sources: Mapping[str, ArrowSource] = field(default_factory=dict)
    views: Sequence[tuple[str, str, str]] = ()
    """Schema, name and query of each view, those that others read before them."""
    limits: Limits = NO_LIMITS
    has_deletes: bool = False


class Engine(Protocol):
    """DuckDB, here or in a process of its own."""

    def serialize(self, text: str) -> str:
        """Return the JSON of a query's tree."""

    def describe(self, paths: Sequence[str]) -> Footers:
        """Return the columns of Parquet files; none of them if one cannot be read."""

    def run(self, query: PreparedQuery) -> Any:
        """Start a query."""


class _Parser:
    """One connection that parses queries, and does nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = None

    def serialize(self, text: str) -> str:
        """Return the JSON of a query's tree."""
        with self._lock, engine_errors():
            if self._connection is None:
                self._connection = connect()
                lock(self._connection)
            (found,) = self._connection.execute(SERIALIZE, [text]).fetchall()[0]
            return str(found)

    def begin_fork(self) -> None:
        """Close the connection: its threads would not be in a process that is forked from this one."""
        self._lock.acquire()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def end_fork(self) -> None:
        """Go on, in the process that forked and in the new one."""
        self._lock.release()


class _FooterCache:
    """The columns of Parquet files that were described before; a file that changed is another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns: OrderedDict[tuple[str, int, int], tuple[ParquetColumn, ...]] = OrderedDict()

    def find(
        self, paths: Sequence[str]
    ) -> tuple[dict[str, tuple[ParquetColumn, ...]], dict[str, tuple[str, int, int]]]:
        """Return the columns of the files that are known, and keys for the others."""
        known: dict[str, tuple[ParquetColumn, ...]] = {}
        keys: dict[str, tuple[str, int, int]] = {}
        for path in paths:
            stat = os.stat(path)  # noqa: PTH116 - called for every file
            key = (path, stat.st_mtime_ns, stat.st_size)
            with self._lock:
                columns = self._columns.get(key)
            if columns is None:
                keys[path] = key
            else:
                known[path] = columns
        return known, keys

    def add(self, key: tuple[str, int, int], columns: tuple[ParquetColumn, ...]) -> None:
        """Keep the columns of a file."""
        with self._lock:
            self._columns[key] = columns
            while len(self._columns) > _MAX_FOOTERS:
                self._columns.popitem(last=False)


_PARSER: Final = _Parser()
os.register_at_fork(before=_PARSER.begin_fork, after_in_parent=_PARSER.end_fork, after_in_child=_PARSER.end_fork)
_FOOTER_CACHE: Final = _FooterCache()


class LocalEngine:
    """DuckDB in this process."""

    def serialize(self, text: str) -> str:
        """Return the JSON of a query's tree."""
        return _PARSER.serialize(text)

    def describe(self, paths: Sequence[str]) -> Footers:
        """Return the columns of Parquet files; none of them if one cannot be read."""
        import duckdb

        try:
            known, keys = _FOOTER_CACHE.find(paths)
        except OSError:
            return {}  # frazil reads the files, and raises the error that belongs to one of them
        if not keys:
            return known
        connection = connect(paths=tuple(keys))
        try:
            described = read_footers(connection, tuple(keys))
        except duckdb.Error:
            return {}
        finally:
            connection.close()
        for path, columns in described.items():
            _FOOTER_CACHE.add(keys[path], columns)
        return {**known, **described}

    def run(self, query: PreparedQuery) -> QueryRun:
        """Start a query."""
        return QueryRun(query)


def read_footers(connection: DuckDBPyConnection, paths: Sequence[str]) -> Footers:
    """Return the columns of Parquet files by path."""
    footers: dict[str, Any] = {}
    for files, rows in footer_rows(connection, paths):
        footers.update(dict.fromkeys(files, read_columns(rows)))
    return footers


def footer_rows(connection: DuckDBPyConnection, paths: Sequence[str]) -> list[tuple[list[str], list[dict[str, Any]]]]:
    """Return the elements of the schemas of Parquet files, each with the files that have it."""
    rows: list[tuple[list[str], list[dict[str, Any]]]] = connection.execute(_FOOTERS, [list(paths)]).fetchall()
    return rows


def _check_types(relation: Any) -> frozenset[str]:
    """Return the names of DuckDB's types in a result; refuse those that Arrow does not have."""
    names: frozenset[str] = frozenset()
    for name, data_type in zip(relation.columns, relation.types, strict=True):
        inner = names_in(data_type)
        if not inner.isdisjoint(NOT_IN_ARROW):
            raise UnsupportedError(
                f"Cannot return the column {name!r}: it is a {data_type}",
                hint="Cast it to another type, as VARCHAR, or take a member of it.",
            )
        names |= inner
    return names


class QueryRun:
    """A query in DuckDB, from its first statement to its last batch. Close it when it is done."""

    def __init__(self, query: PreparedQuery) -> None:
        self._query = query
        self._is_closed = False
        self._is_interrupted = False
        self._bound: Any = None
        self._connection = connect(query.limits, query.paths)

    @property
    def _relation(self) -> Any:
        """The query, bound. Binding computes constant expressions, and can take as long as a query."""
        with engine_errors(self._query.limits):
            if self._bound is None:
                self._prepare()
                parameters = {name: duckdb_value(value) for name, value in self._query.parameters.items()}
                self._bound = self._connection.sql(without_end(self._query.text), params=parameters or None)
                if not _check_types(self._bound).isdisjoint(EXACT_ONLY_AS_OWN):
                    self._connection.execute("SET arrow_lossless_conversion = true")
            if self._is_interrupted:  # DuckDB forgets it when its next statement begins
                raise cancelled()
            return self._bound

    def _prepare(self) -> None:
        connection, query = self._connection, self._query
        for schema in dict.fromkeys((SCHEMA, *(schema for schema, _, _ in query.views))):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        for name, rows in {**query.tables, **query.sources}.items():
            connection.register(name, rows)
        if query.has_deletes:
            # It takes rows by the number of the file and the row, and fails on filters over these.
            connection.execute("SET disabled_optimizers = 'late_materialization'")
        for schema, name, text in query.views:
            connection.execute(f"CREATE VIEW {quoted(schema)}.{quoted(name)} AS {text}")
        lock(connection)

    @property
    def limits(self) -> Limits:
        """The limits of the query."""
        return self._query.limits

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The names of the columns, with the names of their types in DuckDB."""
        names, types = self._relation.columns, self._relation.types
        return [(name, str(column_type)) for name, column_type in zip(names, types, strict=True)]

    def schema(self) -> pa.Schema:
        """Return the columns, as DuckDB hands them to Arrow."""
        with engine_errors(self._query.limits):
            return self._relation.limit(0).to_arrow_table().schema

    def reader(self, batch_rows: int) -> pa.RecordBatchReader:
        """Return the rows as they are computed."""
        with engine_errors(self._query.limits):
            return self._relation.to_arrow_reader(batch_rows)

    def explain(self) -> str:
        """Return DuckDB's plan."""
        with engine_errors(self._query.limits):
            return str(self._relation.explain())

    def progress(self) -> float:
        """Return how far the query is, in percent; -1 if unknown."""
        return float(self._connection.query_progress())

    def interrupt(self) -> None:
        """Stop what runs, and begin nothing more."""
        self._is_interrupted = True
        self._connection.interrupt()

    def close(self) -> None:
        """Release everything."""
        if not self._is_closed:
            self._is_closed = True
            release(self._connection)
