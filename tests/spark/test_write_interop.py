"""Tables that were written and changed on Spark are read the same by PyIceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil

pyiceberg_sql = pytest.importorskip("pyiceberg.catalog.sql")
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

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


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("with_lists", [False, True], ids=["native", "arrow"])
def test_pyiceberg_reads_what_spark_wrote(spark: SparkSession, tmp_path: Path, mode: str, with_lists: bool) -> None:
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
        table = lake.create_table("db.t", ddl, partition_by=terms, properties=properties)
        table.append(rows(0, 20))
        table.delete("id % 5 = 1")
        table.update({"k": "'new'", "s.b": "upper(s.b)"}, where="id in (2, 3)")
        table.upsert(rows(18, 25), keys=["id"])
        ours = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
        theirs: Any = pyiceberg_sql.SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/wh")
        try:
            other = theirs.load_table("db.t")
            found = sorted(other.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
            assert found == ours
            chosen = other.scan(row_filter="id >= 10 and k = 'a'").to_arrow().to_pylist()
            assert sorted(row["id"] for row in chosen) == sorted(
                row["id"] for row in ours if row["id"] >= 10 and row["k"] == "a"
            )
        finally:
            theirs.close()
