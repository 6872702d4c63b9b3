"""A catalog that is a service, by the REST protocol: names and changes go to it, files are read and written here.

How a commit goes. The updates are sent, with what must hold for them; the service makes the new metadata, on the state
it has by then where that meets the requirements. Its answers mean:

    200            committed, with the new state
    404, 409       rejected: the table is gone, or is not as required
    400, 403, ...  an error: nothing happened
    500, 502, 503, 504, a lost answer    unknown

How an unknown outcome is resolved. A request that carries an idempotency key is sent again with it. Else the table is
loaded. A change whose snapshots are in it, or that it shows already, has happened. One whose requirements it does not
meet any more did not happen, and cannot: sent late, it would be refused. Else the request is sent again: what it
requires lets it be made once at most, and a change that requires nothing (of properties, say) may be made twice.

Several tables go to `transactions/commit`, where the service has it, and change together or not at all. A service that
stages no tables has a new one created first, and changed in a second step.
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
    """Changes of tables whose answer was lost, with the key they were sent with."""

    changes: tuple[TableChange, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class SentView(Unknown[LoadedView]):
    """A change of a view whose answer was lost, with the key it was sent with."""

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
        """Change a table from a state of it; from a state that was never written, create the table."""
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
        """Change several tables, all or none, where the service can."""
        check_distinct(changes)
        if len(changes) == 1:
            return self.commit(changes[0].base, changes[0].updates, changes[0].requirements)
        self.service.check(has.COMMIT_MANY, f"commit to {len(changes)} tables at once")
        return self._send_many(tuple(_complete(change) for change in changes), self.session.new_key())

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Change a view from a state of it; from a state that was never written, create the view."""
        split_identifier(base.identifier)
        if base.metadata_location is not None:
            if not updates:
                return Committed((base,))
            requirements = tuple(dict.fromkeys((AssertViewUuid(base.metadata.view_uuid), *requirements)))
        change = ViewChange(base, tuple(updates), tuple(requirements))
        return self._send_view(change, self.session.new_key())

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Find out what a commit of unknown outcome came to; it stays unknown where that cannot be told now."""
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
        """Yield the files of a scan as the service plans them; a plan that is not read to its end is cancelled."""
        planner = ScanPlanner(self)
        return planner.plan(loaded, predicate, choice=choice, columns=columns, case_sensitive=case_sensitive)

    def loaded_table(
        self, parts: Identifier, result: LoadResult, *, is_staged: bool = False, views: Views = ()
    ) -> LoadedTable:
        """Return a table as scans and commits start from; its scans are planned by the service, where that wants it."""
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
                # It happened; what the table is now is found by loading it.
                return SentTables(_lost(what, error.message), (Attempt(base, base),), (change,), key)
            loaded = replace(base, metadata=result.metadata, metadata_location=result.metadata_location)
            self.keep_table(loaded, answer)
            warn_of_dropped(loaded.name, find_dropped_updates(base.metadata, change.updates, loaded.metadata))
            self.report_commit(
                loaded, [update.snapshot.snapshot_id for update in change.updates if isinstance(update, AddSnapshot)]
            )
            return Committed((loaded,))
        return self._seen_anyway(answer, what, (change,)) or self._refused(answer, what, [change])

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
                found = tuple(self.load_table(sent.base.identifier) for sent in changes)
            except FrazilError as error:
                attempts = tuple(Attempt(sent.base, sent.base) for sent in changes)
                return SentTables(_lost(what, error.message), attempts, changes, key)
            for sent, now in zip(changes, found, strict=True):
                warn_of_dropped(now.name, find_dropped_updates(sent.base.metadata, sent.updates, now.metadata))
            return Committed(found)
        return self._seen_anyway(answer, what, changes) or self._refused(answer, what, changes)

    def _send_view(self, change: ViewChange, key: str | None) -> Outcome[LoadedView]:
        base = change.base
        what = f"change view {format_name(base.identifier)}"
        if base.metadata_location is None:
            made = change.carry_out(self.storage, now_ms=self.now_ms())
            try:
                return Committed((self.create_staged_view(base.identifier, made.metadata),))
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
        # What is wrong with the change itself is told better here.
        apply_view_updates(base.metadata, change.updates, now_ms=self.now_ms())
        raise reason

    def _seen_anyway(
        self, answer: Answered, what: str, changes: tuple[TableChange, ...]
    ) -> Outcome[LoadedTable] | None:
        """Return that changes were made though the last answer is a refusal; None where they were not.

        A request whose first answer was lost may be refused because it was carried out then: services forget keys.
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
                # Nobody came first: some services take one snapshot at a time (Unity), and call it a conflict.
                raise UnsupportedError(error.message, hint="Commit each change on its own.")
            is_new = any(change.base.metadata_location is None for change in changes)
            if error.retryable and is_new and len(changes) == 1:
                taken = self.find_existing(first.identifier)
                return Rejected(error if taken is None else taken)
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
        """Return whether a table is still as a change requires it."""
        found = self._find(change)
        if found is None or change.base.metadata_location is None:
            return found is None and change.base.metadata_location is None
        try:
            check_requirements(found.metadata, change.requirements)
        except CommitConflictError:
            return False
        return True

    def _is_stale(self, base: LoadedTable) -> bool:
        return base.metadata_location is not None and self.load_table(base.identifier).metadata != base.metadata

    def _create_and_change(self, change: TableChange) -> Outcome[LoadedTable]:
        base = change.base
        try:
            made = self.create_drafted(base.identifier, base.metadata)
        except AlreadyExistsError as error:
            return Rejected(error)
        if not change.updates:
            return Committed((made,))
        uuid = made.metadata.table_uuid
        return self.commit(made, change.updates, () if uuid is None else (AssertTableUuid(uuid),))

    # Outcomes nobody heard

    def _resolve_tables(self, unknown: SentTables) -> Outcome[LoadedTable]:
        if unknown.key is None:
            found = [self._find(change) for change in unknown.changes]
            verdict = self._judge(unknown, found)
            if verdict is not None:
                return verdict
        changes, key = unknown.changes, unknown.key
        outcome = self._send(changes[0], key) if len(changes) == 1 else self._send_many(changes, key)
        if isinstance(outcome, Rejected):
            # The refusal may be the answer to its own repetition; a service may have forgotten the key.
            verdict = self._judge(unknown, [self._find(change) for change in changes])
            return outcome if verdict is None else verdict
        return outcome

    def _find(self, change: TableChange) -> LoadedTable | None:
        self.forget_table(change.base.identifier)
        try:
            return self.load_table(change.base.identifier)
        except TableNotFoundError:
            return None

    def _judge(self, unknown: SentTables, found: Sequence[LoadedTable | None]) -> Outcome[LoadedTable] | None:
        """Return what loaded tables say of changes; None where the changes may be sent again."""
        pairs = list(zip(unknown.changes, found, strict=True))
        if any(loaded_now is not None and _is_in(change, loaded_now.metadata) for change, loaded_now in pairs):
            # They change together, so one answer is the answer for all.
            return Committed(tuple(loaded_now for loaded_now in found if loaded_now is not None))
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
        found: LoadedView | None = None
        try:
            found = self.load_view(change.base.identifier)
        except ViewNotFoundError:
            if change.base.metadata_location is not None:
                return unknown
        if found is None:
            return self._send_view(change, unknown.key)
        if change.base.metadata_location is None:
            made = change.carry_out(self.storage, now_ms=self.now_ms()).metadata
            is_ours = made.current_version.same_definition(found.metadata.current_version)
            return Committed((found,)) if is_ours else Rejected(view_exists(change.base.identifier))
        if found.metadata.view_uuid.lower() != change.base.metadata.view_uuid.lower():
            return unknown
        return Committed((found,)) if self._shows(change, found) else self._send_view(change, unknown.key)

    def _shows(self, change: ViewChange, found: LoadedView | None = None) -> bool:
        """Return whether a view is as a change would make it."""
        try:
            seen = (self.load_view(change.base.identifier) if found is None else found).metadata
            is_same = seen.view_uuid.lower() == change.base.metadata.view_uuid.lower()
            return is_same and apply_view_updates(seen, change.updates, now_ms=self.now_ms()) is seen
        except FrazilError:
            return False


def change_json(change: TableChange) -> dict[str, Any]:
    """Return a change as requests have it."""
    return {
        "identifier": identifier_json(change.base.identifier),
        "requirements": [encode_requirement(requirement) for requirement in change.requirements],
        "updates": [encode_update(update) for update in _with_one_set(change.updates)],
    }


def _with_one_set(updates: tuple[TableUpdate, ...]) -> tuple[TableUpdate, ...]:
    """Return updates that set properties once: some services take no more (Nessie)."""
    sets = [update for update in updates if isinstance(update, SetProperties)]
    if len(sets) < 2 or any(isinstance(update, RemoveProperties) for update in updates):
        return updates
    joined = SetProperties(
        FrozenMap({name: value for set_properties in sets for name, value in set_properties.updates.items()})
    )
    return (*(update for update in updates if not isinstance(update, SetProperties)), joined)


def _complete(change: TableChange) -> TableChange:
    """Return a change as it is sent: it adds only what is new, and that of a new table makes the table first."""
    updates = explicit_updates(change.base.metadata, change.updates)
    uuid = change.base.metadata.table_uuid
    if change.base.metadata_location is not None:
        # Whatever the change relies on, another table of the name is not meant.
        same = () if uuid is None else (AssertTableUuid(uuid),)
        return TableChange(change.base, updates, tuple(dict.fromkeys((*same, *change.requirements))))
    return TableChange(change.base, (*creation_updates(change.base.metadata), *updates), (AssertCreate(),))


def _snapshots_in(change: TableChange) -> int:
    return sum(isinstance(update, AddSnapshot) for update in change.updates)


def _is_same(base: TableMetadata, found: TableMetadata) -> bool:
    return base.table_uuid is None or (found.table_uuid or "").lower() == base.table_uuid.lower()


def _is_in(change: TableChange, found: TableMetadata) -> bool:
    """Return whether a table shows that a change was made."""
    if not _is_same(change.base.metadata, found):
        return False
    if change.base.metadata_location is None:
        return True
    added = [update.snapshot for update in change.updates if isinstance(update, AddSnapshot)]
    if added:
        heads = found.snapshots.heads
        ids, parents = {head.snapshot_id for head in heads}, {head.parent_snapshot_id for head in heads}
        return all(snapshot.snapshot_id in ids or snapshot.snapshot_id in parents for snapshot in added)
    try:
        return apply_updates(found, change.updates, now_ms=found.last_updated_ms) is found
    except FrazilError:
        return False


def _gone(base: LoadedTable) -> TableNotFoundError:
    return TableNotFoundError(f"Cannot find table {format_name(base.identifier)}: the catalog has no such table")


def _lost(what: str, reason: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"Cannot tell whether the service did {what}: {reason}", hint="Files written for it must stay."
    )
