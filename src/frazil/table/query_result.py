"""The rows of a query that runs in this process: the result of `lake.sql`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from frazil.errors import UnsupportedError
from frazil.table.hand_offs import HandOffs


@contextmanager
def _python_values() -> Iterator[None]:
    """Name values that Python does not have: times beyond the year 9999, infinite dates."""
    try:
        yield
    except (OverflowError, ValueError) as error:
        raise UnsupportedError(
            f"Cannot show the rows as values of Python: {error}", hint="Use to_arrow(), or cast the column to text."
        ) from error


class QueryResult(HandOffs):
    """The rows of a query. Each method that reads them runs it, over the same snapshots.

    `to_reader()`, `to_batches()` and `__arrow_c_stream__` read in bounded memory. `to_arrow()` and the methods of an
    Arrow table (`to_pylist()`, `num_rows`, `column()`) hold all rows.
    """

    def __init__(
        self, text: str, schema: pa.Schema, start: Callable[[], Iterator[pa.RecordBatch]], explain: Callable[[], str]
    ) -> None:
        self._text = text
        self._schema = schema
        self._start = start
        self._explain = explain
        self._rows: pa.Table | None = None

    def __repr__(self) -> str:
        return f"QueryResult({', '.join(self.column_names)})"

    @property
    def _source(self) -> tuple[str, str]:
        return "query", self._text

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns, as Arrow describes them."""
        return self._schema

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow describes them."""
        return self._schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._schema.names)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, as they are computed."""
        return self._start()

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self._schema)

    @property
    def _whole(self) -> pa.Table:
        if self._rows is None:
            self._rows = self.to_arrow()
        return self._rows

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self._whole.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts, in bounded memory."""
        with _python_values():
            yield from super().__iter__()

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return len(self._schema)

    def column(self, name_or_place: str | int) -> pa.ChunkedArray:
        """Return a column by its name or its index."""
        return self._whole.column(name_or_place)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dicts."""
        whole = self._whole
        with _python_values():
            rows: list[dict[str, Any]] = whole.to_pylist()
        return rows

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return all columns as lists."""
        whole = self._whole
        with _python_values():
            columns: dict[str, list[Any]] = whole.to_pydict()
        return columns

    def explain(self) -> str:
        """Return which files are read and which conditions prune them, and DuckDB's plan."""
        return self._explain()
