"""A table read as a stream by a running query: its position, and the batch between two offsets."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from frazil.errors import CommitError, FrazilError, SnapshotNotFoundError
from frazil.loaded import LoadedTable
from frazil.sessions.stream_options import StreamOptions
from frazil.spark.stream.source_frames import BatchReader, StreamColumns
from frazil.spec.retention import GUARD_PREFIX
from frazil.spec.table_metadata import TableMetadata
from frazil.streams.offsets import START, StreamOffset
from frazil.streams.schema import check_stream_schema
from frazil.streams.steps import StreamLimits, TableStream
from frazil.table.sql_session import FullName
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GUARD_SECONDS = 60
_TRIES = 10


@dataclass
class StreamSource:
    """One query's stream of one table."""

    full_name: FullName
    table: Table
    options: StreamOptions
    columns: StreamColumns
    begun: StreamOffset = START
    has_end: bool = False
    end_snapshot_id: int | None = None
    reload: Callable[[], LoadedTable] | None = None
    guarded: tuple[float, int] | None = None
    guard_values: set[str] = field(default_factory=set)
    """The values that this query has set its guard to."""
    committed: StreamOffset | None = None
    loaded: LoadedTable | None = None
    """The table as last loaded from the catalog."""
    newest: tuple[int | None, StreamOffset | None] | None = None
    """The newest snapshot seen, and the offset after it."""
    idle: tuple[int | None, StreamOffset, StreamLimits] | None = None
    """The last request with nothing to read."""

    def load(self, *, may_be_old: bool = False) -> LoadedTable:
        """Return the current table, or with `may_be_old` the one last loaded, once a trigger."""
        if self.loaded is None or not may_be_old:
            loaded = self.table.refresh().state if self.reload is None else self.reload()
            check_stream_schema(str(self.full_name), self.columns.output_schema, loaded.metadata.current_schema)
            self.loaded = loaded
        return self.loaded

    def stream(self, *, is_bounded: bool = True, may_be_old: bool = False) -> TableStream:
        """Return the table's snapshots, up to the end of the query."""
        end = self.end_snapshot_id if is_bounded and self.has_end else None
        table_stream = TableStream(self.load(may_be_old=may_be_old), self.options.rules, self.table._cache)
        if end is None:
            return table_stream
        table_stream.check_reaches(end)
        return replace(table_stream, end_snapshot_id=end)

    def latest(self) -> StreamOffset | None:
        """Return the newest offset of the table."""
        table_stream = self.stream(is_bounded=False, may_be_old=True)
        if self.newest is None or self.newest[0] != table_stream.head_id:
            self.newest = (table_stream.head_id, table_stream.latest())
        return self.newest[1]

    def advance(self, start: StreamOffset | None, limits: StreamLimits) -> StreamOffset | None:
        """Return the end of the next batch, or None if there is nothing to read yet."""
        if start is not None:
            # Spark passes the end of the last completed batch.
            self.committed = start
            self.hold(start)
        if self.has_end and self.end_snapshot_id is None:
            return start
        begun = self.begun if start is None else start
        stream = self.stream()
        request = (stream.head_id, begun, limits)
        if request == self.idle:
            return start
        end = stream.advance(begun, limits)
        self.idle = request if end == begun else None
        return None if start is None and end == begun else end

    def batch(self, spark: SparkSession, start: StreamOffset | None, end: StreamOffset) -> DataFrame:
        """Return the rows between two offsets.

        When a query continues, Spark requests a completed batch again but never reads it: missing files cause an error
        only when it is read.
        """
        is_known = self.loaded is not None and self.loaded.metadata.find_snapshot(end.snapshot_id) is not None
        stream = self.stream(is_bounded=False, may_be_old=is_known)
        options = self.options
        reader = BatchReader(
            spark, stream.loaded, self.columns, self.table._cache, options.split_bytes, options.open_file_cost_bytes
        )
        try:
            return reader.rows(stream.between(self.begun if start is None else start, end))
        except SnapshotNotFoundError as error:
            return reader.lost(str(error))

    def lag(self, start: StreamOffset | None) -> dict[str, str]:
        """Return the unread part of the table, for the query's progress."""
        try:
            lag = self.stream(is_bounded=False, may_be_old=True).lag(self.begun if start is None else start)
        except FrazilError:
            # The next batch reports the error.
            return {}
        return {
            "snapshotsBehind": str(lag.snapshots),
            "filesBehind": str(lag.files),
            "rowsBehind": str(lag.rows),
            "bytesBehind": str(lag.size_bytes),
        }

    def begin(self) -> StreamOffset:
        """Return the start of a new stream; with a guard, a snapshot that expiry retains from now on."""
        begun = START
        for _ in range(_TRIES):
            begun = self.stream().begin(self.options.start)
            if self.options.guard is None:
                return begun
            metadata = self._guard(self.options.guard, begun)
            if begun.is_start or metadata.find_snapshot(begun.snapshot_id) is not None:
                return begun
            # It expired before it was guarded.
        raise SnapshotNotFoundError(
            f"Cannot begin a stream of {self.full_name}: snapshot {begun.snapshot_id} has expired, "
            "like those before it",
            hint="Other writers expire snapshots immediately. Start the query again.",
        )

    def hold(self, offset: StreamOffset, *, is_last: bool = False) -> None:
        """Record the position of the stream, for expiry; at most once a minute, and when the query ends.

        If other writers come first, it is recorded the next time: an older snapshot retains more.
        """
        name = self.options.guard
        if name is None:
            return
        if self.guarded is not None:
            since, snapshot_id = self.guarded
            is_early = time.monotonic() - since < _GUARD_SECONDS and not is_last
            if snapshot_id == offset.snapshot_id or is_early:
                return
        with contextlib.suppress(CommitError):
            self._guard(name, offset)

    def _guard(self, name: str, offset: StreamOffset) -> TableMetadata:
        table = self.table.refresh()
        key, value = f"{GUARD_PREFIX}{name}", str(offset.snapshot_id)
        present = table.properties.get(key)
        if self.guard_values and present is not None and present not in self.guard_values:
            warnings.warn(
                f"The guard {name!r} of {self.full_name} was moved by another query, and retains what only one of them "
                "needs: give each query its own stream-guard",
                stacklevel=2,
            )
        self.guard_values.add(value)
        if present != value:
            table.set_properties({key: value})
        self.guarded = (time.monotonic(), offset.snapshot_id)
        return table.metadata
