"""Which lake, and how its rows are printed: options that stand before or after every command.

frazil -w warehouse table list    frazil table list -w warehouse

What stands after a command goes over what stands before it. Properties add up. Where a command makes a table,
`--property` after it is the table's or the connection's, by its name, and `-p` the connection's (`take_properties`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer
from typer.main import get_command

from frazil.cli.render import OutputFormat, Trust

PANEL = "The lake"
_META = "frazil.lake_options"
_PREFIX = "lake_"

Warehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        metavar="LAKE",
        envvar="FRAZIL_WAREHOUSE",
        help="The lake: a folder, a URI, or a catalog service",
    ),
]
CatalogUri = Annotated[
    str | None,
    typer.Option(
        "--catalog", "-c", metavar="URI", envvar="FRAZIL_CATALOG", help="sqlite:///…, postgresql://…, filesystem"
    ),
]
CatalogName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="The catalog's name in a SQL database that several share; lake by default"
    ),
]
Form = Annotated[OutputFormat, typer.Option("--format", "-f", help="How results are printed")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", metavar="NAME=VALUE", help="A property of the connection. May be repeated"),
]
PropertiesFile = Annotated[
    str | None,
    typer.Option("--properties-file", metavar="FILE", help="A file of lines NAME=VALUE; --property goes over it"),
]
TrustLevel = Annotated[
    Trust, typer.Option("--trust", help="none: open an untrusted lake; nothing is run, written or deleted")
]


@dataclass(frozen=True)
class LakeOptions:
    """What was given at one level; None and nothing are what was not."""

    warehouse: str | None = None
    catalog: str | None = None
    form: OutputFormat | None = None
    properties: Sequence[str] = field(default=(), repr=False)
    properties_file: str | None = None
    trust: Trust | None = None
    name: str | None = None

    def under(self, later: LakeOptions) -> LakeOptions:
        """Return the options with those that were given later over them."""
        return replace(
            self, **{name: value for name, value in vars(later).items() if value is not None and value != ()}
        )


def given_after(context: typer.Context) -> list[LakeOptions]:
    """Return what stands after the command, and after the group that it is in."""
    found: Mapping[str, LakeOptions] = context.meta.get(_META, {})
    return list(found.values())


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line, and not in the environment alone."""
    source = context.find_root().get_parameter_source(name)
    is_before = source is not None and source.name == "COMMANDLINE"
    return is_before or any(getattr(lake_options, name) is not None for lake_options in given_after(context))


def name_values(params: Sequence[Any]) -> None:
    """Let help show for each option the value it takes, and none for one that takes no value."""
    for param in params:
        if param.metavar is None and getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.metavar is None and getattr(param, "multiple", False):
            param.metavar = "TEXT"


def add_lake_options(command: Any) -> None:
    """Let a command, or a group and every command in it, take the options too."""
    name_values(command.params)
    find_help = command.get_help_option

    def named_help(context: Any) -> Any:
        option = find_help(context)
        name_values([] if option is None else [option])
        return option

    command.get_help_option = named_help
    taken = {text for param in command.params for text in param.opts}
    for option in _options():
        option.opts = [text for text in option.opts if text not in taken]
        if option.opts:
            command.params.append(option)
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    for child in inner.values():
        add_lake_options(child)


TableProperties = Annotated[
    list[str] | None,
    typer.Option(
        "--property", metavar="NAME=VALUE", help="Of the table, or of the connection where that has one of this name"
    ),
]


def give_connection(context: typer.Context, properties: Sequence[str]) -> None:
    """Add properties of the connection, as if they stood after the command."""
    _keep_value(context, "properties", (*_kept(context).properties, *properties))


_made: list[Any] = []


def _options() -> list[Any]:
    """Return the options as a command has them, made by Typer from a signature and kept."""
    if not _made:
        app = typer.Typer(add_completion=False)
        app.command()(_signature)
        for param in get_command(app).params:
            if param.name in LakeOptions.__dataclass_fields__:
                # A command may have a parameter of the same name.
                param.name, param.expose_value = f"{_PREFIX}{param.name}", False
                param.rich_help_panel = PANEL  # type: ignore[attr-defined]
                _made.append(param)
    return [copy(option) for option in _made]


def _keep(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    if value is not None and value != []:
        _keep_value(context, str(option.name).removeprefix(_PREFIX), tuple(value) if isinstance(value, list) else value)
    return value


def _kept(context: typer.Context) -> LakeOptions:
    found: LakeOptions = context.meta.setdefault(_META, {}).get(context.command_path, LakeOptions())
    return found


def _keep_value(context: typer.Context, name: str, value: Any) -> None:
    changed = replace(_kept(context), **{name: value})
    context.meta[_META][context.command_path] = changed


def _signature(
    warehouse: Annotated[
        str | None,
        typer.Option("--warehouse", "-w", metavar="LAKE", callback=_keep, help="The lake, here or before the command"),
    ] = None,
    catalog: Annotated[
        str | None, typer.Option("--catalog", "-c", metavar="URI", callback=_keep, help="Its catalog")
    ] = None,
    form: Annotated[
        OutputFormat | None, typer.Option("--format", "-f", callback=_keep, help="How results are printed")
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-p",
            metavar="NAME=VALUE",
            callback=_keep,
            help="A property of the connection. May be repeated",
        ),
    ] = None,
    properties_file: Annotated[
        str | None, typer.Option("--properties-file", metavar="FILE", callback=_keep, help="A file of lines NAME=VALUE")
    ] = None,
    trust: Annotated[Trust | None, typer.Option("--trust", callback=_keep, help="none: the lake is untrusted")] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", callback=_keep, help="The catalog's name in a SQL database")
    ] = None,
) -> None:
    """Stand for every command."""
