"""Iceberg's own pages for Spark, block by block: each runs as `jar_blocks.py` says, and does what it does with the jar.

The pages are not kept here. `ICEBERG_DOCS=…/iceberg/docs/docs pytest tests/interop/test_jar_pages.py` runs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.interop import run_blocks
from tests.interop.interop_page import record_pages
from tests.interop.jar_blocks import AS_IS, BLOCKS, HADOOP, KINDS, TWO_LINES, as_jobs
from tests.interop.java_runtime import JavaLake
from tests.interop.page_blocks import DOCS, PageBlock, cut_page, read_blocks
from tests.support.s3_server import BUCKET, running
from tests.support.served_lake import served

HERE = Path(__file__).parent
CATALOGS = ("local", "prod", "catalog", "catalog_name", "hive_prod", "lake")
ZONE = "Asia/Kolkata"
needs_pages = pytest.mark.skipif(DOCS is None, reason="ICEBERG_DOCS names no folder with Iceberg's pages")


@pytest.fixture(scope="module")
def blocks() -> list[PageBlock]:
    assert DOCS is not None
    return read_blocks(Path(DOCS))


def test_page_is_split_into_blocks_by_heading() -> None:
    text = "# A page\n\n## `first`\n\n```sql\nselect 1\n```\n\n#### Example\n\n  ```scala\n  # no heading\n  x\n  ```\n"
    found = cut_page("page", text)
    assert [one[:4] for one in found] == [("page", "first", 1, "sql"), ("page", "first", 2, "scala")]
    assert [one.text for one in found] == ["select 1", "# no heading\nx"]


def test_every_block_has_a_kind_and_unrunnable_ones_a_reason() -> None:
    assert {one.kind for one in BLOCKS.values()} == set(KINDS)
    assert [key for key, one in BLOCKS.items() if one.kind not in {AS_IS, TWO_LINES} and not one.why] == []
    assert [key for key, one in BLOCKS.items() if (one.kind == TWO_LINES) != (one.lines != "")] == []


@needs_pages
def test_every_block_of_the_pages_is_listed(blocks: list[PageBlock]) -> None:
    assert sorted(one.key for one in blocks) == sorted(BLOCKS)


@pytest.fixture(scope="module")
def ours(session: Any, tmp_path_factory: pytest.TempPathFactory, blocks: list[PageBlock]) -> dict[str, Any]:
    """What came of the blocks here."""
    session.conf.set("spark.sql.session.timeZone", ZONE)
    with frazil.connect(tmp_path_factory.mktemp("pages") / "lake") as lake:
        for name in CATALOGS:
            frazil.attach(session, lake, name)
        try:
            return run_blocks.run(session, as_jobs(blocks, on_the_jar=False))
        finally:
            frazil.detach(session)


@needs_pages
@pytest.mark.interop
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_block_behaves_as_listed(ours: dict[str, Any]) -> None:
    record_pages(with_the_jar=False)
    assert {key: seen["error"] for key, seen in ours.items() if seen["error"] is not None} == {}


@needs_pages
@pytest.mark.interop
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_every_block_behaves_as_with_the_jar(
    java: None, ours: dict[str, Any], tmp_path: Path, blocks: list[PageBlock]
) -> None:
    theirs = run_on_the_jar(tmp_path, blocks)
    refused = {key: seen["error"] for key, seen in theirs.items() if seen["error"] is not None}
    assert sorted(refused) == sorted(key for key, one in BLOCKS.items() if one.jar_refuses), refused
    differ = {key: (seen, theirs[key]) for key, seen in ours.items() if key not in refused and seen != theirs[key]}
    assert sorted(differ) == sorted(key for key, one in BLOCKS.items() if one.differs), differ
    record_pages(with_the_jar=True)


@pytest.mark.interop
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key, one in BLOCKS.items() if one.kind == TWO_LINES])
def test_setup_lines_replace_the_settings_of_the_jar(session: Any, tmp_path: Path, key: str) -> None:
    with running() as store, served(tmp_path / "served") as service:
        names = {
            "frazil": frazil,
            "spark": session,
            "folder": tmp_path / "lake",
            "service": service.uri,
            "bucket": BUCKET,
            "properties": store.properties,
        }
        lake = eval(BLOCKS[key].lines, names)
        (name,) = {row[0] for row in session.sql("show catalogs").collect()} - {"spark_catalog"}
        try:
            session.sql(f"create table {name}.db.t (id bigint)")
            assert [row[1] for row in session.sql(f"show tables in {name}.db").collect()] == ["t"]
        finally:
            frazil.detach(session)
            lake.close()


def run_on_the_jar(folder: Path, blocks: list[PageBlock]) -> dict[str, Any]:
    settings = {"spark.sql.session.timeZone": ZONE}
    for name in CATALOGS:
        own = f"spark.sql.catalog.{name}"
        settings |= {
            own: "org.apache.iceberg.spark.SparkCatalog",
            f"{own}.type": "jdbc",
            f"{own}.uri": f"jdbc:sqlite:{folder}/jar.db",
            f"{own}.warehouse": f"file://{folder}/jar-{name}",
            f"{own}.jdbc.schema-version": "V1",
            f"{own}.cache-enabled": "false",
        }
    by_path = f"spark.sql.catalog.{HADOOP}"
    settings |= {
        by_path: "org.apache.iceberg.spark.SparkCatalog",
        f"{by_path}.type": "hadoop",
        f"{by_path}.warehouse": f"file://{folder}/jar-{HADOOP}",
        f"{by_path}.cache-enabled": "false",
    }
    session_catalog = "spark.sql.catalog.spark_catalog"
    settings |= {
        session_catalog: "org.apache.iceberg.spark.SparkSessionCatalog",
        f"{session_catalog}.type": "hadoop",
        f"{session_catalog}.warehouse": f"file://{folder}/jar-session",
        f"{session_catalog}.cache-enabled": "false",
    }
    lake = JavaLake(folder / "jar", settings=settings)
    found: dict[str, Any] = lake.script(HERE / "run_blocks.py", as_jobs(blocks, on_the_jar=True))
    return found
