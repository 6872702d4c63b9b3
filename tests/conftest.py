"""What every test shares: Hypothesis profiles, where folders are made, and the place of the public fixtures."""

from __future__ import annotations

import gc
import os
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
