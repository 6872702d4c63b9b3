"""The rows of one batch of a stream as a lazy DataFrame over frazil's relations.

Spark plans the query of a stream over these relations anew for each batch, so its filters and columns reach the planner
and prune manifests and files. `spark/java/stream/StreamedRows.java` marks the rows as streaming for Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.loaded import LoadedTable
from frazil.scan.changelog import DELETE, INSERT, Changelog
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.jvm.exact_sql import expression
from frazil.spark.own_columns import F
from frazil.spark.read.changelog_frames import read_changes
from frazil.spark.read.changelog_view import UPDATE_AFTER, UPDATE_BEFORE, net_changes, with_updates, without_carry_overs
from frazil.spark.read.relation import ReadRequest, read_on_spark
from frazil.spark.types import shown_schema
from frazil.spec.reserved_columns import CHANGE_COLUMNS, CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Operation, Snapshot, Summary
from frazil.sql.quote_names import quote
from frazil.streams.files import StreamFiles
from frazil.streams.steps import StreamBatch

CHANGE_KINDS = {
    INSERT: "insert",
    DELETE: "delete",
    UPDATE_BEFORE: "update_preimage",
    UPDATE_AFTER: "update_postimage",
}
"""Spark's names for types of changes."""

CHANGE_FIELDS = (
    st.StructField("_change_type", st.StringType(), nullable=False),
    st.StructField("_commit_version", st.LongType(), nullable=False),
    st.StructField("_commit_timestamp", st.TimestampType(), nullable=False),
)
"""The columns that Spark's change feeds have in addition to those of a table."""


@dataclass(frozen=True)
class StreamColumns:
    """The columns of a stream: those of the table, and how changes are reported."""

    output_schema: Schema
    has_changes: bool = False
    identifiers: tuple[str, ...] = ()
    """The columns that identify the removed and added row of an update; if empty, updates are not paired."""
    keeps_copies: bool = False
    """Whether changes include rows that were merely copied."""


@dataclass(frozen=True)
class BatchReader:
    """A reader of the batches of one state of a table."""

    spark: SparkSession
    loaded: LoadedTable
    columns: StreamColumns
    cache: ManifestCache | None = None
    split_bytes: int | None = None
    open_file_cost_bytes: int | None = None

    def rows(self, batch: StreamBatch) -> DataFrame:
        """Return the rows of a batch."""
        frames = [self._files(stream_files) for stream_files in (batch.whole, batch.added) if stream_files is not None]
        if batch.changes is not None:
            frames.append(
                changed_rows(
                    self.spark,
                    self._request(batch.change_ids[-1]),
                    batch.changes,
                    batch.change_ids,
                    self.columns.identifiers,
                    keeps_copies=self.columns.keeps_copies,
                )
            )
        if not frames:
            return self.spark.createDataFrame([], stream_schema(self.columns, self.spark))
        return reduce(DataFrame.unionAll, frames)

    def lost(self, message: str) -> DataFrame:
        """Return a DataFrame that raises the message when it is read."""
        error = F.raise_error(F.lit(message))
        schema = stream_schema(self.columns, self.spark)
        # Every column raises the error too: Spark would skip the rows for a filter on null columns.
        columns = [error.cast(field.dataType).alias(field.name) for field in schema.fields]
        return self.spark.range(1).filter(error.cast("string").isNull()).select(*columns)

    def _request(self, snapshot_id: int) -> ReadRequest:
        metadata = self.loaded.metadata
        return ReadRequest(
            self.loaded,
            metadata.snapshot(snapshot_id),
            metadata.current_schema,
            self.columns.output_schema,
            cache=self.cache,
            split_bytes=self.split_bytes,
            open_file_cost_bytes=self.open_file_cost_bytes,
        )

    def _files(self, files: StreamFiles) -> DataFrame:
        request = replace(self._request(files.last_snapshot_id), appends=files)
        frame = read_on_spark(self.spark, request)
        if not self.columns.has_changes:
            return frame
        snapshot = self.loaded.metadata.snapshot(files.last_snapshot_id)
        constants = [F.lit(CHANGE_KINDS[INSERT]), *_commit_values(F.lit(snapshot.snapshot_id), [snapshot])]
        return _with_changes(frame, [quote(field.name) for field in self.columns.output_schema.fields], constants)


def stream_schema(columns: StreamColumns, spark: SparkSession) -> st.StructType:
    """Return the Spark schema of a stream."""
    own = shown_schema(columns.output_schema, spark)
    return st.StructType([*own.fields, *CHANGE_FIELDS]) if columns.has_changes else own


def changed_rows(
    spark: SparkSession,
    request: ReadRequest,
    window: Changelog,
    change_ids: Sequence[int],
    identifiers: Sequence[str] = (),
    *,
    keeps_copies: bool = False,
    is_net: bool = False,
) -> DataFrame:
    """Return the changes of some snapshots, with Spark's names for columns and types of changes.

    Rows that a rewrite of files merely copied are left out, unless `keeps_copies`. With `is_net`, rows that were added
    and removed again cancel.
    """
    metadata = request.loaded.metadata
    snapshots = [metadata.snapshot(change_id) for change_id in change_ids]
    schema = Schema((*request.output_schema.fields, *CHANGE_COLUMNS))
    frame = read_changes(spark, replace(request, output_schema=schema), window=window)
    if is_net:
        frame = net_changes(frame)
        # A row that was removed and added in different snapshots is one update too.
        frame = with_updates(frame.withColumn(CHANGE_ORDINAL.name, F.lit(0)), identifiers) if identifiers else frame
    elif identifiers:
        frame = with_updates(frame, identifiers)
    elif not keeps_copies and any(map(_may_copy, snapshots)):
        frame = without_carry_overs(frame)
    change_type = F.col(quote(CHANGE_TYPE.name))
    reported = F.coalesce(*(F.when(change_type == word, F.lit(name)) for word, name in CHANGE_KINDS.items()))
    by_id = _commit_values(F.col(quote(COMMIT_SNAPSHOT_ID.name)), snapshots)
    return _with_changes(frame, [quote(field.name) for field in request.output_schema.fields], [reported, *by_id])


def _with_changes(frame: DataFrame, own: Iterable[str], constants: Sequence[Column]) -> DataFrame:
    named = [value.alias(change_field.name) for value, change_field in zip(constants, CHANGE_FIELDS, strict=True)]
    return frame.select(*own, *named)


def _may_copy(snapshot: Snapshot) -> bool:
    """Return whether a snapshot may have copied unchanged rows."""
    if snapshot.operation in (Operation.APPEND, Operation.DELETE):
        return False
    summary: Mapping[str, str] = snapshot.summary or {}
    # A summary with counts, but none of removed files, proves that no file was removed.
    return Summary.DELETED_DATA_FILES in summary or Summary.TOTAL_DATA_FILES not in summary


def commit_version(snapshot: Snapshot) -> int:
    """Return a snapshot's version: its sequence number, or its id in tables without sequence numbers."""
    return snapshot.sequence_number or snapshot.snapshot_id


def _commit_values(snapshot_id: Column, snapshots: Sequence[Snapshot]) -> list[Column]:
    """Return the columns of version and time for a column of snapshot ids."""
    if len(snapshots) == 1:
        versions, times = F.lit(commit_version(snapshots[0])).cast("long"), F.lit(snapshots[0].timestamp_ms)
        return [versions, F.timestamp_millis(times)]
    ids = ",".join(f"{snapshot.snapshot_id}L" for snapshot in snapshots)

    def value_of_snapshot(values: Iterable[int]) -> Column:
        by_id = expression(f"map_from_arrays(array({ids}), array({','.join(f'{value}L' for value in values)}))")
        return F.element_at(by_id, snapshot_id)

    return [
        value_of_snapshot(map(commit_version, snapshots)),
        F.timestamp_millis(value_of_snapshot(snapshot.timestamp_ms for snapshot in snapshots)),
    ]
