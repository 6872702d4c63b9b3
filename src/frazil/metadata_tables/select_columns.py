"""Select columns of a metadata table: the schema reduced to the requested columns.

Readers of metadata tables start from the schema returned here and compute nothing else, so that a request for paths
decodes only paths. A name may refer to nested fields: `data_file.file_path`, `readable_metrics.id.lower_bound`,
`partition.ts_day`. Names of nested columns contain dots themselves (`readable_metrics.point.x`), so the longest
matching name is tried first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from frazil.errors import FieldNotFoundError, InvalidRequestError

_Picks = dict[str, Any]
"""The selection within a struct: for each field, None for all of it, or the nested selection."""


def select_columns(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """Return the part of a schema selected by names, in the order of the names, or all of it for None."""
    if columns is None:
        return schema
    if isinstance(columns, str):
        raise InvalidRequestError(f"Cannot select columns by the string {columns!r}", hint="Pass a list of names.")
    if len(columns) == 0:
        raise InvalidRequestError("Cannot select columns: there are no names", hint="Leave them out to get all.")
    by_name = {field.name: field for field in schema}
    picks: _Picks = {}
    for name in columns:
        _pick(picks, by_name, name, name, schema.names)
    return pa.schema([_reduce(by_name[name], within) for name, within in picks.items()])


def project_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table reduced to a schema from `select_columns`."""
    return pa.Table.from_arrays(
        [project_array(table.column(field.name), field.type) for field in schema], schema=schema
    )


def _pick(picks: _Picks, fields: dict[str, pa.Field], rest: str, requested: str, names: Sequence[str]) -> None:
    fitting = [name for name in fields if rest == name or rest.startswith(f"{name}.")]
    for name in sorted(fitting, key=len, reverse=True):
        if rest == name:
            picks[name] = None
            return
        data_type = fields[name].type
        if pa.types.is_struct(data_type):
            if picks.get(name, {}) is not None:
                within = picks.setdefault(name, {})
                _pick(within, {field.name: field for field in data_type}, rest[len(name) + 1 :], requested, names)
            return
    raise FieldNotFoundError(
        f"Cannot select column {requested!r}: the metadata table has no such column",
        hint=f"Its columns are: {', '.join(names)}.",
    )


def _reduce(arrow_field: pa.Field, within: _Picks | None) -> pa.Field:
    if within is None:
        return arrow_field
    return arrow_field.with_type(
        pa.struct([_reduce(inner, within[inner.name]) for inner in arrow_field.type if inner.name in within])
    )


def project_array(column: Any, arrow_type: pa.DataType) -> Any:
    """Return an array reduced to a type from `select_columns`."""
    if column.type == arrow_type or not pa.types.is_struct(arrow_type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([project_array(chunk, arrow_type) for chunk in column.chunks], arrow_type)
    positions = {field.name: index for index, field in enumerate(column.type)}
    flat = column.flatten()
    children = [project_array(flat[positions[field.name]], field.type) for field in arrow_type]
    validity = None if column.null_count == 0 else column.is_valid().buffers()[1]
    return pa.Array.from_buffers(arrow_type, len(column), [validity], children=children)
