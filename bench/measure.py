"""Measure contenders in turn, and keep what was measured as JSON for `docs/evidence/benchmarks.md`.

Contenders of one workload alternate in one process, or in processes of one family, so that whatever else the machine
does meets all of them. The first round warms up and is not counted. What is kept is every single time.

`FRAZIL_BENCH_RESULTS` names the folder for the JSON; without it nothing is kept. `FRAZIL_BENCH_SCALE` is the one knob:
sizes are multiplied by it.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

PACKAGES = ("pyspark", "pyarrow", "pyiceberg", "datafusion", "duckdb", "fastavro")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one contender took for one workload of one size; `failed` says why it has no times."""

    workload: str
    size: int
    unit: str
    contender: str
    seconds: list[float] = field(default_factory=list)
    failed: str = ""
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle of its times."""
        return statistics.median(self.seconds)


def scale() -> float:
    """Return what sizes are multiplied by."""
    return float(os.environ.get("FRAZIL_BENCH_SCALE", "1"))


def scaled(size: int) -> int:
    """Return a size, changed as the knob says."""
    return max(1, round(size * scale()))


def percentile(times: Sequence[float], of_hundred: int) -> float:
    """Return the least time that so many of a hundred do not exceed."""
    return sorted(times)[math.ceil(len(times) * of_hundred / 100) - 1]


def cpu_seconds() -> float:
    """Return the processor's time that this process has taken, in all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def alternate(
    contenders: Mapping[str, Callable[[], Any]],
    runs: int,
    *,
    warm: int = 1,
    between: Callable[[str], Any] | None = None,
    cpu: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """Return the seconds of each contender's runs; `between` is called after each run, and not timed.

    The processor's seconds, which a busy machine changes less, go into `cpu`.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in range(runs + warm):
        for name, work in contenders.items():
            started, used = time.perf_counter(), cpu_seconds()
            work()
            passed, taken = time.perf_counter() - started, cpu_seconds() - used
            if run >= warm:
                seconds[name].append(passed)
                if cpu is not None:
                    cpu.setdefault(name, []).append(taken)
            if between is not None:
                between(name)
    return seconds


class Results:
    """The measurements of one benchmark: kept as JSON, and printed as they come where `prints`."""

    def __init__(
        self,
        name: str,
        contenders: Sequence[str],
        *,
        prints: bool = True,
        versions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.contenders = tuple(contenders)
        self.versions = dict(versions)
        self.prints = prints
        self.measured: list[Measured] = []
        if prints:
            self._print_head()

    def _print_head(self) -> None:
        contenders = self.contenders
        print(f"{'':34}{'size':>12}" + "".join(f" {one:>21}" for one in contenders), flush=True)

    def add(
        self,
        workload: str,
        size: int,
        unit: str,
        seconds: Mapping[str, list[float]],
        failed: Mapping[str, str] = MappingProxyType({}),
        cpu: Mapping[str, list[float]] = MappingProxyType({}),
    ) -> None:
        """Keep and print the times of a workload; the ratio of each is to the last contender, which is frazil."""
        made = [
            Measured(workload, size, unit, one, list(found), cpu_seconds=list(cpu.get(one, ())))
            for one, found in seconds.items()
            if found
        ]
        made += [Measured(workload, size, unit, one, failed=reason) for one, reason in failed.items()]
        self.measured += made
        if self.prints:
            self._print(workload, f"{size:,}", {one.contender: one.median for one in made if one.seconds}, failed)
            taken = {one.contender: statistics.median(one.cpu_seconds) for one in made if one.cpu_seconds}
            if taken:
                self._print("", "processor", taken, {})

    def _print(self, workload: str, size: str, medians: Mapping[str, float], failed: Mapping[str, str]) -> None:
        ours = medians.get(self.contenders[-1])
        cells = []
        for one in self.contenders:
            if one not in medians:
                cells.append(f"{'failed' if one in failed else '-':>22}")
            elif ours is None or one == self.contenders[-1]:
                cells.append(f"{medians[one]:20.3f} s")
            else:
                cells.append(f"{medians[one]:12.3f} s{ours / medians[one]:6.2f} x")
        print(f"{workload:34}{size:>12}" + "".join(cells), flush=True)

    def write(self) -> None:
        """Write the JSON, where a folder for it was named."""
        folder = os.environ.get("FRAZIL_BENCH_RESULTS")
        if folder is None:
            return
        versions = {"python": platform.python_version()} | _installed() | self.versions
        document = {
            "benchmark": self.name,
            "contenders": list(self.contenders),
            "scale": scale(),
            "machine": _machine(),
            "versions": versions,
            "measured": [asdict(one) for one in self.measured],
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{self.name}.json").write_text(json.dumps(document, indent=1) + "\n")


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores, architecture, system = os.cpu_count(), platform.machine(), platform.system()
    return {"cores": cores, "architecture": architecture, "system": system, "memory_gib": round(memory)}


def _installed() -> dict[str, str]:
    found = {}
    for one in PACKAGES:
        try:
            found[one] = importlib.metadata.version(one)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
