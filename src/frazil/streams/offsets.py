"""Stream offsets: how far a stream has read a table, in the JSON that checkpoints store.

    {"version":1,"snapshot_id":7,"position":2,"scan_all_files":false,"done":true}

An offset is the snapshot that is being read, and the number of its next file. The files of a snapshot are those that it
added or, with `scan_all_files`, all that are live in it. They are numbered manifest by manifest in the order of the
manifest list; a manifest takes numbers for all its live entries, even if only some are read. Iceberg Java writes and
reads the same JSON without `done`, which it ignores, so that a query may move between the two. `done` means that no
file of the snapshot remains, which cannot be determined once the snapshot has expired.

Before the first snapshot both numbers are -1, and `since_ms` is the time from which on snapshots are read, 0 for all.
Iceberg Java's offsets lack it: there the option is applied each time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from frazil.errors import InvalidRequestError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The next file of a snapshot to read; beyond the last file, the snapshot is done."""

    snapshot_id: int
    position: int
    scan_all_files: bool = False
    is_done: bool = False
    """Whether it is known that no file of the snapshot remains."""
    since_ms: int | None = None
    """Before the first snapshot: the time from which on snapshots are read."""

    @property
    def is_start(self) -> bool:
        """Whether it is before the first snapshot of a table."""
        return self.position < 0

    @property
    def text(self) -> str:
        """The offset in the form that checkpoints store."""
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
    """Parse an offset; refuse invalid text."""
    try:
        offset = json.loads(text)
    except ValueError:
        raise _damaged(text, "it is not JSON") from None
    if not isinstance(offset, dict):
        raise _damaged(text, "it is not a JSON object")
    version = offset.get("version")
    if version != _VERSION:
        raise _damaged(text, f"its version is {version!r}, not {_VERSION}")
    snapshot_id, position = offset.get("snapshot_id"), offset.get("position")
    if type(snapshot_id) is not int or type(position) is not int:
        raise _damaged(text, "snapshot_id and position are not both numbers")
    whole = offset.get("scan_all_files")
    if not isinstance(whole, bool):
        raise _damaged(text, "scan_all_files is not true or false")
    if position < 0 and (snapshot_id, position, whole) != (-1, -1, False):
        raise _damaged(text, "its position is negative")
    is_done = offset.get("done", False)
    if not isinstance(is_done, bool) or (is_done and (whole or position < 0)):
        raise _damaged(text, "done is not true or false, or contradicts the rest")
    since_ms = offset.get("since_ms")
    if since_ms is not None and (type(since_ms) is not int or position >= 0):
        raise _damaged(text, "since_ms is not a number, or the offset is not before the first snapshot")
    return StreamOffset(snapshot_id, position, whole, is_done, since_ms)


def _damaged(text: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot continue a stream from the offset {text[:200]!r}: {reason}",
        hint="The checkpoint is damaged, or of another source. Start with a new checkpoint, and set the start with "
        "stream-after-snapshot.",
    )
