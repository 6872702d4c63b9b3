"""What metadata alone decides of a condition that Spark could be asked about.

Conditions are Spark SQL. Where one is in the subset that frazil reads (`expr/parse.py`), it means the same here as
there, and where files go whole no Spark is needed. Everything else is Spark's to read: what is beyond the subset,
times whose zone the session decides, and columns that Spark shows in another form than they are stored in.
"""

from __future__ import annotations

from typing import Any

from frazil.commit.new_snapshot import find_parent
from frazil.errors import FrazilError
from frazil.expr.bind import bind, bind_term
from frazil.expr.parse import parse_predicate
from frazil.expr.predicates import TRUE, Op, Predicate, SqlTest, leaves_of, not_
from frazil.expr.sql_tests import depends_on_zone
from frazil.lake.on_spark import session_zone
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.spec.schema import Schema
from frazil.spec.types import TimestampNsType, TimestamptzNsType

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})


def plain_predicate(where: Any, schema: Schema) -> Predicate | None:
    """Return a condition as a predicate of the planner's, None where only Spark can say what it means.

    Text comes bound to the schema; the case of names does not matter in it.
    """
    if isinstance(where, Predicate):
        return where
    # An expression that Spark has resolved has Spark's text of it.
    where = getattr(where, "sql_text", where)
    if not isinstance(where, str):
        return None
    try:
        parsed = parse_predicate(where)
        found = bind(schema, parsed, case_sensitive=False)
    except FrazilError:
        return None
    return None if any(_is_sparks(one, schema) for one in leaves_of(parsed) if isinstance(one, SqlTest)) else found


def _is_sparks(test: SqlTest, schema: Schema) -> bool:
    """Return whether Spark would see other values than these, or its session's zone has a say."""
    if test.op is Op.IS_NULL:
        return False
    term = bind_term(schema, test.term, case_sensitive=False)
    if isinstance(term.result_type, TimestampNsType | TimestamptzNsType):
        return True
    return depends_on_zone(test, term) and session_zone() not in _UTC


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
