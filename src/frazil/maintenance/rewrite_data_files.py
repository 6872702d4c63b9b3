"""Rewrite data files into fewer, larger or better ordered ones, safely with concurrent writers.

    plan      groups of files (`maintenance/plan_rewrite.py`)
    rewrite   each group to new files, several groups at a time: in this process (`maintenance/rewrite_group.py`), or by
              a rewriter such as Spark
    commit    all groups together or, with partial progress, a few at a time, so that finished work is kept
    after     on request, remove dangling deletes in a commit of their own

Appends never conflict. A row that another writer concurrently deletes from a file does, since the group's new files
still have it. Such a group is refused by `commit/rewrite_files.py`, and its new files are deleted. With partial
progress, the other groups of the same commit are then committed one by one. Once all are done, the refused groups are
planned and rewritten again on the present table; a group that is refused twice is reported. Without partial progress,
the conflict is raised. Concurrent equality deletes apply to the new files, which keep the sequence number of the start.

Delete files that refer only to rewritten files are removed in the same commit. An interruption at any time neither
loses nor duplicates rows: files that were not committed are orphans, and another run does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TypeAlias

from frazil.catalog.base import Catalog
from frazil.commit.remove_dangling_deletes import RemoveDanglingDeletes
from frazil.commit.rewrite_files import RewriteFiles
from frazil.errors import CommitError, ConcurrentChangeError, EngineError, FrazilError
from frazil.loaded import LoadedTable
from frazil.maintenance.commit_snapshot import commit_snapshot, summary_count
from frazil.maintenance.plan_rewrite import (
    RewriteGroup,
    RewritePlan,
    RewriteRequest,
    own_position_deletes,
    plan_again,
    plan_rewrite,
    within_budget,
)
from frazil.maintenance.rewrite_group import rewrite_group
from frazil.maintenance.shown_work import with_progress
from frazil.progress import count
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile
from frazil.spec.snapshot import Summary
from frazil.threads import default_threads

Rewriter: TypeAlias = Callable[[RewritePlan, RewriteGroup], Sequence[DataFile]]
"""Writes the rows of a group to new files."""


@dataclass(frozen=True, slots=True)
class RewriteDataFilesResult:
    """The numbers of a rewrite, done or expected; `failures` are the reasons why groups failed."""

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a rewrite: groups whose new files are written, of all, and the bytes read for them."""

    done_groups: int
    all_groups: int
    done_bytes: int
    all_bytes: int


@dataclass(slots=True)
class _Tally:
    rewritten: int = 0
    added: int = 0
    rewritten_bytes: int = 0
    failed: int = 0
    removed_deletes: int = 0
    failed_commits: int = 0
    failures: list[str] = field(default_factory=list)

    def result(self) -> RewriteDataFilesResult:
        return RewriteDataFilesResult(
            self.rewritten, self.added, self.rewritten_bytes, self.failed, self.removed_deletes, tuple(self.failures)
        )


Written: TypeAlias = tuple[RewriteGroup, Sequence[DataFile]]


@with_progress("rewrite data files of")
def rewrite_data_files(
    catalog: Catalog,
    loaded: LoadedTable,
    request: RewriteRequest,
    *,
    dry_run: bool = False,
    rewriter: Rewriter | None = None,
    budget_bytes: int | None = None,
    threads: int | None = None,
    cache: ManifestCache | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    may_begin: Callable[[], bool] = lambda: True,
) -> tuple[LoadedTable, RewriteDataFilesResult]:
    """Rewrite the data files of a branch that are worth it; return the table's new state and a summary.

    Without a `rewriter`, rows are read and written in this process. With `dry_run` nothing is written, and the result
    is the plan's estimate. `budget_bytes` limits the input. `may_begin` is called before each group; groups for which
    it returns False are left for another run.
    """
    workers = default_threads() if threads is None else threads
    plan = plan_rewrite(loaded, request, cache=cache, threads=workers)
    if budget_bytes is not None:
        plan = within_budget(plan, budget_bytes)
    if dry_run:
        return loaded, _expected(plan)
    run = _Run(catalog, plan, rewriter, workers, cache, on_progress, may_begin)
    state = run.run() if plan.groups else loaded
    if request.options.remove_dangling_deletes:
        state, snapshot = commit_snapshot(catalog, state, RemoveDanglingDeletes(request.target), cache=cache)
        run.tally.removed_deletes += summary_count(snapshot, Summary.REMOVED_DELETE_FILES)
    return state, run.tally.result()


def _expected(plan: RewritePlan) -> RewriteDataFilesResult:
    files = [task for group in plan.groups for task in group.tasks]
    return RewriteDataFilesResult(
        len(files),
        sum(group.expected_files for group in plan.groups),
        sum(group.input_bytes for group in plan.groups),
        removed_delete_files_count=len(_removed_deletes(files)),
    )


class _Run:
    """One rewrite in progress."""

    def __init__(
        self,
        catalog: Catalog,
        plan: RewritePlan,
        rewriter: Rewriter | None,
        threads: int,
        cache: ManifestCache | None,
        on_progress: Callable[[Progress], None] | None,
        may_begin: Callable[[], bool],
    ) -> None:
        self._catalog = catalog
        self._plan = plan
        self._sizes = plan.request.options.sizes
        self._rewriter = rewriter
        self._threads = threads
        self._cache = cache
        self._on_progress = on_progress
        self._may_begin = may_begin
        self._state = plan.loaded
        self._done_bytes = 0
        self._done = 0
        self._lost: list[tuple[RewriteGroup, ConcurrentChangeError]] = []
        self._is_second_try = False
        # In this process, each group uses several threads of its own, and its share of the memory.
        most = self._sizes.concurrent_groups if rewriter is not None else min(threads, 2)
        self._groups_at_once = max(min(self._sizes.concurrent_groups, most, len(plan.groups)), 1)
        self.tally = _Tally()

    def run(self) -> LoadedTable:
        """Rewrite all groups and commit them; return the resulting state of the table."""
        if not self._sizes.partial_progress:
            self._commit_all()
            return self._state
        per_commit = -(-len(self._plan.groups) // self._sizes.max_commits)
        waiting: list[Written] = []
        with closing(self._outcomes()) as outcomes:
            for group, outcome in outcomes:
                if isinstance(outcome, FrazilError):
                    self._fail([group], outcome)
                    continue
                waiting.append((group, outcome))
                if len(waiting) >= per_commit:
                    chosen, waiting = waiting, []
                    self._try_commit(chosen)
        if waiting:
            self._try_commit(waiting)
        if self._lost:
            self._try_again()
        return self._state

    def _try_again(self) -> None:
        """Rewrite once more, on the present table, the groups that lost to other writers."""
        lost, self._lost = self._lost, []
        self._is_second_try = True
        now = self._catalog.refresh(self._state)
        self._plan = plan_again(now, self._plan, [group for group, _ in lost], cache=self._cache, threads=self._threads)
        remaining = {group.number for group in self._plan.groups}
        for group, error in lost:
            if group.number not in remaining:
                # Its files are gone: another writer has rewritten or removed them all.
                self._fail([group], error)
        for group in self._plan.groups:
            try:
                files = self._rewrite(group)
            except FrazilError as error:
                self._fail([group], error)
                continue
            if files is not None:
                self._try_commit([(group, files)])

    def _commit_all(self) -> None:
        written: list[Written] = []
        try:
            with closing(self._outcomes()) as outcomes:
                for group, outcome in outcomes:
                    if isinstance(outcome, FrazilError):
                        raise outcome
                    written.append((group, outcome))
            self._commit(written)
        except BaseException as error:
            self._discard(written, error)
            raise

    def _outcomes(self) -> Generator[tuple[RewriteGroup, Sequence[DataFile] | FrazilError]]:
        """Yield each started group with its new files or its error as they complete, running a few at a time."""
        groups = list(self._plan.groups)
        with ThreadPoolExecutor(self._groups_at_once, thread_name_prefix="frazil-rewrite") as pool:
            # Each runs in a copy of the context, so that its progress is shown.
            running = {pool.submit(copy_context().run, self._rewrite, group): group for group in groups}
            try:
                for future in as_completed(running):
                    group = running.pop(future)
                    error = future.exception()
                    if error is not None and not isinstance(error, FrazilError):
                        raise error
                    outcome = future.result() if error is None else error
                    if outcome is not None:
                        self._report_progress(group)
                        yield group, outcome
            finally:
                for future in running:
                    future.cancel()
                # New files of groups that complete after all are not committed, and nothing may reference them.
                for future, group in running.items():
                    if not future.cancelled() and future.exception() is None:
                        self._discard([(group, future.result() or ())], None)

    def _rewrite(self, group: RewriteGroup) -> Sequence[DataFile] | None:
        """Return the new files of a group, or None if it may no longer start."""
        if not self._may_begin():
            return None
        files = self._write(group)
        before = sum(task.data_file.record_count for task in group.tasks)
        after = sum(file.record_count for file in files)
        if after != before and not any(task.delete_files for task in group.tasks):
            self._discard([(group, files)], None)
            raise EngineError(
                f"Cannot rewrite {len(group.tasks)} files: {after} rows were written instead of {before}",
                hint="Run t.check(bounds=True): a file may hold other rows than its metadata says.",
            )
        return files

    def _write(self, group: RewriteGroup) -> Sequence[DataFile]:
        if self._rewriter is not None:
            return self._rewriter(self._plan, group)
        try:
            return rewrite_group(self._plan, group, threads=self._threads, groups_at_once=self._groups_at_once)
        except FrazilError as error:
            written = error.context.get("written_files")
            if error.may_clean_up and isinstance(written, tuple):
                self._plan.loaded.storage.delete_many(written)
            raise

    def _report_progress(self, group: RewriteGroup) -> None:
        self._done += 1
        count("groups written", of=len(self._plan.groups))
        self._done_bytes += group.input_bytes
        if self._on_progress is not None:
            everything = sum(group.input_bytes for group in self._plan.groups)
            self._on_progress(Progress(self._done, len(self._plan.groups), self._done_bytes, everything))

    # Committing

    def _try_commit(self, written: list[Written]) -> None:
        """Commit groups; on a conflict, one by one, keeping refused ones for a retry, up to the failure limit."""
        try:
            self._commit(written)
        except ConcurrentChangeError as error:
            if len(written) > 1 and self.tally.failed_commits < self._sizes.max_failed_commits:
                for group in written:
                    self._try_commit([group])
                return
            self._drop(written, error, is_known=True)
        except FrazilError as error:
            self._drop(written, error, is_known=isinstance(error, CommitError) and error.may_clean_up)

    def _drop(self, written: list[Written], error: FrazilError, *, is_known: bool) -> None:
        """Discard the new files of groups; then retry them later, report them, or raise."""
        self._discard(written, error)
        # A group that is refused again has been counted already.
        self.tally.failed_commits += 0 if self._is_second_try else 1
        groups = [group for group, _ in written]
        is_last = not is_known or self.tally.failed_commits > self._sizes.max_failed_commits
        if isinstance(error, ConcurrentChangeError) and not is_last and not self._is_second_try:
            self._lost += [(group, error) for group in groups]
            return
        self._fail(groups, error)
        if is_last:
            raise error

    def _commit(self, written: Sequence[Written]) -> None:
        tasks = [task for group, _ in written for task in group.tasks]
        added = tuple(file for _, files in written for file in files)
        snapshot = self._plan.snapshot
        action = RewriteFiles(
            tuple(task.data_file for task in tasks),
            added,
            None if snapshot is None else snapshot.snapshot_id,
            removed_deletes=tuple(own_position_deletes(tasks)),
            data_sequence_number=self._plan.data_sequence_number,
            target=self._plan.request.target,
        )
        self._state, snapshot_made = commit_snapshot(self._catalog, self._state, action, cache=self._cache)
        self.tally.rewritten += len(tasks)
        self.tally.added += len(added)
        self.tally.rewritten_bytes += sum(group.input_bytes for group, _ in written)
        self.tally.removed_deletes += summary_count(snapshot_made, Summary.REMOVED_DELETE_FILES)

    def _fail(self, groups: Sequence[RewriteGroup], error: FrazilError) -> None:
        self.tally.failed += sum(len(group.tasks) for group in groups)
        self.tally.failures.append(error.message)

    def _discard(self, written: Sequence[Written], error: BaseException | None) -> None:
        """Delete new files that no commit uses, unless the outcome of their commit is unknown."""
        if isinstance(error, FrazilError) and not error.may_clean_up:
            return
        paths = [file.file_path for _, files in written for file in files]
        if paths:
            self._plan.loaded.storage.delete_many(paths)


def _removed_deletes(tasks: Iterable[FileScanTask]) -> set[tuple[str, int | None]]:
    """Return the delete files and vectors that are removed with data files."""
    deletes = [delete_file.data_file for task in tasks for delete_file in task.delete_files]
    return {(delete.file_path, delete.content_offset) for delete in deletes if delete.referenced_data_file is not None}
