"""Queries are told from commands by their words, where there is no Spark to ask."""

from __future__ import annotations

import pytest

import frazil
from frazil.errors import InvalidRequestError
from frazil.sql.query_text import find_no_query, without_semicolons

QUERIES = [
    "SELECT 1",
    "select 1;",
    "((SELECT 1)) ;;",
    "-- DROP\n/* DROP /* x */ */ SELECT 1",
    "FROM t SELECT a",
    "TABLE t",
    "VALUES (1), (2)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH RECURSIVE r(n) MAX RECURSION LEVEL 5 AS (SELECT 1), `b c` (x) AS (TABLE r) (SELECT * FROM r)",
    "WITH a AS (SELECT 1) FROM a SELECT *",
    "SELECT insert, `update`, delete FROM merge",
    "SELECT 'INSERT INTO t' AS x",
    "SELECT 1 AS x -- ; DROP TABLE t",
]
COMMANDS = [
    "INSERT INTO t SELECT 1",
    "(DROP TABLE t)",
    "/* SELECT */ SET a=b",
    "-- SELECT\nADD JAR 'x'",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "WITH a AS (SELECT 1), b AS (SELECT 2) DELETE FROM t",
    "WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE",
    "FROM a INSERT OVERWRITE t SELECT 1",
    "WITH a AS (SELECT 1) FROM a INSERT INTO t SELECT 1",
    "SELECT 1; DROP TABLE t",
    "BEGIN SELECT 1; END",
    "EXPLAIN SELECT 1",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "SELECT 'no end",
    "/* no end",
    "-- nothing",
    ";",
]


@pytest.mark.parametrize("text", QUERIES)
def test_query_can_be_a_view(text: str) -> None:
    assert find_no_query(text) is None


@pytest.mark.parametrize("text", COMMANDS)
def test_command_cannot_be_a_view(text: str) -> None:
    assert find_no_query(text) is not None
    with frazil.connect("memory:") as lake:
        with pytest.raises(InvalidRequestError, match="Cannot define a view"):
            lake.create_view("db.v", text)
        view = lake.create_view("db.v", "SELECT 1")
        with pytest.raises(InvalidRequestError, match="Cannot define a view"):
            view.replace(text)


def test_other_dialects_are_not_checked() -> None:
    with frazil.connect("memory:") as lake:
        assert lake.create_view("db.v", "EXEC something", dialect="other").sql == "EXEC something"


def test_trailing_semicolons_are_not_part_of_a_query() -> None:
    assert without_semicolons("SELECT ';' ; ; ") == "SELECT ';' "
    assert without_semicolons("SELECT 1") == "SELECT 1"
