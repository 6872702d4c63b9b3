"""A row-level change in this process: `change_rows/row_change.py` with rows read and written by Python.

    decide    which rows of which files change, by position, and how (`find_rows.py`, `merge.py`)
    settle    which files are removed as a whole
    make      updated rows are read again with all columns that their new values need; of rewritten files also the
              remaining rows; new rows are written to the same files
    commit    `plan_rewrite` or `plan_deltas`

Rows are streamed: memory holds their positions and decisions, and the few batches being processed. Written files are
deleted if anything stops the change, including Ctrl-C.
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
    """Changing rows of one file: their positions, ascending, and for each the number of the deciding clause, from 1.

    `source` is the matching row of the source for each, -1 for none; None if there is no source.
    """

    task: FileScanTask
    positions: npt.NDArray[Any]
    clauses: npt.NDArray[np.int16]
    source: Places | None = None

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.task.data_file.file_path

    @property
    def vector(self) -> DeletionVector:
        """The positions as a set."""
        return DeletionVector(self.positions.astype(np.int64))


@dataclass
class Counts:
    """Numbers of rows: decided by each clause, unchanged despite a match in the source, and copied."""

    unchanged: int = 0
    copied: int = 0
    by_clause: dict[int, int] = field(default_factory=dict)


class LocalChange(RowLevelChange):
    """One row-level change of one branch of a table, read and written by this process."""

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
        """Yield the rows of files, each batch with its positions last; `has_all_rows` includes rows outside the filter.

        In v3, row ID columns precede the positions if `ROW_ID` is among the names. `only` restricts the rows of files
        to known positions.
        """
        fields = [self.schema.field(name) for name in columns if name != ROW_ID.name]
        lineage = ROW_LINEAGE_COLUMNS if ROW_ID.name in columns and self.has_lineage else ()
        projection = Schema((*fields, *lineage, POS))
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
        """The names of the stored columns."""
        return [stored_field.name for stored_field in self.stored_fields]

    def target_rows(self, batch: pa.RecordBatch, columns: Sequence[str]) -> Rows:
        """Return columns of a batch as rows for computations."""
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
        """Write the files of a change and return the planned commit, or None if nothing changes.

        `updates` are the new values of rows by clause; rows of other clauses are removed. `inserts` are columns of new
        rows, `added` files that are already written. With `is_rewrite`, files are rewritten whatever the mode.
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
        """Write the new rows of files whose other rows are not rewritten."""
        changed = {decision.path: np.flatnonzero(np.isin(decision.clauses, list(updates))) for decision in decided}
        updated = {decision.path: decision for decision in decided if len(changed[decision.path])}
        columns = sorted({name for new_values in updates.values() for name in new_values.used(TARGET)})
        if not columns and not self.has_lineage:
            for path, decision in updated.items():
                self._write_new(new, decision, changed[path], None, (), updates, source)
            return
        if self.has_lineage:
            columns.append(ROW_ID.name)
        only = {path: decision.positions[changed[path]] for path, decision in updated.items()}
        for task, batch in self.read([decision.task for decision in updated.values()], columns, only=only):
            path = task.data_file.file_path
            index, _ = _here(only[path], batch)
            self._write_new(new, updated[path], changed[path][index], batch, columns, updates, source)

    def _write_again(
        self, new: _NewFiles, decided: Sequence[Decided], updates: Mapping[int, NewValues], source: SourceRows | None
    ) -> None:
        """Write the remaining rows of files, with the new ones among them."""
        by_path = {decision.path: decision for decision in decided}
        columns = [*self.stored_names, *([ROW_ID.name] if self.has_lineage else [])]
        is_updated = {path: np.isin(decision.clauses, list(updates)) for path, decision in by_path.items()}
        for task, batch in self.read([decision.task for decision in decided], columns, has_all_rows=True):
            path = task.data_file.file_path
            index, here = _here(by_path[path].positions, batch)
            stays = np.ones(batch.num_rows, np.bool_)
            stays[here] = False
            if stays.any():
                remaining = batch if stays.all() else batch.filter(pa.array(stays))
                new.write_batch(remaining.select(range(remaining.num_columns - 1)))
                self.counts.copied += remaining.num_rows
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
        """Write the new values of rows: `places` are indexes of decisions, `batch` has those rows as read."""
        clauses = decision.clauses[places]
        target_columns = [name for name in columns if name != ROW_ID.name]
        for clause, new_values in updates.items():
            chosen = np.flatnonzero(clauses == clause)
            if not len(chosen):
                continue
            inputs: dict[tuple[str, str], pa.Array] = {}
            row_ids = None
            if batch is not None:
                rows = batch if len(chosen) == batch.num_rows else batch.take(pa.array(chosen))
                inputs |= {(TARGET, name): rows.column(index) for index, name in enumerate(target_columns)}
                row_ids = rows.column(len(target_columns)) if self.has_lineage else None
            if source is not None and decision.source is not None:
                inputs |= source.take(new_values.used("source"), decision.source[places[chosen]])
            new.write(new_values.arrays(Rows(inputs, len(chosen))), row_ids)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches of rows, since each batch has a fixed cost."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)


def _here(positions: npt.NDArray[Any], batch: pa.RecordBatch) -> tuple[Places, Places]:
    """Return the indexes of the positions that are in a batch, and their rows in the batch."""
    batch_positions = batch.column(batch.num_columns - 1).to_numpy()
    first, last = np.searchsorted(positions, [batch_positions[0], batch_positions[-1] + 1])
    within = positions[first:last].astype(np.int64)
    index = np.searchsorted(batch_positions, within)
    is_present = batch_positions[np.minimum(index, len(batch_positions) - 1)] == within
    return np.arange(first, last)[is_present], index[is_present]


class _NewFiles:
    """The files written by a change; they are deleted if the block ends with an error."""

    def __init__(self, change: LocalChange) -> None:
        self._change = change
        fields = tuple(change.stored_fields)
        if change.has_lineage:
            fields += ROW_LINEAGE_COLUMNS
        self._schema = to_arrow_schema(Schema(fields), with_ids=False)
        # Nulls in required columns are detected by the writer.
        self._given = pa.schema([field.with_nullable(True) for field in self._schema])
        self._writer: DataFileWriter | None = None

    def write(self, arrays: Mapping[str, pa.Array], row_ids: pa.Array | None) -> None:
        """Write columns of new rows, with the IDs of rows that had one."""
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
    """Cast an array to a type that differs at most in names and nullability of nested fields."""
    return array if array.type == data_type else array.cast(data_type)
