"""The state of a table that a handle shows, and the write sessions that begin with it and move it on.

`session` is that of a live handle: each write begins with the present state of the catalog. `held_session` is that of
one statement: its checks, its queries and its writes are of the state it was loaded with, or of a later one that the
commit compares with it. After a write the handle shows the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from frazil.catalog.base import Catalog
from frazil.commit.action import Action
from frazil.commit.new_snapshot import find_parent
from frazil.errors import InvalidRequestError
from frazil.lineage import observe_run
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.snapshot import Operation, Snapshot
from frazil.spec.snapshot_history import ancestor_ids_between
from frazil.spec.table_metadata import TableMetadata
from frazil.verbs.one_commit import OneCommit
from frazil.verbs.write_session import WriteSession


class LiveState:
    """The state of one table that a handle shows."""

    def __init__(self, catalog: Catalog, loaded: LoadedTable, cache: ManifestCache | None) -> None:
        self.catalog = catalog
        self.cache = cache
        self.show(loaded)

    def show(self, loaded: LoadedTable) -> None:
        """Show a state."""
        lineage = self.catalog.lineage
        self.shown: LoadedTable = loaded if lineage is None else lineage.watch(loaded)

    def refresh(self) -> LoadedTable:
        """Read the catalog again; refuse another table that has taken the name."""
        self.show(self.catalog.refresh(self.shown))
        return self.shown

    @property
    def session(self) -> WriteSession:
        """The session of writes that begin with the present state of the catalog."""
        return WriteSession(self.refresh, self._commit, self._reload, self._observe, self.cache)

    @property
    def held_session(self) -> WriteSession:
        """The session of one statement, whose writes begin with the state that is shown."""
        return replace(self.session, load=lambda: self.shown, reload=self._reload_rewritten)

    def _commit(
        self, base: LoadedTable, actions: Sequence[Action], written: Sequence[str]
    ) -> tuple[LoadedTable, Snapshot | None]:
        with OneCommit(self.catalog, self.cache) as commit:
            planned = commit.table(base).add(actions, written)
        self.show(commit.states[0])
        # The snapshot as it was committed, which differs from the plan if others came first.
        snapshot = None if planned is None else self.shown.metadata.find_snapshot(planned.snapshot_id)
        return self.shown, snapshot

    def _reload(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        now = self.refresh()
        return now if Operation.REPLACE in _operations_between(state.metadata, now.metadata, branch) else None

    def _reload_rewritten(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        now = self.catalog.load_table(self.shown.identifier)
        done = _operations_between(state.metadata, now.metadata, branch)
        # Only if no row changed: what else the statement has read of the table is of the old state.
        if done != {Operation.REPLACE} or now.metadata.current_schema != state.metadata.current_schema:
            return None
        self.show(now)
        return self.shown

    def _observe(self, verb: str, data: Any) -> AbstractContextManager[None]:
        return observe_run(self.catalog, verb, self.shown.name, data)


def _operations_between(before: TableMetadata, after: TableMetadata, branch: str) -> set[str | None]:
    """Return the operations on a branch after a state of it; empty if unknown."""
    read, head = find_parent(before, branch), find_parent(after, branch)
    if read is None or head is None:
        return set()
    try:
        ids = ancestor_ids_between(after, after_snapshot_id=read.snapshot_id, to_snapshot_id=head.snapshot_id)
    except InvalidRequestError:
        return set()
    return {after.snapshot(snapshot_id).operation for snapshot_id in ids}
