"""The SQL cases that need no Spark, run in this process. `tests/spark/test_sql_cases.py` runs all of them on Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest

import frazil
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.sql.parse import parse_statement
from frazil.table.sql_session import SqlSession
from tests.support.sql_case_files import WITHOUT_SPARK, run_cases


def use(session: SqlSession, name: tuple[str, ...]) -> None:
    """USE, which is Spark's own: a lake alone keeps the namespace."""
    is_lake = name[0] == "lake"
    namespace = (name[1:] or session.namespace) if is_lake else name
    if namespace and not session.lakes["lake"].catalog.namespace_exists(namespace):
        raise frazil.NamespaceNotFoundError(f"SCHEMA_NOT_FOUND `{'.'.join(namespace)}`")
    session.catalog, session.namespace = "lake", namespace


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_sql_cases_hold_locally(name: str) -> None:
    with frazil.connect("memory:") as lake:
        session = SqlSession({"lake": lake})

        def run(text: str) -> Any:
            found = re.fullmatch(r"(?:use|set catalog) ([\w.]+)", text)
            if found is not None:
                use(session, tuple(found[1].split(".")))
                return ()
            statement = parse_statement(text, session.is_ours)
            assert statement is not None, f"not for a lake: {text}"
            return run_statement(SqlContext(session), statement).rows

        assert run_cases(name, lake, run, left_out="call ") > 0
