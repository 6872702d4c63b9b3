"""ALTER TABLE as Spark's catalogs are told of it: changes of a table, as statements of ours. One commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.errors import UnsupportedError
from frazil.sessions.run_statement import run_statement
from frazil.sessions.sql_context import SqlContext
from frazil.spark.change.resolved import schema_of_type
from frazil.spark.types import from_spark_schema
from frazil.spec.frozen_map import FrozenMap
from frazil.sql import statements as s

Change = Mapping[str, Any]


def alter_table(context: SqlContext, name: s.Name, changes: Sequence[Change]) -> None:
    """Carry changes out that Spark made of one ALTER TABLE."""
    run_statement(context, _statement(name, changes))


def _statement(name: s.Name, changes: Sequence[Change]) -> s.Statement:
    kinds = {change["kind"] for change in changes}
    if kinds == {"SetProperty"}:
        return _set(name, {change["property"]: change["value"] for change in changes})
    if kinds == {"RemoveProperty"}:
        return s.UnsetProperties(name, tuple(change["property"] for change in changes), if_exists=True)
    if kinds == {"AddColumn"}:
        return s.AddColumns(name, tuple(map(_column, changes)))
    if kinds == {"RenameColumn"} and len(changes) == 1:
        return s.RenameColumn(name, tuple(changes[0]["column"]), changes[0]["to"])
    if kinds == {"DeleteColumn"}:
        return s.DropColumns(
            name, tuple(tuple(change["column"]) for change in changes), if_exists=changes[0]["if-exists"]
        )
    if kinds == {"DeleteColumn", "AddColumn"}:
        return s.ReplaceColumns(name, tuple(_column(change) for change in changes if change["kind"] == "AddColumn"))
    if kinds <= _OF_COLUMNS:
        return s.AlterColumns(name, tuple(map(_change, changes)))
    refused = min(kinds - _OF_COLUMNS)
    raise UnsupportedError(f"Cannot alter {'.'.join(name)}: a lake's table has no {refused}")


_OF_COLUMNS = {
    "UpdateColumnType",
    "UpdateColumnNullability",
    "UpdateColumnComment",
    "UpdateColumnPosition",
    "UpdateColumnDefaultValue",
}


def _set(name: s.Name, properties: dict[str, str]) -> s.Statement:
    if list(properties) == ["location"]:
        return s.SetLocation(name, properties["location"])
    return s.SetProperties(name, FrozenMap(properties))


def _type(text: str) -> str:
    (column,) = from_spark_schema(schema_of_type(text)).fields
    return str(column.field_type)


def _position(after: str | None) -> s.Position | None:
    return None if after is None else s.Position(after or None)


def _column(change: Change) -> s.ColumnDefinition:
    return s.ColumnDefinition(
        tuple(change["column"]),
        _type(change["type"]),
        is_required=not change["nullable"],
        comment=change["comment"],
        default=None if change["default"] is None else s.Span(change["default"], 0),
        position=_position(change["position"]),
    )


def _change(change: Change) -> s.ColumnChange:
    path, change_type = tuple(change["column"]), change["kind"]
    if change_type == "UpdateColumnType":
        return s.ColumnChange(path, type=_type(change["type"]))
    if change_type == "UpdateColumnNullability":
        return s.ColumnChange(path, is_required=not change["nullable"])
    if change_type == "UpdateColumnComment":
        return s.ColumnChange(path, comment=change["comment"])
    if change_type == "UpdateColumnPosition":
        return s.ColumnChange(path, position=_position(change["position"]))
    default = change["default"]
    if not default:
        return s.ColumnChange(path, drops_default=True)
    return s.ColumnChange(path, default=s.Span(default, 0))
