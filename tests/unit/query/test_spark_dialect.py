"""What of Spark's dialect is translated for DuckDB, how, and what is refused; the answers are compared on Spark."""

from __future__ import annotations

import re

import duckdb
import pytest

from frazil.errors import InvalidRequestError
from frazil.query.spark_dialect import NotTranslatable, translate_query, translate_view

COLUMNS = {
    "id": "int", "i": "int", "l": "bigint", "f": "float", "d": "double", "p": "decimal(9,2)", "w": "decimal(38,4)",
    "s": "string", "b": "boolean", "x": "binary", "dt": "date", "ts": "timestamp", "n": "timestamp_ntz",
    "arr": "array<int>", "st": "struct<a:int>",
}  # fmt: skip
TABLES = {
    ("t",): COLUMNS,
    ("db", "t"): COLUMNS,
    ("lake", "db", "t"): COLUMNS,
    ("u",): {"id": "bigint", "k": "string", "Amount": "decimal(9,2)"},
}


def translate(text: str) -> str:
    return translate_view(text, TABLES.get)


def translated_item(expression: str) -> str:
    """Return the first column of a query over `t`, in DuckDB."""
    text = translate(f"select {expression} as c from t")
    match = re.fullmatch(r'SELECT (.*) AS "c" FROM "t" AS "t"', text)
    assert match is not None, text
    return match[1].replace('"t".', "").replace('"', "")


def refusal(text: str) -> str:
    with pytest.raises(NotTranslatable) as error:
        translate(text)
    return error.value.reason


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize(
    "expression, written",
    [
        ("i + 1", "ADD(i, CAST(1 AS INT))"),
        ("i + l", "ADD(CAST(i AS BIGINT), l)"),
        ("p + 1.5", "CAST(CAST(p AS DECIMAL(10, 2)) + CAST('1.5' AS DECIMAL(10, 2)) AS DECIMAL(10, 2))"),
        ("d > 1", "d > CAST('1' AS DOUBLE)"),
        ("sum(l)", "CAST(SUM(l) AS BIGINT)"),
        ("avg(i)", "AVG(CAST(i AS DOUBLE))"),
        ("sum(p)", "CAST(SUM(p) AS DECIMAL(19, 2))"),
        ("year(dt)", "CAST(YEAR(dt) AS INT)"),
        ("s || 'x'", "(s || CAST('x' AS TEXT))"),
        ("substring(s, 0, 2)", "SUBSTRING(s, 1, 2)"),
        ("isnan(d)", "COALESCE(ISNAN(d), FALSE)"),
        ("-i", "SUBTRACT(CAST(0 AS INT), i)"),
        ("-2147483648", "CAST(-2147483648 AS INT)"),
        ("2147483648", "CAST(2147483648 AS BIGINT)"),
        ("cast(d as int)", "CAST(TRUNC(d) AS INT)"),
        ("dt + interval 1 month", "CAST(dt + TO_MONTHS(1) AS DATE)"),
        ("dt > '2024-01-01'", "dt > CAST('2024-01-01' AS DATE)"),
    ],
)
def test_spark_types_and_semantics_are_made_explicit(expression: str, written: str) -> None:
    assert translated_item(expression) == written


def test_division_by_zero_fails_like_in_spark(duck: duckdb.DuckDBPyConnection) -> None:
    text = translate("select 1 / (id - id) as c from t")
    with pytest.raises(duckdb.InvalidInputException, match="Cannot divide by zero"):
        duck.execute(f'with "t"(id) as (select 5::int) {text}').fetchall()
    assert duck.execute(f'with "t"(id) as (select null::int) {text}').fetchall() == [(None,)]


def test_literal_divisor_needs_no_check() -> None:
    assert "CASE" not in translated_item("d / 2")


@pytest.mark.parametrize("text", ["select id from t order by i", "select id, i from t order by 2"])
def test_nulls_are_first_in_ascending_order(text: str) -> None:
    assert "ASC NULLS FIRST" in translate(text)
    assert "DESC NULLS LAST" in translate(text + " desc")


def test_parts_of_table_names_are_kept() -> None:
    assert 'FROM "lake"."db"."t" AS "t"' in translate("select id from lake.db.t")
    assert 'FROM "db"."t" AS "q"' in translate("select q.id from db.t q")
    assert 'FROM "t" AS "t" JOIN "db"."t" AS "t_2"' in translate("select 1 as one from t join db.t on true")


def test_common_table_expressions_get_unique_names() -> None:
    text = translate("with t as (select id from t), r as (select * from t) select * from r")
    assert text.startswith('WITH "t_cte"("id") AS (SELECT "t"."id" AS "id" FROM "t" AS "t"), "r_cte"("id")')
    assert text.endswith('FROM "r_cte" AS "r"')


def test_star_is_expanded_in_spark_order() -> None:
    text = translate("select * except (k) from u join (select id, i from t) q using (id)")
    assert text.startswith('SELECT "u"."id" AS "id", "u"."Amount" AS "Amount", "q"."i" AS "i" FROM')


def test_names_are_case_insensitive() -> None:
    assert translate("select T.ID, AMOUNT from T join U on t.Id = u.id".replace("T join U", "t join u")).startswith(
        'SELECT "t"."id" AS "ID", "u"."Amount" AS "AMOUNT"'
    )


def test_float_keys_group_negative_zero_with_zero() -> None:
    assert 'GROUP BY "t"."d" + CAST(0 AS DOUBLE)' in translate("select d, count(*) as n from t group by d")


def test_aliases_are_replaced_by_their_expressions() -> None:
    text = translate("select i + 1 as j, j * 2 as k from t")
    assert 'MULTIPLY(ADD("t"."i", CAST(1 AS INT)), CAST(2 AS INT)) AS "k"' in text
    assert 'GROUP BY "t"."s"' in translate("select s as g, count(*) from t group by g")


def test_condition_that_may_fail_keeps_its_position(duck: duckdb.DuckDBPyConnection) -> None:
    text = translate("select id from t where id <> 0 and 10 / id > 1")
    rows = duck.execute(f'with "t"(id) as (values (0::int), (5), (20)) {text}').fetchall()
    assert rows == [(5,)]


@pytest.mark.parametrize(
    "expression, reason",
    [
        ("rlike(s, 'a')", "the function rlike"),
        ("s rlike 'a'", "RLIKE"),
        ("regexp_replace(s, 'a', 'b')", "the function regexp_replace"),
        ("round(f, 2)", "the function round: an argument is float"),
        ("pow(d, 2)", "the function pow"),
        ("rand()", "the function rand"),
        ("collect_list(i)", "the function collect_list"),
        ("first(i)", "the function first"),
        ("stddev(d)", "the function stddev"),
        ("db.f(i)", "a field of a struct or a function of a catalog"),
        ("`sum`(i)", "the function sum"),
        ("arr[0]", "the operator []"),
        ("st.a", "the name st.a"),
        ("i & 1", "the operator &"),
        ("s + 1", "+ over string and int"),
        ("i = '5'", "= mixes int and string"),
        ("dt - dt", "- over date and date"),
        ("dt = s", "= mixes date and string"),
        ("arr = arr", "= over array<int>"),
        ("coalesce(i, s)", "the function coalesce: the list of arguments mixes int and string"),
        ("cast(d as string)", "the cast from double to string"),
        ("cast(d as decimal(9,2))", "the cast from double to decimal(9,2)"),
        ("try_cast(s as int)", "TRY_CAST"),
        ("w + 1", "+ over decimal(38,4) and decimal(1,0)"),
        ("w / p", "/ over decimal(38,4) and decimal(9,2)"),
        ("date_format(ts, 'EEEE')", "the function date_format: the pattern 'EEEE'"),
        ("substring(s, -2)", "the function substring: an argument is not a literal number from 0"),
        ("substring(s, i)", "the function substring: an argument is not a literal number from 0"),
        ("s like k", "the name k"),
        ("s like s", "LIKE with a pattern that is not a literal"),
        (r"s like 'a\\b'", "the LIKE pattern"),
        ("s ilike 'a'", "ILIKE"),
        ("'a' 'b'", "string literals next to each other"),
        ("'it''s'", "string literals next to each other"),
        (r"'\u0041'", "the escape in the string"),
        (r"r'\n'", "a raw string"),
        ("x'ab'", "a binary literal"),
        ("null", "a column of nulls without a type"),
        ("interval 1 day", "an interval"),
        ("dt + interval 1 hour", "an interval of hours with date"),
        ("transform(arr, e -> e + 1)", "the function transform"),
        (":p", "a parameter"),
        ("sum(i) over (order by i range between 1 preceding and current row)", "the bound 1 of a window's RANGE frame"),
        ("sum(distinct i) over ()", "the function sum with DISTINCT in a window"),
        ("count(distinct i, l)", "the function count with 2 arguments"),
        ("i = l = b", "= next to ="),
        ("'a' || i + 1", "|| next to +"),
        ("b and 1 / i > 0", "AND after which an expression may fail"),
        ("b or 1 / i > 0", "OR after which an expression may fail"),
        ("count(i) filter (where 1 / i > 0)", "FILTER with a condition that may fail"),
        ("sum(i) over (partition by arr)", "a window partitioned by a nested type"),
        ("rank() over (partition by s)", "the function rank without an order"),
        ("nothing", "the name nothing, which is not a column of its tables"),
    ],
)
def test_constructs_not_known_to_agree_are_refused_by_name(expression: str, reason: str) -> None:
    assert refusal(f"select {expression} as c from t").startswith(reason)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("select * from nowhere", "the table nowhere, which is not known"),
        ("select id from t join u using (id, k)", "USING the column k"),
        ("select id from t join u on true", "the name id, which is ambiguous"),
        ("select * from t version as of 5", "VERSION AS OF"),
        ("select * from range(5)", "the table function range"),
        ("select e from t lateral view explode(arr) q as e", "LATERAL VIEW"),
        ("select * from t tablesample (10 percent)", "TABLESAMPLE"),
        ("select * from t, u right join db.t z on true", "RIGHT JOIN after CROSS JOIN or a comma"),
        ("select t.id from t join u on t.id + 1 = u.id", "ON with a condition that may fail"),
        ("with recursive r as (select 1 as a) select * from r", "WITH RECURSIVE"),
        ("select i, count(*) from t group by s", "the column t.i, which is neither grouped by nor aggregated"),
        ("select id from t where sum(i) > 1", "the function sum here"),
        ("select arr, count(*) from t group by arr", "GROUP BY array<int>"),
        ("select distinct arr from t", "DISTINCT over a nested type"),
        ("select i from t union select s from t", "UNION mixes int and string"),
        ("select i from t union select i, s from t", "UNION of different numbers of columns"),
        ("select id from t limit i", "LIMIT with another value than a number"),
        ("select id from t order by all", "VAR"),
        ("select id from t group by all", "GROUP BY ALL"),
        ("select id from t; select id from t", "several statements"),
        ("create table x as select 1", "CREATE"),
        ("select id from", "a syntax that is not known"),
        ("select id from t pivot (sum(i) for s in ('a'))", "PIVOT"),
        ("select id from t qualify row_number() over (order by id) = 1", "QUALIFY"),
        ("select id from t cluster by id", "CLUSTER BY"),
        ("select a from (t join u on t.id = u.id)", "brackets around a join"),
    ],
)
def test_clauses_not_known_to_agree_are_refused(text: str, reason: str) -> None:
    assert refusal(text).startswith(reason)


def test_letters_that_engines_map_differently_are_refused_at_run_time(duck: duckdb.DuckDBPyConnection) -> None:
    text = translate("select upper(s) as c from t")
    assert duck.execute(f"with t(s) as (values ('é日a'), (null)) {text}").fetchall() == [("É日A",), (None,)]
    with pytest.raises(duckdb.InvalidInputException, match="only Spark can read this value"):
        duck.execute(f"with t(s) as (select 'ß') {text}").fetchall()


def test_overflow_in_a_comparison_is_not_simplified_away(duck: duckdb.DuckDBPyConnection) -> None:
    text = translate("select id from t where i + 1 > 3")
    duck.execute("create or replace table t as select 1 as id, 2147483647 as i")
    with pytest.raises(duckdb.OutOfRangeException, match="Overflow"):
        duck.execute(text).fetchall()


def test_grouping_sets_over_no_rows_have_no_row(duck: duckdb.DuckDBPyConnection) -> None:
    text = translate("select s, count(*) as n from t group by rollup (s)")
    duck.execute("create or replace table t (s varchar)")
    assert duck.execute(text).fetchall() == []


@pytest.mark.parametrize("dividend, quotient", [("1.00", "0.142857"), ("-1.00", "-0.142857"), ("0.07", "0.010000")])
def test_decimal_division_is_exact(duck: duckdb.DuckDBPyConnection, dividend: str, quotient: str) -> None:
    text = translate(f"select cast('{dividend}' as decimal(3,2)) / 7 as c")
    assert [str(value) for (value,) in duck.execute(text).fetchall()] == [quotient]


def test_query_too_deep_to_translate_is_refused() -> None:
    assert refusal(f"select {'(' * 3000}1{')' * 3000} as c from t").startswith(("a query of this depth", "a syntax"))


def test_nested_divisions_do_not_grow_without_bound() -> None:
    assert refusal(f"select {'l / (' * 30}l{')' * 30} as c from t") == "an expression of this size"


@pytest.mark.parametrize(
    "text, written",
    [
        ("select `a b` from db.t", 'SELECT "a b" FROM db.t'),
        ("select 1 from t version as of 5", "SELECT 1 FROM t AT (VERSION => 5)"),
        ("select 1 from db.t version as of 'main' q", "SELECT 1 FROM db.t AS q AT (VERSION => 'main')"),
        (
            "select 1 from t timestamp as of '2024-01-01 00:00:00'",
            "SELECT 1 FROM t AT (TIMESTAMP => '2024-01-01 00:00:00')",
        ),
        ("select 1 from t where i = :low", "SELECT 1 FROM t WHERE i = $low"),
        ("select date_add(d, 1) from t", "SELECT CAST(d AS DATE) + INTERVAL 1 DAY FROM t"),
    ],
)
def test_queries_are_translated(text: str, written: str) -> None:
    assert translate_query(text) == written


@pytest.mark.parametrize("text", ["select 1 +", "select 'open", "", "select 1; select 2"])
def test_syntax_error_is_an_invalid_request(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^Cannot run SQL: "):
        translate_query(text)


@pytest.mark.parametrize("clause", ["version => 5", "timestamp => '2024-01-01 00:00:00'"])
def test_duckdb_parses_the_time_travel_clause(duck: duckdb.DuckDBPyConnection, clause: str) -> None:
    duck.execute("create or replace table travelled (i int)")
    with pytest.raises(duckdb.BinderException, match="does not support time travel"):
        duck.execute(translate_query(f"select i from travelled {clause.replace('=>', 'as of')} q"))
