"""Statements that need no Spark, run against lakes in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import (
    AlreadyExistsError,
    FieldNotFoundError,
    FrazilError,
    InvalidRequestError,
    NamespaceNotFoundError,
    NotFoundError,
    ReferenceNotFoundError,
    SchemaChangeError,
    SqlSyntaxError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from frazil.sessions.answer import Answer
from frazil.sessions.run_call import Target, call
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.spec.schema import walk_fields
from frazil.sql.parse import parse_statement
from frazil.sql.type_names import live_fields
from frazil.table.sql_session import SqlSession
from tests.support.races import Race


class Console:
    """A session without Spark."""

    def __init__(self, **lakes: frazil.Lake) -> None:
        self.session = SqlSession(dict(lakes))

    def __call__(self, text: str) -> list[tuple[Any, ...]]:
        return list(self.answer(text).rows)

    def answer(self, text: str) -> Answer:
        statement = parse_statement(text, self.session.is_ours)
        assert statement is not None, f"not for a lake: {text}"
        return run_statement(SqlContext(self.session), statement)

    def call(self, name: str, **values: Any) -> Answer:
        """Run a procedure with arguments that Spark has evaluated."""
        return call(Target(self.session.lakes["lake"], "lake", SqlContext(self.session)), name, values)


@pytest.fixture
def lake() -> Iterator[frazil.Lake]:
    with frazil.connect("memory:") as opened:
        yield opened


@pytest.fixture
def sql(lake: frazil.Lake) -> Console:
    console = Console(lake=lake)
    console("create namespace lake.db")
    return console


@pytest.fixture
def table(sql: Console, lake: frazil.Lake) -> frazil.Table:
    sql(
        """create table lake.db.t (id bigint not null comment 'key', ts timestamp, s struct<a: int, b: string>,
        tags array<struct<x: int>>, kind string) using iceberg partitioned by (days(ts), bucket(4, id))"""
    )
    return lake.table("db.t")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))


# Namespaces


def test_namespaces_are_created_and_dropped(sql: Console, lake: frazil.Lake) -> None:
    sql("create namespace if not exists lake.db")
    sql("create schema lake.a.b comment 'c' with properties (k = 'v')")
    with pytest.raises(AlreadyExistsError):
        sql("create namespace lake.db")
    assert sql("show namespaces in lake") == [("a",), ("db",)]
    assert sql("show namespaces in lake.a") == [("a.b",)]
    assert sql("show namespaces in lake like 'd*'") == [("db",)]
    assert sql("describe namespace extended lake.a.b") == [
        ("Catalog Name", "lake"),
        ("Namespace Name", "a.b"),
        ("Comment", "c"),
        ("Properties", "((k,v))"),
    ]
    sql("alter namespace lake.a.b set properties (k = 'w', l = 'x')")
    sql("alter namespace lake.a.b unset properties (l)")
    assert lake.namespace_properties(("a", "b")) == {"comment": "c", "k": "w"}
    sql("drop namespace lake.a.b")
    sql("drop namespace if exists lake.a.b")
    with pytest.raises(NamespaceNotFoundError):
        sql("drop namespace lake.a.b")


def test_cascade_empties_a_namespace(sql: Console, table: frazil.Table, lake: frazil.Lake) -> None:
    with pytest.raises(FrazilError):
        sql("drop namespace lake.db")
    sql("create table lake.db.inner.u (a int)")
    sql("drop namespace lake.db cascade")
    assert lake.list_namespaces() == []


def test_names_resolve_in_the_current_namespace(sql: Console, lake: frazil.Lake) -> None:
    lake.create_namespace("db")
    sql.session.catalog, sql.session.namespace = "lake", ("db",)
    sql("create table t (a int)")
    assert lake.table_exists("db.t")
    assert sql("show current namespace") == [("lake", "db")]
    assert sql("show tables") == [("db", "t", False)]
    sql.session.namespace = ()
    assert sql("describe db.t") == [("a", "int", None)]


def test_extended_table_listing_includes_views(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.t (a int)")
    lake.create_view("db.v", "select 1 as a", schema="a int")
    shown = {name: told for _, name, _, told in sql("show table extended in lake.db like '*'")}
    assert "\nType: MANAGED\n" in shown["t"] and "\nProvider: iceberg\n" in shown["t"]
    assert "\nType: VIEW\n" in shown["v"] and "\nView Text: select 1 as a\n" in shown["v"]
    assert [row[1] for row in sql("show table extended in lake.db like 't*'")] == ["t"]
    assert sql("show tables in lake.db") == [("db", "t", False)]


def test_several_lakes_are_distinguished() -> None:
    with frazil.connect("memory:") as one, frazil.connect("memory:") as two:
        sql = Console(one=one, two=two)
        sql("create table one.db.t (a int)")
        sql("create table two.db.t (b string)")
        assert sql("describe one.db.t") == [("a", "int", None)]
        assert sql("describe two.db.t") == [("b", "string", None)]
        with pytest.raises(InvalidRequestError, match="another lake"):
            sql("alter table one.db.t rename to two.db.u")


def test_other_names_are_left_unchanged() -> None:
    session = SqlSession({"lake": frazil.connect("memory:")}, is_temporary_view=lambda name: name == ("v",))
    assert not session.is_ours("table", ("db", "t"))
    session.catalog = "lake"
    session.namespace = ("db",)
    assert session.is_ours("table", ("t",))
    assert session.is_ours("table", ("db", "t"))
    assert not session.is_ours("table", ("v",))
    assert not session.is_ours("table", ("spark_catalog", "db", "t"))
    assert not session.is_ours("table", ("global_temp", "v"))
    assert not session.is_ours("table", ("parquet", "/some/folder"))


# Tables


def test_created_table_matches_its_statement(sql: Console, lake: frazil.Lake) -> None:
    sql(
        """create table lake.db.x (id bigint not null, n int default 5, d date default date '2024-02-03', p string)
        using iceberg partitioned by (P, bucket(8, ID)) comment 'about' location 'memory://warehouse/elsewhere'
        tblproperties ('format-version' = '3', 'write.format.default' = 'orc')"""
    )
    made = lake.table("db.x")
    assert made.format_version == 3
    assert made.location == "memory://warehouse/elsewhere"
    assert [part.name for part in made.schema.fields] == ["id", "n", "d", "p"]
    assert [part.required for part in made.schema.fields] == [True, False, False, False]
    assert made.schema.field("n").write_default == 5
    assert made.schema.field("d").write_default == 19756
    assert [field.name for field in made.spec.fields] == ["p", "id_bucket"]
    assert made.properties["comment"] == "about"
    assert made.properties["write.format.default"] == "orc"
    assert "format-version" not in made.properties


def test_creating_twice_requires_if_not_exists(sql: Console, table: frazil.Table) -> None:
    sql("create table if not exists lake.db.t (other int)")
    with pytest.raises(TableAlreadyExistsError):
        sql("create table lake.db.t (other int)")
    assert table.refresh().schema.find_field("other") is None


def test_replacing_a_table_keeps_its_history(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.r (id bigint, a string) tblproperties (k = 'v')")
    made = lake.table("db.r")
    made.append(pa.table({"id": [1], "a": ["x"]}))
    before = made.current_snapshot
    assert before is not None
    uuid, old_id = made.metadata.table_uuid, made.schema.field("id").field_id

    sql("create or replace table lake.db.r (id int, b double) partitioned by (id) tblproperties (l = 'w')")

    made.refresh()
    assert made.metadata.table_uuid == uuid
    assert made.current_snapshot is None
    assert made.scan().to_arrow().num_rows == 0
    assert made.schema.field("id").field_id == old_id
    assert made.schema.field("b").field_id > 2
    assert made.properties["k"] == "v"
    assert made.properties["l"] == "w"
    assert made.scan(snapshot_id=before.snapshot_id).to_arrow().to_pylist() == [{"id": 1, "a": "x"}]
    made.append(pa.table({"id": pa.array([7], pa.int32()), "b": [0.5]}))
    assert made.scan().to_arrow().to_pylist() == [{"id": 7, "b": 0.5}]


def test_replace_requires_a_table_unlike_create_or_replace(sql: Console, lake: frazil.Lake) -> None:
    with pytest.raises(TableNotFoundError):
        sql("replace table lake.db.n (a int)")
    sql("create or replace table lake.db.n (a int)")
    assert lake.table_exists("db.n")


def test_create_table_like_copies_the_shape(sql: Console, table: frazil.Table, lake: frazil.Lake) -> None:
    sql("create table lake.db.u like lake.db.t")
    made = lake.table("db.u")
    assert [part.name for part in made.schema.fields] == [part.name for part in table.schema.fields]
    assert [field.name for field in made.spec.fields] == [field.name for field in table.spec.fields]


def test_tables_are_renamed_and_dropped(sql: Console, table: frazil.Table, lake: frazil.Lake) -> None:
    sql("alter table lake.db.t rename to lake.db.u")
    sql("alter table lake.db.u rename to v")
    assert lake.list_tables("db") == [("db", "v")]
    sql("drop table lake.db.v purge")
    sql("drop table if exists lake.db.v")
    with pytest.raises(TableNotFoundError):
        sql("drop table lake.db.v")


# Columns


def test_columns_are_added_at_the_stated_position(sql: Console, table: frazil.Table) -> None:
    sql("alter table lake.db.t add columns (first_one int first, s.c double after a, tags.element.y string)")
    sql("alter table lake.db.t add column after_id decimal(9, 2) comment 'money' after ID")
    names = [part.name for part in table.refresh().schema.fields]
    assert names == ["first_one", "id", "after_id", "ts", "s", "tags", "kind"]
    assert table.schema.field("after_id").doc == "money"
    assert [part.name for part in table.schema.field("s").field_type.fields] == ["a", "c", "b"]  # type: ignore[attr-defined]
    assert table.schema.find_field("tags.element.y") is not None
    sql("alter table lake.db.t add column if not exists first_one int")


def test_columns_are_altered(sql: Console, table: frazil.Table) -> None:
    sql("alter table lake.db.t rename column s.a to aa")
    sql("alter table lake.db.t alter column s.aa type bigint")
    sql("alter table lake.db.t alter column ID drop not null, kind comment 'what', kind first")
    sql("alter table lake.db.t drop columns tags, s.b")
    sql("alter table lake.db.t drop column if exists nope")
    with pytest.raises(FieldNotFoundError):
        sql("alter table lake.db.t drop column nope")
    with pytest.raises(SchemaChangeError):
        sql("alter table lake.db.t alter column kind set not null")
    with pytest.raises(SchemaChangeError):
        sql("alter table lake.db.t alter column id type string")
    schema = table.refresh().schema
    assert sql("describe lake.db.t") == [
        ("kind", "string", "what"),
        ("id", "bigint", "key"),
        ("ts", "timestamp", None),
        ("s", "struct<aa:bigint>", None),
        ("", "", ""),
        ("# Partitioning", "", ""),
        ("Part 0", "days(ts)", ""),
        ("Part 1", "bucket(4, id)", ""),
    ]
    assert not schema.field("id").required


def test_hive_change_column_renames_and_promotes(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.c (a int, b int)")
    sql("alter table lake.db.c change column a aa bigint comment 'wide' after b")
    assert sql("describe lake.db.c") == [("b", "int", None), ("aa", "bigint", "wide")]


def test_columns_are_replaced(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.c (a int, b int)")
    old = lake.table("db.c").schema.field("a").field_id
    sql("alter table lake.db.c replace columns (a int, c string)")
    schema = lake.table("db.c").schema
    assert [part.name for part in schema.fields] == ["a", "c"]
    assert schema.field("a").field_id != old


def test_defaults_are_set_and_dropped(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.d (a int) tblproperties ('format-version' = 3)")
    sql("alter table lake.db.d add column b int not null default 7")
    sql("alter table lake.db.d alter column a set default -1")
    schema = lake.table("db.d").schema
    assert (schema.field("b").initial_default, schema.field("b").write_default) == (7, 7)
    assert (schema.field("a").initial_default, schema.field("a").write_default) == (None, -1)
    sql("alter table lake.db.d alter column a drop default")
    assert lake.table("db.d").schema.field("a").write_default is None
    with pytest.raises(InvalidRequestError, match="without Spark"):
        sql("alter table lake.db.d alter column a set default 1 + 1")
    with pytest.raises(InvalidRequestError, match="the default of a"):
        sql("alter table lake.db.d alter column a set default 'x'")


def test_identifier_fields_are_set_and_dropped(sql: Console, table: frazil.Table) -> None:
    sql("alter table lake.db.t alter column id drop not null")
    with pytest.raises(FrazilError):
        sql("alter table lake.db.t set identifier fields id")
    sql("create table lake.db.i (a int not null, b string not null, c int)")
    sql("alter table lake.db.i set identifier fields a, b")
    assert dict(sql("show tblproperties lake.db.i"))["identifier-fields"] == "[a,b]"
    sql("alter table lake.db.i drop identifier fields a")
    assert dict(sql("show tblproperties lake.db.i"))["identifier-fields"] == "[b]"
    with pytest.raises(InvalidRequestError, match="is not one"):
        sql("alter table lake.db.i drop identifier fields c")


# Partitioning and order


def test_partition_fields_change(sql: Console, table: frazil.Table) -> None:
    sql("alter table lake.db.t add partition field truncate(4, kind) as prefix")
    sql("alter table lake.db.t replace partition field ts_day with hours(TS)")
    sql("alter table lake.db.t drop partition field bucket(4, id)")
    assert [field.name for field in table.refresh().spec.fields] == ["prefix", "ts_hour"]
    sql("alter table lake.db.t drop partition field prefix")
    assert [str(field.transform) for field in table.refresh().spec.fields] == ["hour"]
    with pytest.raises(SchemaChangeError):
        sql("alter table lake.db.t drop partition field prefix")


@pytest.mark.parametrize(
    "clause, order, mode",
    [
        ("ordered by id, ts desc", "id ASC NULLS FIRST, ts DESC NULLS LAST", "range"),
        ("locally ordered by KIND asc nulls last", "kind ASC NULLS LAST", None),
        ("unordered", None, "none"),
        ("distributed by partition", None, "hash"),
        ("distributed by partition locally ordered by bucket(4, id)", "bucket(4, id) ASC NULLS FIRST", "hash"),
    ],
)
def test_write_order_is_one_commit(
    sql: Console, table: frazil.Table, clause: str, order: str | None, mode: str | None
) -> None:
    sql("alter table lake.db.t unset tblproperties ('write.distribution-mode')")
    before = len(table.refresh().metadata.metadata_log)
    sql(f"alter table lake.db.t write {clause}")
    found = dict(sql("show tblproperties lake.db.t"))
    assert found.get("sort-order") == order
    assert found.get("write.distribution-mode") == mode
    assert len(table.refresh().metadata.metadata_log) == before + 1


# Properties


def test_special_properties_change_the_table(sql: Console, table: frazil.Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot
    table.append(rows(2))
    assert first is not None
    sql(f"alter table lake.db.t set tblproperties ('current-snapshot-id' = '{first.snapshot_id}', a = 'b')")
    assert table.refresh().current_snapshot == first
    assert table.properties["a"] == "b"
    sql("alter table lake.db.t set tblproperties ('format-version' = '3')")
    assert table.refresh().format_version == 3
    with pytest.raises(InvalidRequestError):
        sql("alter table lake.db.t set tblproperties ('sort-order' = 'id')")
    sql("alter table lake.db.t set location 'memory://warehouse/moved'")
    assert table.refresh().location == "memory://warehouse/moved"
    sql("alter table lake.db.t unset tblproperties (a, nope)")
    assert "a" not in table.refresh().properties
    sql("comment on table lake.db.t is 'about'")
    assert table.refresh().properties["comment"] == "about"


def test_show_properties_includes_the_table_state(sql: Console, table: frazil.Table) -> None:
    found = dict(sql("show tblproperties lake.db.t"))
    assert found["format"] == "iceberg/parquet"
    assert found["current-snapshot-id"] == "none"
    assert found["format-version"] == "2"
    assert "location" not in found
    assert sql("show tblproperties lake.db.t ('format-version')") == [("format-version", "2")]
    assert sql("show tblproperties lake.db.t (nope)") == [("nope", "Table lake.db.t does not have property: nope")]


# Branches and tags


def test_branches_and_tags_are_created_and_dropped(sql: Console, table: frazil.Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot
    assert first is not None
    sql("alter table lake.db.t create branch b retain 2 days with snapshot retention 3 snapshots 4 hours")
    sql(f"alter table lake.db.t create tag v1 as of version {first.snapshot_id} retain 1 days")
    table.append(rows(2))
    refs = table.refresh().refs
    assert (refs["b"].max_ref_age_ms, refs["b"].min_snapshots_to_keep, refs["b"].max_snapshot_age_ms) == (
        172_800_000, 3, 14_400_000,
    )  # fmt: skip
    assert refs["v1"].snapshot_id == first.snapshot_id
    sql("alter table lake.db.t create branch if not exists b")
    with pytest.raises(AlreadyExistsError):
        sql("alter table lake.db.t create branch b")
    sql("alter table lake.db.t replace branch b")
    moved = table.refresh().refs["b"]
    assert moved.snapshot_id != first.snapshot_id
    assert moved.min_snapshots_to_keep == 3
    with pytest.raises(ReferenceNotFoundError):
        sql("alter table lake.db.t replace tag nope")
    with pytest.raises(AlreadyExistsError):
        sql("alter table lake.db.t create or replace tag b")
    sql("alter table lake.db.t drop tag v1")
    sql("alter table lake.db.t drop branch if exists nope")
    with pytest.raises(ReferenceNotFoundError):
        sql("alter table lake.db.t drop branch nope")


# Looking


def test_table_is_described_in_full(sql: Console, table: frazil.Table) -> None:
    found = sql("describe extended lake.db.t")
    names = [row[0] for row in found]
    assert found[3] == ("tags", "array<struct<x:int>>", None)
    assert names.index("# Metadata Columns") < names.index("_file") < names.index("# Detailed Table Information")
    details = {row[0]: row[1] for row in found}
    assert details["Name"] == "lake.db.t"
    assert details["Provider"] == "iceberg"
    assert details["_partition"] == "struct<ts_day:date,id_bucket:int>"
    assert sql("describe lake.db.t id") == [("col_name", "id"), ("data_type", "bigint"), ("comment", "key")]
    assert sql("show columns in lake.db.t") == [("id",), ("ts",), ("s",), ("tags",), ("kind",)]


def test_identity_partitions_are_described_as_columns(sql: Console) -> None:
    sql("create table lake.db.p (a int, b string) partitioned by (b)")
    assert sql("describe lake.db.p")[2:] == [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("b", "string", None),
    ]


def test_shown_statement_recreates_the_table(sql: Console, lake: frazil.Lake) -> None:
    sql(
        """create table lake.db.a (`odd name` bigint not null comment 'it''s',
        s struct<x: int not null, y: array<string>>, t timestamp_ntz, u uuid, f fixed(4),
        d decimal(9,2), m map<string, date>)
        partitioned by (bucket(4, `odd name`), truncate(2, d)) comment 'c'
        tblproperties (k = 'v', 'format-version' = 3)"""
    )
    (text,) = sql("show create table lake.db.a")[0]
    first = lake.table("db.a")
    lake.drop_table("db.a")
    sql(text)
    second = lake.table("db.a")
    assert second.schema == first.schema
    assert second.spec == first.spec
    assert second.properties == first.properties
    assert (second.location, second.format_version) == (first.location, first.format_version)


def test_shown_statement_includes_altered_attributes(sql: Console, lake: frazil.Lake) -> None:
    """Order, distribution, identifier fields, names of partition fields, comments: one statement has all."""
    sql(
        """create table lake.db.a (id bigint not null comment 'it''s', `a.b` string not null, ts timestamp,
        s struct<x: int not null comment 'in', `y z`: array<string>> not null, d double)
        partitioned by (bucket(4, id)) comment 'c' tblproperties (k = 'v', 'format-version' = 3)"""
    )
    sql("alter table lake.db.a add partition field hours(ts) as h")
    sql("alter table lake.db.a add partition field s.x as `of x`")
    sql("alter table lake.db.a add partition field bucket(8, `a.b`)")
    sql("alter table lake.db.a write ordered by bucket(3, id) desc nulls last, `a.b`, days(ts) asc nulls last")
    sql("alter table lake.db.a write distributed by partition locally ordered by s.`x` desc, id")
    sql("alter table lake.db.a set identifier fields id, `a.b`, s.x")
    sql("alter table lake.db.a drop column d")
    sql("alter table lake.db.a drop partition field h")
    sql("alter table lake.db.a add partition field days(ts) as `the day`")
    sql("alter table lake.db.a set tblproperties ('write.metadata.compression-codec' = 'gzip')")
    (text,) = sql("show create table lake.db.a")[0]
    first = lake.table("db.a")
    lake.drop_table("db.a")
    sql(text)
    second = lake.table("db.a")
    assert _shape(second) == _shape(first)
    assert sql("show create table lake.db.a")[0][0] == text
    replaced = text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
    sql("alter table lake.db.a write unordered")
    sql("alter table lake.db.a drop identifier fields id")
    sql(replaced)
    assert _shape(lake.table("db.a")) == _shape(first)


def _shape(table: frazil.Table) -> dict[str, Any]:
    """Return all of a table but its ids, its rows and its history."""
    schema = table.schema
    parts = [part for part, _, _ in walk_fields(schema.struct)]
    names = {one.field_id: schema.name_of(one.field_id) for one in parts}
    order = table.sort_order.fields
    return {
        "columns": [
            (names[one.field_id], re.sub(r"\d+: ", "", str(one.field_type)), one.required, one.doc) for one in parts
        ],
        "identifiers": [names[one] for one in schema.identifier_field_ids],
        "spec": [(one.name, str(one.transform), names[one.source_id]) for one in live_fields(table.spec)],
        "order": [(str(one.transform), names[one.source_id], one.direction, one.null_order) for one in order],
        "properties": dict(table.properties),
        "location": table.location,
        "version": table.format_version,
    }


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("'sort-order' = 'nope asc'", "nope"),
        ("'sort-order' = 'id asc; drop'", "expected"),
        ("'sort-order' = ''", "sort term"),
        ("'identifier-fields' = 'id'", "expected"),
        ("'identifier-fields' = '[nope]'", "nope"),
        ("'identifier-fields' = '[id]'", "it is optional"),
        ("'partition-field-names' = '[a]'", "the table has 0 of them"),
        ("'partition-field-names' = 'a'", "expected"),
    ],
)
def test_invalid_orders_and_identifiers_are_refused(sql: Console, properties: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message):
        sql(f"create table lake.db.a (id bigint) tblproperties ({properties})")
    with pytest.raises(NotFoundError):
        sql("describe lake.db.a")


def test_partitions_are_shown_as_paths(sql: Console, lake: frazil.Lake) -> None:
    sql("create table lake.db.p (a int, b string) partitioned by (b)")
    lake.table("db.p").append(pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", None, "x"]}))
    assert sql("show partitions lake.db.p") == [("b=null",), ("b=x",)]


def test_missing_objects_are_named(sql: Console) -> None:
    with pytest.raises(TableNotFoundError, match=r"lake\.db\.nope"):
        sql("describe lake.db.nope")
    with pytest.raises(NamespaceNotFoundError):
        sql("show tables in lake.nope")
    with pytest.raises(SqlSyntaxError):
        sql("alter table lake.db.nope frobnicate")


# Procedures


def test_procedures_move_the_table_through_its_history(sql: Console, table: frazil.Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot
    table.append(rows(2))
    second = table.current_snapshot
    assert first is not None
    assert second is not None
    one, two = first.snapshot_id, second.snapshot_id

    assert sql.call("rollback_to_snapshot", table="db.t", snapshot_id=one).rows == ((two, one),)
    assert sql.call("set_current_snapshot", table="lake.db.t", snapshot_id=two).rows == ((one, two),)
    assert sql.call("ancestors_of", table="db.t").rows == (
        (two, second.timestamp_ms),
        (one, first.timestamp_ms),
    )
    sql(f"alter table lake.db.t create branch old as of version {one}")
    assert sql.call("fast_forward", table="db.t", branch="old", to="main").rows == (("old", one, two),)
    sql.call("set_current_snapshot", table="db.t", snapshot_id=one)
    assert sql.call("cherrypick_snapshot", table="db.t", snapshot_id=two).rows == ((two, two),)
    answer = sql.call("rewrite_manifests", table="db.t")
    assert answer.names == ("rewritten_manifests_count", "added_manifests_count")
    assert answer.rows == ((2, 1),)


def test_expiry_counts_deleted_files(sql: Console, table: frazil.Table) -> None:
    for number in range(3):
        table.append(rows(number))
    table.delete("true")
    gone = [one.snapshot_id for one in table.snapshots][:3]
    answer = sql.call("expire_snapshots", table="db.t", snapshot_ids=gone)
    assert answer.names == (
        "deleted_data_files_count",
        "deleted_position_delete_files_count",
        "deleted_equality_delete_files_count",
        "deleted_manifest_files_count",
        "deleted_manifest_lists_count",
        "deleted_statistics_files_count",
    )
    assert answer.rows[0][:3] == (3, 0, 0)
    assert answer.rows[0][4:] == (3, 0)
    assert len(table.refresh().snapshots) == 1


def test_calls_may_name_deletable_folders(sql: Console, lake: frazil.Lake, tmp_path: Path) -> None:
    data = str(tmp_path / "apart")
    table = lake.create_table("db.apart", "id bigint", properties={"write.data.path": data})
    for one in (1, 2):
        table.overwrite(pa.table({"id": pa.array([one], pa.int64())}))
    with pytest.raises(InvalidRequestError, match="outside the warehouse"):
        sql.call("remove_orphan_files", table="db.apart")
    sql.call("remove_orphan_files", table="db.apart", delete_roots=[data])
    first = table.snapshots[0].snapshot_id
    kept = sql.call("expire_snapshots", table="db.apart", snapshot_ids=[first], dry_run=True)
    assert (kept.rows[0][0], kept.names[-1], kept.rows[0][-1]) == (0, "kept_count", 1)
    done = sql.call("expire_snapshots", table="db.apart", snapshot_ids=[first], delete_roots=[data])
    assert done.rows[0][0] == 1
    with pytest.raises(InvalidRequestError, match="outside the warehouse"):
        sql.answer("drop table lake.db.apart purge")


def test_table_is_registered_from_its_metadata(sql: Console, table: frazil.Table, lake: frazil.Lake) -> None:
    table.append(rows(1, 2))
    current = table.current_snapshot
    assert current is not None
    location = table.metadata_location
    answer = sql.call("register_table", table="db.again", metadata_file=location)
    assert answer.rows == ((current.snapshot_id, 2, 1),)
    assert lake.table("db.again").scan().count() == 2


def test_invalid_call_shows_the_correct_form(sql: Console, table: frazil.Table) -> None:
    with pytest.raises(NotFoundError, match=r"(?s)roll_back.*Did you mean rollback_to_.*There are: .*register_table"):
        sql.call("roll_back", table="db.t")
    with pytest.raises(InvalidRequestError, match="'snapshot_id' is null"):
        sql.call("rollback_to_snapshot", table="db.t", snapshot_id=None)
    with pytest.raises(InvalidRequestError, match="without Spark"):
        sql.call("remove_orphan_files", table="db.t", file_list_view="files")


def test_whole_file_deletes_run_without_spark(sql: Console, table: frazil.Table) -> None:
    table.append(rows(3))
    sql("truncate table lake.db.t")
    assert table.refresh().scan().count() == 0


def test_statements_that_require_spark_are_refused(sql: Console, table: frazil.Table) -> None:
    for text in (
        "create table lake.db.c as select 1 a",
        "create view lake.db.v as select 1 a",
    ):
        with pytest.raises(InvalidRequestError, match="without Spark"):
            sql(text)


@pytest.mark.parametrize("name", ["t.files", "t.snapshot_id_1", "t.tag_x", "t.at_timestamp_1"])
def test_only_branches_can_be_written(sql: Console, table: frazil.Table, name: str) -> None:
    with pytest.raises(InvalidRequestError):
        sql(f"truncate table lake.db.{name}")


def test_files_are_added_and_rewritten_by_calls(tmp_path: Path) -> None:
    folder = tmp_path / "files" / "kind=a"
    folder.mkdir(parents=True)
    for number in range(5):
        pq.write_table(pa.table({"id": pa.array([number], pa.int64())}), folder / f"{number}.parquet")
    with frazil.connect(tmp_path / "lake") as lake:
        sql = Console(lake=lake)
        sql("create table lake.db.t (id bigint, kind string) partitioned by (kind)")
        source = f"`parquet`.`{tmp_path / 'files'}`"
        assert sql.call("add_files", table="db.t", source_table=source).rows == ((5, 1),)
        assert sorted(lake.table("db.t").scan().to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, 4]
        found = sql.call("rewrite_data_files", table="db.t", options={"min-input-files": "2"})
        assert found.rows[0][:2] == (5, 1)
        assert lake.table("db.t").scan().count() == 5


def test_branch_of_a_table_without_snapshots_starts_empty(sql: Console, table: frazil.Table) -> None:
    sql("alter table lake.db.t create branch audit retain 7 days with snapshot retention 2 snapshots 3 days")
    ref = table.refresh().refs["audit"]
    day = 24 * 60 * 60 * 1000
    assert (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms) == (2, 3 * day, 7 * day)
    assert table.current_snapshot is None
    assert table.scan(ref="audit").count() == 0
    table.append(rows(1, 2), branch="audit")
    assert (table.scan(ref="audit").count(), table.scan().count()) == (2, 0)
    table.fast_forward("main", to="audit")
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    "text",
    [
        "truncate table lake.db.t",
        "truncate table lake.db.t.branch_main",
        "alter table lake.db.t add columns if not exists (x int)",
        "alter table lake.db.t replace columns (x int)",
        "alter table lake.db.t add partition field bucket(4, id)",
        "alter table lake.db.t write ordered by id",
        "alter table lake.db.t set tblproperties ('a' = 'b', 'format-version' = '3')",
        "alter table lake.db.t create or replace branch b",
        "create or replace table lake.db.t (y int)",
    ],
)
def test_statement_loads_its_table_once(sql: Console, lake: frazil.Lake, text: str) -> None:
    lake.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    with Race(lake.catalog) as counting:
        sql(text)
    assert counting.loads == 1


@pytest.mark.parametrize("name", ["rewrite_data_files", "fast_forward"])
def test_procedure_loads_its_table_once(sql: Console, lake: frazil.Lake, name: str) -> None:
    lake.create_table("db.t", "id bigint").append(pa.table({"id": [1]}))
    more = {"branch": "main", "to": "main"} if name == "fast_forward" else {}
    with Race(lake.catalog) as counting:
        sql.call(name, table="db.t", **more)
    assert counting.loads == 1
