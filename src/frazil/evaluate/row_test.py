"""The part of a scan's condition that only rows can decide, tested on the batches that are read.

It can be sent to executors: they compile it again. Columns that only the test reads are read beside those that are
output, and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.evaluate.compile_expression import TARGET, Compiled, Compiler, Rows, mask_of
from frazil.evaluate.condition import table_columns
from frazil.expr.expressions import Expression, Name, with_names
from frazil.expr.show_sql import show_sql
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField


@dataclass(frozen=True)
class RowTest:
    """A test of the rows of a schema; `now_us` is the time of the statement."""

    condition: Expression
    schema: Schema
    now_us: int = 0
    case_sensitive: bool = False
    is_zoned: bool = False
    """Whether the time zone of the session changes what the condition means; here it is UTC."""

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def _compiled(self) -> tuple[Compiled, tuple[str, ...]]:
        compiler = Compiler({TARGET: table_columns(self.schema)}, self.now_us, self.case_sensitive)
        compiled = compiler.condition(self.condition, "the condition")
        return compiled, tuple(sorted(name for _, name in compiler.used))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that the test reads."""
        return self._compiled[1]

    def read_schema(self, output: Schema) -> Schema:
        """Return the columns to read: those that are returned, whole where the test reads them, and others it reads."""
        tested = {field.field_id: field for field in map(self._column, self.columns)}
        passing = tuple(tested.pop(field.field_id, field) for field in output.fields)
        return Schema((*passing, *tested.values()))

    def keep(self, batch: pa.RecordBatch, read: Schema, output: Schema) -> pa.RecordBatch:
        """Return the rows of a batch that pass, with the columns that are returned."""
        test, names = self._compiled
        places = {field.field_id: index for index, field in enumerate(read.fields)}
        columns = {(TARGET, name): batch.column(places[self._column(name).field_id]) for name in names}
        passes = mask_of(test.array(Rows(columns, batch.num_rows)))
        own = batch.select(range(len(output.fields)))
        passing = own if passes.all() else own.filter(pa.array(passes))
        if read.fields[: len(output.fields)] == output.fields:
            return passing
        form = to_arrow_schema(output, with_ids=False)
        pairs = zip(passing.columns, form, strict=True)
        arrays = [column if column.type == field.type else column.cast(field.type) for column, field in pairs]
        return pa.RecordBatch.from_arrays(arrays, schema=form)

    def _column(self, name: str) -> NestedField:
        return next(field for field in self.schema.fields if field.name == name)

    def sql(self) -> str:
        """Return the test as Spark SQL over the columns of the table."""

        def own(name: Name) -> Name:
            is_qualified = len(name.parts) > 1 and name.parts[0].lower() == TARGET
            names = {field.name.lower() for field in self.schema.fields}
            return Name(name.parts[1:]) if is_qualified and name.parts[1].lower() in names else name

        return show_sql(with_names(self.condition, own), quotes_names=True)
