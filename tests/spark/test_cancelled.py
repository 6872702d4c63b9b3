"""Statements that are cancelled leave nothing half-done: no snapshot, and no file that the table does not have."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import frazil
from frazil.errors import FrazilError

SLOW = "select id, cast(java_method('java.lang.Thread', 'sleep', 40L) as string) kind from range(0, 4000, 1, 2)"
CHANGES = {
    "insert": f"insert into lake.db.t {SLOW}",
    "overwrite": f"insert overwrite lake.db.t {SLOW}",
    "merge": f"merge into lake.db.t t using ({SLOW}) s on t.id = s.id when not matched then insert *",
    "create": f"create table lake.db.made as {SLOW}",
    "replace": f"create or replace table lake.db.t as {SLOW}",
}


@pytest.fixture
def filled(attached: SparkSession) -> SparkSession:
    attached.sql("create table lake.db.t (id bigint, kind string)")
    attached.sql("insert into lake.db.t values (1, 'a'), (2, 'b')")
    return attached


def stray_files(lake: frazil.Lake, folder: Path) -> set[str]:
    """Return the data files that the table does not have. Tasks that were cancelled delete theirs when they notice."""
    known = lake.table("db.t").inspect.all_files().column("file_path").to_pylist()
    own = {one.removeprefix("file://") for one in known}
    found: set[str] = set()
    for _ in range(100):
        found = {str(one) for one in folder.rglob("*") if "/data/" in str(one) and one.is_file()} - own
        if not found:
            break
        time.sleep(0.2)
    return found


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, failed


def wait_for_job(spark: SparkSession) -> None:
    for _ in range(600):
        if spark.sparkContext.statusTracker().getActiveJobsIds():
            return
        time.sleep(0.1)
    raise AssertionError("no job began")


@dataclass(frozen=True)
class Way:
    """A way to cancel: what the thread that runs the statement says before, and what another one does.

    A session's own tags (`addTag`) are the thread's in PySpark with a JVM: `test_clients.py` has those.
    """

    prepare: Callable[[SparkSession], object]
    cancel: Callable[[SparkSession], object]


WAYS = {
    "insert": Way(
        lambda spark: spark.sparkContext.addJobTag("slow"), lambda spark: spark.sparkContext.cancelJobsWithTag("slow")
    ),
    "overwrite": Way(lambda spark: None, lambda spark: spark.interruptAll()),
    "merge": Way(lambda spark: None, lambda spark: spark.interruptAll()),
    "create": Way(
        lambda spark: spark.sparkContext.setJobGroup("slow", "it takes long"),
        lambda spark: spark.sparkContext.cancelJobGroup("slow"),
    ),
    "replace": Way(lambda spark: None, lambda spark: spark.sparkContext.cancelAllJobs()),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_interrupted_statement_leaves_nothing_behind(
    filled: SparkSession, lake: frazil.Lake, tmp_path: Path, change: str
) -> None:
    before = lake.table("db.t").metadata_location
    way = WAYS[change]

    def run() -> None:
        way.prepare(filled)
        filled.sql(CHANGES[change])

    thread, failed = in_background(run)
    wait_for_job(filled)
    way.cancel(filled)
    thread.join(120)
    assert not thread.is_alive()
    assert failed and isinstance(failed[0], PySparkException), failed
    assert "cancel" in str(failed[0]).lower()
    assert lake.table("db.t").refresh().metadata_location == before
    assert not lake.table_exists("db.made")
    assert stray_files(lake, tmp_path) == set()
    assert filled.table("lake.db.t").count() == 2


def test_interrupt_all_stops_python_verbs(filled: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    before = lake.table("db.t").metadata_location
    frame = filled.sql(SLOW)
    thread, failed = in_background(lambda: lake.table("db.t").append(frame))
    wait_for_job(filled)
    filled.interruptAll()
    thread.join(120)
    assert not thread.is_alive()
    assert failed and isinstance(failed[0], FrazilError | PySparkException), failed
    assert lake.table("db.t").refresh().metadata_location == before
    assert stray_files(lake, tmp_path) == set()


def test_verb_cancelled_between_jobs_does_not_commit(filled: SparkSession, lake: frazil.Lake) -> None:
    """Servers interrupt the thread of a statement: it may be at work in Python, with no job to cancel."""
    before = lake.table("db.t").metadata_location
    jvm: Any = filled.sparkContext._jvm
    jvm.java.lang.Thread.currentThread().interrupt()
    try:
        with pytest.raises(PySparkException) as caught:
            filled.sql("alter table lake.db.t add column x int")
    finally:
        jvm.java.lang.Thread.interrupted()
    assert caught.value.getCondition() == "OPERATION_CANCELED"
    assert lake.table("db.t").refresh().metadata_location == before
    filled.sql("alter table lake.db.t add column x int")


@pytest.mark.slow
def test_ctrl_c_stops_jobs_and_commits_nothing(tmp_path: Path) -> None:
    """PySpark's own handler cannot stop jobs while its thread waits for an answer; what is asked next still works."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.pressed_worker", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert {one["what"] for one in found} == {"insert", "merge", "script", "frame", "verb", "python", "rows"}, (
        done.stdout + done.stderr[-3000:]
    )
    for one in found:
        if one["what"] == "rows":
            assert one["rows"] == [[1], [2]]
            continue
        assert one["raised"] == "KeyboardInterrupt", one
        assert not one["is committed"] and one["seconds"] < 20, one
        # Within the commit it is not known whether it was made: nothing is deleted.
        assert one["what"] == "python" or one["stray files"] == 0, one


def test_table_dropped_before_a_statement_runs_is_reported(filled: SparkSession, lake: frazil.Lake) -> None:
    frame = filled.table("lake.db.t")
    rows = filled.sql("select 5L id, 'x' kind")
    lake.drop_table("db.t")
    # A frame stands for the state that it was made of.
    assert frame.count() == 2
    with pytest.raises(PySparkException) as caught:
        rows.writeTo("lake.db.t").append()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    with pytest.raises(PySparkException):
        filled.table("lake.db.t").collect()


def test_lake_with_an_unreachable_catalog_fails_alone(
    filled: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with frazil.connect(tmp_path / "other") as other:
        other.create_namespace("db")
        other.create_table("db.o", "id bigint")
        frazil.attach(filled, other, "other")
        for name in ("load_table", "namespace_exists", "list_namespaces", "load_namespace_properties", "table_exists"):
            if hasattr(type(other.catalog), name):
                monkeypatch.setattr(other.catalog, name, _down)
        assert filled.table("lake.db.t").count() == 2
        filled.sql("insert into lake.db.t values (3, 'c')")
        assert {"lake", "other"} <= {one[0] for one in filled.sql("show catalogs").collect()}
        assert filled.sql("show tables in lake.db").count() == 1
        with pytest.raises(PySparkException, match="is down"):
            filled.table("other.db.o").collect()
        with pytest.raises(PySparkException, match="is down"):
            filled.sql("select * from lake.db.t join other.db.o using (id)")


def _down(*_: object, **__: object) -> Any:
    raise frazil.ServiceError("Cannot ask the catalog: it is down")
