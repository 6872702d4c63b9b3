"""Views in queries that run in this process: read where the answer is Spark's, else refused with Spark's name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import frazil
from frazil.errors import FrazilError, InvalidRequestError, TableNotFoundError, UnsupportedError
from frazil.table.lake import Lake


@pytest.fixture(scope="module")
def lake() -> Any:
    with frazil.connect("memory:", catalog="memory") as opened:
        table = opened.create_table("db.t", "id bigint, s string, d decimal(9,2), n int")
        table.append([{"id": at, "s": "ab"[at % 2], "d": Decimal(at), "n": at % 3} for at in range(10)])
        yield opened


def view(lake: Lake, text: str, schema: str | None = None, **options: Any) -> str:
    """Create the view db.v anew and return its name."""
    lake.create_view("db.v", text, schema=schema, replaces=True, **options)
    return "db.v"


def test_view_is_read_like_a_table(lake: Lake) -> None:
    view(lake, "select s, count(*) as n, sum(d) total from db.t where id > 1 group by s", "s string, n bigint")
    lake.view("db.v").replace("select s, count(*) as n from db.t where id > 1 group by s", schema="s string, n bigint")
    assert lake.sql("select v.s, n from db.v order by s").to_pylist() == [{"s": "a", "n": 4}, {"s": "b", "n": 4}]
    joined = lake.sql("select t.id, x.n from db.t join db.v x on t.s = x.s where t.id = 3")
    assert joined.to_pylist() == [{"id": 3, "n": 4}]
    assert lake.sql("with v as (select 1 n) select n from v").to_pylist() == [{"n": 1}]


def test_columns_have_the_names_and_types_of_the_view(lake: Lake) -> None:
    view(lake, "select id, 1 from db.t where id = 4", "a int, b bigint")
    (row,) = lake.sql("select * from db.v").to_pylist()
    assert row == {"a": 4, "b": 1}
    assert [str(one.type) for one in lake.sql("select * from db.v").schema] == ["int32", "int64"]


def test_view_names_resolve_in_its_default_namespace(lake: Lake) -> None:
    lake.create_table("other.t", "id bigint").append([{"id": 77}])
    view(lake, "select id from t", default_namespace="other")
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 77}]
    view(lake, "select id from spark_lake.other.t", default_catalog="spark_lake", default_namespace="db")
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 77}]
    view(lake, "with t as (select 5 id) select id from t", default_namespace="other")
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 5}]


def test_nested_views_work_and_cycles_are_refused(lake: Lake) -> None:
    lake.create_view("db.low", "select id from db.t where id < 3", replaces=True)
    lake.create_view("db.high", "select max(id) m from low", replaces=True)
    assert lake.sql("select m from db.high").to_pylist() == [{"m": 2}]
    lake.create_view("db.low", "select m id from high", replaces=True)
    with pytest.raises(InvalidRequestError, match=r"db\.high: it reads itself, by way of 2 views"):
        lake.sql("select m from db.high")
    lake.drop_view("db.low")
    with pytest.raises(TableNotFoundError, match=r"db\.low"):
        lake.sql("select m from db.high")


def test_decimal_literals_are_decimals_in_a_view(lake: Lake) -> None:
    view(lake, "select 0.1 + 0.2 as x", "x decimal(2,1)")
    assert lake.sql("select x from db.v").to_pylist() == [{"x": Decimal("0.3")}]


TRANSLATED = [
    ("select id / 2 as x from db.t where id = 3", "x double", 1.5),
    ("select substring(s, 0, 1) as x from db.t where id = 3", "x string", "b"),
    ("select cast(id as string) as x from db.t where id = 3", "x string", "3"),
    ("select year(date '2024-01-01') as x", "x int", 2024),
    ("select avg(d) as x from db.t", "x decimal(13,6)", Decimal("4.500000")),
]


@pytest.mark.parametrize(("text", "schema", "value"), TRANSLATED, ids=[text for text, _, _ in TRANSLATED])
def test_spark_query_has_the_same_result(lake: Lake, text: str, schema: str, value: Any) -> None:
    view(lake, text, schema)
    assert lake.sql("select x from db.v").to_pylist() == [{"x": value}]


def test_duckdb_query_is_read_unchanged(lake: Lake) -> None:
    queries = {"duckdb": "select list_max([id, 7]) as x from t where id > 8", "spark": "select explode(array(1)) as x"}
    lake.create_view("db.both", queries, schema="x bigint")
    assert lake.sql("select x from db.both").to_pylist() == [{"x": 9}]


REFUSED = [
    ("select array(1, 2)[0] as x", "x int", "ARRAY"),
    ("select avg(id) as x from db.t", "x bigint", "its column 'x' is long, and would be DOUBLE here"),
    ("select explode(array(1)) as x", "x int", "the function explode"),
    ("select regexp_replace(s, 'a', 'b') as x from db.t", "x string", "the function regexp_replace"),
    ("select no_such from db.t", "x int", "the name no_such"),
]


@pytest.mark.parametrize(("text", "schema", "reason"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_spark_only_expression_is_refused_by_name(lake: Lake, text: str, schema: str, reason: str) -> None:
    view(lake, text, schema)
    with pytest.raises(UnsupportedError) as found:
        lake.sql("select * from db.v").to_pylist()
    assert "the view db.v without Spark" in str(found.value)
    assert reason in str(found.value)
    assert "Spark" in (found.value.hint or "")


def test_view_of_another_dialect_or_snapshot_is_refused(lake: Lake) -> None:
    lake.create_view("db.trino", "select 1", dialect="trino", replaces=True)
    with pytest.raises(UnsupportedError, match="no query in DuckDB's dialect or in Spark's"):
        lake.sql("select * from db.trino")
    view(lake, "select id from db.t")
    with pytest.raises(InvalidRequestError, match="it is a view"):
        lake.sql("select * from db.v at (version => 1)")
    view(lake, "select id from db.t", "a bigint, b bigint")
    with pytest.raises(FrazilError, match="it has 2 columns, and its query now has 1"):
        lake.sql("select * from db.v").to_pylist()


def test_columns_are_found_by_their_names_in_the_query(lake: Lake) -> None:
    view(lake, "select n, s, id from db.t where id = 4", "id bigint, n int", query_columns=["id", "n"])
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 4, "n": 1}]
    view(lake, "select id, n from db.t where id = 4", "n bigint, id int", query_columns=["ID", "N"])
    assert lake.sql("select * from db.v").to_pylist() == [{"n": 4, "id": 1}]
    view(lake, "select id, n as other from db.t where id = 4", "id bigint, n int", query_columns=["id", "n"])
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 4, "n": 1}]
    view(lake, "select n, id from db.t where id = 4", "id int, n int")
    assert lake.sql("select * from db.v").to_pylist() == [{"id": 1, "n": 4}]


def test_view_conditions_prune_files(lake: Lake) -> None:
    view(lake, "select id, n from db.t where n = 1", "id bigint, n int")
    assert "filter: n = 1" in lake.sql("select id from db.v where id > 5").explain()
    assert lake.sql("select id from db.v where id > 5").to_pylist() == [{"id": 7}]
