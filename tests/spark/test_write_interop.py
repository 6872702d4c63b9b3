"""Tables that were written and changed on Spark by every verb are read the same by PyIceberg, DuckDB and the jar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil
from tests.interop.interop_page import record
from tests.interop.java_runtime import close_worker, has_java

pyiceberg_sql = pytest.importorskip("pyiceberg.catalog.sql")
peers: Any = pytest.importorskip("tests.interop.interop_peers", reason="peers are installed by make test-interop")
pytestmark = pytest.mark.interop

DDL = (
    "id bigint not null, k string, price decimal(12, 2), day date, ts timestamptz, local timestamp, raw binary, "
    "s struct<a: int, b: string>, tags list<string>"
)
QUERY = """
    select id, element_at(array('a', '', null, 'é/='), cast(id % 4 + 1 as int)) as k,
           cast(id * 1.5 as decimal(12, 2)) as price, date_add(date'2024-01-01', cast(id as int)) as day,
           timestamp'2024-01-01 00:00:00Z' + make_interval(0, 0, 0, 0, cast(id as int)) as ts,
           timestamp_ntz'2024-01-01 00:00:00' as local, cast(concat('b', id) as binary) as raw,
           struct(cast(id as int) as a, 'x' as b) as s, {tags} as tags
    from range({start}, {end})"""


@pytest.fixture(scope="module")
def java() -> Iterator[bool]:
    yield has_java()
    close_worker()


def change(table: frazil.Table, rows: Any) -> None:
    """Use every verb that writes rows."""
    table.append(rows(0, 20))
    table.delete("id % 5 = 1")
    table.update({"k": "'new'", "s.b": "upper(s.b)"}, where="id in (2, 3)")
    table.upsert(rows(18, 25), keys=["id"])
    table.overwrite(rows(40, 42), where="id = 4")
    (
        table.merge(rows(22, 30).withColumnRenamed("k", "kk"), on="target.id = source.id")
        .when_matched("source.id = 22").delete()
        .when_matched().update({"k": "source.kk"})
        .when_not_matched("source.id < 28").insert({"id": "source.id", "k": "'inserted'"})
        .when_not_matched_by_source("target.id = 0").delete()
        .when_not_matched_by_source("target.id = 5").update({"price": "price + 1"})
        .execute()
    )  # fmt: skip
    table.overwrite_partitions(rows(41, 43))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("with_lists", [False, True], ids=["native", "arrow"])
def test_other_implementations_read_what_every_verb_wrote(
    spark: SparkSession, tmp_path: Path, mode: str, with_lists: bool, version: int, java: bool
) -> None:
    ddl = DDL if with_lists else DDL.removesuffix(", tags list<string>")
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    tags = "array('p', null)"

    def rows(start: int, end: int) -> Any:
        frame = spark.sql(QUERY.format(start=start, end=end, tags=tags))
        return frame if with_lists else frame.drop("tags")

    uri = f"sqlite:///{tmp_path}/catalog.db"
    with frazil.connect(tmp_path / "wh", catalog=uri) as lake:
        lake.create_namespace("db")
        terms = ["k", "bucket(3, id)", "day(ts)"] if mode == "copy-on-write" else ["truncate(2, id)"]
        table = lake.create_table("db.t", ddl, partition_by=terms, properties=properties, format_version=version)
        change(table, rows)
        ours = peers.comparable(table.scan().to_arrow().to_pylist())
        assert len(ours) > 15
        location = str(table.metadata_location)
        seen = {
            name: "✓" if peers.comparable(read(location, None, spark)) == ours else "✗ other rows"
            for name, read in peers.CONSUMERS.items()
            if name != "Java" or java
        }
        writer = "by Arrow on executors" if with_lists else "by Spark's own writer"
        labels = {"table": f"{mode}, files {writer}", "version": f"v{version}"}
        record("Tables changed on Spark by every verb", labels, {"Java": "not run: it could not be had", **seen})
        assert set(seen.values()) == {"✓"}, seen
        theirs: Any = pyiceberg_sql.SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/wh")
        try:
            chosen = theirs.load_table("db.t").scan(row_filter="id >= 10 and k = 'a'").to_arrow().to_pylist()
        finally:
            theirs.close()
        mine = table.scan("id >= 10 and k = 'a'").to_arrow().to_pylist()
        assert sorted(row["id"] for row in chosen) == sorted(row["id"] for row in mine)
