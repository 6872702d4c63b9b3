"""A client of Spark Connect in a process of its own: PySpark without a JVM, and nothing of frazil in its statements.

Run as `python -m tests.spark.connect_client <address>`. Each line of its input is JSON, and is answered by one:
`{"cases": file, "folder": of the lake}` runs a file of SQL cases, `{"tour": lake's folder}` every kind of use once.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import frazil
from tests.sql_case_files import read_cases, run_case, snapshots_of


def cases(address: str, name: str, folder: str) -> list[str]:
    """Run a file's cases in a session of its own; return those that do not hold."""
    spark = session(address)
    wrong = []
    with frazil.connect(folder) as lake:
        for case in read_cases(name):
            found = run_case(case, lambda text: spark.sql(text).collect(), snapshots_of(lake), messages=True)
            if found.problem is not None:
                wrong.append(f"{name}.txt:{case.line}: {case.statement}\n{found.problem}")
    spark.stop()
    return wrong


def session(address: str) -> SparkSession:
    """Return a new session of the server."""
    return SparkSession.builder.remote(address).create()


def tour(address: str) -> dict[str, Any]:
    """Use a lake in every way that there is; return what was seen."""
    spark = session(address)
    seen: dict[str, Any] = {}

    def rows(text: str) -> list[list[Any]]:
        return sorted([list(one) for one in spark.sql(text).collect()], key=repr)

    spark.sql("create table lake.db.c (id bigint, kind string) partitioned by (kind)")
    spark.sql("insert into lake.db.c values (1, 'a'), (2, 'b')")
    spark.range(3, 5).select("id", F.lit("c").alias("kind")).writeTo("lake.db.c").append()
    seen["appended"] = rows("select * from lake.db.c")
    stream = spark.readStream.table("lake.db.c").where("id > 1").writeStream.format("memory").queryName("streamed")
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination(120)
    seen["streamed"] = rows("select id from streamed")
    spark.sql("alter table lake.db.c create tag v1")
    spark.sql("delete from lake.db.c where id = 1")
    spark.sql("update lake.db.c set kind = upper(kind) where id = 2")
    spark.createDataFrame([(2, "m"), (9, "n")], "id bigint, kind string").createOrReplaceTempView("news")
    spark.sql(
        """merge into lake.db.c t using news s on t.id = s.id
           when matched then update set kind = s.kind when not matched then insert *"""
    )
    seen["changed"] = rows("select * from lake.db.c")
    seen["then"] = rows("select * from lake.db.c version as of 'v1'")
    seen["read"] = sorted(
        list(one) for one in spark.read.format("iceberg").option("tag", "v1").load("lake.db.c").collect()
    )
    spark.sql("alter table lake.db.c add column x int")
    spark.createDataFrame([(10, "o", 5)], "id bigint, kind string, x int").write.format("iceberg").mode("append").save(
        "lake.db.c"
    )
    seen["evolved"] = rows("select id, x from lake.db.c where x is not null")
    seen["files"] = spark.table("lake.db.c.files").count() > 0
    ((_, file),) = rows("select id, _file from lake.db.c where id = 10")
    seen["columns"] = file.endswith(".parquet")
    (called,) = spark.sql("call lake.system.rewrite_data_files(table => 'db.c')").collect()
    seen["called"] = "rewritten_data_files_count" in called.asDict()
    seen["tables"] = [one.name for one in spark.catalog.listTables("lake.db")]
    seen["exists"] = [spark.catalog.tableExists("lake.db.c"), spark.catalog.tableExists("lake.db.nope")]
    try:
        spark.table("lake.db.nope").collect()
    except PySparkException as error:
        seen["missing"] = error.getCondition()
    spark.sql("drop table lake.db.c")
    spark.stop()
    return seen


def main(address: str) -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        found = tour(address) if "tour" in asked else cases(address, asked["cases"], asked["folder"])
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
