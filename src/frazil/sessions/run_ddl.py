"""Statements that change namespaces, tables and columns. Each is one commit; only queries need Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.catalog.names import format_name
from frazil.commit.append import Append
from frazil.commit.new_snapshot import Target
from frazil.commit.replace_table import ReplaceTable
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.errors import (
    AlreadyExistsError,
    FieldNotFoundError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    ReferenceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from frazil.expr.predicates import TRUE
from frazil.lineage import observe_run
from frazil.sessions.answer import NOTHING, Answer
from frazil.sessions.sql_context import SqlContext, with_owner
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.parse_type import parse_schema, parse_type
from frazil.spec.partitioning import UNPARTITIONED, build_partition_spec
from frazil.spec.properties import FORMAT_VERSION
from frazil.spec.schema import Schema, walk_fields
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.versions import DEFAULT
from frazil.sql import statements as s
from frazil.sql.parse_types import parse_names_text, parse_order_text
from frazil.sql.quote_names import quote_if_needed, quote_path
from frazil.sql.type_names import PARTITION_FIELD_NAMES, named_partition_terms
from frazil.table.create_table import take_format_version
from frazil.table.sql_session import FullName
from frazil.table.table import Table, hold
from frazil.text.literals import quote_text
from frazil.verbs.append import append
from frazil.verbs.one_commit import OneCommit
from frazil.verbs.write_overrides import AS_THE_TABLE_SAYS, WriteOverrides
from frazil.verbs.write_session import NO_PROPERTIES, read_set_of

DISTRIBUTION_MODE = "write.distribution-mode"
_READ_ONLY = frozenset({"sort-order", "identifier-fields", PARTITION_FIELD_NAMES})
_DERIVED = _READ_ONLY | {"provider", "format", "current-snapshot-id", "location"}


# Namespaces and the session


def create_namespace(context: SqlContext, statement: s.CreateNamespace) -> Answer:
    """Create a namespace."""
    full_name = context.session.namespace_place(statement.name)
    catalog = full_name.lake.catalog
    engine = context.engine if catalog.has_namespace_properties else None
    try:
        catalog.create_namespace(full_name.name, with_owner(statement.properties, engine))
    except NamespaceAlreadyExistsError:
        if not statement.if_not_exists:
            raise
    return NOTHING


def drop_namespace(context: SqlContext, statement: s.DropNamespace) -> Answer:
    """Drop a namespace; with CASCADE, drop its contents first."""
    full_name = context.session.namespace_place(statement.name)
    if not full_name.lake.catalog.namespace_exists(full_name.name) and statement.if_exists:
        return NOTHING
    if statement.cascade:
        _empty(full_name)
    full_name.lake.drop_namespace(full_name.name)
    return NOTHING


def _empty(full_name: FullName) -> None:
    for table in full_name.lake.list_tables(full_name.name):
        full_name.lake.drop_table(table)
    for view in full_name.lake.list_views(full_name.name):
        full_name.lake.catalog.drop_view(view)
    for child in full_name.lake.list_namespaces(full_name.name):
        _empty(FullName(full_name.lake_name, full_name.lake, child))
        full_name.lake.drop_namespace(child)


def alter_namespace(context: SqlContext, statement: s.AlterNamespace) -> Answer:
    """Set and remove properties of a namespace."""
    full_name = context.session.namespace_place(statement.name)
    full_name.lake.catalog.update_namespace_properties(full_name.name, statement.updates, statement.removals)
    return NOTHING


# Tables


def create_table(context: SqlContext, statement: s.CreateTable) -> Answer:
    """Create or replace a table from columns; Spark handles creation from a query."""
    full_name = context.session.full_name(statement.name)
    if statement.query is not None:
        raise InvalidRequestError(
            f"Cannot create {full_name} from a query without Spark",
            hint="Create it, then append the result of `lake.sql`.",
        )
    catalog = full_name.lake.catalog
    existing = find_table(full_name)
    if existing is not None and not statement.replaces:
        if statement.if_not_exists:
            return NOTHING
        raise TableAlreadyExistsError(f"Cannot create {full_name}: there is a table of that name")
    if existing is None and not statement.creates:
        raise TableNotFoundError(
            f"Cannot replace {full_name}: there is no such table", hint="Use CREATE OR REPLACE TABLE to create it."
        )
    owned = replace(statement, properties=with_owner(statement.properties, context.engine))
    try:
        create_with_schema(full_name, existing, owned, schema_of_columns(context, statement.columns))
    except AlreadyExistsError:
        if not statement.if_not_exists or catalog.view_exists(full_name.name):
            raise
    return NOTHING


def create_with_schema(
    full_name: FullName,
    existing: Table | None,
    statement: s.CreateTable,
    schema: Schema,
    frame: Any = None,
    snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    overrides: WriteOverrides = AS_THE_TABLE_SAYS,
) -> None:
    """Create or replace a table with a schema, and write the rows of a DataFrame into it in the same commit.

    The rows may come from the replaced table, so concurrent changes of its rows are conflicts.
    """
    lake, catalog = full_name.lake, full_name.lake.catalog
    properties, version = take_format_version(
        {key: value for key, value in statement.properties.items() if key not in _DERIVED}
    )
    if statement.provider is not None and statement.provider.lower() != "iceberg":
        properties.setdefault("write.format.default", statement.provider.lower())
    _check_names(schema, full_name)
    schema = _with_identifiers(schema, statement.properties)
    terms = _with_names(statement.partition_by, statement.properties)
    spec = build_partition_spec(schema, terms, case_sensitive=False)
    order = parse_order_text(statement.properties["sort-order"]) if "sort-order" in statement.properties else ()
    run = observe_run(None if frame is None else catalog, "create", ".".join(full_name.name), frame)
    with OneCommit(catalog, lake._cache, run) as commit:
        if existing is None:
            if not catalog.namespace_exists(full_name.name[:-1]):
                lake.create_namespace(full_name.name[:-1])
            staged = catalog.stage_table(
                full_name.name,
                schema,
                spec if terms else UNPARTITIONED,
                build_sort_order(schema, order, case_sensitive=False) if order else UNSORTED,
                location=statement.location,
                properties=properties,
                format_version=DEFAULT if version is None else version,
            )
            table = commit.table(staged)
        else:
            state = existing.state
            table = commit.table(state)
            table.session.run(
                ReplaceTable(
                    schema,
                    terms,
                    order,
                    properties=FrozenMap(properties),
                    location=statement.location,
                    format_version=version,
                    case_sensitive=False,
                    read=None if frame is None else read_set_of(state, MAIN_BRANCH, TRUE),
                )
            )
        if frame is not None:
            append(replace(table.session, overrides=overrides, snapshot_properties=snapshot_properties), frame)


def _with_identifiers(schema: Schema, properties: Mapping[str, str]) -> Schema:
    """Return a schema with the identifier fields named by properties, in the form of SHOW CREATE TABLE: `[id, x.y]`."""
    if "identifier-fields" not in properties:
        return schema
    names = (".".join(path) for path in parse_names_text(properties["identifier-fields"]))
    ids = tuple(schema.field(name, case_sensitive=False).field_id for name in names)
    return Schema(schema.fields, schema.schema_id, ids)


def _with_names(terms: tuple[str, ...], properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return partition terms with the field names of a property, in the form of SHOW CREATE TABLE: `[h, s]`."""
    if PARTITION_FIELD_NAMES not in properties:
        return terms
    names = parse_names_text(properties[PARTITION_FIELD_NAMES])
    if len(names) != len(terms) or any(len(name) != 1 for name in names):
        raise InvalidRequestError(
            f"Cannot name the partition fields {properties[PARTITION_FIELD_NAMES]}: the table has {len(terms)} of them",
            hint=f"Set {PARTITION_FIELD_NAMES} to one name for each, in order: '[a, b]'.",
        )
    return tuple(f"{term} as {quote_path(name)}" for term, name in zip(terms, names, strict=True))


def _check_names(schema: Schema, full_name: FullName) -> None:
    """Refuse columns whose names differ only in case, since SQL could not distinguish them."""
    names: dict[str, str] = {}
    for _, name, _ in walk_fields(schema.struct):
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise InvalidRequestError(f"Cannot create {full_name}: it would have the columns {other!r} and {name!r}")


def find_table(full_name: FullName) -> Table | None:
    """Return a table, held for one statement, or None if it does not exist."""
    try:
        return hold(full_name.lake.table(full_name.name))
    except TableNotFoundError:
        return None
    except NamespaceNotFoundError:
        return None


def optional_columns(schema: Schema) -> Schema:
    """Make a query's columns optional for a table, as in Iceberg Java."""
    return Schema(tuple(replace(field, required=False) for field in schema.fields))


def schema_of_columns(context: SqlContext, columns: Sequence[s.ColumnDefinition]) -> Schema:
    """Return the schema for the column definitions of a statement; defaults are evaluated."""
    parts = []
    for column in columns:
        text = f"{quote_if_needed(column.path[0])} {column.type}"
        if column.is_required:
            text += " not null"
        if column.comment is not None:
            text += f" comment {quote_text(column.comment)}"
        parts.append(text)
    schema = parse_schema(", ".join(parts)) if parts else Schema(())
    if all(definition.default is None for definition in columns):
        return schema
    fields = [
        field
        if definition.default is None
        else replace(
            field, write_default=context.value(definition.default, field.field_type, f"the default of {field.name}")
        )
        for field, definition in zip(schema.fields, columns, strict=True)
    ]
    return Schema(tuple(fields), schema.schema_id, schema.identifier_field_ids)


def create_table_like(context: SqlContext, statement: s.CreateTableLike) -> Answer:
    """Create an empty table with the columns and the partitioning of another."""
    full_name = context.session.full_name(statement.name)
    existing = find_table(full_name)
    if existing is not None:
        if statement.if_not_exists:
            return NOTHING
        raise TableAlreadyExistsError(f"Cannot create {full_name}: there is a table of that name")
    properties = dict(statement.properties)
    terms: tuple[str, ...] = ()
    if context.session.find_full_name(statement.source) is not None:
        source = context.session.table(statement.source)
        schema = source.schema
        terms = tuple(named_partition_terms(schema, source.spec))
        properties.setdefault(FORMAT_VERSION.name, str(source.format_version))
    else:
        engine = context.spark("create a table like a Spark table")
        schema = engine.schema_of(engine.query(f"select * from {quote_path(statement.source)}"))
    definition = s.CreateTable(
        statement.name,
        (),
        terms,
        None,
        statement.location,
        with_owner(FrozenMap(properties), context.engine),
        if_not_exists=statement.if_not_exists,
    )
    create_with_schema(full_name, None, definition, schema)
    return NOTHING


def drop_table(context: SqlContext, statement: s.DropTable) -> Answer:
    """Drop a table."""
    full_name = context.session.full_name(statement.name)
    try:
        full_name.lake.drop_table(full_name.name, purge=statement.purge)
    except (TableNotFoundError, NamespaceNotFoundError):
        if full_name.lake.catalog.namespace_exists(full_name.name[:-1]) and full_name.lake.catalog.view_exists(
            full_name.name
        ):
            raise InvalidRequestError(f"Cannot drop table {full_name}: it is a view", hint="Use DROP VIEW.") from None
        if not statement.if_exists:
            raise
    return NOTHING


def rename_table(context: SqlContext, statement: s.RenameTable) -> Answer:
    """Rename a table within its lake."""
    full_name = context.session.full_name(statement.name)
    full_name.lake.rename_table(full_name.name, context.session.same_lake(full_name, statement.new_name))
    return NOTHING


# Columns


def _changing(change: Callable[[SqlContext, Any, Schema, Any], None]) -> Callable[[SqlContext, Any], Answer]:
    """Return a statement's function that applies one schema update to the table's present columns."""

    def run(context: SqlContext, statement: Any) -> Answer:
        table = context.session.table(statement.name)
        with table.update_schema(case_sensitive=False) as update:
            change(context, statement, table.schema, update)
        return NOTHING

    return run


def _add_columns(context: SqlContext, statement: s.AddColumns, schema: Schema, update: Any) -> None:
    for column in statement.columns:
        if statement.if_not_exists and schema.find_field(".".join(column.path), case_sensitive=False) is not None:
            continue
        _add_column(context, update, column)


def _add_column(context: SqlContext, update: Any, column_definition: s.ColumnDefinition) -> None:
    default = None
    if column_definition.default is not None:
        default = context.value(
            column_definition.default,
            parse_type(column_definition.type),
            f"the default of {format_name(column_definition.path)}",
        )
    places: dict[str, Any] = {}
    if column_definition.position is not None:
        sibling = column_definition.position.after
        places = {"first": True} if sibling is None else {"after": (*column_definition.path[:-1], sibling)}
    update.add_column(
        column_definition.path,
        column_definition.type,
        doc=column_definition.comment,
        required=column_definition.is_required,
        default=default,
        **places,
    )


def _drop_columns(context: SqlContext, statement: s.DropColumns, schema: Schema, update: Any) -> None:
    for path in statement.paths:
        try:
            update.drop_column(path)
        except FieldNotFoundError:
            if not statement.if_exists:
                raise


def _rename_column(context: SqlContext, statement: s.RenameColumn, schema: Schema, update: Any) -> None:
    update.rename_column(statement.path, statement.new_name)


def _alter_columns(context: SqlContext, statement: s.AlterColumns, schema: Schema, update: Any) -> None:
    for change in statement.changes:
        if change.type is not None:
            update.set_type(change.path, change.type)
        if change.comment is not None:
            update.set_doc(change.path, change.comment)
        if change.is_required is not None:
            (update.make_required if change.is_required else update.make_optional)(change.path)
        if change.drops_default:
            update.set_default(change.path, None)
        if change.default is not None:
            field = schema.field(".".join(change.path), case_sensitive=False)
            update.set_default(
                change.path, context.value(change.default, field.field_type, f"the default of {field.name}")
            )
        if change.position is not None:
            if change.position.after is None:
                update.move_first(change.path)
            else:
                update.move_after(change.path, (*change.path[:-1], change.position.after))
        if change.new_name is not None:
            update.rename_column(change.path, change.new_name)


def _replace_columns(context: SqlContext, statement: s.ReplaceColumns, schema: Schema, update: Any) -> None:
    for field in schema.fields:
        update.drop_column((field.name,))
    for column in statement.columns:
        _add_column(context, update, column)


def _set_identifier_fields(context: SqlContext, statement: s.SetIdentifierFields, schema: Schema, update: Any) -> None:
    update.set_identifier_fields(statement.paths)


def _drop_identifier_fields(
    context: SqlContext, statement: s.DropIdentifierFields, schema: Schema, update: Any
) -> None:
    present = [schema.name_of(field_id) for field_id in schema.identifier_field_ids]
    dropped = {schema.field(".".join(path), case_sensitive=False).field_id: path for path in statement.paths}
    for field_id, path in dropped.items():
        if field_id not in schema.identifier_field_ids:
            raise InvalidRequestError(f"Cannot drop identifier field {format_name(path)}: it is not one")
    update.set_identifier_fields([name for name in present if schema.field(name).field_id not in dropped])


add_columns = _changing(_add_columns)
drop_columns = _changing(_drop_columns)
rename_column = _changing(_rename_column)
alter_columns = _changing(_alter_columns)
replace_columns = _changing(_replace_columns)
set_identifier_fields = _changing(_set_identifier_fields)
drop_identifier_fields = _changing(_drop_identifier_fields)


# Partition fields and order


def add_partition_field(context: SqlContext, statement: s.AddPartitionField) -> Answer:
    """Add a partition field for new files."""
    with context.session.table(statement.name).update_spec(case_sensitive=False) as update:
        update.add_field(statement.term, statement.field_name)
    return NOTHING


def drop_partition_field(context: SqlContext, statement: s.DropPartitionField) -> Answer:
    """Remove a partition field for new files."""
    with context.session.table(statement.name).update_spec(case_sensitive=False) as update:
        update.remove_field(statement.field)
    return NOTHING


def replace_partition_field(context: SqlContext, statement: s.ReplacePartitionField) -> Answer:
    """Replace a partition field for new files."""
    with context.session.table(statement.name).update_spec(case_sensitive=False) as update:
        update.remove_field(statement.field)
        update.add_field(statement.term, statement.field_name)
    return NOTHING


def set_write_order(context: SqlContext, statement: s.SetWriteOrder) -> Answer:
    """Set the sort order and the distribution of new files, in one commit."""
    table = context.session.table(statement.name)
    with table.transaction() as changes:
        changes._run(UpdateSortOrder(statement.terms, case_sensitive=False))
        if statement.distribution is not None:
            changes.set_properties({DISTRIBUTION_MODE: statement.distribution})
    return NOTHING


# Properties


def set_properties(context: SqlContext, statement: s.SetProperties) -> Answer:
    """Set properties; some names stand for other changes, as in Iceberg Java."""
    table = context.session.table(statement.name)
    properties = dict(statement.properties)
    refused = sorted(_READ_ONLY & properties.keys())
    if refused:
        raise InvalidRequestError(
            f"Cannot set {refused[0]!r} as a property",
            hint="Use ALTER TABLE ... WRITE ORDERED BY, or ... SET IDENTIFIER FIELDS.",
        )
    current = properties.pop("current-snapshot-id", None)
    picked = properties.pop("cherry-pick-snapshot-id", None)
    if current is not None and picked is not None:
        raise InvalidRequestError("Cannot set the current snapshot and cherry-pick another at once")
    with table.transaction() as changes:
        if current is not None:
            changes.set_current_snapshot(_snapshot_id(current))
        if picked is not None:
            changes.cherry_pick(_snapshot_id(picked))
        location = properties.pop("location", None)
        if location is not None:
            changes.set_location(location)
        version = properties.pop(FORMAT_VERSION.name, None)
        if version is not None:
            changes.upgrade(_snapshot_id(version))
        if properties:
            changes.set_properties(properties)
    return NOTHING


def _snapshot_id(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidRequestError(f"Cannot use {text!r}: it is not a whole number") from error


def unset_properties(context: SqlContext, statement: s.UnsetProperties) -> Answer:
    """Remove properties; missing ones are ignored."""
    context.session.table(statement.name).remove_properties(statement.keys)
    return NOTHING


def set_location(context: SqlContext, statement: s.SetLocation) -> Answer:
    """Set the location for new files."""
    context.session.table(statement.name).set_location(statement.location)
    return NOTHING


def refresh_table(context: SqlContext, statement: s.RefreshTable) -> Answer:
    """Check that the table exists; nothing is cached, since every statement reads the catalog."""
    _ = context.session.table(statement.name)
    return NOTHING


# Branches and tags


def create_ref(context: SqlContext, statement: s.CreateRef) -> Answer:
    """Create or replace a branch or tag; the retention of a replaced one is preserved unless it is set."""
    table = context.session.table(statement.name)
    present = table.metadata.find_ref(statement.ref)
    if present is None and not statement.creates:
        raise ReferenceNotFoundError(f"Cannot replace {statement.kind} {statement.ref!r}: the table has none")
    if present is not None and statement.replaces and present.type != statement.kind:
        raise AlreadyExistsError(
            f"Cannot replace {statement.kind} {statement.ref!r}: there is a {present.type} of that name"
        )
    age_ms = statement.max_ref_age_ms
    if age_ms is None and present is not None and statement.replaces:
        age_ms = present.max_ref_age_ms
    if statement.kind == "tag":
        table.create_tag(
            statement.ref,
            statement.snapshot_id,
            max_ref_age_ms=age_ms,
            replaces=statement.replaces,
            exist_ok=statement.if_not_exists,
        )
        return NOTHING
    keep, snapshot_age_ms = statement.min_snapshots_to_keep, statement.max_snapshot_age_ms
    if present is not None and statement.replaces:
        keep = present.min_snapshots_to_keep if keep is None else keep
        snapshot_age_ms = present.max_snapshot_age_ms if snapshot_age_ms is None else snapshot_age_ms
    if present is None and statement.snapshot_id is None and table.current_snapshot is None:
        _begin_branch(table, statement)
        return NOTHING
    table.create_branch(
        statement.ref,
        statement.snapshot_id,
        min_snapshots_to_keep=keep,
        max_snapshot_age_ms=snapshot_age_ms,
        max_ref_age_ms=age_ms,
        replaces=statement.replaces,
        exist_ok=statement.if_not_exists,
    )
    return NOTHING


def _begin_branch(table: Table, statement: s.CreateRef) -> None:
    """Create a branch of a table without snapshots: the branch starts with an empty one, the table keeps none."""
    with table.transaction() as changes:
        changes._run(Append((), Target(statement.ref), is_fast=True, may_be_empty=True))
        changes.set_retention(
            statement.ref,
            min_snapshots_to_keep=statement.min_snapshots_to_keep,
            max_snapshot_age_ms=statement.max_snapshot_age_ms,
            max_ref_age_ms=statement.max_ref_age_ms,
        )


def drop_ref(context: SqlContext, statement: s.DropRef) -> Answer:
    """Drop a branch or tag."""
    table = context.session.table(statement.name)
    drop = table.drop_branch if statement.kind == "branch" else table.drop_tag
    drop(statement.ref, missing_ok=statement.if_exists)
    return NOTHING


def truncate(context: SqlContext, statement: s.Truncate) -> Answer:
    """Delete all rows."""
    _, table, branch = context.session.write_target(statement.name)
    if branch is None:
        table.delete("true")
    else:
        table.delete("true", branch=branch)
    return NOTHING
