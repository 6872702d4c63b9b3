"""Texts for Spark's parser."""

from __future__ import annotations

import pytest

from frazil.sql.for_spark import evolution_as_option, script_for_spark


def test_statements_of_a_script_that_lakes_answer_are_parsed_when_they_are_run() -> None:
    text = "begin\n  alter table lake.db.t add partition field x;\n  if true then call lake.p('a'); end if;\nend"
    assert script_for_spark(text, lambda one: "lake" in one) == (
        "begin\n  EXECUTE IMMEDIATE 'alter table lake.db.t add partition field x';\n"
        "  if true then EXECUTE IMMEDIATE 'call lake.p(\\'a\\')'; end if;\nend"
    )


@pytest.mark.parametrize(
    "text",
    [
        "begin create table other.t (id int); end",
        "begin insert into lake.t values ('; drop table lake.t;'); end",
        "begin /* ; drop table lake.t; */ select 1; end",
        "begin select `; drop table lake.t;`; end",
        "begin drop table lake.t",
    ],
)
def test_what_is_not_a_statement_of_a_lake_stays(text: str) -> None:
    assert script_for_spark(text, lambda one: "lake" in one) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "insert with schema evolution into t select 1",
            "insert into t WITH ('frazil.schema-evolution'='true') select 1",
        ),
        (
            "Insert WITH Schema Evolution OVERWRITE TABLE a.`b c`.t BY NAME select 1",
            "Insert OVERWRITE TABLE a.`b c`.t WITH ('frazil.schema-evolution'='true') BY NAME select 1",
        ),
        (
            "insert with schema evolution into t with (a = 'b') select 1",
            "insert into t WITH ('frazil.schema-evolution'='true', a = 'b') select 1",
        ),
        (
            "insert with schema evolution into identifier('a' || ('b')) select 1",
            "insert into identifier('a' || ('b')) WITH ('frazil.schema-evolution'='true') select 1",
        ),
        ("select 'insert with schema evolution into t'", "select 'insert with schema evolution into t'"),
        ("insert with schema evolution", "insert with schema evolution"),
    ],
)
def test_schema_evolution_is_an_option_of_the_tables_name(text: str, expected: str) -> None:
    assert evolution_as_option(text) == expected
