"""The REST catalog: names and changes are sent to a service, files are read and written by this process.

A commit: the updates are sent with their requirements; the service applies them to the state it has by then, if that
meets the requirements. The meaning of its responses:

    200            committed, with the new state
    404, 409       rejected: the table does not exist, or does not meet the requirements
    400, 403, ...  an error: nothing happened
    500, 502, 503, 504, a lost response  unknown

Resolving an unknown outcome: a request with an idempotency key is sent again with it. Otherwise the table is loaded. If
it has the change's snapshots, or already shows the change, the change was made. If it no longer meets the requirements,
the change was not made and cannot be: if it arrived late, it would be refused. Otherwise the request is sent again: its
requirements ensure that it is made at most once; a change without requirements (of properties, say) may be made twice.

Changes of several tables are sent to `transactions/commit`, if the service has it, all or none. If a service does not
stage tables, a new table is created first and changed in a second step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from frazil.catalog.base import check_distinct
from frazil.catalog.change import TableChange, ViewChange
from frazil.catalog.names import Identifier, format_name, split_identifier, table_exists, view_exists
from frazil.catalog.outcomes import Attempt, Committed, LoadedT, Outcome, Rejected, Unknown
from frazil.changes.apply import apply_updates
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.changes_json import encode_requirement, encode_update
from frazil.changes.creation import creation_updates
from frazil.changes.explicit import explicit_updates, explicit_view_updates
from frazil.changes.requirements import (
    AssertCreate,
    AssertTableUuid,
    AssertViewUuid,
    TableRequirement,
    ViewRequirement,
    check_requirements,
)
from frazil.changes.updates import AddSnapshot, RemoveProperties, SetProperties, TableUpdate, ViewUpdate
from frazil.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable, LoadedView
from frazil.rest import service as has
from frazil.rest import settings as names
from frazil.rest.find_dropped import find_dropped_updates, warn_of_dropped
from frazil.rest.load_result import LoadResult, read_table
from frazil.rest.refusals import refusal
from frazil.rest.rest_names import RestNames
from frazil.rest.scan_planning import ScanPlanner, ScanReports, TablePlanner
from frazil.rest.service import identifier_json
from frazil.rest.session import Answered, OutcomeLost
from frazil.rest.table_access import Views
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.tasks import FileScanTask
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class SentTables(Unknown[LoadedTable]):
    """Changes of tables with a lost response, and their idempotency key."""

    changes: tuple[TableChange, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SentView(Unknown[LoadedView]):
    """A change of a view with a lost response, and its idempotency key."""

    change: ViewChange | None = None
    key: str | None = None


class RestCatalog(RestNames):
    """A catalog service. `rest/open_rest.py` opens one by its address."""

    def commit(
        self,
        base: LoadedTable,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
    ) -> Outcome[LoadedTable]:
        """Change a table from one of its states, or create it from a state that was never written."""
        split_identifier(base.identifier)
        change = TableChange(base, tuple(updates), tuple(requirements))
        if base.metadata_location is None:
            check_requirements(None, change.requirements)
            if not self.has_staging:
                return self._create_and_change(change)
        elif not updates:
            return Committed((base,))
        return self._send(_complete(change), self.session.new_key())

    def commit_many(self, changes: Sequence[TableChange]) -> Outcome[LoadedTable]:
        """Change several tables, all or none, if the service can."""
        check_distinct(changes)
        if len(changes) == 1:
            return self.commit(changes[0].base, changes[0].updates, changes[0].requirements)
        self.service.check(has.COMMIT_MANY, f"commit to {len(changes)} tables at once")
        return self._send_many(tuple(_complete(change) for change in changes), self.session.new_key())

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Change a view from one of its states, or create it from a state that was never written."""
        split_identifier(base.identifier)
        if base.metadata_location is not None:
            if not updates:
                return Committed((base,))
            requirements = tuple(dict.fromkeys((AssertViewUuid(base.metadata.view_uuid), *requirements)))
        change = ViewChange(base, tuple(updates), tuple(requirements))
        return self._send_view(change, self.session.new_key())

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Determine the outcome of an unknown commit; it may stay unknown."""
        try:
            if isinstance(unknown, SentTables):
                return self._resolve_tables(unknown)
            if isinstance(unknown, SentView) and unknown.change is not None:
                return self._resolve_view(unknown, unknown.change)
        except CommitStateUnknownError:
            return unknown
        return unknown

    def plan_tasks(
        self,
        loaded: LoadedTable,
        predicate: Predicate = TRUE,
        *,
        choice: SnapshotChoice = CURRENT,
        columns: Sequence[str] | None = None,
        case_sensitive: bool = True,
    ) -> Iterator[FileScanTask]:
        """Yield the files of a scan as planned by the service; a plan that is not read to the end is cancelled."""
        planner = ScanPlanner(self)
        return planner.plan(loaded, predicate, choice=choice, columns=columns, case_sensitive=case_sensitive)

    def loaded_table(
        self, parts: Identifier, result: LoadResult, *, is_staged: bool = False, views: Views = ()
    ) -> LoadedTable:
        """Return a table for scans and commits; the service plans its scans if it requires that."""
        loaded = super().loaded_table(parts, result, is_staged=is_staged, views=views)
        if self.wants_reports and not is_staged:
            loaded = replace(loaded, on_plan=ScanReports(self))
        mode = result.config.get(names.PLANNING_MODE, self.settings.get(names.PLANNING_MODE, "client"))
        if mode.lower() != "server" or not self.service.has(has.PLAN):
            return loaded
        return replace(loaded, planner=TablePlanner(self, partial(self.access.storage, parts, result, views)))

    # Sending

    def _send(self, change: TableChange, key: str | None) -> Outcome[LoadedTable]:
        base = change.base
        what = f"commit to {format_name(base.identifier)}"
        try:
            session = self.access.session_of(base.identifier)
            answer = session.send("POST", self.service.table(base.identifier), body=change_json(change), key=key)
        except OutcomeLost as lost:
            return SentTables(_lost(what, str(lost)), (Attempt(base, base),), (change,), key)
        self.forget_table(base.identifier)
        if answer.reply.is_success:
            try:
                result = read_table(answer.reply, format_name(base.identifier))
            except FrazilError as error:
                # The commit happened; the new state is obtained by loading the table.
                return SentTables(_lost(what, error.message), (Attempt(base, base),), (change,), key)
            loaded = replace(base, metadata=result.metadata, metadata_location=result.metadata_location)
            self.keep_table(loaded, answer)
            warn_of_dropped(loaded.name, find_dropped_updates(base.metadata, change.updates, loaded.metadata))
            self.report_commit(
                loaded, [update.snapshot.snapshot_id for update in change.updates if isinstance(update, AddSnapshot)]
            )
            return Committed((loaded,))
        return self._find_success(answer, what, (change,)) or self._refused(answer, what, [change])

    def _send_many(self, changes: tuple[TableChange, ...], key: str | None) -> Outcome[LoadedTable]:
        what = f"commit to {', '.join(format_name(sent.base.identifier) for sent in changes)}"
        body = {"table-changes": [change_json(sent) for sent in changes]}
        try:
            answer = self.session.send("POST", f"{self.service.root}/transactions/commit", body=body, key=key)
        except OutcomeLost as lost:
            return SentTables(
                _lost(what, str(lost)), tuple(Attempt(sent.base, sent.base) for sent in changes), changes, key
            )
        for change in changes:
            self.forget_table(change.base.identifier)
        if answer.reply.is_success:
            try:
                reloaded = tuple(self.load_table(sent.base.identifier) for sent in changes)
            except FrazilError as error:
                attempts = tuple(Attempt(sent.base, sent.base) for sent in changes)
                return SentTables(_lost(what, error.message), attempts, changes, key)
            for sent, now in zip(changes, reloaded, strict=True):
                warn_of_dropped(now.name, find_dropped_updates(sent.base.metadata, sent.updates, now.metadata))
            return Committed(reloaded)
        return self._find_success(answer, what, changes) or self._refused(answer, what, changes)

    def _send_view(self, change: ViewChange, key: str | None) -> Outcome[LoadedView]:
        base = change.base
        what = f"change view {format_name(base.identifier)}"
        if base.metadata_location is None:
            created = change.carry_out(self.storage, now_ms=self.now_ms())
            try:
                return Committed((self.create_staged_view(base.identifier, created.metadata),))
            except AlreadyExistsError as error:
                return Rejected(error)
            except CommitStateUnknownError as error:
                return SentView(error, (Attempt(base, base),), change, key)
        self.service.check(has.REPLACE_VIEW, what)
        body = {
            "identifier": identifier_json(base.identifier),
            "requirements": [encode_requirement(requirement) for requirement in change.requirements],
            "updates": [encode_update(update) for update in explicit_view_updates(base.metadata, change.updates)],
        }
        try:
            answer = self.session.send("POST", self.service.view(base.identifier), body=body, key=key)
        except OutcomeLost as lost:
            return SentView(_lost(what, str(lost)), (Attempt(base, base),), change, key)
        if answer.reply.is_success:
            try:
                return Committed((self.loaded_view(base.identifier, answer),))
            except FrazilError as error:
                return SentView(_lost(what, error.message), (Attempt(base, base),), change, key)
        reason = refusal(self.session, answer.reply, what, view=base.identifier)
        if isinstance(reason, InvalidRequestError) and self.load_view(base.identifier).metadata != base.metadata:
            # Updates that do not fit the present state were made for an earlier one.
            return Rejected(CommitConflictError(reason.message))
        if answer.status == 409:
            if answer.is_after_doubt and self._shows(change):
                return Committed((self.load_view(base.identifier),))
            return Rejected(reason if reason.retryable else CommitConflictError(reason.message))
        if answer.status == 404:
            return Rejected(reason)
        # Errors in the change itself are explained better here.
        apply_view_updates(base.metadata, change.updates, now_ms=self.now_ms())
        raise reason

    def _find_success(
        self, answer: Answered, what: str, changes: tuple[TableChange, ...]
    ) -> Outcome[LoadedTable] | None:
        """Return the success of changes whose last response is a refusal; None if they were not made.

        A request whose first response was lost may be refused because it was already carried out: services forget keys.
        """
        if not answer.is_after_doubt or answer.status not in (404, 409):
            return None
        lost = SentTables(_lost(what, self.session.explain(answer.reply)), (), changes)
        verdict = self._judge(lost, [self._find(change) for change in changes])
        return verdict if isinstance(verdict, Committed) else None

    def _refused(self, answer: Answered, what: str, changes: Sequence[TableChange]) -> Rejected:
        first = changes[0].base
        error = refusal(self.session, answer.reply, what, table=first.identifier)
        if answer.status == 409:
            if any(self._holds(change) for change in changes if _snapshots_in(change) > 1):
                # There was no conflict: some services accept only one snapshot per commit (Unity) and report a
                # conflict.
                raise UnsupportedError(error.message, hint="Commit each change on its own.")
            is_new = any(change.base.metadata_location is None for change in changes)
            if error.retryable and is_new and len(changes) == 1:
                existing = self.find_existing(first.identifier)
                return Rejected(error if existing is None else existing)
            if isinstance(error, AlreadyExistsError) and not is_new:
                return Rejected(CommitConflictError(error.message))
            return Rejected(error)
        if answer.status == 404 and isinstance(error, NotFoundError) and first.metadata_location is not None:
            return Rejected(error if isinstance(error, TableNotFoundError) or len(changes) > 1 else _gone(first))
        if isinstance(error, InvalidRequestError) and any(self._is_stale(change.base) for change in changes):
            # Updates that do not fit the present state were made for an earlier one.
            return Rejected(CommitConflictError(error.message))
        raise error

    def _holds(self, change: TableChange) -> bool:
        """Return whether a table still meets the requirements of a change."""
        current = self._find(change)
        if current is None or change.base.metadata_location is None:
            return current is None and change.base.metadata_location is None
        try:
            check_requirements(current.metadata, change.requirements)
        except CommitConflictError:
            return False
        return True

    def _is_stale(self, base: LoadedTable) -> bool:
        return base.metadata_location is not None and self.load_table(base.identifier).metadata != base.metadata

    def _create_and_change(self, change: TableChange) -> Outcome[LoadedTable]:
        base = change.base
        try:
            created = self.create_drafted(base.identifier, base.metadata)
        except AlreadyExistsError as error:
            return Rejected(error)
        if not change.updates:
            return Committed((created,))
        uuid = created.metadata.table_uuid
        return self.commit(created, change.updates, () if uuid is None else (AssertTableUuid(uuid),))

    # Unknown outcomes

    def _resolve_tables(self, unknown: SentTables) -> Outcome[LoadedTable]:
        if unknown.key is None:
            current = [self._find(change) for change in unknown.changes]
            verdict = self._judge(unknown, current)
            if verdict is not None:
                return verdict
        changes, key = unknown.changes, unknown.key
        outcome = self._send(changes[0], key) if len(changes) == 1 else self._send_many(changes, key)
        if isinstance(outcome, Rejected):
            # The refusal may be caused by the first attempt; a service may have forgotten the key.
            verdict = self._judge(unknown, [self._find(change) for change in changes])
            return outcome if verdict is None else verdict
        return outcome

    def _find(self, change: TableChange) -> LoadedTable | None:
        self.forget_table(change.base.identifier)
        try:
            return self.load_table(change.base.identifier)
        except TableNotFoundError:
            return None

    def _judge(self, unknown: SentTables, current: Sequence[LoadedTable | None]) -> Outcome[LoadedTable] | None:
        """Return the outcome of changes, judged by the loaded tables; None if the changes may be sent again."""
        pairs = list(zip(unknown.changes, current, strict=True))
        if any(loaded_now is not None and _is_in(change, loaded_now.metadata) for change, loaded_now in pairs):
            # The tables change together, so one verdict holds for all.
            return Committed(tuple(loaded_now for loaded_now in current if loaded_now is not None))
        for change, loaded in pairs:
            is_new = change.base.metadata_location is None
            if loaded is None:
                if not is_new:
                    return unknown
                continue
            if is_new:
                return Rejected(table_exists(change.base.identifier))
            if not _is_same(change.base.metadata, loaded.metadata):
                return unknown
            try:
                check_requirements(loaded.metadata, change.requirements)
            except CommitConflictError as error:
                return Rejected(error, loaded.metadata_location)
        return None

    def _resolve_view(self, unknown: SentView, change: ViewChange) -> Outcome[LoadedView]:
        if unknown.key is not None and change.base.metadata_location is not None:
            outcome = self._send_view(change, unknown.key)
            if isinstance(outcome, Rejected) and self._shows(change):
                return Committed((self.load_view(change.base.identifier),))
            return outcome
        current: LoadedView | None = None
        try:
            current = self.load_view(change.base.identifier)
        except ViewNotFoundError:
            if change.base.metadata_location is not None:
                return unknown
        if current is None:
            return self._send_view(change, unknown.key)
        if change.base.metadata_location is None:
            created = change.carry_out(self.storage, now_ms=self.now_ms()).metadata
            is_own = created.current_version.same_definition(current.metadata.current_version)
            return Committed((current,)) if is_own else Rejected(view_exists(change.base.identifier))
        if current.metadata.view_uuid.lower() != change.base.metadata.view_uuid.lower():
            return unknown
        return Committed((current,)) if self._shows(change, current) else self._send_view(change, unknown.key)

    def _shows(self, change: ViewChange, current: LoadedView | None = None) -> bool:
        """Return whether a view already shows a change."""
        try:
            metadata = (self.load_view(change.base.identifier) if current is None else current).metadata
            is_same = metadata.view_uuid.lower() == change.base.metadata.view_uuid.lower()
            return is_same and apply_view_updates(metadata, change.updates, now_ms=self.now_ms()) is metadata
        except FrazilError:
            return False


def change_json(change: TableChange) -> dict[str, Any]:
    """Return a change as JSON for a request."""
    return {
        "identifier": identifier_json(change.base.identifier),
        "requirements": [encode_requirement(requirement) for requirement in change.requirements],
        "updates": [encode_update(update) for update in _with_one_set(change.updates)],
    }


def _with_one_set(updates: tuple[TableUpdate, ...]) -> tuple[TableUpdate, ...]:
    """Merge several property updates into one: some services accept only one (Nessie)."""
    sets = [update for update in updates if isinstance(update, SetProperties)]
    if len(sets) < 2 or any(isinstance(update, RemoveProperties) for update in updates):
        return updates
    joined = SetProperties(
        FrozenMap({name: value for set_properties in sets for name, value in set_properties.updates.items()})
    )
    return (*(update for update in updates if not isinstance(update, SetProperties)), joined)


def _complete(change: TableChange) -> TableChange:
    """Return a change in the form to send: it adds only new objects, and creates a new table first."""
    updates = explicit_updates(change.base.metadata, change.updates)
    uuid = change.base.metadata.table_uuid
    if change.base.metadata_location is not None:
        # Whatever the change relies on, another table of that name must not be changed.
        same = () if uuid is None else (AssertTableUuid(uuid),)
        return TableChange(change.base, updates, tuple(dict.fromkeys((*same, *change.requirements))))
    return TableChange(change.base, (*creation_updates(change.base.metadata), *updates), (AssertCreate(),))


def _snapshots_in(change: TableChange) -> int:
    return sum(isinstance(update, AddSnapshot) for update in change.updates)


def _is_same(base: TableMetadata, current: TableMetadata) -> bool:
    return base.table_uuid is None or (current.table_uuid or "").lower() == base.table_uuid.lower()


def _is_in(change: TableChange, current: TableMetadata) -> bool:
    """Return whether a table already shows a change."""
    if not _is_same(change.base.metadata, current):
        return False
    if change.base.metadata_location is None:
        return True
    added = [update.snapshot for update in change.updates if isinstance(update, AddSnapshot)]
    if added:
        heads = current.snapshots.heads
        ids, parents = {head.snapshot_id for head in heads}, {head.parent_snapshot_id for head in heads}
        return all(snapshot.snapshot_id in ids or snapshot.snapshot_id in parents for snapshot in added)
    try:
        return apply_updates(current, change.updates, now_ms=current.last_updated_ms) is current
    except FrazilError:
        return False


def _gone(base: LoadedTable) -> TableNotFoundError:
    return TableNotFoundError(f"Cannot find table {format_name(base.identifier)}: the catalog has no such table")


def _lost(what: str, reason: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"Cannot tell whether the service did {what}: {reason}", hint="Do not delete the files written for it."
    )
