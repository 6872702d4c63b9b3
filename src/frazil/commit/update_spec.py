"""Change the partition spec that new data is written with. Specification: "Partition Evolution".

Files keep the spec they were written with. As for schemas, the steps are repeated at each attempt, and ids of partition
fields are assigned by whichever writer commits first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.changes.requirements import AssertDefaultSpecId, AssertLastAssignedPartitionId
from frazil.changes.updates import AddPartitionSpec, SetDefaultSpec
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import table_requirement
from frazil.loaded import LoadedTable
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class UpdateSpec:
    """Change the default partition spec: `change` is called with a spec update, once per attempt."""

    change: Callable[[PartitionSpecUpdate], object]
    case_sensitive: bool = True

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the spec that the steps produce from the present one, or nothing if it is the same."""
        metadata = loaded.metadata
        update = spec_update(metadata, case_sensitive=self.case_sensitive)
        self.change(update)
        evolved = update.build()
        requirements = (
            *table_requirement(metadata),
            AssertDefaultSpecId(metadata.default_spec_id),
            AssertLastAssignedPartitionId(metadata.last_partition_id),
        )
        if evolved.is_new:
            return Changes((AddPartitionSpec(evolved.spec), SetDefaultSpec()), requirements)
        if evolved.spec.spec_id == metadata.default_spec_id:
            return NOTHING
        return Changes((SetDefaultSpec(evolved.spec.spec_id),), requirements)


def spec_update(metadata: TableMetadata, *, case_sensitive: bool) -> PartitionSpecUpdate:
    """Return an update of the default partition spec without changes."""
    return PartitionSpecUpdate(
        metadata.current_schema,
        metadata.partition_specs,
        metadata.default_spec,
        format_version=metadata.format_version,
        last_partition_id=metadata.last_partition_id,
        case_sensitive=case_sensitive,
    )
