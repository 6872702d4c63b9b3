"""Random histories of every verb in this process, in each version and mode, against a model of rows."""

from __future__ import annotations

import pytest

import frazil
from tests.support.write_history import VERSIONS_AND_MODES, Hand, History, new_table, run_history

SEEDS = [
    0,
    *(pytest.param(seed, marks=pytest.mark.extended if seed < 3 else pytest.mark.slow) for seed in range(1, 60)),
]


@pytest.mark.parametrize(("version", "mode"), VERSIONS_AND_MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_history_equals_the_model_at_every_snapshot(version: int, mode: str, seed: int) -> None:
    lake = frazil.connect("memory:", catalog="memory")
    lake.create_namespace("db")
    order = seed * 5 + version * 2 + len(mode)
    run_history(History(new_table(lake, version, mode, order), order, Hand("local"), evolves=seed % 2 == 1), 10)
