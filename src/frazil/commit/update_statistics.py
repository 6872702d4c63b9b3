"""Set and remove statistics files of snapshots. They are informative only, so the last writer wins.

Specification: "Table Statistics", "Partition Statistics".
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.changes.updates import (
    RemovePartitionStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    SetStatistics,
    TableUpdate,
)
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import table_requirement
from frazil.loaded import LoadedTable
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile


@dataclass(frozen=True, slots=True)
class UpdateStatistics:
    """Set the statistics files of snapshots, and remove those of others from the metadata. The files stay."""

    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    removed: tuple[int, ...] = ()
    removed_partition: tuple[int, ...] = ()

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the changes; snapshots with new statistics must be in the table."""
        metadata = loaded.metadata
        for snapshot_id in [statistics_file.snapshot_id for statistics_file in self.statistics] + [
            statistics_file.snapshot_id for statistics_file in self.partition_statistics
        ]:
            metadata.snapshot(snapshot_id)
        updates: list[TableUpdate] = [SetStatistics(statistics_file) for statistics_file in self.statistics]
        updates += [SetPartitionStatistics(statistics_file) for statistics_file in self.partition_statistics]
        updates += [
            RemoveStatistics(snapshot_id)
            for snapshot_id in self.removed
            if metadata.find_statistics(snapshot_id) is not None
        ]
        updates += [
            RemovePartitionStatistics(snapshot_id)
            for snapshot_id in self.removed_partition
            if metadata.find_partition_statistics(snapshot_id) is not None
        ]
        return Changes(tuple(updates), table_requirement(metadata)) if updates else NOTHING
