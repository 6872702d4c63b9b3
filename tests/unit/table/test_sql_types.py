"""The table of types in docs/local-sql.md: what DuckDB shows of each column, and what comes back in Arrow."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil

PAGE = Path(__file__).parents[3] / "docs" / "local-sql.md"
ROWS = re.findall(r"^\| `([^`]+)` \| ([A-Z].*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1],
    "float": [-0.0, math.inf, math.nan],
    "double": [-0.0, -math.inf, math.nan, 5e-324],
    "decimal(38,10)": [Decimal("-1234567890123456789012345678.0123456789")],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "time": [datetime.time(23, 59, 59, 999999)],
    "timestamp": [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "timestamptz": [
        datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, datetime.UTC),
    ],
    "timestamp_ns": [pa.scalar(1_700_000_000_123_456_789, pa.timestamp("ns"))],
    "timestamptz_ns": [pa.scalar(-1, pa.timestamp("ns", "UTC"))],
    "string": ["", "é\0日本"],
    "uuid": [uuid.UUID(int=2**128 - 1)],
    "fixed(3)": [b"\0a\xff"],
    "binary": [b"", b"\0\xff"],
    "struct<a: int>": [{"a": 1}, None],
    "list<int>": [[1, None], []],
    "map<string, int>": [[("k", 1)], []],
}


def test_page_has_every_type() -> None:
    assert {name for name, _, _ in ROWS} == {*VALUES, "variant", "geometry"}


@pytest.mark.parametrize("catalog", ["memory", "sqlite"])
@pytest.mark.parametrize(("column", "in_duckdb", "in_arrow"), ROWS, ids=[name for name, _, _ in ROWS])
def test_values_of_every_type_round_trip_exactly(
    tmp_path: Path, column: str, in_duckdb: str, in_arrow: str, catalog: str
) -> None:
    lake = frazil.connect("memory:", catalog="memory") if catalog == "memory" else frazil.connect(tmp_path)
    with lake:
        table = lake.create_table("db.t", f"id int, x {column}", format_version=3)
        if column not in ("variant", "geometry"):
            data_type = table.scan(columns=["x"]).arrow_schema.field(0).type
            values = list(VALUES[column])
            table.append(
                pa.table(
                    {"id": pa.array(range(len(values) + 1), pa.int32()), "x": pa.array([*values, None], data_type)}
                )
            )
        assert lake.sql("describe select x from db.t").to_pylist()[0]["column_type"] == in_duckdb
        result = lake.sql("select x from db.t order by id")
        assert str(result.schema.field("x").type) == in_arrow
        scan = table.scan(columns=["id", "x"]).to_arrow().sort_by("id")["x"].to_pylist()
        if not column.endswith("_ns"):
            assert repr(result.column("x").to_pylist()) == repr(scan)
        else:
            assert [value.value for value in result.column("x").combine_chunks()][:-1] == [VALUES[column][0].value]
