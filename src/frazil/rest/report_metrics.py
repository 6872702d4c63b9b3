"""Reports to a catalog service: what a commit did, told after it, by a thread of its own. A failure is no error."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from frazil.loaded import LoadedTable
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
    """Return what a snapshot did as the protocol's report: the numbers of its summary."""
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


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None


class Reporter:
    """Sends reports one after the other, behind the work; at most some wait, and those beyond are dropped."""

    def __init__(self, send: Callable[[str, dict[str, Any]], None], *, most: int = 100) -> None:
        self._send = send
        self._room = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def report(self, url: str, body: dict[str, Any]) -> None:
        """Have a report sent when its turn comes."""
        if not self._room.acquire(blocking=False):
            return
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="frazil-reports")
            self._pool.submit(self._run, url, body)

    def close(self) -> None:
        """Send what waits, then stop."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

    def _run(self, url: str, body: dict[str, Any]) -> None:
        try:
            with contextlib.suppress(Exception):
                self._send(url, body)
        finally:
            self._room.release()
