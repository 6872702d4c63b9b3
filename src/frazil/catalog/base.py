"""What a catalog promises: names that lead to metadata, and a pointer that one writer at a time moves.

A catalog keeps, for each table and view, the location of its current metadata file. Everything else of a table
is in files that never change, so the pointer is the only thing writers race for. The promises every
catalog keeps, and `tests/contract/test_catalog_contract.py` checks:

    load      gives a state that was current at some time during the call
    commit    takes changes, not metadata: the updates are made, all of them, on a state that meets the requirements,
              or not at all. The new metadata is safe on disk before the pointer moves. It returns an outcome
              (`catalog/outcomes.py`); an exception means that nothing happened. (KeyboardInterrupt and the like
              tell nothing: treat them as unknown.) A catalog of pointers compares and swaps: of all who start
              from one state, one succeeds at most. A service may make a change on a later state than its base,
              where the requirements hold there: name what a change relies on
    create    of all who create one name, one succeeds at most; tables and views share their names
    drop      takes the name away, whatever the state; a commit from a state of the dropped table is rejected
    rename    moves the pointer in one step, where the catalog can; commits from states loaded before are rejected,
              since they name the old identifier
    commit_many commits to several tables, all or none, where the catalog can

A table that was dropped and created anew is another table: `refresh` refuses it, by its UUID.

A namespace exists when it was created, or when something below it exists. A table needs a namespace that exists.

Files are never deleted by a catalog, but for: metadata written for a commit that was rejected; metadata the log
forgets, where `write.metadata.delete-after-commit.enabled` asks for it, in the folder of the current one; and a purge,
by the rule of `catalog/owned_folders.py`.

Storage, clock and the source of ids are given to a catalog, so that tests can choose them. A catalog may be used
from several threads. It is not pickled: it may hold a connection and a password; the states it returns are.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self

from frazil.catalog.change import TableChange
from frazil.catalog.marks import SqlMarks
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
"""The warehouse of a catalog that does not say where its files are: some services do not."""


def system_ms() -> int:
    """Return the time of this machine's clock, in milliseconds from 1970."""
    return time.time_ns() // 1_000_000


def random_id() -> str:
    """Return a new UUID as text."""
    return str(uuid.uuid4())


class Catalog(ABC):
    """Names that lead to the current metadata of tables and views."""

    has_namespace_properties: ClassVar[bool] = True
    """Whether properties of namespaces are kept."""

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
        """Folders beside the warehouse in which tables may have files of their own to delete."""
        self.now_ms = now_ms
        self.new_id = new_id
        self.has_readers_by_views = False
        """Whether it may matter by which views a table is read: a service may give it to readers of a view alone."""
        self.marks: SqlMarks | None = None
        """Where requests are marked in the step that carries them out; None where that cannot be."""
        self.lineage: Any = None
        """Who is told of reads and writes (`lineage.py`); None where nobody is."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.warehouse!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not pickled, since it may hold a password; open it again instead")

    @abstractmethod
    def close(self) -> None:
        """Give back what the catalog holds open; it may not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Namespaces

    @abstractmethod
    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace, and those above it that are missing; of all who try, one succeeds at most."""

    @abstractmethod
    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop a namespace that holds nothing; something created in it at the same moment may bring it back."""

    @abstractmethod
    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether a namespace was created, or something below it exists."""

    @abstractmethod
    def list_namespaces(self, parent: Namespace = ()) -> tuple[Namespace, ...]:
        """Return the namespaces directly below another, or the topmost, in order."""

    @abstractmethod
    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties."""

    @abstractmethod
    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str] | None = None, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties in one step; parallel updates of other properties are kept."""

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
        """Change a table from a state of it; from a state that was never written, create the table.

        A writer who comes first makes this one `Rejected`. Requirements that the base itself does not meet are a
        CommitConflictError. Updates that change nothing commit nothing, and give back the base.
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
        """Read back what a commit of unknown outcome came to; it stays unknown where that cannot be told now."""

    @abstractmethod
    def drop_table(
        self, identifier: Identifier, *, purge: Purge | None = None, delete_roots: Sequence[str] = ()
    ) -> PurgeReport:
        """Take a table's name away; with `purge`, by it delete the files that are its own and nobody else's.

        A table whose folders are not its own is refused, and stays; `delete_roots` are folders that the caller names.
        """

    @abstractmethod
    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Give a table another name; its files stay where they are."""

    @abstractmethod
    def register_table(
        self, identifier: Identifier, metadata_location: str, *, may_replace: bool = False
    ) -> LoadedTable:
        """Give a name to a table whose metadata file exists; with `may_replace`, one that a table has already."""

    @abstractmethod
    def unregister_table(self, identifier: Identifier, *, expected_location: str | None = None) -> LoadedTable:
        """Take a table's name away and return its last state, which `register_table` gives a name again elsewhere.

        With `at`, only while that is its metadata file; a service may look at it a moment before.
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
        """Change a view from a state of it; from a state that was never written, create the view."""

    @abstractmethod
    def drop_view(self, identifier: Identifier) -> None:
        """Take a view's name away; its metadata files stay."""

    @abstractmethod
    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Give a view another name."""

    @abstractmethod
    def register_view(self, identifier: Identifier, metadata_location: str) -> LoadedView:
        """Give a name to a view whose metadata file exists."""

    # Where metadata is, without reading it

    def locate_table(self, identifier: Identifier) -> str | None:
        """Return a table's metadata file, of a catalog in which a file of that name never changes; else None."""
        return None

    def locate_view(self, identifier: Identifier) -> str | None:
        """Return a view's metadata file, of a catalog in which a file of that name never changes; else None."""
        return None

    # What is the same for every catalog

    @abstractmethod
    def new_location(self, identifier: Identifier, location: str | None) -> str:
        """Return where a new table or view may keep its files: the location asked for, or one of its own."""

    def other_pointers(self, identifier: Identifier) -> Iterable[tuple[Identifier, str]]:
        """Return the metadata files of all other tables and views, where these could lie in a folder of the table."""
        return ()

    def all_tables(self, namespace: Namespace = ()) -> Iterator[Identifier]:
        """Yield the names of all tables below a namespace."""
        for inner in self.list_namespaces(namespace):
            yield from self.list_tables(inner)
            yield from self.all_tables(inner)

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether there is a table of that name that can be loaded."""
        try:
            self.load_table(identifier)
        except TableNotFoundError:
            return False
        return True

    def view_exists(self, identifier: Identifier) -> bool:
        """Return whether there is a view of that name that can be loaded."""
        try:
            self.load_view(identifier)
        except ViewNotFoundError:
            return False
        return True

    def refresh(self, loaded: LoadedTable) -> LoadedTable:
        """Return a table's current state; refuse another table that has taken its name meanwhile."""
        fresh = self.load_table_for(loaded.identifier, loaded.referenced_by)
        check_same_table(loaded.metadata, fresh.metadata, format_name(loaded.identifier))
        return fresh

    def refresh_view(self, loaded: LoadedView) -> LoadedView:
        """Return a view's current state; refuse another view that has taken its name meanwhile."""
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
        """Return the first state of a new table, to be changed and then created by `commit`; writes nothing."""
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
        """Create an empty table; of all who create one name, one succeeds at most."""
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
        """Return the first state of a new view, to be created by `commit_view`; writes nothing."""
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
        """Create a view; of all who create one name, one succeeds at most."""
        staged = self.stage_view(identifier, schema, version, location=location, properties=properties)
        return self.settle(self.commit_view(staged, (), (AssertCreate(),)))

    def settle(self, outcome: Outcome[LoadedT]) -> LoadedT:
        """Return the new state, or raise what stood in its way; an unknown outcome is read back once."""
        if isinstance(outcome, Unknown):
            outcome = self.resolve_unknown(outcome)
        if isinstance(outcome, Committed):
            return outcome.loaded
        raise outcome.reason if isinstance(outcome, Rejected) else outcome.error

    @abstractmethod
    def find_existing(self, identifier: Identifier) -> AlreadyExistsError | None:
        """Return the error that says what has a name; None where it is free."""

    def _check_free(self, identifier: Identifier) -> None:
        namespace, _ = split_identifier(identifier)
        if not self.namespace_exists(namespace):
            raise namespace_not_found(namespace)
        taken = self.find_existing(identifier)
        if taken is not None:
            raise taken


def check_distinct(changes: Sequence[TableChange]) -> None:
    """Refuse no change at all, and two changes of one table."""
    if not changes:
        raise InvalidRequestError("Cannot commit to no table")
    names = [change.base.identifier for change in changes]
    if len(set(names)) < len(names):
        raise InvalidRequestError("Cannot commit to a table twice at once", tables=", ".join(map(format_name, names)))


def check_still_at(loaded: LoadedTable, location: str | None) -> None:
    """Refuse to go on with a table that another writer has changed; None is any state."""
    if location is not None and loaded.metadata_location != location:
        raise CommitConflictError(
            f"Cannot unregister table {format_name(loaded.identifier)}: another writer has changed it"
        )
