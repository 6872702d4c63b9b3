"""Remove delete files that no longer delete anything. Specification: "Scan Planning", scope rules.

    deletion vector, deletes of one file    the data file is not live
    position deletes of a partition         older than every live data file of the partition
    equality deletes of a partition         no newer than every live data file of the partition
    equality deletes of an unpartitioned    no newer than every live data file of the table, of any spec: such
    spec                                    deletes apply to all partitions

The set is computed at each attempt from the present state of the branch, so other writers do not conflict. Files are
only ever added with a sequence number at or above that of the oldest file they replace, so a dangling delete stays
dangling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.codec.manifest_avro import ManifestColumns
from frazil.commit.action import NOTHING, Changes, CommitContext, WrittenManifests, snapshot_id_of
from frazil.commit.change_files import DeleteKey, FileChanges, change_files
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.write_manifests import ManifestWriter
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.partition_keys import partition_keys
from frazil.loaded import LoadedTable
from frazil.scan.delete_index import DELETE_FIELDS, scoped_paths
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import FileContent, PartitionKey
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.snapshot import Operation, Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.threads import default_threads, map_in_order

_DATA_FIELDS = ("status", "sequence_number", "file_path", "partition")
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletes:
    """Remove the delete files of a branch that apply to no live data file."""

    target: Target = MAIN

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot without them, or nothing if there are none."""
        parent = find_parent(loaded.metadata, self.target.branch)
        writer = ManifestWriter(loaded, context)
        dangling = find_dangling_deletes(writer, parent, context.threads)
        if not dangling:
            return NOTHING
        changed = change_files(writer, parent, FileChanges(removed_deletes=dangling))
        return snapshot_changes(writer, changed, parent, self.target, Operation.REPLACE)


def count_dangling_deletes(
    catalog: Catalog, loaded: LoadedTable, action: RemoveDanglingDeletes, *, cache: ManifestCache | None = None
) -> int:
    """Return the number of delete files that an action would remove now; nothing is written."""
    commit_id = catalog.new_id()
    context = CommitContext(
        snapshot_id_of(commit_id), commit_id, catalog.now_ms, WrittenManifests(), threads=default_threads(), cache=cache
    )
    parent = find_parent(loaded.metadata, action.target.branch)
    return len(find_dangling_deletes(ManifestWriter(loaded, context), parent, context.threads))


@dataclass(slots=True)
class _LiveData:
    """The data that deletes are compared with: live paths that some delete names, and the oldest data per partition."""

    paths: set[str] = field(default_factory=set)
    oldest: int = _NEVER
    oldest_in: dict[PartitionKey, int] = field(default_factory=dict)


def find_dangling_deletes(writer: ManifestWriter, parent: Snapshot | None, threads: int = 1) -> frozenset[DeleteKey]:
    """Return the delete files of a snapshot that apply to none of its data files."""
    base = writer.read_base(parent)
    deletes = list(_live(writer, base, ManifestContent.DELETES, DELETE_FIELDS, threads))
    if not deletes:
        return frozenset()
    named = {path for files in deletes for path in scoped_paths(files) if path is not None}
    data = _LiveData()
    for files in _live(writer, base, ManifestContent.DATA, _DATA_FIELDS, threads):
        data.paths |= named.intersection(files.column("file_path").to_pylist())
        numbers = [value or 0 for value in files.column("sequence_number").to_pylist()]
        for key, number in zip(partition_keys(files), numbers, strict=True):
            data.oldest = min(data.oldest, number)
            data.oldest_in[key] = min(data.oldest_in.get(key, _NEVER), number)
    dangling: set[DeleteKey] = set()
    for files in deletes:
        dangling |= set(_dangling(files, data, writer.loaded.metadata))
    return frozenset(dangling)


def _dangling(files: ManifestColumns, data: _LiveData, metadata: TableMetadata) -> Iterator[DeleteKey]:
    is_global = metadata.spec(files.spec_id).is_unpartitioned
    columns = [files.column(name).to_pylist() for name in ("content", "sequence_number", "file_path", "content_offset")]
    for content, number, path, offset, key, named in zip(
        *columns, partition_keys(files), scoped_paths(files), strict=True
    ):
        sequence = number or 0
        if content == FileContent.EQUALITY_DELETES:
            oldest = data.oldest if is_global else data.oldest_in.get(key, _NEVER)
            is_dangling = sequence <= oldest
        elif named is not None:
            is_dangling = named not in data.paths
        else:
            is_dangling = sequence < data.oldest_in.get(key, _NEVER)
        if is_dangling:
            yield path, offset


def _live(
    writer: ManifestWriter,
    manifests: Iterable[ManifestFile],
    content: ManifestContent,
    fields: tuple[str, ...],
    threads: int,
) -> Iterator[ManifestColumns]:
    """Yield the live entries of a snapshot's manifests of one content."""
    chosen = [manifest for manifest in manifests if manifest.content is content and manifest.has_live_files]

    def read(manifest: ManifestFile) -> ManifestColumns:
        files = writer.read(manifest, fields)
        mask = live_mask(files)
        return files if mask.all() else replace(files, table=files.table.filter(pa.array(mask)))

    yield from map_in_order(read, chosen, threads=min(threads, max(len(chosen), 1)))
