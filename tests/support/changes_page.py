"""The expressions of `docs/conditions.md`, the row they are about, and the text of their values."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

PAGE = Path(__file__).parents[2] / "docs" / "conditions.md"
DDL = "n int, price decimal(9,2), score double, kind string, day date, at timestamp"
KINDS = {
    "n": pa.int32(),
    "price": pa.decimal128(9, 2),
    "score": pa.float64(),
    "kind": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
}
ROW: dict[str, Any] = {
    "n": 7,
    "price": Decimal("0.10"),
    "score": 0.5,
    "kind": "it's",
    "day": datetime.date(2024, 2, 29),
    "at": datetime.datetime(2024, 2, 29, 5, 30, 1, 120000, tzinfo=datetime.UTC),
}
_LINE = re.compile(r"\| `(.+?)` \| (.*?) \|")


def page_expressions() -> list[tuple[str, str]]:
    """Return the expressions with the text of their values."""
    text = PAGE.read_text("utf-8").partition("| expression | value |")[2].partition("\n\n")[0]
    found = [match for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    return [(match[1].replace("\\|", "|"), match[2]) for match in found]


def page_functions() -> list[str]:
    """Return the functions that the page names."""
    text = re.search(r"Functions: `([^`]+)`", PAGE.read_text("utf-8"))
    assert text is not None
    return text[1].split()


def shown(value: Any) -> str:
    """Return a value as the page writes it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
