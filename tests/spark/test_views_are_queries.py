"""A view is a query: no command of Spark's grammar runs when one is read, whoever wrote its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import frazil
from frazil.errors import FrazilError, InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion

REFUSED = (FrazilError, PySparkException, Py4JJavaError)
"""Spark's own parser does not know some texts; its errors about scripts are none of PySpark's."""

QUERIES = {"StatementDefault"}
"""Alternatives of the grammar that are queries."""

COMMANDS = {
    "VisitExecuteImmediate": "EXECUTE IMMEDIATE 'DROP TABLE default.kept'",
    "DmlStatement": "WITH a AS (SELECT 1 AS x) INSERT INTO default.kept SELECT x FROM a",
    "Use": "USE default",
    "UseNamespace": "USE NAMESPACE default",
    "SetCatalog": "SET CATALOG spark_catalog",
    "CreateNamespace": "CREATE NAMESPACE made",
    "SetNamespaceProperties": "ALTER DATABASE default SET DBPROPERTIES ('a' = 'b')",
    "UnsetNamespaceProperties": "ALTER DATABASE default UNSET DBPROPERTIES ('a')",
    "SetNamespaceCollation": "ALTER DATABASE default DEFAULT COLLATION UTF8_LCASE",
    "SetNamespaceLocation": "ALTER DATABASE default SET LOCATION 'x'",
    "DropNamespace": "DROP NAMESPACE made",
    "ShowNamespaces": "SHOW NAMESPACES",
    "CreateTable": "CREATE TABLE default.made USING parquet AS SELECT 1 AS x",
    "CreateTableLike": "CREATE TABLE default.made LIKE default.kept",
    "ReplaceTable": "REPLACE TABLE default.kept USING parquet AS SELECT 2 AS x",
    "Analyze": "ANALYZE TABLE default.kept COMPUTE STATISTICS",
    "AnalyzeTables": "ANALYZE TABLES IN default COMPUTE STATISTICS",
    "AddTableColumns": "ALTER TABLE default.kept ADD COLUMNS (y int)",
    "RenameTableColumn": "ALTER TABLE default.kept RENAME COLUMN x TO y",
    "DropTableColumns": "ALTER TABLE default.kept DROP COLUMN x",
    "RenameTable": "ALTER TABLE default.kept RENAME TO lost",
    "SetTableProperties": "ALTER TABLE default.kept SET TBLPROPERTIES ('a' = 'b')",
    "UnsetTableProperties": "ALTER TABLE default.kept UNSET TBLPROPERTIES ('a')",
    "AlterTableAlterColumn": "ALTER TABLE default.kept ALTER COLUMN x COMMENT 'c'",
    "HiveChangeColumn": "ALTER TABLE default.kept CHANGE COLUMN x y int",
    "HiveReplaceColumns": "ALTER TABLE default.kept REPLACE COLUMNS (y int)",
    "SetTableSerDe": "ALTER TABLE default.kept SET SERDE 'a'",
    "AddTablePartition": "ALTER TABLE default.kept ADD PARTITION (x = 1)",
    "RenameTablePartition": "ALTER TABLE default.kept PARTITION (x = 1) RENAME TO PARTITION (x = 2)",
    "DropTablePartitions": "ALTER TABLE default.kept DROP PARTITION (x = 1)",
    "SetTableLocation": "ALTER TABLE default.kept SET LOCATION 'x'",
    "RecoverPartitions": "ALTER TABLE default.kept RECOVER PARTITIONS",
    "AlterClusterBy": "ALTER TABLE default.kept CLUSTER BY NONE",
    "AlterTableCollation": "ALTER TABLE default.kept DEFAULT COLLATION UTF8_LCASE",
    "AddTableConstraint": "ALTER TABLE default.kept ADD CONSTRAINT c CHECK (x > 0)",
    "DropTableConstraint": "ALTER TABLE default.kept DROP CONSTRAINT c",
    "DropTable": "DROP TABLE default.kept",
    "DropView": "DROP VIEW default.kept",
    "CreateView": "CREATE VIEW default.made AS SELECT 1 AS x",
    "CreateMetricView": "CREATE VIEW default.made WITH METRICS LANGUAGE YAML AS $$ version: 0.1 $$",
    "CreateTempViewUsing": "CREATE TEMPORARY VIEW made USING parquet OPTIONS (path 'x')",
    "AlterViewQuery": "ALTER VIEW default.kept AS SELECT 1",
    "AlterViewSchemaBinding": "ALTER VIEW default.kept WITH SCHEMA EVOLUTION",
    "CreateFunction": "CREATE FUNCTION made AS 'a.B' USING JAR 'x.jar'",
    "CreateUserDefinedFunction": "CREATE TEMPORARY FUNCTION made(x INT) RETURNS INT RETURN x + 1",
    "DropFunction": "DROP TEMPORARY FUNCTION made",
    "CreateVariable": "DECLARE VARIABLE made INT DEFAULT 1",
    "DropVariable": "DROP TEMPORARY VARIABLE made",
    "DeclareCursorStatement": "DECLARE c CURSOR FOR SELECT 1",
    "OpenCursorStatement": "OPEN c",
    "FetchCursorStatement": "FETCH c INTO x",
    "CloseCursorStatement": "CLOSE c",
    "Explain": "EXPLAIN SELECT 1",
    "ShowTables": "SHOW TABLES IN default",
    "ShowTableExtended": "SHOW TABLE EXTENDED IN default LIKE '*'",
    "ShowTblProperties": "SHOW TBLPROPERTIES default.kept",
    "ShowColumns": "SHOW COLUMNS IN default.kept",
    "ShowViews": "SHOW VIEWS IN default",
    "ShowPartitions": "SHOW PARTITIONS default.kept",
    "ShowFunctions": "SHOW FUNCTIONS",
    "ShowProcedures": "SHOW PROCEDURES",
    "ShowCreateTable": "SHOW CREATE TABLE default.kept",
    "ShowCurrentNamespace": "SHOW CURRENT NAMESPACE",
    "ShowCatalogs": "SHOW CATALOGS",
    "ShowCollations": "SHOW COLLATIONS",
    "DescribeFunction": "DESCRIBE FUNCTION abs",
    "DescribeProcedure": "DESCRIBE PROCEDURE a.b",
    "DescribeNamespace": "DESCRIBE NAMESPACE default",
    "DescribeRelation": "DESCRIBE TABLE default.kept",
    "DescribeQuery": "DESCRIBE QUERY SELECT 1",
    "CommentNamespace": "COMMENT ON NAMESPACE default IS 'x'",
    "CommentTable": "COMMENT ON TABLE default.kept IS 'x'",
    "CommentColumn": "COMMENT ON COLUMN default.kept.x IS 'x'",
    "RefreshTable": "REFRESH TABLE default.kept",
    "RefreshFunction": "REFRESH FUNCTION made",
    "RefreshResource": "REFRESH 'x'",
    "CacheTable": "CACHE TABLE made AS SELECT 1",
    "UncacheTable": "UNCACHE TABLE default.kept",
    "ClearCache": "CLEAR CACHE",
    "LoadData": "LOAD DATA LOCAL INPATH 'x' INTO TABLE default.kept",
    "TruncateTable": "TRUNCATE TABLE default.kept",
    "RepairTable": "MSCK REPAIR TABLE default.kept",
    "ManageResource": "ADD JAR 'x.jar'",
    "CreateIndex": "CREATE INDEX i ON TABLE default.kept (x)",
    "DropIndex": "DROP INDEX i ON TABLE default.kept",
    "Call": "CALL lake.system.rollback_to_snapshot('db.t', 1)",
    "FailNativeCommand": "CREATE ROLE made",
    "CreatePipelineDataset": "CREATE MATERIALIZED VIEW default.made AS SELECT 1",
    "CreatePipelineInsertIntoFlow": "CREATE FLOW f AS INSERT INTO default.kept BY NAME SELECT 1 AS x",
    "CreateFlowAutoCdc": "CREATE FLOW f AS AUTO CDC INTO default.kept FROM default.kept KEYS (x) SEQUENCE BY x",
    "FailSetRole": "SET ROLE admin",
    "SetTimeZone": "SET TIME ZONE 'Asia/Tokyo'",
    "SetPath": "SET PATH = DEFAULT_PATH",
    "SetVariable": "SET VAR made = 1",
    "SetQuotedConfiguration": "SET `spark.sql.session.timeZone` = `Asia/Tokyo`",
    "SetConfiguration": "SET spark.sql.session.timeZone=Asia/Tokyo",
    "ResetQuotedConfiguration": "RESET `spark.sql.session.timeZone`",
    "ResetConfiguration": "RESET",
    "InsertOverwriteTable": "INSERT OVERWRITE default.kept SELECT 1",
    "InsertIntoTable": "INSERT INTO default.kept SELECT 1",
    "InsertIntoReplaceBooleanCond": "INSERT INTO default.kept REPLACE WHERE x = 1 SELECT 1",
    "InsertIntoReplaceUsing": "INSERT INTO default.kept REPLACE USING (x) SELECT 1 AS x",
    "InsertOverwriteHiveDir": "INSERT OVERWRITE LOCAL DIRECTORY 'FOLDER' STORED AS PARQUET SELECT 1",
    "InsertOverwriteDir": "INSERT OVERWRITE LOCAL DIRECTORY 'FOLDER' USING csv SELECT 'gone'",
    "SingleInsertQuery": "INSERT INTO default.kept (SELECT 1)",
    "MultiInsertQuery": "FROM default.kept INSERT INTO default.kept SELECT x INSERT INTO default.kept SELECT x + 1",
    "DeleteFromTable": "DELETE FROM lake.db.t",
    "UpdateTable": "UPDATE lake.db.t SET id = 0",
    "MergeIntoTable": "MERGE INTO lake.db.t USING default.kept ON id = x WHEN MATCHED THEN DELETE",
}
"""A statement for each alternative of the rules that statements are made of, by its label in Spark's grammar."""

NESTED = [
    "BEGIN DROP TABLE default.kept; END",
    "BEGIN DECLARE x INT; SELECT x; END",
    "BEGIN IF true THEN DROP TABLE default.kept; END IF; END",
    "BEGIN NOT ATOMIC SELECT 1; END",
    "EXPLAIN INSERT INTO default.kept SELECT 1",
    "EXPLAIN CODEGEN SELECT 1",
    "WITH a AS (SELECT 1 AS x) FROM a INSERT OVERWRITE LOCAL DIRECTORY 'FOLDER' USING csv SELECT x",
    "WITH a AS (SELECT 1 AS x) DELETE FROM lake.db.t",
    "WITH a AS (INSERT INTO default.kept SELECT 1) SELECT * FROM a",
    "SELECT * FROM (INSERT INTO default.kept SELECT 1)",
    "SELECT 1; DROP TABLE default.kept",
    "/* a query */ -- SELECT\n DROP TABLE default.kept",
    "(DROP TABLE default.kept)",
    "SELECT 1 |> INSERT INTO default.kept",
    "SELECT 1 INTO default.made",
    "SELECT 1 UNION ALL DROP TABLE default.kept",
    "EXECUTE IMMEDIATE 'SELECT 1' INTO x",
    "SELECT :p",
    "SELECT ?",
    "",
    "-- nothing",
]

CODE = [
    "SELECT reflect('java.lang.System', 'setProperty', 'frazil.planted', 'x')",
    "SELECT java_method('java.lang.System', 'getenv', 'PATH')",
    "SELECT try_reflect('java.lang.System', 'getenv', 'PATH')",
    "SELECT builtin.reflect('java.lang.System', 'getenv', 'PATH')",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'PATH')",
    "WITH a AS (SELECT Reflect('java.lang.System', 'getenv', 'PATH')) SELECT * FROM a",
    "SELECT (SELECT max(reflect('java.lang.System', 'getenv', 'PATH')) FROM default.kept)",
    "SELECT x FROM default.kept WHERE x IN (SELECT TRANSFORM (x) USING 'touch FOLDER/made' AS (y) FROM default.kept)",
    "SELECT TRANSFORM (x) USING 'touch FOLDER/made' AS (y) FROM default.kept",
    "FROM default.kept MAP x USING 'touch FOLDER/made' AS (y)",
    "SELECT * FROM csv.`FOLDER/file.csv`",
    "SELECT * FROM text.`file:FOLDER/file.csv`",
    "SELECT * FROM IDENTIFIER('csv.`FOLDER' || '/file.csv`')",
    "SELECT (SELECT count(*) FROM csv.`FOLDER/file.csv`)",
]


class Stage:
    """A lake with a table, Spark's own table `default.kept`, and a folder that commands would change."""

    def __init__(self, spark: SparkSession, lake: frazil.Lake, folder: Path) -> None:
        self.spark, self.lake, self.folder = spark, lake, folder
        self._count = 0
        self.before = self.state()

    def spelled(self, text: str) -> str:
        return text.replace("FOLDER", str(self.folder))

    def stored(self, text: str) -> str:
        """Return the name of a view whose metadata holds a text, as another program would have written it."""
        self._count += 1
        version = ViewVersion(
            1, 0, 1, (SqlRepresentation(self.spelled(text), "spark"),), ("default",), "spark_catalog",
            FrozenMap({"engine-name": "other"}),
        )  # fmt: skip
        self.lake.catalog.create_view(("db", f"v{self._count}"), Schema(()), version, location=None, properties=None)
        return f"lake.db.v{self._count}"

    def state(self) -> Any:
        jvm: Any = self.spark._jvm
        catalog = self.spark.catalog
        return (
            sorted(one.name for one in catalog.listTables("default")),
            [one.name for one in catalog.listDatabases()],
            [row[0] for row in self.spark.table("spark_catalog.default.kept").collect()],
            self.lake.table("db.t").metadata.last_sequence_number,
            self.spark.conf.get("spark.sql.session.timeZone"),
            catalog.currentCatalog(),
            sorted(self.folder.iterdir()),
            jvm.java.lang.System.getProperty("frazil.planted"),
            [one.name for one in catalog.listFunctions(pattern="made")],
        )


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("folder")
    (folder / "file.csv").write_text("secret\n")
    with frazil.connect(tmp_path_factory.mktemp("lake")) as lake:
        frazil.attach(spark, lake)
        lake.create_table("db.t", "id int")
        spark.sql("create table spark_catalog.default.kept using parquet as select 1 as x")
        yield Stage(spark, lake, folder)
        spark.sql("drop table spark_catalog.default.kept")
        frazil.detach(spark)


def test_every_spark_statement_kind_is_covered(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    rules = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.parser.SqlBaseParser").getDeclaredClasses()
    parents = {"Statement", "SetResetStatement", "InsertInto", "DmlStatementNoWith"}
    found = {
        one.getSimpleName().removesuffix("Context")
        for one in rules
        if one.getSuperclass().getSimpleName().removesuffix("Context") in parents
    }
    assert found - QUERIES <= COMMANDS.keys()
    assert len(found) > 80


@pytest.mark.extended
def test_commands_cannot_become_views(stage: Stage) -> None:
    taken = []
    for text in [*COMMANDS.values(), *NESTED]:
        for start in ("CREATE OR REPLACE VIEW lake.db.made AS", "CREATE OR REPLACE TEMPORARY VIEW made AS"):
            try:
                stage.spark.sql(f"{start} {text} /* lake */")
            except REFUSED:
                continue
            taken.append(text)
    assert taken == []
    assert stage.state() == stage.before


@pytest.mark.extended
def test_command_in_view_metadata_does_not_run(stage: Stage) -> None:
    answered = []
    for text in [*COMMANDS.values(), *NESTED]:
        if text.strip() == "":
            continue
        name = stage.stored(text)
        try:
            answered.append((text, stage.spark.table(name).collect()))
        except REFUSED:
            continue
    assert answered == []
    assert stage.state() == stage.before


def test_code_and_paths_in_views_are_refused_by_default(stage: Stage) -> None:
    answered = []
    for text in CODE:
        name = stage.stored(text)
        with pytest.raises(AnalysisException, match=r"read\.trusted-views"):
            answered.append(stage.spark.sql(f"select * from {name}").collect())
        with pytest.raises(AnalysisException, match=r"read\.trusted-views"):
            stage.spark.sql(f"create or replace view lake.db.made as {stage.spelled(text)}")
    assert answered == []
    assert stage.state() == stage.before


@pytest.mark.skipif(not Path("Makefile").exists(), reason="needs a file in the working folder")
def test_path_resembling_a_table_is_refused(stage: Stage) -> None:
    with pytest.raises(AnalysisException, match=r"read\.trusted-views"):
        stage.spark.table(stage.stored("SELECT * FROM text.Makefile"))


def test_lake_with_trusted_views_reads_files_by_path(stage: Stage, tmp_path: Path) -> None:
    with frazil.connect(tmp_path, properties={"read.trusted-views": "true"}) as lake:
        frazil.attach(stage.spark, lake, "trusted")
        lake.create_view("db.v", stage.spelled("SELECT * FROM csv.`FOLDER/file.csv`"), default_catalog="spark_catalog")
        assert stage.spark.table("trusted.db.v").collect() == [("secret",)]
        with pytest.raises(InvalidRequestError, match="by INSERT"):
            lake.create_view("db.w", COMMANDS["InsertOverwriteDir"])


@pytest.mark.extended
def test_views_of_every_query_kind_are_readable(stage: Stage) -> None:
    queries = [
        "SELECT id FROM lake.db.t;",
        "FROM lake.db.t SELECT id",
        "TABLE lake.db.t",
        "VALUES (1)",
        "((SELECT 1))",
        "-- a comment\n/* SELECT */ SELECT 1",
        "WITH a AS (SELECT 1 AS x), b(y) AS (TABLE a) (SELECT * FROM b)",
        "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT 1 AS insert, 2 AS `update`",
        "FROM lake.db.t |> SELECT id |> SET id = 2",
        "SELECT x FROM spark_catalog.default.kept",
        "SELECT * FROM lake.db.t LATERAL VIEW explode(array(1)) e AS y",
    ]
    for at, text in enumerate(queries):
        stage.lake.create_view(f"db.q{at}", text)
        assert stage.spark.table(f"lake.db.q{at}").columns
        stage.spark.sql(f"create or replace view lake.db.q{at} as {text}")
