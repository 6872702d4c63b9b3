"""Tables that were maintained, read by PyIceberg: the same rows after each procedure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.datafile.write_deletes import DeletedRows, write_position_deletes

pytestmark = pytest.mark.interop

STEPS: dict[str, Callable[[frazil.Table], object]] = {
    "rewrite_position_delete_files": lambda table: table.maintain.rewrite_position_delete_files(rewrite_all=True),
    "rewrite_manifests": lambda table: table.maintain.rewrite_manifests(),
    "sort": lambda table: table.maintain.rewrite_data_files("sort", "id desc", where="kind = 'a'", rewrite_all=True),
    "zorder": lambda table: table.maintain.rewrite_data_files("zorder", "id, v", rewrite_all=True),
    "binpack": lambda table: table.maintain.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True),
    "compute_table_stats": lambda table: table.maintain.compute_table_stats(),
    "compute_partition_stats": lambda table: table.maintain.compute_partition_stats(),
    "expire_snapshots": lambda table: table.maintain.expire_snapshots(older_than=2**62),
    "remove_orphan_files": lambda table: table.maintain.remove_orphan_files(),
}


def test_pyiceberg_reads_the_same_rows_after_each_procedure(tmp_path: Path) -> None:
    lake = frazil.connect(tmp_path / "lake")
    table = lake.create_table("db.t", "id bigint, kind string, v double", partition_by=["kind"], format_version=2)
    for at in range(6):
        ids = range(at * 10, at * 10 + 10)
        table.append(pa.table({"id": ids, "kind": ["ab"[at % 2]] * 10, "v": [one / 3 for one in ids]}))
    tasks = list(table.scan().plan().tasks)
    deleted = [DeletedRows.of(one.data_file, [2, 7]) for one in tasks[:4]]
    files = write_position_deletes(deleted, table.state, granularity="file")
    head = table.current_snapshot
    assert head is not None
    referenced = tuple(one.data_file for one in tasks[:4])
    table._run(RowDelta(tuple(files), ReadSet(head.snapshot_id), "delete", referenced))
    database = next((tmp_path / "lake").glob("*.db"))
    peer = SqlCatalog("lake", uri=f"sqlite:///{database}", warehouse=f"file://{tmp_path}/lake")

    def theirs() -> list[str]:
        return sorted(map(repr, peer.load_table("db.t").scan().to_arrow().to_pylist()))

    before = theirs()
    assert len(before) == 52
    for name, step in STEPS.items():
        step(table)
        assert theirs() == before, name
        assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == before, name
    assert len(peer.load_table("db.t").metadata.statistics) == 1
