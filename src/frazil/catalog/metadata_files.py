"""Metadata files of tables and views in pointer catalogs. Specification: "Metastore Tables".

They are named `<version>-<uuid>.metadata.json`, lie in the metadata folder, and are compressed with gzip if the
properties ask for it. A name is never used twice, so a written file has no effect until a pointer leads to it. When
`write_metadata` returns, it is durable (`storage/base.py`).
"""

from __future__ import annotations

from frazil.codec.gzip_text import MAX_TEXT_BYTES
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.codec.view_metadata_json import MAX_VIEW_BYTES, decode_view_metadata, encode_view_metadata
from frazil.errors import MissingFileError, StorageError, WriteOutcomeUnknownError
from frazil.spec import properties as known
from frazil.spec.properties import read_property
from frazil.spec.snapshot import MetadataLogEntry
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata
from frazil.storage.base import Storage
from frazil.storage.locations import find_metadata_version, metadata_file_name, metadata_folder


def read_table_metadata(storage: Storage, location: str) -> TableMetadata:
    """Read the table metadata of a file."""
    return decode_table_metadata(storage.read(location, max_bytes=MAX_TEXT_BYTES), path=location)


def read_view_metadata(storage: Storage, location: str) -> ViewMetadata:
    """Read the view metadata of a file."""
    return decode_view_metadata(storage.read(location, max_bytes=MAX_VIEW_BYTES), path=location)


def new_metadata_location(metadata: TableMetadata | ViewMetadata, *, base_location: str | None, unique_id: str) -> str:
    """Return the location for the successor of a metadata file; versions count from 0."""
    last = None if base_location is None else find_metadata_version(base_location)
    name = metadata_file_name(0 if last is None else last + 1, unique_id, is_gzip=_is_gzip(metadata))
    return f"{metadata_folder(metadata.location, metadata.properties)}/{name}"


def write_metadata(storage: Storage, location: str, metadata: TableMetadata | ViewMetadata) -> None:
    """Write a metadata file under a new name; raise an error unless that is known to have succeeded."""
    if isinstance(metadata, ViewMetadata):
        data = encode_view_metadata(metadata, compress=_is_gzip(metadata))
    else:
        data = encode_table_metadata(metadata, compression="gzip" if _is_gzip(metadata) else "none")
    try:
        storage.create(location, data)
    except (WriteOutcomeUnknownError, MissingFileError) as error:
        # Nothing points to the file yet, so it does not matter whether it exists: the commit did not happen.
        # A missing folder belonged to a table that is being purged.
        raise StorageError(f"Cannot write {location}: {error.message}", path=location) from error


def _is_gzip(metadata: TableMetadata | ViewMetadata) -> bool:
    codec = known.VIEW_METADATA_COMPRESSION if isinstance(metadata, ViewMetadata) else known.METADATA_COMPRESSION
    return read_property(metadata.properties, codec) == "gzip"


def forgotten_metadata_files(base: TableMetadata, changed: TableMetadata) -> tuple[MetadataLogEntry, ...]:
    """Return the entries of the base's metadata log that its successor has dropped, the oldest first."""
    remaining = {entry.metadata_file for entry in changed.metadata_log}
    return tuple(entry for entry in base.metadata_log if entry.metadata_file not in remaining)
