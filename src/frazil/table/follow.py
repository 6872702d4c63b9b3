"""New snapshots as they come, and their rows as Arrow, in plain Python: `for batch in t.follow(after=…)`.

A follower stands at a snapshot of a branch. It asks the catalog for the table from time to time, reads the snapshots
that came after, the oldest first, and hands their rows over in batches. Its token says where it stands after the last
batch that it handed over: the table, the snapshot, and how many rows of the next one were handed over. Rows
come in the order of the plan, which is the same each time, so that a follower that begins with a token goes on
with the very next row.

What it cannot go on with is an error: a snapshot that has expired, a branch that was moved back, another table of
the name. A catalog that does not answer is asked again for a minute.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import pyarrow as pa

from frazil.errors import FrazilError, InvalidRequestError, NotFoundError, SnapshotNotFoundError
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.changelog import INSERT
from frazil.scan.incremental import Appends
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.iso8601 import show_ms
from frazil.spec.reserved_columns import CHANGE_COLUMNS
from frazil.spec.snapshot import MAIN_BRANCH, Operation, Snapshot
from frazil.spec.snapshot_history import ancestor_heads
from frazil.spec.table_metadata import TableMetadata
from frazil.table.changed_rows import changes_of
from frazil.table.point_in_time import PointInTime, milliseconds_of
from frazil.table.scan import Scan, ScanOptions, scan_table

Changes: TypeAlias = Literal["error", "skip", "added-files", "changes"]
CHANGES = ("error", "skip", "added-files", "changes")
BEGINNING = "beginning"
NOW = "now"
_PATIENCE_SECONDS = 60.0
_PASSED = -1
"""In place of a snapshot to stop after: the follower is past it."""


@dataclass(frozen=True, slots=True)
class Position:
    """A follower's position: the last snapshot read completely, None before the first, and rows read of the next.

    With `first`, that next one is a whole state of the table, read as it is.
    """

    table_uuid: str | None
    after: int | None
    snapshot_id: int | None = None
    rows: int = 0
    first: bool = False

    def text(self) -> str:
        """Return the token."""
        token = {"table": self.table_uuid, "after": self.after}
        if self.snapshot_id is not None:
            token |= {"snapshot": self.snapshot_id, "rows": self.rows, "first": self.first}
        return json.dumps(token, separators=(",", ":"))


def parse_token(text: str) -> Position:
    """Return the position that a token holds."""
    try:
        token: Any = json.loads(text)
        position = Position(
            token["table"], token["after"], token.get("snapshot"), token.get("rows", 0), token.get("first", False)
        )
        is_whole = all(
            isinstance(number, int | None) for number in (position.after, position.snapshot_id, position.rows)
        )
        if is_whole and isinstance(position.table_uuid, str | None) and isinstance(position.first, bool):
            return position
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise InvalidRequestError(
        f"Cannot follow a table after {text[:80]!r}: it is no token",
        hint=f'Give a token of a follower, the id of a snapshot, or "{BEGINNING}".',
    )


class Follow:
    """Batches of new rows, one after the other. Made by `Table.follow`; used by one thread, stopped by any."""

    def __init__(
        self,
        load: Callable[[], LoadedTable],
        after: int | str | None,
        *,
        predicate: Predicate | str | None = None,
        columns: Sequence[str] | None = None,
        branch: str = MAIN_BRANCH,
        changes: Changes = "error",
        poll_seconds: float = 1.0,
        until: PointInTime | None = None,
        cache: ManifestCache | None = None,
    ) -> None:
        if changes not in CHANGES:
            raise InvalidRequestError(
                f"Cannot follow a table with changes={changes!r}", hint=f"There are: {', '.join(map(repr, CHANGES))}."
            )
        if not isinstance(poll_seconds, int | float) or not poll_seconds > 0:
            raise InvalidRequestError(f"Cannot ask for new snapshots every {poll_seconds} seconds: it must be positive")
        self._load = load
        self._predicate = predicate
        self._columns = columns
        self._branch = branch
        self._changes = changes
        self._poll_seconds = poll_seconds
        self._options = ScanOptions(manifest_cache=cache)
        self._stopped = threading.Event()
        self._state = load()
        metadata = self._state.metadata
        self._position = self._begin(metadata, after)
        # Refuses now what cannot be read.
        self._scan(self._state)
        self._last, self._ends_at = self._end(metadata, until)
        self._next = self._batches()
        self.snapshot: Snapshot | None = None
        """The snapshot of the last batch."""

    def __repr__(self) -> str:
        end = "stopped" if self._stopped.is_set() else f"branch {self._branch!r}, changes {self._changes!r}"
        return f"<Follow of {self._state.name!r}, {end}; loop over it for batches>"

    @property
    def token(self) -> str:
        """Where the last batch ended: `t.follow(after=token)` goes on with the next row."""
        return self._position.text()

    def stop(self) -> None:
        """End the loop, from any thread; the batch under way is handed over."""
        self._stopped.set()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._stopped.is_set():
            raise StopIteration
        return next(self._next)

    def _begin(self, metadata: TableMetadata, after: int | str | None) -> Position:
        uuid, head = metadata.table_uuid, self._head(metadata)
        if isinstance(after, bool) or not isinstance(after, int | str | None):
            raise InvalidRequestError(f"Cannot follow a table after {after!r}: give a snapshot's id or a token")
        if after is None:
            return Position(uuid, head)
        if after == BEGINNING:
            return Position(uuid, None) if head is None else Position(uuid, None, head, 0, first=True)
        if isinstance(after, str) and not after.removeprefix("-").isdigit():
            position = parse_token(after)
            if position.table_uuid != uuid:
                raise InvalidRequestError(
                    f"Cannot follow {self._state.name} with this token: it is of another table, {position.table_uuid}",
                    hint=f'The table may have been dropped and made anew. Begin with after="{BEGINNING}".',
                )
        else:
            position = Position(uuid, int(after))
        if not position.first:
            self._ids_after(metadata, position.after)
        return position

    def _end(self, metadata: TableMetadata, until: PointInTime | None) -> tuple[int | None, int | None]:
        """Return the snapshot to stop after, and the time to stop at."""
        if until is None:
            return None, None
        if until == NOW:
            head = self._head(metadata)
            return (_PASSED if head is None else head), None
        if isinstance(until, int):
            metadata.snapshot(until)
            ahead = (
                [self._position.snapshot_id]
                if self._position.first
                else self._ids_after(metadata, self._position.after)
            )
            return (until if until in ahead else _PASSED), None
        return None, milliseconds_of(until)

    def _head(self, metadata: TableMetadata) -> int | None:
        if self._branch == MAIN_BRANCH:
            return metadata.current_snapshot_id
        return metadata.ref(self._branch).snapshot_id

    def _ids_after(self, metadata: TableMetadata, after: int | None) -> list[int]:
        """Return the snapshots after one, the oldest first."""
        found: list[int] = []
        head = self._head(metadata)
        if head == after or (head is None and after is None):
            return []
        parent: int | None = None
        for snapshot in () if head is None else ancestor_heads(metadata.snapshots, head):
            if snapshot.snapshot_id == after:
                return found[::-1]
            found.append(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
        if parent == after:
            return found[::-1]
        raise self._lost(metadata, after, found)

    def _lost(self, metadata: TableMetadata, after: int | None, found: Sequence[int]) -> FrazilError:
        name = self._state.name
        hint = f'Begin with after="{BEGINNING}" to read the whole table first'
        if after is not None and metadata.snapshots.find_head(after) is not None:
            return InvalidRequestError(
                f"Cannot follow {name} after snapshot {after}: it is not in the history of {self._branch!r}, which was "
                "rolled back, moved or replaced",
                hint=f"{hint}.",
            )
        if not found:
            return SnapshotNotFoundError(f"Cannot follow {name} after snapshot {after}: there is none", hint=f"{hint}.")
        oldest = metadata.snapshot(found[-1])
        if oldest.parent_snapshot_id is None:
            return SnapshotNotFoundError(
                f"Cannot follow {name} after snapshot {after}: the table has no such snapshot", hint=f"{hint}."
            )
        return SnapshotNotFoundError(
            f"Cannot follow {name} after {'its beginning' if after is None else f'snapshot {after}'}: snapshots up to "
            f"{oldest.parent_snapshot_id} have expired, and what they added before that is not known any more",
            hint=f"{hint}, or with after={oldest.parent_snapshot_id} to go on with what is still known, from "
            f"{show_ms(oldest.timestamp_ms)} on.",
        )

    def _scan(self, state: LoadedTable, **choice: Any) -> Scan:
        return scan_table(
            state,
            self._predicate,
            columns=self._columns,
            ref=None if choice or self._branch == MAIN_BRANCH else self._branch,
            options=self._options,
            **choice,
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._position.first:
            yield from self._handed(self._position.snapshot_id)
        while not self._stopped.is_set():
            for snapshot_id in self._ids_after(self._state.metadata, self._position.after):
                if self._last is not None and self._last in (self._position.after, _PASSED):
                    return
                yield from self._handed(snapshot_id)
                if self._stopped.is_set():
                    return
            if self._is_over() or self._stopped.wait(self._poll_seconds):
                return
            self._state = self._refreshed()

    def _is_over(self) -> bool:
        if self._last is not None and self._last in (self._position.after, _PASSED):
            return True
        return self._ends_at is not None and time.time() * 1000 >= self._ends_at

    def _refreshed(self) -> LoadedTable:
        """Return the table as it is now; a catalog that does not answer is asked again, for a minute."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return self._load()
            except (NotFoundError, InvalidRequestError):
                raise
            except FrazilError:
                if time.monotonic() > deadline or self._stopped.wait(self._poll_seconds):
                    raise

    def _handed(self, snapshot_id: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a snapshot that were not handed over, and move on."""
        position = self._position
        assert snapshot_id is not None
        if position.snapshot_id != snapshot_id:
            position = Position(position.table_uuid, position.after, snapshot_id)
        snapshot = self._state.metadata.find_snapshot(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFoundError(
                f"Cannot follow {self._state.name}: snapshot {snapshot_id}, of which {position.rows} rows were read, "
                "has expired",
                hint=f'Begin with after="{BEGINNING}" to read the whole table first.',
            )
        left = position.rows
        for batch in self._rows(snapshot, is_first=position.first):
            rest = batch.slice(min(left, batch.num_rows))
            left -= batch.num_rows - rest.num_rows
            if rest.num_rows:
                position = replace(position, rows=position.rows + rest.num_rows)
                self._position, self.snapshot = position, snapshot
                yield rest
        self._position = Position(position.table_uuid, snapshot_id)

    def _rows(self, snapshot: Snapshot, *, is_first: bool) -> Iterator[pa.RecordBatch]:
        state = self._state
        if is_first:
            whole = self._scan(state, snapshot_id=snapshot.snapshot_id)
            yield from map(self._as_inserts(snapshot), whole.to_batches())
            return
        if snapshot.operation == Operation.REPLACE:
            return
        parent = snapshot.parent_snapshot_id
        if self._changes == "changes":
            yield from changes_of(self._scan(state), snapshot)
            return
        if snapshot.operation == Operation.APPEND or self._changes == "added-files":
            added = Appends(parent, snapshot.snapshot_id, has_overwrites=True)
            yield from replace(self._scan(state), appends=added).to_batches()
            return
        if self._changes == "error":
            raise InvalidRequestError(
                f"Cannot follow {state.name}: snapshot {snapshot.snapshot_id} ({snapshot.operation}) removes or "
                "replaces rows, and only added rows are asked for",
                hint='With changes="changes" removed rows are told too, changes="skip" leaves such snapshots out, '
                'changes="added-files" gives the rows of files they added, copies included.',
            )

    def _as_inserts(self, snapshot: Snapshot) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        if self._changes != "changes":
            return lambda batch: batch

        def add(batch: pa.RecordBatch) -> pa.RecordBatch:
            values: list[Any] = [INSERT, 0, snapshot.snapshot_id]
            kinds = [pa.string(), pa.int32(), pa.int64()]
            for column, value, data_type in zip(CHANGE_COLUMNS, values, kinds, strict=True):
                array = pa.repeat(pa.scalar(value, data_type), batch.num_rows)
                batch = batch.append_column(pa.field(column.name, data_type, nullable=False), array)
            return batch

        return add
