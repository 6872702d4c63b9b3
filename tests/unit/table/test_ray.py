"""Scans handed over to Ray, where it is installed: `pip install 'ray[data]'`. It is no dependency of the checkout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import frazil
from tests.support.hand_off_rows import DDL, ROWS

ray = pytest.importorskip("ray", reason="Ray is not installed")
# Warnings are errors in this suite, and Ray warns of itself.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table() -> Any:
    with frazil.connect("memory:", catalog="memory") as lake:
        made = lake.create_table("db.t", DDL)
        made.append(ROWS[:10])
        made.append(ROWS[10:])
        yield made


def test_ray_has_the_rows_and_columns_of_a_scan(cluster: None, table: frazil.Table) -> None:
    scan = table.scan("id >= 3 and id < 8", columns=["id", "s", "dec", "ts"])
    found = scan.to_ray()
    assert found.schema().names == ["id", "s", "dec", "ts"]
    assert sorted(row["id"] for row in found.take_all()) == [3, 4, 5, 6, 7]
    assert found.take_all() == scan.to_arrow().to_pylist()


def test_ray_computes_with_every_column(cluster: None, table: frazil.Table) -> None:
    found = table.scan().to_ray()
    assert found.count() == len(ROWS)
    assert set(found.schema().names) == set(table.scan().arrow_schema.names)
    assert found.sum("id") == sum(row["id"] for row in ROWS)
    doubled = found.map_batches(lambda batch: {"id": batch["id"] * 2})
    assert sorted(row["id"] for row in doubled.take_all()) == sorted(row["id"] * 2 for row in ROWS)


def test_ray_rows_are_written_back(cluster: None, table: frazil.Table) -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        copy = lake.create_table("db.copy", "id bigint, s string")
        found = table.scan(columns=["id", "s"]).to_ray()
        for batch in found.iter_batches(batch_format="pyarrow"):
            copy.append(batch)
        assert sorted(map(str, copy.scan().to_arrow().to_pylist())) == sorted(
            map(str, table.scan(columns=["id", "s"]).to_arrow().to_pylist())
        )
