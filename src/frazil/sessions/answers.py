"""What Python answers when Spark asks about lakes. See `spark/jvm/door.py`.

`table_answers.py` answers about tables, `write_answers.py` runs changes; statements of lakes are here.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from frazil.errors import SqlSyntaxError
from frazil.lake.sql_session import SqlSession
from frazil.sessions import system
from frazil.sessions.answer import Answer
from frazil.sessions.question import Question, remember
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.sessions.stream_sinks import SINK_VERBS
from frazil.sessions.stream_sources import STREAM_VERBS
from frazil.sessions.table_answers import TABLE_VERBS
from frazil.sessions.write_answers import WRITE_VERBS
from frazil.spark.change.resolved import schema_of_ddl
from frazil.sql import statements as s
from frazil.sql.for_spark import changes_as_options, evolution_as_option, script_for_spark
from frazil.sql.parse import parse_statement

_statements: OrderedDict[str, tuple[s.Statement, Answer | None]] = OrderedDict()


def answer(spark: Any, verb: str, payload: Mapping[str, Any], objects: Any) -> Any:
    """Answer one question of Spark's: text as JSON, an object of Java's, or None for what there is not."""
    return _VERBS[verb](Question(spark, payload, objects))


# Statements that only lakes have, and those that lakes answer in words of their own.

_SHOWN = (
    s.DescribeFunction,
    s.ShowCurrentNamespace,
    s.DescribeNamespace,
    s.ShowNamespaces,
    s.ShowTables,
    s.ShowViews,
    s.DescribeTable,
    s.ShowCreateTable,
    s.ShowProperties,
    s.ShowColumns,
    s.ShowPartitions,
)

_NO_TABLE = (s.CreateNamespace, s.DropNamespace, s.AlterNamespace, s.CreateView, s.CreateTable, s.CreateTableLike)


def _parse(question: Question) -> str | None:
    payload = question.payload
    session = question.session(payload["current"], payload["namespace"])
    if not session.lakes:
        return None
    statement = _own_statement(question, payload["text"], session)
    if statement is None:
        return None
    context = SqlContext(session, question.engine(session))
    found = run_statement(context, statement) if isinstance(statement, _SHOWN) else None
    ddl = "" if found is None else found.ddl
    columns = schema_of_ddl(ddl).json() if ddl else '{"type":"struct","fields":[]}'
    key = remember(_statements, (statement, found))
    payload = {"key": key, "columns": columns, "shown": type(statement).__name__}
    changed = () if found is not None or isinstance(statement, _NO_TABLE) else getattr(statement, "name", ())
    full_name = session.find_full_name(changed)
    if full_name is not None:
        payload |= {"catalog": full_name.lake_name, "name": full_name.name}
    return json.dumps(payload)


def _own_statement(question: Question, text: str, session: SqlSession) -> s.Statement | None:
    """Return a statement that a lake answers itself; None where Spark does, with the lake's tables."""
    statement = parse_statement(text, session.is_ours)
    return None if isinstance(statement, s.CreateTable) and statement.query is not None else statement


def _script(question: Question) -> str:
    payload = question.payload
    session = question.session(payload["current"], payload["namespace"])

    def is_ours(text: str) -> bool:
        try:
            return _own_statement(question, text, session) is not None
        except SqlSyntaxError:
            # It is said when the statement is run.
            return True

    return script_for_spark(payload["text"], is_ours) if session.lakes else payload["text"]


def _older_words(question: Question) -> str:
    """Say a statement that Spark's parser refused in words that it knows; where there are none, as it is."""
    payload = question.payload
    session = question.session(payload["current"], payload["namespace"])
    text = evolution_as_option(payload["text"])
    return changes_as_options(text, lambda name: session.find_full_name(name) is not None)


def _statement(question: Question) -> Any:
    payload = question.payload
    statement, found = _statements[payload["key"]]
    session = question.session(payload["current"], payload["namespace"])
    if found is None:
        found = run_statement(SqlContext(session, question.engine(session)), statement)
    if not found.columns:
        return None
    return question.spark.createDataFrame(list(found.rows), found.ddl)._jdf


_VERBS: dict[str, Callable[[Question], Any]] = {
    **TABLE_VERBS,
    **WRITE_VERBS,
    **system.VERBS,
    "parse": _parse,
    "script": _script,
    "older-words": _older_words,
    "statement": _statement,
    **STREAM_VERBS,
    **SINK_VERBS,
}
