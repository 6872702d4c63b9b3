"""The row counts that a change of rows returns, under the names of Delta's statements.

    INSERT           num_affected_rows, num_inserted_rows
    DELETE, UPDATE   num_affected_rows
    MERGE            num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows

The numbers are those of the commit, so that no rows are read for them. A number is null if it is unknown: for a delete
that removes whole files by their metadata, if delete files may hide rows in them.
"""

from __future__ import annotations

from frazil.spec.snapshot import Snapshot


def inserted(snapshot: Snapshot | None) -> list[int | None]:
    """Return the counts of an INSERT."""
    count = 0 if snapshot is None else snapshot.num_inserted_rows
    return [count, count]


def affected(snapshot: Snapshot | None) -> list[int | None]:
    """Return the counts of a DELETE or an UPDATE."""
    return [0 if snapshot is None else snapshot.num_affected_rows]


def merged(snapshot: Snapshot | None) -> list[int | None]:
    """Return the counts of a MERGE."""
    if snapshot is None:
        return [0] * 4
    counts = [
        count or 0 for count in (snapshot.num_updated_rows, snapshot.num_deleted_rows, snapshot.num_inserted_rows)
    ]
    return [sum(counts), *counts]
