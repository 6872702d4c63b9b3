"""A client of Spark Connect in a process of its own: PySpark without a JVM, and nothing of frazil in its statements.

Run as `python -m tests.spark.connect_client <address>`. Each line of its input is JSON, and is answered by one:
`{"cases": file, "folder": of the lake}` runs a file of SQL cases, `{"tour": ""}` every kind of use once, `{"uses": ""}`
what once failed, `{"writers": folder}` what writers are told, `{"streams": folder}` streams of tables with checkpoints
there, `{"batches": folder}` a stream whose batches a function writes, `{"cancelled": ""}` interrupts a write,
`{"leave": ""}` ends the process in the midst of one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import frazil
from tests.support.sql_case_files import read_cases, run_case, snapshots_of


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


def uses(address: str) -> dict[str, Any]:
    """Do what failed where lakes were beside Spark (`test_inside_spark.py`), as a client; return what was seen."""
    spark = session(address)
    seen: dict[str, Any] = {}

    def rows(text: str, **given: Any) -> list[list[Any]]:
        return sorted([list(one) for one in spark.sql(text, **given).collect()], key=repr)

    def refused(text: str) -> str:
        return str(refusal(lambda: spark.sql(text).collect())[2])

    def condition(text: str) -> list[str | None]:
        return refusal(lambda: spark.sql(text).collect())[:2]

    spark.sql("create table lake.db.c (id bigint, kind string) partitioned by (kind)")
    spark.sql("insert into lake.db.c values (1, 'a'), (2, 'b'), (3, 'a')")
    spark.sql("/* c */ -- d\ncreate or replace temporary view y as select * from lake.db.c")
    seen["comment"] = rows("select count(*) from y")
    spark.sql("use lake")
    spark.sql("create or replace temporary view bound as select * from db.c")
    spark.sql("use spark_catalog.default")
    seen["bound"] = rows("select count(*) from bound")
    other = session(address)
    seen["other session"] = other.table("lake.db.c").count()
    other.stop()
    watched = Observation("m")
    frame = spark.range(10, 12).selectExpr("id", "'o' kind").observe(watched, F.count(F.lit(1)).alias("n"))
    frame.writeTo("lake.db.c").append()
    seen["observed"] = watched.get
    seen["exists"] = [spark.catalog.getTable("lake.db.c").name, spark.catalog.getDatabase("lake.db").name]
    spark.catalog.cacheTable("lake.db.c")
    seen["cached"] = [spark.catalog.isCached("lake.db.c"), spark.table("lake.db.c").count()]
    spark.sql("delete from lake.db.c where id >= 10")
    seen["renewed"] = [spark.catalog.isCached("lake.db.c"), spark.table("lake.db.c").count()]
    spark.catalog.uncacheTable("lake.db.c")
    spark.catalog.createTable("lake.db.made", schema=spark.table("lake.db.c").schema, source="iceberg")
    seen["catalogs"] = ["lake"] in rows("show catalogs")
    seen["no tables"] = rows("show tables in lake")
    seen["functions"] = "bucket" in str(rows("show functions in lake.system"))
    seen["procedures"] = "rewrite_data_files" in str(rows("show procedures in lake.system"))
    spark.sql("use lake.db")
    seen["listed"] = "upper" in [one.name for one in spark.catalog.listFunctions()]
    spark.sql("use spark_catalog.default")
    default = session(address)
    default.conf.set("spark.sql.defaultCatalog", "lake")
    seen["default"] = [default.catalog.currentCatalog(), default.table("db.c").count()]
    # One that is not stopped would be closed when the process ends, and might wait for ever for its channel.
    default.stop()
    seen["function"] = "bucket" in str(rows("describe function lake.system.bucket"))
    spark.sql("analyze table lake.db.c compute statistics for columns id")
    spark.sql("create or replace view default.over_lake as select kind, count(*) n from lake.db.c group by kind")
    seen["view"] = rows("select * from default.over_lake")
    spark.sql("drop view default.over_lake")
    spark.sql(
        """from lake.db.c insert into lake.db.made select id, kind where kind = 'a'
           insert into lake.db.made select id + 10, kind where kind = 'b'"""
    )
    seen["several"] = rows("select id from lake.db.made")
    seen["spelt"] = rows("select count(*) from identifier(:c || '.db.c')", args={"c": "lake"})
    seen["misspelt"] = "no lake 'lak' is attached; attached are: lake" in refused("select * from lak.db.c")
    seen["missing"] = condition("select * from lake.db.nope")
    seen["there"] = condition("create table lake.db.c (id int)")
    seen["nowhere"] = condition("show tables in lake.nope")
    wrong = refused("delete from lake.db.c where nocol = 1")
    seen["column"] = ["nocol" in wrong, "__frazil" in wrong]
    files = [one[0] for one in rows("select input_file_name() from lake.db.c")]
    files += [one[0] for one in rows("select _metadata.file_path from lake.db.c")]
    seen["files"] = all(one.endswith(".parquet") for one in files)
    ((plan,),) = rows("explain delete from lake.db.c where id = 1")
    seen["explained"] = "Lake delete" in plan and spark.table("lake.db.c").count() == 3
    ((plan,),) = rows("explain select kind, count(*) from lake.db.c where id > 1 group by kind")
    seen["native"] = ["FileScan parquet" in plan, "PlannedFiles" in plan, "Python" in plan]
    ((text,),) = rows("show create table lake.db.c")
    spark.sql(text.replace("lake.db.c", "lake.db.again").replace("/c'", "/again'"))
    ((again,),) = rows("show create table lake.db.again")
    seen["created"] = again.replace("lake.db.again", "lake.db.c").replace("/again'", "/c'") == text
    for table in ("c", "made", "again"):
        spark.sql(f"drop table lake.db.{table}")
    spark.stop()
    return seen


def refusal(use: Callable[[], Any]) -> list[Any]:
    """Do what Spark refuses; return its condition, its SQL state and its whole text."""
    try:
        use()
    except PySparkException as error:
        return [error.getCondition(), error.getSqlState(), str(error)]
    return [None, None, ""]


def writers(address: str, folder: str) -> dict[str, Any]:
    """Tell writers what they may be told (`test_writer_options.py`); return what became of it."""
    spark = session(address)
    seen: dict[str, Any] = {}

    def rows(text: str) -> list[list[Any]]:
        return sorted([list(one) for one in spark.sql(text).collect()], key=repr)

    frame = spark.createDataFrame([(4, "c"), (5, "a")], "id bigint, kind string")
    writer = frame.write.partitionBy("kind").bucketBy(4, "id").option("path", f"{folder}/elsewhere")
    writer.option("snapshot-property.who", "me").saveAsTable("lake.db.made")
    ((text,),) = rows("show create table lake.db.made")
    seen["made"] = [one in text for one in ("PARTITIONED BY (kind, bucket(4, id))", f"{folder}/elsewhere'")]
    replacing = frame.write.mode("overwrite").option("snapshot-property.who", "you")
    replacing.saveAsTable("lake.db.made")
    seen["said"] = rows("select summary['who'] from lake.db.made.snapshots")
    spark.sql("create table lake.db.p (id bigint, kind string) partitioned by (kind)")
    for mode in ("dynamic", "static"):
        spark.sql("insert overwrite lake.db.p values (1, 'a'), (2, 'b')")
        frame.write.mode("overwrite").option("partitionOverwriteMode", mode).insertInto("lake.db.p")
        seen[mode] = rows("select * from lake.db.p")
    refused: dict[str, Callable[[], Any]] = {
        "one column": lambda: frame.write.bucketBy(4, "id", "kind").saveAsTable("lake.db.no"),
        "sortBy": lambda: frame.write.bucketBy(4, "id").sortBy("id").saveAsTable("lake.db.no"),
        "clustering": lambda: frame.write.clusterBy("id").saveAsTable("lake.db.no"),
        "clusterBy": lambda: frame.writeTo("lake.db.no").using("iceberg").clusterBy("id").create(),
        "bucketBy": lambda: frame.write.bucketBy(4, "id").insertInto("lake.db.p"),
        "branch": lambda: frame.writeTo("lake.db.no").option("branch", "b").create(),
    }
    seen["refused"] = [word for word, write in refused.items() if word in refusal(write)[2]]
    seen["nothing"] = spark.catalog.tableExists("lake.db.no")
    for table in ("made", "p"):
        spark.sql(f"drop table lake.db.{table}")
    spark.stop()
    return seen


def batches(address: str, folder: str) -> dict[str, Any]:
    """Write the batches of a stream by a function, which runs in a Python of the server's; return what was seen."""
    spark = session(address)
    spark.sql("create table lake.db.b (id bigint, kind string)")
    spark.sql("create table lake.db.from (id bigint, kind string)")
    spark.sql("insert into lake.db.from values (10, 's'), (11, 's')")

    def write(batch: Any, number: int) -> None:
        batch.writeTo("lake.db.b").option("snapshot-property.batch", str(number)).append()
        batch.createOrReplaceTempView("news")
        batch.sparkSession.sql(
            "merge into lake.db.b t using news s on t.id = s.id and s.id = 10 when matched then update set kind = 'm'"
        )

    def fail(batch: Any, _: int) -> None:
        batch.writeTo("lake.db.nope").append()

    def run(function: Callable[[Any, int], None], name: str) -> str:
        writer = spark.readStream.table("lake.db.from").writeStream.foreachBatch(function)
        writer = writer.option("checkpointLocation", f"{folder}/{name}").trigger(availableNow=True)
        try:
            assert writer.start().awaitTermination(120), "the stream goes on"
        except PySparkException as error:
            # Spark waits ten seconds for a Python to start, which a busy machine may not have.
            return run(function, name) if "failed to connect back" in str(error) else str(error)
        return ""

    seen: dict[str, Any] = {"failed": run(write, "state")}
    spark.sql("insert into lake.db.from values (12, 's')")
    seen["failed again"] = run(write, "state")
    seen["rows"] = sorted(list(one) for one in spark.table("lake.db.b").collect())
    said = spark.sql("select summary['batch'] n from lake.db.b.snapshots where summary['batch'] is not null")
    seen["batches"] = sorted(one.n for one in said.collect())
    seen["missing"] = "TABLE_OR_VIEW_NOT_FOUND" in run(fail, "failing")
    for table in ("b", "from"):
        spark.sql(f"drop table lake.db.{table}")
    spark.stop()
    return seen


def streams(address: str, folder: str) -> dict[str, Any]:
    """Stream from tables into tables, in every output mode; return what was seen. Checkpoints are in a folder."""
    spark = session(address)
    seen: dict[str, Any] = {}

    def rows(name: str) -> list[list[Any]]:
        return sorted(list(one) for one in spark.table(f"lake.db.{name}").collect())

    def write(frame: Any, name: str, mode: str, **options: str) -> None:
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", f"{folder}/{name}")
        query = writer.options(**options).trigger(availableNow=True).toTable(f"lake.db.{name}")
        query.awaitTermination(120)
        if query.exception() is not None:
            raise query.exception()

    def pass_on() -> None:
        write(spark.readStream.table("lake.db.s"), "copied", "append")
        counts = spark.readStream.table("lake.db.s").groupBy("kind").count()
        write(counts, "counted", "complete")
        write(counts, "kept", "update", **{"upsert-keys": "kind"})

    spark.sql("create table lake.db.s (id bigint, kind string)")
    spark.sql("create table lake.db.copied (id bigint, kind string)")
    for name in ("counted", "kept"):
        spark.sql(f"create table lake.db.{name} (kind string, count bigint)")
    spark.sql("insert into lake.db.s values (1, 'a'), (2, 'b')")
    pass_on()
    spark.sql("insert into lake.db.s values (3, 'b'), (4, 'c')")
    pass_on()
    spark.sql("delete from lake.db.s where id = 1")
    feed = spark.readStream.option("streaming-changes", "changes").option("stream-from-snapshot", "earliest")
    changes = feed.table("lake.db.s").select("id", "_change_type")
    changes.writeStream.format("memory").queryName("changed").trigger(availableNow=True).start().awaitTermination(120)
    seen["changed"] = sorted(list(one) for one in spark.table("changed").collect())
    for name in ("copied", "counted", "kept"):
        seen[name] = rows(name)
    for name in ("s", "copied", "counted", "kept"):
        spark.sql(f"drop table lake.db.{name}")
    spark.stop()
    return seen


SLOW = "select id, cast(java_method('java.lang.Thread', 'sleep', 25L) as string) kind from range(0, {}, 1, 2)"


def cancelled(address: str) -> dict[str, Any]:
    """Interrupt writes, by all and by a tag; return what they raised, and what the table has then."""
    spark = session(address)
    spark.sql("create table lake.db.k (id bigint, kind string)")
    raised: list[str] = []

    def write() -> None:
        spark.addTag("mine")
        try:
            spark.sql(f"insert into lake.db.k {SLOW.format(8000)}")
        except PySparkException as error:
            raised.append(str(error.getCondition()))

    for interrupt in (spark.interruptAll, lambda: spark.interruptTag("mine")):
        thread = threading.Thread(target=write)
        thread.start()
        while thread.is_alive():
            time.sleep(2)
            interrupt()
    found = {"raised": raised, "rows": spark.table("lake.db.k").count()}
    spark.sql("insert into lake.db.k values (1, 'a')")
    found["after"] = spark.table("lake.db.k").count()
    spark.stop()
    return found


def leave(address: str) -> None:
    """Go away in the midst of a write."""
    spark = session(address)
    spark.sql("create table lake.db.gone (id bigint, kind string)")
    threading.Thread(target=lambda: spark.sql(f"insert into lake.db.gone {SLOW.format(400)}"), daemon=True).start()
    time.sleep(3)
    os._exit(0)


def main(address: str) -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "leave" in asked:
            leave(address)
        verbs: dict[str, Callable[[str], Any]] = {"tour": tour, "uses": uses, "cancelled": cancelled}
        for name, verb_of_folder in (("streams", streams), ("writers", writers), ("batches", batches)):
            if name in asked:
                verbs[name] = partial(verb_of_folder, folder=asked[name])
        verb = next((verbs[one] for one in asked if one in verbs), None)
        found = cases(address, asked["cases"], asked["folder"]) if verb is None else verb(address)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
