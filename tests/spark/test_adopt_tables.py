"""Tables of Spark's own catalog as tables of a lake: snapshots that leave them alone, migrations that can be undone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import frazil
from frazil.errors import FrazilError, InvalidRequestError, MissingFileError, TableNotFoundError, UnsupportedError
from frazil.maintenance import add_files as add_files_module


@pytest.fixture
def attached(spark: SparkSession, lake: frazil.Lake) -> Iterator[frazil.Lake]:
    frazil.attach(spark, lake)
    spark.sql("create database if not exists adopt")
    try:
        yield lake
    finally:
        frazil.detach(spark)
        spark.sql("drop database adopt cascade")


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(one) for one in spark.sql(text).collect()]


def contents(folder: str) -> dict[str, bytes]:
    found = Path(folder.removeprefix("file:"))
    return {str(one): one.read_bytes() for one in found.rglob("*") if one.is_file() and not one.name.startswith(".")}


def make(spark: SparkSession, name: str, *, kind: str = "parquet", location: Path | None = None) -> str:
    """Make a table of two partitions, one of them null, and return its folder."""
    at = "" if location is None else f"location 'file://{location}'"
    spark.sql(
        f"create table {name} using {kind} partitioned by (`part`) {at} as "
        "select id, timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) as ts, "
        "named_struct('a', id, 'b', array(id)) as nested, "
        "case when id % 3 = 0 then null when id % 3 = 1 then 'a b/c%:' else 'z' end as `part` from range(9)"
    )
    return _location(spark, name)


def _location(spark: SparkSession, name: str) -> str:
    found = spark.sql(f"describe table extended {name}").where("col_name = 'Location'").collect()
    return str(found[0][1])


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_snapshot_table_reads_like_its_source_and_leaves_it_unchanged(
    spark: SparkSession, attached: frazil.Lake, kind: str
) -> None:
    folder = make(spark, "adopt.old", kind=kind)
    before, files = rows(spark, "select * from adopt.old order by id"), contents(folder)
    answer = spark.sql("call lake.system.snapshot('adopt.old', 'db.new', properties => map('x', 'y'))").collect()
    assert [one.asDict() for one in answer] == [{"imported_files_count": len([one for one in files if kind in one])}]
    assert rows(spark, "select * from lake.db.new order by id") == before
    assert rows(spark, "select count(*) from lake.db.new where part = 'a b/c%:'") == [(3,)]
    assert rows(spark, "select count(*) from lake.db.new where part is null") == [(3,)]
    table = attached.table("db.new")
    assert (table.properties["gc.enabled"], table.properties["snapshot"], table.properties["x"]) == (
        "false",
        "true",
        "y",
    )
    assert table.check(bounds=True).ok
    assert table.scan("part = 'z'").count() == 3
    spark.sql("delete from lake.db.new where id < 4")
    spark.sql("insert into lake.db.new select * from adopt.old where id = 1")
    table.refresh().maintain.rewrite_data_files(options={"rewrite-all": True})
    assert rows(spark, "select count(*) from lake.db.new") == [(6,)]
    assert rows(spark, "select * from adopt.old order by id") == before
    assert contents(folder) == files


@pytest.mark.extended
@pytest.mark.parametrize("is_managed", [True, False])
def test_migrated_table_keeps_its_files_in_place(
    spark: SparkSession, attached: frazil.Lake, tmp_path: Path, is_managed: bool
) -> None:
    folder = make(spark, "adopt.old", location=None if is_managed else tmp_path / "external")
    before, files = rows(spark, "select * from adopt.old order by id"), contents(folder)
    planned = attached.migrate_table("adopt.old", dry_run=True)
    assert planned.backup_table == "old_BACKUP_"
    assert rows(spark, "select count(*) from adopt.old") == [(9,)]
    answer = spark.sql("call lake.system.migrate('adopt.old')").collect()
    assert [one.asDict() for one in answer] == [{"migrated_files_count": planned.migrated_files_count}]
    assert rows(spark, "select * from lake.adopt.old order by id") == before
    table = attached.table("adopt.old")
    assert table.location.removeprefix("file://") == folder.removeprefix("file:")
    assert table.properties["migrated"] == "true"
    assert contents(folder).items() >= files.items(), "not one file was moved"
    assert not spark.catalog.tableExists("spark_catalog.adopt.old")
    assert rows(spark, "select * from spark_catalog.adopt.old_BACKUP_ order by id") == before
    spark.sql("drop table spark_catalog.adopt.old_BACKUP_")
    assert rows(spark, "select * from lake.adopt.old order by id") == before, "the backup is a name and no more"
    spark.sql("insert into lake.adopt.old select * from lake.adopt.old where id = 1")
    assert rows(spark, "select count(*) from lake.adopt.old") == [(10,)]
    assert table.refresh().check(bounds=True).ok


@pytest.mark.extended
def test_migrate_accepts_its_arguments(
    spark: SparkSession, attached: frazil.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "less"):
        make(spark, f"adopt.{name}")
    spark.sql("call lake.system.migrate(table => 'spark_catalog.adopt.one', drop_backup => true)")
    assert not spark.catalog.tableExists("spark_catalog.adopt.one_BACKUP_")
    assert rows(spark, "select count(*) from lake.adopt.one") == [(9,)]
    threads: set[str] = set()
    describe = add_files_module._Describer.describe

    def spy(self: Any, found: Any) -> Any:
        threads.add(threading.current_thread().name)
        if "less" in found.path and "part=z" in found.path:
            raise MissingFileError(f"There is no {found.path}")
        return describe(self, found)

    monkeypatch.setattr(add_files_module._Describer, "describe", spy)
    spark.sql(
        "call lake.system.migrate(table => 'adopt.two', properties => map('colour', 'blue'), "
        "backup_table_name => 'kept', parallelism => 1)"
    )
    assert attached.table("adopt.two").properties["colour"] == "blue"
    assert spark.catalog.tableExists("spark_catalog.adopt.kept")
    assert len(threads) == 1
    with pytest.raises(PySparkException, match="There is no"):
        spark.sql("call lake.system.migrate(table => 'adopt.less')")
    spark.sql("call lake.system.migrate(table => 'adopt.less', ignore_missing_files => true)")
    assert rows(spark, "select count(*) from lake.adopt.less") == [(6,)]


def test_failed_migration_leaves_the_table_unchanged(
    spark: SparkSession, attached: frazil.Lake, tmp_path: Path
) -> None:
    folder = make(spark, "adopt.old")
    before = rows(spark, "select * from adopt.old order by id")
    broken = Path(folder.removeprefix("file:")) / "part=z" / "part-broken.parquet"
    broken.write_bytes(b"PAR1 no footer PAR1")
    with pytest.raises(PySparkException):
        spark.sql("call lake.system.migrate('adopt.old')")
    broken.unlink()
    spark.sql("refresh table adopt.old")
    assert rows(spark, "select * from adopt.old order by id") == before
    assert not attached.table_exists("adopt.old")
    found = spark.sql("describe table extended adopt.old").where("col_name = 'Type'").collect()
    assert found[0][1] == "MANAGED"
    spark.sql("create table adopt.old_BACKUP_ using parquet as select 1 as id")
    with pytest.raises(InvalidRequestError, match="there is a table of that name"):
        attached.migrate_table("adopt.old")
    attached.create_table("adopt.old", "id bigint")
    with pytest.raises(FrazilError, match="there is a table of that name"):
        attached.migrate_table("adopt.old")
    assert rows(spark, "select * from spark_catalog.adopt.old order by id") == before


def test_sources_without_files_are_refused(spark: SparkSession, attached: frazil.Lake) -> None:
    spark.sql("create table adopt.text using csv as select 1 as id")
    spark.sql("create table adopt.buckets using parquet clustered by (id) into 2 buckets as select 1 as id")
    with pytest.raises(UnsupportedError, match="'csv'"):
        attached.snapshot_table("adopt.text", "db.new")
    with pytest.raises(UnsupportedError, match="bucketed"):
        attached.snapshot_table("adopt.buckets", "db.new")
    with pytest.raises(TableNotFoundError):
        attached.snapshot_table("adopt.nothing", "db.new")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_files_of_a_spark_table_are_added(spark: SparkSession, attached: frazil.Lake, kind: str) -> None:
    make(spark, "adopt.old", kind=kind)
    spark.sql(
        "create table lake.db.t (id bigint, ts timestamp, nested struct<a: bigint, b: array<bigint>>, part string) "
        "partitioned by (part)"
    )
    added = rows(spark, "call lake.system.add_files('db.t', 'adopt.old', map('part', 'a b/c%:'))")
    assert added[0][1] == 1
    assert rows(spark, "select * from lake.db.t order by id") == rows(
        spark, "select * from adopt.old where part = 'a b/c%:' order by id"
    )
