"""Statements of `lake.sql` other than queries: each becomes a call of the verb that does the same.

    insert      append, of a query that DuckDB runs     update, delete, truncate    the verbs of these names
    merge       merge_statement.py                      create, drop, alter         statement_tables.py

Text becomes a tree in `statement_text.py`, conditions and values become the verbs' in `statement_values.py`. Nothing
runs on Spark: what this process cannot compute is refused. Each statement changes one table in one commit, under the
rules for parallel writers of the verb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from frazil.catalog.names import format_name
from frazil.change_rows.source_rows import normal_type
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.query.column_types import duckdb_type
from frazil.spec.types import ListType, Type
from frazil.table.lake import Lake
from frazil.table.local_sql.merge_statement import merge_rows
from frazil.table.local_sql.statement_run import (
    Run,
    RunQuery,
    assignments,
    counted,
    is_default,
    parameter_names,
    renamed,
    translator_of,
)
from frazil.table.local_sql.statement_tables import alter, create, drop
from frazil.table.local_sql.statement_text import Statement, check_parts, name_parts, parse_statement, refuse


def run_statement(
    lake: Lake,
    text: str,
    *,
    run_query: RunQuery,
    parameters: Mapping[str, object],
    frames: Mapping[str, object],
) -> pa.Table:
    """Run a statement other than a query, and return how many rows it changed; of DDL, a table without columns.

    `run_query` runs the queries inside the statement, with parameters and the caller's data by name.
    """
    statement = parse_statement(text)
    run = Run(lake, statement, run_query, parameters, frames)
    _check_parameters(run)
    handlers: dict[type[exp.Expr], Callable[[Run], pa.Table]] = {
        exp.Insert: _insert,
        exp.Update: _update,
        exp.Delete: _delete,
        exp.TruncateTable: _truncate,
        exp.Merge: merge_rows,
        exp.Create: create,
        exp.Drop: drop,
        exp.Alter: alter,
    }
    handler = handlers.get(type(statement.tree))
    if handler is None:
        if any(token.text.lower() == "pivot" for token in statement.tokens):
            raise UnsupportedError(
                "Cannot run the query: it has a PIVOT whose columns are not listed",
                hint="List them: PIVOT db.t ON kind IN ('a', 'b') USING sum(n).",
            )
        first = statement.tokens[0].text.upper()
        raise UnsupportedError(
            f"Cannot run {first} here: it is neither a query nor a statement that changes tables",
            hint="lake.sql runs queries, INSERT, UPDATE, DELETE, TRUNCATE, MERGE, CREATE, DROP and ALTER.",
        )
    return handler(run)


def _check_parameters(run: Run) -> None:
    named = set(parameter_names(run.statement.text))
    for name in sorted(run.parameters.keys() - named):
        raise InvalidRequestError(
            f"Cannot use the parameter {name!r}: the statement does not name it", hint=f"Write ${name} for its value."
        )
    for name in sorted(named - run.parameters.keys()):
        raise InvalidRequestError(
            f"Cannot run the statement: the parameter ${name} has no value",
            hint=f"Give it by name: lake.sql('…', {name}=…)." if not name.isdigit() else "Write $name.",
        )


# Insert


def _insert(run: Run) -> pa.Table:
    tree = run.statement.tree
    what = f"insert into {format_name(name_parts(tree.this))}"
    key_way = "t.upsert(rows, keys=[…]) replaces rows of the same key; t.merge(…) has the other ways."
    known: dict[str, str | None] = dict.fromkeys(("this", "expression", "by_name", "with_", "default"))
    hints = {
        "conflict": key_way,
        "alternative": key_way,
        "returning": "Query the table afterwards.",
        "overwrite": "t.overwrite(rows) replaces rows.",
    }
    check_parts(tree, known | hints, what)
    target = run.target(tree.this, what)
    if tree.this.find(exp.TableAlias) is not None:
        refuse(what, "an alias of the table")
    listed = [identifier.name for identifier in tree.this.expressions] if isinstance(tree.this, exp.Schema) else None
    columns = [field.name for field in target.table.schema.fields]
    if listed is not None:
        columns = [target.find(name, what) for name in listed]
        twice = sorted({name for name in columns if columns.count(name) > 1})
        if twice:
            raise InvalidRequestError(f"Cannot {what}: the column {twice[0]} is given twice")
    if tree.args.get("default"):
        return counted(target.table.append(_no_columns(1), branch=target.branch), "inserted")
    for value in tree.expression.find_all(exp.Column, exp.Var) if isinstance(tree.expression, exp.Values) else ():
        if is_default(value):
            refuse(what, "DEFAULT among values", "Leave the column out of the list of columns.")
    text = _inserted_query(run.statement, tree)
    rows = run.query(text)
    schema = rows.arrow_schema
    if tree.args.get("by_name"):
        columns = [target.find(name, what) for name in schema.names]
    if len(schema) != len(columns):
        raise InvalidRequestError(
            f"Cannot {what}: there are {len(columns)} columns, and the query has {len(schema)}",
            hint="Name the columns: insert into db.t (a, b) …; or insert by name.",
        )
    types = {field.name: field.field_type for field in target.table.schema.fields}
    casts = [_cast_of(field.type, types[name]) for field, name in zip(schema, columns, strict=True)]
    if any(casts):
        rows = run.query(_cast_query(text, columns, casts))
    return counted(target.table.append(renamed(rows.to_reader(), columns), branch=target.branch), "inserted")


def _inserted_query(statement: Statement, tree: exp.Expr) -> str:
    """Return the text of the query whose rows are inserted, with the WITH before INSERT."""
    insert = statement.find("insert", "into")
    assert insert is not None
    index = insert + 3
    while statement.tokens[index].text == ".":
        index += 2
    if isinstance(tree.this, exp.Schema):
        while statement.tokens[index].text != ")":
            index += 1
        index += 1
    if tree.args.get("by_name"):
        index += 2
    return statement.text[: statement.tokens[insert].start] + statement.after(index)


def _cast_query(text: str, columns: Sequence[str], casts: Sequence[str | None]) -> str:
    """Return a query that casts columns of another, as DuckDB does for the columns of a table."""
    names = ['"{}"'.format(column.replace('"', '""')) for column in columns]
    columns_cast = [f"cast({name} as {to}) as {name}" if to else name for name, to in zip(names, casts, strict=True)]
    return f"select {', '.join(columns_cast)} from (\n{text}\n) as q({', '.join(names)})"


def _cast_of(have: pa.DataType, column: Type) -> str | None:
    """Return the type that DuckDB casts values to before they are written, None for what `append` converts or refuses.

    Casts that round are left to `append`, which refuses them.
    """
    want, name, kinds = to_arrow_type(column, with_ids=False), duckdb_type(column), pa.types
    if isinstance(column, ListType) and kinds.is_list(have):
        inner = _cast_of(have.value_type, column.element_type)
        return f"{inner}[]" if inner else None
    have = normal_type(have, want)
    if have == want or name is None or have.num_fields:
        return None
    if kinds.is_decimal(have):
        is_exact = kinds.is_floating(want) or have.scale == 0 or (kinds.is_decimal(want) and want.scale >= have.scale)
        return name if is_exact else None
    if kinds.is_floating(have):
        return name if kinds.is_float64(want) else None
    if kinds.is_integer(have):
        return name if kinds.is_integer(want) or kinds.is_decimal(want) or kinds.is_floating(want) else None
    is_open = kinds.is_string(have) or kinds.is_null(have) or (kinds.is_date(have) and kinds.is_timestamp(want))
    return name if is_open else None


def _no_columns(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


# Update, delete


def _update(run: Run) -> pa.Table:
    tree = run.statement.tree
    what = f"update {format_name(name_parts(tree.this))}"
    merge_way = "t.merge(lake.sql('select …'), on='target.id = source.id').when_matched().update({…}).execute()"
    hints: dict[str, str | None] = {"from_": f"Use MERGE, or {merge_way}.", "returning": "Query the table afterwards."}
    check_parts(tree, dict.fromkeys(("this", "expressions", "where")) | hints, what)
    target = run.target(tree.this, what)
    translator = translator_of(run, what, target)
    values = assignments(tree.expressions, target, translator, what)
    where = tree.args.get("where")
    condition = "true" if where is None else translator.condition(where.this)
    made = target.table.update(values, where=condition, branch=target.branch, engine="local")
    return counted(made, "updated")


def _delete(run: Run) -> pa.Table:
    tree = run.statement.tree
    what = f"delete from {format_name(name_parts(tree.this))}"
    hints: dict[str, str | None] = {
        "using": "Use MERGE … WHEN MATCHED THEN DELETE, or t.merge(…) with when_matched() and delete().",
        "returning": "Query the rows first.",
    }
    check_parts(tree, dict.fromkeys(("this", "where")) | hints, what)
    target = run.target(tree.this, what)
    where = tree.args.get("where")
    condition = "true" if where is None else translator_of(run, what, target).condition(where.this)
    made = target.table.delete(condition, branch=target.branch, engine="local")
    return counted(made, "deleted")


def _truncate(run: Run) -> pa.Table:
    tree = run.statement.tree
    check_parts(tree, {"expressions": None}, "truncate the table")
    if len(tree.expressions) != 1:
        refuse("truncate several tables", "a list of tables", "Truncate them one by one.")
    what = f"truncate {format_name(name_parts(tree.expressions[0]))}"
    target = run.target(tree.expressions[0], what)
    return counted(target.table.delete("true", branch=target.branch, engine="local"), "deleted")
