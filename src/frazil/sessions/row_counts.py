"""What a change of rows answers: how many there were. Names are those that Delta's statements answer with.

    INSERT           num_affected_rows, num_inserted_rows
    DELETE, UPDATE   num_affected_rows
    MERGE            num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows

The numbers are those of the commit, so that no row is read for them. A number is null where nobody counted: of a delete
that takes files whole, by their metadata, where delete files may hide rows of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from frazil.lake.verbs import TableVerbs
from frazil.local.merge_clauses import COUNTS
from frazil.spec.snapshot import Snapshot, Summary

_NONE: Final[Mapping[str, str]] = {}


def inserted(table: TableVerbs, made: Snapshot | None) -> str:
    """Return what an INSERT answers."""
    count = table._changed_rows
    if count is None:
        count = _number(made, Summary.ADDED_RECORDS)
    return json.dumps([count, count])


def deleted(table: TableVerbs, made: Snapshot | None) -> str:
    """Return what a DELETE answers; files that went by their metadata alone are counted by the snapshot."""
    count = table._changed_rows
    if count is None and made is not None and _number(made, Summary.TOTAL_EQUALITY_DELETES) == 0:
        gone = _number(made, Summary.DELETED_RECORDS)
        left = _number(made, Summary.TOTAL_POSITION_DELETES)
        hidden = _number(made, Summary.REMOVED_POSITION_DELETES)
        count = None if left else gone - hidden
    return json.dumps([0 if made is None else count])


def updated(table: TableVerbs, made: Snapshot | None) -> str:
    """Return what an UPDATE answers."""
    return json.dumps([0 if made is None else table._changed_rows])


def merged(made: Snapshot | None) -> str:
    """Return what a MERGE answers."""
    counts = [_number(made, f"{COUNTS}{done}") for done in ("updated", "deleted", "inserted")]
    return json.dumps([sum(counts), *counts])


def _number(made: Snapshot | None, name: str) -> int:
    text = ((None if made is None else made.summary) or _NONE).get(name, "0")
    return int(text) if text.isdigit() else 0
