"""A row-level change in this process: `change_rows/row_change.py` with rows that are read and written here.

    decide    which rows of which files change, by position, and how (`find_rows.py`, `merge.py`)
    settle    which files go whole
    make      rows that are updated are read again with all that their new values need; of files that are written again,
              the rows that stay too; new rows go to the same files
    commit    `plan_rewrite` or `plan_deltas`

Rows stream: what is in memory is where rows are and what becomes of them, and the few batches that are under way. What
was written is deleted again if anything stops the change, ctrl-C included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.change_rows.new_values import NewValues
from frazil.change_rows.row_change import RowLevelChange
from frazil.change_rows.source_rows import SourceRows
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.action import PlannedChange
from frazil.datafile.read_task import read_task, view_table
from frazil.datafile.read_tasks import read_in_order
from frazil.datafile.rows_writer import delete_unused
from frazil.datafile.write import DataFileWriter
from frazil.datafile.write_target import write_target
from frazil.evaluate.compile_expression import TARGET, Rows
from frazil.expr.predicates import TRUE, Predicate
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID, ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.threads import default_threads

Places: TypeAlias = npt.NDArray[np.int64]
_HELD_BYTES = 128 << 20
_MAX_THREADS = 4
_GATHERED_ROWS = 1 << 16
_GATHERED_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Decided:
    """Rows of one file that change: their positions, ascending, and for each the clause, from 1, that decides.

    `source` is the row of the source that each of them meets, -1 for none; None where there is no source.
    """

    task: FileScanTask
    positions: npt.NDArray[Any]
    clauses: npt.NDArray[np.int16]
    source: Places | None = None

    @property
    def path(self) -> str:
        """The file."""
        return self.task.data_file.file_path

    @property
    def vector(self) -> DeletionVector:
        """The positions as a set."""
        return DeletionVector(self.positions.astype(np.int64))


@dataclass
class Counts:
    """How many rows were decided by which clause, left though they met a source, and written again as they were."""

    unchanged: int = 0
    copied: int = 0
    by_clause: dict[int, int] = field(default_factory=dict)


class LocalChange(RowLevelChange):
    """One row-level change of one branch of a table, read and written in this process."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._view = view_table(self.loaded.metadata)
        self.counts = Counts()

    def read(
        self,
        tasks: Sequence[FileScanTask],
        columns: Sequence[str],
        *,
        has_all_rows: bool = False,
        only: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Iterator[tuple[FileScanTask, pa.RecordBatch]]:
        """Yield the rows of files, each batch with its positions last; with `has_all_rows`, not only those asked for.

        In v3 the ids of rows come as the columns before that, where `ROW_ID` is among the names. `only` are the
        positions of rows that are known to be wanted, by file; then only those come.
        """
        wanted = [self.schema.field(name) for name in columns if name != ROW_ID.name]
        lineage = ROW_LINEAGE_COLUMNS if ROW_ID.name in columns and self.has_lineage else ()
        projection = Schema((*wanted, *lineage, POS))
        threads = min(default_threads(), _MAX_THREADS, max(len(tasks), 1))

        def read(task: FileScanTask) -> Iterator[tuple[FileScanTask, pa.RecordBatch]]:
            batches = read_task(
                replace(task, residual=TRUE) if has_all_rows else task,
                self._view,
                projection,
                self.loaded.storage,
                cache=self.deletes,
                use_threads=threads == 1,
                only=None if only is None else only[task.data_file.file_path],
            )
            for batch in batches if only is None else _gathered(batches):
                yield task, batch

        yield from read_in_order(read, tasks, threads=threads)

    @property
    def stored_names(self) -> list[str]:
        """The names of the columns that files store."""
        return [stored_field.name for stored_field in self.stored_fields]

    def target_rows(self, batch: pa.RecordBatch, columns: Sequence[str]) -> Rows:
        """Return columns of a batch that was read as rows to compute with."""
        return Rows({(TARGET, name): batch.column(index) for index, name in enumerate(columns)}, batch.num_rows)

    def carry_out(
        self,
        read: Predicate,
        decided: Sequence[Decided],
        updates: Mapping[int, NewValues],
        *,
        source: SourceRows | None = None,
        inserts: Iterator[dict[str, pa.Array]] | None = None,
        whole: Sequence[FileScanTask] = (),
        added: Sequence[DataFile] = (),
        is_rewrite: bool = False,
    ) -> PlannedChange | None:
        """Write what a change needs and return what is to be committed; None where nothing changes.

        `updates` are the new values of rows by clause; rows of other clauses go. `inserts` are columns of new rows,
        `added` files that are written already. With `is_rewrite`, files are rewritten whatever the mode is.
        """
        tasks = {decision.path: decision.task for decision in decided}
        settled = self.settle({decision.path: decision.vector for decision in decided}, tasks, whole)
        is_delta = self.is_merge_on_read and not is_rewrite
        with _NewFiles(self) as new:
            again = [] if is_delta else [decision for decision in decided if decision.path in settled.kept]
            self._write_again(new, again, updates, source)
            if updates:
                rest = decided if is_delta else [decision for decision in decided if decision.path not in settled.kept]
                self._write_updated(new, rest, updates, source)
            for arrays in inserts or ():
                new.write(arrays, None)
            files = [*added, *new.close()]
            return (self.plan_deltas if is_delta else self.plan_rewrite)(self.read_set_of(read), settled, tasks, files)

    def _write_updated(
        self, new: _NewFiles, decided: Sequence[Decided], updates: Mapping[int, NewValues], source: SourceRows | None
    ) -> None:
        """Write the new rows of files, of which nothing else is written again."""
        changed = {decision.path: np.flatnonzero(np.isin(decision.clauses, list(updates))) for decision in decided}
        wanted = {decision.path: decision for decision in decided if len(changed[decision.path])}
        columns = sorted({name for made in updates.values() for name in made.used(TARGET)})
        if not columns and not self.has_lineage:
            for path, decision in wanted.items():
                self._write_new(new, decision, changed[path], None, (), updates, source)
            return
        if self.has_lineage:
            columns.append(ROW_ID.name)
        only = {path: decision.positions[changed[path]] for path, decision in wanted.items()}
        for task, batch in self.read([decision.task for decision in wanted.values()], columns, only=only):
            path = task.data_file.file_path
            index, _ = _here(only[path], batch)
            self._write_new(new, wanted[path], changed[path][index], batch, columns, updates, source)

    def _write_again(
        self, new: _NewFiles, decided: Sequence[Decided], updates: Mapping[int, NewValues], source: SourceRows | None
    ) -> None:
        """Write the rows of files that stay, and the new ones among them."""
        by_path = {decision.path: decision for decision in decided}
        columns = [*self.stored_names, *([ROW_ID.name] if self.has_lineage else [])]
        is_updated = {path: np.isin(decision.clauses, list(updates)) for path, decision in by_path.items()}
        for task, batch in self.read([decision.task for decision in decided], columns, has_all_rows=True):
            path = task.data_file.file_path
            index, here = _here(by_path[path].positions, batch)
            stays = np.ones(batch.num_rows, np.bool_)
            stays[here] = False
            if stays.any():
                kept = batch if stays.all() else batch.filter(pa.array(stays))
                new.write_batch(kept.select(range(kept.num_columns - 1)))
                self.counts.copied += kept.num_rows
            chosen = is_updated[path][index]
            if chosen.any():
                rows = batch.take(pa.array(here[chosen]))
                self._write_new(new, by_path[path], index[chosen], rows, columns, updates, source)

    def _write_new(
        self,
        new: _NewFiles,
        decision: Decided,
        places: Places,
        batch: pa.RecordBatch | None,
        columns: Sequence[str],
        updates: Mapping[int, NewValues],
        source: SourceRows | None,
    ) -> None:
        """Write the new values of rows: `places` in what was decided, and those rows as they were read."""
        clauses = decision.clauses[places]
        own = [name for name in columns if name != ROW_ID.name]
        for clause, made in updates.items():
            chosen = np.flatnonzero(clauses == clause)
            if not len(chosen):
                continue
            found: dict[tuple[str, str], pa.Array] = {}
            row_ids = None
            if batch is not None:
                rows = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
                found |= {(TARGET, name): rows.column(index) for index, name in enumerate(own)}
                row_ids = rows.column(len(own)) if self.has_lineage else None
            if source is not None and decision.source is not None:
                found |= source.take(made.used("source"), decision.source[places[chosen]])
            new.write(made.arrays(Rows(found, len(chosen))), row_ids)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer batches where they have few rows: each batch has a cost of its own."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


def _here(positions: npt.NDArray[Any], batch: pa.RecordBatch) -> tuple[Places, Places]:
    """Return which of some positions are in a batch, and at which of its rows each of them is."""
    own = batch.column(batch.num_columns - 1).to_numpy()
    first, last = np.searchsorted(positions, [own[0], own[-1] + 1])
    within = positions[first:last].astype(np.int64)
    index = np.searchsorted(own, within)
    is_there = own[np.minimum(index, len(own) - 1)] == within
    return np.arange(first, last)[is_there], index[is_there]


class _NewFiles:
    """The files that a change writes; they are deleted again where an error leaves the block."""

    def __init__(self, change: LocalChange) -> None:
        self._change = change
        fields = tuple(change.stored_fields)
        if change.has_lineage:
            fields += ROW_LINEAGE_COLUMNS
        self._schema = to_arrow_schema(Schema(fields), with_ids=False)
        # Values that are null where they must not be are found by the writer.
        self._given = pa.schema([field.with_nullable(True) for field in self._schema])
        self._writer: DataFileWriter | None = None

    def write(self, arrays: Mapping[str, pa.Array], row_ids: pa.Array | None) -> None:
        """Write columns of new rows, with the ids of rows that had one."""
        length = len(next(iter(arrays.values()))) if arrays else 0
        columns = []
        for arrow_field in self._given:
            if arrow_field.name in arrays:
                columns.append(_in_form(arrays[arrow_field.name], arrow_field.type))
            elif arrow_field.name == ROW_ID.name and row_ids is not None:
                columns.append(row_ids)
            else:
                assert arrow_field.name in (ROW_ID.name, LAST_UPDATED_SEQUENCE_NUMBER.name)
                columns.append(pa.nulls(length, arrow_field.type))
        self.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._given))

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows in stored form."""
        if self._writer is None:
            self._writer = DataFileWriter(write_target(self._change.loaded), self._given, held_bytes=_HELD_BYTES)
        self._writer.write(batch)

    def close(self) -> list[DataFile]:
        """Complete the files."""
        return [] if self._writer is None else self._writer.close()

    def __enter__(self) -> _NewFiles:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is None or self._writer is None:
            return
        self._writer.abort()
        delete_unused(self._change.loaded.storage, [file.file_path for file in self._writer.files])


def _in_form(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return an array under a type that differs from its own in the names and marks of nested fields at most."""
    return array if array.type == data_type else array.cast(data_type)
