"""Resolves the path of `format("iceberg")`: a name in a lake, or a table's location, in a state selected by options.

After a table's location, `#` and a name select a metadata table.

A state has its own schema, so it must be known when a table is loaded. Spark passes only a name to a catalog, so the
state becomes part of the name: `lake.db.t` with the option `branch=x` is `lake.db.t.branch_x`.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.catalog.names import format_name
from frazil.errors import InvalidRequestError, TableNotFoundError
from frazil.metadata_tables.tables import METADATA_TABLES
from frazil.sessions.requests import SourceName
from frazil.sessions.source_tables import load_table_at
from frazil.sql.statements import Name
from frazil.storage.locations import location_key, scheme_of, strip_slashes
from frazil.table.parse_name import parse_name
from frazil.table.sql_session import FullName, Relation, SqlSession, selector_of, state_of_options, with_suffixes
from frazil.table.table import Table

BY_PATH = ""
"""The namespace that marks the final part of a name as a path."""
_STATES = ("snapshot-id", "as-of-timestamp", "branch", "tag")
"""Read options that can also be part of a name, in lower case; Spark itself passes the others to the catalog."""


def source_name(session: SqlSession, options: Mapping[str, str]) -> SourceName:
    """Return the table and lake that the options of `format("iceberg")` refer to."""
    path = _path(options)
    if not path:
        raise InvalidRequestError(
            "Cannot open a table: the name or path is missing",
            hint='Pass its name or its location: "lake.db.t", "/path/to/table".',
        )
    if _is_location(path):
        if not session.lakes:
            raise InvalidRequestError(f"Cannot use the table {path!r}: no lake is attached")
        selector = _selector(options)
        folder, _, table = path.rpartition("#")
        selectors = [] if selector is None else [selector]
        if folder and table.lower() in METADATA_TABLES:
            # As in Iceberg Java: `/path/to/table#files`.
            path = folder
            selectors.append(table.lower())
        catalog = session.catalog or min(session.lakes)
        return SourceName(catalog=catalog, namespace=(BY_PATH, *selectors), name=path)
    parts = parse_name(path)
    full_name = session.find_full_name(parts)
    if full_name is None:
        raise no_lake(session, parts)
    name = _with_state(session, full_name, options)
    return SourceName(catalog=full_name.lake_name, namespace=name[:-1], name=name[-1])


def check_path(relation: Relation, options: Mapping[str, str]) -> None:
    """Refuse a path beside the name of an existing table if it leads to another table."""
    path, full_name = _path(options), relation.full_name
    if not path or full_name.name[0] == BY_PATH:
        return
    location = relation.table.location
    if _is_location(path):
        is_same = location_key(strip_slashes(path)) == location_key(strip_slashes(location))
    else:
        # The full name by which the table was found; the session's namespace may have changed since.
        is_same = full_name.name[-1] in parse_name(path)
    if not is_same:
        raise InvalidRequestError(
            f"Cannot use {full_name} at the path {path!r}: the table is at {location}",
            hint="Omit the option path, which is for new tables.",
        )


def _path(options: Mapping[str, str]) -> str:
    return next((value for key, value in options.items() if key.lower() == "path"), "").strip()


def _is_location(path: str) -> bool:
    return scheme_of(path) is not None or "/" in path


def no_lake(session: SqlSession, name: Name) -> TableNotFoundError:
    """Return the error for a name that begins with no attached lake."""
    lakes = ", ".join(sorted(session.lakes))
    return TableNotFoundError(
        f"Cannot find {format_name(name)}: no lake {name[0]!r} is attached; attached are: {lakes}"
    )


def find_relation(session: SqlSession, full_name: FullName) -> Relation:
    """Return the relation of a name: a table, one of its states or metadata tables, or a table by its path."""
    if full_name.name[0] != BY_PATH:
        return session.relation(full_name)
    catalog = full_name.lake.catalog
    table = Table(catalog, load_table_at(catalog.storage, full_name.name[-1]))
    return with_suffixes(Relation(full_name, table), full_name.name[1:-1])


def _selector(options: Mapping[str, str]) -> str | None:
    return selector_of(state_of_options({key: value for key, value in options.items() if key.lower() in _STATES}))


def _with_state(session: SqlSession, full_name: FullName, options: Mapping[str, str]) -> Name:
    selector = _selector(options)
    if selector is None:
        return full_name.name
    relation = session.relation(full_name)
    if relation.state.is_given:
        raise InvalidRequestError(f"Cannot use {full_name} in two states at once: use one of them")
    rest = () if relation.metadata_table is None else (relation.metadata_table,)
    return (*relation.full_name.name, selector, *rest)
