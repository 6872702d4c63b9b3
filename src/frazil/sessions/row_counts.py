"""The counts of rows that a change of rows answers, under the names of Delta's statements.

    INSERT           num_affected_rows, num_inserted_rows
    DELETE, UPDATE   num_affected_rows
    MERGE            num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows

The numbers are those of the commit, so that no row is read for them. A number is null where nobody counted: of a delete
that takes files whole, by their metadata, where delete files may hide rows of them.
"""

from __future__ import annotations

from frazil.spec.snapshot import Snapshot


def inserted(made: Snapshot | None) -> list[int | None]:
    """Return what an INSERT answers."""
    count = 0 if made is None else made.num_inserted_rows
    return [count, count]


def affected(made: Snapshot | None) -> list[int | None]:
    """Return what a DELETE or an UPDATE answers."""
    return [0 if made is None else made.num_affected_rows]


def merged(made: Snapshot | None) -> list[int | None]:
    """Return what a MERGE answers."""
    if made is None:
        return [0] * 4
    counts = [count or 0 for count in (made.num_updated_rows, made.num_deleted_rows, made.num_inserted_rows)]
    return [sum(counts), *counts]
