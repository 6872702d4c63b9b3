"""Reports to a catalog service of commits and scans, sent afterwards by a background thread.

Failures are ignored. Filters are sent without their values (`expr/sanitize.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from frazil.catalog.names import Identifier
from frazil.expr.predicate_json import encode_predicate
from frazil.expr.sanitize import sanitize_literal
from frazil.loaded import LoadedTable
from frazil.scan.plan import Plan
from frazil.spec.snapshot import Snapshot

_COUNTS = (
    "added-data-files",
    "deleted-data-files",
    "total-data-files",
    "added-delete-files",
    "removed-delete-files",
    "total-delete-files",
    "added-records",
    "deleted-records",
    "total-records",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
)
_SIZES = {
    "added-files-size": "added-files-size-bytes",
    "removed-files-size": "removed-files-size-bytes",
    "total-files-size": "total-files-size-bytes",
}
_RENAMED = {"deleted-data-files": "removed-data-files", "deleted-records": "removed-records"}


def commit_report(loaded: LoadedTable, snapshot: Snapshot) -> dict[str, Any]:
    """Return the protocol's report of a snapshot, from its summary."""
    summary: Mapping[str, str] = snapshot.summary or {}
    metrics: dict[str, Any] = {}
    for name in _COUNTS:
        if (number := _number(summary.get(name))) is not None:
            metrics[_RENAMED.get(name, name)] = {"unit": "count", "value": number}
    for name, reported in _SIZES.items():
        if (number := _number(summary.get(name))) is not None:
            metrics[reported] = {"unit": "bytes", "value": number}
    return {
        "report-type": "commit-report",
        "table-name": loaded.name,
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number,
        "operation": "unknown" if snapshot.operation is None else str(summary.get("operation")),
        "metrics": metrics,
    }


def scan_report(plan: Plan) -> dict[str, Any]:
    """Return the protocol's report of a plan."""
    data, deletes = plan.data_counts, plan.delete_counts
    counts = {
        "result-data-files": data.kept,
        "result-delete-files": deletes.kept,
        "total-data-manifests": data.manifests,
        "total-delete-manifests": deletes.manifests,
        "scanned-data-manifests": data.manifests_read,
        "skipped-data-manifests": data.manifests - data.manifests_read,
        "scanned-delete-manifests": deletes.manifests_read,
        "skipped-delete-manifests": deletes.manifests - deletes.manifests_read,
        "skipped-data-files": data.files_considered - data.kept,
        "skipped-delete-files": deletes.files_considered - deletes.kept,
    }
    metrics = {name: {"unit": "count", "value": value} for name, value in counts.items()}
    metrics["total-file-size-in-bytes"] = {"unit": "bytes", "value": data.kept_bytes}
    metrics["total-delete-file-size-in-bytes"] = {"unit": "bytes", "value": deletes.kept_bytes}
    return {
        "report-type": "scan-report",
        "table-name": plan.loaded.name,
        "snapshot-id": -1 if plan.snapshot is None else plan.snapshot.snapshot_id,
        "filter": _without_values(encode_predicate(plan.predicate)),
        "schema-id": plan.schema.schema_id,
        "projected-field-ids": [field.field_id for field in plan.schema.fields],
        "projected-field-names": [field.name for field in plan.schema.fields],
        "metrics": metrics,
    }


def _without_values(filter_json: Any) -> Any:
    """Return a filter with its literals removed."""
    if isinstance(filter_json, list):
        return [_without_values(child) for child in filter_json]
    if not isinstance(filter_json, dict):
        return filter_json
    sanitized = {name: _without_values(value) for name, value in filter_json.items() if name not in ("value", "values")}
    if "value" in filter_json:
        sanitized["value"] = sanitize_literal(filter_json["value"])
    if "values" in filter_json:
        sanitized["values"] = sorted({sanitize_literal(child) for child in filter_json["values"]})
    return sanitized


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


class Reporter:
    """Sends reports one by one in the background; if too many are waiting, further ones are dropped."""

    def __init__(self, send: Callable[[Identifier, dict[str, Any]], None], *, most: int = 100) -> None:
        self._send = send
        self._room = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def report(self, table: Identifier, body: dict[str, Any]) -> None:
        """Queue a report."""
        if not self._room.acquire(blocking=False):
            return
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="frazil-reports")
            self._pool.submit(self._run, table, body)

    def close(self) -> None:
        """Send the queued reports, then stop."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

    def _run(self, table: Identifier, body: dict[str, Any]) -> None:
        try:
            with contextlib.suppress(Exception):
                self._send(table, body)
        finally:
            self._room.release()
