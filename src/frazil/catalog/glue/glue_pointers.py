"""Pointers in AWS Glue: parameters of its tables, compared and swapped by the version of the table.

The swap is `UpdateTable` with the `VersionId` that was read together with the pointer: Glue replaces the table only if
it has that version still. `SkipArchive` keeps it from storing every version, of which an account may have a million.

Glue has no rename and no drop on condition. Both begin with a swap that takes away what makes the table an Iceberg
table, on condition of its version, so that no commit comes in between. Then it is created under the other name, or
dropped.
A rename that is interrupted right there leaves the table under its old name, with the parameter `table_type` set to
`ICEBERG-RENAMED`; setting it to `ICEBERG` again gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from frazil.catalog.base import random_id, system_ms
from frazil.catalog.glue.glue_client import CONCURRENT, EXISTS, INVALID, NOT_FOUND, GlueClient, GlueRefused, texts_of
from frazil.catalog.glue.table_input import database_input, database_properties, table_input, taken_back
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
from frazil.catalog.metastore_tables import METADATA_LOCATION, TABLE_TYPE, entity_type_of, pointer_of
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
from frazil.errors import CommitConflictError, CommitStateUnknownError, InvalidRequestError, StorageError
from frazil.storage.base import Storage

_RENAMED: Final = "ICEBERG-RENAMED"
_DROPPED: Final = "ICEBERG-DROPPED"
_TRIES: Final = 5


class GluePointers(MetastorePointers):
    """Pointers in the parameters of Glue's tables."""

    def __init__(self, client: GlueClient, *, warehouse: str | None, skips_archive: bool = True) -> None:
        super().__init__(sleep=client.sleep)
        self.label = client.label
        self._client = client
        self._warehouse = warehouse
        self._skips_archive = skips_archive

    def __repr__(self) -> str:
        return f"GluePointers({self.label!r})"

    # Pointers

    def find(self, identifier: Identifier) -> Pointer | None:
        """Return the pointer of a name, or None; tables that are not Iceberg's have none."""
        names = own_name(identifier)
        table = None if names is None else self._find_table(*names)
        return None if table is None else pointer_of(texts_of(table.get("Parameters")))

    def _find_table(self, database: str, name: str) -> dict[str, Any] | None:
        try:
            table = self._client.read("GetTable", DatabaseName=database, Name=name).get("Table")
        except GlueRefused as error:
            if error.exception == NOT_FOUND:
                return None
            raise self._client.failure("find table", f"{database}.{name}", error) from error
        return table if isinstance(table, dict) else None

    def _create(self, change: PointerChange) -> Stale | None:
        names = own_name(change.identifier)
        if names is None:
            raise namespace_not_found(change.identifier[:-1])
        database, name = names
        taken = self._find_table(database, name)
        if taken is not None:
            return Stale(change, pointer_of(texts_of(taken.get("Parameters"))))
        made = table_input(name, {}, change)

        def attempt(is_repeated: bool) -> Stale | None:
            try:
                self._client.send("CreateTable", {"DatabaseName": database, "TableInput": made})
            except GlueRefused as error:
                current = self.find(change.identifier)
                if current is not None and current.metadata_location == change.location:
                    return None
                if error.exception == EXISTS:
                    if is_repeated and current is not None and current.previous_metadata_location is not None:
                        raise self._unknown(change, "others committed since") from error
                    return Stale(change, current)
                raise self._refused("create", change.identifier, error) from error
            return None

        return self._until_answered(change, attempt)

    def _move(self, change: PointerChange) -> Stale | None:
        names = own_name(change.identifier)
        if names is None:
            return Stale(change, None)
        database, name = names
        return self._until_answered(
            change, lambda is_repeated: self._update(change, database, name, is_repeated=is_repeated)
        )

    def _update(self, change: PointerChange, database: str, name: str, *, is_repeated: bool) -> Stale | None:
        for _ in range(_TRIES):
            table = self._find_table(database, name)
            current = None if table is None else pointer_of(texts_of(table.get("Parameters")))
            if table is None or current is None or current.entity_type is not change.entity_type:
                if is_repeated:
                    raise self._unknown(change, "it was dropped or renamed since")
                return Stale(change, current)
            if current.metadata_location == change.location:
                return None
            if current.metadata_location != change.expected:
                return self._stale_or_unknown(change, current, is_repeated=is_repeated)
            try:
                self._replace(database, table, table_input(name, table, change))
            except GlueRefused as error:
                if error.exception not in (CONCURRENT, NOT_FOUND):
                    raise self._refused("commit to", change.identifier, error) from error
                # Another version; it may have the same pointer.
                continue
            return None
        raise CommitConflictError(f"Cannot commit to {format_name(change.identifier)}: others keep changing its table")

    def _replace(self, database: str, existing: Mapping[str, Any], made: Mapping[str, Any]) -> None:
        """Replace a table, if it has the version still that was found."""
        version = existing.get("VersionId")
        if not isinstance(version, str):
            raise StorageError(f"Cannot change {database}.{existing.get('Name')}: {self.label} gave it no version")
        arguments = {"DatabaseName": database, "TableInput": made, "VersionId": version}
        self._client.send("UpdateTable", {**arguments, "SkipArchive": self._skips_archive})

    def drop(self, entity_type: EntityType, identifier: Identifier, expected: str | None = None) -> Pointer | None:
        """Remove a pointer, one at an expected location where given; return what it was, or None."""
        names = own_name(identifier)
        if names is None:
            return None
        if expected is None:
            pointer = self.find(identifier)
            if pointer is None or pointer.entity_type is not entity_type:
                return None
        else:
            existing = self._taken_away(entity_type, identifier, names, _DROPPED, expected)
            if existing is None:
                return None
            pointer = existing[1]
        try:
            self._client.send("DeleteTable", {"DatabaseName": names[0], "Name": names[1]})
        except GlueRefused as error:
            if error.exception != NOT_FOUND:
                raise self._refused("drop", identifier, error) from error
        except NotReached as error:
            raise self._client.failure("drop", format_name(identifier), error) from error
        except AnswerMissing as error:
            if self._find_table(*names) is not None:
                raise self._lost("drop", identifier, error) from error
        return pointer

    def _taken_away(
        self,
        entity_type: EntityType,
        identifier: Identifier,
        names: tuple[str, str],
        mark: str,
        expected: str | None = None,
    ) -> tuple[dict[str, Any], Pointer] | None:
        """Mark a table as no Iceberg table any more, in one step; return what it was, or None."""
        for _ in range(_TRIES):
            table = self._find_table(*names)
            parameters = {} if table is None else texts_of(table.get("Parameters"))
            pointer = pointer_of(parameters)
            if (
                table is None
                or pointer is None
                or pointer.entity_type is not entity_type
                or expected not in (None, pointer.metadata_location)
            ):
                return None
            marked = {**taken_back(table), "Parameters": {**parameters, TABLE_TYPE: mark}}
            try:
                self._replace(names[0], table, marked)
            except GlueRefused as error:
                if error.exception not in (CONCURRENT, NOT_FOUND):
                    raise self._refused("change", identifier, error) from error
                continue
            except (NotReached, AnswerMissing) as error:
                left = self._find_table(*names)
                if left is None or texts_of(left.get("Parameters")).get(TABLE_TYPE) != mark:
                    raise self._lost("change", identifier, error) from error
            return table, pointer
        raise CommitConflictError(f"Cannot change {format_name(identifier)}: other writers keep committing to it")

    def rename(self, entity_type: EntityType, source: Identifier, target: Identifier) -> None:
        """Give a pointer another name that is free, in a namespace that exists."""
        names, goal = own_name(source), own_name(target)
        pointer = None if names is None else self.find(source)
        if names is None or pointer is None or pointer.entity_type is not entity_type:
            raise self._not_found(entity_type, source)
        if names == goal:
            return
        if goal is None or not self.namespace_exists(target[:-1]):
            raise namespace_not_found(target[:-1])
        self._check_free(target, goal)
        existing = self._taken_away(entity_type, source, names, _RENAMED)
        if existing is None:
            raise self._not_found(entity_type, source)
        made = {**taken_back(existing[0]), "Name": goal[1]}
        try:
            self._client.send("CreateTable", {"DatabaseName": goal[0], "TableInput": made})
        except GlueRefused as error:
            self._give_back(names, existing[0])
            self._check_free(target, goal)
            raise self._refused("rename", source, error) from error
        except (NotReached, AnswerMissing) as error:
            target_pointer = self.find(target)
            if target_pointer is None or target_pointer.metadata_location != existing[1].metadata_location:
                raise CommitStateUnknownError(
                    f"Cannot tell whether {self.label} did rename {format_name(source)}: {error}",
                    hint=f"If neither name is there, set the parameter {TABLE_TYPE} of the old one from {_RENAMED} "
                    "to what it was.",
                ) from error
        try:
            self._client.send("DeleteTable", {"DatabaseName": names[0], "Name": names[1]})
        except (GlueRefused, NotReached, AnswerMissing) as error:
            if self._find_table(*names) is not None:
                raise self._client.failure("take away the old name", format_name(source), error) from error

    def _give_back(self, names: tuple[str, str], before: Mapping[str, Any]) -> None:
        """Make a table an Iceberg table again."""
        table = self._find_table(*names)
        if table is not None:
            self._replace(names[0], table, taken_back(before))

    def _check_free(self, target: Identifier, names: tuple[str, str]) -> None:
        table = self._find_table(*names)
        if table is not None:
            pointer = pointer_of(texts_of(table.get("Parameters")))
            is_view = pointer is not None and pointer.entity_type is EntityType.VIEW
            raise view_exists(target) if is_view else table_exists(target)

    def _refused(self, verb: str, identifier: Identifier, error: GlueRefused) -> Exception:
        if error.exception == NOT_FOUND:
            return namespace_not_found(identifier[:-1])
        if error.exception in INVALID:
            return InvalidRequestError(f"Cannot {verb} {format_name(identifier)}: {self.label} refused it: {error}")
        return self._client.failure(verb, format_name(identifier), error)

    def list(self, entity_type: EntityType, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the names of a kind in a namespace that exists, in order, a page in each request."""
        database = own_namespace(namespace)
        if database is None:
            raise namespace_not_found(namespace)
        names = (
            name for name, parameters in self._tables(database, namespace) if entity_type_of(parameters) is entity_type
        )
        return sorted_names(namespace, names)

    def _tables(self, database: str, namespace: Namespace) -> Iterable[tuple[str, dict[str, str]]]:
        try:
            for table in self._client.pages("GetTables", "TableList", DatabaseName=database):
                name = table.get("Name")
                if isinstance(name, str):
                    yield name, texts_of(table.get("Parameters"))
        except GlueRefused as error:
            if error.exception == NOT_FOUND:
                raise namespace_not_found(namespace) from error
            raise self._client.failure("list the tables of", database, error) from error

    def locations(self) -> Iterable[tuple[Identifier, str]]:
        """Return every name, of tables and views, with its metadata file."""
        for namespace in self.list_namespaces(()):
            for name, parameters in self._tables(namespace[0], namespace):
                if entity_type_of(parameters) is not None and METADATA_LOCATION in parameters:
                    yield (*namespace, name), parameters[METADATA_LOCATION]

    # Namespaces

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Make a namespace that does not exist."""
        name = new_namespace(namespace, self.label)
        made = database_input(name, properties, database_location(self._warehouse, name))
        try:
            self._client.send("CreateDatabase", {"DatabaseInput": made})
        except GlueRefused as error:
            if error.exception == EXISTS:
                raise namespace_exists(namespace) from error
            raise self._refused("create namespace", (*namespace, ""), error) from error
        except NotReached as error:
            raise self._client.failure("create namespace", name, error) from error
        except AnswerMissing as error:
            raise self._lost("create", namespace, error) from error

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove a namespace that exists and is empty; Glue itself would drop one that is not."""
        name = own_namespace(namespace)
        if name is None or not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)
        held = next(iter(self._tables(name, namespace)), None)
        if held is not None:
            raise namespace_not_empty(namespace, format_name((*namespace, held[0])))
        try:
            self._client.send("DeleteDatabase", {"Name": name})
        except GlueRefused as error:
            if error.exception == NOT_FOUND:
                raise namespace_not_found(namespace) from error
            raise self._client.failure("drop namespace", name, error) from error
        except NotReached as error:
            raise self._client.failure("drop namespace", name, error) from error
        except AnswerMissing as error:
            raise self._lost("drop", namespace, error) from error

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was made."""
        return self._find_database(namespace) is not None

    def list_namespaces(self, parent: Namespace) -> tuple[Namespace, ...]:
        """Return the topmost namespaces, in order; there are none below them."""
        if not parent:
            names = (database.get("Name") for database in self._client.pages("GetDatabases", "DatabaseList"))
            return tuple(sorted((name,) for name in names if isinstance(name, str)))
        if not self.namespace_exists(parent):
            raise namespace_not_found(parent)
        return ()

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace that exists, its location and comment among them."""
        return database_properties(self._database(namespace))

    def update_namespace(self, namespace: Namespace, updates: Mapping[str, str], removals: Iterable[str]) -> None:
        """Set and remove properties; Glue has no condition for it, so the last of two updates at once wins."""
        existing = self._database(namespace)
        gone = set(removals)
        name = str(existing.get("Name"))
        properties = {key: value for key, value in database_properties(existing).items() if key not in gone}
        try:
            made = database_input(name, {**properties, **updates})
            self._client.send("UpdateDatabase", {"Name": name, "DatabaseInput": made})
        except (GlueRefused, NotReached) as error:
            raise self._client.failure("change namespace", name, error) from error
        except AnswerMissing as error:
            raise self._lost("change", namespace, error) from error

    def _find_database(self, namespace: Namespace) -> dict[str, Any] | None:
        name = own_namespace(namespace)
        if name is None:
            return None
        try:
            existing = self._client.read("GetDatabase", Name=name).get("Database")
        except GlueRefused as error:
            if error.exception == NOT_FOUND:
                return None
            raise self._client.failure("find namespace", name, error) from error
        return existing if isinstance(existing, dict) else None

    def _database(self, namespace: Namespace) -> dict[str, Any]:
        existing = self._find_database(namespace)
        if existing is None:
            raise namespace_not_found(namespace)
        return existing

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class GlueCatalog(MetastoreCatalog):
    """A catalog in AWS Glue; `open_glue` opens one by its properties."""

    def __init__(
        self,
        name: str,
        warehouse: str,
        pointers: GluePointers,
        storage: Storage,
        *,
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
        delete_roots: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, warehouse, storage, pointers, now_ms=now_ms, new_id=new_id, delete_roots=delete_roots)
        self.label = pointers.label
