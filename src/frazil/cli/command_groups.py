"""Command groups that are loaded on demand, since setting up a command's options takes a millisecond."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_group

from frazil.cli.lake_options import add_lake_options, name_values

GROUPS = {
    "table": ("frazil.cli.table_commands", "table_app"),
    "branch": ("frazil.cli.ref_commands", "branch_app"),
    "tag": ("frazil.cli.ref_commands", "tag_app"),
    "view": ("frazil.cli.view_commands", "view_app"),
    "namespace": ("frazil.cli.namespace_commands", "namespace_app"),
    "maintain": ("frazil.cli.maintain_commands", "maintain_app"),
    "catalog": ("frazil.cli.catalog_commands", "catalog_app"),
}
"""The module and app of each group."""


class Commands(dict[str, Any]):
    """Commands by name. A group has no value until it is requested, but its name is known for help and typos."""

    def __init__(self, commands: dict[str, Any]) -> None:
        super().__init__(commands)
        self._complete: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command or a group, loading it on demand."""
        command = super().get(name, default)
        if command is None and name in GROUPS:
            module, app = GROUPS[name]
            command = self[name] = get_group(getattr(import_module(module), app))
            command.name = name
        if command is not None and name not in self._complete:
            self._complete.add(name)
            add_lake_options(command)
        return command


class CommandGroups(TyperGroup):
    """The command line with its own commands and the groups."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands({**self.commands, **dict.fromkeys(GROUPS)})

    def format_help(self, context: Any, formatter: Any) -> None:
        """Write help with the value of each option, since Typer adds its own options late."""
        name_values(self.get_params(context))
        super().format_help(context, formatter)
