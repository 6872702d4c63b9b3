"""Whatever is maintained, in whatever order: every branch, tag and retained snapshot reads as before."""

from __future__ import annotations

import pytest

from tests.support.maintenance_history import History


@pytest.mark.extended
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_rows_survive_maintenance(seed: int, version: int) -> None:
    History(seed * 3 + version, version).run()


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3, 100))
def test_rows_survive_maintenance_of_many_histories(seed: int, version: int) -> None:
    History(seed * 3 + version, version).run()
