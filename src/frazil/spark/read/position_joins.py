"""Deleted positions as an anti-join, for tables with too many to hold as bitmaps on the driver.

Bitmaps of deleted rows are normally part of the query's plan (`planned_files.py`), which is the fastest way to test
them; a file of a million rows needs at most 125 kB. If all bitmaps of a scan together would exceed its budget,
executors read the positions as rows of path, position and sequence number, and join them: Parquet position delete files
with Spark's own reader, deletion vectors and other formats in Python.

If a file has a deletion vector, its other position deletes are ignored. Paths are compared as manifests and delete
files spell them (`datafile/position_deletes.py`); partitions and sequence numbers apply as in `scan/delete_index.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.position_deletes import read_positions
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS, read_columns
from frazil.scan.tasks import DeleteTask
from frazil.spark.jvm.engine_errors import naming
from frazil.spark.jvm.private_names import planned_relation
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.own_columns import F
from frazil.spark.read.planned_files import ScanFiles, files_stream
from frazil.spark.read.read_columns import ReadNames
from frazil.spark.types import FIELD_ID
from frazil.spec.data_file import FileContent, FileFormat, PartitionKey
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.partition_key import partition_key_of
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.sql.quote_names import quote
from frazil.storage.base import Storage

DEFAULT_BUDGET_BYTES = 64 << 20
"""The most bytes of bitmaps in one query's plan."""

_PACK_ROWS = 4_000_000
_RULES = ReadRules(POSITION_DELETE_SCHEMA, create_name_mapping(POSITION_DELETE_SCHEMA))
_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("pos", pa.int64()),
        pa.field("sequence", pa.int64()),
        pa.field("part", pa.int32()),
        pa.field("is_vector", pa.bool_()),
    ]
)
_COLUMNS = "path string, pos bigint, sequence bigint, part int, is_vector boolean"


@dataclass(frozen=True)
class PositionJoin:
    """The position deletes of a scan, ready to be joined; `keys` numbers their partitions."""

    scan: ScanFiles
    names: ReadNames
    tasks: tuple[DeleteTask, ...]
    keys: dict[PartitionKey, int]
    options: dict[str, str]

    @classmethod
    def of(cls, scan: ScanFiles, names: ReadNames, options: dict[str, str]) -> PositionJoin:
        """Collect the position deletes of a scan."""
        tasks = [
            delete_file
            for delete_file in scan.plan().delete_files
            if delete_file.data_file.content is FileContent.POSITION_DELETES
        ]
        keys: dict[PartitionKey, int] = {}
        for task in tasks:
            keys.setdefault(partition_key_of(task.data_file), len(keys))
        return cls(scan, names, tuple(tasks), keys, options)

    def without_deleted(self, spark: SparkSession, frame: DataFrame, mark: str | None = None) -> DataFrame:
        """Return the rows that are not deleted; with `mark`, all rows, with that column for whether one is deleted.

        The frame has each row's path, position, sequence number and partition number under internal names.
        """
        own = self.names.own
        deleted = self._deleted(spark)
        theirs = {name: own(f"deleted_{name}") for name in _SCHEMA.names}
        deleted = deleted.select(*[F.col(name).alias(alias) for name, alias in theirs.items()])
        condition = self._condition(theirs)
        if mark is None:
            return frame.join(deleted, condition, "left_anti")
        keys = [F.col(quote(theirs[name])) for name in ("path", "pos", "part", "is_vector")]
        newest = F.max(F.col(quote(theirs["sequence"]))).alias(theirs["sequence"])
        flag = own("deleted_flag")
        once = deleted.groupBy(*keys).agg(newest).withColumn(flag, F.lit(True))
        return frame.join(once, condition, "left_outer").withColumn(mark, F.coalesce(F.col(quote(flag)), F.lit(False)))

    def _condition(self, theirs: dict[str, str]) -> Column:
        own = self.names.own
        same = [("path", "file_path"), ("pos", "pos"), ("part", "position_part"), ("is_vector", "has_vector")]
        tests = [F.col(quote(theirs[name])) == F.col(quote(own(ours))) for name, ours in same]
        tests.append(F.col(quote(theirs["sequence"])) >= F.col(quote(own("sequence"))))
        return reduce(Column.__and__, tests)

    def _deleted(self, spark: SparkSession) -> DataFrame:
        native = [task for task in self.tasks if task.data_file.file_format is FileFormat.PARQUET]
        other = [task for task in self.tasks if task.data_file.file_format is not FileFormat.PARQUET]
        legs = []
        if native:
            legs.append(self._read_native(spark, native))
        if other:
            legs.append(self._read_by_python(spark, other))
        return reduce(DataFrame.unionAll, legs)

    def _numbers(self, tasks: list[DeleteTask]) -> tuple[list[int], list[int]]:
        sequences = [task.data_sequence_number for task in tasks]
        return sequences, [self.keys[partition_key_of(task.data_file)] for task in tasks]

    def _read_native(self, spark: SparkSession, tasks: list[DeleteTask]) -> DataFrame:
        sequences, parts = self._numbers(tasks)
        stream = files_stream(
            self.scan,
            [task.data_file for task in tasks],
            {"sequence": pa.array(sequences, pa.int64()), "part": pa.array(parts, pa.int32())},
        )
        positions = planned_relation(
            spark,
            lambda _: stream,
            key=f"position deletes {[task.data_file.file_path for task in tasks]} {sequences} {parts}",
            root=self.scan.loaded.metadata.location,
            data=st.StructType(
                [
                    st.StructField("path", st.StringType(), False, {FIELD_ID: DELETE_FILE_PATH.field_id}),
                    st.StructField("pos", st.LongType(), False, {FIELD_ID: DELETE_POS.field_id}),
                ]
            ),
            constants=st.StructType(
                [st.StructField("sequence", st.LongType(), False), st.StructField("part", st.IntegerType(), False)]
            ),
            table=self.scan.loaded.name,
            size_bytes=sum(task.data_file.file_size_in_bytes for task in tasks),
            rows=sum(task.data_file.record_count for task in tasks),
            file_format=FileFormat.PARQUET.value,
            options=self.options,
            session=self.scan.session,
        )
        return positions.withColumn("is_vector", F.lit(False))

    def _read_by_python(self, spark: SparkSession, tasks: list[DeleteTask]) -> DataFrame:
        ship_package(spark)
        packs: list[bytes] = []
        pack: list[tuple[DeleteTask, int]] = []
        rows = 0
        for task, number in zip(tasks, self._numbers(tasks)[1], strict=True):
            pack.append((task, number))
            rows += task.data_file.record_count
            if rows >= _PACK_ROWS:
                packs.append(pickle.dumps(pack))
                pack, rows = [], 0
        if pack:
            packs.append(pickle.dumps(pack))
        count = len(packs)
        reader = _WorkerPositions(self.scan.loaded.storage, packs, self.scan.loaded.name, self.scan.snapshot_id)
        return spark.range(0, count, 1, count).mapInArrow(reader, _COLUMNS)


class _WorkerPositions:
    """The function of a Python worker: from the numbers of packs to the positions of their deletes."""

    def __init__(self, storage: Storage, packs: list[bytes], table: str, snapshot_id: int | None) -> None:
        self._storage = storage
        self._packs = packs
        self._table = table
        self._snapshot_id = snapshot_id

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                # The driver of this query pickled it.
                for task, part in pickle.loads(self._packs[number]):  # noqa: S301
                    with naming(self._table, self._snapshot_id):
                        yield from self._positions(task, part)

    def _positions(self, task: DeleteTask, number: int) -> Iterator[pa.RecordBatch]:
        file = task.data_file
        if file.is_deletion_vector:
            path = file.referenced_data_file or ""
            for positions in read_positions(self._storage, task, path, DeleteCache()).parts(DEFAULT_BATCH_ROWS):
                yield _batch(pa.repeat(pa.scalar(path), len(positions)), positions, task, number)
            return
        for rows in read_columns(self._storage, file, POSITION_DELETE_SCHEMA, _RULES):
            yield _batch(rows.column(0).cast(pa.string()), rows.column(1), task, number)


def _batch(paths: pa.Array, positions: Any, task: DeleteTask, number: int) -> pa.RecordBatch:
    count = len(paths)
    sequence = pa.repeat(pa.scalar(task.data_sequence_number, pa.int64()), count)
    numbers = pa.repeat(pa.scalar(number, pa.int32()), count)
    is_vector = pa.repeat(pa.scalar(task.data_file.is_deletion_vector), count)
    return pa.record_batch([paths, pa.array(positions, pa.int64()), sequence, numbers, is_vector], schema=_SCHEMA)
