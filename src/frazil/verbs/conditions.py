"""Conditions of verbs: parameters filled in, and what metadata alone decides."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from frazil.evaluate.condition import Session
from frazil.expr.bind import bind
from frazil.expr.fill_parameters import Parameters
from frazil.expr.predicates import Predicate
from frazil.spec.frozen_map import FrozenMap
from frazil.verbs.sql_meaning import is_utc, plain_predicate, takes_files_whole
from frazil.verbs.write_session import Write

NO_PARAMETERS: Mapping[str, object] = FrozenMap()
BY_METADATA = "  by metadata alone, since every file that can hold such rows holds no others"


def filled(where: Any, parameters: Mapping[str, object]) -> Any:
    """Return a condition with values in the place of the names in it."""
    values = Parameters(parameters)
    condition = values.fill(where)
    values.check()
    return condition


def find_whole(write: Write, where: Any) -> Predicate | None:
    """Return a condition, bound, if each file that can hold its rows holds no others; None otherwise."""
    schema = write.state.metadata.current_schema
    predicate = plain_predicate(where, schema)
    if predicate is None or not takes_files_whole(write.state, write.session.branch, predicate, write.session.cache):
        return None
    return bind(schema, predicate)


def expression_session() -> Session:
    """Return what expressions of a statement depend on."""
    return Session(time.time_ns() // 1000, is_utc())
