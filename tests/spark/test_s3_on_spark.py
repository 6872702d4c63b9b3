"""`frazil.session` brings what Spark needs to read S3 itself: `hadoop-aws` of its own Hadoop, and the lake's keys."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.s3_server import BUCKET, running


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_session_reads_and_writes_s3_on_executors(tmp_path: Path) -> None:
    """Jars come from Maven, some hundred megabytes; where it cannot be reached, nothing is told."""
    with running() as server:
        script = textwrap.dedent(
            f"""
            import warnings
            import frazil

            warnings.simplefilter("error", UserWarning)
            spark = (
                frazil.session("s3://{BUCKET}/lake", properties={server.properties!r}, catalog="sqlite:///{tmp_path}/c.db")
                .master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
                .config("spark.sql.shuffle.partitions", "1").getOrCreate()
            )
            spark.sql("create namespace lake.db")
            spark.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
            spark.sql("insert into lake.db.t select id, concat('k', id % 3) from range(1000)")
            spark.sql("delete from lake.db.t where id = 7")
            spark.sql(
                "merge into lake.db.t t using (select 5000L id) s on t.id = s.id "
                "when not matched then insert (id) values (s.id)"
            )
            found = spark.table("lake.db.t").where("kind = 'k1' or kind is null")
            print("plan", found._jdf.queryExecution().executedPlan().toString())
            print("rows", found.count(), spark.table("lake.db.t").count())
            ((name,), *_) = spark.sql("select distinct input_file_name() from lake.db.t").collect()
            print("file", name)
            spark.stop()
            """
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=1500, cwd=tmp_path, check=False
        )
    if "unresolved dependency" in done.stderr or "UNRESOLVED DEPENDENCIES" in done.stderr:
        pytest.skip("Maven cannot be reached")
    assert "rows 334 1000" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    assert "FileScan parquet" in done.stdout and "LocalTableScan" not in done.stdout
    assert f"file s3://{BUCKET}/lake/" in done.stdout and "#" not in done.stdout.partition("file s3://")[2]
