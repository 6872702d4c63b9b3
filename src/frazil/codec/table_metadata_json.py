"""Table metadata files: JSON, optionally gzipped. Specification: "Table Metadata and Snapshots" (Appendix C).

Reading decompresses the file, splits the document into its top-level fields, checks the format version first, reads
each field according to that version, records oddities (`spec/odd_metadata.py`) and checks the invariants
(`spec/check_table_metadata.py`).
Fields that v1 writers omitted or wrote in the old form are completed here; v2 and v3 are strict. Snapshots stay
unread (`codec/snapshot_json.py`). Unrecognised fields are kept as `extra` and written back.

Writing follows Iceberg Java in the fields and their order. v1 files carry the deprecated `schema` and
`partition-spec` beside the lists, for old readers. "No current snapshot" is -1 in v1 and v2 and null in v3,
as readers of each version expect ("Assignment of Snapshot IDs and `current-snapshot-id`").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from frazil.codec.gzip_text import MAX_TEXT_BYTES, gunzip_text, gzip_text, is_gzip
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import check_value_count, encode_json, parse_json, split_json_object
from frazil.codec.partition_spec_json import (
    decode_partition_fields,
    decode_partition_spec,
    encode_partition_fields,
    encode_partition_spec,
)
from frazil.codec.schema_json import decode_schema, encode_schema
from frazil.codec.snapshot_json import (
    NO_SNAPSHOT,
    decode_metadata_log_entry,
    decode_ref,
    decode_snapshot_log,
    decode_snapshots,
    encode_metadata_log,
    encode_ref,
    encode_snapshot_log,
    encode_snapshots,
    with_extra,
)
from frazil.codec.sort_order_json import decode_sort_order, encode_sort_order
from frazil.codec.statistics_json import (
    decode_encryption_key,
    decode_partition_statistics_file,
    decode_statistics_file,
    encode_encryption_key,
    encode_partition_statistics_file,
    encode_statistics_file,
)
from frazil.errors import CorruptTableError, InvalidMetadataError, InvalidRequestError, UnsupportedError
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.odd_metadata import with_oddities
from frazil.spec.partitioning import INITIAL_SPEC_ID, UNPARTITIONED, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import INITIAL_SEQUENCE_NUMBER, with_main_branch
from frazil.spec.sorting import UNSORTED, UNSORTED_ORDER_ID, SortOrder
from frazil.spec.table_metadata import INITIAL_ROW_ID, NO_SNAPSHOTS, TableMetadata, without_trailing_slash
from frazil.spec.versions import LATEST, MIN, TABLE_METADATA_FIELDS

HEADING: Final = "Table Metadata Fields"
MIN_NULL_CURRENT_SNAPSHOT_VERSION: Final = 3

Compression: TypeAlias = Literal["none", "gzip"]

# A JSON value takes more memory than its text suggests; see check_value_count.
_MIN_VALUES_LIMIT = 2_000_000
_VALUES_PER_STORED_BYTE = 2

_SNAPSHOTS, _SNAPSHOT_LOG = "snapshots", "snapshot-log"


def decode_table_metadata(data: bytes, *, path: str | None = None, max_bytes: int = MAX_TEXT_BYTES) -> TableMetadata:
    """Return the table metadata in a metadata file.

    `path` is used for errors only; gzip is recognised by the first bytes. A text larger than `max_bytes` is refused.
    """
    try:
        text = _unpack(data, max_bytes)
        parts = split_json_object(text, heading=HEADING)
        version = _decode_version(parts)
        metadata = with_oddities(_decode(parts, version))
        check_table_metadata(metadata, is_read=True)
    except CorruptTableError as problem:
        problem = _with_json_names(problem)
        raise (problem if path is None else problem.at_path(path)) from problem.__cause__
    except UnsupportedError as problem:
        raise UnsupportedError(problem.message, hint=problem.hint, path=path, **problem.context) from None
    return metadata


def encode_table_metadata(metadata: TableMetadata, *, compression: Compression = "none") -> bytes:
    """Return the bytes of a metadata file; metadata that violates the specification is refused."""
    _check_compression(compression)
    check_table_metadata(metadata)
    text = encode_json(_encode(metadata))
    return gzip_text(text) if compression == "gzip" else text


def metadata_file_name(version: int, uuid: str, compression: Compression = "none") -> str:
    """Return the name of a catalog table's metadata file ("Metastore Tables")."""
    _check_compression(compression)
    if version < 0:
        raise InvalidRequestError(f"Cannot name a metadata file of version {version}: versions start at 0")
    return f"{version:05d}-{uuid}{'.gz' if compression == 'gzip' else ''}.metadata.json"


def _check_compression(compression: str) -> None:
    if compression not in ("none", "gzip"):
        raise InvalidRequestError(f"Cannot compress table metadata with {compression!r}: use none or gzip")


# Reading


def _unpack(data: bytes, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise InvalidMetadataError(
            f"Cannot read the document: it has {len(data)} bytes, more than the {max_bytes} allowed",
            hint="If the file is sound, allow larger ones with max_bytes.",
            heading=HEADING,
        )
    if not is_gzip(data):
        return data
    text = gunzip_text(data, max_bytes=max_bytes, heading=HEADING)
    check_value_count(text, max(_MIN_VALUES_LIMIT, _VALUES_PER_STORED_BYTE * len(data)), heading=HEADING)
    return text


def _decode_version(parts: Mapping[str, msgspec.Raw]) -> int:
    field = "format-version"
    heading = "Format Versioning"
    values = {} if field not in parts else {field: parse_json(bytes(parts[field]), where=field, heading=heading)}
    root = JsonObject(values, heading=heading)
    version: int = root.int32(field)
    if version < MIN:
        raise root.fail(f"{version} is not a version; they start at {MIN}", field=field)
    if version > LATEST:
        raise UnsupportedError(
            f"Cannot read a table of format-version {version}: the newest version of this build is {LATEST}",
            hint="Update frazil, or use the engine that wrote the table.",
        )
    return version


def _decode(parts: Mapping[str, msgspec.Raw], version: int) -> TableMetadata:
    large = (_SNAPSHOTS, _SNAPSHOT_LOG)
    root = JsonObject(
        {
            name: None if name in large else parse_json(bytes(text), where=name, heading=HEADING)
            for name, text in parts.items()
        },
        heading=HEADING,
    )
    for name in ("format-version", *large):
        root.raw(name)
    schemas, current_schema_id = _decode_schemas(root, version)
    specs, default_spec_id, last_partition_id = _decode_specs(root, version)
    orders, default_order_id = _decode_orders(root, version)
    current_snapshot_id = _decode_current_snapshot_id(root)
    refs = _decode_refs(root)
    snapshots = parts.get(_SNAPSHOTS)
    snapshot_log = parts.get(_SNAPSHOT_LOG)
    return TableMetadata(
        format_version=version,
        table_uuid=root.string("table-uuid", None) if version == 1 else root.string("table-uuid"),
        location=without_trailing_slash(root.string("location")),
        last_sequence_number=INITIAL_SEQUENCE_NUMBER if version == 1 else root.int64("last-sequence-number"),
        last_updated_ms=root.int64("last-updated-ms"),
        last_column_id=root.int32("last-column-id"),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=last_partition_id,
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=FrozenMap(root.string_map("properties", {})),
        current_snapshot_id=current_snapshot_id,
        snapshots=NO_SNAPSHOTS
        if snapshots is None or _is_null(snapshots)
        else decode_snapshots(snapshots, where=_SNAPSHOTS),
        snapshot_log=() if snapshot_log is None else decode_snapshot_log(snapshot_log, where=_SNAPSHOT_LOG),
        metadata_log=tuple(decode_metadata_log_entry(item) for item in root.objects("metadata-log", ())),
        refs=with_main_branch(refs, current_snapshot_id),
        statistics=tuple(decode_statistics_file(item) for item in root.objects("statistics", ())),
        partition_statistics=tuple(
            decode_partition_statistics_file(item) for item in root.objects("partition-statistics", ())
        ),
        next_row_id=root.int64("next-row-id") if version >= 3 else INITIAL_ROW_ID,
        encryption_keys=tuple(decode_encryption_key(item) for item in root.objects("encryption-keys", ())),
        extra=root.extra(),
    )


def _decode_schemas(root: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    # If there is a list, the single schema repeats the current one for old readers.
    root.raw("schema")
    if version == 1 and "schemas" not in root:
        schema = decode_schema(root.object("schema"))
        root.raw("schemas")
        root.raw("current-schema-id")
        return (schema,), schema.schema_id
    schemas = tuple(decode_schema(item) for item in root.objects("schemas"))
    current_schema_id: int = root.int32("current-schema-id")
    if all(schema.schema_id != current_schema_id for schema in schemas):
        raise root.fail(f"no schema in schemas has the id {current_schema_id}", field="current-schema-id")
    return schemas, current_schema_id


def _decode_specs(root: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int, int]:
    fields = root.raw("partition-spec")
    specs: tuple[PartitionSpec, ...]
    if version == 1 and "partition-specs" not in root:
        if fields is None:
            raise root.fail("the required field is missing", field="partition-spec")
        root.raw("partition-specs")
        root.raw("default-spec-id")
        specs = (decode_partition_fields(fields, spec_id=INITIAL_SPEC_ID, where="partition-spec"),)
        default_spec_id = INITIAL_SPEC_ID
    else:
        specs = tuple(decode_partition_spec(item) for item in root.objects("partition-specs"))
        default_spec_id = root.int32("default-spec-id")
    if version > 1:
        return specs, default_spec_id, root.int32("last-partition-id")
    highest = max((spec.last_assigned_field_id for spec in specs), default=UNPARTITIONED.last_assigned_field_id)
    return specs, default_spec_id, root.int32("last-partition-id", highest)


def _decode_orders(root: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if version == 1 and "sort-orders" not in root:
        root.raw("sort-orders")
        root.raw("default-sort-order-id")
        return (UNSORTED,), UNSORTED_ORDER_ID
    orders = tuple(decode_sort_order(item) for item in root.objects("sort-orders"))
    default_order_id: int = root.int32("default-sort-order-id")
    if default_order_id == UNSORTED_ORDER_ID and all(order.order_id != UNSORTED_ORDER_ID for order in orders):
        # Some writers omit the unsorted order; others refuse a default that is not in the list.
        orders = (UNSORTED, *orders)
    return orders, default_order_id


def _decode_current_snapshot_id(root: JsonObject) -> int | None:
    snapshot_id: int | None = root.int64("current-snapshot-id", None)
    if snapshot_id is None or snapshot_id == NO_SNAPSHOT:
        return None
    if snapshot_id < 0:
        raise root.fail(f"{snapshot_id} is negative", field="current-snapshot-id")
    return snapshot_id


def _decode_refs(root: JsonObject) -> dict[str, Any]:
    if "refs" not in root:
        root.raw("refs")
        return {}
    refs = root.object("refs")
    return {name: decode_ref(refs.object(name)) for name in refs.keys()}  # noqa: SIM118 (not a mapping)


def _is_null(text: msgspec.Raw) -> bool:
    return memoryview(text)[:4].tobytes() == b"null"


_SNAKE_NAMES = re.compile(
    r"\b(?:" + "|".join(sorted(TABLE_METADATA_FIELDS, key=len, reverse=True)) + r"|snapshot_id|sequence_number"
    r"|first_row_id|added_rows|schema_id|spec_id|order_id|key_id)\b"
)


def _with_json_names(problem: CorruptTableError) -> CorruptTableError:
    """Return an error with field names spelled as in the file."""
    message = _SNAKE_NAMES.sub(lambda match: match[0].replace("_", "-"), problem.message)
    if message == problem.message:
        return problem
    renamed = type(problem)(message, hint=problem.hint, **problem.context)
    renamed.__cause__ = problem.__cause__
    return renamed


# Writing


def _encode(metadata: TableMetadata) -> dict[str, Any]:
    version = metadata.format_version
    encoded: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid is not None:
        encoded["table-uuid"] = metadata.table_uuid
    encoded["location"] = metadata.location
    if version > 1:
        encoded["last-sequence-number"] = metadata.last_sequence_number
    encoded["last-updated-ms"] = metadata.last_updated_ms
    encoded["last-column-id"] = metadata.last_column_id
    if version == 1:
        encoded["schema"] = encode_schema(metadata.current_schema)
    encoded["current-schema-id"] = metadata.current_schema_id
    encoded["schemas"] = [encode_schema(schema) for schema in metadata.schemas]
    if version == 1:
        encoded["partition-spec"] = encode_partition_fields(metadata.default_spec)
    encoded["default-spec-id"] = metadata.default_spec_id
    encoded["partition-specs"] = [encode_partition_spec(partition_spec) for partition_spec in metadata.partition_specs]
    encoded["last-partition-id"] = metadata.last_partition_id
    encoded["default-sort-order-id"] = metadata.default_sort_order_id
    encoded["sort-orders"] = [encode_sort_order(sort_order) for sort_order in metadata.sort_orders]
    encoded["properties"] = metadata.properties
    current = metadata.current_snapshot_id
    if current is None and version < MIN_NULL_CURRENT_SNAPSHOT_VERSION:
        current = NO_SNAPSHOT
    encoded["current-snapshot-id"] = current
    if version >= 3:
        encoded["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys:
        encoded["encryption-keys"] = [
            encode_encryption_key(encryption_key) for encryption_key in metadata.encryption_keys
        ]
    encoded["refs"] = {name: encode_ref(ref) for name, ref in metadata.refs.items()}
    encoded[_SNAPSHOTS] = encode_snapshots(metadata.snapshots, format_version=version)
    encoded["statistics"] = [encode_statistics_file(statistics_file) for statistics_file in metadata.statistics]
    encoded["partition-statistics"] = [
        encode_partition_statistics_file(statistics_file) for statistics_file in metadata.partition_statistics
    ]
    encoded[_SNAPSHOT_LOG] = encode_snapshot_log(metadata.snapshot_log)
    encoded["metadata-log"] = encode_metadata_log(metadata.metadata_log)
    return with_extra(encoded, metadata.extra)
