"""Partition statistics brought up to date on random histories are those counted anew."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

import frazil
from frazil.maintenance.partition_stats import partition_stats
from tests.support.partition_stats_lab import compute, rows_of


def full(table: frazil.Table) -> pa.Table:
    """Return the current statistics as they are counted from all manifests."""
    loaded = table.refresh().state
    alone = replace(loaded, metadata=replace(loaded.metadata, partition_statistics=()))
    head = table.current_snapshot
    assert head is not None
    return partition_stats(alone, head, threads=1)


def change(table: frazil.Table, chance: random.Random, number: int) -> None:
    kind = chance.choice(["append", "append", "delete", "overwrite", "rows", "evolve", "merge", "branch"])
    ids = list(range(number * 10, number * 10 + chance.randint(1, 4)))
    rows = pa.table({"id": pa.array(ids, pa.int64()), "k": [chance.choice(["a", "b", None]) for _ in ids]})
    if kind == "append":
        table.append(rows)
    elif kind == "delete":
        table.delete(chance.choice(["k = 'a'", "k is null", "id < 15"]))
    elif kind == "overwrite":
        table.overwrite_partitions(rows)
    elif kind == "rows":
        table.delete(f"id = {chance.randrange(number * 10 + 1)}")
    elif kind == "evolve" and number % 3 == 0:
        with table.update_spec() as update:
            if any(one.name == "id_bucket_2" for one in table.spec.fields):
                update.remove_field("id_bucket_2")
            else:
                update.add_field("bucket(2, id)")
    elif kind == "merge":
        table.maintain.rewrite_manifests()
    elif kind == "branch" and number > 3:
        table.create_branch(f"b{number}")
        table.append(rows, branch=f"b{number}")


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(8))
def test_updated_statistics_equal_recomputed_ones(seed: int) -> None:
    chance = random.Random(seed)
    properties = {"write.delete.mode": "merge-on-read"}
    lake = frazil.connect("memory:")
    table = lake.create_table(
        "db.t", "id bigint, k string", partition_by=["k"], format_version=2 + seed % 2, properties=properties
    )
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "k": ["a", "b"]}))
    compute(table)
    brought = 0
    for number in range(1, 12):
        change(table, chance, number)
        if chance.random() < 0.6:
            continue
        before = len(table.refresh().metadata.partition_statistics)
        found = rows_of(table, compute(table))
        brought += len(table.metadata.partition_statistics) > before
        anew = full(table)
        columns = [name for name in anew.column_names if not name.startswith("last_updated")]
        assert found.select(columns).to_pylist() == anew.select(columns).to_pylist()
        for one, other in zip(found.to_pylist(), anew.to_pylist(), strict=True):
            assert one["last_updated_at"] >= other["last_updated_at"]
    assert table.check().ok
    assert brought or seed
