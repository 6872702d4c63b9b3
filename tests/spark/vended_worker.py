"""Reads and writes a service's table on Spark with the keys that the service gives; prints what it saw as JSON.

python -m tests.spark.vended_worker ADDRESS JAR,JAR,…
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

from pyspark.sql import SparkSession

import frazil


def main() -> None:
    address, jars = sys.argv[1:3]
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        del os.environ[name]
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", sys.argv[3])
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    seen: dict[str, Any] = {}
    with warnings.catch_warnings():
        # A table that is read on the driver is a warning, and here a failure.
        warnings.simplefilter("error", UserWarning)
        lake = frazil.connect(address)
        frazil.attach(spark, lake)
        spark.sql("create table lake.db.t (id bigint, kind string) using iceberg partitioned by (kind)")
        spark.sql("insert into lake.db.t select id, concat('k', id % 3) from range(100)")
        spark.sql("delete from lake.db.t where id < 10")
        seen["rows"] = spark.sql("select count(*), sum(id) from lake.db.t where kind <> 'none'").collect()[0]
        frame = spark.sql("select * from lake.db.t where id > 5")
        seen["plan"] = frame._jdf.queryExecution().toString()
        seen["files"] = [row[0] for row in spark.sql("select file_path from lake.db.t.files").collect()]
    conf = spark.sparkContext.getConf().getAll()
    seen["conf"] = json.dumps(conf)
    try:
        spark.read.parquet(seen["files"][0].replace("s3://", "s3a://")).count()
        seen["without"] = "read"
    except Exception as error:
        seen["without"] = type(error).__name__
    spark.stop()
    lake.close()
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
