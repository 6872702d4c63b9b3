"""The table name argument of commands, with shell completion: `frazil table show sh<tab>`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.lake_options import LakeOptions, options_after
from frazil.errors import FrazilError

MAX_ROWS = 1000
"""The default limit of rows that a command lists."""


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of the lake named by the command line or the environment."""
    root_params = context.find_root().params
    options = LakeOptions(root_params.get("warehouse"), root_params.get("catalog"), name=root_params.get("name"))
    for after in options_after(context):
        options = options.overridden_by(after)
    if options.warehouse is None:
        return []
    space = incomplete.rpartition(".")[0]
    try:
        from frazil.table import open_catalog as opening

        if not opening.lake_exists(options.warehouse, options.catalog):
            return []
        with opening.open_catalog(options.warehouse, catalog=options.catalog, name=options.name or "lake") as catalog:
            parent = tuple(space.split(".")) if space else ()
            names = [".".join(namespace) + "." for namespace in catalog.list_namespaces(parent)]
            if parent:
                names += [".".join(table) for table in catalog.list_tables(parent)]
    except FrazilError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def all_namespaces(catalog: Any) -> list[tuple[str, ...]]:
    """Return every namespace of a catalog, including nested ones."""
    namespaces: list[tuple[str, ...]] = []
    waiting = list(catalog.list_namespaces(()))
    while waiting:
        namespace = waiting.pop(0)
        namespaces.append(namespace)
        waiting += catalog.list_namespaces(namespace)
    return namespaces


DeleteRoots = Annotated[
    list[str] | None,
    typer.Option("--delete-root", help="A folder outside the warehouse that the table owns. May be repeated"),
]
Branch = Annotated[str, typer.Option(help="The branch to work on")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation")]
TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table's name: db.events", autocompletion=complete_table)
]
