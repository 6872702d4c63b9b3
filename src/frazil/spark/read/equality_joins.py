"""Equality deletes as anti-joins. Specification: "Equality Delete Files", "Scan Planning".

An equality delete removes rows with equal values in its columns (nulls are equal) from data files with a lower data
sequence number: in all partitions if its spec is unpartitioned, else in its own. Delete files with the same columns are
read and joined together, global ones apart from those of partitions.

Partitions are numbered. The number of a file's partition and its sequence number are constants on both sides of the
join, so that it compares numbers and never paths or tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.datafile.equality_deletes import equality_columns
from frazil.datafile.read_file import read_columns
from frazil.datafile.read_task import TableView
from frazil.expr.bind import reference_to
from frazil.expr.columns.masks import term_column
from frazil.expr.predicates import BoundReference
from frazil.scan.tasks import DeleteTask
from frazil.spark.jvm.private_names import planned_relation
from frazil.spark.own_columns import F
from frazil.spark.read.planned_files import ScanFiles, arrow_type_of, files_stream, to_stored
from frazil.spark.read.read_columns import ReadColumn, ReadNames
from frazil.spark.types import stored_type
from frazil.spec.data_file import FileContent, FileFormat, PartitionKey
from frazil.spec.partition_key import partition_key_of
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField
from frazil.sql.quote_names import quote

ALL_PARTITIONS = -2
"""The partition number of global deletes; no data file has it."""


@dataclass(frozen=True)
class _DeleteSet:
    """The deletes by one set of columns, either global ones or those of partitions."""

    schema: Schema
    field_ids: tuple[int, ...]
    tasks: tuple[DeleteTask, ...]
    is_global: bool


@dataclass(frozen=True)
class EqualityJoins:
    """The equality deletes of a scan, ready to be joined; `keys` numbers their partitions."""

    scan: ScanFiles
    names: ReadNames
    view: TableView
    sets: tuple[_DeleteSet, ...]
    keys: dict[PartitionKey, int]
    options: dict[str, str]

    @classmethod
    def of(cls, scan: ScanFiles, names: ReadNames, view: TableView, options: dict[str, str]) -> EqualityJoins:
        """Collect the equality deletes of a scan."""
        keys: dict[PartitionKey, int] = {}
        tasks_by_columns: dict[tuple[tuple[int, ...], bool], list[DeleteTask]] = {}
        for task in scan.plan().delete_files:
            file = task.data_file
            if file.content is not FileContent.EQUALITY_DELETES:
                continue
            is_global = view.spec_of(file).is_unpartitioned
            if not is_global:
                keys.setdefault(partition_key_of(file), len(keys))
            tasks_by_columns.setdefault((tuple(sorted(set(file.equality_ids or ()))), is_global), []).append(task)
        sets = tuple(
            _DeleteSet(
                equality_columns(view.schemas, ids, members[0].data_file.file_path), ids, tuple(members), is_global
            )
            for (ids, is_global), members in tasks_by_columns.items()
        )
        return cls(scan, names, view, sets, keys, options)

    def columns(self) -> list[NestedField]:
        """Return the top-level columns that deletes compare, including dropped ones, with duplicates."""
        return [field for delete_set in self.sets for field in delete_set.schema.fields]

    def without_deleted(
        self, spark: SparkSession, frame: DataFrame, find: Callable[[BoundReference], Column], mark: str | None = None
    ) -> DataFrame:
        """Return the rows that no equality delete removes; `find` returns a compared column of the frame.

        With `mark`, return all rows, with a column of that name for whether the row is removed.
        """
        marks = []
        for number, delete_set in enumerate(self.sets):
            references = [reference_to(delete_set.schema, field_id) for field_id in delete_set.field_ids]
            theirs = [self.names.own(f"key_{number}_{index}") for index in range(len(references))]
            sequence, partition_column = self.names.own(f"sequence_{number}"), self.names.own(f"part_{number}")
            deleted = self._deleted_keys(spark, delete_set, references, theirs, sequence, partition_column)
            condition = F.col(quote(sequence)) > F.col(quote(self.names.own("sequence")))
            if not delete_set.is_global:
                condition &= F.col(quote(partition_column)) == F.col(quote(self.names.own("part")))
            for reference, name in zip(references, theirs, strict=True):
                condition &= find(reference).eqNullSafe(F.col(quote(name)))
            if mark is None:
                frame = frame.join(deleted, condition, "left_anti")
            else:
                flag = self.names.own(f"gone_{number}")
                # Keys are unique, so the join duplicates no row.
                frame = frame.join(deleted.withColumn(flag, F.lit(True)), condition, "left_outer")
                marks.append(F.coalesce(F.col(quote(flag)), F.lit(False)))
        if mark is not None:
            frame = frame.withColumn(mark, reduce(Column.__or__, marks, F.lit(False)))
        return frame

    def _deleted_keys(
        self,
        spark: SparkSession,
        delete_set: _DeleteSet,
        references: list[BoundReference],
        names: list[str],
        sequence: str,
        partition_column: str,
    ) -> DataFrame:
        """Return the deleted keys, unique per partition, with the highest sequence number that deletes each."""
        legs = []
        native = [task for task in delete_set.tasks if task.data_file.file_format is FileFormat.PARQUET]
        other = [task for task in delete_set.tasks if task.data_file.file_format is not FileFormat.PARQUET]
        if native:
            legs.append(self._read_native(spark, delete_set, native, references, names, sequence, partition_column))
        if other:
            legs.append(
                self._read_in_this_process(spark, delete_set, other, references, names, sequence, partition_column)
            )
        keys = [F.col(quote(name)) for name in (*names, partition_column)]
        grouped = reduce(DataFrame.unionAll, legs).groupBy(*keys)
        return grouped.agg(F.max(F.col(quote(sequence))).alias(sequence))

    def _number(self, task: DeleteTask, *, is_global: bool) -> int:
        return ALL_PARTITIONS if is_global else self.keys[partition_key_of(task.data_file)]

    def _read_native(
        self,
        spark: SparkSession,
        delete_set: _DeleteSet,
        tasks: list[DeleteTask],
        references: list[BoundReference],
        names: list[str],
        sequence: str,
        partition_column: str,
    ) -> DataFrame:
        stream = files_stream(
            self.scan,
            [task.data_file for task in tasks],
            {
                sequence: pa.array([task.data_sequence_number for task in tasks], pa.int64()),
                partition_column: pa.array(
                    [self._number(task, is_global=delete_set.is_global) for task in tasks], pa.int32()
                ),
            },
        )
        columns = {column.field_id: ReadColumn(column, self.names) for column in delete_set.schema.fields}
        paths = [task.data_file.file_path for task in tasks]
        frame = planned_relation(
            spark,
            lambda _: stream,
            key=f"equality deletes {self.scan.loaded.metadata.table_uuid} {delete_set.field_ids} {paths}",
            root=self.scan.loaded.metadata.location,
            data=st.StructType([column.struct_field() for column in columns.values()]),
            constants=st.StructType(
                [
                    st.StructField(sequence, st.LongType(), False),
                    st.StructField(partition_column, st.IntegerType(), False),
                ]
            ),
            table=self.scan.loaded.name,
            size_bytes=sum(task.data_file.file_size_in_bytes for task in tasks),
            rows=sum(task.data_file.record_count for task in tasks),
            file_format=FileFormat.PARQUET.value,
            options=self.options,
            session=self.scan.session,
        )
        keys = []
        for reference, name in zip(references, names, strict=True):
            column = columns[
                (delete_set.schema.ancestors_of(reference.field_id) or [reference.field])[-1].field_id
            ].stored()
            for step in reference.path[1:]:
                column = column[step]
            keys.append(column.alias(name))
        return frame.select(*keys, F.col(quote(sequence)), F.col(quote(partition_column)))

    def _read_in_this_process(
        self,
        spark: SparkSession,
        delete_set: _DeleteSet,
        tasks: list[DeleteTask],
        references: list[BoundReference],
        names: list[str],
        sequence: str,
        partition_column: str,
    ) -> DataFrame:
        """Read delete files for which Spark has no reader, in this process."""
        kinds = [arrow_type_of(reference.result_type) for reference in references]
        schema = pa.schema(
            [
                *(pa.field(name, arrow_type) for name, arrow_type in zip(names, kinds, strict=True)),
                pa.field(sequence, pa.int64()),
                pa.field(partition_column, pa.int32()),
            ]
        )
        batches = []
        for task in tasks:
            number = self._number(task, is_global=delete_set.is_global)
            for rows in read_columns(self.scan.loaded.storage, task.data_file, delete_set.schema, self.view.rules):
                keys = [
                    to_stored(term_column(reference, rows), arrow_type)
                    for reference, arrow_type in zip(references, kinds, strict=True)
                ]
                count = rows.num_rows
                keys += [pa.repeat(pa.scalar(task.data_sequence_number, pa.int64()), count)]
                keys += [pa.repeat(pa.scalar(number, pa.int32()), count)]
                batches.append(pa.record_batch(keys, schema=schema))
        fields = [
            st.StructField(name, stored_type(reference.result_type))
            for name, reference in zip(names, references, strict=True)
        ]
        fields += [st.StructField(sequence, st.LongType()), st.StructField(partition_column, st.IntegerType())]
        return spark.createDataFrame(pa.Table.from_batches(batches, schema=schema), st.StructType(fields))
