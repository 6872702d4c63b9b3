"""A table's name as an argument of commands, with completion in shells: `frazil table show sh<tab>`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.lake_options import LakeOptions, given_after
from frazil.errors import FrazilError

MAX_ROWS = 1000
"""Rows that a command lists unless it is told otherwise."""


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of the lake that the command line or the environment names."""
    before = context.find_root().params
    given = LakeOptions(before.get("warehouse"), before.get("catalog"), name=before.get("name"))
    for after in given_after(context):
        given = given.under(after)
    if given.warehouse is None:
        return []
    space = incomplete.rpartition(".")[0]
    try:
        from frazil.lake import open_catalog as opening

        if not opening.lake_exists(given.warehouse, given.catalog):
            return []
        with opening.open_catalog(given.warehouse, catalog=given.catalog, name=given.name or "lake") as catalog:
            parent = tuple(space.split(".")) if space else ()
            found = [".".join(namespace) + "." for namespace in catalog.list_namespaces(parent)]
            if parent:
                found += [".".join(table) for table in catalog.list_tables(parent)]
    except FrazilError:
        return []
    return [name for name in found if name.startswith(incomplete)]


def all_namespaces(catalog: Any) -> list[tuple[str, ...]]:
    """Return every namespace of a catalog, those inside of others too."""
    found: list[tuple[str, ...]] = []
    waiting = list(catalog.list_namespaces(()))
    while waiting:
        namespace = waiting.pop(0)
        found.append(namespace)
        waiting += catalog.list_namespaces(namespace)
    return found


DeleteRoots = Annotated[
    list[str] | None,
    typer.Option("--delete-root", help="A folder outside the warehouse that is the table's own. May be repeated"),
]
Branch = Annotated[str, typer.Option(help="The branch to work on")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")]
TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table's name: db.events", autocompletion=complete_table)
]
