"""The retry loop of commits, of tables and of views: from a change to an outcome that is known.

    1. send       have the catalog make the change, on the state it was prepared on
    2. Committed  done
       Rejected   another writer came first. Wait, and have the change prepared anew on the present state, which may
                  show that it happened after all; then go to 1. Conflicts that a retry cannot mend end it, as do the
                  limits of `commit.retry.*`
       Unknown    the answer was lost. Ask the catalog what became of it, with waits of `commit.status-check.*`,
                  until the answer is one of the other two; if it never is, raise CommitStateUnknownError

`commit/transaction.py` says what is committed for tables and why that is safe, `commit/change_view.py` for views.
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

_LEAST_JITTER = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Waiting and chance, injected so that tests need neither. Times are in seconds."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


SYSTEM_PACE = Pace()

_check: ContextVar[Callable[[str], None] | None] = ContextVar("check", default=None)


@contextlib.contextmanager
def checking_before_commits(check: Callable[[str], None]) -> Iterator[None]:
    """Ask before each commit within: `check` gets what is to be changed, and raises where it must not be any more."""
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


class Committing(Protocol[LoadedT]):
    """A change on its way into a catalog, prepared on some state."""

    @property
    def names(self) -> str:
        """What is changed, for messages."""

    def send(self) -> Outcome[LoadedT]:
        """Have the catalog make the change."""

    def rebase(self, attempt: int) -> tuple[LoadedT, ...] | None:
        """Prepare the change on the present state; return that state where the change is in it already."""

    def find_committed(self) -> tuple[LoadedT, ...] | None:
        """Return the present state where the change is in it, or None."""


class CommitLoop(Generic[LoadedT]):
    """One commit: how often it was tried, and whether an outcome was ever unknown."""

    def __init__(self, catalog: Catalog, pace: Pace = SYSTEM_PACE) -> None:
        self._catalog = catalog
        self._pace = pace
        self.attempts = 0
        self.was_unknown = False

    def run(self, change: Committing[LoadedT], limits: Limits) -> tuple[LoadedT, ...]:
        """Try until the outcome is known, up to the limits; return the new states."""
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
                return _found_after_all(change, reason)
            elapsed_ms = (self._pace.monotonic() - started) * 1000
            if self.attempts > limits.retries or (self.attempts > 1 and elapsed_ms > limits.total_ms):
                return _found_after_all(change, self._gave_up(change, reason, elapsed_ms))
            self._wait(limits.min_wait_ms, limits.max_wait_ms, self.attempts)
            found = change.rebase(self.attempts + 1)
            if found is not None:
                return found

    def _resolve(self, unknown: Unknown[LoadedT], limits: Limits) -> Committed[LoadedT] | Rejected:
        """Return what an unknown outcome came to; from here on nothing of this commit is ever deleted."""
        self.was_unknown = True
        started = self._pace.monotonic()
        for check in range(1, limits.checks + 2):
            # Only Unknown means unknown; a catalog that cannot be asked is no answer either.
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
        """Sleep before another try: twice as long each time, less up to a half by chance, so that writers part."""
        wait_ms = min(min_wait_ms * 2 ** min(turn - 1, 60), max_wait_ms)
        share = _LEAST_JITTER + (1 - _LEAST_JITTER) * self._pace.chance()
        self._pace.sleep(wait_ms * share / 1000)

    def _gave_up(self, change: Committing[LoadedT], reason: FrazilError, elapsed_ms: float) -> CommitError:
        error = CommitConflictError(
            f"Cannot commit to {change.names}: other writers came first, {self.attempts} times in {elapsed_ms:.0f} ms",
            hint=f"Try again, or raise {properties.COMMIT_NUM_RETRIES.name}.",
        )
        error.__cause__ = reason
        return error


def _found_after_all(change: Committing[LoadedT], reason: FrazilError) -> tuple[LoadedT, ...]:
    """Raise why the commit failed, unless it is there: a refusal may be the answer to its own repetition."""
    found = None
    with contextlib.suppress(FrazilError):
        found = change.find_committed()
    if found is None:
        raise reason
    return found


class Limits:
    """How long to try, by the properties of the tables or views; of several, the most patient."""

    def __init__(self, all_properties: Iterable[Mapping[str, str]]) -> None:
        self._properties = list(all_properties)
        self.retries = self._most(properties.COMMIT_NUM_RETRIES)
        self.min_wait_ms = self._most(properties.COMMIT_MIN_RETRY_WAIT_MS)
        self.max_wait_ms = self._most(properties.COMMIT_MAX_RETRY_WAIT_MS)
        self.total_ms = self._most(properties.COMMIT_TOTAL_RETRY_TIME_MS)
        self.checks = self._most(properties.COMMIT_NUM_STATUS_CHECKS)
        self.check_min_wait_ms = self._most(properties.COMMIT_STATUS_CHECKS_MIN_WAIT_MS)
        self.check_max_wait_ms = self._most(properties.COMMIT_STATUS_CHECKS_MAX_WAIT_MS)
        self.check_total_ms = self._most(properties.COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS)

    def _most(self, wanted: Property[int]) -> int:
        return max((read_property(prop, wanted) for prop in self._properties), default=wanted.default)
