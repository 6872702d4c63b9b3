"""From entries to manifests, and from manifests to a list. Specification: "Manifests", "Manifest Lists", "Snapshots".

This is the part of the write path between files and a snapshot:

    new files          one or more manifests per content and partition spec, split at the target size
    changed manifests  a manifest that loses files is rewritten: remaining files are EXISTING and keep the snapshot
                       that added them, both sequence numbers and their row ids; removed files are DELETED by this
                       snapshot; entries that older snapshots deleted are dropped
    merging            small manifests of one spec become one, so that planning reads few of them
    the list           gives new manifests this commit's sequence number and, in v3, row ids

Manifests hold nothing that depends on the attempt: sequence numbers and row ids of new files are inherited from the
list. So they are written once and used by every attempt, and a retry writes only a list.

Existing manifests are rewritten as columns; objects are built only for new files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.encode_manifest import encode_manifest, entries_to_table
from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_fields import COLUMNS
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.commit.action import CommitContext
from frazil.errors import InvalidManifestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import Mask
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec import properties
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import StructType
from frazil.storage.locations import manifest_list_name, manifest_name, metadata_folder
from frazil.threads import map_in_order

FILES_PER_MANIFEST = 10_000
"""The most new files in one manifest, which one thread encodes at a time."""

_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
Weighed = TypeVar("Weighed")


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit adds; the sequence number is set if its rows keep their age, as in compaction."""

    file: DataFile
    sequence_number: int | None = None

    @property
    def content(self) -> ManifestContent:
        """The content of the manifest that holds it."""
        return ManifestContent.DATA if self.file.content is FileContent.DATA else ManifestContent.DELETES


class ManifestWriter:
    """Writes the manifests of one attempt with the table's specs, properties and names."""

    def __init__(self, loaded: LoadedTable, context: CommitContext) -> None:
        self.loaded = loaded
        self.context = context
        metadata = loaded.metadata
        self._metadata = metadata
        self.specs = partition_types(metadata)
        self._folder = metadata_folder(metadata.location, metadata.properties)
        self._codec = read_property(metadata.properties, properties.MANIFEST_COMPRESSION)
        self._level = read_property(metadata.properties, properties.MANIFEST_COMPRESSION_LEVEL)
        self._target_bytes = read_property(metadata.properties, properties.MANIFEST_TARGET_SIZE_BYTES)

    @property
    def format_version(self) -> int:
        """The format version that manifests are written in."""
        return self._metadata.format_version

    # Reading

    def read_base(self, snapshot: Snapshot | None) -> list[ManifestFile]:
        """Return the manifests of the base snapshot, with the counts that version 1 left out."""
        if snapshot is None:
            return []
        manifests = read_manifest_list(self.loaded.storage, snapshot, self.context.cache)
        if self._metadata.format_version == 1:
            return manifests
        return [self._counted(manifest) for manifest in manifests]

    def partition_of(self, manifest: ManifestFile) -> tuple[PartitionSpec, StructType]:
        """Return the spec of a manifest and the type of its tuples."""
        spec = self.specs.get(manifest.partition_spec_id)
        if spec is None:
            raise InvalidManifestError(
                f"Cannot use the manifest: the table has no partition spec {manifest.partition_spec_id}",
                path=manifest.manifest_path,
                heading="Manifest Lists",
            )
        return spec

    @property
    def target_bytes(self) -> int:
        """The target size of manifests."""
        return self._target_bytes

    def read(self, manifest: ManifestFile, fields: Iterable[str] = COLUMNS, *, caches: bool = True) -> ManifestColumns:
        """Return columns of a manifest of the base or of this commit; `caches` stores them in the manifest cache."""
        _, partition_type = self.partition_of(manifest)
        return read_manifest(
            self.loaded.storage, manifest, partition_type, frozenset(fields), cache=self.context.cache, keeps=caches
        )

    def _counted(self, manifest: ManifestFile) -> ManifestFile:
        if all(getattr(manifest, name) is not None for name in (*_COUNTS, *map(_rows_name, _COUNTS))):
            return manifest
        columns = self.read(manifest, ("status", "record_count"))
        status = columns.column("status").to_numpy()
        rows = np.maximum(columns.column("record_count").to_numpy(), 0)
        kinds = (EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED)
        counted: dict[str, Any] = {}
        for name, entry_status in zip(_COUNTS, kinds, strict=True):
            counted[name] = int(np.count_nonzero(status == entry_status.value))
            counted[_rows_name(name)] = int(rows[status == entry_status.value].sum())
        return replace(manifest, **counted)

    # Writing

    def write_new(self, files: Sequence[AddedFile], content: ManifestContent) -> list[ManifestFile]:
        """Return manifests of new files of one content, newest spec first; only the first attempt writes them."""
        written: list[ManifestFile] = []
        chosen = [file for file in files if file.content is content]
        for spec_id in sorted({added_file.file.spec_id for added_file in chosen}, reverse=True):
            group = [added_file for added_file in chosen if added_file.file.spec_id == spec_id]
            # The added files may differ between attempts, since vectors are merged with those of other writers.
            names = tuple(
                (added_file.file.file_path, added_file.file.content_offset, added_file.sequence_number)
                for added_file in group
            )
            key = ("new", content, spec_id, self._metadata.format_version, names)
            manifests: list[ManifestFile] | None = self.context.written.find(key)
            if manifests is None:
                parts = [
                    group[index : index + FILES_PER_MANIFEST] for index in range(0, len(group), FILES_PER_MANIFEST)
                ]
                threads = min(self.context.threads, len(parts))
                manifests = [
                    manifest for group in map_in_order(self._write_part, parts, threads=threads) for manifest in group
                ]
                self.context.written.keep(key, manifests)
            written += manifests
        return written

    def _write_part(self, files: Sequence[AddedFile]) -> list[ManifestFile]:
        spec_id = self._metadata.spec(files[0].file.spec_id).spec_id
        content, snapshot_id = files[0].content, self.context.snapshot_id
        entries = [
            ManifestEntry(EntryStatus.ADDED, added_file.file, snapshot_id, added_file.sequence_number)
            for added_file in files
        ]
        return self.write_rows(entries_to_table(entries, self.specs[spec_id][1]), spec_id, content)

    def write_rows(
        self, rows: pa.Table, spec_id: int, content: ManifestContent, *, max_bytes: int | None = None
    ) -> list[ManifestFile]:
        """Write entries as one manifest of up to `max_bytes`, or as many as the target size requires."""
        path, data, manifest = self._encode(rows, spec_id, content)
        count = min(-(-len(data) // self._target_bytes), rows.num_rows)
        if count <= 1 or (max_bytes is not None and len(data) <= max_bytes):
            self.context.written.write(self.loaded.storage, path, data)
            return [manifest]
        size = -(-rows.num_rows // count)
        return [self._write_one(rows.slice(index, size), spec_id, content) for index in range(0, rows.num_rows, size)]

    def measure(self, rows: pa.Table, spec_id: int, content: ManifestContent) -> int:
        """Return the size of a manifest of the entries in bytes, without writing it."""
        return len(self._encode(rows, spec_id, content)[1])

    def _write_one(self, rows: pa.Table, spec_id: int, content: ManifestContent) -> ManifestFile:
        path, data, manifest = self._encode(rows, spec_id, content)
        self.context.written.write(self.loaded.storage, path, data)
        return manifest

    def _encode(self, rows: pa.Table, spec_id: int, content: ManifestContent) -> tuple[str, bytes, ManifestFile]:
        spec, partition_type = self.specs[spec_id]
        path = f"{self._folder}/{manifest_name(self.context.commit_id, self.context.written.next_number())}"
        encoded = encode_manifest(
            rows,
            path=path,
            spec=spec,
            schema=self._metadata.current_schema,
            partition_type=partition_type,
            format_version=self._metadata.format_version,
            snapshot_id=self.context.snapshot_id,
            content=content,
            codec=self._codec,
            level=self._level,
        )
        return path, encoded.data, encoded.manifest

    def write_without(self, manifest: ManifestFile, columns: ManifestColumns, removed: Mask) -> ManifestFile:
        """Rewrite a whole manifest with some of its files deleted by this commit."""
        return self._write_one(
            without_files(columns, removed, self.context.snapshot_id), manifest.partition_spec_id, manifest.content
        )

    def merge(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Return manifests of one content with small ones merged by the table's properties.

        The newest manifests come first. Manifests of one spec are packed from the oldest on, in order, so that the
        newest group stays small and is merged with later ones. That group waits until it has the minimum number of
        manifests; a group of one stays unchanged.
        """
        table = self._metadata.properties
        if len(manifests) < 2 or not read_property(table, properties.MANIFEST_MERGE_ENABLED):
            return list(manifests)
        min_count = read_property(table, properties.MANIFEST_MIN_MERGE_COUNT)
        newest = manifests[0]
        merged: list[ManifestFile] = []
        for spec_id in sorted({manifest.partition_spec_id for manifest in manifests}, reverse=True):
            group = [manifest for manifest in manifests if manifest.partition_spec_id == spec_id]
            bins = pack_from_end(group, [manifest.manifest_length for manifest in group], self._target_bytes)
            merged += [
                manifest
                for written in map_in_order(
                    lambda packed: list(packed) if _stays(packed, newest, min_count) else [self._write_merged(packed)],
                    bins,
                    threads=min(self.context.threads, len(bins)),
                )
                for manifest in written
            ]
        return merged

    def _write_merged(self, manifests: Sequence[ManifestFile]) -> ManifestFile:
        key = ("merged", self._metadata.format_version, *map(manifest_key, manifests))
        merged: ManifestFile | None = self.context.written.find(key)
        if merged is None:
            parts = [merged_files(self.read(manifest), self.context.snapshot_id) for manifest in manifests]
            first = manifests[0]
            merged = self._write_one(pa.concat_tables(parts), first.partition_spec_id, first.content)
            self.context.written.keep(key, merged)
        return merged

    def write_list(self, manifests: Sequence[ManifestFile], parent_snapshot_id: int | None) -> WrittenList:
        """Write the manifest list of this attempt."""
        metadata, context = self._metadata, self.context
        first_row_id = metadata.next_row_id if metadata.format_version >= 3 else None
        encoded = encode_manifest_list(
            manifests,
            format_version=metadata.format_version,
            snapshot_id=context.snapshot_id,
            parent_snapshot_id=parent_snapshot_id,
            sequence_number=metadata.next_sequence_number,
            first_row_id=first_row_id,
            codec=self._codec,
            level=self._level,
        )
        path = f"{self._folder}/{manifest_list_name(context.snapshot_id, context.attempt, context.commit_id)}"
        context.written.write(self.loaded.storage, path, encoded.data)
        added_rows = None if first_row_id is None else (encoded.next_row_id or 0) - first_row_id
        return WrittenList(path, encoded.manifests, first_row_id, added_rows)


@dataclass(frozen=True, slots=True)
class WrittenList:
    """A written manifest list, and the row ids it assigned, which are None before v3."""

    path: str
    manifests: tuple[ManifestFile, ...]
    first_row_id: int | None
    added_rows: int | None


def without_files(columns: ManifestColumns, removed: Mask, snapshot_id: int) -> pa.Table:
    """Return a manifest's live entries, with some deleted by a snapshot and the others EXISTING."""
    live = live_mask(columns)
    rows = columns.table.filter(pa.array(live))
    is_removed = removed[live]
    status = np.where(is_removed, EntryStatus.DELETED.value, EntryStatus.EXISTING.value).astype(np.int32)
    ids = pc.if_else(pa.array(is_removed), pa.scalar(snapshot_id, pa.int64()), rows.column("snapshot_id"))
    return _with(rows, status=pa.array(status), snapshot_id=ids)


def merged_files(columns: ManifestColumns, snapshot_id: int) -> pa.Table:
    """Return the entries of a manifest for a merged manifest of a snapshot.

    Additions and deletions of the snapshot itself stay; other live files are EXISTING; older deletes are dropped.
    """
    is_own = pc.fill_null(pc.equal(columns.column("snapshot_id"), snapshot_id), False).to_numpy().astype(bool)
    live = live_mask(columns)
    rows = columns.table.filter(pa.array(live | is_own))
    status = rows.column("status").to_numpy()
    status = np.where(is_own[live | is_own], status, EntryStatus.EXISTING.value).astype(np.int32)
    return _with(rows, status=pa.array(status))


def _with(rows: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows


def pack_from_end(items: Sequence[Weighed], weights: Sequence[int], target: int) -> list[list[Weighed]]:
    """Return items in order in groups of at most a weight, filled up from the end."""
    bins: list[list[Weighed]] = []
    room = 0
    for item, weight in zip(reversed(items), reversed(weights), strict=True):
        if bins and weight <= room:
            bins[-1].append(item)
            room -= weight
        else:
            bins.append([item])
            room = target - weight
    return [list(reversed(packed)) for packed in reversed(bins)]


def _stays(group: Sequence[ManifestFile], newest: ManifestFile, min_count: int) -> bool:
    return len(group) == 1 or (newest in group and len(group) < min_count)


def manifest_key(manifest: ManifestFile) -> tuple[object, ...]:
    """Return the key of the content of a manifest, including what its entries inherit."""
    return (
        manifest.manifest_path,
        manifest.sequence_number,
        manifest.added_snapshot_id,
        manifest.first_row_id,
        manifest.partition_spec_id,
    )


def _rows_name(files_name: str) -> str:
    return files_name.replace("_files_", "_rows_")
