"""Properties of a table that say how Spark spreads the rows of writes, and options of streams that compact."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.sessions.remembered import REMEMBERED
from frazil.sessions.stream_compaction import Compactions


def files(table: frazil.Table) -> int:
    return len(table.refresh().inspect.data_files())


def test_size_and_open_file_properties_are_respected(attached: SparkSession, lake: frazil.Lake) -> None:
    rows = attached.range(0, 2000, 1, 4).selectExpr("id", "cast(id % 2 as string) kind")
    for size, least in (("200", 3), (str(1 << 27), 2)):
        table = lake.create_table(
            f"db.t{size}",
            "id bigint, kind string",
            partition_by=["kind"],
            properties={"write.spark.advisory-partition-size-bytes": size, "write.distribution-mode": "hash"},
        )
        rows.writeTo(f"lake.db.t{size}").append()
        assert files(table) >= least if size == "200" else files(table) == least
    table = lake.create_table(
        "db.fanned",
        "id bigint, kind string",
        partition_by=["kind"],
        properties={"write.spark.fanout.enabled": "true", "write.distribution-mode": "none"},
    )
    one_task = attached.range(0, 2000, 1, 1).selectExpr("id", "cast(id % 40 as string) kind")
    one_task.writeTo("lake.db.fanned").append()
    assert files(table) == 40
    assert table.scan().count() == 2000


@pytest.mark.extended
@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_distribution_properties_of_changes_are_respected(attached: SparkSession, lake: frazil.Lake, verb: str) -> None:
    """write.delete.distribution-mode, write.update.distribution-mode, write.merge.distribution-mode"""
    statements = {
        "delete": "delete from {} where id % 10 = 3",
        "update": "update {} set v = 'b' where id % 10 = 3",
        "merge": "merge into {} t using (select 3L id) s on t.id % 10 = s.id when matched then update set v = 'b'",
    }

    def count(mode: str) -> int:
        table = lake.create_table(
            f"db.{mode}",
            "id bigint, kind string, v string",
            partition_by=["kind"],
            properties={
                "write.distribution-mode": "none",
                f"write.{verb}.distribution-mode": mode,
                # Each file is a task of its own.
                "read.split.open-file-cost": str(1 << 30),
            },
        )
        rows = attached.range(0, 400, 1, 4).selectExpr("id", "cast(id % 2 as string) kind", "'a' v")
        rows.writeTo(f"lake.db.{mode}").append()
        assert files(table) == 8
        attached.sql(statements[verb].format(f"lake.db.{mode}"))
        changed = {"delete": 360, "update": 400, "merge": 400}[verb]
        assert attached.table(f"lake.db.{mode}").count() == changed
        return files(table)

    # Rows that change are in one partition: each task writes a file, or one does; the other partition's four stay.
    assert count("hash") == 5
    assert count("none") >= 8


@pytest.mark.extended
@pytest.mark.parametrize(("option", "value"), [("compact-every-batches", "2"), ("compact-every-bytes", "1")])
def test_stream_compacts_at_its_configured_interval(
    attached: SparkSession, lake: frazil.Lake, tmp_path: Path, option: str, value: str
) -> None:
    source = lake.create_table("db.source", "id bigint")
    for number in range(6):
        source.append([{"id": number}])
    table = lake.create_table("db.t", "id bigint")
    query = (
        attached.readStream.option("streaming-max-files-per-micro-batch", "1")
        .table("lake.db.source")
        .writeStream.option(option, value)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("lake.db.t")
    )
    assert query.awaitTermination(300)
    finished, _, problems = REMEMBERED.compactions.recall(str(query.id), Compactions).wait()
    assert (finished > 0, problems) == (True, [])
    operations = [one.operation for one in table.refresh().snapshots]
    assert "replace" in operations, operations
    assert files(table) < 6
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(6))
