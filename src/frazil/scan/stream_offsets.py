"""How far a stream has read a table: an offset, in the JSON that checkpoints keep.

    {"version":1,"snapshot_id":7,"position":2,"scan_all_files":false,"done":true}

The snapshot that is being read, and the number of its files that come next. The files of a snapshot are those that it
added or, with `scan_all_files`, all that are live in it. They are numbered manifest by manifest in the order of the
manifest list. A manifest counts for all its live entries, whichever of them are read. Iceberg Java writes and reads
the same text, less `done`, which it passes over, so that a query may move between the two. `done` says that no file
of the snapshot is left: once the snapshot has expired, nothing else may tell.

Before the first snapshot both numbers are -1, and `since_ms` says from which time on snapshots are read, 0 for all.
That of Iceberg Java does not say: there the option counts, each time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from frazil.errors import InvalidRequestError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The file of a snapshot that is read next; beyond its last one, the snapshot is done."""

    snapshot_id: int
    position: int
    scan_all_files: bool = False
    is_done: bool = False
    """Whether it is known that no file of the snapshot is left."""
    since_ms: int | None = None
    """Before the first snapshot: the time from which on snapshots are read."""

    @property
    def is_start(self) -> bool:
        """Whether it is before the first snapshot of a table."""
        return self.position < 0

    @property
    def text(self) -> str:
        """The offset as checkpoints keep it."""
        offset: dict[str, int] = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "position": self.position,
            "scan_all_files": self.scan_all_files,
        }
        if self.is_done:
            offset["done"] = True
        if self.since_ms is not None:
            offset["since_ms"] = self.since_ms
        return json.dumps(offset, separators=(",", ":"))


START = StreamOffset(-1, -1)
"""Before the first snapshot of a table."""


def parse_offset(text: str) -> StreamOffset:
    """Return the offset that a text says; refuse what is none."""
    try:
        found = json.loads(text)
    except ValueError:
        raise _damaged(text, "it is not JSON") from None
    if not isinstance(found, dict):
        raise _damaged(text, "it is no JSON object")
    version = found.get("version")
    if version != _VERSION:
        raise _damaged(text, f"its version is {version!r}, not {_VERSION}")
    snapshot_id, position = found.get("snapshot_id"), found.get("position")
    if type(snapshot_id) is not int or type(position) is not int:
        raise _damaged(text, "snapshot_id and position are not both numbers")
    whole = found.get("scan_all_files")
    if not isinstance(whole, bool):
        raise _damaged(text, "scan_all_files is not true or false")
    if position < 0 and (snapshot_id, position, whole) != (-1, -1, False):
        raise _damaged(text, "its position is negative")
    is_done = found.get("done", False)
    if not isinstance(is_done, bool) or (is_done and (whole or position < 0)):
        raise _damaged(text, "done is not true or false, or contradicts the rest")
    since_ms = found.get("since_ms")
    if since_ms is not None and (type(since_ms) is not int or position >= 0):
        raise _damaged(text, "since_ms is no number, or it is within a table")
    return StreamOffset(snapshot_id, position, whole, is_done, since_ms)


def _damaged(text: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot continue a stream from the offset {text[:200]!r}: {reason}",
        hint="The checkpoint is damaged, or of another source. Start with a new checkpoint, and say from where with "
        "stream-after-snapshot.",
    )
