"""Statements of `lake.sql` other than queries: each becomes a call of the verb that does the same.

    insert          append, of a query that DuckDB runs          update, delete, truncate    the verbs of these names
    merge           merge, whose source is a query               create, drop, alter         statement_tables.py

Text becomes a tree in `statement_text.py`, conditions and values become the verbs' in `statement_values.py`. Nothing
runs on Spark: what this process cannot compute is refused. Each statement changes one table in one commit, under the
rules for parallel writers of the verb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from frazil.catalog.names import format_name
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FieldNotFoundError, InvalidRequestError, TableNotFoundError, UnsupportedError
from frazil.lake.sql_session import SqlSession
from frazil.lake.statement_text import Statement, check_parts, lake_name, name_parts, parse_statement, refuse, shown
from frazil.lake.table import Table
from frazil.local.condition import table_columns
from frazil.local.source_rows import normal_type
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.spec.types import Type

if TYPE_CHECKING:
    from sqlglot import exp

    from frazil.lake.lake import Lake
    from frazil.lake.statement_values import Translator


class QueryRows(Protocol):
    """The answer of a query, as far as statements need it."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""

    def to_arrow(self) -> pa.Table:
        """Return the rows."""


RunQuery = Callable[[str, Mapping[str, object], Mapping[str, object]], QueryRows]
"""Runs a query over the lake: its text, its parameters, and the caller's data by name."""


@dataclass(frozen=True)
class Run:
    """One statement over a lake, with the values and the data that were given with it."""

    lake: Lake
    statement: Statement
    run_query: RunQuery
    parameters: Mapping[str, object]
    frames: Mapping[str, object]

    def query(self, text: str) -> QueryRows:
        """Return the answer of a query in the statement, with the parameters that it names."""
        named = {token for token in parameter_names(text) if token in self.parameters}
        return self.run_query(text, {name: self.parameters[name] for name in named}, self.frames)

    def name(self, node: exp.Expr) -> tuple[str, ...]:
        """Return the name in the lake of a table or view in the statement."""
        return lake_name(name_parts(node), self.lake.catalog.name)

    def target(self, node: exp.Expr, what: str) -> Target:
        """Return the table that a statement writes to, in the state that it has now."""
        name = self.name(node)
        session = SqlSession({self.lake.catalog.name: self.lake}, self.lake.catalog.name)
        try:
            _, table, branch = session.write_target((self.lake.catalog.name, *name))
        except TableNotFoundError:
            if self.lake.view_exists(name):
                raise InvalidRequestError(
                    f"Cannot {what}: {format_name(name)} is a view", hint="Write to the tables that it reads."
                ) from None
            raise
        return Target(table, branch or MAIN_BRANCH, _aliases(node))


@dataclass(frozen=True)
class Target:
    """The table that a statement writes to, its branch, and the names that the statement has for it."""

    table: Table
    branch: str
    aliases: Sequence[tuple[str, ...]]

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """The columns that files store."""
        return table_columns(self.table.schema)

    def find(self, name: str, what: str) -> str:
        """Return the column of a name, in any case."""
        found = [field.name for field in self.table.schema.fields if field.name.lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnsupportedError(
                f"Cannot {what}: the columns {' and '.join(found)} differ only in their case", hint="Rename one."
            )
        raise FieldNotFoundError(
            f"Cannot {what}: the table has no column {name}",
            hint=f"The columns are: {', '.join(field.name for field in self.table.schema.fields)}.",
        )


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
    from sqlglot import exp

    from frazil.lake import statement_tables

    run = Run(lake, statement, run_query, parameters, frames)
    _check_parameters(run)
    handlers: dict[type[exp.Expr], Callable[[Run], pa.Table]] = {
        exp.Insert: _insert,
        exp.Update: _update,
        exp.Delete: _delete,
        exp.TruncateTable: _truncate,
        exp.Merge: _merge,
        exp.Create: statement_tables.create,
        exp.Drop: statement_tables.drop,
        exp.Alter: statement_tables.alter,
    }
    handler = handlers.get(type(statement.tree))
    if handler is None:
        first = statement.tokens[0].text.upper()
        raise UnsupportedError(
            f"Cannot run {first}: it is not a statement of lakes",
            hint="lake.sql runs queries, INSERT, UPDATE, DELETE, TRUNCATE, MERGE, CREATE, DROP and ALTER.",
        )
    return handler(run)


def parameter_names(text: str) -> list[str]:
    """Return the names of the parameters in a text."""
    from sqlglot import Dialect, TokenType

    tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    return [
        following.text
        for token, following in pairwise(tokens)
        if token.token_type == TokenType.PARAMETER and token.end + 1 == following.start
    ]


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
    from sqlglot import exp

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
        return _counted(target.table.append(_no_columns(1), branch=target.branch), "inserted")
    for value in tree.expression.find_all(exp.Column, exp.Var) if isinstance(tree.expression, exp.Values) else ():
        if _is_default(value):
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
    return _counted(target.table.append(renamed(rows.to_reader(), columns), branch=target.branch), "inserted")


def _inserted_query(statement: Statement, tree: exp.Expr) -> str:
    """Return the text of the query whose rows are inserted, with the WITH before INSERT."""
    from sqlglot import exp

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
    shown = [f"cast({name} as {to}) as {name}" if to else name for name, to in zip(names, casts, strict=True)]
    return f"select {', '.join(shown)} from (\n{text}\n) as q({', '.join(names)})"


def _cast_of(have: pa.DataType, column: Type) -> str | None:
    """Return the type that DuckDB casts values to before they are written, None for what `append` converts or refuses.

    Casts that round are left to `append`, which refuses them.
    """
    from frazil.lake.statement_types import duckdb_type

    want, name, kinds = to_arrow_type(column, with_ids=False), duckdb_type(column), pa.types
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


def renamed_schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return columns with other names, which may be null; what DuckDB knows to be null only is an INTEGER."""
    return pa.schema(
        [
            pa.field(name, pa.int32() if pa.types.is_null(field.type) else field.type)
            for name, field in zip(names, schema, strict=True)
        ]
    )


def renamed(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    """Return a stream of rows whose columns have other names."""
    schema = renamed_schema(reader.schema, names)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


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
    translator = _translator(run, what, target)
    values = _assignments(tree.expressions, target, translator, what)
    where = tree.args.get("where")
    condition = "true" if where is None else translator.condition(where.this)
    made = target.table.update(values, where=condition, branch=target.branch, engine="local")
    return _counted(made, "updated")


def _delete(run: Run) -> pa.Table:
    tree = run.statement.tree
    what = f"delete from {format_name(name_parts(tree.this))}"
    hints: dict[str, str | None] = {
        "using": "Use MERGE … WHEN MATCHED THEN DELETE, or t.merge(…).when_matched().delete().execute().",
        "returning": "Query the rows first.",
    }
    check_parts(tree, dict.fromkeys(("this", "where")) | hints, what)
    target = run.target(tree.this, what)
    where = tree.args.get("where")
    condition = "true" if where is None else _translator(run, what, target).condition(where.this)
    made = target.table.delete(condition, branch=target.branch, engine="local")
    return _counted(made, "deleted")


def _truncate(run: Run) -> pa.Table:
    tree = run.statement.tree
    check_parts(tree, {"expressions": None}, "truncate the table")
    if len(tree.expressions) != 1:
        refuse("truncate several tables", "a list of tables", "Truncate them one by one.")
    what = f"truncate {format_name(name_parts(tree.expressions[0]))}"
    target = run.target(tree.expressions[0], what)
    return _counted(target.table.delete("true", branch=target.branch, engine="local"), "deleted")


def _assignments(pairs: Sequence[exp.Expr], target: Target, translator: Translator, what: str) -> dict[str, str]:
    """Return the values of columns as a verb takes them."""
    from sqlglot import exp

    from frazil.lake.statement_values import quoted

    values: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, exp.EQ) or not isinstance(pair.this, exp.Column) or len(pair.this.parts) != 1:
            refuse(what, f"SET {shown(pair)}", "Write SET column = value, one for each column.")
        column = target.find(pair.this.name, what)
        if _is_default(pair.expression):
            refuse(what, "SET … = DEFAULT", "Write the value.")
        if quoted(column) in values:
            raise InvalidRequestError(f"Cannot {what}: the column {column} is set twice")
        values[quoted(column)] = translator.assigned(pair.expression, column, target.columns[column])
    return values


def _is_default(node: exp.Expr) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Var):
        return node.name.lower() == "default"
    return (
        isinstance(node, exp.Column)
        and len(node.parts) == 1
        and node.name.lower() == "default"
        and not node.this.args.get("quoted")
    )


def _translator(run: Run, what: str, target: Target) -> Translator:
    from frazil.lake.statement_values import TARGET, Translator

    return Translator(what, {TARGET: target.columns}, {TARGET: target.aliases}, run.parameters)


def _aliases(node: exp.Expr) -> list[tuple[str, ...]]:
    """Return the names that expressions may have for a table: its alias, else its name with and without namespaces."""
    from sqlglot import exp

    if node.alias:
        return [(node.alias.lower(),)]
    if not isinstance(node, exp.Table):
        return []
    parts = tuple(part.name.lower() for part in node.parts)
    return [parts[index:] for index in range(len(parts))]


# Merge


def _merge(run: Run) -> pa.Table:
    from frazil.lake.statement_values import SOURCE, TARGET, Translator

    tree = run.statement.tree
    what = f"merge into {format_name(name_parts(tree.this))}"
    hints: dict[str, str | None] = {"returning": "Query the table afterwards."}
    check_parts(tree, dict.fromkeys(("this", "using", "on", "using_cond", "whens")) | hints, what)
    target = run.target(tree.this, what)
    source = _source(run, tree)
    columns = {field.name: field.type for field in source.schema}
    wanted = {name.lower(): data_type for name, data_type in target.columns.items()}
    columns = {name: normal_type(data_type, wanted.get(name.lower())) for name, data_type in columns.items()}
    sides = {TARGET: target.columns, SOURCE: columns}
    aliases = {TARGET: target.aliases, SOURCE: _aliases(tree.args["using"])}
    translator = Translator(what, sides, aliases, run.parameters, has_prefix=True)
    merge = target.table.merge(source, on=_join(tree, translator), branch=target.branch, engine="local")
    whens = tree.args["whens"].expressions
    for index, when in enumerate(whens):
        kind = "matched" if when.args["matched"] else "by_source" if when.args["source"] else "not_matched"
        seen = {"matched": (TARGET, SOURCE), "by_source": (TARGET,), "not_matched": (SOURCE,)}[kind]
        clause = replace(translator, sides={side: sides[side] for side in seen})
        check_parts(when, dict.fromkeys(("matched", "source", "condition", "then")), what)
        condition = when.args.get("condition")
        text = None if condition is None else clause.condition(condition)
        action = _action(when.args["then"])
        if action == "do nothing":
            if any(_kind_of(later) == _kind_of(when) for later in whens[index + 1 :]):
                refuse(what, "DO NOTHING before another clause", "Add its condition, negated, to the later clauses.")
            continue
        if kind == "not_matched":
            if action != "insert":
                refuse(what, f"WHEN NOT MATCHED THEN {action.upper()}")
            values = _inserted_values(when.args["then"], target, clause, columns, what)
            merge.when_not_matched(text).insert(values)
            continue
        own = merge.when_matched(text) if kind == "matched" else merge.when_not_matched_by_source(text)
        if action == "delete":
            own.delete()
        elif action == "update":
            own.update(_updated_values(when.args["then"], target, clause, columns, what))
        else:
            refuse(what, f"WHEN {kind.replace('_', ' ').upper()} THEN {action.upper()}")
    return _counted(merge.execute(), "updated", "deleted", "inserted")


def _kind_of(when: exp.Expr) -> tuple[bool, bool]:
    return bool(when.args["matched"]), bool(when.args["source"])


def _action(then: exp.Expr) -> str:
    from sqlglot import exp

    if isinstance(then, exp.Var):
        return then.name.lower()
    return "update" if isinstance(then, exp.Update) else "insert" if isinstance(then, exp.Insert) else shown(then)


def _source(run: Run, tree: exp.Expr) -> pa.Table:
    """Return the rows of the source; it runs once."""
    statement = run.statement
    using = statement.find("using")
    assert using is not None
    end = statement.find("using" if tree.args.get("using_cond") else "on", start=using + 1)
    assert end is not None
    return run.query(f"select * from {statement.between(using + 1, end)}").to_arrow()


def _join(tree: exp.Expr, translator: Translator) -> str:
    from sqlglot import exp

    if not tree.args.get("using_cond"):
        return translator.condition(tree.args["on"])
    sides = [replace(translator, sides={side: columns}) for side, columns in translator.sides.items()]
    tests = []
    for identifier in tree.args["using_cond"]:
        column = exp.Column(this=identifier.copy())
        tests.append(translator.equal(*(side.translate(column) for side in sides)))
    return " and ".join(tests)


def _updated_values(
    then: exp.Expr, target: Target, translator: Translator, source: Mapping[str, Any], what: str
) -> dict[str, str]:
    from sqlglot import exp

    check_parts(then, {"expressions": None}, what)
    pairs = then.expressions
    if not pairs or (len(pairs) == 1 and isinstance(pairs[0], exp.Star)):
        return _all_values(target, translator, source, what)
    return _assignments(pairs, target, translator, what)


def _inserted_values(
    then: exp.Expr, target: Target, translator: Translator, source: Mapping[str, Any], what: str
) -> dict[str, str]:
    from sqlglot import exp

    check_parts(then, dict.fromkeys(("this", "expression")), what)
    values = then.args.get("expression")
    if not values:
        if then.this is not None and not isinstance(then.this, exp.Star):
            refuse(what, "INSERT of columns without VALUES", "Write INSERT (a, b) VALUES (s.a, s.b).")
        return _all_values(target, translator, source, what)
    columns = (
        then.this.expressions
        if isinstance(then.this, exp.Tuple)
        else [_column(field.name) for field in target.table.schema.fields]
    )
    if len(columns) != len(values.expressions):
        raise InvalidRequestError(
            f"Cannot {what}: INSERT has {len(columns)} columns and {len(values.expressions)} values"
        )
    pairs = [
        exp.EQ(this=column.copy(), expression=value.copy())
        for column, value in zip(columns, values.expressions, strict=True)
        if not _is_default(value)
    ]
    return _assignments(pairs, target, translator, what)


def _all_values(target: Target, translator: Translator, source: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return each column's value from the source; refuse a source whose columns have other names, or another order."""
    from sqlglot import exp

    from frazil.lake.statement_values import SOURCE

    own = [field.name for field in target.table.schema.fields]
    if [name.lower() for name in own] != [name.lower() for name in source]:
        refuse(
            what,
            "a clause for all columns, whose source has other columns, or another order,",
            f"The columns of the table are: {', '.join(own)}. Name the columns in the clause.",
        )
    pairs = [exp.EQ(this=_column(name), expression=_column(name)) for name in own]
    return _assignments(pairs, target, replace(translator, sides={SOURCE: source}), what)


def _column(name: str) -> exp.Expr:
    from sqlglot import exp

    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def _counted(snapshot: Snapshot | None, *kinds: str) -> pa.Table:
    """Return how many rows a snapshot changed, as a table of one row."""
    columns = {"num_affected_rows": 0 if snapshot is None else snapshot.num_affected_rows}
    for kind in kinds:
        count = 0 if snapshot is None else getattr(snapshot, f"num_{kind}_rows")
        columns[f"num_{kind}_rows"] = 0 if count is None and len(kinds) > 1 else count
    return pa.table({name: pa.array([count], pa.int64()) for name, count in columns.items()})
