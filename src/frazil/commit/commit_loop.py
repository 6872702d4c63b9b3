"""The retry loop of commits, for tables and views: from a change to a known outcome.

    1. send       send the change, prepared on some state, to the catalog
    2. Committed  done
           Rejected   another writer came first. Wait, prepare the change again on the present state, which may show
                      that it was committed after all, and go to 1. Conflicts that a retry cannot resolve end the loop,
                      as do the limits of `commit.retry.*`
           Unknown    the response was lost. Ask the catalog for the outcome, with waits of `commit.status-check.*`,
                      until it is one of the other two; if it stays unknown, raise CommitStateUnknownError

`commit/transaction.py` describes the commit of tables and why it is safe, `commit/change_view.py` that of views.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Protocol

from frazil.catalog.base import Catalog
from frazil.catalog.outcomes import Committed, LoadedT, Outcome, Rejected, Unknown
from frazil.errors import CommitConflictError, CommitError, FrazilError
from frazil.spec import properties
from frazil.spec.property_kinds import Property, read_property

_MIN_JITTER = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Waiting and randomness, injected for tests. Times are in seconds."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random


SYSTEM_PACE = Pace()

_check: ContextVar[Callable[[str], None] | None] = ContextVar("check", default=None)


@contextlib.contextmanager
def checking_before_commits(check: Callable[[str], None]) -> Iterator[None]:
    """Call `check` with the names of the tables before each commit within; it raises to prevent the commit."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


class Committing(Protocol[LoadedT]):
    """A change to be committed, prepared on some state."""

    @property
    def names(self) -> str:
        """The names of the changed tables or views, for messages."""

    def send(self) -> Outcome[LoadedT]:
        """Send the change to the catalog."""

    def rebase(self, attempt: int) -> tuple[LoadedT, ...] | None:
        """Prepare the change on the present state, or return that state if it contains the change already."""

    def find_committed(self) -> tuple[LoadedT, ...] | None:
        """Return the present state if it contains the change, or None."""


class CommitLoop(Generic[LoadedT]):
    """One commit, with the number of attempts and whether an outcome was ever unknown."""

    def __init__(self, catalog: Catalog, pace: Pace = SYSTEM_PACE) -> None:
        self._catalog = catalog
        self._pace = pace
        self.attempts = 0
        self.was_unknown = False

    def run(self, change: Committing[LoadedT], limits: Limits) -> tuple[LoadedT, ...]:
        """Retry until the outcome is known or a limit is reached; return the new states."""
        started = self._pace.monotonic()
        while True:
            check = _check.get()
            if check is not None:
                check(change.names)
            self.attempts += 1
            outcome = change.send()
            if isinstance(outcome, Unknown):
                outcome = self._resolve(outcome, limits)
            if isinstance(outcome, Committed):
                return outcome.all_loaded
            reason = outcome.reason
            if not reason.retryable:
                return _raise_unless_committed(change, reason)
            elapsed_ms = (self._pace.monotonic() - started) * 1000
            if self.attempts > limits.retries or (self.attempts > 1 and elapsed_ms > limits.total_ms):
                return _raise_unless_committed(change, self._conflict(change, reason, elapsed_ms))
            self._wait(limits.min_wait_ms, limits.max_wait_ms, self.attempts)
            committed = change.rebase(self.attempts + 1)
            if committed is not None:
                return committed

    def _resolve(self, unknown: Unknown[LoadedT], limits: Limits) -> Committed[LoadedT] | Rejected:
        """Resolve an unknown outcome; from here on no file of this commit is ever deleted."""
        self.was_unknown = True
        started = self._pace.monotonic()
        for check in range(1, limits.checks + 2):
            # A catalog that fails to respond leaves the outcome unknown too.
            with contextlib.suppress(FrazilError):
                outcome = self._catalog.resolve_unknown(unknown)
                if not isinstance(outcome, Unknown):
                    return outcome
                unknown = outcome
            if (self._pace.monotonic() - started) * 1000 > limits.check_total_ms:
                break
            if check <= limits.checks:
                self._wait(limits.check_min_wait_ms, limits.check_max_wait_ms, check)
        raise unknown.error

    def _wait(self, min_wait_ms: int, max_wait_ms: int, turn: int) -> None:
        """Sleep before a retry: twice as long each time, with up to half removed at random to spread writers."""
        wait_ms = min(min_wait_ms * 2 ** min(turn - 1, 60), max_wait_ms)
        share = _MIN_JITTER + (1 - _MIN_JITTER) * self._pace.random()
        self._pace.sleep(wait_ms * share / 1000)

    def _conflict(self, change: Committing[LoadedT], reason: FrazilError, elapsed_ms: float) -> CommitError:
        error = CommitConflictError(
            f"Cannot commit to {change.names}: other writers came first, {self.attempts} times in {elapsed_ms:.0f} ms",
            hint=f"Try again, or raise {properties.COMMIT_NUM_RETRIES.name}.",
        )
        error.__cause__ = reason
        return error


def _raise_unless_committed(change: Committing[LoadedT], reason: FrazilError) -> tuple[LoadedT, ...]:
    """Raise the reason of a rejection, unless the change is there: a repeated request may have succeeded before."""
    committed = None
    with contextlib.suppress(FrazilError):
        committed = change.find_committed()
    if committed is None:
        raise reason
    return committed


class Limits:
    """The limits of retries, by the properties of the tables or views; of several, the most patient."""

    def __init__(self, all_properties: Iterable[Mapping[str, str]]) -> None:
        self._properties = list(all_properties)
        self.retries = self._max(properties.COMMIT_NUM_RETRIES)
        self.min_wait_ms = self._max(properties.COMMIT_MIN_RETRY_WAIT_MS)
        self.max_wait_ms = self._max(properties.COMMIT_MAX_RETRY_WAIT_MS)
        self.total_ms = self._max(properties.COMMIT_TOTAL_RETRY_TIME_MS)
        self.checks = self._max(properties.COMMIT_NUM_STATUS_CHECKS)
        self.check_min_wait_ms = self._max(properties.COMMIT_STATUS_CHECKS_MIN_WAIT_MS)
        self.check_max_wait_ms = self._max(properties.COMMIT_STATUS_CHECKS_MAX_WAIT_MS)
        self.check_total_ms = self._max(properties.COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS)

    def _max(self, limit: Property[int]) -> int:
        return max((read_property(prop, limit) for prop in self._properties), default=limit.default)
