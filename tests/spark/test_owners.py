"""Who owns what is made on Spark: the user of the session, as Spark's own statements have it over every catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import frazil


@pytest.fixture
def session(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    frazil.attach(spark, lake)
    yield spark
    frazil.detach(spark)


def described(spark: SparkSession, text: str) -> dict[str, str]:
    return {row[0]: row[1] for row in spark.sql(f"describe {text}").collect()}


MADE: dict[str, Callable[[SparkSession], object]] = {
    "create": lambda spark: spark.sql("create table lake.db.t (id bigint)"),
    "create as": lambda spark: spark.sql("create table lake.db.t as select 1L id"),
    "create or replace": lambda spark: spark.sql("create or replace table lake.db.t (id bigint)"),
    "script": lambda spark: spark.sql("begin create table lake.db.t (id bigint); end"),
    "like": lambda spark: spark.sql("create table lake.db.t like lake.db.other"),
    "writeTo": lambda spark: spark.range(3).writeTo("lake.db.t").create(),
    "saveAsTable": lambda spark: spark.range(3).write.saveAsTable("lake.db.t"),
    "catalog": lambda spark: spark.catalog.createTable("lake.db.t", schema=spark.range(1).schema, source="iceberg"),
}


@pytest.mark.parametrize("way", MADE)
def test_table_owner_is_the_session_user(session: SparkSession, lake: frazil.Lake, way: str) -> None:
    lake.create_table("db.other", "id long", properties={"owner": "ann"})
    MADE[way](session)
    user = session.sparkContext.sparkUser()
    assert lake.table("db.t").properties["owner"] == user
    assert described(session, "extended lake.db.t")["Owner"] == user
    (found,) = session.sql("show table extended in lake.db like 't'").collect()
    assert f"\nOwner: {user}\n" in found["information"]
    # As with the jar, it is no property that statements show.
    assert "owner" not in {row.key for row in session.sql("show tblproperties lake.db.t").collect()}


def test_replacing_a_table_changes_its_owner_unless_one_is_named(session: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id long", properties={"owner": "ann", "kept": "yes"})
    session.sql("replace table lake.db.t as select 1L id")
    assert lake.table("db.t").properties["owner"] == session.sparkContext.sparkUser()
    assert lake.table("db.t").properties["kept"] == "yes"
    session.sql("create table lake.db.u (id bigint) tblproperties (owner = 'bob')")
    assert described(session, "extended lake.db.u")["Owner"] == "bob"
    session.sql("alter table lake.db.u set tblproperties (owner = 'eve')")
    assert lake.table("db.u").properties["owner"] == "eve"


def test_shown_statement_recreates_an_equal_table(session: SparkSession, lake: frazil.Lake) -> None:
    session.sql("create table lake.db.t (id bigint) tblproperties (a = 'b')")
    (text,) = session.sql("show create table lake.db.t").first()  # type: ignore[misc]
    assert "owner" not in text
    before = lake.table("db.t").properties
    session.sql("drop table lake.db.t purge")
    session.sql(text)
    assert lake.table("db.t").properties == before


def test_namespace_owner_is_the_session_user(session: SparkSession, lake: frazil.Lake) -> None:
    session.sql("create namespace lake.one")
    session.sql("begin create namespace lake.two with dbproperties (a = 'b'); end")
    user = session.sparkContext.sparkUser()
    assert described(session, "namespace extended lake.one") == {
        "Catalog Name": "lake",
        "Namespace Name": "one",
        "Owner": user,
        "Properties": "",
    }
    assert lake.namespace_properties("two") == {"a": "b", "owner": user}


def test_namespaces_without_properties_have_no_owner(spark: SparkSession, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "folder", catalog="filesystem") as lake:
        frazil.attach(spark, lake, "folders")
        try:
            spark.sql("create namespace folders.one")
            spark.sql("begin create namespace folders.two; end")
            assert lake.list_namespaces() == [("one",), ("two",)]
            with pytest.raises(PySparkException, match="properties of namespaces"):
                spark.sql("create namespace folders.three with dbproperties (a = 'b')")
        finally:
            frazil.detach(spark)
