"""A table that a running query reads as a stream: how far it is, and the batch between two offsets."""

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
    held: set[str] = field(default_factory=set)
    """What the guard of this query was set to."""
    committed: StreamOffset | None = None
    loaded: LoadedTable | None = None
    """The table as it was when the catalog was asked last."""
    newest: tuple[int | None, StreamOffset | None] | None = None
    """The newest snapshot that was seen, and the offset behind it."""
    idle: tuple[int | None, StreamOffset, StreamLimits] | None = None
    """What was asked last, where there was nothing to read."""

    def load(self, *, may_be_old: bool = False) -> LoadedTable:
        """Return the table as it is now; or as it was when the catalog was asked last, once a trigger."""
        if self.loaded is None or not may_be_old:
            loaded = self.table.refresh().state if self.reload is None else self.reload()
            check_stream_schema(str(self.full_name), self.columns.output_schema, loaded.metadata.current_schema)
            self.loaded = loaded
        return self.loaded

    def stream(self, *, is_bounded: bool = True, may_be_old: bool = False) -> TableStream:
        """Return the table's snapshots, up to where the query ends."""
        end = self.end_snapshot_id if is_bounded and self.has_end else None
        found = TableStream(self.load(may_be_old=may_be_old), self.options.rules, self.table._cache)
        if end is None:
            return found
        found.check_reaches(end)
        return replace(found, end_snapshot_id=end)

    def latest(self) -> StreamOffset | None:
        """Return where the table is now."""
        found = self.stream(is_bounded=False, may_be_old=True)
        if self.newest is None or self.newest[0] != found.head_id:
            self.newest = (found.head_id, found.latest())
        return self.newest[1]

    def advance(self, start: StreamOffset | None, limits: StreamLimits) -> StreamOffset | None:
        """Return how far the next batch may read; None where there is nothing to read yet."""
        if start is not None:
            # Spark asks from where the last batch ended that is done for good.
            self.committed = start
            self.hold(start)
        if self.has_end and self.end_snapshot_id is None:
            return start
        begun = self.begun if start is None else start
        stream = self.stream()
        asked = (stream.head_id, begun, limits)
        if asked == self.idle:
            return start
        found = stream.advance(begun, limits)
        self.idle = asked if found == begun else None
        return None if start is None and found == begun else found

    def batch(self, spark: SparkSession, start: StreamOffset | None, end: StreamOffset) -> DataFrame:
        """Return the rows between two offsets.

        Spark asks again for a batch that is done when a query goes on, and never reads it: what is not there any more
        is an error when it is read.
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
        """Return what is not read yet, for the query's progress."""
        try:
            found = self.stream(is_bounded=False, may_be_old=True).lag(self.begun if start is None else start)
        except FrazilError:
            # The next batch says what is wrong.
            return {}
        return {
            "snapshotsBehind": str(found.snapshots),
            "filesBehind": str(found.files),
            "rowsBehind": str(found.rows),
            "bytesBehind": str(found.size_bytes),
        }

    def begin(self) -> StreamOffset:
        """Return where a new stream begins; with a guard, a snapshot that expiry spares from now on."""
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
            "and so did those before",
            hint="Others expire every snapshot at once. Start the query again.",
        )

    def hold(self, offset: StreamOffset, *, is_last: bool = False) -> None:
        """Note how far the stream is, for expiry; at most once a minute, and when the query ends.

        Where others come first, it is noted the next time: an older snapshot holds more.
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
        found = table.properties.get(key)
        if self.held and found is not None and found not in self.held:
            warnings.warn(
                f"The guard {name!r} of {self.full_name} was moved by another query, and spares what only one of them "
                "needs: give each query a stream-guard of its own",
                stacklevel=2,
            )
        self.held.add(value)
        if found != value:
            table.set_properties({key: value})
        self.guarded = (time.monotonic(), offset.snapshot_id)
        return table.metadata
