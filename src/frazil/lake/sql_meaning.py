"""Which SQL conditions mean the same to frazil's planner as to Spark, so that metadata alone may decide on rows.

Deletes and overwrites take Spark SQL. Where files go whole no Spark is needed, as long as the condition reads the same
in both languages: comparisons of columns with literals of their own type, without negations (null is not false in SQL),
floating point (NaN), functions, or times whose zone the session would decide. Everything else is Spark's to read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from frazil.commit.new_snapshot import find_parent
from frazil.errors import FrazilError
from frazil.expr.bind import bind
from frazil.expr.parse import parse_predicate
from frazil.expr.predicates import TRUE, Bound, BoundReference, Op, Predicate, Unbound, leaves_of, not_, push_not
from frazil.lake.on_spark import session_zone
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
)

_PLAIN_OPS = frozenset({Op.EQ, Op.LT, Op.LT_EQ, Op.GT, Op.GT_EQ, Op.IN, Op.IS_NULL, Op.NOT_NULL, Op.STARTS_WITH})
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?")
_ZONED = re.compile(_TIME.pattern + r"(Z|[+-]\d{2}:\d{2})")
_ALWAYS = {"true": TRUE}


def plain_predicate(where: Any, schema: Schema) -> Predicate | None:
    """Return a condition as a predicate of the planner's, None where only Spark can say what it means."""
    if isinstance(where, Predicate):
        return where
    if not isinstance(where, str):
        return None
    if where.strip().lower() in _ALWAYS:
        return _ALWAYS[where.strip().lower()]
    try:
        predicate = push_not(parse_predicate(where))
        bound = bind(schema, predicate)
    except FrazilError:
        return None
    given = [one for one in leaves_of(predicate) if isinstance(one, Unbound)]
    if not all(isinstance(one, Bound) and isinstance(one.term, BoundReference) for one in leaves_of(bound)):
        return None
    for one in given:
        part = schema.find_field(str(getattr(one.term, "name", "")))
        if part is None or one.op not in _PLAIN_OPS or not _is_plain(one.literals, part.field_type):
            return None
    return predicate


def _is_plain(literals: tuple[Any, ...], kind: Type) -> bool:
    return all(_is_plain_literal(one, kind) for one in literals)


def _is_plain_literal(value: Any, kind: Type) -> bool:
    if isinstance(kind, BooleanType):
        return isinstance(value, bool)
    if isinstance(kind, IntType | LongType):
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, DecimalType):
        return isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not isinstance(value, str):
        return False
    if isinstance(kind, StringType):
        return True
    if isinstance(kind, DateType):
        return _DATE.fullmatch(value) is not None
    if isinstance(kind, TimestampType):
        return _TIME.fullmatch(value) is not None
    if isinstance(kind, TimestamptzType):
        return _ZONED.fullmatch(value) is not None or (_TIME.fullmatch(value) is not None and session_zone() in _UTC)
    return False


def takes_files_whole(
    loaded: LoadedTable, branch: str, predicate: Predicate, cache: ManifestCache | None = None
) -> bool:
    """Return whether every file of a branch that can hold rows of a filter is known to hold nothing else."""
    parent = find_parent(loaded.metadata, branch)
    if parent is None or predicate == TRUE:
        return True
    choice = SnapshotChoice(parent.snapshot_id)
    meant = {task.data_file.file_path for task in plan_scan(loaded, predicate, choice=choice, cache=cache).iter_tasks()}
    if not meant:
        return True
    others = plan_scan(loaded, not_(predicate), choice=choice, cache=cache).iter_tasks()
    return not any(task.data_file.file_path in meant for task in others)
