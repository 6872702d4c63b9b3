"""What a script with handlers answers; which errors its handlers take is among the SQL cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import frazil


@pytest.fixture
def sql(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    yield spark
    frazil.detach(spark)


def test_result_inside_an_exception_handler_keeps_its_snapshot(sql: SparkSession) -> None:
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
