"""What is known of each block of Iceberg's pages for Spark: the tables it starts from, what the page leaves open, and
how it runs here.

A block that is not listed, or whose text has changed, fails `test_jar_pages.py`. `<<s1>>` and its like are ids, times
and places that a run puts in (`run_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.interop.page_blocks import PageBlock

AS_IS = "as is"
TWO_LINES = "with the two lines"
CHANGED = "with a change"
CANNOT = "cannot"
NOTHING = "nothing to run"
KINDS: Final = {
    AS_IS: "the block runs as the page has it, in a session that has the lake",
    TWO_LINES: "the block sets the jar up; `import frazil` and `frazil.attach(…)` stand in its place",
    CHANGED: "the block runs with the change that is told",
    CANNOT: "refused here, or not built",
    NOTHING: "an output, or a form without names",
}

HADOOP: Final = "hadoop"
RUN: Final = (AS_IS, CHANGED)
"""The kinds of blocks that run in a session."""

STATES: Final[dict[str, tuple[str, ...]]] = {
    "empty": (),
    "first": (
        "CREATE TABLE {c}.db.table (id bigint, data string) USING iceberg",
        "CREATE TABLE source (id bigint, data string) USING parquet",
        "CREATE TABLE updates (id bigint, data string) USING parquet",
        "INSERT INTO {c}.db.table VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO source VALUES (10, 'd')",
        "INSERT INTO updates VALUES (1, 'x'), (4, 'z')",
    ),
    "wide": (
        """CREATE TABLE {c}.db.sample (id bigint NOT NULL, data string, category string, ts timestamp, catalog string,
           other_column int, nested struct<col: int, other_col: int>, location struct<lat: double, long: double>,
           measurement float, col int, other_col int) USING iceberg""",
    ),
    "source": (
        "CREATE TABLE {c}.db.another_table (id bigint, part string) USING iceberg",
        "INSERT INTO {c}.db.another_table VALUES (1, 'a'), (2, 'b')",
    ),
    "replaced": (
        "CREATE TABLE {c}.db.another_table (id bigint, part string) USING iceberg",
        "INSERT INTO {c}.db.another_table VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE {c}.db.sample (id bigint) USING iceberg",
    ),
    "keyed": ("CREATE TABLE {c}.db.sample (id bigint NOT NULL, data string NOT NULL) USING iceberg",),
    "two snapshots": (
        "CREATE TABLE {c}.db.sample (id bigint, data string) USING iceberg",
        "INSERT INTO {c}.db.sample VALUES (1, 'a')",
        "INSERT INTO {c}.db.sample VALUES (2, 'b')",
    ),
    "four columns": (
        """CREATE TABLE {c}.db.sample (id bigint, data string, category string, ts timestamp) USING iceberg
           PARTITIONED BY (days(ts), category)""",
        "CREATE TABLE another_table (id bigint, data string, category string, ts timestamp) USING parquet",
        """INSERT INTO another_table VALUES (1, 'a', 'x', TIMESTAMP '2024-01-01 00:00:00'),
           (2, 'b', 'y', TIMESTAMP '2024-01-02 00:00:00')""",
    ),
    "viewed": (
        "CREATE TABLE {c}.db.t (id bigint, zip string) USING iceberg",
        "INSERT INTO {c}.db.t VALUES (1, '10115')",
    ),
    "queried": (
        "CREATE TABLE {c}.db.table (id bigint, data string, ts timestamp) USING iceberg",
        "INSERT INTO {c}.db.table VALUES (1, 'a', TIMESTAMP '2024-01-01 00:00:00')",
        "INSERT INTO {c}.db.table VALUES (2, 'b', TIMESTAMP '2024-01-02 00:00:00')",
        "ALTER TABLE {c}.db.table CREATE BRANCH `audit-branch`",
        "ALTER TABLE {c}.db.table CREATE TAG `historical-snapshot` AS OF VERSION <<s1>>",
        "USE {c}",
    ),
    "orders": (
        "CREATE TABLE {c}.db.orders (id BIGINT, status STRING) USING iceberg",
        "INSERT INTO {c}.db.orders VALUES (1, 'NEW'), (2, 'PAID')",
        "ALTER TABLE {c}.db.orders ADD COLUMN total DOUBLE",
        "INSERT INTO {c}.db.orders VALUES (3, 'PAID', 100.0)",
    ),
    "two columns": (
        "CREATE TABLE {c}.db.table (id bigint, val string) USING iceberg",
        "INSERT INTO {c}.db.table VALUES (0, 'main')",
        "ALTER TABLE {c}.db.table CREATE BRANCH audit",
    ),
    "merged": (
        "CREATE TABLE {c}.db.target (id bigint, count int, status string) USING iceberg",
        "INSERT INTO {c}.db.target VALUES (1, 5, 'ok'), (2, null, 'ok'), (3, 7, 'ok'), (4, 1, 'ok')",
    ),
    "logs": (
        """CREATE TABLE {c}.my_app.logs (uuid string NOT NULL, level string NOT NULL, ts timestamp NOT NULL,
           message string) USING iceberg PARTITIONED BY (level, hours(ts))""",
        """INSERT INTO {c}.my_app.logs VALUES ('a', 'INFO', TIMESTAMP '2020-07-01 01:00:00', 'x'),
           ('a', 'INFO', TIMESTAMP '2020-07-01 01:00:00', 'x'), ('b', 'WARN', TIMESTAMP '2020-07-02 02:00:00', 'y')""",
    ),
    "events": (
        "CREATE TABLE {c}.db.table (id bigint, c1 string, c2 string, ts timestamp) USING iceberg",
        "CREATE TABLE {c}.db.all_events (session_time bigint, ignored boolean) USING iceberg",
        "CREATE TABLE {c}.db.good_events (session_time bigint) USING iceberg",
        "CREATE TABLE {c}.db.orders (oid bigint, order_status string) USING iceberg",
        "CREATE TABLE {c}.db.returned_orders (oid bigint) USING iceberg",
        """INSERT INTO {c}.db.table VALUES (1, 'a', 'b', TIMESTAMP '2020-05-02 00:00:00'),
           (2, 'a', 'b', TIMESTAMP '2020-06-02 00:00:00')""",
        "INSERT INTO {c}.db.all_events VALUES (1, false), (5, false)",
        "INSERT INTO {c}.db.good_events VALUES (3), (4)",
        "INSERT INTO {c}.db.orders VALUES (1, 'new'), (2, 'new')",
        "INSERT INTO {c}.db.returned_orders VALUES (2)",
    ),
    "levels": (
        """CREATE TABLE {c}.db.table (id bigint, level string, ts timestamp) USING iceberg
           PARTITIONED BY (level, days(ts))""",
        """INSERT INTO {c}.db.table VALUES (1, 'INFO', TIMESTAMP '2024-05-01 00:00:00'),
           (2, 'WARN', TIMESTAMP '2024-05-01 00:00:00')""",
    ),
    "target": (
        "CREATE TABLE {c}.db.target (id bigint, status string) USING iceberg",
        "INSERT INTO {c}.db.target VALUES (1, 'old'), (2, 'old'), (3, 'old'), (5, 'old')",
        "USE {c}.db",
    ),
    "managed": (
        """CREATE TABLE {c}.db.sample (id bigint, name string, category string, c1 int, c2 int) USING iceberg
           PARTITIONED BY (category)""",
        "INSERT INTO {c}.db.sample VALUES (1, 'foo', 'x', 1, 2)",
        "INSERT INTO {c}.db.sample VALUES (3, 'foo', 'x', 3, 4)",
        "INSERT INTO {c}.db.sample VALUES (3, 'bar', 'y', 5, 6)",
    ),
    "deleted": (
        """CREATE TABLE {c}.db.sample (id bigint, name string) USING iceberg
           TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')""",
        "INSERT INTO {c}.db.sample SELECT id, 'a' FROM range(0, 10, 1, 1)",
        "DELETE FROM {c}.db.sample WHERE id = 3",
        "DELETE FROM {c}.db.sample WHERE id = 5",
    ),
    "staged": (
        """CREATE TABLE {c}.db.my_table (id bigint, col1 int, col2 string) USING iceberg
           TBLPROPERTIES ('write.wap.enabled'='true')""",
        "INSERT INTO {c}.db.my_table VALUES (1, 1, 'a')",
        "SET spark.wap.id = wap_id_1",
        "INSERT INTO {c}.db.my_table VALUES (2, 2, 'b')",
        "RESET spark.wap.id",
        "USE {c}.db",
    ),
    "counted": (
        """CREATE TABLE {c}.db.my_table (id bigint, col1 int, col2 string) USING iceberg PARTITIONED BY (col1)""",
        "INSERT INTO {c}.db.my_table VALUES (1, 1, 'a')",
        "INSERT INTO {c}.db.my_table VALUES (2, 2, 'b')",
        "USE {c}.db",
    ),
    "ahead": (
        "CREATE TABLE {c}.db.my_table (id bigint) USING iceberg",
        "INSERT INTO {c}.db.my_table VALUES (1)",
        "ALTER TABLE {c}.db.my_table CREATE BRANCH `audit-branch`",
        "INSERT INTO {c}.db.my_table.`branch_audit-branch` VALUES (2)",
        "USE {c}.db",
    ),
    "of Spark's": (
        "CREATE NAMESPACE IF NOT EXISTS spark_catalog.db",
        "CREATE TABLE spark_catalog.db.sample (id bigint, name string) USING parquet LOCATION '<<folder>>/sample'",
        "INSERT INTO spark_catalog.db.sample VALUES (1, 'a')",
    ),
    "sources": (
        "CREATE NAMESPACE IF NOT EXISTS spark_catalog.db",
        """CREATE TABLE spark_catalog.db.src_tbl (id bigint, part_col_1 string) USING parquet
           PARTITIONED BY (part_col_1)""",
        "INSERT INTO spark_catalog.db.src_tbl VALUES (1, 'A'), (2, 'B')",
        "CREATE TABLE {c}.db.tbl (id bigint, part_col_1 string) USING iceberg PARTITIONED BY (part_col_1)",
    ),
    "a folder": (
        "CREATE NAMESPACE IF NOT EXISTS spark_catalog.db",
        "CREATE TABLE spark_catalog.db.src_tbl USING parquet LOCATION '<<folder>>/src' AS SELECT 1L AS id",
        "CREATE TABLE {c}.db.tbl (id bigint) USING iceberg",
    ),
    "changed": (
        "CREATE TABLE {c}.db.tbl (id bigint, name string) USING iceberg",
        "INSERT INTO {c}.db.tbl VALUES (1, 'a')",
        "INSERT INTO {c}.db.tbl VALUES (3, 'c')",
        "USE {c}.db",
    ),
    "copied": (
        "CREATE TABLE {c}.db.my_table (id bigint) USING iceberg",
        "INSERT INTO {c}.db.my_table VALUES (1)",
    ),
    "streamed": (
        "CREATE TABLE {c}.database.source (id bigint, data string) USING iceberg",
        "CREATE TABLE {c}.database.table_name (id bigint, data string) USING iceberg PARTITIONED BY (data)",
        "INSERT INTO {c}.database.source VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO {c}.database.table_name VALUES (0, 'z')",
        "USE {c}",
    ),
}
"""Tables that blocks start from; `{c}` is the catalog's name on the page."""


class Block(NamedTuple):
    """How a block runs, and what it needs."""

    kind: str
    state: str = "empty"
    catalog: str = "prod"
    about: str = ""
    """The table whose ids and places are put in, as `db.name`."""
    fill: Mapping[str, str] = {}
    """What stands for what the page leaves open: `SELECT ...`, ids, times, places."""
    change: Mapping[str, str] = {}
    """What has to be written otherwise here, and not with the jar."""
    before: Sequence[str] = ()
    between: Sequence[str] = ()
    after: Sequence[str] = ()
    wrap: str = ""
    frames: Mapping[str, str] = {}
    """Frames that the code names, and their queries; of streams, their tables."""
    values: Mapping[str, str] = {}
    streams: bool = False
    reads: bool = False
    """It changes nothing, so that the next block may start from the same tables."""
    lines: str = ""
    """Python that stands in the block's place."""
    why: str = ""
    differs: str = ""
    """Why its answers are others than the jar's."""
    by_path: bool = False
    """It names a table by its path, which the jar takes of tables of its Hadoop catalog alone."""
    jar_refuses: str = ""
    """Why the jar does not run it."""


SPARK_CATALOG = {"spark_catalog": "lake"}
OWN_NAME = "a lake has a name of its own beside Spark's catalog: `lake` stands for `spark_catalog`"
JAVA = "Java's API; "
SNAPSHOT = {"10963874102873": "<<s1>>", "63874143573109": "<<s2>>"}
TRAVEL = {**SNAPSHOT, "1986-10-26 01:21:00": "<<t1>>", "499162860000": "<<m1>>", "499162860": "<<e2>>"}
LOADED = {**TRAVEL, "path/to/table": "<<location>>"}
SELECTED = {"SELECT ...": "SELECT id, part FROM prod.db.another_table"}
VIEW = {
    "<viewName>": "prod.db.v",
    "<tableName>": "prod.db.t",
    "<catalog>": "prod",
    "<namespace>": "db",
    "[EXTENDED]": "EXTENDED",
    "/path/to/custom-location": "<<folder>>/view",
}
A_VIEW = ("CREATE VIEW prod.db.v AS SELECT * FROM prod.db.t",)
MERGED = """MERGE INTO prod.db.target t USING (SELECT * FROM VALUES (1, 'delete', TIMESTAMP '2024-01-01 00:00:00'),
(2, 'increment', null), (3, 'increment', null), (9, 'new', TIMESTAMP '2024-01-01 00:00:00') AS s(id, op, event_time)) s
ON t.id = s.id {block}"""
DYNAMIC = ("SET spark.sql.sources.partitionOverwriteMode=dynamic",)
STATIC = ("RESET spark.sql.sources.partitionOverwriteMode",)
A_LEVEL = "SELECT 9L AS id, 'INFO' AS level, TIMESTAMP '2024-05-01 00:00:00' AS ts"
UNNAMED = "a column that is given no name has one of Spark's, after the class of the function"
CHECKPOINT = {"checkpointPath": "<<folder>>/checkpoint"}
GIVEN_UP = "the jar for Spark 4.1 gave the option up for Spark's own; the page still has it"
BY_NAME = (
    "here the jar stands over Spark's catalog with its Hadoop catalog, whose tables have their place by their name; "
    "over a Hive metastore, which is not here, they may be elsewhere"
)
ITS_CATALOG = "the JDBC catalog takes the catalog's name for a namespace"


def ddl(state: str = "wide", **more: Any) -> Block:
    """Return a block of the page on DDL, about the table `sample`."""
    return Block(AS_IS, state, **{"about": "db.sample", **more})


def query(**more: Any) -> Block:
    """Return a block that reads the table of the page on queries."""
    return Block(AS_IS, "queried", **{"about": "db.table", "fill": TRAVEL, "reads": True, **more})


def call(state: str = "managed", table: str = "sample", catalog: str = "catalog_name", **more: Any) -> Block:
    """Return a block that calls a procedure on a table."""
    return Block(AS_IS, state, catalog, f"db.{table}", **more)


def own(state: str, **more: Any) -> Block:
    """Return a block that calls a procedure of Spark's own catalog."""
    return Block(
        CHANGED, state, "spark_catalog", **{"about": "db.tbl", "change": SPARK_CATALOG, "why": OWN_NAME, **more}
    )


BLOCKS: Final[dict[str, Block]] = {
    "getting-started/Using Iceberg in Spark/1/be74440b": Block(
        TWO_LINES, lines='frazil.attach(spark, frazil.connect(folder), name="local")'
    ),
    "getting-started/Adding catalogs/1/297fd80d": Block(
        TWO_LINES, lines='frazil.attach(spark, frazil.connect(folder, catalog="filesystem"), name="local")'
    ),
    "getting-started/Creating a table/1/d5f9a57a": Block(AS_IS, "empty", "local", "db.table"),
    "getting-started/Writing/1/480a1c1f": Block(
        AS_IS,
        "empty",
        "local",
        "db.table",
        before=(
            "CREATE TABLE local.db.table (id bigint, data string) USING iceberg",
            "CREATE TABLE source (id bigint, data string) USING parquet",
            "CREATE TABLE updates (id bigint, data string) USING parquet",
        ),
    ),
    "getting-started/Writing/2/9fbfeb97": Block(AS_IS, "first", "local", "db.table"),
    "getting-started/Writing/3/454b5edf": Block(AS_IS, "first", "local", "db.table"),
    "getting-started/Reading/1/06199261": Block(AS_IS, "first", "local", "db.table", reads=True),
    "getting-started/Reading/2/d3347b77": Block(AS_IS, "first", "local", "db.table", reads=True),
    "getting-started/Reading/3/8b2bfe24": Block(NOTHING, why="what a query prints"),
    "getting-started/Reading/4/ee20e913": Block(AS_IS, "first", "local", "db.table", reads=True),
    "configuration/Catalogs/1/1563a5a4": Block(CANNOT, why="the Hive metastore is no catalog here"),
    "configuration/Catalogs/2/93dd2cbd": Block(
        TWO_LINES, lines='frazil.attach(spark, frazil.connect(service), name="rest_prod")'
    ),
    "configuration/Catalogs/3/716032f7": Block(
        TWO_LINES, lines='frazil.attach(spark, frazil.connect(folder, catalog="filesystem"), name="hadoop_prod")'
    ),
    "configuration/Using catalogs/1/cfa612b3": Block(AS_IS, "first", "hive_prod", "db.table", reads=True),
    "configuration/Using catalogs/2/34c23490": Block(AS_IS, "first", "hive_prod", "db.table"),
    "configuration/Replacing the session catalog/1/08a6cd19": Block(
        CANNOT, why="lakes stand beside Spark's own catalog, each under a name of its own"
    ),
    "configuration/Using catalog specific Hadoop configuration values/1/bcedc3c5": Block(
        TWO_LINES,
        lines='frazil.attach(spark, frazil.connect(f"s3://{bucket}/lake", catalog="filesystem", '
        'properties=properties), name="hadoop_prod")',
        why="`s3.endpoint` and the keys are properties of the connection",
    ),
    "configuration/Loading a custom catalog/1/3c397317": Block(CANNOT, why="Java classes are not run"),
    "configuration/Spark SQL Options/1/521a295d": Block(
        TWO_LINES,
        lines='frazil.attach(spark, frazil.connect(folder), name="my_catalog")',
        why="the setting that it shows does nothing here, and a warning says so",
    ),
    "configuration/Read options/1/91e68ce8": Block(
        AS_IS, "queried", "catalog", "db.table", fill=SNAPSHOT, reads=True, jar_refuses=GIVEN_UP
    ),
    "configuration/Write options/1/38f6d7b5": Block(
        AS_IS,
        "queried",
        "catalog",
        "db.table",
        frames={"df": "SELECT 3L AS id, 'c' AS data, TIMESTAMP '2024-01-03 00:00:00' AS ts"},
    ),
    "configuration/Write options/2/48808bfc": Block(
        CANNOT, why=JAVA + 'in Python `t.delete("id = 1", snapshot_properties={…})`'
    ),
    "ddl/CREATE TABLE/1/90c2ddc3": ddl("empty"),
    "ddl/PARTITIONED BY/1/5926aea5": ddl("empty"),
    "ddl/PARTITIONED BY/2/d3578940": ddl("empty"),
    "ddl/CREATE TABLE ... AS SELECT/1/5d2642fc": ddl("source", fill=SELECTED),
    "ddl/CREATE TABLE ... AS SELECT/2/70dc9a6b": ddl("source", fill=SELECTED),
    "ddl/REPLACE TABLE ... AS SELECT/1/d644c958": ddl("replaced", fill=SELECTED),
    "ddl/REPLACE TABLE ... AS SELECT/2/a41fba40": ddl("replaced", fill=SELECTED),
    "ddl/REPLACE TABLE ... AS SELECT/3/3ae10a54": ddl("replaced", fill=SELECTED),
    "ddl/DROP TABLE/1/b2b76151": ddl(),
    "ddl/DROP TABLE PURGE/1/507fb467": ddl(),
    "ddl/ALTER TABLE ... RENAME TO/1/bdb45257": ddl(jar_refuses=ITS_CATALOG),
    "ddl/ALTER TABLE ... SET TBLPROPERTIES/1/13a5d13d": ddl(),
    "ddl/ALTER TABLE ... SET TBLPROPERTIES/2/5b725a80": ddl(
        before=("ALTER TABLE prod.db.sample SET TBLPROPERTIES ('read.split.target-size'='268435456')",)
    ),
    "ddl/ALTER TABLE ... SET TBLPROPERTIES/3/d33eda81": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/1/d89fe264": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/2/3c26600d": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/3/5c9da463": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/4/e79c4b13": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/5/c4b924ef": ddl(),
    "ddl/ALTER TABLE ... ADD COLUMN/6/21f7b2c3": ddl(),
    "ddl/ALTER TABLE ... RENAME COLUMN/1/e9c1f2a1": ddl(),
    "ddl/ALTER TABLE ... ALTER COLUMN/1/92d24a99": ddl(),
    "ddl/ALTER TABLE ... ALTER COLUMN/2/03a2b4b7": ddl(
        jar_refuses="Spark takes one change at a time; the page shows two"
    ),
    "ddl/ALTER TABLE ... ALTER COLUMN/3/858ec592": ddl(),
    "ddl/ALTER TABLE ... ALTER COLUMN/4/d43ec7e9": ddl(),
    "ddl/ALTER TABLE ... ALTER COLUMN/5/62e74e0b": ddl(),
    "ddl/ALTER TABLE ... DROP COLUMN/1/9904ddb5": ddl(
        before=("ALTER TABLE prod.db.sample ADD COLUMN point struct<x: double, z: double>",)
    ),
    "ddl/ALTER TABLE ... ADD PARTITION FIELD/1/002cad4d": ddl(),
    "ddl/ALTER TABLE ... ADD PARTITION FIELD/2/4d1d6882": ddl(
        change={"bucket(16, id) AS shard": "bucket(8, id) AS shard"},
        why="the page adds one field twice, the second time under a name: there it is another one",
        jar_refuses="the same field twice, as frazil does without the change",
    )._replace(kind=CHANGED),
    "ddl/ALTER TABLE ... DROP PARTITION FIELD/1/b08b00c2": ddl(
        before=(
            "ALTER TABLE prod.db.sample ADD PARTITION FIELD catalog",
            "ALTER TABLE prod.db.sample ADD PARTITION FIELD bucket(16, id)",
            "ALTER TABLE prod.db.sample ADD PARTITION FIELD truncate(4, data)",
            "ALTER TABLE prod.db.sample ADD PARTITION FIELD year(ts)",
            "ALTER TABLE prod.db.sample ADD PARTITION FIELD bucket(8, id) AS shard",
        )
    ),
    "ddl/ALTER TABLE ... REPLACE PARTITION FIELD/1/8d3d5d54": ddl(
        before=("ALTER TABLE prod.db.sample ADD PARTITION FIELD month(ts) AS ts_day",)
    ),
    "ddl/ALTER TABLE ... WRITE ORDERED BY/1/b927448b": ddl(),
    "ddl/ALTER TABLE ... WRITE ORDERED BY/2/dfdf43fd": ddl("four columns"),
    "ddl/ALTER TABLE ... WRITE ORDERED BY/3/1cc70c34": ddl(),
    "ddl/ALTER TABLE ... WRITE ORDERED BY/4/4d8b22cb": ddl(),
    "ddl/ALTER TABLE ... WRITE DISTRIBUTED BY PARTITION/1/f7245e99": ddl(),
    "ddl/ALTER TABLE ... WRITE DISTRIBUTED BY PARTITION/2/698441c6": ddl(),
    "ddl/ALTER TABLE ... SET IDENTIFIER FIELDS/1/09606189": ddl("keyed"),
    "ddl/ALTER TABLE ... DROP IDENTIFIER FIELDS/1/7732d81c": ddl(
        "keyed",
        before=("ALTER TABLE prod.db.sample SET IDENTIFIER FIELDS id",),
        between=("ALTER TABLE prod.db.sample SET IDENTIFIER FIELDS id, data",),
    ),
    "ddl/Branching and Tagging DDL/1/2e29f41f": ddl(
        "two snapshots",
        fill={"1234": "<<s1>>"},
        between=("ALTER TABLE prod.db.sample DROP BRANCH IF EXISTS `audit-branch`",),
    ),
    "ddl/Branching and Tagging DDL/2/8db12311": ddl(
        "two snapshots",
        fill={"1234": "<<s1>>"},
        between=("ALTER TABLE prod.db.sample DROP TAG IF EXISTS `historical-tag`",),
    ),
    "ddl/Branching and Tagging DDL/3/a33183e8": ddl(
        "two snapshots",
        fill={"4567": "<<s1>>"},
        before=("ALTER TABLE prod.db.sample CREATE BRANCH `audit-branch`",),
    ),
    "ddl/Branching and Tagging DDL/4/7163047e": ddl(
        "two snapshots",
        fill={"4567": "<<s1>>"},
        before=("ALTER TABLE prod.db.sample CREATE TAG `historical-tag`",),
    ),
    "ddl/Branching and Tagging DDL/5/3fc7884f": ddl(
        "two snapshots", before=("ALTER TABLE prod.db.sample CREATE BRANCH `audit-branch`",)
    ),
    "ddl/Branching and Tagging DDL/6/30b22af3": ddl(
        "two snapshots", before=("ALTER TABLE prod.db.sample CREATE TAG `historical-tag`",)
    ),
    "ddl/Iceberg views in Spark/1/730a1255": ddl("viewed", about="db.v", fill=VIEW),
    "ddl/Iceberg views in Spark/2/bb1d20ec": ddl("viewed", about="db.v", fill=VIEW),
    "ddl/Iceberg views in Spark/3/aa4ffdb0": ddl("viewed", about="db.v", fill=VIEW),
    "ddl/Iceberg views in Spark/4/bc69428a": ddl("viewed", about="db.v", fill=VIEW),
    "ddl/Iceberg views in Spark/5/b392fef0": ddl(
        "viewed",
        about="db.v",
        fill=VIEW,
        before=A_VIEW,
        differs="the jar has three rows of its own: format, place and version of the view",
    ),
    "ddl/Iceberg views in Spark/6/135da048": ddl("viewed", about="db.v", fill=VIEW),
    "ddl/Iceberg views in Spark/7/97ad90c0": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW),
    "ddl/Iceberg views in Spark/8/f3132bf2": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW),
    "ddl/Iceberg views in Spark/9/a054472b": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW),
    "ddl/Iceberg views in Spark/10/0bee3b3b": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW),
    "ddl/Iceberg views in Spark/11/24f64210": ddl(
        "viewed",
        about="db.v",
        fill=VIEW,
        before=("CREATE VIEW prod.db.v TBLPROPERTIES ('key1' = '1', 'key2' = '2') AS SELECT * FROM prod.db.t",),
    ),
    "ddl/Iceberg views in Spark/12/99457edc": ddl(
        "viewed", about="db.v", fill=VIEW, before=(*A_VIEW, "USE prod.db"), reads=True
    ),
    "ddl/Iceberg views in Spark/13/6c9c4ad5": ddl(
        "viewed",
        about="db.v",
        fill=VIEW,
        before=(*A_VIEW, "USE prod.db"),
        reads=True,
        jar_refuses="the JDBC catalog has no views outside of namespaces, and says so by an error",
    ),
    "ddl/Iceberg views in Spark/14/398cd010": ddl(
        "viewed", about="db.v", fill=VIEW, before=(*A_VIEW, "USE prod.db"), reads=True
    ),
    "ddl/Iceberg views in Spark/15/d4e3cfb9": ddl(
        "viewed", about="db.v", fill=VIEW, before=(*A_VIEW, "USE prod.db"), reads=True
    ),
    "ddl/Iceberg views in Spark/16/985a3659": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW, reads=True),
    "ddl/Iceberg views in Spark/17/d0583b4e": ddl("viewed", about="db.v", fill=VIEW, before=A_VIEW, reads=True),
    "queries/Querying with SQL/1/9e747ce0": query(),
    "queries/Querying with SQL/2/17dbe1f2": query(),
    "queries/Spark SQL functions/1/969b0735": query(differs=UNNAMED),
    "queries/Spark SQL functions/2/3412ec7b": query(differs=UNNAMED),
    "queries/Time travel Queries with SQL/1/ec05df77": query(),
    "queries/Time travel Queries with SQL/2/97385fa1": query(),
    "queries/Time travel Queries with SQL/3/3e57bc20": query(),
    "queries/Time travel Queries with SQL/4/284d9996": query(),
    "queries/Time travel Queries with SQL/5/6f9106c5": query(),
    "queries/Time travel Queries with SQL/6/ab1e9f38": Block(AS_IS, "empty", about="db.orders"),
    "queries/Time travel Queries with SQL/7/a36e9d01": Block(
        AS_IS, "orders", about="db.orders", fill={"101": "<<s1>>", "2025-01-01 10:00:00": "<<t1>>"}
    ),
    "queries/Time travel Queries with SQL/8/04eac861": Block(
        AS_IS, "orders", about="db.orders", fill={"101": "<<s1>>"}
    ),
    "queries/Time travel Queries with SQL/9/81f6841c": Block(
        AS_IS,
        "orders",
        about="db.orders",
        before=("ALTER TABLE prod.db.orders CREATE BRANCH audit_branch AS OF VERSION <<s1>>",),
    ),
    "queries/Time travel Queries with SQL/10/94567bc1": Block(
        AS_IS,
        "orders",
        about="db.orders",
        before=("ALTER TABLE prod.db.orders CREATE TAG first_load AS OF VERSION <<s1>>",),
    ),
    "queries/Querying with DataFrames/1/5b25674e": query(),
    "queries/Time travel Queries with DataFrame/1/cadb0006": query(fill=LOADED, jar_refuses=GIVEN_UP),
    "queries/Time travel Queries with DataFrame/2/aee1d454": query(fill=LOADED, jar_refuses=GIVEN_UP),
    "queries/Time travel Queries with DataFrame/3/867ed559": query(fill=LOADED, jar_refuses=GIVEN_UP),
    "queries/Time travel Queries with DataFrame/4/4c390beb": query(fill=LOADED, by_path=True),
    "queries/Incremental read/1/42efff3a": query(fill=LOADED, by_path=True),
    "queries/History/1/aa9a81ba": query(),
    "queries/Metadata Log Entries/1/7584dae6": query(),
    "queries/Snapshots/1/ec4eddb5": query(),
    "queries/Snapshots/2/35ee4ddd": query(),
    "queries/Entries/1/d0163641": query(),
    "queries/Files/1/17dbe1f2": query(),
    "queries/Manifests/1/82b46da7": query(),
    "queries/Partitions/1/3c1fead8": query(),
    "queries/Positional Delete Files/1/b62f79c1": query(),
    "queries/All Metadata Tables/1/6d79b333": query(),
    "queries/All Metadata Tables/2/bd3f9adc": query(),
    "queries/All Metadata Tables/3/067d993b": query(),
    "queries/All Metadata Tables/4/f5a3b2b6": query(),
    "queries/References/1/e530e142": query(),
    "queries/Inspecting with DataFrames/1/7fa5a8bd": query(
        fill={"hdfs://nn:8020/path/to/table": "<<location>>"}, by_path=True
    ),
    "queries/Time Travel with Metadata Tables/1/6ee146b6": query(fill={**SNAPSHOT, "2021-09-20 08:00:00": "<<t1>>"}),
    "queries/Time Travel with Metadata Tables/2/8a443472": query(jar_refuses=GIVEN_UP),
    "writes/INSERT INTO/1/d42fa2c8": Block(AS_IS, "two columns", about="db.table"),
    "writes/INSERT INTO/2/017aac73": Block(
        AS_IS, "two columns", about="db.table", fill={"SELECT ...": "SELECT 5L, 'five'"}
    ),
    "writes/MERGE INTO/1/6ecbbbbc": Block(
        AS_IS,
        "merged",
        about="db.target",
        fill={"SELECT ...": "SELECT 1L AS id", "WHEN ...": "WHEN MATCHED THEN DELETE"},
    ),
    "writes/MERGE INTO/2/04427d9a": Block(AS_IS, "merged", about="db.target", wrap=MERGED),
    "writes/MERGE INTO/3/0ecf1391": Block(
        AS_IS,
        "merged",
        about="db.target",
        wrap="""MERGE INTO prod.db.target t USING (SELECT 9L AS id, 1 AS count, 'new' AS status) s ON t.id = s.id
                {block}""",
    ),
    "writes/MERGE INTO/4/bad0dedb": Block(
        AS_IS,
        "merged",
        about="db.target",
        wrap=MERGED,
        fill={"still_valid_threshold": "TIMESTAMP '2020-01-01 00:00:00'"},
    ),
    "writes/MERGE INTO/5/7e1b6794": Block(AS_IS, "merged", about="db.target", wrap=MERGED),
    "writes/INSERT OVERWRITE/1/669e224c": Block(AS_IS, "empty", about="my_app.logs"),
    "writes/INSERT OVERWRITE/2/ed51bece": Block(AS_IS, "logs", about="my_app.logs", before=DYNAMIC, after=STATIC),
    "writes/INSERT OVERWRITE/3/a9c1a65a": Block(
        CHANGED,
        "logs",
        about="my_app.logs",
        change={"first(level), ": ""},
        why="Spark itself refuses a column that both PARTITION and SELECT give: it is taken out of SELECT",
        jar_refuses="by Spark itself, as frazil's is without the change",
    ),
    "writes/DELETE FROM/1/d218dec1": Block(AS_IS, "events", about="db.table"),
    "writes/UPDATE/1/c1add506": Block(AS_IS, "events", about="db.table"),
    "writes/Via SQL/1/1b1f8482": Block(
        AS_IS,
        "two columns",
        about="db.table",
        before=("ALTER TABLE prod.db.table SET TBLPROPERTIES ('write.wap.enabled'='true')",),
        fill={
            "SELECT ...": "SELECT 1L AS id, 'merged' AS val",
            "WHEN ...": "WHEN MATCHED THEN UPDATE SET *",
        },
        after=("RESET spark.wap.branch",),
    ),
    "writes/Via DataFrames/1/ac1958c4": Block(
        AS_IS, "two columns", about="db.table", frames={"data": "SELECT 7L AS id, 'frame' AS val"}
    ),
    "writes/Via DataFrames/2/0463d8b7": Block(
        AS_IS, "two columns", about="db.table", frames={"data": "SELECT 7L AS id, 'frame' AS val"}
    ),
    "writes/Appending data/1/139fe004": Block(AS_IS, "levels", about="db.table", frames={"data": A_LEVEL}),
    "writes/Overwriting data/1/6912cdf2": Block(AS_IS, "levels", about="db.table", frames={"data": A_LEVEL}),
    "writes/Overwriting data/2/1dcf678e": Block(AS_IS, "levels", about="db.table", frames={"data": A_LEVEL}),
    "writes/Creating tables/1/3e51188a": Block(AS_IS, about="db.table", frames={"data": A_LEVEL}),
    "writes/Creating tables/2/f3f2d64d": Block(AS_IS, about="db.table", before=("USE prod",), frames={"data": A_LEVEL}),
    "writes/Creating tables/3/74dde869": Block(AS_IS, about="db.table", frames={"data": A_LEVEL}),
    "writes/Creating tables/4/c6a65b2d": Block(
        AS_IS, about="db.table", frames={"data": A_LEVEL}, fill={"/path/to/location": "<<folder>>/table"}
    ),
    "writes/Merging data/1/6ae84cda": Block(
        AS_IS,
        "target",
        about="db.target",
        frames={"source": "SELECT * FROM VALUES (1L, 'new'), (2L, 'new'), (4L, 'new') AS s(id, status)"},
    ),
    "writes/Schema Merge/1/35cc5f9f": ddl(),
    "writes/Schema Merge/2/23bf7496": ddl(
        "two snapshots",
        before=("ALTER TABLE prod.db.sample SET TBLPROPERTIES ('write.spark.accept-any-schema'='true')",),
        frames={"data": "SELECT 3L AS id, 'c' AS data, 1.5D AS weight"},
    ),
    "writes/Writing Distribution Modes/1/36b2701f": ddl("empty"),
    "writes/Writing Distribution Modes/2/18f40446": ddl("four columns"),
    "procedures/Named arguments/1/9b7ec08b": Block(NOTHING, why="a form without names"),
    "procedures/Positional arguments/1/5d249266": Block(NOTHING, why="a form without names"),
    "procedures/rollback_to_snapshot/1/42e46d02": call(fill={", 1)": ", <<s1>>)"}),
    "procedures/rollback_to_timestamp/1/41831496": call(fill={"2021-06-30 00:00:00.000": "<<t2>>"}),
    "procedures/set_current_snapshot/1/5b1c9f06": call(fill={", 1)": ", <<s1>>)"}),
    "procedures/set_current_snapshot/2/df3e94fb": call(
        before=("ALTER TABLE catalog_name.db.sample CREATE TAG s1 AS OF VERSION <<s1>>",)
    ),
    "procedures/cherrypick_snapshot/1/f6abe003": call("staged", "my_table", fill={", 1)": ", <<wap>>)"}),
    "procedures/cherrypick_snapshot/2/f5147498": call("staged", "my_table", fill={"=> 1,": "=> <<wap>>,"}),
    "procedures/publish_changes/1/5134c7d8": call("staged", "my_table"),
    "procedures/publish_changes/2/5041fd02": call("staged", "my_table", fill={"wap_id_2": "wap_id_1"}),
    "procedures/fast_forward/1/58f8fba0": call("ahead", "my_table"),
    "procedures/expire_snapshots/1/c86d29e6": call(catalog="hive_prod"),
    "procedures/expire_snapshots/2/e3ae2c08": call(catalog="hive_prod", fill={"123": "<<s1>>"}),
    "procedures/remove_orphan_files/1/03edad9a": call(),
    "procedures/remove_orphan_files/2/b194790d": call(fill={"tablelocation": "<<location>>"}),
    "procedures/remove_orphan_files/3/f06dd798": Block(
        CANNOT, why=JAVA + 'in Python `spark.createDataFrame(rows, "file_path string, last_modified timestamp")`'
    ),
    "procedures/remove_orphan_files/4/935c2c94": call(
        before=(
            """CREATE TEMPORARY VIEW files_view AS SELECT 'file://<<location>>/data/lost.parquet' AS file_path,
               TIMESTAMP '2020-01-01 00:00:00' AS last_modified""",
        )
    ),
    "procedures/remove_orphan_files/5/31ad8f28": call(),
    "procedures/remove_orphan_files/6/d7a172e2": call(),
    "procedures/remove_orphan_files/7/1e591065": call(),
    "procedures/remove_orphan_files/8/6d3ff153": call(),
    "procedures/remove_orphan_files/9/7591a4ac": call(),
    "procedures/rewrite_data_files/1/85273e2f": call(),
    "procedures/rewrite_data_files/2/bc780be6": call(),
    "procedures/rewrite_data_files/3/dee5a144": call(),
    "procedures/rewrite_data_files/4/c0739b1e": call(),
    "procedures/rewrite_data_files/5/557f937f": call(),
    "procedures/rewrite_manifests/1/5061adb1": call(),
    "procedures/rewrite_manifests/2/3a555182": call(
        before=(
            "ALTER TABLE catalog_name.db.sample ADD PARTITION FIELD bucket(4, id)",
            "INSERT INTO catalog_name.db.sample VALUES (7, 'foo', 'x', 1, 2)",
        )
    ),
    "procedures/rewrite_manifests/3/ac81eeb2": call(),
    "procedures/rewrite_position_delete_files/1/962d4ff7": call("deleted"),
    "procedures/rewrite_position_delete_files/2/ac34b421": call("deleted"),
    "procedures/rewrite_position_delete_files/3/281474f6": call("deleted"),
    "procedures/snapshot/1/c5ddb4f5": call(
        "of Spark's",
        "snap",
        differs="the jar makes the table in the session's current catalog; frazil in the one whose procedure is called",
    ),
    "procedures/snapshot/2/0ebdfc28": call(
        "of Spark's", "snap", fill={"/tmp/temptable/": "<<folder>>/temptable/"}, jar_refuses=BY_NAME
    ),
    "procedures/migrate/1/2923b98e": call("of Spark's", jar_refuses=BY_NAME),
    "procedures/migrate/2/5f8677b6": call("of Spark's", jar_refuses=BY_NAME),
    "procedures/add_files/1/17ffa7a4": own("sources"),
    "procedures/add_files/2/7bb14b46": own("a folder", fill={"path/to/table": "<<folder>>/src"}),
    "procedures/register_table/1/d0e0df8d": own(
        "changed",
        about="db.tbl",
        fill={"table => 'db.tbl'": "table => 'db.again'", "path/to/metadata/file.json": "<<file>>"},
    ),
    "procedures/ancestors_of/1/d767ede9": own("changed"),
    "procedures/ancestors_of/2/7f8692a4": own("changed", fill={", 1)": ", <<s1>>)", "=> 1,": "=> <<s1>>,"}),
    "procedures/create_changelog_view/1/2e797113": own("changed", fill={"'1'": "'<<s1>>'", "'2'": "'<<s2>>'"}),
    "procedures/create_changelog_view/2/199c73bf": own(
        "changed", fill={"1678335750489": "<<m1>>", "1678992105265": "<<m2>>"}
    ),
    "procedures/create_changelog_view/3/392c8e6f": own("changed", fill={"'1'": "'<<s1>>'", "'2'": "'<<s2>>'"}),
    "procedures/create_changelog_view/4/516985ef": own(
        "changed", before=("CALL {c}.system.create_changelog_view(table => 'db.tbl')",)
    )._replace(kind=AS_IS, why=""),
    "procedures/create_changelog_view/5/99c82d8d": own(
        "changed", before=("CALL {c}.system.create_changelog_view(table => 'db.tbl')",)
    )._replace(kind=AS_IS, why=""),
    "procedures/create_changelog_view/6/253540ce": own("changed", fill={"87647489814522183702": "<<s2>>"}),
    "procedures/create_changelog_view/7/7ef647e9": own("changed"),
    "procedures/compute_table_stats/1/f076835c": call("counted", "my_table"),
    "procedures/compute_table_stats/2/a4f14fae": call("counted", "my_table", fill={"'snap1'": "<<s1>>"}),
    "procedures/compute_table_stats/3/2d69fa7a": call("counted", "my_table", fill={"'snap1'": "<<s1>>"}),
    "procedures/compute_partition_stats/1/d7d0a202": call("counted", "my_table"),
    "procedures/compute_partition_stats/2/62b1b4fb": call("counted", "my_table", fill={"'snap1'": "<<s1>>"}),
    "procedures/rewrite_table_path/1/bd23c38f": Block(NOTHING, why="a file that a procedure writes"),
    "procedures/rewrite_table_path/2/13138120": call(
        "copied", "my_table", fill={"hdfs://nn:8020/path/to/source_table": "<<uri>>"}
    ),
    "procedures/rewrite_table_path/3/96aece07": call(
        "copied",
        "my_table",
        fill={
            "s3a://bucketOne/prefix/db.db/my_table": "<<uri>>",
            "v2.metadata.json": "<<v1>>",
            "v20.metadata.json": "<<v2>>",
            "s3a://bucketStaging/my_table": "<<folder>>/staging",
        },
    ),
    "structured-streaming/Streaming Reads/1/eb087ffe": Block(
        AS_IS, "streamed", about="database.table_name", values={"streamStartTimestamp": "0"}, reads=True
    ),
    "structured-streaming/Limit input rate/1/5e37c4a9": Block(
        AS_IS, "streamed", about="database.table_name", reads=True
    ),
    "structured-streaming/Limit input rate/2/da45e026": Block(
        AS_IS, "streamed", about="database.table_name", reads=True
    ),
    "structured-streaming/Streaming Writes/1/483ae4ce": Block(
        AS_IS,
        "streamed",
        about="database.table_name",
        frames={"data": "prod.database.source"},
        values=CHECKPOINT,
        streams=True,
    ),
    "structured-streaming/Streaming Writes/2/ddcd8c5e": Block(
        CHANGED,
        "streamed",
        about="database.table_name",
        fill={"hdfs://nn:8020/path/to/table": "<<location>>"},
        change={"hdfs://nn:8020/path/to/table": "prod.database.table_name"},
        why="a stream writes to a table by its name, since catalogs commit: the name stands for the path",
        by_path=True,
        frames={"data": "{c}.database.source"},
        values=CHECKPOINT,
        streams=True,
    ),
    "structured-streaming/Partitioned table/1/cc0014c7": Block(
        AS_IS,
        "streamed",
        about="database.table_name",
        frames={"data": "prod.database.source"},
        values=CHECKPOINT,
        streams=True,
    ),
}


def as_jobs(blocks: Sequence[PageBlock], *, on_the_jar: bool) -> list[dict[str, Any]]:
    """Return the blocks that run in a session, as `run_blocks.py` takes them."""
    jobs = []
    for page_block in blocks:
        known = BLOCKS[page_block.key]
        if known.kind not in RUN:
            continue
        catalog = known.catalog if on_the_jar else known.change.get(known.catalog, known.catalog)
        if known.by_path and on_the_jar:
            catalog = HADOOP
        tables = [text.replace("{c}", catalog) for text in STATES[known.state]]
        if catalog == "spark_catalog":
            tables = ["CREATE NAMESPACE IF NOT EXISTS spark_catalog.db", *tables]
        found = known._asdict() | {
            "key": page_block.key,
            "text": page_block.text,
            "language": page_block.language,
            "catalog": catalog,
            "about": f"{catalog}.{known.about}",
            "looks": [known.about],
            "tables": tables,
            "before": [text.replace("{c}", catalog) for text in known.before],
            "frames": {name: text.replace("{c}", catalog) for name, text in known.frames.items()},
            "fill": {**known.fill, **({} if on_the_jar else known.change)},
        }
        jobs.append(found)
    return jobs
