"""The caller's own data as tables of a query: Arrow, pandas, Polars, dicts, anything with Arrow's C stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.errors import InvalidRequestError


def frame_of(name: str, data: Any) -> pa.Table:
    """Return data as an Arrow table."""
    try:
        if isinstance(data, pa.Table):
            return data
        if isinstance(data, pa.RecordBatchReader):
            return data.read_all()
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a lazy Polars frame
            data = data.collect()
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
        if isinstance(data, Mapping):
            return pa.table(dict(data))
        if isinstance(data, Sequence) and not isinstance(data, str | bytes) and data and isinstance(data[0], Mapping):
            return pa.Table.from_pylist(list(data))
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"Cannot use {name!r} as a table: {error}") from error
    is_empty = isinstance(data, list | tuple) and not data
    raise InvalidRequestError(
        f"Cannot use {name!r} as a table: it is {'empty' if is_empty else f'of the type {type(data).__name__}'}",
        hint="Give Arrow, pandas, Polars, a dict of columns, or a list of dicts with at least one.",
    )
