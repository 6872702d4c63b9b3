"""A catalog database in PostgreSQL, for many machines. Requires psycopg, from the extra `postgres`.

Transactions run at READ COMMITTED, at which the one statement that matters is safe: an UPDATE that waited for another
writer's row reevaluates its condition, and finds that the expected location is gone.

The meaning of a lost connection depends on its time. Before COMMIT was sent, the server rolls back: nothing happened.
After that the outcome is unknown. The transaction holds its row lock until it has ended on the server, so a reader that
requests the lock (`row_lock`) learns how it ended.

The password is kept out of messages, logs and pickles.

Other users may create functions and operators in a schema on the session's search path, and PostgreSQL prefers them if
they match better than the built-in ones. So the schema of the tables is looked up once, by the session's `search_path`;
from then on statements name it, and the search path covers only PostgreSQL's built-ins.

If the host is another machine, TLS is required (`sslmode=require`), unless the URI or libpq's settings (`PGSSLMODE`, a
service file) say otherwise.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from frazil.catalog.database import ConnectionPool, Database, DuplicateKey, Result, Run
from frazil.errors import CommitConflictError, FrazilError, InvalidRequestError, StorageError, UnsupportedError

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_TIMEOUT_SECONDS: Final = 10
LOCK_TIMEOUT_MS: Final = 30_000
IDLE_TIMEOUT_MS: Final = 20_000
"""How long the server waits for the next statement of a transaction, whose client may have vanished. Shorter than the
lock timeout."""

_UNIQUE_VIOLATION = "23505"
_TRY_AGAIN = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock timeout: the server has rolled back."""
_TOO_LONG_OR_ODD = ("22",)
_MIN_PIECE = 3
_TABLES = re.compile(r"\b(?:iceberg_(?:tables|namespace_properties)|frazil_requests)\b")
_FUNCTIONS = re.compile(r"\bsubstr\(")
_FIRST_TABLE = "iceberg_tables"
_TLS_HINT = (
    "The server offers no TLS. Set it up there. On a network that you trust, add sslmode=prefer to the URI; the "
    "connection is then not encrypted."
)
_SECRET_WORDS = ("password", "passfile", "sslpassword", "secret", "token")


class PostgresDatabase(Database):
    """A PostgreSQL database by its `postgresql://` URI. `connect` replaces `psycopg.connect`."""

    row_lock = " FOR UPDATE"

    def __init__(
        self, uri: str, *, connect: Callable[..., Connection[Any]] | None = None, may_write: bool = True
    ) -> None:
        self._psycopg = _load_driver()
        self._connect = self._psycopg.connect if connect is None else connect
        self._uri = uri
        self.label = _without_secrets(uri)
        self._pool: ConnectionPool[Connection[Any]] = ConnectionPool(_close)
        self._schema = ""
        self.may_write = may_write
        self._pool.give(self._open())

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.label!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("PostgresDatabase cannot be pickled, since it may hold a password; open it again instead")

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from one moment."""
        with self._connection(sql, values) as (_, cursor):
            return list(cursor.fetchall())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Run]:
        """Run statements in a transaction."""
        with self._connection("BEGIN ISOLATION LEVEL READ COMMITTED", ()) as (connection, _):

            def run(sql: str, *values: object) -> Result:
                with self._errors():
                    cursor = connection.execute(self._named(sql), values)
                    rows = list(cursor.fetchall()) if cursor.description is not None else []
                    return Result(rows, cursor.rowcount)

            try:
                yield run
            except BaseException:
                with contextlib.suppress(self._psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            self._commit(connection)

    def columns(self, table: str) -> frozenset[str]:
        """Return the column names of a table; empty if it does not exist."""
        rows = self.read(
            "SELECT attname FROM pg_catalog.pg_attribute "
            "WHERE attrelid = pg_catalog.to_regclass(?) AND attnum > 0 AND NOT attisdropped",
            f"{self._schema}.{table}",
        )
        return frozenset(name for (name,) in rows)

    def close(self) -> None:
        """Close the pooled connections."""
        self._pool.drain()

    def _commit(self, connection: Connection[Any]) -> None:
        try:
            connection.execute("COMMIT")
        except self._psycopg.Error as error:
            if error.sqlstate is not None and error.sqlstate in _TRY_AGAIN:
                raise self._translated(error) from None
            raise self.outcome_unknown(self._reason(error)) from None

    @contextlib.contextmanager
    def _connection(self, first: str, values: tuple[object, ...]) -> Iterator[tuple[Connection[Any], Any]]:
        """Take a connection and run a first statement on it; a dead pooled connection is replaced, once."""
        connection = self._pool.take()
        cursor = None
        if connection is not None:
            try:
                cursor = connection.execute(self._named(first), values)
            except self._psycopg.OperationalError:
                _close(connection)
                self._pool.drain()
            except self._psycopg.Error as error:
                _close(connection)
                raise self._translated(error) from None
        if connection is None or cursor is None:
            connection = self._open()
            with self._errors():
                cursor = connection.execute(self._named(first), values)
        is_sound = False
        try:
            yield connection, cursor
            is_sound = True
        finally:
            is_idle = connection.info.transaction_status == self._psycopg.pq.TransactionStatus.IDLE
            if is_idle and not connection.closed and (is_sound or not connection.broken):
                self._pool.give(connection)
            else:
                _close(connection)

    def _open(self) -> Connection[Any]:
        with self._errors():
            # Prepared statements do not work through a connection pooler between client and server.
            connection: Connection[Any] = self._connect(
                self._uri, autocommit=True, prepare_threshold=None, **self._defaults()
            )
            if not self._schema:
                self._schema = _find_schema(connection)
            connection.execute("SET search_path = pg_catalog, pg_temp")
            if not self.may_write:
                connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
            connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS}")
            return connection

    def _named(self, sql: str) -> str:
        """Translate a statement for the driver, with the schemas of its tables and functions."""
        named = _TABLES.sub(lambda match: f"{self._schema.replace('%', '%%')}.{match[0]}", sql.replace("?", "%s"))
        return _FUNCTIONS.sub("pg_catalog.substr(", named)

    def _defaults(self) -> dict[str, Any]:
        parameters = self._psycopg.conninfo.conninfo_to_dict(self._uri)
        defaults = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "application_name": "frazil"}
        # The effective values of libpq: of the URI, else of the environment, else built in.
        libpq_defaults = {
            default.keyword.decode(): (default.val or b"").decode()
            for default in self._psycopg.pq.Conninfo.get_defaults()
        }
        hosts = [str(parameters.get(name) or libpq_defaults.get(name) or "") for name in ("host", "hostaddr")]
        if libpq_defaults.get("sslmode") == "prefer" and not all(_is_local(host) for host in hosts):
            defaults["sslmode"] = "require"
        return {name: value for name, value in defaults.items() if name not in parameters}

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FrazilError:
            raise
        except self._psycopg.Error as error:
            # Not chained: the driver's error may hold the connection, and so the password.
            raise self._translated(error) from None

    def _translated(self, error: Any) -> Exception:
        state = error.sqlstate or ""
        reason = self._reason(error)
        if state == _UNIQUE_VIOLATION:
            return DuplicateKey(reason)
        if state in _TRY_AGAIN:
            return CommitConflictError(f"Cannot use {self.label}: {reason}")
        if state.startswith(_TOO_LONG_OR_ODD):
            return InvalidRequestError(f"Cannot use {self.label}: {reason}")
        hint = _TLS_HINT if "does not support SSL" in reason else None
        return StorageError(f"Cannot use {self.label}: {reason}", hint=hint)

    def _reason(self, error: Exception) -> str:
        lines = str(error).strip().splitlines()
        text = lines[0] if lines else type(error).__name__
        for secret in _secrets(self._uri):
            text = text.replace(secret, "***")
        return text


def _load_driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise UnsupportedError(
            "Cannot open a PostgreSQL catalog: psycopg is not installed",
            hint="Install it with: pip install 'frazil[postgres]'",
        ) from error
    return psycopg


def _find_schema(connection: Connection[Any]) -> str:
    """Return the quoted schema of the catalog's tables: where they are, or where they would be created.

    Functions are called by their schema pg_catalog, and no operator is used that another user could have defined.
    """
    rows = connection.execute("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))").fetchall()
    schemas = [_quoted(name) for (name,) in rows]
    for schema in schemas:
        row = connection.execute("SELECT pg_catalog.to_regclass(%s)", [f"{schema}.{_FIRST_TABLE}"]).fetchone()
        if row is not None and row[0] is not None:
            return schema
    if not schemas:
        raise InvalidRequestError(
            "Cannot use the PostgreSQL database: none of the schemas on the session's search_path exists",
            hint="Create a schema, or name one: postgresql://host/database?options=-csearch_path%3Dlake",
        )
    return schemas[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_local(hosts: str) -> bool:
    """Return whether all comma-separated hosts are this machine; an empty host and a socket's folder count as local."""
    return all(_is_this_machine(host.strip()) for host in hosts.split(","))


def _is_this_machine(host: str) -> bool:
    if host.startswith(("/", "@")) or host.lower().rstrip(".") in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _close(connection: Connection[Any]) -> None:
    with contextlib.suppress(Exception):
        connection.close()


def _without_secrets(uri: str) -> str:
    """Return a URI without user, password and parameters."""
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "the PostgreSQL database"
    # An unescaped slash in a password makes the rest of it look like a path.
    return "the PostgreSQL database" if "@" in parts.path else f"postgresql://{host}{port}{parts.path}"


def _secrets(uri: str) -> list[str]:
    """Return all texts that must not be shown, the longest first."""
    secrets = {uri}
    userinfo, at, _ = uri.partition("://")[2].rpartition("@")
    if at:
        password = userinfo.partition(":")[2]
        # A driver that splits a badly escaped password may show pieces of it.
        pieces = (piece for piece in re.split(r"[/?#@:]", password) if len(piece) >= _MIN_PIECE)
        secrets |= {password, unquote(password), *pieces}
    for name, value in parse_qsl(uri.partition("?")[2]):
        if any(word in name.lower() for word in _SECRET_WORDS):
            secrets.add(value)
    return sorted((secret for secret in secrets if secret), key=len, reverse=True)
