"""Statements about views. A view's query is kept as written, with the namespace in which its names are looked up."""

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
from frazil.lake.sql_session import SPARK_CATALOG, Place
from frazil.lake.view import View
from frazil.sessions.answer import NOTHING, Answer
from frazil.sessions.sql_context import SqlContext
from frazil.spec.schema import Schema
from frazil.sql import statements as s


def create_view(context: SqlContext, statement: s.CreateView) -> Answer:
    """Create or replace a view; its query must run now, and may use nothing temporary."""
    session = context.session
    place = session.place(statement.name)
    catalog = place.lake.catalog
    taken = catalog.find_existing(place.name) if catalog.namespace_exists(place.name[:-1]) else None
    if taken is not None and not statement.replaces:
        if statement.if_not_exists and catalog.view_exists(place.name):
            return NOTHING
        raise taken
    engine = context.spark("create a view")
    schema = engine.view_schema(statement.query.text, place)
    columns = _named(schema, statement, place)
    default_catalog = session.catalog or SPARK_CATALOG
    namespace = session.namespace if session.catalog is not None else engine.current_namespace()
    try:
        place.lake.create_view(
            place.name,
            statement.query.text,
            schema=columns,
            default_namespace=namespace,
            default_catalog=default_catalog,
            properties=dict(statement.properties),
            replaces=statement.replaces,
            exist_ok=statement.if_not_exists,
        )
    except AlreadyExistsError:
        if not statement.if_not_exists:
            raise
    return NOTHING


def _named(schema: Schema, statement: s.CreateView, place: Place) -> Schema:
    if not statement.columns:
        return Schema(tuple(replace(part, required=False) for part in schema.fields))
    if len(statement.columns) != len(schema.fields):
        raise InvalidRequestError(
            f"Cannot create view {place}: {len(statement.columns)} columns are named, and the query has "
            f"{len(schema.fields)}"
        )
    return Schema(
        tuple(
            replace(part, name=one.name, doc=one.comment, required=False)
            for part, one in zip(schema.fields, statement.columns, strict=True)
        )
    )


def _view(context: SqlContext, name: s.Name) -> View:
    place = context.session.place(name)
    return place.lake.view(place.name)


def drop_view(context: SqlContext, statement: s.DropView) -> Answer:
    """Drop a view."""
    place = context.session.place(statement.name)
    try:
        place.lake.drop_view(place.name)
    except (ViewNotFoundError, NamespaceNotFoundError):
        if place.lake.catalog.namespace_exists(place.name[:-1]) and place.lake.table_exists(place.name):
            raise InvalidRequestError(f"Cannot drop view {place}: it is a table", hint="Use DROP TABLE.") from None
        if not statement.if_exists:
            raise
    return NOTHING


def rename_view(context: SqlContext, statement: s.RenameView) -> Answer:
    """Give a view another name in its lake."""
    place = context.session.place(statement.name)
    place.lake.rename_view(place.name, context.session.same_lake(place, statement.new_name))
    return NOTHING


def alter_view_query(context: SqlContext, statement: s.AlterViewQuery) -> Answer:
    """Refuse: a new definition is a CREATE OR REPLACE VIEW, which says its columns too."""
    raise UnsupportedError(
        f"Cannot give view {context.session.place(statement.name)} another query by ALTER VIEW",
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
