"""DuckDB as it is used here: one connection per query, closed to files, the network, extensions and Python variables.

Settings are made before the first statement that holds text of a user, and locked. Only the data files of the plan can
be opened (`allowed_paths`). Times are in UTC.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from frazil.errors import CancelledError, EngineError, FrazilError, InvalidRequestError, StorageError
from frazil.query.limits import Limits
from frazil.threads import default_threads

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NO_LIMITS = Limits()
MORE_TIME: Final = "Give it more time: lake.sql(…, timeout=…)."
_CUT = ("\n\nLINE ", "\nLINE ", "\n\nStack Trace")
_MAX_REASON = 1_000
_KINDS = ("Binder", "Catalog", "Parser", "Conversion", "Invalid Input", "Out of Range", "Not implemented", "Constraint")


def check_installed() -> None:
    """Refuse to go on without DuckDB."""
    if find_spec("duckdb") is None:
        raise InvalidRequestError(
            "Cannot run SQL in this process: DuckDB is not installed", hint="Install it: pip install 'frazil[sql]'."
        )


class _Spare:
    """The database of the next query, made while nothing waits for it: that takes longer than most small queries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = None

    def take(self) -> DuckDBPyConnection:
        """Return a connection to an empty database of its own."""
        with self._lock:
            connection, self._connection = self._connection, None
        return _open() if connection is None else connection

    def replace(self, used: DuckDBPyConnection) -> None:
        """Close the database of a query and make that of the next, on a thread of their own."""
        threading.Thread(target=self._replace, args=(used,), name="frazil-sql-spare").start()

    def begin_fork(self) -> None:
        """Close the database that waits: its threads would not be in a process that is forked from this one."""
        self._lock.acquire()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def end_fork(self) -> None:
        """Go on, in the process that forked and in the new one."""
        self._lock.release()

    def prepare(self) -> None:
        """Make a database on a thread of its own, unless there is one."""
        if self._connection is None:
            threading.Thread(target=self._fill, name="frazil-sql-spare").start()

    def _replace(self, used: DuckDBPyConnection) -> None:
        self._fill()
        used.close()

    def _fill(self) -> None:
        with self._lock:
            if self._connection is None:
                self._connection = _open()


_SPARE: Final = _Spare()
os.register_at_fork(before=_SPARE.begin_fork, after_in_parent=_SPARE.end_fork, after_in_child=_SPARE.end_fork)


def _open() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(
        config={
            "threads": default_threads(),
            "temp_directory": str(Path(tempfile.gettempdir(), f"frazil-sql-{os.getpid()}-{os.urandom(6).hex()}")),
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
        }
    )


def connect(limits: Limits = NO_LIMITS, paths: Sequence[str] = ()) -> DuckDBPyConnection:
    """Return a connection that can open the files at `paths`, and nothing else."""
    check_installed()
    connection = _SPARE.take()
    settings = [
        "SET TimeZone = 'UTC'",
        f"SET memory_limit = '{limits.memory_bytes} B'",
        "SET allowed_configs = ['arrow_lossless_conversion']",
    ]
    if paths:
        settings.append("SET parquet_metadata_cache = true")
        settings.append(f"SET allowed_paths = [{', '.join(text_literal(path) for path in paths)}]")
    if limits.timeout_seconds is not None:
        settings.append(f"SET max_execution_time = {max(1, int(limits.timeout_seconds * 1000))}")
    settings.append("SET enable_external_access = false")
    connection.execute("; ".join(settings))
    return connection


def prepare() -> None:
    """Begin to make the database of a query, while it is parsed and planned."""
    _SPARE.prepare()


def release(connection: DuckDBPyConnection) -> None:
    """Close a connection and make the database of the next query ready, while nothing waits for either."""
    _SPARE.replace(connection)


def lock(connection: DuckDBPyConnection) -> None:
    """Let nothing change the settings of a connection any more."""
    connection.execute("SET lock_configuration = true")


@functools.cache
def keywords() -> frozenset[str]:
    """Return DuckDB's keywords, which it quotes in the names of columns."""
    connection = connect()
    try:
        return frozenset(
            word for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
        )
    finally:
        connection.close()


def split_statements(text: str) -> list[str]:
    """Return the statements of a text, as DuckDB's parser cuts them."""
    connection = connect()
    try:
        with engine_errors():
            return [statement.query for statement in connection.extract_statements(text)]
    finally:
        connection.close()


def without_end(text: str) -> str:
    """Return a statement without the semicolon and the comments behind it, which relations of DuckDB do not take."""
    import duckdb

    encoded = text.encode()
    for offset, token_type in reversed(duckdb.tokenize(text)):
        if token_type != duckdb.token_type.comment and encoded[offset : offset + 1] != b";":
            break
        encoded = encoded[:offset]
    return encoded.decode()


@contextlib.contextmanager
def engine_errors(limits: Limits = NO_LIMITS) -> Iterator[None]:
    """Turn DuckDB's errors into frazil's."""
    try:
        yield
    except FrazilError:
        raise
    except Exception as error:
        found = frazil_error(error, limits)
        if found is None:
            raise
        raise found from error


def too_long(seconds: float, hint: str) -> CancelledError:
    """Return the error of a query that ran into its limit of time."""
    return CancelledError(f"Cannot finish the query: it took longer than its limit of {seconds:g} seconds", hint=hint)


def cancelled() -> CancelledError:
    """Return the error of a query that somebody stopped."""
    return CancelledError("Cannot finish the query: it was cancelled")


def frazil_error(error: BaseException, limits: Limits = NO_LIMITS) -> FrazilError | None:
    """Return the error that a user gets for one of DuckDB's, or None for any other exception."""
    # DuckDB cuts a value in the middle of a letter, and Python cannot read the message then.
    text = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
    if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb") and not _has_duckdbs_text(error, text):
        return None
    reason = text
    for cut in _CUT:
        reason = reason.partition(cut)[0]
    category, _, rest = reason.partition(" Error: ")
    rest = rest if len(rest) <= _MAX_REASON else f"{rest[:_MAX_REASON]} …"
    if "maximum execution time" in text:
        return too_long(limits.timeout_seconds or 0.0, MORE_TIME)
    if category.endswith("INTERRUPT"):
        return cancelled()
    if "Out of Memory" in category:
        return EngineError(
            f"Cannot finish the query: it needs more than its limit of {limits.memory_bytes >> 20:,} MiB of memory",
            hint="Give it more: lake.sql(…, memory_limit='8 GB'). Or run it on Spark.",
        )
    if category.endswith("IO"):
        return StorageError(f"Cannot read a file of the query: {rest.strip()}")
    if category.endswith("Permission"):
        return InvalidRequestError(
            "Cannot run the query: it names a file, a network address or a setting, and a query reads tables only",
            hint="Give your own data as an argument: lake.sql('… from mine', mine=frame).",
            cause=rest.strip(),
        )
    if "Max expression depth" in text:
        return InvalidRequestError("Cannot run the query: it is nested too deeply")
    if category.endswith("INTERNAL") or "FATAL" in category:
        return EngineError(f"Cannot finish the query: DuckDB failed: {rest.strip()}")
    reason = rest.strip() if any(category.endswith(known) for known in _KINDS) else reason.strip()
    return InvalidRequestError(f"Cannot run the query: {reason}")


def _has_duckdbs_text(error: BaseException, text: str) -> bool:
    # What fails while Arrow reads a result comes as OSError.
    return isinstance(error, OSError | UnicodeDecodeError) and " Error: " in text.partition("\n")[0]


def text_literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
