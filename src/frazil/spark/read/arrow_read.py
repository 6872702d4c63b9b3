"""Files that Spark's readers cannot read, as rows: Python reads them, on executors where it can.

Avro files, ORC files that Spark would not read right, and files on a storage that Spark has no driver for. The scan's
filter prunes when the frame is built, and what is left goes out as tasks (`scan/tasks.py`), packed by the table's split
properties, one Spark task for each pack. An executor reads its tasks with `datafile/read_task.py`, which applies
deletes and the filter, and hands Arrow batches to Spark in the stored form (`types.py`). Filters that are added to the
frame later are tested by Spark on rows that were read already.

A storage that lives in this process (`memory:`) is read here, when the frame is built. So is an object store whose
credentials were given to `connect`: a storage that is sent away leaves them behind. Those in the environment of
executors work.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import DataFrame, SparkSession

from frazil.codec.arrow_arrays import with_values
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import TableView, read_task
from frazil.errors import FrazilError
from frazil.scan.split import SplitOptions, plan_groups
from frazil.scan.tasks import FileScanTask
from frazil.spark.jvm.engine_errors import naming
from frazil.spark.jvm.file_systems import missing_line
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.read.planned_files import arrow_type_of, to_stored
from frazil.spark.types import stored_type
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, StructType, Type, VariantType
from frazil.storage.base import Storage
from frazil.storage.locations import scheme_of

OWN_SCHEME = "memory:"


@dataclass(frozen=True)
class ArrowRead:
    """What a Python worker needs to read tasks of a table; `columns` are the names its rows have on Spark."""

    view: TableView
    projection: Schema
    columns: tuple[str, ...]
    storage: Storage
    table: str
    snapshot_id: int | None
    with_ids: bool = False
    """Whether the rows' types tell the ids of parts."""

    @property
    def spark_schema(self) -> st.StructType:
        """The rows' schema on Spark, in the stored form."""
        return st.StructType(
            [
                st.StructField(name, stored_type(field.field_type, with_ids=self.with_ids), field.optional)
                for name, field in zip(self.columns, self.projection.fields, strict=True)
            ]
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The same as Arrow describes it."""
        return pa.schema(
            [
                pa.field(name, arrow_type_of(field.field_type), field.optional)
                for name, field in zip(self.columns, self.projection.fields, strict=True)
            ]
        )

    def rows(self, tasks: tuple[FileScanTask, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tasks in the stored form."""
        schema, cache = self.arrow_schema, DeleteCache()
        with naming(self.table, self.snapshot_id):
            for task in tasks:
                for batch in read_task(task, self.view, self.projection, self.storage, cache=cache):
                    columns = [
                        stored_array(batch.column(index), field.field_type, schema.field(index).type)
                        for index, field in enumerate(self.projection.fields)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)


class _WorkerRead:
    """What runs in a Python worker: rows of numbers come in, the rows of the packs of those numbers go out."""

    def __init__(self, read: ArrowRead, packs: list[bytes]) -> None:
        self._read = read
        self._packs = packs

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                # The driver of this very query made it.
                tasks = pickle.loads(self._packs[number])  # noqa: S301
                yield from self._read.rows(tasks)


def read_through_arrow(
    spark: SparkSession, read: ArrowRead, tasks: list[FileScanTask], options: SplitOptions
) -> DataFrame:
    """Return the rows of tasks that Python reads."""
    if not can_travel(read.storage, tasks):
        _warn_of_driver(read.table, tasks)
        table = pa.Table.from_batches(read.rows(tuple(tasks)), schema=read.arrow_schema)
        return spark.createDataFrame(table, read.spark_schema)
    ship_package(spark)
    packs = [pickle.dumps(group.tasks) for group in plan_groups(iter(tasks), options)]
    count = len(packs)
    return spark.range(0, count, 1, max(count, 1)).mapInArrow(_WorkerRead(read, packs), read.spark_schema)


def _warn_of_driver(name: str, tasks: list[FileScanTask]) -> None:
    """Say that this process reads files of a store that Spark could read with many."""
    far = [task for task in tasks if scheme_of(task.data_file.file_path) not in (None, "file", "memory")]
    if far:
        file_path = far[0].data_file.file_path
        size = sum(task.size_bytes for task in far)
        warnings.warn(
            f"{name} is read on the driver, {size} bytes of {len(far)} files: Spark has no file system for {file_path}."
            f" {missing_line(file_path)}",
            UserWarning,
            stacklevel=2,
        )


def can_travel(storage: Storage, tasks: list[FileScanTask]) -> bool:
    """Return whether a copy of the storage reads the tasks' files: one in memory does not, nor one that needs keys."""
    paths = [task.data_file.file_path for task in tasks]
    if any(path.startswith(OWN_SCHEME) for path in paths):
        return False
    far = [path for path in paths if ":/" in path and not path.startswith("file:")]
    try:
        # Made here and from this very storage.
        copy = pickle.loads(pickle.dumps(storage))  # noqa: S301
        if far:
            copy.size(far[0])
    except (FrazilError, TypeError, AttributeError, pickle.PicklingError):
        return False
    return True


def stored_array(array: Any, data_type: Type, target: pa.DataType) -> Any:
    """Return values as they are read in this process in the form Spark is given."""
    if array.type == target:
        return array
    if isinstance(data_type, VariantType):
        # Spark names the parts of a variant in the other order.
        parts = [array.field(array.type.get_field_index(field.name)) for field in target]
        return pa.StructArray.from_arrays(
            [part.cast(pa.binary()) for part in parts], fields=list(target), mask=array.is_null()
        )
    if isinstance(data_type, StructType):
        parts = [
            stored_array(array.field(index), field.field_type, target.field(index).type)
            for index, field in enumerate(data_type.fields)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())
    if isinstance(data_type, ListType):
        child = stored_array(array.values, data_type.element_type, target.value_type)
        return with_values(array, child, target)
    if isinstance(data_type, MapType):
        keys = stored_array(array.keys, data_type.key_type, target.key_type)
        items = stored_array(array.items, data_type.value_type, target.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        return with_values(array, entries, target)
    return to_stored(array, target)
