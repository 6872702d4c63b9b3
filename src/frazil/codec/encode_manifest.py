"""Encoding of manifest files. Specification: "Manifests", "Manifest Entry Fields", "Data File Fields".

A commit passes entries, as columns or as values, and gets the bytes of a manifest and its line for the manifest list.
The schema, field ids, key-value metadata and defaults are those of the requested format version. Fields that a version
lacks are omitted; entries that it cannot represent (delete files in v1, deletion vectors before v3) are refused.

Added entries have no file sequence number and, before they are committed, no data sequence number or first row id:
readers inherit them, so that a manifest stays valid when a commit is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.avro_container import AvroOrigin
from frazil.codec.avro_encode import encode_avro
from frazil.codec.avro_schema import Leaf, flatten, parse_schema
from frazil.codec.avro_types import encode_avro_schema
from frazil.codec.json_text import encode_json
from frazil.codec.manifest_fields import (
    BLOCK_SIZE_IN_BYTES,
    COLUMNS,
    PARTITION_ID,
    manifest_arrow_schema,
    manifest_entry_type,
)
from frazil.codec.partition_arrow import array_of, to_avro_form
from frazil.codec.partition_spec_json import encode_partition_fields
from frazil.codec.partition_summary import summarize_partitions
from frazil.codec.schema_json import encode_schema
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.data_file import METRIC_MAPS, FileContent, FileFormat
from frazil.spec.manifest import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.types import StructType
from frazil.spec.versions import check_version

HEADING = "Manifest Entry Fields"
_ORIGIN = AvroOrigin("manifest", HEADING)
_ENTRY_VALUES = ("status", "snapshot_id", "sequence_number", "file_sequence_number")


@dataclass(frozen=True, slots=True)
class EncodedManifest:
    """The bytes of a manifest, and its line for a manifest list."""

    data: bytes
    manifest: ManifestFile


def encode_manifest(
    entries: pa.Table | Sequence[ManifestEntry],
    *,
    path: str,
    spec: PartitionSpec,
    schema: Schema,
    format_version: int,
    snapshot_id: int | None,
    content: ManifestContent = ManifestContent.DATA,
    other_schemas: Iterable[Schema] = (),
    partition_type: StructType | None = None,
    codec: str = "gzip",
    level: int | None = None,
    sync_marker: bytes | None = None,
    threads: int = 1,
) -> EncodedManifest:
    """Encode entries as a manifest that will be written to `path`.

    Entries are values, or columns with the names and types of `codec/manifest_fields.py`; missing columns are null.
    `snapshot_id` is the commit's, or None if it is to be inherited. `other_schemas` supply the types of source
    columns that the schema has dropped; `partition_type` overrides all schemas. `codec` and `level` are the values
    of the properties `write.manifest.compression-codec` and `-level`.
    """
    check_version(format_version)
    if partition_type is None:
        partition_type = spec.partition_type(schema, other_schemas=other_schemas)
    table = entries if isinstance(entries, pa.Table) else entries_to_table(entries, partition_type)
    columns = _prepare(table, partition_type, format_version, content, snapshot_id)
    avro_schema, leaves = _avro_form(partition_type, format_version)
    arrays = _leaf_arrays([leaf.path for leaf in leaves], columns, partition_type)
    metadata = {
        "schema": encode_json(encode_schema(schema)).decode(),
        "schema-id": str(schema.schema_id),
        "partition-spec": encode_json(encode_partition_fields(spec)).decode(),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["content"] = content.label
    data = encode_avro(
        avro_schema,
        metadata,
        [leaf.avro_type for leaf in leaves],
        arrays,
        codec=codec,
        level=level,
        sync_marker=sync_marker,
        threads=threads,
    )
    return EncodedManifest(data, _summarize(columns, path, len(data), spec, content, snapshot_id, partition_type))


@lru_cache(maxsize=64)
def _avro_form(partition_type: StructType, format_version: int) -> tuple[Mapping[str, object], tuple[Leaf, ...]]:
    """Return the manifest schema and its leaves, cached because they dominate the cost of small manifests."""
    schema = encode_avro_schema(manifest_entry_type(partition_type, format_version), "manifest_entry")
    return schema, tuple(flatten(parse_schema(encode_json(schema), _ORIGIN), _ORIGIN))


def entries_to_table(entries: Sequence[ManifestEntry], partition_type: StructType) -> pa.Table:
    """Return entries as columns."""
    schema = manifest_arrow_schema(partition_type)
    columns: list[pa.Array] = []
    files = [entry.data_file for entry in entries]
    for field in schema:
        values = list(map(attrgetter(field.name), entries if field.name in _ENTRY_VALUES else files))
        if field.name == "partition":
            columns.append(_partition_array(values, partition_type, field.type))
            continue
        try:
            is_map = field.name in METRIC_MAPS
            columns.append(_pairs_array(values, field.type) if is_map else pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaMismatchError(
                f"Cannot write field {field.name!r} of a manifest: {str(error)[:120]}", heading=HEADING
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _pairs_array(maps: list[Mapping[int, Any] | None], target: pa.DataType) -> pa.Array:
    """Return maps as lists of pairs, without creating an object for each pair."""
    offsets = np.fromiter(accumulate((len(pairs or ()) for pairs in maps), initial=0), np.int32, len(maps) + 1)
    pair = target.value_type
    keys = pa.array([key for pairs in maps if pairs is not None for key in pairs], pair.field(0).type)
    values = pa.array([value for pairs in maps if pairs is not None for value in pairs.values()], pair.field(1).type)
    pairs = pa.Array.from_buffers(pair, len(keys), [None], children=[keys, values])
    mask = pa.array([pairs is None for pairs in maps], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=target, mask=mask)


def _partition_array(values: list[tuple[Any, ...]], partition_type: StructType, target: pa.DataType) -> pa.Array:
    width = len(partition_type.fields)
    for value in values:
        if len(value) != width:
            raise SchemaMismatchError(
                f"Cannot write a manifest: a file has {len(value)} partition values, its spec {width} fields",
                heading=HEADING,
            )
    children = [
        array_of([value[index] for value in values], field.field_type)
        for index, field in enumerate(partition_type.fields)
    ]
    return pa.Array.from_buffers(target, len(values), [None], children=children)


def _prepare(
    table: pa.Table,
    partition_type: StructType,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int | None,
) -> dict[str, pa.Array]:
    """Return all columns, one chunk each, completed with the writer's defaults and checked."""
    by_name = dict(zip(table.column_names, table.columns, strict=True))
    columns = {
        name: _column(by_name.get(name), name, arrow_type, table.num_rows)
        for name, arrow_type in _types(partition_type)
    }
    columns["content"] = pc.fill_null(columns["content"], FileContent.DATA.value)
    if format_version == 1 and snapshot_id is not None:
        columns["snapshot_id"] = pc.fill_null(columns["snapshot_id"], snapshot_id)
    is_added = pc.equal(columns["status"], EntryStatus.ADDED.value)
    is_data = pc.equal(columns["content"], FileContent.DATA.value)
    keeps_row_id = pc.and_(pc.invert(is_added), is_data)
    columns["first_row_id"] = pc.if_else(keeps_row_id, columns["first_row_id"], pa.scalar(None, pa.int64()))
    _check(columns, is_added, format_version, content, snapshot_id)
    # Iceberg Java writes upper case, and some readers compare with it.
    columns["file_format"] = pc.utf8_upper(columns["file_format"])
    return columns


@lru_cache(maxsize=64)
def _types(partition_type: StructType) -> tuple[tuple[str, pa.DataType], ...]:
    return tuple((field.name, field.type) for field in manifest_arrow_schema(partition_type))


def _column(column: pa.ChunkedArray | None, name: str, arrow_type: pa.DataType, rows: int) -> pa.Array:
    if column is None:
        if name == "partition":
            if arrow_type.num_fields:
                raise SchemaMismatchError("Cannot write a manifest: the column 'partition' is missing", heading=HEADING)
            return pa.Array.from_buffers(arrow_type, rows, [None], children=[])
        return pa.nulls(rows, arrow_type)
    try:
        if column.type != arrow_type:
            column = column.cast(arrow_type)
        if column.num_chunks == 1 and column.chunk(0).offset == 0:
            return column.chunk(0)
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
        return array
    except pa.ArrowException as error:
        raise SchemaMismatchError(
            f"Cannot write column {name!r} of a manifest: {column.type} is not {arrow_type}", heading=HEADING
        ) from error


def _check(
    columns: Mapping[str, pa.Array],
    is_added: pa.Array,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int | None,
) -> None:
    """Refuse entries that the format version cannot hold, and new files with missing fields."""

    def refuse(mask: pa.Array, reason: str) -> None:
        if mask.true_count:
            file = columns["file_path"][pc.index(mask, True).as_py()].as_py()
            raise InvalidRequestError(f"Cannot write file {file!r} to a manifest: {reason}", heading=HEADING)

    status, kinds, formats = columns["status"], columns["content"], columns["file_format"]
    for name in ("status", "file_path", "file_format", "record_count", "file_size_in_bytes"):
        if columns[name].null_count:
            refuse(pc.is_null(columns[name]), f"it has no {name}")
    refuse(pc.or_(pc.less(status, 0), pc.greater(status, 2)), "its status is not one of 0, 1 and 2")
    refuse(pc.invert(pc.is_in(pc.utf8_lower(formats), pa.array(list(FileFormat)))), "its format is not supported")
    if content is ManifestContent.DATA:
        refuse(pc.not_equal(kinds, FileContent.DATA.value), "a data manifest holds data files only")
    elif format_version == 1:
        raise InvalidRequestError(
            "Cannot write a delete manifest: tables of format version 1 have none", heading=HEADING
        )
    else:
        refuse(
            pc.or_(pc.less(kinds, FileContent.POSITION_DELETES.value), pc.greater(kinds, 2)),
            "a delete manifest holds delete files only",
        )
    is_vector = pc.equal(pc.utf8_lower(formats), FileFormat.PUFFIN.value)
    if format_version < 3:
        refuse(is_vector, f"tables of format version {format_version} have no deletion vectors")
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        refuse(pc.and_(is_vector, pc.is_null(columns[name])), f"a deletion vector needs {name}")
    for name in ("record_count", "file_size_in_bytes"):
        refuse(pc.and_(is_added, pc.less(columns[name], 0)), f"its {name} is negative")
    is_equality = pc.equal(kinds, FileContent.EQUALITY_DELETES.value)
    refuse(pc.and_(is_equality, pc.is_null(columns["equality_ids"])), "equality deletes need equality_ids")
    if format_version == 1:
        refuse(pc.is_null(columns["snapshot_id"]), "it has no snapshot_id")
    else:
        _check_inheritance(columns, is_added, snapshot_id, refuse)


def _check_inheritance(
    columns: Mapping[str, pa.Array], is_added: pa.Array, snapshot_id: int | None, refuse: Any
) -> None:
    """Refuse entries that would inherit the sequence number of another snapshot."""
    unassigned = pc.is_null(columns["sequence_number"])
    refuse(pc.and_(unassigned, pc.invert(is_added)), "only an added file may be without a sequence number")
    ids = columns["snapshot_id"]
    is_foreign = pc.is_valid(ids) if snapshot_id is None else pc.not_equal(ids, snapshot_id)
    refuse(pc.and_(unassigned, is_foreign), "it has no sequence number, and another snapshot added it")


def _leaf_arrays(
    paths: list[tuple[int | None, ...]], columns: Mapping[str, pa.Array], partition_type: StructType
) -> list[pa.Array]:
    """Return the array of each leaf of the schema, in its stored Avro form."""
    by_id = {column.field_id: name for name, column in COLUMNS.items()}
    partition = columns["partition"]
    positions = {field.field_id: index for index, field in enumerate(partition_type.fields)}
    rows = len(columns["status"])
    arrays: list[pa.Array] = []
    for path in paths:
        field_id = path[-1]
        if len(path) == 3 and path[1] == PARTITION_ID and field_id is not None:
            position = positions[field_id]
            arrays.append(to_avro_form(partition.field(position), partition_type.fields[position].field_type))
        elif field_id == PARTITION_ID:
            arrays.append(pa.nulls(rows))
        elif field_id in by_id:
            arrays.append(columns[by_id[field_id]])
        else:
            arrays.append(pa.array(np.full(rows, BLOCK_SIZE_IN_BYTES)))
    return arrays


def _summarize(
    columns: Mapping[str, pa.Array],
    path: str,
    length: int,
    spec: PartitionSpec,
    content: ManifestContent,
    snapshot_id: int | None,
    partition_type: StructType,
) -> ManifestFile:
    status = columns["status"].to_numpy()
    rows = np.maximum(columns["record_count"].to_numpy(), 0)
    is_live = status != EntryStatus.DELETED.value
    live_numbers = columns["sequence_number"].filter(pa.array(is_live))
    lowest = pc.min(live_numbers).as_py()
    files: dict[EntryStatus, int] = {
        entry_status: int(np.count_nonzero(status == entry_status.value)) for entry_status in EntryStatus
    }
    row_counts: dict[EntryStatus, int] = {
        entry_status: int(rows[status == entry_status.value].sum()) for entry_status in EntryStatus
    }
    return ManifestFile(
        path,
        length,
        spec.spec_id,
        snapshot_id,
        content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number=UNASSIGNED_SEQUENCE_NUMBER if lowest is None else lowest,
        added_files_count=files[EntryStatus.ADDED],
        existing_files_count=files[EntryStatus.EXISTING],
        deleted_files_count=files[EntryStatus.DELETED],
        added_rows_count=row_counts[EntryStatus.ADDED],
        existing_rows_count=row_counts[EntryStatus.EXISTING],
        deleted_rows_count=row_counts[EntryStatus.DELETED],
        partitions=summarize_partitions(columns["partition"], partition_type),
    )
