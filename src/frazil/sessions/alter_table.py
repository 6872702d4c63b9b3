"""ALTER TABLE in the form that Spark passes to catalogs: a list of changes, applied as one statement in one commit."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import UnsupportedError
from frazil.sessions import requests as r
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.spark.change.resolved import schema_of_type
from frazil.spark.types import from_spark_schema
from frazil.spec.frozen_map import FrozenMap
from frazil.sql import statements as s


def alter_table(context: SqlContext, name: s.Name, changes: Sequence[r.AnyTableChange]) -> None:
    """Apply the changes of one ALTER TABLE of Spark."""
    run_statement(context, _statement(name, changes))


def _statement(name: s.Name, changes: Sequence[r.AnyTableChange]) -> s.Statement:
    properties = [change for change in changes if isinstance(change, r.SetProperty)]
    removed = [change for change in changes if isinstance(change, r.RemoveProperty)]
    added = [change for change in changes if isinstance(change, r.AddColumn)]
    renamed = [change for change in changes if isinstance(change, r.RenameColumn)]
    dropped = [change for change in changes if isinstance(change, r.DeleteColumn)]
    count = len(changes)
    if not changes:
        return s.AlterColumns(name, ())
    if len(properties) == count:
        return _set(name, {change.property: change.value for change in properties})
    if len(removed) == count:
        return s.UnsetProperties(name, tuple(change.property for change in removed), if_exists=True)
    if len(added) == count:
        return s.AddColumns(name, tuple(map(_column, added)))
    if len(renamed) == count == 1:
        return s.RenameColumn(name, renamed[0].column, renamed[0].to)
    if len(dropped) == count:
        return s.DropColumns(name, tuple(change.column for change in dropped), if_exists=dropped[0].if_exists)
    if len(dropped) + len(added) == count:
        return s.ReplaceColumns(name, tuple(map(_column, added)))
    return s.AlterColumns(name, tuple(_change(name, change) for change in changes))


def _set(name: s.Name, properties: dict[str, str]) -> s.Statement:
    if list(properties) == ["location"]:
        return s.SetLocation(name, properties["location"])
    return s.SetProperties(name, FrozenMap(properties))


def _type(text: str) -> str:
    (column,) = from_spark_schema(schema_of_type(text)).fields
    return str(column.field_type)


def _position(after: str | None) -> s.Position | None:
    return None if after is None else s.Position(after or None)


def _column(change: r.AddColumn) -> s.ColumnDefinition:
    return s.ColumnDefinition(
        change.column,
        _type(change.type),
        is_required=not change.nullable,
        comment=change.comment,
        default=None if change.default is None else s.Span(change.default, 0),
        position=_position(change.position),
    )


def _change(name: s.Name, change: r.AnyTableChange) -> s.ColumnChange:
    if isinstance(change, r.UpdateColumnType):
        return s.ColumnChange(change.column, type=_type(change.type))
    if isinstance(change, r.UpdateColumnNullability):
        return s.ColumnChange(change.column, is_required=not change.nullable)
    if isinstance(change, r.UpdateColumnComment):
        return s.ColumnChange(change.column, comment=change.comment)
    if isinstance(change, r.UpdateColumnPosition):
        return s.ColumnChange(change.column, position=_position(change.position))
    if isinstance(change, r.UpdateColumnDefaultValue):
        if not change.default:
            return s.ColumnChange(change.column, drops_default=True)
        return s.ColumnChange(change.column, default=s.Span(change.default, 0))
    refused = change.name if isinstance(change, r.OtherChange) else type(change).__name__
    raise UnsupportedError(f"Cannot alter {'.'.join(name)}: a lake's table has no {refused}")
