"""The lock of a table in the Hive Metastore, as other clients take it before they swap a pointer.

Iceberg Java and PyIceberg lock a table, read its pointer, and replace the table without a check: they overwrite the
commit of a client that does not hold the lock. So commits hold it too, though the metastore compares the pointer for
them (`catalog/hive/hive_pointers.py`). It is held for as long as it takes to read the table and to alter it.

- In front of the server's lock there is one of this process for each table, so that its threads do not all poll.
- A lock is waited for in steps that grow from `check_seconds`, for at most `timeout_seconds`.
- A lock whose answer was lost is looked for by its agent's name, which is unique.
- The server forgets a lock that it has not heard of for some minutes; `keep` says in time that it is still held. Many
  servers forget none, unless they compact as well. So a lock that another frazil left behind, as its agent's name says,
  is released by the next waiting writer: what that one might still do is refused, if the pointer has moved.
- A server whose lock tables were never made refuses to lock and to show locks, so no client can hold one: then
  there is nothing to hold, and the comparison alone guards the pointer.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from frazil.catalog.hive.connection import CallLost, CallNotSent, CallRefused
from frazil.catalog.hive.metastore import LOCK_ACQUIRED, LOCK_WAITING, Lock, Metastore
from frazil.errors import CommitConflictError, StorageError
from frazil.threads import FairLock

_AGENT: Final = "frazil-"
_CREATION_TRIES: Final = 5
_CERTAIN: Final = 3
"""How often a server must fail to lock and to show locks before it is taken for one that has none."""
_LOCKLESS_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 5.0
_GROWTH: Final = 1.5


@dataclass(frozen=True, slots=True)
class LockSettings:
    """How long a lock is waited for, and how often it is asked for."""

    timeout_seconds: float = 180.0
    check_seconds: float = 0.05
    most_check_seconds: float = 5.0
    heartbeat_seconds: float = 60.0
    stale_seconds: float = 150.0
    """A frazil lock without a heartbeat for this long counts as abandoned."""


class HeldLock:
    """A lock that is held, or none where the server has no locks."""

    __slots__ = ("_clock", "_heard", "_heartbeat_seconds", "_metastore", "lock_id")

    def __init__(
        self, metastore: Metastore, lock_id: int | None, heartbeat_seconds: float, clock: Callable[[], float]
    ) -> None:
        self._metastore = metastore
        self._heartbeat_seconds = heartbeat_seconds
        self._clock = clock
        self._heard = clock()
        self.lock_id = lock_id

    def keep(self) -> None:
        """Say that the lock is held, if the server has not heard so for a while; raise if it is lost."""
        if self.lock_id is None or self._clock() - self._heard < self._heartbeat_seconds:
            return
        try:
            self._metastore.heartbeat(self.lock_id)
        except CallRefused as error:
            raise CommitConflictError(
                f"Cannot go on with the commit: the Hive Metastore gave its lock away ({error})"
            ) from error
        self._heard = self._clock()


class TableLocks:
    """The locks of a metastore's tables."""

    def __init__(
        self,
        metastore: Metastore,
        settings: LockSettings,
        *,
        user: str,
        new_id: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metastore = metastore
        self._settings = settings
        self._user = user
        self._new_id = new_id
        self._clock = clock
        self._guard = threading.Lock()
        self._own: dict[tuple[int, str, str], FairLock] = {}
        self._lockless_until = 0.0
        self._was_held = False

    @contextlib.contextmanager
    def held(self, database: str, name: str, *, is_wanted: bool) -> Iterator[HeldLock]:
        """Hold a table's lock, if it is wanted and the server has locks."""
        if not is_wanted:
            yield HeldLock(self._metastore, None, 0, self._clock)
            return
        with self._guard:
            # A child of this process has a lock of its own: this one is never released there.
            own = self._own.setdefault((os.getpid(), database, name), FairLock())
        if not own.acquire(self._settings.timeout_seconds):
            raise self._timed_out(database, name)
        try:
            lock_id = None if self._clock() < self._lockless_until else self._acquire(database, name)
            try:
                yield HeldLock(self._metastore, lock_id, self._settings.heartbeat_seconds, self._clock)
            finally:
                if lock_id is not None:
                    self._release(lock_id)
        finally:
            own.release()

    def _acquire(self, database: str, name: str) -> int | None:
        agent = f"{_AGENT}{self._new_id()}"
        lock = self._create(database, name, agent)
        if lock is None:
            return None
        begun, wait = self._clock(), self._settings.check_seconds
        deadline, look = (
            begun + self._settings.timeout_seconds,
            begun + min(_LOOK_SECONDS, self._settings.stale_seconds),
        )
        try:
            while lock.state == LOCK_WAITING:
                if self._clock() > deadline:
                    raise self._timed_out(database, name)
                self._metastore.sleep(wait)
                wait = min(wait * _GROWTH, self._settings.most_check_seconds)
                if self._clock() > look:
                    look = self._clock() + _LOOK_SECONDS
                    self._free_stale(database, name, lock.lock_id)
                lock = self._metastore.check_lock(lock.lock_id)
            if lock.state != LOCK_ACQUIRED:
                raise CommitConflictError(
                    f"Cannot lock {database}.{name}: the Hive Metastore ended the request in state {lock.state}"
                )
        except CallRefused as error:
            raise CommitConflictError(f"Cannot lock {database}.{name}: {error.exception}: {error}") from error
        except BaseException:
            self._release(lock.lock_id)
            raise
        self._was_held = True
        return lock.lock_id

    def _free_stale(self, database: str, name: str, waiting: int) -> None:
        """Give back locks that writers of frazil's left behind, by the time of the server."""
        with contextlib.suppress(CallRefused, StorageError):
            locks = self._metastore.locks(database, name)
            # The server has just heard of the lock that waits.
            now_ms = next((lock.heard_ms for lock in locks if lock.lock_id == waiting), 0)
            for lock in locks:
                is_stale = lock.heard_ms < now_ms - self._settings.stale_seconds * 1000
                if lock.lock_id != waiting and lock.agent.startswith(_AGENT) and is_stale:
                    self._metastore.unlock(lock.lock_id)

    def _create(self, database: str, name: str, agent: str) -> Lock | None:
        """Ask for a lock; None if the server has no lock tables."""
        problem: Exception | None = None
        failures = 0
        for retry in range(_CREATION_TRIES):
            if retry > 0:
                self._metastore.sleep(self._settings.check_seconds * 2**retry)
            try:
                return self._metastore.lock(database, name, agent, self._user, _host_name())
            except CallNotSent as error:
                problem = error
                continue
            except (CallRefused, CallLost) as error:
                problem = error
            try:
                # Was it made after all?
                matching = next((lock for lock in self._metastore.locks(database, name) if lock.agent == agent), None)
            except (CallRefused, StorageError):
                failures += 1
                if failures == _CERTAIN and not self._was_held and self._is_reachable():
                    self._lockless_until = self._clock() + _LOCKLESS_SECONDS
                    return None
                continue
            if matching is not None:
                return matching
        raise StorageError(
            f"Cannot lock {database}.{name} in the Hive Metastore at {self._metastore.client.label}: {problem}",
            hint="Set the table's property engine.hive.lock-enabled to false if no client may lock there.",
        ) from problem

    def _is_reachable(self) -> bool:
        try:
            self._metastore.databases()
        except (CallRefused, StorageError):
            return False
        return True

    def _release(self, lock_id: int) -> None:
        # A lock that cannot be given back now ends by itself.
        with contextlib.suppress(CallRefused, StorageError):
            self._metastore.unlock(lock_id)

    def _timed_out(self, database: str, name: str) -> CommitConflictError:
        holders: list[str] = []
        with contextlib.suppress(CallRefused, StorageError):
            holders = [lock.holder for lock in self._metastore.locks(database, name) if lock.state == LOCK_ACQUIRED]
        by = f" by {', '.join(holders)}" if holders else ""
        return CommitConflictError(
            f"Cannot lock {database}.{name}: its lock in the Hive Metastore was held{by} for "
            f"{self._settings.timeout_seconds:g} seconds",
            hint="A lock that a writer left behind ends when the server's hive.txn.timeout is over.",
        )


def system_user() -> str:
    """Return the name of the user that runs this process."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _host_name() -> str:
    return socket.gethostname() or "localhost"
