"""What every test shares: Hypothesis profiles, where folders are made, and the place of the public fixtures."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import hypothesis
import pytest

from tools.run_tests import SPARK_FOLDERS, cases_seed

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


def pytest_configure(config: pytest.Config) -> None:
    """Put the tests' folders into memory where there is room: each of thousands of commits waits for the disk."""
    most_seconds: float = config.getoption("--most-seconds")
    if most_seconds:
        config.pluginmanager.register(TimeLimit(most_seconds))
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    room = os.statvfs(_MEMORY)
    if room.f_bavail * room.f_frsize >= _ROOM_BYTES:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(_MEMORY)


_WHOLE = (ROOT / "tests" / "architecture", ROOT / "tests" / "contract")
"""Folders whose tests keep every case under `--cases`: each case there is a promise of its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cases N`: of a test with many cases run N, so that every promise is tried and the run is short.

    Which ones depends on a seed (see `tools/run_tests.py`).
    `--cases M --beyond N`: what `make test` with its N cases leaves of what `--cases M` runs.
    `--most-seconds S`: no test may take longer. Processor time is what counts, so that a busy machine fails none.
    """
    parser.addoption("--cases", type=int, default=0, metavar="N", help="run at most N cases of each test; 0: all")
    parser.addoption("--beyond", type=int, default=0, metavar="N",
                     help="leave out the N cases that `--cases N` runs, but for tests marked `extended`")  # fmt: skip
    parser.addoption("--most-seconds", type=float, default=0, metavar="S",
                     help="fail tests that take more processor time, of Spark too; 0: none")  # fmt: skip


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases of tests that have more than `--cases` asks for, but none where each case is a promise."""
    for item in items:
        if (
            item.get_closest_marker("spark")
            and not item.get_closest_marker("slow")
            and not is_found_on_spark(item.path)
        ):
            raise pytest.UsageError(
                f"{item.nodeid} runs on Spark, and `make test` looks in {SPARK_FOLDERS} for such tests"
            )
    most: int = config.getoption("--cases")
    beyond: int = config.getoption("--beyond")
    if not most and not beyond:
        return
    by_test: dict[tuple[Path, str, bool], list[pytest.Item]] = defaultdict(list)
    for item in items:
        is_extended = item.get_closest_marker("extended") is not None
        by_test[item.path, item.nodeid.split("[")[0], is_extended].append(item)
    seed = cases_seed()
    kept: set[int] = set()
    for (_, _, is_extended), cases in by_test.items():
        is_whole = has_whole_cases(cases[0])
        chosen = cases if is_whole or not most else choose_cases(cases, most, seed)
        if beyond and not is_extended:
            quick = cases if is_whole else choose_cases(cases, beyond, seed)
            chosen = [item for item in chosen if item not in quick]
        kept.update(map(id, chosen))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def is_found_on_spark(path: Path) -> bool:
    """Return whether `make test` looks for tests on Spark in a file; files of no checkout are not its business."""
    return ROOT not in path.parents or any(ROOT / folder in path.parents for folder in SPARK_FOLDERS)


def has_whole_cases(item: pytest.Item) -> bool:
    """Return whether a test keeps every case under `--cases`: by its folder, or marked `every_case`."""
    return item.get_closest_marker("every_case") is not None or any(folder in item.path.parents for folder in _WHOLE)


def choose_cases(cases: Sequence[pytest.Item], most: int, seed: str) -> Sequence[pytest.Item]:
    """Return at most `most` cases of a test, each the one with the most arguments that those before it lack.

    Ties are broken by a hash of the seed and the case's name: a seed always chooses the same cases, another seed
    others, and tests that share a parameter choose different values of it.
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
        best = max(left, key=lambda item: (len(left[item]), _rank(seed, item.nodeid)))
        seen = left.pop(best)
        chosen.append(best)
        for arguments in left.values():
            arguments -= seen
    return chosen


def _rank(seed: str, node_id: str) -> bytes:
    return hashlib.blake2b(f"{seed} {node_id}".encode(), digest_size=8).digest()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what collecting made, ten thousand tests and their modules, out of every later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def used_seconds() -> float:
    """Return the processor time of this process, and of Spark's where it started one.

    Not of other processes: a server that many tests used would be counted to the one after which it is stopped.
    """
    used = time.process_time()
    gateway = sys.modules["pyspark"].SparkContext._gateway if "pyspark" in sys.modules else None
    if gateway is not None and hasattr(gateway, "proc"):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
            used += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return used


class TimeLimit:
    """Fails tests that take longer than `--most-seconds`.

    A plugin of its own: hooks of this file are not called for fixtures of the whole session.
    """

    def __init__(self, most_seconds: float) -> None:
        self.most_seconds = most_seconds
        self.begun = 0.0
        """What was used when the test began; later where fixtures of the whole session were made for it."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Begin to count."""
        self.begun = used_seconds()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Count what all tests share to none of them: above all the start of Spark."""
        before = used_seconds()
        made = yield
        if fixturedef.scope == "session":
            self.begun += used_seconds() - before
        return made

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        """Say what took too long."""
        yield
        used = used_seconds() - self.begun
        if used > self.most_seconds:
            reason = f"took {used:.1f} s of processor time, more than {self.most_seconds:g}"
            pytest.fail(f"{reason}: make it cheaper, or mark it `extended`", pytrace=False)


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
