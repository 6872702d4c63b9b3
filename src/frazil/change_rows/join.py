"""The condition of a merge: keys that both sides must have in common, what they say of files, what is left to test.

    target.id = source.id            a key: joins, and prunes
    target.day >= '2024-01-01'       prunes, and is tested on pairs
    target.n < source.n              is tested on pairs

Without a key every row of the table is paired with every row of the source, some at a time.
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
    """Two computations whose values must be equal, one for each side, and the column of the table, if it is one."""

    target: Compiled
    source: Compiled
    is_null_safe: bool
    field: NestedField | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """How rows of the table and of the source meet: keys, and a test of pairs, None where keys are all."""

    keys: tuple[JoinKey, ...]
    test: Compiled | None
    compiler: Compiler
    prune: Predicate

    def used(self, side: str) -> list[str]:
        """Return the columns of a side that are read."""
        return sorted(name for used_side, name in self.compiler.used if used_side == side)


def read_join(on: Any, change: LocalChange, source: SourceRows, session: Session) -> Join:
    """Return what the condition of a merge means; refuse what only Spark knows."""
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
    left = rest[0] if len(rest) == 1 else Call("and", tuple(rest))
    test = compiler.condition(left, "the condition of ON") if rest else None
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
    ours, theirs = compiler.unify([compiler.compile(first), compiler.compile(second)])
    return JoinKey(ours, theirs, is_null_safe=expression.name == "<=>", field=_plain_column(first, compiler, change))


def _plain_column(expression: Expression, compiler: Compiler, change: LocalChange) -> NestedField | None:
    """Return the column that an expression is, where its values are compared as they are."""
    if not isinstance(expression, Name):
        return None
    found = compiler.look_up(expression)
    if found is None or found[2]:
        return None
    return change.schema.field(found[1])


def join_by_names(keys: Sequence[str], change: LocalChange, source: SourceRows, session: Session) -> Join:
    """Return the join of an upsert, by columns of the same names; null is a key like any other."""
    table = change.loaded.name
    if isinstance(keys, str) or not keys:
        raise InvalidRequestError(f"Cannot upsert into {table}: give the key columns as a list of names")
    ours = table_columns(change.schema)
    compiler = Compiler({TARGET: ours, SOURCE: source.columns}, session.now_us)
    made = []
    for key in keys:
        names = find_name(ours, key), find_name(source.columns, key)
        if None in names:
            where = "the table" if names[0] is None else "the source"
            raise FieldNotFoundError(f"Cannot upsert into {table}: {where} has no column {key!r}")
        made.append(_named_key(str(names[0]), str(names[1]), compiler, change))
    session.check(compiler)
    return Join(tuple(made), None, compiler, _prune(made, source, change.loaded.metadata.default_spec, compiler))


def _named_key(ours: str, theirs: str, compiler: Compiler, change: LocalChange) -> JoinKey:
    field = change.schema.field(ours)
    left, right = (compiler.compile(Name((side, name))) for side, name in ((TARGET, ours), (SOURCE, theirs)))
    if t.is_computed(left.data_type) and t.is_computed(right.data_type):
        left, right = compiler.unify([left, right])
        return JoinKey(left, right, is_null_safe=True, field=field)
    if left.data_type.num_fields:
        raise t.left_to_spark(f"the key {ours} is nested")
    # A type of which values are not computed with here, as a uuid: the source's values become those of the column.
    make = converted(right, field.field_type, compiler, ours)
    made = Compiled(to_arrow_type(field.field_type, with_ids=False), make)
    return JoinKey(left, made, is_null_safe=True, field=field)


def _prune(keys: Sequence[JoinKey], source: SourceRows, spec: PartitionSpec, compiler: Compiler) -> Predicate:
    """Return what every row of the table which meets a row of the source fulfils."""
    if source.count == 0:
        return FALSE
    found: list[Predicate] = [TRUE]
    used = sorted(name for side, name in compiler.used if side == SOURCE)
    for key in keys:
        field = key.field
        if field is None or not is_usable_key(field):
            continue
        values = _told_values(key, key.source.array(Rows(source.take(used), source.count)))
        if values is None:
            continue
        times: list[tuple[int, KeyValues]] = []
        for partition_field in spec.fields_of_source(field.field_id):
            unit = unit_of(partition_field.transform, field)
            if unit is not None:
                numbers = np.floor_divide(values.drop_null().cast(pa.int64()).to_numpy(), unit)
                times.append((unit, ValuesHere(pa.array(np.unique(numbers)))))
        plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
        found.append(filter_of(field.name, ValuesHere(plain), times, is_null_safe=key.is_null_safe))
    return all_of(*found)


def _told_values(key: JoinKey, values: pa.Array) -> pa.Array | None:
    """Return the values of a column of the table that values of a source equal; None where those do not say."""
    assert key.field is not None
    want, have = to_arrow_type(key.field.field_type, with_ids=False), values.type
    if have == want or (t.is_integer(have) and t.is_integer(want)):
        return values
    if pa.types.is_decimal(have):
        return values if pa.types.is_decimal(want) else _whole_decimals(values) if t.is_integer(want) else None
    return _whole_doubles(values) if have == t.DOUBLE and t.is_integer(want) else None


def _whole_doubles(values: pa.Array) -> pa.Array | None:
    """Return the whole numbers among doubles, which alone equal a whole number; None where several would equal one."""
    known = values.drop_null().to_numpy()
    finite = known[np.isfinite(known)]
    if (np.abs(finite) >= _EXACT_DOUBLES).any():
        return None
    return _with_null(finite[finite == np.floor(finite)].astype(np.int64), values)


def _whole_decimals(values: pa.Array) -> pa.Array | None:
    """Return the longs among decimals, which alone equal a whole number; None where they are too many to look at."""
    known = pc.unique(values.drop_null())
    if len(known) > _MOST_DECIMALS:
        return None
    whole = [int(value) for value in known.to_pylist() if value == value.to_integral_value()]
    return _with_null(np.array([number for number in whole if -(2**63) <= number < 2**63], np.int64), values)


def _with_null(found: Places, values: pa.Array) -> pa.Array:
    made = pa.array(found)
    return pa.concat_arrays([made, pa.nulls(1, made.type)]) if values.null_count else made


class Matcher:
    """Finds the pairs of rows that meet; the source's keys are in memory, rows of the table come by."""

    def __init__(self, join: Join, change: LocalChange, source: SourceRows) -> None:
        self._join = join
        self._change = change
        self._source = source
        whole = Rows(source.take(join.used(SOURCE)), source.count)
        keys = [key.source.array(whole) for key in join.keys]
        safe = [key.is_null_safe for key in join.keys]
        self.index = KeyIndex(keys, source.count, are_null_safe=safe)

    def pairs(
        self, tasks: Sequence[FileScanTask], *, has_others: bool
    ) -> Iterator[tuple[FileScanTask, Places, Places]]:
        """Yield positions in a file, ascending, with the rows of the source that they meet; a position may come twice.

        With `has_others`, rows that meet none come too, with -1.
        """
        columns = self._join.used(TARGET)
        held: list[tuple[FileScanTask, pa.RecordBatch]] = []
        count = 0
        at_once = min(max(2 * self._source.count, _ROWS_AT_ONCE), _MOST_ROWS_AT_ONCE)
        if not self._join.keys or self.index.needs_no_hashing:
            at_once = 1
        for task, batch in self._change.read(tasks, columns):
            held.append((task, batch))
            count += batch.num_rows
            if count >= at_once:
                yield from self._match(held, columns, has_others=has_others)
                held, count = [], 0
        if held:
            yield from self._match(held, columns, has_others=has_others)

    def _match(
        self, held: Sequence[tuple[FileScanTask, pa.RecordBatch]], columns: Sequence[str], *, has_others: bool
    ) -> Iterator[tuple[FileScanTask, Places, Places]]:
        lengths = [batch.num_rows for _, batch in held]
        own = {
            (TARGET, name): _whole([batch.column(position) for _, batch in held])
            for position, name in enumerate(columns)
        }
        rows = Rows(own, sum(lengths))
        ours, theirs = self._meet(rows)
        if has_others:
            is_met = np.zeros(rows.length, np.bool_)
            is_met[ours] = True
            others = np.flatnonzero(~is_met)
            ours = np.concatenate([ours, others])
            theirs = np.concatenate([theirs, np.full(len(others), -1, np.int64)])
            order = np.argsort(ours, kind="stable")
            ours, theirs = ours[order], theirs[order]
        starts = np.cumsum([0, *lengths])
        cuts = np.searchsorted(ours, starts)
        for index, (task, batch) in enumerate(held):
            first, last = cuts[index], cuts[index + 1]
            if last > first:
                positions = batch.column(len(columns)).to_numpy()
                yield task, positions[ours[first:last] - starts[index]], theirs[first:last]

    def _meet(self, rows: Rows) -> tuple[Places, Places]:
        if self._join.keys:
            ours, theirs = self.index.find([key.target.array(rows) for key in self._join.keys], rows.length)
            return self._tested(rows, ours, theirs)
        step = max(1, _PAIRS_AT_ONCE // max(self._source.count, 1))
        parts = [
            self._tested(rows, *self._all_pairs(index, min(index + step, rows.length)))
            for index in range(0, rows.length, step)
        ]
        return np.concatenate([ours for ours, _ in parts]), np.concatenate([two for _, two in parts])

    def _all_pairs(self, first: int, last: int) -> tuple[Places, Places]:
        count = self._source.count
        return np.repeat(np.arange(first, last), count), np.tile(np.arange(count), last - first)

    def _tested(self, rows: Rows, ours: Places, theirs: Places) -> tuple[Places, Places]:
        test = self._join.test
        if test is None or not len(ours):
            return ours, theirs
        found: list[Any] = []
        for index in range(0, len(ours), _PAIRS_AT_ONCE):
            left, right = ours[index : index + _PAIRS_AT_ONCE], theirs[index : index + _PAIRS_AT_ONCE]
            own = {key: rows.column(key).take(pa.array(left)) for key in rows.keys}
            pairs = Rows(own | self._source.take(self._join.used(SOURCE), right), len(left))
            found.append(mask_of(test.array(pairs)))
        holds = np.concatenate(found)
        return ours[holds], theirs[holds]


def _whole(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def keys_of(join: Join, source: SourceRows, places: Sequence[int]) -> list[dict[str, Any]]:
    """Return the keys of rows of a source."""
    names = [name for side, name in sorted(join.compiler.used) if side == SOURCE]
    found: list[dict[str, Any]] = source.table.select(names).take(pa.array(list(places))).to_pylist()
    return found
