"""Changes of one or several tables that are committed together, and the files that were written for them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from frazil.catalog.base import Catalog
from frazil.commit.action import Action
from frazil.commit.transaction import TableTransaction, Transaction
from frazil.errors import FrazilError
from frazil.lineage import observe_commit
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.snapshot import Snapshot
from frazil.verbs.write_session import WriteSession


class StagedTable:
    """A table inside a commit: actions are prepared immediately and happen at the end."""

    def __init__(self, changes: TableTransaction, cache: ManifestCache | None) -> None:
        self._changes = changes
        self._cache = cache
        self._written: list[str] = []
        self._written_for: dict[int, tuple[str, ...]] = {}

    @property
    def state(self) -> LoadedTable:
        """The table after the changes so far."""
        return self._changes.staged

    @property
    def snapshot_ids(self) -> list[int]:
        """The snapshots of the changes so far, by id; a change that makes none has an id too."""
        return [slot.snapshot_id for slot in self._changes.slots]

    @property
    def session(self) -> WriteSession:
        """The session of verbs that change the table in this commit."""
        return WriteSession(lambda: self.state, self._commit, cache=self._cache)

    def _commit(
        self, base: LoadedTable, actions: Sequence[Action], written: Sequence[str]
    ) -> tuple[LoadedTable, Snapshot | None]:
        snapshot = self.add(actions, written)
        return self.state, snapshot

    def add(self, actions: Sequence[Action], written: Sequence[str] = ()) -> Snapshot | None:
        """Prepare actions, the last of which uses the files written; return the snapshot that the last will make."""
        self._written += written
        snapshot = None
        for action in actions:
            snapshot = self._changes.add(action)
        self._written_for[len(self._changes.slots) - 1] = tuple(written)
        return snapshot

    def delete_written(self) -> None:
        """Delete the data and delete files that were written for changes that did not happen."""
        with contextlib.suppress(FrazilError):  # orphan removal finds the files that stay
            self.state.storage.delete_many(self._written)

    def delete_skipped(self) -> None:
        """Delete the files of changes that another writer had made before, under the same name."""
        slots = self._changes.slots
        gone = [path for index, paths in self._written_for.items() if slots[index].changes.is_skipped for path in paths]
        if gone:
            with contextlib.suppress(FrazilError):
                self.state.storage.delete_many(gone)


class OneCommit:
    """Changes of tables that happen together at the end of a `with` block, or not at all.

    The files that were written for them are deleted if they are known not to have happened.
    """

    def __init__(self, catalog: Catalog, cache: ManifestCache | None) -> None:
        self._transaction = Transaction(catalog, cache=cache)
        self._cache = cache
        self._tables: dict[tuple[str, ...], StagedTable] = {}
        self.states: tuple[LoadedTable, ...] = ()

    def table(self, loaded: LoadedTable) -> StagedTable:
        """Return a table to change; the state passed by the first call is what its changes begin with."""
        staged = self._tables.get(loaded.identifier)
        if staged is None:
            staged = StagedTable(self._transaction.table(loaded), self._cache)
            self._tables[loaded.identifier] = staged
        return staged

    @property
    def names(self) -> list[str]:
        """The tables of the commit."""
        return [".".join(identifier) for identifier in self._tables]

    def find_table(self, identifier: tuple[str, ...]) -> StagedTable | None:
        """Return a table that is part of the commit already, or None."""
        return self._tables.get(identifier)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is not None:
            self._transaction.roll_back()
            self._delete_written()
            return
        try:
            self.states = self._transaction.commit()
        except FrazilError as problem:
            if problem.may_clean_up:
                self._delete_written()
            raise
        observe_commit(self.states, {each for staged in self._tables.values() for each in staged.snapshot_ids})
        if not self._transaction.was_unknown:
            for staged in self._tables.values():
                staged.delete_skipped()

    def _delete_written(self) -> None:
        for staged in self._tables.values():
            staged.delete_written()
