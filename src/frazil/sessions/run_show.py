"""Statements that show namespaces, tables and views. The result columns are the same as in Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from frazil.catalog.names import format_name
from frazil.codec.arrow_schema import from_arrow_type
from frazil.errors import NamespaceNotFoundError, NotFoundError, TableNotFoundError, UnsupportedError
from frazil.loaded import LoadedView
from frazil.metadata_tables.tables import metadata_table_schema
from frazil.sessions.answer import Answer, answer
from frazil.sessions.sql_context import SqlContext
from frazil.sessions.write_options import default_text
from frazil.spec import properties
from frazil.spec.property_kinds import read_property
from frazil.spec.reserved_columns import CHANGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.sql import statements as s
from frazil.sql.functions import describe_function as described
from frazil.sql.quote_names import quote_if_needed, quote_path
from frazil.sql.type_names import (
    PARTITION_FIELD_NAMES,
    column_name,
    escape,
    live_fields,
    order_terms,
    partition_names,
    partition_terms,
    spark_type_name,
    sql_type_name,
)
from frazil.table.sql_session import CHANGES, SPARK_CATALOG, FullName, Relation
from frazil.table.table import Table

_COLUMNS = ("col_name string not null", "data_type string not null", "comment string")
_INFO = ("info_name string not null", "info_value string")
_PAIRS = ("key string not null", "value string not null")
_RESERVED = frozenset({"comment", "location", "provider", "owner", "external", "is_managed_location"})
_COMPUTED = frozenset({"format", "current-snapshot-id"})
_EMPTY = ("", "", "")


def matches(name: str, pattern: str | None) -> bool:
    """Return whether a name matches a pattern: `*` matches anything, `|` separates patterns, case is ignored."""
    if pattern is None:
        return True
    for piece in pattern.split("|"):
        expression = ".*".join(re.escape(literal) for literal in piece.strip().split("*"))
        if re.fullmatch(expression, name, re.IGNORECASE | re.DOTALL):
            return True
    return False


def _existing(full_name: FullName) -> FullName:
    if full_name.name and not full_name.lake.catalog.namespace_exists(full_name.name):
        raise NamespaceNotFoundError(f"Cannot show what is in {full_name}: there is no such namespace")
    return full_name


def show_current_namespace(context: SqlContext, statement: s.ShowCurrentNamespace) -> Answer:
    """Show the current catalog and namespace."""
    session = context.session
    row = (session.catalog or SPARK_CATALOG, quote_path(session.namespace))
    return answer(("catalog string not null", "namespace string not null"), [row])


def show_namespaces(context: SqlContext, statement: s.ShowNamespaces) -> Answer:
    """Show the namespaces of a lake, or of a namespace."""
    full_name = context.session.namespace_place(statement.name)
    if not statement.name:
        full_name = FullName(full_name.lake_name, full_name.lake, ())
    namespaces = _existing(full_name).lake.list_namespaces(full_name.name)
    rows = [(quote_path(namespace),) for namespace in namespaces if matches(quote_path(namespace), statement.pattern)]
    return answer(("namespace string not null",), rows)


def show_tables(context: SqlContext, statement: s.ShowTables) -> Answer:
    """Show the tables of a namespace."""
    full_name = _existing(context.session.namespace_place(statement.name))
    # Only namespaces have tables; a lake itself contains just namespaces.
    listed = full_name.lake.list_tables(full_name.name) if full_name.name else []
    names = [name for name in listed if matches(name[-1], statement.pattern)]
    columns = ["namespace string not null", "tableName string not null", "isTemporary boolean not null"]
    if not statement.is_extended:
        return answer(columns, [(quote_path(name[:-1]), name[-1], False) for name in names])
    rows = []
    for identifier in names:
        table = full_name.lake.table(identifier)
        details = _details(Relation(FullName(full_name.lake_name, full_name.lake, identifier), table))
        rows.append((quote_path(identifier[:-1]), identifier[-1], False, _as_lines(details)))
    # Including views, as in Spark's built-in catalog: dbt uses this to detect views.
    for identifier in full_name.lake.list_views(full_name.name) if full_name.name else []:
        if matches(identifier[-1], statement.pattern):
            view = full_name.lake.catalog.load_view(identifier)
            details = [
                ("Name", str(FullName(full_name.lake_name, full_name.lake, identifier)), ""),
                ("Type", "VIEW", ""),
            ]
            details += _view_details(full_name.lake_name, view)
            rows.append((quote_path(identifier[:-1]), identifier[-1], False, _as_lines(details)))
    return answer([*columns, "information string not null"], rows)


def _as_lines(details: Iterable[tuple[str, str, str]]) -> str:
    return "".join(f"{name}: {value}\n" for name, value, _ in details)


def show_views(context: SqlContext, statement: s.ShowViews) -> Answer:
    """Show the views of a namespace."""
    full_name = _existing(context.session.namespace_place(statement.name))
    listed = full_name.lake.list_views(full_name.name) if full_name.name else []
    names = [identifier for identifier in listed if matches(identifier[-1], statement.pattern)]
    columns = ("namespace string not null", "viewName string not null", "isTemporary boolean not null")
    return answer(columns, [(quote_path(identifier[:-1]), identifier[-1], False) for identifier in names])


def describe_namespace(context: SqlContext, statement: s.DescribeNamespace) -> Answer:
    """Show a namespace and, with EXTENDED, its properties."""
    full_name = context.session.namespace_place(statement.name)
    properties = full_name.lake.catalog.load_namespace_properties(full_name.name)
    rows = [("Catalog Name", full_name.lake_name), ("Namespace Name", quote_path(full_name.name))]
    for label, key in (("Comment", "comment"), ("Location", "location"), ("Owner", "owner")):
        if key in properties:
            rows.append((label, properties[key]))
    if statement.is_extended:
        rest = sorted((key, value) for key, value in properties.items() if key not in ("comment", "location", "owner"))
        rows.append(("Properties", "(" + ", ".join(f"({key},{value})" for key, value in rest) + ")" if rest else ""))
    return answer(_INFO, rows)


# Tables and views


def _find(context: SqlContext, name: s.Name) -> Relation | tuple[FullName, LoadedView]:
    full_name = context.session.full_name(name)
    try:
        return context.session.relation(full_name)
    except NotFoundError:
        try:
            return full_name, full_name.lake.catalog.load_view(full_name.name)
        except NotFoundError:
            raise TableNotFoundError(
                f"Cannot find {full_name}: there is no such table or view",
                hint=f"SHOW TABLES IN {format_name((full_name.lake_name, *full_name.name[:-1]))} lists all.",
            ) from None


def describe_table(context: SqlContext, statement: s.DescribeTable) -> Answer:
    """Show a table's or view's columns, and with EXTENDED all details."""
    entity = _find(context, statement.name)
    if isinstance(entity, tuple):
        return _describe_view(*entity, statement)
    relation = entity
    if relation.metadata_table is not None:
        return _describe_metadata_table(relation)
    table = relation.table
    if statement.column is not None:
        return _describe_column(table.schema, statement.column)
    rows: list[tuple[Any, ...]] = list(_column_rows(table.schema))
    fields = live_fields(table.spec)
    if fields and all(partition_field.transform.is_identity for partition_field in fields):
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        for field in fields:
            source = table.schema.field(field.source_id)
            name = column_name(table.schema, field.source_id)
            rows.append((name, spark_type_name(source.field_type), source.doc))
    elif fields:
        rows += [_EMPTY, ("# Partitioning", "", "")]
        terms = partition_terms(table.schema, table.spec)
        rows += [(f"Part {index}", term, "") for index, term in enumerate(terms)]
    if statement.is_extended:
        rows += [_EMPTY, ("# Metadata Columns", "", ""), *_metadata_columns(table)]
        rows += [_EMPTY, ("# Detailed Table Information", "", ""), *_details(relation)]
    return answer(_COLUMNS, rows)


def _column_rows(schema: Schema) -> Iterable[tuple[Any, ...]]:
    for field in schema.fields:
        yield field.name, spark_type_name(field.field_type), field.doc


def _describe_column(schema: Schema, column: s.Name) -> Answer:
    field = schema.field(".".join(column), case_sensitive=False)
    rows = [
        ("col_name", field.name),
        ("data_type", spark_type_name(field.field_type)),
        ("comment", field.doc or "NULL"),
    ]
    return answer(_INFO, rows)


def _describe_metadata_table(relation: Relation) -> Answer:
    metadata = relation.table.metadata
    if relation.metadata_table == CHANGES:
        return answer(_COLUMNS, _column_rows(Schema((*relation.table.schema.fields, *CHANGE_COLUMNS))))
    columns = metadata_table_schema(metadata, relation.metadata_table or "")
    return answer(_COLUMNS, [(column.name, spark_type_name(from_arrow_type(column.type)), None) for column in columns])


def _metadata_columns(table: Table) -> list[tuple[Any, ...]]:
    parts = ",".join(
        f"{quote_if_needed(field.name)}:{spark_type_name(field.result_type(table.schema, table.metadata.schemas))}"
        for field in table.spec.fields
    )
    rows: list[tuple[Any, ...]] = [
        ("_spec_id", "int", ""),
        ("_partition", f"struct<{parts}>", ""),
        ("_file", "string", ""),
        ("_pos", "bigint", ""),
        ("_deleted", "boolean", ""),
    ]
    if table.format_version >= 3:
        rows += [("_row_id", "bigint", ""), ("_last_updated_sequence_number", "bigint", "")]
    return rows


def _details(relation: Relation) -> list[tuple[str, str, str]]:
    table = relation.table
    rows = [("Name", str(relation.full_name), ""), ("Type", "MANAGED", "")]
    if "comment" in table.properties:
        rows.append(("Comment", table.properties["comment"], ""))
    rows += [("Location", table.location, ""), ("Provider", "iceberg", "")]
    if "owner" in table.properties:
        rows.append(("Owner", table.properties["owner"], ""))
    pairs = ",".join(f"{key}={value}" for key, value in _shown_properties(table))
    return [*rows, ("Table Properties", f"[{pairs}]", "")]


def table_properties(table: Table) -> dict[str, str]:
    """Return the properties that a table shows: its own, and those derived from its state."""
    data_format = read_property(table.properties, properties.DEFAULT_FILE_FORMAT)
    current = table.current_snapshot
    derived = {
        "format": f"iceberg/{data_format}",
        "provider": "iceberg",
        "current-snapshot-id": "none" if current is None else str(current.snapshot_id),
        "location": table.location,
        "format-version": str(table.format_version),
    }
    if table.sort_order.is_sorted:
        derived["sort-order"] = ", ".join(order_terms(table.schema, table.sort_order))
    identifiers = [column_name(table.schema, field_id) for field_id in table.schema.identifier_field_ids]
    if identifiers:
        derived["identifier-fields"] = f"[{','.join(identifiers)}]"
    return {**derived, **table.properties}


def _shown_properties(table: Table) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in table_properties(table).items() if key not in _RESERVED)


def show_properties(context: SqlContext, statement: s.ShowProperties) -> Answer:
    """Show a table's or view's properties, or one of them."""
    entity = _find(context, statement.name)
    pairs: Mapping[str, str]
    if isinstance(entity, tuple):
        full_name, view = entity
        pairs = {key: value for key, value in sorted(view.metadata.properties.items()) if key not in _RESERVED}
    else:
        full_name, pairs = entity.full_name, dict(_shown_properties(entity.table))
    if statement.key is None:
        return answer(_PAIRS, pairs.items())
    missing = f"Table {full_name} does not have property: {statement.key}"
    return answer(_PAIRS, [(statement.key, pairs.get(statement.key, missing))])


def show_columns(context: SqlContext, statement: s.ShowColumns) -> Answer:
    """Show the names of a table's columns."""
    entity = _find(context, statement.name)
    schema = entity[1].metadata.current_schema if isinstance(entity, tuple) else entity.table.schema
    return answer(("col_name string not null",), [(field.name,) for field in schema.fields])


def show_partitions(context: SqlContext, statement: s.ShowPartitions) -> Answer:
    """Show the partitions that contain rows, as paths."""
    table = context.session.table(statement.name)
    columns = ("partition string not null",)
    if table.spec.is_unpartitioned:
        return answer(columns, [])
    rows = table.inspect.partitions().column("partition").to_pylist()
    names = [live_field.name for live_field in live_fields(table.spec)]
    paths = sorted({"/".join(f"{name}={'null' if row[name] is None else row[name]}" for name in names) for row in rows})
    return answer(columns, [(path,) for path in paths])


# CREATE statements


def show_create_table(context: SqlContext, statement: s.ShowCreateTable) -> Answer:
    """Show the statement that creates such a table or view."""
    entity = _find(context, statement.name)
    text = _create_view(*entity) if isinstance(entity, tuple) else _create_table(entity)
    if "${" in text:
        # Strings can escape it. Names and queries cannot, and the statement would create something else.
        raise UnsupportedError(
            f"Cannot show the statement that makes {format_name(statement.name)}: a name or the query in it has ${{, "
            "which Spark replaces in statements",
            hint="DESCRIBE EXTENDED shows it unchanged.",
        )
    return answer(("createtab_stmt string not null",), [(text,)])


def _create_table(relation: Relation) -> str:
    table = relation.table
    lines = []
    for field in table.schema.fields:
        line = f"  {quote_if_needed(field.name)} {sql_type_name(field.field_type)}"
        if field.required:
            line += " NOT NULL"
        if field.write_default is not None:
            line += f" DEFAULT {default_text(field)}"
        if field.doc is not None:
            line += f" COMMENT '{escape(field.doc)}'"
        lines.append(line)
    name = quote_path((relation.full_name.lake_name, *relation.full_name.name))
    text = f"CREATE TABLE {name} (\n" + ",\n".join(lines) + ")\nUSING iceberg\n"
    terms = partition_terms(table.schema, table.spec)
    if terms:
        text += f"PARTITIONED BY ({', '.join(terms)})\n"
    if "comment" in table.properties:
        text += f"COMMENT '{escape(table.properties['comment'])}'\n"
    text += f"LOCATION '{escape(table.location)}'\n"
    pairs = [(key, value) for key, value in _shown_properties(table) if key not in _COMPUTED]
    names = partition_names(table.schema, table.spec)
    if names:
        pairs = sorted([*pairs, (PARTITION_FIELD_NAMES, names)])
    return text + _properties_text(pairs)


def _properties_text(pairs: Iterable[tuple[str, str]]) -> str:
    lines = [f"  '{escape(key)}' = '{escape(value)}'" for key, value in pairs]
    return "TBLPROPERTIES (\n" + ",\n".join(lines) + ")\n" if lines else ""


def _create_view(full_name: FullName, view: LoadedView) -> str:
    metadata = view.metadata
    columns = []
    for field in metadata.current_schema.fields:
        comment = "" if field.doc is None else f" COMMENT '{escape(field.doc)}'"
        columns.append(f"  {quote_if_needed(field.name)}{comment}")
    text = f"CREATE VIEW {quote_path((full_name.lake_name, *full_name.name))} (\n" + ",\n".join(columns) + ")\n"
    if "comment" in metadata.properties:
        text += f"COMMENT '{escape(metadata.properties['comment'])}'\n"
    pairs = sorted((key, value) for key, value in metadata.properties.items() if key not in _RESERVED)
    text += _properties_text(pairs)
    version = metadata.current_version
    sql = version.find_sql("spark") or next(iter(version.sql_representations), None)
    return text + f"AS\n{'' if sql is None else sql.sql}\n"


def _describe_view(full_name: FullName, view: LoadedView, statement: s.DescribeTable) -> Answer:
    metadata = view.metadata
    if statement.column is not None:
        return _describe_column(metadata.current_schema, statement.column)
    rows: list[tuple[Any, ...]] = list(_column_rows(metadata.current_schema))
    if statement.is_extended:
        rows += [_EMPTY, ("# Detailed View Information", "", ""), *_view_details(full_name.lake_name, view)]
    return answer(_COLUMNS, rows)


def _view_details(lake_name: str, view: LoadedView) -> list[tuple[str, str, str]]:
    metadata = view.metadata
    version = metadata.current_version
    sql = version.find_sql("spark") or next(iter(version.sql_representations), None)
    columns = [field.name for field in metadata.current_schema.fields]
    return [
        ("Comment", metadata.properties.get("comment", ""), ""),
        ("View Catalog and Namespace", format_name((lake_name, *version.default_namespace)), ""),
        ("View Query Output Columns", f"[{', '.join(columns)}]", ""),
        ("View Properties", f"[{', '.join(f'{k}={v}' for k, v in sorted(metadata.properties.items()))}]", ""),
        ("View Text", "" if sql is None else sql.sql, ""),
    ]


def describe_function(context: SqlContext, statement: s.DescribeFunction) -> Answer:
    """Show the usage and the result of a function."""
    function = context.session.find_function(statement.name)
    assert function is not None
    _, lake, name = function
    rows = [(f"Function: {lake}.system.{name}",), (f"Usage: {described(name)}",)]
    return answer(("function_desc string not null",), rows)
