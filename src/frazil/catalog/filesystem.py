"""A catalog without a database: tables and namespaces are folders, and the highest version number is current.

Layout, that of Iceberg Java's Hadoop catalog ("File System Tables"):

    <warehouse>/db/events/metadata/v1.metadata.json, v2.metadata.json, ...   the states; the highest is current
    <warehouse>/db/events/metadata/version-hint.text                         a number, for other readers
    <warehouse>/db/                                                          a namespace: a folder that is not a table

The commit: a change of version N is written as `v(N+1).metadata.json` by an exclusive create, which succeeds for one
writer only. That create is the commit; no other step matters. Iceberg Java checks whether the name is free and then
renames, which on a local file system replaces silently, and commits are lost; its name also depends on the codec, so
that two writers with different codecs can both succeed. Here the name is always the plain one, whatever
`write.metadata.compression-codec` says. Files that other writers named `vN.gz.metadata.json` or `vN.metadata.json.gz`
are read. `catalog/version_files.py` handles the files.

Why this is safe:

- Versions only grow, and a name once used stays used. Metadata that drops out of the log is emptied, not deleted: if
  its name became free, a writer that has slept since then could claim it and believe that it committed. (Other tools
  delete such files, so before a writer claims N+1 it also checks that N is still the highest.)
- The hint is written but never trusted. It may be absent, garbage, behind or ahead; the folder is listed instead.
- A table that was dropped and recreated starts at v1 again, so a writer compares the UUID before it claims.
- A drop deletes the states, the highest last: until then the table exists. A writer that checked before the drop and
  claims after it finds only its own state, and removes it.
- If the response to the create is lost, the file is read back: it holds this writer's data or another's. If it does not
  exist, it might still appear: the name is claimed with the previous state, which makes that impossible.

Not supported: renaming and moving tables, namespace properties, views, commits to several tables. None of this holds on
storage whose exclusive create is not atomic; `storage/base.py` requires it.

The specification deprecates this scheme because of other implementations of it. Prefer a SQL catalog.
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
        """Create a namespace and its missing parents; at most one concurrent caller succeeds."""
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
        """Drop an empty namespace."""
        parts = self._existing(namespace)
        children = self.storage.list_children(self._folder(parts))
        for name in (*children.folders, *children.files):
            is_remainder = self._is_table_folder((*parts, name)) and not self._is_table((*parts, name))
            raise namespace_not_empty(parts, f"files of the dropped table {name}" if is_remainder else name)
        self.storage.delete_folder(self._folder(parts))

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a folder of that name exists that does not belong to a table."""
        parts = _checked(check_namespace(namespace))
        if any(self._is_table_folder(parts[:depth]) for depth in range(1, len(parts) + 1)):
            return False
        return parts[-1] in self.storage.list_children(self._folder(parts[:-1])).folders

    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the child namespaces of a namespace, or the top-level ones, in order."""
        parts = self._existing(parent) if parent else ()
        names = self.storage.list_children(self._folder(parts)).folders
        return tuple((*parts, name) for name in names if not self._is_table_folder((*parts, name)))

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return an empty mapping: folders have no properties."""
        self._existing(namespace)
        return {}

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Raise an error: folders have no properties."""
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
        """Write the next version of a table, or the first if its base was never written."""
        parts = self._identifier(base.identifier)
        change = TableChange(base, tuple(updates), tuple(requirements))
        changed = change.carry_out(self.storage, now_ms=self.now_ms())
        if changed is base:
            return Committed((base,))
        self._check_place(base, changed.metadata)
        rejection = self._find_late(base)
        if rejection is not None:
            return rejection
        states = self._states(parts)
        version = 1 + (0 if base.metadata_location is None else find_version(base.metadata_location) or 0)
        attempt = Attempt(base, LoadedTable(parts, changed.metadata, states.location(version), self.storage))
        try:
            if not states.claim(version, encode_table_metadata(changed.metadata)):
                return self._rejected(base)
        except WriteOutcomeUnknownError as error:
            return Unknown(_unknown(parts, error.message), (attempt,))
        # The commit has happened; later failures do not change that.
        with contextlib.suppress(FrazilError):
            if self._was_dropped(attempt):
                with contextlib.suppress(StorageError):
                    self.storage.delete(states.location(version))
                # Another writer may have built on the state meanwhile, so the outcome is uncertain.
                return Unknown(_unknown(parts, "the table was dropped at the same moment"), (attempt,))
            states.write_hint(version)
            self._forget(attempt)
        return Committed((attempt.loaded,))

    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Determine the outcome of an unknown commit by reading it back; it may stay unknown."""
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
        """Remove a table's name; with `purge`, also delete the files that belong to it alone.

        The states of a table are its name. Without `purge` the last one is kept as `dropped-vN-<id>.json`, from which
        another catalog can register the table.
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
                loaded = LoadedTable(parts, current[1], current[0], self.storage)
                check_may_purge(loaded)
                owned = owned_folders(self, loaded, delete_roots)
                owned.check_folders("purge table")
                # This catalog deletes the version files itself.
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
        """Raise an error: a table's name is its folder."""
        raise _unsupported("rename tables")

    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Raise an error: a table's name is its folder."""
        raise _unsupported("register tables that are elsewhere")

    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Raise an error: a table's name is its folder."""
        raise _unsupported("unregister tables")

    # Views

    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return an empty tuple: this catalog has no views."""
        self._existing(namespace)
        return ()

    def load_view(self, identifier: Identifier) -> LoadedView:
        """Raise an error: this catalog has no views."""
        raise view_not_found(self._identifier(identifier))

    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Raise an error: this catalog has no views."""
        raise _unsupported("keep views")

    def drop_view(self, identifier: Identifier) -> None:
        """Raise an error: this catalog has no views."""
        raise view_not_found(self._identifier(identifier))

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Raise an error: this catalog has no views."""
        raise _unsupported("keep views")

    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Raise an error: this catalog has no views."""
        raise _unsupported("keep views")

    # Names and locations

    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that describes the current holder of a name, or None if the name is free."""
        parts = self._identifier(identifier)
        return table_exists(parts) if self._is_table(parts) else None

    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return the table's folder; refuse any other location."""
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
        """Return whether a folder belongs or belonged to a table: a `metadata` folder with files in it tells."""
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
        """Return the rejection of a change whose base is outdated, or None."""
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
        """Return whether a newly written state is the only one of its table although it should have predecessors."""
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
        """Empty the states that have dropped out of the metadata log, if the table's properties ask for it."""
        if read_property(attempt.loaded.metadata.properties, known.METADATA_DELETE_AFTER_COMMIT_ENABLED):
            # The log may name any file. Only its version counts, and only in this folder.
            forgotten = forgotten_metadata_files(attempt.base.metadata, attempt.loaded.metadata)
            versions = (find_version(entry.metadata_file) for entry in forgotten)
            self._states(attempt.base.identifier).empty(version for version in versions if version is not None)

    def _read_back(self, attempt: Attempt[LoadedTable]) -> Rejected | Committed[LoadedTable] | None:
        """Return the outcome of a write, or None if it cannot be determined."""
        parts, location = attempt.base.identifier, attempt.loaded.metadata_location or ""
        states, version = self._states(parts), find_version(location) or 0
        for _ in range(2):
            with contextlib.suppress(MissingFileError):
                stored = self.storage.read(location)
                if stored == encode_table_metadata(attempt.loaded.metadata):
                    return Committed((attempt.loaded,))
                # An emptied state may have been this writer's.
                return self._rejected(attempt.base) if stored != b"" else None
            if attempt.base.metadata_location is None or states.newest() != version - 1:
                return None
            # The file does not exist yet but might still appear, unless its name is taken.
            if states.claim(version, encode_table_metadata(attempt.base.metadata)):
                reason = CommitConflictError(f"Cannot commit to {format_name(parts)}: the change was not carried out")
                return Rejected(reason, location)
        return None


def _checked(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that cannot be folder names, or that would lead to another folder."""
    for part in parts:
        if part in (".", "..") or _REFUSED.search(part) is not None or len(part.encode()) > _MAX_NAME_BYTES:
            raise InvalidRequestError(
                f"Cannot use the name {ascii(part)[:80]} in a filesystem catalog: names are folder names "
                f"without slashes and control characters, other than . and .., of at most {_MAX_NAME_BYTES} bytes"
            )
    return parts


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(f"Cannot {what} in a filesystem catalog", hint="Use a SQL catalog.")


def _unknown(parts: Identifier, reason: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"Cannot tell whether the commit to {format_name(parts)} happened: {reason}",
        hint="Do not delete the files written for it.",
    )
