"""Queries for the engine in this process: the tables in them, and their text in its words."""

from __future__ import annotations

import re

import pytest

from frazil.errors import FrazilError, InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.sql.local_query import TableReference, rewrite_query


def rewritten(text: str) -> tuple[str, list[TableReference]]:
    seen: list[TableReference] = []

    def replace(reference: TableReference) -> str:
        seen.append(reference)
        return f"<{'.'.join(reference.name)}>"

    return " ".join(rewrite_query(text, replace).text.split()), seen


@pytest.mark.parametrize(
    "text, names",
    [
        ("select * from db.t", ["db.t"]),
        ("from db.t", ["db.t"]),
        ("table db.t", ["db.t"]),
        ("select 1", []),
        ("select a from db.t, db.u x, db.`v w` as y", ["db.t", "db.u", "db.v w"]),
        ("select a from db.t left join lake.db.u on t.a = u.a, db.v", ["db.t", "lake.db.u", "db.v"]),
        ("select (select max(x) from db.u), b from db.t where a in (select c from db.v)", ["db.u", "db.t", "db.v"]),
        ("select * from (select a, b from db.t) x, lateral (select c, d from db.u) y", ["db.t", "db.u"]),
        ("select * from (db.t join (db.u join db.v using (a, b)) using (a, b))", ["db.t", "db.u", "db.v"]),
        ("with x as (select * from db.t), y (a, b) as (select 1, 2) select * from x, y, X", ["db.t"]),
        ("select extract(year from ts), trim(both 'a' from s), substring(s from 1 for 2) from db.t", ["db.t"]),
        ("select a from db.t where a is distinct from b and c is not distinct from d", ["db.t"]),
        ("select a, b from db.t group by a, b order by c, d limit 5", ["db.t"]),
        ("select a from db.t union all select b from db.u except (select c from db.v)", ["db.t", "db.u", "db.v"]),
        ("select * from range(5), db.t, unnest(array(1, 2)) x", ["db.t"]),
        ("select * from (values (1, 2), (3, 4)) v(a, b), db.t", ["db.t"]),
        ("select t.a.b, 'from db.x', `from db.y` -- from db.z\n from db.t /* from db.w */", ["db.t"]),
    ],
)
def test_tables_are_found_where_tables_stand(text: str, names: list[str]) -> None:
    assert [".".join(one.name) for one in rewritten(text)[1]] == names


@pytest.mark.parametrize(
    "text, reference",
    [
        ("select * from db.t version as of 12", TableReference(("db", "t"), "12")),
        ("select * from db.t for version as of 'x' where true", TableReference(("db", "t"), "x")),
        ("select * from db.t timestamp as of '2024-01-01' q", TableReference(("db", "t"), None, "2024-01-01", True)),
        ("select * from db.t for system_time as of 5 as q", TableReference(("db", "t"), None, 5000, True)),
        ("select * from db.t as q", TableReference(("db", "t"), has_alias=True)),
        ("select * from db.t inner join db.t on true", TableReference(("db", "t"))),
    ],
)
def test_a_state_of_a_table_and_its_alias_are_told(text: str, reference: TableReference) -> None:
    made, seen = rewritten(text)
    assert seen[0] == reference
    assert " of " not in made.replace("as of x", "")


@pytest.mark.parametrize(
    "text, made",
    [
        ('select `a``b`, `c"d`', 'select "a`b", "c""d"'),
        (r"select 'it\'s', 'a\nb', r'a\nb', ''''", "select 'it''s', 'a b', 'a\\nb', ''''"),
        ("select 1L, 1.5D, 2S, 3Y, 1F, 1.50BD, 1e3BD, 7, 1e3, .5", None),
        ("select a == b, a <=> b, a::int, x'1F', -1", "select a = b, a <=> b, a::int, x'1F', -1"),
        ("select :a, m[:b] where x = :a", "select $a, m[$b] where x = $a"),
        ("from db.t where a = 1;", "SELECT * FROM <db.t> where a = 1"),
        ("from db.t select a", "from <db.t> select a"),
    ],
)
def test_text_is_written_in_the_engines_words(text: str, made: str | None) -> None:
    numbers = (
        "select CAST('1' AS bigint), CAST('1.5' AS double), CAST('2' AS smallint), CAST('3' AS tinyint), "
        "CAST('1' AS float), CAST('1.50' AS decimal(3, 2)), CAST('1000' AS decimal(4, 0)), 7, 1e3, .5"
    )
    assert rewritten(text)[0] == (numbers if made is None else made)


def test_parameters_are_told() -> None:
    assert rewrite_query("select :a + :b, ':c', :a", lambda one: "").parameters == {7: "a", 12: "b", 22: "a"}


@pytest.mark.parametrize(
    "text, kind, says",
    [
        ("insert into db.t values (1)", UnsupportedError, "Cannot run INSERT here.*append"),
        ("with x as (select 1) insert into db.t select * from x", UnsupportedError, "Cannot run INSERT"),
        ("update db.t set a = 1", UnsupportedError, "Cannot run UPDATE here.*update"),
        ("delete from db.t", UnsupportedError, "Cannot run DELETE here.*delete"),
        ("merge into db.t using db.u on true", UnsupportedError, "Cannot run MERGE here.*merge"),
        ("create table db.x (a int)", UnsupportedError, "Cannot run CREATE here.*create_table"),
        ("call system.expire_snapshots()", UnsupportedError, "Cannot run CALL here.*maintain"),
        ("optimize db.t", UnsupportedError, "Cannot run OPTIMIZE here.*on Spark"),
        ("select 1; select 2", InvalidRequestError, "there are two statements"),
        (" -- nothing\n;", InvalidRequestError, "there is no statement"),
        ("select 'abc", TextSyntaxError, "column 8.*the string does not end"),
        ('select a\nfrom db.t where b = "x"', TextSyntaxError, "line 2, column 21.*double quotes"),
        ("select * from db.t tablesample (10 percent)", TextSyntaxError, "TABLESAMPLE is not understood"),
        ("select a into x from db.t", TextSyntaxError, "INTO is not understood"),
        ("select a from db.t for update", TextSyntaxError, "FOR UPDATE is not understood"),
        ("select a from db.t connect by a = 1", TextSyntaxError, "CONNECT BY is not understood"),
        ("select ? from db.t", TextSyntaxError, "parameters are written :name"),
        ("select $1 from db.t", TextSyntaxError, "parameters are written :name"),
        ("select a from db.t version as of b", TextSyntaxError, "a version or a time"),
    ],
)
def test_what_is_no_query_is_refused_with_the_way_to_go(text: str, kind: type[FrazilError], says: str) -> None:
    with pytest.raises(kind, match="Cannot") as refused:
        rewritten(text)
    assert type(refused.value) is kind
    assert re.search(says, str(refused.value), re.DOTALL), str(refused.value)


def test_a_quoted_name_is_never_a_word_of_sql() -> None:
    assert rewritten("select `into`, t.prewhere from db.t")[0] == 'select "into", t.prewhere from <db.t>'
