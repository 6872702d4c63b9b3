"""The conditions of `docs/conditions.md`, the table they are about, and which rows each keeps or why it is refused."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

PAGE = Path(__file__).parents[2] / "docs" / "conditions.md"
DDL = "id int, kind string, price decimal(9,2), at timestamptz, day date, score double, flag boolean"
_LINE = re.compile(r"\| (?:``` (`.+?`.*?) ```|`(.+?)`) \| ?(.*?) ?\|")


def page_rows() -> pa.Table:
    """Return the table of the page."""
    instants = [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 5, 30)]
    instants.append(datetime.datetime(1969, 12, 31, 23, 59, 59))
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "kind": ["a", "it's", "a\tb", None],
            "price": pa.array([Decimal("0.10"), Decimal("34.56"), Decimal("5.00"), None], pa.decimal128(9, 2)),
            "at": pa.array([*instants, None], pa.timestamp("us", "UTC")),
            "day": pa.array([instants[0].date(), datetime.date(2024, 2, 29), instants[2].date(), None]),
            "score": [0.5, float("nan"), -0.0, None],
            "flag": [True, False, None, True],
        }
    )


def page_conditions() -> tuple[list[tuple[str, set[int]]], list[tuple[str, str]]]:
    """Return the conditions that are accepted, with the rows they keep, and those refused, with the reason."""
    kept: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    head, tail = PAGE.read_text("utf-8").split("## What is refused here")
    conditions = re.sub(r"\| expression \|.*?\n\n", "", head, flags=re.DOTALL)
    for text, found in ((conditions, kept), (tail, refused)):
        for line in text.splitlines():
            match = _LINE.fullmatch(line.strip())
            if match is not None:
                found.append(((match[1] or match[2]).strip(), match[3]))
    return [(text, {int(one) for one in rows.split(",") if one.strip()}) for text, rows in kept], refused
