"""One language of conditions: whatever text `scan()` takes keeps the rows that Spark keeps, and so does every verb.

Random conditions over awkward rows are computed by Spark on a plain frame, many in one query; scans here and on Spark,
deletes by metadata and on Spark, updates, merges, overwrites and rewrites must agree.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.errors import FrazilError
from frazil.expr.bind import bind
from frazil.expr.extract import parse_predicate
from frazil.spark.read.predicates import row_filter
from frazil.spec.parse_type import parse_schema
from frazil.table.table import Table
from tests.spark.settings import settings
from tests.support import conditions_page
from tests.support.condition_texts import NUMBERS, STRINGS

DDL = (
    "rid int, i int, l long, f float, d double, p decimal(9,2), q decimal(20,4), s string, b boolean, x binary, "
    "dt date, ts timestamptz, ntz timestamp, st struct<a: int>"
)
NAN, INFINITY = float("nan"), float("inf")
TINY = 1.401298464324817e-45
VALUES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 5, 2**31 - 1, -(2**31), 16777217],
    "l": [0, 5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), -5],
    "f": [0.0, -0.0, 0.10000000149011612, 0.5, NAN, INFINITY, -INFINITY, 3.4028234663852886e38, TINY, -1.5],
    "d": [0.0, -0.0, 0.1, 0.5, NAN, INFINITY, -INFINITY, 1.7976931348623157e308, 5e-324, -1.5],
    "p": [Decimal("0.00"), Decimal("0.10"), Decimal("34.56"), Decimal("9999999.99"), Decimal("-0.30"), Decimal("5.00")],
    "q": [Decimal("0.0000"), Decimal("0.1000"), Decimal("9999999999999999.9999"), Decimal("-5.0001")],
    "s": ["", "a", "A", "ab", "a\tb", r"a\tb", "it's", 'say "a"', "\\", "%", r"\%", "5", "é", "\U0001f600", "a\0b"],
    "b": [True, False],
    "x": [b"", b"a", b"\0", b"\xff", b"ab"],
    "dt": [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    "ts": [
        datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, 5, 30, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC),
    ],
    "ntz": [
        datetime.datetime(1970, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(2024, 2, 29, 5, 30),
        datetime.datetime(2024, 2, 29),
    ],
    "st.a": [0, 5, -5],
}  # fmt: skip
WHOLE = [
    "0",
    "-0",
    "5",
    "-5",
    "5L",
    "1",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "16777217",
    "+1",
    "7S",
]
EXACT = [
    "0.1",
    "0.10",
    "34.56",
    "0.5",
    "-0.30",
    "5.0",
    ".5",
    "5.",
    "34.560",
    "0.005",
    "1e1BD",
    "99999999.999",
    "-5.0001",
]
BINARY = ["0.1D", "0.1F", "34.56D", "1e3", "5D", "-0.0D", "0.5F", "1e300", "1e-60", "5e-324", "1e39", "0.0F", "-1.5e0"]
TEXTS = [
    r"'a\tb'",
    r"'a\\tb'",
    r"r'a\tb'",
    "'it''s'",
    r"'it\'s'",
    r"'say \"a\"'",
    "'a'",
    "''",
    r"'\\'",
    r"'%'",
    r"'\%'",
    "'5'",
    "'é'",
]
TEXTS += [r"'\U0001F600'", r"'a\0b'", "'a' 'b'", r"'\u0061'", r"'\141'", "'x'", "'-5'", "'0.5'", "'true'", "'n'"]
DATES = ["'2024-02-29'", "date '1970-01-01'", "date'1969-12-31'", "'9999-12-31'"]
MOMENTS = [
    "'2024-02-29 05:30:00'",
    "'2024-02-29T05:30'",
    "timestamp '1970-01-01 00:00:00'",
    "'1969-12-31 23:59:59.999999'",
]
MOMENTS += ["'2024-02-29 11:00:00+05:30'", "timestamp'2024-02-29 00:00:00Z'", "timestamp_ntz '1970-01-01 00:00:00'"]
OTHERS = ["true", "false", "null", "X'61'", "x'ff'", "X''"]
LIKES = [
    r"'a%'",
    r"'a\%b'",
    r"'a\%%'",
    r"'\_'",
    r"'\\%'",
    r"'\\\\'",
    r"'\\\\%'",
    "'%'",
    "'ab'",
    "''",
    r"'a\t%'",
    "'a_b'",
    "'%b'",
]
POOLS: dict[str, list[str]] = {
    **dict.fromkeys(["i", "l", "st.a"], WHOLE * 2 + EXACT + BINARY),
    **dict.fromkeys(["p", "q"], EXACT * 2 + WHOLE + BINARY),
    **dict.fromkeys(["f", "d"], BINARY * 2 + EXACT + WHOLE),
    "s": TEXTS,
    "b": ["true", "false", "'true'", "'n'"],
    "x": ["X'61'", "x'ff'", "X''", "'a'"],
    "dt": DATES * 2 + MOMENTS,
    **dict.fromkeys(["ts", "ntz"], MOMENTS * 2 + DATES),
}
EVERYTHING = WHOLE + EXACT + BINARY + TEXTS + DATES + MOMENTS + OTHERS


def rows_of(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Return rows of awkward values, each with a number of its own."""
    rows: list[dict[str, Any]] = []
    for at in range(count):
        row = {name: None if rng.random() < 0.15 else rng.choice(values) for name, values in VALUES.items()}
        inner = row.pop("st.a")
        rows.append({"rid": at, **row, "st": None if rng.random() < 0.1 else {"a": inner}})
    return rows


def random_condition(rng: random.Random, depth: int = 2) -> str:
    """Return the text of a condition, in the language or just beyond it."""
    if depth > 0 and rng.random() < 0.35:
        left, right = (random_condition(rng, depth - 1) for _ in range(2))
        return rng.choice([f"({left}) AND {right}", f"({left}) or ({right})", f"not ({left})", f"! ({left})"])
    column = rng.choice(list(VALUES))

    def literal() -> str:
        return rng.choice(OTHERS if (chance := rng.random()) < 0.08 else EVERYTHING if chance < 0.15 else POOLS[column])

    shown = rng.choice([column, column, ".".join(f"`{one}`" for one in column.split("."))])
    maybe = rng.choice(["", "", "not "])
    shapes = [
        f"{shown} {rng.choice(['=', '==', '<>', '!=', '<', '<=', '>', '>=', '<=>'])} {literal()}",
        f"{literal()} {rng.choice(['=', '<', '>=', '<=>'])} {shown}",
        f"{shown} {maybe}in ({', '.join(literal() for _ in range(rng.choice([1, 2, 4])))})",
        f"{shown} {maybe}between {literal()} and {literal()}",
        f"{shown} is {maybe}null",
        f"! {shown} = {literal()}",
        f"{maybe}isnan({shown})",
        f"{shown} is {maybe}distinct from {literal()}",
        rng.choice(["b", "not b", f"b is {maybe}true", f"b is {maybe}false", "true", "1 = 1", "'a' > r'b'"]),
    ]
    if column == "s":
        shapes += [f"s {maybe}like {rng.choice(LIKES)}", f"{maybe}startswith(s, {literal()})"] * 3
    return rng.choice(shapes)


def is_known(table: Table, text: str) -> bool:
    """Return whether the language takes a condition."""
    try:
        bind(table.schema, parse_predicate(text))
    except FrazilError:
        return False
    return True


def known_conditions(rng: random.Random, table: Table, count: int) -> list[str]:
    """Return conditions that the language takes."""
    found: list[str] = []
    while len(found) < count:
        text = random_condition(rng)
        if is_known(table, text):
            found.append(text)
    return found


def answers(plain: DataFrame, texts: list[str]) -> list[set[int]]:
    """Return the rows for which Spark says that each condition is true, all in one query."""
    with settings(plain.sparkSession, {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}):
        tested = plain.select("rid", *[F.expr(text).alias(f"c{at}") for at, text in enumerate(texts)]).collect()
    return [{row["rid"] for row in tested if row[f"c{at}"]} for at in range(len(texts))]


def make_table(lake: frazil.Lake, rows: list[dict[str, Any]], name: str = "db.t", **options: Any) -> Table:
    """Return a table of the rows, in several files."""
    table = lake.create_table(name, DDL, **options)
    for at in range(0, len(rows), 24):
        table.append(pa.Table.from_pylist(rows[at : at + 24], schema=table.scan().to_arrow().schema))
    return table


def rids(table: Table, text: str | None = None) -> set[int]:
    """Return the numbers of a table's rows."""
    return set(table.scan(text, columns=["rid"]).to_arrow()["rid"].to_pylist())


def check_scans(spark: SparkSession, lake: frazil.Lake, seed: int, count: int) -> None:
    rng = random.Random(seed)
    rows = rows_of(rng, 48)
    table = make_table(
        lake, rows, f"db.t{seed}", partition_by=[["b"], [], ["truncate(10, i)"], ["day(ts)", "d"]][seed % 4]
    )
    plain = table.scan().to_spark(spark).localCheckpoint()
    texts = known_conditions(rng, table, count)
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        expected = answers(plain, texts)
    for text, wanted in zip(texts, expected, strict=True):
        assert rids(table, text) == wanted, text
    for text, wanted in list(zip(texts, expected, strict=True))[::20]:
        assert table.scan(text).count() == len(wanted), text
        found = {row["rid"] for row in table.scan(text, columns=["rid"]).to_spark(spark).collect()}
        assert found == wanted, f"{text}, on Spark"


@pytest.mark.extended
def test_scan_keeps_the_rows_spark_keeps(spark: SparkSession, lake: frazil.Lake) -> None:
    check_scans(spark, lake, 0, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_scan_keeps_the_rows_spark_keeps_for_many_conditions(spark: SparkSession, lake: frazil.Lake, seed: int) -> None:
    check_scans(spark, lake, seed, 400)


def test_literals_are_read_like_in_spark(spark: SparkSession) -> None:
    texts = [text for text, _ in STRINGS]
    numbers = [text for text, _ in NUMBERS]
    found = spark.sql(f"select {', '.join([*texts, *numbers])}")
    row = found.collect()[0]
    assert list(row[: len(texts)]) == [meaning for _, meaning in STRINGS]
    meanings = [meaning for _, meaning in NUMBERS]
    assert [float(one) for one in row[len(texts) :]] == [float(one) for one in meanings]
    names = [one.dataType.typeName() for one in found.schema.fields[len(texts) :]]
    kinds = {int: {"integer", "long", "short", "byte", "decimal"}, float: {"double", "float"}, Decimal: {"decimal"}}
    assert all(name in kinds[type(meaning)] for name, meaning in zip(names, meanings, strict=True))


def test_documented_conditions_mean_the_same_in_spark(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.page", conditions_page.DDL)
    table.append(conditions_page.page_rows())
    kept = [(text, rows) for text, rows in conditions_page.page_conditions()[0] if "system." not in text]
    plain = table.scan().to_spark(spark).withColumnRenamed("id", "rid").withColumn("id", F.col("rid"))
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        found = answers(plain, [text for text, _ in kept])
    for (text, rows), answer in zip(kept, found, strict=True):
        assert answer == rows, text


def test_numeric_comparison_is_pushed_down_by_spark() -> None:
    schema = parse_schema("d double, f float, i int")

    def shown(text: str) -> str | None:
        return row_filter(bind(schema, parse_predicate(text)), lambda one: ".".join(one.path))

    assert shown("d > 5") == "(d > 5.0D)"
    assert shown("not d < 5 or i = 1") == "(d >= 5.0D) OR (i = 1)"
    assert shown("d > 5 or isnan(f)") == "(d > 5.0D) OR (isnan(f))"


VERBS = [
    r"s = 'a\tb'",
    r"s like 'a\%%' or x = X'61'",
    "not f > 0.1",
    "ts < '2024-02-29 05:30:00' and S <> 'a'",
    "d <=> null or p = 34.56D",
]


@pytest.mark.extended
def test_every_verb_selects_the_same_rows(spark: SparkSession, lake: frazil.Lake) -> None:
    rng = random.Random(7)
    rows = rows_of(rng, 32)
    rows[3]["s"], rows[4]["s"] = "a\tb", r"a\tb"
    table = make_table(lake, rows)
    start = table.current_snapshot
    assert start is not None
    plain = table.scan().to_spark(spark).localCheckpoint()
    everything = set(range(len(rows)))
    for at, (text, wanted) in enumerate(zip(VERBS, answers(plain, VERBS), strict=True)):
        if at % 2 == 0:
            table.delete(text)
            assert rids(table) == everything - wanted, f"delete {text}"
        else:
            table.overwrite(table.scan(limit=0).to_arrow(), where=text)
            assert rids(table) == everything - wanted, f"overwrite {text}"
        table.rollback_to(start.snapshot_id)
        if at == 0:
            table.update({"i": "77"}, where=text)
            assert rids(table, "i = 77") == wanted, f"update {text}"
            source = spark.createDataFrame([(one,) for one in everything], "rid int")
            merged = f"target.{text}"
            table.rollback_to(start.snapshot_id)
            table.merge(source, on="target.rid = source.rid").when_matched(merged).delete().execute()
            assert rids(table) == everything - wanted, f"merge {merged}"
            table.rollback_to(start.snapshot_id)


DECIDED: list[tuple[str, set[str | None]]] = [
    (r"k = 'a\tb'", {"a\tb"}),
    (r"k = 'a\\tb'", {r"a\tb"}),
    (r"k = r'a\tb'", {r"a\tb"}),
    ("k = 'it''s'", {"it's"}),
    (r"k like 'a\\\\%'", {r"a\tb"}),
    ("K <> 'a'", {"a\tb", r"a\tb", "it's", "\\"}),
    ("k not in ('a', 'it''s')", {"a\tb", r"a\tb", "\\"}),
    ("k not like 'a%'", {"it's", "\\"}),
    ("`k` <=> null", {None}),
    ("not (k is null or k > 'a')", {"a", "\\"}),
]


@pytest.mark.parametrize("engine", ["metadata", "spark"])
def test_metadata_delete_removes_the_same_rows_as_spark(spark: SparkSession, lake: frazil.Lake, engine: str) -> None:
    table = lake.create_table("db.k", "k string", partition_by=["k"] if engine == "metadata" else [])
    keys = ["a", "a\tb", r"a\tb", "it's", "\\", None]
    table.append(pa.table({"k": pa.array(keys, pa.string())}))
    start = table.current_snapshot
    assert start is not None
    for where, gone in DECIDED[:: 1 if engine == "metadata" else 3]:
        table.delete(where)
        kept = table.scan().to_arrow()["k"].to_pylist()
        assert set(kept) == set(keys) - gone, where
        table.rollback_to(start.snapshot_id)
    # To Spark, by default, text in double quotes is text.
    table.delete("\"k\" = 'a'")
    assert table.scan().count() == len(keys)
    table.delete('k = "a"')
    assert table.scan().count() == len(keys) - 1
