"""Tables and databases of the Hive Metastore as its structs, with the fields that Iceberg Java gives them.

    table      1 name, 2 database, 3 owner, 4 and 5 times, 6 retention, 7 storage, 8 partition keys, 9 parameters,
               10 and 11 the query of a view, 12 type
    storage    1 columns, 2 location, 3 and 4 formats, 7 serde (2 its class, 3 parameters)
    database   1 name, 2 description, 3 location, 4 parameters, 6 owner, 7 type of owner

All other fields of a struct that came from the server are sent back unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from frazil.catalog.hive.thrift_binary import (
    I32,
    STRUCT,
    ThriftStruct,
    list_value,
    text_value,
    texts_value,
)
from frazil.catalog.metastore_tables import MAX_PROPERTY_CHARS, TABLE_OWNER, column_type, hive_parameters, view_text
from frazil.catalog.names import Identifier
from frazil.catalog.pointers import EntityType, PointerChange
from frazil.errors import InvalidRequestError
from frazil.spec.properties import ENGINE_HIVE_ENABLED
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import TimestamptzNsType, TimestamptzType
from frazil.spec.view_metadata import ViewMetadata

COMMENT: Final = "comment"
LOCATION: Final = "location"
DATABASE_OWNER: Final = "hive.metastore.database.owner"
DATABASE_OWNER_TYPE: Final = "hive.metastore.database.owner-type"
LASTING_PROPERTIES: Final = frozenset({COMMENT, LOCATION, DATABASE_OWNER, DATABASE_OWNER_TYPE})
"""Properties that the server replaces, and does not remove."""
ZONED: Final = "timestamp with local time zone"

_RETENTION: Final = 2**31 - 1
_OWNER_TYPES: Final = {"USER": 1, "ROLE": 2, "GROUP": 3}
_STORAGE_HANDLER: Final = "storage_handler"
_HANDLER_CLASS: Final = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_ENGINE_CLASSES: Final = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_PLAIN_CLASSES: Final = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)


@dataclass(frozen=True, slots=True)
class TableForm:
    """How a catalog writes tables beside their pointers."""

    max_property_chars: int = MAX_PROPERTY_CHARS
    is_engine_enabled: bool = False
    zoned_type: str = "timestamp"
    keeps_statistics: bool = False


def new_table(identifier: Identifier, change: PointerChange, form: TableForm, owner: str, now_ms: int) -> ThriftStruct:
    """Return the struct of a table or view that is created."""
    is_table = change.entity_type is EntityType.TABLE
    seconds = now_ms // 1000
    named = None if change.metadata is None else change.metadata.properties.get(TABLE_OWNER)
    empty = ThriftStruct(
        {
            1: text_value(identifier[-1]),
            2: text_value(identifier[0]),
            3: text_value(owner if named is None else named),
            4: (I32, seconds),
            5: (I32, seconds),
            6: (I32, _RETENTION),
            8: list_value(STRUCT, ()),
            9: texts_value({"EXTERNAL": "TRUE"} if is_table else {}),
            12: text_value("EXTERNAL_TABLE" if is_table else "VIRTUAL_VIEW"),
        }
    )
    return changed_table(empty, change, form)


def changed_table(table: ThriftStruct, change: PointerChange, form: TableForm) -> ThriftStruct:
    """Return a table's struct after a change of its pointer."""
    parameters = hive_parameters(table.texts(9), change, form.max_property_chars)
    metadata = change.metadata
    if metadata is None:
        return table.changed({9: texts_value(parameters)})
    is_engine = isinstance(metadata, TableMetadata) and _is_engine_enabled(metadata, form)
    if isinstance(metadata, TableMetadata):
        if is_engine:
            parameters[_STORAGE_HANDLER] = _HANDLER_CLASS
        else:
            parameters.pop(_STORAGE_HANDLER, None)
        if not form.keeps_statistics:
            parameters.pop("COLUMN_STATS_ACCURATE", None)
            parameters["DO_NOT_UPDATE_STATS"] = "true"
    existing = table.get(7)
    storage = _storage(existing if isinstance(existing, ThriftStruct) else ThriftStruct(), metadata, is_engine, form)
    fields = {7: (STRUCT, storage), 9: texts_value(parameters)}
    if isinstance(metadata, ViewMetadata):
        text = view_text(metadata)
        fields |= {10: text_value(text), 11: text_value(text)}
    return table.changed(fields)


def _storage(
    existing: ThriftStruct, metadata: TableMetadata | ViewMetadata, is_engine: bool, form: TableForm
) -> ThriftStruct:
    read, write, serde = _ENGINE_CLASSES if is_engine else _PLAIN_CLASSES
    known_serde = existing.get(7)
    serde_struct = known_serde if isinstance(known_serde, ThriftStruct) else ThriftStruct({3: texts_value({})})
    earlier = {column.text(1): column.text(2) for column in existing.structs(1)}
    columns: list[ThriftStruct] = []
    for field in metadata.current_schema.fields:
        name = column_type(field.field_type, zoned=form.zoned_type)
        if isinstance(field.field_type, TimestamptzType | TimestamptzNsType):
            # Clients differ in the name, and a server may refuse to change a column's type: the first name stays.
            before = earlier.get(field.name.lower(), earlier.get(field.name))
            name = before if before in ("timestamp", ZONED) else name
        columns.append(
            ThriftStruct({1: text_value(field.name), 2: text_value(name)}).changed({3: text_value(field.doc)})
        )
    return existing.changed(
        {
            1: list_value(STRUCT, columns),
            2: text_value(metadata.location),
            3: text_value(read),
            4: text_value(write),
            7: (STRUCT, serde_struct.changed({2: text_value(serde)})),
        }
    )


def _is_engine_enabled(metadata: TableMetadata, form: TableForm) -> bool:
    text = metadata.properties.get(ENGINE_HIVE_ENABLED.name)
    return form.is_engine_enabled if text is None else text.lower() == "true"


def renamed_table(table: ThriftStruct, target: Identifier) -> ThriftStruct:
    """Return a table's struct under another name."""
    return table.changed({1: text_value(target[-1]), 2: text_value(target[0])})


# Databases


def database_properties(database: ThriftStruct) -> dict[str, str]:
    """Return a database's parameters, with its location, comment and owner among them."""
    existing = database.texts(4)
    for name, number in ((LOCATION, 3), (COMMENT, 2), (DATABASE_OWNER, 6)):
        value = database.text(number)
        if value is not None and value != "":
            existing[name] = _whole_uri(value) if name == LOCATION else value
    owner_type = next((name for name, number in _OWNER_TYPES.items() if number == database.get(7)), None)
    if DATABASE_OWNER in existing and owner_type is not None:
        existing[DATABASE_OWNER_TYPE] = owner_type
    return existing


def _whole_uri(location: str) -> str:
    """Return a location as frazil writes it: Hadoop leaves out two slashes of a local one."""
    return (
        f"file://{location.removeprefix('file:')}"
        if location.startswith("file:/") and location[6:7] != "/"
        else location
    )


def database_struct(
    name: str, properties: Mapping[str, str], *, location: str | None, owner: str, existing: ThriftStruct | None = None
) -> ThriftStruct:
    """Return a database as properties describe it; other fields of one that was found stay."""
    own = {LOCATION, COMMENT, DATABASE_OWNER, DATABASE_OWNER_TYPE}
    owner_type = properties.get(DATABASE_OWNER_TYPE, "USER").upper()
    if owner_type not in _OWNER_TYPES:
        raise InvalidRequestError(
            f"Cannot use the namespace property {DATABASE_OWNER_TYPE}: {owner_type!r} is not USER, ROLE or GROUP"
        )
    fields: dict[int, tuple[int, object]] = {
        1: text_value(name),
        2: text_value(properties.get(COMMENT)),
        3: text_value(properties.get(LOCATION, location)),
        4: texts_value({key: value for key, value in properties.items() if key not in own}),
        6: text_value(properties.get(DATABASE_OWNER, owner)),
        7: (I32, _OWNER_TYPES[owner_type]),
    }
    return (existing or ThriftStruct()).changed(fields)
