"""Pointers in the Hive Metastore: parameters of its tables, compared and swapped by the server.

The swap is `alter_table_with_environment_context` with `expected_parameter_key` and `expected_parameter_value`: in its
database's transaction the metastore replaces the table only if `metadata_location` has the expected value (Hive 2.3.10,
3.1.4, 4.0 and newer; older servers ignore the two). Every commit says so, and holds the table's lock as well
(`catalog/hive/table_lock.py`), for the sake of clients that only lock:

1. lock; read the table; another pointer than expected: rejected
2. alter the table, with the pointer expected
3. unlock

What may fail:

    the server refuses   The table is read again. Our pointer: committed, and the refusal came from a second attempt of
                         the server's own. The expected pointer: nothing happened, for the reason that the server gave.
                         Another: rejected, if it was moved from the expected one; else its history says.
    the answer is lost   the change is sent again, under the same lock (`catalog/metastore_pointers.py`)

A rename is such an alteration too, with the pointer expected, so that no commit in between is lost. The metastore has
no conditional drop: under the lock the pointer is compared first; without one the table is renamed first, on condition.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from frazil.catalog.base import random_id, system_ms
from frazil.catalog.hive.connection import CallLost, CallNotSent, CallRefused
from frazil.catalog.hive.metastore import (
    EXISTS,
    INVALID_OBJECT,
    INVALID_OPERATION,
    META,
    NO_SUCH_OBJECT,
    Metastore,
)
from frazil.catalog.hive.table_lock import HeldLock, TableLocks
from frazil.catalog.hive.table_structs import (
    LASTING_PROPERTIES,
    TableForm,
    changed_table,
    database_properties,
    database_struct,
    new_table,
    renamed_table,
)
from frazil.catalog.hive.thrift_binary import ThriftStruct
from frazil.catalog.metastore_catalog import MetastoreCatalog, database_location
from frazil.catalog.metastore_pointers import (
    AnswerMissing,
    MetastorePointers,
    NotReached,
    new_namespace,
    own_name,
    own_namespace,
    sorted_names,
)
from frazil.catalog.metastore_tables import METADATA_LOCATION, TABLE, VIEW, pointer_of
from frazil.catalog.names import (
    Identifier,
    Namespace,
    format_name,
    namespace_exists,
    namespace_not_empty,
    namespace_not_found,
    table_exists,
    view_exists,
)
from frazil.catalog.pointers import EntityType, Pointer, PointerChange, Stale
from frazil.errors import InvalidRequestError, StorageError, UnsupportedError
from frazil.spec.properties import HIVE_LOCK_ENABLED
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage

_MODIFIED: Final = "The table has been modified"
_QUIET: Final = {"DO_NOT_UPDATE_STATS": "true"}
_TYPES: Final = {EntityType.TABLE: TABLE, EntityType.VIEW: VIEW}


class HivePointers(MetastorePointers):
    """Pointers in the parameters of a metastore's tables."""

    def __init__(
        self,
        metastore: Metastore,
        locks: TableLocks,
        form: TableForm,
        *,
        warehouse: str | None,
        owner: str,
        may_lock: bool = True,
        now_ms: Callable[[], int] = system_ms,
    ) -> None:
        super().__init__(sleep=metastore.sleep)
        self.label = f"the Hive Metastore at {metastore.client.label}"
        self._metastore = metastore
        self._locks = locks
        self._form = form
        self._warehouse = warehouse
        self._owner = owner
        self._may_lock = may_lock
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"HivePointers({self._metastore.client.label!r})"

    # Pointers

    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None; tables that are not Iceberg's have none."""
        table = self._find_table(identifier)
        return None if table is None else pointer_of(table.texts(9))

    def _find_table(self, identifier: Identifier) -> ThriftStruct | None:
        names = own_name(identifier)
        return None if names is None else self._metastore.find_table(*names)

    def _create(self, change: PointerChange) -> Stale | None:
        names = own_name(change.identifier)
        if names is None:
            raise namespace_not_found(change.identifier[:-1])
        taken = self._metastore.find_table(*names)
        if taken is not None:
            return Stale(change, pointer_of(taken.texts(9)))
        table = new_table(names, change, self._form, self._owner, self._now_ms())

        def attempt(is_repeated: bool) -> Stale | None:
            try:
                self._metastore.create_table(table)
            except CallNotSent as error:
                raise NotReached(str(error)) from error
            except CallLost as error:
                raise AnswerMissing(str(error)) from error
            except CallRefused as error:
                return self._not_created(change, error, is_repeated=is_repeated)
            return None

        return self._until_answered(change, attempt)

    def _not_created(self, change: PointerChange, error: CallRefused, *, is_repeated: bool) -> Stale | None:
        """Return how a refusal to create a table is to be taken."""
        table = self._find_table(change.identifier)
        current = None if table is None else pointer_of(table.texts(9))
        if current is not None and current.metadata_location == change.location:
            return None
        if table is not None:
            if is_repeated and current is not None and current.previous_metadata_location is not None:
                raise self._unknown(change, "others committed since")
            return Stale(change, current)
        if error.exception == NO_SUCH_OBJECT or self._metastore.find_database(change.identifier[0].lower()) is None:
            raise namespace_not_found(change.identifier[:-1]) from error
        if error.exception == INVALID_OBJECT:
            raise InvalidRequestError(
                f"Cannot create {format_name(change.identifier)}: {self.label} refused it: {error}"
            ) from error
        raise self._metastore.failure("create", format_name(change.identifier), error) from error

    def _move(self, change: PointerChange) -> Stale | None:
        names = own_name(change.identifier)
        if names is None:
            return Stale(change, None)
        database, name = names
        with self._locks.held(database, name, is_wanted=self._is_lock_wanted(change)) as lock:
            return self._until_answered(
                change, lambda is_repeated: self._alter(change, database, name, lock, is_repeated=is_repeated)
            )

    def _alter(
        self, change: PointerChange, database: str, name: str, lock: HeldLock, *, is_repeated: bool
    ) -> Stale | None:
        table = self._metastore.find_table(database, name)
        current = None if table is None else pointer_of(table.texts(9))
        if table is None or current is None or current.entity_type is not change.entity_type:
            if is_repeated:
                raise self._unknown(change, "it was dropped or renamed since")
            return Stale(change, current)
        if current.metadata_location == change.location:
            return None
        if current.metadata_location != change.expected:
            return self._stale_or_unknown(change, current, is_repeated=is_repeated)
        lock.keep()
        try:
            self._metastore.alter_table(
                database, name, changed_table(table, change, self._form), _expecting(change.expected)
            )
        except CallNotSent as error:
            raise NotReached(str(error)) from error
        except CallLost as error:
            raise AnswerMissing(str(error)) from error
        except CallRefused as error:
            return self._not_altered(change, error)
        return None

    def _not_altered(self, change: PointerChange, error: CallRefused) -> Stale | None:
        """Return how a refusal to alter a table is to be taken, by the current table."""
        pointer = self.find(change.identifier)
        if pointer is None:
            return Stale(change, None)
        if pointer.metadata_location == change.location:
            return None
        if pointer.metadata_location != change.expected:
            return self._stale_or_unknown(change, pointer, is_repeated=True)
        hint = None
        if _MODIFIED in error.message:
            hint = "A metastore over MySQL or MariaDB needs HIVE-28121 to compare the pointer: update it."
        raise StorageError(
            f"Cannot commit to {format_name(change.identifier)}: {self.label} refused it: {error}", hint=hint
        ) from error

    def _is_lock_wanted(self, change: PointerChange) -> bool:
        metadata = change.base if change.base is not None else change.metadata
        text = metadata.properties.get(HIVE_LOCK_ENABLED.name) if isinstance(metadata, TableMetadata) else None
        return self._may_lock if text is None else text.lower() == "true"

    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer, one at an expected location where given; return what it was, or None."""
        names = own_name(identifier)
        if names is None:
            return None
        with self._locks.held(*names, is_wanted=expected is not None and self._may_lock) as lock:
            table = self._metastore.find_table(*names)
            pointer = None if table is None else pointer_of(table.texts(9))
            if (
                table is None
                or pointer is None
                or pointer.entity_type is not entity_type
                or expected not in (None, pointer.metadata_location)
            ):
                return None
            if expected is not None and lock.lock_id is None:
                # Without a lock a commit may come at any time; it does not find the table under this name.
                apart = (names[0], f"dropped_{uuid.uuid4().hex}")
                if not self._changed("drop", identifier, table, apart, expected):
                    return None
                names = apart
            try:
                self._metastore.drop_table(*names)
            except CallRefused as error:
                if error.exception == NO_SUCH_OBJECT:
                    return None
                raise self._metastore.failure("drop", format_name(identifier), error) from error
            except CallNotSent as error:
                raise self._metastore.failure("drop", format_name(identifier), error) from error
            except CallLost as error:
                if self._metastore.find_table(*names) is not None:
                    raise self._lost("drop", identifier, error) from error
            return pointer

    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Give a pointer another name that is free, in a namespace that exists."""
        names, goal = own_name(source), own_name(target)
        table = None if names is None else self._metastore.find_table(*names)
        pointer = None if table is None else pointer_of(table.texts(9))
        if names is None or table is None or pointer is None or pointer.entity_type is not entity_type:
            raise self._not_found(entity_type, source)
        if names == goal:
            return
        if goal is None or self._metastore.find_database(goal[0]) is None:
            raise namespace_not_found(target[:-1])
        self._check_free(target)
        for _ in range(5):
            with self._locks.held(*names, is_wanted=self._may_lock):
                if self._changed("rename", source, table, goal, pointer.metadata_location):
                    return
                # A commit came first.
                table = self._metastore.find_table(*names)
                pointer = None if table is None else pointer_of(table.texts(9))
                if table is None or pointer is None:
                    raise self._not_found(entity_type, source)
        raise StorageError(f"Cannot rename {format_name(source)}: other writers keep committing to it")

    def _changed(self, verb: str, source: Identifier, table: ThriftStruct, goal: Identifier, expected: str) -> bool:
        """Give a table another name, if its pointer is as expected; return whether it was."""
        database, name = table.text(2) or "", table.text(1) or ""
        try:
            self._metastore.alter_table(database, name, renamed_table(table, goal), _expecting(expected))
        except CallRefused as error:
            if _MODIFIED in error.message:
                return False
            if error.exception in (INVALID_OPERATION, META):
                self._check_free(goal)
                if self._metastore.find_table(database, name) is None:
                    raise self._not_found(EntityType.TABLE, source) from error
            raise self._metastore.failure(verb, format_name(source), error) from error
        except CallNotSent as error:
            raise self._metastore.failure(verb, format_name(source), error) from error
        except CallLost as error:
            existing = self._metastore.find_table(goal[0], goal[-1])
            target_pointer = None if existing is None else pointer_of(existing.texts(9))
            if target_pointer is None or target_pointer.metadata_location != expected:
                raise self._lost(verb, source, error) from error
        return True

    def _check_free(self, target: Identifier) -> None:
        other = self._find_table(target)
        if other is not None:
            pointer = pointer_of(other.texts(9))
            is_view = pointer is not None and pointer.entity_type is EntityType.VIEW
            raise view_exists(target) if is_view else table_exists(target)

    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of a kind in a namespace that exists, in order, in one request."""
        database = own_namespace(namespace)
        names = None if database is None else self._metastore.table_names(database, _TYPES[entity_type])
        if names is None or (not names and database is not None and self._metastore.find_database(database) is None):
            raise namespace_not_found(namespace)
        return sorted_names(namespace, names)

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return every name, of tables and views, with its metadata file."""
        for database in self._metastore.databases():
            names = [*(self._metastore.table_names(database, TABLE) or ())]
            names += self._metastore.table_names(database, VIEW) or ()
            for table in self._metastore.tables(database, names):
                location = table.texts(9).get(METADATA_LOCATION)
                if location is not None:
                    yield (database, table.text(1) or ""), location

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace that does not exist."""
        name = new_namespace(namespace, self.label)
        location = database_location(self._warehouse, name)
        database = database_struct(name, properties, location=location, owner=self._owner)
        try:
            self._metastore.create_database(database)
        except CallRefused as error:
            if error.exception == EXISTS:
                raise namespace_exists(namespace) from error
            raise self._metastore.failure("create namespace", name, error) from error
        except CallNotSent as error:
            raise self._metastore.failure("create namespace", name, error) from error
        except CallLost as error:
            raise self._lost("create", namespace, error) from error

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove a namespace that exists and is empty."""
        name = own_namespace(namespace)
        if name is None or self._metastore.find_database(name) is None:
            raise namespace_not_found(namespace)
        held = self._metastore.table_names(name, None)
        if held:
            raise namespace_not_empty(namespace, format_name((*namespace, min(held))))
        try:
            self._metastore.drop_database(name)
        except CallRefused as error:
            if error.exception == NO_SUCH_OBJECT:
                raise namespace_not_found(namespace) from error
            if error.exception == INVALID_OPERATION:
                raise namespace_not_empty(namespace, "tables") from error
            raise self._metastore.failure("drop namespace", name, error) from error
        except CallNotSent as error:
            raise self._metastore.failure("drop namespace", name, error) from error
        except CallLost as error:
            raise self._lost("drop", namespace, error) from error

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was made."""
        name = own_namespace(namespace)
        return name is not None and self._metastore.find_database(name) is not None

    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the topmost namespaces, in order; there are none below them."""
        if not parent:
            return tuple(sorted((name,) for name in self._metastore.databases()))
        if not self.namespace_exists(parent):
            raise namespace_not_found(parent)
        return ()

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace that exists, its location, comment and owner among them."""
        return database_properties(self._database(namespace))

    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties; the metastore has no condition for it, so the last of two updates at once wins."""
        before = database_properties(self._database(namespace))
        lasting = {key: value for key, value in updates.items() if key in LASTING_PROPERTIES}
        refused = sorted(LASTING_PROPERTIES & set(removals) & before.keys())
        if not refused and any(before.get(key) != value for key, value in lasting.items()):
            # Many servers ignore changes of these without an error, so they are tried first, by themselves.
            self._alter_database(namespace, lasting, ())
            after = database_properties(self._database(namespace))
            refused = sorted(key for key, value in lasting.items() if after.get(key) != value)
        if refused:
            raise UnsupportedError(
                f"Cannot change the property {refused[0]} of namespace {format_name(namespace)}: {self.label} keeps it "
                "once it is set",
                hint="Set it when the namespace is created.",
            )
        self._alter_database(namespace, updates, set(removals))

    def _alter_database(self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str]) -> None:
        existing = self._database(namespace)
        name = existing.text(1) or ""
        properties = {key: value for key, value in database_properties(existing).items() if key not in removals}
        database = database_struct(
            name,
            {**properties, **updates},
            location=existing.text(3),
            owner=existing.text(6) or self._owner,
            existing=existing,
        )
        try:
            self._metastore.alter_database(name, database)
        except (CallRefused, CallNotSent) as error:
            raise self._metastore.failure("change namespace", name, error) from error
        except CallLost as error:
            raise self._lost("change", namespace, error) from error

    def _database(self, namespace: Namespace) -> ThriftStruct:
        name = own_namespace(namespace)
        existing = None if name is None else self._metastore.find_database(name)
        if existing is None:
            raise namespace_not_found(namespace)
        return existing

    def close(self) -> None:
        """Close the connections."""
        self._metastore.close()


def _expecting(location: str | None) -> dict[str, str]:
    """Return the context of an alteration: the expected pointer, and no update of statistics."""
    expected = (
        {}
        if location is None
        else {
            "expected_parameter_key": METADATA_LOCATION,
            "expected_parameter_value": location,
        }
    )
    return {**_QUIET, **expected}


class HiveCatalog(MetastoreCatalog):
    """A catalog in a Hive Metastore; `open_hive` opens one by its address."""

    def __init__(
        self,
        name: str,
        warehouse: str,
        pointers: HivePointers,
        storage: Storage,
        *,
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
        delete_roots: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, warehouse, storage, pointers, now_ms=now_ms, new_id=new_id, delete_roots=delete_roots)
        self.label = pointers.label
