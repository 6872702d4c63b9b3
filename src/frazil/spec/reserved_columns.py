"""The metadata columns: fields with reserved ids. Specification: "Reserved Field IDs".

Scans offer `_file`, `_pos` and others beside a table's own columns, position delete files store `file_path`, `pos` and
`row`, change feeds add `_change_type` and others, and v3 data files may store the two row lineage columns. A column is
required here if a reader can always fill it.

`_partition` and `row` have no fixed type: build them with `partition_column` and `deleted_row_column`.
"""

from __future__ import annotations

from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import BOOLEAN, INT, LONG, MAX_FIELD_ID, STRING, NestedField, StructType

HEADING = "Reserved Field IDs"

_LAST_ID = 2**31 - 1

FILE = NestedField(_LAST_ID - 1, "_file", STRING, required=True, doc="Path of the file in which a row is stored")
POS = NestedField(
    _LAST_ID - 2, "_pos", LONG, required=True, doc="Ordinal position of a row in the source data file, from 0"
)
DELETED = NestedField(_LAST_ID - 3, "_deleted", BOOLEAN, required=True, doc="Whether the row has been deleted")
SPEC_ID = NestedField(
    _LAST_ID - 4, "_spec_id", INT, required=True, doc="Spec ID used to track the file containing a row"
)
PARTITION_FIELD_ID = _LAST_ID - 5
PARTITION_NAME = "_partition"

DELETE_FILE_PATH = NestedField(
    _LAST_ID - 101, "file_path", STRING, required=True, doc="Path of a file in which a deleted row is stored"
)
DELETE_POS = NestedField(
    _LAST_ID - 102, "pos", LONG, required=True, doc="Ordinal position of a deleted row in the data file, from 0"
)
DELETE_ROW_FIELD_ID = _LAST_ID - 103
DELETE_ROW_NAME = "row"

CHANGE_TYPE = NestedField(_LAST_ID - 104, "_change_type", STRING, required=True, doc="Record type in the changelog")
CHANGE_ORDINAL = NestedField(_LAST_ID - 105, "_change_ordinal", INT, doc="Order of the change")
COMMIT_SNAPSHOT_ID = NestedField(
    _LAST_ID - 106, "_commit_snapshot_id", LONG, doc="Snapshot ID in which the change occurred"
)
ROW_ID = NestedField(_LAST_ID - 107, "_row_id", LONG, doc="Unique id of a row, assigned for row lineage")
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(
    _LAST_ID - 108,
    "_last_updated_sequence_number",
    LONG,
    doc="Sequence number of the commit that last updated the row",
)

ROW_LINEAGE_COLUMNS = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
"""The columns that a v3 data file may store for its rows, in the order they are appended to a schema."""

CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
"""The columns that a change feed adds to each row."""

METADATA_COLUMNS: FrozenMap[str, NestedField] = FrozenMap(
    {column.name: column for column in (FILE, POS, DELETED, SPEC_ID, *ROW_LINEAGE_COLUMNS)}
)
"""The columns that any scan can add, by name, except `_partition`, which has no fixed type."""

RESERVED_COLUMN_NAMES: FrozenMap[int, str] = FrozenMap(
    {
        **{column.field_id: column.name for column in METADATA_COLUMNS.values()},
        **{column.field_id: column.name for column in (DELETE_FILE_PATH, DELETE_POS, *CHANGE_COLUMNS)},
        PARTITION_FIELD_ID: PARTITION_NAME,
        DELETE_ROW_FIELD_ID: DELETE_ROW_NAME,
    }
)
"""The names of all reserved columns in the specification, by field id."""


def is_reserved_id(field_id: int) -> bool:
    """Return whether a field id is above those of a table's own fields."""
    return field_id > MAX_FIELD_ID


def partition_column(partition_type: StructType) -> NestedField:
    """Return `_partition` for the union of a table's partition types."""
    return NestedField(PARTITION_FIELD_ID, PARTITION_NAME, partition_type, doc="Partition to which a row belongs")


def deleted_row_column(row_type: StructType, *, required: bool = True) -> NestedField:
    """Return `row`, the deleted values in a position delete file; readers pass `required=False`."""
    return NestedField(DELETE_ROW_FIELD_ID, DELETE_ROW_NAME, row_type, required, doc="Deleted row values")


def with_row_lineage(schema: Schema) -> Schema:
    """Return a schema with any missing row lineage columns appended."""
    missing = tuple(column for column in ROW_LINEAGE_COLUMNS if schema.find_field(column.field_id) is None)
    return Schema((*schema.fields, *missing), schema.schema_id, schema.identifier_field_ids, schema.extra)
