"""Procedures: `CALL lake.system.rollback_to_snapshot('db.t', 1)`. Names, parameters and answers are Iceberg Java's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.lake.adopt import find_source, is_folder
from frazil.lake.lake import Lake
from frazil.lake.parse_name import parse_name
from frazil.lake.sql_session import Place
from frazil.lake.table import Table, hold
from frazil.sessions.answer import Answer, answer
from frazil.sessions.changelog_view import create_changelog_view
from frazil.sessions.sql_context import SqlContext
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot
from frazil.spec.snapshot_history import ancestor_heads
from frazil.sql import statements as s

NO_SUMMARY: FrozenMap[str, str] = FrozenMap()
SHOWN_PATHS = 20_000
"""How many orphans a call that streams its results answers at most, as Iceberg Java does."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure; its type is in Spark's words."""

    name: str
    type: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: what it takes, what it answers, and what it does.

    A dry run answers `dry_columns` as well: what would be saved.
    """

    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    run: Callable[[Target, dict[str, Any]], list[tuple[Any, ...]]]
    dry_columns: tuple[str, ...] = ()

    def columns_for(self, values: dict[str, Any]) -> tuple[str, ...]:
        """Return the columns of the answer to some arguments."""
        return self.columns + (self.dry_columns if values.get(_DRY_RUN.name) else ())


@dataclass(frozen=True, slots=True)
class Target:
    """The lake that a procedure works on."""

    lake: Lake
    lake_name: str
    context: SqlContext

    def identifier(self, text: str) -> tuple[str, ...]:
        """Return the name of a table in the lake; the lake's own name may stand before it."""
        parts = parse_name(text)
        if len(parts) > 2 and parts[0] == self.lake_name:
            return parts[1:]
        session = self.context.session
        if len(parts) == 1 and session.catalog == self.lake_name:
            return (*session.namespace, *parts)
        return parts

    def table(self, values: dict[str, Any]) -> Table:
        """Return the table that the argument `table` names, held for one procedure."""
        return hold(self.lake.table(self.identifier(values["table"])))


def answer_columns(context: SqlContext, statement: s.Call) -> tuple[str, ...]:
    """Return the columns that a call will answer; nothing runs."""
    _, name, procedure = _find(context, statement)
    return procedure.columns_for(_bind(context, name, procedure, statement))


def call(context: SqlContext, statement: s.Call) -> Answer:
    """Run a procedure."""
    (lake, lake_name), name, procedure = _find(context, statement)
    values = _bind(context, name, procedure, statement)
    rows = procedure.run(Target(lake, lake_name, context), values)
    return answer(procedure.columns_for(values), rows)


def _find(context: SqlContext, statement: s.Call) -> tuple[tuple[Lake, str], str, Procedure]:
    found = context.session.find_procedure(statement.name)
    if found is None:
        raise NotFoundError(f"Cannot call {'.'.join(statement.name)}: it is not a lake's procedure")
    lake, lake_name, name = found
    procedure = PROCEDURES.get(name)
    if procedure is None:
        near = get_close_matches(name, PROCEDURES, n=1, cutoff=0.5)
        raise NotFoundError(
            f"Cannot call {name!r}: there is no such procedure",
            hint=(f"Did you mean {near[0]}? " if near else "") + f"There are: {', '.join(sorted(PROCEDURES))}.",
        )
    return (lake, lake_name), name, procedure


def _bind(context: SqlContext, name: str, procedure: Procedure, statement: s.Call) -> dict[str, Any]:
    known = {one.name: one for one in procedure.parameters}
    signature = f"{name}({', '.join(one.name for one in procedure.parameters)})"
    given: dict[str, s.Span] = {}
    for at, argument in enumerate(statement.arguments):
        if argument.name is None:
            if at >= len(procedure.parameters):
                raise InvalidRequestError(
                    f"Cannot call {name}: it takes {len(procedure.parameters)} arguments, {len(statement.arguments)} "
                    "are given",
                    hint=f"Write {signature}.",
                )
            label = procedure.parameters[at].name
        else:
            label = argument.name.lower()
        if label not in known:
            raise InvalidRequestError(f"Cannot call {name}: it has no parameter {label!r}", hint=f"Write {signature}.")
        if label in given:
            raise InvalidRequestError(f"Cannot call {name}: the parameter {label!r} is given twice")
        given[label] = argument.value
    values = context.arguments([(span, known[label].type) for label, span in given.items()])
    bound: dict[str, Any] = dict.fromkeys(known)
    bound |= dict(zip(given, values, strict=True))
    for one in procedure.parameters:
        if one.is_required and bound[one.name] is None:
            raise InvalidRequestError(f"Cannot call {name}: the parameter {one.name!r} is missing",
                                      hint=f"Write {signature}.")  # fmt: skip
    return bound


def _head(table: Table) -> int | None:
    return None if table.current_snapshot is None else table.current_snapshot.snapshot_id


def _moves(
    move: Callable[[Table, dict[str, Any]], object],
) -> Callable[[Target, dict[str, Any]], list[tuple[Any, ...]]]:
    """Return a procedure's function that answers where the current snapshot was and is."""

    def run(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        table = target.table(values)
        before = _head(table)
        move(table, values)
        return [(before, _head(table))]

    return run


def _set_current(table: Table, values: dict[str, Any]) -> None:
    table.set_current_snapshot(values["snapshot_id"], ref=values["ref"])


def _cherry_pick(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = target.table(values)
    table.cherry_pick(values["snapshot_id"])
    return [(values["snapshot_id"], _head(table))]


def _publish(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = target.table(values)
    staged = [
        one.snapshot_id for one in table.snapshots if (one.summary or NO_SUMMARY).get("wap.id") == values["wap_id"]
    ]
    table.publish_changes(values["wap_id"])
    return [(staged[0] if staged else None, _head(table))]


def _fast_forward(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = target.table(values)
    before = table.metadata.find_ref(values["branch"])
    table.fast_forward(values["branch"], to=values["to"])
    after = table.metadata.ref(values["branch"])
    return [(values["branch"], None if before is None else before.snapshot_id, after.snapshot_id)]


def _fields(result: Any, procedure: str, values: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a result says under a procedure's columns."""
    return tuple(getattr(result, one.split(" ")[0]) for one in PROCEDURES[procedure].columns_for(values))


def _given(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the arguments of these names that are given."""
    return {name: values[name] for name in names if values[name] is not None}


def _maintains(name: str, *arguments: str, **renamed: str) -> Callable[[Target, dict[str, Any]], list[tuple[Any, ...]]]:
    """Return a procedure's function that calls the verb of the same name of `t.maintain`."""

    def run(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        given = _given(values, *arguments, _DRY_RUN.name)
        given |= {other: values[one] for one, other in renamed.items() if values[one] is not None}
        return [_fields(getattr(target.table(values).maintain, name)(**given), name, values)]

    return run


def _remove_orphans(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    given = _given(
        values,
        "older_than",
        "location",
        "dry_run",
        "max_concurrent_deletes",
        "equal_schemes",
        "equal_authorities",
        "prefix_mismatch_mode",
        "delete_roots",
    )
    if values["file_list_view"] is not None:
        view = ".".join(f"`{one.replace('`', '``')}`" for one in parse_name(values["file_list_view"]))
        engine = target.context.spark("look at the files of a view")
        given["file_list"] = engine.query(f"select * from {view}")
    result = target.table(values).maintain.remove_orphan_files(**given)
    shown = result.orphan_file_locations[: SHOWN_PATHS if values["stream_results"] else None]
    return [(one,) for one in shown]


def _remove_dangling(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(target.table(values).maintain.remove_dangling_deletes(**_given(values, "branch", "dry_run")),)]


def _optimize(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    given = _given(values, "budget_bytes", "budget_minutes", "dry_run")
    done = target.table(values).maintain.optimize(**given)
    rows = [(one.procedure, "; ".join(one.reasons), str(one.result)) for one in done.steps]
    return rows + [(one.procedure, one.what, "left to you") for one in done.left]


def _partition_stats(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    made = target.table(values).maintain.compute_partition_stats(**_given(values, "snapshot_id", "dry_run"))
    return [] if made is None else [(made.statistics_path,)]


def _table_stats(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    made = target.table(values).maintain.compute_table_stats(**_given(values, "snapshot_id", "columns", "dry_run"))
    return [] if made is None else [(made.statistics_path,)]


def _changelog_view(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    place = Place(target.lake_name, target.lake, target.identifier(values["table"]))
    return [(create_changelog_view(target.context, place, target.table(values), values),)]


def _add_files(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    given = _given(values, "partition_filter", "check_duplicate_files", "parallelism", "dry_run")
    maintain = target.table(values).maintain
    parts = parse_name(values["source_table"])
    if is_folder(parts):
        return [_fields(maintain.add_files(parts[1], file_format=parts[0].lower(), **given), "add_files", values)]
    target.context.spark("add the files of a table")
    source = find_source(target.lake, parts)
    return [_fields(maintain.add_files(source, **given), "add_files", values)]


def _snapshot(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    if not is_folder(parse_name(values["source_table"])):
        target.context.spark("make a snapshot of a table of Spark's")
    given = _given(values, "location", "properties", "parallelism", "ignore_missing_files", "dry_run")
    name = target.identifier(values["table"])
    return [_fields(target.lake.snapshot_table(values["source_table"], name, **given), "snapshot", values)]


def _migrate(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    target.context.spark("migrate a table of Spark's")
    names = ("properties", "drop_backup", "backup_table_name", "parallelism", "ignore_missing_files", "dry_run")
    return [_fields(target.lake.migrate_table(values["table"], **_given(values, *names)), "migrate", values)]


def _ancestors(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = target.table(values)
    start = values["snapshot_id"] if values["snapshot_id"] is not None else _head(table)
    if start is None:
        return []
    table.metadata.snapshot(start)
    return [(one.snapshot_id, one.timestamp_ms) for one in ancestor_heads(table.metadata.snapshots, start)]


def _register(target: Target, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    table = target.lake.register_table(target.identifier(values["table"]), values["metadata_file"])
    current: Snapshot | None = table.current_snapshot
    if current is None:
        return [(None, None, None)]
    return [(current.snapshot_id, _total(current, "total-records"), _total(current, "total-data-files"))]


def _total(snapshot: Snapshot, name: str) -> int | None:
    text = (snapshot.summary or NO_SUMMARY).get(name)
    return int(text) if text is not None and text.isdigit() else None


_TABLE = Parameter("table", "string", is_required=True)
_BRANCH = Parameter("branch", "string")
_DRY_RUN = Parameter("dry_run", "boolean")
"""The last parameter of whatever changes something: nothing is changed, and the answer says what would be."""
_MOVED = ("previous_snapshot_id bigint", "current_snapshot_id bigint")
_PICKED = ("source_snapshot_id bigint", "current_snapshot_id bigint")

PROCEDURES: dict[str, Procedure] = {
    "rollback_to_snapshot": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint", is_required=True)),
        _MOVED,
        _moves(lambda table, values: table.rollback_to(values["snapshot_id"])),
    ),
    "rollback_to_timestamp": Procedure(
        (_TABLE, Parameter("timestamp", "timestamp", is_required=True)),
        _MOVED,
        _moves(lambda table, values: table.rollback_to(before=values["timestamp"])),
    ),
    "set_current_snapshot": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint"), Parameter("ref", "string")), _MOVED, _moves(_set_current)
    ),
    "cherrypick_snapshot": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint", is_required=True)), _PICKED, _cherry_pick
    ),
    "publish_changes": Procedure((_TABLE, Parameter("wap_id", "string", is_required=True)), _PICKED, _publish),
    "fast_forward": Procedure(
        (_TABLE, Parameter("branch", "string", is_required=True), Parameter("to", "string", is_required=True)),
        ("branch_updated string", "previous_ref bigint", "updated_ref bigint"),
        _fast_forward,
    ),
    "expire_snapshots": Procedure(
        (
            _TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("stream_results", "boolean"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean"),
            _DRY_RUN,
            Parameter("delete_roots", "array<string>"),
        ),
        (
            "deleted_data_files_count bigint",
            "deleted_position_delete_files_count bigint",
            "deleted_equality_delete_files_count bigint",
            "deleted_manifest_files_count bigint",
            "deleted_manifest_lists_count bigint",
            "deleted_statistics_files_count bigint",
        ),
        _maintains(
            "expire_snapshots",
            "older_than",
            "retain_last",
            "max_concurrent_deletes",
            "snapshot_ids",
            "clean_expired_metadata",
            "delete_roots",
        ),
        dry_columns=("deleted_bytes bigint", "kept_count bigint"),
    ),
    "ancestors_of": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint")), ("snapshot_id bigint", "timestamp bigint"), _ancestors
    ),
    "register_table": Procedure(
        (_TABLE, Parameter("metadata_file", "string", is_required=True)),
        ("current_snapshot_id bigint", "total_records_count bigint", "total_data_files_count bigint"),
        _register,
    ),
    "remove_orphan_files": Procedure(
        (
            _TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("location", "string"),
            Parameter("dry_run", "boolean"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("file_list_view", "string"),
            Parameter("equal_schemes", "map<string,string>"),
            Parameter("equal_authorities", "map<string,string>"),
            Parameter("prefix_mismatch_mode", "string"),
            Parameter("prefix_listing", "boolean"),
            Parameter("stream_results", "boolean"),
            Parameter("delete_roots", "array<string>"),
        ),
        ("orphan_file_location string",),
        _remove_orphans,
    ),
    "rewrite_data_files": Procedure(
        (
            _TABLE,
            Parameter("strategy", "string"),
            Parameter("sort_order", "string"),
            Parameter("options", "map<string,string>"),
            Parameter("where", "string"),
            _BRANCH,
            _DRY_RUN,
        ),
        (
            "rewritten_data_files_count int",
            "added_data_files_count int",
            "rewritten_bytes_count bigint",
            "failed_data_files_count int",
            "removed_delete_files_count int",
        ),
        _maintains("rewrite_data_files", "strategy", "options", "where", "branch", sort_order="sort_by"),
    ),
    "compute_table_stats": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint"), Parameter("columns", "array<string>"), _DRY_RUN),
        ("statistics_file string",),
        _table_stats,
    ),
    "compute_partition_stats": Procedure(
        (_TABLE, Parameter("snapshot_id", "bigint"), _DRY_RUN),
        ("partition_statistics_file string",),
        _partition_stats,
    ),
    "create_changelog_view": Procedure(
        (
            _TABLE,
            Parameter("changelog_view", "string"),
            Parameter("options", "map<string,string>"),
            Parameter("compute_updates", "boolean"),
            Parameter("identifier_columns", "array<string>"),
            Parameter("net_changes", "boolean"),
        ),
        ("changelog_view string",),
        _changelog_view,
    ),
    "add_files": Procedure(
        (
            _TABLE,
            Parameter("source_table", "string", is_required=True),
            Parameter("partition_filter", "map<string,string>"),
            Parameter("check_duplicate_files", "boolean"),
            Parameter("parallelism", "int"),
            _DRY_RUN,
        ),
        ("added_files_count bigint", "changed_partition_count bigint"),
        _add_files,
    ),
    "snapshot": Procedure(
        (
            Parameter("source_table", "string", is_required=True),
            _TABLE,
            Parameter("location", "string"),
            Parameter("properties", "map<string,string>"),
            Parameter("parallelism", "int"),
            Parameter("ignore_missing_files", "boolean"),
            _DRY_RUN,
        ),
        ("imported_files_count bigint",),
        _snapshot,
    ),
    "migrate": Procedure(
        (
            _TABLE,
            Parameter("properties", "map<string,string>"),
            Parameter("drop_backup", "boolean"),
            Parameter("backup_table_name", "string"),
            Parameter("parallelism", "int"),
            Parameter("ignore_missing_files", "boolean"),
            _DRY_RUN,
        ),
        ("migrated_files_count bigint",),
        _migrate,
    ),
    "rewrite_table_path": Procedure(
        (
            _TABLE,
            Parameter("source_prefix", "string", is_required=True),
            Parameter("target_prefix", "string", is_required=True),
            Parameter("start_version", "string"),
            Parameter("end_version", "string"),
            Parameter("staging_location", "string"),
            Parameter("create_file_list", "boolean"),
            _DRY_RUN,
        ),
        (
            "latest_version string",
            "file_list_location string",
            "rewritten_manifest_file_paths_count int",
            "rewritten_delete_file_paths_count int",
        ),
        _maintains(
            "rewrite_table_path",
            "source_prefix",
            "target_prefix",
            "start_version",
            "end_version",
            "staging_location",
            "create_file_list",
        ),
    ),
    "rewrite_position_delete_files": Procedure(
        (_TABLE, Parameter("options", "map<string,string>"), Parameter("where", "string"), _BRANCH, _DRY_RUN),
        (
            "rewritten_delete_files_count int",
            "added_delete_files_count int",
            "rewritten_bytes_count bigint",
            "added_bytes_count bigint",
        ),
        _maintains("rewrite_position_delete_files", "options", "where", "branch"),
    ),
    "rewrite_manifests": Procedure(
        (
            _TABLE,
            Parameter("use_caching", "boolean"),
            Parameter("spec_id", "int"),
            Parameter("sort_by", "array<string>"),
            _BRANCH,
            _DRY_RUN,
        ),
        ("rewritten_manifests_count int", "added_manifests_count int"),
        _maintains("rewrite_manifests", "use_caching", "spec_id", "sort_by", "branch"),
    ),
    "convert_equality_deletes": Procedure(
        (_TABLE, _BRANCH, _DRY_RUN),
        ("converted_delete_files_count int", "added_delete_files_count int", "deleted_rows_count bigint"),
        _maintains("convert_equality_deletes", "branch"),
    ),
    "remove_dangling_deletes": Procedure(
        (_TABLE, _BRANCH, _DRY_RUN), ("removed_delete_files_count int",), _remove_dangling
    ),
    "optimize": Procedure(
        (_TABLE, Parameter("budget_bytes", "bigint"), Parameter("budget_minutes", "double"), _DRY_RUN),
        ("procedure string", "reason string", "result string"),
        _optimize,
    ),
}
