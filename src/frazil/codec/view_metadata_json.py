"""View metadata files: JSON, plain or gzipped. Specification: "View Metadata" (view specification).

Reading is strict: a missing or ill-typed field, an unlisted current version or schema, and two queries for one
dialect are errors that name the field. Unrecognised fields and representations of other types are kept and written
back. Views are small, so the limits are too.
"""

from __future__ import annotations

from typing import Any

from frazil.codec.gzip_text import gunzip_text, gzip_text, is_gzip
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import check_value_count, encode_json, parse_json
from frazil.codec.schema_json import decode_schema, encode_schema
from frazil.errors import CorruptTableError, InvalidMetadataError, InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.view_metadata import (
    VIEW_FORMAT_VERSION,
    Representation,
    SqlRepresentation,
    UnknownRepresentation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)

HEADING = "View Metadata"
MAX_VIEW_BYTES = 64 << 20
"""The largest decompressed size of a view's metadata."""
MAX_VIEW_VALUES = 2_000_000
"""The largest number of JSON values in it."""

_SQL = "sql"
_CURRENT_SCHEMA_ID = "current-schema-id"


def decode_view_metadata(data: bytes, *, path: str | None = None) -> ViewMetadata:
    """Return the view in a metadata file, gzipped or not; `path` is used for errors only."""
    try:
        if len(data) > MAX_VIEW_BYTES:
            raise InvalidMetadataError(
                f"Cannot read the document: its {len(data)} bytes are more than the {MAX_VIEW_BYTES} of a view",
                heading=HEADING,
            )
        text = gunzip_text(data, max_bytes=MAX_VIEW_BYTES, heading=HEADING) if is_gzip(data) else data
        check_value_count(text, MAX_VIEW_VALUES, heading=HEADING)
        return decode_view_object(JsonObject(parse_json(text, heading=HEADING), heading=HEADING))
    except CorruptTableError as error:
        raise (error if path is None else error.at_path(path)) from error.__cause__
    except UnsupportedError as error:
        raise UnsupportedError(error.message, hint=error.hint, **({"path": path} | error.context)) from None


def encode_view_metadata(metadata: ViewMetadata, *, compress: bool) -> bytes:
    """Return the metadata file of a view, gzipped if `compress` is set."""
    text = encode_json(encode_view_object(metadata))
    return gzip_text(text) if compress else text


def decode_view_object(obj: JsonObject) -> ViewMetadata:
    """Return the view of a JSON object."""
    format_version = obj.int32("format-version")
    if format_version > VIEW_FORMAT_VERSION:
        raise UnsupportedError(
            f"Cannot read the view: its format version is {format_version}, and the newest version of this build is "
            f"{VIEW_FORMAT_VERSION}",
            hint="Update frazil, or use the engine that wrote the view.",
            heading=HEADING,
        )
    if format_version < VIEW_FORMAT_VERSION:
        raise obj.fail(f"it is {format_version}, and versions start at {VIEW_FORMAT_VERSION}", field="format-version")
    view_uuid = obj.string("view-uuid")
    location = obj.string("location")
    schemas = tuple(decode_schema(obj_item) for obj_item in obj.objects("schemas"))
    schema_ids = {schema.schema_id for schema in schemas}
    current_version_id = obj.int32("current-version-id")
    versions: list[ViewVersion] = []
    for item in obj.objects("versions"):
        version = decode_view_version(item)
        if version.schema_id not in schema_ids:
            raise item.fail(f"no schema has the id {version.schema_id}", field="schema-id")
        versions.append(version)
    if all(version.version_id != current_version_id for version in versions):
        raise obj.fail(f"no version has the id {current_version_id}", field="current-version-id")
    try:
        return ViewMetadata(
            view_uuid=view_uuid,
            format_version=format_version,
            location=location,
            schemas=schemas,
            current_version_id=current_version_id,
            versions=tuple(versions),
            version_log=tuple(_decode_log_entry(obj_item) for obj_item in obj.objects("version-log")),
            properties=FrozenMap(obj.string_map("properties", {})),
            extra=obj.extra(),
        )
    except InvalidRequestError as problem:
        raise obj.fail(_reason(problem)) from None


def encode_view_object(metadata: ViewMetadata) -> dict[str, Any]:
    """Return a view as a JSON object."""
    encoded: dict[str, Any] = {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
    }
    if metadata.properties:
        encoded["properties"] = dict(metadata.properties)
    encoded["schemas"] = [encode_schema(schema) for schema in metadata.schemas]
    encoded["current-version-id"] = metadata.current_version_id
    encoded["versions"] = [encode_view_version(version) for version in metadata.versions]
    encoded["version-log"] = [
        {
            "timestamp-ms": entry.timestamp_ms,
            "version-id": entry.version_id,
            **entry.extra,
        }
        for entry in metadata.version_log
    ]
    encoded.update(metadata.extra)
    if _CURRENT_SCHEMA_ID in encoded:
        # Old writers leave this field of a draft of the format; it must follow the current version.
        encoded[_CURRENT_SCHEMA_ID] = metadata.current_version.schema_id
    return encoded


def decode_view_version(obj: JsonObject) -> ViewVersion:
    """Return the version of a JSON object."""
    version_id = obj.int32("version-id")
    schema_id = obj.int32("schema-id")
    timestamp_ms = obj.int64("timestamp-ms")
    representations = tuple(_decode_representation(item) for item in obj.objects("representations"))
    try:
        return ViewVersion(
            version_id=version_id,
            schema_id=schema_id,
            timestamp_ms=timestamp_ms,
            representations=representations,
            default_namespace=obj.strings("default-namespace"),
            default_catalog=obj.string("default-catalog", None),
            summary=FrozenMap(obj.string_map("summary")),
            extra=obj.extra(),
        )
    except InvalidRequestError as problem:
        raise obj.fail(_reason(problem), field="representations") from None


def encode_view_version(version: ViewVersion) -> dict[str, Any]:
    """Return a version as a JSON object."""
    encoded: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
    }
    if version.default_catalog is not None:
        encoded["default-catalog"] = version.default_catalog
    encoded["default-namespace"] = list(version.default_namespace)
    encoded["representations"] = [_encode_representation(representation) for representation in version.representations]
    encoded.update(version.extra)
    return encoded


def _decode_representation(obj: JsonObject) -> Representation:
    representation_type = obj.string("type")
    if representation_type.lower() != _SQL:
        return UnknownRepresentation(representation_type, FrozenMap({key: obj.raw(key) for key in tuple(obj.keys())}))
    return SqlRepresentation(obj.string("sql"), obj.string("dialect"), obj.extra())


def _encode_representation(representation: Representation) -> dict[str, Any]:
    if isinstance(representation, UnknownRepresentation):
        return dict(representation.fields)
    return {"type": _SQL, "sql": representation.sql, "dialect": representation.dialect, **representation.extra}


def _decode_log_entry(obj: JsonObject) -> VersionLogEntry:
    return VersionLogEntry(obj.int64("timestamp-ms"), obj.int32("version-id"), obj.extra())


def _reason(problem: InvalidRequestError) -> str:
    return problem.message.partition(": ")[2] or problem.message
