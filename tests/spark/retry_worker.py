"""A process of its own: appends and changes rows while tasks fail at their first attempt, and prints what came of it.

`local[2, 4]` tries a task again, which the session of the other tests does not.
"""

from __future__ import annotations

import json
import sys

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil


def failing_once(frame: DataFrame) -> DataFrame:
    """Return a frame each of whose tasks fails once, at its last row."""

    def check(number):  # type: ignore[no-untyped-def]  # Spark warns about hints it cannot use
        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0 and number % 100 == 99:
            raise RuntimeError("the first attempt fails")
        return number

    fail = F.udf(check, "bigint", useArrow=False).asNondeterministic()
    return frame.withColumn("id", fail("id"))


def main() -> None:
    """Write to a table in a folder, natively and through Python workers, with failing tasks."""
    spark = (
        SparkSession.builder.master("local[2, 4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.pythonExec = sys.executable
    found = {}
    with frazil.connect(sys.argv[1]) as lake:
        lake.create_namespace("db")
        rows = spark.range(0, 400, numPartitions=4)
        for name, more in (("native", []), ("arrow", ["array(id) as tags"])):
            ddl = "id bigint, k string" + (", tags list<bigint>" if more else "")
            table = lake.create_table(f"db.{name}", ddl, partition_by=["k"], format_version=3)
            frame = rows.selectExpr("id", "string(id % 3) as k", *more)
            table.append(failing_once(frame))
            table.upsert(failing_once(frame.filter("id >= 200").withColumn("k", F.lit("new"))), keys=["id"])
            ids = sorted(row["id"] for row in table.scan().to_arrow().to_pylist())
            found[name] = ids == list(range(400)) and table.scan("k = 'new'").count() == 200 and table.check().ok
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
