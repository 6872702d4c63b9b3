"""Reads and writes a service's table on Spark for longer than the service's keys last; prints what it saw as JSON.

python -m tests.spark.ending_keys_worker ADDRESS MASTER JAR:JAR:… SECONDS FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import frazil

# A row takes its time, and Spark reads the next file when the rows of one are through.
SLOW = "id, kind, reflect('java.lang.Thread', 'sleep', cast(2500 as bigint)) as waited"


def main() -> None:
    address, master, jars, seconds, folder = sys.argv[1:6]
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    builder = SparkSession.builder.master(master)
    if master.startswith("local"):
        builder = builder.config("spark.jars", jars.replace(":", ","))
    else:
        # As where a cluster's Spark has the file system among its own jars.
        builder = builder.config("spark.driver.extraClassPath", jars).config("spark.executor.extraClassPath", jars)
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.cores.max", "2")
        .config("spark.task.maxFailures", "1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.files.maxPartitionBytes", str(1 << 30))
        .config("spark.sql.files.openCostInBytes", "0")
        .config("spark.sql.files.minPartitionNum", "1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    seen: dict[str, Any] = {}
    with warnings.catch_warnings():
        # A table that is read on the driver is a warning, and here a failure.
        warnings.simplefilter("error", UserWarning)
        lake = frazil.connect(address)
        frazil.attach(spark, lake)
        spark.sql("create table lake.db.t (id bigint, kind string) using iceberg")
        spark.sql("create table lake.db.copy (id bigint, kind string, waited string) using iceberg")
        for at in range(6):
            spark.sql(f"insert into lake.db.t values ({2 * at}, 'a'), ({2 * at + 1}, 'b')")
        kept = spark.sql("select count(*), sum(id) from lake.db.t")
        kept.explain("simple")
        seen["plan"] = kept._jdf.queryExecution().toString()
        time.sleep(int(seconds) + 1)
        seen["kept frame"] = list(kept.collect()[0])
        start = time.monotonic()
        slow = spark.sql(f"select {SLOW} from lake.db.t").coalesce(1)
        seen["one task"] = list(slow.selectExpr("count(waited)", "sum(id)").collect()[0])
        seen["seconds"] = time.monotonic() - start
        spark.sql(f"insert into lake.db.copy select /*+ COALESCE(1) */ {SLOW} from lake.db.t")
        seen["written"] = list(spark.sql("select count(*), sum(id) from lake.db.copy").collect()[0])
        seen["files"] = [row[0] for row in spark.sql("select file_path from lake.db.t.files").collect()]
    seen["conf"] = json.dumps(spark.sparkContext.getConf().getAll())
    spark.stop()
    lake.close()
    seen["logs"] = "".join(one.read_text(errors="replace") for one in Path(folder).rglob("stderr"))
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
