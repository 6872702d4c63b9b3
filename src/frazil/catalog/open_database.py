"""Databases by URI: `sqlite:////srv/catalog.db`, `postgresql://user:secret@host/lake`."""

from __future__ import annotations

from frazil.catalog.database import Database
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sqlite import SqliteDatabase
from frazil.errors import InvalidRequestError
from frazil.storage.locations import scheme_of

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2")
_ELSEWHERE = frozenset({"bigquery", "dynamodb", "hadoop", "hive", "jdbc", "nessie", "rest", "s3tables", "sql"})
"""Catalog types of other implementations, which messages may show: any other word might be a password."""
_KNOWN = "sqlite:///relative/path, sqlite:////absolute/path or postgresql://user:password@host/database"


def open_database(uri: str, *, may_write: bool = True) -> Database:
    """Open the database of a URI; SQLAlchemy's names for these databases are also accepted."""
    scheme = scheme_of(uri)
    rest = uri.partition(":")[2]
    if scheme == "sqlite":
        if not rest.startswith("///") or len(rest) == len("///") or "?" in rest:
            raise InvalidRequestError(
                f"Cannot open the SQLite database {uri!r}: its URI has an unknown form", hint=f"Use {_KNOWN}."
            )
        return SqliteDatabase(rest[len("///") :], may_write=may_write)
    if scheme in _POSTGRES:
        return PostgresDatabase(f"postgresql:{rest}", may_write=may_write)
    # The part after the scheme may contain a password.
    if scheme == "jdbc":
        hint = "Use postgresql://user:password@host/database, without `jdbc:`."
    else:
        hint = f"Use {_KNOWN}, thrift://host:9083, glue or filesystem."
    catalog_type = scheme or (uri if uri in _ELSEWHERE else None)
    what = "the catalog: its type" if catalog_type is None else f"a catalog of type {catalog_type!r}: it"
    raise InvalidRequestError(f"Cannot open {what} is not supported", hint=hint)
