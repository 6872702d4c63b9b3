"""Spark's own rules for columns and values: store assignment, char and varchar."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, CharType, IntegerType, StringType, StructField, StructType, VarcharType

import frazil

POLICY = "spark.sql.storeAssignmentPolicy"
LENGTHS = "the format has no text lengths"


@pytest.fixture
def filled(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    spark.sql("create table lake.db.t (i int, s string)")
    spark.sql("insert into lake.db.t values (1, 'a')")
    yield spark
    spark.conf.unset(POLICY)
    frazil.detach(spark)


WRITES = {
    "insert": "insert into lake.db.t values ({}, 'x')",
    "insert by name": "insert into lake.db.t by name select {} i, 'x' s",
    "overwrite": "insert overwrite lake.db.t values ({}, 'x')",
    "update": "update lake.db.t set i = {}",
    "merge that updates": "merge into lake.db.t using (select 1 k) on true when matched then update set i = {}",
    "merge that inserts": "merge into lake.db.t using (select 2) on false when not matched then insert (i) values ({})",
    "writeTo": "{}",
}


def write(spark: SparkSession, way: str, value: str) -> None:
    if way == "writeTo":
        spark.sql(f"select {value} i, 'x' s").writeTo("lake.db.t").append()
    else:
        spark.sql(WRITES[way].format(value)).collect()


def values(lake: frazil.Lake) -> list[int | None]:
    return sorted(lake.table("db.t").scan().to_arrow()["i"].to_pylist())


@pytest.mark.parametrize("way", WRITES)
def test_store_assignment_policy_of_the_session_is_applied(filled: SparkSession, lake: frazil.Lake, way: str) -> None:
    first = lake.table("db.t").metadata_location
    # Widening alone is safe.
    filled.conf.set(POLICY, "STRICT")
    for value in ("7L", "'7'", "1.5D"):
        with pytest.raises(AnalysisException) as caught:
            write(filled, way, value)
        assert caught.value.getCondition() == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"
    # Spark has no such policy for tables of catalogs.
    filled.conf.set(POLICY, "LEGACY")
    with pytest.raises(AnalysisException, match=r"(?i)legacy"):
        write(filled, way, "7L")
    # What does not fit is an error when it is met; text is no number.
    filled.conf.set(POLICY, "ANSI")
    with pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        write(filled, way, "3000000000L")
    with pytest.raises(AnalysisException) as caught:
        write(filled, way, "'7'")
    assert caught.value.getCondition() == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"
    assert lake.table("db.t").metadata_location == first
    write(filled, way, "7L")
    filled.conf.set(POLICY, "STRICT")
    write(filled, way, "cast(8 as tinyint)")
    assert values(lake) in ([1, 7, 8], [8])


def made_by_the_catalog(spark: SparkSession) -> None:
    columns = [StructField("a", ArrayType(CharType(3))), StructField("b", VarcharType(2))]
    spark.catalog.createTable("lake.db.made", schema=StructType(columns), source="iceberg")


MADE_WITH_LENGTHS: dict[str, Callable[[SparkSession], object]] = {
    "create": lambda spark: spark.sql("create table lake.db.made (a array<char(3)>, b varchar(2))"),
    "replace": lambda spark: spark.sql("create or replace table lake.db.made (a array<char(3)>, b varchar(2))"),
    "script": lambda spark: spark.sql("begin create table lake.db.made (a array<char(3)>, b varchar(2)); end"),
    "catalog": made_by_the_catalog,
}


@pytest.mark.parametrize("way", MADE_WITH_LENGTHS)
def test_char_and_varchar_become_string_with_a_warning(filled: SparkSession, way: str) -> None:
    """As with the jar: the format has no place for lengths, so that nothing holds text to them or pads it."""
    with pytest.warns(UserWarning, match=LENGTHS):
        MADE_WITH_LENGTHS[way](filled)
    assert [one.dataType for one in filled.table("lake.db.made").schema.fields] == [
        ArrayType(StringType()),
        StringType(),
    ]
    filled.sql("insert into lake.db.made values (array('longer', 'a'), 'longer'), (array(), '')")
    filled.table("lake.db.made").writeTo("lake.db.made").overwritePartitions()
    assert sorted(map(tuple, filled.table("lake.db.made").collect())) == [([], ""), (["longer", "a"], "longer")]
    assert filled.sql("select length(a[1]) from lake.db.made where a[1] = 'a' and b = 'longer'").collect() == [(1,)]


def test_varchar_columns_are_added_as_string(filled: SparkSession, lake: frazil.Lake) -> None:
    for text in ("add column c varchar(3)", "add columns (d char(3))", "alter column s type varchar(9)"):
        with pytest.warns(UserWarning, match=LENGTHS):
            filled.sql(f"alter table lake.db.t {text}")
    with pytest.warns(UserWarning, match=LENGTHS):
        filled.sql("begin alter table lake.db.t add column e array<varchar(1)>; end")
    with pytest.warns(UserWarning, match=LENGTHS):
        made = lake.create_table("db.made", StructType([StructField("a", CharType(3))]))
    assert str(made.schema.field("a").field_type) == "string"
    assert filled.table("lake.db.t").dtypes[1:] == [
        ("s", "string"),
        ("c", "string"),
        ("d", "string"),
        ("e", "array<string>"),
    ]
    # Text for `lake.create_table` is written for frazil, and is told at once.
    with pytest.raises(frazil.InvalidRequestError, match="Use string"):
        lake.create_table("db.other", "a varchar(3)")


def test_varchar_warning_is_shown_once(filled: SparkSession) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for way in ("create", "catalog"):
            filled.sql("drop table if exists lake.db.made")
            MADE_WITH_LENGTHS[way](filled)
    assert [LENGTHS in str(one.message) for one in caught] == [True]


def test_query_over_varchar_returns_string(filled: SparkSession) -> None:
    """As Spark shows such columns in every query."""
    filled.sql("create table default.lengths (a char(3), b varchar(2)) using parquet")
    try:
        filled.sql("insert into default.lengths values ('a', 'b')")
        filled.sql("create table lake.db.made as select * from default.lengths")
        filled.sql("insert into lake.db.made values ('longer', 'longer')")
        found = sorted(map(tuple, filled.table("lake.db.made").collect()))
        assert found == [("a  ", "b"), ("longer", "longer")]
        assert filled.sql("select count(*) from lake.db.made where a = 'a  '").first() == (1,)
    finally:
        filled.sql("drop table default.lengths")


def test_generated_columns_are_refused(filled: SparkSession, lake: frazil.Lake) -> None:
    for text in (
        "a int, b int generated always as (a + 1)",
        "a bigint generated always as identity",
        "a bigint generated by default as identity (start with 5 increment by 2)",
    ):
        with pytest.raises(PySparkException, match="GENERATED has no place in the format"):
            filled.sql(f"create table lake.db.made ({text})")
    computed = StructType([StructField("b", IntegerType(), True, {"GENERATION_EXPRESSION": "1 + 1"})])
    with pytest.raises(PySparkException, match="GENERATED"):
        filled.catalog.createTable("lake.db.made", schema=computed, source="iceberg")
    assert not lake.table_exists("db.made")
