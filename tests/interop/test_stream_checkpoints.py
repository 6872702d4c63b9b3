"""One streaming query by turns of the jar and frazil: checkpoints of either are continued by the other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.interop.java_runtime import JavaLake

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

MOST = "streaming-max-files-per-micro-batch"


@pytest.fixture
def java_lake(tmp_path: Path, java: None, session: Any) -> Iterator[JavaLake]:
    with frazil.connect(tmp_path / "warehouse", catalog=f"sqlite:///{tmp_path / 'catalog.db'}") as lake:
        lake.create_namespace("db")
        frazil.attach(session, lake)
        yield JavaLake(tmp_path, "catalog.db")
        frazil.detach(session)


def by_frazil(spark: Any, checkpoint: Path, options: dict[str, str]) -> list[list[int]]:
    seen: list[list[int]] = []
    query = (
        spark.readStream.options(**options)
        .table("lake.db.t")
        .writeStream.foreachBatch(lambda rows, _: seen.append(sorted(row.id for row in rows.collect())))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    return seen


def write(java_lake: JavaLake, session: Any) -> list[int]:
    """Snapshots of several files, by both writers, with manifests that were merged and a compaction."""
    java_lake.run(
        "create table lake.db.t (id bigint) using iceberg tblproperties "
        "('commit.manifest.min-count-to-merge'='2', 'write.distribution-mode'='none')"
    )
    java_lake.run("insert into lake.db.t select /*+ repartition(3) */ id from range(0, 6)")
    session.range(6, 12).repartition(3).writeTo("lake.db.t").append()
    java_lake.run("insert into lake.db.t select /*+ repartition(2) */ id from range(12, 18)")
    java_lake.run("call lake.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    session.range(18, 24).repartition(2).writeTo("lake.db.t").append()
    java_lake.run("insert into lake.db.t select /*+ repartition(3) */ id from range(24, 30)")
    return list(range(30))


def cut(checkpoint: Path, into: Path, batches: int, *, is_done: bool) -> Path:
    """Return a copy of a checkpoint as it was after some batches; the last one may not have been committed."""
    shutil.copytree(checkpoint, into)
    for folder, last in (("offsets", batches - 1), ("commits", batches - 1 if is_done else batches - 2)):
        for one in (into / folder).iterdir():
            number = one.name.removeprefix(".").partition(".")[0]
            if number.isdigit() and int(number) > last:
                one.unlink()
    return into


@pytest.mark.parametrize("is_done", [True, False])
def test_stream_switches_between_the_jar_and_frazil_at_any_batch(
    java_lake: JavaLake, session: Any, tmp_path: Path, is_done: bool
) -> None:
    expected = write(java_lake, session)
    options = {MOST: "1"}
    whole = {
        "jar": java_lake.verb("stream", "lake.db.t", str(tmp_path / "jar"), options),
        "frazil": by_frazil(session, tmp_path / "frazil", {**options, "stream-from-snapshot": "earliest"}),
    }
    for who, batches in whole.items():
        assert sorted(one for batch in batches for one in batch) == expected, who
    assert whole["jar"] == whole["frazil"], "the same batches"
    count = len(whole["jar"])
    for at in range(1, count):
        done = at if is_done else at - 1
        begun = cut(tmp_path / "jar", tmp_path / f"jar-{at}", at, is_done=is_done)
        assert by_frazil(session, begun, options) == whole["jar"][done:], f"the jar's checkpoint after batch {at}"
        if at % 3 == 1:
            begun = cut(tmp_path / "frazil", tmp_path / f"frazil-{at}", at, is_done=is_done)
            found = java_lake.verb("stream", "lake.db.t", str(begun), options)
            assert found == whole["frazil"][done:], f"frazil's checkpoint after batch {at}"


def test_stream_that_read_the_whole_table_first_continues_with_the_jar(
    java_lake: JavaLake, session: Any, tmp_path: Path
) -> None:
    write(java_lake, session)
    assert by_frazil(session, tmp_path / "c", {}) == [list(range(30))]
    assert '"done":true' in (tmp_path / "c" / "offsets" / "0").read_text(), "the jar passes it over"
    session.range(30, 33).coalesce(1).writeTo("lake.db.t").append()
    assert java_lake.verb("stream", "lake.db.t", str(tmp_path / "c"), {}) == [[30, 31, 32]]
    java_lake.run("insert into lake.db.t select id from range(33, 35)")
    found = by_frazil(session, tmp_path / "c", {})
    assert sorted(one for batch in found for one in batch) == [33, 34]
