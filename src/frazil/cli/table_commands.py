"""`frazil table …`: list, show, create and drop tables, without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from frazil.cli import alter_commands
from frazil.cli.history_commands import changes, cherry_pick, publish, rollback, set_current
from frazil.cli.lake_options import TableProperties
from frazil.cli.pager import print_paged
from frazil.cli.ref_commands import open_table
from frazil.cli.render import OutputFormat
from frazil.cli.session import confirm, opened_catalog, pairs_of, reported, take_properties, terminal_width
from frazil.cli.table_name import MAX_ROWS, DeleteRoots, TableName, Yes, all_namespaces
from frazil.sql.type_names import plain_type_name
from frazil.table.parse_name import parse_name
from frazil.visible_text import visible

table_app = typer.Typer(help="List, show, create, change and drop tables.", no_args_is_help=True)


@table_app.command("list")
def list_tables(
    context: typer.Context,
    namespace: Annotated[
        str | None, typer.Argument(metavar="[NAMESPACE]", help="Only tables of this namespace")
    ] = None,
) -> None:
    """List tables and views."""
    with opened_catalog(context) as (catalog, settings):
        spaces = all_namespaces(catalog) if namespace is None else [parse_name(namespace)]
        rows = []
        for space in spaces:
            rows += [{"name": _dotted(name), "kind": "table"} for name in catalog.list_tables(space)]
            rows += [{"name": _dotted(name), "kind": "view"} for name in catalog.list_views(space)]
        settings.show(rows, ["name", "kind"])


@table_app.command("show")
def show_table(context: typer.Context, name: TableName) -> None:
    """Show a table on a page: columns, partitions, files and their sizes, snapshots, branches, and advice.

    \b
    frazil -w warehouse table show shop.orders
    frazil -w warehouse -f json table show shop.orders
    """
    with opened_catalog(context) as (catalog, settings):
        loaded = catalog.load_table(parse_name(name))
        from frazil.cli import show_page as page

        if settings.form is OutputFormat.TABLE:
            print_paged(page.show_page(loaded, now_ms=catalog.now_ms(), width=terminal_width()))
        elif settings.form is OutputFormat.JSON:
            settings.show([page.table_facts(loaded)])
        else:
            rows = [{"fact": fact, "value": value} for fact, value in page.table_facts(loaded).items()]
            settings.show(rows, ["fact", "value"])


@table_app.command("schema")
def show_schema(context: typer.Context, name: TableName) -> None:
    """List a table's columns, including nested ones."""
    with opened_catalog(context) as (catalog, settings):
        schema = catalog.load_table(parse_name(name)).metadata.current_schema
        rows = [
            {
                "id": field_id,
                "name": schema.name_of(field_id),
                "type": plain_type_name(field.field_type),
                "required": field.required,
                "doc": field.doc,
            }
            for field_id, field in schema.fields_by_id.items()
        ]
        settings.show(rows, ["id", "name", "type", "required", "doc"])


@table_app.command("properties")
def show_properties(context: typer.Context, name: TableName) -> None:
    """List a table's properties."""
    with opened_catalog(context) as (catalog, settings):
        properties = catalog.load_table(parse_name(name)).metadata.properties
        settings.show([{"name": key, "value": value} for key, value in sorted(properties.items())], ["name", "value"])


def _add_metadata_command(table: str, text: str) -> None:
    def show(
        context: typer.Context,
        name: TableName,
        limit: Annotated[int, typer.Option(help="The most rows to show")] = MAX_ROWS,
    ) -> None:
        with opened_catalog(context) as (catalog, settings):
            loaded = catalog.load_table(parse_name(name))
            from frazil.metadata_tables.tables import METADATA_TABLES

            rows = METADATA_TABLES[table].read(loaded)
            settings.show(rows.slice(0, limit))

    table_app.command(table.replace("_", "-"), help=text)(show)


METADATA_COMMANDS = {
    "history": "List which snapshot was current at which time.",
    "snapshots": "List snapshots with their summaries.",
    "files": "List the data and delete files of the current snapshot.",
    "data_files": "List the data files of the current snapshot.",
    "delete_files": "List the delete files of the current snapshot.",
    "entries": "List the manifest entries of the current snapshot.",
    "position_deletes": "List the rows deleted by position deletes and deletion vectors.",
    "partitions": "List partitions with their rows and files.",
    "refs": "List branches and tags.",
    "manifests": "List the manifests of the current snapshot.",
    "metadata_log_entries": "List the metadata files of the table's history.",
    "all_files": "List the data and delete files of all snapshots.",
    "all_data_files": "List the data files of all snapshots.",
    "all_delete_files": "List the delete files of all snapshots.",
    "all_entries": "List the manifest entries of all snapshots.",
    "all_manifests": "List the manifests of all snapshots.",
}
"""The help of each metadata table's command."""

for _table, _text in METADATA_COMMANDS.items():
    _add_metadata_command(_table, _text)


@table_app.command("follow")
def follow_table(
    context: typer.Context,
    name: TableName,
    after: Annotated[
        str | None, typer.Option(help="A snapshot's id, a token, or 'beginning'; the current one by default")
    ] = None,
    changes: Annotated[
        str, typer.Option(help="What to do at snapshots that remove rows: error, skip, added-files, changes")
    ] = "error",
    where: Annotated[str | None, typer.Option(help="Only rows that match this condition")] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Only these columns, separated by commas. May be repeated")
    ] = None,
    branch: Annotated[str, typer.Option(help="The branch to follow")] = "main",
    poll: Annotated[float, typer.Option(help="Seconds between two checks of the catalog")] = 1.0,
    until: Annotated[str | None, typer.Option(help="'now', a snapshot's id, or a time; never by default")] = None,
) -> None:
    """Print new rows as they arrive, until Ctrl-C; with -f json, one line of JSON per row.

    The last line on standard error is the token to continue with: --after.

    \b
    frazil -w warehouse table follow shop.orders
    frazil -w warehouse -f json table follow shop.orders --after beginning --until now
    """
    with opened_catalog(context) as (catalog, settings):
        from frazil.table.table import Table

        table = Table(catalog, catalog.load_table(parse_name(name)))
        followed = table.follow(
            after,
            predicate=where,
            columns=None if columns is None else [name.strip() for names in columns for name in names.split(",")],
            branch=branch,
            changes=changes,  # type: ignore[arg-type]  # It refuses unknown values.
            poll_seconds=poll,
            until=int(until) if until is not None and until.isdigit() else until,
        )
        is_first = True
        try:
            for batch in followed:
                settings.show_more(batch, is_first=is_first)
                is_first = False
        except KeyboardInterrupt:
            pass
        finally:
            typer.echo(f"token: {followed.token}", err=True)


@table_app.command("create")
def create_table(
    context: typer.Context,
    name: TableName,
    columns: Annotated[
        str, typer.Argument(metavar="COLUMNS", help="Columns as text: 'id bigint not null, ts timestamptz'")
    ],
    partition_by: Annotated[list[str] | None, typer.Option(help="A partition field: day(ts). May be repeated")] = None,
    sort_by: Annotated[list[str] | None, typer.Option(help="A sort field: 'ts desc'. May be repeated")] = None,
    properties: TableProperties = None,
    format_version: Annotated[int | None, typer.Option(help="1, 2 or 3; 2 by default")] = None,
) -> None:
    """Create a table, and its namespace if it is missing."""
    with reported():
        own = take_properties(context, properties)
    with opened_catalog(context, makes=True) as (catalog, settings):
        from frazil.table.create_table import create_table

        table = create_table(
            catalog,
            name,
            columns,
            partition_by=partition_by or (),
            sort_by=sort_by or (),
            properties=own,
            format_version=format_version,
        )
        settings.show([{"created": _dotted(table.identifier), "location": table.metadata.location}])


@table_app.command("drop")
def drop_table(
    context: typer.Context,
    name: TableName,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the table's files too")] = False,
    delete_roots: DeleteRoots = None,
    yes: Yes = False,
) -> None:
    """Drop a table; its files stay unless they are purged, after a confirmation.

    \b
    frazil -w warehouse table drop shop.orders
    frazil -w warehouse table drop shop.orders --purge --yes
    """
    with opened_catalog(context) as (catalog, settings):
        drop = partial(catalog.drop_table, parse_name(name), delete_roots=delete_roots or ())
        if purge:
            from frazil.maintenance.purge_files import purge_files

            confirm(_purge_question(catalog, name), is_agreed=yes)
            drop = partial(drop, purge=purge_files)
        drop()
        settings.show([{"dropped": name, "purged": purge}])


@table_app.command("rename")
def rename_table(
    context: typer.Context,
    name: TableName,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name: db.orders")],
) -> None:
    """Rename a table."""
    with opened_catalog(context) as (catalog, settings):
        catalog.rename_table(parse_name(name), parse_name(new_name))
        settings.show([{"renamed": name, "to": new_name}])


@table_app.command("register")
def register_table(
    context: typer.Context,
    name: TableName,
    metadata: Annotated[str, typer.Argument(metavar="METADATA", help="The location of the table's metadata file")],
) -> None:
    """Add an existing table to the catalog."""
    with opened_catalog(context, makes=True) as (catalog, settings):
        table = catalog.register_table(parse_name(name), metadata)
        settings.show([{"registered": _dotted(table.identifier), "location": table.metadata.location}])


@table_app.command("set")
def set_properties(
    context: typer.Context,
    name: TableName,
    pairs: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Properties to set")],
) -> None:
    """Set properties of a table.

    \b
    frazil -w warehouse table set shop.orders write.target-file-size-bytes=134217728 comment='all orders'
    """
    with opened_catalog(context) as (catalog, settings):
        properties = pairs_of(pairs, "property")
        open_table(catalog, name).set_properties(properties)
        settings.show([{"name": key, "value": value} for key, value in properties.items()])


@table_app.command("unset")
def remove_properties(
    context: typer.Context,
    name: TableName,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Properties to remove")],
) -> None:
    """Remove properties of a table."""
    with opened_catalog(context) as (catalog, settings):
        open_table(catalog, name).remove_properties(names)
        settings.show([{"removed": name} for name in names])


CHANGES: dict[str, Callable[..., None]] = {
    "add-column": alter_commands.add_column,
    "drop-column": alter_commands.drop_column,
    "rename-column": alter_commands.rename_column,
    "set-type": alter_commands.set_type,
    "add-partition-field": alter_commands.add_partition_field,
    "drop-partition-field": alter_commands.drop_partition_field,
    "sort-by": alter_commands.sort_by,
    "upgrade": alter_commands.upgrade,
    "set-location": alter_commands.set_location,
    "changes": changes,
    "rollback": rollback,
    "set-current": set_current,
    "cherry-pick": cherry_pick,
    "publish": publish,
}
"""Commands of other modules, by name."""

for _name, _command in CHANGES.items():
    table_app.command(_name)(_command)


def _purge_question(catalog: Any, name: str) -> str:
    metadata = catalog.load_table(parse_name(name)).metadata
    return f"Drop {visible(name)} and delete its files in {visible(metadata.location)}? They cannot be restored."


def _dotted(name: tuple[str, ...]) -> str:
    return ".".join(name)
