"""Values as cells of a page: short text for any value."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

MAX_CELL: Final = 200
MAX_COLUMNS: Final = 100


def cell_text(value: Any) -> str | None:
    """Format a value as text; return None for null."""
    if value is None:
        return None
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value[:MAX_CELL].hex()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, Mapping | Sequence):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in list(value.items())[:MAX_CELL]}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:MAX_CELL]]
    return value if value is None or isinstance(value, bool | int | float | str) else _text(value)


def rows_of(table: pa.Table) -> list[list[str | None]]:
    """Format the rows of a table as texts; values without a Python equivalent are formatted by Arrow."""
    columns = [_column(table.column(index)) for index in range(table.num_columns)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else []


def _column(column: pa.ChunkedArray) -> list[str | None]:
    try:
        return [cell_text(value) for value in column.to_pylist()]
    except (ValueError, OverflowError, pa.ArrowException):
        # A time beyond the range of Python's calendar.
        return [cell_text(str(scalar)) for scalar in column]


def type_text(arrow_type: pa.DataType) -> str:
    """Return a short name of a column's type."""
    text = str(arrow_type)
    return text if len(text) <= 40 else text[:39] + "…"
