"""What a metastore keeps of a table beside its pointer: parameters and columns, as Iceberg Java writes them.

The Hive Metastore and Glue hold tables of every kind. An Iceberg table or view is one whose parameter `table_type`
says so; `metadata_location` is its pointer. The rest is a copy of metadata, for those who look at the metastore alone,
and is never read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from frazil.catalog.pointers import EntityType, Pointer, PointerChange
from frazil.codec.partition_spec_json import encode_partition_spec
from frazil.codec.schema_json import encode_schema
from frazil.codec.sort_order_json import encode_sort_order
from frazil.spec import types as ft
from frazil.spec.properties import GC_ENABLED
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata

TABLE_TYPE: Final = "table_type"
METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_METADATA_LOCATION: Final = "previous_metadata_location"
TABLE: Final = "ICEBERG"
VIEW: Final = "ICEBERG-VIEW"
TABLE_OWNER: Final = "hive.metastore.table.owner"
MAX_PROPERTY_CHARS: Final = 32_672
"""The longest copy of metadata that a parameter of the Hive Metastore takes."""

_ENTITY_TYPES: Final = {TABLE: EntityType.TABLE, VIEW: EntityType.VIEW}
_RENAMED: Final = {GC_ENABLED.name: "external.table.purge"}
_TYPE_NAMES: Final[Mapping[type[ft.Type], str]] = {
    ft.BooleanType: "boolean",
    ft.IntType: "int",
    ft.LongType: "bigint",
    ft.FloatType: "float",
    ft.DoubleType: "double",
    ft.DateType: "date",
    ft.TimeType: "string",
    ft.TimestampType: "timestamp",
    ft.TimestampNsType: "timestamp",
    ft.StringType: "string",
    ft.UuidType: "string",
    ft.FixedType: "binary",
    ft.BinaryType: "binary",
    ft.GeometryType: "binary",
    ft.GeographyType: "binary",
    ft.UnknownType: "void",
    ft.VariantType: "unknown",
}


def entity_type_of(parameters: Mapping[str, str]) -> EntityType | None:
    """Return what the parameters of a metastore's table say it is: an Iceberg table or view, or None."""
    return _ENTITY_TYPES.get(parameters.get(TABLE_TYPE, "").upper())


def pointer_of(parameters: Mapping[str, str]) -> Pointer | None:
    """Return the pointer in the parameters of a metastore's table; None if it is neither a table nor a view."""
    entity_type = entity_type_of(parameters)
    location = parameters.get(METADATA_LOCATION)
    if entity_type is None or location is None:
        return None
    return Pointer(entity_type, location, parameters.get(PREVIOUS_METADATA_LOCATION))


def moved_parameters(existing: Mapping[str, str], change: PointerChange) -> dict[str, str]:
    """Return a table's parameters with its pointer moved; all others stay."""
    updated = {
        **existing,
        TABLE_TYPE: TABLE if change.entity_type is EntityType.TABLE else VIEW,
        METADATA_LOCATION: change.location,
    }
    if change.expected is not None:
        updated[PREVIOUS_METADATA_LOCATION] = change.expected
    return updated


def hive_parameters(existing: Mapping[str, str], change: PointerChange, max_chars: int) -> dict[str, str]:
    """Return the parameters of a table of the Hive Metastore after a change.

    Parameters that neither the change nor Iceberg Java knows stay unchanged; a copy of metadata that is longer than
    `max_chars` is left out.
    """
    metadata = change.metadata
    if metadata is None:
        return moved_parameters(existing, change)
    copied = dict(existing)
    for name, value in metadata.properties.items():
        if name.lower() != TABLE_OWNER:
            copied[_RENAMED.get(name, name) if isinstance(metadata, TableMetadata) else name] = value
    uuid = metadata.table_uuid if isinstance(metadata, TableMetadata) else metadata.view_uuid
    if uuid is not None:
        copied["uuid"] = uuid
    if change.base is not None:
        for name in change.base.properties:
            if name not in metadata.properties:
                copied.pop(name, None)
    updated = moved_parameters(copied, change)
    _copy(updated, "current-schema", encode_schema(metadata.current_schema), max_chars)
    if isinstance(metadata, TableMetadata):
        _copy_figures(updated, metadata, max_chars)
    return updated


def _copy_figures(parameters: dict[str, str], metadata: TableMetadata, max_chars: int) -> None:
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None or snapshot.summary is None else dict(snapshot.summary)
    for name, key in (
        ("numFiles", Summary.TOTAL_DATA_FILES),
        ("numRows", Summary.TOTAL_RECORDS),
        ("totalSize", Summary.TOTAL_FILES_SIZE),
    ):
        if key in summary:
            parameters[name] = summary[key]
    _copy_snapshot(parameters, snapshot, summary, max_chars)
    parameters["snapshot-count"] = str(len(metadata.snapshots))
    spec, order = metadata.default_spec, metadata.default_sort_order
    _copy(parameters, "default-partition-spec", encode_partition_spec(spec) if spec.fields else None, max_chars)
    _copy(parameters, "default-sort-order", encode_sort_order(order) if order.fields else None, max_chars)


def _copy_snapshot(
    parameters: dict[str, str], snapshot: Snapshot | None, summary: Mapping[str, str], max_chars: int
) -> None:
    visible_summary = (
        None if snapshot is None else {key: value for key, value in summary.items() if key != Summary.OPERATION}
    )
    is_shown = snapshot is not None and max_chars > 0
    for name, value in (
        ("current-snapshot-id", None if snapshot is None else str(snapshot.snapshot_id)),
        ("current-snapshot-timestamp-ms", None if snapshot is None else str(snapshot.timestamp_ms)),
    ):
        parameters.pop(name, None)
        if value is not None and is_shown:
            parameters[name] = value
    _copy(parameters, "current-snapshot-summary", visible_summary, max_chars)


def _copy(parameters: dict[str, str], name: str, value: Any, max_chars: int) -> None:
    """Set a parameter to a value as JSON, or remove it if there is none or if it is too long."""
    parameters.pop(name, None)
    text = None if value is None else msgspec.json.encode(value).decode()
    if text is not None and max_chars > 0 and len(text) <= max_chars:
        parameters[name] = text


def view_text(metadata: ViewMetadata) -> str | None:
    """Return the query that a metastore shows of a view: Hive's own, else the first."""
    representation = metadata.current_version.find_sql("hive") or next(
        iter(metadata.current_version.sql_representations), None
    )
    return None if representation is None else representation.sql


def column_type(data_type: ft.Type, *, zoned: str = "timestamp") -> str:
    """Return a type by its name in Hive; `zoned` is what timestamps with a zone are called."""
    if isinstance(data_type, ft.TimestamptzType | ft.TimestamptzNsType):
        return zoned
    if isinstance(data_type, ft.DecimalType):
        return f"decimal({data_type.precision},{data_type.scale})"
    if isinstance(data_type, ft.StructType):
        inner = (f"{field.name}:{column_type(field.field_type, zoned=zoned)}" for field in data_type.struct_fields)
        return f"struct<{','.join(inner)}>"
    if isinstance(data_type, ft.ListType):
        return f"array<{column_type(data_type.element_type, zoned=zoned)}>"
    if isinstance(data_type, ft.MapType):
        return f"map<{column_type(data_type.key_type, zoned=zoned)},{column_type(data_type.value_type, zoned=zoned)}>"
    return _TYPE_NAMES.get(type(data_type), "unknown")


def in_batches(names: Iterable[str], size: int) -> Iterable[list[str]]:
    """Yield names a batch at a time."""
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
