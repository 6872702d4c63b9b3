"""What Python does when Spark runs a change: of rows, by a verb of the table, or of the table itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from frazil.errors import (
    InvalidRequestError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.lake.sql_session import FullName
from frazil.lake.table import hold
from frazil.lake.verbs import TableVerbs
from frazil.lake.write_overrides import with_overrides
from frazil.sessions import row_counts
from frazil.sessions.alter_table import alter_table
from frazil.sessions.question import Question
from frazil.sessions.run_ddl import create_with_schema, find_table, optional_columns
from frazil.sessions.sql_context import SqlContext, with_owner
from frazil.sessions.write_options import by_place, create_options, read_write_options
from frazil.spark.change.resolved import Resolved, schema_of_json
from frazil.spark.types import from_spark_schema
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.spec.snapshot import Snapshot
from frazil.sql import statements as s
from frazil.sql.quote_names import quote


def _write(question: Question, verb: str) -> str:
    full_name, table, branch = question.target()
    given = read_write_options(question.spark, table, branch, question.payload["options"])
    frame = question.frame(1)
    evolves = question.payload["evolves"]
    merges = evolves or given.merges_schema
    if merges and not evolves and not read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
        raise InvalidRequestError(
            f"Cannot change the schema of {full_name} with a write: the table does not allow it",
            hint="Set write.spark.accept-any-schema=true.",
        )
    if not question.payload["by-name"] and question.payload["any-schema"]:
        frame = by_place(frame, table.schema.fields, full_name, may_differ=merges)
    target = with_overrides(table, given.said)
    if verb == "append":
        made = target.append(frame, merge_schema=merges, **given.arguments)
    elif verb == "overwrite-partitions" or given.is_dynamic:
        made = target.overwrite_partitions(frame, merge_schema=merges, **given.arguments)
    else:
        where = question.expression(question.payload["where"])
        if where.sql_text == "true":
            made = target.overwrite(frame, merge_schema=merges, **given.arguments)
        else:
            made = target.overwrite(frame, where=where, merge_schema=merges, **given.arguments)
    return row_counts.inserted(made)


def _target(question: Question) -> tuple[TableVerbs, dict[str, Any]]:
    """Return the table that a change is of, as its options say, and the arguments of the verb."""
    _, table, branch = question.target()
    given = read_write_options(question.spark, table, branch, question.payload.get("options", {}))
    target = with_overrides(table, given.said)
    return target, given.arguments


def _delete(question: Question) -> str:
    table, options = _target(question)
    made = table.delete(question.expression(question.payload["where"]), engine="spark", **options)
    return row_counts.affected(made)


def _truncate(question: Question) -> None:
    table, options = _target(question)
    table.delete("true", **options)


def _analyze(question: Question) -> None:
    """ANALYZE TABLE: counts of rows and bytes are in manifests, so that NOSCAN finds them there."""
    full_name, table, branch = question.target()
    payload = question.payload
    if payload.get("partition"):
        raise UnsupportedError(
            f"Cannot analyze a partition of {full_name}: statistics are of whole tables",
            hint=f"Leave PARTITION out; {full_name}.partitions has counts of each.",
        )
    if branch is not None:
        raise UnsupportedError(f"Cannot analyze the branch {branch!r} of {full_name}: statistics are of the table")
    if not payload.get("noscan"):
        table.maintain.compute_table_stats(columns=payload.get("columns"))


def _values(question: Question, assignments: Sequence[Mapping[str, Any]]) -> dict[str, Resolved]:
    return {quote(assignment["column"]): question.expression(assignment["value"]) for assignment in assignments}


def _update(question: Question) -> str:
    table, options = _target(question)
    if "where" in question.payload:
        options["where"] = question.expression(question.payload["where"])
    values = _values(question, question.payload["values"])
    made = table.update(values, engine="spark", **options) if values else None
    return row_counts.affected(made)


def _merge(question: Question) -> str:
    _, table, branch = question.target()
    given = read_write_options(question.spark, table, branch, question.payload["options"])
    evolution = question.kept().evolution
    if evolution is None:
        return row_counts.merged(_run_merge(question, with_overrides(table, given.said), given.arguments))
    with table.transaction() as changes:
        changes._run(evolution)
        made = _run_merge(question, with_overrides(changes, given.said), given.arguments)
    return row_counts.merged(made)


def _run_merge(question: Question, table: TableVerbs, options: Mapping[str, Any]) -> Snapshot | None:
    builder: Any = table.merge(question.frame(1), on=question.expression(question.payload["on"]), **options)
    for clause_json in question.payload["clauses"]:
        condition = question.expression(clause_json["where"]) if "where" in clause_json else None
        clause = getattr(builder, f"when_{clause_json['when']}")(condition)
        if clause_json["do"] == "delete":
            builder = clause.delete()
        else:
            builder = getattr(clause, clause_json["do"])(_values(question, clause_json["values"]))
    made: Snapshot | None = builder.execute()
    return made


def _create(question: Question) -> None:
    payload, full_name = question.payload, question.full_name
    existing = find_table(full_name)
    if existing is not None:
        # Others' changes since the query read the table are conflicts.
        of_itself = [
            table for table in question.read_tables() if table.metadata.table_uuid == existing.metadata.table_uuid
        ]
        existing = hold(min([existing, *of_itself], key=lambda table: table.metadata.last_updated_ms))
    if existing is not None and not payload.get("replaces"):
        if payload.get("if-not-exists"):
            return
        raise TableAlreadyExistsError(f"Cannot create {full_name}: there is a table of that name")
    if existing is None and not payload.get("creates", True):
        raise TableNotFoundError(
            f"Cannot replace {full_name}: there is no such table", hint="Use CREATE OR REPLACE TABLE to create it."
        )
    frame = None if "schema" in payload else question.frame(0)
    if frame is None:
        schema = from_spark_schema(schema_of_json(payload["schema"]))
    else:
        schema = optional_columns(question.engine().schema_of(frame))
    properties = dict(payload["properties"])
    location = payload.get("location") or properties.pop("location", None)
    provider = payload.get("provider") or properties.pop("provider", None)
    comment = payload.get("comment")
    if comment is not None:
        properties["comment"] = comment
    properties |= {key.removeprefix("option."): value for key, value in payload.get("table-options", {}).items()}
    _check_layout(full_name, payload["partitions"])
    statement = s.CreateTable(
        (full_name.lake_name, *full_name.name),
        (),
        tuple(_term(term) for term in payload["partitions"]),
        provider,
        location,
        with_owner(FrozenMap(properties), question.engine()),
        creates=payload.get("creates", True),
        replaces=payload.get("replaces", False),
    )
    options = payload.get("options", {})
    if any(key.lower() == "branch" for key in options):
        raise InvalidRequestError(
            f"Cannot create {full_name} and write to a branch of it at once",
            hint="Leave the branch out; write to it when the table is there.",
        )
    properties_of_snapshot, said = create_options(question.spark, options)
    create_with_schema(full_name, existing, statement, schema, frame, properties_of_snapshot, said)


_LAYOUTS = {
    "sorted_bucket": (
        "with sortBy: buckets of a lake's table are not sorted one by one",
        "Give the table a sort order: ALTER TABLE … WRITE ORDERED BY.",
    ),
    "cluster_by": ("with clusterBy: there is no clustering by columns", "Partition it, or give it a sort order."),
}


def _check_layout(full_name: FullName, terms: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what Spark's writers may ask for and a table cannot be laid out by."""
    for term in terms:
        if term["name"] in _LAYOUTS:
            reason, hint = _LAYOUTS[term["name"]]
            raise UnsupportedError(f"Cannot create {full_name} {reason}", hint=hint)
        if term["name"] == "bucket" and len(term["arguments"]) > 2:
            raise UnsupportedError(
                f"Cannot create {full_name} with buckets of {len(term['arguments']) - 1} columns: "
                "a bucket is of one column",
                hint="Give each column a bucket of its own: partitionedBy(bucket(…, …), bucket(…, …)).",
            )


def _term(term: Mapping[str, Any]) -> str:
    arguments = [
        ".".join(map(quote, argument)) if isinstance(argument, list) else str(argument)
        for argument in term["arguments"]
    ]
    return arguments[0] if term["name"] == "identity" else f"{term['name']}({', '.join(arguments)})"


def _drop(question: Question) -> str | None:
    full_name = question.full_name
    if not full_name.lake.table_exists(full_name.name):
        return None
    full_name.lake.drop_table(full_name.name, purge=question.payload.get("purge", False))
    return "true"


def _alter(question: Question) -> None:
    full_name, session = question.full_name, question.own_session()
    context = SqlContext(session, question.engine(session))
    alter_table(context, (full_name.lake_name, *full_name.name), question.payload["changes"])


def _rename(question: Question) -> None:
    question.lake.rename_table(question.full_name.name, tuple(question.payload["to"]))


WRITE_VERBS: dict[str, Callable[[Question], Any]] = {
    "append": lambda question: _write(question, "append"),
    "overwrite": lambda question: _write(question, "overwrite"),
    "overwrite-partitions": lambda question: _write(question, "overwrite-partitions"),
    "delete": _delete,
    "truncate": _truncate,
    "analyze": _analyze,
    "update": _update,
    "merge": _merge,
    "create": _create,
    "alter": _alter,
    "drop": _drop,
    "rename": _rename,
}
