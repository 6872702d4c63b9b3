"""A table as a user holds it: a live handle on a name in a catalog.

Each write starts from the catalog's current state, which it loads once, and after it the handle shows the result.
`refresh()` reads the catalog again. A scan is pinned to the snapshot that the handle showed when it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.commit.expired_files import ExpiredFiles, delete_expired_files
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import Predicate
from frazil.lineage import ending, observe_run
from frazil.loaded import LoadedTable
from frazil.maintenance.check_table import check_beside_writers
from frazil.maintenance.report import Report
from frazil.maintenance.table_health import table_health
from frazil.pictures.style import in_notebook
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, SnapshotRef
from frazil.spec.sorting import SortOrder
from frazil.spec.table_metadata import TableMetadata
from frazil.table.changed_rows import changes_window, read_changes
from frazil.table.describe import describe_table
from frazil.table.difference import Difference
from frazil.table.explain_changes import ExplainChanges
from frazil.table.follow import Changes, Follow
from frazil.table.history import History
from frazil.table.maintain import Maintain
from frazil.table.metadata_tables import MetadataTables
from frazil.table.point_in_time import PointInTime
from frazil.table.query_result import QueryResult
from frazil.table.scan import Scan, ScanOptions, scan_table
from frazil.table.table_figures import draw_table
from frazil.table.writable import Writable, expiry_of
from frazil.verbs.live_state import LiveState
from frazil.verbs.one_commit import OneCommit, StagedTable


class Table(Writable):
    """One table of a lake. Get it from `Lake.table` or `Lake.create_table`."""

    def __init__(self, catalog: Catalog, loaded: LoadedTable, cache: ManifestCache | None = None) -> None:
        self._catalog = catalog
        self._cache = cache
        self._live = LiveState(catalog, loaded, cache)
        super().__init__(self._live.session)

    @property
    def state(self) -> LoadedTable:
        """The state that this handle shows: the metadata, the file it was read from, the storage of its files."""
        return self._live.shown

    def __repr__(self) -> str:
        return describe_table(self.state)

    def _repr_html_(self) -> str:
        return in_notebook(draw_table(self.state))

    @property
    def identifier(self) -> tuple[str, ...]:
        """The names of the namespace and the table."""
        return self.state.identifier

    @property
    def name(self) -> str:
        """The identifier as text."""
        return self.state.name

    @property
    def metadata(self) -> TableMetadata:
        """The whole state that this handle shows."""
        return self.state.metadata

    @property
    def metadata_location(self) -> str | None:
        """The file that the state was read from."""
        return self.state.metadata_location

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
        return Difference(self.state, first, second, self._cache)

    def refresh(self) -> Self:
        """Read the catalog again; refuse another table that has taken the name."""
        self._live.refresh()
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
            self.state,
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
        scan = scan_table(self.state, columns=columns, options=ScanOptions(manifest_cache=self._cache))
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

    def head(self, n: int = 10) -> QueryResult:
        """Return the first rows: in no order, unless files hold one."""
        rows = self.scan(limit=n).to_arrow()
        return QueryResult(f"{self.name}, first {n}", rows.schema, lambda: iter(rows.to_batches()), lambda: repr(self))

    def __len__(self) -> int:
        return self.scan().count()

    def __bool__(self) -> bool:
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand all rows over by Arrow's C stream: `pl.from_arrow(t)`, `pa.table(t)`, `duckdb.sql("from t")`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    @cached_property
    def inspect(self) -> MetadataTables:
        """The metadata tables, as Arrow: `t.inspect.snapshots()`, `t.inspect.files()` and the others."""
        return MetadataTables(lambda: self.state)

    def check(self, *, bounds: bool = False, only_current: bool = False, threads: int | None = None) -> Report:
        """Examine the state this handle shows: every file it leads to exists and agrees with its metadata.

        All snapshots are looked at, or the current one; with `bounds`, every row is read and held against the counts,
        bounds and partitions recorded. Problems never raise: they are in the report, with what to do.
        """
        return check_beside_writers(
            self._catalog, self.state, with_rows=bounds, only_current=only_current, threads=threads
        )

    def health(self) -> Report:
        """Report what would make the table better: small files, deletes, snapshots, manifests, and what to run."""
        return table_health(self.state, now_ms=self._catalog.now_ms())

    @cached_property
    def maintain(self) -> Maintain:
        """What keeps the table fast and small: `t.maintain.optimize()`, `t.maintain.rewrite_data_files()`, ..."""
        return Maintain(self._catalog, self._session.load, self._live.show, self._cache)

    # Writing

    @cached_property
    def explain(self) -> ExplainChanges:
        """What changes would do, without doing it: `t.explain.delete("id < 5")` says where, why, what it reads."""
        return ExplainChanges(self._session)

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
        before = self._session.load()
        expiry = expiry_of(older_than, retain_last, snapshot_ids, cleans_metadata=cleans_metadata)
        after, _ = self._session.commit(before, (expiry,), ())
        return delete_expired_files(self._catalog, before, after)

    def transaction(self) -> TransactionContext:
        """Make several changes in one commit: `with t.transaction() as tx: tx.append(a); tx.delete("x = 1")`."""
        return TransactionContext(self, self._catalog, self._cache)


def hold(table: Table) -> Table:
    """Return a table for one statement: what the statement does begins with the state that is shown.

    So its checks, its queries and its writes are of one state, or of a later one that the commit compares with it.
    """
    held = Table(table._catalog, table.state, table._cache)
    held._session = held._live.held_session
    return held


class TransactionTable(Writable):
    """A table inside a transaction: verbs are prepared at once and happen at the end."""

    def __init__(self, staged: StagedTable) -> None:
        self._staged = staged
        super().__init__(staged.session)

    def __repr__(self) -> str:
        count = len(self._staged.snapshot_ids)
        changes = f"{count} change{'' if count == 1 else 's'} so far"
        return f"{describe_table(self._staged.state)}\n  in a transaction, {changes}"

    def scan(
        self,
        predicate: Predicate | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        **parameters: object,
    ) -> Scan:
        """Ask for rows of the table as the transaction has changed it so far."""
        check_columns(columns)
        return scan_table(self._staged.state, predicate, columns=columns, parameters=parameters)

    def expire_snapshots(
        self,
        older_than: PointInTime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        *,
        cleans_metadata: bool = False,
    ) -> Any:
        """Remove snapshots that no branch or tag keeps: by age and number, or those of given ids.

        What is left out follows the table's properties and each branch's retention. With `cleans_metadata`, schemas
        and specs go that no snapshot uses. A tag that somebody puts on a snapshot meanwhile keeps it.
        """
        return self._run(expiry_of(older_than, retain_last, snapshot_ids, cleans_metadata=cleans_metadata))


class TransactionContext:
    """Several changes of one table in one commit, at the end of the `with` block; none where it raises."""

    def __init__(self, table: Table, catalog: Catalog, cache: ManifestCache | None) -> None:
        self._table = table
        self._commit = OneCommit(catalog, cache)
        self._told = observe_run(catalog, "transaction", table.name)

    def __repr__(self) -> str:
        return f"<transaction of {self._table.name!r}, for a with block>"

    def __enter__(self) -> TransactionTable:
        self._told.__enter__()
        return TransactionTable(self._commit.table(self._table._session.load()))

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ending(self._told, error_type, error, trace):
            self._commit.__exit__(error_type, error, trace)
        if error_type is None:
            self._table._live.show(self._commit.states[0])


def check_columns(columns: object) -> None:
    """Refuse one text where a list of names is meant."""
    if isinstance(columns, str):
        raise InvalidRequestError(f"Cannot read the columns {columns!r}: give a list of names")
