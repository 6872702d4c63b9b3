"""CREATE, DROP and ALTER of `lake.sql`: each is the method of `Lake` or `Table` that does the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from frazil.catalog.names import format_name
from frazil.errors import (
    InvalidRequestError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    ViewNotFoundError,
)
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.table.local_sql.statement_run import Run, renamed, renamed_schema
from frazil.table.local_sql.statement_text import Statement, check_parts, lake_name, name_parts, refuse, sql_of
from frazil.table.local_sql.statement_types import column_type
from frazil.table.local_sql.statement_values import Translator, quoted


def create(run: Run) -> pa.Table:
    """Create a namespace, a table or a view."""
    tree = run.statement.tree
    entity = str(tree.args["kind"]).upper()
    if entity == "SCHEMA":
        return _create_namespace(run)
    if entity == "VIEW":
        return _create_view(run)
    if entity == "TABLE":
        return _create_table(run)
    return refuse("run the statement", f"CREATE {entity}")


def _create_namespace(run: Run) -> pa.Table:
    tree = run.statement.tree
    check_parts(tree, dict.fromkeys(("this", "kind", "exists")), "create the namespace")
    run.lake.create_namespace(_namespace(run, tree.this), exist_ok=bool(tree.args.get("exists")))
    return pa.table({})


def _namespace(run: Run, node: Any) -> tuple[str, ...]:
    parts = tuple(step.name for step in node.parts)
    return lake_name(parts, run.lake.catalog.name, is_namespace=True)


def _create_table(run: Run) -> pa.Table:
    tree, lake = run.statement.tree, run.lake
    name = run.name(tree.this)
    what = f"create {format_name(name)}"
    hints: dict[str, str | None] = {
        "replace": "Drop the table first, or write to it: t.overwrite(rows).",
        "properties": "lake.create_table(name, schema, partition_by=[…], sort_by=[…], properties={…}) takes the rest.",
    }
    check_parts(tree, dict.fromkeys(("this", "kind", "exists", "expression")) | hints, what)
    if lake.view_exists(name):
        raise TableAlreadyExistsError(f"Cannot {what}: there is a view of that name")
    is_there = lake.table_exists(name)
    if is_there and tree.args.get("exists"):
        return pa.table({})
    if is_there:
        raise TableAlreadyExistsError(f"Cannot {what}: there is a table of that name", hint="Write IF NOT EXISTS.")
    if tree.args.get("expression") is None:
        schema = ", ".join(_column_definition(column, what) for column in tree.this.expressions)
        lake.create_table(name, schema, exist_ok=bool(tree.args.get("exists")))
        return pa.table({})
    rows = run.query(_query_after_as(run.statement))
    names = _names(tree.this, rows.arrow_schema.names, what)
    lake.create_table(name, renamed(rows.to_reader(), names))
    return pa.table({})


def _column_definition(column: exp.Expr, what: str) -> str:
    if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
        refuse(what, sql_of(column), "Constraints are methods: t.add_constraint(…), u.set_identifier_fields(…).")
    is_required = False
    for constraint in column.args.get("constraints") or ():
        if not isinstance(constraint.kind, exp.NotNullColumnConstraint):
            refuse(
                what,
                f"{sql_of(constraint)} of the column {column.name}",
                "Use t.update_schema(): add_column(…, default=…), set_identifier_fields([…]).",
            )
        is_required = not constraint.kind.args.get("allow_null")
    return f"{quoted(column.name)} {column_type(column.args['kind'], what)}{' not null' if is_required else ''}"


def _query_after_as(statement: Statement) -> str:
    found = statement.find("as")
    assert found is not None
    return statement.after(found + 1)


def _names(node: exp.Expr, names: list[str], what: str) -> list[str]:
    """Return the names of the columns: those in the list after the name, else the query's."""
    given = [identifier.name for identifier in node.expressions] if isinstance(node, exp.Schema) else names
    if len(given) != len(names):
        raise InvalidRequestError(f"Cannot {what}: it has {len(given)} columns, and its query has {len(names)}")
    twice = sorted({name for name in given if [other.lower() for other in given].count(name.lower()) > 1})
    if twice:
        raise InvalidRequestError(
            f"Cannot {what}: two columns have the name {twice[0]}", hint="Give the columns of the query other names."
        )
    return given


def _create_view(run: Run) -> pa.Table:
    tree, lake = run.statement.tree, run.lake
    name = run.name(tree.this)
    what = f"create the view {format_name(name)}"
    hints: dict[str, str | None] = {"properties": "lake.create_view(name, sql, properties={…}) takes properties."}
    check_parts(tree, dict.fromkeys(("this", "kind", "exists", "expression", "replace")) | hints, what)
    if tree.find(exp.Placeholder) is not None:
        refuse(what, "a parameter", "Write the value.")
    if lake.table_exists(name):
        raise TableAlreadyExistsError(f"Cannot {what}: there is a table of that name")
    if tree.args.get("exists") and lake.view_exists(name):
        return pa.table({})
    text = _query_after_as(run.statement).strip()
    schema = run.run_query(text, {}, {}).arrow_schema
    names = _names(tree.this, schema.names, what)
    lake.create_view(
        name,
        text,
        schema=renamed_schema(schema, names),
        dialect="duckdb",
        default_namespace=name[:-1],
        replaces=bool(tree.args.get("replace")),
        exist_ok=bool(tree.args.get("exists")),
        query_columns=schema.names,
    )
    return pa.table({})


def drop(run: Run) -> pa.Table:
    """Drop a namespace, a table or a view."""
    tree, lake = run.statement.tree, run.lake
    entity = str(tree.args["kind"]).upper()
    what = f"drop the {entity.lower()}"
    hints: dict[str, str | None] = {
        "cascade": "Drop what is inside first.",
        "purge": "lake.drop_table(name, purge=True) deletes the table's files.",
    }
    check_parts(tree, dict.fromkeys(("tables", "kind", "exists", "restrict")) | hints, what)
    if len(tree.args["tables"]) != 1:
        refuse(what, "a list of names", "Drop them one by one.")
    node = tree.args["tables"][0]
    try:
        if entity == "SCHEMA":
            lake.drop_namespace(_namespace(run, node))
        elif entity == "TABLE":
            lake.drop_table(run.name(node))
        elif entity == "VIEW":
            lake.drop_view(run.name(node))
        else:
            refuse("run the statement", f"DROP {entity}")
    except (NamespaceNotFoundError, TableNotFoundError, ViewNotFoundError):
        if not tree.args.get("exists"):
            raise
    return pa.table({})


def alter(run: Run) -> pa.Table:
    """Change the columns of a table, or rename a table or a view."""
    tree = run.statement.tree
    name = run.name(tree.this)
    entity = str(tree.args["kind"]).upper()
    what = f"alter {format_name(name)}"
    check_parts(tree, dict.fromkeys(("this", "kind", "actions")), what)
    if len(tree.args["actions"]) != 1:
        refuse(what, "more than one change", "Use t.update_schema(), which commits several changes at once.")
    action = tree.args["actions"][0]
    if isinstance(action, exp.AlterRename) and entity in ("TABLE", "VIEW"):
        new_parts = name_parts(action.this)
        new_name = (*name[:-1], *new_parts) if len(new_parts) == 1 else lake_name(new_parts, run.lake.catalog.name)
        (run.lake.rename_table if entity == "TABLE" else run.lake.rename_view)(name, new_name)
        return pa.table({})
    if entity != "TABLE":
        refuse(what, f"this change of a {entity.lower()}", "View.replace(…) defines a view anew.")
    target = run.target(tree.this, what)
    with target.table.update_schema(case_sensitive=False) as update:
        _change_columns(action, update, target.table.schema, what)
    return pa.table({})


def _change_columns(action: exp.Expr, update: SchemaUpdate, schema: Schema, what: str) -> None:
    if isinstance(action, exp.ColumnDef):
        _add_column(action, update, schema, what)
    elif isinstance(action, exp.Drop) and str(action.args.get("kind")).upper() == "COLUMN":
        check_parts(action, dict.fromkeys(("tables", "kind", "exists", "restrict")), what)
        path = _path(action.args["tables"][0])
        if not action.args.get("exists") or schema.find_field(".".join(path), case_sensitive=False):
            update.drop_column(path)
    elif isinstance(action, exp.RenameColumn):
        update.rename_column(_path(action.this), action.args["to"].name)
    elif isinstance(action, exp.AlterColumn):
        hint = "t.update_schema() has the changes of columns; t.update({…}) computes new values."
        check_parts(action, {**dict.fromkeys(("this", "dtype", "drop", "allow_null")), "using": hint}, what)
        if action.args.get("dtype") is not None:
            update.set_type((action.this.name,), column_type(action.args["dtype"], what))
        elif action.args.get("allow_null") and action.args.get("drop"):
            update.make_optional((action.this.name,))
        else:
            refuse(what, sql_of(action), hint)
    else:
        way = "t.update_schema(), t.update_spec(), t.set_sort_order(…) and t.set_properties(…) have the changes."
        refuse(what, sql_of(action), way)


def _add_column(column: exp.ColumnDef, update: SchemaUpdate, schema: Schema, what: str) -> None:
    if column.args.get("exists") and schema.find_field(column.name, case_sensitive=False):
        return
    default = None
    for constraint in column.args.get("constraints") or ():
        if not isinstance(constraint.kind, exp.DefaultColumnConstraint):
            refuse(what, f"{sql_of(constraint)} of a new column", "Use t.update_schema().")
        made = Translator(what, {}, {}, {}).translate(constraint.kind.this)
        if not made.is_literal:
            refuse(what, "a default that is not a literal", "Add the column, then update it.")
        default = made.literal
    update.add_column((column.name,), column_type(column.args["kind"], what), default=default)


def _path(node: exp.Expr) -> tuple[str, ...]:
    return tuple(step.name for step in node.parts) if isinstance(node, exp.Column) else (node.name,)
