"""Append rows."""

from __future__ import annotations

from typing import Any

from frazil.commit.append import Append
from frazil.spec.snapshot import Snapshot
from frazil.verbs.write_rows import change_of_files, with_columns_of, write_rows
from frazil.verbs.write_session import WriteSession


def append(session: WriteSession, data: Any, *, merge_schema: bool = False) -> Snapshot | None:
    """Append rows, after the columns that the table lacks if they are to be added; None if there are no rows."""
    with session.begin("append", data) as write:
        if write is None:
            return None
        if merge_schema:
            write = with_columns_of(write, data)
        target = write.target_of_rows(data)
        files = write_rows(write.state, data, may_lack_parts=merge_schema)
        action = Append(files, target, written_schema=write.state.metadata.current_schema)
        return write.commit(change_of_files(action, files) if files else None)
