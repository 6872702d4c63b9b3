"""Create a table over existing files: a new table that shares them (`snapshot`), or one that replaces the source.

    describe   the source: its columns, partitions and file locations (from Spark's catalog, or from a folder)
    stage      a table with the same columns and identity partitions, without writing
    files      are described as by `maintenance/add_files.py`, in place
    commit     the table, a name mapping and all files at once: either the whole table exists, or nothing

A snapshot never deletes the files of its source: the table has `gc.enabled=false`, so that neither expiry nor clean-up
nor a purge deletes files, and the folder it writes to must not overlap with the source's. A table that replaced the
source owns the files, and may delete them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.catalog.base import Catalog
from frazil.commit.append import Append
from frazil.commit.transaction import Transaction
from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.add_files import FoundFile, as_uri, describe_files, list_data_files, missing_name_mapping
from frazil.maintenance.adopt_results import SnapshotTableResult
from frazil.maintenance.describe_files import find_format
from frazil.maintenance.infer_schema import infer_schema, with_partitions
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import FileFormat
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import UNPARTITIONED, build_partition_spec
from frazil.spec.properties import GC_ENABLED, without_reserved
from frazil.spec.schema import Schema
from frazil.spec.versions import DEFAULT, check_version
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, strip_slashes, table_folders

SNAPSHOT: Final = "snapshot"
MIGRATED: Final = "migrated"
FORMAT_VERSION: Final = "format-version"
_SOURCE_PROPERTIES: Final = ("path", "transient_lastDdlTime", "serialization.format", "location", "provider", "owner")
"""Properties that apply only to the source."""
_FOLDER_PROPERTIES: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A folder of a source's files; `values` are its partition values, or None if folder names hold them."""

    location: str
    values: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table to adopt: columns, partition columns, and the locations of its files."""

    name: str
    location: str
    schema: Schema
    partition_columns: tuple[str, ...] = ()
    parts: tuple[SourcePart, ...] = ()
    file_format: FileFormat | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def source_of_folder(
    storage: Storage, folder: str, file_format: FileFormat | None = None, *, format_version: int = DEFAULT
) -> SourceTable:
    """Describe a folder of files as a source: columns from its first file, partitions from folder names."""
    location = strip_slashes(as_uri(folder))
    files = list(list_data_files(storage, location, file_format))
    if not files:
        raise InvalidRequestError(f"Cannot create a table over {location!r}: no data files found")
    first = files[0]
    first_format = file_format if file_format is not None else find_format(storage, first.path, first.size)
    fields = infer_schema(storage, first.path, first.size, first_format, format_version=format_version)
    schema, partitions = with_partitions(fields, (file.folders for file in files))
    return SourceTable(location, location, schema, partitions, (SourcePart(location),), file_format)


def find_source_files(storage: Storage, source: SourceTable) -> Iterator[FoundFile]:
    """Yield the files of a source, each with the values of its partition."""
    for source_part in source.parts:
        for data_file in list_data_files(storage, strip_slashes(source_part.location), source.file_format):
            if source_part.values is None:
                yield data_file
            else:
                yield FoundFile(data_file.path, data_file.size, source_part.values, data_file.file_format)


def snapshot_table(
    catalog: Catalog,
    identifier: tuple[str, ...],
    source: SourceTable,
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    threads: int | None = None,
    ignores_missing: bool = False,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable | None, SnapshotTableResult]:
    """Create a table over a source's files that writes to its own folder and never deletes files of the source."""
    inherited = {
        name: value
        for name, value in source.properties.items()
        if name not in (*_SOURCE_PROPERTIES, *_FOLDER_PROPERTIES)
    }
    # These override the properties of the caller: the table must never delete the source's files.
    merged = {**inherited, **(properties or {}), GC_ENABLED.name: "false", SNAPSHOT: "true"}
    staged = _stage(catalog, identifier, source, location, merged, dry_run=dry_run)
    _check_no_overlap(staged, source)
    created, count = _create(catalog, staged, source, threads, cache, ignores_missing=ignores_missing, dry_run=dry_run)
    return created, SnapshotTableResult(count)


def stage_migration(
    catalog: Catalog,
    identifier: tuple[str, ...],
    source: SourceTable,
    properties: Mapping[str, str] | None = None,
    *,
    dry_run: bool = False,
) -> LoadedTable:
    """Return the initial state of a table at a source's own location, refusing invalid requests; nothing is written."""
    inherited = {name: value for name, value in source.properties.items() if name not in _SOURCE_PROPERTIES}
    merged = {**inherited, **(properties or {}), MIGRATED: "true"}
    location = merged.pop("location", source.location)
    return _stage(catalog, identifier, source, location, merged, dry_run=dry_run)


def migrate_table(
    catalog: Catalog,
    staged: LoadedTable,
    source: SourceTable,
    *,
    threads: int | None = None,
    ignores_missing: bool = False,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
) -> tuple[LoadedTable | None, int]:
    """Create a staged table over a source's files, which it then owns; return it and the number of files.

    The source must not be written to meanwhile: files added later are not in the table.
    """
    return _create(catalog, staged, source, threads, cache, ignores_missing=ignores_missing, dry_run=dry_run)


def _stage(
    catalog: Catalog,
    identifier: tuple[str, ...],
    source: SourceTable,
    location: str | None,
    properties: dict[str, str],
    *,
    dry_run: bool,
) -> LoadedTable:
    """Return the initial state of a new table; creates a missing namespace unless it is a dry run."""
    version = _version_of(properties)
    spec = build_partition_spec(source.schema, source.partition_columns) if source.partition_columns else UNPARTITIONED
    own_location = None if location is None else strip_slashes(as_uri(location))
    stored = without_reserved(properties)
    if not catalog.namespace_exists(identifier[:-1]):
        if dry_run:
            metadata = new_table_metadata(
                source.schema,
                spec,
                location=f"{strip_slashes(catalog.warehouse)}/{'/'.join(identifier)}"
                if own_location is None
                else own_location,
                properties=stored,
                format_version=version,
                uuid=catalog.new_id(),
                now_ms=catalog.now_ms(),
            )
            return LoadedTable(identifier, metadata, None, catalog.storage)
        catalog.create_namespace(identifier[:-1])
    return catalog.stage_table(
        identifier, source.schema, spec, location=own_location, properties=stored, format_version=version
    )


def _version_of(properties: dict[str, str]) -> int:
    text = properties.pop(FORMAT_VERSION, None)
    if text is None:
        return DEFAULT
    if not text.isascii() or not text.isdigit():
        raise InvalidPropertyError(f"Cannot create a table with {FORMAT_VERSION} {text!r}: it is not a number")
    check_version(int(text))
    return int(text)


def _check_no_overlap(staged: LoadedTable, source: SourceTable) -> None:
    """Refuse folders for new files that overlap with folders of the source."""
    storage = staged.storage
    source_folders = {source.location, *(source_part.location for source_part in source.parts)}
    for folder in table_folders(staged.metadata.location, staged.metadata.properties):
        own = f"{location_key(storage.resolve_folder(folder)).rstrip('/')}/"
        for root in source_folders:
            other = f"{location_key(storage.resolve_folder(strip_slashes(root))).rstrip('/')}/"
            if own.startswith(other) or other.startswith(own):
                raise InvalidRequestError(
                    f"Cannot make a snapshot of {source.name} at {folder}: its files would mix with those of "
                    f"the source in {root}",
                    hint="Pass a location of its own.",
                )


def _create(
    catalog: Catalog,
    staged: LoadedTable,
    source: SourceTable,
    threads: int | None,
    cache: ManifestCache | None,
    *,
    ignores_missing: bool,
    dry_run: bool,
) -> tuple[LoadedTable | None, int]:
    found_files = list(find_source_files(staged.storage, source))
    files = describe_files(staged, found_files, threads=threads, ignores_missing=ignores_missing)
    if dry_run:
        return None, len(files)
    transaction = Transaction(catalog, cache=cache)
    table = transaction.table(staged)
    try:
        mapping = missing_name_mapping(staged)
        if mapping is not None:
            table.add(mapping)
        if files:
            table.add(Append(files))
    except BaseException:
        transaction.roll_back()
        raise
    return transaction.commit()[0], len(files)
