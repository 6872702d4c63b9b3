"""Commands of `frazil table` that change its definition: columns, partition fields, sort order, format, location."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.ref_commands import open_table
from frazil.cli.session import Settings, opened_catalog
from frazil.cli.table_name import TableName
from frazil.sql.type_names import plain_type_name

Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column's name: kind, or payload.kind")]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="The new name")]
ColumnType = Annotated[str, typer.Argument(metavar="TYPE", help="A type: double, 'decimal(9,2)', 'list<string>'")]


def add_column(
    context: typer.Context,
    name: TableName,
    column: Column,
    column_type: ColumnType,
    doc: Annotated[str | None, typer.Option(help="What the column means")] = None,
    first: Annotated[bool, typer.Option("--first", help="Before all others")] = False,
    after: Annotated[str | None, typer.Option(help="After this column; at the end by default")] = None,
) -> None:
    """Add an optional column.

    \b
    frazil -w warehouse table add-column shop.orders score double --doc 'from 0 to 1' --after kind
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_schema() as update:
            update.add_column(column, column_type, doc=doc, first=first, after=after)
        _show_columns(settings, table)


def drop_column(context: typer.Context, name: TableName, column: Column) -> None:
    """Drop a column; older snapshots keep it."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_schema() as update:
            update.drop_column(column)
        _show_columns(settings, table)


def rename_column(context: typer.Context, name: TableName, column: Column, new_name: NewName) -> None:
    """Rename a column; files are not rewritten."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_schema() as update:
            update.rename_column(column, new_name)
        _show_columns(settings, table)


def set_type(context: typer.Context, name: TableName, column: Column, column_type: ColumnType) -> None:
    """Widen a column's type: int to long, float to double, a decimal to more digits."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_schema() as update:
            update.set_type(column, column_type)
        _show_columns(settings, table)


def add_partition_field(
    context: typer.Context,
    name: TableName,
    term: Annotated[str, typer.Argument(metavar="TERM", help="A column or a transform of a column: 'day(ts)'")],
) -> None:
    """Partition new files by one more field; existing files do not change.

    \b
    frazil -w warehouse table add-partition-field shop.orders 'bucket(16, id)'
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_spec() as update:
            update.add_field(term)
        _show_fields(settings, table)


def drop_partition_field(
    context: typer.Context,
    name: TableName,
    field: Annotated[str, typer.Argument(metavar="FIELD", help="A partition field's name: ts_day")],
) -> None:
    """Partition new files without a field."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        with table.update_spec() as update:
            update.remove_field(field)
        _show_fields(settings, table)


def sort_by(
    context: typer.Context,
    name: TableName,
    terms: Annotated[list[str] | None, typer.Argument(metavar="[TERM...]", help="'ts desc nulls last'; none")] = None,
) -> None:
    """Set the order of rows in new files; without terms, rows are not sorted."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.set_sort_order(terms or ())
        settings.show([{"table": name, "order_id": table.sort_order.order_id, "sort_by": ", ".join(terms or ())}])


def upgrade(
    context: typer.Context,
    name: TableName,
    format_version: Annotated[int, typer.Argument(metavar="VERSION", help="2 or 3")],
) -> None:
    """Upgrade a table's format version; this cannot be undone."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.upgrade(format_version)
        settings.show([{"table": name, "format_version": table.format_version}])


def set_location(
    context: typer.Context,
    name: TableName,
    location: Annotated[str, typer.Argument(metavar="LOCATION", help="The folder for new files")],
) -> None:
    """Set the location of new files; existing files stay in place."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.set_location(location)
        settings.show([{"table": name, "location": table.location}])


def _show_columns(settings: Settings, table: Any) -> None:
    rows = [
        {
            "id": field.field_id,
            "name": field.name,
            "type": plain_type_name(field.field_type),
            "required": field.required,
        }
        for field in table.schema.fields
    ]
    settings.show(rows, ["id", "name", "type", "required"])


def _show_fields(settings: Settings, table: Any) -> None:
    rows = [
        {"field_id": field.field_id, "name": field.name, "transform": str(field.transform)}
        for field in table.spec.fields
    ]
    settings.show(rows, ["field_id", "name", "transform"])
