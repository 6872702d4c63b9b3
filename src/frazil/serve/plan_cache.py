"""Scan plans of clients by ID, kept for an hour within a memory budget, the newest first."""

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
"""The approximate memory budget for plans; the newest is kept in any case."""
_BYTES_PER_FILTER_BYTE: Final = 20
_BYTES_PER_MANIFEST: Final = 2_000
PLAN_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A plan of one table: the manifests of the first response, and those of each task."""

    identifier: Identifier
    plan: Plan
    stats_ids: frozenset[int]
    """The columns whose metrics are sent with files."""
    at_once: list[ManifestFile]
    tasks: tuple[list[ManifestFile], ...]
    made_ms: int
    request_bytes: int = 0
    """The length of the request; its filter takes about twenty times that in memory."""
    plan_id: str = field(default_factory=lambda: secrets.token_urlsafe(18))

    @property
    def size_bytes(self) -> int:
        """The approximate memory use of the plan."""
        manifests = len(self.at_once) + sum(map(len, self.tasks))
        return self.request_bytes * _BYTES_PER_FILTER_BYTE + manifests * _BYTES_PER_MANIFEST

    @property
    def task_names(self) -> list[str]:
        """The names of the tasks for clients."""
        return [f"{self.plan_id}.{index}" for index in range(len(self.tasks))]


class PlanCache:
    """Plans by ID. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[str, CachedPlan] = OrderedDict()
        self._bytes = 0

    def keep(self, plan: CachedPlan) -> None:
        """Store a plan; drop the oldest if there are too many."""
        with self._lock:
            self._plans[plan.plan_id] = plan
            self._bytes += plan.size_bytes
            while len(self._plans) > MAX_PLANS or (self._bytes > BUDGET_BYTES and len(self._plans) > 1):
                _, oldest = self._plans.popitem(last=False)
                self._bytes -= oldest.size_bytes

    def find(self, plan_id: str, identifier: Identifier, now_ms: int) -> CachedPlan | None:
        """Return the plan with an ID if it belongs to the table and has not expired."""
        with self._lock:
            plan = self._plans.get(plan_id)
        is_good = plan is not None and plan.identifier == identifier and now_ms - plan.made_ms < PLAN_MS
        return plan if is_good else None

    def forget(self, plan_id: str) -> None:
        """Remove a plan."""
        with self._lock:
            plan = self._plans.pop(plan_id, None)
            self._bytes -= 0 if plan is None else plan.size_bytes
