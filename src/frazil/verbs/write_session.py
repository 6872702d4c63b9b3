"""What a verb needs of a table, as one value, and a write that has begun.

A handle (`table/`) calls a verb with a `WriteSession`; a verb never sees the handle. What differs between handles and
between writes is a field of that value:

    a table           `load` reads the catalog, `commit` commits at once (`verbs/live_state.py`)
    a held table      `load` returns the state of the statement, `reload` accepts rewritten files only
    a transaction     `load` returns the staged table, `commit` adds to the transaction (`verbs/one_commit.py`)
    write options     `overrides` apply to the state that the write sees, not to the one it commits
    once=…            `once` skips a write that is done, and records one that is not

A verb has three beats: it begins (`WriteSession.begin`), plans from the state it began with and writes files, and
commits (`Write.commit`). What it reads, writes and deletes is of that one state, so the commit notices all changes by
other writers since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from frazil.change_rows.row_change import noted
from frazil.commit.action import Action, PlannedChange
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.once import Once, RecordOnly, WriteOnce, find_done
from frazil.commit.update_schema import UpdateSchema
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata
from frazil.verbs.on_spark import choose_session, engine_summary, is_spark_frame
from frazil.verbs.write_overrides import AS_THE_TABLE_SAYS, WriteOverrides

NO_PROPERTIES: Mapping[str, str] = FrozenMap()
_PLANS = 10
"""How often a change is planned at most if other writers rewrite the files that it reads."""

Commit: TypeAlias = Callable[[LoadedTable, Sequence[Action], Sequence[str]], tuple[LoadedTable, Snapshot | None]]
"""Carries out actions that began with a state, in one commit.

Returns the table after them, and the snapshot of the last action, or None if it makes none. The third argument is the
data and delete files that were written for them, to be deleted if the commit is known to have failed.
"""


def _cannot_reload(state: LoadedTable, branch: str) -> None:
    return None


def _unobserved(verb: str, data: Any) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class WriteSession:
    """How a write begins and commits, and what applies to it."""

    load: Callable[[], LoadedTable]
    """Returns the state that a write begins with; called once for each write."""
    commit: Commit
    reload: Callable[[LoadedTable, str], LoadedTable | None] = _cannot_reload
    """Returns the present table to plan a change of a branch again, or None if that would not help."""
    observe: Callable[[str, Any], AbstractContextManager[None]] = _unobserved
    """Reports a verb and its data while it runs; inside a transaction it is part of that."""
    cache: ManifestCache | None = None
    overrides: WriteOverrides = AS_THE_TABLE_SAYS
    branch: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = NO_PROPERTIES
    once: Once | None = None

    @contextmanager
    def begin(self, verb: str, data: Any = None) -> Iterator[Write | None]:
        """Begin a write; None if it was done before under the same `once`."""
        with self.observe(verb, data):
            write = self.write()
            yield None if write.is_done else write

    def write(self) -> Write:
        """Return a write that begins with the present table; nothing is reported."""
        base = self.load()
        return Write(self, base, self.overrides.applied(base))

    def run(self, action: Action) -> Snapshot | None:
        """Commit an action that needs no plan; return the snapshot it makes, or None."""
        return self.commit(self.load(), (action,), ())[1]


@dataclass(frozen=True, slots=True)
class Write:
    """A write that has begun: the state it is planned from, and the state that its commit begins with."""

    session: WriteSession
    base: LoadedTable
    """The table as the catalog or the transaction has it."""
    state: LoadedTable
    """The table as the write sees it: after `before`, with its overrides."""
    before: tuple[UpdateSchema, ...] = ()
    """What is committed together with the write, before it."""

    @property
    def is_done(self) -> bool:
        """Whether the write was done before, under the same application and version."""
        session = self.session
        if session.once is None:
            return False
        is_staged = self.target().is_staged
        return find_done(self.state.metadata, session.branch, session.once, is_staged=is_staged) is not None

    def after(self, evolution: UpdateSchema) -> Write:
        """Return the write after a change of the schema, which is part of the same commit."""
        state = self.session.overrides.applied(evolution.applied_to(self.base))
        return replace(self, state=state, before=(evolution,))

    def target(self, engine: Mapping[str, str] = NO_PROPERTIES) -> Target:
        """Return where the write goes, and what its snapshot's summary says."""
        session = self.session
        record = {} if session.once is None else session.once.summary()
        return target_of(self.state.metadata, session.branch, {**engine, **session.snapshot_properties, **record})

    def target_of_rows(self, data: Any) -> Target:
        """Return where rows go; those of a DataFrame are written by its session."""
        return self.target(engine_summary(choose_session(data))) if is_spark_frame(data) else self.target()

    def on_spark(self, data: Any = None) -> tuple[Any, Target]:
        """Return the Spark session that carries the change out, that of a DataFrame if one is given, and the target."""
        session = choose_session(data if is_spark_frame(data) else None)
        return session, self.target(engine_summary(session))

    def read_set(self, predicate: Predicate) -> ReadSet:
        """Return what the write reads of its branch: rows that others add there since are conflicts."""
        return self.session.overrides.applied_to_reads(
            read_set_of(self.state, self.session.branch, predicate), self.state.metadata
        )

    def carry_out(
        self, plan: Callable[[Write], PlannedChange | None], counted_as: str | None = None
    ) -> Snapshot | None:
        """Plan a change and commit it; plan it again if others rewrote files that it read: no row changed."""
        write = self
        for _ in range(1, _PLANS):
            try:
                return write.commit(plan(write), counted_as)
            except ConcurrentChangeError:
                again = write._reloaded()
                if again is None:
                    raise
                write = again
        return write.commit(plan(write), counted_as)

    def _reloaded(self) -> Write | None:
        base = None if self.before else self.session.reload(self.base, self.session.branch)
        return None if base is None else replace(self, base=base, state=self.session.overrides.applied(base))

    def commit(self, planned: PlannedChange | None, counted_as: str | None = None) -> Snapshot | None:
        """Commit a planned change; None if nothing is to change.

        The snapshot's summary counts the rows under a name, if they were counted. A write that happens once is
        recorded even if it changes nothing.
        """
        written: tuple[str, ...] = ()
        actions: list[Action] = list(self.before)
        if planned is not None:
            if counted_as is not None and planned.rows is not None:
                planned = noted(planned, {counted_as: str(planned.rows)})
            actions.append(self._guarded(planned.action))
            written = planned.written
        elif self._records_nothing_done:
            actions.append(self._guarded(RecordOnly()))
        return self.session.commit(self.base, actions, written)[1] if actions else None

    @property
    def _records_nothing_done(self) -> bool:
        once = self.session.once
        return once is not None and not once.is_epoch and not self.target().is_staged

    def _guarded(self, action: Action) -> Action:
        session = self.session
        if session.once is None:
            return action
        return WriteOnce(action, session.once, session.branch, self.target().is_staged)


def read_set_of(state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
    """Return what a verb reads of a branch that it replaces rows of: what others add there since is a conflict."""
    parent = find_parent(state.metadata, branch)
    return ReadSet(None if parent is None else parent.snapshot_id, predicate)


def target_of(metadata: TableMetadata, branch: str, snapshot_properties: Mapping[str, str]) -> Target:
    """Return where a write goes: to a branch, or staged if it has a `wap.id` and the table allows that."""
    staged = Summary.WAP_ID in snapshot_properties and read_property(metadata.properties, WRITE_AUDIT_PUBLISH_ENABLED)
    if staged and branch != MAIN_BRANCH:
        raise InvalidRequestError(
            f"Cannot stage a write for branch {branch!r}: it has both a branch and a {Summary.WAP_ID}",
            hint="Give one of them.",
        )
    return Target(branch, FrozenMap(snapshot_properties), is_staged=staged)
