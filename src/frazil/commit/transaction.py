"""Transactions: from actions to a commit of one or several tables, and recovery from failures half-way.

Layout. A `Transaction` has, for each table, the state it starts from (`base`), the actions added so far, and for each
action a slot: the action's snapshot id and commit id, which are the same for all attempts, and the files it has
written. An added action is prepared immediately, on the state after the actions before it (`staged`), so that a caller
can write data for a schema created in the same transaction.

Algorithm. `commit` gathers the updates of all actions and their requirements on the base, and sends them to the
catalog. The loop of `commit/commit_loop.py` retries until the outcome is known. Each attempt after the first reloads
the tables. If one of them has a snapshot of this transaction, the commit happened after all; otherwise every action is
prepared again on the new state. After a commit, files of this transaction that the new state does not use are deleted.

The catalog builds the new metadata from the updates. They are applied here only if the staged table is needed: by the
second action of a transaction, or by a caller.

Failures. Every call to storage or catalog may fail, before or after it has taken effect, and this process may die at
any instruction. Nothing is visible before the catalog's commit, which is atomic. A crash may leave unreferenced files
behind, which orphan removal finds.

Why it is safe.

  - At most once. Attempts of one commit start from different bases and require the state that their actions relied
    on, such as the position of the branch. A rejected attempt stays rejected. An unknown one is resolved before the
    next attempt. Snapshot ids are the same in all attempts, so the table itself shows whether it has the commit; the
    commit id in the snapshot's summary distinguishes it from another writer's snapshot with the same id.
  - No acknowledged commit is lost. The catalog applies the updates to the present state if that meets the
    requirements: the new state has the commits of other writers since, or the commit is rejected.
  - No live file is deleted. Clean-up deletes only files that this commit wrote and the table does not reference, and
    only if no outcome in this commit was ever unknown. On failure the table is loaded once more for that; if it
    cannot be loaded, or has a sign of this commit, nothing is deleted. Leaving a file behind is always allowed.
    Interrupts and crashes (exceptions that are not an `Exception`) pass through, and nothing is deleted.

Data files are never deleted here: their writer decides, by `may_clean_up` of the error.

A commit of several tables uses the catalog's `commit_many`: all change, or none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.outcomes import Committed, Outcome
from frazil.changes.apply import apply_updates
from frazil.changes.requirements import AssertCreate, check_requirements, restate_requirements
from frazil.changes.updates import AddSnapshot
from frazil.commit.action import NO_ENGINE, Action, Changes, CommitContext, WrittenManifests, snapshot_id_of
from frazil.commit.commit_loop import SYSTEM_PACE, CommitLoop, Limits, Pace
from frazil.commit.summary import COMMIT_ID
from frazil.errors import ConcurrentChangeError, FrazilError, InvalidRequestError, MissingFileError, TableNotFoundError
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import location_key
from frazil.threads import default_threads

_ID_TRIES = 10


@dataclass(slots=True)
class _Slot:
    """One action of a transaction, with its ids and files, and the changes of its last attempt."""

    action: Action
    commit_id: str
    snapshot_id: int
    written: WrittenManifests = field(default_factory=WrittenManifests)
    changes: Changes = field(default_factory=Changes)

    def created(self, snapshot: Snapshot | None) -> bool:
        """Return whether a snapshot is this action's, and not another writer's with the same id."""
        if snapshot is None or snapshot.summary is None:
            return False
        return snapshot.summary.get(COMMIT_ID) == self.commit_id and snapshot.manifest_list in self.written.paths


class TableTransaction:
    """The changes of one table in a transaction, created by `Transaction.table`."""

    def __init__(self, transaction: Transaction, loaded: LoadedTable) -> None:
        self._transaction = transaction
        self._slots: list[_Slot] = []
        self.first_base = loaded
        self.base = loaded
        self._metadata = loaded.metadata
        self._pending: list[Changes] = []

    @property
    def staged(self) -> LoadedTable:
        """The table after the actions added so far, assuming no concurrent changes."""
        while self._pending:
            updates = self._pending[0].updates
            self._metadata = apply_updates(self._metadata, updates, now_ms=self._transaction.catalog.now_ms())
            del self._pending[0]
        base = self.base
        return LoadedTable(base.identifier, self._metadata, base.metadata_location, base.storage)

    def add(self, action: Action) -> Snapshot | None:
        """Prepare an action on the staged table; return the snapshot that it will create, or None.

        Its changes become visible only by the transaction's commit.
        """
        slot = self._new_slot(action)
        self._slots.append(slot)
        try:
            self._prepare_first(slot)
        except Exception as error:
            self._slots.pop()
            self._transaction.discard(self, [slot], error)
            raise
        added = (update.snapshot for update in slot.changes.updates if isinstance(update, AddSnapshot))
        return next((snapshot for snapshot in added if snapshot.snapshot_id == slot.snapshot_id), None)

    def _prepare_first(self, slot: _Slot) -> None:
        """Prepare an action, on the present state if the state it starts from has expired since it was read."""
        try:
            self._prepare(slot, attempt=1)
        except MissingFileError:
            if len(self._slots) > 1 or self.is_new:
                raise
            fresh = self._transaction.catalog.refresh(self.base)
            if fresh.metadata_location == self.base.metadata_location:
                raise
            self._start_from(fresh)
            self._prepare(slot, attempt=1)

    def _new_slot(self, action: Action) -> _Slot:
        taken = {slot.snapshot_id for slot in self._slots}
        for _ in range(_ID_TRIES):
            commit_id = self._transaction.catalog.new_id()
            snapshot_id = snapshot_id_of(commit_id)
            if snapshot_id not in taken and self.base.metadata.snapshots.find_head(snapshot_id) is None:
                return _Slot(action, commit_id, snapshot_id)
        raise InvalidRequestError(f"Cannot commit to {self.base.name}: every generated snapshot id is taken")

    def _prepare(self, slot: _Slot, attempt: int) -> None:
        transaction = self._transaction
        context = CommitContext(
            slot.snapshot_id,
            slot.commit_id,
            transaction.catalog.now_ms,
            slot.written,
            attempt,
            transaction.engine,
            transaction.cache,
            transaction.threads,
            frozenset(slot.snapshot_id for slot in self._slots),
            self.first_base.metadata,
            self.base.metadata,
        )
        staged = self.staged
        try:
            slot.changes = slot.action.prepare(staged, context)
        except ConcurrentChangeError as error:
            raise error.in_table(self.base.name) from error.__cause__
        check_requirements(staged.metadata, slot.changes.requirements)
        self._pending.append(slot.changes)

    def replay(self, base: LoadedTable, attempt: int) -> None:
        """Prepare all actions again on a newer state of the table."""
        self._start_from(base)
        for slot in self._slots:
            self._prepare(slot, attempt)

    def _start_from(self, base: LoadedTable) -> None:
        self.base, self._metadata = base, base.metadata
        self._pending.clear()

    def change(self) -> TableChange:
        """Return the changes of this attempt, with their requirements on the state they start from."""
        changes = [slot.changes for slot in self._slots]
        updates = tuple(update for change in changes for update in change.updates)
        if self.is_new:
            return TableChange(self.base, updates, (AssertCreate(),))
        required = [requirement for change in changes for requirement in change.requirements]
        return TableChange(self.base, updates, restate_requirements(self.base.metadata, required))

    @property
    def is_new(self) -> bool:
        """Whether the table is created by this transaction."""
        return self.base.metadata_location is None

    @property
    def slots(self) -> Sequence[_Slot]:
        """The actions in order."""
        return self._slots

    def is_in(self, metadata: TableMetadata) -> bool:
        """Return whether a snapshot of this transaction is in a table's metadata."""
        return any(slot.created(metadata.find_snapshot(slot.snapshot_id)) for slot in self._slots)


class Transaction:
    """Changes of one or several tables that are committed together or not at all.

    `engine` is added to the summaries of snapshots. A transaction is used once, by one thread.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        pace: Pace = SYSTEM_PACE,
        engine: Mapping[str, str] = NO_ENGINE,
        cache: ManifestCache | None = None,
        threads: int | None = None,
    ) -> None:
        self.catalog = catalog
        self.engine = engine
        self.cache = cache
        self.threads = default_threads() if threads is None else threads
        self._loop: CommitLoop[LoadedTable] = CommitLoop(catalog, pace)
        self._tables: dict[tuple[str, ...], TableTransaction] = {}
        self._is_over = False

    @property
    def attempts(self) -> int:
        """The number of attempts of the commit."""
        return self._loop.attempts

    @property
    def was_unknown(self) -> bool:
        """Whether an outcome was ever unknown; if so, files written for the commit must not be deleted."""
        return self._loop.was_unknown

    def table(self, loaded: LoadedTable) -> TableTransaction:
        """Return the changes of a table; the state passed by the first call is the one they start from."""
        self._check_open()
        changes = self._tables.get(loaded.identifier)
        if changes is None:
            changes = self._tables[loaded.identifier] = TableTransaction(self, loaded)
        return changes

    def commit(self) -> tuple[LoadedTable, ...]:
        """Commit all changes in one step; return the new states in the order of the tables.

        Commits of other writers are built upon, up to the limits of the tables' properties. A CommitConflictError means
        that other writers always came first, a ConcurrentChangeError that they changed rows or columns that an action
        read, and a CommitStateUnknownError that the outcome is unknown: nothing may be deleted then.
        """
        self._check_open()
        self._is_over = True
        try:
            limits = Limits(table.base.metadata.properties for table in self._tables.values())
            return self._finish({loaded.identifier: loaded for loaded in self._loop.run(self, limits)})
        except Exception as error:
            if not self._loop.was_unknown:
                for table in self._tables.values():
                    self.discard(table, table.slots, error)
            raise

    def roll_back(self) -> None:
        """Abandon the transaction: no table changes, and the files written for it are deleted."""
        self._check_open()
        self._is_over = True
        for table in self._tables.values():
            self.discard(table, table.slots, None)

    def _check_open(self) -> None:
        if self._is_over:
            raise InvalidRequestError("Cannot use the transaction: it is over", hint="Start another one.")

    # Called by the commit loop

    @property
    def names(self) -> str:
        """The names of the tables."""
        return ", ".join(table.base.name for table in self._tables.values())

    def send(self) -> Outcome[LoadedTable]:
        """Send the changes of this attempt to the catalog."""
        changes = [table.change() for table in self._tables.values()]
        changes = [
            table_change
            for table_change in changes
            if table_change.updates or table_change.base.metadata_location is None
        ]
        if not changes:
            return Committed(())
        if len(changes) == 1:
            return self.catalog.commit(changes[0].base, changes[0].updates, changes[0].requirements)
        return self.catalog.commit_many(changes)

    def rebase(self, attempt: int) -> tuple[LoadedTable, ...] | None:
        """Prepare all actions on the present states of the tables, unless those show that the commit happened."""
        fresh = self._refresh()
        if self._is_committed(fresh):
            return tuple(fresh.values())
        for table in self._tables.values():
            table.replay(fresh[table.base.identifier], attempt)
        return None

    def find_committed(self) -> tuple[LoadedTable, ...] | None:
        """Return the present states of the tables if one of them has a snapshot of this transaction."""
        fresh = self._refresh()
        return tuple(fresh.values()) if self._is_committed(fresh) else None

    def _refresh(self) -> dict[tuple[str, ...], LoadedTable]:
        """Reload the tables; a table that is being created does not exist yet and stays unchanged."""
        return {
            name: table.base if table.is_new else self.catalog.refresh(table.base)
            for name, table in self._tables.items()
        }

    def _is_committed(self, fresh: Mapping[tuple[str, ...], LoadedTable]) -> bool:
        return any(table.is_in(fresh[name].metadata) for name, table in self._tables.items())

    def _finish(self, committed: Mapping[tuple[str, ...], LoadedTable]) -> tuple[LoadedTable, ...]:
        states = tuple(committed.get(name, table.base) for name, table in self._tables.items())
        if not self._loop.was_unknown:
            for table, state in zip(self._tables.values(), states, strict=True):
                self._delete_unused(table, state)
        return states

    # Clean-up

    def _delete_unused(self, table: TableTransaction, state: LoadedTable) -> None:
        """Delete files that earlier attempts wrote and the committed one does not use."""
        for slot in table.slots:
            used = set(slot.changes.written_files)
            snapshot = state.metadata.find_snapshot(slot.snapshot_id)
            if slot.written.paths and snapshot is not None and snapshot.manifest_list not in used:
                # An earlier attempt was committed, and the files that it uses are unknown here.
                continue
            self._delete(state, [path for path in slot.written.paths if path not in used])

    def discard(self, table: TableTransaction, slots: Sequence[_Slot], error: Exception | None) -> None:
        """Delete the files of a failed commit, if the present state of the table proves that they are not in use."""
        paths = [path for slot in slots for path in slot.written.paths]
        if not paths or (isinstance(error, FrazilError) and not error.may_clean_up):
            return
        with contextlib.suppress(FrazilError):
            if table.is_new:
                if not self._exists(table.base):
                    self._delete(table.base, paths)
                return
            state = self.catalog.refresh(table.base)
            used = _reachable_since(state, table.first_base.metadata, {slot.snapshot_id for slot in slots})
            if used is not None:
                self._delete(state, [path for path in paths if location_key(path) not in used])

    def _exists(self, loaded: LoadedTable) -> bool:
        """Return whether a table to be created exists after all; another table of its name does not count."""
        try:
            present = self.catalog.load_table(loaded.identifier)
        except TableNotFoundError:
            return False
        return present.metadata.table_uuid == loaded.metadata.table_uuid

    def _delete(self, state: LoadedTable, paths: Iterable[str]) -> None:
        """Delete files of this commit: it generated their names, and `create` overwrote nothing."""
        for path in paths:
            with contextlib.suppress(FrazilError):
                state.storage.delete(path)


def _reachable_since(state: LoadedTable, before: TableMetadata, own_ids: set[int]) -> set[str] | None:
    """Return the files that snapshots since a state reference, or None if they show that this commit happened.

    Files of this commit did not exist before that state, so older snapshots cannot reference them.
    """
    used: set[str] = set()
    for head in state.metadata.snapshots.heads:
        if before.snapshots.find_head(head.snapshot_id) is not None:
            continue
        if head.snapshot_id in own_ids or head.parent_snapshot_id in own_ids:
            return None
        snapshot = state.metadata.snapshot(head.snapshot_id)
        used |= {location_key(manifest.manifest_path) for manifest in read_manifest_list(state.storage, snapshot)}
        if snapshot.manifest_list is not None:
            used.add(location_key(snapshot.manifest_list))
    return used


def commit_actions(
    catalog: Catalog,
    loaded: LoadedTable,
    *actions: Action,
    pace: Pace = SYSTEM_PACE,
    engine: Mapping[str, str] = NO_ENGINE,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> LoadedTable:
    """Commit actions on one table, all in one step, and return its new state; see `Transaction.commit`."""
    transaction = Transaction(catalog, pace=pace, engine=engine, cache=cache, threads=threads)
    table = transaction.table(loaded)
    for action in actions:
        table.add(action)
    return transaction.commit()[0]
