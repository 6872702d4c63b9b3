"""`frazil maintain PROCEDURE TABLE`: the procedures of `t.maintain`, and adopting existing tables.

Commands are generated from the declarations in `maintenance/procedures.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer

from frazil.cli.lake_options import TableProperties
from frazil.cli.render import OutputFormat
from frazil.cli.session import Settings, opened, pairs_of, reported, take_properties
from frazil.cli.table_name import TableName
from frazil.maintenance.procedures import PROCEDURES, Parameter, Procedure

maintain_app = typer.Typer(help="Keep tables fast and small.", no_args_is_help=True)

_ON_THE_LAKE = {"snapshot": "snapshot_table", "migrate": "migrate_table"}
"""Procedures that create a table: methods of the lake."""
_OPTION_TYPES: Mapping[str, Any] = {
    "int": int,
    "bigint": int,
    "double": float,
    "array<string>": list[str],
    "array<bigint>": list[int],
    "map<string,string>": list[str],
}
"""The option type for a parameter type; strings for all others."""


def _parameter(procedure: Procedure, parameter: Parameter) -> inspect.Parameter:
    """Return the terminal's parameter: an argument for a required parameter, an option for others."""
    if parameter.name == "table" and procedure.name != "migrate":
        return _signature_parameter("table", TableName)
    if parameter.is_required:
        name = "TABLE" if parameter.name == "table" else parameter.option
        return _signature_parameter(parameter.name, Annotated[str, typer.Argument(metavar=name, help=parameter.doc)])
    if parameter.name == "properties":
        return _signature_parameter(parameter.name, TableProperties, None)
    flag = f"--{parameter.option or parameter.name.replace('_', '-')}"
    if parameter.type == "boolean":
        # A flag that is on by default has a form that turns it off.
        flags = (flag, f"--no-{flag[2:]}") if parameter.default == "true" else (flag,)
        option = typer.Option("/".join(flags), help=parameter.doc)
        return _signature_parameter(parameter.name, Annotated[bool, option], parameter.default == "true")
    annotation = _OPTION_TYPES.get(parameter.type, str)
    many = {"array": "", "map": "NAME=VALUE: "}.get(parameter.type.partition("<")[0])
    doc = parameter.doc if many is None else f"{many}{parameter.doc}. May be repeated"
    option = typer.Option(flag, help=doc, show_default=parameter.default or False)
    return _signature_parameter(parameter.name, Annotated[annotation | None, option], None)


def _signature_parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _add_command(procedure: Procedure) -> None:
    accepted = [parameter for parameter in procedure.parameters if parameter.is_for_terminal]

    def run(context: typer.Context, **values: Any) -> None:
        if "properties" in values:
            with reported():
                values["properties"] = take_properties(context, values["properties"])
        _run(context, procedure, values)

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(_parameter(procedure, parameter) for parameter in accepted)]
    run.__doc__ = procedure.doc
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    maintain_app.command(procedure.name.replace("_", "-"))(run)


def _value(parameter: Parameter, value: Any) -> Any:
    if parameter.type.startswith("map") and isinstance(value, list):
        value = pairs_of(value, (parameter.option or parameter.name).replace("-", " "))
    return None if value in ([], {}) else value


def _run(context: typer.Context, procedure: Procedure, values: Mapping[str, Any]) -> None:
    verb = _ON_THE_LAKE.get(procedure.name)
    with opened(context, makes=verb is not None) as (lake, settings):
        by_parameter = {
            parameter: _value(parameter, values.get(parameter.name))
            for parameter in procedure.parameters
            if parameter.name != "table"
        }
        arguments = {key.python_name: value for key, value in by_parameter.items() if value is not None}
        if verb is None:
            result = getattr(lake.table(values["table"]).maintain, procedure.name)(**arguments)
        else:
            names = [arguments.pop("source_table", None), values["table"]]
            result = getattr(lake, verb)(*(name for name in names if name is not None), **arguments)
        _show(settings, result)


def _show(settings: Settings, result: Any) -> None:
    """Print the result of a procedure: a line per fact, or one object in JSON."""
    facts = _facts(result)
    if settings.form is OutputFormat.JSON:
        settings.show([facts])
    else:
        settings.show([{"result": name, "value": value} for name, value in facts.items()], ["result", "value"])


def _facts(result: Any) -> Mapping[str, Any]:
    if result is None:
        return {"nothing to do": None}
    if is_dataclass(result):
        return {field.name: getattr(result, field.name) for field in fields(result)}
    return {"result": result}


# The procedure that runs the others is listed first.
for _procedure in sorted(PROCEDURES.values(), key=lambda procedure: procedure.name != "optimize"):
    if _procedure.is_for_terminal:
        _add_command(_procedure)
