"""Spark contexts that follow each other in one process, as notebooks and test suites have them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TURNS = 3


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lake_works_in_every_spark_context_of_a_process(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(HERE / "restart_worker.py"), str(tmp_path / "lake"), str(TURNS)],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert json.loads(result.stdout.splitlines()[-1]) == [list(range(turn + 1)) for turn in range(TURNS)]


STOPPED = """
import sys
import frazil
from pyspark.sql import SparkSession

def start():
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()

def refused(use):
    try:
        use()
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return "nothing was said"

with frazil.connect(sys.argv[1]) as lake:
    table = lake.create_table("db.t", "id bigint")
    spark = start()
    spark.sparkContext.setLogLevel("OFF")
    frazil.attach(spark, lake)
    spark.sql("insert into lake.db.t values (1), (2)")
    frame = spark.table("lake.db.t")
    spark.stop()
    for use in (
        lambda: frazil.attach(spark, lake),
        lambda: table.append(frame),
        lambda: table.scan().to_spark(spark),
    ):
        assert "Cannot use the Spark session: it was stopped" in refused(use), refused(use)
    for use in (
        lambda: spark.sql("select * from lake.db.t").collect(),
        lambda: spark.table("lake.db.t").collect(),
        lambda: spark.sql("drop table lake.db.t"),
        lambda: spark.sql("call lake.system.rewrite_data_files('db.t')"),
        lambda: frame.writeTo("lake.db.t").append(),
    ):
        assert "the Spark session was stopped" in refused(use), refused(use)
    frazil.detach(spark)
    assert lake.attached_spark is None
    again = start()
    frazil.attach(again, lake)
    # The lake is of the new session, although the old one had it too.
    frazil.detach(spark)
    assert lake.spark is again
    assert again.table("lake.db.t").count() == table.refresh().scan().to_spark().count() == 2
    again.stop()
    # Nobody detached it: what needs Spark starts one.
    other = lake.spark
    assert other is not again and table.scan().to_spark().count() == 2
    other.stop()
print("done")
"""


@pytest.mark.slow
def test_stopped_session_is_reported(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, str(tmp_path / "lake")],
        capture_output=True, text=True, timeout=500, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("done"), done.stderr[-3000:]
