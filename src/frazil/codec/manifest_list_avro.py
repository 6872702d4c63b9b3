"""Manifest lists: the manifests of a snapshot. Specification: "Manifest Lists", "First Row ID Assignment".

A manifest list is read between a snapshot and its manifests, and written as the last file before the table metadata.
Writing gives new manifests the values that are unknown before the commit: the snapshot's sequence number and, in v3,
the first row id, counted from the snapshot's over all manifests that have none. A retried commit writes a new list,
with new numbers, over the same manifests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.avro_columns import FieldReader
from frazil.codec.avro_container import DEFAULT_LIMITS, AvroLimits, AvroOrigin, read_header
from frazil.codec.avro_encode import encode_avro
from frazil.codec.avro_schema import Leaf, flatten, parse_schema
from frazil.codec.avro_types import encode_avro_schema
from frazil.codec.json_text import encode_json
from frazil.codec.manifest_fields import LIST_ARROW_TYPES, MANIFEST_FILE, manifest_file_type
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec import versions
from frazil.spec.manifest import UNASSIGNED_SEQUENCE_NUMBER, FieldSummary, ManifestContent, ManifestFile
from frazil.spec.versions import check_version

HEADING = "Manifest Lists"
_REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
_DEFAULTS = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
_COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
_NOT_NEGATIVE = ("manifest_length", "partition_spec_id", "sequence_number", "min_sequence_number", "first_row_id")


def decode_manifest_list(
    data: bytes, *, path: str | None = None, limits: AvroLimits = DEFAULT_LIMITS, threads: int = 1
) -> list[ManifestFile]:
    """Decode a manifest list into its manifests, in order."""
    table = decode_manifest_list_columns(data, path=path, limits=limits, threads=threads)
    return manifests_of(table)


def decode_manifest_list_columns(
    data: bytes, *, path: str | None = None, limits: AvroLimits = DEFAULT_LIMITS, threads: int = 1
) -> pa.Table:
    """Decode a manifest list into columns under the specification's names, one row for each manifest."""
    origin = AvroOrigin("manifest list", HEADING, path)
    header = read_header(data, origin, limits)
    version = header.text("format-version")
    if version is not None and version.isascii() and version.isdigit() and int(version[:9]) > versions.LATEST:
        raise origin.unsupported(f"it is of format version {version[:9]}, and {versions.LATEST} is the latest known")
    reader = FieldReader(data, header, origin)
    sources = {field.name: reader.find((field.field_id,)) for field in MANIFEST_FILE}
    for name in _REQUIRED:
        if sources[name] is None:
            raise origin.fail(f"its schema has no field {name!r}")
    table = reader.read([source for source in sources.values() if source is not None], limits=limits, threads=threads)
    columns = {}
    for field in MANIFEST_FILE:
        source, target = sources[field.name], LIST_ARROW_TYPES[field.name]
        columns[field.name] = (
            pa.chunked_array([pa.nulls(table.num_rows, target)])
            if source is None
            else reader.column(table, source, field.name, field.field_type, target)
        )
    for name, default in _DEFAULTS.items():
        columns[name] = pc.fill_null(columns[name], default)
    is_data = pc.equal(columns["content"], ManifestContent.DATA.value)
    columns["first_row_id"] = pc.if_else(is_data, columns["first_row_id"], pa.scalar(None, pa.int64()))
    _check(columns, origin)
    return pa.table(columns)


def _check(columns: dict[str, pa.ChunkedArray], origin: AvroOrigin) -> None:
    for name in _REQUIRED:
        if columns[name].null_count:
            raise origin.fail(f"field {name!r} is null in {columns[name].null_count} manifests")
    highest = pc.max(columns["content"]).as_py()
    lowest = pc.min(columns["content"]).as_py()
    if highest is not None and not 0 <= lowest <= highest <= 1:
        raise origin.fail(f"field 'content' is {lowest if lowest < 0 else highest}")
    for name in (*_NOT_NEGATIVE, *_COUNTS):
        lowest = pc.min(columns[name]).as_py()
        if lowest is not None and lowest < 0:
            raise origin.fail(f"field {name!r} is {lowest}")
    if pc.min(pc.binary_length(columns["manifest_path"])).as_py() == 0:
        raise origin.fail("field 'manifest_path' is empty")


def manifests_of(table: pa.Table) -> list[ManifestFile]:
    """Return the manifests of a list's columns as values."""
    names = [field.name for field in MANIFEST_FILE]
    columns = [table.column(name).to_pylist() for name in names]
    index = names.index("partitions")
    columns[index] = [
        None if summaries is None else tuple(FieldSummary(**summary) for summary in summaries)
        for summaries in columns[index]
    ]
    return [ManifestFile(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class EncodedManifestList:
    """The bytes of a manifest list, its manifests as written, and the next snapshot's first row id.

    `next_row_id` is None before v3. Its difference to the snapshot's first row id is the snapshot's `added-rows`.
    """

    data: bytes
    manifests: tuple[ManifestFile, ...]
    next_row_id: int | None


def encode_manifest_list(
    manifests: Sequence[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
    codec: str = "gzip",
    level: int | None = None,
    sync_marker: bytes | None = None,
) -> EncodedManifestList:
    """Encode the manifests of a snapshot, assigning the missing numbers of new ones.

    `sequence_number` is the snapshot's, 0 in v1. `first_row_id` is the snapshot's, v3 only: the table's
    `next-row-id` when the commit was prepared.
    """
    check_version(format_version)
    if format_version == 1 and sequence_number != 0:
        raise _refusal(f"the sequence number of a snapshot of format version 1 is 0, not {sequence_number}")
    if (format_version >= 3) != (first_row_id is not None):
        raise _refusal("a first row id is required from format version 3 on, and not allowed before")
    assigned = tuple(
        _assign_sequence_number(manifest, snapshot_id, sequence_number, format_version) for manifest in manifests
    )
    next_row_id = first_row_id
    if next_row_id is not None:
        assigned, next_row_id = assign_first_row_ids(assigned, next_row_id)
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    if first_row_id is not None:
        metadata["first-row-id"] = str(first_row_id)
    metadata["format-version"] = str(format_version)

    fields = manifest_file_type(format_version)
    schema, leaves = _avro_form(format_version)
    data = encode_avro(
        schema,
        metadata,
        [leaf.avro_type for leaf in leaves],
        [_column(assigned, field.name, is_required=field.required) for field in fields.fields],
        codec=codec,
        level=level,
        sync_marker=sync_marker,
    )
    return EncodedManifestList(data, assigned, next_row_id)


@cache
def _avro_form(format_version: int) -> tuple[Mapping[str, object], tuple[Leaf, ...]]:
    """Return the schema of manifest lists and its leaves, cached since every commit needs them."""
    schema = encode_avro_schema(manifest_file_type(format_version), "manifest_file")
    origin = AvroOrigin("manifest list", HEADING)
    return schema, tuple(flatten(parse_schema(encode_json(schema), origin), origin))


def _assign_sequence_number(
    manifest: ManifestFile, snapshot_id: int, sequence_number: int, format_version: int
) -> ManifestFile:
    """Return a manifest with missing numbers assigned; only manifests of this commit may lack them."""
    if manifest.added_snapshot_id is None:
        manifest = replace(manifest, added_snapshot_id=snapshot_id)
    if format_version == 1:
        if manifest.content is not ManifestContent.DATA:
            raise _refusal(f"tables of format version 1 have no delete manifests ({manifest.manifest_path})")
        return replace(manifest, sequence_number=0, min_sequence_number=0, first_row_id=None)
    is_own = manifest.added_snapshot_id == snapshot_id
    if not is_own and UNASSIGNED_SEQUENCE_NUMBER in (manifest.sequence_number, manifest.min_sequence_number):
        raise _refusal(
            f"manifest {manifest.manifest_path} of snapshot {manifest.added_snapshot_id} has no sequence number, "
            f"and snapshot {snapshot_id} did not add it"
        )
    if manifest.sequence_number == UNASSIGNED_SEQUENCE_NUMBER:
        manifest = replace(manifest, sequence_number=sequence_number)
    if manifest.min_sequence_number == UNASSIGNED_SEQUENCE_NUMBER:
        manifest = replace(manifest, min_sequence_number=sequence_number)
    for name in _COUNTS:
        if getattr(manifest, name) is None:
            raise InvalidRequestError(
                f"Cannot write a manifest list: manifest {manifest.manifest_path} has no {name}",
                hint="Only version 1 left counts out. Rewrite the manifest to count its files.",
                heading=HEADING,
            )
    return manifest if format_version >= 3 else replace(manifest, first_row_id=None)


def assign_first_row_ids(manifests: Sequence[ManifestFile], first_row_id: int) -> tuple[tuple[ManifestFile, ...], int]:
    """Return manifests with row ids, and the first unused id. Specification: "First Row ID Assignment".

    Data manifests that have a first row id keep it; delete manifests have none. A manifest reserves ids for its
    existing and added rows, since existing files of an upgraded table may have no row id yet.
    """
    assigned = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            assigned.append(replace(manifest, first_row_id=first_row_id))
            first_row_id += (manifest.existing_rows_count or 0) + (manifest.added_rows_count or 0)
        else:
            assigned.append(manifest)
    return tuple(assigned), first_row_id


def _column(manifests: Sequence[ManifestFile], name: str, *, is_required: bool) -> pa.Array:
    values = [getattr(manifest, name) for manifest in manifests]
    if name == "partitions":
        values = [
            None
            if value is None
            else [
                {
                    "contains_null": summary.contains_null,
                    "contains_nan": summary.contains_nan,
                    "lower_bound": summary.lower_bound,
                    "upper_bound": summary.upper_bound,
                }
                for summary in value
            ]
            for value in values
        ]
    if is_required and any(value is None for value in values):
        raise _refusal(f"a manifest has no {name}")
    try:
        return pa.array(values, LIST_ARROW_TYPES[name])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatchError(
            f"Cannot write field {name!r} of a manifest list: {str(error)[:120]}", heading=HEADING
        ) from error


def _refusal(reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot write a manifest list: {reason}", heading=HEADING)
