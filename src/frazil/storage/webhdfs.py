"""Files in HDFS, over HTTP: the name nodes' WebHDFS, or an HttpFS gateway.

A name node answers requests about names, and redirects reads and writes of bytes to a data node. Names are atomic
there, and so is a rename; a file that is being written is seen, though. So a file is written under a name of its
own beside its target and then renamed:

1. The bytes go to `.<id>.tmp` in the target's folder. Whatever goes wrong here, nothing has happened to the target.
2. The rename takes place only if the target's name is free. Of all who try, one succeeds.
3. If its answer is lost, it is sent again. The temporary name is known to this call alone: if it is gone, the rename
   has happened; if it is there and the target is taken, another writer was first.

Who asks is a user's name, as clusters without Kerberos believe it, or a delegation token. Both go to the name nodes
that the user configured and, as the name node puts them into its redirects, to data nodes of that cluster: a redirect
is followed once, to the path that was asked for, over TLS if the name node was reached so, and if `webhdfs.data-nodes`
is set, to those only. Locations of other clusters, which only metadata names, are never contacted.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec

from frazil.errors import (
    AccessDeniedError,
    FileAlreadyExistsError,
    InvalidPropertyError,
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
from frazil.storage.hdfs_properties import DATA_NODES, ENDPOINT, HDFS_SCHEMES, TOKEN, USER
from frazil.storage.http import Answer, AnswerLost, HttpClient, RequestNotSent
from frazil.storage.locations import scheme_of
from frazil.storage.origin import Origin, parse_endpoint, split_url

AnswerT = TypeVar("AnswerT")

_PREFIX: Final = "/webhdfs/v1"
_NAME: Final = re.compile(r"[\w.@\-$]{1,255}")
_TRIES: Final = 4
_WAIT_SECONDS: Final = 0.2
_MAX_LIST_BYTES: Final = 1 << 29
_OTHER_NODE: Final = frozenset({"StandbyException", "RetriableException", "ObserverRetryOnActiveException"})
_DENIED: Final = frozenset({"AccessControlException", "SecurityException", "AuthenticationException", "InvalidToken"})
_TAKEN: Final = frozenset({"FileAlreadyExistsException", "AlreadyBeingCreatedException"})


@dataclass(frozen=True, slots=True)
class HdfsService:
    """A cluster: its name nodes or gateways, the authorities of its locations, and who asks. No secret is shown."""

    endpoints: tuple[Origin, ...]
    authorities: frozenset[str]
    user: str | None = None
    token: str | None = field(default=None, repr=False)
    data_nodes: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return HdfsService, (self.endpoints, self.authorities, self.user, None, self.data_nodes)


class _Refusal(Exception):
    """An answer that says no."""

    def __init__(self, status: int, exception: str, message: str) -> None:
        super().__init__(f"{exception or status}: {message}")
        self.status = status
        self.exception = exception
        self.message = message


class _Lost(Exception):
    """A request that may have been carried out."""


def hdfs_service(properties: Mapping[str, str], places: Sequence[str]) -> HdfsService:
    """Return the cluster that properties describe; its locations have the authority of one of the places."""
    own = [(scheme_of(place) or "", urlsplit(place).netloc) for place in places]
    authorities = frozenset(authority for scheme, authority in own if scheme in HDFS_SCHEMES)
    text = properties.get(ENDPOINT)
    if text is not None:
        endpoints = tuple(parse_endpoint(ENDPOINT, address.strip()) for address in text.split(","))
    else:
        named = {scheme: authority for scheme, authority in own if scheme in ("webhdfs", "swebhdfs")}
        endpoints = tuple(
            parse_endpoint("warehouse", f"{'https' if scheme == 'swebhdfs' else 'http'}://{authority}")
            for scheme, authority in named.items()
        )
    if not endpoints:
        raise InvalidRequestError(
            "Cannot use HDFS: there is no address of a name node or gateway",
            hint=f"Set {ENDPOINT} to its HTTP address, such as http://namenode:9870, or several with commas between.",
        )
    user = next((properties[name] for name in USER if name in properties), None)
    token = properties.get(TOKEN)
    if user is not None and _NAME.fullmatch(user) is None:
        raise InvalidPropertyError(f"Cannot use {USER[0]}: {user[:40]!r} is not a user's name")
    if token is not None and (not token.isascii() or not token.isprintable() or token == "" or " " in token):
        raise InvalidPropertyError(f"Cannot use {TOKEN}: it is empty or has odd characters")
    nodes = tuple(node.strip().lower() for node in properties.get(DATA_NODES, "").split(",") if node.strip())
    return HdfsService(endpoints, authorities, user, token, nodes)


class HdfsStorage(Storage):
    """The files of one cluster, by locations of `hdfs:`, `webhdfs:` and `swebhdfs:`."""

    __slots__ = ("_http", "_new_id", "_service", "_sleep")

    def __init__(
        self,
        service: HdfsService,
        *,
        http: HttpClient | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service = service
        self._http = HttpClient() if http is None else http
        self._new_id = new_id
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"HdfsStorage({', '.join(map(str, self._service.endpoints))})"

    def __reduce__(self) -> tuple[object, ...]:
        return HdfsStorage, (self._service,)

    def __copy__(self) -> HdfsStorage:
        return self

    def __deepcopy__(self, memo: object) -> HdfsStorage:
        return self

    # Reading

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file; refuse one that is larger than `max_bytes`."""
        answer = self._asked("read", path, lambda: self._bytes(path, "GET", {"op": "OPEN"}, max_bytes=max_bytes))
        if not answer.is_read:
            size = answer.body_length
            raise too_large(path, max_bytes + 1 if size is None else size, max_bytes)
        return answer.body

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; a file that ends before is an error."""
        check_range(path, offset, length)
        if length == 0:
            size = self.size(path)
            if offset > size:
                raise too_short(path, size, offset, length)
            return b""
        parameters = {"op": "OPEN", "offset": str(offset), "length": str(length)}
        try:
            answer = self._repeated(
                "read", path, lambda: self._bytes(path, "GET", parameters, min_bytes=length, max_bytes=length)
            )
        except _Refusal as error:
            size = self.size(path)
            if offset + length > size:
                raise too_short(path, size, offset, length) from error
            raise self._failed("read", path, error) from error
        if answer.is_read:
            return answer.body
        size = self.size(path)
        if offset + length > size:
            raise too_short(path, size, offset, length)
        raise StorageError(f"Cannot read {path}: the server does not keep to the range that was asked", path=path)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        status = self._asked("read", path, lambda: self._status(path))
        if status is None or status.get("type") != "FILE":
            raise _missing(path)
        return int(status["length"])

    def exists(self, path: str) -> bool:
        """Return whether a file exists; raise if that is unknown."""
        status = self._asked("look for", path, lambda: self._status(path))
        return status is not None and status.get("type") == "FILE"

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth."""
        root = folder.rstrip("/")
        for entry in self._entries(folder):
            name = f"{root}/{entry['pathSuffix']}"
            if entry["type"] == "FILE":
                yield StoredFile(name, int(entry["length"]), int(entry["modificationTime"]))
            elif entry["type"] == "DIRECTORY":
                yield from self.list(name)

    def list_children(self, folder: str) -> Children:
        """Return the names of the files and folders directly inside a folder."""
        entries = self._entries(folder)
        names = {
            file_type: tuple(sorted(entry["pathSuffix"] for entry in entries if entry["type"] == file_type))
            for file_type in ("FILE", "DIRECTORY")
        }
        return Children(names["FILE"], names["DIRECTORY"])

    # Writing

    def create(self, path: str, data: bytes) -> None:
        """Write a new file; refuse a name that is taken."""
        self.create_exclusive(path, data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        if self._asked("look for", path, lambda: self._status(path)) is not None:
            raise _exists(path)
        temporary = self._write_beside(path, bytes(data))
        self._rename(temporary, path, may_replace=False)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file over another of its name, if there is one; readers see either. The last writer wins."""
        temporary = self._write_beside(path, bytes(data))
        self._rename(temporary, path, may_replace=True)

    def create_folder(self, folder: str) -> None:
        """Make an empty folder, or raise FileAlreadyExistsError; of all who try one name, one succeeds at most."""
        path = folder.rstrip("/")
        if self._asked("look for", path, lambda: self._status(path)) is not None:
            raise _exists(folder)
        above = path.rpartition("/")[0]
        temporary = f"{above}/.{self._new_id()}.tmp"
        self._asked("create", folder, lambda: self._json(temporary, "PUT", {"op": "MKDIRS"}))
        self._rename(temporary, path, may_replace=False)

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file; one that is not there is no error."""
        self._asked("delete", path, lambda: self._json(path, "DELETE", {"op": "DELETE", "recursive": "false"}))

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder; one that is not there is no error, one that is not empty is."""
        path = folder.rstrip("/")
        parameters = {"op": "DELETE", "recursive": "false"}
        try:
            self._repeated("delete", folder, lambda: self._json(path, "DELETE", parameters))
        except _Refusal as error:
            if "NotEmpty" in error.exception or "non empty" in error.message or "not empty" in error.message:
                raise not_empty(folder) from error
            raise self._failed("delete", folder, error) from error

    def _write_beside(self, path: str, data: bytes) -> str:
        """Write bytes under a name of their own in the folder of a path; return where."""
        folder = path.rpartition("/")[0]
        problem: Exception | None = None
        for retry in range(_TRIES):
            if retry > 0:
                self._sleep(_WAIT_SECONDS * retry)
            temporary = f"{folder}/.{self._new_id()}.tmp"
            parameters = {"op": "CREATE", "overwrite": "false", "data": "true"}
            try:
                self._bytes(temporary, "PUT", parameters, data=data)
                return temporary
            except (_Lost, RequestNotSent) as error:
                problem = error
                self._forget(temporary)
            except _Refusal as error:
                if error.status < 500:
                    raise self._failed("write", path, error) from error
                problem = error
                self._forget(temporary)
        raise StorageError(f"Cannot write {path}: {problem}", path=path) from problem

    def _forget(self, temporary: str) -> None:
        """Delete a temporary file if possible; nothing refers to it."""
        try:
            self._json(temporary, "DELETE", {"op": "DELETE", "recursive": "false"})
        except (_Lost, _Refusal, RequestNotSent):
            return

    def _rename(self, temporary: str, path: str, *, may_replace: bool) -> None:
        parameters = {
            "op": "RENAME",
            "destination": self._path(path),
            "renameoptions": "OVERWRITE" if may_replace else "NONE",
        }
        may_have_happened = False
        problem: Exception | None = None
        for retry in range(_TRIES):
            if retry > 0:
                self._sleep(_WAIT_SECONDS * retry)
            try:
                answer = self._json(temporary, "PUT", parameters)
            except (_Lost, RequestNotSent) as error:
                may_have_happened = may_have_happened or isinstance(error, _Lost)
                problem = error
                continue
            except _Refusal as error:
                if error.status >= 500:
                    may_have_happened, problem = True, error
                    continue
                if error.exception == "FileNotFoundException" and may_have_happened:
                    return
                if error.exception in _TAKEN or "destination exists" in error.message.lower():
                    self._settle_taken(temporary, path)
                    return
                self._forget(temporary)
                raise self._failed("create", path, error) from error
            if answer.get("boolean") is False:
                # A gateway, which renames without options.
                if may_replace:
                    self._forget(temporary)
                    raise UnsupportedError(f"Cannot replace {path}: the gateway renames over nothing", path=path)
                self._settle_taken(temporary, path)
            elif answer.get("boolean") is True:
                self._check_renamed(temporary, path)
            return
        if not may_have_happened:
            self._forget(temporary)
            raise StorageError(f"Cannot create {path}: {problem}", path=path) from problem
        raise WriteOutcomeUnknownError(f"Cannot tell whether {path} was created: {problem}", path=path) from problem

    def _settle_taken(self, temporary: str, path: str) -> None:
        """Raise if another has a name; our own rename may have taken it, which then has used the temporary name up."""
        try:
            is_there = self._repeated("look for", path, lambda: self._status(temporary)) is not None
        except (_Refusal, StorageError) as error:
            raise WriteOutcomeUnknownError(f"Cannot tell whether {path} was created: {error}", path=path) from error
        if is_there:
            self._forget(temporary)
            raise _exists(path)

    def _check_renamed(self, temporary: str, path: str) -> None:
        """Take a file back that a rename without options has put into a folder of the name."""
        inside = f"{path}/{temporary.rpartition('/')[2]}"
        if self._asked("look for", path, lambda: self._status(inside)) is not None:
            self._forget(inside)
            raise _exists(path)

    # Requests

    def _entries(self, folder: str) -> tuple[dict[str, Any], ...]:
        path = folder.rstrip("/")
        try:
            answer = self._repeated("list", folder, lambda: self._json(path, "GET", {"op": "LISTSTATUS"}))
        except _Refusal as error:
            if error.exception == "FileNotFoundException":
                return ()
            raise self._failed("list", folder, error) from error
        reply = answer.get("FileStatuses")
        entries = reply.get("FileStatus") if isinstance(reply, dict) else None
        if not isinstance(entries, list):
            raise StorageError(f"Cannot list {folder}: the answer is not a listing", path=folder)
        # A file lists itself, without a name.
        return tuple(entry for entry in entries if isinstance(entry, dict) and _is_entry(entry))

    def _status(self, path: str) -> dict[str, Any] | None:
        try:
            reply = self._json(path, "GET", {"op": "GETFILESTATUS"}).get("FileStatus")
        except _Refusal as error:
            if error.exception == "FileNotFoundException":
                return None
            raise
        return reply if isinstance(reply, dict) else None

    def _asked(self, verb: str, path: str, ask: Callable[[], AnswerT]) -> AnswerT:
        try:
            return self._repeated(verb, path, ask)
        except _Refusal as error:
            raise self._failed(verb, path, error) from error

    def _repeated(self, verb: str, path: str, ask: Callable[[], AnswerT]) -> AnswerT:
        """Ask again after lost answers; for requests that may be carried out twice."""
        problem: Exception | None = None
        for retry in range(_TRIES):
            if retry > 0:
                self._sleep(_WAIT_SECONDS * retry)
            try:
                return ask()
            except (_Lost, RequestNotSent) as error:
                problem = error
            except _Refusal as error:
                if error.status < 500:
                    raise
                problem = error
        raise StorageError(f"Cannot {verb} {path}: {problem}", path=path) from problem

    def _failed(self, verb: str, path: str, error: _Refusal) -> StorageError | AccessDeniedError:
        if error.exception == "FileNotFoundException":
            return _missing(path)
        text = str(error)
        if self._service.token is not None:
            text = text.replace(self._service.token, "***")
        if error.exception in _DENIED or error.status == 401:
            return AccessDeniedError(
                f"Cannot {verb} {path}: {text[:500]}",
                hint=f"Set {USER[0]}, or {TOKEN} on a cluster with Kerberos, which is not built itself.",
            )
        return StorageError(f"Cannot {verb} {path}: {text[:500]}", path=path)

    def _json(self, path: str, method: str, query: Mapping[str, str]) -> dict[str, Any]:
        answer = self._send(path, method, query, max_bytes=_MAX_LIST_BYTES)
        if answer.status in (301, 302, 303, 307, 308):
            raise _Refusal(answer.status, "", "an unexpected redirect")
        return _decoded(answer.body)

    def _bytes(
        self,
        path: str,
        method: str,
        query: Mapping[str, str],
        *,
        data: bytes = b"",
        min_bytes: int = 0,
        max_bytes: int = 1 << 16,
    ) -> Answer:
        """Read or write a file's bytes, at the data node that a name node names; a gateway does it itself."""
        # A name node that redirects must not get the bytes, and a gateway asks for them in the same way.
        answer = self._send(path, method, query, min_bytes=min_bytes, max_bytes=max_bytes)
        if answer.status not in (302, 303, 307, 308):
            return answer
        origin, target = self._redirect(path, query["op"], answer)
        headers = {"host": origin.authority, "accept-encoding": "identity"}
        if method == "PUT":
            headers["content-type"] = "application/octet-stream"
        try:
            reply = self._http.send(origin, method, target, headers, data, min_bytes=min_bytes, max_bytes=max_bytes)
        except AnswerLost as error:
            raise _Lost(str(error)) from error
        if not reply.is_success:
            raise _refusal(reply)
        return reply

    def _send(self, path: str, method: str, query: Mapping[str, str], *, min_bytes: int = 0, max_bytes: int) -> Answer:
        """Ask the name nodes in turn; one that is not the active one refuses."""
        service = self._service
        more = {} if service.token is not None or service.user is None else {"user.name": service.user}
        more |= {} if service.token is None else {"delegation": service.token}
        pairs = "&".join(f"{name}={quote(value, safe='')}" for name, value in {**query, **more}.items())
        target = f"{_PREFIX}{quote(self._path(path), safe='/')}?{pairs}"
        problem: Exception = RequestNotSent("no name node")
        for origin in service.endpoints:
            headers = {"host": origin.authority, "accept-encoding": "identity"}
            if method == "PUT" and query["op"] == "CREATE":
                headers["content-type"] = "application/octet-stream"
            try:
                answer = self._http.send(origin, method, target, headers, min_bytes=min_bytes, max_bytes=max_bytes)
            except RequestNotSent as error:
                problem = error
                continue
            except AnswerLost as error:
                raise _Lost(str(error)) from error
            if answer.is_success or 300 <= answer.status < 400:
                return answer
            refusal = _refusal(answer)
            if refusal.exception not in _OTHER_NODE:
                raise refusal
            problem = RequestNotSent(str(refusal))
        raise problem

    def _redirect(self, path: str, op: str, answer: Answer) -> tuple[Origin, str]:
        """Return where a name node sends a request, or refuse a place that is none of its data nodes."""
        url = answer.headers.get("location", "")
        origin, target = split_url(url)
        parts = urlsplit(url)
        asked = unquote(parts.path) == f"{_PREFIX}{self._path(path)}"
        ops = [value.upper() for name, value in parse_qsl(parts.query) if name.lower() == "op"]
        nodes = self._service.data_nodes
        is_known = not nodes or any(origin.host == node or origin.host.endswith(f".{node}") for node in nodes)
        is_private = origin.is_tls or not all(endpoint.is_tls for endpoint in self._service.endpoints)
        if not asked or ops != [op] or not is_known or not is_private:
            raise StorageError(
                f"Cannot use {path}: the name node redirects to {origin}, which is not taken for a data node of its "
                "cluster",
                hint=f"Name the hosts or domains of the data nodes in {DATA_NODES}.",
                path=path,
            )
        return origin, target

    def _path(self, location: str) -> str:
        """Return the path of a location in the cluster, or refuse another cluster's."""
        scheme = scheme_of(location)
        if scheme not in HDFS_SCHEMES:
            raise InvalidRequestError(f"Cannot use the location {location!r}: it is not in HDFS")
        rest = location[len(scheme) + 1 :]
        authority = ""
        if rest.startswith("//"):
            authority, slash, below = rest[2:].partition("/")
            rest = slash + below
        if authority not in self._service.authorities | {""}:
            raise InvalidRequestError(
                f"Cannot use the location {location!r}: {authority} is not the cluster of this lake",
                hint="Only the cluster of the warehouse, of read.roots and of delete.roots is used.",
            )
        steps = rest.split("/")[1:]
        if not rest.startswith("/") or any(step in (".", "..") or "\0" in step for step in steps):
            raise InvalidRequestError(f"Cannot use the location {location!r}: it is not the absolute path of a file")
        return rest


def _is_entry(entry: Mapping[str, Any]) -> bool:
    name = entry.get("pathSuffix")
    is_name = isinstance(name, str) and name not in ("", ".", "..") and "/" not in name
    return is_name and isinstance(entry.get("type"), str) and isinstance(entry.get("length", 0), int)


def _decoded(body: bytes) -> dict[str, Any]:
    if body == b"":
        return {}
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Lost("the answer is not JSON") from error
    if not isinstance(reply, dict):
        raise _Lost("the answer is not a JSON object")
    return reply


def _refusal(answer: Answer) -> _Refusal:
    try:
        remote = _decoded(answer.body).get("RemoteException")
    except _Lost:
        remote = None
    if not isinstance(remote, dict):
        return _Refusal(answer.status, "", f"status {answer.status}")
    message = str(remote.get("message", "")).partition("\n")[0]
    return _Refusal(answer.status, str(remote.get("exception", "")), message[:500])


def _missing(path: str) -> MissingFileError:
    return MissingFileError(f"Cannot read {path}: the file does not exist", path=path)


def _exists(path: str) -> FileAlreadyExistsError:
    return FileAlreadyExistsError(f"Cannot create {path}: it exists", path=path)
