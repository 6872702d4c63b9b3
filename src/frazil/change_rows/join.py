"""The condition of a merge, split into join keys, a filter for files, and a remaining test.

    target.id = source.id            a key: joins, and prunes
    target.day >= '2024-01-01'       prunes, and is tested on pairs
    target.n < source.n              is tested on pairs

Without keys every row of the table is paired with every row of the source, in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.change_rows.change_rows import LocalChange, Places
from frazil.change_rows.key_filter import KeyValues, ValuesHere, filter_of, is_usable_key, unit_of
from frazil.change_rows.key_index import KeyIndex
from frazil.change_rows.new_values import converted
from frazil.change_rows.source_rows import SourceRows
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import SOURCE, TARGET, Compiled, Compiler, Rows, find_name, mask_of
from frazil.evaluate.condition import Session, pruning_of, table_columns
from frazil.expr.expressions import Call, Expression, Name, names_of
from frazil.expr.extract import conjuncts_of
from frazil.expr.parse import parse_expression
from frazil.expr.predicates import FALSE, TRUE, Predicate, all_of
from frazil.scan.tasks import FileScanTask
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.types import NestedField

_ROWS_AT_ONCE = 1 << 18
_MOST_ROWS_AT_ONCE = 1 << 22
_PAIRS_AT_ONCE = 1 << 20
_EXACT_DOUBLES = 2.0**53
_MOST_DECIMALS = 1 << 17


@dataclass(frozen=True, slots=True)
class JoinKey:
    """Two expressions whose values must be equal, one for each side, and the table's column if it is a plain one."""

    target: Compiled
    source: Compiled
    is_null_safe: bool
    field: NestedField | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """The match of table rows and source rows: keys, and a test of pairs, or None if the keys suffice."""

    keys: tuple[JoinKey, ...]
    test: Compiled | None
    compiler: Compiler
    prune: Predicate

    def used(self, side: str) -> list[str]:
        """Return the columns used from one side."""
        return sorted(name for used_side, name in self.compiler.used if used_side == side)


def read_join(on: Any, change: LocalChange, source: SourceRows, session: Session) -> Join:
    """Analyse the condition of a merge; refuse expressions that only Spark supports."""
    if not isinstance(on, str):
        raise t.left_to_spark(f"the condition of ON is a {type(on).__name__}, not text")
    compiler = Compiler({TARGET: table_columns(change.schema), SOURCE: source.columns}, session.now_us)
    parsed = parse_expression(on, "the condition of ON")
    compiler.condition(parsed, "the condition of ON")
    keys: list[JoinKey] = []
    rest: list[Expression] = []
    for conjunct in conjuncts_of(parsed):
        key = _find_key(conjunct, compiler, change)
        if key is not None:
            keys.append(key)
        else:
            rest.append(conjunct)
    remaining = rest[0] if len(rest) == 1 else Call("and", tuple(rest))
    test = compiler.condition(remaining, "the condition of ON") if rest else None
    session.check(compiler)
    prune = all_of(
        pruning_of(parsed, change.schema, session), _prune(keys, source, change.loaded.metadata.default_spec, compiler)
    )
    return Join(tuple(keys), test, compiler, prune)


def _find_key(expression: Expression, compiler: Compiler, change: LocalChange) -> JoinKey | None:
    if not isinstance(expression, Call) or expression.name not in ("=", "<=>"):
        return None
    sides = [{compiler.side_of(name) for name in names_of(argument)} for argument in expression.arguments]
    if sides not in ([{SOURCE}, {TARGET}], [{TARGET}, {SOURCE}]):
        return None
    first, second = expression.arguments
    if sides[0] == {SOURCE}:
        first, second = second, first
    target_side, source_side = compiler.unify([compiler.compile(first), compiler.compile(second)])
    return JoinKey(
        target_side, source_side, is_null_safe=expression.name == "<=>", field=_plain_column(first, compiler, change)
    )


def _plain_column(expression: Expression, compiler: Compiler, change: LocalChange) -> NestedField | None:
    """Return the column that an expression refers to, if its values are compared unconverted."""
    if not isinstance(expression, Name):
        return None
    match = compiler.look_up(expression)
    if match is None or match[2]:
        return None
    return change.schema.field(match[1])


def join_by_names(keys: Sequence[str], change: LocalChange, source: SourceRows, session: Session) -> Join:
    """Return the join of an upsert, by columns of the same names; null equals null."""
    table = change.loaded.name
    if isinstance(keys, str) or not keys:
        raise InvalidRequestError(f"Cannot upsert into {table}: pass the key columns as a list of names")
    target_columns = table_columns(change.schema)
    compiler = Compiler({TARGET: target_columns, SOURCE: source.columns}, session.now_us)
    keys_joined = []
    for key in keys:
        names = find_name(target_columns, key), find_name(source.columns, key)
        if None in names:
            where = "the table" if names[0] is None else "the source"
            raise FieldNotFoundError(f"Cannot upsert into {table}: {where} has no column {key!r}")
        keys_joined.append(_named_key(str(names[0]), str(names[1]), compiler, change))
    session.check(compiler)
    return Join(
        tuple(keys_joined), None, compiler, _prune(keys_joined, source, change.loaded.metadata.default_spec, compiler)
    )


def _named_key(target_name: str, source_name: str, compiler: Compiler, change: LocalChange) -> JoinKey:
    field = change.schema.field(target_name)
    left, right = (
        compiler.compile(Name((side, name))) for side, name in ((TARGET, target_name), (SOURCE, source_name))
    )
    if t.is_computed(left.data_type) and t.is_computed(right.data_type):
        left, right = compiler.unify([left, right])
        return JoinKey(left, right, is_null_safe=True, field=field)
    if left.data_type.num_fields:
        raise t.left_to_spark(f"the key {target_name} is nested")
    # A type without computations, such as uuid: the source's values are converted to those of the column.
    make = converted(right, field.field_type, compiler, target_name)
    source_value = Compiled(to_arrow_type(field.field_type, with_ids=False), make)
    return JoinKey(left, source_value, is_null_safe=True, field=field)


def _prune(keys: Sequence[JoinKey], source: SourceRows, spec: PartitionSpec, compiler: Compiler) -> Predicate:
    """Return a filter that holds for all rows of the table that match a row of the source."""
    if source.count == 0:
        return FALSE
    filters: list[Predicate] = [TRUE]
    used = sorted(name for side, name in compiler.used if side == SOURCE)
    for key in keys:
        field = key.field
        if field is None or not is_usable_key(field):
            continue
        values = _comparable_values(key, key.source.array(Rows(source.take(used), source.count)))
        if values is None:
            continue
        times: list[tuple[int, KeyValues]] = []
        for partition_field in spec.fields_of_source(field.field_id):
            unit = unit_of(partition_field.transform, field)
            if unit is not None:
                numbers = np.floor_divide(values.drop_null().cast(pa.int64()).to_numpy(), unit)
                times.append((unit, ValuesHere(pa.array(np.unique(numbers)))))
        plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
        filters.append(filter_of(field.name, ValuesHere(plain), times, is_null_safe=key.is_null_safe))
    return all_of(*filters)


def _comparable_values(key: JoinKey, values: pa.Array) -> pa.Array | None:
    """Map source values to the table values they equal, or None if that is undecidable."""
    assert key.field is not None
    want, have = to_arrow_type(key.field.field_type, with_ids=False), values.type
    if have == want or (t.is_integer(have) and t.is_integer(want)):
        return values
    if pa.types.is_decimal(have):
        return values if pa.types.is_decimal(want) else _whole_decimals(values) if t.is_integer(want) else None
    return _whole_doubles(values) if have == t.DOUBLE and t.is_integer(want) else None


def _whole_doubles(values: pa.Array) -> pa.Array | None:
    """Return the integers among doubles, the only ones equal to integers; None if several integers equal one double."""
    present = values.drop_null().to_numpy()
    finite = present[np.isfinite(present)]
    if (np.abs(finite) >= _EXACT_DOUBLES).any():
        return None
    return _with_null(finite[finite == np.floor(finite)].astype(np.int64), values)


def _whole_decimals(values: pa.Array) -> pa.Array | None:
    """Return the 64-bit integers among decimals, the only ones equal to integers; None if there are too many."""
    present = pc.unique(values.drop_null())
    if len(present) > _MOST_DECIMALS:
        return None
    integers = [int(value) for value in present.to_pylist() if value == value.to_integral_value()]
    return _with_null(np.array([number for number in integers if -(2**63) <= number < 2**63], np.int64), values)


def _with_null(integers: Places, values: pa.Array) -> pa.Array:
    array = pa.array(integers)
    return pa.concat_arrays([array, pa.nulls(1, array.type)]) if values.null_count else array


class Matcher:
    """Finds the matching pairs of rows; the source's keys are in memory, rows of the table are streamed."""

    def __init__(self, join: Join, change: LocalChange, source: SourceRows) -> None:
        self._join = join
        self._change = change
        self._source = source
        all_rows = Rows(source.take(join.used(SOURCE)), source.count)
        keys = [key.source.array(all_rows) for key in join.keys]
        safe = [key.is_null_safe for key in join.keys]
        self.index = KeyIndex(keys, source.count, are_null_safe=safe)

    def pairs(
        self, tasks: Sequence[FileScanTask], *, has_others: bool
    ) -> Iterator[tuple[FileScanTask, Places, Places]]:
        """Yield ascending positions in a file with the matching source rows; a position may occur several times.

        With `has_others`, unmatched rows are included, with -1.
        """
        columns = self._join.used(TARGET)
        pending: list[tuple[FileScanTask, pa.RecordBatch]] = []
        count = 0
        at_once = min(max(2 * self._source.count, _ROWS_AT_ONCE), _MOST_ROWS_AT_ONCE)
        if not self._join.keys or self.index.needs_no_hashing:
            at_once = 1
        for task, batch in self._change.read(tasks, columns):
            pending.append((task, batch))
            count += batch.num_rows
            if count >= at_once:
                yield from self._match(pending, columns, has_others=has_others)
                pending, count = [], 0
        if pending:
            yield from self._match(pending, columns, has_others=has_others)

    def _match(
        self, pending: Sequence[tuple[FileScanTask, pa.RecordBatch]], columns: Sequence[str], *, has_others: bool
    ) -> Iterator[tuple[FileScanTask, Places, Places]]:
        lengths = [batch.num_rows for _, batch in pending]
        columns_by_name = {
            (TARGET, name): _whole([batch.column(position) for _, batch in pending])
            for position, name in enumerate(columns)
        }
        rows = Rows(columns_by_name, sum(lengths))
        target_rows, source_rows = self._meet(rows)
        if has_others:
            is_met = np.zeros(rows.length, np.bool_)
            is_met[target_rows] = True
            others = np.flatnonzero(~is_met)
            target_rows = np.concatenate([target_rows, others])
            source_rows = np.concatenate([source_rows, np.full(len(others), -1, np.int64)])
            order = np.argsort(target_rows, kind="stable")
            target_rows, source_rows = target_rows[order], source_rows[order]
        starts = np.cumsum([0, *lengths])
        cuts = np.searchsorted(target_rows, starts)
        for index, (task, batch) in enumerate(pending):
            first, last = cuts[index], cuts[index + 1]
            if last > first:
                positions = batch.column(len(columns)).to_numpy()
                yield task, positions[target_rows[first:last] - starts[index]], source_rows[first:last]

    def _meet(self, rows: Rows) -> tuple[Places, Places]:
        if self._join.keys:
            target_rows, source_rows = self.index.find([key.target.array(rows) for key in self._join.keys], rows.length)
            return self._tested(rows, target_rows, source_rows)
        step = max(1, _PAIRS_AT_ONCE // max(self._source.count, 1))
        parts = [
            self._tested(rows, *self._all_pairs(index, min(index + step, rows.length)))
            for index in range(0, rows.length, step)
        ]
        return np.concatenate([target_rows for target_rows, _ in parts]), np.concatenate([two for _, two in parts])

    def _all_pairs(self, first: int, last: int) -> tuple[Places, Places]:
        count = self._source.count
        return np.repeat(np.arange(first, last), count), np.tile(np.arange(count), last - first)

    def _tested(self, rows: Rows, target_rows: Places, source_rows: Places) -> tuple[Places, Places]:
        test = self._join.test
        if test is None or not len(target_rows):
            return target_rows, source_rows
        masks: list[Any] = []
        for index in range(0, len(target_rows), _PAIRS_AT_ONCE):
            left, right = target_rows[index : index + _PAIRS_AT_ONCE], source_rows[index : index + _PAIRS_AT_ONCE]
            left_columns = {key: rows.column(key).take(pa.array(left)) for key in rows.keys}
            pairs = Rows(left_columns | self._source.take(self._join.used(SOURCE), right), len(left))
            masks.append(mask_of(test.array(pairs)))
        holds = np.concatenate(masks)
        return target_rows[holds], source_rows[holds]


def _whole(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def keys_of(join: Join, source: SourceRows, places: Sequence[int]) -> list[dict[str, Any]]:
    """Return the keys of rows of a source."""
    names = [name for side, name in sorted(join.compiler.used) if side == SOURCE]
    keys: list[dict[str, Any]] = source.table.select(names).take(pa.array(list(places))).to_pylist()
    return keys
