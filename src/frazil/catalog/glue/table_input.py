"""Tables of Glue as it takes them, with the fields that Iceberg Java gives them.

Glue returns fields of a table that it does not accept. The accepted ones that a change does not set are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from frazil.catalog.glue.glue_client import texts_of
from frazil.catalog.metastore_tables import column_type, moved_parameters, view_text
from frazil.catalog.pointers import EntityType, PointerChange
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata

DESCRIPTION: Final = "comment"
LOCATION: Final = "location"
_TAKEN: Final = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
_PLACES: Final = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def table_input(name: str, table: Mapping[str, Any], change: PointerChange) -> dict[str, Any]:
    """Return a table as Glue takes it after a change of its pointer; `found` is empty for a new one."""
    made = taken_back(table)
    made["Name"] = name
    made["Parameters"] = moved_parameters(texts_of(table.get("Parameters")), change)
    metadata = change.metadata
    made["TableType"] = "EXTERNAL_TABLE" if change.entity_type is EntityType.TABLE else "VIRTUAL_VIEW"
    if metadata is None:
        return made
    comment = metadata.properties.get(DESCRIPTION)
    if comment is not None:
        made["Description"] = comment
    storage = made.get("StorageDescriptor")
    descriptor = dict(storage) if isinstance(storage, dict) else {}
    descriptor |= {"Columns": _columns(metadata, descriptor.get("Columns")), "Location": metadata.location}
    places = [metadata.properties[name] for name in _PLACES if name in metadata.properties]
    if places:
        descriptor["AdditionalLocations"] = sorted(set(places))
    made["StorageDescriptor"] = descriptor
    if isinstance(metadata, ViewMetadata):
        text = view_text(metadata)
        if text is not None:
            made |= {"ViewOriginalText": text, "ViewExpandedText": text}
    return made


def taken_back(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table that Glue returned without the fields that it does not take."""
    return {name: table[name] for name in _TAKEN if table.get(name) is not None}


def _columns(metadata: TableMetadata | ViewMetadata, current_columns: Any) -> list[dict[str, Any]]:
    """Return the columns of the current schema, then those that only other schemas have."""
    comments: dict[str, str] = {}
    for column in current_columns if isinstance(current_columns, list) else ():
        if isinstance(column, dict) and isinstance(column.get("Comment"), str):
            comments.setdefault(str(column.get("Name")), column["Comment"])
    current = metadata.current_schema
    schemas: list[Schema] = [current, *(schema for schema in metadata.schemas if schema.schema_id != current.schema_id)]
    columns: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        for field in schema.fields:
            if field.name in columns:
                continue
            made: dict[str, Any] = {
                "Name": field.name,
                "Type": column_type(field.field_type),
                "Parameters": {
                    "iceberg.field.id": str(field.field_id),
                    "iceberg.field.optional": str(not field.required).lower(),
                    "iceberg.field.current": str(schema is current).lower(),
                },
            }
            comment = field.doc or comments.get(field.name)
            if comment:
                made["Comment"] = comment
            columns[field.name] = made
    return list(columns.values())


def database_input(name: str, properties: Mapping[str, str], location: str | None = None) -> dict[str, Any]:
    """Return a database as Glue takes it."""
    made: dict[str, Any] = {
        "Name": name,
        "Parameters": {key: value for key, value in properties.items() if key not in (DESCRIPTION, LOCATION)},
    }
    uri = properties.get(LOCATION, location)
    if uri is not None:
        made["LocationUri"] = uri
    if DESCRIPTION in properties:
        made["Description"] = properties[DESCRIPTION]
    return made


def database_properties(database: Mapping[str, Any]) -> dict[str, str]:
    """Return a database's parameters, with its location and comment among them."""
    table = texts_of(database.get("Parameters"))
    for name, field in ((LOCATION, "LocationUri"), (DESCRIPTION, "Description")):
        value = database.get(field)
        if isinstance(value, str) and value != "":
            table[name] = value
    return table
