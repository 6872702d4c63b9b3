"""Statements that change rows: INSERT, DELETE, UPDATE, MERGE. Each is one commit.

Queries become DataFrames, expressions stay text in Spark's words; names of lakes' tables inside them are made known to
Spark by the engine. INSERT goes by place, as SQL has it: the frame's columns get the table's names, and the table's
verbs do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.lake.answer import NOTHING, Answer
from frazil.lake.on_spark import spark_room
from frazil.lake.sql_context import Engine, SqlContext
from frazil.lake.sql_session import Place
from frazil.lake.table import Table
from frazil.lake.verbs import TableVerbs
from frazil.lake.write_rows import evolution_of
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.schema import Schema
from frazil.spec.types import IntType, LongType, NestedField, StringType
from frazil.sql import statements as s
from frazil.sql.literals import read_literal
from frazil.sql.quote_names import quote, quote_path
from frazil.sql.rewrite import fill_defaults, has_default, is_default, requalify
from frazil.sql.sql_literals import plain_text, shown_literal
from frazil.sql.type_names import spark_type_name

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
SNAPSHOT_PROPERTY = "snapshot-property."
TARGET, SOURCE = "target", "source"
"""What the verbs call the table that changes and, in a merge, the rows that come."""
Targets = dict[s.Name, tuple[Place, Table, str | None]]
WAP_BRANCH, WAP_ID = "spark.wap.branch", "spark.wap.id"


def write_options(
    engine: Engine, table: Table, branch: str | None, options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what a write's options say: the branch, and properties of the snapshot.

    A branch in the name and one in the options must agree; where neither is given and the table allows it, the
    session's `spark.wap.branch` and `spark.wap.id` count.
    """
    known = {key.lower(): value for key, value in (options or {}).items()}
    given = known.get("branch")
    if branch is not None and given is not None and branch != given:
        raise InvalidRequestError(f"Cannot write to branch {branch!r} and branch {given!r} at once")
    branch = branch or given
    properties = snapshot_properties_of(known)
    if read_property(table.properties, WRITE_AUDIT_PUBLISH_ENABLED):
        wap_branch, wap_id = engine.setting(WAP_BRANCH), engine.setting(WAP_ID)
        if wap_branch and wap_id:
            raise InvalidRequestError(f"Cannot write with both {WAP_BRANCH} and {WAP_ID}: unset one of them")
        if branch is None and wap_branch:
            branch = wap_branch
        if branch is None and wap_id:
            properties["wap.id"] = wap_id
    found: dict[str, Any] = {}
    if branch is not None:
        found["branch"] = branch
    if properties:
        found["snapshot_properties"] = properties
    return found


def snapshot_properties_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return what a write's options say for the snapshot's summary."""
    known = {key.lower(): value for key, value in options.items()}
    prefix = len(SNAPSHOT_PROPERTY)
    return {key[prefix:]: value for key, value in known.items() if key.startswith(SNAPSHOT_PROPERTY)}


# INSERT


def insert(context: SqlContext, statement: s.Insert) -> Answer:
    """Add rows, or replace rows by others."""
    _insertion(context, statement, {})()
    return NOTHING


def insert_each(context: SqlContext, statement: s.MultiInsert) -> Answer:
    """Carry out several inserts, one commit each. All queries see the tables as they were before the first."""
    targets: Targets = {}
    for write in [_insertion(context, one, targets) for one in statement.inserts]:
        write()
    return NOTHING


def _insertion(context: SqlContext, statement: s.Insert, targets: Targets) -> Callable[[], None]:
    """Return what writes the rows of an insert; its query reads tables as they are now.

    `targets` are the tables of one statement: each write begins where the last one to the same table ended.
    """
    engine = context.spark("insert rows")
    if statement.name not in targets:
        targets[statement.name] = context.session.write_target(statement.name)
    place, table, branch = targets[statement.name]
    schema = table.schema
    static = {_column(schema, name, place).name: value.text for name, value in statement.partition if value is not None}
    for name, _ in statement.partition:
        _check_partition_column(table, _column(schema, name, place))
    names = _target_columns(schema, statement, static, place)
    query = statement.query.text
    if has_default(query):
        query = fill_defaults(query, lambda at: _default_at(schema, names, at))
    frame = engine.query(query, None if statement.ctes is None else statement.ctes.text)
    if not statement.is_by_name:
        frame = by_place(frame, [schema.field(name) for name in names], place, may_differ=statement.evolves_schema)
    for name, value in static.items():
        frame = spark_room("column_values").with_value(
            frame, name, value, spark_type_name(schema.field(name).field_type)
        )
    options = write_options(engine, table, branch, statement.options)
    options["merge_schema"] = statement.evolves_schema

    def write() -> None:
        if statement.is_overwrite:
            _overwrite(engine, table, schema, frame, statement, static, options)
        else:
            table.append(frame, **options)

    return write


def _overwrite(
    engine: Engine,
    table: Table,
    schema: Schema,
    frame: Any,
    statement: s.Insert,
    static: Mapping[str, str],
    options: Mapping[str, Any],
) -> None:
    """Replace rows: those of a condition, of the partitions that are named or written to, or all."""
    mode = statement.options.get("overwrite-mode") or engine.setting(OVERWRITE_MODE) or "static"
    if statement.replace_where is not None:
        where = engine.spelled(statement.replace_where.text, statement.ctes).text
        table.overwrite(frame, where=where, **options)
    elif mode.lower() == "dynamic":
        # All of a table without partitions.
        table.overwrite_partitions(frame, **options)
    elif static:
        conditions = [_equals(schema.field(name), value) for name, value in static.items()]
        table.overwrite(frame, where=" and ".join(conditions), **options)
    else:
        table.overwrite(frame, **options)


def _equals(part: NestedField, value: str) -> str:
    """Return the condition for a partition of the PARTITION clause; plain where it can be, so that metadata decides."""
    literal = read_literal(value)
    name = quote(part.name)
    if literal is None:
        return f"{name} is null"
    is_text = isinstance(part.field_type, StringType) and isinstance(literal, str)
    is_whole = isinstance(part.field_type, IntType | LongType) and type(literal) is int
    if is_text or is_whole:
        return f"{name} = {plain_text(literal) if is_text else literal}"
    return f"{name} <=> cast({value} as {spark_type_name(part.field_type)})"


def evolve_schema(engine: Engine, table: TableVerbs, frame: Any, only: Collection[str] | None = None) -> None:
    """Take the columns of a DataFrame into the table's schema, or `only` some of them."""
    table._run(evolution_of(engine.schema_of(frame), only))


def _column(schema: Schema, name: str, place: Place) -> NestedField:
    found = next((part for part in schema.fields if part.name == name), None)
    found = found or next((part for part in schema.fields if part.name.lower() == name.lower()), None)
    if found is None:
        raise FieldNotFoundError(
            f"Cannot insert into {place}: it has no column {name!r}",
            hint=f"The columns are: {', '.join(part.name for part in schema.fields)}.",
        )
    return found


def _check_partition_column(table: Table, column: NestedField) -> None:
    if column.field_id not in table.spec.identity_source_ids:
        raise InvalidRequestError(
            f"Cannot name {column.name!r} in the PARTITION clause: the table is not partitioned by its plain values",
            hint="Leave the clause out, or use REPLACE WHERE.",
        )


def _target_columns(schema: Schema, statement: s.Insert, static: Mapping[str, str], place: Place) -> list[str]:
    if statement.columns:
        names = [_column(schema, name, place).name for name in statement.columns]
        twice = next((name for at, name in enumerate(names) if name in names[:at] or name in static), None)
        if twice is not None:
            raise InvalidRequestError(f"Cannot insert into {place}: the column {twice!r} is named twice")
        return names
    return [part.name for part in schema.fields if part.name not in static]


def by_place(frame: Any, fields: Sequence[NestedField], place: Place, *, may_differ: bool = False) -> Any:
    """Return a frame whose columns, and parts of structs in them, have the table's names, by place.

    Structs have as many parts as the table's, unless the write evolves the schema and they `may_differ`.
    """
    if len(frame.columns) != len(fields):
        raise InvalidRequestError(
            f"Cannot insert into {place}: {len(fields)} columns are written ({', '.join(one.name for one in fields)}), "
            f"and the query has {len(frame.columns)}",
            hint="Name the columns after the table, or use INSERT INTO ... BY NAME.",
        )
    return spark_room("store_assignment").place_columns(frame, fields, may_differ=may_differ)


def _default_at(schema: Schema, names: list[str], at: int) -> str:
    return default_text(schema.field(names[at])) if at < len(names) else "DEFAULT"


def default_text(part: NestedField) -> str:
    """Return what DEFAULT means for a column, as an expression."""
    return shown_literal(part.write_default, part.field_type)


# DELETE, UPDATE


def delete(context: SqlContext, statement: s.Delete) -> Answer:
    """Delete rows."""
    place, table, branch = context.session.write_target(statement.name)
    if statement.where is None:
        table.delete("true", **_branch(context, table, branch))
        return NOTHING
    engine = context.spark("delete rows")
    where = _condition(engine, statement.where, statement, place)
    table.delete(where, engine="spark", **write_options(engine, table, branch))
    return NOTHING


def _branch(context: SqlContext, table: Table, branch: str | None) -> dict[str, Any]:
    if context.engine is not None:
        return write_options(context.engine, table, branch)
    return {} if branch is None else {"branch": branch}


def own_qualifiers(place: Place, alias: str | None, other: str) -> dict[tuple[str, ...], str]:
    """Return what may stand before a column of a table: its alias, or without one the end of its name."""
    if alias is not None:
        return {(alias,): other}
    name = (place.lake_name, *place.name)
    return {name[at:]: other for at in range(len(name))}


def _condition(engine: Engine, span: s.Span, statement: s.Delete | s.Update, place: Place) -> str:
    spelled = engine.spelled(span.text, statement.ctes)
    return requalify(spelled.text, own_qualifiers(place, statement.alias, TARGET), spelled.inner)


def update(context: SqlContext, statement: s.Update) -> Answer:
    """Change values of rows."""
    engine = context.spark("update rows")
    place, table, branch = context.session.write_target(statement.name)
    values: dict[str, str] = {}
    for one in statement.assignments:
        path = _own_path(one.path, place, statement.alias, table.schema)
        name = quote_path(path)
        if name in values:
            raise InvalidRequestError(f"Cannot update {place}: the column {name} is set twice")
        values[name] = (
            default_text(table.schema.field(".".join(path), case_sensitive=False))
            if is_default(one.value.text)
            else _condition(engine, one.value, statement, place)
        )
    options = write_options(engine, table, branch)
    if statement.where is not None:
        options["where"] = _condition(engine, statement.where, statement, place)
    table.update(values, engine="spark", **options)
    return NOTHING


def _own_path(path: s.Name, place: Place, alias: str | None, schema: Schema) -> s.Name:
    """Return a column's path without the table's alias or name before it."""
    lower = tuple(part.lower() for part in path)
    columns = {part.name.lower() for part in schema.fields}
    for qualifier in sorted(own_qualifiers(place, alias, TARGET), key=len, reverse=True):
        size = len(qualifier)
        if size < len(path) and lower[:size] == tuple(part.lower() for part in qualifier) and lower[size] in columns:
            return path[size:]
    return path


# MERGE


def merge(context: SqlContext, statement: s.Merge) -> Answer:
    """Bring rows of a source into a table."""
    engine = context.spark("merge rows")
    place, table, branch = context.session.write_target(statement.name)
    source = statement.source.text if statement.source_is_query else f"select * from {statement.source.text}"
    frame = engine.query(source, None if statement.ctes is None else statement.ctes.text)
    if statement.source_columns:
        if len(statement.source_columns) != len(frame.columns):
            raise InvalidRequestError(
                f"Cannot merge into {place}: the source's alias names {len(statement.source_columns)} columns, and it "
                f"has {len(frame.columns)}"
            )
        frame = frame.toDF(*statement.source_columns)
    qualifiers = own_qualifiers(place, statement.alias, TARGET)
    if statement.source_alias is not None:
        qualifiers[statement.source_alias,] = SOURCE
    elif not statement.source_is_query:
        parts = tuple(part.strip("`") for part in statement.source.text.split("."))
        qualifiers |= {parts[at:]: SOURCE for at in range(len(parts))}

    def spell(span: s.Span) -> str:
        spelled = engine.spelled(span.text, statement.ctes)
        return requalify(spelled.text, qualifiers, spelled.inner)

    options = write_options(engine, table, branch)
    if not statement.evolves_schema:
        run_merge(place, table, table.schema, frame, statement, spell, options)
        return NOTHING
    with table.transaction() as changes:
        evolve_schema(engine, changes, frame, _assigned_columns(statement, place, engine.schema_of(frame)))
        evolved = changes._begin().metadata.current_schema
        run_merge(place, changes, evolved, frame, statement, spell, {**options, "merge_schema": True})
    return NOTHING


def _assigned_columns(statement: s.Merge, place: Place, source: Schema) -> set[str] | None:
    """Return the columns that a merge's clauses assign, in lower case; None where one of them assigns all."""
    clauses = [one for one in statement.clauses if one.action != "delete"]
    if not all(one.assignments for one in clauses):
        return None
    paths = (one.path for clause in clauses for one in clause.assignments)
    return {_own_path(path, place, statement.alias, source)[0].lower() for path in paths}


def run_merge(
    place: Place,
    table: TableVerbs,
    schema: Schema,
    frame: Any,
    statement: s.Merge,
    spell: Callable[[s.Span], str],
    options: Mapping[str, Any],
) -> None:
    """Make a merge of a statement's clauses, and carry it out."""
    builder = table.merge(frame, on=spell(statement.on), **options)
    verbs = {
        "matched": "when_matched",
        "not_matched": "when_not_matched",
        "not_matched_by_source": "when_not_matched_by_source",
    }
    for clause in statement.clauses:
        condition = None if clause.condition is None else spell(clause.condition)
        start = getattr(builder, verbs[clause.when])
        when = start() if condition is None else start(condition)
        if clause.action == "delete":
            builder = when.delete()
            continue
        if not clause.assignments:
            builder = when.update_all() if clause.action == "update" else when.insert_all()
            continue
        values: dict[str, str] = {}
        for one in clause.assignments:
            path = _own_path(one.path, place, statement.alias, schema)
            name = quote_path(path)
            if name in values:
                raise InvalidRequestError(f"Cannot merge into {place}: the column {name} is set twice")
            if is_default(one.value.text):
                values[name] = default_text(schema.field(".".join(path), case_sensitive=False))
            else:
                values[name] = spell(one.value)
        builder = when.update(values) if clause.action == "update" else when.insert(values)
    builder.execute()
