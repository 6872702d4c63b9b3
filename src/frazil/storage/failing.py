"""A storage that fails on purpose: the n-th call fails as planned, and every call is logged.

It wraps another storage. A test counts the calls of an operation once, then runs the operation again with each type of
fault at each call, and examines the result. Nothing is random: one plan gives one run.

A crash is raised as `SimulatedCrash`, which no `except Exception` catches, and the storage is dead from then on, so
that
clean-up code cannot act, as it could not in a process that has died.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from frazil.errors import FrazilError, InvalidRequestError, StorageError, WriteOutcomeUnknownError
from frazil.storage.base import MAX_READ_BYTES, Children, Storage, StoredFile

T = TypeVar("T")

READS = frozenset({"read", "read_range", "size", "exists", "list", "list_children"})
WRITES = frozenset({"create", "create_exclusive", "replace", "delete", "create_folder", "delete_folder"})


class FaultKind(Enum):
    """The types of faults."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"
    TORN = "the process dies while bytes are written"
    IO_ERROR = "the call fails, and nothing is done"
    NO_SPACE = "the disk is full, and nothing is done"
    APPLIED_BUT_ERROR = "the call is carried out, but its result is lost"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at the n-th call, from 1; with verbs, only calls of those are counted."""

    call: int
    kind: FaultKind
    verbs: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.call < 1:
            raise InvalidRequestError(f"Cannot plan a fault at call {self.call}: calls are counted from 1")
        unknown = (self.verbs or frozenset()) - READS - WRITES
        if unknown:
            raise InvalidRequestError(f"Cannot plan a fault at {min(unknown)!r}: storages have no such operation")


@dataclass(frozen=True, slots=True)
class Call:
    """A logged call, with its fault."""

    number: int
    verb: str
    path: str
    fault: FaultKind | None = None


class SimulatedCrash(BaseException):
    """The process is dead; not an Exception, so that nothing handles it by accident."""


class FailingStorage(Storage):
    """Another storage, with faults.

    A torn `create` leaves part of the file under its name, as a store without atomic writes would. A torn
    `create_exclusive` or `replace`, which are atomic everywhere, leaves part of it under a temporary name.
    """

    __slots__ = ("_counts", "_lock", "calls", "faults", "has_crashed", "inner")

    def __init__(self, inner: Storage, *faults: Fault) -> None:
        self.inner = inner
        self.faults = faults
        self.calls: list[Call] = []
        self.has_crashed = False
        self._counts = [0] * len(faults)
        self._lock = threading.Lock()

    def plan_faults(self, *faults: Fault) -> None:
        """Replace the planned faults. The next call is number 1."""
        with self._lock:
            self.faults = faults
            self._counts = [0] * len(faults)

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        """Return a whole file, or fail as planned."""
        return self._run("read", path, lambda: self.inner.read(path, max_bytes=max_bytes))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return part of a file, or fail as planned."""
        return self._run("read_range", path, lambda: self.inner.read_range(path, offset, length))

    def size(self, path: str) -> int:
        """Return a file's size, or fail as planned."""
        return self._run("size", path, lambda: self.inner.size(path))

    def exists(self, path: str) -> bool:
        """Return whether a file exists, or fail as planned."""
        return self._run("exists", path, lambda: self.inner.exists(path))

    def create(self, path: str, data: bytes) -> None:
        """Write a new file, or fail as planned."""
        self._run("create", path, lambda: self.inner.create(path, data), data)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Write a new file exclusively, or fail as planned."""
        self._run("create_exclusive", path, lambda: self.inner.create_exclusive(path, data), data)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file over another, or fail as planned."""
        self._run("replace", path, lambda: self.inner.replace(path, data), data)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder, or fail as planned at the call."""
        return iter(self._run("list", folder, lambda: tuple(self.inner.list(folder))))

    def list_children(self, folder: str) -> Children:
        """Return the names inside a folder, or fail as planned."""
        return self._run("list_children", folder, lambda: self.inner.list_children(folder))

    def create_folder(self, folder: str) -> None:
        """Create an empty folder, or fail as planned."""
        self._run("create_folder", folder, lambda: self.inner.create_folder(folder))

    def delete_folder(self, folder: str, *, within: Sequence[str] | None = None) -> None:
        """Remove an empty folder, or fail as planned."""
        self._run("delete_folder", folder, lambda: self.inner.delete_folder(folder, within=within))

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        """Delete a file, or fail as planned."""
        self._run("delete", path, lambda: self.inner.delete(path, within=within))

    def resolve_folder(self, folder: str) -> str:
        """Return a folder with links resolved; never fails and is not logged."""
        return self.inner.resolve_folder(folder)

    def resolve_files(self, paths: Sequence[str]) -> Sequence[str]:
        """Return files with links resolved; never fails and is not logged."""
        return self.inner.resolve_files(paths)

    def _run(self, verb: str, path: str, act: Callable[[], T], data: bytes | None = None) -> T:
        fault_kind = self._next(verb, path)
        if fault_kind is None:
            return act()
        if fault_kind is FaultKind.TORN and data is not None:
            self._tear(verb, path, data)
        if fault_kind in (FaultKind.CRASH_BEFORE, FaultKind.TORN):
            raise self._crash(fault_kind, verb, path)
        if fault_kind is FaultKind.CRASH_AFTER:
            with contextlib.suppress(FrazilError):
                act()
            raise self._crash(fault_kind, verb, path)
        if fault_kind is FaultKind.APPLIED_BUT_ERROR and verb in WRITES:
            # Whatever the result, even a refusal, it does not reach the caller.
            with contextlib.suppress(FrazilError):
                act()
            raise WriteOutcomeUnknownError(
                f"Cannot tell whether {verb} of {path} happened: {fault_kind.value}", path=path
            )
        raise StorageError(f"Cannot {verb} {path}: {fault_kind.value}", path=path)

    def _next(self, verb: str, path: str) -> FaultKind | None:
        with self._lock:
            if self.has_crashed:
                raise SimulatedCrash(f"{verb} {path} after the crash")
            fault_kind: FaultKind | None = None
            for index, fault in enumerate(self.faults):
                if fault.verbs is None or verb in fault.verbs:
                    self._counts[index] += 1
                    if self._counts[index] == fault.call:
                        fault_kind = fault.kind
            self.calls.append(Call(len(self.calls) + 1, verb, path, fault_kind))
            return fault_kind

    def _tear(self, verb: str, path: str, data: bytes) -> None:
        name = path if verb == "create" else f"{path}.torn.tmp"
        self.inner.create(name, data[: len(data) // 2])

    def _crash(self, fault_kind: FaultKind, verb: str, path: str) -> SimulatedCrash:
        with self._lock:
            self.has_crashed = True
        return SimulatedCrash(f"{verb} {path}: {fault_kind.value}")
