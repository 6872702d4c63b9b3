"""Distribute and sort rows before they are written, by a table's distribution mode and sort order.

    none    rows stay in their tasks; a task writes a file for each partition of its rows
    hash    rows of a partition are sent to as few tasks as their size requires
    range   tasks get ranges of the sort order, partitions first

Spark balances tasks by shuffled bytes (`REBALANCE` and adaptive execution): small partitions share a task, and a large
one is split into several, each about the size of a file. Range distribution needs a sample first, so its source runs
twice; the written rows all come from the second run.

Without a mode, sorted tables are distributed by range and partitioned ones by hash, as in Iceberg Java.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame

from frazil.datafile.write_target import WriteTarget
from frazil.spark.jvm.jvm_write import rebalance
from frazil.spark.jvm.private_names import is_classic
from frazil.spark.own_columns import F
from frazil.spark.read.partition_columns import (
    field_column,
    is_generated,
    partition_key,
    partition_values,
    transform_value,
)
from frazil.spec import properties as known
from frazil.spec.properties import DistributionMode, read_property
from frazil.spec.property_kinds import Property
from frazil.spec.sorting import NullOrder, SortDirection, SortField

MB = 1 << 20
_SHUFFLED_PER_STORED = {"zstd": 3, "gzip": 3, "brotli": 4, "snappy": 2, "lz4": 2, "lz4_raw": 2, "uncompressed": 1}
"""The approximate number of shuffled bytes per byte of a Parquet file."""
_MAX_TASK_FILE_BYTES = 128 * MB
"""The size above which a task would leave other cores idle."""
_OPEN_WRITERS = 8
"""The number of open files of different partitions per task; beyond it, the task sorts its rows by partition."""

_ALL_WRITERS = 2**31 - 1


def choose_mode(target: WriteTarget, of: Property[DistributionMode | None]) -> DistributionMode:
    """Return the distribution mode from the table's properties, or else its default for the table."""
    mode = read_property(target.properties, of)
    if mode is None and of is not known.WRITE_DISTRIBUTION_MODE:
        mode = "hash"
    elif mode is None:
        mode = "range" if target.sort_order.is_sorted else "hash"
    if mode == "range" and not target.sort_order.is_sorted:
        mode = "hash"
    return "none" if mode == "hash" and not has_partitions(target) else mode


def has_partitions(target: WriteTarget) -> bool:
    """Return whether rows of the table can be in different partitions."""
    return any(not field.transform.is_void for field in target.spec.fields)


def write_settings(target: WriteTarget) -> Mapping[str, str]:
    """Return the settings for Spark's writing tasks."""
    fans_out = read_property(target.properties, known.SPARK_FANOUT_ENABLED)
    open_writers = _OPEN_WRITERS if fans_out is None else _ALL_WRITERS if fans_out else 0
    return {"spark.sql.maxConcurrentOutputFileWriters": "0" if target.sort_order.is_sorted else str(open_writers)}


def task_bytes(target: WriteTarget) -> int:
    """Return the number of shuffled bytes that one task should write."""
    set_size = read_property(target.properties, known.SPARK_ADVISORY_PARTITION_SIZE_BYTES)
    if set_size is not None:
        return set_size
    codec = read_property(target.properties, known.PARQUET_COMPRESSION)
    file_bytes = min(read_property(target.properties, known.WRITE_TARGET_FILE_SIZE_BYTES), _MAX_TASK_FILE_BYTES)
    return file_bytes * _SHUFFLED_PER_STORED[codec]


def distribute(frame: DataFrame, target: WriteTarget, key_name: str, mode: DistributionMode) -> DataFrame:
    """Return a distributed and sorted frame in stored form; with partitions, it has their key as another column."""
    spark, schema = frame.sparkSession, target.schema
    keys: list[Column] = []
    adds_key_later = mode == "hash" and is_classic(spark) and is_generated(target.spec, schema)
    if adds_key_later:
        # Rows are shuffled without the key, which may be as long as a row.
        frame = rebalance(frame, partition_values(target.spec, schema, spark), task_bytes(target))
    if has_partitions(target):
        frame = frame.withColumn(key_name, partition_key(target.spec, schema, spark))
        keys = [F.col(key_name)]
    order = [_sort_column(field, target, frame) for field in target.sort_order.fields]
    if mode == "hash" and not adds_key_later:
        # The key is computed once, before the shuffle.
        frame = rebalance(frame, keys, task_bytes(target)) if is_classic(spark) else frame.hint("rebalance", key_name)
    elif mode == "range":
        frame = frame.repartitionByRange(*keys, *order)
    return frame.sortWithinPartitions(*keys, *order) if order else frame


def _sort_column(field: SortField, target: WriteTarget, frame: DataFrame) -> Column:
    data_type = target.schema.field(field.source_id).field_type
    value = field_column(target.schema, field.source_id)
    if not field.transform.is_identity:
        value = transform_value(field.transform, value, data_type, frame.sparkSession)
    is_first = field.null_order is NullOrder.NULLS_FIRST
    if field.direction is SortDirection.ASC:
        return value.asc_nulls_first() if is_first else value.asc_nulls_last()
    return value.desc_nulls_first() if is_first else value.desc_nulls_last()
