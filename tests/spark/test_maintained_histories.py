"""Random histories with random maintenance, data files rewritten on Spark: the same rows on Spark, here and by a peer.

After each procedure every branch and tag is read on Spark, and at the end every snapshot that is left, by Spark and by
PyIceberg, which reads what it can: no equality deletes. The histories that PyIceberg reads have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import frazil
from tests.support.maintenance_history import History

pytestmark = pytest.mark.extended

COLUMNS = ["id", "kind", "v"]
LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def plain(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows in an order of their own, without ids."""
    return sorted(repr({name: row[name] for name in COLUMNS}) for row in rows)


class SparkHistory(History):
    """A history whose references are read on Spark after each procedure."""

    def after_maintenance(self, state: dict[Any, list[str]]) -> None:
        for name in self.table.refs:
            assert self.on_spark(ref=name) == state[name], (name, self.told)

    def on_spark(self, **choice: Any) -> list[str]:
        columns = [*COLUMNS, *(LINEAGE if self.table.format_version >= 3 else ())]
        rows = [one.asDict() for one in self.table.scan(columns=columns, **choice).to_spark().collect()]
        for row in rows:
            if row.get("_row_id", 0) is None:
                for name in LINEAGE:
                    row.pop(name, None)
        return sorted(map(repr, rows))

    def check_snapshots(self) -> int:
        """Read every snapshot here and on Spark; return how many there are."""
        ids = [one.snapshot_id for one in self.table.refresh().snapshots]
        for one in ids:
            assert self.on_spark(snapshot_id=one) == self.rows(snapshot_id=one), (one, self.told)
        return len(ids)

    def check_peer(self, folder: Path) -> int:
        """Read every snapshot by PyIceberg; return how many it read."""
        peer = SqlCatalog("lake", uri=f"sqlite:///{next(folder.glob('*.db'))}", warehouse=f"file://{folder}")
        theirs = peer.load_table("db.t")
        for one in self.table.snapshots:
            mine = plain(self.table.scan(columns=COLUMNS, snapshot_id=one.snapshot_id).to_arrow().to_pylist())
            found = theirs.scan(snapshot_id=one.snapshot_id, selected_fields=tuple(COLUMNS)).to_arrow().to_pylist()
            assert plain(found) == mine, (one.snapshot_id, self.told)
        return len(self.table.snapshots)


def run(lake: frazil.Lake, folder: Path, seed: int, version: int, *, has_peer: bool) -> None:
    history = SparkHistory(seed * 3 + version, version, lake, steps=8, has_equality_deletes=not has_peer, on_spark=True)
    history.run()
    assert history.check_snapshots() > 0
    if has_peer:
        assert history.check_peer(folder) > 0


@pytest.mark.parametrize(("seed", "version"), [(1, 1), (2, 2), (3, 3)])
def test_rows_survive_maintenance_on_spark_and_pyiceberg_reads_them(
    spark: SparkSession, lake: frazil.Lake, tmp_path: Path, seed: int, version: int
) -> None:
    run(lake, tmp_path / "lake", seed, version, has_peer=True)


def test_equality_deletes_survive_maintenance_on_spark(spark: SparkSession, lake: frazil.Lake, tmp_path: Path) -> None:
    run(lake, tmp_path / "lake", 5, 2, has_peer=False)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10, 25))
def test_rows_survive_maintenance_of_many_histories_on_spark(
    spark: SparkSession, lake: frazil.Lake, tmp_path: Path, seed: int, version: int
) -> None:
    run(lake, tmp_path / "lake", seed, version, has_peer=seed % 2 == 0)
