"""The shared part of catalogs that keep pointers separately from files: the memory and SQL catalogs.

The steps of a commit:

1. The new metadata is built from the base and the updates. The pointer is checked: a writer that is already late writes
   nothing.
2. The new metadata is written durably under a unique name. Nothing points to it yet.
3. One atomic step moves the pointer from the base's location to the new one. If another writer came first, the step
   finds another location: the commit is rejected, and the file is deleted.
4. If the response to that step is lost, the outcome is unknown, and the file stays. `resolve_unknown` waits until the
   step can no longer be in flight, then reads. If the pointer is or was at the new location (by its previous location
   or the metadata log, under any name): committed. If it is unmoved, or was moved by another writer: rejected. If the
   log no longer reaches back: unknown for good, and nothing is deleted.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from frazil.catalog.base import Catalog, check_distinct, check_still_at
from frazil.catalog.change import Change, TableChange, ViewChange
from frazil.catalog.metadata_files import (
    forgotten_metadata_files,
    new_metadata_location,
    read_table_metadata,
    read_view_metadata,
    write_metadata,
)
from frazil.catalog.names import (
    Identifier,
    Namespace,
    check_namespace,
    format_name,
    split_identifier,
    table_exists,
    table_not_found,
    view_exists,
    view_not_found,
)
from frazil.catalog.outcomes import Attempt, Committed, LoadedT, Outcome, Rejected, Unknown
from frazil.catalog.owned_folders import check_new_place, owned_folders
from frazil.catalog.pointers import EntityType, Pointer, PointerChange, Pointers, Stale
from frazil.catalog.purge import NOTHING_PURGED, Purge, PurgeReport, check_may_purge
from frazil.changes.requirements import TableRequirement, ViewRequirement
from frazil.changes.updates import TableUpdate, ViewUpdate
from frazil.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    FrazilError,
    InvalidMetadataError,
    InvalidRequestError,
    MissingFileError,
    NotFoundError,
    StorageError,
)
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec import properties as known
from frazil.spec.properties import read_property
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import (
    find_metadata_version,
    is_under,
    is_within,
    join_location,
    location_key,
    strip_slashes,
)

_TRIES: Final = 5
"""How often a state is read again if it moved during the read."""
_UNSAFE: Final = re.compile(r"[^\w\-.]")
_MAX_FOLDER_CHARS: Final = 80


class PointerCatalog(Catalog):
    """A catalog of pointers and a storage."""

    def __init__(self, name: str, warehouse: str, storage: Any, pointers: Pointers, **sources: Any) -> None:
        super().__init__(name, warehouse, storage, **sources)
        self._pointers = pointers

    def close(self) -> None:
        """Release the connections of the catalog."""
        self._pointers.close()

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace and its missing parents; at most one concurrent caller succeeds."""
        self._pointers.create_namespace(self._namespace(namespace), _texts(properties or {}))

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        self._pointers.drop_namespace(self._namespace(namespace))

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""
        return self._pointers.namespace_exists(self._namespace(namespace))

    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the child namespaces of a namespace, or the top-level ones, in order."""
        parts = check_namespace(parent, may_be_root=True)
        self._pointers.check_namespace(parts)
        return self._pointers.list_namespaces(parts)

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties."""
        return self._pointers.namespace_properties(self._namespace(namespace))

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties in one step."""
        removed = set(removals)
        both = removed & set(updates or {})
        if both:
            raise InvalidRequestError(
                f"Cannot change the properties of {format_name(namespace)}: {min(both)!r} is both set and removed"
            )
        self._pointers.update_namespace(self._namespace(namespace), _texts(updates or {}), removed)

    # Tables

    def list_tables(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the tables of a namespace, in order."""
        return self._pointers.list(EntityType.TABLE, self._namespace(namespace))

    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""
        location, metadata = self._load(EntityType.TABLE, identifier, read_table_metadata)
        return LoadedTable(tuple(identifier), metadata, location, self.storage)

    def commit(
        self,
        base: LoadedTable,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
    ) -> Outcome[LoadedTable]:
        """Change a table from one of its states, or create it from a state that was never written."""
        return self._commit(EntityType.TABLE, [TableChange(base, tuple(updates), tuple(requirements))])

    def commit_many(self, changes: Sequence[TableChange]) -> Outcome[LoadedTable]:
        """Change several tables in one step, all or none."""
        check_distinct(changes)
        return self._commit(EntityType.TABLE, changes)

    def drop_table(
        self, identifier: Identifier, *, purge: Purge | None = None, delete_roots: Sequence[str] = ()
    ) -> PurgeReport:
        """Remove a table's name; with `purge`, also delete the files that belong to it alone, by calling `purge`.

        Without `purge` the metadata is not read, so that a table whose files are lost can be dropped.
        """
        self._check(identifier)
        if purge is None:
            if self._pointers.drop(EntityType.TABLE, tuple(identifier)) is None:
                raise table_not_found(identifier)
            return NOTHING_PURGED
        for _ in range(_TRIES):
            loaded = self.load_table(identifier)
            check_may_purge(loaded)
            owned = owned_folders(self, loaded, delete_roots)
            owned.check_folders("purge table")
            # Drop only the state whose files are deleted: a later one has files that must be listed too.
            if self._pointers.drop(EntityType.TABLE, loaded.identifier, loaded.metadata_location) is not None:
                return purge(loaded, owned)
        raise CommitConflictError(f"Cannot drop table {format_name(identifier)}: other writers keep committing to it")

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table; its files stay where they are."""
        self._rename(EntityType.TABLE, source, target)

    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file under a name; `may_replace` allows a name that is already a table's."""
        metadata = self._register(EntityType.TABLE, identifier, metadata_location, read_table_metadata, may_replace)
        return LoadedTable(tuple(identifier), metadata, metadata_location, self.storage)

    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Remove a table's name and return its last state."""
        for _ in range(_TRIES):
            loaded = self.load_table(identifier)
            check_still_at(loaded, expected_location)
            if self._pointers.drop(EntityType.TABLE, loaded.identifier, loaded.metadata_location) is not None:
                return loaded
        raise CommitConflictError(
            f"Cannot unregister table {format_name(identifier)}: other writers keep committing to it"
        )

    def locate_table(self, identifier: Identifier) -> str | None:
        """Return a table's metadata location."""
        self._check(identifier)
        return self._find(EntityType.TABLE, identifier).metadata_location

    # Views

    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the views of a namespace, in order."""
        return self._pointers.list(EntityType.VIEW, self._namespace(namespace))

    def load_view(self, identifier: Identifier) -> LoadedView:
        """Return the current state of a view."""
        location, metadata = self._load(EntityType.VIEW, identifier, read_view_metadata)
        return LoadedView(tuple(identifier), metadata, location, self.storage)

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Change a view from one of its states, or create it from a state that was never written."""
        return self._commit(EntityType.VIEW, [ViewChange(base, tuple(updates), tuple(requirements))])

    def drop_view(self, identifier: Identifier) -> None:
        """Remove a view's name; its metadata files stay."""
        self._check(identifier)
        if self._pointers.drop(EntityType.VIEW, tuple(identifier)) is None:
            raise view_not_found(identifier)

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Rename a view."""
        self._rename(EntityType.VIEW, source, target)

    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file of a view under a name."""
        metadata = self._register(EntityType.VIEW, identifier, metadata_location, read_view_metadata, False)
        return LoadedView(tuple(identifier), metadata, metadata_location, self.storage)

    def locate_view(self, identifier: Identifier) -> str | None:
        """Return a view's metadata location."""
        self._check(identifier)
        return self._find(EntityType.VIEW, identifier).metadata_location

    # Names and locations

    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that describes the current holder of a name, or None if the name is free."""
        self._check(identifier)
        pointer = self._pointers.find(tuple(identifier))
        if pointer is None:
            return None
        return table_exists(identifier) if pointer.entity_type is EntityType.TABLE else view_exists(identifier)

    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return the location of a new table or view: the requested one, or one that the catalog chooses.

        Tables never share a folder, since cleaning up after one would delete the files of the other. So a non-empty
        folder, such as that of a renamed or dropped table, is skipped in favour of a new one.
        """
        if location is not None:
            requested = strip_slashes(location)
            other = self._find_below(requested)
            if other is not None:
                raise InvalidRequestError(
                    f"Cannot create {format_name(identifier)} at {requested}: "
                    f"the files of {format_name(other)} are there"
                )
            return requested
        namespace, name = split_identifier(identifier)
        folder = self._pointers.namespace_properties(namespace).get("location")
        steps = [folder_name(step) for step in (*namespace, name)]
        if folder is None:
            folder = "/".join([self.warehouse, *steps[:-1]])
        own = join_location(strip_slashes(folder), steps[-1])
        is_free = self._find_below(own) is None and next(iter(self.storage.list(own)), None) is None
        return own if steps == [*namespace, name] and is_free else f"{own}-{self.new_id()}"

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views."""
        return ((name, location) for name, location in self._pointers.locations() if name != tuple(identifier))

    def _find_below(self, location: str) -> Identifier | None:
        """Return the name of a table or view with metadata below a location, however it is spelled, or None."""
        folder = f"{location_key(location).rstrip('/')}/"
        return next(
            (name for name, location in self._pointers.locations() if location_key(location).startswith(folder)), None
        )

    def _namespace(self, namespace: Namespace) -> Namespace:
        parts = check_namespace(namespace)
        self._pointers.check_namespace(parts)
        return parts

    def _check(self, identifier: Identifier) -> None:
        split_identifier(identifier)
        self._pointers.check_identifier(tuple(identifier))

    def _rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        self._check(source)
        self._check(target)
        self._pointers.rename(entity_type, tuple(source), tuple(target))

    def _register(
        self, entity_type: EntityType, identifier: Identifier, location: str, read: Any, may_replace: bool
    ) -> Any:
        self._check(identifier)
        self._pointers.check_location(location)
        metadata = read(self.storage, location)
        for _ in range(_TRIES):
            existing = self._pointers.find(tuple(identifier)) if may_replace else None
            expected = (
                existing.metadata_location if existing is not None and existing.entity_type is entity_type else None
            )
            change = PointerChange(entity_type, tuple(identifier), expected, location, metadata=metadata)
            stale = self._pointers.swap([change])
            if stale is None:
                return metadata
            if not may_replace or stale.current is None or stale.current.entity_type is not entity_type:
                raise _rejected(stale).reason
        raise CommitConflictError(f"Cannot register {format_name(identifier)}: other writers keep committing to it")

    # Loading

    def _load(self, entity_type: EntityType, identifier: Identifier, read: Any) -> tuple[str, Any]:
        self._check(identifier)
        pointer = self._find(entity_type, identifier)
        missing: MissingFileError | None = None
        for _ in range(_TRIES):
            try:
                return pointer.metadata_location, read(self.storage, pointer.metadata_location)
            except MissingFileError as error:
                missing = error
            latest = self._find(entity_type, identifier)
            if latest.metadata_location == pointer.metadata_location:
                break
            pointer = latest
        raise InvalidMetadataError(
            f"Cannot load {format_name(identifier)}: its metadata file is missing",
            hint="The catalog names a file that does not exist. Register the table again from an older metadata file.",
            path=pointer.metadata_location,
            heading="Table Metadata",
        ) from missing

    def _find(self, entity_type: EntityType, identifier: Identifier) -> Pointer:
        pointer = self._pointers.find(tuple(identifier))
        if pointer is None or pointer.entity_type is not entity_type:
            raise _not_found(entity_type, identifier)
        return pointer

    # Committing

    def _commit(self, entity_type: EntityType, changes: Sequence[Change[LoadedT]]) -> Outcome[LoadedT]:
        states = [(change.base, change.carry_out(self.storage, now_ms=self.now_ms())) for change in changes]
        changed = [(base, new) for base, new in states if new is not base]
        for base, _ in changed:
            self._check(base.identifier)
        for base, _ in changed:
            rejection = self._find_late(entity_type, base)
            if rejection is not None:
                return rejection
        attempts = self._write(changed)
        try:
            stale = self._pointers.swap([_change(entity_type, attempt) for attempt in attempts]) if attempts else None
        except CommitStateUnknownError as error:
            return Unknown(error, attempts)
        except CommitConflictError as error:
            # A lock timeout, or a conflict of two transactions.
            self._discard(attempts)
            return Rejected(error, changed[0][0].metadata_location)
        except FrazilError:
            self._discard(attempts)
            raise
        if stale is not None:
            self._discard(attempts)
            return _rejected(stale)
        for attempt in attempts:
            # The commit has happened; later failures do not change that.
            with contextlib.suppress(FrazilError):
                self._forget(attempt)
        new_states = {attempt.base.identifier: attempt.loaded for attempt in attempts}
        return Committed(tuple(new_states.get(base.identifier, base) for base, _ in states))

    def _find_late(self, entity_type: EntityType, base: LoadedTable | LoadedView) -> Rejected | None:
        pointer = self._pointers.find(base.identifier)
        location = None if pointer is None else pointer.metadata_location
        is_same_kind = pointer is None or pointer.entity_type is entity_type
        if location == base.metadata_location and is_same_kind:
            return None
        return _rejected(Stale(PointerChange(entity_type, base.identifier, base.metadata_location, ""), pointer))

    def _write(self, pairs: Sequence[tuple[LoadedT, LoadedT]]) -> tuple[Attempt[LoadedT], ...]:
        attempts: list[Attempt[LoadedT]] = []
        try:
            for base, new in pairs:
                location = new_metadata_location(
                    new.metadata, base_location=base.metadata_location, unique_id=self.new_id()
                )
                self._pointers.check_location(location)
                check_new_place(self, base, new, location)
                attempts.append(Attempt(base, _at(new, location)))
                write_metadata(self.storage, location, new.metadata)
        except FrazilError:
            self._discard(attempts)
            raise
        return tuple(attempts)

    def _discard(self, attempts: Iterable[Attempt[Any]]) -> None:
        """Delete metadata written for a change that did not happen, as far as possible."""
        for attempt in attempts:
            with contextlib.suppress(StorageError):
                self.storage.delete(attempt.loaded.metadata_location)

    def _forget(self, attempt: Attempt[Any]) -> None:
        """Delete metadata files that have dropped out of the log, if the table's properties ask for it.

        The log may name any file: only files with names of metadata files, next to the previous metadata file, are
        deleted, and none if another table's pointer leads to that folder.
        """
        base, metadata = attempt.base.metadata, attempt.loaded.metadata
        if not isinstance(metadata, TableMetadata) or not isinstance(base, TableMetadata):
            return
        if not read_property(metadata.properties, known.METADATA_DELETE_AFTER_COMMIT_ENABLED):
            return
        folder = (attempt.base.metadata_location or "").rpartition("/")[0]
        locations = (metadata_file.metadata_file for metadata_file in forgotten_metadata_files(base, metadata))
        forgotten = [
            location
            for location in locations
            if find_metadata_version(location) is not None and _is_beside(location, folder)
        ]
        if not forgotten:
            return
        key = location_key(folder)
        others = (location.rpartition("/")[0] for _, location in self.other_pointers(attempt.base.identifier))
        if any(location_key(other) == key for other in others):
            return
        for path in forgotten:
            with contextlib.suppress(StorageError, InvalidRequestError):
                self.storage.delete(path)

    # Unknown outcomes

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Determine the outcome of an unknown commit by reading it back; it may stay unknown."""
        verdicts: list[Outcome[LoadedT]] = []
        try:
            verdicts += [self._resolve(attempt) for attempt in unknown.attempts]
        except (StorageError, CommitStateUnknownError, CommitConflictError) as error:
            return Unknown(_unknown(unknown, error), unknown.attempts)
        # The pointers moved together, so one verdict holds for all.
        if any(isinstance(verdict, Committed) for verdict in verdicts):
            return Committed(tuple(attempt.loaded for attempt in unknown.attempts))
        rejected = next((verdict for verdict in verdicts if isinstance(verdict, Rejected)), None)
        if rejected is not None:
            self._discard(unknown.attempts)
            return rejected
        return unknown

    def _resolve(self, attempt: Attempt[Any]) -> Outcome[Any]:
        entity_type = EntityType.VIEW if isinstance(attempt.loaded, LoadedView) else EntityType.TABLE
        change = _change(entity_type, attempt)
        pointer, holder = self._pointers.find_settled(change)
        if holder is not None:
            return Committed((attempt.loaded,))
        not_applied = Rejected(
            CommitConflictError(f"Cannot commit to {format_name(change.identifier)}: the change was not carried out"),
            None if pointer is None else pointer.metadata_location,
        )
        unsure: Unknown[Any] = Unknown(_unknown_error(change), (attempt,))
        if change.expected is None:
            # No name has this file, so this change made no row: the name is free or another writer's.
            return not_applied if pointer is None else _rejected(Stale(change, pointer))
        if pointer is None or pointer.entity_type is not entity_type:
            return unsure
        if pointer.metadata_location == change.expected:
            return not_applied
        if pointer.previous_metadata_location == change.expected:
            return _rejected(Stale(change, pointer))
        if entity_type is EntityType.VIEW:
            return unsure
        current = read_table_metadata(self.storage, pointer.metadata_location)
        history = [*(entry.metadata_file for entry in current.metadata_log), pointer.metadata_location]
        if change.location in history:
            return Committed((attempt.loaded,))
        return _rejected(Stale(change, pointer)) if change.expected in history else unsure


def _is_beside(location: str, folder: str) -> bool:
    """Return whether a file is certainly a direct child of a folder."""
    return is_under(location, folder) and is_within(location.rpartition("/")[0], folder)


def _change(entity_type: EntityType, attempt: Attempt[Any]) -> PointerChange:
    base, loaded = attempt.base, attempt.loaded
    return PointerChange(
        entity_type,
        base.identifier,
        base.metadata_location,
        loaded.metadata_location,
        base=None if base.metadata_location is None else base.metadata,
        metadata=loaded.metadata,
    )


def folder_name(step: str) -> str:
    """Return a name usable as a folder name: without separators, control characters and relative paths."""
    safe = _UNSAFE.sub("_", step)[:_MAX_FOLDER_CHARS]
    return safe if safe.strip(".") else f"_{safe}"


def _at(loaded: LoadedT, location: str) -> LoadedT:
    return type(loaded)(loaded.identifier, loaded.metadata, location, loaded.storage)


def _not_found(entity_type: EntityType, identifier: Identifier) -> NotFoundError:
    return table_not_found(identifier) if entity_type is EntityType.TABLE else view_not_found(identifier)


def _rejected(stale: Stale) -> Rejected:
    """Return the rejection of a stale change, with its reason."""
    change, current = stale.change, stale.current
    reason: FrazilError
    if change.expected is None:
        is_view = current is not None and current.entity_type is EntityType.VIEW
        reason = view_exists(change.identifier) if is_view else table_exists(change.identifier)
    elif current is None or current.entity_type is not change.entity_type:
        reason = _not_found(change.entity_type, change.identifier)
    else:
        reason = CommitConflictError(
            f"Cannot commit to {format_name(change.identifier)}: another writer committed first",
            expected=change.expected,
            found=current.metadata_location,
        )
    return Rejected(reason, None if current is None else current.metadata_location)


def _unknown_error(change: PointerChange) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"Cannot tell whether the commit to {format_name(change.identifier)} happened: "
        "its history no longer reaches back",
        hint="Do not delete the files written for it.",
        metadata_location=change.location,
    )


def _unknown(unknown: Unknown[Any], error: FrazilError) -> CommitStateUnknownError:
    name = format_name(unknown.attempts[0].base.identifier)
    return CommitStateUnknownError(
        f"Cannot tell whether the commit to {name} happened: {error.message}", hint=unknown.error.hint
    )


def _texts(properties: Mapping[str, str]) -> dict[str, str]:
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str) or name == "" or "\0" in name + value:
            raise InvalidRequestError(f"Cannot set the property {name!r}: names and values must be text without NUL")
    return dict(properties)
