"""What every test shares: Hypothesis profiles, where folders are made, and the place of the public fixtures."""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT.parent / "shared" / "fixtures"

hypothesis.settings.register_profile(
    "frazil",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", hypothesis.settings.get_profile("frazil"), derandomize=False)
hypothesis.settings.load_profile(os.environ.get("FRAZIL_HYPOTHESIS_PROFILE", "frazil"))


_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30


def pytest_configure() -> None:
    """Put the tests' folders into memory where there is room: each of thousands of commits waits for the disk."""
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    room = os.statvfs(_MEMORY)
    if room.f_bavail * room.f_frsize >= _ROOM_BYTES:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)


_WHOLE = (ROOT / "tests" / "architecture", ROOT / "tests" / "contract")
"""Folders whose tests keep every case under `--cases`: each case there is a promise of its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cases N`: of a test with many cases run N, so that every promise is tried and the run is short."""
    parser.addoption("--cases", type=int, default=0, metavar="N", help="run at most N cases of each test; 0: all")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases of tests that have more than `--cases` asks for, but none where each case is a promise."""
    most: int = config.getoption("--cases")
    if not most:
        return
    by_test: dict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_test[item.path, item.nodeid.split("[")[0]].append(item)
    kept = {
        id(item)
        for cases in by_test.values()
        for item in (cases if has_whole_cases(cases[0]) else choose_cases(cases, most))
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def has_whole_cases(item: pytest.Item) -> bool:
    """Return whether a test keeps every case under `--cases`: by its folder, or marked `every_case`."""
    return item.get_closest_marker("every_case") is not None or any(folder in item.path.parents for folder in _WHOLE)


def choose_cases(cases: Sequence[pytest.Item], most: int) -> Sequence[pytest.Item]:
    """Return at most so many cases of a test, each the one with the most arguments that those before it lack.

    Among equals a hash of the case's name decides: the same on every run, and others in each test, so that no value of
    a parameter that many tests share is left out of all of them.
    """
    if len(cases) <= most:
        return cases
    # A value of a parameter is one object in all its cases.
    left = {
        item: {(name, id(value)) for name, value in item.callspec.params.items()}
        for item in cases
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }
    chosen: list[pytest.Item] = []
    while left and len(chosen) < most:
        best = max(left, key=lambda item: (len(left[item]), zlib.crc32(item.nodeid.encode())))
        seen = left.pop(best)
        chosen.append(best)
        for arguments in left.values():
            arguments -= seen
    return chosen


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what collecting made, ten thousand tests and their modules, out of every later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def fixtures_dir() -> Path:
    """The public fixtures, which live beside the checkout; tests that need them are skipped where they are absent."""
    if not FIXTURES.is_dir():
        pytest.skip(f"no fixtures at {FIXTURES}")
    return FIXTURES


@pytest.fixture(scope="session")
def fuzz_seconds() -> float:
    """How long one fuzz test may run; the Makefile sets FRAZIL_FUZZ_SECONDS."""
    return float(os.environ.get("FRAZIL_FUZZ_SECONDS", "5"))
