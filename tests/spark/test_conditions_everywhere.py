"""A condition chooses the same rows wherever it is taken.

The rows of a scan are those that Spark's `where` keeps, and all rows without those that a delete leaves. A file that
holds a row of the answer is planned. Conditions are random expressions, most of which planning cannot decide.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import frazil
from frazil.errors import TextSyntaxError, UnsupportedError
from frazil.table.table import Table
from tests.support.expression_texts import COLUMNS, DDL, ROWS, make_expression

pytestmark = pytest.mark.usefixtures("utc")
TESTS = ["i = 12", "i > 0", "l < 5", "s in ('ab', '')", "s like 'a%'", "b", "i is null", "d > 0.1D", "p <= 99.99"]


def make_condition(chance: random.Random) -> str:
    """Return a random condition: tests that prune, tests of rows, and both."""
    parts = [
        chance.choice(TESTS) if chance.random() < 0.4 else f"({make_expression(chance, 'truth')})"
        for _ in range(chance.randint(1, 3))
    ]
    text = chance.choice([" and ", " or "]).join(parts)
    return f"not ({text})" if chance.random() < 0.25 else text


def make_table(lake: frazil.Lake) -> Table:
    """Return a table of a file for each row."""
    table = lake.create_table("db.everywhere", f"rid int, {DDL}".replace("ts timestamp", "ts timestamptz"))
    schema = pa.schema([("rid", pa.int32()), *COLUMNS.items()])
    for number, row in enumerate(ROWS):
        table.append(pa.Table.from_pylist([{"rid": number, **row}], schema=schema))
    return table


def rows_of_spark(plain: DataFrame, text: str) -> set[int] | None:
    """Return the rows that Spark keeps, or None if it cannot compute the condition."""
    try:
        return {row["rid"] for row in plain.where(text).select("rid").collect()}
    except PySparkException:
        return None


def rids(rows: Any) -> set[int]:
    return set(rows["rid"].to_pylist())


def check(spark: SparkSession, lake: frazil.Lake, seed: int, count: int) -> None:
    chance = random.Random(seed)
    table = make_table(lake)
    start = table.current_snapshot
    assert start is not None
    plain = table.scan().to_spark(spark).localCheckpoint()
    everything = set(range(len(ROWS)))
    files = {row["rid"]: row["_file"] for row in table.scan(columns=["rid", "_file"]).to_arrow().to_pylist()}
    computed = 0
    for number in range(count):
        text = make_condition(chance)
        try:
            scan = table.scan(text, columns=["rid"])
            found = rids(scan.to_arrow())
        except (UnsupportedError, TextSyntaxError):
            continue
        except frazil.InvalidRequestError:
            continue  # a row for which Spark fails as well, unless its `where` does not come to it
        wanted = rows_of_spark(plain, text)
        if wanted is None:
            continue
        computed += 1
        assert found == wanted, text
        assert scan.count() == len(wanted), text
        planned = {task.data_file.file_path for task in scan.plan().iter_tasks()}
        assert {files[rid] for rid in wanted} <= planned, text
        if number % 3 == 0:
            table.delete(text, engine="local")
            assert rids(table.scan().to_arrow()) == everything - wanted, text
            table.rollback_to(start.snapshot_id)
        if number % 10 == 0:
            assert {row["rid"] for row in scan.to_spark(spark).collect()} == wanted, f"{text}, on Spark"
    assert computed > count / 3


@pytest.mark.extended
def test_condition_chooses_the_same_rows_everywhere(spark: SparkSession, lake: frazil.Lake) -> None:
    check(spark, lake, 0, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_conditions_choose_the_same_rows_everywhere(spark: SparkSession, lake: frazil.Lake, seed: int) -> None:
    check(spark, lake, seed, 300)


def test_condition_of_rows_is_tested_by_spark(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id int, a int, kind string, st struct<x: int, y: string>")
    rows = [(1, 5, "abc", (1, "q")), (2, 2, "de", (2, "r")), (3, 1, "fgh", None), (None, 7, None, (4, "s"))]
    table.append(spark.createDataFrame(rows, "id int, a int, kind string, st struct<x: int, y: string>"))
    for where, wanted in (("length(kind) = 3 and id > a", [3]), ("id in (1, a)", [1, 2]), ("target.id > a", [3])):
        frame = table.scan(where, columns=["id"]).to_spark(spark)
        assert frame.columns == ["id"]
        assert sorted(row["id"] for row in frame.collect()) == wanted
    part = table.scan("length(st.y) = id", columns=["st.x"]).to_spark(spark)
    assert [row.asDict(recursive=True) for row in part.collect()] == [{"st": {"x": 1}}]
