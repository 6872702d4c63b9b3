"""A table as a user holds it: a live handle on a name in a catalog.

Each write starts from the catalog's current state, which it loads once, and after it the handle shows the result.
`refresh()` reads the catalog again. A scan is pinned to the snapshot that the handle showed when it was made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.commit.action import Action
from frazil.commit.expired_files import ExpiredFiles, delete_expired_files
from frazil.commit.transaction import TableTransaction, Transaction
from frazil.errors import FrazilError
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.maintenance.check_table import check_beside_writers
from frazil.maintenance.report import Report
from frazil.maintenance.table_health import table_health
from frazil.pictures.style import in_notebook
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH, Operation, Snapshot, SnapshotRef
from frazil.spec.sorting import SortOrder
from frazil.spec.table_metadata import TableMetadata
from frazil.table.changed_rows import changes_window, read_changes
from frazil.table.describe import describe_table
from frazil.table.difference import Difference
from frazil.table.explain_changes import ExplainChanges
from frazil.table.follow import Changes, Follow
from frazil.table.history import History
from frazil.table.lineage import ending, tell_commit, telling
from frazil.table.maintain import Maintain
from frazil.table.metadata_tables import MetadataTables
from frazil.table.metadata_verbs import expiry_of
from frazil.table.point_in_time import PointInTime
from frazil.table.scan import Scan, ScanOptions, scan_table
from frazil.table.table_figures import draw_table
from frazil.table.verbs import TableVerbs, check_columns, operations_between


class Table(TableVerbs):
    """One table of a lake. Get it from `Lake.table` or `Lake.create_table`."""

    def __init__(self, catalog: Catalog, loaded: LoadedTable, cache: ManifestCache | None = None) -> None:
        self._catalog = catalog
        self._cache = cache
        self._show(loaded)

    @property
    def state(self) -> LoadedTable:
        """The state that this handle shows: the metadata, the file it was read from, the storage of its files."""
        return self._state

    def __repr__(self) -> str:
        return describe_table(self._state)

    def _repr_html_(self) -> str:
        return in_notebook(draw_table(self._state))

    @property
    def identifier(self) -> tuple[str, ...]:
        """The names of the namespace and the table."""
        return self._state.identifier

    @property
    def name(self) -> str:
        """The identifier as text."""
        return self._state.name

    @property
    def metadata(self) -> TableMetadata:
        """The whole state that this handle shows."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str | None:
        """The file that the state was read from."""
        return self._state.metadata_location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.current_schema

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self.metadata.default_spec

    @property
    def sort_order(self) -> SortOrder:
        """The sort order of new files."""
        return self.metadata.default_sort_order

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties as they are set."""
        return self.metadata.properties

    @property
    def location(self) -> str:
        """The folder that new files go under."""
        return self.metadata.location

    @property
    def format_version(self) -> int:
        """The version of the format: 1, 2 or 3."""
        return self.metadata.format_version

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The current state's snapshot; None for a table without rows so far."""
        return self.metadata.current_snapshot

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """Every snapshot that has not expired."""
        return self.metadata.snapshots

    @property
    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    def history(self) -> History:
        """Return which snapshot was current since when, oldest first; in a notebook, on a graph of branches."""
        return History(self.metadata.snapshot_log, self.metadata)

    def difference(self, before: int | str, after: int | str = MAIN_BRANCH) -> Difference:
        """Compare two snapshots, named by id or by branch or tag: in rows, in the schema, in files.

        Rows come from the change feed, so the first is to be an ancestor of the second; rows that were only copied are
        left out.
        """
        first, second = (
            self.metadata.snapshot(given) if isinstance(given, int) else self.metadata.ref_snapshot(given)
            for given in (before, after)
        )
        return Difference(self._state, first, second, self._cache)

    def refresh(self) -> Self:
        """Read the catalog again; refuse another table that has taken the name."""
        self._show(self._catalog.refresh(self._state))
        return self

    # Reading

    def scan(
        self,
        predicate: Predicate | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        as_of: PointInTime | None = None,
        ref: str | None = None,
        case_sensitive: bool = True,
        limit: int | None = None,
        **parameters: object,
    ) -> Scan:
        """Ask for rows: a condition, columns, and a snapshot by id, by time or by branch or tag.

        The condition is in the language of `docs/conditions.md`, a part of Spark SQL, or built with `frazil.col`;
        further arguments are values for the names in it: `t.scan("id = :x", x=7)`.
        """
        check_columns(columns)
        return scan_table(
            self._state,
            predicate,
            columns=columns,
            snapshot_id=snapshot_id,
            as_of=as_of,
            ref=ref,
            case_sensitive=case_sensitive,
            limit=limit,
            options=ScanOptions(manifest_cache=self._cache),
            parameters=parameters,
        )

    def changes(
        self,
        start: PointInTime | None = None,
        end: PointInTime | None = None,
        *,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the rows that snapshots after `start`, up to and with `end`, added and removed.

        Whole numbers are ids of snapshots; datetimes and ISO text are times. Without a start, all that is still known;
        without an end, up to the state that is shown. Each row has `_change_type` (INSERT or DELETE), `_change_ordinal`
        and `_commit_snapshot_id`; rows that a snapshot merely copied to other files are left out.
        """
        check_columns(columns)
        scan = scan_table(self._state, columns=columns, options=ScanOptions(manifest_cache=self._cache))
        return read_changes(replace(scan, changelog=changes_window(self.metadata, start, end)))

    def follow(
        self,
        after: int | str | None = None,
        *,
        predicate: Predicate | str | None = None,
        columns: Sequence[str] | None = None,
        branch: str = MAIN_BRANCH,
        changes: Changes = "error",
        poll_seconds: float = 1.0,
        until: PointInTime | None = None,
    ) -> Follow:
        """Hand over the rows of new snapshots as they come, as Arrow batches: `for batch in t.follow(after=…)`.

        It begins after a snapshot of an id, after the present one unless given; after what a follower's `token`
        tells; or with the whole table first, `"beginning"`. It ends with the snapshot of the id `until`, with what is
        there now (`until="now"`), at a time, or by `stop()`; else never, and asks the catalog every `poll_seconds`.
        `changes` says what becomes of snapshots that remove rows: an `"error"`, `"skip"` them, their `"added-files"`,
        or rows with how they changed for all snapshots, `"changes"`, as `changes()` has them.
        """
        check_columns(columns)
        return Follow(
            lambda: self.refresh().state,
            after,
            predicate=predicate,
            columns=columns,
            branch=branch,
            changes=changes,
            poll_seconds=poll_seconds,
            until=until,
            cache=self._cache,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand all rows over by Arrow's C stream: `pl.from_arrow(t)`, `pa.table(t)`, `duckdb.sql("from t")`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    @cached_property
    def inspect(self) -> MetadataTables:
        """The metadata tables, as Arrow: `t.inspect.snapshots()`, `t.inspect.files()` and the others."""
        return MetadataTables(lambda: self._state)

    def check(self, *, bounds: bool = False, only_current: bool = False, threads: int | None = None) -> Report:
        """Examine the state this handle shows: every file it leads to exists and agrees with its metadata.

        All snapshots are looked at, or the current one; with `bounds`, every row is read and held against the counts,
        bounds and partitions recorded. Problems never raise: they are in the report, with what to do.
        """
        return check_beside_writers(
            self._catalog, self._state, with_rows=bounds, only_current=only_current, threads=threads
        )

    def health(self) -> Report:
        """Report what would make the table better: small files, deletes, snapshots, manifests, and what to run."""
        return table_health(self._state, now_ms=self._catalog.now_ms())

    @cached_property
    def maintain(self) -> Maintain:
        """What keeps the table fast and small: `t.maintain.optimize()`, `t.maintain.rewrite_data_files()`, ..."""
        return Maintain(self._catalog, self._begin, self._show, self._cache)

    # Writing

    @cached_property
    def explain(self) -> ExplainChanges:
        """What changes would do, without doing it: `t.explain.delete("id < 5")` says where, why, what it reads."""
        return ExplainChanges(self)

    def _begin(self) -> LoadedTable:
        return self.refresh().state

    def _begin_again(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        now = self.refresh().state
        done = operations_between(state.metadata, now.metadata, branch)
        return now if Operation.REPLACE in done else None

    def _commit(
        self, state: LoadedTable, action: Action, written: Sequence[str] = ()
    ) -> tuple[LoadedTable, Snapshot | None]:
        with OneCommit(self._catalog, self._cache) as commit:
            _, snapshot = commit.table(state)._commit(state, action, written)
        self._show(commit.states[0])
        return self._state, self._made(snapshot)

    def _telling(self, verb: str, data: Any) -> AbstractContextManager[None]:
        return telling(self._catalog, verb, self.name, data)

    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        with OneCommit(self._catalog, self._cache) as commit:
            snapshot = change(commit.table(state))
        self._show(commit.states[0])
        return self._made(snapshot)

    def _made(self, planned: Snapshot | None) -> Snapshot | None:
        """Return a snapshot as it was committed, which is not what it was planned as where others came first."""
        return None if planned is None else self.metadata.find_snapshot(planned.snapshot_id)

    def expire_snapshots(
        self,
        older_than: PointInTime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        *,
        cleans_metadata: bool = False,
    ) -> ExpiredFiles:
        """Remove snapshots that no branch or tag keeps, and delete the files that only they led to.

        By age and number, or those of given ids; what is left out follows the table's properties and each branch's
        retention. Only files that are the table's own are deleted (docs/maintenance.md), and none if what is left
        cannot be read; `kept` names the others. A tag that somebody puts on a snapshot meanwhile keeps it.
        """
        before = self._begin()
        expiry = expiry_of(older_than, retain_last, snapshot_ids, cleans_metadata=cleans_metadata)
        after, _ = self._commit(before, expiry)
        return delete_expired_files(self._catalog, before, after)

    def transaction(self) -> TransactionContext:
        """Make several changes in one commit: `with t.transaction() as tx: tx.append(a); tx.delete("x = 1")`."""
        return TransactionContext(self, self._catalog, self._cache)

    def _show(self, loaded: LoadedTable) -> None:
        """Show a state."""
        lineage = self._catalog.lineage
        self._state: LoadedTable = loaded if lineage is None else lineage.watch(loaded)


class HeldTable(Table):
    """A table as one statement holds it: what the statement does begins with the state it was loaded with.

    So what it checks, what its queries read of the table and what it writes are of one state, or of a later one that
    the commit compares with it.
    """

    def _begin(self) -> LoadedTable:
        return self._state

    def _begin_again(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        now = self._catalog.load_table(self.identifier)
        done = operations_between(state.metadata, now.metadata, branch)
        # Only where no row changed: what else the statement has read of the table is of the old state.
        if done != {Operation.REPLACE} or now.metadata.current_schema != state.metadata.current_schema:
            return None
        self._show(now)
        return now


def hold(table: Table) -> HeldTable:
    """Return a table for one statement, in the state that is shown."""
    return HeldTable(table._catalog, table.state, table._cache)


class TransactionTable(TableVerbs):
    """A table inside a transaction: verbs are prepared at once and happen at the end."""

    def __init__(self, changes: TableTransaction, cache: ManifestCache | None = None) -> None:
        self._changes = changes
        self._cache = cache
        self._written: list[str] = []
        self._written_for: dict[int, tuple[str, ...]] = {}

    def __repr__(self) -> str:
        return (
            f"{describe_table(self._changes.staged)}\n  in a transaction, {_changes_so_far(len(self._changes.slots))}"
        )

    def _begin(self) -> LoadedTable:
        return self._changes.staged

    def _commit(
        self, state: LoadedTable, action: Action, written: Sequence[str] = ()
    ) -> tuple[LoadedTable, Snapshot | None]:
        self._written += written
        snapshot = self._changes.add(action)
        self._written_for[len(self._changes.slots) - 1] = tuple(written)
        return self._changes.staged, snapshot

    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        return change(self)

    def scan(
        self,
        predicate: Predicate | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        **parameters: object,
    ) -> Scan:
        """Ask for rows of the table as the transaction has changed it so far."""
        check_columns(columns)
        return scan_table(self._begin(), predicate, columns=columns, parameters=parameters)

    def _delete_written(self) -> None:
        """Delete the data and delete files that were written for changes which did not happen."""
        with contextlib.suppress(FrazilError):  # what is left behind is found as an orphan
            self._begin().storage.delete_many(self._written)

    def _delete_skipped(self) -> None:
        """Delete the files of changes that another writer had done before, under the same name."""
        slots = self._changes.slots
        gone = [path for index, paths in self._written_for.items() if slots[index].changes.is_skipped for path in paths]
        if gone:
            with contextlib.suppress(FrazilError):
                self._begin().storage.delete_many(gone)


class OneCommit:
    """Changes of tables that happen together at the end of a `with` block, or not at all.

    The files that were written for them are deleted where they are known not to have happened.
    """

    def __init__(self, catalog: Catalog, cache: ManifestCache | None) -> None:
        self._transaction = Transaction(catalog, cache=cache)
        self._cache = cache
        self._tables: dict[tuple[str, ...], TransactionTable] = {}
        self.states: tuple[LoadedTable, ...] = ()

    def table(self, loaded: LoadedTable) -> TransactionTable:
        """Return a table to change; the state given is what its changes begin with, at the first call."""
        found = self._tables.get(loaded.identifier)
        if found is None:
            found = TransactionTable(self._transaction.table(loaded), self._cache)
            self._tables[loaded.identifier] = found
        return found

    @property
    def names(self) -> list[str]:
        """The tables of the commit."""
        return [".".join(identifier) for identifier in self._tables]

    def find_table(self, identifier: tuple[str, ...]) -> TransactionTable | None:
        """Return a table that is changed already."""
        return self._tables.get(identifier)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is not None:
            self._transaction.roll_back()
            self._delete_written()
            return
        try:
            self.states = self._transaction.commit()
        except FrazilError as problem:
            if problem.may_clean_up:
                self._delete_written()
            raise
        tell_commit(
            self.states,
            {
                slot.snapshot_id
                for transaction_table in self._tables.values()
                for slot in transaction_table._changes.slots
            },
        )
        if not self._transaction.was_unknown:
            for table in self._tables.values():
                table._delete_skipped()

    def _delete_written(self) -> None:
        for table in self._tables.values():
            table._delete_written()


class TransactionContext:
    """Several changes of one table in one commit, at the end of the `with` block; none where it raises."""

    def __init__(self, table: Table, catalog: Catalog, cache: ManifestCache | None) -> None:
        self._table = table
        self._commit = OneCommit(catalog, cache)
        self._told = telling(catalog, "transaction", table.name)

    def __repr__(self) -> str:
        return f"<transaction of {self._table.name!r}, for a with block>"

    def __enter__(self) -> TransactionTable:
        self._told.__enter__()
        return self._commit.table(self._table._begin())

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ending(self._told, error_type, error, trace):
            self._commit.__exit__(error_type, error, trace)
        if error_type is None:
            self._table._show(self._commit.states[0])


def _changes_so_far(count: int) -> str:
    return f"{count} change{'' if count == 1 else 's'} so far"
