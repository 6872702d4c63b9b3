"""Handlers that go on after an error, in scripts over tables of lakes; those that end a block are SQL cases."""

from __future__ import annotations

from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession

import frazil


@pytest.fixture
def sql(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    yield spark
    frazil.detach(spark)


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="this Spark has no CONTINUE handlers")
def test_a_script_goes_on_after_its_handler(sql: SparkSession) -> None:
    sql.sql("create table lake.db.t (id int, data string)")
    found = sql.sql("""
        begin
          declare n int default 0;
          declare continue handler for table_or_view_not_found begin set n = n + 1; end;
          insert into lake.db.nope values (1);
          delete from lake.db.gone;
          insert into lake.db.t values (n, 'handled');
          select * from lake.db.t;
        end""").collect()
    assert [tuple(row) for row in found] == [(2, "handled")]


def test_an_answer_under_a_handler_is_that_of_its_moment(sql: SparkSession) -> None:
    sql.sql("create table lake.db.t (id int)")
    found = sql.sql("""
        begin
          declare exit handler for sqlexception begin select -1; end;
          insert into lake.db.t values (1);
          select id from lake.db.t;
          insert into lake.db.t values (2);
        end""")
    sql.sql("delete from lake.db.t")
    assert [row[0] for row in found.collect()] == [1]
