"""MERGE and UPSERT in this process: source rows are matched with table rows, and clauses decide about both.

    source      is read to the end (`source_rows.py`)
    prune       its keys select the files of the table that can match; of those the key columns are read (`join.py`)
    decide      the first clause whose condition holds; columns for conditions are read only from files with matches
    make        new values; files and deletes are written (`change_rows.py`), and the inserted rows of the source

An upsert is a merge that updates matching rows if a value differs, and inserts the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.change_rows.change_rows import Decided, LocalChange, Places
from frazil.change_rows.join import Join, Matcher, join_by_names, keys_of, read_join
from frazil.change_rows.merge_clauses import (
    KINDS,
    MergeClause,
    check_clauses,
    keys_twice,
    needs_single_match,
    summary_of,
)
from frazil.change_rows.new_values import NewValues, all_values, converted, inserted_values, updated_values
from frazil.change_rows.row_change import noted
from frazil.change_rows.source_rows import SourceRows, open_source
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.errors import InvalidRequestError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import SOURCE, TARGET, Compiled, Compiler, Rows, mask_of
from frazil.evaluate.condition import Session, table_columns
from frazil.evaluate.sql_operators import same_values
from frazil.expr.expressions import Name
from frazil.expr.parse import parse_expression
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask

_SIDES = {"matched": (TARGET, SOURCE), "not_matched": (SOURCE,), "not_matched_by_source": (TARGET,)}
_INSERTED_AT_ONCE = 1 << 17
_MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class _Step:
    """A compiled clause: its number from 1, its condition, and the new values of rows, or None to delete them."""

    number: int
    clause: MergeClause
    condition: Compiled | None
    conditioned_on: tuple[tuple[str, str], ...]
    values: NewValues | None


class MergeChange:
    """A compiled merge; created by `prepare_merge` or `prepare_upsert`."""

    def __init__(
        self,
        change: LocalChange,
        source: SourceRows,
        join: Join,
        steps: Sequence[_Step],
        *,
        is_upsert: bool = False,
    ) -> None:
        self.change = change
        self.source = source
        self.join = join
        self._steps = steps
        self._is_upsert = is_upsert
        self._clauses = [step.clause for step in steps]

    def _of(self, when: str) -> list[_Step]:
        return [step for step in self._steps if step.clause.when == when]

    @property
    def predicate(self) -> Predicate:
        """The filter for planning: rows of the table that the source can match, or all."""
        return TRUE if self._of("not_matched_by_source") else self.join.prune

    @cached_property
    def tasks(self) -> dict[str, FileScanTask]:
        """The files that can contain matching rows."""
        return self.change.plan_files(self.predicate)

    @property
    def read_tasks(self) -> list[FileScanTask]:
        """The files to read."""
        return list(self.tasks.values())

    def run(self) -> PlannedChange | None:
        """Join, and write the files of the clauses; return the commit, or None if nothing changes."""
        matcher = Matcher(self.join, self.change, self.source)
        if self._is_upsert:
            self._check_keys(matcher)
        is_met = np.zeros(self.source.count, np.bool_)
        pairs = self._pairs(matcher, is_met)
        decided = list(self._decide(pairs))
        counts = self.change.counts
        for decision in decided:
            for number, count in zip(*np.unique(decision.clauses, return_counts=True), strict=True):
                counts.by_clause[int(number)] = counts.by_clause.get(int(number), 0) + int(count)
        updates = {
            step.number: step.values for step in self._steps if step.values is not None and step.clause.do == "update"
        }
        inserts = self._inserts(np.flatnonzero(~is_met)) if self._of("not_matched") else iter(())
        first = next(inserts, None)
        if not decided and first is None:
            return None
        planned = self.change.carry_out(
            self.predicate, decided, updates, source=self.source, inserts=_chain(first, inserts)
        )
        if planned is None:
            return None
        always = () if self._is_upsert else KINDS
        summary = summary_of(
            self._clauses, counts.by_clause, copied=counts.copied, unchanged=counts.unchanged, always=always
        )
        return noted(planned, summary)

    def _check_keys(self, matcher: Matcher) -> None:
        twice = matcher.index.some_twice
        if twice:
            raise keys_twice(self.change.loaded.name, keys_of(self.join, self.source, twice))

    def _pairs(self, matcher: Matcher, is_met: npt.NDArray[np.bool_]) -> dict[str, tuple[Places, Places]]:
        """Return the matching pairs of rows by file; record which rows of the source matched."""
        has_matched = bool(self._of("matched"))
        is_single = needs_single_match(self._clauses)
        pairs_by_file: dict[str, list[tuple[Places, Places]]] = {}
        for task, positions, source in matcher.pairs(
            self.read_tasks, has_others=bool(self._of("not_matched_by_source"))
        ):
            is_met[source[source >= 0]] = True
            again = np.flatnonzero(np.diff(positions) == 0)
            if len(again):
                if is_single:
                    raise self._several(source[again[0] : again[0] + 2])
                keep = np.ones(len(positions), np.bool_)
                keep[again + 1] = False
                positions, source = positions[keep], source[keep]
            if has_matched or (source < 0).any():
                pairs_by_file.setdefault(task.data_file.file_path, []).append((positions, source))
        return {
            path: (np.concatenate([target_rows for target_rows, _ in parts]), np.concatenate([two for _, two in parts]))
            for path, parts in pairs_by_file.items()
        }

    def _several(self, source: Places) -> InvalidRequestError:
        rows = self.source.table.take(pa.array(source[:_MAX_EXAMPLES])).to_pylist()
        texts = "; ".join(str(row) for row in rows)
        return InvalidRequestError(
            f"Cannot merge into {self.change.loaded.name}: a row of the table matches more than one row of the source: "
            f"{texts[:400]}",
            hint="Remove duplicates from the source, or join by more columns.",
        )

    def _decide(self, pairs: Mapping[str, tuple[Places, Places]]) -> Iterator[Decided]:
        """Yield the deciding clauses of the rows of each file in which some rows change."""
        steps = [*self._of("matched"), *self._of("not_matched_by_source")]
        columns = sorted({name for step in steps for side, name in step.conditioned_on if side == TARGET})
        clauses = {path: np.zeros(len(positions), np.int16) for path, (positions, _) in pairs.items()}
        if columns:
            only = {path: positions for path, (positions, _) in pairs.items()}
            for task, batch in self.change.read([self.tasks[path] for path in pairs], columns, only=only):
                path = task.data_file.file_path
                positions, source = pairs[path]
                batch_positions = batch.column(batch.num_columns - 1).to_numpy()
                first, last = np.searchsorted(positions, [batch_positions[0], batch_positions[-1] + 1])
                columns_by_name = {(TARGET, name): batch.column(index) for index, name in enumerate(columns)}
                clauses[path][first:last] = self._clauses_of(steps, columns_by_name, source[first:last])
        for path, (positions, source) in pairs.items():
            if not columns:
                clauses[path] = self._clauses_of(steps, {}, source)
            chosen = np.flatnonzero(clauses[path])
            self.change.counts.unchanged += int(np.count_nonzero((clauses[path] == 0) & (source >= 0)))
            if len(chosen):
                yield Decided(self.tasks[path], positions[chosen], clauses[path][chosen], source[chosen])

    def _clauses_of(
        self, steps: Sequence[_Step], target: Mapping[tuple[str, str], pa.Array], source: Places
    ) -> npt.NDArray[np.int16]:
        clause_numbers = np.zeros(len(source), np.int16)
        for step in steps:
            is_asked = (source >= 0) if step.clause.when == "matched" else (source < 0)
            places = np.flatnonzero((clause_numbers == 0) & is_asked)
            if not len(places):
                continue
            if step.condition is None:
                clause_numbers[places] = step.number
                continue
            columns = {key: array.take(pa.array(places)) for key, array in target.items()}
            if step.clause.when == "matched":
                names = [name for side, name in step.conditioned_on if side == SOURCE]
                columns |= self.source.take(names, source[places])
            holds = mask_of(step.condition.array(Rows(columns, len(places))))
            clause_numbers[places[holds]] = step.number
        return clause_numbers

    def _inserts(self, places: Places) -> Iterator[dict[str, pa.Array]]:
        """Yield the columns of inserted rows."""
        steps = self._of("not_matched")
        counts = self.change.counts
        for start in range(0, len(places), _INSERTED_AT_ONCE):
            rows_at_once = places[start : start + _INSERTED_AT_ONCE]
            remaining = np.arange(len(rows_at_once))
            for step in steps:
                chosen = remaining
                if step.condition is not None and len(remaining):
                    names = [name for _, name in step.conditioned_on]
                    rows = Rows(self.source.take(names, rows_at_once[remaining]), len(remaining))
                    chosen = remaining[mask_of(step.condition.array(rows))]
                if not len(chosen):
                    continue
                remaining = np.setdiff1d(remaining, chosen, assume_unique=True)
                assert step.values is not None
                rows = Rows(self.source.take(step.values.used(SOURCE), rows_at_once[chosen]), len(chosen))
                counts.by_clause[step.number] = counts.by_clause.get(step.number, 0) + len(chosen)
                yield step.values.arrays(rows)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
    yield from rest


def prepare_merge(
    loaded: LoadedTable,
    data: Any,
    on: Any,
    clauses: Sequence[MergeClause],
    target: Target,
    session: Session,
    cache: ManifestCache | None = None,
    *,
    may_lack_columns: bool = False,
) -> MergeChange:
    """Compile a merge; refuse expressions that only Spark supports."""
    check_clauses(clauses)
    change = LocalChange(loaded, "merge", target, cache)
    source = open_source(data, change.schema)
    join = read_join(on, change, source, session)
    steps = [
        _compile(index + 1, clause, change, source, session, may_lack_columns=may_lack_columns)
        for index, clause in enumerate(clauses)
    ]
    return MergeChange(change, source, join, steps)


def _compile(
    number: int,
    clause: MergeClause,
    change: LocalChange,
    source: SourceRows,
    session: Session,
    *,
    may_lack_columns: bool = False,
) -> _Step:
    sides = {TARGET: table_columns(change.schema), SOURCE: source.columns}
    available = {side: sides[side] for side in _SIDES[clause.when]}
    condition: Compiled | None = None
    conditioned_on: tuple[tuple[str, str], ...] = ()
    if clause.condition is not None:
        if not isinstance(clause.condition, str):
            raise t.left_to_spark(f"the condition of clause {number} is a {type(clause.condition).__name__}, not text")
        compiler = Compiler(available, session.now_us)
        what = f"the condition of clause {number}"
        condition = compiler.condition(parse_expression(clause.condition, what), what)
        session.check(compiler)
        conditioned_on = tuple(sorted(compiler.used))
    if clause.do == "delete":
        return _Step(number, clause, condition, conditioned_on, None)
    values: Mapping[str, Any] | None = clause.values
    if values is None:
        values = all_values(change.schema, source.columns, change.loaded.name, may_lack_columns=may_lack_columns)
    compiler = Compiler(available, session.now_us)
    if clause.do == "update":
        new_values = updated_values(change.schema, values, compiler)
    else:
        new_values = inserted_values(change.schema, values, compiler, change.loaded.name)
    session.check(compiler)
    return _Step(number, clause, condition, conditioned_on, new_values)


def prepare_upsert(
    loaded: LoadedTable,
    data: Any,
    keys: Sequence[str],
    target: Target,
    session: Session,
    cache: ManifestCache | None = None,
) -> MergeChange:
    """Compile an upsert; refuse expressions that only Spark supports."""
    change = LocalChange(loaded, "merge", target, cache)
    source = open_source(data, change.schema)
    join = join_by_names(keys, change, source, session)
    update = _compile(1, MergeClause("matched", "update"), change, source, session)
    insert = _compile(2, MergeClause("not_matched", "insert"), change, source, session)
    return MergeChange(change, source, join, [_where_changed(update, change, source, join), insert], is_upsert=True)


def _where_changed(step: _Step, change: LocalChange, source: SourceRows, join: Join) -> _Step:
    """Restrict the update of an upsert to rows in which a value differs; keys are equal."""
    compiler = Compiler({TARGET: table_columns(change.schema), SOURCE: source.columns})
    keys = {key.field.name for key in join.keys if key.field is not None}
    pairs = []
    for name, value in all_values(change.schema, source.columns, change.loaded.name).items():
        field = change.schema.field(name[1:-1].replace("``", "`"))
        if field.name in keys:
            continue
        old = compiler.compile(Name((TARGET, field.name)))
        new = converted(compiler.compile(value), field.field_type, compiler, field.name)
        pairs.append((old, new))

    def run(rows: Rows) -> pa.Array:
        differs = np.zeros(rows.length, np.bool_)
        for old, new in pairs:
            differs |= differing(old.array(rows), new(rows))
        return pa.array(differs)

    return replace(step, condition=Compiled(t.BOOLEAN, run), conditioned_on=tuple(sorted(compiler.used)))


def differing(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Return where values of one type differ; NaN equals NaN, -0.0 differs from 0.0, and null equals null."""
    data_type = left.type
    if isinstance(data_type, pa.BaseExtensionType):
        return differing(left.storage, right.storage)
    if pa.types.is_floating(data_type):
        bits = pa.int64() if pa.types.is_float64(data_type) else pa.int32()
        both_nan: npt.NDArray[np.bool_] = pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False).to_numpy(
            zero_copy_only=False
        )
        return differing(left.view(bits), right.view(bits)) & ~both_nan
    if pa.types.is_struct(data_type):
        differs: npt.NDArray[np.bool_] = pc.xor(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
        for index in range(data_type.num_fields):
            differs = differs | differing(pc.struct_field(left, [index]), pc.struct_field(right, [index]))
        return differs
    if pa.types.is_nested(data_type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((repr(a) != repr(b) for a, b in pairs), np.bool_, len(left))
    is_same: npt.NDArray[np.bool_] = same_values(left, right).to_numpy(zero_copy_only=False)
    return ~is_same
