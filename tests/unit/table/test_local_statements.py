"""Statements of `lake.sql` other than queries: what they do, and what they refuse."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import (
    ConcurrentChangeError,
    FieldNotFoundError,
    FrazilError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.table.local_sql.statements import run_statement
from tests.unit.table.plain_queries import PlainQueries, Rows


@pytest.fixture
def lake() -> Iterator[PlainQueries]:
    """A lake with the table db.t (id, kind, n, price, day, score) of three rows."""
    made = PlainQueries(frazil.connect("memory:", catalog="memory"))
    made.sql("create schema db")
    made.sql("create table db.t (id int not null, kind varchar, n bigint, price decimal(9, 2), day date, score double)")
    made.sql(
        "insert into db.t values (1, 'a', 10, 1.50, '2024-01-01', 0.5), (2, 'it''s', 20, 2.25, null, 'nan'::double), "
        "(3, null, null, null, '2024-02-29', -1)"
    )
    yield made
    made.close()


def column(lake: PlainQueries, name: str, table: str = "db.t") -> list[Any]:
    """Return the values of a column, by id."""
    rows = lake.lake.table(table).scan().to_arrow().to_pylist()
    return [row[name] for row in sorted(rows, key=lambda row: row["id"])]


# Insert


def test_insert_values_casts_to_the_column_types(lake: PlainQueries) -> None:
    made = lake.sql("insert into db.t values (4, 'b', '5', 7, '2024-03-01', 1.5)")
    assert made.to_pylist() == [{"num_affected_rows": 1, "num_inserted_rows": 1}]
    row = lake.lake.table("db.t").scan("id = 4").to_arrow().to_pylist()[0]
    assert row == {
        "id": 4,
        "kind": "b",
        "n": 5,
        "price": Decimal("7.00"),
        "day": datetime.date(2024, 3, 1),
        "score": 1.5,
    }


@pytest.mark.parametrize(
    "text",
    [
        "insert into db.t (kind, id) select 'x', 4",
        'insert into lake.db."t" (KIND, "id") values (\'x\', 4)',
        "insert into db.t by name select 4 as ID, 'x' as kind",
        "insert into db.t by position (select 4, 'x', null, null, null, null)",
        "insert into db.t (kind, id) from (values ('x', 4)) v; -- done",
        "with w as (select 'x' a, 4 b) insert into db.t (kind, id) from w",
        "insert into db.t (kind, id) with w as (select 'x' a, 4 b) select * from w",
        "insert into db.t (id, kind) select id + 3, 'x' from db.t where id = 1",
    ],
)
def test_insert_matches_rows_by_position_or_name(lake: PlainQueries, text: str) -> None:
    lake.sql(text)
    assert column(lake, "id") == [1, 2, 3, 4]
    assert column(lake, "kind")[3] == "x"
    assert column(lake, "n")[3] is None


def test_insert_reads_caller_data_and_parameters(lake: PlainQueries) -> None:
    frame = pa.table({"key": [7, 8], "word": ["x", "y"]})
    lake.sql("insert into db.t (id, kind) select key, word from rows where key > $low", {"rows": frame}, low=7)
    assert column(lake, "kind")[3:] == ["y"]


def test_insert_from_the_same_table_reads_rows_before_the_insert(lake: PlainQueries) -> None:
    lake.sql("insert into db.t select * from db.t")
    assert column(lake, "id") == [1, 1, 2, 2, 3, 3]


def test_insert_fills_missing_columns_with_defaults(lake: PlainQueries) -> None:
    table = lake.lake.create_table("db.v3", "id int, kind string", format_version=3)
    with table.update_schema() as update:
        update.add_column("n", "int", default=5)
    lake.sql("insert into db.v3 (id) values (1)")
    lake.sql("insert into db.v3 default values")
    rows = lake.lake.table("db.v3").scan().to_arrow().to_pylist()
    assert sorted(rows, key=str) == [{"id": 1, "kind": None, "n": 5}, {"id": None, "kind": None, "n": 5}]


def test_insert_casts_list_items(lake: PlainQueries) -> None:
    lake.sql("create table db.l (id int, numbers double[])")
    lake.sql("insert into db.l values (1, [1, 2.5]), (2, [])")
    assert column(lake, "numbers", "db.l") == [[1.0, 2.5], []]


def test_insert_accepts_numbers_and_texts_of_other_widths(lake: PlainQueries) -> None:
    lake.sql("insert into db.t (id, n, price, score) select count(*) + 3, sum(id)::hugeint, 5, 1.1 from db.t")
    assert [column(lake, name)[3] for name in ("id", "n", "price", "score")] == [6, 6, Decimal("5.00"), 1.1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("insert into db.t values (1)", "there are 6 columns, and the query has 1"),
        ("insert into db.t (id, nope) values (1, 2)", "the table has no column nope"),
        ("insert into db.t by name select 1 as id, 2 as nope", "the table has no column nope"),
        ("insert into db.t (id, ID) values (1, 2)", "the column id is given twice"),
        ("insert into db.t (id) values ('x')", "Could not convert string 'x'"),
        ("insert into db.t (id) values (99999999999)", "out of range"),
        ("insert into db.t (id) values (1.5)", "id: decimal128.* cannot be written as int"),
        ("insert into db.t (id, n) values (1, 2.5e0)", "n: double cannot be written as long"),
        ("insert into db.t (kind) values ('x')", "id: it is required"),
        ("insert into db.t (id) values (null)", "required column 'id': 1 value is null"),
    ],
)
def test_insert_of_incompatible_values_is_an_error(lake: PlainQueries, text: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(text)
    assert column(lake, "id") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "part", "hint"),
    [
        ("insert or replace into db.t (id) values (1)", "INSERT OR", "upsert"),
        ("insert or ignore into db.t (id) values (1)", "", ""),
        ("insert into db.t (id) values (1) on conflict do nothing", "ON CONFLICT", "upsert"),
        ("insert into db.t (id) values (1) returning id", "RETURNING", "Query"),
        ("insert into db.t (id, n) values (1, default)", "DEFAULT", "Leave the column out"),
    ],
)
def test_insert_refuses_what_append_does_not_support(lake: PlainQueries, text: str, part: str, hint: str) -> None:
    with pytest.raises(UnsupportedError, match=part or None) as caught:
        lake.sql(text)
    assert hint in (caught.value.hint or "")


# Update


@pytest.mark.parametrize(
    ("assignment", "found"),
    [
        ("n = n + 1", 11),
        ("N = -n * 2 - 1", -21),
        ('"n" = id', 1),
        ("n = null", None),
        ("n = $v", 7),
        ("n = case when kind = 'a' then 5 else 6 end", 5),
        ("n = case id when 1 then 5 end", 5),
        ("n = coalesce(null, n, 3)", 10),
        ("n = nullif(n, 10)", None),
        ("n = greatest(n, 11, null)", 11),
        ("n = length(kind || 'bc')", 3),
        ("n = year(day)", 2024),
        ("n = day - date '2023-12-31'", 1),
        ("n = abs(-n)", 10),
        ("n = n % 3", 1),
        ("n = n::int", 10),
        ("kind = 'back\\slash ''quote'''", "back\\slash 'quote'"),
        ("kind = substring(kind || 'xyz', 2, 2)", "xy"),
        ("kind = left('äöü', 2)", "äö"),
        ("kind = replace(kind, 'a', '$')", "$"),
        ("kind = n::varchar", "10"),
        ("price = price * 2 + 0.05", Decimal("3.05")),
        ("price = n", Decimal("10.00")),
        ("day = day + 1", datetime.date(2024, 1, 2)),
        ("day = '2024-02-29'", datetime.date(2024, 2, 29)),
        ("score = score * n + 1e0", 6.0),
        ("score = 0.1", 0.1),
        ("score = 'inf'::double", float("inf")),
    ],
)
def test_update_equals_duckdb(lake: PlainQueries, assignment: str, found: object) -> None:
    parameters = {"v": 7} if "$v" in assignment else {}
    made = lake.sql(f"update db.t set {assignment} where id = 1", **parameters)
    assert made.to_pylist() == [{"num_affected_rows": 1, "num_updated_rows": 1}]
    name = assignment.partition(" = ")[0].strip('"').lower()
    assert column(lake, name)[0] == found


def test_update_without_where_changes_all_rows(lake: PlainQueries) -> None:
    assert lake.sql("update db.t as x set kind = 'z', n = x.id").column("num_updated_rows").to_pylist() == [3]
    assert column(lake, "kind") == ["z"] * 3
    assert column(lake, "n") == [1, 2, 3]


def test_parameters_are_values_and_never_text(lake: PlainQueries) -> None:
    text = "it's \\ `x` :y 'or' 1 = 1 -- "
    lake.sql("update db.t set kind = $v where kind = $old", v=text, old="it's")
    assert column(lake, "kind") == ["a", text, None]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("update db.t set n = 1 from db.t s where s.id = t.id", "FROM"),
        ("update db.t set n = 1 returning n", "RETURNING"),
        ("update db.t set n = default", "DEFAULT"),
        ("update db.t set (n, id) = (1, 2)", "SET"),
        ("update db.t set n = id / 2", "the operator /"),
        ("update db.t set n = id // 2", "the operator //"),
        ("update db.t set n = id % n", "%"),
        ("update db.t set score = score ** 2", r"the operator \*\*"),
        ("update db.t set kind = kind[1]", r"\[…\]"),
        ("update db.t set kind = upper(kind)", "the function upper"),
        ("update db.t set kind = trim(kind)", "the function trim"),
        ("update db.t set kind = concat(kind, 'x')", "the function concat"),
        ("update db.t set kind = my_function(kind)", "the function my_function"),
        ("update db.t set kind = substring(kind, 0)", "substring with another position"),
        ("update db.t set kind = (select 'x')", "a query in an expression"),
        ("update db.t set kind = 5", "INTEGER for the column kind, which is VARCHAR,"),
        ("update db.t set n = score", "DOUBLE for the column n, which is BIGINT,"),
        ("update db.t set n = price", r"DECIMAL\(9,2\) for the column n"),
        ("update db.t set n = score::bigint", "a cast of DOUBLE to BIGINT"),
        ("update db.t set kind = score::varchar", "a cast of DOUBLE"),
        ("update db.t set day = day + interval 1 month", "an interval"),
        ("update db.t set day = '2024-2-9'", "the text '2024-2-9' as DATE"),
        ("update db.t set kind = e'a\\nb'", "a text with escapes"),
        ("update db.t set n = 1 where kind ilike 'A'", "ILIKE"),
        ("update db.t set n = 1 where kind ~ 'a'", "a regular expression"),
        ("update db.t set n = 1 where kind glob 'a*'", "GLOB"),
        ("update db.t set n = 1 where id in (select 1)", "IN with a query"),
        ("update db.t set n = 1 where kind = 1", "of VARCHAR and INTEGER values"),
        ("update db.t set n = 1 where id = '1'", "the text '1' as INTEGER"),
        ("update db.t set n = 1 where kind like kind", "LIKE without text and a literal pattern"),
        ("update db.t set n = 1 where kind collate nocase = 'A'", "COLLATE"),
        ("update db.t set n = 170141183460469231731687303715884105727", "the number"),
    ],
)
def test_update_refuses_ambiguous_expressions_by_name(lake: PlainQueries, text: str, part: str) -> None:
    with pytest.raises(UnsupportedError, match=part or None) as caught:
        lake.sql(text)
    assert caught.value.message.startswith("Cannot update db.t: ")
    assert caught.value.hint
    assert column(lake, "n") == [10, 20, None]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("update db.t set nope = 1", FieldNotFoundError, "the table has no column nope"),
        ("update db.t set n = nope", FieldNotFoundError, "there is no column nope"),
        ("update db.t set n = 1, N = 2", InvalidRequestError, "the column n is set twice"),
        ("update db.t set n = 1 where id", InvalidRequestError, "INTEGER, not true or false"),
        ("update db.t set n = 9223372036854775807 + id", InvalidRequestError, "does not fit"),
        ("update db.t set price = 12345678.9", InvalidRequestError, "does not fit"),
        ("update db.t set id = null", SchemaMismatchError, "required"),
        ("update db.t set n = $v", InvalidRequestError, r"the parameter \$v has no value"),
        ("update db.t set n = ?", FrazilError, ""),
        ("update db.t set n =", InvalidRequestError, "Cannot run the query"),
        ("update db.t set n <=> 1", InvalidRequestError, "Cannot run the query"),
        ("update db.nope set n = 1", TableNotFoundError, "db.nope"),
        ("update t set n = 1", InvalidRequestError, "it has no namespace"),
        ("update db.t.snapshots set n = 1", InvalidRequestError, "metadata table"),
        ("update db.t set n = 1; delete from db.t", InvalidRequestError, "Cannot run 2 statements at once"),
        ("", InvalidRequestError, "no statement"),
        ("vacuum", UnsupportedError, "Cannot run VACUUM"),
        ("copy db.t to 'file'", UnsupportedError, "Cannot run COPY"),
    ],
)
def test_invalid_statements_are_reported_and_change_nothing(
    lake: PlainQueries, text: str, error: type[FrazilError], message: str
) -> None:
    with pytest.raises(error, match=message or None):
        lake.sql(text)
    assert column(lake, "n") == [10, 20, None]


def test_unused_parameters_are_refused(lake: PlainQueries) -> None:
    with pytest.raises(InvalidRequestError, match="'other': the statement does not name it"):
        lake.sql("delete from db.t where id = $x", x=1, other=2)


# Delete


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id = 1 or kind is null", [2]),
        ("not (id in (1, 2))", [1, 2]),
        ("id not in (1, null)", [1, 2, 3]),
        ("kind like 'it''_' escape '!'", [1, 3]),
        ("kind like '%t%'", [1, 3]),
        ("score > 1e300", [1, 3]),
        ("score = 'nan'", [1, 3]),
        ("score <> 0.5", [1]),
        ("price between 1 and 2.0", [2, 3]),
        ("day >= '2024-02-01'", [1, 2]),
        ("kind is distinct from 'a'", [1]),
        ("(n = 10) is not true", [1]),
        ("starts_with(kind, 'it') and contains(kind, '''')", [1, 3]),
        ("db.t.id = 3", [1, 2]),
    ],
)
def test_delete_removes_matching_rows(lake: PlainQueries, where: str, left: list[int]) -> None:
    made = lake.sql(f"delete from db.t where {where}")
    assert column(lake, "id") == left
    assert made.to_pylist() == [{"num_affected_rows": 3 - len(left), "num_deleted_rows": 3 - len(left)}]


def test_backslash_in_like_is_literal(lake: PlainQueries) -> None:
    lake.sql("update db.t set kind = 'a\\b' where id = 1")
    lake.sql("update db.t set kind = 'axb' where id = 2")
    lake.sql("delete from db.t where kind like 'a\\_'")
    assert column(lake, "id") == [2, 3]


def test_delete_without_where_and_truncate_remove_all_rows(lake: PlainQueries) -> None:
    assert lake.sql("delete from db.t").column("num_deleted_rows").to_pylist() == [3]
    lake.sql("insert into db.t (id) values (1)")
    assert lake.sql("truncate table db.t").column("num_deleted_rows").to_pylist() == [1]
    assert lake.sql("truncate db.t").column("num_affected_rows").to_pylist() == [0]


@pytest.mark.parametrize("text", ["delete from db.t using db.t s where s.id = t.id", "delete from db.t returning id"])
def test_delete_refuses_using_and_returning(lake: PlainQueries, text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"Cannot delete from db\.t: (USING|RETURNING) is not supported"):
        lake.sql(text)


def test_branch_is_written_by_name(lake: PlainQueries) -> None:
    lake.lake.table("db.t").create_branch("audit")
    lake.sql("delete from db.t.branch_audit where id = 1")
    assert column(lake, "id") == [1, 2, 3]
    assert lake.lake.table("db.t").scan(ref="audit").count() == 2


def test_multi_level_names_are_one_quoted_part(lake: PlainQueries) -> None:
    lake.lake.create_table("a.b.c", "id int")
    lake.lake.table("a.b.c").append([{"id": 1}, {"id": 2}])
    lake.sql('delete from "a.b".c where id = 1')
    lake.sql('delete from "lake.a.b"."c" where id = 3')
    assert lake.lake.table("a.b.c").scan().count() == 1


# Merge


def test_merge_updates_deletes_and_inserts(lake: PlainQueries) -> None:
    made = lake.sql(
        "merge into db.t using (values (1, 'new'), (2, 'gone'), (9, 'more')) s(id, word) on t.id = s.id "
        "when matched and s.word = 'gone' then delete when matched then update set kind = s.word, n = t.n + 1 "
        "when not matched by target then insert (id, kind) values (s.id, s.word) "
        "when not matched by source and t.id = 3 then update set kind = 'left'"
    )
    assert made.to_pylist() == [
        {"num_affected_rows": 4, "num_updated_rows": 2, "num_deleted_rows": 1, "num_inserted_rows": 1}
    ]
    assert column(lake, "kind") == ["new", "left", "more"]
    assert column(lake, "n") == [11, None, None]


def test_merge_accepts_caller_data_and_whole_rows(lake: PlainQueries) -> None:
    rows = lake.lake.table("db.t").scan("id < 3").to_arrow()
    rows = rows.set_column(0, "id", pa.array([2, 5], pa.int32()))
    lake.sql(
        "merge into db.t using rows using (id) when matched then update set * when not matched then insert *",
        {"rows": rows},
    )
    assert column(lake, "id") == [1, 2, 3, 5]
    assert column(lake, "n") == [10, 10, None, 20]


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("when matched then update set n = upper(s.kind)", "the function upper"),
        ("when matched then update set *", "whose source has other columns"),
        ("when not matched then insert *", "whose source has other columns"),
        ("when not matched then insert (id) values (s.id, 1)", "INSERT has 1 columns and 2 values"),
        ("when not matched and t.n = 1 then insert (id) values (s.id)", r"there is no column t\.n"),
        ("when matched and id = 1 then delete", "the column id is ambiguous"),
        ("when matched then do nothing when matched then delete", ""),
        ("when matched and s.id = 1 then do nothing when matched then delete", "DO NOTHING before another clause"),
        ("when matched then update set n = 1 returning id", "RETURNING"),
        ("when matched then update by name", "not supported"),
    ],
)
def test_merge_refuses_what_the_verb_does_not_support(lake: PlainQueries, clauses: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(f"merge into db.t using (select 1 as id, 'x' as kind) s on t.id = s.id {clauses}")
    assert column(lake, "id") == [1, 2, 3]


def test_merge_row_matching_two_source_rows_is_an_error(lake: PlainQueries) -> None:
    with pytest.raises(InvalidRequestError, match="more than one row"):
        lake.sql("merge into db.t using (values (1), (1)) s(id) on t.id = s.id when matched then update set n = 0")


# Parallel writers


class Meanwhile(PlainQueries):
    """Runs a change of another writer before the first query of a statement is answered."""

    change: Any = None

    def query(self, text: str, parameters: Mapping[str, object], frames: Mapping[str, object]) -> Rows:
        """Run a query."""
        change, self.change = self.change, None
        made = super().query(text, parameters, frames)
        if change is not None:
            change()
        return made


def test_insert_beside_another_writer_adds_the_rows_it_read(lake: PlainQueries) -> None:
    other = Meanwhile(lake.lake)
    other.change = lambda: lake.lake.table("db.t").delete("id = 1")
    other.sql("insert into db.t (id, kind) select id + 10, kind from db.t")
    assert column(lake, "id") == [2, 3, 11, 12, 13]


def test_merge_of_concurrently_changed_rows_changes_nothing(lake: PlainQueries) -> None:
    other = Meanwhile(lake.lake)
    other.change = lambda: lake.lake.table("db.t").update({"n": "99"}, where="id = 1")
    with pytest.raises(ConcurrentChangeError):
        other.sql("merge into db.t using (select 1 as id) s on t.id = s.id when matched then update set n = t.n + 1")
    assert column(lake, "n") == [99, 20, None]


def test_create_table_as_keeps_the_table_of_another_writer(lake: PlainQueries) -> None:
    other = Meanwhile(lake.lake)
    other.change = lambda: lake.lake.create_table("db.made", "id int").append([{"id": 7}])
    with pytest.raises(TableAlreadyExistsError):
        other.sql("create table db.made as select 1 as id")
    assert column(lake, "id", "db.made") == [7]


def test_failed_create_table_as_leaves_no_table(lake: PlainQueries) -> None:
    class Failing(Rows):
        def to_reader(self) -> pa.RecordBatchReader:
            def batches() -> Any:
                yield from self.to_arrow().to_batches()
                raise InvalidRequestError("Cannot read more")

            return pa.RecordBatchReader.from_batches(self.arrow_schema, batches())

    with pytest.raises(InvalidRequestError, match="Cannot read more"):
        run_statement(
            lake.lake,
            "create table db.made as select 1 as id",
            run_query=lambda text, parameters, frames: Failing(pa.table({"id": [1]})),
            parameters={},
            frames={},
        )
    assert not lake.lake.table_exists("db.made")


# Tables, views, namespaces


def test_create_table_uses_lake_types(lake: PlainQueries) -> None:
    made = lake.sql(
        "create table db.c (a integer not null, b bigint, c float, d double, e decimal(5), f decimal, g varchar, "
        "h blob, i date, j time, k timestamp, l timestamptz, m uuid, n boolean, o int[], p map(varchar, int), "
        'q struct(x int, "y z" text))'
    )
    assert made.num_columns == 0
    assert made.num_rows == 0
    types = {field.name: str(field.field_type) for field in lake.lake.table("db.c").schema.fields}
    assert list(types.values())[:14] == [
        *("int", "long", "float", "double", "decimal(5, 0)", "decimal(18, 3)", "string", "binary"),
        *("date", "time", "timestamp", "timestamptz", "uuid", "boolean"),
    ]
    assert types["o"].startswith("list<")
    assert types["p"].startswith("map<")
    assert "y z" in types["q"]
    assert lake.lake.table("db.c").schema.fields[0].required
    lake.sql("create table if not exists db.c (other int)")


def test_create_table_as_uses_query_columns_and_rows(lake: PlainQueries) -> None:
    lake.sql("create table db.c as select id, kind as word, null as nothing from db.t where id < $top", top=3)
    assert column(lake, "word", "db.c") == ["a", "it's"]
    assert [str(field.field_type) for field in lake.lake.table("db.c").schema.fields] == ["int", "string", "int"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("create table db.t (a int)", "there is a table of that name"),
        ("create or replace table db.t (a int)", "REPLACE"),
        ("create temp table db.c (a int)", "TEMPORARY"),
        ("create table db.c (a int) partitioned by (a)", "PARTITIONED BY"),
        ("create table db.c (a int primary key)", "PRIMARY KEY of the column a"),
        ("create table db.c (a int default 5)", "DEFAULT 5 of the column a"),
        ("create table db.c (a int, unique (a))", "UNIQUE"),
        ("create table db.c (a int check (a > 0))", "CHECK"),
        ("create table db.c (a hugeint)", "no type HUGEINT"),
        ("create table db.c (a utinyint)", "no type UTINYINT"),
        ("create table db.c as select 1 as a, 2 as A", "two columns have the name"),
        ("create sequence db.s", "SEQUENCE"),
        ("create index i on db.t (id)", "INDEX"),
        ("create macro db.f(a) as a + 1", ""),
        ("create type db.mood as enum ('a')", ""),
    ],
)
def test_create_refuses_unsupported_clauses(lake: PlainQueries, text: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(text)
    assert lake.lake.list_tables("db") == [("db", "t")]


def test_create_view_keeps_the_query_in_the_duckdb_dialect(lake: PlainQueries) -> None:
    lake.sql("create view db.v (key, word) as select id, kind || '!' from db.t where id > 1")
    view = lake.lake.view("db.v")
    assert view.sql_for("duckdb") == "select id, kind || '!' from db.t where id > 1"
    assert [(field.name, str(field.field_type)) for field in view.schema.fields] == [("key", "int"), ("word", "string")]
    assert view.current_version.default_namespace == ("db",)
    lake.sql("create or replace view db.v as select 1 as one")
    lake.sql("create view if not exists db.v as select 2 as two")
    assert lake.lake.view("db.v").sql == "select 1 as one"


def test_create_or_replace_view_keeps_a_view_of_another_dialect(lake: PlainQueries) -> None:
    lake.lake.create_view("db.v", "select id from db.t", schema="id int")
    with pytest.raises(FrazilError, match="dialect"):
        lake.sql("create or replace view db.v as select 1 as one")
    assert lake.lake.view("db.v").sql == "select id from db.t"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("create view db.v as select $x as a", "a parameter"),
        ("create view db.t as select 1 as a", "there is a table of that name"),
        ("create view db.v (a) as select 1, 2", "it has 1 columns, and its query has 2"),
        ("create view db.v as select nope from db.t", "nope"),
    ],
)
def test_create_view_refuses_unsupported_queries(lake: PlainQueries, text: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(text, **({"x": 1} if "$x" in text else {}))
    assert lake.lake.list_views("db") == []


def test_writes_to_a_view_are_refused(lake: PlainQueries) -> None:
    lake.sql("create view db.v as select id from db.t")
    with pytest.raises(InvalidRequestError, match=r"db\.v is a view"):
        lake.sql("delete from db.v")


def test_alter_table_changes_columns_and_names(lake: PlainQueries) -> None:
    lake.sql("alter table db.t add column note varchar")
    lake.sql("alter table db.t add column if not exists NOTE varchar")
    lake.sql("alter table db.t rename column note to remark")
    lake.sql("alter table db.t alter column id type bigint")
    lake.sql("alter table db.t alter id drop not null")
    lake.sql("alter table db.t drop column score")
    lake.sql("alter table db.t drop column if exists score")
    lake.sql("alter table db.t rename to u")
    schema = lake.lake.table("db.u").schema
    assert [field.name for field in schema.fields] == ["id", "kind", "n", "price", "day", "remark"]
    assert str(schema.fields[0].field_type) == "long"
    assert not schema.fields[0].required


def test_alter_table_adds_a_column_with_a_default(lake: PlainQueries) -> None:
    lake.lake.table("db.t").upgrade(3)
    lake.sql("alter table db.t add column more int default 3")
    assert column(lake, "more") == [3, 3, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alter table db.t alter column kind type int", "string may not become another type"),
        ("alter table db.t alter column n type int", "long"),
        ("alter table db.t alter id type bigint using id + 1", "USING"),
        ("alter table db.t alter column kind set not null", "SET NOT NULL"),
        ("alter table db.t alter column kind set default 'x'", ""),
        ("alter table db.t add column a int not null", "NOT NULL"),
        ("alter table db.t drop column nope", "nope"),
        ("alter table db.t drop column kind cascade", "CASCADE"),
        ("alter table db.t add primary key (id)", ""),
        ("alter table db.t set partitioned by (id)", "SET"),
        ("alter table db.nope add column a int", "db.nope"),
    ],
)
def test_alter_table_refuses_unsupported_changes(lake: PlainQueries, text: str, message: str) -> None:
    before = lake.lake.table("db.t").schema
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(text)
    assert lake.lake.table("db.t").schema == before


def test_drop_removes_tables_views_and_namespaces(lake: PlainQueries) -> None:
    lake.sql("create view db.v as select 1 as one")
    with pytest.raises(NamespaceNotEmptyError):
        lake.sql("drop schema db")
    lake.sql("alter view db.v rename to w")
    lake.sql("drop view db.w")
    lake.sql("drop table db.t")
    lake.sql("drop schema db")
    lake.sql("drop schema if exists db")
    lake.sql("drop table if exists db.t")
    assert lake.lake.list_namespaces() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drop table db.t cascade", "CASCADE"),
        ("drop table db.t, db.u", ""),
        ("drop table db.nope", "db.nope"),
        ("drop view db.t", "db.t"),
        ("drop schema db cascade", "CASCADE"),
        ("drop function f", ""),
    ],
)
def test_drop_refuses_unsupported_clauses(lake: PlainQueries, text: str, message: str) -> None:
    with pytest.raises(FrazilError, match=message or None):
        lake.sql(text)
    assert lake.lake.table_exists("db.t")


def test_untrusted_lake_refuses_writes(tmp_path: Any) -> None:
    with frazil.connect(str(tmp_path / "wh"), catalog="filesystem") as lake:
        lake.create_table("db.t", "id int").append([{"id": 1}])
    with frazil.connect(str(tmp_path / "wh"), catalog="filesystem", trust="none") as lake:
        queries = PlainQueries(lake)
        for text in ("delete from db.t", "insert into db.t values (2)", "drop table db.t", "create table db.u (a int)"):
            with pytest.raises(FrazilError):
                queries.sql(text)
        assert lake.table("db.t").scan().count() == 1
