"""From added and removed files to the manifests of a snapshot.

This is the engine below every action that changes files. Its steps, each over the present head of the branch:

    data       remove data files from their manifests: files that are named, in a dropped partition, or proven
               by partition and metrics to hold only rows of a filter. A file of which the filter covers only some
               rows cannot be removed whole: that is an error, and the file must be rewritten
    deletes    remove delete files: named, in a dropped partition, or covered by the filter; and those that no
               longer delete anything: older than the oldest live data, or a vector of a removed file
    new        write manifests of the added files, checked against the table's format version
    keep       leave out manifests without live files, unless this commit wrote them
    merge      merge by the table's properties, data and deletes separately; a fast append does not merge

If a named file is not live, another writer removed it. The commit is refused, since its replacement was made from rows
that no longer exist ("failMissing" in Iceberg Java).

The result for one manifest depends only on that manifest and the request, and is cached for the next attempt, so a
retry opens only new manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.commit.action import CommitContext
from frazil.commit.match_files import FileMatcher
from frazil.commit.may_hold_partition import may_hold_partition
from frazil.commit.summary import SUMMARY_FIELDS, SummaryCounts
from frazil.commit.write_manifests import AddedFile, ManifestWriter, manifest_key
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.partition_keys import partition_keys
from frazil.expr.columns.stats_masks import Mask, to_mask
from frazil.expr.predicates import FALSE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.prune import METRIC_FIELDS
from frazil.scan.read_manifests import worthwhile_threads
from frazil.spec.data_file import DataFile, FileContent, FileFormat, PartitionKey, check_data_file
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import StructType
from frazil.spec.versions import Feature, check_feature
from frazil.threads import map_in_order

DeleteKey = tuple[str, int | None]
"""A delete file's path and, for a deletion vector, its offset: vectors may share a file."""

_SHOWN_FILES = 5


def delete_key(file: DataFile) -> DeleteKey:
    """Return the key of a delete file or deletion vector."""
    return file.file_path, file.content_offset


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes of a commit to the files of a branch.

    `removed_paths` are data files. `removed_from` are their partitions, if known, so that other manifests need not be
    opened. `removed_deletes` are delete files. `where` removes data files that hold only matching rows, and
    `dropped_partitions` all files in them. With `must_find`, every named file must be live.
    """

    added: tuple[AddedFile, ...] = ()
    removed_paths: frozenset[str] = frozenset()
    removed_from: frozenset[PartitionKey] | None = None
    removed_deletes: frozenset[DeleteKey] = frozenset()
    where: Predicate = FALSE
    case_sensitive: bool = True
    dropped_partitions: frozenset[PartitionKey] = frozenset()
    must_find: bool = True
    merges: bool = True

    @property
    def removes_data(self) -> bool:
        """Whether data files may be removed."""
        return bool(self.removed_paths) or bool(self.dropped_partitions) or self.where != FALSE


@dataclass(frozen=True, slots=True)
class _Filtered:
    """A manifest after filtering, and the files removed from it, or None if none were."""

    manifest: ManifestFile
    removed: ManifestColumns | None = None


@dataclass(slots=True)
class ChangedFiles:
    """The manifests of a snapshot, its counts, and how many manifests of the base it no longer has."""

    manifests: list[ManifestFile]
    counts: SummaryCounts
    replaced_manifests: int
    removed_data: list[ManifestColumns] = field(default_factory=list)
    removed_deletes: list[ManifestColumns] = field(default_factory=list)

    @property
    def has_removed(self) -> bool:
        """Whether any file was removed."""
        return bool(self.removed_data) or bool(self.removed_deletes)


def change_files(writer: ManifestWriter, parent: Snapshot | None, changes: FileChanges) -> ChangedFiles:
    """Return the manifests of a branch after some files are added and removed."""
    check_added(changes.added, writer.format_version)
    base = writer.read_base(parent)
    counts = SummaryCounts()
    counts.add_files(added_file.file for added_file in changes.added)

    data = [_Filtered(manifest) for manifest in base if manifest.content is ManifestContent.DATA]
    if changes.removes_data:
        data = _filter_data(writer, [outcome.manifest for outcome in data], changes)
    removed_data = [outcome.removed for outcome in data if outcome.removed is not None]
    if changes.must_find:
        _check_all_removed(changes.removed_paths, removed_data)

    deletes = [manifest for manifest in base if manifest.content is ManifestContent.DELETES]
    filtered = _filter_deletes(writer, data, deletes, removed_data, changes)
    removed_deletes = [outcome.removed for outcome in filtered if outcome.removed is not None]
    if changes.must_find:
        _check_all_deletes_removed(changes.removed_deletes, removed_deletes)
    for files in (*removed_data, *removed_deletes):
        counts.remove_files(files)

    manifests: list[ManifestFile] = []
    for content, kept in ((ManifestContent.DATA, data), (ManifestContent.DELETES, filtered)):
        remaining = [outcome.manifest for outcome in kept]
        written = [
            *writer.write_new(changes.added, content),
            *(manifest for manifest in remaining if _is_kept(manifest, writer.context)),
        ]
        manifests += writer.merge(written) if changes.merges else written
    paths = {manifest.manifest_path for manifest in manifests}
    replaced = sum(1 for manifest in base if manifest.manifest_path not in paths)
    return ChangedFiles(manifests, counts, replaced, removed_data, removed_deletes)


def _is_kept(manifest: ManifestFile, context: CommitContext) -> bool:
    return manifest.has_live_files or manifest.added_snapshot_id == context.snapshot_id


# What is added


def check_added(added: Sequence[AddedFile], format_version: int) -> None:
    """Refuse files that the format version does not allow, and a file that is added twice."""
    seen: set[DeleteKey] = set()
    vectors: set[str | None] = set()
    for added_file in added:
        file = added_file.file
        if file.first_row_id is not None:
            file = replace(file, first_row_id=None)
        check_data_file(file, format_version)
        if file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector:
            check_feature(format_version, Feature.POSITION_DELETE_FILES)
        key = delete_key(file)
        if key in seen:
            raise InvalidRequestError(f"Cannot add file {file.file_path!r}: it is listed twice")
        seen.add(key)
        if file.is_deletion_vector:
            if file.referenced_data_file in vectors:
                raise InvalidRequestError(
                    f"Cannot add two deletion vectors for data file {file.referenced_data_file!r}",
                    hint="Merge them: a data file has one vector at most.",
                    heading="Deletion Vectors",
                )
            vectors.add(file.referenced_data_file)


# Data files


def _filter_data(writer: ManifestWriter, manifests: Sequence[ManifestFile], changes: FileChanges) -> list[_Filtered]:
    loaded = writer.loaded
    matcher = FileMatcher(loaded.metadata, writer.specs, changes.where, case_sensitive=changes.case_sensitive)
    paths = pa.array(sorted(changes.removed_paths), pa.string())

    def find(manifest: ManifestFile) -> Mask | None:
        partition_type = writer.partition_of(manifest)[1]
        dropped = _of_manifest(changes.dropped_partitions, manifest, partition_type)
        may_match = matcher.may_match_manifest(manifest)
        may_name = len(paths) > 0 and (
            changes.removed_from is None or bool(_of_manifest(changes.removed_from, manifest, partition_type))
        )
        if not (may_name or dropped or may_match):
            return None
        fields = {"status", "file_path", "partition", "record_count"}
        files = writer.read(manifest, fields | {*METRIC_FIELDS} if may_match else fields)
        live = live_mask(files)
        removed: Mask = live & to_mask(pc.is_in(files.column("file_path"), value_set=paths))
        removed |= live & _in_partitions(files, dropped)
        if may_match:
            some, every = matcher.match(files, live & ~removed)
            _check_whole(files, some & ~every, changes.where)
            removed |= every
        return removed

    def filter_one(manifest: ManifestFile) -> _Filtered:
        return _filter_manifest(writer, manifest, find, ("data", *_request_key(loaded, changes)))

    threads = worthwhile_threads(loaded.storage, manifests, min(writer.context.threads, max(len(manifests), 1)))
    return list(map_in_order(filter_one, manifests, threads=threads))


def _request_key(loaded: LoadedTable, changes: FileChanges) -> tuple[object, ...]:
    """Return the inputs besides the manifest, with the schema that a filter's names refer to."""
    schema_id = None if changes.where == FALSE else loaded.metadata.current_schema_id
    return loaded.metadata.format_version, schema_id, changes.removed_paths, changes.removed_deletes


def _filter_manifest(
    writer: ManifestWriter,
    manifest: ManifestFile,
    find: Callable[[ManifestFile], Mask | None],
    key: tuple[object, ...],
) -> _Filtered:
    """Return a manifest without the files that `find` selects, cached from an earlier attempt if possible."""
    if not manifest.has_live_files:
        return _Filtered(manifest)
    whole_key = ("filtered", *key, *manifest_key(manifest))
    filtered: _Filtered | None = writer.context.written.find(whole_key)
    if filtered is None:
        removed = find(manifest)
        filtered = _Filtered(manifest)
        if removed is not None and removed.any():
            whole = writer.read(manifest)
            removed_rows = whole.table.select([*SUMMARY_FIELDS, "file_path"]).filter(pa.array(removed))
            filtered = _Filtered(writer.write_without(manifest, whole, removed), replace(whole, table=removed_rows))
        writer.context.written.keep(whole_key, filtered)
    return filtered


def _of_manifest(keys: frozenset[PartitionKey], manifest: ManifestFile, data_type: StructType) -> set[PartitionKey]:
    """Return the partitions of a manifest's spec, or none if its summaries rule them all out."""
    own = {key for key in keys if key[0] == manifest.partition_spec_id}
    return own if own and may_hold_partition(manifest, data_type, own) else set()


def _in_partitions(files: ManifestColumns, keys: set[PartitionKey]) -> Mask:
    if not keys:
        return np.zeros(len(files), dtype=bool)
    matches = [partition_key in keys for partition_key in partition_keys(files)]
    return np.array(matches, dtype=bool)


def _check_whole(files: ManifestColumns, partial: Mask, where: Predicate) -> None:
    if not partial.any():
        return
    path = files.column("file_path")[int(np.argmax(partial))].as_py()
    raise InvalidRequestError(
        f"Cannot delete file {path!r} where {where}: some, but not all, rows may match",
        hint="Rows of the file must be deleted individually: delete by rows, or filter by whole partitions.",
        manifest=files.path,
    )


def _check_all_removed(requested: frozenset[str], removed: Iterable[ManifestColumns]) -> None:
    paths = {path for files in removed for path in files.column("file_path").to_pylist()}
    _check_none_missing(requested - paths)


def _check_all_deletes_removed(requested: frozenset[DeleteKey], removed: Iterable[ManifestColumns]) -> None:
    keys: set[DeleteKey] = set()
    for files in removed:
        keys |= set(_delete_keys(files))
    _check_none_missing({path for path, _ in requested - keys})


def _check_none_missing(missing: Iterable[str]) -> None:
    names = sorted(missing)
    if names:
        more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
        raise ConcurrentChangeError(
            f"Cannot commit: files to be removed are not in the table: {', '.join(names[:_SHOWN_FILES])}{more}",
            hint="Another writer removed them, and nothing was committed. Run the operation again.",
        )


# Delete files


def _filter_deletes(
    writer: ManifestWriter,
    data: Sequence[_Filtered],
    manifests: Sequence[ManifestFile],
    removed_data: Sequence[ManifestColumns],
    changes: FileChanges,
) -> list[_Filtered]:
    if not manifests or not changes.merges:
        return [_Filtered(manifest) for manifest in manifests]
    loaded = writer.loaded
    oldest = _oldest_data(writer, data, changes)
    removed_paths = frozenset(path for files in removed_data for path in files.column("file_path").to_pylist())
    removed_array = pa.array(sorted(removed_paths), pa.string())
    named = pa.array(sorted({path for path, _ in changes.removed_deletes}), pa.string())
    matcher = FileMatcher(loaded.metadata, writer.specs, changes.where, case_sensitive=changes.case_sensitive)

    def find(manifest: ManifestFile) -> Mask | None:
        dropped = _of_manifest(changes.dropped_partitions, manifest, writer.partition_of(manifest)[1])
        may_match = matcher.may_match_manifest(manifest)
        is_old = manifest.min_sequence_number < oldest
        if not (len(named) or dropped or may_match or is_old or removed_paths):
            return None
        fields = {
            "status",
            "file_path",
            "file_format",
            "partition",
            "record_count",
            "sequence_number",
            "referenced_data_file",
            "content_offset",
        }
        files = writer.read(manifest, fields | {*METRIC_FIELDS} if may_match else fields)
        live = live_mask(files)
        removed: Mask = to_mask(pc.less(files.column("sequence_number"), oldest))
        removed &= to_mask(pc.greater(files.column("sequence_number"), 0))
        if removed_paths:
            is_vector = pc.equal(files.column("file_format"), FileFormat.PUFFIN.value)
            is_gone = pc.is_in(files.column("referenced_data_file"), value_set=removed_array)
            removed |= to_mask(pc.and_(is_vector, is_gone))
        if len(named):
            removed |= _is_named(files, named, changes.removed_deletes)
        removed |= _in_partitions(files, dropped)
        removed &= live
        if may_match:
            removed |= matcher.match(files, live & ~removed)[1]
        return removed

    key = ("deletes", *_request_key(loaded, changes), oldest, removed_paths)
    threads = worthwhile_threads(loaded.storage, manifests, min(writer.context.threads, len(manifests)))
    return list(
        map_in_order(lambda manifest: _filter_manifest(writer, manifest, find, key), manifests, threads=threads)
    )


def _oldest_data(writer: ManifestWriter, data: Sequence[_Filtered], changes: FileChanges) -> int:
    """Return a sequence number that no live data file is below; files added under an older number count."""
    kept = [filtered.manifest.min_sequence_number for filtered in data if _is_kept(filtered.manifest, writer.context)]
    added = [added_file.sequence_number for added_file in changes.added if added_file.sequence_number is not None]
    return min([writer.loaded.metadata.last_sequence_number, *added, *(number for number in kept if number >= 0)])


def _is_named(files: ManifestColumns, paths: pa.Array, requested: frozenset[DeleteKey]) -> Mask:
    named = to_mask(pc.is_in(files.column("file_path"), value_set=paths))
    if named.any():
        keys = _delete_keys(files)
        for index in np.flatnonzero(named).tolist():
            named[index] = keys[index] in requested
    return named


def _delete_keys(files: ManifestColumns) -> list[DeleteKey]:
    return list(zip(files.column("file_path").to_pylist(), files.column("content_offset").to_pylist(), strict=True))
