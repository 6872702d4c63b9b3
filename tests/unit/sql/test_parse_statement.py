from __future__ import annotations

import re
from typing import Any

import pytest

from frazil.errors import SqlSyntaxError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.parse_type import parse_type
from frazil.sql import statements as s
from frazil.sql.parse import parse_statement

T = ("lake", "db", "t")
DAY_MS = 86_400_000
LONG_BRANCH = """alter table lake.db.t create or replace branch x as of version 12 retain 7 days
    with snapshot retention 3 snapshots 2 hours"""


def is_lake(kind: str, name: s.Name) -> bool:
    return name[:1] == ("lake",)


def parse(text: str) -> Any:
    return parse_statement(text, is_lake)


def span(text: str, part: str, nth: int = 0) -> s.Span:
    start = -1
    for _ in range(nth + 1):
        start = text.index(part, start + 1)
    return s.Span(part, start)


def pairs(**values: str) -> FrozenMap[str, str]:
    return FrozenMap({key.replace("_", "."): value for key, value in values.items()})


@pytest.mark.parametrize(
    "text",
    [
        "select * from lake.db.t",
        "use lake.db",
        "set catalog lake",
        "insert into lake.db.t values (1)",
        "delete from lake.db.t",
        "update lake.db.t set a = 1",
        "merge into lake.db.t using s on true when matched then delete",
        "with a as (select 1) select * from lake.db.t, a",
        "insert into other.t select * from lake.db.t",
        "create table t (a int) using parquet",
        "create temporary view lake as select 1",
        "alter table t add partition (ds='x')",
        "show tables",
        "show functions",
        "show tables in default",
        "set spark.sql.shuffle.partitions = 3",
        "set catalog spark_catalog",
        "set",
        "use default",
        "describe query select * from lake.db.t",
        "describe function upper",
        "explain select * from lake.db.t",
        "drop function f",
        "drop temporary variable x",
        "refresh function f",
        "cache table x as select * from lake.db.t",
        "begin select 1; end",
        "",
        "garbage !!",
        "insert into 'x",
        "create table lake.db.`t",
    ],
)
def test_other_statements_are_left_to_spark(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    "change",
    [
        "recover partitions",
        "add partition (ds = 'x')",
        "add if not exists partition (ds = 'x') location 'y'",
        "drop partition (ds = 'x')",
        "drop if exists partition (ds = 'x'), partition (ds = 'y') purge",
        "partition (ds = 'x') rename to partition (ds = 'y')",
        "set serde 'x'",
        "set serdeproperties ('a' = 'b')",
    ],
)
def test_hive_partition_statements_are_left_to_spark(change: str) -> None:
    assert parse(f"alter table lake.db.t {change}") is None


CASES: list[tuple[str, s.Statement]] = [
    ("describe function extended lake.system.bucket", s.DescribeFunction(("lake", "system", "bucket"))),
    # Namespaces
    ("create namespace lake.db", s.CreateNamespace(("lake", "db"))),
    (
        "create database if not exists lake.db comment 'c' location '/x' with dbproperties (a.b = 'c', 'd-e' = 1)",
        s.CreateNamespace(
            ("lake", "db"), FrozenMap({"comment": "c", "location": "/x", "a.b": "c", "d-e": "1"}), if_not_exists=True
        ),
    ),
    ("drop schema if exists lake.db cascade", s.DropNamespace(("lake", "db"), if_exists=True, cascade=True)),
    ("alter namespace lake.db set properties (a='b')", s.AlterNamespace(("lake", "db"), pairs(a="b"))),
    ("alter database lake.db unset dbproperties (a)", s.AlterNamespace(("lake", "db"), removals=("a",))),
    ("comment on namespace lake.db is 'x'", s.AlterNamespace(("lake", "db"), pairs(comment="x"))),
    ("describe namespace extended lake.db", s.DescribeNamespace(("lake", "db"), is_extended=True)),
    ("show namespaces in lake like 'a*'", s.ShowNamespaces(("lake",), "a*")),
    ("show tables in lake.db", s.ShowTables(("lake", "db"))),
    ("show tables from lake.db like 'x*|y'", s.ShowTables(("lake", "db"), "x*|y")),
    ("show table extended in lake.db like '*'", s.ShowTables(("lake", "db"), "*", is_extended=True)),
    ("show views in lake.db", s.ShowViews(("lake", "db"))),
    # Looking at tables
    ("describe lake.db.t", s.DescribeTable(T)),
    ("desc table extended lake.db.t", s.DescribeTable(T, is_extended=True)),
    ("describe formatted lake.db.t", s.DescribeTable(T, is_extended=True)),
    ("describe lake.db.t a.b", s.DescribeTable(T, column=("a", "b"))),
    ("show create table lake.db.t", s.ShowCreateTable(T)),
    ("show tblproperties lake.db.t", s.ShowProperties(T)),
    ("show tblproperties lake.db.t ('a.b')", s.ShowProperties(T, "a.b")),
    ("show columns in lake.db.t", s.ShowColumns(T)),
    ("show columns from t from lake.db", s.ShowColumns(T)),
    ("show partitions lake.db.t", s.ShowPartitions(T)),
    ("refresh table lake.db.t", s.RefreshTable(T)),
    # Tables
    ("drop table lake.db.t", s.DropTable(T)),
    ("drop table if exists lake.db.`a.b` purge", s.DropTable(("lake", "db", "a.b"), if_exists=True, purge=True)),
    ("drop table identifier('lake.db.t')", s.DropTable(T)),
    ("truncate table lake.db.t", s.Truncate(T)),
    ("alter table lake.db.t rename to lake.db.u", s.RenameTable(T, ("lake", "db", "u"))),
    ("create table lake.db.t like lake.db.u", s.CreateTableLike(T, ("lake", "db", "u"))),
    ("comment on table lake.db.t is null", s.SetProperties(T, pairs(comment=""))),
    # Columns
    ("alter table lake.db.t rename column a.b to c", s.RenameColumn(T, ("a", "b"), "c")),
    ("alter table lake.db.t drop column a", s.DropColumns(T, (("a",),))),
    ("alter table lake.db.t drop columns if exists (a, b.c)", s.DropColumns(T, (("a",), ("b", "c")), if_exists=True)),
    (
        "alter table lake.db.t alter column a type bigint",
        s.AlterColumns(T, (s.ColumnChange(("a",), type="long"),)),
    ),
    (
        "alter table lake.db.t alter column a.b comment 'x', c first, d after e",
        s.AlterColumns(
            T,
            (
                s.ColumnChange(("a", "b"), comment="x"),
                s.ColumnChange(("c",), position=s.Position()),
                s.ColumnChange(("d",), position=s.Position("e")),
            ),
        ),
    ),
    (
        "alter table lake.db.t alter column a set not null",
        s.AlterColumns(T, (s.ColumnChange(("a",), is_required=True),)),
    ),
    (
        "alter table lake.db.t alter column a drop not null",
        s.AlterColumns(T, (s.ColumnChange(("a",), is_required=False),)),
    ),
    (
        "alter table lake.db.t alter column a drop default",
        s.AlterColumns(T, (s.ColumnChange(("a",), drops_default=True),)),
    ),
    (
        "alter table lake.db.t change column a b double comment 'x' after c",
        s.AlterColumns(T, (s.ColumnChange(("a",), "b", "double", "x", s.Position("c")),)),
    ),
    (
        "alter table lake.db.t add columns (a.b int comment 'x' first, c string not null after d)",
        s.AddColumns(
            T,
            (
                s.ColumnDefinition(("a", "b"), "int", comment="x", position=s.Position()),
                s.ColumnDefinition(("c",), "string", is_required=True, position=s.Position("d")),
            ),
        ),
    ),
    (
        "alter table lake.db.t add column a date, b binary",
        s.AddColumns(T, (s.ColumnDefinition(("a",), "date"), s.ColumnDefinition(("b",), "binary"))),
    ),
    ("alter table lake.db.t replace columns (a int)", s.ReplaceColumns(T, (s.ColumnDefinition(("a",), "int"),))),
    # Properties
    (
        "alter table lake.db.t set tblproperties ('a-b' = 'x', c.d = true, e = 5, f = -1.5)",
        s.SetProperties(T, FrozenMap({"a-b": "x", "c.d": "true", "e": "5", "f": "-1.5"})),
    ),
    (
        "alter table lake.db.t unset tblproperties if exists ('a', b.c)",
        s.UnsetProperties(T, ("a", "b.c"), if_exists=True),
    ),
    ("alter table lake.db.t set location 'file:///x'", s.SetLocation(T, "file:///x")),
    # Partition fields
    ("alter table lake.db.t add partition field bucket(16, id)", s.AddPartitionField(T, "bucket(16, id)")),
    ("ALTER TABLE lake.db.t ADD PARTITION FIELD days(ts) AS d", s.AddPartitionField(T, "days(ts)", "d")),
    ("alter table lake.db.t add partition field truncate(4, `a b`)", s.AddPartitionField(T, "truncate(4, `a b`)")),
    ("alter table lake.db.t add partition field `odd name`", s.AddPartitionField(T, "`odd name`")),
    ("alter table lake.db.t drop partition field ts_day", s.DropPartitionField(T, "ts_day")),
    ("alter table lake.db.t drop partition field `odd name`", s.DropPartitionField(T, "odd name")),
    ("alter table lake.db.t drop partition field year(ts)", s.DropPartitionField(T, "year(ts)")),
    (
        "alter table lake.db.t replace partition field ts_day with hours(ts) as h",
        s.ReplacePartitionField(T, "ts_day", "hours(ts)", "h"),
    ),
    # Order
    ("alter table lake.db.t write ordered by a, b", s.SetWriteOrder(T, ("a", "b"), "range")),
    (
        "alter table lake.db.t write locally ordered by (a desc nulls first, bucket(4, b) asc)",
        s.SetWriteOrder(T, ("a desc nulls first", "bucket(4, b) asc")),
    ),
    ("alter table lake.db.t write unordered", s.SetWriteOrder(T, (), "none")),
    ("alter table lake.db.t write distributed by partition", s.SetWriteOrder(T, (), "hash")),
    (
        "alter table lake.db.t write distributed by partition locally ordered by a",
        s.SetWriteOrder(T, ("a",), "hash"),
    ),
    ("alter table lake.db.t write locally ordered by a distributed by partition", s.SetWriteOrder(T, ("a",), "hash")),
    ("alter table lake.db.t set identifier fields a, b.c", s.SetIdentifierFields(T, (("a",), ("b", "c")))),
    ("alter table lake.db.t drop identifier fields a", s.DropIdentifierFields(T, (("a",),))),
    # Branches and tags
    ("alter table lake.db.t create branch x", s.CreateRef(T, "branch", "x")),
    ("alter table lake.db.t create branch if not exists `a-b`", s.CreateRef(T, "branch", "a-b", if_not_exists=True)),
    (
        LONG_BRANCH,
        s.CreateRef(T, "branch", "x", 12, 7 * DAY_MS, 3, 7_200_000, replaces=True),
    ),
    (
        "alter table lake.db.t create branch x with snapshot retention 5 minutes",
        s.CreateRef(T, "branch", "x", max_snapshot_age_ms=300_000),
    ),
    (
        "alter table lake.db.t create branch x with snapshot retention 5 snapshots",
        s.CreateRef(T, "branch", "x", min_snapshots_to_keep=5),
    ),
    (
        "alter table lake.db.t replace tag x as of version 1",
        s.CreateRef(T, "tag", "x", 1, creates=False, replaces=True),
    ),
    ("alter table lake.db.t create tag x retain 1 days", s.CreateRef(T, "tag", "x", max_ref_age_ms=DAY_MS)),
    ("alter table lake.db.t drop branch if exists x", s.DropRef(T, "branch", "x", if_exists=True)),
    ("alter table lake.db.t drop tag x", s.DropRef(T, "tag", "x")),
    # Views
    ("drop view if exists lake.db.v", s.DropView(("lake", "db", "v"), if_exists=True)),
    ("alter view lake.db.v rename to lake.db.w", s.RenameView(("lake", "db", "v"), ("lake", "db", "w"))),
    (
        "alter view lake.db.v set tblproperties (a='b')",
        s.SetProperties(("lake", "db", "v"), pairs(a="b"), is_view=True),
    ),
    ("alter view lake.db.v unset tblproperties (a)", s.UnsetProperties(("lake", "db", "v"), ("a",), is_view=True)),
]


@pytest.mark.every_case
@pytest.mark.parametrize("text, expected", CASES, ids=[text for text, _ in CASES])
def test_statement_is_parsed(text: str, expected: s.Statement) -> None:
    assert parse(text) == expected
    assert parse(f"/* why */ {text} -- done\n;;") == expected


def test_create_table_with_every_clause() -> None:
    text = """create table if not exists lake.db.t (
        id bigint not null comment 'the ''key''',
        s struct<a: int not null comment 'x', `b c`: array<map<string, timestamp>>>,
        n int default 1 + (2 * 3) not null,
        d decimal(9,2) default -1.5 comment 'y', e string, f timestamp_ntz
    ) using iceberg
    partitioned by (bucket(16, id), days(ts), p string comment 'z')
    location '/x' comment 'c' tblproperties ('format-version' = '3', a.b = 1)"""
    struct = "struct<a: int not null comment 'x', `b c`: list<map<string, timestamptz>>>"
    assert parse(text) == s.CreateTable(
        T,
        (
            s.ColumnDefinition(("id",), "long", is_required=True, comment="the 'key'"),
            s.ColumnDefinition(("s",), struct),
            s.ColumnDefinition(("n",), "int", is_required=True, default=span(text, "1 + (2 * 3)")),
            s.ColumnDefinition(("d",), "decimal(9, 2)", comment="y", default=span(text, "-1.5")),
            s.ColumnDefinition(("e",), "string"),
            s.ColumnDefinition(("f",), "timestamp"),
            s.ColumnDefinition(("p",), "string", comment="z"),
        ),
        ("bucket(16, id)", "days(ts)", "p"),
        "iceberg",
        "/x",
        FrozenMap({"comment": "c", "format-version": "3", "a.b": "1"}),
        if_not_exists=True,
    )
    parse_type(struct)


@pytest.mark.parametrize("between", [" as ", " ", " as ("])
def test_create_table_as_select(between: str) -> None:
    closing = ")" if between.endswith("(") else ""
    query = f"select ';' a from x where b in (select 1){closing}"
    text = f"create or replace table lake.db.t using iceberg partitioned by (a){between}{query};"
    found = parse(text)
    assert found.partition_by == ("a",)
    assert (found.creates, found.replaces) == (True, True)
    assert found.query.text == ("(" if closing else "") + query
    assert text[found.query.start : found.query.end] == found.query.text


def test_replace_table_is_not_create_table() -> None:
    found = parse("replace table lake.db.t as select 1 a")
    assert (found.creates, found.replaces) == (False, True)


def test_clustered_by_becomes_bucket() -> None:
    assert parse("create table lake.db.t (a int) clustered by (a) into 4 buckets").partition_by == ("bucket(4, a)",)


def test_external_is_ignored() -> None:
    assert parse("create external table lake.db.t (a int)") == parse("create table lake.db.t (a int)")


def test_table_may_have_no_columns() -> None:
    assert parse("create table lake.db.t using iceberg").columns == ()


@pytest.mark.parametrize("kind", ["char(3)", "varchar(10)", "array<character(2)>", "struct<a: varchar(1)>"])
def test_char_and_varchar_become_string_with_a_warning(kind: str) -> None:
    of_any_length = re.sub(r"\w*char\w*\(\d+\)", "string", kind)
    for text in (
        "create table lake.db.t (a {})",
        "alter table lake.db.t add column a {}",
        "alter table lake.db.t alter column a type {}",
        "alter table lake.db.t replace columns (a {})",
    ):
        with pytest.warns(UserWarning, match="the format has no text lengths"):
            found = parse(text.format(kind))
        assert found == parse(text.format(of_any_length))


@pytest.mark.parametrize("kind", ["char", "varchar", "varchar()", "varchar(1, 2)", "char('a')", "array<char>"])
def test_char_and_varchar_require_a_length(kind: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse(f"create table lake.db.t (a {kind})")


@pytest.mark.parametrize(
    "rule",
    ["generated always as (1)", "generated by default as identity", "primary key", "unique", "check (a > 0)",
     "constraint c check (a > 0)"],
)  # fmt: skip
def test_unsupported_column_clauses_are_refused(rule: str) -> None:
    with pytest.raises(SqlSyntaxError, match=f"{rule.split(maxsplit=1)[0].upper()} has no place in the format"):
        parse(f"create table lake.db.t (a int {rule})")


def test_options_become_properties() -> None:
    found = parse("create table lake.db.t (a int) options ('k'='o', 'path'='/x') tblproperties ('k'='p', 'q'='r')")
    assert found.location == "/x"
    assert found.properties == {"k": "o", "q": "r", "option.k": "o"}


@pytest.mark.parametrize("mode", ["BINDING", "COMPENSATION", "TYPE EVOLUTION", "EVOLUTION"])
def test_view_schema_mode_is_parsed(mode: str) -> None:
    found = parse(f"create view lake.db.v comment 'c' with schema {mode} as select 1")
    assert found.properties == {"comment": "c", s.VIEW_SCHEMA_MODE: mode}


@pytest.mark.parametrize("text", ["call lake.system.x('a')", "describe procedure lake.system.x", "show procedures"])
def test_procedure_calls_are_left_to_spark(text: str) -> None:
    assert parse_statement(text, lambda *_: True) is None


def test_create_view_is_parsed() -> None:
    text = "create or replace view lake.db.v (a comment 'x', `b`) comment 'c' tblproperties (k='v') as select 1, 2"
    assert parse(text) == s.CreateView(
        ("lake", "db", "v"),
        span(text, "select 1, 2"),
        (s.ViewColumn("a", "x"), s.ViewColumn("b")),
        FrozenMap({"comment": "c", "k": "v"}),
        replaces=True,
    )


ERRORS = [
    ("alter table lake.db.t add partition field bukket(16, id)", "unknown transform 'bukket'", "bukket"),
    ("alter table lake.db.t frobnicate", "expected ADD", "frobnicate"),
    ("alter table lake.db.t write ordered a", "expected ORDERED BY", "ordered"),
    ("alter table lake.db.t create branch x retain 3 weeks", "expected DAYS, HOURS or MINUTES", "weeks"),
    ("alter table lake.db.t create branch x retain 0 days", "must be positive", "0"),
    ("alter table lake.db.t create tag x with snapshot retention 1 days", "expected the end", "with"),
    ("alter table lake.db.t add column a integre", "no type 'integre'", "integre"),
    ("alter table lake.db.t add column a int int", "expected the end", "int int"[4:]),
    ("create view lake.db.v with schema as select 1", "expected BINDING, COMPENSATION or EVOLUTION", "as"),
    ("create view lake.db.v (a) with schema evolution as select 1", "takes its columns from the query", "as"),
    ("create table lake.db.t (a int) location '/x' options ('path'='/y')", "a second LOCATION", "("),
    ("create table lake.db.t (a int) options ('path'='/y') location '/x'", "a second LOCATION", "location"),
    ("create table lake.db.t (a int", "expected ')'", ""),
    ("create table lake.db.t (a int) using delta", "no table format 'delta'", "delta"),
    ("create table lake.db.t (a int primary key)", "PRIMARY has no place", "primary"),
    ("create table lake.db.t (a int not null not null)", "a second NOT", "not"),
    ("create table lake.db.t (a int) as select 1", "takes its columns from it", "select"),
    ("create table lake.db.t (a int) tblproperties (x='1', x='2')", "given twice", "x"),
    ("show tables in lake.db likewise", "expected the end", "likewise"),
]


@pytest.mark.parametrize("text, reason, place", ERRORS, ids=[one[0] for one in ERRORS])
def test_error_points_at_its_position(text: str, reason: str, place: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    message = caught.value.message
    assert reason in message
    shown, underline = message.splitlines()[-2:]
    column = underline.index("^")
    assert message.splitlines()[-3].endswith(f"column {column - 4 + 1}:")
    if place:
        assert shown[column:].startswith(place)
    else:
        assert column >= len(shown)


def test_error_has_its_line_number() -> None:
    with pytest.raises(SqlSyntaxError, match="line 3, column 3"):
        parse("alter table lake.db.t\n\n  frob")


def test_target_is_resolved_once_known() -> None:
    asked: list[tuple[str, s.Name]] = []

    def note(kind: str, name: s.Name) -> bool:
        asked.append((kind, name))
        return False

    for text in ("drop table a.b", "drop view v", "show tables", "drop namespace n"):
        assert parse_statement(text, note) is None
    assert asked == [
        ("table", ("a", "b")),
        ("view", ("v",)),
        ("namespace", ()),
        ("namespace", ("n",)),
    ]
