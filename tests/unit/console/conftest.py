"""A console that is served on the loopback, over a small lake with a history."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from frazil.console.app import console_routes
from tests.support.console_lake import make_lake
from tests.support.served_lake import Served, served


@pytest.fixture(scope="module")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console") / "lake"
    make_lake(folder)
    return folder


@pytest.fixture(scope="module")
def console(lake_folder: Path) -> Iterator[Served]:
    with served(lake_folder, beside=partial(console_routes, may_write=False)) as server:
        yield server
