"""The fields of manifests and manifest lists: ids, types and format versions.

Specification: "Manifest Entry Fields", "Data File Fields", "Manifest Lists". Which fields a version requires, allows
or omits is listed in `spec/versions.py`; the order of fields is that of Iceberg Java.

A manifest as columns has one column for each field of an entry and of its data file, under the
specification's names and in this module's Arrow types; `partition` is a struct of the spec's fields.
Metrics that map a column id to a value are lists of `key` and `value` pairs, as in the file: one
flat array of ids and one of values, which pruning compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from frazil.codec.partition_arrow import arrow_type_of
from frazil.spec import types as ft
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.versions import (
    DATA_FILE_FIELDS,
    MANIFEST_ENTRY_FIELDS,
    MANIFEST_FILE_FIELDS,
    FieldRules,
    requirement_of,
)

DATA_FILE_ID = 2
PARTITION_ID = 102
BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""The value of `block_size_in_bytes`, which v1 requires and readers ignore."""


def _counts(key_id: int, value_id: int, data_type: ft.Type = ft.LONG) -> ft.MapType:
    return ft.MapType(key_id, ft.INT, value_id, data_type, value_required=True)


def _field(field_id: int, name: str, data_type: ft.Type, doc: str | None = None) -> ft.NestedField:
    return ft.NestedField(field_id, name, data_type, required=False, doc=doc)


ENTRY_FIELDS: tuple[ft.NestedField, ...] = (
    _field(0, "status", ft.INT),
    _field(1, "snapshot_id", ft.LONG),
    _field(3, "sequence_number", ft.LONG),
    _field(4, "file_sequence_number", ft.LONG),
)
"""The fields of an entry other than its data file."""

DATA_FILE: tuple[ft.NestedField, ...] = (
    _field(134, "content", ft.INT, "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"),
    _field(100, "file_path", ft.STRING, "Location URI with FS scheme"),
    _field(101, "file_format", ft.STRING, "File format name: avro, orc, parquet, or puffin"),
    _field(PARTITION_ID, "partition", ft.StructType(), "Partition data tuple, schema based on the partition spec"),
    _field(103, "record_count", ft.LONG, "Number of records in the file"),
    _field(104, "file_size_in_bytes", ft.LONG, "Total file size in bytes"),
    _field(105, "block_size_in_bytes", ft.LONG),
    _field(108, "column_sizes", _counts(117, 118), "Map of column id to total size on disk"),
    _field(109, "value_counts", _counts(119, 120), "Map of column id to total count, including null and NaN"),
    _field(110, "null_value_counts", _counts(121, 122), "Map of column id to null value count"),
    _field(137, "nan_value_counts", _counts(138, 139), "Map of column id to number of NaN values in the column"),
    _field(125, "lower_bounds", _counts(126, 127, ft.BINARY), "Map of column id to lower bound"),
    _field(128, "upper_bounds", _counts(129, 130, ft.BINARY), "Map of column id to upper bound"),
    _field(131, "key_metadata", ft.BINARY, "Encryption key metadata blob"),
    _field(132, "split_offsets", ft.ListType(133, ft.LONG, element_required=True), "Splittable offsets"),
    _field(135, "equality_ids", ft.ListType(136, ft.INT, element_required=True), "Equality comparison field IDs"),
    _field(140, "sort_order_id", ft.INT, "Sort order ID"),
    _field(142, "first_row_id", ft.LONG, "The first row ID assigned to the first row in the data file"),
    _field(
        143, "referenced_data_file", ft.STRING, "Location URI with FS scheme of the data file that all deletes refer to"
    ),
    _field(144, "content_offset", ft.LONG, "The offset in the file where the content starts"),
    _field(145, "content_size_in_bytes", ft.LONG, "The length of referenced content stored in the file"),
)
"""The fields of a data file; `partition` has no fields of its own here."""

FIELD_SUMMARY = ft.StructType(
    (
        ft.NestedField(
            509, "contains_null", ft.BOOLEAN, required=True, doc="True if any file has a null partition value"
        ),
        ft.NestedField(518, "contains_nan", ft.BOOLEAN, doc="True if any file has a nan partition value"),
        ft.NestedField(510, "lower_bound", ft.BINARY, doc="Partition lower bound for all files"),
        ft.NestedField(511, "upper_bound", ft.BINARY, doc="Partition upper bound for all files"),
    )
)

MANIFEST_FILE: tuple[ft.NestedField, ...] = (
    _field(500, "manifest_path", ft.STRING, "Location URI with FS scheme"),
    _field(501, "manifest_length", ft.LONG, "Total file size in bytes"),
    _field(502, "partition_spec_id", ft.INT, "Spec ID used to write"),
    _field(517, "content", ft.INT, "Contents of the manifest: 0=data, 1=deletes"),
    _field(515, "sequence_number", ft.LONG, "Sequence number when the manifest was added"),
    _field(516, "min_sequence_number", ft.LONG, "Lowest sequence number in the manifest"),
    _field(503, "added_snapshot_id", ft.LONG, "Snapshot ID that added the manifest"),
    _field(504, "added_files_count", ft.INT, "Added entry count"),
    _field(505, "existing_files_count", ft.INT, "Existing entry count"),
    _field(506, "deleted_files_count", ft.INT, "Deleted entry count"),
    _field(512, "added_rows_count", ft.LONG, "Added rows count"),
    _field(513, "existing_rows_count", ft.LONG, "Existing rows count"),
    _field(514, "deleted_rows_count", ft.LONG, "Deleted rows count"),
    _field(507, "partitions", ft.ListType(508, FIELD_SUMMARY, element_required=True), "Summary for each partition"),
    _field(519, "key_metadata", ft.BINARY, "Encryption key metadata blob"),
    _field(520, "first_row_id", ft.LONG, "Starting row ID to assign to new rows in ADDED data files"),
)
"""The fields of a manifest list."""


def _written(fields: tuple[ft.NestedField, ...], rules: FieldRules, version: int) -> tuple[ft.NestedField, ...]:
    """Return the fields that a version writes, each required or optional accordingly."""
    chosen = []
    for field in fields:
        requirement = requirement_of(rules, field.name, version)
        if requirement != "omitted":
            chosen.append(replace(field, required=requirement == "required"))
    return tuple(chosen)


def manifest_entry_type(partition_type: ft.StructType, version: int) -> ft.StructType:
    """Return the struct type of manifest entries in a format version."""
    data_file = ft.StructType(
        tuple(
            replace(field, field_type=partition_type) if field.field_id == PARTITION_ID else field
            for field in _written(DATA_FILE, DATA_FILE_FIELDS, version)
        )
    )
    entry = _written(ENTRY_FIELDS, MANIFEST_ENTRY_FIELDS, version)
    return ft.StructType((*entry, ft.NestedField(DATA_FILE_ID, "data_file", data_file, required=True)))


def manifest_file_type(version: int) -> ft.StructType:
    """Return the struct type of manifest list entries in a format version."""
    return ft.StructType(_written(MANIFEST_FILE, MANIFEST_FILE_FIELDS, version))


def _arrow(data_type: ft.Type) -> pa.DataType:
    if isinstance(data_type, ft.MapType):
        return pa.list_(pa.struct([("key", _arrow(data_type.key_type)), ("value", _arrow(data_type.value_type))]))
    if isinstance(data_type, ft.ListType):
        return pa.list_(_arrow(data_type.element_type))
    if isinstance(data_type, ft.StructType):
        return pa.struct([(field.name, _arrow(field.field_type)) for field in data_type.fields])
    return arrow_type_of(data_type)


COLUMNS: Mapping[str, ft.NestedField] = FrozenMap(
    {field.name: field for field in (*ENTRY_FIELDS, *DATA_FILE) if field.name != "block_size_in_bytes"}
)
"""The columns of a manifest, in order."""

PATHS: Mapping[str, tuple[int, ...]] = FrozenMap(
    {
        name: (column.field_id,) if column in ENTRY_FIELDS else (DATA_FILE_ID, column.field_id)
        for name, column in COLUMNS.items()
    }
)
"""The path of ids to each column in a manifest's schema."""

ARROW_TYPES: Mapping[str, pa.DataType] = FrozenMap(
    {name: _arrow(column.field_type) for name, column in COLUMNS.items()}
)
"""The Arrow type of each column; `partition` depends on the spec, see `partition_arrow_type`."""

LIST_ARROW_TYPES: Mapping[str, pa.DataType] = FrozenMap(
    {field.name: _arrow(field.field_type) for field in MANIFEST_FILE}
)
"""The Arrow type of each column of a manifest list."""


def partition_arrow_type(partition_type: ft.StructType) -> pa.DataType:
    """Return the Arrow type of the `partition` column for a partition type."""
    return pa.struct([(field.name, arrow_type_of(field.field_type)) for field in partition_type.fields])


def manifest_arrow_schema(partition_type: ft.StructType) -> pa.Schema:
    """Return the Arrow schema of a manifest as columns."""
    types: dict[str, Any] = {**ARROW_TYPES, "partition": partition_arrow_type(partition_type)}
    return pa.schema([(name, types[name]) for name in COLUMNS])
