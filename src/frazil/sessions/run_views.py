"""Statements about views. A view's query is stored as written, with the namespace for resolving its names."""

from __future__ import annotations

from dataclasses import replace

from frazil.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    NamespaceNotFoundError,
    NotFoundError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.sessions.answer import NOTHING, Answer
from frazil.sessions.sql_context import SqlContext
from frazil.spec.schema import Schema
from frazil.sql import statements as s
from frazil.table.sql_session import SPARK_CATALOG
from frazil.table.view import View


def create_view(context: SqlContext, statement: s.CreateView) -> Answer:
    """Create or replace a view; its query must be valid now, and must not use temporary objects."""
    session = context.session
    full_name = session.full_name(statement.name)
    catalog = full_name.lake.catalog
    existing = catalog.find_existing(full_name.name) if catalog.namespace_exists(full_name.name[:-1]) else None
    if existing is not None and not statement.replaces:
        if statement.if_not_exists and catalog.view_exists(full_name.name):
            return NOTHING
        raise existing
    engine = context.spark("create a view")
    names = [column.name for column in statement.columns]
    schema, query_columns = engine.view_schema(statement.query.text, full_name, names)
    default_catalog = session.catalog or SPARK_CATALOG
    namespace = session.namespace if session.catalog is not None else engine.current_namespace()
    try:
        full_name.lake.create_view(
            full_name.name,
            statement.query.text,
            schema=_with_comments(schema, statement),
            default_namespace=namespace,
            default_catalog=default_catalog,
            properties=dict(statement.properties),
            replaces=statement.replaces,
            exist_ok=statement.if_not_exists,
            query_columns=query_columns,
        )
    except AlreadyExistsError:
        if not statement.if_not_exists:
            raise
    return NOTHING


def _with_comments(schema: Schema, statement: s.CreateView) -> Schema:
    if not statement.columns:
        return Schema(tuple(replace(field, required=False) for field in schema.fields))
    return Schema(
        tuple(
            replace(field, doc=column.comment, required=False)
            for field, column in zip(schema.fields, statement.columns, strict=True)
        )
    )


def _view(context: SqlContext, name: s.Name) -> View:
    full_name = context.session.full_name(name)
    return full_name.lake.view(full_name.name)


def drop_view(context: SqlContext, statement: s.DropView) -> Answer:
    """Drop a view."""
    full_name = context.session.full_name(statement.name)
    try:
        full_name.lake.drop_view(full_name.name)
    except (ViewNotFoundError, NamespaceNotFoundError):
        if full_name.lake.catalog.namespace_exists(full_name.name[:-1]) and full_name.lake.table_exists(full_name.name):
            raise InvalidRequestError(f"Cannot drop view {full_name}: it is a table", hint="Use DROP TABLE.") from None
        if not statement.if_exists:
            raise
    return NOTHING


def rename_view(context: SqlContext, statement: s.RenameView) -> Answer:
    """Rename a view within its lake."""
    full_name = context.session.full_name(statement.name)
    full_name.lake.rename_view(full_name.name, context.session.same_lake(full_name, statement.new_name))
    return NOTHING


def alter_view_query(context: SqlContext, statement: s.AlterViewQuery) -> Answer:
    """Raise an error: a new definition requires CREATE OR REPLACE VIEW, which also defines the columns."""
    raise UnsupportedError(
        f"Cannot change the query of view {context.session.full_name(statement.name)} by ALTER VIEW",
        hint="Use CREATE OR REPLACE VIEW.",
    )


def set_view_properties(context: SqlContext, statement: s.SetProperties) -> Answer:
    """Set properties of a view."""
    _view(context, statement.name).set_properties(statement.properties)
    return NOTHING


def unset_view_properties(context: SqlContext, statement: s.UnsetProperties) -> Answer:
    """Remove properties of a view; refuse names that are not set, unless IF EXISTS says otherwise."""
    view = _view(context, statement.name)
    missing = [key for key in statement.keys if key not in view.properties]
    if missing and not statement.if_exists:
        raise NotFoundError(f"Cannot remove the property {missing[0]!r} of view {view.name}: it is not set")
    view.remove_properties([key for key in statement.keys if key in view.properties])
    return NOTHING
