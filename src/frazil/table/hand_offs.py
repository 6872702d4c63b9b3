"""A scan's rows for other libraries: pandas, Polars, DuckDB, Ray, and whatever speaks Arrow.

Arrow is the way to all of them. `__arrow_c_stream__` and `to_reader()` hand over batches as they are asked for, in
bounded memory. `to_dataset()`, `to_polars_lazy()` and `to_duckdb()` wait for the query: columns and filters that it
turns out to need prune files and rows (`scan_dataset.py`). The others read all rows into memory.

The libraries are loaded here on first need, and frazil installs none of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import pyarrow as pa

from frazil.datafile.open_file import reading
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.expr.columns.arrow_filter import Meaning
from frazil.table.shown_rows import MAX_COUNTED, SHOWN_ROWS, ShownRows, first_rows

Result = TypeVar("Result")


class HandOffs:
    """What a scan, or the answer of a query, offers to other libraries."""

    @property
    @abstractmethod
    def _source(self) -> tuple[str, str]:
        """What the rows are of, for errors: its kind, and its name."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The columns that are shown, as Arrow describes them."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return all rows as a table in memory."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader: they are read as they are asked for, in bounded memory."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows over by Arrow's C stream: `pl.from_arrow(scan)`, `pa.table(scan)`, `duckdb.sql("from scan")`.

        Each stream reads the same snapshot from its beginning, in bounded memory.
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return all rows as a pandas data frame; needs pandas, which frazil does not install.

        Uuids in lists are bytes there.
        """
        load_library("pandas", "a pandas data frame")
        with reading(*self._source, "Schemas and Data Types"):
            rows = _plain_lists(self.to_arrow())
            try:
                return rows.to_pandas()
            except pa.ArrowNotImplementedError as error:
                raise UnsupportedError(
                    f"Cannot make a pandas data frame of {self._source[1]}: {error}", hint="Use to_arrow()."
                ) from error

    def to_polars(self) -> Any:
        """Return all rows as a Polars data frame; needs Polars, which frazil does not install."""
        polars = load_library("polars", "a Polars data frame")
        with reading(*self._source, "Schemas and Data Types"):
            return polars.from_arrow(_plain(self.to_arrow()))

    def df(self) -> Any:
        """Return all rows as a pandas data frame: `to_pandas()` by the name that DuckDB uses."""
        return self.to_pandas()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts, in bounded memory."""
        for batch in self.to_batches():
            yield from batch.to_pylist()

    def show(self, max_rows: int = 20) -> None:
        """Print the first rows with their types, and how many rows there are."""
        print(self._first_rows(max_rows).text())  # noqa: T201 - this is what it is for

    def _repr_html_(self) -> str:
        return self._first_rows(SHOWN_ROWS).html()

    def _first_rows(self, max_rows: int) -> ShownRows:
        batches = self.to_batches()
        try:
            return first_rows(batches, self.arrow_schema, max_rows, MAX_COUNTED)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def to_ray(self) -> Any:
        """Return all rows as a Ray dataset; needs Ray, which frazil does not install."""
        return load_library("ray.data", "a Ray dataset").from_arrow(self.to_arrow())


class LazyHandOffs(HandOffs):
    """What a scan offers to libraries whose queries say later what they need of it."""

    def to_dataset(self) -> Any:
        """Return the rows as a `pyarrow.dataset.Dataset`: columns and filters given to its methods prune files."""
        return self._dataset(Meaning.ARROW)

    def _dataset(self: Any, meaning: Meaning) -> Any:
        from frazil.table.scan_dataset import ScanDataset

        return ScanDataset(self, meaning)

    def to_polars_lazy(self) -> Any:
        """Return the rows as a lazy Polars frame: its columns and filters prune files when it is collected."""
        polars = load_library("polars", "a lazy Polars frame")
        # Polars says filters in Arrow's words, and means what SQL does.
        return polars.scan_pyarrow_dataset(self._dataset(Meaning.SQL))

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return the rows as a DuckDB relation: columns and filters of a query on it prune files.

        `scan.to_duckdb().filter("id > 5").aggregate("count(*)")`. Without a connection, DuckDB's default one is used.
        """
        duckdb = load_library("duckdb", "a DuckDB relation")
        return (duckdb if connection is None else connection).from_arrow(self.to_dataset())


def load_library(library: str, what: str) -> Any:
    """Return a library that frazil does not install; where it is missing, say what to install."""
    name = library.partition(".")[0]
    if find_spec(name) is None:
        title = {"polars": "Polars", "duckdb": "DuckDB", "ray": "Ray"}.get(name, name)
        raise InvalidRequestError(
            f"Cannot make {what}: {title} is not installed", hint=f"Install it: pip install {name}. Or use to_arrow()."
        )
    return import_module(library)


def _plain(rows: pa.Table) -> pa.Table:
    """Return rows with the bytes of uuids in their place, for libraries that do not know them."""
    return _cast(rows, lambda data_type, is_in_list: data_type.storage_type if _is_uuid(data_type) else data_type)


def _plain_lists(rows: pa.Table) -> pa.Table:
    """Return rows with lists that pandas knows: of bytes where they are of uuids or of bytes of one length."""

    def without_length(data_type: pa.DataType, is_in_list: bool) -> pa.DataType:
        return pa.binary() if is_in_list and pa.types.is_fixed_size_binary(data_type) else data_type

    plain = _cast(
        rows, lambda data_type, is_in_list: data_type.storage_type if is_in_list and _is_uuid(data_type) else data_type
    )
    return _cast(plain, without_length)


def _is_uuid(data_type: pa.DataType) -> bool:
    return isinstance(data_type, pa.UuidType)


def _cast(rows: pa.Table, leaf: Callable[[pa.DataType, bool], pa.DataType]) -> pa.Table:
    """Return rows with other types at the leaves, each told whether it is in a list."""

    def changed(field: pa.Field, is_in_list: bool) -> pa.Field:
        data_type = field.type
        if pa.types.is_struct(data_type):
            return field.with_type(pa.struct([changed(child, is_in_list) for child in data_type]))
        if pa.types.is_map(data_type):
            return field.with_type(
                pa.map_(changed(data_type.key_field, is_in_list), changed(data_type.item_field, is_in_list))
            )
        if pa.types.is_list(data_type):
            return field.with_type(pa.list_(changed(data_type.value_field, True)))
        return field.with_type(leaf(data_type, is_in_list))

    for index, column in enumerate(rows.schema):
        made = changed(column, False)
        if made.type != column.type:
            rows = rows.set_column(index, made, rows.column(index).cast(made.type))
    return rows
