"""On Spark, a service is told through which views a table is read, and may give it to readers of those alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import frazil
from frazil.table.lake import Lake
from tests.support.guarded_tables import guarded
from tests.support.rest_lab import ScriptedService
from tests.support.served_lake import Served, served

pytestmark = pytest.mark.spark

TABLE, OTHER = "/v1/namespaces/db/tables/t", "/v1/namespaces/db/tables/u"
REFUSED = "through its view alone"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("guarded") / "wh") as made:
        lake = Lake(made.catalog)
        lake.create_table("db.t", "id bigint").append(pa.table({"id": [1, 2]}))
        lake.create_table("db.u", "id bigint").append(pa.table({"id": [2, 3]}))
        lake.create_view("db.inner", "select id from t where id > 1", schema="id bigint")
        lake.create_view("db.outer", "select inner.id from inner join u on inner.id = u.id", schema="id bigint")
        yield made


@pytest.fixture
def guard(server: Served, spark: SparkSession) -> Iterator[ScriptedService]:
    allowed = {TABLE: "db\x1fouter,db\x1finner", OTHER: "db\x1fouter"}
    with guarded(server, allowed) as made, frazil.connect(made.address, name="lake") as lake:
        frazil.attach(spark, lake)
        try:
            yield made
        finally:
            frazil.detach(spark)


def test_tables_are_read_through_permitted_views(guard: ScriptedService, spark: SparkSession) -> None:
    for _ in range(2):
        assert [tuple(row) for row in spark.sql("select * from lake.db.outer").collect()] == [(2,)]
    assert [tuple(row) for row in spark.table("lake.db.outer").collect()] == [(2,)]
    views = guard.of("GET /v1/namespaces/db/views/inner")
    assert {asked.query.get("referenced-by") for asked in views} == {"db\x1fouter"}


@pytest.mark.parametrize(
    "text",
    [
        "select * from lake.db.t",
        "select * from lake.db.inner",
        "select o.id from lake.db.outer o join lake.db.u u on o.id = u.id",
        "create view lake.db.mine as select * from lake.db.t",
        "create or replace view lake.db.outer as select id from lake.db.u",
    ],
)
def test_view_permission_is_not_extended_to_other_tables(
    guard: ScriptedService, spark: SparkSession, text: str
) -> None:
    assert spark.sql("select count(*) from lake.db.outer").first() == (1,)
    with pytest.raises(PySparkException, match=REFUSED):
        spark.sql(text).collect()


def test_view_of_another_lake_is_not_resolved_by_the_service(
    guard: ScriptedService, spark: SparkSession, tmp_path: Path
) -> None:
    with frazil.connect(tmp_path / "other", name="other") as other:
        frazil.attach(spark, other, name="other")
        other.create_view("db.outer", "select id from lake.db.u", schema="id bigint")
        other.create_view("db.over", "select id from lake.db.outer", schema="id bigint")
        assert [tuple(row) for row in spark.sql("select * from other.db.over").collect()] == [(2,)]
        with pytest.raises(PySparkException, match=REFUSED):
            spark.sql("select * from other.db.outer").collect()
