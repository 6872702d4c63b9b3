"""Write rows to Parquet files with Spark's own writer, without any of frazil's code on executors.

The files go into a new folder below the table's data folder, whose name no other writer knows. Tasks report nothing to
Python, and their files are not named by attempt. So the commit protocol is fixed to the one that moves a task's files
only when the task has succeeded, and the content of the folder counts once the job has succeeded: in object stores it
must also leave `_SUCCESS`. Then a few threads read footers for metrics. A failed job leaves a folder that nothing
references; its files are deleted, as are, for some seconds, those that late tasks still write.

The limits of Spark's writer are decided here too: it sets no field ids on lists and maps, and uuid, fixed, time and
nanosecond columns do not get their required types (`arrow_write.py` writes those).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from frazil.catalog.purge import remove_empty_folders
from frazil.datafile.describe_parquet import DescribeRules, describe_parquet
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.datafile.write_target import WriteTarget
from frazil.errors import EngineError, FrazilError
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.file_systems import hadoop_options
from frazil.spark.jvm.jvm_write import write_parquet
from frazil.spark.read.partition_columns import decode_key
from frazil.spark.write.distribute import has_partitions
from frazil.spec import properties as known
from frazil.spec import types as ft
from frazil.spec.data_file import DataFile
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.properties import read_column_properties, read_property
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED_ORDER_ID
from frazil.storage.base import Storage, StoredFile
from frazil.storage.choose import check_readable, check_writable
from frazil.storage.local import local_path
from frazil.storage.locations import data_locations, scheme_of
from frazil.threads import default_threads, map_in_order

_NATIVE = (
    ft.BooleanType,
    ft.IntType,
    ft.LongType,
    ft.FloatType,
    ft.DoubleType,
    ft.DecimalType,
    ft.DateType,
    ft.StringType,
    ft.BinaryType,
    ft.TimestampType,
    ft.TimestamptzType,
    ft.UnknownType,
)
_CODECS = {"lz4": "lz4_raw"}
_LEVELS = {"zstd": "parquet.compression.codec.zstd.level", "gzip": "zlib.compress.level"}
_ZLIB_LEVELS = (
    *("NO_COMPRESSION", "BEST_SPEED", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT"),
    "BEST_COMPRESSION",
)
"""Hadoop's names for zlib's levels 0 to 9."""
_LATE_SECONDS = (1.0, 3.0, 8.0)
_TASKS = "_temporary/0/_temporary"
"""The folder of tasks until the job has succeeded, which removes it."""
_LEGACY = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")


def is_native(schema: Schema, properties: Mapping[str, str]) -> bool:
    """Return whether Spark's writer can write valid files of a schema with the properties."""
    return (
        read_property(properties, known.DEFAULT_FILE_FORMAT) == "parquet"
        and read_property(properties, known.PARQUET_COMPRESSION) != "brotli"
        and not read_property(properties, known.OBJECT_STORE_ENABLED)
        and all(_is_native_type(field.field_type) for field in schema.fields)
    )


def _is_native_type(data_type: ft.Type) -> bool:
    if isinstance(data_type, ft.StructType):
        return all(_is_native_type(field.field_type) for field in data_type.fields)
    return isinstance(data_type, _NATIVE)


def write_natively(
    frame: DataFrame, target: WriteTarget, key_name: str, write_id: str, *, file_rows: int | None = None
) -> list[DataFile]:
    """Write a frame in stored form, with the partition key if there are partitions; return its files."""
    folder = data_locations(target.location, target.properties).new_data_location(write_id)
    check_writable(target.storage, folder)
    check_readable(target.storage, [f"{folder}/part"])
    options = {**_options(target, folder, file_rows), **hadoop_options(frame.sparkSession, target.storage, folder)}
    try:
        if _is_local(folder):
            # Without its native library, Hadoop starts a process to set the permissions of each folder it creates.
            Path(local_path(f"{folder}/{_TASKS}")).mkdir(parents=True, exist_ok=True)
        with engine_errors(f"write data files to {folder}"):
            write_parquet(frame, folder, options, key_name if has_partitions(target) else None)
        return _describe(target, folder, key_name)
    except BaseException:
        # No commit has these files, and no other writer uses the folder.
        _delete_all(target.storage, folder)
        threading.Thread(
            target=_delete_late_files, args=(target.storage, folder), name="frazil sweeps", daemon=True
        ).start()
        raise


def _delete_all(storage: Storage, folder: str) -> None:
    storage.delete_many([stored_file.path for stored_file in storage.list(folder)])
    remove_empty_folders(storage, folder)


def _delete_late_files(storage: Storage, folder: str) -> None:
    """Delete files that tasks of a cancelled job still write, since tasks may notice the cancellation late."""
    for seconds in _LATE_SECONDS:
        time.sleep(seconds)
        with suppress(FrazilError, OSError):
            _delete_all(storage, folder)


def _is_local(location: str) -> bool:
    return scheme_of(location) in (None, "file")


def _options(target: WriteTarget, folder: str, file_rows: int | None) -> dict[str, str]:
    properties = target.properties
    codec = read_property(properties, known.PARQUET_COMPRESSION)
    options = {
        "compression": _CODECS.get(codec, codec),
        "outputTimestampType": "TIMESTAMP_MICROS",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": str(not _is_local(folder)).lower(),
        "parquet.block.size": str(read_property(properties, known.PARQUET_ROW_GROUP_SIZE_BYTES)),
        "parquet.page.size": str(read_property(properties, known.PARQUET_PAGE_SIZE_BYTES)),
        "parquet.page.row.count.limit": str(read_property(properties, known.PARQUET_PAGE_ROW_LIMIT)),
        "parquet.dictionary.page.size": str(read_property(properties, known.PARQUET_DICT_SIZE_BYTES)),
        "parquet.writer.version": read_property(properties, known.PARQUET_PAGE_VERSION),
    }
    if _is_local(folder):
        # Hadoop's checksum files would be left in the table's folder. Its S3 writer needs them for its temporary
        # files on disk.
        options["fs.file.impl"] = "org.apache.hadoop.fs.RawLocalFileSystem"
        options["fs.file.impl.disable.cache"] = "true"
    level = read_property(properties, known.PARQUET_COMPRESSION_LEVEL)
    if level is not None and codec in _LEVELS:
        options[_LEVELS[codec]] = str(level) if codec == "zstd" else _ZLIB_LEVELS[max(0, min(level, 9))]
    for name, is_on in read_column_properties(properties, known.PARQUET_BLOOM_FILTER_COLUMN_ENABLED).items():
        options[f"parquet.bloom.filter.enabled#{name}"] = str(is_on).lower()
    for name, is_on in read_column_properties(properties, known.PARQUET_DICT_ENCODING_COLUMN_ENABLED).items():
        options[f"parquet.enable.dictionary#{name}"] = str(is_on).lower()
    if file_rows is not None:
        options["maxRecordsPerFile"] = str(file_rows)
    return options


def _describe(target: WriteTarget, folder: str, key_name: str) -> list[DataFile]:
    """Return the descriptions of all files of a successful job."""
    listed = sorted(target.storage.list(folder), key=lambda stored_file: stored_file.path)
    marks = [stored_file.path for stored_file in listed if stored_file.path == f"{folder}/_SUCCESS"]
    if not marks and not _is_local(folder):
        raise EngineError(f"Cannot write data files to {folder}: Spark's job ended without a sign of success")
    written = [stored_file for stored_file in listed if _is_data(stored_file.path[len(folder) :])]
    rules = DescribeRules(target.schema, metrics_modes(target.schema, target.properties, target.sort_order))
    partition_type = target.spec.partition_type(target.schema, other_schemas=target.older_schemas)
    order_id = target.sort_order.order_id if target.sort_order.is_sorted else UNSORTED_ORDER_ID

    def describe(stored_file: StoredFile) -> DataFile:
        description = describe_parquet(
            target.storage,
            stored_file.path,
            rules,
            size_bytes=stored_file.size,
            spec_id=target.spec.spec_id,
            partition=_partition_of(target, stored_file, folder, key_name, partition_type),
            sort_order_id=order_id,
        )
        if any(name in description.notes for name in _LEGACY):
            raise EngineError(
                f"Cannot use {stored_file.path}: Spark wrote its dates in the legacy calendar",
                hint="Set spark.sql.parquet.datetimeRebaseModeInWrite to CORRECTED.",
            )
        return description.file

    described = list(map_in_order(describe, written, threads=min(default_threads(), max(len(written), 1))))
    target.storage.delete_many(
        [*marks, *(stored_file.path for stored_file in listed if stored_file.path.endswith(".crc"))]
    )
    empty = [file.file_path for file in described if file.record_count == 0]
    target.storage.delete_many(empty)
    return [file for file in described if file.record_count > 0]


def _is_data(below: str) -> bool:
    """Return whether a file is a task's result, rather than one that committers keep for themselves."""
    steps = below.strip("/").split("/")
    return below.endswith(".parquet") and not any(step.startswith(("_temporary", ".", "_SUCCESS")) for step in steps)


def _partition_of(
    target: WriteTarget, stored_file: StoredFile, folder: str, key_name: str, data_type: ft.StructType
) -> tuple[Any, ...]:
    if not has_partitions(target):
        return (None,) * len(target.spec.fields)
    step = stored_file.path[len(folder) + 1 :].split("/")[0]
    values = decode_key(step[len(key_name) + 1 :], target.spec, data_type)
    return values if values is not None else _first_partition(target, stored_file)


def _first_partition(target: WriteTarget, stored_file: StoredFile) -> tuple[Any, ...]:
    """Return the partition of a file from its first row."""
    sources = {source for field in target.spec.fields if not field.transform.is_void for source in field.source_ids}
    schema = target.schema.project(sources)
    file = DataFile(stored_file.path, "parquet", 0, stored_file.size)  # type: ignore[arg-type]
    for batch in read_columns(target.storage, file, schema, ReadRules(target.schema, None)):
        if batch.num_rows:
            return Partitioner(schema, target.spec, target.schema).group(batch.slice(0, 1)).partitions[0]
    return (None,) * len(target.spec.fields)
