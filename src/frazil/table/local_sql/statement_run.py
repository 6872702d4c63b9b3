"""What the statements of `lake.sql` share: the data given with a statement, its table, its values, its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import pyarrow as pa
from sqlglot import Dialect, TokenType, exp

from frazil.catalog.names import format_name
from frazil.errors import FieldNotFoundError, InvalidRequestError, TableNotFoundError, UnsupportedError
from frazil.evaluate.condition import table_columns
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.table.lake import Lake
from frazil.table.local_sql.statement_text import Statement, lake_name, name_parts, refuse, sql_of
from frazil.table.local_sql.statement_values import TARGET, Translator, quoted
from frazil.table.sql_session import SqlSession
from frazil.table.table import Table


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
        return Target(table, branch or MAIN_BRANCH, aliases_of(node))


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


def parameter_names(text: str) -> list[str]:
    """Return the names of the parameters in a text."""
    tokens = Dialect.get_or_raise("duckdb").tokenize(text)
    return [
        following.text
        for token, following in pairwise(tokens)
        if token.token_type == TokenType.PARAMETER and token.end + 1 == following.start
    ]


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


def assignments(pairs: Sequence[exp.Expr], target: Target, translator: Translator, what: str) -> dict[str, str]:
    """Return the values of columns as a verb takes them."""
    values: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, exp.EQ) or not isinstance(pair.this, exp.Column) or len(pair.this.parts) != 1:
            refuse(what, f"SET {sql_of(pair)}", "Write SET column = value, one for each column.")
        column = target.find(pair.this.name, what)
        if is_default(pair.expression):
            refuse(what, "SET … = DEFAULT", "Write the value.")
        if quoted(column) in values:
            raise InvalidRequestError(f"Cannot {what}: the column {column} is set twice")
        values[quoted(column)] = translator.assigned(pair.expression, column, target.columns[column])
    return values


def is_default(node: exp.Expr) -> bool:
    """Return whether a value is the word DEFAULT."""
    if isinstance(node, exp.Var):
        return node.name.lower() == "default"
    return (
        isinstance(node, exp.Column)
        and len(node.parts) == 1
        and node.name.lower() == "default"
        and not node.this.args.get("quoted")
    )


def translator_of(run: Run, what: str, target: Target) -> Translator:
    """Return the translator of expressions over the columns of a table."""
    return Translator(what, {TARGET: target.columns}, {TARGET: target.aliases}, run.parameters)


def aliases_of(node: exp.Expr) -> list[tuple[str, ...]]:
    """Return the names that expressions may have for a table: its alias, else its name with and without namespaces."""
    if node.alias:
        return [(node.alias.lower(),)]
    if not isinstance(node, exp.Table):
        return []
    parts = tuple(step.name.lower() for step in node.parts)
    return [parts[index:] for index in range(len(parts))]


def counted(snapshot: Snapshot | None, *kinds: str) -> pa.Table:
    """Return how many rows a snapshot changed, as a table of one row."""
    columns = {"num_affected_rows": 0 if snapshot is None else snapshot.num_affected_rows}
    for count_name in kinds:
        count = 0 if snapshot is None else getattr(snapshot, f"num_{count_name}_rows")
        columns[f"num_{count_name}_rows"] = 0 if count is None and len(kinds) > 1 else count
    return pa.table({name: pa.array([count], pa.int64()) for name, count in columns.items()})
