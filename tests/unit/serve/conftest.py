"""One server for the tests of a module, each with a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.served_lake import Served, served

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("served")
    with served(folder / "warehouse", state=folder / "serve.db") as found:
        yield found


@pytest.fixture
def db(server: Served) -> str:
    """A namespace that was just made."""
    name = f"db{next(_numbers)}"
    assert server.post("/v1/namespaces", {"namespace": [name]}).code == 200
    return name
