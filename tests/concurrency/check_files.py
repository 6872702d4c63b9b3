"""Check that a table is whole: every file that it leads to is there, and says what its metadata says of it.

Manifests never change, so what was decoded once is kept, by its bytes; whether it is there is looked at every time.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from frazil.codec.deletion_vector import read_deletion_vector
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.loaded import LoadedTable
from frazil.maintenance.check_table import check_table as examine_table
from frazil.scan.choose_snapshot import partition_types
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.types import StructType
from frazil.storage.base import Storage


@lru_cache(maxsize=50_000)
def _decode_list(data: bytes, path: str) -> tuple[ManifestFile, ...]:
    return tuple(decode_manifest_list(data, path=path))


@lru_cache(maxsize=50_000)
def _decode_manifest(data: bytes, manifest: ManifestFile, kind: StructType) -> tuple[ManifestEntry, ...]:
    return tuple(iter_entries(decode_manifest(data, manifest=manifest, partition_type=kind)))


def manifests_of(storage: Storage, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """Return the manifests of a snapshot."""
    assert snapshot.manifest_list is not None
    return _decode_list(storage.read(snapshot.manifest_list), snapshot.manifest_list)


def entries_of(loaded: LoadedTable, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the live entries of a snapshot."""
    return [one for manifest in manifests_of(loaded.storage, snapshot) for one in _live(loaded, manifest)]


def _live(loaded: LoadedTable, manifest: ManifestFile) -> list[ManifestEntry]:
    kind = partition_types(loaded.metadata)[manifest.partition_spec_id][1]
    found = _decode_manifest(loaded.storage.read(manifest.manifest_path), manifest, kind)
    return [one for one in found if one.is_live]


def positions_of(storage: Storage, vector: DataFile) -> list[int]:
    """Return the positions in a deletion vector."""
    return list(
        read_deletion_vector(
            lambda at, length: storage.read_range(vector.file_path, at, length),
            vector.content_offset or 0,
            vector.content_size_in_bytes or 0,
            record_count=vector.record_count,
        )
    )


_examined: set[bytes] = set()
"""States that `Table.check` found nothing wrong with. It takes its time, and says the same of the same bytes."""


def check_table(loaded: LoadedTable) -> None:
    """Check every snapshot of a table, and the files beside its snapshots, as `Table.check` does and once more here."""
    metadata, storage = loaded.metadata, loaded.storage
    state = b"" if loaded.metadata_location is None else storage.read(loaded.metadata_location)
    if state not in _examined:
        report = examine_table(loaded, threads=1)
        assert report.ok, str(report)
        _examined.add(state)
    sizes: dict[str, int] = {}
    for snapshot in metadata.snapshots:
        check_snapshot(loaded, snapshot, sizes)
    for path, size in [
        *((one.statistics_path, one.file_size_in_bytes) for one in metadata.statistics),
        *((one.statistics_path, one.file_size_in_bytes) for one in metadata.partition_statistics),
    ]:
        assert storage.size(path) == size
    ids = set(metadata.snapshots.ids)
    for name, ref in metadata.refs.items():
        assert ref.snapshot_id in ids, f"{name} leads nowhere"
    numbers = [one.sequence_number for one in metadata.snapshots]
    assert len(set(numbers)) == len(numbers), "a sequence number was given twice"
    assert max(numbers, default=0) <= metadata.last_sequence_number


def check_snapshot(loaded: LoadedTable, snapshot: Snapshot, sizes: dict[str, int]) -> None:
    """Check the files of one snapshot; `sizes` are those that were looked at already."""
    storage, metadata = loaded.storage, loaded.metadata
    live: list[ManifestEntry] = []
    for manifest in manifests_of(storage, snapshot):
        assert storage.size(manifest.manifest_path) == manifest.manifest_length
        kind = partition_types(metadata)[manifest.partition_spec_id][1]
        entries = _decode_manifest(storage.read(manifest.manifest_path), manifest, kind)
        for status, files, rows in (
            (EntryStatus.ADDED, manifest.added_files_count, manifest.added_rows_count),
            (EntryStatus.EXISTING, manifest.existing_files_count, manifest.existing_rows_count),
            (EntryStatus.DELETED, manifest.deleted_files_count, manifest.deleted_rows_count),
        ):
            own = [one for one in entries if one.status is status]
            assert (len(own), sum(one.data_file.record_count for one in own)) == (files, rows)
        for one in entries:
            is_data = one.data_file.content is FileContent.DATA
            assert is_data == (manifest.content is ManifestContent.DATA)
            assert one.sequence_number is not None and one.sequence_number <= snapshot.sequence_number
        live += [one for one in entries if one.is_live]
    _check_live(loaded, snapshot, live, sizes)


def _check_live(loaded: LoadedTable, snapshot: Snapshot, live: list[ManifestEntry], sizes: dict[str, int]) -> None:
    files = [one.data_file for one in live]
    keys = [(one.file_path, one.content_offset) for one in files]
    assert len(set(keys)) == len(keys), "a file is live twice"
    for one in files:
        if one.file_path not in sizes:
            sizes[one.file_path] = loaded.storage.size(one.file_path)
        assert sizes[one.file_path] == one.file_size_in_bytes, one.file_path
        if one.is_deletion_vector:
            assert len(positions_of(loaded.storage, one)) == one.record_count
    vectors = [one.referenced_data_file for one in files if one.is_deletion_vector]
    assert len(set(vectors)) == len(vectors), "a data file has two vectors"
    data = [one for one in files if one.content is FileContent.DATA]
    assert {*vectors} <= {one.file_path for one in data}, "a vector is about a file that is gone"
    summary = snapshot.summary
    assert summary is not None
    assert summary[Summary.TOTAL_DATA_FILES] == str(len(data))
    assert summary[Summary.TOTAL_DELETE_FILES] == str(len(files) - len(data))
    assert summary[Summary.TOTAL_RECORDS] == str(sum(one.record_count for one in data))
    assert summary[Summary.TOTAL_FILES_SIZE] == str(sum(_size(one) for one in files))
    if snapshot.first_row_id is not None:
        ranges = sorted((one.first_row_id, one.record_count) for one in data if one.first_row_id is not None)
        assert len(ranges) == len(data), "a file has no row ids"
        for (first, count), (then, _) in itertools.pairwise(ranges):
            assert first + count <= then, "two files have the same row ids"
        assert all(first + count <= loaded.metadata.next_row_id for first, count in ranges)


def _size(file: DataFile) -> int:
    return file.content_size_in_bytes or 0 if file.is_deletion_vector else file.file_size_in_bytes
