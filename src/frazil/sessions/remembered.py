"""The state that sessions keep between requests of Spark's side, and its lifetime.

| what                              | until                                                                     |
|-----------------------------------|---------------------------------------------------------------------------|
| tables, by the key of `load`      | 1,000 newer ones were loaded, or another Spark context starts             |
| statements, by the key of `parse` | the same                                                                  |
| tables with several inserts       | 1,000 newer ones, or another context                                      |
| plans of tables                   | 200 newer ones, the session is detached, or another context               |
| streams that are read             | the query stops, fails or is cancelled (`stream-stop`), or another context|
| compactions of streams            | 1,000 newer queries, or another context                                   |

Tables outlive `detach`, since data frames do. What one batch of a stream keeps for the next is held by the query's sink
in the JVM (`spark/java/stream/SinkState.java`), and is dropped with it.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from frazil.sessions.answer import Answer
from frazil.sessions.resolved_name import ResolvedName
from frazil.sessions.stream_compaction import Compactions
from frazil.sessions.stream_source import StreamSource
from frazil.sql.statements import Statement
from frazil.table.table import Table

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_STATEMENTS = 1000
"""Each statement needs its own entries while it is analysed and run."""
MOST_PLANS = 200


class Recent(Generic[K, V]):
    """A map of the most recently used entries."""

    def __init__(self, most: int = MOST_STATEMENTS) -> None:
        self.most = most
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, created if there is none."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        # Outside the lock: this may call Spark, which may call back.
        created = make()
        with self._lock:
            value = self._entries.setdefault(key, created)
            while len(self._entries) > self.most:
                self._entries.popitem(last=False)
        return value

    def forget(self, matches: Callable[[K], bool] = lambda key: True) -> None:
        """Drop the entries whose keys match."""
        with self._lock:
            for key in [key for key in self._entries if matches(key)]:
                del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        with self._lock:
            return iter(list(self._entries))


def remember(entries: Recent[str, V], value: V) -> str:
    """Store a value under a new key; return the key."""
    key = uuid.uuid4().hex
    entries.recall(key, lambda: value)
    return key


@dataclass(frozen=True)
class Remembered:
    """All state in one place."""

    tables: Recent[str, ResolvedName] = field(default_factory=Recent)
    statements: Recent[str, tuple[Statement, Answer | None]] = field(default_factory=Recent)
    written: Recent[tuple[str, str], Table] = field(default_factory=Recent)
    plans: Recent[tuple[Hashable, ...], Any] = field(default_factory=lambda: Recent(MOST_PLANS))
    """Java plans; a key begins with the id of its session."""
    streams: dict[str, StreamSource] = field(default_factory=dict)
    compactions: Recent[str, Compactions] = field(default_factory=Recent)

    def forget_plans(self, session_id: str) -> None:
        """Drop the plans of a session."""
        self.plans.forget(lambda key: key[0] == session_id)

    def forget(self) -> None:
        """Drop everything: another Spark context has started, so nothing of the previous one can be requested."""
        for entries in (self.tables, self.statements, self.written, self.plans, self.compactions):
            entries.forget()
        self.streams.clear()


REMEMBERED = Remembered()
