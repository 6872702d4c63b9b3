"""Which storage keeps a location, by its scheme. A table may have files under several: each call goes where it belongs.

    /path, file:            this machine's files
    memory:                 this process's memory, where the caller brought one
    s3:, s3a:, s3n:         Amazon S3 and stores that speak its protocol
    gs:, gcs:               Google Cloud Storage
    abfss:, abfs:, az:, …   Azure's
    hdfs:, webhdfs:, …      HDFS, over HTTP

A store is loaded and set up when the first location asks for it: nobody needs credentials, nor waits for modules, for
what they do not use.

Metadata may name files anywhere, and whoever writes it chooses what a reader opens. `read.roots` draws a fence: what is
not inside one of these folders, links followed, is neither read nor written. Spark has file systems of its own for many
schemes, `http:` among them: `check_readable` holds what it is given to the same fence, and to the schemes above with
those that `read.schemes` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from frazil.errors import FrazilError, InvalidPropertyError, InvalidRequestError, StorageError, UnsupportedError
from frazil.storage.base import MAX_READ_BYTES, Children, Storage, StoredFile
from frazil.storage.hdfs_properties import HDFS_SCHEMES
from frazil.storage.hdfs_properties import PROPERTIES as HDFS_PROPERTIES
from frazil.storage.local import LocalStorage
from frazil.storage.locations import is_within, parse_location, scheme_of, strip_slashes
from frazil.storage.new_file import NewFile
from frazil.storage.object_properties import CREDENTIAL_ENDPOINTS, PROPERTIES
from frazil.storage.store_accounts import AZURE, GCS, S3, StoreAccount, Stores, store_of

FILE_SCHEME: Final = "file"
MEMORY_SCHEME: Final = "memory"
S3_SCHEMES: Final = S3.schemes
GCS_SCHEMES: Final = GCS.schemes
AZURE_SCHEMES: Final = AZURE.schemes

READ_ROOTS: Final = "read.roots"
READ_SCHEMES: Final = "read.schemes"
DELETE_ROOTS: Final = "delete.roots"

KNOWN_PROPERTIES: Final = PROPERTIES | HDFS_PROPERTIES | {READ_ROOTS, READ_SCHEMES, DELETE_ROOTS, CREDENTIAL_ENDPOINTS}
"""Every property that says where files are kept and how they are reached."""


class SchemeStorage(Storage):
    """Several storages as one; each location is kept by the storage of its scheme."""

    __slots__ = ("_makers", "_roots", "_schemes", "_storages", "_stores")

    def __init__(
        self,
        storages: Mapping[str, Storage],
        *,
        makers: Mapping[str, Callable[[], Storage]] | None = None,
        roots: tuple[str, ...] | None = None,
        schemes: tuple[str, ...] = (),
        stores: Stores | None = None,
    ) -> None:
        """Take storages by scheme, and for further schemes functions that make theirs when it is first needed.

        Where there are `roots`, only what is inside one of them can be used. `schemes` are further ones that others may
        read, who have storages of their own. `stores` is what it was set up from; that stays in this process.
        """
        self._storages = dict(storages)
        self._makers = dict(makers or {})
        self._roots = roots
        self._schemes = schemes
        self._stores = Stores() if stores is None else stores

    def __repr__(self) -> str:
        return f"SchemeStorage({', '.join(sorted({*self._storages, *self._makers}))})"

    def __reduce__(self) -> tuple[object, ...]:
        """Take along what can travel: not this process's memory, and of object stores not their credentials."""
        refused: dict[str, FrazilError] = {}
        for scheme in self._makers:
            try:
                self._made(scheme)
            except FrazilError as error:
                refused[scheme] = error
        kept = {scheme: storage for scheme, storage in self._storages.items() if scheme != MEMORY_SCHEME}
        return _rebuild, (kept, refused, self._roots, self._schemes)

    def storage_of(self, location: str) -> Storage:
        """Return the storage that keeps a location."""
        scheme = scheme_of(location) or FILE_SCHEME
        found = self._storages.get(scheme)
        if found is None and scheme in self._makers:
            found = self._made(scheme)
        if found is None:
            raise _no_storage(scheme)
        if self._roots is not None:
            self._check_inside(found, location, self._roots)
        return found

    def check_readable(self, locations: Sequence[str]) -> None:
        """Refuse locations that somebody who reads them past this storage may not be given; a folder is asked once."""
        folders: dict[str, str] = {}
        for location in locations:
            folders.setdefault(location.rpartition("/")[0], location)
        for location in folders.values():
            scheme = scheme_of(location) or FILE_SCHEME
            if scheme not in self._schemes:
                self.check_host(location)
                # Spark may have credentials of its own; here none are needed.
                if self._roots is not None or store_of(location) is None:
                    self.storage_of(location)
            elif self._roots is not None and not any(is_within(location, root) for root in self._roots):
                raise _outside(location, self._roots)
        if self._roots is None:
            return
        # A file may itself be a link that leads outside.
        local = [location for location in locations if (scheme_of(location) or FILE_SCHEME) == FILE_SCHEME]
        if not local:
            return
        storage = self._storages[FILE_SCHEME]
        roots = [
            storage.resolve_folder(root) for root in self._roots if (scheme_of(root) or FILE_SCHEME) == FILE_SCHEME
        ]
        known: dict[str, bool] = {}
        for location, really in zip(local, storage.resolve_files(local), strict=True):
            folder = really.rpartition("/")[0]
            if folder not in known:
                known[folder] = any(is_within(folder, root) for root in roots)
            if not known[folder]:
                raise _outside(location, self._roots)

    def check_host(self, location: str) -> None:
        """Refuse a location at a host that only metadata names."""
        self._stores.check_location(location)

    @property
    def is_fenced(self) -> bool:
        """Whether only what is inside some folders can be used."""
        return self._roots is not None

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that can be used; none if all can."""
        return self._roots or ()

    def _check_inside(self, storage: Storage, location: str, roots: tuple[str, ...]) -> None:
        own = [root for root in roots if is_within(location, root)]
        if own:
            # Only now is it certain that the storage is the roots' own, and may be asked about links.
            really = storage.resolve_folder(location)
            if any(is_within(really, storage.resolve_folder(folder)) for folder in own):
                return
        raise _outside(location, roots)

    @property
    def stores(self) -> Stores:
        """How object stores are reached, with credentials; they stay in this process."""
        return self._stores

    def reach(self, location: str) -> StoreAccount | None:
        """Return how others, such as Spark, reach a location, if that is special to it; else None."""
        store = store_of(location)
        account = None if store is None else self._stores.account(store)
        # What a service names counts for its own tables alone.
        return account if account is not None and account.is_strange else None

    def _made(self, scheme: str) -> Storage:
        make = self._makers[scheme]
        # Schemes that share a maker share a storage, and with it its connections.
        for other, maker in self._makers.items():
            if maker is make and other in self._storages:
                return self._storages.setdefault(scheme, self._storages[other])
        return self._storages.setdefault(scheme, make())

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file; refuse one that is larger than `max_bytes`."""
        return self.storage_of(path).read(path, max_bytes=max_bytes)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; a file that ends before is an error."""
        return self.storage_of(path).read_range(path, offset, length)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self.storage_of(path).size(path)

    def exists(self, path: str) -> bool:
        """Return whether there is a file; an error where that cannot be told."""
        return self.storage_of(path).exists(path)

    def create(self, path: str, data: bytes) -> None:
        """Write a new file under a name that no other writer uses; refuse a name that is seen to be taken."""
        self.storage_of(path).create(path, data)

    def open_new(self, path: str) -> NewFile:
        """Begin a new file where it will be kept."""
        return self.storage_of(path).open_new(path)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        self.storage_of(path).create_exclusive(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file over another of its name, if there is one; readers see either. The last writer wins."""
        self.storage_of(path).replace(path, data)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no promised order; of a folder that is not there, none."""
        return self.storage_of(folder).list(folder)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; of one that is not there, none."""
        return self.storage_of(folder).list_children(folder)

    def create_folder(self, folder: str) -> None:
        """Make an empty folder, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        self.storage_of(folder).create_folder(folder)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; one that is not there is no error, one that is not empty is."""
        self.storage_of(folder).delete_folder(folder, within=within)

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; one that is not there is no error, so that a clean-up may be repeated."""
        self.storage_of(path).delete(path, within=within)

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Delete files, all that can be; return why the others could not, by path."""
        groups: dict[int, tuple[Storage, list[str]]] = {}
        for path in paths:
            storage = self.storage_of(path)
            groups.setdefault(id(storage), (storage, []))[1].append(path)
        failed: dict[str, StorageError] = {}
        for storage, own in groups.values():
            failed |= storage.delete_many(own, within=within)
        return failed

    def resolve_folder(self, folder: str) -> str:
        """Return where a folder really is, its links followed; the same folder where there are no links."""
        return self.storage_of(folder).resolve_folder(folder)

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return where files really are, links followed, many at a time; the same paths where there are no links."""
        groups: dict[int, tuple[Storage, list[str]]] = {}
        for path in dict.fromkeys(paths):
            storage = self.storage_of(path)
            groups.setdefault(id(storage), (storage, []))[1].append(path)
        found: dict[str, str] = {}
        for storage, own in groups.values():
            found |= zip(own, storage.resolve_files(own), strict=True)
        return [found[path] for path in paths]


def choose_storage(
    properties: Mapping[str, str] | None = None,
    *,
    memory: Storage | None = None,
    durable: bool = True,
    warehouse: str | None = None,
    stores: Stores | None = None,
    more_roots: Sequence[str] | None = None,
) -> SchemeStorage:
    """Return a storage for every scheme that is built, set up from a catalog's properties.

    `stores` says how object stores are reached; by default it follows from the properties. If `read.roots` restricts
    what may be used, the warehouse is one of the roots. `more_roots` restricts it as well: to the warehouse, those
    folders, and the ones of `read.roots` and `delete.roots`.
    """
    own = dict(properties or {})
    roots = _roots(own, warehouse)
    if more_roots is not None:
        first = () if warehouse is None else (strip_slashes(warehouse),)
        roots = tuple(
            dict.fromkeys((*first, *(roots or ()), *delete_roots(own), *whole_folders("the root", more_roots)))
        )
    places = (*(roots or ()), *delete_roots(own), *(() if warehouse is None else (warehouse,)))
    known = Stores(own, places=places) if stores is None else stores
    bounds = None if roots is None else _local_roots(roots)
    storages: dict[str, Storage] = {FILE_SCHEME: LocalStorage(durable=durable, roots=bounds)}
    if memory is not None:
        storages[MEMORY_SCHEME] = memory

    def make_s3() -> Storage:
        from frazil.storage.object_stores import open_s3

        return open_s3(known.account(S3))

    def make_gcs() -> Storage:
        from frazil.storage.object_stores import open_gcs

        return open_gcs(known.account(GCS))

    def make_azure() -> Storage:
        from frazil.storage.object_stores import open_azure

        return open_azure(known.account(AZURE))

    def make_hdfs() -> Storage:
        from frazil.storage.object_stores import open_hdfs

        return open_hdfs(own, places)

    makers = dict.fromkeys(S3_SCHEMES, make_s3) | dict.fromkeys(GCS_SCHEMES, make_gcs)
    makers |= dict.fromkeys(AZURE_SCHEMES, make_azure) | dict.fromkeys(HDFS_SCHEMES, make_hdfs)
    return SchemeStorage(storages, makers=makers, roots=roots, schemes=_schemes(own), stores=known)


def storage_of(storage: Storage, location: str) -> Storage:
    """Return the storage that keeps a location, where several are held as one; else the storage itself."""
    return storage.storage_of(location) if isinstance(storage, SchemeStorage) else storage


def stores_of(storage: Storage) -> Stores:
    """Return how the object stores of a storage are reached."""
    return storage.stores if isinstance(storage, SchemeStorage) else Stores()


def reach_of(storage: Storage, location: str) -> StoreAccount | None:
    """Return how others, such as Spark, reach a location, if that is special to it; else None."""
    return storage.reach(location) if isinstance(storage, SchemeStorage) else None


def is_fenced(storage: Storage) -> bool:
    """Return whether a storage opens only what is inside some folders."""
    return isinstance(storage, SchemeStorage) and storage.is_fenced


def check_readable(storage: Storage, locations: Sequence[str]) -> None:
    """Refuse locations that somebody who reads them past a storage, as Spark does, may not be given."""
    if isinstance(storage, SchemeStorage):
        storage.check_readable(locations)


def _schemes(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the schemes of `read.schemes`, which commas separate."""
    text = properties.get(READ_SCHEMES)
    named = () if text is None else tuple(piece.strip().rstrip(":").lower() for piece in text.split(","))
    for scheme in named:
        if scheme_of(f"{scheme}:") != scheme:
            raise InvalidPropertyError(
                f"Cannot use {READ_SCHEMES}: {scheme!r} is no scheme",
                hint="Give names such as hdfs, with commas between.",
            )
    return named


def _roots(properties: Mapping[str, str], warehouse: str | None) -> tuple[str, ...] | None:
    """Return the folders of `read.roots` with the warehouse; None where it is not set."""
    named = _folders(properties, READ_ROOTS)
    if named is None:
        return None
    return tuple(dict.fromkeys(strip_slashes(root) for root in (*(() if warehouse is None else (warehouse,)), *named)))


def _local_roots(roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(root for root in roots if (scheme_of(root) or FILE_SCHEME) == FILE_SCHEME)


def delete_roots(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders in which files may be deleted, beside the warehouse: `delete.roots`, else `read.roots`."""
    named = _folders(properties, DELETE_ROOTS)
    return named if named is not None else _folders(properties, READ_ROOTS) or ()


def _folders(properties: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """Return the folders of a property, which commas separate; None where it is not set."""
    text = properties.get(name)
    if text is None:
        return None
    return whole_folders(name, [piece.strip() for piece in text.split(",")])


def whole_folders(name: str, named: Sequence[str]) -> tuple[str, ...]:
    """Return folders that are given by their whole names; refuse others."""
    for folder in named:
        is_whole = scheme_of(folder) is not None or folder.startswith("/")
        if not is_whole or ((scheme_of(folder) or FILE_SCHEME) == FILE_SCHEME and parse_location(folder).path == "/"):
            raise InvalidPropertyError(
                f"Cannot use {name}: {folder!r} is no folder by its whole name",
                hint="Give absolute paths or URIs, with commas between them.",
            )
    return tuple(dict.fromkeys(strip_slashes(location) for location in named))


def _rebuild(
    storages: dict[str, Storage],
    refused: dict[str, FrazilError],
    roots: tuple[str, ...] | None,
    schemes: tuple[str, ...],
) -> SchemeStorage:
    makers = {scheme: _Refused(error) for scheme, error in refused.items()}
    return SchemeStorage(storages, makers=makers, roots=roots, schemes=schemes)


def _outside(location: str, roots: tuple[str, ...]) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot use {location!r}: it is outside the folders that may be read",
        hint=f"Add its folder to {READ_ROOTS}, if it belongs there.",
        roots=", ".join(roots),
    )


class _Refused:
    """Stands for a storage that could not be set up where the others came from."""

    __slots__ = ("_error",)

    def __init__(self, error: FrazilError) -> None:
        self._error = error

    def __call__(self) -> Storage:
        raise self._error


def _no_storage(scheme: str) -> InvalidRequestError | UnsupportedError:
    if scheme == MEMORY_SCHEME:
        return InvalidRequestError(
            "Cannot use a memory: location: this process was given no memory storage",
            hint="Files in memory belong to the process and the catalog that made them.",
        )
    hint = (
        "Locations are paths, or start with file:, s3:, s3a:, s3n:, gs:, gcs:, abfss:, abfs:, wasbs:, wasb:, az: or "
        f"hdfs:; on Spark also with those of {READ_SCHEMES}."
    )
    return UnsupportedError(f"Cannot use a {scheme}: location: there is no storage for that scheme", hint=hint)
