"""A catalog without a database: tables and namespaces are folders, and the pointer is the highest version number.

Layout, that of Iceberg Java's Hadoop catalog ("File System Tables"):

    <warehouse>/db/events/metadata/v1.metadata.json, v2.metadata.json, ...   the states; the highest is current
    <warehouse>/db/events/metadata/version-hint.text                         a number, for other readers
    <warehouse>/db/                                                          a namespace: a folder that is no table

How a commit goes. A change made from version N is written as `v(N+1).metadata.json` by an exclusive create: the
storage gives the name to one writer. That create is the commit; there is no other step that matters. Iceberg
Java asks whether the name is free and then renames, which on a local file system replaces silently, and
commits are lost; and its name depends on the codec, so that two writers who disagree on it can both win. Here the
name is always the plain one, whatever `write.metadata.compression-codec` says. Files that others wrote as
`vN.gz.metadata.json` or `vN.metadata.json.gz` are read. `catalog/version_files.py` has the files.

Why it is safe:

- Versions only grow, and a name once taken stays taken. Metadata that the log forgets is emptied, not deleted: were
  its name free again, a writer who slept since then could claim it, and believe to have committed. (Other tools
  delete such files, so a writer also looks, before it claims N+1, that N is still the highest.)
- The hint is written and never believed. It may be absent, garbage, behind or ahead; the folder is listed.
- A table dropped and made anew starts at v1 again, so a writer compares the UUID before it claims.
- A drop deletes the states, the highest last: until then the table is there, whole. A writer who looked before the
  drop and claims after it sees that it stands alone, and takes its state back.
- If the answer to the create is lost, the file is read back: it holds what was to be written, or what another wrote.
  If it is not there it might still come: the name is claimed with the state before, and then it cannot.

What it cannot do: rename tables, move them, keep namespace properties or views, commit to several tables at once.
On storage whose exclusive create is not atomic nothing of this holds; `storage/base.py` promises it.

The format's specification calls this scheme deprecated for others' implementations of it. Prefer a SQL catalog.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.metadata_files import forgotten_metadata_files, read_table_metadata
from frazil.catalog.names import (
    Identifier,
    Namespace,
    check_namespace,
    format_name,
    namespace_exists,
    namespace_not_empty,
    namespace_not_found,
    split_identifier,
    table_exists,
    table_not_found,
    view_not_found,
)
from frazil.catalog.outcomes import Attempt, Committed, LoadedT, Outcome, Rejected, Unknown
from frazil.catalog.owned_folders import OwnedFolders, owned_folders
from frazil.catalog.purge import NOTHING_PURGED, Purge, PurgeReport, check_may_purge, remove_empty_folders
from frazil.catalog.version_files import VersionFiles, find_version
from frazil.changes.requirements import TableRequirement, ViewRequirement
from frazil.changes.updates import TableUpdate, ViewUpdate
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec import properties as known
from frazil.spec.properties import read_property
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import location_key

_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f/\\]")
_MAX_NAME_BYTES: Final = 255
_TRIES: Final = 20


class FilesystemCatalog(Catalog):
    """Tables as folders of a warehouse."""

    has_namespace_properties: ClassVar[bool] = False

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace, and those above it that are missing; of all who try, one succeeds at most."""
        parts = _checked(check_namespace(namespace))
        if properties:
            raise _unsupported("keep properties of namespaces")
        for depth in range(1, len(parts) + 1):
            if self._is_table(parts[:depth]):
                raise table_exists(parts[:depth])
        try:
            self.storage.create_folder(self._folder(parts))
        except FileAlreadyExistsError as error:
            raise namespace_exists(parts) from error

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop a namespace that holds nothing."""
        parts = self._existing(namespace)
        children = self.storage.list_children(self._folder(parts))
        for name in (*children.folders, *children.files):
            is_left = self._is_table_folder((*parts, name)) and not self._is_table((*parts, name))
            raise namespace_not_empty(parts, f"files of the dropped table {name}" if is_left else name)
        self.storage.delete_folder(self._folder(parts))

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether there is a folder of that name, which is no table's."""
        parts = _checked(check_namespace(namespace))
        if any(self._is_table_folder(parts[:depth]) for depth in range(1, len(parts) + 1)):
            return False
        return parts[-1] in self.storage.list_children(self._folder(parts[:-1])).folders

    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the namespaces directly below another, or the topmost, in order."""
        parts = self._existing(parent) if parent else ()
        names = self.storage.list_children(self._folder(parts)).folders
        return tuple((*parts, name) for name in names if not self._is_table_folder((*parts, name)))

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return no properties: folders have none."""
        self._existing(namespace)
        return {}

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Refuse: folders have no properties."""
        self._existing(namespace)
        raise _unsupported("keep properties of namespaces")

    # Tables

    def list_tables(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the tables of a namespace, in order."""
        parts = self._existing(namespace)
        names = self.storage.list_children(self._folder(parts)).folders
        return tuple((*parts, name) for name in names if self._is_table((*parts, name)))

    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""
        parts = self._identifier(identifier)
        current = self._states(parts).find_current()
        if current is None:
            raise table_not_found(parts)
        location, metadata = current
        return LoadedTable(parts, metadata, location, self.storage)

    def commit(
        self,
        base: LoadedTable,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
    ) -> Outcome[LoadedTable]:
        """Write the next version of a table; of a state that was never written, the first."""
        parts = self._identifier(base.identifier)
        change = TableChange(base, tuple(updates), tuple(requirements))
        made = change.carry_out(self.storage, now_ms=self.now_ms())
        if made is base:
            return Committed((base,))
        self._check_place(base, made.metadata)
        late = self._find_late(base)
        if late is not None:
            return late
        states = self._states(parts)
        version = 1 + (0 if base.metadata_location is None else find_version(base.metadata_location) or 0)
        attempt = Attempt(base, LoadedTable(parts, made.metadata, states.location(version), self.storage))
        try:
            if not states.claim(version, encode_table_metadata(made.metadata)):
                return self._rejected(base)
        except WriteOutcomeUnknownError as error:
            return Unknown(_unknown(parts, error.message), (attempt,))
        # It has happened; whatever goes wrong from here on does not change that.
        with contextlib.suppress(FrazilError):
            if self._was_dropped(attempt):
                with contextlib.suppress(StorageError):
                    self.storage.delete(states.location(version))
                # Another writer may have built on the state while it was there, so nothing is certain any more.
                return Unknown(_unknown(parts, "the table was dropped at the same moment"), (attempt,))
            states.write_hint(version)
            self._forget(attempt)
        return Committed((attempt.loaded,))

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Read back what a commit of unknown outcome came to; it stays unknown where that cannot be told now."""
        (attempt,) = unknown.attempts
        if not isinstance(attempt.loaded, LoadedTable) or not isinstance(attempt.base, LoadedTable):
            raise _unsupported("keep views")
        try:
            verdict = self._read_back(Attempt(attempt.base, attempt.loaded))
        except StorageError as error:
            return Unknown(_unknown(attempt.base.identifier, error.message), unknown.attempts)
        if verdict is None:
            return unknown
        return verdict if isinstance(verdict, Rejected) else Committed((attempt.loaded,))

    def drop_table(
        self, identifier: Identifier, *, purge: Purge | None = None, delete_roots: Sequence[str] = ()
    ) -> PurgeReport:
        """Take a table's name away; with `purge`, by it delete the files that are its own.

        Of a table in a folder, the states are the name. Without `purge` the last one stays as `dropped-vN-<id>.json`,
        from which another catalog can register the table.
        """
        parts = self._identifier(identifier)
        states = self._states(parts)
        if states.newest() == 0:
            raise table_not_found(parts)
        last: tuple[LoadedTable, OwnedFolders] | None = None
        for _ in range(_TRIES):
            newest = states.newest()
            if newest == 0:
                break
            current = states.find_current() if purge is not None else None
            if current is not None:
                found = LoadedTable(parts, current[1], current[0], self.storage)
                check_may_purge(found)
                owned = owned_folders(self, found, delete_roots)
                owned.check_folders("purge table")
                # The versions are this catalog's to delete.
                last = LoadedTable(parts, current[1], None, self.storage), owned
            data = None if purge is not None else states.find_bytes(newest)
            if data is not None:
                self.storage.create(f"{self._folder(parts)}/metadata/dropped-v{newest}-{self.new_id()}.json", data)
            if purge is not None or data is not None:
                states.delete_all()
        else:
            raise CommitConflictError(f"Cannot drop table {format_name(parts)}: other writers keep committing to it")
        report = NOTHING_PURGED
        if purge is not None and last is not None:
            report = purge(*last)
        remove_empty_folders(self.storage, self._folder(parts))
        return report

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Refuse: a table is where its folder is."""
        raise _unsupported("rename tables")

    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Refuse: a table is where its folder is."""
        raise _unsupported("register tables that are elsewhere")

    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Refuse: a table is where its folder is."""
        raise _unsupported("unregister tables")

    # Views

    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return none: this catalog has no views."""
        self._existing(namespace)
        return ()

    def load_view(self, identifier: Identifier) -> LoadedView:
        """Refuse: this catalog has no views."""
        raise view_not_found(self._identifier(identifier))

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Refuse: this catalog has no views."""
        raise _unsupported("keep views")

    def drop_view(self, identifier: Identifier) -> None:
        """Refuse: this catalog has no views."""
        raise view_not_found(self._identifier(identifier))

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Refuse: this catalog has no views."""
        raise _unsupported("keep views")

    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Refuse: this catalog has no views."""
        raise _unsupported("keep views")

    # Names and locations

    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that says what has a name; None where it is free."""
        parts = self._identifier(identifier)
        return table_exists(parts) if self._is_table(parts) else None

    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return the table's folder; another location is refused."""
        own = self._folder(self._identifier(identifier))
        if location is not None and location_key(location) != location_key(own):
            raise InvalidRequestError(
                f"Cannot create {format_name(identifier)} at {location}: "
                f"a file-system catalog keeps this table at {own}"
            )
        return own

    def _identifier(self, identifier: Identifier) -> Identifier:
        namespace, name = split_identifier(identifier)
        return _checked((*namespace, name))

    def _existing(self, namespace: Namespace) -> Namespace:
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)
        return tuple(namespace)

    def _folder(self, parts: tuple[str, ...]) -> str:
        return "/".join((self.warehouse, *parts))

    def _states(self, parts: tuple[str, ...]) -> VersionFiles:
        return VersionFiles(self.storage, self._folder(parts))

    def _is_table(self, parts: tuple[str, ...]) -> bool:
        return self._states(parts).newest() > 0

    def _is_table_folder(self, parts: tuple[str, ...]) -> bool:
        """Return whether a folder is a table's, or was: with files in a folder `metadata` it is no namespace."""
        return bool(self._states(parts).file_names())

    # Committing

    def _check_place(self, loaded: LoadedTable, metadata: TableMetadata) -> None:
        own = self._folder(loaded.identifier)
        what = f"Cannot commit to {format_name(loaded.identifier)}"
        expected = own if loaded.metadata_location is None else loaded.metadata.location
        if location_key(metadata.location) != location_key(expected):
            raise InvalidRequestError(f"{what}: tables of this catalog cannot be moved, and this one is at {expected}")
        if read_property(metadata.properties, known.WRITE_METADATA_LOCATION) is not None:
            raise InvalidRequestError(
                f"{what}: {known.WRITE_METADATA_LOCATION} is set, and this catalog looks in the table's folder only",
                hint=f"Remove the property {known.WRITE_METADATA_LOCATION}.",
            )

    def _find_late(self, loaded: LoadedTable) -> Rejected | None:
        """Return why a change comes too late, or None."""
        parts = loaded.identifier
        current = self._states(parts).find_current()
        if loaded.metadata_location is None:
            if current is not None:
                return Rejected(table_exists(parts), current[0])
            if not self.namespace_exists(parts[:-1]):
                raise namespace_not_found(parts[:-1])
            return None
        if find_version(loaded.metadata_location) is None:
            raise InvalidRequestError(
                f"Cannot commit to {format_name(parts)}: {loaded.metadata_location} is not a state of this catalog"
            )
        if current is not None:
            location, metadata = current
            is_same_table = (metadata.table_uuid or "").lower() == (loaded.metadata.table_uuid or "").lower()
            if is_same_table and find_version(location) == find_version(loaded.metadata_location):
                return None
        return self._rejected(loaded)

    def _was_dropped(self, attempt: Attempt[LoadedTable]) -> bool:
        """Return whether a state that was just written is the only one of its table, and not meant to be."""
        if attempt.base.metadata_location is None:
            return False
        locations = self._states(attempt.base.identifier).locations()
        version = find_version(attempt.loaded.metadata_location or "")
        others = [location for location in locations if location != version]
        if find_version(attempt.base.metadata_location) in others or max(locations, default=0) != version:
            return False
        if not others:
            return True
        with contextlib.suppress(MissingFileError):
            other = read_table_metadata(self.storage, locations[max(others)])
            return (other.table_uuid or "").lower() != (attempt.loaded.metadata.table_uuid or "").lower()
        return False

    def _rejected(self, loaded: LoadedTable) -> Rejected:
        parts = loaded.identifier
        locations = self._states(parts).locations()
        if not locations:
            return Rejected(table_not_found(parts))
        current = locations[max(locations)]
        if loaded.metadata_location is None:
            return Rejected(table_exists(parts), current)
        reason = CommitConflictError(
            f"Cannot commit to {format_name(parts)}: another writer committed first",
            expected=loaded.metadata_location,
            found=current,
        )
        return Rejected(reason, current)

    def _forget(self, attempt: Attempt[LoadedTable]) -> None:
        """Empty the states that the metadata log no longer names, where the table asks for it."""
        if read_property(attempt.loaded.metadata.properties, known.METADATA_DELETE_AFTER_COMMIT_ENABLED):
            # The log may name anything. Of what it names only the version counts, and only in this folder.
            forgotten = forgotten_metadata_files(attempt.base.metadata, attempt.loaded.metadata)
            versions = (find_version(entry.metadata_file) for entry in forgotten)
            self._states(attempt.base.identifier).empty(version for version in versions if version is not None)

    def _read_back(self, attempt: Attempt[LoadedTable]) -> Rejected | Committed[LoadedTable] | None:
        """Return what a write came to, or None where that cannot be told."""
        parts, location = attempt.base.identifier, attempt.loaded.metadata_location or ""
        states, version = self._states(parts), find_version(location) or 0
        for _ in range(2):
            with contextlib.suppress(MissingFileError):
                found = self.storage.read(location)
                if found == encode_table_metadata(attempt.loaded.metadata):
                    return Committed((attempt.loaded,))
                # An emptied state may have been ours.
                return self._rejected(attempt.base) if found != b"" else None
            if attempt.base.metadata_location is None or states.newest() != version - 1:
                return None
            # Not there, but it might still come: once the name is taken, it cannot.
            if states.claim(version, encode_table_metadata(attempt.base.metadata)):
                reason = CommitConflictError(f"Cannot commit to {format_name(parts)}: the change was not carried out")
                return Rejected(reason, location)
        return None


def _checked(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that are no names of folders, or of other folders than they seem."""
    for part in parts:
        if part in (".", "..") or _REFUSED.search(part) is not None or len(part.encode()) > _MAX_NAME_BYTES:
            raise InvalidRequestError(
                f"Cannot use the name {ascii(part)[:80]} in a filesystem catalog: names are folders, without slashes, "
                f"control characters and dots alone, of at most {_MAX_NAME_BYTES} bytes"
            )
    return parts


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(f"Cannot {what} in a filesystem catalog", hint="Use a SQL catalog.")


def _unknown(parts: Identifier, reason: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"Cannot tell whether the commit to {format_name(parts)} happened: {reason}",
        hint="Files written for it must stay.",
    )
