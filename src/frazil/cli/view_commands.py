"""`frazil view …`: list, show, define and drop views, without a JVM."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.session import confirm, opened_catalog, pairs_of
from frazil.cli.table_name import Yes, all_namespaces
from frazil.spec.iso8601 import show_ms
from frazil.table.parse_name import parse_name
from frazil.visible_text import visible

view_app = typer.Typer(help="List, show, define and drop views.", no_args_is_help=True)

ViewName = Annotated[str, typer.Argument(metavar="VIEW", help="A view's name: db.totals")]
Query = Annotated[str, typer.Argument(metavar="SQL", help="The query: 'select kind, count(*) n from db.events …'")]
Dialect = Annotated[str, typer.Option(help="The SQL dialect of the query")]


@view_app.command("list")
def list_views(
    context: typer.Context,
    namespace: Annotated[str | None, typer.Argument(metavar="[NAMESPACE]", help="Only views of this namespace")] = None,
) -> None:
    """List views."""
    with opened_catalog(context) as (catalog, settings):
        spaces = all_namespaces(catalog) if namespace is None else [parse_name(namespace)]
        names = [name for space in spaces for name in catalog.list_views(space)]
        settings.show([{"view": ".".join(name)} for name in names], ["view"])


@view_app.command("show")
def show_view(
    context: typer.Context, name: ViewName, dialect: Annotated[str | None, typer.Option(help="Only this one")] = None
) -> None:
    """Show a view's query in each of its SQL dialects.

    \b
    frazil -w warehouse view show shop.totals
    """
    with opened_catalog(context) as (catalog, settings):
        view = _open(catalog, name)
        queries = {query.dialect: query.sql for query in view.current_version.sql_representations}
        if dialect is not None:
            queries = {dialect: view.sql_for(dialect)}
        rows = [{"view": name, "dialect": dialect_name, "sql": sql} for dialect_name, sql in queries.items()]
        settings.show(rows, ["view", "dialect", "sql"])


@view_app.command("history")
def show_history(context: typer.Context, name: ViewName) -> None:
    """List which version was current from which time."""
    with opened_catalog(context) as (catalog, settings):
        entries = _open(catalog, name).history()
        rows = [{"version_id": entry.version_id, "since": show_ms(entry.timestamp_ms)} for entry in entries]
        settings.show(rows, ["version_id", "since"])


@view_app.command("create")
def create_view(
    context: typer.Context,
    name: ViewName,
    sql: Query,
    dialect: Dialect = "spark",
    replace: Annotated[bool, typer.Option("--replace", help="Add a new version to an existing view")] = False,
) -> None:
    """Create a view, and its namespace if it is missing.

    \b
    frazil -w warehouse view create shop.totals 'select kind, count(*) n from shop.orders group by kind'
    """
    with opened_catalog(context, makes=True) as (catalog, settings):
        identifier = parse_name(name)
        if replace and catalog.view_exists(identifier):
            view = _open(catalog, name)
            view.replace(sql, dialect=dialect)
        else:
            from frazil.table.create_table import make_namespace

            make_namespace(catalog, identifier)
            from frazil.table.view import create_view

            view = create_view(
                catalog,
                identifier,
                sql,
                schema=None,
                dialect=dialect,
                default_namespace=identifier[:-1],
                default_catalog=None,
                properties=None,
                location=None,
            )
        settings.show([{"view": name, "version_id": view.current_version.version_id}])


@view_app.command("rollback")
def rollback(
    context: typer.Context,
    name: ViewName,
    version_id: Annotated[int, typer.Argument(metavar="VERSION", help="A version's id, from `frazil view history`")],
) -> None:
    """Make another version of a view the current one."""
    with opened_catalog(context) as (catalog, settings):
        view = _open(catalog, name).rollback_to(version_id)
        settings.show([{"view": name, "version_id": view.current_version.version_id}])


@view_app.command("rename")
def rename_view(
    context: typer.Context,
    name: ViewName,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name: db.totals")],
) -> None:
    """Rename a view."""
    with opened_catalog(context) as (catalog, settings):
        catalog.rename_view(parse_name(name), parse_name(new_name))
        settings.show([{"renamed": name, "to": new_name}])


@view_app.command("drop")
def drop_view(context: typer.Context, name: ViewName, yes: Yes = False) -> None:
    """Drop a view with its history of versions, after a confirmation."""
    with opened_catalog(context) as (catalog, settings):
        identifier = _open(catalog, name).identifier
        confirm(f"Drop the view {visible(name)} and its versions?", is_agreed=yes)
        catalog.drop_view(identifier)
        settings.show([{"dropped": name}])


@view_app.command("properties")
def show_properties(context: typer.Context, name: ViewName) -> None:
    """List a view's properties."""
    with opened_catalog(context) as (catalog, settings):
        properties = _open(catalog, name).properties
        settings.show([{"name": key, "value": properties[key]} for key in sorted(properties)], ["name", "value"])


@view_app.command("set")
def set_properties(
    context: typer.Context,
    name: ViewName,
    pairs: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Properties to set")],
) -> None:
    """Set properties of a view."""
    with opened_catalog(context) as (catalog, settings):
        properties = pairs_of(pairs, "property")
        _open(catalog, name).set_properties(properties)
        settings.show([{"name": key, "value": value} for key, value in properties.items()])


@view_app.command("unset")
def remove_properties(
    context: typer.Context,
    name: ViewName,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Properties to remove")],
) -> None:
    """Remove properties of a view."""
    with opened_catalog(context) as (catalog, settings):
        _open(catalog, name).remove_properties(names)
        settings.show([{"removed": key} for key in names])


def _open(catalog: Any, name: str) -> Any:
    """Return a `View`, importing what it needs on demand."""
    from frazil.table.view import View

    return View(catalog, catalog.load_view(parse_name(name)))
