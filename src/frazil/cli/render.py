"""Format results as text: a table for users, JSON or CSV for programs.

JSON is a list of objects, one per row, without strings for nested values: structs, maps and reports are objects, lists
are lists. Values without a JSON form are strings: times in ISO 8601, bytes in base64, decimals and uuids in their usual
notation, and `NaN`, `Infinity`, `-Infinity`.
"""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import io
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from frazil.visible_text import visible

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CELL = 80
"""The most characters of a value in a table; JSON and CSV contain whole values."""
MIN_CELL = 12
"""The minimum width of a column if the terminal is too narrow for all of them."""


class OutputFormat(StrEnum):
    """The output format of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Trust(StrEnum):
    """Whether the lake's content is trusted."""

    ALL = "all"
    NONE = "none"


def render_rows(
    rows: pa.Table | Sequence[Mapping[str, Any]],
    names: Sequence[str],
    form: OutputFormat,
    *,
    width: int | None = None,
    has_count: bool = True,
) -> str:
    """Format rows in the requested format; `names` are the columns, in order.

    A table that is wider than a terminal of `width` gets narrower columns, or one line per value.
    """
    records: Sequence[Mapping[str, Any]] = rows if isinstance(rows, Sequence) else _values_of(rows)
    if form is OutputFormat.JSON:
        return json.dumps([{name: _plain(row.get(name)) for name in names} for row in records], indent=2)
    if form is OutputFormat.CSV:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([visible(name, keeps_lines=True) for name in names])
        writer.writerows([visible(_cell(row.get(name)), keeps_lines=True) for name in names] for row in records)
        return text.getvalue().rstrip("\n")
    cells = [[_short(row.get(name)) for name in names] for row in records]
    numeric = [bool(records) and all(_is_number(row.get(name)) for row in records) for name in names]
    lines = _table(cells, names, numeric, width)
    if has_count:
        lines.append(f"({len(records):,} row{'' if len(records) == 1 else 's'})")
    return "\n".join(lines)


def render_more(rows: pa.RecordBatch, form: OutputFormat, *, width: int | None = None, is_first: bool = True) -> str:
    """Format rows that more follow: JSON as one object per line, others with column names above the first rows."""
    names = rows.schema.names
    if form is OutputFormat.JSON:
        records = _values_of(rows)
        return "\n".join(json.dumps({name: _plain(row.get(name)) for name in names}) for row in records)
    text = render_rows(_values_of(rows), names, form, width=width, has_count=False)
    if form is OutputFormat.CSV and not is_first:
        return text.partition("\n")[2]
    return text


def _values_of(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    columns = {name: _column_values(rows.column(index)) for index, name in enumerate(rows.schema.names)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _column_values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, TypeError):
        # Repeated keys, or keys that Python cannot hash: return a list of pairs.
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:
    """Return a value as a Python object, or as text if Python cannot represent it."""
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError, TypeError):
        # The stored value with its type: `253402300800000000 (timestamp[us])`.
        return f"{getattr(scalar, 'value', 'a value that cannot be shown')} ({scalar.type})"


def show_size(number: int) -> str:
    """Format a number of bytes for display."""
    if number < 1000:
        return f"{number} B"
    size = float(number)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _table(rows: list[list[str]], names: Sequence[str], numeric: Sequence[bool], width: int | None) -> list[str]:
    headers = [visible(name) for name in names]
    widths = [max([columns_of(head), *(columns_of(row[index]) for row in rows)]) for index, head in enumerate(headers)]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        narrowed = _narrow(widths, headers, width)
        if narrowed is None:
            return _records(rows, headers, width)
        widths = narrowed
    lines = ["  ".join(fit(head, size, right) for head, size, right in zip(headers, widths, numeric, strict=True))]
    lines.append("  ".join("─" * size for size in widths))
    lines += ["  ".join(fit(*cell) for cell in zip(row, widths, numeric, strict=True)) for row in rows]
    return [line.rstrip() for line in lines]


def _narrow(widths: Sequence[int], headers: Sequence[str], width: int) -> list[int] | None:
    """Shrink the widest columns until all fit; return None if they would be too narrow to read."""
    minimums = [min(size, max(columns_of(head), MIN_CELL)) for size, head in zip(widths, headers, strict=True)]
    free = width - 2 * (len(widths) - 1)
    if sum(minimums) > free:
        return None
    narrowed = list(widths)
    while sum(narrowed) > free:
        position = max(
            (index for index in range(len(narrowed)) if narrowed[index] > minimums[index]),
            key=lambda column: narrowed[column],
        )
        narrowed[position] -= 1
    return narrowed


def _records(rows: list[list[str]], headers: Sequence[str], width: int) -> list[str]:
    """Format one value per line, for rows of many columns."""
    size = max(columns_of(head) for head in headers)
    lines = []
    for number, row in enumerate(rows, 1):
        lines.append(f"─ row {number} ".ljust(min(width, 40), "─"))
        lines += [
            f"{fit(head, size)}  {fit(cell, max(width - size - 2, MIN_CELL)).rstrip()}"
            for head, cell in zip(headers, row, strict=True)
        ]
    return lines


def fit(text: str, width: int, is_right: bool = False) -> str:
    """Fit a text to a column: padded, or truncated with an ellipsis."""
    size = columns_of(text)
    if size > width:
        truncated = text
        while columns_of(truncated) > width - 1:
            truncated = truncated[:-1]
        text, size = f"{truncated}…", columns_of(truncated) + 1
    space = " " * (width - size)
    return space + text if is_right else text + space


def columns_of(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool))


def _short(value: Any) -> str:
    text = "NULL" if value is None else visible(_cell(value))
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value in JSON form."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _INFINITIES.get(value, "NaN")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_key(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Set):
        return sorted((_plain(item) for item in value), key=str)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in fields(value) if not field.name.startswith("_")
        }
    return str(value)


_INFINITIES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _key(value: Any) -> str:
    """Return the key of a map in JSON form: a string."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)
