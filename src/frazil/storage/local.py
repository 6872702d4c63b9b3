"""Local files, by `file:` URI or absolute path. Specification: "File System Operations".

How a file is written:

1. Its bytes go to a temporary name in the same folder, and are synced.
2. Newly created folders are synced into their parents, so that the path to the file is durable too.
3. `link` gives the file its name. The kernel refuses a name that is taken, so of several writers one wins.
   (`rename` would replace silently, and checking first leaves a gap: that is how commits are lost.)
4. The folder is synced, and the temporary name is removed. Only then does the call return.

A crash leaves at worst a temporary file, `.<name>.<id>.tmp`, which nothing refers to. Until step 3 nothing has
happened;
if step 3 or 4 fails, the file may exist, and the error says so. On a file system without hard links (FAT, some network
and container mounts) writing is refused rather than made unsafe.

Locations are taken literally, as in Iceberg Java: `file:/a%20b` is the file named `a%20b`. `file:/x`, `file:///x`,
`file://localhost/x` and `/x` are the same file. A relative path is resolved against the working folder, for reading
only. Only regular files are read: a device or a pipe could feed a reader forever.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from frazil.errors import (
    FileAlreadyExistsError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.storage.base import (
    MAX_READ_BYTES,
    Children,
    Storage,
    StoredFile,
    check_range,
    not_empty,
    too_large,
    too_short,
)
from frazil.storage.locations import scheme_of
from frazil.storage.new_file import NewFile, closed

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_REFUSED = (
    errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EISDIR, errno.ENOTDIR, errno.ENOENT,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV, errno.ENOTEMPTY,
)  # fmt: skip
"""Error codes that mean that nothing was done; after any other, the name may have been created."""
_NO_SYNC = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS, *_ABSENT)


def _new_id() -> str:
    return os.urandom(16).hex()


class LocalStorage(Storage):
    """The local file system. `durable=False` skips all syncs: faster, but a power loss may undo writes."""

    __slots__ = ("_durable", "_new_id", "_roots", "_shared_syncs", "_synced")

    def __init__(
        self, *, durable: bool = True, new_id: Callable[[], str] = _new_id, roots: Sequence[str] | None = None
    ) -> None:
        """Take the folders that reads are restricted to, tested on the opened file; None for no restriction."""
        self._durable = durable
        self._roots = None if roots is None else tuple(roots)
        self._new_id = new_id
        # Folders whose path from the root is known to be on disk, with their identity: a folder that was removed and
        # recreated has to be synced again.
        self._synced: dict[str, tuple[int, int]] = {}
        self._shared_syncs: dict[str, _SharedSync] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._durable, self._new_id, self._roots)

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file; refuse one larger than `max_bytes`."""
        with _errors("read", path), _opened(path, self._roots) as (descriptor, size):
            if size > max_bytes:
                raise too_large(path, size, max_bytes)
            # One byte more than the file reveals whether it grows; a much larger read would allocate that much memory.
            data = _read_at(descriptor, 0, size + 1)
            if len(data) > size:
                data += _read_at(descriptor, len(data), max_bytes + 1 - len(data), _BUFFER_BYTES)
        if len(data) > max_bytes:
            raise too_large(path, len(data), max_bytes)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; fail if the file ends before."""
        check_range(path, offset, length)
        with _errors("read", path), _opened(path, self._roots) as (descriptor, size):
            if offset + length > size:
                raise too_short(path, size, offset, length)
            data = _read_at(descriptor, offset, length)
        if len(data) < length:
            raise too_short(path, offset + len(data), offset, length)
        return data

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        with _errors("read", path):
            status = Path(local_path(path)).stat()
        _check_regular(path, status)
        return status.st_size

    def exists(self, path: str) -> bool:
        """Return whether a file exists; fail if that cannot be determined, for example without permission."""
        try:
            with _errors("look for", path):
                return stat.S_ISREG(Path(local_path(path)).stat().st_mode)
        except MissingFileError:
            return False

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; fail if the name is taken."""
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        target = _writable_path(path)
        with self._temporary(path, target, data) as temporary:
            self._publish(path, temporary, target)

    def open_new(self, path: str) -> NewFile:
        """Open a new file; its bytes go to a temporary name next to it."""
        target = _writable_path(path)
        temporary = self._temporary_name(target)
        with _errors("write", path):
            try:
                descriptor = os.open(temporary, _NEW_FILE, 0o666)
            except (FileNotFoundError, NotADirectoryError):
                self._make_folders(_folder_of(target), syncs=False)
                descriptor = os.open(temporary, _NEW_FILE, 0o666)
        return _LocalNewFile(path, descriptor, temporary, target, self._publish_written)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one atomically. The last writer wins."""
        target = _writable_path(path)
        with self._temporary(path, target, data) as temporary:
            try:
                Path(temporary).replace(target)
            except OSError as error:
                raise _publish_error(path, error) from error
            self._sync_published(path, target)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no particular order; links to folders are not followed."""
        root = local_path(folder).rstrip("/")
        prefix = folder.rstrip("/")
        stack = [""]
        while stack:
            below = stack.pop()
            for name, status in _entries(folder, f"{root}{below}/"):
                if stat.S_ISDIR(status.st_mode):
                    stack.append(f"{below}/{name}")
                elif stat.S_ISREG(status.st_mode):
                    modified_ms = status.st_mtime_ns // 1_000_000
                    yield StoredFile(f"{prefix}{below}/{name}", status.st_size, modified_ms)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; links to folders are omitted."""
        files: list[str] = []
        folders: list[str] = []
        try:
            with _errors("list", folder), os.scandir(local_path(folder)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_file():
                        files.append(entry.name)
        except MissingFileError:
            return Children()
        return Children(tuple(sorted(files)), tuple(sorted(folders)))

    def create_folder(self, folder: str) -> None:
        """Create an empty folder, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        target = _writable_path(folder.rstrip("/"))
        with _errors("create", folder):
            self._make_folders(_folder_of(target))
            try:
                Path(target).mkdir()
            except FileExistsError as error:
                raise FileAlreadyExistsError(f"Cannot create {folder}: it exists", path=folder) from error
        self._sync_published(folder, target)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; ignore a missing one, refuse one that is not empty."""
        target = _writable_path(folder.rstrip("/"))
        with (
            contextlib.suppress(MissingFileError),
            _errors("remove the folder", folder),
            _folder_to_change(folder, target, within) as (name, descriptor),
        ):
            try:
                os.rmdir(name, dir_fd=descriptor)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise not_empty(folder) from error

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file, or a link to one; ignore a missing one. Folders are refused."""
        target = _writable_path(path)
        with (
            contextlib.suppress(MissingFileError),
            _errors("delete", path),
            _folder_to_change(path, target, within) as (name, descriptor),
        ):
            os.unlink(name, dir_fd=descriptor)

    @property
    def is_bounded(self) -> bool:
        """Whether reads are restricted to certain folders."""
        return self._roots is not None

    def resolve_folder(self, folder: str) -> str:
        """Return a folder with links resolved, as a `file:` URI."""
        with _errors("look for", folder):
            return f"file://{os.path.realpath(local_path(folder))}"

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return files with links resolved, as `file:` URIs; each folder is looked up once."""
        folders: dict[str, str] = {}
        resolved: list[str] = []
        with _errors("look for", paths[0] if paths else ""):
            for path in paths:
                above, _, name = local_path(path).rpartition("/")
                folder = folders.get(above)
                if folder is None:
                    folder = folders[above] = os.path.realpath(f"{above}/").rstrip("/")
                really = f"{folder}/{name}"
                if name in ("", ".", "..") or os.path.islink(really):  # noqa: PTH114 - asked of millions
                    really = os.path.realpath(really)
                resolved.append(f"file://{really}")
        return resolved

    @contextlib.contextmanager
    def _temporary(self, path: str, target: str, data: bytes) -> Iterator[str]:
        """Write the bytes to a temporary file next to the target and sync it; remove the name at the end."""
        temporary = self._temporary_name(target)
        try:
            with _errors("write", path):
                self._make_folders(_folder_of(target))
                _write_file(temporary, data, durable=self._durable)
            yield temporary
        finally:
            with contextlib.suppress(OSError, ValueError):
                _remove(temporary)

    def _temporary_name(self, target: str) -> str:
        folder, _, name = target.rpartition("/")
        # A name may have up to 255 bytes, and the temporary one must not exceed that.
        return f"{folder}/.{name[:50]}.{self._new_id()}.tmp"

    def _publish(self, path: str, temporary: str, target: str) -> None:
        _link(path, temporary, target)
        self._sync_published(path, target)

    def _publish_written(self, path: str, temporary: str, target: str, descriptor: int) -> None:
        """Give a written file its name, and sync both.

        Nothing refers to the file before this returns, so the name may come first: the file system then writes its
        journal once for folders, bytes and name, rather than once for each.
        """
        _link(path, temporary, target)
        if not self._durable:
            return
        try:
            os.fsync(descriptor)
            self._sync_way_to(_folder_of(target))
        except OSError:
            # A concurrent reader of the file may see what a power loss then takes back.
            _remove(target)
            raise
        self._sync_published(path, target)

    def _make_folders(self, folder: str, *, syncs: bool = True) -> None:
        missing: list[str] = []
        while not _is_folder(folder):
            missing.append(folder)
            folder = _folder_of(folder)
        for missing_folder in reversed(missing):
            Path(missing_folder).mkdir(exist_ok=True)
            folder = missing_folder
        if self._durable and syncs:
            self._sync_way_to(folder)

    def _sync_way_to(self, folder: str) -> None:
        """Sync every ancestor of a folder up to the root of its file system.

        Existing folders are included: another process may have just created one and not synced it yet. A folder without
        read permission was not created by such a process.
        """
        current = folder
        passed: dict[str, tuple[int, int]] = {}
        while True:
            status = _look_at(current)
            identity = (status.st_dev, status.st_ino)
            if self._synced.get(current) == identity:
                break
            passed[current] = identity
            above = _folder_of(current)
            if above == current or _look_at(above).st_dev != status.st_dev:
                break
            try:
                self._shared_syncs.setdefault(above, _SharedSync()).sync(above)
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    raise
                break
            current = above
        self._synced.update(passed)

    def _sync_published(self, path: str, target: str) -> None:
        if not self._durable:
            return
        try:
            _sync_folder(_folder_of(target))
        except OSError as error:
            raise _outcome_unknown(path, error) from error


@dataclass(slots=True)
class _SharedSync:
    """Shares syncs of one folder between threads: those that wait for a sync under way share the next one."""

    begun: int = 0
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def sync(self, folder: str) -> None:
        """Return after a sync has ended that began after this call."""
        # A sync under way may have begun before the entry was created.
        own_sync = self.begun + 1
        with self.lock:
            if self.done >= own_sync:
                return
            self.begun += 1
            _sync_folder(folder)
            self.done = self.begun


_BUFFER_BYTES = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _LocalNewFile(NewFile):
    """A file under its temporary name; buffers up to a megabyte."""

    __slots__ = ("_descriptor", "_give_name", "_buffer", "_buffer_bytes", "_target", "_temporary")

    def __init__(
        self, path: str, descriptor: int, temporary: str, target: str, publish: Callable[[str, str, str, int], None]
    ) -> None:
        super().__init__(path)
        self._descriptor: int | None = descriptor
        self._buffer: list[bytes | memoryview] = []
        self._buffer_bytes = 0
        self._temporary = temporary
        self._target = target
        self._give_name = publish

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _write(self, data: bytes | memoryview) -> None:
        if self._descriptor is None:
            raise closed(self.path)
        if self._buffer_bytes + len(data) < _BUFFER_BYTES:
            # A view may refer to memory that its owner reuses.
            self._buffer.append(bytes(data))
            self._buffer_bytes += len(data)
            return
        with _errors("write", self.path):
            self._write_buffer(self._descriptor)
            _write_all(self._descriptor, data)

    def _write_buffer(self, descriptor: int) -> None:
        pieces, self._buffer, self._buffer_bytes = self._buffer, [], 0
        _write_all(descriptor, pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def publish(self) -> None:
        """Give the bytes their name, sync both, and remove the temporary one."""
        descriptor = self._descriptor
        if descriptor is None:
            raise closed(self.path)
        try:
            with _errors("write", self.path):
                self._write_buffer(descriptor)
                self._give_name(self.path, self._temporary, self._target, descriptor)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the temporary name, and so the bytes if they have no other."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        self._buffer = []
        with contextlib.suppress(OSError):
            os.close(descriptor)
        with contextlib.suppress(OSError, ValueError):
            _remove(self._temporary)


# Plain functions, since they are called for every file and `Path` would take longer than the system call.
_look_at, _is_folder, _remove = os.stat, os.path.isdir, os.unlink


def _folder_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0].rstrip("/") or "/"


def local_path(location: str) -> str:
    """Return the path of a `file:` URI or of a path; the text is taken literally, without decoding."""
    if "\0" in location:
        raise InvalidRequestError(f"Cannot use the location {location!r}: it contains a NUL character")
    scheme = scheme_of(location)
    if scheme is None:
        if location == "":
            raise InvalidRequestError("Cannot use the location '': it is empty")
        return location if location.startswith("/") else str(Path(location).absolute())
    if scheme != "file":
        raise InvalidRequestError(
            f"Cannot use the location {location!r}: this storage has only files of this machine, not of {scheme}:"
        )
    rest = location[len("file:") :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority.lower() not in ("", "localhost"):
            raise InvalidRequestError(f"Cannot use the location {location!r}: it names the host {authority!r}")
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidRequestError(f"Cannot use the location {location!r}: a file: URI needs an absolute path")
    return rest


def _rebuild(durable: bool, new_id: Callable[[], str], roots: tuple[str, ...] | None = None) -> LocalStorage:
    return LocalStorage(durable=durable, new_id=new_id, roots=roots)


def _writable_path(location: str) -> str:
    """Return the path of a file to write or delete, which must be absolute and must not name a folder."""
    if scheme_of(location) is None and not location.startswith("/"):
        raise InvalidRequestError(
            f"Cannot write or delete {location!r}: the path is relative",
            hint="Use an absolute path or a file: URI.",
        )
    path = local_path(location)
    if path.rpartition("/")[2] in ("", ".", ".."):
        raise InvalidRequestError(f"Cannot write or delete {location!r}: it names a folder")
    return path


class _errors:  # noqa: N801 - used as a statement; a generator would take longer than some of the calls in it
    """Translate OSErrors into this package's errors."""

    __slots__ = ("_path", "_verb")

    def __init__(self, verb: str, path: str) -> None:
        self._verb = verb
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, FrazilError):
            return
        verb, path = self._verb, self._path
        if isinstance(error, OSError):
            if error.errno in _ABSENT:
                raise MissingFileError(f"Cannot {verb} {path}: the file does not exist", path=path) from error
            raise StorageError(f"Cannot {verb} {path}: {error.strerror or error}", path=path) from error
        if isinstance(error, ValueError):
            # Characters that the file system's encoding cannot represent.
            raise InvalidRequestError(f"Cannot {verb} {path!r}: {error}") from error


@contextlib.contextmanager
def _folder_to_change(path: str, target: str, within: Sequence[str] | None) -> Iterator[tuple[str, int | None]]:
    """Yield a name and its opened folder; with `within`, refuse a folder that is in none of those.

    The opened folder itself is asked for its path, so concurrent changes of the path do not matter.
    """
    if within is None:
        yield target, None
        return
    folder, _, name = target.rpartition("/")
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        roots = [local_path(root) for root in within if scheme_of(root) in (None, "file")]
        if not _is_inside(_path_of(descriptor, folder or "/"), roots):
            raise StorageError(f"Cannot delete {path}: its folder was moved, or replaced by a link", path=path)
        yield name, descriptor
    finally:
        os.close(descriptor)


def _path_of(descriptor: int, path: str) -> str:
    """Return the path of an open file or folder, without links."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")  # noqa: PTH115 - made for every file
    except OSError:
        # Without /proc: the present path, if it still leads to what was opened.
        really = os.path.realpath(path)
        if not os.path.samestat(os.lstat(really), os.fstat(descriptor)):
            raise
        return really


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders, or inside one; their links must be resolved."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


@contextlib.contextmanager
def _opened(path: str, roots: Sequence[str] | None = None) -> Iterator[tuple[int, int]]:
    """Open a regular file; yield its descriptor and size. With roots, refuse one that is in none of them."""
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    descriptor = os.open(local_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if roots is not None and not _is_inside(
            _path_of(descriptor, local_path(path)), (os.path.realpath(local_path(root)) for root in roots)
        ):
            raise InvalidRequestError(f"Cannot read {path}: it resolves to a file outside the folders that may be read")
        status = os.fstat(descriptor)
        _check_regular(path, status)
        yield descriptor, status.st_size
    finally:
        os.close(descriptor)


def _check_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        what_it_is = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise StorageError(f"Cannot read {path}: it is {what_it_is}", path=path)


def _read_at(descriptor: int, offset: int, length: int, at_once: int = 1 << 30) -> bytes:
    """Read a number of bytes, or as many as there are, in pieces that bound the memory allocated."""
    pieces: list[bytes] = []
    while length > 0:
        piece = os.pread(descriptor, min(length, at_once), offset)
        if piece == b"":
            break
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _write_file(path: str, data: bytes, *, durable: bool) -> None:
    descriptor = os.open(path, _NEW_FILE, 0o666)
    try:
        _write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while len(view) > 0:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(path: str, temporary: str, target: str) -> None:
    try:
        os.link(temporary, target)
    except OSError as error:
        # A network file system may lose the reply and find its own link on the second try.
        if not _same_file(temporary, target):
            raise _link_error(path, error) from error


def _same_file(path: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except OSError:
        return False


def _link_error(path: str, error: OSError) -> FrazilError:
    if error.errno == errno.EEXIST:
        return FileAlreadyExistsError(f"Cannot create {path}: it exists", path=path)
    if error.errno in _NO_LINKS:
        return UnsupportedError(
            f"Cannot create {path}: its file system has no hard links ({error.strerror}), "
            "without which two writers could both succeed",
            hint="Keep the warehouse on another file system, or use a SQL catalog with an object store.",
            path=path,
        )
    return _publish_error(path, error)


def _publish_error(path: str, error: OSError) -> StorageError:
    if error.errno in _REFUSED:
        return StorageError(f"Cannot write {path}: {error.strerror}", path=path)
    return _outcome_unknown(path, error)


def _outcome_unknown(path: str, error: OSError) -> WriteOutcomeUnknownError:
    return WriteOutcomeUnknownError(
        f"Cannot tell whether {path} was written: {error.strerror or error}",
        hint="Read the file back to find out; do not delete what was written for it.",
        path=path,
    )


def _entries(folder: str, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the entries of a folder with their status; links to files as the files, links to folders not at all."""
    try:
        with _errors("list", folder), os.scandir(path) as entries:
            scanned = list(entries)
    except MissingFileError:
        return
    for entry in scanned:
        try:
            with _errors("list", folder):
                described = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(described.st_mode):
                    described = entry.stat()
                    if stat.S_ISDIR(described.st_mode):
                        continue
        except MissingFileError:
            continue
        yield entry.name, described
