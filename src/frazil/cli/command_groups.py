"""Groups of commands that are made when one of them is asked for: a command's options take a millisecond to set up."""

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
"""Where the commands of each group are."""


class Commands(dict[str, Any]):
    """Commands by name. Those of groups have no value until they are asked for, but for help and typos a name."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self._complete: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command or a group."""
        found = super().get(name, default)
        if found is None and name in GROUPS:
            module, app = GROUPS[name]
            found = self[name] = get_group(getattr(import_module(module), app))
            found.name = name
        if found is not None and name not in self._complete:
            self._complete.add(name)
            add_lake_options(found)
        return found


class CommandGroups(TyperGroup):
    """The command line: its own commands, and the groups."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands({**self.commands, **dict.fromkeys(GROUPS)})

    def format_help(self, context: Any, formatter: Any) -> None:
        """Write help, with the value that each option takes; Typer adds options of its own late."""
        name_values(self.get_params(context))
        super().format_help(context, formatter)
