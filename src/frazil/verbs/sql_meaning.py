"""What metadata alone decides of a condition that Spark could be asked about.

Conditions are Spark SQL. Where one is in the subset that frazil reads (`expr/parse.py`), it means the same here as
there, and where files go whole no Spark is needed. Everything else is Spark's to read: what is beyond the subset,
times whose zone the session decides, and columns that Spark shows in another form than they are stored in.
"""

from __future__ import annotations

from typing import Any

from frazil.commit.new_snapshot import find_parent
from frazil.errors import FrazilError
from frazil.expr.extract import extract
from frazil.expr.parse import parse_condition
from frazil.expr.predicates import TRUE, Predicate, not_
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.spec.schema import Schema
from frazil.verbs.on_spark import session_zone

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})


def is_utc() -> bool:
    """Return whether times without a zone are in UTC, as they are here: in the active session, or without one."""
    return session_zone() in _UTC


def plain_predicate(where: Any, schema: Schema) -> Predicate | None:
    """Return a condition as a predicate of the planner's, None where it is more than that.

    Text comes bound to the schema; the case of names does not matter in it.
    """
    if isinstance(where, Predicate):
        return where
    # An expression that Spark has resolved has Spark's text of it.
    where = getattr(where, "sql_text", where)
    if not isinstance(where, str):
        return None
    try:
        extracted = extract(parse_condition(where), schema, is_utc=is_utc, may_test_nanos=False)
    except FrazilError:
        return None
    return extracted.predicate if extracted.is_exact else None


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
