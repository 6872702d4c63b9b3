"""The rows of a table for a row-level change: with their files and positions, and from chosen files.

A change first searches all files for matching rows, and records the filters for which Spark requested files: that is
its read set, which other writers must not have changed meanwhile. Then, to rewrite files, it reads only some files, and
all of their rows but the matching ones. Both use the lazy relation (`relation.py`) over a chosen set of files.

`_file` is a number here, unique within one choice, since paths would enlarge every shuffled row. A condition on paths
uses `PATH` instead.
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
"""The path of a row's file, with a field id that the specification does not use."""


class FileChoice:
    """The files to read, and the filters for which Spark requested plans.

    `only` maps the paths to read to positions to leave out, in addition to deletes; None reads all files.
    """

    def __init__(self, only: Mapping[str, DeletionVector] | None = None) -> None:
        self.only = only
        self._requested: list[Predicate] = []
        self._numbers: dict[str, int] = {}
        self._paths: list[str] = []
        self._lock = threading.Lock()

    def note(self, predicate: Predicate) -> None:
        """Record a filter for which Spark requested files."""
        with self._lock:
            if predicate not in self._requested:
                self._requested.append(predicate)

    @property
    def requested(self) -> Predicate | None:
        """The union of the filters recorded so far, or None."""
        with self._lock:
            return any_of(*self._requested) if self._requested else None

    def number_of(self, path: str) -> int:
        """Return the number of a file, assigning one if it has none."""
        with self._lock:
            number = self._numbers.get(path)
            if number is None:
                number = self._numbers[path] = len(self._paths)
                self._paths.append(path)
            return number

    def path_of(self, number: int) -> str:
        """Return the path of a file by its number."""
        with self._lock:
            return self._paths[number]


def read_chosen(spark: SparkSession, request: ReadRequest, choice: FileChoice) -> DataFrame | None:
    """Return rows of chosen files as a lazy DataFrame, with `_file` as a number; None if there are no files.

    The request must include `_file` and `_pos` if positions are to be left out.
    """
    return _ChosenReader(spark, request, choice).rows()


def plan_tasks(request: ReadRequest, predicate: Predicate) -> dict[str, FileScanTask]:
    """Return the tasks of files that may hold rows matching a filter, by path."""
    scan = ScanFiles(request.loaded, request.snapshot, request.schema, predicate, request.cache)
    return {task.data_file.file_path: task for task in scan.plan().iter_tasks()}


class _ChosenFiles(ScanFiles):
    def __init__(self, whole: ScanFiles, request: ReadRequest, choice: FileChoice) -> None:
        super().__init__(whole.loaded, whole.snapshot, whole.schema, whole.predicate, request.cache)
        self.paths, self.shapes, self.reaches = whole.paths, whole.shapes, whole.reaches
        self.session = whole.session
        self._choice = choice
        # The second read of files, to rewrite them, is not reported again.
        self._on_read = whole._on_read if choice.only is None else None

    def whole(self, plan: Plan) -> list[FileBatch]:
        batches = super().whole(plan)
        only = self._choice.only
        if only is None:
            return batches
        parts = [
            chosen_part(file_batch, np.array([path in only for path in _paths(file_batch)], dtype=bool))
            for file_batch in batches
        ]
        return [file_batch for file_batch in parts if file_batch is not None]

    def vector_bytes(self) -> int:
        """Return the size of bitmaps if all files are read, else 0: positions to leave out are always bitmaps."""
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
        vectors = []
        for task in planned.plan.tasks_of(planned.batch):
            vector = load_positions(self.loaded.storage, task, self._positions)
            extra = only[task.data_file.file_path]
            vectors.append(vector_bytes(extra if vector is None else vector.union(extra), task.data_file))
        return pa.array(vectors, pa.binary())


def _paths(batch: FileBatch) -> list[str]:
    paths: list[str] = batch.files.column("file_path").to_pylist()
    return paths


class _ChosenReader(Reader):
    def __init__(self, spark: SparkSession, request: ReadRequest, choice: FileChoice) -> None:
        super().__init__(spark, request)
        self._choice = choice
        self._id = uuid.uuid4().hex
        self.scan = _ChosenFiles(self.scan, request, choice)

    def may_read_orc(self) -> bool:
        """Return False: Spark's ORC reader has no positions."""
        return False

    def _own_constants(self, group: FileGroup) -> list[Constant]:
        file_name = self.names.own("file")
        constants = [
            self._number_constant(constant.name) if constant.name == file_name else constant
            for constant in super()._own_constants(group)
        ]
        if self._shows(PATH):
            constants.append(column_constant(self.names.own("path"), "file_path", pa.string()))
        return constants

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
        """Return the rows of files that Python reads, with numbers for paths, and without positions to leave out."""
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
        with_exclusions = [] if only is None else [path for path in paths if not only[path].is_empty]
        if only is None or not with_exclusions:
            return frame
        positions = [only[path].to_numpy() for path in with_exclusions]
        numbers = [
            np.full(len(position), self._choice.number_of(path))
            for path, position in zip(with_exclusions, positions, strict=True)
        ]
        table = pa.table(
            {FILE.name: pa.array(np.concatenate(numbers), pa.int32()), POS.name: pa.array(np.concatenate(positions))}
        )
        remaining = frame.join(self.spark.createDataFrame(table), [FILE.name, POS.name], "left_anti")
        return remaining.select(*(F.col(quote(name)) for name in frame.columns))

    def _key(self, group: FileGroup, data: list[st.StructField], constants: list[Constant]) -> str:
        return f"{super()._key(group, data, constants)} {self._id}"
