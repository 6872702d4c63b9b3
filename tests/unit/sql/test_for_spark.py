"""Texts for Spark's parser."""

from __future__ import annotations

import pytest

from frazil.errors import SqlSyntaxError
from frazil.sql.for_spark import changes_as_options, evolution_as_option, script_for_spark


def test_lake_statements_in_a_script_are_parsed_at_execution() -> None:
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
def test_other_statements_are_unchanged(text: str) -> None:
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
def test_schema_evolution_clause_becomes_a_table_option(text: str, expected: str) -> None:
    assert evolution_as_option(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "lake.db.t changes from version 1 to version 3 where x",
            "lake.db.t WITH (FEED, 'startingVersion'='1', 'endingVersion'='3') where x",
        ),
        (
            "lake.`d b`.t CHANGES /* all */ FROM SYSTEM_VERSION '7' EXCLUSIVE c join lake.u",
            "lake.`d b`.t WITH (FEED, 'startingVersion'='7', 'startingBoundInclusive'='false') c join lake.u",
        ),
        (
            "lake.t changes from timestamp '2026-01-01' inclusive with (computeUpdates = true)",
            "lake.t WITH (FEED, 'startingTimestamp'='2026-01-01', computeUpdates = true)",
        ),
        (
            "lake.t changes from timestamp date '2026-01-01' to timestamp '2026-02-01'",
            "lake.t WITH (FEED, 'startingTimestamp'='2026-01-01', 'endingTimestamp'='2026-02-01')",
        ),
        (
            "(select * from lake.t changes from version 1), lake.t changes from version 2",
            "(select * from lake.t WITH (FEED, 'startingVersion'='1')), lake.t WITH (FEED, 'startingVersion'='2')",
        ),
    ],
)
def test_changes_clause_becomes_table_options(text: str, expected: str) -> None:
    told = changes_as_options(f"select * from {text}", lambda name: name[0] == "lake")
    assert told.replace("'readChangeFeed'='true'", "FEED") == f"select * from {expected}"


@pytest.mark.parametrize(
    "text",
    [
        "select * from other.t changes from version 1",
        "select * from identifier('lake.t') changes from version 1",
        "with lake as (select 1) select * from lake changes from version 1",
        "with lake (a) as (select 1) select * from lake changes from version 1",
        "select 'lake.t changes from version 1'",
        "select changes from version",
        "changes from version 1",
    ],
)
def test_changes_of_other_tables_are_unchanged(text: str) -> None:
    """Spark would take the options and not look at them: the rows would be those of the table."""
    assert changes_as_options(text, lambda name: name[0] == "lake") == text


@pytest.mark.parametrize("bound", ["version 1 + 1", "version x", "timestamp now()", "timestamp 5", "version"])
def test_expressions_as_change_bounds_are_refused(bound: str) -> None:
    with pytest.raises(SqlSyntaxError, match="in this Spark it is"):
        changes_as_options(f"select * from lake.t changes from {bound}", lambda name: True)
