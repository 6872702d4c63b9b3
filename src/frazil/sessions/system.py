"""What is in a lake's namespace `system`, as Spark asks about it: functions and procedures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from frazil.commit.summary import frazil_version
from frazil.errors import NotFoundError
from frazil.maintenance.procedures import PROCEDURES
from frazil.sessions.question import Question
from frazil.sessions.run_call import Target, call, find_procedure
from frazil.sessions.sql_context import SqlContext
from frazil.spark.change.resolved import schema_of_json
from frazil.spark.read.sql_functions import function_expression, function_type
from frazil.sql.functions import describe_function, known_functions

_SYSTEM = ("system",)


def _functions(question: Question) -> str:
    return json.dumps(known_functions() if question.namespace == _SYSTEM else [])


def _find_function(question: Question) -> str | None:
    name = question.payload["function"].lower()
    if question.namespace != _SYSTEM:
        return None
    return json.dumps({"function": name, "description": describe_function(name)})


def _function_type(question: Question) -> str:
    return function_type(question.payload["function"], _types(question)).json()


def _function(question: Question) -> Any:
    types = _types(question)
    arguments = [question.object(index) for index in range(len(types))]
    version = f"frazil {frazil_version()}"
    return function_expression(question.spark, question.payload["function"], types, arguments, version)


def _types(question: Question) -> list[Any]:
    return [field.dataType for field in schema_of_json(question.payload["types"]).fields]


def _procedures(question: Question) -> str:
    # Of the lake itself, those that it has: there is no other place for them.
    return json.dumps(sorted(PROCEDURES) if question.namespace in ((), _SYSTEM) else [])


def _procedure(question: Question) -> str:
    *namespace, name = question.payload["name"]
    if tuple(step.lower() for step in namespace) != _SYSTEM:
        raise NotFoundError(
            f"Cannot call {question.full_name}: there is no such procedure",
            hint=f"Procedures are in {question.payload['catalog']}.system.",
        )
    found = find_procedure(name)
    parameters = [
        {"name": parameter.name, "type": parameter.type, "doc": parameter.doc, "required": parameter.is_required}
        for parameter in found.call_parameters
    ]
    # Spark shows this much of a procedure, and no parameters.
    taken = ", ".join(
        f"{parameter.name} {parameter.type}{'' if parameter.is_required else '?'}"
        for parameter in found.call_parameters
    )
    return json.dumps({"name": found.name, "doc": f"{found.doc} Takes {taken}.", "parameters": parameters})


def _called(question: Question) -> Target:
    payload = question.payload
    session = question.session(payload["current"], payload["namespace"])
    return Target(question.lake, payload["catalog"], SqlContext(session, question.engine(session)))


def _called_table(question: Question) -> str | None:
    """Answer with the table that a call is about, by the parts of its name."""
    name = question.payload["values"].get("table")
    return None if name is None else json.dumps([question.payload["catalog"], *_called(question).identifier(name)])


def _call(question: Question) -> Any:
    payload = question.payload
    found = call(_called(question), payload["text"], payload["values"])
    return question.spark.createDataFrame(list(found.rows), found.ddl)._jdf


VERBS: dict[str, Callable[[Question], Any]] = {
    "functions": _functions,
    "find-function": _find_function,
    "function-type": _function_type,
    "function": _function,
    "procedures": _procedures,
    "procedure": _procedure,
    "called-table": _called_table,
    "call": _call,
}
