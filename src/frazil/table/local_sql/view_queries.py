"""The queries of views, as DuckDB runs them: in its own dialect, or Spark's where both mean the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from frazil.catalog.names import format_name
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.query.column_types import duckdb_type
from frazil.query.engine import quoted
from frazil.spec.schema import Schema
from frazil.spec.types import FixedType, TimestampNsType, TimestamptzNsType, TimeType, Type, UuidType
from frazil.sql.statements import VIEW_SCHEMA_MODE, Name
from frazil.sql.type_names import spark_type_name
from frazil.table.view import DEFAULT_DIALECT, View, find_query_columns

DIALECT = "duckdb"
_SPARK_TYPES = {
    "INTEGER": "int",
    "VARCHAR": "string",
    "BLOB": "binary",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "TIMESTAMP": "timestamp_ntz",
}
_OWN_TYPES = (FixedType, TimestampNsType, TimestamptzNsType, TimeType, UuidType)
_KINDS = {
    "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "HUGEINT": "int", "UTINYINT": "int",
    "USMALLINT": "int", "UINTEGER": "int", "UBIGINT": "int", "FLOAT": "float", "DOUBLE": "float",
}  # fmt: skip


def recursive_view_error(name: Name, count: int) -> InvalidRequestError:
    """Return the error for a view that is among those it reads."""
    return InvalidRequestError(f"Cannot read the view {format_name(name)}: it reads itself, by way of {count} views")


def needs_spark_error(name: str, reason: str) -> UnsupportedError:
    """Return the error for a view whose query only Spark can run."""
    return UnsupportedError(
        f"Cannot read the view {name} without Spark: {reason}",
        hint="Run the query on Spark, write the view's query out, or give the view a query in the dialect 'duckdb'.",
    )


def view_text(view: View, types_of: Callable[[Name], Mapping[str, str] | None]) -> str:
    """Return a view's query for DuckDB; refuse one that only another engine reads.

    `types_of` returns Spark's types of the columns of a table or a view that the query names.
    """
    if DIALECT in {dialect.lower() for dialect in view.dialects}:
        return view.sql_for(DIALECT)
    if DEFAULT_DIALECT not in {dialect.lower() for dialect in view.dialects}:
        dialects = ", ".join(sorted(view.dialects)) or "(none)"
        raise UnsupportedError(
            f"Cannot read the view {view.name}: it has no query in DuckDB's dialect or in Spark's",
            hint=f"Its dialects are: {dialects}.",
        )
    # sqlglot is loaded for views of Spark only.
    from frazil.query.spark_dialect import translate_view
    from frazil.query.spark_types import NotTranslatable

    try:
        return translate_view(view.sql_for(DEFAULT_DIALECT), types_of)
    except NotTranslatable as error:
        raise needs_spark_error(view.name, f"DuckDB may read it differently ({error.reason})") from error


def spark_types(schema: Schema) -> dict[str, str]:
    """Return Spark's types of columns, by their names."""
    return {field.name: _spark_type(field.field_type) for field in schema.fields}


def spark_types_of(columns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return Spark's types of columns whose types in DuckDB are given."""
    return {name: _SPARK_TYPES.get(data_type, data_type.lower()) for name, data_type in columns}


def _spark_type(data_type: Type) -> str:
    """Return Spark's name of a type. Types that Spark shows as others keep their name: nothing is computed on them."""
    return str(data_type) if isinstance(data_type, _OWN_TYPES) else spark_type_name(data_type)


def view_columns(view: View, query: str, columns: Sequence[tuple[str, str]]) -> str:
    """Return a query for a view's own columns, given the query's columns and their types in DuckDB.

    They are as WITH SCHEMA says: EVOLUTION is what the query returns, TYPE EVOLUTION its types under the view's
    names; otherwise values are cast to the view's types.
    """
    fields = view.schema.fields
    mode = view.properties.get(VIEW_SCHEMA_MODE, "COMPENSATION").upper()
    if not fields or mode == "EVOLUTION":
        return query
    chosen = find_query_columns(view, [name for name, _ in columns])
    parts: list[str] = []
    for number, field in zip(chosen, fields, strict=True):
        wanted_type, have = duckdb_type(field.field_type), columns[number][1]
        value = f"c{number}"
        if mode != "TYPE EVOLUTION" and wanted_type is not None and wanted_type != have:
            if _kind(have) != _kind(wanted_type):
                raise needs_spark_error(
                    view.name, f"its column {field.name!r} is {field.field_type}, and would be {have} here"
                )
            value = f"CAST({value} AS {wanted_type})"
        parts.append(f"{value} AS {quoted(field.name)}")
    names = ", ".join(f"c{number}" for number in range(len(columns)))
    return f"SELECT {', '.join(parts)} FROM ({query}) AS {quoted(view.identifier[-1])}({names})"


def _kind(data_type: str) -> str:
    if data_type == "TIMESTAMP WITH TIME ZONE":
        return "TIMESTAMPTZ"
    return _KINDS.get(data_type) or data_type.partition("(")[0]
