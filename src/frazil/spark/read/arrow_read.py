"""Reading in Python, on executors if possible, of files that Spark's readers cannot read.

These are Avro files, ORC files that Spark would read incorrectly, and files on a storage without a Spark file system.
The scan's filter prunes when the frame is built. The remaining tasks (`scan/tasks.py`) are packed by the table's split
properties, one Spark task per pack. An executor reads its tasks with `datafile/read_task.py`, which applies deletes and
the filter, and passes Arrow batches to Spark in the stored form (`types.py`). Spark applies filters that are added to
the frame later.

An in-memory storage (`memory:`) is read in this process when the frame is built. So is an object store whose
credentials were passed to `connect`, since a pickled storage leaves them out. Credentials in the environment of the
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
    """The arguments of a Python worker that reads tasks of a table; `columns` are the names of the columns on Spark."""

    view: TableView
    projection: Schema
    columns: tuple[str, ...]
    storage: Storage
    table: str
    snapshot_id: int | None
    with_ids: bool = False
    """Whether the types include the ids of nested fields."""

    @property
    def spark_schema(self) -> st.StructType:
        """The Spark schema of the rows, in stored form."""
        return st.StructType(
            [
                st.StructField(name, stored_type(field.field_type, with_ids=self.with_ids), field.optional)
                for name, field in zip(self.columns, self.projection.fields, strict=True)
            ]
        )

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows, in the format's types."""
        return pa.schema(
            [
                pa.field(name, arrow_type_of(field.field_type), field.optional)
                for name, field in zip(self.columns, self.projection.fields, strict=True)
            ]
        )

    def rows(self, tasks: tuple[FileScanTask, ...]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tasks in stored form."""
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
    """The function of a Python worker: from the numbers of packs to the rows of their tasks."""

    def __init__(self, read: ArrowRead, packs: list[bytes]) -> None:
        self._read = read
        self._packs = packs

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                # The driver of this query pickled it.
                tasks = pickle.loads(self._packs[number])  # noqa: S301
                yield from self._read.rows(tasks)


def read_through_arrow(
    spark: SparkSession, read: ArrowRead, tasks: list[FileScanTask], options: SplitOptions
) -> DataFrame:
    """Return a DataFrame of the rows of tasks, read in Python."""
    if not can_travel(read.storage, tasks):
        _warn_of_read_on_driver(read.table, tasks)
        table = pa.Table.from_batches(read.rows(tuple(tasks)), schema=read.arrow_schema)
        return spark.createDataFrame(table, read.spark_schema)
    ship_package(spark)
    packs = [pickle.dumps(group.tasks) for group in plan_groups(iter(tasks), options)]
    count = len(packs)
    return spark.range(0, count, 1, max(count, 1)).mapInArrow(_WorkerRead(read, packs), read.spark_schema)


def _warn_of_read_on_driver(name: str, tasks: list[FileScanTask]) -> None:
    """Warn if the driver reads files of a store that executors could read."""
    remote = [task for task in tasks if scheme_of(task.data_file.file_path) not in (None, "file", "memory")]
    if remote:
        file_path = remote[0].data_file.file_path
        size = sum(task.size_bytes for task in remote)
        warnings.warn(
            f"{name} is read on the driver, {size} bytes of {len(remote)} files: "
            f"Spark has no file system for {file_path}. {missing_line(file_path)}",
            UserWarning,
            stacklevel=2,
        )


def can_travel(storage: Storage, tasks: list[FileScanTask]) -> bool:
    """Return whether a pickled copy of the storage can read the tasks' files: it loses memory and credentials."""
    paths = [task.data_file.file_path for task in tasks]
    if any(path.startswith(OWN_SCHEME) for path in paths):
        return False
    remote = [path for path in paths if ":/" in path and not path.startswith("file:")]
    try:
        # Pickled here, from this storage.
        copy = pickle.loads(pickle.dumps(storage))  # noqa: S301
        if remote:
            copy.size(remote[0])
    except (FrazilError, TypeError, AttributeError, pickle.PicklingError):
        return False
    return True


def stored_array(array: Any, data_type: Type, target: pa.DataType) -> Any:
    """Convert an Arrow array of frazil's readers to the stored form."""
    if array.type == target:
        return array
    if isinstance(data_type, VariantType):
        # Spark orders the fields of a variant differently.
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
