"""Plans that clients have asked for and not fetched whole: by id, the newest of them, for an hour."""

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
    plan_id: str = field(default_factory=lambda: secrets.token_urlsafe(18))

    @property
    def task_names(self) -> list[str]:
        """What clients call the tasks."""
        return [f"{self.plan_id}.{index}" for index in range(len(self.tasks))]


class KeptPlans:
    """Plans by id. Several threads may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()

    def keep(self, plan: KeptPlan) -> None:
        """Keep a plan; the oldest goes where there are too many."""
        with self._lock:
            self._plans[plan.plan_id] = plan
            if len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)

    def find(self, plan_id: str, identifier: Identifier, now_ms: int) -> KeptPlan | None:
        """Return the plan of an id, if it is of that table and not too old."""
        with self._lock:
            found = self._plans.get(plan_id)
        is_good = found is not None and found.identifier == identifier and now_ms - found.made_ms < PLAN_MS
        return found if is_good else None

    def forget(self, plan_id: str) -> None:
        """Keep a plan no more."""
        with self._lock:
            self._plans.pop(plan_id, None)
