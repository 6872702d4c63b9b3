"""Telemetry of requests: a log line for each, and counts for Prometheus.

It contains operations, codes and times; never a query, a header or a body, which may contain secrets.
"""

from __future__ import annotations

import json
import logging
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

LOG: Final = logging.getLogger("frazil.serve")
BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """Counts of requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._errors: dict[str, int] = defaultdict(int)
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._in_flight = 0

    def started(self) -> None:
        """Count a request that begins."""
        with self._lock:
            self._in_flight += 1

    def ended(self, operation: str, code: int, error_type: str | None, seconds: float) -> None:
        """Count a request that has ended."""
        with self._lock:
            self._in_flight -= 1
            self._requests[operation, code] += 1
            self._times[operation][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[operation] += seconds
            if error_type is not None:
                self._errors[error_type] += 1

    @property
    def in_flight(self) -> int:
        """The number of running requests."""
        return self._in_flight

    def text(self) -> str:
        """Return the counts in the Prometheus text format."""
        with self._lock:
            lines = ["# TYPE frazil_requests_total counter"]
            for (operation, code), count in sorted(self._requests.items()):
                lines.append(f'frazil_requests_total{{operation="{operation}",code="{code}"}} {count}')
            lines.append("# TYPE frazil_errors_total counter")
            lines += [
                f'frazil_errors_total{{type="{error_type}"}} {count}'
                for error_type, count in sorted(self._errors.items())
            ]
            lines.append("# TYPE frazil_request_seconds histogram")
            for operation, counts in sorted(self._times.items()):
                lines += self._histogram(operation, counts)
            lines += ["# TYPE frazil_requests_in_flight gauge", f"frazil_requests_in_flight {self._in_flight}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, operation: str, counts: list[int]) -> list[str]:
        lines, total = [], 0
        for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
            total += count
            lines.append(f'frazil_request_seconds_bucket{{operation="{operation}",le="{bound}"}} {total}')
        lines.append(f'frazil_request_seconds_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}')
        lines.append(f'frazil_request_seconds_count{{operation="{operation}"}} {total}')
        return lines


def log_request(fields: Mapping[str, object]) -> None:
    """Write the log line of a request, as JSON, so that no name in it can forge another line."""
    if LOG.isEnabledFor(logging.INFO):
        LOG.info(json.dumps(fields))
