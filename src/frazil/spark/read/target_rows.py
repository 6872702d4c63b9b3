"""The rows of a table as a row-level change sees them: with the file and position of each, from files that were chosen.

A change first looks for the rows it is about, wherever they may be, and notes which files Spark asked for: that is what
it has read, and what other writers must not have changed meanwhile. Then, to rewrite files, it reads some files only,
and of those all rows but the ones it has found. Both are the lazy relation (`relation.py`) over a chosen set of files.

`_file` comes as a number here, the same for each file in one choice: paths would weigh on every row that is shuffled.
Where a condition is about paths, they come as `PATH`.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.codec.deletion_vector import DeletionVector
from frazil.datafile.apply_deletes import load_positions
from frazil.expr.predicates import Predicate, all_of, any_of
from frazil.scan.plan import FileBatch, Plan
from frazil.scan.tasks import FileScanTask
from frazil.spark.own_columns import F
from frazil.spark.read.planned_files import (
    Constant,
    DeleteKind,
    FileGroup,
    PlannedBatch,
    ScanFiles,
    chosen_part,
    column_constant,
    vector_bytes,
)
from frazil.spark.read.read_columns import ReadColumn
from frazil.spark.read.relation import Reader, ReadRequest
from frazil.spec.reserved_columns import FILE, POS
from frazil.spec.schema import Schema
from frazil.spec.types import STRING, NestedField
from frazil.sql.quote_names import quote

PATH = NestedField(FILE.field_id + 1, "__frazil_path", STRING, required=True)
"""The path of a row's file, with an id that the specification has no column for."""


class FileChoice:
    """Which files are read, and what Spark asked to be planned.

    `only` are the files to read, by path, each with positions to leave out beside its deletes; None reads all.
    """

    def __init__(self, only: Mapping[str, DeletionVector] | None = None) -> None:
        self.only = only
        self._asked: list[Predicate] = []
        self._numbers: dict[str, int] = {}
        self._paths: list[str] = []
        self._lock = threading.Lock()

    def note(self, predicate: Predicate) -> None:
        """Note a filter that Spark asked files for."""
        with self._lock:
            if predicate not in self._asked:
                self._asked.append(predicate)

    @property
    def asked(self) -> Predicate | None:
        """What was asked for so far; None where nothing was."""
        with self._lock:
            return any_of(*self._asked) if self._asked else None

    def number_of(self, path: str) -> int:
        """Return the number of a file."""
        with self._lock:
            found = self._numbers.get(path)
            if found is None:
                found = self._numbers[path] = len(self._paths)
                self._paths.append(path)
            return found

    def path_of(self, number: int) -> str:
        """Return the file of a number."""
        with self._lock:
            return self._paths[number]


def read_chosen(spark: SparkSession, request: ReadRequest, choice: FileChoice) -> DataFrame | None:
    """Return rows of chosen files as a lazy DataFrame, `_file` as a number; None where there are no files.

    The request must show `_file` and `_pos` where positions are to be left out.
    """
    return _ChosenReader(spark, request, choice).rows()


def plan_tasks(request: ReadRequest, predicate: Predicate) -> dict[str, FileScanTask]:
    """Return the tasks of files that can hold rows of a filter, by path."""
    scan = ScanFiles(request.loaded, request.snapshot, request.schema, predicate, request.cache)
    return {task.data_file.file_path: task for task in scan.plan().iter_tasks()}


class _ChosenFiles(ScanFiles):
    def __init__(self, whole: ScanFiles, request: ReadRequest, choice: FileChoice) -> None:
        super().__init__(whole.loaded, whole.snapshot, whole.schema, whole.predicate, request.cache)
        self.paths, self.shapes, self.reaches = whole.paths, whole.shapes, whole.reaches
        self.session = whole.session
        self._choice = choice
        # Files that are read a second time, to be written again, were told before.
        self._on_read = whole._on_read if choice.only is None else None

    def whole(self, plan: Plan) -> list[FileBatch]:
        found = super().whole(plan)
        only = self._choice.only
        if only is None:
            return found
        parts = [
            chosen_part(file_batch, np.array([path in only for path in _paths(file_batch)], dtype=bool))
            for file_batch in found
        ]
        return [file_batch for file_batch in parts if file_batch is not None]

    def vector_bytes(self) -> int:
        """Return what files take whose rows may be joined; positions that are to be left out come as bits."""
        return super().vector_bytes() if self._choice.only is None else 0

    def stream(self, group: FileGroup, constants: Sequence[Constant], pushed: Predicate | None) -> bytes:
        self._choice.note(self.predicate if pushed is None else all_of(self.predicate, pushed))
        return super().stream(group, constants, pushed)

    def _delete_kinds(self, plan: Plan, batch: FileBatch) -> list[DeleteKind]:
        kinds = super()._delete_kinds(plan, batch)
        only = self._choice.only
        if only is None:
            return kinds
        paths = _paths(batch)
        each = kinds * len(paths) if len(kinds) == 1 else kinds
        return [
            DeleteKind.POSITIONS if delete_kind is DeleteKind.NONE and not only[path].is_empty else delete_kind
            for delete_kind, path in zip(each, paths, strict=True)
        ]

    def vectors_of(self, planned: PlannedBatch) -> pa.Array:
        only = self._choice.only
        if only is None:
            return super().vectors_of(planned)
        found = []
        for task in planned.plan.tasks_of(planned.batch):
            vector = load_positions(self.loaded.storage, task, self._positions)
            extra = only[task.data_file.file_path]
            found.append(vector_bytes(extra if vector is None else vector.union(extra), task.data_file))
        return pa.array(found, pa.binary())


def _paths(batch: FileBatch) -> list[str]:
    found: list[str] = batch.files.column("file_path").to_pylist()
    return found


class _ChosenReader(Reader):
    def __init__(self, spark: SparkSession, request: ReadRequest, choice: FileChoice) -> None:
        super().__init__(spark, request)
        self._choice = choice
        self._id = uuid.uuid4().hex
        self.scan = _ChosenFiles(self.scan, request, choice)

    def may_read_orc(self) -> bool:
        """Return that Python reads ORC: positions of rows are asked for."""
        return False

    def _own_constants(self, group: FileGroup) -> list[Constant]:
        file_name = self.names.own("file")
        found = [
            self._number_constant(constant.name) if constant.name == file_name else constant
            for constant in super()._own_constants(group)
        ]
        if self._shows(PATH):
            found.append(column_constant(self.names.own("path"), "file_path", pa.string()))
        return found

    def _value(self, field: NestedField, group: FileGroup, columns: dict[int, ReadColumn]) -> Column:
        if field.field_id == PATH.field_id:
            return F.col(quote(self.names.own("path")))
        return super()._value(field, group, columns)

    def _number_constant(self, name: str) -> Constant:
        number_of = self._choice.number_of

        def values(batch: PlannedBatch) -> pa.Array:
            return pa.array([number_of(path) for path in _paths(batch.batch)], pa.int32())

        return Constant(name, pa.int32(), values)

    def _read_by_python(self, group: FileGroup) -> DataFrame:
        """Return the rows of files that Python reads: paths become numbers, and positions are joined."""
        self._choice.note(self.predicate)
        whole = self.request
        schema = Schema(tuple(field for field in whole.output_schema.fields if field.field_id != PATH.field_id))
        self.request = replace(whole, output_schema=schema)
        frame = super()._read_by_python(group)
        self.request = whole
        if FILE.name not in frame.columns:
            return frame
        if self._shows(PATH):
            paths_too = frame.withColumn(PATH.name, F.col(FILE.name))
            frame = paths_too.select(*(quote(field.name) for field in whole.output_schema.fields))
        paths = [
            task.data_file.file_path
            for batch in self.scan.batches(group, None)
            for task in batch.plan.tasks_of(batch.batch)
        ]
        pairs = [column for path in paths for column in (F.lit(path), F.lit(self._choice.number_of(path)))]
        number = F.create_map(*pairs)[F.col(FILE.name)].cast("int")
        frame = frame.withColumn(FILE.name, number)
        only = self._choice.only
        gone = [] if only is None else [path for path in paths if not only[path].is_empty]
        if only is None or not gone:
            return frame
        positions = [only[path].to_numpy() for path in gone]
        numbers = [
            np.full(len(position), self._choice.number_of(path)) for path, position in zip(gone, positions, strict=True)
        ]
        table = pa.table(
            {FILE.name: pa.array(np.concatenate(numbers), pa.int32()), POS.name: pa.array(np.concatenate(positions))}
        )
        kept = frame.join(self.spark.createDataFrame(table), [FILE.name, POS.name], "left_anti")
        return kept.select(*(F.col(quote(name)) for name in frame.columns))

    def _key(self, group: FileGroup, data: list[st.StructField], constants: list[Constant]) -> str:
        return f"{super()._key(group, data, constants)} {self._id}"
