"""Queries over a lake by plain DuckDB, whose tables are copies: what statements are tested with."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

import frazil
from frazil.errors import InvalidRequestError
from frazil.table.local_sql.statements import run_statement


class Rows:
    """The answer of a query."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns."""
        return self._table.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return self._table.to_reader()

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return self._table


class PlainQueries:
    """Runs statements over a lake, with the queries inside them over copies of its tables."""

    def __init__(self, lake: frazil.Lake) -> None:
        self.lake = lake
        self.connection = duckdb.connect()
        self.connection.execute("set TimeZone = 'UTC'; attach ':memory:' as lake; use lake")
        self.connection.execute("set python_enable_replacements = false")
        self._copied: dict[str, str | None] = {}

    def close(self) -> None:
        """Give back the copies and the lake."""
        self.connection.close()
        self.lake.close()

    def sql(self, text: str, frames: Mapping[str, object] | None = None, /, **parameters: object) -> pa.Table:
        """Run a statement."""
        return run_statement(
            self.lake, text, run_query=self.query, parameters=parameters, frames=frames if frames is not None else {}
        )

    def query(self, text: str, parameters: Mapping[str, object], frames: Mapping[str, object]) -> Rows:
        """Run a query."""
        for namespace in self.lake.list_namespaces():
            self.connection.execute(f'create schema if not exists lake."{".".join(namespace)}"')
            for name in self.lake.list_tables(namespace):
                self._copy(name)
        for label, frame in frames.items():
            self.connection.register(label, frame)
        try:
            return Rows(self.connection.sql(text, params=dict(parameters) or None).to_arrow_table())
        except duckdb.Error as error:
            raise InvalidRequestError(f"Cannot run the query: {error}") from error
        finally:
            for label in frames:
                self.connection.unregister(label)

    def _copy(self, name: tuple[str, ...]) -> None:
        table = self.lake.table(name)
        shown = f'lake."{".".join(name[:-1])}"."{name[-1]}"'
        if self._copied.get(shown) == table.metadata_location:
            return
        self.connection.register("copied", table.scan().to_arrow())
        self.connection.execute(f"create or replace table {shown} as from copied")
        self.connection.unregister("copied")
        self._copied[shown] = table.metadata_location
