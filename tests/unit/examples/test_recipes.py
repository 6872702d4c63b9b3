"""Recipes of docs/recipes.md: schedulers that run a step again, pandas, Polars, DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

import frazil


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[frazil.Lake]:
    with frazil.connect(tmp_path / "lake") as opened:
        opened.create_namespace("db")
        yield opened


def run_with_retries(step: Callable[[], object], times: int = 3) -> None:
    """Run a step as Airflow and Dagster do: again after an error."""
    for at in range(times):
        try:
            step()
            return
        except RuntimeError:
            if at == times - 1:
                raise


def test_rerun_of_a_step_that_failed_after_its_commit_writes_once(lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, day string")
    tries: list[str] = []

    def step(day: str = "2026-01-01") -> None:
        tries.append(day)
        table.append([{"id": 1, "day": day}], once=("daily", day))
        if len(tries) == 1:
            raise RuntimeError("the worker was killed after the commit")

    run_with_retries(step)
    step("2026-01-02")
    assert len(tries) == 3
    assert sorted(row["day"] for row in table.scan().to_arrow().to_pylist()) == ["2026-01-01", "2026-01-02"]


def test_pandas_round_trip(lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    table.append(pd.DataFrame({"id": [1, 2, 3], "kind": ["a", "b", "a"]}))
    table.upsert(pd.DataFrame({"id": [2], "kind": ["z"]}), keys=["id"])
    frame = table.scan("kind <> 'a'").to_pandas()
    assert frame.to_dict("records") == [{"id": 2, "kind": "z"}]


def test_polars_round_trip(lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    table.append(pl.DataFrame({"id": [1, 2, 3], "kind": ["a", "b", "a"]}))
    counted = table.scan().to_polars_lazy().group_by("kind").len().sort("kind").collect()
    assert counted.rows() == [("a", 2), ("b", 1)]


def test_duckdb_queries_a_table_and_its_result_is_written(lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, kind string")
    table.append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "a"}])
    with duckdb.connect() as connection:
        rows = table.scan().to_arrow()
        found = connection.sql("select kind, count(*) as n from rows group by kind")
        made = lake.create_table("db.counts", "kind string, n bigint")
        made.append(found)
    assert rows.num_rows == 3
    assert sorted(map(tuple, (row.values() for row in made.scan().to_arrow().to_pylist()))) == [("a", 2), ("b", 1)]
