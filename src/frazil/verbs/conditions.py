"""Conditions of verbs: parameters filled in, and what metadata alone decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from frazil.change_rows.find_rows import ConditionChange
from frazil.commit.new_snapshot import Target
from frazil.errors import FrazilError
from frazil.evaluate.condition import Session
from frazil.expr.fill_parameters import Parameters
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.verbs.on_spark import is_utc
from frazil.verbs.write_session import Write

NO_PARAMETERS: Mapping[str, object] = FrozenMap()
Prepare: TypeAlias = Callable[[LoadedTable, Any, Target, Session, ManifestCache | None], ConditionChange]
BY_METADATA = "  by metadata alone, since every file that can hold such rows holds no others"


def filled(where: Any, parameters: Mapping[str, object]) -> Any:
    """Return a condition with values in the place of the names in it."""
    values = Parameters(parameters)
    condition = values.fill(where)
    values.check()
    return condition


class Prepared:
    """A change of the rows of a condition, compiled and planned once for the state of a write."""

    def __init__(self, prepare: Prepare, where: Any) -> None:
        self._prepare = prepare
        self._where = where
        self._changes: dict[int, ConditionChange] = {}

    def change(self, write: Write) -> ConditionChange:
        """Return the change of the state of a write; refuse conditions that only Spark computes."""
        key = id(write.state)
        if key not in self._changes:
            session = Session(time.time_ns() // 1000, is_utc())
            self._changes = {key: self._prepare(write.state, self._where, write.target(), session, write.session.cache)}
        return self._changes[key]

    def find_whole(self, write: Write) -> Predicate | None:
        """Return the condition, bound, if each file that can hold its rows holds no others; None otherwise."""
        # A condition that Spark has resolved has a text.
        where = getattr(self._where, "sql_text", self._where)
        try:
            change = (self if where is self._where else Prepared(self._prepare, where)).change(write)
        except FrazilError:
            return None
        return change.predicate if change.takes_files_whole else None


def expression_session() -> Session:
    """Return what expressions of a statement depend on."""
    return Session(time.time_ns() // 1000, is_utc())
