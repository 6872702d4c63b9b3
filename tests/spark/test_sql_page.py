"""Every statement of docs/sql.md runs, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.cli.cut_statements import all_statements
from frazil.maintenance.procedures import PROCEDURES

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
_ORDERS = re.compile(r"\b1000000000000000(\d\d)\b|(?<=snapshot_id_)1000000000000000(\d\d)\b")
_LAST_OF_DAILY = "200000000000000099"


def statements_of_the_page() -> list[tuple[int, str]]:
    """Return the statements with the lines they stand in."""
    text = PAGE.read_text("utf-8")
    found = []
    for block in re.finditer(r"```sql\n(.*?)```", text, re.DOTALL):
        before = text.count("\n", 0, block.start(1))
        found += [(before + one.line, one.text) for one in all_statements(block[1])]
    return found


def settled(statement: str, lake: frazil.Lake, folder: Path) -> str:
    """Put what is there in the place of what is made up: ids of snapshots, folders."""
    if _ORDERS.search(statement):
        snapshots = lake.table("shop.orders").snapshots
        statement = _ORDERS.sub(lambda one: str(snapshots[int(one[1] or one[2])].snapshot_id), statement)
    if _LAST_OF_DAILY in statement:
        statement = statement.replace(_LAST_OF_DAILY, str(lake.table("shop.daily").snapshots[-1].snapshot_id))
    if "current.metadata.json" in statement:
        location = str(lake.table("shop.numbers").metadata_location)
        statement = re.sub(r"file:///data/\S+current.metadata.json", location, statement)
    return statement.replace("file:///data/lake", (folder / "lake").as_uri()).replace("/data/", f"{folder}/data/")


def drop_views(spark: SparkSession) -> None:
    """Drop the session's temporary views: all tests share it."""
    for one in spark.catalog.listTables():
        if one.isTemporary:
            spark.catalog.dropTempView(one.name)


@pytest.mark.extended
@pytest.mark.timeout(900)
def test_every_statement_of_the_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data" / "old").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "data" / "old" / "0.parquet")
    wrong = []
    drop_views(spark)
    with frazil.connect(tmp_path / "lake") as lake:
        frazil.attach(spark, lake)
        try:
            for line, text in statements_of_the_page():
                try:
                    spark.sql(settled(text, lake, tmp_path)).collect()
                except Exception as error:
                    wrong.append(f"docs/sql.md:{line}: {text}\n{str(error)[:400]}")
        finally:
            spark.sql("use spark_catalog.default")
            frazil.detach(spark)
            drop_views(spark)
    assert wrong == [], "\n\n".join(wrong)


def test_every_procedure_is_on_the_page() -> None:
    called = set(re.findall(r"CALL lake\.system\.(\w+)", PAGE.read_text("utf-8")))
    assert set(PROCEDURES) == called
