"""`lake.sql` over random tables equals DuckDB over the same rows in memory."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.support.sql_fuzz import QueryMaker, compare, memory_of, random_lake

QUERIES_PER_LAKE = 50
LAKES = max(1, int(os.environ.get("FRAZIL_SQL_QUERIES", "200")) // QUERIES_PER_LAKE)
FIRST = int(os.environ.get("FRAZIL_SQL_SEED", "1"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + LAKES))
def test_random_queries_return_the_rows_of_duckdb(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lake, rows = random_lake(rng, str(tmp_path / "lake"))
    maker = QueryMaker(rng)
    with lake, memory_of(rows) as memory:
        differences = [compare(lake, memory, maker.query()) for _ in range(QUERIES_PER_LAKE)]
    assert [difference for difference in differences if difference is not None] == []
