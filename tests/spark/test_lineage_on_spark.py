"""OpenLineage events of SQL and DataFrames: a statement is one run, with the tables it reads and the one it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil

pytest.importorskip("openlineage.client", reason="openlineage-python is an extra")


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[frazil.Lake]:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(tmp_path / "events.json"))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    properties = {"openlineage.enabled": "true", "openlineage.job-name": "night"}
    with frazil.connect(tmp_path / "lake", properties=properties) as lake:
        frazil.attach(spark, lake)
        spark.sql("create table lake.db.a (id bigint, v string)")
        spark.sql("create table lake.db.b (id bigint, v string)")
        spark.sql("insert into lake.db.b values (1, 'x'), (2, 'y')")
        yield lake
        lake.catalog.lineage.flush(60)
        frazil.detach(spark)


def runs(lake: frazil.Lake, tmp_path: Path) -> list[tuple[str, str, list[str], list[str]]]:
    """Return the ends of runs: job, outcome, inputs and outputs; and forget them."""
    lake.catalog.lineage.flush()
    path = tmp_path / "events.json"
    events = [json.loads(one) for one in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)

    def names(given: list[dict[str, Any]]) -> list[str]:
        return sorted(one["facets"]["symlinks"]["identifiers"][0]["name"] for one in given)

    return [
        (one["job"]["name"], one["eventType"], names(one["inputs"]), names(one["outputs"]))
        for one in events
        if one["eventType"] != "START"
    ]


def test_statement_is_one_lineage_run_with_its_inputs(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    assert runs(lake, tmp_path) == [("night.append.db.b", "COMPLETE", [], ["db.b"])]
    spark.sql("insert into lake.db.a select * from lake.db.b where id > 0")
    assert runs(lake, tmp_path) == [("night.append.db.a", "COMPLETE", ["db.b"], ["db.a"])]
    spark.sql("create table lake.db.c as select b.id, a.v from lake.db.b join lake.db.a using (id)")
    assert runs(lake, tmp_path) == [("night.create.db.c", "COMPLETE", ["db.a", "db.b"], ["db.c"])]
    spark.sql("merge into lake.db.a t using lake.db.b s on t.id = s.id when matched then update set v = 'z'")
    assert runs(lake, tmp_path) == [("night.merge.db.a", "COMPLETE", ["db.a", "db.b"], ["db.a"])]
    for verb, statement in (
        ("update", "update lake.db.a set v = 'y'"),
        ("delete", "delete from lake.db.a where id = 2"),
    ):
        spark.sql(statement)
        assert runs(lake, tmp_path) == [(f"night.{verb}.db.a", "COMPLETE", ["db.a"], ["db.a"])]
    spark.table("lake.db.a").where("id = 1").collect()
    assert [one[:3] for one in runs(lake, tmp_path)] == [("night.scan.db.a", "COMPLETE", ["db.a"])]


def test_failed_statement_is_reported_to_lineage(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    runs(lake, tmp_path)
    with pytest.raises(Exception, match="no"):
        spark.sql("insert into lake.db.a select id, raise_error('no') from lake.db.b")
    ((job, outcome, _, outputs),) = runs(lake, tmp_path)
    assert (job, outcome, outputs) == ("night.append.db.a", "FAIL", [])
    assert lake.table("db.a").scan().count() == 0
