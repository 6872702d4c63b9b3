"""The choice of a table's snapshot, and of the schema to read it with."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import InvalidRequestError
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.snapshot_history import schema_of_ref, schema_of_snapshot, snapshot_as_of
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType


@dataclass(frozen=True, slots=True)
class SnapshotChoice:
    """The state of a table to read; at most one of the three is set, and none means the current state."""

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    ref: str | None = None

    def __post_init__(self) -> None:
        choices = [name for name in ("snapshot_id", "as_of_ms", "ref") if getattr(self, name) is not None]
        if len(choices) > 1:
            raise InvalidRequestError(
                f"Cannot choose a snapshot by {' and '.join(choices)} at once", hint="Pass only one."
            )


CURRENT = SnapshotChoice()


def choose_snapshot(metadata: TableMetadata, choice: SnapshotChoice) -> tuple[Snapshot | None, Schema]:
    """Return the snapshot to read and the schema to read it with.

    By id, time or tag, it is the schema that the snapshot was written with. The current state and branches are read
    with the table's current schema.
    """
    if choice.snapshot_id is not None:
        snapshot = metadata.snapshot(choice.snapshot_id)
        return snapshot, schema_of_snapshot(metadata, snapshot)
    if choice.as_of_ms is not None:
        snapshot = snapshot_as_of(metadata, choice.as_of_ms)
        return snapshot, schema_of_snapshot(metadata, snapshot)
    if choice.ref is not None:
        return metadata.ref_snapshot(choice.ref), schema_of_ref(metadata, choice.ref)
    return metadata.current_snapshot, metadata.current_schema


def partition_types(metadata: TableMetadata) -> dict[int, tuple[PartitionSpec, StructType]]:
    """Return every partition spec of a table with the type of its tuples, by id."""
    schema, others = metadata.current_schema, metadata.schemas
    return {
        spec.spec_id: (spec, spec.partition_type(schema, other_schemas=others)) for spec in metadata.partition_specs
    }
