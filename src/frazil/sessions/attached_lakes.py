"""The lakes attached to Spark sessions, by session and by ID."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from frazil.errors import InvalidRequestError
from frazil.spark.jvm.door import Setting, lake_ids, session_id
from frazil.table.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Attached:
    """The lakes of a session, and the callbacks for detaching the last one."""

    leave: tuple[Callable[[], None], ...]
    lakes: dict[str, Lake] = field(default_factory=dict)
    replaced_settings: dict[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Settings that each lake replaced, by lake."""

    def add(self, name: str, lake: Lake, replaced: Mapping[str, Setting]) -> None:
        """Add a lake under a name; of several lakes under it, the first one replaced the settings."""
        self.lakes[name] = lake
        self.replaced_settings.setdefault(name, replaced)


class AttachedLakes:
    """All attached lakes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Attached] = {}
        self._lakes: WeakValueDictionary[str, Lake] = WeakValueDictionary()

    def of(self, spark: SparkSession) -> Attached | None:
        """Return the lakes of a session, or None."""
        if not hasattr(spark, "_jsparkSession"):
            return None
        return self._sessions.get(session_id(spark))

    def begin(self, spark: SparkSession, *leave: Callable[[], None]) -> Attached:
        """Register a session without lakes."""
        with self._lock:
            return self._sessions.setdefault(session_id(spark), Attached(leave))

    def end(self, spark: SparkSession) -> Attached | None:
        """Remove a session."""
        with self._lock:
            return self._sessions.pop(session_id(spark), None)

    def keep(self, lake: Lake) -> str:
        """Store a lake under a new ID."""
        key = uuid.uuid4().hex
        self._lakes[key] = lake
        return key

    def lake(self, key: str, name: str) -> Lake:
        """Return the lake with an ID."""
        lake = self._lakes.get(key)
        if lake is None:
            raise InvalidRequestError(f"Cannot use lake {name!r}: it is no longer attached")
        return lake

    def names(self, spark: SparkSession) -> dict[str, Lake]:
        """Return the lakes visible to a session, by name: its own, and those of the session it was created from."""
        return {name: self._lakes[key] for name, key in lake_ids(spark).items() if key in self._lakes}


LAKES = AttachedLakes()
