"""Write rows to data files in Python workers on executors, for tables that Spark's writer does not support.

This covers lists, maps, uuid, fixed, time, nanoseconds, variants, geometries, ORC, Avro, hashed locations, and stores
without a Spark file system. Rows arrive as Arrow batches, each task's rows go through one `DataFileWriter`, and the
results are descriptions of files. A task may run twice: each run uses its own id in file names, and only files reported
by a successful run are ever committed. Files of a failed run belong to nothing, and are not deleted on a guess.

A storage in the memory of this process, or one whose credentials were passed to `connect` and stay here, is written to
from this process; the rows must fit in memory.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyspark.sql.types as st
from pyspark import TaskContext
from pyspark.sql import DataFrame

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.format_writer import Convert, find_reshape, reshape_table
from frazil.datafile.stored_schema import stored_schema
from frazil.datafile.write import DataFileWriter
from frazil.datafile.write_target import WriteTarget
from frazil.errors import FrazilError
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.file_systems import missing_line
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.read.partition_columns import stored_as
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.types import Type, VariantType
from frazil.storage.locations import scheme_of
from frazil.storage.object_properties import S3_USE_ENVIRONMENT

RESULT = st.StructType([st.StructField("files", st.BinaryType(), nullable=False)])
_TASK_HELD_BYTES = 64 << 20

Batches = Iterator[pa.RecordBatch]


def write_on_executors(frame: DataFrame, target: WriteTarget) -> list[DataFile]:
    """Write a frame in stored form; return its files."""
    ship_package(frame.sparkSession)
    names = frame.columns
    if any("." in name or "`" in name for name in names):
        # Spark looks up the columns it sends by name, and would misread such a name.
        frame = frame.toDF(*[f"column_{index}" for index in range(len(names))])
    with engine_errors("write data files"):
        results = frame.mapInArrow(_writer_of(target, names), RESULT).collect()
    return [file for row in results for file in pickle.loads(row["files"])]  # noqa: S301 - our own tasks pickled it


def write_on_driver(frame: DataFrame, target: WriteTarget, *, is_reached: bool) -> list[DataFile]:
    """Write a frame in stored form from the driver, which collects all rows, since executors cannot.

    `is_reached` says whether Spark has a file system for the table's files.
    """
    with engine_errors("collect the rows to write"):
        table = frame.toArrow()
    if table.num_rows == 0:
        return []
    _warn_of_write_on_driver(target.location, table.nbytes, is_reached=is_reached)
    form = _ArrowForm(target, table.schema)
    with DataFileWriter(target, form.arrow) as writer:
        for batch in table.to_batches():
            for converted in form.convert(batch):
                writer.write(converted)
        return writer.close()


def _warn_of_write_on_driver(location: str, size_bytes: int, *, is_reached: bool) -> None:
    """Warn if the driver writes files to a store that executors could write to."""
    if scheme_of(location) in (None, "file", "memory"):
        return
    reason = f"Spark has no file system for it. {missing_line(location)}"
    if is_reached:
        reason = (
            "Spark's writer does not support the table, and the credentials do not leave the driver. Give executors "
            f"credentials in their environment, and connect with {S3_USE_ENVIRONMENT}."
        )
    warnings.warn(f"{size_bytes} bytes are written on the driver, to {location}: {reason}", UserWarning, stacklevel=2)


def can_travel(target: WriteTarget) -> bool:
    """Return whether a copy of a table's storage works elsewhere: not if it is in memory or needs credentials."""
    if target.location.startswith("memory:"):
        return False
    try:
        # Pickled here, from this storage.
        copy = pickle.loads(pickle.dumps(target.storage))  # noqa: S301
        if not target.location.startswith("file:"):
            copy.exists(f"{target.location}/none")
    except (FrazilError, TypeError, AttributeError, pickle.PicklingError):
        return False
    return True


def _writer_of(target: WriteTarget, names: list[str]) -> Callable[[Batches], Batches]:
    def write(batches: Batches) -> Batches:
        yield from write_task(target, (batch.rename_columns(names) for batch in batches))

    return write


def write_task(target: WriteTarget, batches: Batches) -> Batches:
    """Write the rows of one task and yield the written files, pickled."""
    context: Any = TaskContext.get()
    writer: DataFileWriter | None = None
    form: _ArrowForm | None = None
    try:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None or form is None:
                form = _ArrowForm(target, batch.schema)
                writer = DataFileWriter(
                    target,
                    form.arrow,
                    held_bytes=_TASK_HELD_BYTES,
                    threads=1,
                    partition_id=0 if context is None else context.partitionId(),
                    task_id=0 if context is None else context.taskAttemptId(),
                )
            for converted in form.convert(batch):
                writer.write(converted)
        files = [] if writer is None else writer.close()
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    result = pa.array([pickle.dumps(files)], pa.binary())
    yield pa.RecordBatch.from_arrays([result], schema=pa.schema([pa.field("files", pa.binary(), nullable=False)]))


class _ArrowForm:
    """Converts batches from Spark, with columns in stored form, to the Arrow types of the table."""

    def __init__(self, target: WriteTarget, source: pa.Schema) -> None:
        lineage = tuple(lineage_column for lineage_column in ROW_LINEAGE_COLUMNS if lineage_column.name in source.names)
        fields = target.schema.fields + tuple(field for field in lineage if field not in target.schema.fields)
        schema = stored_schema(Schema(fields))
        self._names = [field.name for field in schema.fields]
        target_schema = to_arrow_schema(schema, with_ids=False)
        kept: list[pa.Field] = []
        self._reshapes: list[Convert | None] = []
        for nested_field, field in zip(schema.fields, target_schema, strict=True):
            source_type = source.field(nested_field.name).type
            # A variant keeps the two columns of Spark, in any order.
            is_own = isinstance(nested_field.field_type, VariantType)
            kept.append(pa.field(nested_field.name, source_type if is_own else field.type))
            self._reshapes.append(
                None if is_own else find_reshape(nested_field.field_type, source_type, field.type, _leaf)
            )
        self.arrow = pa.schema(kept)

    def convert(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        table = pa.Table.from_batches([batch.select(self._names)])
        return list(reshape_table(table, self._reshapes, self.arrow).to_batches())


def _leaf(data_type: Type, source: pa.DataType, target: pa.DataType) -> Convert | None:
    if source == target:
        return None

    def convert(array: Any) -> Any:
        stored = stored_as(array, data_type)
        return pa.ExtensionArray.from_storage(target, stored) if isinstance(target, pa.BaseExtensionType) else stored

    return convert
