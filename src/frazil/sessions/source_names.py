"""What `format("iceberg")` means by its path: a name in a lake, or a table's location, in a state that options choose.

Of a table's location a metadata table is named behind a `#`.

A state has a schema of its own, so it must be known when a table is loaded. Spark hands a catalog a name and no more,
so the state becomes part of it: `lake.db.t` with the option `branch=x` is `lake.db.t.branch_x`.
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
"""In the place of a namespace: the name at the end is a path."""
_STATES = ("snapshot-id", "as-of-timestamp", "branch", "tag")
"""Read options that a part of a name says as well, in lower case; Spark itself takes the others to the catalog."""


def source_name(session: SqlSession, options: Mapping[str, str]) -> SourceName:
    """Return which table of which lake the options of `format("iceberg")` mean."""
    path = _path(options)
    if not path:
        raise InvalidRequestError(
            "Cannot open a table: no name and no path was given",
            hint='Give its name or its location: "lake.db.t", "/path/to/table".',
        )
    if _is_location(path):
        if not session.lakes:
            raise InvalidRequestError(f"Cannot use the table {path!r}: no lake is attached")
        selector = _selector(options)
        folder, _, table = path.rpartition("#")
        named = [] if selector is None else [selector]
        if folder and table.lower() in METADATA_TABLES:
            # As Iceberg Java has it: `/path/to/table#files`.
            path = folder
            named.append(table.lower())
        catalog = session.catalog or min(session.lakes)
        return SourceName(catalog=catalog, namespace=(BY_PATH, *named), name=path)
    parts = parse_name(path)
    full_name = session.find_full_name(parts)
    if full_name is None:
        raise no_lake(session, parts)
    name = _with_state(session, full_name, options)
    return SourceName(catalog=full_name.lake_name, namespace=name[:-1], name=name[-1])


def check_path(relation: Relation, options: Mapping[str, str]) -> None:
    """Refuse a path beside the name of a table that is there, where it leads to another."""
    path, full_name = _path(options), relation.full_name
    if not path or full_name.name[0] == BY_PATH:
        return
    location = relation.table.location
    if _is_location(path):
        is_same = location_key(strip_slashes(path)) == location_key(strip_slashes(location))
    else:
        # The name by which the table was found; the session may have gone to another namespace since.
        is_same = full_name.name[-1] in parse_name(path)
    if not is_same:
        raise InvalidRequestError(
            f"Cannot use {full_name} at the path {path!r}: the table is at {location}",
            hint="Leave the option path out; it says where a new table is.",
        )


def _path(options: Mapping[str, str]) -> str:
    return next((value for key, value in options.items() if key.lower() == "path"), "").strip()


def _is_location(path: str) -> bool:
    return scheme_of(path) is not None or "/" in path


def no_lake(session: SqlSession, name: Name) -> TableNotFoundError:
    """Return the error about a name that begins with no lake's."""
    known = ", ".join(sorted(session.lakes))
    return TableNotFoundError(f"Cannot find {format_name(name)}: there is no lake {name[0]!r}; attached are: {known}")


def find_relation(session: SqlSession, full_name: FullName) -> Relation:
    """Return what a name means: a table, a state of one, one of its metadata tables, or a table by its path."""
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
        raise InvalidRequestError(f"Cannot use {full_name} in two states at once: give one")
    rest = () if relation.metadata_table is None else (relation.metadata_table,)
    return (*relation.full_name.name, selector, *rest)
