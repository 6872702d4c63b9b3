"""Queries that metadata answers: `count(*)`, `min` and `max` of a whole table, from manifests, as in Iceberg's jar.

A query of any other form, a table with deletes or a column whose bounds are not known is left to DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from frazil.codec.single_value import decode_bound
from frazil.expr.predicates import TRUE
from frazil.query.column_types import duckdb_type
from frazil.query.engine import keywords, quoted
from frazil.query.syntax import Node, Query
from frazil.scan.plan import plan_scan
from frazil.spec import types as ft
from frazil.spec.data_file import DataFile
from frazil.table.scan import Scan

_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")
_LITERALS: Final = (
    ((ft.IntType, ft.LongType), "{}"),
    ((ft.DecimalType,), "'{}'"),
    ((ft.DateType,), "DATE '1970-01-01' + INTERVAL ({}) DAY"),
    ((ft.TimestampType,), "make_timestamp({})"),
    ((ft.TimestamptzType,), "make_timestamptz({})"),
)
_BLOCKS: Final = ("where_clause", "group_expressions", "group_sets", "having", "qualify", "sample", "modifiers")


def summary_text(query: Query, scan: Scan) -> str | None:
    """Return a query without tables that has the result of a query over one table, or None."""
    node = query.node
    source = node.get("from_table", {})
    if (
        node.get("type") != "SELECT_NODE"
        or any(node.get(block) for block in _BLOCKS)
        or node.get("cte_map", {}).get("map")
        or source.get("type") != "BASE_TABLE"
        or source.get("sample")
        or source.get("column_name_alias")
        or scan.predicate != TRUE
        or scan.limit is not None
    ):
        return None
    select_list = node.get("select_list", ())
    items = [item for item in (_item(item, query, scan) for item in select_list) if item is not None]
    if len(items) != len(select_list) or not items:
        return None
    files: list[DataFile] | None = None
    values: list[str] = []
    for name, function, field in items:
        if field is None:
            value: str | None = f"CAST({scan.count()} AS BIGINT)"
        else:
            files = _files(scan) if files is None else files
            value = None if files is None else _bound(files, field, is_max=function == "max")
        if value is None:
            return None
        values.append(f"{value} AS {quoted(name)}")
    return f"SELECT {', '.join(values)}"


def _item(item: Node, query: Query, scan: Scan) -> tuple[str, str, ft.NestedField | None] | None:
    """Return the name of a column, its function, and the field of `min` and `max`."""
    if item.get("type") != "FUNCTION" or any(item.get(name) for name in ("filter", "distinct", "schema")):
        return None
    if item.get("order_bys", {}).get("orders"):
        return None
    function, arguments = item.get("function_name", ""), item.get("arguments", ())
    if function == "count_star" and not arguments:
        return item.get("alias") or "count_star()", function, None
    if function not in ("min", "max") or len(arguments) != 1:
        return None
    column = arguments[0]["expression"]
    path: Sequence[str] = column.get("column_names", ()) if column.get("type") == "COLUMN_REF" else ()
    if len(path) == 2 and path[0].lower() == query.tables[0].visible_name.lower():
        path = path[1:]
    matches = [field for field in scan.schema.fields if len(path) == 1 and field.name.lower() == path[0].lower()]
    is_named = bool(item.get("alias")) or (
        len(column.get("column_names", ())) == 1
        and _PLAIN_NAME.fullmatch(column["column_names"][0]) is not None
        and column["column_names"][0] not in keywords()
    )
    if len(matches) != 1 or not is_named or _literal_form(matches[0]) is None:
        return None
    return item.get("alias") or f"{function}({path[0]})", function, matches[0]


def _literal_form(field: ft.NestedField) -> str | None:
    return next((form for types, form in _LITERALS if isinstance(field.field_type, types)), None)


def _files(scan: Scan) -> list[DataFile] | None:
    """Return the data files of a scan with their bounds; None if rows of them are deleted."""
    plan = plan_scan(scan.table, TRUE, choice=scan.choice, cache=scan.options.manifest_cache, with_metrics=True)
    files: list[DataFile] = []
    for task in plan.iter_tasks():
        if task.delete_files:
            return None
        files.append(task.data_file)
    return files


def _bound(files: list[DataFile], field: ft.NestedField, *, is_max: bool) -> str | None:
    values: list[Any] = []
    for file in files:
        bounds = file.upper_bounds if is_max else file.lower_bounds
        bound = (bounds or {}).get(field.field_id)
        if bound is not None:
            values.append(decode_bound(bound, field.field_type))
            continue
        nulls, count = (file.null_value_counts or {}).get(field.field_id), file.record_count
        if count < 0 or nulls != count:
            return None
    if not values:
        return f"CAST(NULL AS {duckdb_type(field.field_type)})"
    form = _literal_form(field)
    assert form is not None
    return f"CAST({form.format(max(values) if is_max else min(values))} AS {duckdb_type(field.field_type)})"
