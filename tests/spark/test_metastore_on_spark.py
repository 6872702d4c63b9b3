"""A lake whose catalog is a Hive Metastore, in a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import frazil
from tests.support.metastore_server import running_metastore

pytestmark = [pytest.mark.spark, pytest.mark.extended]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[frazil.Lake]:
    with (
        running_metastore() as server,
        frazil.connect(server.uri, warehouse=str(tmp_path / "wh"), name="hive") as connected,
    ):
        frazil.attach(spark, connected, name="hive")
        yield connected
        frazil.detach(spark, "hive")


def test_statements_change_tables_of_a_metastore(spark: SparkSession, lake: frazil.Lake) -> None:
    def rows(statement: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.sql(statement).collect()]

    rows("create namespace hive.shop")
    rows("create table hive.shop.v (id bigint, kind string) using iceberg partitioned by (kind)")
    rows("insert into hive.shop.v values (1, 'a'), (2, 'b'), (3, 'a')")
    rows("update hive.shop.v set kind = 'c' where id = 2")
    rows("delete from hive.shop.v where id = 1")
    rows("""
        merge into hive.shop.v t using (select 3L as id, 'z' as kind union all select 9L, 'n') s on t.id = s.id
        when matched then update set kind = s.kind when not matched then insert *
    """)
    assert rows("select * from hive.shop.v order by id") == [(2, "c"), (3, "z"), (9, "n")]
    assert rows("select count(*) from hive.shop.v.snapshots") == [(4,)]
    rows("create view hive.shop.w as select count(*) n from hive.shop.v")
    assert rows("select * from hive.shop.w") == [(3,)]
    assert [row[1] for row in rows("show tables in hive.shop")] == ["v"]
    assert [row[1] for row in rows("show views in hive.shop")] == ["w"]
    rows("alter table hive.shop.v add column x int")
    rows("create table hive.shop.c using iceberg as select * from hive.shop.v")
    rows("alter table hive.shop.c rename to hive.shop.d")
    rows("drop view hive.shop.w")
    assert [name[-1] for name in lake.list_tables("shop")] == ["d", "v"]
    assert lake.table("shop.v").check().ok
    assert len(lake.table("shop.d")) == 3
