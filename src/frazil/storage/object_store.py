"""Files in an object store: Amazon S3, compatible stores, and Google Cloud Storage.

An object is written by one request, and a header makes the request fail if the name is taken: of several writers, one
succeeds. What remains is to distinguish one's own success from that of another writer.

How a file is created:

1. The request carries the condition and, in the object's metadata, an ID generated for this call.
2. Success: done.
3. No response, or a server error: the outcome is unknown. The request is sent again; the condition makes that safe.
4. The name is taken. It may be our own object, written by an attempt whose response was lost, or by a proxy that sent
   the request twice. So the object's metadata is read: our ID means that we succeeded; another or none, that we failed.
5. A conflict (409) means that another request is under way, not that the name is taken: the request is sent again.
6. If that leaves the outcome unknown, the error is `WriteOutcomeUnknownError`.

A store that ignores the condition would let two writers succeed. Every store at a custom endpoint is therefore tested
before the first write, with a small object next to the file: the second of two creates must fail, and the metadata must
be returned. A store that fails the test accepts files with unique names, but no exclusive creates.

Keys are taken literally, including `//` and unusual characters; only the segments `.` and `..` are refused, since
servers
resolve them. A folder is a key that ends with a slash, as other tools create them, or any prefix of a key.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from frazil.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    StorageError,
    UnsupportedError,
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
from frazil.storage.http import HttpClient, Proxy
from frazil.storage.locations import scheme_of
from frazil.storage.multipart import PART_BYTES, PartedNewFile
from frazil.storage.new_file import NewFile
from frazil.storage.object_deletes import delete_object, delete_objects
from frazil.storage.object_requests import ObjectKey, ObjectRequests, Outcome, error_of, place_of
from frazil.storage.object_service import ObjectService

_ROUNDS: Final = 3
_TAKEN: Final = (412, 304)
_TOTAL: Final = re.compile(r"bytes .*/([0-9]{1,18})")


def _new_id() -> str:
    return uuid.uuid4().hex


class ObjectStorage(Storage):
    """The buckets of one service, by locations of its schemes; `s3:`, `s3a:` and `s3n:` name the same objects."""

    __slots__ = ("_has_conditions", "_http", "_new_id", "_part_bytes", "_requests", "_schemes")

    requests_kind: type[ObjectRequests] = ObjectRequests
    parts_kind: type[PartedNewFile] = PartedNewFile

    def __init__(
        self,
        service: ObjectService,
        *,
        schemes: Iterable[str] = ("s3", "s3a", "s3n"),
        http: HttpClient | None = None,
        requests: Callable[[ObjectService, HttpClient], ObjectRequests] | None = None,
        new_id: Callable[[], str] = _new_id,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._schemes = frozenset(schemes)
        self._http = HttpClient() if http is None else http
        self._requests = (self.requests_kind if requests is None else requests)(service, self._http)
        self._new_id = new_id
        self._part_bytes = part_bytes
        # The test results by bucket. Two threads may both test; they get the same result.
        self._has_conditions: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"ObjectStorage({self._requests.service.without_secrets()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        reached = (self._http.connect_timeout, self._http.timeout, self._http.proxy)
        return _rebuild, (type(self), self._requests.service.without_secrets(), tuple(sorted(self._schemes)), reached)

    def __copy__(self) -> ObjectStorage:
        return self

    def __deepcopy__(self, memo: object) -> ObjectStorage:
        return self

    # Reading

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file; refuse one larger than `max_bytes`."""
        key = self._file(path)
        outcome = self._requests.send("GET", key, max_bytes=max_bytes)
        if outcome.answer is None or not outcome.is_success:
            raise self._requests.refused("read", key, outcome)
        if not outcome.answer.is_read:
            size = outcome.answer.body_length
            raise too_large(path, max_bytes + 1 if size is None else size, max_bytes)
        return outcome.answer.body

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; fail if the file ends before."""
        check_range(path, offset, length)
        key = self._file(path)
        if length == 0:
            size = self.size(path)
            if offset > size:
                raise too_short(path, size, offset, length)
            return b""
        range_header = {"range": f"bytes={offset}-{offset + length - 1}"}
        outcome = self._requests.send("GET", key, headers=range_header, min_bytes=length, max_bytes=length)
        answer = outcome.answer
        if answer is not None and answer.status == 206 and answer.is_read:
            return answer.body
        if answer is not None and answer.status in (206, 416):
            total = _TOTAL.fullmatch(answer.headers.get("content-range", ""))
            size = self.size(path) if total is None else int(total.group(1))
            if offset + length > size:
                raise too_short(path, size, offset, length)
        if answer is not None and answer.is_success:
            raise StorageError(f"Cannot read {path}: the server ignores the requested range", path=path)
        raise self._requests.refused("read", key, outcome)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        key = self._file(path)
        outcome = self._requests.send("HEAD", key)
        if outcome.answer is None or not outcome.is_success:
            raise self._requests.refused("read", key, outcome)
        size = outcome.answer.body_length
        if size is None:
            raise StorageError(f"Cannot read {path}: the server does not report its size", path=path)
        return size

    def exists(self, path: str) -> bool:
        """Return whether a file exists; fail if that cannot be determined."""
        key = self._file(path)
        outcome = self._requests.send("HEAD", key)
        if not outcome.is_success and outcome.status != 404:
            raise self._requests.refused("look for", key, outcome)
        return outcome.is_success

    # Writing

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; fail if the name is taken."""
        key = self._file(path)
        if self._keeps_conditions(key):
            self._create(key, data)
            return
        if self.exists(path):
            raise _exists(path)
        self.replace(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        key = self._file(path)
        self._check_conditions(key)
        self._create(key, data)

    def open_new(self, path: str) -> NewFile:
        """Open a new file; a large one is sent in parts, which are invisible until it is published."""
        key = self._file(path)
        service = self._requests.service
        id_ = self._new_id()
        return self.parts_kind(
            key,
            self._requests,
            headers={**service.write_headers(), service.id_header: id_},
            create=self.create,
            publish=lambda target, complete: self._publish_parts(target, id_, complete),
            part_bytes=self._part_bytes,
        )

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, replacing any existing one atomically. The last writer wins."""
        key = self._file(path)
        outcome = self._requests.send("PUT", key, headers=self._requests.service.write_headers(), body=bytes(data))
        if not outcome.is_success:
            raise self._requests.failed_write("write", key, outcome)

    def _create(self, key: ObjectKey, data: bytes) -> None:
        id_ = self._new_id()
        data = bytes(data)
        self._settle(key, id_, lambda: self._put_new(key, data, id_))

    def _put_new(self, key: ObjectKey, data: bytes, id_: str) -> Outcome:
        service = self._requests.service
        headers = dict([service.condition, (service.id_header, id_)])
        return self._requests.send("PUT", key, headers={**service.write_headers(), **headers}, body=data)

    def _publish_parts(self, key: ObjectKey, id_: str, complete: Callable[[bool], Outcome]) -> None:
        """Complete a file that was sent in parts, like `create`."""
        if self._requests.service.has_conditional_parts and self._keeps_conditions(key):
            self._settle(key, id_, lambda: complete(True))
            return
        if self.exists(key.location):
            raise _exists(key.location)
        self._settle(key, id_, lambda: complete(False), is_conditional=False)

    def _settle(self, key: ObjectKey, id_: str, attempt: Callable[[], Outcome], *, is_conditional: bool = True) -> None:
        """Carry out a write that may meet its own object, and raise an error unless it succeeded."""
        outcome = Outcome(None, False)
        may_have_happened = False
        for _ in range(_ROUNDS):
            outcome = attempt()
            if outcome.is_success:
                return
            may_have_happened = may_have_happened or outcome.may_have_happened
            is_taken = self._is_taken(outcome)
            if not is_taken and not may_have_happened and outcome.status != 409:
                raise self._requests.refused("create", key, outcome)
            head = self._requests.send("HEAD", key)
            if head.answer is not None and head.is_success:
                if head.answer.headers.get(self._requests.service.id_header) == id_:
                    return
                if is_conditional:
                    # Attempts of ours that are still under way will be refused.
                    raise _exists(key.location)
                break
            if head.status != 404:
                # The name may be taken by our own object; only reading it would reveal that.
                may_have_happened = may_have_happened or is_taken
                break
            if not is_taken:
                break
            # The name was taken and is free again: its holder has been deleted.
        if may_have_happened:
            raise self._requests.unknown(key, outcome)
        raise self._requests.refused("create", key, outcome)

    def _is_taken(self, outcome: Outcome) -> bool:
        """Return whether a response means that the name is taken."""
        if outcome.status != 409 or outcome.answer is None:
            return outcome.status in _TAKEN
        return error_of(outcome.answer)[0] in self._requests.service.taken_codes

    # The test of conditional writes

    def _check_conditions(self, key: ObjectKey) -> None:
        if not self._keeps_conditions(key):
            raise UnsupportedError(
                f"Cannot create {key.location} exclusively: the store does not refuse to overwrite an object "
                "(If-None-Match), so two writers could both succeed",
                hint="Use a store with conditional writes, or a SQL catalog, which does not need them.",
                path=key.location,
            )

    def _keeps_conditions(self, key: ObjectKey) -> bool:
        if self._requests.service.is_proven:
            return True
        is_conditional = self._has_conditions.get(key.bucket)
        if is_conditional is None:
            is_conditional = self._has_conditions[key.bucket] = self._try_conditions(key)
        return is_conditional

    def _try_conditions(self, beside: ObjectKey) -> bool:
        """Create a small object twice; return whether the second create was refused and the first ID was preserved."""
        folder, slash, _ = beside.key.rpartition("/")
        trial = ObjectKey(beside.bucket, f"{folder}{slash}.{self._new_id()}.trial.tmp", beside.location)
        first, second = self._new_id(), self._new_id()
        created = self._put_new(trial, b"", first)
        try:
            if created.status == 501:
                return False
            if not created.is_success and not self._is_taken(created):
                raise self._requests.refused("write", beside, created)
            again = self._put_new(trial, b"", second)
            if again.is_success:
                return False
            if not self._is_taken(again):
                raise self._requests.refused("write", beside, again)
            head = self._requests.send("HEAD", trial)
            if head.answer is None or not head.is_success:
                raise self._requests.refused("read back what was written beside", beside, head)
            return head.answer.headers.get(self._requests.service.id_header) == first
        finally:
            # If this fails, an empty object remains that nothing refers to.
            self._requests.send("DELETE", trial)

    # Listing and folders

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth; folder markers of other tools are not files."""
        prefix = self._folder(folder)
        root = folder.rstrip("/")
        for page in self._requests.list_pages(prefix, prefix=prefix.key, is_deep=True):
            for key, size, modified_ms in page.objects:
                if key.startswith(prefix.key) and not key.endswith("/"):
                    yield StoredFile(f"{root}/{key[len(prefix.key) :]}", size, modified_ms)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder."""
        folder_key = self._folder(folder)
        start = len(folder_key.key)
        files: set[str] = set()
        folders: set[str] = set()
        for page in self._requests.list_pages(folder_key, prefix=folder_key.key, is_deep=False):
            files.update(key[start:] for key, _, _ in page.objects if key.startswith(folder_key.key))
            folders.update(prefix[start:-1] for prefix in page.prefixes if prefix.startswith(folder_key.key))
        return Children(tuple(sorted(files - {""})), tuple(sorted(folders - {""})))

    def create_folder(self, folder: str) -> None:
        """Create an empty folder, or raise FileAlreadyExistsError; at most one concurrent caller succeeds."""
        key = self._folder(folder)
        if key.key == "":
            raise _exists(folder)
        self._check_conditions(key)
        if self.exists(folder.rstrip("/")) or self._has_any(key, but=None):
            raise _exists(folder)
        self._create(key, b"")

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; ignore a missing one, refuse one that is not empty."""
        key = self._folder(folder)
        if self._has_any(key, but=key.key):
            raise not_empty(folder)
        if key.key != "":
            delete_object(self._requests, key)

    def _has_any(self, prefix: ObjectKey, *, but: str | None) -> bool:
        pages = self._requests.list_pages(prefix, prefix=prefix.key, is_deep=True, max_keys=2)
        return any(key != but for page in pages for key, _, _ in page.objects)

    # Deleting

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; ignore a missing one."""
        delete_object(self._requests, self._file(path))

    def delete_many(self, paths: Iterable[str], *, within: Sequence[str] | None = None) -> dict[str, StorageError]:
        """Delete files, up to a thousand per request; return the errors of those that remain, by path."""
        return delete_objects(self._requests, (self._file(path) for path in paths))

    # Locations

    def _file(self, path: str) -> ObjectKey:
        key = self._parse_key(path)
        if key.key == "" or key.key.endswith("/"):
            raise InvalidRequestError(f"Cannot use the location {path!r} as a file: it names a folder")
        return key

    def _folder(self, folder: str) -> ObjectKey:
        """Return a folder's key, which ends with one slash or is empty for a bucket."""
        key_of_folder = self._parse_key(folder)
        key = key_of_folder.key.rstrip("/")
        return ObjectKey(key_of_folder.bucket, "" if key == "" else f"{key}/", folder)

    def _parse_key(self, path: str) -> ObjectKey:
        scheme = scheme_of(path)
        if scheme not in self._schemes:
            raise InvalidRequestError(
                f"Cannot use the location {path!r}: this storage supports only {', '.join(sorted(self._schemes))}"
            )
        return place_of(path, scheme, self._requests.service.bucket_pattern)


def _rebuild(
    cls: type[ObjectStorage],
    service: ObjectService,
    schemes: tuple[str, ...],
    reached: tuple[float, float, Proxy | None],
) -> ObjectStorage:
    http = HttpClient(connect_timeout=reached[0], timeout=reached[1], proxy=reached[2])
    return cls(service, schemes=schemes, http=http)


def _exists(path: str) -> FileAlreadyExistsError:
    return FileAlreadyExistsError(f"Cannot create {path}: it exists", path=path)
