"""From a URI to a database: `sqlite:////srv/catalog.db`, `postgresql://user:secret@host/lake`."""

from __future__ import annotations

from frazil.catalog.database import Database
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sqlite import SqliteDatabase
from frazil.errors import InvalidRequestError
from frazil.storage.locations import scheme_of

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2")
_ELSEWHERE = frozenset({"bigquery", "dynamodb", "hadoop", "hive", "jdbc", "nessie", "rest", "s3tables", "sql"})
"""Names of catalogs that other implementations know, which may be shown: another word may be a password."""
_KNOWN = "sqlite:///relative/path, sqlite:////absolute/path or postgresql://user:password@host/database"


def open_database(uri: str, *, may_write: bool = True) -> Database:
    """Open the database of a URI; the names SQLAlchemy has for the same databases are understood too."""
    scheme = scheme_of(uri)
    rest = uri.partition(":")[2]
    if scheme == "sqlite":
        if not rest.startswith("///") or len(rest) == len("///") or "?" in rest:
            raise InvalidRequestError(
                f"Cannot open the SQLite database {uri!r}: its URI is not of a known form", hint=f"Use {_KNOWN}."
            )
        return SqliteDatabase(rest[len("///") :], may_write=may_write)
    if scheme in _POSTGRES:
        return PostgresDatabase(f"postgresql:{rest}", may_write=may_write)
    # What follows the scheme may hold a password.
    if scheme == "jdbc":
        hint = "Leave `jdbc:` out: the same database is postgresql://user:password@host/database here."
    else:
        hint = f"Use {_KNOWN}, thrift://host:9083, glue or filesystem."
    kind = scheme or (uri if uri in _ELSEWHERE else None)
    what = "the catalog: its kind" if kind is None else f"a catalog of the kind {kind!r}: it"
    raise InvalidRequestError(f"Cannot open {what} is not known here", hint=hint)
