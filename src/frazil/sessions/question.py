"""What Spark asks: a question, the lakes of the session that asks it, and the tables it asked for before."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from frazil.commit.update_schema import UpdateSchema
from frazil.errors import (
    CommitConflictError,
    InvalidRequestError,
)
from frazil.lake.lake import Lake
from frazil.lake.sql_session import FullName, Relation, SqlSession, check_writable
from frazil.lake.table import Table, hold
from frazil.lake.view import View
from frazil.sessions.source_names import BY_PATH, check_path
from frazil.sessions.spark_engine import SparkEngine
from frazil.spark.change.resolved import Resolved, as_frame, resolved
from frazil.spark.jvm.door import Setting, is_temporary_view, lake_ids, session_id

T = TypeVar("T")
_KEPT = 1000
"""So many tables that Spark has asked for are remembered; a statement needs its own for as long as it is analysed."""


@dataclass
class Attached:
    """The lakes of a session, and the callbacks that detach the last one."""

    leave: tuple[Callable[[], None], ...]
    lakes: dict[str, Lake] = field(default_factory=dict)
    gave_way: dict[str, Mapping[str, Setting]] = field(default_factory=dict)
    """By the lakes' names, the settings that gave way to them."""

    def add(self, name: str, lake: Lake, gave_way: Mapping[str, Setting]) -> None:
        """Keep a lake under a name; of several lakes one after the other, settings gave way to the first."""
        self.lakes[name] = lake
        self.gave_way.setdefault(name, gave_way)


class AttachedLakes:
    """All lakes that are attached, by session and by id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Attached] = {}
        self._lakes: WeakValueDictionary[str, Lake] = WeakValueDictionary()

    def of(self, spark: Any) -> Attached | None:
        """Return the lakes of a session."""
        if not hasattr(spark, "_jsparkSession"):
            return None
        return self._sessions.get(session_id(spark))

    def begin(self, spark: Any, *leave: Callable[[], None]) -> Attached:
        """Note a session that has no lakes yet."""
        with self._lock:
            return self._sessions.setdefault(session_id(spark), Attached(leave))

    def end(self, spark: Any) -> Attached | None:
        """Forget a session."""
        with self._lock:
            return self._sessions.pop(session_id(spark), None)

    def keep(self, lake: Lake) -> str:
        """Return the id of a lake."""
        key = uuid.uuid4().hex
        self._lakes[key] = lake
        return key

    def lake(self, key: str, name: str) -> Lake:
        """Return the lake of an id."""
        found = self._lakes.get(key)
        if found is None:
            raise InvalidRequestError(f"Cannot use lake {name!r}: it is not attached any more")
        return found

    def names(self, spark: Any) -> dict[str, Lake]:
        """Return the lakes that a session sees, by name: its own, and those of the session it is made of."""
        return {name: self._lakes[key] for name, key in lake_ids(spark).items() if key in self._lakes}


LAKES = AttachedLakes()


@dataclass(frozen=True)
class ResolvedName:
    """A name that Spark resolved: a table at a state, one of its metadata tables, or a view."""

    relation: Relation | None
    full_name: FullName
    view: View | None = None
    frame: Any = None
    """The view's query as Spark resolved it."""
    changes: Mapping[str, Any] | None = None
    """Which changes of the table are read in its place."""
    evolution: UpdateSchema | None = None
    """What a MERGE adds to the schema in its own commit."""


TABLES: OrderedDict[str, ResolvedName] = OrderedDict()
_written: OrderedDict[tuple[str, str], Table] = OrderedDict()
"""Tables that statements with several inserts write to: each write begins where the last one ended."""
_lock = threading.Lock()


def recall(kept: OrderedDict[Any, T], key: Any, make: Callable[[], T], most: int = _KEPT) -> T:
    """Return what is kept under a key, made where it is not there; of many keys the last ones used are kept."""
    with _lock:
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    # Not under the lock: it may ask Spark, which asks again.
    made = make()
    with _lock:
        found = kept.setdefault(key, made)
        while len(kept) > most:
            kept.popitem(last=False)
    return found


def remember(kept: OrderedDict[str, T], value: T) -> str:
    """Keep a value for a while; return the key that Spark is given for it."""
    key = uuid.uuid4().hex
    recall(kept, key, lambda: value)
    return key


@dataclass(frozen=True)
class Question:
    """A request of the JVM: its JSON payload, and Java objects."""

    spark: Any
    payload: Mapping[str, Any]
    objects: Any

    def object(self, index: int) -> Any:
        """Return something of Java's; the session itself comes first."""
        return self.objects.get(index + 1)

    @property
    def lake(self) -> Lake:
        """The lake that is asked about."""
        return LAKES.lake(self.payload["lake"], self.payload["catalog"])

    @property
    def full_name(self) -> FullName:
        """The name that is asked about, in its lake."""
        return FullName(self.payload["catalog"], self.lake, tuple(self.payload["name"]))

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace that is asked about."""
        return tuple(self.payload["namespace"])

    def session(self, catalog: str | None = None, namespace: Sequence[str] = ()) -> SqlSession:
        """Return the names of all lakes of the session, looked up in a catalog and namespace."""
        lakes = LAKES.names(self.spark)
        return SqlSession(
            lakes,
            catalog if catalog in lakes else None,
            tuple(namespace) if catalog in lakes else (),
            is_temporary_view=partial(is_temporary_view, self.spark),
            is_foreign_catalog=lambda name: self.spark.conf.get(f"spark.sql.catalog.{name}", None) is not None,
        )

    def own_session(self) -> SqlSession:
        """Return the names of the lake that is asked about, and no others."""
        return SqlSession({self.payload["catalog"]: self.lake})

    def engine(self, session: SqlSession | None = None) -> SparkEngine:
        """Return Spark, for statements and views."""
        return SparkEngine(self.spark, session or self.session())

    def kept(self) -> ResolvedName:
        """Return the table that Spark was given before."""
        found = TABLES.get(self.payload["key"])
        if found is None:
            raise InvalidRequestError(
                f"Cannot use {self.full_name}: Spark asked for it too long ago", hint="Run the statement again."
            )
        return found

    def target(self) -> tuple[FullName, Table, str | None]:
        """Return the table to write to, held for one statement, and the branch that the name carries."""
        kept = self.kept()
        relation = checked_target(kept)
        check_path(relation, self.payload.get("options") or {})
        table: Table = hold(self._read_first(relation))
        if "statement" in self.payload:
            first = table
            table = recall(_written, (self.payload["statement"], str(relation.full_name)), lambda: first)
        return relation.full_name, table, relation.state.branch

    def _read_first(self, target: Relation) -> Table:
        """Return a table in the oldest state that a statement has read of it.

        What is written was computed from that state, so that others' changes since then are conflicts. Spark looks up
        what a query reads before it looks up what it writes to.
        """
        found = target.table
        for table in self.read_tables():
            if table.metadata.table_uuid != found.metadata.table_uuid:
                continue
            if table.metadata.last_updated_ms > found.metadata.last_updated_ms:
                continue
            if table.metadata.current_schema != target.table.metadata.current_schema:
                raise CommitConflictError(
                    f"Cannot write to {target.full_name}: its columns changed since the query read it",
                    hint="Run the statement again.",
                )
            found = table
        return found

    def read_tables(self) -> list[Table]:
        """Return the tables that a statement reads, each in the state that it reads."""
        kept = [TABLES.get(key) for key in self.payload.get("reads", ())]
        return [resolved.relation.table for resolved in kept if resolved is not None and resolved.relation is not None]

    def expression(self, payload: Mapping[str, Any]) -> Resolved:
        """Return an expression that Spark hands over resolved."""
        return resolved(self.spark, self.object(payload["at"]), payload.get("text"), payload["names"], self.object(0))

    def frame(self, index: int) -> Any:
        """Return a DataFrame that Spark hands over."""
        return as_frame(self.object(index), self.spark)


def checked_target(kept: ResolvedName) -> Relation:
    """Return what may be written to; refuse views, metadata tables and states that are past."""
    relation = kept.relation
    if relation is None:
        raise InvalidRequestError(f"Cannot write to {kept.full_name}: it is a view")
    if relation.full_name.name[0] == BY_PATH:
        raise InvalidRequestError(
            f"Cannot write to {relation.full_name.name[-1]!r}: it is a path, and only tables of a catalog are written",
            hint="Give the table's name in its lake.",
        )
    check_writable(relation, str(kept.full_name))
    return relation
