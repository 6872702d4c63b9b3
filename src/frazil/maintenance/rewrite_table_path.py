"""Prepare a table for a copy to another location: rewritten metadata, and a list of the files to copy.

    versions         the requested metadata file and its predecessors, as far as they exist
    manifest lists   of all its snapshots
    deletes          position delete files and vectors, which name data files; each is rewritten once
    manifests        all manifests of those lists; entries keep their status and inherited fields
    list             `source,target` lines: new files from the staging folder, data files from their present place

All paths in metadata are absolute, so a copy needs other metadata than the original. The table does not change, and
nothing is copied here: copy the listed files with any tool, in any order, and then register the latest version. From an
already copied version on (`start_version`), only later changes are written and listed.

Listed data files are live entries of manifests that are new since the start, except those whose snapshot was in the
start already. A file may be listed a second time, but none is left out; entries of expired snapshots are listed too. A
manifest list states the length of the new manifests, so manifests of the start that new lists still name are encoded
again, to determine their length.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frazil.catalog.base import Catalog
from frazil.catalog.metadata_files import read_table_metadata
from frazil.codec.manifest_avro import ManifestColumns, decode_manifest
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.errors import InvalidRequestError, MissingFileError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.loaded import LoadedTable
from frazil.maintenance.move_paths import (
    MovedDeletes,
    Prefixes,
    SizeChange,
    move_deletes,
    move_manifest,
    move_manifest_list,
    move_metadata,
    write_once,
)
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import metadata_folder, strip_slashes
from frazil.threads import default_threads, map_in_order

FILE_LIST: Final = "file-list"
STAGING_PREFIX: Final = "copy-table-staging-"
NOT_APPLICABLE: Final = "N/A"
_DELETE_COLUMNS: Final = (
    "status",
    "snapshot_id",
    "content",
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "content_offset",
)


@dataclass(frozen=True, slots=True)
class RewriteTablePathRequest:
    """A prefix of all paths, its replacement, and the range of versions, by names of metadata files."""

    source_prefix: str
    target_prefix: str
    start_version: str | None = None
    end_version: str | None = None
    staging_location: str | None = None
    creates_file_list: bool = True


@dataclass(frozen=True, slots=True)
class RewriteTablePathResult:
    """The output of a rewrite; `latest_version` is the metadata file to register at the target."""

    latest_version: str
    file_list_location: str
    rewritten_manifest_file_paths_count: int = 0
    rewritten_delete_file_paths_count: int = 0
    staging_location: str = ""
    listed_files_count: int = 0


@with_progress("rewrite paths of")
def rewrite_table_path(
    catalog: Catalog,
    loaded: LoadedTable,
    request: RewriteTablePathRequest,
    *,
    dry_run: bool = False,
    threads: int | None = None,
) -> RewriteTablePathResult:
    """Write a table's metadata with other paths to a staging folder, and a list of files to copy.

    The table does not change. With `dry_run` nothing is written, and the result is what would be.
    """
    prefixes = _prefixes(request)
    current = loaded.metadata_location
    if current is None:
        raise InvalidRequestError(f"Cannot rewrite the paths of {loaded.name}: it has no metadata file yet")
    end = _find_version(loaded, request.end_version) if request.end_version is not None else current
    start = None if request.start_version is None else _find_version(loaded, request.start_version)
    staging = request.staging_location
    if staging is None:
        folder = metadata_folder(loaded.metadata.location, loaded.metadata.properties)
        staging = f"{folder}/{STAGING_PREFIX}{catalog.new_id()}"
    workers = default_threads() if threads is None else threads
    run = _Run(loaded, prefixes, strip_slashes(staging), workers, writes=not dry_run)
    return run.run(start, end, creates_list=request.creates_file_list)


def _prefixes(request: RewriteTablePathRequest) -> Prefixes:
    for name, value in (("source", request.source_prefix), ("target", request.target_prefix)):
        if not value.strip("/"):
            raise InvalidRequestError(f"Cannot rewrite paths: the {name} prefix is empty")
    if strip_slashes(request.source_prefix) == strip_slashes(request.target_prefix):
        raise InvalidRequestError(
            f"Cannot rewrite paths: the source prefix is the target prefix ({request.source_prefix})"
        )
    return Prefixes(strip_slashes(request.source_prefix), strip_slashes(request.target_prefix))


def _find_version(loaded: LoadedTable, name: str) -> str:
    """Return the metadata file of a name or location."""
    logged = [entry.metadata_file for entry in loaded.metadata.metadata_log]
    if loaded.metadata_location is not None:
        logged.append(loaded.metadata_location)
    for location in reversed(logged):
        if name in (location, location.rpartition("/")[2]):
            if not loaded.storage.exists(location):
                raise MissingFileError(f"Cannot rewrite paths from version {name}: {location} is gone", path=location)
            return location
    raise InvalidRequestError(
        f"Cannot rewrite paths: the table's log has no version {name!r}",
        hint=f"The oldest it has is {logged[0].rpartition('/')[2]}." if logged else None,
    )


@dataclass(frozen=True, slots=True)
class _DeleteEntry:
    """A position delete file, or a vector, in a manifest."""

    status: EntryStatus
    snapshot_id: int | None
    file: DataFile


class _Run:
    """One rewrite in progress."""

    def __init__(self, loaded: LoadedTable, prefixes: Prefixes, staging: str, threads: int, *, writes: bool) -> None:
        self._loaded = loaded
        self._storage = loaded.storage
        self._prefixes = prefixes
        self._staging = staging
        self._threads = threads
        self._writes = writes
        self._copies: dict[str, str] = {}
        """The source of each file of the list, by target."""

    def run(self, start: str | None, end: str, *, creates_list: bool) -> RewriteTablePathResult:
        """Rewrite everything that is new since a version."""
        before = None if start is None else read_table_metadata(self._storage, start)
        after = read_table_metadata(self._storage, end)
        known_ids = frozenset[int]() if before is None else frozenset(before.snapshots.ids)
        old_lists = [] if before is None else self._manifests_of(before.snapshots)
        known_manifests = {manifest.manifest_path for manifests in old_lists for manifest in manifests}
        snapshots = list(after.snapshots)
        lists = self._manifests_of(snapshots)
        added = [
            (snapshot, listed_manifests)
            for snapshot, listed_manifests in zip(snapshots, lists, strict=True)
            if snapshot.snapshot_id not in known_ids
        ]
        named = {manifest.manifest_path: manifest for _, manifests in added for manifest in manifests}
        new = {path for path in named if path not in known_manifests}

        entries = self._delete_entries(lists)
        deletes, listed = self._rewrite_deletes(entries, new)
        sizes = _size_changes(snapshots, lists, entries, deletes)
        self._rewrite_versions(start, end, after, sizes)
        lengths = dict(self._rewrite_manifests(named.values(), known_manifests, known_ids, deletes))
        for snapshot, manifests in added:
            if snapshot.manifest_list is not None:
                data = move_manifest_list(snapshot, manifests, lengths, self._prefixes)
                self._stage(snapshot.manifest_list, data, "the manifest list")
        return RewriteTablePathResult(
            end.rpartition("/")[2],
            self._write_list() if creates_list and self._writes else NOT_APPLICABLE,
            len(new),
            listed,
            self._staging,
            len(self._copies),
        )

    # Table metadata

    def _rewrite_versions(
        self, start: str | None, end: str, after: TableMetadata, sizes: Mapping[int, SizeChange]
    ) -> None:
        logged = [entry.metadata_file for entry in after.metadata_log]
        if start is not None and start != end:
            if start not in logged:
                raise InvalidRequestError(
                    f"Cannot rewrite paths from {start.rpartition('/')[2]} to {end.rpartition('/')[2]}: the first is "
                    "not older than the second"
                )
            logged = logged[logged.index(start) + 1 :]
        self._rewrite_version(end, after, sizes)
        for location in logged:
            if self._prefixes.covers(location) and location != end:
                try:
                    self._rewrite_version(location, read_table_metadata(self._storage, location), sizes)
                except MissingFileError:
                    # Logs may name deleted files, but nothing current depends on them.
                    continue

    def _rewrite_version(self, location: str, metadata: TableMetadata, sizes: Mapping[int, SizeChange]) -> None:
        is_gzip = ".gz" in location.rpartition("/")[2]
        relocated = move_metadata(metadata, self._prefixes, sizes)
        data = encode_table_metadata(relocated, compression="gzip" if is_gzip else "none")
        self._stage(location, data, "the metadata file")
        paths = [statistics_file.statistics_path for statistics_file in metadata.statistics]
        for path in (*paths, *(statistics_file.statistics_path for statistics_file in metadata.partition_statistics)):
            self._copy(path, path, "the statistics file")

    def _manifests_of(self, snapshots: Sequence[Snapshot]) -> list[list[ManifestFile]]:
        def read(snapshot: Snapshot) -> list[ManifestFile]:
            try:
                return read_manifest_list(self._storage, snapshot)
            except MissingFileError as error:
                raise InvalidRequestError(
                    f"Cannot rewrite the paths of snapshot {snapshot.snapshot_id}: its manifest list does not exist",
                    hint="It may have expired since that version. Choose a later one, or none for the current one.",
                    path=snapshot.manifest_list,
                ) from error

        return list(map_in_order(read, snapshots, threads=self._threads))

    # Deletes

    def _delete_entries(self, lists: Sequence[Sequence[ManifestFile]]) -> dict[str, list[_DeleteEntry]]:
        """Return the position deletes of all delete manifests, by the manifest's path."""
        chosen = {
            manifest.manifest_path: manifest
            for manifests in lists
            for manifest in manifests
            if manifest.content is ManifestContent.DELETES
        }
        position_deletes = map_in_order(self._position_deletes, list(chosen.values()), threads=self._threads)
        return dict(zip(chosen, position_deletes, strict=True))

    def _rewrite_deletes(
        self, entries: Mapping[str, Sequence[_DeleteEntry]], new: set[str]
    ) -> tuple[dict[str, MovedDeletes], int]:
        """Rewrite the live position deletes of all snapshots, and list those of new manifests; return how many."""
        files: dict[str, DataFile] = {}
        listed: set[str] = set()
        for manifest, delete_entries in entries.items():
            for delete_entry in delete_entries:
                if delete_entry.status is not EntryStatus.DELETED:
                    files.setdefault(delete_entry.file.file_path, delete_entry.file)
                    if manifest in new:
                        listed.add(delete_entry.file.file_path)
        for path in sorted(listed):
            self._copy(self._prefixes.stage(path, self._staging, "the delete file"), path, "the delete file")
        if not self._writes:
            same = {path: MovedDeletes(file.file_size_in_bytes, _UnchangedOffsets()) for path, file in files.items()}
            return same, len(listed)

        def move(file: DataFile) -> MovedDeletes:
            path = self._prefixes.stage(file.file_path, self._staging, "the delete file")
            return move_deletes(self._storage, file, path, self._prefixes)

        relocated = map_in_order(move, list(files.values()), threads=self._threads)
        return dict(zip(files, relocated, strict=True)), len(listed)

    def _position_deletes(self, manifest: ManifestFile) -> list[_DeleteEntry]:
        columns = self._decode(manifest, _DELETE_COLUMNS)
        return [
            _DeleteEntry(
                EntryStatus(value["status"]),
                manifest.added_snapshot_id if value["snapshot_id"] is None else value["snapshot_id"],
                DataFile(
                    value["file_path"],
                    FileFormat(value["file_format"].lower()),
                    value["record_count"],
                    value["file_size_in_bytes"],
                    content=FileContent.POSITION_DELETES,
                    content_offset=value["content_offset"],
                ),
            )
            for value in columns.table.to_pylist()
            if value["content"] == FileContent.POSITION_DELETES.value
        ]

    # Manifests

    def _rewrite_manifests(
        self,
        manifests: Iterable[ManifestFile],
        known: set[str],
        known_ids: frozenset[int],
        deletes: dict[str, MovedDeletes],
    ) -> Iterator[tuple[str, int]]:
        """Rewrite manifests and yield the length of each; known ones are encoded but not written."""

        def rewrite(manifest: ManifestFile) -> tuple[ManifestFile, int, list[str]]:
            columns = self._decode(manifest, None)
            encoded = move_manifest(columns, manifest, deletes, self._prefixes)
            if manifest.manifest_path in known:
                return manifest, len(encoded.data), []
            self._stage(manifest.manifest_path, encoded.data, "the manifest")
            return manifest, len(encoded.data), _new_files(columns, manifest, known_ids)

        rewritten = map_in_order(rewrite, list(manifests), threads=self._threads)
        for manifest, length, paths in counted("manifests rewritten", rewritten):
            for path in paths:
                self._copy(path, path, "the file")
            yield manifest.manifest_path, length

    def _decode(self, manifest: ManifestFile, fields: Sequence[str] | None) -> ManifestColumns:
        data = self._storage.read(manifest.manifest_path)
        return decode_manifest(data, fields=fields, path=manifest.manifest_path)

    # Output

    def _stage(self, location: str, data: bytes, what: str) -> None:
        path = self._prefixes.stage(location, self._staging, what)
        if self._writes:
            write_once(self._storage, path, data)
        self._copy(path, location, what)

    def _copy(self, source: str, location: str, what: str) -> None:
        self._copies[self._prefixes.move(location, what)] = source

    def _write_list(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for target in sorted(self._copies):
            writer.writerow((self._copies[target], target))
        path = f"{self._staging}/{FILE_LIST}"
        self._storage.replace(path, text.getvalue().encode())
        return path


def _size_changes(
    snapshots: Sequence[Snapshot],
    lists: Sequence[Sequence[ManifestFile]],
    entries: Mapping[str, Sequence[_DeleteEntry]],
    deletes: Mapping[str, MovedDeletes],
) -> dict[int, SizeChange]:
    """Return the size changes of snapshots' files, since paths in delete files get longer or shorter."""
    changes: dict[int, SizeChange] = {}
    for snapshot, manifests in zip(snapshots, lists, strict=True):
        change = changes.setdefault(snapshot.snapshot_id, SizeChange())
        for delete_entry in (entry for manifest in manifests for entry in entries.get(manifest.manifest_path, ())):
            relocated = deletes.get(delete_entry.file.file_path)
            # Summaries count a vector by its own bytes, which stay the same.
            size = 0
            if relocated is not None and not delete_entry.file.is_deletion_vector:
                size = relocated.size - delete_entry.file.file_size_in_bytes
            if delete_entry.status is not EntryStatus.DELETED:
                change.total += size
            if delete_entry.snapshot_id == snapshot.snapshot_id and delete_entry.status is EntryStatus.ADDED:
                change.added += size
            if delete_entry.snapshot_id == snapshot.snapshot_id and delete_entry.status is EntryStatus.DELETED:
                change.removed += size
    return changes


class _UnchangedOffsets(dict[int, tuple[int, int]]):
    """The offsets of vectors in a dry run, which do not change."""

    def __missing__(self, offset: int) -> tuple[int, int]:
        return offset, 0


def _new_files(columns: ManifestColumns, manifest: ManifestFile, known_ids: frozenset[int]) -> list[str]:
    """Return the live files of a manifest to copy unchanged."""
    live = live_mask(columns)
    paths = columns.column("file_path").to_pylist()
    kinds = columns.column("content").to_pylist()
    ids = columns.column("snapshot_id").to_pylist()
    return [
        path
        for path, content, snapshot_id, is_live in zip(paths, kinds, ids, live, strict=True)
        if is_live
        and content != FileContent.POSITION_DELETES.value
        and (manifest.added_snapshot_id if snapshot_id is None else snapshot_id) not in known_ids
    ]
