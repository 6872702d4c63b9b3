"""Handles requests about a lake's namespace `system`: functions and procedures."""

from __future__ import annotations

from typing import Any

from frazil.catalog.names import format_name
from frazil.commit.summary import frazil_version
from frazil.errors import NotFoundError
from frazil.maintenance.procedures import PROCEDURES
from frazil.sessions import requests as r
from frazil.sessions.attached_lakes import LAKES
from frazil.sessions.context import Context, Reply, handler
from frazil.sessions.run_call import Target, call, find_procedure
from frazil.sessions.sql_context import SqlContext
from frazil.spark.change.resolved import schema_of_json
from frazil.spark.read.sql_functions import function_expression, function_type
from frazil.sql.functions import describe_function, known_functions

_SYSTEM = ("system",)


def _functions(request: r.Functions, context: Context) -> Reply:
    return r.encode(known_functions() if request.namespace == _SYSTEM else [])


def _find_function(request: r.FindFunction, context: Context) -> Reply:
    name = request.function.lower()
    if request.namespace != _SYSTEM:
        return None
    return r.encode(r.FoundFunction(function=name, description=describe_function(name)))


def _function_type(request: r.FunctionType, context: Context) -> Reply:
    return function_type(request.function, _types(request.types)).json()


def _function(request: r.Function, context: Context) -> Reply:
    types = _types(request.types)
    arguments = [context.object(index) for index in range(len(types))]
    version = f"frazil {frazil_version()}"
    return function_expression(context.spark, request.function, types, arguments, version)


def _types(schema: str) -> list[Any]:
    return [field.dataType for field in schema_of_json(schema).fields]


def _procedures(request: r.Procedures, context: Context) -> Reply:
    # The parent namespace of `system` lists them too.
    return r.encode(sorted(PROCEDURES) if request.namespace in ((), _SYSTEM) else [])


def _procedure(request: r.Procedure, context: Context) -> Reply:
    *namespace, name = request.name
    if tuple(step.lower() for step in namespace) != _SYSTEM:
        raise NotFoundError(
            f"Cannot call {format_name((request.catalog, *request.name))}: the procedure does not exist",
            hint=f"Procedures are in {request.catalog}.system.",
        )
    procedure = find_procedure(name)
    parameters = [
        r.Parameter(name=parameter.name, type=parameter.type, doc=parameter.doc, required=parameter.is_required)
        for parameter in procedure.call_parameters
    ]
    # Spark shows a procedure's description, but not its parameters.
    signature = ", ".join(f"{one.name} {one.type}{'' if one.required else '?'}" for one in parameters)
    doc = f"{procedure.doc} Takes {signature}."
    return r.encode(r.FoundProcedure(name=procedure.name, doc=doc, parameters=tuple(parameters)))


def _target(request: r.OfCall, context: Context) -> Target:
    names = context.names(request)
    lake = LAKES.lake(request.lake, request.catalog)
    return Target(lake, request.catalog, SqlContext(names, context.engine(names)))


def _called_table(request: r.CalledTable, context: Context) -> Reply:
    name = request.values.get("table")
    return None if name is None else r.encode([request.catalog, *_target(request, context).identifier(name)])


def _call(request: r.Call, context: Context) -> Reply:
    rows = call(_target(request, context), request.text, request.values)
    return context.spark.createDataFrame(list(rows.rows), rows.ddl)._jdf


SYSTEM_HANDLERS = dict(
    (
        handler(r.Functions, _functions),
        handler(r.FindFunction, _find_function),
        handler(r.FunctionType, _function_type),
        handler(r.Function, _function),
        handler(r.Procedures, _procedures),
        handler(r.Procedure, _procedure),
        handler(r.CalledTable, _called_table),
        handler(r.Call, _call),
    )
)
