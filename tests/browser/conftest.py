"""A real browser: Chromium as the system has it, driven by Playwright. Without either, these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from frazil.console.app import console_routes
from tests.browser.demo_lake import make_demo_lake
from tests.support.served_lake import Served, served

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str | None:
    """Return what is missing for a browser, None where it is all there."""
    if find_spec("playwright") is None:
        return "Playwright is not installed; run: make test-browser"
    if not any(map(shutil.which, PROGRAMS)):
        return "there is no Chromium; on Debian: apt install chromium"
    return None


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Open the browser once for all tests."""
    why = missing()
    if why is not None:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    program = next(found for one in PROGRAMS if (found := shutil.which(one)) is not None)
    # As root, which some machines run tests as, Chromium starts only without its sandbox.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "lake"
    make_demo_lake(folder)
    return folder


@pytest.fixture(scope="session")
def demo(demo_folder: Path) -> Iterator[Served]:
    with served(demo_folder, beside=partial(console_routes, may_write=True)) as server:
        # Pictures show this, and not where tests happen to run.
        server.catalog.warehouse = "file:///srv/city"
        yield server
