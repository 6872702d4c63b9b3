"""`frazil maintain PROCEDURE TABLE`: what `t.maintain` does, and adopting tables of others.

Commands are made of what `maintenance/procedures.py` declares.
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
"""Procedures that make a table: verbs of the lake."""
_KINDS: Mapping[str, Any] = {
    "int": int,
    "bigint": int,
    "double": float,
    "array<string>": list[str],
    "array<bigint>": list[int],
    "map<string,string>": list[str],
}
"""What the terminal takes for a type; text for all others."""


def _parameter(procedure: Procedure, parameter: Parameter) -> inspect.Parameter:
    """Return what the terminal takes for a parameter: an argument for what must be given, an option for the rest."""
    if parameter.name == "table" and procedure.name != "migrate":
        return _taken("table", TableName)
    if parameter.is_required:
        name = "TABLE" if parameter.name == "table" else parameter.option
        return _taken(parameter.name, Annotated[str, typer.Argument(metavar=name, help=parameter.doc)])
    if parameter.name == "properties":
        return _taken(parameter.name, TableProperties, None)
    flag = f"--{parameter.option or parameter.name.replace('_', '-')}"
    if parameter.type == "boolean":
        # What is on by default has a word that turns it off.
        flags = (flag, f"--no-{flag[2:]}") if parameter.default == "true" else (flag,)
        option = typer.Option("/".join(flags), help=parameter.doc)
        return _taken(parameter.name, Annotated[bool, option], parameter.default == "true")
    annotation = _KINDS.get(parameter.type, str)
    many = {"array": "", "map": "NAME=VALUE: "}.get(parameter.type.partition("<")[0])
    doc = parameter.doc if many is None else f"{many}{parameter.doc}. May be repeated"
    option = typer.Option(flag, help=doc, show_default=parameter.default or False)
    return _taken(parameter.name, Annotated[annotation | None, option], None)


def _taken(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _add_command(procedure: Procedure) -> None:
    taken = [parameter for parameter in procedure.parameters if parameter.is_for_terminal]

    def run(context: typer.Context, **given: Any) -> None:
        if "properties" in given:
            with reported():
                given["properties"] = take_properties(context, given["properties"])
        _run(context, procedure, given)

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(_parameter(procedure, parameter) for parameter in taken)]
    run.__doc__ = procedure.doc
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    maintain_app.command(procedure.name.replace("_", "-"))(run)


def _value(parameter: Parameter, given: Any) -> Any:
    if parameter.type.startswith("map") and isinstance(given, list):
        given = pairs_of(given, (parameter.option or parameter.name).replace("-", " "))
    return None if given in ([], {}) else given


def _run(context: typer.Context, procedure: Procedure, values: Mapping[str, Any]) -> None:
    verb = _ON_THE_LAKE.get(procedure.name)
    with opened(context, makes=verb is not None) as (lake, settings):
        found = {
            parameter: _value(parameter, values.get(parameter.name))
            for parameter in procedure.parameters
            if parameter.name != "table"
        }
        given = {key.python_name: value for key, value in found.items() if value is not None}
        if verb is None:
            result = getattr(lake.table(values["table"]).maintain, procedure.name)(**given)
        else:
            names = [given.pop("source_table", None), values["table"]]
            result = getattr(lake, verb)(*(name for name in names if name is not None), **given)
        _show(settings, result)


def _show(settings: Settings, result: Any) -> None:
    """Print what a procedure did: a line for each fact, or one object of them in JSON."""
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


# What does everything is shown first.
for _one in sorted(PROCEDURES.values(), key=lambda procedure: procedure.name != "optimize"):
    if _one.is_for_terminal:
        _add_command(_one)
