"""The rows of a query that runs in this process: what `lake.sql` gives. `local_sql.py` makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from frazil.errors import FrazilError, InvalidRequestError
from frazil.lake.hand_offs import HandOffs

Result = TypeVar("Result")


class QueryResult(HandOffs):
    """The rows of a query. Each method that reads them runs it, over the same snapshots.

    `to_reader()`, `to_batches()` and `__arrow_c_stream__` read in bounded memory; `to_arrow()` and what is like a table
    of Arrow's (`to_pylist()`, `num_rows`, `column()`) hold the whole answer.
    """

    def __init__(self, text: str, run: Callable[[], Any], failures: list[FrazilError]) -> None:
        self._text = text
        self._failures = failures
        self._frame = self._checked(run)

    def __repr__(self) -> str:
        return f"QueryResult({', '.join(self.column_names)})"

    @property
    def _source(self) -> tuple[str, str]:
        return "query", self._text

    def _checked(self, do: Callable[[], Result]) -> Result:
        """Do something in the engine; what it raises becomes an error of frazil's, or the one that was behind it."""
        try:
            return do()
        except FrazilError:
            raise
        except Exception as error:
            if self._failures:
                raise self._failures[-1] from error
            reason = _reason(error)
            hint = "Names are case-sensitive. What is not understood here may run on Spark."
            if "Resources exhausted" in reason:
                hint = "The memory of a query is bounded, and a join holds its smaller side. Run it on Spark."
            raise InvalidRequestError(f"Cannot run the query: {reason}", hint=hint) from error

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns, as Arrow describes them."""
        return self._checked(self._frame.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow describes them."""
        return self.arrow_schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.arrow_schema.names)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, as they are computed."""
        reader = self._checked(lambda: pa.RecordBatchReader.from_stream(self._frame))
        while True:
            batch = self._checked(lambda: next(reader, None))
            if batch is None:
                return
            yield batch

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table in memory."""
        return pa.Table.from_batches(self.to_batches(), schema=self.arrow_schema)

    @cached_property
    def _whole(self) -> pa.Table:
        return self.to_arrow()

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self._whole.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    @property
    def num_columns(self) -> int:
        """How many columns there are."""
        return len(self.arrow_schema)

    def column(self, name_or_place: str | int) -> pa.ChunkedArray:
        """Return a column by its name or its index."""
        return self._whole.column(name_or_place)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dicts."""
        found: list[dict[str, Any]] = self._whole.to_pylist()
        return found

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return all columns as lists."""
        found: dict[str, list[Any]] = self._whole.to_pydict()
        return found

    def explain(self) -> str:
        """Return the engine's plan as text: which filters and columns reach the scans."""
        return str(self._checked(lambda: self._frame.optimized_logical_plan().display_indent()))


def _reason(error: Exception) -> str:
    text = str(error)
    for head in ("External error: ", "DataFusion error: ", "Arrow error: ", "Error during planning: ", "SQL error: "):
        text = text.replace(head, "")
    # An optimizer's failure names its cause last.
    return text.rpartition("caused by\n")[2].partition("\n\n")[0].strip()
