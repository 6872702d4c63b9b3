"""Replace the partitions that new rows are in."""

from __future__ import annotations

from typing import Any

from frazil.commit.replace_partitions import ReplacePartitions
from frazil.expr.predicates import TRUE
from frazil.spec.snapshot import Snapshot, Summary
from frazil.verbs.write_rows import change_of_files, with_columns_of, write_rows
from frazil.verbs.write_session import WriteSession


def overwrite_partitions(session: WriteSession, data: Any, *, merge_schema: bool = False) -> Snapshot | None:
    """Replace the partitions that the new rows are in, all of an unpartitioned table; None if there are no rows."""
    with session.begin("overwrite_partitions", data) as write:
        if write is None:
            return None
        if merge_schema:
            write = with_columns_of(write, data)
        target = write.target_of_rows(data)
        read = write.read_set(TRUE)
        files = write_rows(write.state, data, may_lack_parts=merge_schema)
        action = ReplacePartitions(files, read, target, write.state.metadata.current_schema)
        return write.commit(change_of_files(action, files) if files else None, Summary.NUM_INSERTED_ROWS)
