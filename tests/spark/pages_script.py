"""A walk through Iceberg's public pages for Spark, in their order and in the forms they show: first steps, DDL, writes,
queries. The sentences and the data are ours; a catalog `lake` must be there, and nothing else is asked of the session.

It knows nothing of frazil, so that the same file runs over an attached lake and over Iceberg's Java runtime. `run`
returns what each step found, by name; what differs from run to run (ids, times, paths) is looked at and left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.functions import partitioning as by


class Walk:
    """The steps, and what each of them found."""

    def __init__(self, spark: SparkSession, *, keeps_going: bool = False) -> None:
        self.spark = spark
        self.keeps_going = keeps_going
        self.found: dict[str, list[str]] = {}
        self.refused: dict[str, str] = {}

    def do(self, *statements: str) -> None:
        """Run statements for what they change."""
        for statement in statements:
            self._try(statement, partial(self.spark.sql, statement))

    def see(self, name: str, query: str | Callable[[], Any]) -> None:
        """Keep what a query or a frame finds, in an order that is always the same."""
        frame = self._try(name, lambda: self.spark.sql(query) if isinstance(query, str) else query())
        if frame is not None:
            rows = self._try(name, frame.collect)
            if rows is not None:
                self.found[name] = sorted(" | ".join(map(shown, row)) for row in rows)

    def _try(self, name: str, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except Exception as error:
            if not self.keeps_going:
                raise
            lines = [line.strip(" :") for line in str(error).splitlines()]
            told = [line for line in lines if line and not line.startswith("An error occurred while calling")]
            self.refused[" ".join(name.split())] = told[0]
            return None

    def columns(self, name: str, table: str) -> None:
        """Keep the names and types of a table's columns."""
        self.found[name] = [f"{one.name} {one.dataType.simpleString()}" for one in self.spark.table(table).schema]

    def snapshots(self, table: str) -> list[int]:
        """Return the ids of a table's snapshots, the oldest first."""
        rows = self.spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
        return [row[0] for row in rows]


def shown(value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, Row):
        return "{" + ", ".join(f"{name}: {shown(one)}" for name, one in value.asDict().items()) + "}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return str(value)


def first_steps(walk: Walk) -> None:
    """Take the page of first steps: a table, rows, a merge, reading."""
    spark = walk.spark
    walk.do(
        "CREATE TABLE lake.depot.parcels (id bigint, state string) USING iceberg",
        "CREATE TABLE arriving (id bigint, state string) USING parquet",
        "CREATE TABLE scanned (id bigint, state string) USING parquet",
        "INSERT INTO lake.depot.parcels VALUES (1, 'new'), (2, 'new'), (3, 'lost')",
        "INSERT INTO arriving VALUES (20, 'ok'), (21, 'heavy')",
        "INSERT INTO scanned VALUES (1, 'sent'), (3, 'found'), (5, 'new')",
        "INSERT INTO lake.depot.parcels SELECT id, state FROM arriving WHERE length(state) = 2",
        """MERGE INTO lake.depot.parcels t USING (SELECT * FROM scanned) u ON t.id = u.id
           WHEN MATCHED THEN UPDATE SET t.state = u.state
           WHEN NOT MATCHED THEN INSERT *""",
    )
    spark.table("arriving").select("id", "state").writeTo("lake.depot.parcels").append()
    walk.see("first rows", "SELECT * FROM lake.depot.parcels")
    walk.see("first groups", "SELECT count(1) as count, state FROM lake.depot.parcels GROUP BY state")
    walk.see("first operations", "SELECT operation, count(*) FROM lake.depot.parcels.snapshots GROUP BY operation")
    walk.found["first count"] = [str(spark.table("lake.depot.parcels").count())]
    walk.do("DROP TABLE arriving", "DROP TABLE scanned")


def creating(walk: Walk) -> None:
    """Create tables in each way of the page on DDL."""
    walk.do(
        """CREATE TABLE lake.depot.sample (
             id bigint NOT NULL COMMENT 'number on the label',
             note string)
           USING iceberg""",
        "DROP TABLE lake.depot.sample",
        """CREATE TABLE lake.depot.sample (id bigint, note string, region string)
           USING iceberg PARTITIONED BY (region)""",
        "DROP TABLE lake.depot.sample PURGE",
        """CREATE TABLE lake.depot.sample (id bigint, note string, region string, ts timestamp)
           USING iceberg
           PARTITIONED BY (bucket(16, id), days(ts), region)""",
        """INSERT INTO lake.depot.sample VALUES
           (1, 'small', 'north', TIMESTAMP '2024-03-01 08:30:00'),
           (2, 'flat', 'south', TIMESTAMP '2024-03-02 17:00:00')""",
    )
    walk.see("created", "SELECT id, note, region FROM lake.depot.sample")
    for term in ("year(ts)", "month(ts)", "day(ts)", "date(ts)", "hour(ts)", "date_hour(ts)", "bucket(4, id)",
                 "truncate(3, note)", "years(ts)", "months(ts)", "days(ts)", "hours(ts)"):  # fmt: skip
        columns = "id bigint, note string, ts timestamp"
        walk.do(f"CREATE TABLE lake.depot.terms ({columns}) USING iceberg PARTITIONED BY ({term})")
        walk.do("INSERT INTO lake.depot.terms SELECT id, note, ts FROM lake.depot.sample")
        walk.see(f"by {term}", "SELECT record_count, file_count FROM lake.depot.terms.partitions")
        walk.do("DROP TABLE lake.depot.terms")
    walk.do(
        "CREATE TABLE lake.depot.copied USING iceberg AS SELECT id, region FROM lake.depot.sample",
        """CREATE OR REPLACE TABLE lake.depot.copied USING iceberg PARTITIONED BY (region)
           TBLPROPERTIES ('colour'='blue') AS SELECT id * 10 AS id, region FROM lake.depot.sample""",
        "REPLACE TABLE lake.depot.copied USING iceberg AS SELECT id + 1 AS id, region, note FROM lake.depot.sample",
    )
    walk.see("replaced", "SELECT * FROM lake.depot.copied")
    walk.see("history is kept", "SELECT count(*) FROM lake.depot.copied.snapshots")
    walk.see("properties are kept", "SHOW TBLPROPERTIES lake.depot.copied ('colour')")
    walk.do("DROP TABLE lake.depot.copied")


def altering(walk: Walk) -> None:
    """Alter a table as the page on DDL does."""
    walk.do(
        "ALTER TABLE lake.depot.sample RENAME TO lake.depot.moved",
        "ALTER TABLE lake.depot.moved RENAME TO lake.depot.sample",
        "ALTER TABLE lake.depot.sample SET TBLPROPERTIES ('read.split.target-size'='268435456')",
        "ALTER TABLE lake.depot.sample UNSET TBLPROPERTIES ('read.split.target-size')",
        "ALTER TABLE lake.depot.sample SET TBLPROPERTIES ('comment' = 'parcels of the depot')",
        "ALTER TABLE lake.depot.sample ADD COLUMNS (weight float COMMENT 'kilograms')",
        "ALTER TABLE lake.depot.sample ADD COLUMN place struct<x: double, y: double>",
        "ALTER TABLE lake.depot.sample ADD COLUMN place.z double",
        "ALTER TABLE lake.depot.sample ADD COLUMN stops array<struct<x: double, y: double>>",
        "ALTER TABLE lake.depot.sample ADD COLUMN stops.element.z double",
        "ALTER TABLE lake.depot.sample ADD COLUMN marks map<struct<k: int>, struct<a: int>>",
        "ALTER TABLE lake.depot.sample ADD COLUMN marks.value.b int",
        "ALTER TABLE lake.depot.sample ADD COLUMN owner bigint AFTER note",
        "ALTER TABLE lake.depot.sample ADD COLUMN place.t bigint FIRST",
        "ALTER TABLE lake.depot.sample RENAME COLUMN note TO remark",
        "ALTER TABLE lake.depot.sample RENAME COLUMN place.x TO lon",
        "ALTER TABLE lake.depot.sample ALTER COLUMN weight TYPE double",
        "ALTER TABLE lake.depot.sample ALTER COLUMN weight TYPE double COMMENT 'grams'",
        "ALTER TABLE lake.depot.sample ALTER COLUMN weight COMMENT 'kilograms again'",
        "ALTER TABLE lake.depot.sample ALTER COLUMN region FIRST",
        "ALTER TABLE lake.depot.sample ALTER COLUMN place.z AFTER lon",
        "ALTER TABLE lake.depot.sample ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE lake.depot.sample DROP COLUMN owner",
        "ALTER TABLE lake.depot.sample DROP COLUMN place.y",
    )
    walk.columns("altered", "lake.depot.sample")
    walk.do(
        """INSERT INTO lake.depot.sample (id, region, remark, ts)
           VALUES (3, 'north', 'late', TIMESTAMP '2024-03-02 09:00:00')"""
    )
    walk.see("altered rows", "SELECT id, region, remark, weight, place, stops, marks FROM lake.depot.sample")


def extensions(walk: Walk) -> None:
    """Use what Iceberg adds to SQL: partition fields, orders, identifiers, branches and tags."""
    table = "lake.depot.sample"
    walk.do(
        f"ALTER TABLE {table} DROP PARTITION FIELD bucket(16, id)",
        f"ALTER TABLE {table} DROP PARTITION FIELD region",
        f"ALTER TABLE {table} ADD PARTITION FIELD region",
        f"ALTER TABLE {table} ADD PARTITION FIELD bucket(16, id)",
        f"ALTER TABLE {table} ADD PARTITION FIELD truncate(4, remark)",
        f"ALTER TABLE {table} DROP PARTITION FIELD bucket(16, id)",
        f"ALTER TABLE {table} ADD PARTITION FIELD bucket(16, id) AS shard",
        f"ALTER TABLE {table} DROP PARTITION FIELD truncate(4, remark)",
        f"ALTER TABLE {table} DROP PARTITION FIELD shard",
        f"ALTER TABLE {table} REPLACE PARTITION FIELD ts_day WITH month(ts)",
        f"ALTER TABLE {table} REPLACE PARTITION FIELD ts_month WITH day(ts) AS day_of_ts",
        f"ALTER TABLE {table} WRITE ORDERED BY region, id",
        f"ALTER TABLE {table} WRITE ORDERED BY region ASC, id DESC",
        f"ALTER TABLE {table} WRITE ORDERED BY region ASC NULLS LAST, id DESC NULLS FIRST",
        f"""INSERT INTO {table} (id, remark, region, ts)
            SELECT id + 10, remark, region, ts FROM {table} ORDER BY ts, region""",
    )
    walk.see("ordered", f"SHOW TBLPROPERTIES {table} ('sort-order')")
    walk.do(f"ALTER TABLE {table} WRITE LOCALLY ORDERED BY region, id", f"ALTER TABLE {table} WRITE UNORDERED")
    walk.do(f"ALTER TABLE {table} WRITE DISTRIBUTED BY PARTITION")
    walk.do(f"ALTER TABLE {table} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY region, id")
    walk.see("distributed", f"SHOW TBLPROPERTIES {table} ('write.distribution-mode')")
    walk.do(
        "CREATE TABLE lake.depot.keyed (id bigint NOT NULL, code string NOT NULL, note string) USING iceberg",
        "ALTER TABLE lake.depot.keyed SET IDENTIFIER FIELDS id",
        "ALTER TABLE lake.depot.keyed SET IDENTIFIER FIELDS id, code",
        "ALTER TABLE lake.depot.keyed DROP IDENTIFIER FIELDS id",
        "ALTER TABLE lake.depot.keyed DROP IDENTIFIER FIELDS code",
        "DROP TABLE lake.depot.keyed",
    )
    first, second, *_ = walk.snapshots(table)
    walk.do(
        f"ALTER TABLE {table} CREATE BRANCH `night-shift`",
        f"ALTER TABLE {table} CREATE BRANCH IF NOT EXISTS `night-shift`",
        f"ALTER TABLE {table} CREATE OR REPLACE BRANCH `night-shift`",
        f"ALTER TABLE {table} CREATE BRANCH early AS OF VERSION {first}",
        f"""ALTER TABLE {table} CREATE BRANCH kept AS OF VERSION {first} RETAIN 30 DAYS
            WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS""",
        f"ALTER TABLE {table} CREATE TAG `end-of-day`",
        f"ALTER TABLE {table} CREATE TAG IF NOT EXISTS `end-of-day`",
        f"ALTER TABLE {table} CREATE OR REPLACE TAG `end-of-day`",
        f"ALTER TABLE {table} CREATE TAG opening AS OF VERSION {first}",
        f"ALTER TABLE {table} CREATE TAG yearly AS OF VERSION {first} RETAIN 365 DAYS",
        f"ALTER TABLE {table} REPLACE BRANCH early AS OF VERSION {second} RETAIN 60 DAYS",
        f"ALTER TABLE {table} REPLACE TAG opening AS OF VERSION {second} RETAIN 60 DAYS",
    )
    walk.see(
        "references",
        f"""SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms
            FROM {table}.refs""",
    )
    walk.do(f"ALTER TABLE {table} DROP BRANCH kept", f"ALTER TABLE {table} DROP TAG yearly")
    walk.see("rows of the moved tag", f"SELECT count(*) FROM {table} VERSION AS OF 'opening'")


def views(walk: Walk) -> None:
    """Make, change and drop views."""
    walk.do(
        "CREATE VIEW lake.depot.all_parcels AS SELECT * FROM lake.depot.parcels",
        "CREATE VIEW IF NOT EXISTS lake.depot.all_parcels AS SELECT * FROM lake.depot.parcels",
        """CREATE VIEW lake.depot.named (NUMBER COMMENT 'of the parcel', STATE COMMENT 'where it is')
           COMMENT 'parcels by number' AS SELECT id, state FROM lake.depot.parcels""",
        """CREATE VIEW lake.depot.noted TBLPROPERTIES ('one' = '1', 'two' = '2')
           AS SELECT * FROM lake.depot.parcels""",
    )
    walk.see("view", "SELECT NUMBER, STATE FROM lake.depot.named WHERE NUMBER < 4")
    walk.see("view's property", "SHOW TBLPROPERTIES lake.depot.noted ('one')")
    walk.see("views", "SHOW VIEWS IN lake.depot")
    walk.see("views like", "SHOW VIEWS IN lake.depot LIKE 'n*'")
    walk.do(
        "DROP VIEW lake.depot.all_parcels",
        "DROP VIEW IF EXISTS lake.depot.all_parcels",
        """CREATE OR REPLACE VIEW lake.depot.noted (number COMMENT 'new') TBLPROPERTIES ('one' = 'uno')
           AS SELECT id FROM lake.depot.parcels""",
        "ALTER VIEW lake.depot.noted SET TBLPROPERTIES ('two' = '2', 'three' = '3')",
        "ALTER VIEW lake.depot.noted UNSET TBLPROPERTIES ('two', 'three')",
    )
    walk.see("view replaced", "SELECT max(number) FROM lake.depot.noted")
    walk.see("view described", "DESCRIBE lake.depot.noted")
    walk.do("DROP VIEW lake.depot.noted", "DROP VIEW lake.depot.named")


def writing(walk: Walk) -> None:
    """Write with SQL as the page on writes does."""
    spark = walk.spark
    walk.do(
        "CREATE TABLE lake.depot.stock (id bigint, pieces int, state string) USING iceberg",
        "INSERT INTO lake.depot.stock VALUES (1, 5, 'ok'), (2, null, 'ok'), (3, 7, 'ok'), (4, 1, 'old')",
        """MERGE INTO lake.depot.stock t
           USING (SELECT * FROM VALUES (1, 'delete'), (2, 'increment'), (3, 'increment'), (9, 'new') AS s(id, op)) s
           ON t.id = s.id
           WHEN MATCHED AND s.op = 'delete' THEN DELETE
           WHEN MATCHED AND t.pieces IS NULL AND s.op = 'increment' THEN UPDATE SET t.pieces = 0
           WHEN MATCHED AND s.op = 'increment' THEN UPDATE SET t.pieces = t.pieces + 1
           WHEN NOT MATCHED AND s.op = 'new' THEN INSERT (id, pieces) VALUES (s.id, 1)
           WHEN NOT MATCHED BY SOURCE THEN UPDATE SET state = 'invalid'""",
    )
    walk.see("merged", "SELECT * FROM lake.depot.stock")
    walk.do(
        """CREATE TABLE lake.depot.logs (
             uuid string NOT NULL,
             level string NOT NULL,
             ts timestamp NOT NULL,
             message string)
           USING iceberg PARTITIONED BY (level, hours(ts))""",
        """INSERT INTO lake.depot.logs VALUES
           ('a', 'INFO', TIMESTAMP '2024-07-01 01:00:00', 'x'), ('a', 'INFO', TIMESTAMP '2024-07-01 01:00:00', 'x'),
           ('b', 'WARN', TIMESTAMP '2024-07-01 02:00:00', 'y'), ('c', 'INFO', TIMESTAMP '2024-07-02 01:00:00', 'z'),
           ('c', 'INFO', TIMESTAMP '2024-07-02 01:00:00', 'z')""",
    )
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    walk.do(
        """INSERT OVERWRITE lake.depot.logs SELECT uuid, first(level), first(ts), first(message)
           FROM lake.depot.logs WHERE cast(ts as date) = '2024-07-01' GROUP BY uuid"""
    )
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    walk.see("dynamic", "SELECT uuid, level, message, count(*) FROM lake.depot.logs GROUP BY ALL")
    walk.do(
        """INSERT OVERWRITE lake.depot.logs PARTITION (level = 'INFO')
           SELECT uuid, first(ts), first(message) FROM lake.depot.logs WHERE level = 'INFO' GROUP BY uuid"""
    )
    walk.see("static", "SELECT uuid, level, message, count(*) FROM lake.depot.logs GROUP BY ALL")
    walk.do(
        "CREATE TABLE lake.depot.returned (oid bigint) USING iceberg",
        "INSERT INTO lake.depot.returned VALUES (3)",
        "DELETE FROM lake.depot.logs WHERE ts >= '2024-07-02 00:00:00' and ts < '2024-07-03 00:00:00'",
        "DELETE FROM lake.depot.stock WHERE pieces < (SELECT min(pieces) + 1 FROM lake.depot.stock)",
        "DELETE FROM lake.depot.stock AS t1 WHERE EXISTS (SELECT oid FROM lake.depot.returned WHERE t1.id = oid)",
    )
    walk.see("deleted", "SELECT uuid FROM lake.depot.logs")
    walk.see("deleted by subqueries", "SELECT * FROM lake.depot.stock")
    walk.do(
        "INSERT INTO lake.depot.stock VALUES (3, 30, 'new'), (5, 50, 'new')",
        "UPDATE lake.depot.stock SET state = 'kept', pieces = 2 WHERE id >= 9 and id < 10",
        "UPDATE lake.depot.stock SET pieces = 0 WHERE pieces < (SELECT avg(pieces) FROM lake.depot.stock)",
        """UPDATE lake.depot.stock AS t1 SET state = 'returned'
           WHERE EXISTS (SELECT oid FROM lake.depot.returned WHERE t1.id = oid)""",
    )
    walk.see("updated", "SELECT * FROM lake.depot.stock")


def branches(walk: Walk) -> None:
    """Write to branches, by name and by the session's setting."""
    spark = walk.spark
    walk.do(
        "CREATE TABLE lake.depot.tried (id bigint, val string) USING iceberg",
        "INSERT INTO lake.depot.tried VALUES (0, 'main')",
        "ALTER TABLE lake.depot.tried CREATE BRANCH audit",
        "INSERT INTO lake.depot.tried.branch_audit VALUES (1, 'a'), (2, 'b')",
        """MERGE INTO lake.depot.tried.branch_audit t USING (SELECT 1 AS id, 'merged' AS val) s ON t.id = s.id
           WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
        "UPDATE lake.depot.tried.branch_audit AS t1 SET val = 'c' WHERE id = 0",
        "DELETE FROM lake.depot.tried.branch_audit WHERE id = 2",
    )
    spark.createDataFrame([(7, "frame")], "id bigint, val string").writeTo("lake.depot.tried.branch_audit").append()
    walk.see("branch", "SELECT * FROM lake.depot.tried.branch_audit")
    walk.see("main", "SELECT * FROM lake.depot.tried")
    walk.do("ALTER TABLE lake.depot.tried SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.branch", "staged")
    walk.do("INSERT INTO lake.depot.tried VALUES (3, 'staged')")
    spark.conf.unset("spark.wap.branch")
    walk.see("staged", "SELECT * FROM lake.depot.tried VERSION AS OF 'staged'")
    walk.see("main without it", "SELECT * FROM lake.depot.tried")
    spark.createDataFrame([(8, "all")], "id bigint, val string").writeTo(
        "lake.depot.tried.branch_audit"
    ).overwritePartitions()
    walk.see("branch overwritten", "SELECT * FROM lake.depot.tried.branch_audit")


def frames(walk: Walk) -> None:
    """Write with frames as the page on writes does."""
    spark = walk.spark
    data = spark.sql("""SELECT * FROM VALUES
        (1, 'INFO', TIMESTAMP '2024-05-01 10:00:00'), (2, 'WARN', TIMESTAMP '2024-05-02 10:00:00')
        AS t(id, level, ts)""")
    data.writeTo("lake.depot.events").create()
    data.writeTo("lake.depot.events").append()
    data.writeTo("lake.depot.events").tableProperty("write.format.default", "orc").partitionedBy(
        col("level"), by.days(col("ts"))
    ).createOrReplace()
    walk.see("file formats", "SELECT DISTINCT file_format FROM lake.depot.events.files")
    data.where("level = 'INFO'").withColumn("id", lit(10)).writeTo("lake.depot.events").overwritePartitions()
    data.where("level = 'WARN'").withColumn("id", lit(20)).writeTo("lake.depot.events").overwrite(
        col("level") == "WARN"
    )
    walk.see("frames", "SELECT id, level FROM lake.depot.events")
    data.select("id", "level").writeTo("lake.depot.events").replace()
    walk.columns("frame replaced", "lake.depot.events")
    walk.do(
        "CREATE TABLE lake.depot.target (id int, state string) USING iceberg",
        "INSERT INTO lake.depot.target VALUES (1, 'old'), (2, 'old'), (3, 'old'), (5, 'old')",
    )
    source = spark.sql("SELECT * FROM VALUES (1, 'new'), (2, 'new'), (4, 'new') AS t(id, state)").alias("source")
    (
        source.mergeInto("lake.depot.target", expr("source.id = target.id"))
        .whenMatched(expr("target.id = 1"))
        .updateAll()
        .whenMatched(expr("target.id = 2"))
        .delete()
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(expr("target.id = 3"))
        .update({"state": lit("invalid")})
        .merge()
    )
    walk.see("merged by a frame", "SELECT * FROM lake.depot.target")
    walk.do("ALTER TABLE lake.depot.target SET TBLPROPERTIES ('write.spark.accept-any-schema'='true')")
    wider = spark.createDataFrame([(6, "new", 1.5)], "id int, state string, weight double")
    wider.writeTo("lake.depot.target").option("mergeSchema", "true").append()
    walk.see("schema merged", "SELECT * FROM lake.depot.target")
    walk.do("CREATE TABLE lake.depot.spread (id int, ts timestamp) USING iceberg PARTITIONED BY (days(ts), id)")
    for mode in ("none", "hash", "range"):
        walk.do(f"ALTER TABLE lake.depot.spread SET TBLPROPERTIES ('write.distribution-mode'='{mode}')")
        walk.do("INSERT INTO lake.depot.spread SELECT id, ts FROM lake.depot.sample WHERE id < 4")
    walk.see("distribution modes", "SELECT id, count(*) FROM lake.depot.spread GROUP BY id")


def travelling(walk: Walk) -> None:
    """Query the past as the page on queries does."""
    spark = walk.spark
    table = "lake.depot.orders"
    walk.do(
        f"CREATE TABLE {table} (id BIGINT, state STRING) USING iceberg",
        f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')",
    )
    first = walk.snapshots(table)[0]
    made = spark.sql(f"SELECT unix_millis(committed_at) FROM {table}.snapshots").collect()[0][0]
    walk.do(f"ALTER TABLE {table} ADD COLUMN total DOUBLE", f"INSERT INTO {table} VALUES (3, 'c', 100.0)")
    second = walk.snapshots(table)[1]
    walk.do(
        f"ALTER TABLE {table} CREATE BRANCH `night-audit` AS OF VERSION {first}",
        f"ALTER TABLE {table} CREATE TAG `first-load` AS OF VERSION {first}",
    )
    at = f"timestamp_millis({made})"
    walk.see("by version", f"SELECT * FROM {table} VERSION AS OF {first}")
    walk.see("by timestamp", f"SELECT * FROM {table} TIMESTAMP AS OF {at}")
    walk.see("by branch", f"SELECT * FROM {table} VERSION AS OF 'night-audit'")
    walk.see("by tag", f"SELECT * FROM {table} VERSION AS OF 'first-load'")
    walk.see("for system time", f"SELECT * FROM {table} FOR SYSTEM_TIME AS OF {at}")
    walk.see("for system version", f"SELECT * FROM {table} FOR SYSTEM_VERSION AS OF {second}")
    walk.see("for system branch", f"SELECT * FROM {table} FOR SYSTEM_VERSION AS OF 'night-audit'")
    walk.see("by seconds", f"SELECT count(*) FROM {table} TIMESTAMP AS OF {made // 1000 + 100_000}")
    walk.see("branch by name", f"SELECT * FROM {table}.`branch_night-audit`")
    walk.see("tag by name", f"SELECT * FROM {table}.`tag_first-load`")
    walk.see("loaded", lambda: spark.read.format("iceberg").load(table))
    options = {"snapshot-id": first, "as-of-timestamp": made, "tag": "first-load", "branch": "night-audit"}
    for option, value in options.items():
        reader = spark.read.option(option, value).format("iceberg")
        walk.see(f"loaded by {option}", partial(reader.load, table))
    appended = spark.read.format("iceberg").option("start-snapshot-id", first).option("end-snapshot-id", second)
    walk.see("incremental", lambda: appended.load(table))
    walk.see("functions", f"SELECT id, lake.system.bucket(16, id), lake.system.truncate(1, state) FROM {table}")
    walk.see(
        "functions of time",
        """SELECT lake.system.years(ts), lake.system.months(ts), lake.system.days(ts), lake.system.hours(ts)
           FROM (SELECT TIMESTAMP_NTZ '2024-03-01 08:30:00' AS ts)""",
    )
    walk.do("USE lake.depot")
    walk.see("functions by the current catalog", "SELECT system.bucket(16, id) FROM orders")
    walk.see("functions in a filter", "SELECT id FROM orders WHERE system.truncate(2, id) = 2")
    walk.do("USE spark_catalog.default")
    walk.see("files at a version", f"SELECT count(*) FROM {table}.files VERSION AS OF {first}")
    walk.see("manifests at a time", f"SELECT count(*) FROM {table}.manifests TIMESTAMP AS OF {at}")


def inspecting(walk: Walk) -> None:
    """Look into the metadata tables of the page on queries."""
    spark = walk.spark
    table = "lake.depot.seen"
    walk.do(
        f"""CREATE TABLE {table} (id bigint, kind string) USING iceberg PARTITIONED BY (kind)
            TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'format-version'='2')""",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'a'), (3, 'a'), (4, 'b')",
        f"DELETE FROM {table} WHERE id = 2",
    )
    walk.see("history", f"SELECT parent_id IS NULL, is_current_ancestor FROM {table}.history")
    walk.see("log", f"SELECT latest_schema_id, latest_sequence_number FROM {table}.metadata_log_entries")
    summary = "summary['added-records'], summary['total-records']"
    walk.see("snapshots", f"SELECT operation, {summary} FROM {table}.snapshots")
    walk.see(
        "history joined",
        f"""SELECT s.operation, h.is_current_ancestor FROM {table}.history h JOIN {table}.snapshots s
            ON h.snapshot_id = s.snapshot_id ORDER BY made_current_at""",
    )
    walk.see(
        "entries",
        f"SELECT status, sequence_number, file_sequence_number, data_file.record_count, "
        f"readable_metrics.id.lower_bound FROM {table}.entries",
    )
    walk.see(
        "files",
        f"""SELECT content, file_format, spec_id, partition, record_count, sort_order_id,
            readable_metrics.kind.upper_bound, readable_metrics.id.value_count FROM {table}.files""",
    )
    walk.see("data files", f"SELECT count(*) FROM {table}.data_files")
    walk.see("delete files", f"SELECT count(*) FROM {table}.delete_files")
    walk.see("all files", f"SELECT count(*) FROM {table}.all_files")
    walk.see(
        "manifests",
        f"""SELECT content, partition_spec_id, added_data_files_count, existing_data_files_count,
            added_delete_files_count, partition_summaries FROM {table}.manifests""",
    )
    walk.see(
        "partitions",
        f"""SELECT partition, spec_id, record_count, file_count, position_delete_record_count,
            position_delete_file_count, equality_delete_record_count, equality_delete_file_count
            FROM {table}.partitions""",
    )
    walk.see("position deletes", f"SELECT pos, partition, spec_id FROM {table}.position_deletes")
    for name in ("all_data_files", "all_delete_files", "all_entries", "all_manifests"):
        walk.see(name, f"SELECT count(*) FROM {table}.{name}")
    walk.see("refs", f"SELECT name, type FROM {table}.refs")
    read = spark.read.format("iceberg")
    walk.see("files by a frame", lambda: read.load(f"{table}.files").select("content", "record_count"))
    first = walk.snapshots(table)[0]
    old = spark.read.format("iceberg").option("snapshot-id", first)
    walk.see("files of the past by a frame", lambda: old.load(f"{table}.files").select("content", "record_count"))
    walk.see("partitions of the past", f"SELECT record_count FROM {table}.partitions VERSION AS OF {first}")


PAGES = (first_steps, creating, altering, extensions, views, writing, branches, frames, travelling, inspecting)


def run(spark: SparkSession, keeps_going: bool = False) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Walk all pages; return what was found and, where steps may fail, what was refused and with which words."""
    walk = Walk(spark, keeps_going=keeps_going)
    walk.do("CREATE NAMESPACE IF NOT EXISTS lake.depot")
    for page in PAGES:
        page(walk)
    return walk.found, walk.refused
