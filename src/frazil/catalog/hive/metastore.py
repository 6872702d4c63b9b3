"""The calls of a Hive Metastore that a catalog needs, as functions, and their failures as errors.

Reads are repeated when an answer is lost; a write never is, since its outcome is unknown: `CallLost` leaves
here, as do refusals, `CallRefused`, whose meaning depends on the call. Newer servers have taken away calls that older
ones need; where there are two, the older is tried first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frazil.catalog.hive.connection import (
    UNKNOWN_METHOD,
    CallLost,
    CallNotSent,
    CallRefused,
    MetastoreClient,
)
from frazil.catalog.hive.thrift_binary import (
    BOOL,
    I16,
    I32,
    I64,
    STRING,
    STRUCT,
    ThriftList,
    ThriftStruct,
    decode_text,
    list_value,
    text_value,
    texts_value,
)
from frazil.errors import StorageError

META: Final = "MetaException"
NO_SUCH_OBJECT: Final = "NoSuchObjectException"
EXISTS: Final = "AlreadyExistsException"
INVALID_OBJECT: Final = "InvalidObjectException"
INVALID_OPERATION: Final = "InvalidOperationException"
UNKNOWN_DATABASE: Final = "UnknownDBException"
NO_SUCH_LOCK: Final = "NoSuchLockException"

LOCK_ACQUIRED: Final = 1
LOCK_WAITING: Final = 2
_EXCLUSIVE: Final = 3
_TABLE_LEVEL: Final = 2
_READ_TRIES: Final = 3
_RETRY_SECONDS: Final = 0.1
_BATCH: Final = 500
_MANY: Final = -1


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock as the server shows it; its holder is text for messages."""

    lock_id: int
    state: int
    agent: str = ""
    holder: str = ""
    heard_ms: int = 0
    """When the server last heard of it, by the server's clock."""


class Metastore:
    """A metastore's databases, tables and locks."""

    def __init__(self, client: MetastoreClient, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.client = client
        self.sleep = sleep

    # Databases

    def databases(self) -> tuple[str, ...]:
        """Return the names of all databases."""
        return _names(self._read("get_all_databases", {}, (META,)))

    def find_database(self, name: str) -> ThriftStruct | None:
        """Return a database, or None."""
        try:
            result = self._read("get_database", {1: text_value(name)}, (NO_SUCH_OBJECT, META)).get(0)
        except CallRefused as error:
            if error.exception == NO_SUCH_OBJECT:
                return None
            raise self.failure("find database", name, error) from error
        return result if isinstance(result, ThriftStruct) else None

    def create_database(self, database: ThriftStruct) -> None:
        """Create a database."""
        self._write("create_database", {1: (STRUCT, database)}, (EXISTS, INVALID_OBJECT, META))

    def alter_database(self, name: str, database: ThriftStruct) -> None:
        """Replace a database's description, location, owner and parameters."""
        self._write("alter_database", {1: text_value(name), 2: (STRUCT, database)}, (META, NO_SUCH_OBJECT))

    def drop_database(self, name: str) -> None:
        """Drop an empty database; files stay."""
        arguments = {1: text_value(name), 2: (BOOL, False), 3: (BOOL, False)}
        self._write("drop_database", arguments, (NO_SUCH_OBJECT, INVALID_OPERATION, META))

    # Tables

    def find_table(self, database: str, name: str) -> ThriftStruct | None:
        """Return a table of any kind, or None; a table that the server takes for the same is another one."""
        try:
            result = self._read_table(database, name)
        except CallRefused as error:
            if error.exception == NO_SUCH_OBJECT:
                return None
            raise self.failure("find table", f"{database}.{name}", error) from error
        # Some databases ignore spaces at the end, or accents.
        is_same = isinstance(result, ThriftStruct) and (result.text(2), result.text(1)) == (database, name)
        return result if is_same else None

    def _read_table(self, database: str, name: str) -> Any:
        names = {1: text_value(database), 2: text_value(name)}
        try:
            return self._read("get_table", names, (META, NO_SUCH_OBJECT)).get(0)
        except CallRefused as error:
            if error.exception != UNKNOWN_METHOD:
                raise
        request = {1: (STRUCT, ThriftStruct(names))}
        answer = self._read("get_table_req", request, (META, NO_SUCH_OBJECT)).get(0)
        return answer.get(1) if isinstance(answer, ThriftStruct) else None

    def table_names(self, database: str, table_type: str | None) -> tuple[str, ...] | None:
        """Return the names of the tables of a `table_type`, or of all; None if there is no such database."""
        try:
            if table_type is None:
                return _names(self._read("get_all_tables", {1: text_value(database)}, (META,)))
            # Databases that keep parameters as long text have `like` for them, and no `=`.
            selector = f'hive_filter_field_params__table_type like "{table_type}"'
            arguments = {1: text_value(database), 2: text_value(selector), 3: (I16, _MANY)}
            refusals = (META, INVALID_OPERATION, UNKNOWN_DATABASE)
            return _names(self._read("get_table_names_by_filter", arguments, refusals))
        except CallRefused as error:
            if error.exception == UNKNOWN_DATABASE:
                return None
            raise self.failure("list the tables of", database, error) from error

    def tables(self, database: str, names: Sequence[str]) -> tuple[ThriftStruct, ...]:
        """Return tables by their names, those that exist; some at a time."""
        result: list[ThriftStruct] = []
        for start in range(0, len(names), _BATCH):
            batch = [text_value(name)[1] for name in names[start : start + _BATCH]]
            selector = {1: text_value(database), 2: list_value(STRING, batch)}
            try:
                result += self._read("get_table_objects_by_name", selector).structs(0)
            except CallRefused as error:
                if error.exception != UNKNOWN_METHOD:
                    raise self.failure("read the tables of", database, error) from error
                request = {1: (STRUCT, ThriftStruct(selector))}
                refusals = (META, INVALID_OPERATION, UNKNOWN_DATABASE)
                answer = self._read("get_table_objects_by_name_req", request, refusals).get(0)
                result += answer.structs(1) if isinstance(answer, ThriftStruct) else ()
        return tuple(result)

    def create_table(self, table: ThriftStruct) -> None:
        """Create a table; of all who create one name, one succeeds at most."""
        self._write("create_table", {1: (STRUCT, table)}, (EXISTS, INVALID_OBJECT, META, NO_SUCH_OBJECT))

    def alter_table(self, database: str, name: str, table: ThriftStruct, context: Mapping[str, str]) -> None:
        """Replace a table; `context` names the parameter that must have an expected value."""
        environment = ThriftStruct({1: texts_value(context)})
        arguments = {1: text_value(database), 2: text_value(name), 3: (STRUCT, table), 4: (STRUCT, environment)}
        self._write("alter_table_with_environment_context", arguments, (INVALID_OPERATION, META))

    def drop_table(self, database: str, name: str) -> None:
        """Drop a table; its files stay."""
        arguments = {1: text_value(database), 2: text_value(name), 3: (BOOL, False)}
        self._write("drop_table", arguments, (NO_SUCH_OBJECT, META))

    # Locks

    def lock(self, database: str, name: str, agent: str, user: str, host: str) -> Lock:
        """Ask for the exclusive lock of a table; it may have to be waited for."""
        component = ThriftStruct(
            {1: (I32, _EXCLUSIVE), 2: (I32, _TABLE_LEVEL), 3: text_value(database), 4: text_value(name)}
        )
        request = ThriftStruct(
            {
                1: list_value(STRUCT, [component]),
                3: text_value(user),
                4: text_value(host),
                5: text_value(agent),
            }
        )
        answer = self._write("lock", {1: (STRUCT, request)}, ("NoSuchTxnException", "TxnAbortedException"))
        return _lock(answer)

    def check_lock(self, lock_id: int) -> Lock:
        """Return how it is with a lock that is waited for."""
        refusals = ("NoSuchTxnException", "TxnAbortedException", NO_SUCH_LOCK)
        return _lock(self._read("check_lock", {1: (STRUCT, ThriftStruct({1: (I64, lock_id)}))}, refusals))

    def heartbeat(self, lock_id: int) -> None:
        """Say that a lock is still held."""
        refusals = (NO_SUCH_LOCK, "NoSuchTxnException", "TxnAbortedException")
        self._read("heartbeat", {1: (STRUCT, ThriftStruct({1: (I64, lock_id)}))}, refusals)

    def unlock(self, lock_id: int) -> None:
        """Give a lock back."""
        refusals = (NO_SUCH_LOCK, "TxnOpenException")
        self._read("unlock", {1: (STRUCT, ThriftStruct({1: (I64, lock_id)}))}, refusals)

    def locks(self, database: str, name: str) -> tuple[Lock, ...]:
        """Return the locks of a table, held and waited for."""
        request = ThriftStruct({1: text_value(database), 2: text_value(name)})
        answer = self._read("show_locks", {1: (STRUCT, request)}).get(0)
        entries = answer.structs(1) if isinstance(answer, ThriftStruct) else ()
        return tuple(
            Lock(
                int(entry.get(1) or 0),
                int(entry.get(5) or 0),
                entry.text(13) or "",
                f"{entry.text(10) or 'somebody'}@{entry.text(11) or 'unknown'}",
                int(entry.get(8) or 0),
            )
            for entry in entries
        )

    # Failures

    def failure(self, verb: str, name: str, error: CallRefused | CallLost | CallNotSent) -> StorageError:
        """Return the error for a call that failed."""
        return StorageError(f"Cannot {verb} {name}: the Hive Metastore at {self.client.label} said: {error}")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _read(self, name: str, arguments: Mapping[int, tuple[int, Any]], refusals: Sequence[str] = ()) -> ThriftStruct:
        problem: Exception | None = None
        for retry in range(_READ_TRIES):
            if retry > 0:
                self.sleep(_RETRY_SECONDS * retry)
            try:
                return self.client.call(name, arguments, refusals)
            except (CallNotSent, CallLost) as error:
                problem = error
        raise StorageError(f"Cannot reach the Hive Metastore at {self.client.label}: {problem}") from problem

    def _write(self, name: str, arguments: Mapping[int, tuple[int, Any]], refusals: Sequence[str]) -> ThriftStruct:
        return self.client.call(name, arguments, refusals)


def _names(answer: ThriftStruct) -> tuple[str, ...]:
    result = answer.get(0)
    items = result.items if isinstance(result, ThriftList) else ()
    return tuple(decode_text(entry) for entry in items if isinstance(entry, bytes))


def _lock(answer: ThriftStruct) -> Lock:
    result = answer.get(0)
    if not isinstance(result, ThriftStruct):
        raise CallLost("the answer names no lock")
    return Lock(int(result.get(1) or 0), int(result.get(2) or 0))
