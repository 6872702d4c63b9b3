"""Files of this machine, by `file:` URI or absolute path. Specification: "File System Operations".

How a file is written:

1. Its bytes go to a temporary name in the same folder, and are synced.
2. Folders that had to be made are synced into their parents, so that the way to the file lasts too.
3. `link` gives the file its name. The kernel refuses a name that is taken, so of several writers one wins.
   (`rename` would replace silently, and asking first leaves a gap: that is how commits are lost.)
4. The folder is synced, and the temporary name goes. Only then does the call return.

A crash leaves at worst a temporary file, `.<name>.<id>.tmp`, which nothing refers to. Until step 3 nothing has
happened; if step 3 or 4 fails, the file may be there, and the error says so. On a file system that has no hard
links (FAT, some network and container mounts) writing is refused rather than made unsafe.

A location is taken literally, as Iceberg Java does: `file:/a%20b` is the file named `a%20b`. `file:/x`,
`file:///x`, `file://localhost/x` and `/x` are the same file. A path without a leading slash is read against the
working folder and never written. Only regular files are read: a device or a pipe could feed a reader forever.
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
"""Answers that say that nothing was done; after any other, a name may have been given."""
_NO_SYNC = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS, *_ABSENT)


def _new_id() -> str:
    return os.urandom(16).hex()


class LocalStorage(Storage):
    """The file system. `durable=False` skips every sync: faster, and a power loss may undo what was written."""

    __slots__ = ("_durable", "_new_id", "_roots", "_shared_syncs", "_synced")

    def __init__(
        self, *, durable: bool = True, new_id: Callable[[], str] = _new_id, roots: Sequence[str] | None = None
    ) -> None:
        """Take the folders that files are read from, by what is opened in the end; None for all."""
        self._durable = durable
        self._roots = None if roots is None else tuple(roots)
        self._new_id = new_id
        # Folders whose way from the root is known to be on disk, with what they were then: a folder that was
        # removed and made anew has to be synced again.
        self._synced: dict[str, tuple[int, int]] = {}
        self._shared_syncs: dict[str, _SharedSync] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._durable, self._new_id, self._roots)

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file; refuse one that is larger than `max_bytes`."""
        with _errors("read", path), _opened(path, self._roots) as (descriptor, size):
            if size > max_bytes:
                raise too_large(path, size, max_bytes)
            # A byte more than the file has tells whether it grows; asking for much more would take that much memory.
            data = _read_at(descriptor, 0, size + 1)
            if len(data) > size:
                data += _read_at(descriptor, len(data), max_bytes + 1 - len(data), _BUFFER_BYTES)
        if len(data) > max_bytes:
            raise too_large(path, len(data), max_bytes)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; a file that ends before is an error."""
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
            found = Path(local_path(path)).stat()
        _check_regular(path, found)
        return found.st_size

    def exists(self, path: str) -> bool:
        """Return whether there is a file; an error where that cannot be told, as without permission to look."""
        try:
            with _errors("look for", path):
                return stat.S_ISREG(Path(local_path(path)).stat().st_mode)
        except MissingFileError:
            return False

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; refuse a name that is taken."""
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        target = _writable_path(path)
        with self._temporary(path, target, data) as temporary:
            self._publish(path, temporary, target)

    def open_new(self, path: str) -> NewFile:
        """Begin a new file; its bytes go to a temporary name beside it."""
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
        """Write a file over another of its name, if there is one; readers see either. The last writer wins."""
        target = _writable_path(path)
        with self._temporary(path, target, data) as temporary:
            try:
                Path(temporary).replace(target)
            except OSError as error:
                raise _publish_error(path, error) from error
            self._sync_published(path, target)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, in no promised order; links to folders are not followed."""
        root = local_path(folder).rstrip("/")
        prefix = folder.rstrip("/")
        stack = [""]
        while stack:
            below = stack.pop()
            for name, found in _entries(folder, f"{root}{below}/"):
                if stat.S_ISDIR(found.st_mode):
                    stack.append(f"{below}/{name}")
                elif stat.S_ISREG(found.st_mode):
                    modified_ms = found.st_mtime_ns // 1_000_000
                    yield StoredFile(f"{prefix}{below}/{name}", found.st_size, modified_ms)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder; links to folders are not shown."""
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
        """Make an empty folder, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        target = _writable_path(folder.rstrip("/"))
        with _errors("create", folder):
            self._make_folders(_folder_of(target))
            try:
                Path(target).mkdir()
            except FileExistsError as error:
                raise FileAlreadyExistsError(f"Cannot create {folder}: it exists", path=folder) from error
        self._sync_published(folder, target)

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; one that is not there is no error, one that is not empty is."""
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
        """Delete a file, or a link to one; one that is not there is no error. Folders are refused."""
        target = _writable_path(path)
        with (
            contextlib.suppress(MissingFileError),
            _errors("delete", path),
            _folder_to_change(path, target, within) as (name, descriptor),
        ):
            os.unlink(name, dir_fd=descriptor)

    @property
    def is_bounded(self) -> bool:
        """Whether files of some folders alone are read."""
        return self._roots is not None

    def resolve_folder(self, folder: str) -> str:
        """Return where a folder really is, its links followed, as a `file:` URI."""
        with _errors("look for", folder):
            return f"file://{os.path.realpath(local_path(folder))}"

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return where files really are, links followed, as `file:` URIs; each folder is looked up once."""
        folders: dict[str, str] = {}
        found: list[str] = []
        with _errors("look for", paths[0] if paths else ""):
            for path in paths:
                above, _, name = local_path(path).rpartition("/")
                folder = folders.get(above)
                if folder is None:
                    folder = folders[above] = os.path.realpath(f"{above}/").rstrip("/")
                really = f"{folder}/{name}"
                if name in ("", ".", "..") or os.path.islink(really):  # noqa: PTH114 - asked of millions
                    really = os.path.realpath(really)
                found.append(f"file://{really}")
        return found

    @contextlib.contextmanager
    def _temporary(self, path: str, target: str, data: bytes) -> Iterator[str]:
        """Write the bytes under a temporary name beside the target, synced; remove the name at the end."""
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
        # A name may have 255 bytes, and the temporary one must not be the one that is too long.
        return f"{folder}/.{name[:50]}.{self._new_id()}.tmp"

    def _publish(self, path: str, temporary: str, target: str) -> None:
        _link(path, temporary, target)
        self._sync_published(path, target)

    def _publish_written(self, path: str, temporary: str, target: str, descriptor: int) -> None:
        """Give a written file its name, and sync both.

        Nothing refers to it before this returns, so that the name may come first: then the file system writes its
        journal once for folders, bytes and name, where it would write it for each of them.
        """
        _link(path, temporary, target)
        if not self._durable:
            return
        try:
            os.fsync(descriptor)
            self._sync_way_to(_folder_of(target))
        except OSError:
            # Who reads the file now may read what a power loss takes back.
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
        """Sync every folder above this one up to the root of its file system.

        Those that were there already too: another process may have made one a moment ago and not synced it yet.
        A folder that may not be read was not made by the likes of us.
        """
        current = folder
        passed: dict[str, tuple[int, int]] = {}
        while True:
            found = _look_at(current)
            mark = (found.st_dev, found.st_ino)
            if self._synced.get(current) == mark:
                break
            passed[current] = mark
            above = _folder_of(current)
            if above == current or _look_at(above).st_dev != found.st_dev:
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
    """Syncs of one folder that many threads make entries in: those who wait for one under way share the next."""

    begun: int = 0
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def sync(self, folder: str) -> None:
        """Return once a sync has ended that began after this call."""
        # A sync that is under way may have begun before the entry was made.
        wanted = self.begun + 1
        with self.lock:
            if self.done >= wanted:
                return
            self.begun += 1
            _sync_folder(folder)
            self.done = self.begun


_BUFFER_BYTES = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class _LocalNewFile(NewFile):
    """A file under its temporary name; up to a megabyte of it is held."""

    __slots__ = ("_descriptor", "_give_name", "_held", "_held_bytes", "_target", "_temporary")

    def __init__(
        self, path: str, descriptor: int, temporary: str, target: str, publish: Callable[[str, str, str, int], None]
    ) -> None:
        super().__init__(path)
        self._descriptor: int | None = descriptor
        self._held: list[bytes | memoryview] = []
        self._held_bytes = 0
        self._temporary = temporary
        self._target = target
        self._give_name = publish

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _write(self, data: bytes | memoryview) -> None:
        if self._descriptor is None:
            raise closed(self.path)
        if self._held_bytes + len(data) < _BUFFER_BYTES:
            # A view may be of memory that its owner uses again.
            self._held.append(bytes(data))
            self._held_bytes += len(data)
            return
        with _errors("write", self.path):
            self._write_held(self._descriptor)
            _write_all(self._descriptor, data)

    def _write_held(self, descriptor: int) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        _write_all(descriptor, held[0] if len(held) == 1 else b"".join(held))

    def publish(self) -> None:
        """Give the bytes their name, sync both, and drop the temporary one."""
        descriptor = self._descriptor
        if descriptor is None:
            raise closed(self.path)
        try:
            with _errors("write", self.path):
                self._write_held(descriptor)
                self._give_name(self.path, self._temporary, self._target, descriptor)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the temporary name, and with it the bytes if they have no other."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        self._held = []
        with contextlib.suppress(OSError):
            os.close(descriptor)
        with contextlib.suppress(OSError, ValueError):
            _remove(self._temporary)


# Plain calls where `Path` would take longer than the system does: they are made for every file.
_look_at, _is_folder, _remove = os.stat, os.path.isdir, os.unlink


def _folder_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0].rstrip("/") or "/"


def local_path(location: str) -> str:
    """Return the path of a `file:` URI or of a path; the text is taken literally, without decoding."""
    if "\0" in location:
        raise InvalidRequestError(f"Cannot use the location {location!r}: it holds a NUL character")
    scheme = scheme_of(location)
    if scheme is None:
        if location == "":
            raise InvalidRequestError("Cannot use the location '': it is empty")
        return location if location.startswith("/") else str(Path(location).absolute())
    if scheme != "file":
        raise InvalidRequestError(
            f"Cannot use the location {location!r}: this storage has files of this machine only, not of {scheme}:"
        )
    rest = location[len("file:") :]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority.lower() not in ("", "localhost"):
            raise InvalidRequestError(f"Cannot use the location {location!r}: it names the host {authority!r}")
        rest = slash + path
    if not rest.startswith("/"):
        raise InvalidRequestError(f"Cannot use the location {location!r}: a file: URI holds an absolute path")
    return rest


def _rebuild(durable: bool, new_id: Callable[[], str], roots: tuple[str, ...] | None = None) -> LocalStorage:
    return LocalStorage(durable=durable, new_id=new_id, roots=roots)


def _writable_path(location: str) -> str:
    """Return the path of a file to write or delete: absolute, and with a name at its end."""
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
    """Turn what the system raises into this package's errors."""

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
                raise MissingFileError(f"Cannot {verb} {path}: there is no such file", path=path) from error
            raise StorageError(f"Cannot {verb} {path}: {error.strerror or error}", path=path) from error
        if isinstance(error, ValueError):
            # Characters that the file system's encoding cannot express.
            raise InvalidRequestError(f"Cannot {verb} {path!r}: {error}") from error


@contextlib.contextmanager
def _folder_to_change(path: str, target: str, within: Sequence[str] | None) -> Iterator[tuple[str, int | None]]:
    """Yield a name and the folder it is in, opened; with `within`, refuse a folder that is in none of those.

    What was opened is asked where it is, so it does not matter what becomes of the way to it meanwhile.
    """
    if within is None:
        yield target, None
        return
    folder, _, name = target.rpartition("/")
    descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        own = [local_path(root) for root in within if scheme_of(root) in (None, "file")]
        if not _is_inside(_path_of(descriptor, folder or "/"), own):
            raise StorageError(f"Cannot delete {path}: its folder was moved, or replaced by a link", path=path)
        yield name, descriptor
    finally:
        os.close(descriptor)


def _path_of(descriptor: int, path: str) -> str:
    """Return where an open file or folder is, without links."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")  # noqa: PTH115 - made for every file
    except OSError:
        # Without /proc: where the path leads now, if that is still what was opened.
        really = os.path.realpath(path)
        if not os.path.samestat(os.lstat(really), os.fstat(descriptor)):
            raise
        return really


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders, or in one; none of them has links in it."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


@contextlib.contextmanager
def _opened(path: str, roots: Sequence[str] | None = None) -> Iterator[tuple[int, int]]:
    """Open a regular file; yield its descriptor and its size. With roots, refuse one that is in none of them."""
    # Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
    descriptor = os.open(local_path(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if roots is not None and not _is_inside(
            _path_of(descriptor, local_path(path)), (os.path.realpath(local_path(root)) for root in roots)
        ):
            raise InvalidRequestError(f"Cannot read {path}: it leads outside the folders that may be read")
        found = os.fstat(descriptor)
        _check_regular(path, found)
        yield descriptor, found.st_size
    finally:
        os.close(descriptor)


def _check_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        what_it_is = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise StorageError(f"Cannot read {path}: it is {what_it_is}", path=path)


def _read_at(descriptor: int, offset: int, length: int, at_once: int = 1 << 30) -> bytes:
    """Return so many bytes, or those that there are; what is asked for at once is taken in memory."""
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
        # A network file system may lose the answer and find its own link on the second try.
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
            "and without them two writers could both win",
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
    """Yield what a folder holds with what each is; links to files as the files, links to folders not at all."""
    try:
        with _errors("list", folder), os.scandir(path) as entries:
            found = list(entries)
    except MissingFileError:
        return
    for entry in found:
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
