"""Plans that clients have asked for: by id, the newest that fit a budget of memory, for an hour."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from frazil.catalog.names import Identifier
from frazil.scan.plan import Plan
from frazil.spec.manifest import ManifestFile

MAX_PLANS: Final = 200
BUDGET_BYTES: Final = 64 << 20
"""About how much memory the plans may take; the newest is kept in any case."""
_BYTES_PER_FILTER_BYTE: Final = 20
_BYTES_PER_MANIFEST: Final = 2_000
PLAN_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan of one table: the manifests whose files were answered at once, and those of each task."""

    identifier: Identifier
    plan: Plan
    stats_ids: frozenset[int]
    """The columns whose metrics are sent with files."""
    at_once: list[ManifestFile]
    tasks: tuple[list[ManifestFile], ...]
    made_ms: int
    request_bytes: int = 0
    """The length of the request, which its filter takes about twenty times in memory."""
    plan_id: str = field(default_factory=lambda: secrets.token_urlsafe(18))

    @property
    def size_bytes(self) -> int:
        """About how much memory the plan takes."""
        manifests = len(self.at_once) + sum(map(len, self.tasks))
        return self.request_bytes * _BYTES_PER_FILTER_BYTE + manifests * _BYTES_PER_MANIFEST

    @property
    def task_names(self) -> list[str]:
        """What clients call the tasks."""
        return [f"{self.plan_id}.{index}" for index in range(len(self.tasks))]


class KeptPlans:
    """Plans by id. Several threads may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()
        self._bytes = 0

    def keep(self, plan: KeptPlan) -> None:
        """Keep a plan; the oldest goes where there are too many."""
        with self._lock:
            self._plans[plan.plan_id] = plan
            self._bytes += plan.size_bytes
            while len(self._plans) > MAX_PLANS or (self._bytes > BUDGET_BYTES and len(self._plans) > 1):
                _, oldest = self._plans.popitem(last=False)
                self._bytes -= oldest.size_bytes

    def find(self, plan_id: str, identifier: Identifier, now_ms: int) -> KeptPlan | None:
        """Return the plan of an id, if it is of that table and not too old."""
        with self._lock:
            found = self._plans.get(plan_id)
        is_good = found is not None and found.identifier == identifier and now_ms - found.made_ms < PLAN_MS
        return found if is_good else None

    def forget(self, plan_id: str) -> None:
        """Keep a plan no more."""
        with self._lock:
            found = self._plans.pop(plan_id, None)
            self._bytes -= 0 if found is None else found.size_bytes
