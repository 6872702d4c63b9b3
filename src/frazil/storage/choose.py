"""Chooses the storage of a location by its scheme. A table may have files under several schemes.

    /path, file:            this machine's files
    memory:                 this process's memory, if the caller passes one
    s3:, s3a:, s3n:         Amazon S3 and compatible stores
    gs:, gcs:               Google Cloud Storage
    abfss:, abfs:, az:, …   Azure
    hdfs:, webhdfs:, …      HDFS, over HTTP

A store is loaded and set up when a location first needs it, so that nobody needs credentials or waits for imports of
unused stores.

Metadata may name files anywhere, so its author chooses what a reader opens. `read.roots` restricts this: files outside
these folders, with links resolved, are neither read nor written. Spark has its own file systems for many schemes,
including `http:`: `check_readable` applies the same restriction to the locations passed to Spark, and limits them to
the
schemes above and those of `read.schemes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from frazil.errors import FrazilError, InvalidPropertyError, InvalidRequestError, StorageError, UnsupportedError
from frazil.storage.base import MAX_READ_BYTES, Children, Storage, StoredFile
from frazil.storage.hdfs_properties import ENDPOINT as HDFS_ENDPOINT
from frazil.storage.hdfs_properties import HDFS_SCHEMES
from frazil.storage.hdfs_properties import PROPERTIES as HDFS_PROPERTIES
from frazil.storage.local import LocalStorage
from frazil.storage.locations import is_within, parse_location, scheme_of, strip_slashes
from frazil.storage.new_file import NewFile
from frazil.storage.object_properties import CREDENTIAL_ENDPOINTS, PROPERTIES
from frazil.storage.read_only import untrusted
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
"""All properties that configure where files are and how they are accessed."""


class SchemeStorage(Storage):
    """Several storages as one; each location is handled by the storage of its scheme."""

    __slots__ = ("_makers", "_roots", "_schemes", "_storages", "_stores", "is_read_only")

    def __init__(
        self,
        storages: Mapping[str, Storage],
        *,
        makers: Mapping[str, Callable[[], Storage]] | None = None,
        roots: tuple[str, ...] | None = None,
        schemes: tuple[str, ...] = (),
        stores: Stores | None = None,
        is_read_only: bool = False,
    ) -> None:
        """Take storages by scheme, and factories for further schemes, called at first use.

        With `roots`, only files inside them can be used. `schemes` are further ones that readers with their own
        storages, such as Spark, may use. `stores` is the configuration, which stays in this process.
        """
        self.is_read_only = is_read_only
        """Whether nothing is changed: of a lake that was opened with `trust="none"`."""
        self._storages = dict(storages)
        self._makers = dict(makers or {})
        self._roots = roots
        self._schemes = schemes
        self._stores = Stores() if stores is None else stores

    def __repr__(self) -> str:
        return f"SchemeStorage({', '.join(sorted({*self._storages, *self._makers}))})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without this process's memory and without credentials of object stores."""
        refused: dict[str, FrazilError] = {}
        for scheme in self._makers:
            try:
                self._make(scheme)
            except FrazilError as error:
                refused[scheme] = error
        portable = {scheme: storage for scheme, storage in self._storages.items() if scheme != MEMORY_SCHEME}
        return _rebuild, (portable, refused, self._roots, self._schemes, self.is_read_only)

    def storage_of(self, location: str) -> Storage:
        """Return the storage of a location; refuse one outside the roots."""
        storage = self._find_storage(location)
        if self._roots is not None:
            self._check_inside(storage, location, self._roots)
        return storage

    def _find_storage(self, location: str) -> Storage:
        scheme = scheme_of(location) or FILE_SCHEME
        storage = self._storages.get(scheme)
        if storage is None and scheme in self._makers:
            storage = self._make(scheme)
        if storage is None:
            raise _no_storage(scheme)
        return storage

    def check_readable(self, locations: Sequence[str]) -> None:
        """Refuse locations that a reader bypassing this storage may not use; each folder is checked once."""
        folders: dict[str, str] = {}
        for location in locations:
            folders.setdefault(location.rpartition("/")[0], location)
        for location in folders.values():
            scheme = scheme_of(location) or FILE_SCHEME
            if scheme not in self._schemes:
                self.check_host(location)
                # Spark may have its own credentials; none are needed here.
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
        storage = self.storage_of(local[0])
        roots = [
            storage.resolve_folder(root) for root in self._roots if (scheme_of(root) or FILE_SCHEME) == FILE_SCHEME
        ]
        is_inside: dict[str, bool] = {}
        for location, really in zip(local, storage.resolve_files(local), strict=True):
            folder = really.rpartition("/")[0]
            if folder not in is_inside:
                is_inside[folder] = any(is_within(folder, root) for root in roots)
            if not is_inside[folder]:
                raise _outside(location, self._roots)

    def check_host(self, location: str) -> None:
        """Refuse a location on a host that only metadata names."""
        self._stores.check_location(location)

    @property
    def is_fenced(self) -> bool:
        """Whether only files inside certain folders can be used."""
        return self._roots is not None

    @property
    def schemes(self) -> tuple[str, ...]:
        """Further schemes that readers with their own storages, such as Spark, may use."""
        return self._schemes

    @property
    def roots(self) -> tuple[str, ...] | None:
        """The folders that can be used; None if all can."""
        return self._roots

    def _check_inside(self, storage: Storage, location: str, roots: tuple[str, ...]) -> None:
        enclosing = [root for root in roots if is_within(location, root)]
        if enclosing:
            # Only now is the storage known to serve the roots, so that it may be asked to resolve links.
            really = storage.resolve_folder(location)
            if any(is_within(really, storage.resolve_folder(folder)) for folder in enclosing):
                return
        raise _outside(location, roots)

    @property
    def stores(self) -> Stores:
        """How object stores are reached, with credentials; cannot be pickled."""
        return self._stores

    def reach(self, location: str) -> StoreAccount | None:
        """Return how other readers, such as Spark, reach a location if it needs special access; else None."""
        store = store_of(location)
        account = None if store is None else self._stores.account(store)
        # The settings of a service apply only to its own tables.
        return account if account is not None and account.is_named_by_service else None

    def _make(self, scheme: str) -> Storage:
        make = self._makers[scheme]
        # Schemes with the same factory share a storage and its connections.
        for other, maker in self._makers.items():
            if maker is make and other in self._storages:
                return self._storages.setdefault(scheme, self._storages[other])
        return self._storages.setdefault(scheme, make())

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file; refuse one larger than `max_bytes`."""
        return self.storage_of(path).read(path, max_bytes=max_bytes)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; fail if the file ends before."""
        return self.storage_of(path).read_range(path, offset, length)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self.storage_of(path).size(path)

    def exists(self, path: str) -> bool:
        """Return whether a file exists; fail if that cannot be determined."""
        return self.storage_of(path).exists(path)

    def _writable(self, path: str, change: str = "write") -> Storage:
        """Return the storage of a location to change; refuse if nothing may be changed."""
        if self.is_read_only:
            raise untrusted(f"{change} {path}")
        return self.storage_of(path)

    def check_writable(self, folder: str) -> None:
        """Refuse a folder for a writer bypassing this storage if nothing may be changed."""
        self._writable(folder, "write below")

    def create(self, path: str, data: bytes) -> None:
        """Write a new file under a name that no other writer uses; fail if the name is found to be taken."""
        self._writable(path).create(path, data)

    def open_new(self, path: str) -> NewFile:
        """Open a new file in its storage."""
        return self._writable(path).open_new(path)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        self._writable(path).create_exclusive(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one atomically. The last writer wins."""
        self._writable(path).replace(path, data)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no particular order; nothing if it does not exist."""
        return self.storage_of(folder).list(folder)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; none if it does not exist."""
        return self.storage_of(folder).list_children(folder)

    def create_folder(self, folder: str) -> None:
        """Create an empty folder, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        self._writable(folder, "make the folder").create_folder(folder)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; ignore a missing one, refuse one that is not empty."""
        self._writable(folder, "remove the folder").delete_folder(folder, within=within)

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; ignore a missing one, so that a clean-up may be repeated."""
        self._writable(path, "delete").delete(path, within=within)

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Delete as many files as possible; return the errors of the others by path."""
        groups: dict[int, tuple[Storage, list[str]]] = {}
        for path in paths:
            storage = self._writable(path, "delete")
            groups.setdefault(id(storage), (storage, []))[1].append(path)
        failed: dict[str, StorageError] = {}
        for storage, members in groups.values():
            failed |= storage.delete_many(members, within=within)
        return failed

    def resolve_folder(self, folder: str) -> str:
        """Return a folder with links resolved; unchanged in a storage without links."""
        return self.storage_of(folder).resolve_folder(folder)

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return files with links resolved; unchanged in a storage without links."""
        groups: dict[int, tuple[Storage, list[str]]] = {}
        for path in dict.fromkeys(paths):
            storage = self.storage_of(path)
            groups.setdefault(id(storage), (storage, []))[1].append(path)
        resolved: dict[str, str] = {}
        for storage, members in groups.values():
            resolved |= zip(members, storage.resolve_files(members), strict=True)
        return [resolved[path] for path in paths]


def choose_storage(
    properties: Mapping[str, str] | None = None,
    *,
    memory: Storage | None = None,
    durable: bool = True,
    warehouse: str | None = None,
    stores: Stores | None = None,
    more_roots: Sequence[str] | None = None,
    is_read_only: bool = False,
) -> SchemeStorage:
    """Return a storage for all supported schemes, configured by a catalog's properties.

    `stores` is the access to object stores; by default it follows from the properties. If `read.roots` restricts what
    may be used, the warehouse is one of the roots. `more_roots` restricts it as well: to the warehouse, those folders,
    and those of `read.roots` and `delete.roots`.
    """
    settings = dict(properties or {})
    roots = _roots(settings, warehouse)
    if more_roots is not None:
        first = () if warehouse is None else (strip_slashes(warehouse),)
        roots = tuple(
            dict.fromkeys((*first, *(roots or ()), *delete_roots(settings), *whole_folders("the root", more_roots)))
        )
    places = (*(roots or ()), *delete_roots(settings), *(() if warehouse is None else (warehouse,)))
    accounts = Stores(settings, places=places) if stores is None else stores
    bounds = None if roots is None else _local_roots(roots)
    storages: dict[str, Storage] = {FILE_SCHEME: LocalStorage(durable=durable, roots=bounds)}
    if memory is not None:
        storages[MEMORY_SCHEME] = memory

    def make_s3() -> Storage:
        from frazil.storage.object_stores import open_s3

        return open_s3(accounts.account(S3))

    def make_gcs() -> Storage:
        from frazil.storage.object_stores import open_gcs

        return open_gcs(accounts.account(GCS))

    def make_azure() -> Storage:
        from frazil.storage.object_stores import open_azure

        return open_azure(accounts.account(AZURE))

    def make_hdfs() -> Storage:
        from frazil.storage.object_stores import open_hdfs

        return open_hdfs(settings, places)

    makers = dict.fromkeys(S3_SCHEMES, make_s3) | dict.fromkeys(GCS_SCHEMES, make_gcs)
    makers |= dict.fromkeys(AZURE_SCHEMES, make_azure)
    if HDFS_ENDPOINT in settings or any(scheme_of(location) in HDFS_SCHEMES for location in places):
        makers |= dict.fromkeys(HDFS_SCHEMES, make_hdfs)
    return SchemeStorage(
        storages, makers=makers, roots=roots, schemes=_schemes(settings), stores=accounts, is_read_only=is_read_only
    )


def storage_of(storage: Storage, location: str) -> Storage:
    """Return the storage of a location within a combined storage, else the storage itself."""
    return storage.storage_of(location) if isinstance(storage, SchemeStorage) else storage


def stores_of(storage: Storage) -> Stores:
    """Return the access to the object stores of a storage."""
    return storage.stores if isinstance(storage, SchemeStorage) else Stores()


def reach_of(storage: Storage, location: str) -> StoreAccount | None:
    """Return how other readers, such as Spark, reach a location if it needs special access; else None."""
    return storage.reach(location) if isinstance(storage, SchemeStorage) else None


def is_fenced(storage: Storage) -> bool:
    """Return whether a storage opens only files inside certain folders."""
    return isinstance(storage, SchemeStorage) and storage.is_fenced


def check_writable(storage: Storage, folder: str) -> None:
    """Refuse a folder that a writer bypassing a storage, such as Spark, may not write to."""
    if isinstance(storage, SchemeStorage):
        storage.check_writable(folder)


def check_readable(storage: Storage, locations: Sequence[str]) -> None:
    """Refuse locations that a reader bypassing a storage, such as Spark, may not use."""
    if isinstance(storage, SchemeStorage):
        storage.check_readable(locations)


def _schemes(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the schemes of the comma-separated property `read.schemes`."""
    text = properties.get(READ_SCHEMES)
    schemes = () if text is None else tuple(piece.strip().rstrip(":").lower() for piece in text.split(","))
    for scheme in schemes:
        if scheme_of(f"{scheme}:") != scheme:
            raise InvalidPropertyError(
                f"Cannot use {READ_SCHEMES}: {scheme!r} is not a scheme",
                hint="Use names such as hdfs, separated by commas.",
            )
    return schemes


def _roots(properties: Mapping[str, str], warehouse: str | None) -> tuple[str, ...] | None:
    """Return the folders of `read.roots` and the warehouse, or None if the property is not set."""
    folders = _folders(properties, READ_ROOTS)
    if folders is None:
        return None
    return tuple(
        dict.fromkeys(strip_slashes(root) for root in (*(() if warehouse is None else (warehouse,)), *folders))
    )


def _local_roots(roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(root for root in roots if (scheme_of(root) or FILE_SCHEME) == FILE_SCHEME)


def delete_roots(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders in which files may be deleted besides the warehouse: `delete.roots`, else `read.roots`."""
    folders = _folders(properties, DELETE_ROOTS)
    return folders if folders is not None else _folders(properties, READ_ROOTS) or ()


def _folders(properties: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """Return the folders of a comma-separated property, or None if it is not set."""
    text = properties.get(name)
    if text is None:
        return None
    return whole_folders(name, [piece.strip() for piece in text.split(",")])


def whole_folders(name: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Validate that folders are absolute paths or URIs and return them."""
    for folder in folders:
        is_whole = scheme_of(folder) is not None or folder.startswith("/")
        if not is_whole or ((scheme_of(folder) or FILE_SCHEME) == FILE_SCHEME and parse_location(folder).path == "/"):
            raise InvalidPropertyError(
                f"Cannot use {name}: {folder!r} is not an absolute path or URI",
                hint="Use absolute paths or URIs, separated by commas.",
            )
    return tuple(dict.fromkeys(strip_slashes(location) for location in folders))


def _rebuild(
    storages: dict[str, Storage],
    refused: dict[str, FrazilError],
    roots: tuple[str, ...] | None,
    schemes: tuple[str, ...],
    is_read_only: bool,
) -> SchemeStorage:
    makers = {scheme: _Refused(error) for scheme, error in refused.items()}
    return SchemeStorage(storages, makers=makers, roots=roots, schemes=schemes, is_read_only=is_read_only)


def _outside(location: str, roots: tuple[str, ...]) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot use {location!r}: it is outside the folders that may be read",
        hint=f"Add its folder to {READ_ROOTS}, if it belongs there.",
        roots=", ".join(roots),
    )


class _Refused:
    """Placeholder for a storage that could not be set up where the pickled storage came from."""

    __slots__ = ("_error",)

    def __init__(self, error: FrazilError) -> None:
        self._error = error

    def __call__(self) -> Storage:
        raise self._error


def _no_storage(scheme: str) -> InvalidRequestError | UnsupportedError:
    if scheme == MEMORY_SCHEME:
        return InvalidRequestError(
            "Cannot use a memory: location: this process has no memory storage",
            hint="Files in memory belong to the process and the catalog that made them.",
        )
    hint = (
        "Locations are paths, or start with file:, s3:, s3a:, s3n:, gs:, gcs:, abfss:, abfs:, wasbs:, wasb:, az: or "
        f"hdfs:; on Spark also with those of {READ_SCHEMES}."
    )
    return UnsupportedError(f"Cannot use a {scheme}: location: the scheme is not supported", hint=hint)
