"""One Spark session for the whole run, and every test here is marked `spark`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import frazil
from tests.spark.cluster import MASTER, SETTINGS
from tests.spark.streams import Streams

HERE = Path(__file__).parent
UNRAISABLE = "pytest.PytestUnraisableExceptionWarning"
# Most of what tests make the JVM run, it runs a few times: its second compiler and threads that collect garbage take
# more processor time than they save. Sessions of processes that tests start inherit it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if pyspark.__version__ < "4.3":
                # Its toArrow() leaves a socket to the garbage collector.
                for warning in ("unclosed <socket:ResourceWarning", f"Exception ignored in. <socket:{UNRAISABLE}"):
                    item.add_marker(pytest.mark.filterwarnings(f"ignore:{warning}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session, or one on the cluster that the environment names.

    Its time zone is far from UTC and not whole hours away, so that mistakes with zones show.
    """
    warehouse = tmp_path_factory.mktemp("spark-warehouse")
    # Functions that clients of Connect send are run by it.
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master(os.environ.get(MASTER, "local[2]"))
        .appName("frazil tests")
        .config(map=json.loads(os.environ.get(SETTINGS, "{}")))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "Asia/Kolkata")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.ui.showConsoleProgress", "false")
        # Spark 4.0 knows scripts, and does not take them unless it is told to.
        .config("spark.sql.scripting.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    if MASTER not in os.environ:
        _warm_up(session, tmp_path_factory.mktemp("warm-up"))
    yield session
    session.stop()


def _warm_up(session: SparkSession, folder: Path) -> None:
    """Load and compile what every test needs, so that the time it takes is not the first test's."""
    with frazil.connect(folder / "lake") as lake:
        lake.create_namespace("db")
        frazil.attach(session, lake)
        session.sql("create table lake.db.t (id bigint, v string) using iceberg")
        session.sql("insert into lake.db.t values (1, 'a'), (2, 'b')")
        session.sql("update lake.db.t set v = 'c' where id = 2")
        assert len(session.sql("select v, count(*) from lake.db.t group by v").collect()) == 2
        frazil.detach(session)


@pytest.fixture(autouse=True)
def changes_run_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verbs that may choose their engine choose Spark, however little they read: it is what is tested here."""
    monkeypatch.setattr("frazil.verbs.choose_engine.AUTO_BYTES", -1)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[frazil.Lake]:
    """A new lake in a folder: SQLite catalog, local files."""
    with frazil.connect(tmp_path / "lake") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def attached(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    """The session, with the lake attached as `lake`."""
    frazil.attach(spark, lake)
    yield spark
    frazil.detach(spark)


@pytest.fixture
def attached_lake(attached: SparkSession, lake: frazil.Lake) -> frazil.Lake:
    """The lake, attached as `lake`."""
    return lake


@pytest.fixture
def table(attached: SparkSession, lake: frazil.Lake) -> frazil.Table:
    """An empty table, made by SQL."""
    attached.sql("create table lake.db.t (id bigint, v string) using iceberg")
    return lake.table("db.t")


@pytest.fixture
def filled(attached: SparkSession) -> Iterator[SparkSession]:
    """The session, with a table of two partitions in its lake."""
    attached.sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
    attached.sql("insert into lake.db.t values (1, 'a'), (2, 'b'), (3, 'a')")
    yield attached
    attached.sql("use spark_catalog.default")
    attached.catalog.clearCache()


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    """Streams that keep their checkpoints in a folder of the test."""
    return Streams(tmp_path)


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[None]:
    """Times without a zone are in UTC, as they are without Spark."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)
