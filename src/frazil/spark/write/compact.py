"""Rewrite one group of data files on Spark: the data half of `maintenance/rewrite_data_files.py`.

    read      only the group's files, with deletes applied, in stored form; in v3 with the row lineage columns
    arrange   bin-packing does not combine rows: each task gets about a file's worth. Files of other specs, whose
              rows may go to any partition, are distributed by partition. Sorting is by range, with as many tasks as
              expected files; so is z-order (`spark/write/zorder_columns.py`)
    write     by the writers of all other writes on Spark

Nothing is committed here, and nothing references the new files before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from frazil.codec.deletion_vector import DeletionVector
from frazil.datafile.write_target import WriteTarget, write_target
from frazil.maintenance.plan_rewrite import RewriteGroup, RewritePlan
from frazil.maintenance.rewrite_group import find_order_id, rewritten_schema
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.jvm.jvm_write import in_own_session
from frazil.spark.read.partition_columns import partition_key
from frazil.spark.read.relation import ReadRequest
from frazil.spark.read.target_rows import FileChoice, read_chosen
from frazil.spark.write.distribute import write_settings
from frazil.spark.write.write_files import write_stored
from frazil.spark.write.zorder_columns import arrange_by_z_value
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.sorting import UNSORTED, UNSORTED_ORDER_ID
from frazil.spec.types import UnknownType


def rewriter_on(
    spark: SparkSession, cache: ManifestCache | None = None
) -> Callable[[RewritePlan, RewriteGroup], Sequence[DataFile]]:
    """Return a function that rewrites groups of files on a session."""
    return lambda plan, group: rewrite_on_spark(spark, plan, group, cache)


def rewrite_on_spark(
    spark: SparkSession, plan: RewritePlan, group: RewriteGroup, cache: ManifestCache | None = None
) -> list[DataFile]:
    """Write the rows of a group's files to new files and return their descriptions; nothing is committed."""
    loaded = plan.loaded
    target = _target(plan, group)
    frame = _read(spark, plan, group, cache)
    if frame is None:
        return []
    settings = dict(write_settings(target))
    if plan.request.strategy == "zorder":
        settings["spark.sql.adaptive.coalescePartitions.enabled"] = "false"
        frame = _in_zorder(in_own_session(frame, settings), plan, group)
        return write_stored(frame, target)
    if target.sort_order.is_sorted:
        settings["spark.sql.shuffle.partitions"] = str(group.expected_files)
        settings["spark.sql.adaptive.coalescePartitions.enabled"] = "false"
    elif not _is_spread(plan, group):
        frame = frame.coalesce(group.expected_files)
    files = write_stored(in_own_session(frame, settings), target)
    if target.sort_order.is_unsorted:
        return files
    order_id = find_order_id(loaded, plan.request.order)
    return [replace(file, sort_order_id=UNSORTED_ORDER_ID if order_id is None else order_id) for file in files]


def _in_zorder(frame: DataFrame, plan: RewritePlan, group: RewriteGroup) -> DataFrame:
    schema = plan.loaded.metadata.current_schema
    rows = sum(task.data_file.record_count for task in group.tasks)
    first = [partition_key(plan.spec, schema, frame.sparkSession)] if _is_spread(plan, group) else []
    return arrange_by_z_value(
        frame, schema, plan.request.zorder_ids, rows=rows, files=group.expected_files, first=first
    )


def _read(spark: SparkSession, plan: RewritePlan, group: RewriteGroup, cache: ManifestCache | None) -> DataFrame | None:
    loaded = plan.loaded
    schema = loaded.metadata.current_schema
    request = ReadRequest(
        loaded,
        plan.snapshot,
        schema,
        rewritten_schema(loaded),
        cache=cache,
        as_stored=True,
        split_bytes=group.output_bytes,
        # Many small files in one task are intended here.
        open_file_cost_bytes=0,
    )
    no_deletes = DeletionVector()
    choice = FileChoice({task.data_file.file_path: no_deletes for task in group.tasks})
    frame = read_chosen(spark, request, choice)
    if frame is None:
        return None
    unknown = [field.name for field in schema.fields if isinstance(field.field_type, UnknownType)]
    return frame.drop(*unknown)


def _target(plan: RewritePlan, group: RewriteGroup) -> WriteTarget:
    request = plan.request
    target = write_target(plan.loaded, spec_id=plan.spec.spec_id)
    is_sorted = request.strategy == "sort"
    is_arranged = request.strategy == "zorder" or not _is_spread(plan, group)
    mode = "range" if is_sorted else "none" if is_arranged else "hash"
    overrides = {
        known.WRITE_DISTRIBUTION_MODE.name: mode,
        known.WRITE_TARGET_FILE_SIZE_BYTES.name: str(group.output_bytes),
    }
    return replace(
        target,
        sort_order=request.order if is_sorted else UNSORTED,
        properties=FrozenMap({**target.properties, **overrides}),
    )


def _is_spread(plan: RewritePlan, group: RewriteGroup) -> bool:
    """Return whether rows of a group may go to several partitions, since some files are of another spec."""
    return any(task.data_file.spec_id != plan.spec.spec_id for task in group.tasks)
