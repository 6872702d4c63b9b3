"""Expressions in this process: values and types as Spark has them, what is an error, and what is left to Spark.

`tests/spark/test_local_expressions.py` holds random ones against Spark itself.
"""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FieldNotFoundError, FrazilError, InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.evaluate import condition  # noqa: F401 - it fills the table of functions
from frazil.evaluate.compile_expression import SOURCE, TARGET, Compiler, Rows
from frazil.evaluate.sql_types import shown_name
from frazil.expr.parse import parse_expression
from tests.support.expression_texts import COLUMNS, ROWS, make_expression

D = Decimal


def compute(text: str, rows: list[dict[str, Any]] = ROWS[:1]) -> tuple[str, list[Any]]:
    found = arrays(text, rows)
    return shown_name(found.type), found.to_pylist()


def arrays(text: str, rows: list[dict[str, Any]]) -> pa.Array:
    made = Compiler({TARGET: COLUMNS}).compile(parse_expression(text))
    columns = {(TARGET, name): pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()}
    found = made.array(Rows(columns, len(rows)))
    assert found.type == made.data_type
    return found


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1 + 1", "int", 2),
        ("l + 1", "bigint", 6),
        ("7 / 2", "double", 3.5),
        ("-7 % 3", "int", -1),
        ("-7 div 2", "bigint", -3),
        ("p + 1", "decimal(10,2)", D("1.10")),
        ("p * q", "decimal(30,6)", D("0.300010")),
        ("1.00 / 3", "decimal(7,6)", D("0.333333")),
        ("2 + 3 * 4", "int", 14),
        ("'a' || 'b' || s", "string", "abab"),
        ("upper('straße')", "string", "STRASSE"),
        ("substring('abcdef', -3, 2)", "string", "de"),
        ("substring('abc', 0, 2)", "string", "ab"),
        ("case i when 0 then 'none' else 'some' end", "string", "none"),
        ("coalesce(null, i, 5)", "int", 0),
        ("nullif(i, 0)", "int", None),
        ("cast('  12 ' as int)", "int", 12),
        ("'12'::bigint", "bigint", 12),
        ("cast(' -Infinity' as double)", "double", -math.inf),
        ("cast('INF' as float)", "float", math.inf),
        ("isnan(cast('NaN' as double))", "boolean", True),
        ("cast(1.5 as decimal(2,0))", "decimal(2,0)", D(2)),
        ("cast(-1.9D as int)", "int", -1),
        ("round(2.5, 0)", "decimal(2,0)", D(3)),
        ("round(-2.5D, 0)", "double", -3.0),
        ("q / null", "decimal(38,18)", None),
        ("round(q / null, 0)", "decimal(21,0)", None),
        ("null * p", "decimal(19,4)", None),
        ("null / q", "double", None),
        ("null / 2", "double", None),
        ("cast(ts as string)", "string", "2024-02-29 05:30:01.12"),
        ("cast(ts as date)", "date", datetime.date(2024, 2, 29)),
        ("date_add(dt, 1)", "date", datetime.date(2024, 3, 1)),
        ("year(dt)", "int", 2024),
        ("s like 'a_'", "boolean", True),
        ("s like '100!%' escape '!'", "boolean", False),
        ("i between -1 and 1", "boolean", True),
        ("i in (1, null)", "boolean", None),
        ("i is distinct from null", "boolean", True),
        ("greatest(1, null, 3)", "int", 3),
        ("cast('NaN' as string) = 'NaN'", "boolean", True),
    ],
)
def test_values_and_types_equal_spark(text: str, kind: str, value: Any) -> None:
    assert compute(text) == (kind, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nullif(i, 0) < 9223372036854775808", True),
        ("nullif(i, 0) >= 9223372036854775807.5", False),
        ("-9223372036854775809 <= nullif(l, 5)", True),
        ("not (nullif(l, 5) < -9223372036854775809)", True),
        ("nullif(i, 0) < 9223372036854775807", None),
        ("nullif(i, 0) = 9223372036854775808", None),
        ("nullif(l, 5) between -9223372036854775809 and 9223372036854775808", True),
    ],
)
def test_null_beside_an_out_of_range_number_is_not_evaluated(text: str, value: bool | None) -> None:
    assert compute(text) == ("boolean", [value])


@pytest.mark.parametrize("text", ["round(-0.3D, 0)", "round(-0.0D)", "round(cast(-0.04 as float), 1)"])
def test_number_rounded_to_zero_has_no_sign(text: str) -> None:
    assert [str(one) for one in compute(text)[1]] == ["0.0"]


def test_nan_equals_itself_and_exceeds_every_number() -> None:
    nan = [{**ROWS[0], "d": math.nan}]
    assert compute("d = d", nan)[1] == [True]
    assert compute("d > 1e308", nan)[1] == [True]
    assert compute("d <= 1e308", nan)[1] == [False]
    assert compute("least(d, 1D)", nan)[1] == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        "2147483647 + 1",
        "9223372036854775807L * 2",
        "-(-9223372036854775808L)",
        "1 / 0",
        "1 % 0",
        "1.0 / 0",
        "cast('x' as int)",
        "cast(300 as tinyint)",
        "cast(1e20 as bigint)",
        "cast(12345 as decimal(3,0))",
        "cast('maybe' as boolean)",
    ],
)
def test_overflow_is_an_error(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot"):
        compute(text)


@pytest.mark.parametrize(
    "text",
    [
        "i <> 0 and 10 / i > 1",
        "i = 0 or 10 / i > 1",
        "case when i = 0 then 0 else 10 / i end",
        "if(i = 0, 0, 10 / i)",
        "coalesce(i, 1 / 0)",
        "nvl2(i, i, cast('x' as int))",
    ],
)
def test_invalid_sql_expressions_are_refused(text: str) -> None:
    found = compute(text, [{**ROWS[0], "i": one} for one in (0, 5, 0)])[1]
    assert len(found) == 3


@pytest.mark.parametrize(
    "text",
    [
        "soundex(s)",
        "array(1, 2)",
        "cast(d as string)",
        "s + 1",
        "s = 5",
        "_file",
        "d & 1",
        "s rlike '(?i)a'",
        "s rlike 'a++'",
        "s rlike s",
        "s like any ('a', 'b')",
        "date_trunc(s, ts)",
        "sha2(s, 100)",
        "power(d, 2)",
        "interval 1 day",
    ],
)
def test_unsupported_expression_suggests_spark(text: str) -> None:
    with pytest.raises((UnsupportedError, TextSyntaxError)) as caught:
        compute(text)
    assert 'engine="spark"' in str(caught.value)


def test_names_resolve_in_any_case_on_their_side() -> None:
    kinds = {TARGET: {"Id": pa.int32(), "v": pa.int32()}, SOURCE: {"ID": pa.int32(), "w": pa.int32()}}
    rows = Rows({(side, name): pa.array([at]) for at, side in enumerate(kinds) for name in kinds[side]}, 1)

    def one(text: str) -> Any:
        return Compiler(kinds).compile(parse_expression(text)).array(rows).to_pylist()[0]

    assert (one("target.id"), one("source.id"), one("V"), one("w")) == (0, 1, 0, 1)
    with pytest.raises(InvalidRequestError, match=r"both sides.*\n.*target\.id"):
        one("id")
    with pytest.raises(FieldNotFoundError, match="nothing"):
        one("nothing")


def test_deeply_nested_text_is_refused_in_bounded_time() -> None:
    for text in ("(" * 5000 + "1" + ")" * 5000, "not " * 5000 + "true", "- " * 5000 + "1", "1" + " + 1" * 5000):
        with pytest.raises(UnsupportedError):
            parse_expression(text)


def test_condition_with_many_parts_is_evaluated() -> None:
    assert compute(" or ".join(f"l = {at}" for at in range(3000)))[1] == [True]
    assert compute(" and ".join(f"l <> {at}" for at in range(6, 3000)))[1] == [True]


@pytest.mark.parametrize("seed", range(20))
def test_random_expression_is_evaluated_or_refused_with_a_frazil_error(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        text = make_expression(chance)
        try:
            found = arrays(text, ROWS)
        except FrazilError:
            continue
        assert len(found) == len(ROWS)


def test_concat_ws_of_rows_without_any_text_is_empty() -> None:
    with frazil.connect("memory:") as lake:
        table = lake.create_table("db.w", "id int, s string, o string")
        table.append([{"id": 1, "s": None}, {"id": 2, "s": "a"}, {"id": 3, "s": "b"}])
        table.update({"o": "concat_ws(',', s, s)"})
        assert table.scan().to_arrow()["o"].to_pylist() == ["", "a,a", "b,b"]
        table.update({"o": "concat_ws(null, s)"})
        assert table.scan().to_arrow()["o"].to_pylist() == [None] * 3
        table.delete("concat_ws(',', s) = 'b'")
        assert table.scan("concat_ws(',', s) = ''").to_arrow()["id"].to_pylist() == [1]
        assert table.scan().count() == 2
