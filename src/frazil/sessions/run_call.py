"""Runs procedures: `CALL lake.system.rollback_to_snapshot('db.t', 1)`.

`maintenance/procedures.py` declares the parameters and results. Spark parses a call, finds its procedure, binds its
arguments and evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.maintenance.procedures import PROCEDURES, Procedure
from frazil.sessions.answer import Answer, answer
from frazil.sessions.changelog_view import create_changelog_view
from frazil.sessions.sql_context import SqlContext
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot
from frazil.spec.snapshot_history import ancestor_heads
from frazil.table.adopt import find_source, is_folder
from frazil.table.lake import Lake
from frazil.table.parse_name import parse_name
from frazil.table.sql_session import FullName
from frazil.table.table import Table, hold

NO_SUMMARY: FrozenMap[str, str] = FrozenMap()
SHOWN_PATHS = 20_000
"""The maximum number of orphans that a call with streamed results returns, as in Iceberg Java."""

Rows = list[tuple[Any, ...]]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """The lake that a procedure works on."""

    lake: Lake
    lake_name: str
    context: SqlContext

    def identifier(self, text: str) -> tuple[str, ...]:
        """Return the name of a table in the lake; it may be prefixed with the lake's own name."""
        parts = parse_name(text)
        if len(parts) > 2 and parts[0] == self.lake_name:
            return parts[1:]
        session = self.context.session
        if len(parts) == 1 and session.catalog == self.lake_name:
            return (*session.namespace, *parts)
        return parts

    def table(self, values: Values) -> Table:
        """Return the table named by the argument `table`, held for one procedure."""
        return hold(self.lake.table(self.identifier(values["table"])))


def find_procedure(name: str) -> Procedure:
    """Return a procedure by its name, ignoring case; list the existing ones if there is none."""
    procedure = PROCEDURES.get(name.lower())
    if procedure is None:
        near = get_close_matches(name.lower(), PROCEDURES, n=1, cutoff=0.5)
        raise NotFoundError(
            f"Cannot call {name!r}: the procedure does not exist",
            hint=(f"Did you mean {near[0]}? " if near else "") + f"There are: {', '.join(sorted(PROCEDURES))}.",
        )
    return procedure


def call(target: Target, name: str, values: Values) -> Answer:
    """Run a procedure; missing arguments may be None or absent."""
    procedure = find_procedure(name)
    arguments = {parameter.name: values.get(parameter.name) for parameter in procedure.call_parameters}
    for parameter in procedure.call_parameters:
        if parameter.is_required and arguments[parameter.name] is None:
            raise InvalidRequestError(f"Cannot call {name}: the parameter {parameter.name!r} is null")
    run = _RUN.get(name) or _maintain
    return answer(procedure.columns_for(arguments), run(target, procedure, arguments))


def _head(table: Table) -> int | None:
    return None if table.current_snapshot is None else table.current_snapshot.snapshot_id


def _given(procedure: Procedure, values: Values, *left_out: str) -> dict[str, Any]:
    """Return the arguments that are set, under the names of the Python verbs."""
    return {
        parameter.python_name: values[parameter.name]
        for parameter in procedure.call_parameters
        if values[parameter.name] is not None
        and not parameter.is_ignored
        and parameter.name not in ("table", *left_out)
    }


def _fields(result: Any, procedure: Procedure, values: Values) -> Rows:
    """Return the fields of a result in the order of a procedure's columns."""
    return [tuple(getattr(result, column.split(" ")[0]) for column in procedure.columns_for(values))]


def _maintain(target: Target, procedure: Procedure, values: Values) -> Rows:
    """Call the verb of the same name of `t.maintain`."""
    verb = getattr(target.table(values).maintain, procedure.name)
    return _fields(verb(**_given(procedure, values)), procedure, values)


def _moves(move: Callable[[Table, Values], object]) -> Callable[[Target, Procedure, Values], Rows]:
    """Return a procedure's function that reports the previous and the new current snapshot."""

    def run(target: Target, _: Procedure, values: Values) -> Rows:
        table = target.table(values)
        before = _head(table)
        move(table, values)
        return [(before, _head(table))]

    return run


def _cherry_pick(target: Target, _: Procedure, values: Values) -> Rows:
    table = target.table(values)
    table.cherry_pick(values["snapshot_id"])
    return [(values["snapshot_id"], _head(table))]


def _publish(target: Target, _: Procedure, values: Values) -> Rows:
    table = target.table(values)
    staged = [
        snapshot.snapshot_id
        for snapshot in table.snapshots
        if (snapshot.summary or NO_SUMMARY).get("wap.id") == values["wap_id"]
    ]
    table.publish_changes(values["wap_id"])
    return [(staged[0] if staged else None, _head(table))]


def _fast_forward(target: Target, _: Procedure, values: Values) -> Rows:
    table = target.table(values)
    before = table.metadata.find_ref(values["branch"])
    table.fast_forward(values["branch"], to=values["to"])
    after = table.metadata.ref(values["branch"])
    return [(values["branch"], None if before is None else before.snapshot_id, after.snapshot_id)]


def _remove_orphans(target: Target, procedure: Procedure, values: Values) -> Rows:
    arguments = _given(procedure, values, "file_list_view", "stream_results")
    if values["file_list_view"] is not None:
        view = ".".join(f"`{step.replace('`', '``')}`" for step in parse_name(values["file_list_view"]))
        engine = target.context.spark("look at the files of a view")
        arguments["file_list"] = engine.query(f"select * from {view}")
    result = target.table(values).maintain.remove_orphan_files(**arguments)
    listed = result.orphan_file_locations[: SHOWN_PATHS if values["stream_results"] else None]
    return [(step,) for step in listed]


def _remove_dangling(target: Target, procedure: Procedure, values: Values) -> Rows:
    return [(target.table(values).maintain.remove_dangling_deletes(**_given(procedure, values)),)]


def _optimize(target: Target, procedure: Procedure, values: Values) -> Rows:
    done = target.table(values).maintain.optimize(**_given(procedure, values))
    rows = [(step.procedure, "; ".join(step.reasons), str(step.result)) for step in done.steps]
    return rows + [(problem.procedure, problem.what, "left to you") for problem in done.left]


def _stats(target: Target, procedure: Procedure, values: Values) -> Rows:
    statistics = getattr(target.table(values).maintain, procedure.name)(**_given(procedure, values))
    return [] if statistics is None else [(statistics.statistics_path,)]


def _changelog_view(target: Target, _: Procedure, values: Values) -> Rows:
    full_name = FullName(target.lake_name, target.lake, target.identifier(values["table"]))
    return [(create_changelog_view(target.context, full_name, target.table(values), dict(values)),)]


def _add_files(target: Target, procedure: Procedure, values: Values) -> Rows:
    arguments = _given(procedure, values, "source_table")
    maintain = target.table(values).maintain
    parts = parse_name(values["source_table"])
    if is_folder(parts):
        return _fields(maintain.add_files(parts[1], file_format=parts[0].lower(), **arguments), procedure, values)
    target.context.spark("add the files of a table")
    return _fields(maintain.add_files(find_source(target.lake, parts), **arguments), procedure, values)


def _snapshot(target: Target, procedure: Procedure, values: Values) -> Rows:
    if not is_folder(parse_name(values["source_table"])):
        target.context.spark("make a snapshot of a Spark table")
    name = target.identifier(values["table"])
    arguments = _given(procedure, values, "source_table")
    return _fields(target.lake.snapshot_table(values["source_table"], name, **arguments), procedure, values)


def _migrate(target: Target, procedure: Procedure, values: Values) -> Rows:
    target.context.spark("migrate a Spark table")
    return _fields(target.lake.migrate_table(values["table"], **_given(procedure, values)), procedure, values)


def _ancestors(target: Target, _: Procedure, values: Values) -> Rows:
    table = target.table(values)
    start = values["snapshot_id"] if values["snapshot_id"] is not None else _head(table)
    if start is None:
        return []
    table.metadata.snapshot(start)
    return [(head.snapshot_id, head.timestamp_ms) for head in ancestor_heads(table.metadata.snapshots, start)]


def _register(target: Target, _: Procedure, values: Values) -> Rows:
    table = target.lake.register_table(target.identifier(values["table"]), values["metadata_file"])
    current: Snapshot | None = table.current_snapshot
    if current is None:
        return [(None, None, None)]
    return [(current.snapshot_id, _total(current, "total-records"), _total(current, "total-data-files"))]


def _total(snapshot: Snapshot, name: str) -> int | None:
    text = (snapshot.summary or NO_SUMMARY).get(name)
    return int(text) if text is not None and text.isdigit() else None


_RUN: dict[str, Callable[[Target, Procedure, Values], Rows]] = {
    "rollback_to_snapshot": _moves(lambda table, values: table.rollback_to(values["snapshot_id"])),
    "rollback_to_timestamp": _moves(lambda table, values: table.rollback_to(before=values["timestamp"])),
    "set_current_snapshot": _moves(
        lambda table, values: table.set_current_snapshot(values["snapshot_id"], ref=values["ref"])
    ),
    "cherrypick_snapshot": _cherry_pick,
    "publish_changes": _publish,
    "fast_forward": _fast_forward,
    "ancestors_of": _ancestors,
    "register_table": _register,
    "remove_orphan_files": _remove_orphans,
    "compute_table_stats": _stats,
    "compute_partition_stats": _stats,
    "create_changelog_view": _changelog_view,
    "add_files": _add_files,
    "snapshot": _snapshot,
    "migrate": _migrate,
    "remove_dangling_deletes": _remove_dangling,
    "optimize": _optimize,
}
"""Procedures that do more than the verb of the same name of `t.maintain`."""
