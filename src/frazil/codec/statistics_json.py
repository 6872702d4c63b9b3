"""Statistics files and encryption keys as JSON. Specification: "Table Statistics", "Encryption Keys"."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.codec.snapshot_json import with_extra
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile


def decode_statistics_file(obj: JsonObject) -> StatisticsFile:
    """Return the statistics file of a JSON object."""
    return StatisticsFile(
        snapshot_id=obj.int64("snapshot-id"),
        statistics_path=obj.string("statistics-path"),
        file_size_in_bytes=obj.int64("file-size-in-bytes"),
        file_footer_size_in_bytes=obj.int64("file-footer-size-in-bytes"),
        blob_metadata=tuple(_decode_blob(item) for item in obj.objects("blob-metadata")),
        key_metadata=obj.string("key-metadata", None),
        extra=obj.extra(),
    )


def encode_statistics_file(file: StatisticsFile) -> dict[str, Any]:
    """Return a statistics file as a JSON object."""
    encoded: dict[str, Any] = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
        "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
    }
    if file.key_metadata is not None:
        encoded["key-metadata"] = file.key_metadata
    encoded["blob-metadata"] = [_encode_blob(blob_metadata) for blob_metadata in file.blob_metadata]
    return with_extra(encoded, file.extra)


def _decode_blob(obj: JsonObject) -> BlobMetadata:
    return BlobMetadata(
        type=obj.string("type"),
        snapshot_id=obj.int64("snapshot-id"),
        sequence_number=obj.int64("sequence-number"),
        fields=obj.int32s("fields"),
        properties=FrozenMap(obj.string_map("properties", {})),
        extra=obj.extra(),
    )


def _encode_blob(blob: BlobMetadata) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "type": blob.type,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "fields": list(blob.fields),
    }
    if blob.properties:
        encoded["properties"] = blob.properties
    return with_extra(encoded, blob.extra)


def decode_partition_statistics_file(obj: JsonObject) -> PartitionStatisticsFile:
    """Return the partition statistics file of a JSON object."""
    return PartitionStatisticsFile(
        snapshot_id=obj.int64("snapshot-id"),
        statistics_path=obj.string("statistics-path"),
        file_size_in_bytes=obj.int64("file-size-in-bytes"),
        extra=obj.extra(),
    )


def encode_partition_statistics_file(file: PartitionStatisticsFile) -> dict[str, Any]:
    """Return a partition statistics file as a JSON object."""
    encoded: dict[str, Any] = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
    }
    return with_extra(encoded, file.extra)


def decode_encryption_key(obj: JsonObject) -> EncryptedKey:
    """Return the encryption key of a JSON object."""
    text = obj.string("encrypted-key-metadata")
    try:
        # Iceberg Java accepts base64 without its padding.
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise obj.fail("it is not base64 text", field="encrypted-key-metadata") from None
    return EncryptedKey(
        key_id=obj.string("key-id"),
        encrypted_key_metadata=key,
        encrypted_by_id=obj.string("encrypted-by-id", None),
        properties=FrozenMap(obj.string_map("properties", {})),
        extra=obj.extra(),
    )


def encode_encryption_key(key: EncryptedKey) -> dict[str, Any]:
    """Return an encryption key as a JSON object."""
    encoded: dict[str, Any] = {
        "key-id": key.key_id,
        "encrypted-key-metadata": base64.b64encode(key.encrypted_key_metadata).decode("ascii"),
    }
    if key.encrypted_by_id is not None:
        encoded["encrypted-by-id"] = key.encrypted_by_id
    if key.properties:
        encoded["properties"] = key.properties
    return with_extra(encoded, key.extra)
