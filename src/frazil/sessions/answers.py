"""Handles the requests of Spark's side (`requests.py`).

`table_answers.py` handles requests about tables, `write_answers.py` changes, `system_answers.py` functions and
procedures; statements are handled here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidRequestError, SqlSyntaxError
from frazil.sessions import requests as r
from frazil.sessions.context import Context, Reply, handler
from frazil.sessions.remembered import remember
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.sessions.stream_sinks import SINK_HANDLERS
from frazil.sessions.stream_sources import STREAM_HANDLERS
from frazil.sessions.system_answers import SYSTEM_HANDLERS
from frazil.sessions.table_answers import TABLE_HANDLERS
from frazil.sessions.write_answers import WRITE_HANDLERS
from frazil.spark.change.resolved import schema_of_ddl
from frazil.sql import statements as s
from frazil.sql.for_spark import changes_as_options, evolution_as_option, script_for_spark
from frazil.sql.parse import parse_statement
from frazil.table.sql_session import SqlSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(spark: SparkSession, verb: str, text: str, objects: Any) -> Reply:
    """Handle one request; return text, a Java object, or None."""
    request = REQUESTS[verb]
    return HANDLERS[request](r.decode(verb, request, text), Context(spark, objects))


# Statements that only lakes have, and those that show objects of a lake.

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


def _parse(request: r.Parse, context: Context) -> Reply:
    names = context.names(request)
    if not names.lakes:
        return None
    statement = _lake_statement(request.text, names)
    if statement is None:
        return None
    result = None
    if isinstance(statement, _SHOWN):
        result = run_statement(SqlContext(names, context.engine(names)), statement)
    ddl = "" if result is None else result.ddl
    changed = () if result is not None or isinstance(statement, _NO_TABLE) else getattr(statement, "name", ())
    full_name = names.find_full_name(changed)
    return r.encode(
        r.Parsed(
            key=remember(context.remembered.statements, (statement, result)),
            columns=schema_of_ddl(ddl).json() if ddl else '{"type":"struct","fields":[]}',
            label=type(statement).__name__,
            catalog=None if full_name is None else full_name.lake_name,
            name=None if full_name is None else full_name.name,
        )
    )


def _lake_statement(text: str, names: SqlSession) -> s.Statement | None:
    """Return a statement that a lake handles itself, or None if Spark does, with the lake's tables."""
    statement = parse_statement(text, names.is_ours)
    return None if isinstance(statement, s.CreateTable) and statement.query is not None else statement


def _script(request: r.Script, context: Context) -> Reply:
    names = context.names(request)

    def is_lake_statement(text: str) -> bool:
        try:
            return _lake_statement(text, names) is not None
        except SqlSyntaxError:
            # Reported when the statement is run.
            return True

    return script_for_spark(request.text, is_lake_statement) if names.lakes else request.text


def _translate(request: r.Translate, context: Context) -> Reply:
    names = context.names(request)
    text = evolution_as_option(request.text)
    return changes_as_options(text, lambda name: names.find_full_name(name) is not None)


def _statement(request: r.Statement, context: Context) -> Reply:
    parsed = context.remembered.statements.find(request.key)
    if parsed is None:
        raise InvalidRequestError(
            "Cannot run the statement: it was parsed too long ago and is no longer stored", hint="Run it again."
        )
    statement, result = parsed
    if result is None:
        names = context.names(request)
        result = run_statement(SqlContext(names, context.engine(names)), statement)
    if not result.columns:
        return None
    return context.spark.createDataFrame(list(result.rows), result.ddl)._jdf


HANDLERS = {
    **TABLE_HANDLERS,
    **WRITE_HANDLERS,
    **SYSTEM_HANDLERS,
    **dict(
        (
            handler(r.Parse, _parse),
            handler(r.Script, _script),
            handler(r.Translate, _translate),
            handler(r.Statement, _statement),
        )
    ),
    **STREAM_HANDLERS,
    **SINK_HANDLERS,
}
REQUESTS = {r.verb_of(request): request for request in HANDLERS}
"""The requests by verb."""
