"""Options for the lake and the output format, accepted before and after every command.

frazil -w warehouse table list    frazil table list -w warehouse

Options after a command override those before it; properties are merged. If a command creates a table, `--property`
after it belongs to the table or the connection, depending on its name, and `-p` to the connection (`take_properties`).
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
        "--catalog",
        "-c",
        metavar="URI",
        envvar="FRAZIL_CATALOG",
        help="sqlite:///…, postgresql://…, thrift://…, glue or filesystem",
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
    typer.Option("--properties-file", metavar="FILE", help="A file of lines NAME=VALUE; --property overrides it"),
]
TrustLevel = Annotated[
    Trust, typer.Option("--trust", help="none: the lake is untrusted; nothing is run, written or deleted")
]


@dataclass(frozen=True)
class LakeOptions:
    """The options given at one level; None and empty values are unset."""

    warehouse: str | None = None
    catalog: str | None = None
    form: OutputFormat | None = None
    properties: Sequence[str] = field(default=(), repr=False)
    properties_file: str | None = None
    trust: Trust | None = None
    name: str | None = None

    def overridden_by(self, later: LakeOptions) -> LakeOptions:
        """Return the options, overridden by later ones."""
        return replace(
            self, **{name: value for name, value in vars(later).items() if value is not None and value != ()}
        )


def options_after(context: typer.Context) -> list[LakeOptions]:
    """Return the options after the command, and after its group."""
    by_command: Mapping[str, LakeOptions] = context.meta.get(_META, {})
    return list(by_command.values())


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line, rather than only in the environment."""
    source = context.find_root().get_parameter_source(name)
    is_before = source is not None and source.name == "COMMANDLINE"
    return is_before or any(getattr(lake_options, name) is not None for lake_options in options_after(context))


def name_values(params: Sequence[Any]) -> None:
    """Set the metavar of each option for help, and none for flags."""
    for param in params:
        if param.metavar is None and getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.metavar is None and getattr(param, "multiple", False):
            param.metavar = "TEXT"


def add_lake_options(command: Any) -> None:
    """Add the options to a command, or to a group and all its commands."""
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
        "--property", metavar="NAME=VALUE", help="Of the table, or of the connection if it has one of this name"
    ),
]


def give_connection(context: typer.Context, properties: Sequence[str]) -> None:
    """Add properties of the connection as if they were set after the command."""
    _keep_value(context, "properties", (*_kept(context).properties, *properties))


_cached_options: list[Any] = []


def _options() -> list[Any]:
    """Return the options for a command, built by Typer from a signature and cached."""
    if not _cached_options:
        app = typer.Typer(add_completion=False)
        app.command()(_signature)
        for param in get_command(app).params:
            if param.name in LakeOptions.__dataclass_fields__:
                # A command may have a parameter of the same name.
                param.name, param.expose_value = f"{_PREFIX}{param.name}", False
                param.rich_help_panel = PANEL  # type: ignore[attr-defined]
                _cached_options.append(param)
    return [copy(option) for option in _cached_options]


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
    """Declare the options for `_options`."""
