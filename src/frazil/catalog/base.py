"""The catalog interface: names mapped to metadata files, by pointers that one writer at a time moves.

A catalog keeps the location of the current metadata file of each table and view. All other files of a table are
immutable, so the pointer is all that writers compete for. Every catalog makes these guarantees, which
`tests/contract/test_catalog_contract.py` checks:

    load      returns a state that was current at some time during the call
    commit    takes changes rather than metadata: all updates are applied to a state that meets the requirements, or
              none is. The new metadata is durable before the pointer moves. It returns an outcome
              (`catalog/outcomes.py`); an exception means that nothing happened. (KeyboardInterrupt and the like
              say nothing about the outcome: treat it as unknown.) A pointer catalog compares and swaps: of several
              writers that start from one state, at most one succeeds. A service may apply a change to a later state
              than its base if that meets the requirements: require whatever a change relies on
    create    at most one of several writers that create a name succeeds; tables and views share one namespace of names
    drop      removes the name, whatever the state; a commit from a state of the dropped table is rejected
    rename    moves the pointer in one step if the catalog can; commits from states loaded earlier are rejected,
              since they use the old identifier
    commit_many commits to several tables, all or none, if the catalog can

A table that was dropped and recreated is another table: `refresh` detects it by its UUID and fails.

A namespace exists once it was created, or while it contains something. A table needs an existing namespace.

A catalog deletes no files except: metadata written for a rejected commit; metadata that has dropped out of the log, in
the folder of the current one, if `write.metadata.delete-after-commit.enabled` is set; and those of a purge, by the rule
of `catalog/owned_folders.py`.

Storage, clock and ID source are passed to a catalog, so that tests can choose them. A catalog may be used from several
threads. It cannot be pickled, since it may hold a connection and a password; the states it returns can.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from frazil.catalog.change import TableChange
from frazil.catalog.idempotency_records import SqlIdempotencyRecords
from frazil.catalog.names import Identifier, Namespace, format_name, namespace_not_found, split_identifier
from frazil.catalog.outcomes import Committed, LoadedT, Outcome, Rejected, Unknown
from frazil.catalog.purge import Purge, PurgeReport
from frazil.changes.requirements import AssertCreate, TableRequirement, ViewRequirement
from frazil.changes.updates import TableUpdate, ViewUpdate
from frazil.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec.check_table_metadata import check_same_table
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder
from frazil.spec.versions import DEFAULT
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import ViewVersion, check_same_view
from frazil.storage.base import Storage
from frazil.storage.locations import strip_slashes

NO_PLACE = "service://unknown"
"""The warehouse of a catalog that does not report where its files are; some services do not."""


def system_ms() -> int:
    """Return the time of this machine's clock, in milliseconds from 1970."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """Return a new UUID as text."""
    return str(uuid.uuid4())


class Catalog(ABC):
    """Maps names of tables and views to their current metadata."""

    has_namespace_properties: ClassVar[bool] = True
    """Whether the catalog stores namespace properties."""

    def __init__(
        self,
        name: str,
        warehouse: str,
        storage: Storage,
        *,
        now_ms: Callable[[], int] = system_ms,
        new_id: Callable[[], str] = random_id,
        delete_roots: Sequence[str] = (),
    ) -> None:
        if name == "" or "\0" in name:
            raise InvalidRequestError(f"Cannot open a catalog named {name!r}: it needs a name without NUL characters")
        self.name = name
        self.warehouse = strip_slashes(warehouse)
        self.storage = storage
        self.delete_roots = tuple(delete_roots)
        self.may_name_local_files = True
        """Whether the catalog's pointers and warehouse are the user's word for files of this machine too."""
        """Folders outside the warehouse in which tables may delete files of their own."""
        self.now_ms = now_ms
        self.new_id = new_id
        self.has_readers_by_views = False
        """Whether to pass the views through which a table is read: a service may restrict a table to view readers."""
        self.idempotency_records: SqlIdempotencyRecords | None = None
        """Idempotency records, written in the transaction of a change; None if the catalog cannot keep them."""
        self.lineage: Any = None
        """Observer of reads and writes (`lineage.py`), or None."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.warehouse!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled, since it may hold a password; open it again instead")

    @abstractmethod
    def close(self) -> None:
        """Release the connections of the catalog, which cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Namespaces

    @abstractmethod
    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace and its missing parents; at most one concurrent caller succeeds."""

    @abstractmethod
    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace; creating something in it at the same moment may bring it back."""

    @abstractmethod
    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created or contains something."""

    @abstractmethod
    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the child namespaces of a namespace, or the top-level ones, in order."""

    @abstractmethod
    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties."""

    @abstractmethod
    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties in one step; concurrent updates of other properties are preserved."""

    # Tables

    @abstractmethod
    def list_tables(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the tables of a namespace, in order."""

    @abstractmethod
    def load_table(self, identifier: Identifier) -> LoadedTable:
        """Return the current state of a table."""

    def load_table_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedTable:
        """Return the current state of a table that is read through views, the outermost first."""
        return self.load_table(identifier)

    def load_view_for(self, identifier: Identifier, views: Sequence[Identifier]) -> LoadedView:
        """Return the current state of a view that is read through other views, the outermost first."""
        return self.load_view(identifier)

    @abstractmethod
    def commit(
        self,
        base: LoadedTable,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
    ) -> Outcome[LoadedTable]:
        """Change a table from one of its states, or create it from a state that was never written.

        The result is `Rejected` if another writer came first. Requirements that the base itself does not meet raise a
        CommitConflictError. Updates that change nothing commit nothing and return the base.
        """

    def commit_many(self, changes: Sequence[TableChange]) -> Outcome[LoadedTable]:
        """Change several tables, all or none."""
        check_distinct(changes)
        if len(changes) == 1:
            return self.commit(changes[0].base, changes[0].updates, changes[0].requirements)
        raise UnsupportedError(
            f"Cannot commit to {len(changes)} tables at once: this catalog moves one pointer at a time",
            hint="Use a SQL catalog for transactions over several tables.",
        )

    @abstractmethod
    def resolve_unknown(self, unknown: Unknown[LoadedT]) -> Outcome[LoadedT]:
        """Determine the outcome of an unknown commit by reading it back; it may stay unknown."""

    @abstractmethod
    def drop_table(
        self, identifier: Identifier, *, purge: Purge | None = None, delete_roots: Sequence[str] = ()
    ) -> PurgeReport:
        """Remove a table's name; with `purge`, also delete the files that belong to it alone, by calling `purge`.

        A table whose folders are not exclusively its own is refused and stays; `delete_roots` are folders named by the
        caller.
        """

    @abstractmethod
    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table; its files stay where they are."""

    @abstractmethod
    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file under a name; `may_replace` allows a name that is already a table's."""

    @abstractmethod
    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Remove a table's name and return its last state, which `register_table` can register elsewhere.

        With `expected_location`, only if that is still its metadata file; a service may check it slightly earlier.
        """

    # Views

    @abstractmethod
    def list_views(self, namespace: Namespace) -> tuple[Identifier, ...]:
        """Return the views of a namespace, in order."""

    @abstractmethod
    def load_view(self, identifier: Identifier) -> LoadedView:
        """Return the current state of a view."""

    @abstractmethod
    def commit_view(
        self, base: LoadedView, updates: Sequence[ViewUpdate], requirements: Sequence[ViewRequirement] = ()
    ) -> Outcome[LoadedView]:
        """Change a view from one of its states, or create it from a state that was never written."""

    @abstractmethod
    def drop_view(self, identifier: Identifier) -> None:
        """Remove a view's name; its metadata files stay."""

    @abstractmethod
    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Rename a view."""

    @abstractmethod
    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file of a view under a name."""

    # Metadata locations, without reading the metadata

    def locate_table(self, identifier: Identifier) -> str | None:
        """Return a table's metadata file if files of that name never change in this catalog, else None."""
        return None

    def locate_view(self, identifier: Identifier) -> str | None:
        """Return a view's metadata file if files of that name never change in this catalog, else None."""
        return None

    # Shared by all catalogs

    @abstractmethod
    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return the location for a new table or view: the requested one, or one that the catalog chooses."""

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views that may lie in a folder of the table."""
        return ()

    def all_tables(self, namespace: Namespace = ()) -> Iterator[Identifier]:
        """Yield the names of all tables in a namespace and below."""
        for inner in self.list_namespaces(namespace):
            yield from self.list_tables(inner)
            yield from self.all_tables(inner)

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether a table of that name exists and can be loaded."""
        try:
            self.load_table(identifier)
        except TableNotFoundError:
            return False
        return True

    def view_exists(self, identifier: Identifier) -> bool:
        """Return whether a view of that name exists and can be loaded."""
        try:
            self.load_view(identifier)
        except ViewNotFoundError:
            return False
        return True

    def refresh(self, loaded: LoadedTable) -> LoadedTable:
        """Return a table's current state; fail if another table has replaced it under its name."""
        fresh = self.load_table_for(loaded.identifier, loaded.referenced_by)
        check_same_table(loaded.metadata, fresh.metadata, format_name(loaded.identifier))
        return fresh

    def refresh_view(self, loaded: LoadedView) -> LoadedView:
        """Return a view's current state; fail if another view has replaced it under its name."""
        fresh = self.load_view(loaded.identifier)
        check_same_view(loaded.metadata, fresh.metadata)
        return fresh

    def stage_table(
        self,
        identifier: Identifier,
        schema: Schema,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        format_version: int = DEFAULT,
    ) -> LoadedTable:
        """Return the initial state of a new table, to be created by `commit`; writes nothing."""
        self._check_free(identifier)
        metadata = new_table_metadata(
            schema,
            spec,
            sort_order,
            location=self.new_location(identifier, location),
            properties=properties,
            format_version=format_version,
            uuid=self.new_id(),
            now_ms=self.now_ms(),
        )
        return LoadedTable(tuple(identifier), metadata, None, self.storage)

    def create_table(
        self,
        identifier: Identifier,
        schema: Schema,
        spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        format_version: int = DEFAULT,
    ) -> LoadedTable:
        """Create an empty table; at most one concurrent caller succeeds."""
        staged = self.stage_table(
            identifier,
            schema,
            spec,
            sort_order,
            location=location,
            properties=properties,
            format_version=format_version,
        )
        return self.settle(self.commit(staged, (), (AssertCreate(),)))

    def stage_view(
        self,
        identifier: Identifier,
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        """Return the initial state of a new view, to be created by `commit_view`; writes nothing."""
        self._check_free(identifier)
        metadata = new_view_metadata(
            view_uuid=self.new_id(),
            location=self.new_location(identifier, location),
            schema=schema,
            version=version,
            properties=properties,
        )
        return LoadedView(tuple(identifier), metadata, None, self.storage)

    def create_view(
        self,
        identifier: Identifier,
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        """Create a view; at most one concurrent caller succeeds."""
        staged = self.stage_view(identifier, schema, version, location=location, properties=properties)
        return self.settle(self.commit_view(staged, (), (AssertCreate(),)))

    def settle(self, outcome: Outcome[LoadedT]) -> LoadedT:
        """Return the new state, or raise the reason for the failure; an unknown outcome is read back once."""
        if isinstance(outcome, Unknown):
            outcome = self.resolve_unknown(outcome)
        if isinstance(outcome, Committed):
            return outcome.loaded
        raise outcome.reason if isinstance(outcome, Rejected) else outcome.error

    @abstractmethod
    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that describes the current holder of a name, or None if the name is free."""

    def _check_free(self, identifier: Identifier) -> None:
        namespace, _ = split_identifier(identifier)
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)
        existing = self.find_existing(identifier)
        if existing is not None:
            raise existing


def check_distinct(changes: Sequence[TableChange]) -> None:
    """Refuse an empty list of changes and two changes of one table."""
    if not changes:
        raise InvalidRequestError("Cannot commit: the list of changes is empty")
    names = [change.base.identifier for change in changes]
    if len(set(names)) < len(names):
        raise InvalidRequestError("Cannot commit to a table twice at once", tables=", ".join(map(format_name, names)))


def check_still_at(loaded: LoadedTable, location: str | None) -> None:
    """Raise an error if another writer has changed a table since; None matches any state."""
    if location is not None and loaded.metadata_location != location:
        raise CommitConflictError(
            f"Cannot unregister table {format_name(loaded.identifier)}: another writer has changed it"
        )
