"""The creation of a table as updates, for catalogs that receive changes and build the metadata themselves."""

from __future__ import annotations

from frazil.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from frazil.spec.table_metadata import TableMetadata


def creation_updates(metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """Return the updates that create a staged table from nothing."""
    uuid: tuple[TableUpdate, ...] = () if metadata.table_uuid is None else (AssignUuid(metadata.table_uuid),)
    properties: tuple[TableUpdate, ...] = (SetProperties(metadata.properties),) if metadata.properties else ()
    return (
        *uuid,
        UpgradeFormatVersion(metadata.format_version),
        AddSchema(metadata.current_schema, metadata.last_column_id),
        SetCurrentSchema(),
        AddPartitionSpec(metadata.default_spec),
        SetDefaultSpec(),
        AddSortOrder(metadata.default_sort_order),
        SetDefaultSortOrder(),
        SetLocation(metadata.location),
        *properties,
    )
