"""`t.maintain`: the procedures that keep a table fast and small, named and defaulted as in SQL.

    t.maintain.optimize()                                         whatever is worth doing
    t.maintain.rewrite_data_files(where="day >= '2024-01-01'")    small files into large ones
    t.maintain.expire_snapshots(retain_last=10, dry_run=True)     what would be deleted

Each is a commit, or none where there is nothing to do, and is safe beside writers; `maintenance/` says how. Each starts
from the catalog's current state, and after it the handle shows the result. With `dry_run` nothing is written or
deleted, and the result says what would happen. None needs Spark: data files are rewritten on it where there is much to
rewrite and a session is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from frazil.catalog.base import Catalog
from frazil.commit.new_snapshot import Target
from frazil.commit.remove_dangling_deletes import RemoveDanglingDeletes, count_dangling_deletes
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.errors import InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.evaluate.condition import Session, read_condition
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.maintenance.add_files import AddFilesResult, add_files
from frazil.maintenance.adopt_table import SourceTable, find_source_files
from frazil.maintenance.commit_snapshot import commit_snapshot, summary_count
from frazil.maintenance.convert_equality_deletes import (
    ConvertEqualityDeletesResult,
    Finder,
    convert_equality_deletes,
)
from frazil.maintenance.describe_files import DATA_FORMATS
from frazil.maintenance.expire_snapshots import ExpireSnapshotsResult, expire_snapshots
from frazil.maintenance.optimize import OptimizeResult, optimize
from frazil.maintenance.orphan_files import OrphanFilesResult, OrphanRequest, PrefixMismatch, remove_orphan_files
from frazil.maintenance.partition_stats import compute_partition_stats
from frazil.maintenance.plan_rewrite import RewriteRequest
from frazil.maintenance.rewrite_data_files import Progress, RewriteDataFilesResult, Rewriter, rewrite_data_files
from frazil.maintenance.rewrite_manifests import RewriteManifestsResult, rewrite_manifests
from frazil.maintenance.rewrite_options import read_data_options
from frazil.maintenance.rewrite_order import choose_order
from frazil.maintenance.rewrite_position_deletes import RewritePositionDeletesResult, rewrite_position_delete_files
from frazil.maintenance.rewrite_table_path import (
    RewriteTablePathRequest,
    RewriteTablePathResult,
    rewrite_table_path,
)
from frazil.maintenance.table_stats import Sketcher, compute_table_stats
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec import properties
from frazil.spec.data_file import FileFormat
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import MAIN_BRANCH, Summary
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.point_in_time import PointInTime, milliseconds_of
from frazil.table.writable import expiry_of
from frazil.verbs.on_spark import active_session, choose_session, is_spark_frame
from frazil.verbs.sql_meaning import is_utc
from frazil.verbs.write_rows import is_here_only

LARGE_BYTES: Final = 1 << 30
"""From this many bytes of data files on, a table is rewritten on Spark where a session is there."""


class Maintain:
    """The maintenance of one table. Get it from `Table.maintain`."""

    def __init__(
        self,
        catalog: Catalog,
        load: Callable[[], LoadedTable],
        show: Callable[[LoadedTable], None],
        cache: ManifestCache | None = None,
    ) -> None:
        self._catalog = catalog
        self._load = load
        self._show = show
        self._cache = cache

    def __repr__(self) -> str:
        return f"<maintenance: {', '.join(var for var in vars(type(self)) if not var.startswith('_'))}>"

    def optimize(
        self,
        budget_bytes: int | None = None,
        *,
        budget_minutes: float | None = None,
        dry_run: bool = False,
        on_spark: bool | None = None,
    ) -> OptimizeResult:
        """Look at the table and do what is worth doing, in the right order; the result says what and why.

        `budget_bytes` limits the data files that are read and written again. Once `budget_minutes` have passed nothing
        more is begun, and what was begun ends. What is left is for the next time.
        """
        for budget, unit in ((budget_bytes, "bytes"), (budget_minutes, "minutes")):
            if budget is not None and not budget >= 0:
                raise InvalidRequestError(f"Cannot optimize within {budget} {unit}: the budget must not be negative")
        loaded = self._load()
        state, result = optimize(
            self._catalog,
            loaded,
            budget_bytes=budget_bytes,
            budget_ms=None if budget_minutes is None else budget_minutes * 60_000,
            dry_run=dry_run,
            rewriter=self._rewriter(loaded, on_spark),
            cache=self._cache,
        )
        self._show(state)
        return result

    def rewrite_data_files(
        self,
        strategy: str = "binpack",
        sort_by: str | Sequence[str] | None = None,
        where: Predicate | str | None = None,
        dry_run: bool = False,
        *,
        branch: str = MAIN_BRANCH,
        on_spark: bool | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> RewriteDataFilesResult:
        """Rewrite small files, files with many deletes and the like into good ones, rows and their ids unchanged.

        The strategy is `binpack`, `sort` (by the table's order or by `sort_by`, such as `"id desc, k"`) or `zorder`
        (`sort_by="zorder(a, b)"`). `where` chooses files, whole. Options are Iceberg Java's, under their own names or
        with underscores: `min_input_files=2`. Appends meanwhile are no conflict, rows deleted meanwhile are.
        """
        loaded = self._load()
        metadata = loaded.metadata
        chosen, order, zorder_ids = choose_order(metadata, strategy, sort_by)
        target_bytes = read_property(metadata.properties, properties.WRITE_TARGET_FILE_SIZE_BYTES)
        request = RewriteRequest(
            read_data_options({**(options or {}), **more}, target_bytes, strategy=chosen),
            chosen,
            order,
            zorder_ids,
            self._predicate(loaded, where, branch),
            target=_target(loaded, branch),
        )
        state, result = rewrite_data_files(
            self._catalog,
            loaded,
            request,
            dry_run=dry_run,
            rewriter=self._rewriter(loaded, on_spark),
            cache=self._cache,
            on_progress=on_progress,
        )
        self._show(state)
        return result

    def _predicate(self, loaded: LoadedTable, where: Predicate | str | None, branch: str) -> Predicate:
        """Return the predicate that chooses files; a condition that frazil does not compute is left to Spark."""
        if where is None:
            return TRUE
        try:
            condition = read_condition(where, loaded.metadata.current_schema, Session(time.time_ns() // 1000, is_utc()))
        except (UnsupportedError, TextSyntaxError):
            session = active_session()
            if session is None or not isinstance(where, str):
                raise
            from frazil.spark.change.conditions import files_predicate

            return files_predicate(session, loaded, branch, where, self._cache)
        if condition.test is not None and condition.predicate == TRUE:
            raise InvalidRequestError(
                f"Cannot choose files by {where!r}: file metadata cannot decide it",
                hint="Compare columns with literals: files are chosen whole, on Spark too.",
            )
        return condition.predicate

    def _rewriter(self, loaded: LoadedTable, on_spark: bool | None) -> Rewriter | None:
        """Return what rewrites files on Spark; None where it is done in this process."""
        if not self._is_on_spark(loaded, on_spark):
            return None
        session = choose_session()
        from frazil.spark.write.compact import rewriter_on

        return rewriter_on(session, self._cache)

    def _finder(self, loaded: LoadedTable, on_spark: bool | None) -> Finder | None:
        """Return what finds deleted rows on Spark; None where it is done in this process."""
        if not self._is_on_spark(loaded, on_spark):
            return None
        from frazil.spark.change.find_deleted import finder_on

        return finder_on(choose_session(), self._cache)

    def _is_on_spark(self, loaded: LoadedTable, asked: bool | None) -> bool:
        return _is_for_spark(loaded) if asked is None else asked

    def rewrite_position_delete_files(
        self,
        where: Predicate | str | None = None,
        dry_run: bool = False,
        *,
        branch: str = MAIN_BRANCH,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> RewritePositionDeletesResult:
        """Make fewer, larger files of position deletes; in version 3, deletion vectors. Rows do not change."""
        loaded = self._load()
        state, result = rewrite_position_delete_files(
            self._catalog,
            loaded,
            {**(options or {}), **more},
            where=self._predicate(loaded, where, branch),
            target=_target(loaded, branch),
            dry_run=dry_run,
            cache=self._cache,
        )
        self._show(state)
        return result

    def convert_equality_deletes(
        self, dry_run: bool = False, *, branch: str = MAIN_BRANCH, on_spark: bool | None = None
    ) -> ConvertEqualityDeletesResult:
        """Turn equality deletes into position deletes, in version 3 into vectors, which scans apply cheaply."""
        loaded = self._load()
        state, result = convert_equality_deletes(
            self._catalog,
            loaded,
            target=_target(loaded, branch),
            dry_run=dry_run,
            finder=self._finder(loaded, on_spark),
            cache=self._cache,
        )
        self._show(state)
        return result

    def remove_dangling_deletes(self, dry_run: bool = False, *, branch: str = MAIN_BRANCH) -> int:
        """Remove delete files that apply to no data file any more; return how many went, or would go."""
        loaded = self._load()
        action = RemoveDanglingDeletes(_target(loaded, branch))
        if dry_run:
            return count_dangling_deletes(self._catalog, loaded, action, cache=self._cache)
        state, made = commit_snapshot(self._catalog, loaded, action, cache=self._cache)
        self._show(state)
        return summary_count(made, Summary.REMOVED_DELETE_FILES)

    def rewrite_manifests(
        self,
        use_caching: bool = False,
        spec_id: int | None = None,
        sort_by: Sequence[str] | None = None,
        dry_run: bool = False,
        *,
        branch: str = MAIN_BRANCH,
    ) -> RewriteManifestsResult:
        """Merge manifests, files of one partition side by side, so that plans read fewer of them.

        `sort_by` are names of partition fields that come first; `use_caching` is for Iceberg Java and changes nothing.
        """
        loaded = self._load()
        action = RewriteManifests(
            spec_id,
            includes_deletes=True,
            target=_target(loaded, branch),
            sort_by=_names(sort_by, "partition fields"),
        )
        state, result = rewrite_manifests(self._catalog, loaded, action, dry_run=dry_run, cache=self._cache)
        self._show(state)
        return result

    def expire_snapshots(
        self,
        older_than: PointInTime | None = None,
        retain_last: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = False,
        snapshot_ids: Iterable[int] | None = None,
        clean_expired_metadata: bool = False,
        dry_run: bool = False,
        *,
        delete_roots: Sequence[str] = (),
    ) -> ExpireSnapshotsResult:
        """Remove snapshots that no branch or tag keeps, and delete the files that only they led to.

        What is left out follows the table's properties. `stream_results` is for Iceberg Java and changes nothing.
        Files that are not the table's own stay, and `kept` names them; `delete_roots` are further folders that you know
        to be its own.
        """
        action = expiry_of(older_than, retain_last, snapshot_ids, cleans_metadata=clean_expired_metadata)
        state, result = expire_snapshots(
            self._catalog,
            self._load(),
            action,
            dry_run=dry_run,
            delete_roots=tuple(delete_roots),
            threads=_threads(max_concurrent_deletes),
            cache=self._cache,
        )
        self._show(state)
        return result

    def remove_orphan_files(
        self,
        older_than: PointInTime | None = None,
        location: str | None = None,
        dry_run: bool = False,
        max_concurrent_deletes: int | None = None,
        file_list: Iterable[tuple[str, PointInTime]] | Any = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "ERROR",
        *,
        old_metadata: bool = False,
        delete_roots: Sequence[str] = (),
    ) -> OrphanFilesResult:
        """Delete files in the table's folders that nothing of the table leads to, and that are three days old.

        `older_than` is another point in time, a day ago at the latest. `file_list` are files to look at with when they
        were last changed, in place of a listing: pairs, or a DataFrame with the columns `file_path` and
        `last_modified`. With `old_metadata`, also metadata files that the log has forgotten. Folders that are not the
        table's own are refused; `delete_roots` are further folders that you know to be its own.
        """
        try:
            mode = PrefixMismatch(prefix_mismatch_mode.strip().lower())
        except ValueError:
            raise InvalidRequestError(
                f"Cannot remove orphan files with prefix_mismatch_mode {prefix_mismatch_mode!r}",
                hint="It is one of ERROR, IGNORE and DELETE.",
            ) from None
        request = OrphanRequest(
            None if older_than is None else milliseconds_of(older_than),
            location,
            None if file_list is None else _files_of(file_list),
            equal_schemes or {},
            equal_authorities or {},
            mode,
            old_metadata,
            tuple(delete_roots),
        )
        return remove_orphan_files(
            self._catalog, self._load(), request, dry_run=dry_run, threads=_threads(max_concurrent_deletes)
        )

    def compute_table_stats(
        self,
        snapshot_id: int | None = None,
        columns: Sequence[str] | None = None,
        dry_run: bool = False,
        *,
        on_spark: bool | None = None,
    ) -> StatisticsFile | None:
        """Write the statistics file of a snapshot: how many different values columns have, all unless given.

        With `dry_run` rows are read and nothing is written: the result says what the file would.
        """
        loaded = self._load()
        sketcher: Sketcher | None = None
        if self._is_on_spark(loaded, on_spark):
            from frazil.spark.write.sketch_columns import sketcher_on

            sketcher = sketcher_on(choose_session())
        state, made = compute_table_stats(
            self._catalog, loaded, snapshot_id, columns, dry_run=dry_run, sketcher=sketcher, cache=self._cache
        )
        self._show(state)
        return made

    def compute_partition_stats(
        self, snapshot_id: int | None = None, dry_run: bool = False
    ) -> PartitionStatisticsFile | None:
        """Write the partition statistics file of a snapshot, the current one unless given.

        Those of an older snapshot are brought up to date where there are some. With `dry_run` nothing is written.
        """
        state, made = compute_partition_stats(
            self._catalog, self._load(), snapshot_id, dry_run=dry_run, cache=self._cache
        )
        self._show(state)
        return made

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        dry_run: bool = False,
    ) -> RewriteTablePathResult:
        """Write the table's metadata anew for another location, and list which files to copy there.

        The table itself does not change. Copy every file of the list, and register the latest version there. With
        `start_version`, the name of a metadata file that was copied before, only what came after it.
        """
        request = RewriteTablePathRequest(
            source_prefix, target_prefix, start_version, end_version, staging_location, create_file_list
        )
        return rewrite_table_path(self._catalog, self._load(), request, dry_run=dry_run)

    def add_files(
        self,
        source: str | Sequence[str] | SourceTable,
        partition_filter: Mapping[str, Any] | None = None,
        check_duplicate_files: bool = True,
        parallelism: int | None = None,
        dry_run: bool = False,
        *,
        branch: str = MAIN_BRANCH,
        file_format: str | None = None,
    ) -> AddFilesResult:
        """Take Parquet, ORC or Avro files of others into the table where they are: those below a folder, or named.

        Partitions come from `name=value` folders or from bounds. Columns are matched by name, from now on too. The
        format is each file's own unless given.
        """
        loaded = self._load()
        files = find_source_files(loaded.storage, source) if isinstance(source, SourceTable) else source
        state, result = add_files(
            self._catalog,
            loaded,
            files,
            partition_filter=partition_filter,
            file_format=_format(file_format),
            checks_duplicates=check_duplicate_files,
            target=_target(loaded, branch),
            dry_run=dry_run,
            cache=self._cache,
            threads=_threads(parallelism),
        )
        self._show(state)
        return result


def _target(loaded: LoadedTable, branch: str) -> Target:
    """Return the branch that is maintained; one that is not there is refused, not made."""
    if branch != MAIN_BRANCH:
        data_type = loaded.metadata.ref(branch).type
        if data_type != "branch":
            raise InvalidRequestError(f"Cannot maintain {branch!r} of {loaded.name}: it is a {data_type}")
    return Target(branch)


def _files_of(file_list: Any) -> Iterator[tuple[str, int]]:
    """Yield files and when they were last changed, from pairs or from a DataFrame; those of a frame come in parts."""
    if is_spark_frame(file_list):
        from frazil.spark.read.listed_files import listed_files

        yield from listed_files(file_list)
        return
    for path, when in file_list:
        yield path, milliseconds_of(when)


def _format(name: str | None) -> FileFormat | None:
    if name is None:
        return None
    known = [data_format.value for data_format in DATA_FORMATS]
    if name.lower() not in known:
        raise InvalidRequestError(f"Cannot add files of {name!r}", hint=f"There are: {', '.join(known)}.")
    return FileFormat(name.lower())


def _threads(asked: int | None) -> int | None:
    if asked is not None and asked < 1:
        raise InvalidRequestError(f"Cannot use {asked} threads: give one at least")
    return asked


def _names(names: Sequence[str] | None, what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidRequestError(f"Cannot use {names!r} as {what}: give a list of names")
    return tuple(names or ())


def _is_for_spark(loaded: LoadedTable) -> bool:
    """Return whether a table is large enough for Spark, and a session is there already."""
    if is_here_only(loaded) or active_session() is None:
        return False
    return summary_count(loaded.metadata.current_snapshot, Summary.TOTAL_FILES_SIZE) >= LARGE_BYTES
