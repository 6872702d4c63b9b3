"""Text of a table's metadata comes back to the letter or is refused; it never becomes SQL, nor the reader's settings.

Spark replaces `${env:…}`, `${system:…}` and `${setting}` in texts that it parses. A variable, a property of the JVM and
a setting are planted; none of their values may come out of a table that only names them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.types as st
import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.spec.schema import Schema
from frazil.spec.types import INT, STRING, NestedField, StructType
from tests.spark.settings import settings

PLANTED = ("planted-variable", "planted-property", "planted-setting")
HOSTILE = [
    "${env:HOME}",
    "${system:frazil.planted}",
    "${frazil.planted}",
    "${spark.frazil.planted}",
    "a ${hiveconf:frazil.planted} b",
    "it's",
    '"double"',
    "back`tick``s",
    "back\\slash\\",
    "\\' or 1=1 --",
    "') or true --",
    "\\u0024{env:HOME}",
    "char(36)",
    "line\nbreak\r\n\ttab",
    "\x01\x1b[31m",
    "-- comment",
    "/* comment",
    "*/ select 1",
    "{x} {0} {}",
    ":p ?",
    "%s %%",
    "a.b",
    "null",
    "current_date",
    "\u2028\u2029\u0085",
    "\u202egnp.exe\u202c",
    "snow ☃ 𝄞 é",
    "; drop table lake.db.t",
    "$$ a $$ $x$",
    "x" * 5000,
]
NAMES = [one for one in HOSTILE if len(one) < 200]


@pytest.fixture(scope="module")
def planted(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which every kind of variable has a value that must not be seen."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("frazil.planted", PLANTED[1])
    spark.conf.set("frazil.planted", PLANTED[2])
    spark.conf.set("spark.frazil.planted", PLANTED[2])
    spark.conf.set("planted", PLANTED[2])
    yield spark
    jvm.java.lang.System.clearProperty("frazil.planted")
    spark.conf.unset("frazil.planted")
    spark.conf.unset("spark.frazil.planted")
    spark.conf.unset("planted")


@pytest.fixture(scope="module")
def lake(planted: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[frazil.Lake]:
    with frazil.connect(tmp_path_factory.mktemp("lake")) as opened:
        opened.create_namespace("db")
        yield frazil.attach(planted, opened)
        frazil.detach(planted)


def seen(*found: object) -> None:
    """Refuse an output that holds a value of a variable."""
    for one in found:
        assert not any(secret in str(one) for secret in (*PLANTED, os.environ["HOME"])), one


def struct_of(frame: DataFrame, name: str) -> st.StructType:
    kind = frame.schema[name].dataType
    assert isinstance(kind, st.StructType)
    return kind


def fields(names: list[str], first_id: int = 1) -> tuple[NestedField, ...]:
    return tuple(NestedField(first_id + at, name, STRING, required=False) for at, name in enumerate(names))


def test_default_with_special_characters_is_inserted_verbatim(planted: SparkSession, lake: frazil.Lake) -> None:
    parts = [
        NestedField(at + 2, f"c{at}", STRING, required=False, doc=text, initial_default=text, write_default=text)
        for at, text in enumerate(HOSTILE)
    ]
    schema = Schema((NestedField(1, "id", INT, required=False), *parts))
    lake.create_table("db.defaults", schema, format_version=3)
    values = ", ".join("DEFAULT" for _ in parts)
    planted.sql(f"insert into lake.db.defaults values (1, {values})")
    planted.sql("insert into lake.db.defaults (id) values (3)")
    planted.sql("update lake.db.defaults set " + ", ".join(f"c{at} = DEFAULT" for at in range(len(parts))))
    planted.sql(
        "merge into lake.db.defaults t using (select 4 as id) s on t.id = s.id when not matched then insert "
        f"(id, {', '.join(part.name for part in parts)}) values (s.id, {values})"
    )
    rows = lake.table("db.defaults").scan().to_arrow().sort_by("id").to_pylist()
    assert [list(row.values())[1:] for row in rows] == [HOSTILE] * 3
    described = {row[0]: row[2] for row in planted.sql("describe table lake.db.defaults").collect()}
    assert [described[part.name] for part in parts] == HOSTILE
    comments = [field.metadata.get("comment") for field in planted.table("lake.db.defaults").schema.fields[1:]]
    assert comments == HOSTILE


@pytest.mark.extended
def test_default_of_missing_columns_is_read_verbatim(planted: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.added", "id int", format_version=3)
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    with table.update_schema() as change:
        for at, text in enumerate(HOSTILE):
            change.add_column(f"c{at}", STRING, default=text)
    assert [list(row)[1:] for row in planted.table("lake.db.added").collect()] == [HOSTILE]
    table.delete(F.col("c0") == "other")
    assert planted.table("lake.db.added").where(F.col("c0") == HOSTILE[0]).count() == 1


@pytest.mark.extended
def test_special_names_are_read_and_written_verbatim(planted: SparkSession, lake: frazil.Lake) -> None:
    inner = StructType(fields(NAMES, 1000))
    schema = Schema((*fields(NAMES), NestedField(999, "s", inner, required=False)))
    table = lake.create_table("db.names", schema)
    row = {**{name: f"v{at}" for at, name in enumerate(NAMES)}, "s": {name: name for name in NAMES}}
    table.append(pa.Table.from_pylist([row]))
    frame = planted.table("lake.db.names")
    assert frame.columns == [*NAMES, "s"]
    assert [part.name for part in struct_of(frame, "s").fields] == NAMES
    assert frame.collect()[0].asDict(recursive=True) == row
    planted.sql("insert into lake.db.names select * from lake.db.names")
    frame.writeTo("lake.db.names").append()
    twin = planted.table("lake.db.names").limit(1).withColumn("${env:HOME}", F.lit("changed"))
    twin.writeTo("lake.db.names").overwritePartitions()
    table = lake.table("db.names")
    table.update({"`${env:HOME}`": "upper(`${env:HOME}`)"}, where="`${env:HOME}` = 'changed'")
    table.delete("`${system:frazil.planted}` = 'other'")
    (found,) = table.scan().to_arrow().to_pylist()
    assert found == {**row, "${env:HOME}": "CHANGED"}
    filtered = table.scan("`${env:HOME}` = 'CHANGED'").to_spark(planted).collect()
    assert [one.asDict(recursive=True) for one in filtered] == [found]
    planted.sql("create table lake.db.copied as select * from lake.db.names")
    assert lake.table("db.copied").scan().to_arrow().to_pylist() == [found]
    (planted.table("lake.db.names").alias("s").mergeInto("lake.db.copied", F.lit(True))
     .whenMatched().updateAll().whenNotMatched().insertAll().merge())  # fmt: skip
    assert lake.table("db.copied").scan().to_arrow().to_pylist() == [found]
    rows = planted.sql("describe table extended lake.db.names").collect()
    assert {row[0] for row in rows} >= set(NAMES)
    shown = planted.sql("show columns in lake.db.names").collect()
    seen(rows, shown, frame._jdf.queryExecution().toString(), planted.table("lake.db.names.files").collect())
    with pytest.raises(UnsupportedOperationException, match="Cannot show the statement"):
        planted.sql("show create table lake.db.names")


def test_struct_is_inserted_by_position_whatever_its_field_names(planted: SparkSession, lake: frazil.Lake) -> None:
    inner = StructType(fields(NAMES, 1000))
    lake.create_table("db.placed", Schema((NestedField(1, "null", inner, required=False),)))
    values = ", ".join(f"'x{at}', '{at}'" for at in range(len(NAMES)))
    planted.sql(f"insert into lake.db.placed select named_struct({values})")
    (found,) = lake.table("db.placed").scan().to_arrow().to_pylist()
    assert found == {"null": {name: str(at) for at, name in enumerate(NAMES)}}


@pytest.mark.extended
def test_partition_value_with_special_characters_is_read_filtered_and_replaced(
    planted: SparkSession, lake: frazil.Lake
) -> None:
    for at, column in enumerate(("p", "${env:HOME}", "a.b`c")):
        name = f"parts{at}"
        schema = Schema((NestedField(1, "id", INT, required=False), NestedField(2, column, STRING, required=False)))
        table = lake.create_table(f"db.{name}", schema, partition_by=[f"`{column.replace('`', '``')}`"])
        table.append(pa.table({"id": pa.array(range(len(NAMES)), pa.int32()), column: NAMES}))
        frame = planted.table(f"lake.db.{name}")
        key = F.col("`" + column.replace("`", "``") + "`")
        assert [row[1] for row in frame.orderBy("id").collect()] == NAMES
        for text in NAMES[:: 1 if at == 0 else 9]:
            assert [row[1] for row in frame.where(key == text).collect()] == [text]
        shown = planted.sql(f"show partitions lake.db.{name}").collect()
        entries = planted.sql(f"select partition from lake.db.{name}.partitions").collect()
        assert {row[0][0] for row in entries} == set(NAMES)
        planted.createDataFrame([(9, "${env:HOME}")], frame.schema).writeTo(f"lake.db.{name}").overwrite(
            key == "${env:HOME}"
        )
        found = lake.table(f"db.{name}").scan().to_arrow().to_pylist()
        assert {row[column] for row in found} == set(NAMES)
        assert [row["id"] for row in found if row[column] == "${env:HOME}"] == [9]
        seen(shown, entries)


def test_properties_comments_and_references_round_trip_through_shown_sql(
    planted: SparkSession, lake: frazil.Lake
) -> None:
    properties = {f"k {text}": text for text in HOSTILE}
    docs = tuple(NestedField(at + 1, f"c{at}", STRING, required=False, doc=text) for at, text in enumerate(HOSTILE))
    nested = NestedField(500, "s", StructType((NestedField(501, "p", STRING, False, doc=HOSTILE[0]),)), required=False)
    made = lake.create_table("db.props", Schema((*docs, nested)), properties={**properties, "comment": HOSTILE[0]})
    made.append(
        pa.Table.from_pylist([{"c0": "x"}]), snapshot_properties={f"k{at}": one for at, one in enumerate(HOSTILE)}
    )
    shown = {row[0]: row[1] for row in planted.sql("show tblproperties lake.db.props").collect()}
    assert {key: shown[key] for key in properties} == properties
    (text,) = planted.sql("show create table lake.db.props").collect()[0]
    seen(text)
    planted.sql(text.replace("lake.db.props", "lake.db.pasted").replace("/props'", "/pasted'"))
    pasted = lake.table("db.pasted")
    assert {key: pasted.properties[key] for key in properties} == properties
    assert pasted.properties["comment"] == HOSTILE[0]
    assert [part.doc for part in pasted.schema.fields[:-1]] == HOSTILE
    assert pasted.schema.field("s.p").doc == HOSTILE[0]
    summary = planted.sql("select summary from lake.db.props.snapshots").collect()[0][0]
    assert {key: summary[key] for key in summary if key.startswith("k")} == {
        f"k{n}": one for n, one in enumerate(HOSTILE)
    }
    table = lake.table("db.props")
    for at, name in enumerate(NAMES):
        (table.create_branch if at % 2 else table.create_tag)(name)
    found = {row[0] for row in planted.sql("select name from lake.db.props.refs").collect()}
    assert found >= set(NAMES)
    for name in NAMES[:3]:
        assert (
            planted.read.option("tag" if NAMES.index(name) % 2 == 0 else "branch", name).table("lake.db.props").count()
            == 1
        )


@pytest.mark.extended
def test_tables_namespaces_and_views_accept_any_name(planted: SparkSession, lake: frazil.Lake) -> None:
    names = ["${env:HOME}", "${planted}", "it's", 'do"uble', "a\\b", "-- x", "null"]
    for text in names:
        lake.create_namespace((text,))
        lake.create_table((text, text), "id int").append(pa.table({"id": pa.array([1], pa.int32())}))
        lake.create_view((text, "v"), "select '${env:HOME}' as a", properties={"comment": text})
        name = f"lake.`{text}`.`{text}`"
        assert planted.table(name).collect() == [(1,)]
        assert planted.table(f"lake.`{text}`.v").collect() == [("${env:HOME}",)]
    with settings(planted, {"spark.sql.variable.substitute": "false"}):
        for text in names:
            assert planted.sql(f"select * from lake.`{text}`.`{text}`").collect() == [(1,)]
            assert [row[1] for row in planted.sql(f"show tables in lake.`{text}`").collect()] == [text]
            seen(planted.sql(f"describe extended lake.`{text}`.v").collect())


@pytest.mark.extended
def test_view_columns_and_comments_are_verbatim(planted: SparkSession, lake: frazil.Lake) -> None:
    schema = Schema(tuple(NestedField(at + 1, name, STRING, False, doc=name) for at, name in enumerate(NAMES)))
    query = "select " + ", ".join(f"{at} as c{at}" for at in range(len(NAMES)))
    lake.create_view("db.columns", query, schema=schema)
    frame = planted.table("lake.db.columns")
    assert frame.columns == NAMES
    assert list(frame.collect()[0]) == [str(at) for at in range(len(NAMES))]
    rows = planted.sql("describe table lake.db.columns").collect()
    assert [row[0] for row in rows] == NAMES
    assert [row[2] for row in rows] == NAMES


@pytest.mark.extended
def test_user_parameters_and_columns_are_verbatim(planted: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.given", "id int, v string")
    for at, text in enumerate(HOSTILE[:12]):
        planted.sql("insert into lake.db.given values (:id, :v)", args={"id": at, "v": text})
    planted.sql("delete from lake.db.given where v = :v", args={"v": "${env:HOME}"})
    planted.sql("update lake.db.given set v = :v where id = 1", args={"v": "${frazil.planted}"})
    rows = {row["id"]: row["v"] for row in lake.table("db.given").scan().to_arrow().to_pylist()}
    assert rows == {1: "${frazil.planted}", **dict(enumerate(HOSTILE[2:12], 2))}
    frame = planted.createDataFrame([(1, "${env:HOME}")], "id int, v string")
    (frame.mergeInto("lake.db.given", F.expr("given.id = 1")).whenMatched()
     .update({"v": F.lit("${env:HOME}")}).merge())  # fmt: skip
    assert planted.table("lake.db.given").where("id = 1").collect()[0][1] == "${env:HOME}"


def test_spark_variables_in_user_statements_still_work(planted: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.own", "id int, v string")
    planted.sql("insert into lake.db.own values (1, '${frazil.planted}')")
    assert planted.sql("select v, '${system:frazil.planted}' from lake.db.own").first() == (PLANTED[2], PLANTED[1])
    planted.sql("create view lake.db.of_own as select '${frazil.planted}' as v")
    assert lake.view("db.of_own").sql == f"select '{PLANTED[2]}' as v"
    planted.sql("delete from lake.db.own where v = '${frazil.planted}'")
    assert planted.table("lake.db.own").count() == 0


def test_summary_count_that_is_not_a_number_is_ignored(planted: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.counted", "id int")
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    assert table.metadata_location is not None
    stored = Path(table.metadata_location.removeprefix("file://"))
    for at, text in enumerate(("a:b", "//", "", "${env:HOME}", "\u0663", "-1", "\x00:")):
        found = json.loads(stored.read_text())
        found["snapshots"][0]["summary"]["total-data-files"] = text
        made = stored.with_name(f"0000{at}-{uuid.uuid4()}.metadata.json")
        made.write_text(json.dumps(found))
        lake.register_table(f"db.counted{at}", f"file://{made}")
        assert planted.table(f"lake.db.counted{at}").where("id = 1").count() == 1
