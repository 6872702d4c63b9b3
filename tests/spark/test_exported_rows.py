"""Rows that leave a lake carry no field ids: in files and tables of others they would mean other columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark.sql.types as st
import pytest
from pyspark.sql import SparkSession

import frazil


@pytest.fixture
def session(spark: SparkSession, lake: frazil.Lake) -> Iterator[SparkSession]:
    """A session with a lake whose table `db.src` has columns of every shape."""
    frazil.attach(spark, lake, name="out")
    spark.sql(
        "create table out.db.src (k bigint comment 'the key', v bigint, s struct<a: int, b: struct<c: string>>, "
        "l array<struct<x: int>>, m map<string, struct<z: int>>) using iceberg"
    )
    spark.sql(
        "insert into out.db.src values (1, 100, named_struct('a', 2, 'b', named_struct('c', 'x')), "
        "array(named_struct('x', 3)), map('n', named_struct('z', 4)))"
    )
    yield spark
    frazil.detach(spark)


def test_exported_frames_keep_names_types_and_comments_only(session: SparkSession) -> None:
    text = "v bigint, s struct<a: int, b: struct<c: string>>, l array<struct<x: int>>, m map<string, struct<z: int>>"
    expected = st.StructType([st.StructField("k", st.LongType(), True, {"comment": "the key"})])
    for one in st._parse_datatype_string(text).fields:  # type: ignore[attr-defined]
        expected = expected.add(one)
    frame = session.table("out.db.src")
    assert frame.schema == expected
    assert "field" not in str(frame.toArrow().schema.metadata)
    session.sql("alter table out.db.src rename column s.a to aa")
    assert session.sql("select s.aa, l.x from out.db.src").first() == (2, [3])
    assert "field.id" not in session.table("out.db.src").schema.json()


def test_exported_files_are_added_to_another_table_by_name(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "vk"
    session.sql("select v as w, k, s.a as a, s, l, m from out.db.src where s.b.c = 'x'").write.parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    assert b"field_id" not in pq.read_schema(file).remove_metadata().serialize().to_pybytes()
    session.sql(
        "create table out.db.dst (w bigint, k bigint, a int, m map<string, struct<z: int>>, l array<struct<x: int>>, "
        "s struct<b: struct<c: string>, a: int>) using iceberg"
    )
    session.sql(f"call out.system.add_files(table => 'db.dst', source_table => '`parquet`.`{folder}`')")
    found = session.table("out.db.dst").first()
    assert found is not None
    assert found.asDict(recursive=True) == {
        "w": 100,
        "k": 1,
        "a": 2,
        "m": {"n": {"z": 4}},
        "l": [{"x": 3}],
        "s": {"b": {"c": "x"}, "a": 2},
    }


def test_nested_fields_are_read_alone_and_by_id(session: SparkSession) -> None:
    session.sql("alter table out.db.src drop column s.a")
    session.sql("alter table out.db.src add column s.a int")
    assert session.sql("select s.a, s.b.c from out.db.src").first() == (None, "x")
    plan = session.sql("select l.x from out.db.src")._jdf.queryExecution().toString()
    assert "m:map" not in plan.split("ReadSchema")[-1]
