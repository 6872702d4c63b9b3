"""`frazil doctor` names what differs for scripts and settings of the jar's, without running anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.check_script import check_file
from frazil.cli.main import app
from frazil.jar.options import SETTINGS
from frazil.jar.surface import PATTERNS

SCRIPT = '''
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder
    .config("spark.jars.packages", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hive")
    .config("spark.sql.iceberg.data-planning-mode", "distributed")
    .getOrCreate()
)
df = spark.read.option("batch-size", "5000").option("snapshot-id", 7).table("lake.db.t")
df.writeTo("lake.db.t").option("target-file-size", "1").option("compression-codec", "zstd").append()
spark.read.option("header", "true").csv("x.csv")
spark.sql("""
    CALL lake.system.rewrite_data_files(table => 'db.t', options => map('min-input-files', '2'))
""")
spark.sql("call lake.system.rewrite_date_files('db.t')")
spark.sql("call lake.system.expire_snapshots(table => 'db.t', keep => 3)")
spark.sql("alter table lake.db.t set tblproperties ('read.orc.vectorization.enabled' = 'true')")
spark._jvm.org.apache.iceberg.spark.actions.SparkActions.get()
'''


def test_script_differences_are_reported_line_by_line(tmp_path: Path) -> None:
    script = tmp_path / "nightly.py"
    script.write_text(SCRIPT)
    found = {(one.line, one.what.split("=")[0]): one.level for one in check_file(str(script))}
    told = {line: {level for (at, _), level in found.items() if at == line} for line, _ in found}
    assert told[5] == {"change"}
    assert told[6] == {"change"}
    assert told[7] == {"change"}
    assert told[8] == {"change"}
    assert told[9] == {"nothing"}
    assert found[12, "option batch-size"] == "nothing"
    assert found[12, "option snapshot-id"] == "fine"
    assert found[13, "option target-file-size"] == "error"
    assert found[13, "option compression-codec"] == "fine"
    assert 14 not in told, "a file of Spark's own is nobody's business"
    assert found[16, "CALL system.rewrite_data_files"] == "fine"
    assert found[18, "CALL system.rewrite_date_files"] == "error"
    assert found[19, "CALL system.expire_snapshots(keep)"] == "error"
    assert found[20, "read.orc.vectorization.enabled"] == "nothing"
    assert "change" in told[21]


STREAMS = """
feed = (
    spark.readStream.option("readChangeFeed", "true")
    .option("startingVersion", 3)
    .option("maxFilesPerTrigger", 10)
    .table("lake.db.t")
)
late = spark.readStream.option("startingVersion", 3).option("stream-from-snapshots", "1").table("lake.db.t")
old = spark.read.option("readChangeFeed", True).option("endingVersion", 4).table("lake.db.t")
(
    feed.writeStream.option("checkpointLocation", "/c")
    .option("upsert-keys", "id")
    .option("fanout-enabled", "yes")
    .toTable("lake.db.s")
)
df.writeTo("lake.db.t").option("upsert-keys", "id").append()
spark.readStream.option("maxFilesPerTrigger", 10).json("arrived")
"""


def test_stream_and_change_feed_options_are_checked(tmp_path: Path) -> None:
    script = tmp_path / "streams.py"
    script.write_text(STREAMS)
    found = {(one.line, one.what.removeprefix("option ")): one.level for one in check_file(str(script))}
    assert found == {
        (3, "readChangeFeed"): "fine",
        (3, "startingVersion"): "fine",
        (3, "maxFilesPerTrigger"): "nothing",
        (8, "startingVersion"): "error",
        (8, "stream-from-snapshots"): "error",
        (9, "readChangeFeed"): "fine",
        (9, "endingVersion"): "fine",
        (11, "checkpointLocation"): "fine",
        (11, "upsert-keys"): "fine",
        (11, "fanout-enabled=yes"): "error",
        (16, "upsert-keys"): "error",
    }


SQL = """
alter table lake.db.t set tblproperties ('write.target-file-size-byte' = '1');
alter table lake.db.t set tblproperties ('write.format.default' = 'parket');
alter table lake.db.t set tblproperties ('write.format.default' = 'orc', 'write.folder-storage.path' = '/x');
alter table lake.db.t set tblproperties ('encryption.key-id' = 'k');
call lake.system.rewrite_data_files(table => 'db.t', options => map('min-input-file', '2'));
call lake.system.rewrite_data_files(table => 'db.t', options => map('min-input-files', 'two'));
call lake.system.rewrite_data_files(table => 'db.t', options => map('compression-factor', '2'));
call lake.system.rewrite_data_files(table => 'db.t', strategy => 'sort', options => map('compression-factor', '2'));
call lake.system.rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'));
call lake.system.rewrite_data_files(table => 'db.t', dry_run => true);
call lake.system.optimize(table => 'db.t');
set spark.sql.iceberg.distribution-modes=hash;
set spark.sql.catalog.lake.default-namespace=db;
set spark.sql.catalog.lake.view-default.comment=x;
set spark.sql.catalog.lake.use-nullable-query-schema=false;
set spark.sql.catalog.lake.hadoop.fs.s3a.endpoint=http://store;
"""


def test_properties_rewrite_options_and_catalogs_are_checked(tmp_path: Path) -> None:
    script = tmp_path / "nightly.sql"
    script.write_text(SQL)
    found = {(one.line, one.level): one for one in check_file(str(script))}
    assert [(line, level) for line, level in sorted(found)] == [
        (2, "error"),
        (3, "error"),
        (4, "error"),
        (5, "error"),
        (6, "error"),
        (7, "error"),
        (8, "error"),
        (9, "fine"),
        (10, "fine"),
        (11, "fine"),
        (12, "fine"),
        (13, "error"),
        (14, "change"),
        (15, "error"),
        (16, "error"),
        (17, "change"),
    ]
    assert "Did you mean write.target-file-size-bytes" in found[2, "error"].becomes
    assert "parquet, avro or orc" in found[3, "error"].becomes
    assert "write.data.path" in found[4, "error"].becomes
    assert "Did you mean min-input-files" in found[6, "error"].becomes
    assert "not an integer" in found[7, "error"].becomes
    assert "Did you mean spark.sql.iceberg.distribution-mode" in found[13, "error"].becomes


def test_command_prints_differences_and_fails_if_something_will_not_work(tmp_path: Path) -> None:
    script, conf = tmp_path / "nightly.py", tmp_path / "spark-defaults.conf"
    script.write_text(SCRIPT)
    conf.write_text(
        "# spark.sql.iceberg.distribution-mode hash\n"
        "spark.sql.iceberg.distribution-mode  hash\n"
        "spark.sql.iceberg.compression-codec=rar\n"
        "spark.sql.catalog.lake.uri jdbc:postgresql://host/lake\n"
    )
    result = CliRunner().invoke(app, ["doctor", str(script), str(conf)])
    assert result.exit_code == 1
    assert "Did you mean target-file-size-bytes" in result.output
    assert f"{conf}:3: will not work: spark.sql.iceberg.compression-codec=rar" in result.output
    assert f"{conf}:4: must change" in result.output
    assert f"{conf}:2" not in result.output
    result = CliRunner().invoke(app, ["-f", "json", "doctor", "--all", str(conf)])
    assert [one["line"] for one in json.loads(result.output)] == [2, 3, 4]


def test_varchar_columns_are_found_in_create_statements(tmp_path: Path) -> None:
    script = tmp_path / "tables.sql"
    script.write_text(
        "create table lake.db.t (a int,\n  b VARCHAR(20), c char(3),\n  d string);\n"
        "select cast(a as varchar(3)), char(65) from lake.db.t;\n"
    )
    assert [(one.line, one.level, one.what) for one in check_file(str(script))] == [(2, "fine", "VARCHAR(20)")]


def test_file_without_findings_passes_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("print(1)\n")
    result = CliRunner().invoke(app, ["doctor", str(script)])
    assert result.exit_code == 0
    assert "No use of the jar was found in 1 file." in result.output
    result = CliRunner().invoke(app, ["doctor", str(tmp_path / "none.py")])
    assert result.exit_code == 1
    assert "Cannot read" in result.output


@pytest.mark.parametrize("name", [one.name.replace("*", "x") for one in SETTINGS if "wap" not in one.name])
def test_every_jar_setting_is_known(tmp_path: Path, name: str) -> None:
    conf = tmp_path / "spark-defaults.conf"
    conf.write_text(f"{name} \n")
    (found,) = check_file(str(conf))
    assert found.becomes != "unknown"


def test_migration_page_lists_what_doctor_checks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "migrate-from-the-jar.md").read_text()
    for pattern in PATTERNS:
        row = f"| `{pattern.grep}` | {pattern.becomes} |".replace("`iceberg-spark", "`iceberg-spark")
        assert row in page, row
