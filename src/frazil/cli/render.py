"""Results as text: a table for people, JSON or CSV for programs."""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import io
import json
import uuid
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pyarrow as pa

MAX_CELL = 80
"""Characters of a value in a table; JSON and CSV show values whole."""


class OutputFormat(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def render_rows(rows: pa.Table | Sequence[Mapping[str, Any]], names: Sequence[str], form: OutputFormat) -> str:
    """Return rows as text in the format asked for; `names` are the columns, in order."""
    found = rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)
    if form is OutputFormat.JSON:
        return json.dumps([{name: _plain(row.get(name)) for name in names} for row in found], indent=2)
    if form is OutputFormat.CSV:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row.get(name)) for name in names] for row in found)
        return text.getvalue().rstrip("\n")
    return _table([[_short(row.get(name)) for name in names] for row in found], names)


def _table(rows: list[list[str]], names: Sequence[str]) -> str:
    widths = [max([len(name), *(len(row[at]) for row in rows)]) for at, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
    lines.append("  ".join("─" * width for width in widths))
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = _cell(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes become base64, times ISO text, decimals text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | uuid.UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
