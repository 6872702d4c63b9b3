"""A session with a lake attached: statements, queries and everything else that names tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil


@pytest.fixture
def attached(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    yield spark
    frazil.detach(spark)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def filled(attached: SparkSession) -> SparkSession:
    attached.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
    attached.sql("insert into lake.db.t values (1, 'a'), (2, 'b'), (3, 'a')")
    return attached


def test_rows_come_back(filled: SparkSession) -> None:
    assert rows(filled.sql("select * from lake.db.t")) == [(1, "a"), (2, "b"), (3, "a")]
