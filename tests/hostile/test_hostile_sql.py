"""Every kind of statement and every procedure over a stranger's lake, on Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import frazil
from frazil.errors import FrazilError
from frazil.maintenance.procedures import PROCEDURES
from frazil.sessions.attach import detach
from frazil.sessions.run_statement import _VERBS
from frazil.sql.parse import parse_statement
from tests.hostile.hostile_lake import (
    CANARY_ROW,
    ENVIRONMENT_SECRET,
    PROPERTIES,
    SECRETS,
    SETTING,
    SETTING_SECRET,
    VARIABLE,
    Outside,
    Stranger,
)
from tests.spark.conftest import spark

__all__ = ["spark"]
pytestmark = pytest.mark.spark

STATEMENTS = """
USE hostile.db
SHOW CURRENT NAMESPACE
CREATE NAMESPACE hostile.more
ALTER NAMESPACE hostile.db SET PROPERTIES ('a' = 'b')
DESCRIBE NAMESPACE EXTENDED hostile.db
DESCRIBE FUNCTION hostile.system.bucket
SHOW NAMESPACES IN hostile
SHOW TABLES IN hostile.db
SHOW VIEWS IN hostile.db
CREATE TABLE hostile.db.made (id bigint)
CREATE TABLE hostile.db.copied LIKE hostile.db.{}
REFRESH TABLE hostile.db.{}
ALTER TABLE hostile.db.{} ADD COLUMNS (more int)
ALTER TABLE hostile.db.{} DROP COLUMNS (more)
ALTER TABLE hostile.db.{} RENAME COLUMN note TO remark
ALTER TABLE hostile.db.{} ALTER COLUMN id COMMENT 'x'
ALTER TABLE hostile.db.{} SET TBLPROPERTIES ('a' = 'b')
ALTER TABLE hostile.db.{} UNSET TBLPROPERTIES ('a')
ALTER TABLE hostile.db.{} SET LOCATION 'file:///nowhere'
ALTER TABLE hostile.db.{} ADD PARTITION FIELD bucket(4, id)
ALTER TABLE hostile.db.{} REPLACE PARTITION FIELD bucket(4, id) WITH bucket(8, id)
ALTER TABLE hostile.db.{} DROP PARTITION FIELD bucket(8, id)
ALTER TABLE hostile.db.{} WRITE ORDERED BY id
ALTER TABLE hostile.db.{} SET IDENTIFIER FIELDS id
ALTER TABLE hostile.db.{} DROP IDENTIFIER FIELDS id
ALTER TABLE hostile.db.{} CREATE BRANCH b
ALTER TABLE hostile.db.{} DROP BRANCH b
DESCRIBE TABLE EXTENDED hostile.db.{}
SHOW CREATE TABLE hostile.db.{}
SHOW TBLPROPERTIES hostile.db.{}
SHOW COLUMNS IN hostile.db.{}
SHOW PARTITIONS hostile.db.{}
SELECT * FROM hostile.db.{}
SELECT count(*) FROM hostile.db.{}
SELECT note, `_file` FROM hostile.db.{} WHERE id > 0
SELECT * FROM hostile.db.{}.files
SELECT * FROM hostile.db.{}.snapshots
EXPLAIN EXTENDED SELECT * FROM hostile.db.{} WHERE note = 'x'
INSERT INTO hostile.db.{} (id, note) VALUES (1, DEFAULT)
INSERT INTO hostile.db.{} (id) VALUES (2)
FROM hostile.db.victim INSERT INTO hostile.db.{} (id) SELECT id
UPDATE hostile.db.{} SET note = DEFAULT WHERE id = 1
DELETE FROM hostile.db.{} WHERE id = 2
MERGE INTO hostile.db.{} t USING hostile.db.victim s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
CREATE VIEW hostile.db.made_view AS SELECT 1 AS x
ALTER VIEW hostile.db.v_env SET TBLPROPERTIES ('a' = 'b')
ALTER VIEW hostile.db.v_env AS SELECT 2 AS x
ALTER VIEW hostile.db.v_env RENAME TO hostile.db.v_other
DROP VIEW hostile.db.v_other
ALTER TABLE hostile.db.{} REPLACE COLUMNS (id bigint)
TRUNCATE TABLE hostile.db.{}
ALTER TABLE hostile.db.made RENAME TO hostile.db.remade
DROP NAMESPACE hostile.more
DROP TABLE hostile.db.{} PURGE
""".strip().splitlines()
VALUES = {
    "table": "'db.{}'", "snapshot_id": "1", "timestamp": "TIMESTAMP '2020-01-01'", "wap_id": "'w'", "branch": "'main'",
    "to": "'main'", "metadata_file": "'file:///nowhere/v1.metadata.json'", "source_table": "'parquet.`/nowhere`'",
    "source_prefix": "'file:///nowhere'", "target_prefix": "'file:///else'",
}  # fmt: skip


def calls() -> Iterator[str]:
    """Yield a call of every procedure, with what it must be given."""
    for name, procedure in PROCEDURES.items():
        given = [
            f"{one.name} => {VALUES[one.name]}"
            for one in procedure.parameters
            if one.is_required or one.name in ("table", "snapshot_id")
        ]
        yield f"CALL hostile.system.{name}({', '.join(given)})"


def test_every_statement_kind_is_covered() -> None:
    kinds = {type(parse_statement(one.replace("{}", "t"), lambda *_: True)) for one in [*STATEMENTS, *calls()]}
    assert set(_VERBS) <= kinds, {one.__name__ for one in set(_VERBS) - kinds}


class Session:
    """Runs statements; what they answer, raise and explain is kept."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.heard: list[str] = []

    def run(self, text: str) -> None:
        try:
            frame = self._session.sql(text)
            self.heard += [str(row.asDict(recursive=True)) for row in frame.collect()]
            if frame.columns:
                self.heard.append(frame._jdf.queryExecution().toString())
        except (FrazilError, PySparkException, Py4JError, ValueError) as error:
            # PySpark has no dates beyond the year 9999, and says so by a ValueError.
            self.heard += [str(error), repr(error)]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT_SECRET)
    made = Outside(tmp_path / "outside")
    yield made
    made.close()


@pytest.fixture
def session(spark: Any) -> Iterator[Session]:
    spark.conf.set(SETTING, SETTING_SECRET)
    yield Session(spark)
    detach(spark)
    spark.conf.unset(SETTING)


def check(session: Session, *secrets: str) -> None:
    for text in session.heard:
        for secret in (*SECRETS, SETTING_SECRET, *secrets):
            assert secret not in text, f"a planted secret came out: …{text[:3000]}"


@pytest.mark.extended
def test_inspecting_an_untrusted_lake_by_sql_is_harmless(
    spark: Any, session: Session, tmp_path: Path, outside: Outside
) -> None:
    stranger = Stranger(tmp_path, outside)
    before = {one: one.stat().st_mtime_ns for one in stranger.warehouse.rglob("*") if one.suffix != ".db-shm"}
    with frazil.connect(stranger.warehouse, trust="none", properties=PROPERTIES) as lake:
        frazil.attach(spark, lake, name="hostile")
        others = [name for _, name in stranger.tables if name.isidentifier() and name not in ("names", "long_vector")]
        for number, text in enumerate([*STATEMENTS, *calls()]):
            session.run(text.replace("{}", "names" if number % 2 else others[number % len(others)]))
        for name in (
            others if os.environ.get("FRAZIL_HOSTILE_ALL") else ("http", "ftp", "outside", "link", "far_vector")
        ):
            session.run(f"SELECT * FROM hostile.db.{name}")
        for _, name in stranger.views:
            session.run(f"SELECT * FROM hostile.db.{name}")
        outside.check("statements")
        assert spark.table("hostile.db.victim").collect() == [(7, "mine")]
    after = {one: one.stat().st_mtime_ns for one in stranger.warehouse.rglob("*") if one.suffix != ".db-shm"}
    assert {one.name for one in after.keys() ^ before.keys()} <= {"catalog.db-wal", "catalog.db-shm"}
    check(session, CANARY_ROW)
    assert not spark.catalog.tableExists("default.pwned")
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"


def test_using_untrusted_tables_by_sql_is_harmless(
    spark: Any, session: Session, tmp_path: Path, outside: Outside
) -> None:
    stranger = Stranger(tmp_path, outside)
    with frazil.connect(stranger.warehouse, properties=PROPERTIES) as lake:
        frazil.attach(spark, lake, name="hostile")
        for name in ("http", "https", "ftp", "webhdfs", "jar", "home", "far_vector"):
            session.run(f"SELECT * FROM hostile.db.{name}")
        for text in STATEMENTS:
            if text.startswith(("SELECT", "INSERT", "UPDATE", "MERGE", "DESCRIBE TABLE", "SHOW CREATE", "EXPLAIN")):
                session.run(text.replace("{}", "names"))
        for name in ("expire_snapshots", "remove_orphan_files"):
            session.run(f"CALL hostile.system.{name}(table => 'db.home')")
            session.run(f"CALL hostile.system.{name}(table => 'db.victims_path')")
        session.run("DROP TABLE hostile.db.data_path PURGE")
        for _, name in stranger.views:
            session.run(f"SELECT * FROM hostile.db.{name}")
        session.heard += [str(one) for one in lake.table("db.names").scan().to_arrow().to_pylist()]
        outside.check_kept("statements")
        assert lake.table("db.victim").check(bounds=True).ok
    check(session)
    assert not spark.catalog.tableExists("default.pwned")
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
