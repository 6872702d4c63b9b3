"""Change a view: the commit loop of views, as `commit/transaction.py` is that of tables, and as patient.

A view's change writes no files but its metadata, so nothing is left to clean up: a change is a pure function of the
metadata, made again on what another writer committed first. An outcome that nobody heard of is read back; where that
does not settle it, CommitStateUnknownError is raised. Specification: the view specification, "Versions".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from frazil.catalog.base import Catalog
from frazil.catalog.outcomes import Committed, Outcome, Unknown
from frazil.commit.transaction import SYSTEM_PACE, Pace
from frazil.errors import FrazilError
from frazil.loaded import LoadedView
from frazil.spec import properties
from frazil.spec.property_kinds import read_property
from frazil.spec.view_metadata import ViewMetadata

_LEAST_JITTER = 0.5


def change_view(
    catalog: Catalog,
    loaded: LoadedView,
    change: Callable[[ViewMetadata], ViewMetadata],
    *,
    pace: Pace = SYSTEM_PACE,
) -> LoadedView:
    """Change a view and return its new state; what another writer commits first is built upon.

    A change that leaves the metadata as it is commits nothing.
    """
    own = loaded.metadata.properties
    retries = read_property(own, properties.COMMIT_NUM_RETRIES)
    least_ms = read_property(own, properties.COMMIT_MIN_RETRY_WAIT_MS)
    most_ms = read_property(own, properties.COMMIT_MAX_RETRY_WAIT_MS)
    attempt = 0
    while True:
        attempt += 1
        metadata = change(loaded.metadata)
        if metadata == loaded.metadata:
            return loaded
        outcome = _settled(catalog, catalog.swap_view(loaded, metadata), pace)
        if isinstance(outcome, Committed):
            return outcome.loaded
        if isinstance(outcome, Unknown):
            raise outcome.error
        if not outcome.reason.retryable or attempt > retries:
            raise outcome.reason
        _wait(pace, min(least_ms * 2 ** min(attempt - 1, 60), most_ms))
        loaded = catalog.refresh_view(loaded)


def _settled(catalog: Catalog, outcome: Outcome[LoadedView], pace: Pace) -> Outcome[LoadedView]:
    """Read back an unknown outcome, a few times."""
    checks = properties.COMMIT_NUM_STATUS_CHECKS.default
    for check in range(checks + 1):
        if not isinstance(outcome, Unknown):
            break
        if check:
            _wait(pace, properties.COMMIT_STATUS_CHECKS_MIN_WAIT_MS.default * 2 ** (check - 1))
        # A catalog that cannot be asked is no answer.
        with contextlib.suppress(FrazilError):
            outcome = catalog.resolve_unknown(outcome)
    return outcome


def _wait(pace: Pace, wait_ms: int) -> None:
    pace.sleep(wait_ms * (_LEAST_JITTER + (1 - _LEAST_JITTER) * pace.chance()) / 1000)
