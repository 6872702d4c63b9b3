"""Expressions mean in this process what they mean on Spark: values, types, and which of them are errors."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from frazil.errors import FrazilError, TextSyntaxError, UnsupportedError
from frazil.evaluate.compile_expression import TARGET, Compiler, Rows
from frazil.evaluate.condition import Session
from frazil.evaluate.sql_types import shown_name
from frazil.expr.parse import parse_expression
from tests.support import changes_page
from tests.support.expression_texts import COLUMNS, DDL, ROWS, TEXTS, make_expression

pytestmark = pytest.mark.usefixtures("utc")
FAILED = "failed"


def compute_here(text: str, rows: list[dict[str, Any]]) -> tuple[str, Any] | None:
    """Return the type and the values of an expression, or that it failed; None where it is left to Spark."""
    compiler = Compiler({TARGET: COLUMNS})
    try:
        made = compiler.compile(parse_expression(text))
    except (UnsupportedError, TextSyntaxError):
        return None
    columns = {(TARGET, name): pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()}
    try:
        found = values_of(made.array(Rows(columns, len(rows))))
    except UnsupportedError:
        return None
    except FrazilError:
        return FAILED, None
    return shown_name(made.data_type), found


def compute_there(spark: SparkSession, texts: list[str], rows: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the same of Spark: all texts in one query, or, where one of them fails, in two, and so on."""
    frame = spark.createDataFrame([tuple(row[name] for name in COLUMNS) for row in rows], DDL).coalesce(1)
    try:
        chosen = frame.selectExpr(*(f"{text} as x{at}" for at, text in enumerate(texts)))
        table = chosen.toArrow()
    except (PySparkException, pa.ArrowException):
        if len(texts) == 1:
            return [(FAILED, None)]
        half = len(texts) // 2
        return compute_there(spark, texts[:half], rows) + compute_there(spark, texts[half:], rows)
    kinds = [one.dataType for one in chosen.schema]
    names = ["void" if isinstance(one, st.NullType) else one.simpleString() for one in kinds]
    return [(name, values_of(table.column(at))) for at, name in enumerate(names)]


def values_of(column: Any) -> list[Any]:
    # Python's dates end long before Spark's.
    found = column.cast(pa.int32()) if pa.types.is_date(column.type) else column
    return [plain(one) for one in found.to_pylist()]


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.timestamp()
    return value


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_random_expressions_equal_spark(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    wrong, computed, failed, count = [], 0, 0, 0
    for _ in range(10):
        rows = chance.choice([ROWS[:3], ROWS[:4], [chance.choice(ROWS)]])
        texts = [make_expression(chance) for _ in range(16)]
        count += len(texts)
        here = {text: found for text in texts if (found := compute_here(text, rows)) is not None}
        there = dict(zip(here, compute_there(spark, list(here), rows), strict=True))
        computed += len(here)
        failed += sum(one[0] == FAILED for one in there.values())
        wrong += [(text, here[text], there[text]) for text in here if here[text] != there[text]]
    assert not wrong, f"{len(wrong)} of {computed}: {wrong}"
    assert computed > 0.6 * count
    assert failed < 0.7 * computed


@pytest.mark.extended
def test_functions_equal_spark_in_edge_cases(spark: SparkSession) -> None:
    wrong: list[Any] = []
    for rows in (ROWS[:1], ROWS[1:2], ROWS[2:4], ROWS[4:]):
        here = {text: found for text in TEXTS if (found := compute_here(text, rows)) is not None}
        there = dict(zip(here, compute_there(spark, list(here), rows), strict=True))
        wrong += [(text, here[text], there[text]) for text in here if here[text] != there[text]]
        assert len(here) > 0.97 * len(TEXTS), set(TEXTS) - set(here)
    assert not wrong, "\n".join(map(str, wrong))


def test_documented_expressions_have_their_values(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(changes_page.ROW.values())], changes_page.DDL)
    expressions = changes_page.page_expressions()
    row = frame.selectExpr(*(f"{text} as x{at}" for at, (text, _) in enumerate(expressions))).toArrow().to_pylist()[0]
    assert [changes_page.shown(one) for one in row.values()] == [value for _, value in expressions]


def test_session_time_zone_decides_whether_times_are_utc() -> None:
    compiler = Compiler({TARGET: COLUMNS})
    compiler.compile(parse_expression("ts > timestamp '2024-01-01 00:00:00'"))
    assert compiler.is_zoned
    with pytest.raises(UnsupportedError, match="time zone"):
        Session(is_utc=False).check(compiler)
