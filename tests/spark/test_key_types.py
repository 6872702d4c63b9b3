"""Keys of different types meet the same rows in a merge on both engines."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.errors import FrazilError, UnsupportedError

pytestmark = pytest.mark.usefixtures("utc")
MOMENT = datetime.datetime(2024, 2, 29)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, 1, -7, 2**31 - 1, 2**24 + 1, None]),
    "bigint": (pa.int64(), [0, 1, 2**31 - 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [0.0, 1.0, -7.0, 0.1, 2.0**24, 2.0**63, math.nan, None]),
    "double": (pa.float64(), [-0.0, 1.0, -7.0, 0.1, 0.5, 2.0**53, 2.0**63, math.nan, math.inf, None]),
    "decimal(20, 2)": (pa.decimal128(20, 2), [*map(Decimal, ("0", "1.00", "0.50", "0.10", "9007199254740993")), None]),
    "string": (pa.string(), ["", "1", "a", "2024-02-29", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "binary": (pa.binary(), [b"", b"a", b"1", None]),
    "date": (pa.date32(), [MOMENT.date(), datetime.date(1969, 12, 31), None]),
    "timestamptz": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=datetime.UTC), None]),
    "timestamp": (pa.timestamp("us"), [MOMENT, MOMENT.replace(hour=1), None]),
}
NUMBERS = ["int", "bigint", "float", "double", "decimal(20, 2)"]
MOMENTS = ["date", "timestamptz", "timestamp"]
PAIRS = [
    *product(NUMBERS, NUMBERS),
    *product(MOMENTS, MOMENTS),
    *((one, one) for one in ("string", "boolean", "binary")),
]
LEFT_TO_SPARK = [
    ("bigint", "string"),
    ("string", "int"),
    ("date", "string"),
    ("boolean", "string"),
    ("binary", "string"),
]


def changed(table: frazil.Table, source: pa.Table, engine: Any, operator: str) -> Any:
    """Return which rows of the table meet which key of the source, or that this fails."""
    branch = f"{engine}-{'safe' if operator == '<=>' else 'plain'}"
    merge = table.merge(source, on=f"target.k {operator} source.k", engine=engine, branch=branch)
    merge = (
        merge.when_matched().update({"met": "source.at"}).when_not_matched().insert({"id": "-1", "met": "source.at"})
    )
    try:
        merge.execute()
    except UnsupportedError:
        return None
    except FrazilError:
        return "failed"
    rows = table.refresh().scan(ref=branch).to_arrow().to_pylist()
    return sorted((row["id"], row["met"]) for row in rows if row["met"] is not None)


@pytest.mark.extended
@pytest.mark.parametrize("operator", ["=", "<=>"])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_keys_of_two_types_compare_alike_on_both_engines(
    spark: SparkSession, lake: frazil.Lake, ours: str, theirs: str, operator: str
) -> None:
    table, source = table_and_source(lake, ours, theirs)
    here = changed(table, source, "local", operator)
    assert here is not None
    assert here == changed(table, source, "spark", operator)


@pytest.mark.parametrize(("ours", "theirs"), LEFT_TO_SPARK)
def test_keys_only_spark_can_compare_run_on_spark(lake: frazil.Lake, ours: str, theirs: str) -> None:
    table, source = table_and_source(lake, ours, theirs)
    assert changed(table, source, "local", "=") is None


def table_and_source(lake: frazil.Lake, ours: str, theirs: str) -> tuple[frazil.Table, pa.Table]:
    table = lake.create_table("db.t", f"id int, met int, k {ours}")
    kind, values = KEYS[ours]
    rows = {"id": pa.array(range(len(values)), pa.int32()), "met": pa.nulls(len(values), pa.int32())}
    table.append(pa.table({**rows, "k": pa.array(values, kind)}))
    kind, values = KEYS[theirs]
    return table, pa.table({"at": pa.array(range(len(values)), pa.int32()), "k": pa.array(values, kind)})
