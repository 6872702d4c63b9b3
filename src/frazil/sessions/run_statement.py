"""Dispatches each type of statement to the function that executes it.

Each statement changes a lake in one commit, or returns rows (`sessions/answer.py`), or a DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frazil.sessions import run_ddl, run_show, run_views
from frazil.sessions.answer import Answer
from frazil.sessions.sql_context import SqlContext
from frazil.sql import statements as s

_VERBS: dict[type[s.Statement], Callable[[SqlContext, Any], Answer]] = {
    s.ShowCurrentNamespace: run_show.show_current_namespace,
    s.CreateNamespace: run_ddl.create_namespace,
    s.DropNamespace: run_ddl.drop_namespace,
    s.AlterNamespace: run_ddl.alter_namespace,
    s.DescribeNamespace: run_show.describe_namespace,
    s.ShowNamespaces: run_show.show_namespaces,
    s.ShowTables: run_show.show_tables,
    s.ShowViews: run_show.show_views,
    s.CreateTable: run_ddl.create_table,
    s.CreateTableLike: run_ddl.create_table_like,
    s.DropTable: run_ddl.drop_table,
    s.RenameTable: run_ddl.rename_table,
    s.RefreshTable: run_ddl.refresh_table,
    s.AddColumns: run_ddl.add_columns,
    s.DropColumns: run_ddl.drop_columns,
    s.RenameColumn: run_ddl.rename_column,
    s.AlterColumns: run_ddl.alter_columns,
    s.ReplaceColumns: run_ddl.replace_columns,
    s.SetLocation: run_ddl.set_location,
    s.AddPartitionField: run_ddl.add_partition_field,
    s.DropPartitionField: run_ddl.drop_partition_field,
    s.ReplacePartitionField: run_ddl.replace_partition_field,
    s.SetWriteOrder: run_ddl.set_write_order,
    s.SetIdentifierFields: run_ddl.set_identifier_fields,
    s.DropIdentifierFields: run_ddl.drop_identifier_fields,
    s.CreateRef: run_ddl.create_ref,
    s.DropRef: run_ddl.drop_ref,
    s.DescribeFunction: run_show.describe_function,
    s.DescribeTable: run_show.describe_table,
    s.ShowCreateTable: run_show.show_create_table,
    s.ShowProperties: run_show.show_properties,
    s.ShowColumns: run_show.show_columns,
    s.ShowPartitions: run_show.show_partitions,
    s.Truncate: run_ddl.truncate,
    s.CreateView: run_views.create_view,
    s.DropView: run_views.drop_view,
    s.RenameView: run_views.rename_view,
    s.AlterViewQuery: run_views.alter_view_query,
}


def run_statement(context: SqlContext, statement: s.Statement) -> Answer:
    """Execute a statement."""
    if isinstance(statement, s.SetProperties):
        return (run_views.set_view_properties if statement.is_view else run_ddl.set_properties)(context, statement)
    if isinstance(statement, s.UnsetProperties):
        return (run_views.unset_view_properties if statement.is_view else run_ddl.unset_properties)(context, statement)
    return _VERBS[type(statement)](context, statement)
