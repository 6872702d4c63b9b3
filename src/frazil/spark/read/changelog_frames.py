"""A change feed as a lazy DataFrame: the rows that snapshots added and removed, read by Spark's own readers.

One relation reads the changed files of each group (`relation.py`) for all snapshots of a window. The type of the
change, the snapshot and its position in the window are constants of a file. With position deletes, the bitmap of a file
holds the rows to leave out, or, for a file that stays, the rows that the snapshot deleted; another constant tells
which.

Files with equality deletes are read by Python on executors, as are those with too large bitmaps: which rows were
deleted before a snapshot and which by it is then decided row by row (`datafile/read_task.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.codec.deletion_vector import DeletionVector
from frazil.datafile.apply_deletes import load_positions
from frazil.expr.predicates import Predicate
from frazil.scan.changelog import (
    BY_VALUE_FIELD,
    CHANGE_ORDINAL_FIELD,
    CHANGE_TYPE_FIELD,
    COMMIT_SNAPSHOT_FIELD,
    SINGLED_OUT_BY_FIELD,
    Changelog,
    ChangelogTask,
    plan_changelog,
)
from frazil.scan.plan import FileBatch, Plan
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.own_columns import F
from frazil.spark.read.planned_files import (
    Constant,
    DeleteKind,
    FileGroup,
    PlannedBatch,
    ScanFiles,
    chosen_part,
    column_constant,
    most_vector_bytes,
    slim_table,
    vector_bytes,
)
from frazil.spark.read.read_columns import ReadColumn
from frazil.spark.read.relation import Reader, ReadRequest
from frazil.spec.reserved_columns import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from frazil.spec.types import NestedField
from frazil.sql.quote_names import quote
from frazil.threads import default_threads, map_in_order

_CONSTANTS = {
    CHANGE_TYPE.field_id: (CHANGE_TYPE_FIELD, pa.string()),
    CHANGE_ORDINAL.field_id: (CHANGE_ORDINAL_FIELD, pa.int32()),
    COMMIT_SNAPSHOT_ID.field_id: (COMMIT_SNAPSHOT_FIELD, pa.int64()),
}


def read_changes(spark: SparkSession, request: ReadRequest, *, window: Changelog) -> DataFrame:
    """Return the changed rows of a window as a lazy DataFrame, reading only manifests.

    The request's output schema may include the columns of change feeds.
    """
    with engine_errors(f"read the changes of {request.loaded.name} on Spark"):
        return _ChangesReader(spark, request, window).frame()


class _ChangedFiles(ScanFiles):
    """The files of a change feed, planned for any later filter."""

    def __init__(self, whole: ScanFiles, request: ReadRequest, window: Changelog) -> None:
        super().__init__(request.loaded, request.snapshot, request.schema, whole.predicate, request.cache)
        self.loaded = slim_table(request.loaded, request.snapshot, request.schema, with_history=True)
        self.shapes, self.reaches, self.session = whole.shapes, whole.reaches, whole.session
        self._window = window
        self.has_many_positions = False
        """Whether there are too many deleted positions to ship with the query."""

    def _plan(self, asked: Predicate) -> Plan:
        return plan_changelog(self.loaded, asked, window=self._window, cache=self._cache)

    def _groups_without_deletes(self, batch: FileBatch) -> list[FileGroup]:
        kinds = super()._groups_without_deletes(batch)
        by_value = batch.files.column(BY_VALUE_FIELD).to_pylist()
        if self.has_many_positions:
            by_value = [one or bool(numbers) for one, numbers in zip(by_value, _all_deletes(batch), strict=True)]
        if not any(by_value):
            return kinds
        each = kinds * len(batch.files) if len(kinds) == 1 else kinds
        return [_read_by_python(group) if by else group for group, by in zip(each, by_value, strict=True)]

    def _delete_kinds(self, plan: Plan, batch: FileBatch) -> list[DeleteKind]:
        return [DeleteKind.POSITIONS if numbers else DeleteKind.NONE for numbers in _all_deletes(batch)]

    def batches(self, group: FileGroup, pushed: Predicate | None) -> list[PlannedBatch]:
        """Return the planned files of a group, without those in which no row is selected."""
        batches = super().batches(group, pushed)
        if group.deletes is not DeleteKind.POSITIONS:
            return batches
        selected = []
        for planned in batches:
            vectors = self._vectors(planned)
            singling = planned.files.column(SINGLED_OUT_BY_FIELD).is_valid().to_pylist()
            keep = [not (one and vector.is_empty) for one, vector in zip(singling, vectors, strict=True)]
            file_batch = chosen_part(planned.batch, np.array(keep, dtype=bool))
            if file_batch is not None:
                selected.append(PlannedBatch(self, planned.plan, file_batch))
        return selected

    def vector_bytes(self) -> int:
        """Return an upper bound for the size of all deleted positions as bitmaps."""
        total = 0
        for batch in self.whole(self.plan()):
            rows = batch.files.column("record_count").to_pylist()
            for numbers, count in zip(_all_deletes(batch), rows, strict=True):
                total += most_vector_bytes(count) if numbers else 0
        return total

    def vectors_of(self, planned: PlannedBatch) -> pa.Array:
        """Return for each file the bitmap of the rows to leave out, or of the rows to select."""
        vectors = zip(self._vectors(planned), _tasks(planned), strict=True)
        return pa.array([vector_bytes(vector, task.data_file) for vector, task in vectors], pa.binary())

    def _vectors(self, planned: PlannedBatch) -> list[DeletionVector]:
        return list(map_in_order(self._vector, _tasks(planned), threads=default_threads()))

    def _vector(self, task: ChangelogTask) -> DeletionVector:
        hidden = load_positions(self.loaded.storage, task, self._positions) or DeletionVector()
        if task.singled_out_by is None:
            return hidden
        other = replace(task, delete_files=task.singled_out_by)
        selected = load_positions(self.loaded.storage, other, self._positions) or DeletionVector()
        # Positions beyond the end of the file are ignored.
        remaining, rows = selected.minus(hidden), task.data_file.record_count
        return remaining if rows < 0 else remaining.below(rows)


class _ChangesReader(Reader):
    def __init__(self, spark: SparkSession, request: ReadRequest, window: Changelog) -> None:
        # An empty scan; `_ChangedFiles` replaces it.
        super().__init__(spark, replace(request, snapshot=None))
        self.request = request
        self._window = window
        self._changed = _ChangedFiles(self.scan, request, window)
        self.scan = self._changed

    def _choose_positions(self, *, has_many: bool) -> None:
        self._changed.has_many_positions = has_many

    def _own_constants(self, group: FileGroup) -> list[Constant]:
        own_constants = super()._own_constants(group)
        for field_id, (source, kind) in _CONSTANTS.items():
            own_constants.append(column_constant(self._name_of(field_id), source, kind))
        if group.deletes is not DeleteKind.NONE:
            own_constants.append(_singles_out(self.names.own("singled")))
        return own_constants

    def _name_of(self, field_id: int) -> str:
        return self.names.own(f"change_{field_id}")

    def _without_positions(self, frame: DataFrame) -> DataFrame:
        return frame.filter(self._is_deleted() == F.col(quote(self.names.own("singled"))))

    def _value(self, field: NestedField, group: FileGroup, columns: dict[int, ReadColumn]) -> Column:
        if field.field_id in _CONSTANTS:
            return F.col(quote(self._name_of(field.field_id)))
        return super()._value(field, group, columns)

    def _size_bytes(self) -> int:
        return max(self.scan.plan().data_counts.kept_bytes, 1)

    def _key(self, group: FileGroup, data: list[st.StructField], constants: list[Constant]) -> str:
        return f"changes {self._window} {super()._key(group, data, constants)}"


def _all_deletes(batch: FileBatch) -> list[tuple[int, ...]]:
    """Return for each file the numbers of all deletes that apply to it."""
    singling = batch.files.column(SINGLED_OUT_BY_FIELD).to_pylist()
    hiding = [()] * len(batch.files) if batch.deletes is None else batch.deletes
    return [(*one, *(other or ())) for one, other in zip(hiding, singling, strict=True)]


def _tasks(planned: PlannedBatch) -> list[ChangelogTask]:
    return [task for task in planned.plan.tasks_of(planned.batch) if isinstance(task, ChangelogTask)]


def _read_by_python(group: FileGroup) -> FileGroup:
    return FileGroup(group.file_format, frozenset(), DeleteKind.NONE, is_native=False)


def _singles_out(name: str) -> Constant:
    """Return the constant for whether a file's bitmap holds the rows to select, not those to leave out."""

    def values(batch: PlannedBatch) -> pa.Array:
        return batch.files.column(SINGLED_OUT_BY_FIELD).is_valid()

    return Constant(name, pa.bool_(), values)
