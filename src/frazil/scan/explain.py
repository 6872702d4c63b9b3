"""Counts of a plan: what it considered and left out, at each step."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.expr.predicates import Predicate
from frazil.visible_text import visible


@dataclass(slots=True)
class PlanCounts:
    """The counts of one kind of manifest, data or deletes."""

    manifests: int = 0
    manifests_without_live_files: int = 0
    manifests_pruned: int = 0
    manifests_read: int = 0
    files_considered: int = 0
    pruned_by_partition: int = 0
    pruned_by_metrics: int = 0
    kept: int = 0
    kept_rows: int = 0
    kept_bytes: int = 0


def explain_counts(
    snapshot_id: int | None,
    predicate: Predicate,
    data: PlanCounts,
    deletes: PlanCounts,
    applied: int,
    *,
    is_complete: bool,
) -> str:
    """Format a plan's counts as text, one line per step."""
    if snapshot_id is None:
        return "Plan: the table has no snapshot, so there is nothing to read"
    lines = [f"Plan of snapshot {snapshot_id}", f"  filter: {visible(str(predicate))}"]
    for name, counts in (("data", data), ("delete", deletes)):
        if name == "delete" and counts.manifests == 0:
            continue
        lines.append(
            f"  {name} manifests: {counts.manifests_read:,} read of {counts.manifests:,} "
            f"({counts.manifests_pruned:,} pruned by partition summaries, "
            f"{counts.manifests_without_live_files:,} without live files)"
        )
        lines.append(
            f"  {name} files: {counts.kept:,} kept of {counts.files_considered:,} "
            f"({counts.pruned_by_partition:,} pruned by partition, {counts.pruned_by_metrics:,} by metrics)"
        )
    lines.append(f"  rows: {data.kept_rows:,} in {data.kept:,} files, {data.kept_bytes:,} bytes")
    if deletes.manifests:
        lines.append(f"  deletes: {applied:,} applied to files")
    if not is_complete:
        lines.append("  (so far: not every manifest has been read)")
    return "\n".join(lines)
