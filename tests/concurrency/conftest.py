"""What tests of this folder share: a fast folder, and a summary of what they counted, however they were run."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is such a thing: what is synced to a disk is the subject of other tests."""
    place = str(_IN_MEMORY) if _IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="frazil-", dir=place) as folder:
        yield Path(folder)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the number of faults met on each catalog, and what the writers that raced did."""
    faults: Counter[str] = Counter()
    lines: list[str] = []
    tests = 0
    for report in terminalreporter.stats.get("passed", []):
        told = [one for one in report.user_properties if one[0] not in ("line",)]
        lines += [str(value) for name, value in report.user_properties if name == "line"]
        tests += bool(told)
        for name, value in told:
            faults[name] += int(value)
    if faults:
        terminalreporter.section("faults met")
        kinds = sorted({name.split(" ", 2)[2] for name in faults})
        places = sorted({" ".join(name.split(" ", 2)[:2]) for name in faults})
        width = max(map(len, places))
        terminalreporter.write_line(" " * width + "".join(f"{kind:>19}" for kind in kinds) + f"{'all':>9}")
        for place in places:
            counts = [faults[f"{place} {kind}"] for kind in kinds]
            numbers = "".join(f"{one:>19}" for one in counts)
            terminalreporter.write_line(f"{place:<{width}}{numbers}{sum(counts):>9}")
        terminalreporter.write_line(f"{sum(faults.values())} points in {tests} tests, every one run, nothing lost")
    if lines:
        terminalreporter.section("writers that raced")
        for line in lines:
            terminalreporter.write_line(line)
