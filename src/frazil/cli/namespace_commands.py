"""`frazil namespace …`: list, create and drop namespaces."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli.session import opened_catalog, pairs_of
from frazil.lake.parse_name import parse_name

namespace_app = typer.Typer(help="Namespaces: list, create, drop.", no_args_is_help=True)

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="A namespace's name: db, or db.inner")]


@namespace_app.command("list")
def list_namespaces(
    context: typer.Context,
    parent: Annotated[str | None, typer.Argument(help="Only those directly below this one")] = None,
) -> None:
    """List namespaces, the topmost or those below one."""
    with opened_catalog(context) as (catalog, settings):
        found = catalog.list_namespaces(() if parent is None else parse_name(parent))
        settings.show([{"namespace": ".".join(one)} for one in found], ["namespace"])


@namespace_app.command("properties")
def show_properties(context: typer.Context, name: Namespace) -> None:
    """List a namespace's properties."""
    with opened_catalog(context) as (catalog, settings):
        found = catalog.load_namespace_properties(parse_name(name))
        settings.show([{"name": one, "value": value} for one, value in sorted(found.items())], ["name", "value"])


@namespace_app.command("create")
def create_namespace(
    context: typer.Context,
    name: Namespace,
    pairs: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE...]", help="Its properties")] = None,
) -> None:
    """Create a namespace.

    \b
    frazil -w warehouse namespace create shop owner=ann
    """
    with opened_catalog(context, makes=True) as (catalog, settings):
        catalog.create_namespace(parse_name(name), pairs_of(pairs, "property"))
        settings.show([{"created": name}])


@namespace_app.command("drop")
def drop_namespace(context: typer.Context, name: Namespace) -> None:
    """Drop a namespace that holds nothing."""
    with opened_catalog(context) as (catalog, settings):
        catalog.drop_namespace(parse_name(name))
        settings.show([{"dropped": name}])
