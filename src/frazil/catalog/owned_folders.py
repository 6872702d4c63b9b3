"""Which files of a table may be deleted: one rule for every job that deletes, not controlled by metadata alone.

Metadata names a table's folders and files, and may be untrusted. So a file is deleted only if all three conditions
hold, with links resolved, however its location is spelled:

    metadata    it is inside the table's location, or the folder of its data or metadata files
    the user    it is below the warehouse, below a folder of `delete.roots` (or `read.roots` if unset), below the folder
                of the metadata file that the catalog's pointer names, or below a folder that the caller names
    the others  it is not in a folder of another table or view of the catalog, unless the caller names that very folder

The pointer counts as the user's word, since whoever created or registered the table chose it. An exception are the
files of this machine if the catalog is a service on another one, which cannot know them. `check_new_place`
prevents a commit from moving it to a folder that only metadata names.

Pointers of other tables are checked first, since they reveal folders without reading metadata. For files below the
table's own pointer that suffices. For files elsewhere the metadata of every other table is read, once per job.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from frazil.catalog.names import Identifier
from frazil.errors import FrazilError, InvalidRequestError, NotFoundError
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec import properties as known
from frazil.spec.properties import read_property
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from frazil.storage.locations import (
    is_under,
    is_within,
    join_location,
    location_key,
    location_readings,
    parse_location,
    scheme_of,
    strip_slashes,
    table_folders,
)
from frazil.threads import map_in_order

_SHOWN: Final = 10
_METADATA: Final = "metadata"
_LOADED_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class OthersFolder:
    """A folder of another table or view; `problem` is the reason if its metadata is unreadable."""

    name: str
    folder: str
    key: str
    problem: str | None = None


class Tables(Protocol):
    """The required part of a catalog; see `catalog/base.py`."""

    warehouse: str
    delete_roots: tuple[str, ...]
    may_name_local_files: bool

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views."""

    def all_tables(self) -> Iterable[Identifier]:
        """Yield the names of all tables."""

    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""


class OwnedFolders:
    """The folders in which files of one table may be deleted. Thread-safe."""

    def __init__(self, catalog: Tables, loaded: LoadedTable, delete_roots: Sequence[str] = ()) -> None:
        self._catalog = catalog
        self._loaded = loaded
        self._storage = loaded.storage
        self._lock = threading.Lock()
        self._pointed: _Others | None = None
        self._all: _Others | None = None
        self.folders = table_folders(loaded.metadata.location, loaded.metadata.properties)
        """The folders that the metadata claims for the table."""
        own = None if loaded.metadata_location is None else pointer_folder(loaded.metadata_location)
        named = (catalog.warehouse, *(() if own is None else (own,)))
        if not catalog.may_name_local_files:
            named = tuple(root for root in named if scheme_of(root) not in ("file", None))
        roots = (*named, *catalog.delete_roots)
        self._own = None if own is None else self._real(own)
        self._named = tuple(self._real(_checked_root(delete_root)) for delete_root in delete_roots)
        self._roots = (*dict.fromkeys(self._real(root) for root in roots), *self._named)
        self.real_folders = tuple(self._real(folder) for folder in self.folders)
        """The same folders with links resolved at construction."""

    def check(self, path: str) -> None:
        """Raise an error unless a file belongs to the table alone and may be deleted."""
        reason = self.find_refusal(path)
        if reason is not None:
            raise InvalidRequestError(f"Cannot delete {path!r}: {reason}", hint=_HINT)

    def find_refusal(self, path: str) -> str | None:
        """Return why a file may not be deleted, or None if it may.

        The file itself may be a link: deleting removes the link, so only the folders above it are resolved.
        """
        above, _, name = strip_slashes(path).rpartition("/")
        if any(is_under(path, folder) for folder in self.folders):
            try:
                really = f"{strip_slashes(self._storage.resolve_folder(above))}/{name}"
            except FrazilError as error:
                return f"its location cannot be resolved ({error.message})"
            if any(is_under(really, real_folder) for real_folder in self.real_folders):
                return self._find_other_owner(really)
        return "it is outside the table's folders"

    def check_folders(self, verb: str, folders: Iterable[str] | None = None, *, is_alone: bool = False) -> None:
        """Refuse a job on folders, by default all of the table's, that do not belong wholly to the table; list them.

        With `is_alone`, also refuse if a table that cannot be loaded may have files in them, or if the caller named a
        folder that another table uses.
        """
        outside: dict[str, str] = {}
        for folder in self.folders if folders is None else folders:
            really = self._real(folder)
            if not any(is_within(really, root) for root in self._roots):
                outside[folder] = _OUTSIDE
                continue
            is_named = any(is_within(really, folder) for folder in self._named)
            other = None if is_named and not is_alone else self._others(really, is_all=is_alone).overlapping(really)
            if other is not None and not (is_named and other.problem is not None):
                outside[folder] = _shared(other)
        if outside:
            raise InvalidRequestError(
                f"Cannot {verb} {self._loaded.name}: {_listed(outside)}", hint=_HINT, folders=", ".join(outside)
            )

    def _find_other_owner(self, really: str) -> str | None:
        if not any(is_under(really, root) for root in self._roots):
            return _OUTSIDE
        other = self._others(really).holding(really)
        if other is None:
            return None
        # A named folder permits a shared one if it is that folder or inside it; one around both tables does not.
        named = (folder for folder in self._named if is_under(really, folder))
        is_waived = any(other.problem is not None or _holds(other.key, location_key(folder)) for folder in named)
        return None if is_waived else _shared(other)

    def _others(self, really: str, *, is_all: bool = False) -> _Others:
        """Return the folders of others that may hold a location; below the own pointer, only those of pointers."""
        with self._lock:
            if is_all or self._own is None or not is_within(really, self._own):
                if self._all is None:
                    self._all = _Others(self._all_folders())
                return self._all
            if self._pointed is None:
                self._pointed = _Others(self._pointed_folders())
            return self._pointed

    def _pointed_folders(self) -> Iterator[OthersFolder]:
        for name, location in self._catalog.other_pointers(self._loaded.identifier):
            yield self._folder_of(".".join(name), pointer_folder(location))

    def _all_folders(self) -> Iterator[OthersFolder]:
        yield from self._pointed_folders()
        names = (table for table in self._catalog.all_tables() if table != self._loaded.identifier)
        for folders in map_in_order(self._folders_of, names, threads=_LOADED_AT_ONCE):
            yield from folders

    def _folders_of(self, name: Identifier) -> list[OthersFolder]:
        text = ".".join(name)
        try:
            metadata = self._catalog.load_table(name).metadata
            return [
                self._folder_of(text, table_folder)
                for table_folder in table_folders(metadata.location, metadata.properties)
            ]
        except NotFoundError:
            return []
        except FrazilError as error:
            return [OthersFolder(text, "", "", error.message)]

    def _folder_of(self, name: str, folder: str) -> OthersFolder:
        return OthersFolder(name, folder, _key(self._storage, folder))

    def _real(self, folder: str) -> str:
        return _resolved(self._storage, folder)


class _Others:
    """Folders of other tables, indexed for lookup."""

    def __init__(self, folders: Iterable[OthersFolder]) -> None:
        self._by_key: dict[str, OthersFolder] = {}
        self._above: dict[str, OthersFolder] = {}
        """All ancestors of the folders."""
        self._unknown: OthersFolder | None = None
        for folder in folders:
            if folder.problem is not None:
                self._unknown = folder
                continue
            self._by_key.setdefault(folder.key, folder)
            for above in _ancestors(folder.key):
                self._above.setdefault(above, folder)

    def holding(self, location: str) -> OthersFolder | None:
        """Return a folder that is or contains a location."""
        keys = (key for reading in location_readings(location) for key in (reading, *_ancestors(reading)))
        return next((self._by_key[key] for key in keys if key in self._by_key), self._unknown)

    def overlapping(self, folder: str) -> OthersFolder | None:
        """Return a folder that is, contains or is inside another."""
        key = location_key(folder)
        enclosing = next(
            (self._by_key[ancestor] for ancestor in (key, *_ancestors(key)) if ancestor in self._by_key), None
        )
        return enclosing or self._above.get(key) or self._unknown


def owned_folders(catalog: Tables, loaded: LoadedTable, delete_roots: Sequence[str] = ()) -> OwnedFolders:
    """Return the folders in which files of a table may be deleted; `delete_roots` are folders named by the caller."""
    return OwnedFolders(catalog, loaded, delete_roots)


def pointer_folder(metadata_location: str) -> str:
    """Return the table folder of a metadata file: the folder it is in, or the parent of `metadata`.

    A whole bucket, or the root of a file system, is not a table's folder.
    """
    folder = strip_slashes(metadata_location).rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    is_whole = scheme_of(folder) is not None or folder.startswith("/")
    if name != _METADATA or not is_whole or parse_location(above + "/").path.strip("/") == "":
        return folder
    return above


def check_new_place(catalog: Tables, base: LoadedTable | LoadedView, new: LoadedTable | LoadedView, to: str) -> None:
    """Refuse a commit that would move the pointer to a folder that only metadata names, or that is another table's.

    The first commit of a table, and commits that stay in their folder, as nearly all do, are not checked.
    """
    if base.metadata_location is None or not isinstance(new.metadata, TableMetadata):
        return
    folder = to.rpartition("/")[0]
    if folder == base.metadata_location.rpartition("/")[0]:
        return
    storage, really = base.storage, _resolved(base.storage, folder)
    own = pointer_folder(base.metadata_location)
    if is_within(really, _resolved(storage, own)):
        return
    what = f"Cannot commit to {base.name}: its metadata would go to {folder}"
    roots = (catalog.warehouse, *catalog.delete_roots)
    if not _is_explicit(base, new) and not any(is_within(really, _resolved(storage, root)) for root in roots):
        raise InvalidRequestError(
            f"{what}, outside the warehouse and the folder {own} that the table was registered from",
            hint="Register the table from its own folder, add the folder to the property delete.roots, or set "
            f"{known.WRITE_METADATA_LOCATION} of the table.",
        )
    key = location_key(really)
    for name, location in catalog.other_pointers(base.identifier):
        if _holds(_key(storage, pointer_folder(location)), key):
            raise InvalidRequestError(
                f"{what}, a folder of {'.'.join(name)}",
                hint=f"Set {known.WRITE_METADATA_LOCATION} to a folder that only this table uses.",
            )


def _is_explicit(base: LoadedTable | LoadedView, new: LoadedTable | LoadedView) -> bool:
    """Return whether a commit explicitly changes the metadata location, by the table's location or by the property."""
    before, after = base.metadata, new.metadata
    if not isinstance(before, TableMetadata) or not isinstance(after, TableMetadata):
        return False
    chosen = read_property(after.properties, known.WRITE_METADATA_LOCATION)
    if chosen is not None and chosen != read_property(before.properties, known.WRITE_METADATA_LOCATION):
        return True
    is_below_location = chosen is None or join_location("", chosen) != chosen
    return is_below_location and before.location != after.location


_OUTSIDE: Final = "it is outside the warehouse, the configured roots and the folder of the table's metadata file"
_HINT: Final = (
    "If the folder belongs to the table, name it in delete_roots or in the connection's property delete.roots."
)


def _shared(other: OthersFolder) -> str:
    if other.problem is not None:
        return f"table {other.name} may have files there but cannot be loaded ({other.problem})"
    return f"{other.name} has its files in {other.folder}"


def _listed(outside: dict[str, str]) -> str:
    text = "; ".join(f"{folder}: {reason}" for folder, reason in list(outside.items())[:_SHOWN])
    return text + (f"; and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else "")


def _checked_root(folder: str) -> str:
    is_whole = scheme_of(folder) is not None or folder.startswith("/")
    if not is_whole or (parse_location(folder).path.strip("/") == "" and scheme_of(folder) in (None, "file")):
        raise InvalidRequestError(
            f"Cannot delete files below {folder!r}: it is neither an absolute path nor a URI",
            hint="Use absolute paths or URIs.",
        )
    return strip_slashes(folder)


def _resolved(storage: Storage, folder: str) -> str:
    """Return a folder with its links resolved, or unchanged if the storage cannot resolve it."""
    try:
        return storage.resolve_folder(folder)
    except FrazilError:
        return folder


def _key(storage: Storage, folder: str) -> str:
    return location_key(_resolved(storage, folder))


def _holds(folder: str, other: str) -> bool:
    """Return whether a folder is or contains another, both as keys."""
    return folder == other or other.startswith(f"{folder.rstrip('/')}/")


def _ancestors(key: str) -> Iterator[str]:
    """Yield the keys of all ancestors of a folder, the nearest first."""
    scheme, _, rest = key.partition("://")
    steps = rest.rstrip("/").split("/")
    for count in range(len(steps) - 1, 0, -1):
        yield f"{scheme}://{'/'.join(steps[:count])}" + ("/" if count == 1 else "")
