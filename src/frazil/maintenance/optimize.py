"""Inspect a table and run the procedures that are worthwhile, in the right order, within a budget.

`maintenance/table_health.py` finds possible improvements; each finding names the procedure that helps. They run in this
order, since each leaves less work for the next:

    rewrite_position_delete_files    remaining deletes become fewer files, in version 3 vectors
    rewrite_data_files               small files, files with many deletes, equality deletes; then dangling deletes
    rewrite_manifests                once, after everything that writes manifests
    expire_snapshots                 last, since old snapshots still hold what the steps before replaced

A budget limits the bytes of data files that are rewritten: the groups that remove most files per byte come first, and
the rest is left for the next run. A time budget ends the work at the next step, or between groups of files, which are
then small. Orphan files are never removed here: how old they must be depends on other writers, which the table does not
show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frazil.catalog.base import Catalog
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.loaded import LoadedTable
from frazil.maintenance.expire_snapshots import expire_snapshots
from frazil.maintenance.plan_rewrite import RewriteRequest
from frazil.maintenance.report import Problem
from frazil.maintenance.rewrite_data_files import Rewriter, rewrite_data_files
from frazil.maintenance.rewrite_manifests import rewrite_manifests
from frazil.maintenance.rewrite_options import read_data_options
from frazil.maintenance.rewrite_position_deletes import rewrite_position_delete_files
from frazil.maintenance.shown_work import with_progress
from frazil.maintenance.table_health import table_health
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec import properties
from frazil.spec.property_kinds import read_property

STEPS = ("rewrite_position_delete_files", "rewrite_data_files", "rewrite_manifests", "expire_snapshots")


@dataclass(frozen=True, slots=True)
class OptimizeStep:
    """One procedure that was run, or would be, with its reasons and result."""

    procedure: str
    reasons: tuple[str, ...]
    result: Any

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.procedure}:", *(f"  because {reason}" for reason in self.reasons), f"  {self.result}"]
        )


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """The steps in order, and the findings that are left to the user."""

    steps: tuple[OptimizeStep, ...] = ()
    left: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        lines = [str(step) for step in self.steps] or ["Nothing is worth doing."]
        return "\n".join([*lines, *(f"left to you: {problem}" for problem in self.left)])


@with_progress("optimize")
def optimize(
    catalog: Catalog,
    loaded: LoadedTable,
    *,
    budget_bytes: int | None = None,
    budget_ms: float | None = None,
    dry_run: bool = False,
    rewriter: Rewriter | None = None,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable, OptimizeResult]:
    """Run the procedures that a table's health calls for; return its new state and the steps.

    Each procedure is a commit of its own and is safe with concurrent writers. With `dry_run` nothing changes.
    """
    now_ms = catalog.now_ms()
    ends_ms = None if budget_ms is None else now_ms + budget_ms
    problems = list(table_health(loaded, now_ms=now_ms, cache=cache))
    by_procedure: dict[str, list[Problem]] = {}
    for problem in problems:
        by_procedure.setdefault(problem.procedure or "", []).append(problem)
    run = _Run(catalog, loaded, budget_bytes, ends_ms, rewriter, cache, dry_run=dry_run)
    steps = [
        OptimizeStep(name, tuple(problem.what for problem in by_procedure[name]), run.step(name, by_procedure[name]))
        for name in STEPS
        if name in by_procedure and run.has_time()
    ]
    done = {step.procedure for step in steps}
    remaining = tuple(problem for problem in problems if problem.procedure not in done)
    return run.state, OptimizeResult(tuple(steps), remaining)


@dataclass(slots=True)
class _Run:
    catalog: Catalog
    state: LoadedTable
    budget_bytes: int | None
    ends_ms: float | None
    rewriter: Rewriter | None
    cache: ManifestCache | None
    dry_run: bool

    def has_time(self) -> bool:
        """Return whether there is time left to start another step."""
        return self.ends_ms is None or self.catalog.now_ms() < self.ends_ms

    def step(self, name: str, problems: list[Problem]) -> Any:
        """Run one procedure and return its result."""
        if name == "rewrite_position_delete_files":
            self.state, result = rewrite_position_delete_files(
                self.catalog, self.state, dry_run=self.dry_run, cache=self.cache
            )
            return result
        if name == "rewrite_data_files":
            return self._rewrite_data({problem.kind for problem in problems})
        if name == "rewrite_manifests":
            self.state, manifests = rewrite_manifests(
                self.catalog,
                self.state,
                RewriteManifests(includes_deletes=True),
                dry_run=self.dry_run,
                cache=self.cache,
            )
            return manifests
        self.state, expired = expire_snapshots(
            self.catalog, self.state, ExpireSnapshots(), dry_run=self.dry_run, cache=self.cache
        )
        return expired

    def _rewrite_data(self, kinds: set[str]) -> Any:
        options: dict[str, Any] = {"partial-progress.enabled": True, "remove-dangling-deletes": True}
        if "equality-deletes" in kinds:
            options["delete-file-threshold"] = 1
        target = read_property(self.state.metadata.properties, properties.WRITE_TARGET_FILE_SIZE_BYTES)
        if self.ends_ms is not None:
            options["max-file-group-size-bytes"] = 2 * target
        request = RewriteRequest(read_data_options(options, target, strategy="binpack"))
        self.state, result = rewrite_data_files(
            self.catalog,
            self.state,
            request,
            dry_run=self.dry_run,
            rewriter=self.rewriter,
            budget_bytes=self.budget_bytes,
            may_begin=self.has_time,
            cache=self.cache,
        )
        return result
