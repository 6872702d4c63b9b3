"""Results as text: a table for people, JSON or CSV for programs.

JSON is a list of objects, one for each row, and JSON all the way down: structs, maps and reports are objects, lists are
lists. What JSON has no form for is text: times in ISO 8601, bytes in base64, decimals and uuids as they are written,
and `NaN`, `Infinity`, `-Infinity`.
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
"""Characters of a value in a table; JSON and CSV show values whole."""
MIN_CELL = 12
"""How narrow a column may get where a terminal is too narrow for all of them."""


class OutputFormat(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Trust(StrEnum):
    """Whether what is in the lake is trusted."""

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
    """Return rows as text in the format asked for; `names` are the columns, in order.

    A table that is wider than a terminal of `width` gets narrower columns, or a line for each value.
    """
    found: Sequence[Mapping[str, Any]] = rows if isinstance(rows, Sequence) else _values_of(rows)
    if form is OutputFormat.JSON:
        return json.dumps([{name: _plain(row.get(name)) for name in names} for row in found], indent=2)
    if form is OutputFormat.CSV:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([visible(name, keeps_lines=True) for name in names])
        writer.writerows([visible(_cell(row.get(name)), keeps_lines=True) for name in names] for row in found)
        return text.getvalue().rstrip("\n")
    cells = [[_short(row.get(name)) for name in names] for row in found]
    numeric = [bool(found) and all(_is_number(row.get(name)) for row in found) for name in names]
    lines = _table(cells, names, numeric, width)
    if has_count:
        lines.append(f"({len(found):,} row{'' if len(found) == 1 else 's'})")
    return "\n".join(lines)


def render_more(rows: pa.RecordBatch, form: OutputFormat, *, width: int | None = None, is_first: bool = True) -> str:
    """Return rows of which more come later: a line of JSON each, or with the names of columns above the first ones."""
    names = rows.schema.names
    if form is OutputFormat.JSON:
        found = _values_of(rows)
        return "\n".join(json.dumps({name: _plain(row.get(name)) for name in names}) for row in found)
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
        # Keys that are there twice, or that Python takes for no key: a list of pairs.
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:
    """Return a value as Python has it, or as text where Python has no such date or time."""
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError, TypeError):
        # What it is stored as, with its type: `253402300800000000 (timestamp[us])`.
        return f"{getattr(scalar, 'value', 'a value that cannot be shown')} ({scalar.type})"


def show_size(number: int) -> str:
    """Return a number of bytes as people read it."""
    if number < 1000:
        return f"{number} B"
    size = float(number)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _table(rows: list[list[str]], names: Sequence[str], numeric: Sequence[bool], width: int | None) -> list[str]:
    heads = [visible(name) for name in names]
    widths = [max([columns_of(head), *(columns_of(row[index]) for row in rows)]) for index, head in enumerate(heads)]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        narrowed = _narrow(widths, heads, width)
        if narrowed is None:
            return _records(rows, heads, width)
        widths = narrowed
    lines = ["  ".join(fit(head, size, right) for head, size, right in zip(heads, widths, numeric, strict=True))]
    lines.append("  ".join("─" * size for size in widths))
    lines += ["  ".join(fit(*cell) for cell in zip(row, widths, numeric, strict=True)) for row in rows]
    return [line.rstrip() for line in lines]


def _narrow(widths: Sequence[int], heads: Sequence[str], width: int) -> list[int] | None:
    """Take from the widest columns until all fit; None where they would get too narrow to be read."""
    least = [min(size, max(columns_of(head), MIN_CELL)) for size, head in zip(widths, heads, strict=True)]
    free = width - 2 * (len(widths) - 1)
    if sum(least) > free:
        return None
    narrowed = list(widths)
    while sum(narrowed) > free:
        position = max(
            (index for index in range(len(narrowed)) if narrowed[index] > least[index]),
            key=lambda column: narrowed[column],
        )
        narrowed[position] -= 1
    return narrowed


def _records(rows: list[list[str]], heads: Sequence[str], width: int) -> list[str]:
    """Show one value in a line, for rows of many columns."""
    size = max(columns_of(head) for head in heads)
    lines = []
    for number, row in enumerate(rows, 1):
        lines.append(f"─ row {number} ".ljust(min(width, 40), "─"))
        lines += [
            f"{fit(head, size)}  {fit(cell, max(width - size - 2, MIN_CELL)).rstrip()}"
            for head, cell in zip(heads, row, strict=True)
        ]
    return lines


def fit(text: str, width: int, is_right: bool = False) -> str:
    """Return a text in a column: filled up, or cut with an ellipsis."""
    size = columns_of(text)
    if size > width:
        kept = text
        while columns_of(kept) > width - 1:
            kept = kept[:-1]
        text, size = f"{kept}…", columns_of(kept) + 1
    space = " " * (width - size)
    return space + text if is_right else text + space


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
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
    """Return a value as JSON has it."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _NO_NUMBERS.get(value, "NaN")
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


_NO_NUMBERS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _key(value: Any) -> str:
    """Return the key of a map as JSON has it: text."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)
