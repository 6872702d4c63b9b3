"""`frazil namespace …`: list, create and drop namespaces."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli.session import opened_catalog, pairs_of
from frazil.table.parse_name import parse_name

namespace_app = typer.Typer(help="Namespaces: list, create, set properties, drop.", no_args_is_help=True)

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="A namespace's name: db, or db.inner")]


@namespace_app.command("list")
def list_namespaces(
    context: typer.Context,
    parent: Annotated[str | None, typer.Argument(metavar="[PARENT]", help="Only direct children of this one")] = None,
) -> None:
    """List namespaces, at the top level or below another."""
    with opened_catalog(context) as (catalog, settings):
        namespaces = catalog.list_namespaces(() if parent is None else parse_name(parent))
        settings.show([{"namespace": ".".join(namespace)} for namespace in namespaces], ["namespace"])


@namespace_app.command("properties")
def show_properties(context: typer.Context, name: Namespace) -> None:
    """List a namespace's properties."""
    with opened_catalog(context) as (catalog, settings):
        properties = catalog.load_namespace_properties(parse_name(name))
        settings.show([{"name": name, "value": value} for name, value in sorted(properties.items())], ["name", "value"])


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
    """Drop an empty namespace."""
    with opened_catalog(context) as (catalog, settings):
        catalog.drop_namespace(parse_name(name))
        settings.show([{"dropped": name}])


@namespace_app.command("set")
def set_properties(
    context: typer.Context,
    name: Namespace,
    pairs: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Properties to set")],
) -> None:
    """Set properties of a namespace."""
    with opened_catalog(context) as (catalog, settings):
        properties = pairs_of(pairs, "property")
        catalog.update_namespace_properties(parse_name(name), properties)
        settings.show([{"name": key, "value": value} for key, value in properties.items()])


@namespace_app.command("unset")
def remove_properties(
    context: typer.Context,
    name: Namespace,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Properties to remove")],
) -> None:
    """Remove properties of a namespace."""
    with opened_catalog(context) as (catalog, settings):
        catalog.update_namespace_properties(parse_name(name), {}, names)
        settings.show([{"removed": key} for key in names])
