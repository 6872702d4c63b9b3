"""Streams and maintenance: the frequency and authors of commits, past maintenance, and clients' reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from frazil.commit.once import APPLICATION
from frazil.console.visit import Visit
from frazil.pictures.plots import WIDE, bars_over_time, draw_bars
from frazil.pictures.style import operation_kind
from frazil.serve.exchange import Answer
from frazil.spec.retention import GUARD_PREFIX
from frazil.spec.snapshot import Operation, Snapshot
from frazil.spec.snapshot_history import ancestor_ids
from frazil.spec.table_metadata import TableMetadata
from frazil.table.history import HistoryLine, history_lines
from frazil.table.table_figures import engine_of

MAX_SNAPSHOTS: Final = 2_000
MAX_RUNS: Final = 50
_APPLICATION_KEYS: Final = (APPLICATION, "spark.app.id", "app-id", "flink.job-id", "wap.id")


@dataclass(slots=True)
class Writer:
    """A writer of a table: the number and times of its commits."""

    name: str
    commits: int = 0
    first_ms: int = 0
    last_ms: int = 0
    operations: str = ""

    @property
    def per_minute(self) -> float | None:
        """Commits per minute between the first and the last."""
        span = self.last_ms - self.first_ms
        return None if self.commits < 2 or span <= 0 else (self.commits - 1) * 60_000 / span


def activity_page(visit: Visit) -> Answer:
    """Show commits over time, writers, maintenance and reports."""
    table, metadata = visit.table, visit.table.metadata
    heads = metadata.snapshots.heads[-MAX_SNAPSHOTS:]
    snapshots = [metadata.snapshot(head.snapshot_id) for head in heads]
    reports = visit.console.service.state.reports(table.identifier, 50)
    lines = history_lines(metadata, 0, MAX_SNAPSHOTS)
    points = [(snapshot.timestamp_ms, operation_kind(snapshot.operation)) for snapshot in snapshots]
    return visit.page(
        "activity.html",
        tab="activity",
        table=table,
        plot=draw_bars(bars_over_time(points), "Commits over time", width=WIDE),
        writers=_writers(snapshots),
        readers=_readers(metadata),
        minute=_rate(snapshots, visit.now_ms, 60_000 * 60) / 60,
        hour=_rate(snapshots, visit.now_ms, 60_000 * 60),
        day=_rate(snapshots, visit.now_ms, 60_000 * 60 * 24),
        runs=[line for line in lines if is_maintenance(line)][:MAX_RUNS],
        own_runs=[run for run in visit.console.runs.values() if run.table == table.identifier][-MAX_RUNS:][::-1],
        reports=[_report(report) for report in reports],
        retries=sum(max(_metric(report, "attempts") - 1, 0) for report in reports),
        shown=len(snapshots),
        now_ms=visit.now_ms,
    )


def is_maintenance(line: HistoryLine) -> bool:
    """Return whether a snapshot only rewrote files, without changing rows."""
    return line.snapshot.operation == Operation.REPLACE


def _readers(metadata: TableMetadata) -> list[tuple[str, int, int | None]]:
    """Return the guarded streams of the table, each with its snapshot and the number of snapshots since."""
    current = metadata.current_snapshot_id
    line = (
        {}
        if current is None
        else {ancestor_id: index for index, ancestor_id in enumerate(ancestor_ids(metadata, current))}
    )
    guards = [
        (key.removeprefix(GUARD_PREFIX), int(text))
        for key, text in sorted(metadata.properties.items())
        if key.startswith(GUARD_PREFIX) and text.isascii() and text.isdigit() and len(text) < 20
    ]
    return [(name, index, line.get(index)) for name, index in guards[:MAX_RUNS]]


def _rate(snapshots: list[Snapshot], now_ms: int, span_ms: int) -> int:
    return sum(snapshot.timestamp_ms >= now_ms - span_ms for snapshot in snapshots)


def _writers(snapshots: list[Snapshot]) -> list[Writer]:
    writers: dict[str, Writer] = {}
    operations: dict[str, dict[str, int]] = {}
    for snapshot in snapshots:
        facts: Mapping[str, str] = snapshot.summary or {}
        application = next((facts[key] for key in _APPLICATION_KEYS if key in facts), None)
        name = " · ".join(text for text in (engine_of(snapshot), application) if text) or "unknown"
        writer = writers.setdefault(name, Writer(name, first_ms=snapshot.timestamp_ms))
        writer.commits += 1
        writer.first_ms, writer.last_ms = (
            min(writer.first_ms, snapshot.timestamp_ms),
            max(writer.last_ms, snapshot.timestamp_ms),
        )
        counts = operations.setdefault(name, {})
        counts[snapshot.operation or "none"] = counts.get(snapshot.operation or "none", 0) + 1
    for name, writer in writers.items():
        writer.operations = ", ".join(f"{count} {operation}" for operation, count in sorted(operations[name].items()))
    return sorted(writers.values(), key=lambda writer: -writer.last_ms)[:MAX_RUNS]


def _metric(report: Mapping[str, Any], name: str) -> int:
    metrics = report.get("metrics")
    value = metrics.get(name) if isinstance(metrics, Mapping) else None
    number = value.get("value") if isinstance(value, Mapping) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


def _report(report: Mapping[str, Any]) -> dict[str, Any]:
    metrics = report.get("metrics")
    timers = metrics.values() if isinstance(metrics, Mapping) else ()
    nanos = [timer["total-duration"] for timer in timers if isinstance(timer, Mapping) and "total-duration" in timer]
    return {
        "kind": str(report.get("report-type", "report"))[:40],
        "received_ms": report["received-ms"],
        "operation": str(report.get("operation", report.get("filter", "")))[:200],
        "attempts": _metric(report, "attempts") or None,
        "files": _metric(report, "result-data-files") or _metric(report, "added-data-files"),
        "rows": _metric(report, "added-records") or None,
        "ms": nanos[0] / 1_000_000 if nanos and isinstance(nanos[0], int | float) else None,
    }
