"""Find out how well a table can be read and planned, and name the procedures that would help. `t.health()`.

It reads some columns of the current snapshot's manifests, and lists the data folder if that is not too long. Each
problem names the maintenance procedure that solves it. The limits are those of the procedures themselves, so that
running a named procedure changes the table, and a freshly maintained table is healthy.

    small files      rewrite_data_files rewrites a partition with at least five files below three quarters of the target
    deletes          a data file with three tenths of its rows deleted; equality deletes; many position delete files
    snapshots        some have expired by the table's retention
    manifests        more than twice as many as their size requires
    metadata files   commits drop old ones from the log without deleting them
    orphans          more old files in the data folder than the summaries of snapshots count: an estimate, since no
                     older manifest is read for it
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import StorageError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.partition_keys import partition_keys
from frazil.loaded import LoadedTable
from frazil.maintenance.report import Findings, Problem, Report
from frazil.maintenance.report import counted as noun
from frazil.progress import count, counted
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec import properties
from frazil.spec.data_file import FileContent, FileFormat
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.property_kinds import read_property
from frazil.spec.retention import snapshots_to_retain
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.snapshot_history import ancestor_ids
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.locations import data_folder, is_under, metadata_folder
from frazil.threads import default_threads, map_in_order

MIN_INPUT_FILES: Final = 5
"""The number of small files that makes compacting a partition worthwhile; the procedure's default."""
SMALL_SHARE: Final = 0.75
"""The share of the target size below which a file is small; the procedure's default."""
DELETED_SHARE: Final = 0.3
"""The share of deleted rows from which a data file is rewritten; the procedure's default."""
MANY_MANIFESTS: Final = 20
"""A number of manifests that is acceptable, however small they are."""

SIZE_STEPS: Final = (("1_mib", 1 << 20), ("16_mib", 16 << 20), ("128_mib", 128 << 20), ("512_mib", 512 << 20))
"""The bounds of the histogram of file sizes."""
MAX_LISTED: Final = 20_000
"""The most files in a data folder for which orphans are estimated."""
ORPHAN_AGE_MS: Final = 3 * 24 * 60 * 60 * 1000
"""Younger files may still be being written; the procedure's default."""

_FIELDS: Final = (
    "status",
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "referenced_data_file",
)


@dataclass(slots=True)
class _Files:
    """The sums over the live files of a snapshot."""

    data_files: int = 0
    data_bytes: int = 0
    rows: int = 0
    small_bytes: int = 0
    small: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    """Small data files by partition."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Delete files by kind."""
    deleted_rows: int = 0
    deleted_in: Counter[str] = field(default_factory=Counter)
    """Deleted rows by data file, if the delete file names one."""
    small_deletes: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    """Small position delete files by partition."""
    heavy: int = 0
    """Data files with a large share of deleted rows."""
    with_deletes: int = 0
    """Data files that are named by a delete file."""
    most_deleted: int = 0
    """The most rows deleted from one data file by name."""
    sizes: Counter[int] = field(default_factory=Counter)
    """Data files by step of the histogram."""


def table_health(
    loaded: LoadedTable, *, now_ms: int, cache: ManifestCache | None = None, threads: int | None = None
) -> Report:
    """Return possible improvements of a table's current state by reading its manifests, but no data."""
    metadata = loaded.metadata
    findings = Findings()
    snapshot = metadata.current_snapshot
    manifests = [] if snapshot is None else read_manifest_list(loaded.storage, snapshot)
    files = _add_up(loaded, manifests, cache, threads or default_threads())
    findings.facts |= {
        "data_files": files.data_files,
        "data_bytes": files.data_bytes,
        "rows": files.rows,
        "average_file_bytes": files.data_bytes // max(files.data_files, 1),
        **{name: files.sizes[index] for index, name in enumerate(_size_names())},
        "small_data_files": sum(files.small.values()),
        "position_delete_files": files.kinds["position"],
        "equality_delete_files": files.kinds["equality"],
        "deletion_vectors": files.kinds["vector"],
        "rows_deleted_by_position": files.deleted_rows,
        "data_files_with_deletes": files.with_deletes,
        "most_rows_deleted_from_a_file": files.most_deleted,
        "manifests": len(manifests),
        "snapshots": len(metadata.snapshots),
        "metadata_files": len(metadata.metadata_log) + 1,
    }
    findings.add(*_small_files(metadata, files))
    findings.add(*_deletes(metadata, files))
    findings.add(*_manifests(metadata, manifests))
    findings.add(*_history(metadata, now_ms))
    orphans = _orphans(loaded, now_ms)
    if orphans is not None:
        findings.facts["orphan_files_estimate"] = orphans
        findings.add(*_orphan_problems(orphans))
    return findings.report(f"Health of {loaded.name}")


def _add_up(loaded: LoadedTable, manifests: list[ManifestFile], cache: ManifestCache | None, threads: int) -> _Files:
    specs = partition_types(loaded.metadata)
    totals = _Files()
    target = read_property(loaded.metadata.properties, properties.WRITE_TARGET_FILE_SIZE_BYTES)
    delete_target = read_property(loaded.metadata.properties, properties.DELETE_TARGET_FILE_SIZE_BYTES)

    def read(manifest: ManifestFile) -> ManifestColumns:
        files = read_manifest(loaded.storage, manifest, specs[manifest.partition_spec_id][1], _FIELDS, cache=cache)
        mask = live_mask(files)
        return files if mask.all() else replace(files, table=files.table.filter(pa.array(mask)))

    live = [manifest for manifest in manifests if manifest.has_live_files]
    deletes = [manifest for manifest in live if manifest.content is ManifestContent.DELETES]
    data = [manifest for manifest in live if manifest.content is ManifestContent.DATA]
    # Deletes come first, since data files are compared with them.
    count("manifests read", 0, len(live))
    for files in counted("manifests read", map_in_order(read, deletes, threads=threads)):
        _add_deletes(totals, files, SMALL_SHARE * delete_target)
    for files in counted("manifests read", map_in_order(read, data, threads=threads)):
        _add_data(totals, files, SMALL_SHARE * target)
    return totals


def _add_data(totals: _Files, files: ManifestColumns, small_bytes: float) -> None:
    sizes = np.maximum(files.column("file_size_in_bytes").to_numpy(), 0)
    rows = np.maximum(files.column("record_count").to_numpy(), 0)
    totals.data_files += len(files)
    totals.data_bytes += int(sizes.sum())
    totals.rows += int(rows.sum())
    steps = np.searchsorted([size for _, size in SIZE_STEPS], sizes, side="right")
    totals.sizes.update(dict(enumerate(np.bincount(steps, minlength=len(SIZE_STEPS) + 1).tolist())))
    is_small = sizes < small_bytes
    totals.small_bytes += int(sizes[is_small].sum())
    _count_partitions(totals.small, files, is_small)
    if totals.deleted_in:
        for path, count in zip(files.column("file_path").to_pylist(), rows.tolist(), strict=True):
            deleted = totals.deleted_in.get(path, 0)
            totals.with_deletes += deleted > 0
            totals.most_deleted = max(totals.most_deleted, deleted)
            if deleted >= DELETED_SHARE * count > 0:
                totals.heavy += 1


def _add_deletes(totals: _Files, files: ManifestColumns, small_bytes: float) -> None:
    rows = np.maximum(files.column("record_count").to_numpy(), 0)
    sizes = files.column("file_size_in_bytes").to_numpy()
    is_position = files.column("content").to_numpy() == FileContent.POSITION_DELETES
    is_vector = pc.equal(files.column("file_format"), FileFormat.PUFFIN.value).to_numpy()
    totals.kinds.update(
        vector=int(is_vector.sum()),
        position=int((is_position & ~is_vector).sum()),
        equality=int((~is_position).sum()),
    )
    totals.deleted_rows += int(rows[is_position].sum())
    names = files.column("referenced_data_file").to_pylist()
    for name, deleted, counts in zip(names, rows.tolist(), is_position.tolist(), strict=True):
        if counts and name is not None:
            totals.deleted_in[name] += deleted
    _count_partitions(totals.small_deletes, files, is_position & ~is_vector & (sizes < small_bytes))


def _count_partitions(into: Counter[tuple[Any, ...]], files: ManifestColumns, chosen: Any) -> None:
    if not chosen.any():
        return
    kept = replace(files, table=files.table.filter(pa.array(chosen)))
    into.update(partition_keys(kept))


def _small_files(metadata: TableMetadata, files: _Files) -> Iterator[Problem]:
    crowded = {key: count for key, count in files.small.items() if count >= MIN_INPUT_FILES}
    if not crowded:
        return
    target = read_property(metadata.properties, properties.WRITE_TARGET_FILE_SIZE_BYTES)
    count = sum(crowded.values())
    what = (
        f"{count:,} of {noun(files.data_files, 'data file')} are below {_bytes(SMALL_SHARE * target)}, in "
        f"{noun(len(crowded), 'partition')} with {MIN_INPUT_FILES} or more of them"
    )
    to_do = "Run t.maintain.rewrite_data_files(), which packs them into files of the target size."
    yield Problem("small-files", what, to_do, procedure="rewrite_data_files")


def _deletes(metadata: TableMetadata, files: _Files) -> Iterator[Problem]:
    if files.kinds["equality"]:
        what = f"rows are compared with those of {noun(files.kinds['equality'], 'equality delete file')}"
        to_do = "Run t.maintain.rewrite_data_files() with delete-file-threshold=1, which applies them for good."
        yield Problem("equality-deletes", what, to_do, procedure="rewrite_data_files")
    if files.heavy:
        what = f"{DELETED_SHARE:.0%} or more of the rows are deleted in {noun(files.heavy, 'data file')}"
        to_do = "Run t.maintain.rewrite_data_files(), which leaves deleted rows out."
        yield Problem("deleted-rows", what, to_do, procedure="rewrite_data_files")
    crowded = [count for count in files.small_deletes.values() if count >= MIN_INPUT_FILES]
    if files.kinds["position"] and (crowded or metadata.format_version >= 3):
        what = f"scans open {noun(files.kinds['position'], 'position delete file')} one by one"
        after = "deletion vectors" if metadata.format_version >= 3 else "fewer, larger files"
        to_do = f"Run t.maintain.rewrite_position_delete_files(), which makes {after} of them."
        yield Problem("position-deletes", what, to_do, procedure="rewrite_position_delete_files")


def _manifests(metadata: TableMetadata, manifests: list[ManifestFile]) -> Iterator[Problem]:
    target = read_property(metadata.properties, properties.MANIFEST_TARGET_SIZE_BYTES)
    groups: Counter[tuple[int, int]] = Counter()
    for manifest in manifests:
        groups[manifest.content, manifest.partition_spec_id] += manifest.manifest_length
    needed = sum(-(-size // max(target, 1)) for size in groups.values())
    if len(manifests) <= max(MANY_MANIFESTS, 2 * needed):
        return
    what = (
        f"{len(manifests):,} manifests of {_bytes(sum(groups.values()))} in all are read by plans, where {needed:,} of "
        f"{_bytes(target)} would do"
    )
    to_do = "Run t.maintain.rewrite_manifests(), which merges them."
    yield Problem("small-manifests", what, to_do, procedure="rewrite_manifests")


def _history(metadata: TableMetadata, now_ms: int) -> Iterator[Problem]:
    may_collect = read_property(metadata.properties, properties.GC_ENABLED)
    retention = snapshots_to_retain(metadata, now_ms)
    if may_collect and (retention.expired_ids or retention.expired_refs):
        what = (
            f"{len(retention.expired_ids):,} of {len(metadata.snapshots):,} snapshots, and "
            f"{len(retention.expired_refs):,} branches and tags, are older than the table keeps them"
        )
        to_do = "Run t.maintain.expire_snapshots(), which removes them and the files only they lead to."
        yield Problem("expired-snapshots", what, to_do, procedure="expire_snapshots")
    limit = read_property(metadata.properties, properties.METADATA_PREVIOUS_VERSIONS_MAX)
    deletes = read_property(metadata.properties, properties.METADATA_DELETE_AFTER_COMMIT_ENABLED)
    if may_collect and not deletes and len(metadata.metadata_log) >= max(limit, 1):
        what = f"each commit forgets a metadata file and leaves it behind: the log is full with {limit:,}"
        name = properties.METADATA_DELETE_AFTER_COMMIT_ENABLED.name
        to_do = f"Set {name} to true, and run t.maintain.remove_orphan_files(old_metadata=True) for those left behind."
        yield Problem("old-metadata-files", what, to_do, procedure="remove_orphan_files")


def _orphans(loaded: LoadedTable, now_ms: int) -> int | None:
    """Return about how many files of the data folder no snapshot leads to; None where that cannot be told cheaply."""
    metadata = loaded.metadata
    known = _spoken_of(metadata)
    if known is None or not read_property(metadata.properties, properties.GC_ENABLED):
        return None
    folder = data_folder(metadata.location, metadata.properties)
    other = metadata_folder(metadata.location, metadata.properties)
    listed = old = 0
    with contextlib.suppress(StorageError):
        for file in loaded.storage.list(folder):
            if is_under(file.path, other):
                continue
            listed += 1
            old += file.modified_ms < now_ms - ORPHAN_AGE_MS
            if listed > MAX_LISTED:
                return None
        return max(min(old, listed - known), 0)
    return None


def _spoken_of(metadata: TableMetadata) -> int | None:
    """Return how many data and delete files snapshots lead to, as far as their summaries say it."""
    current = metadata.current_snapshot
    if current is None:
        return 0
    ancestors = set(ancestor_ids(metadata, current.snapshot_id))
    totals = _counts(current, Summary.TOTAL_DATA_FILES, Summary.TOTAL_DELETE_FILES)
    if None in totals:
        return None
    count = sum(total or 0 for total in totals)
    for snapshot in metadata.snapshots:
        is_ours = snapshot.snapshot_id in ancestors
        # Older snapshots still lead to what was removed since, and other branches to what was added there.
        names = (
            (Summary.DELETED_DATA_FILES, Summary.REMOVED_DELETE_FILES)
            if is_ours
            else (Summary.ADDED_DATA_FILES, Summary.ADDED_DELETE_FILES)
        )
        count += sum(number or 0 for number in _counts(snapshot, *names))
    return count


def _counts(snapshot: Snapshot, *names: str) -> list[int | None]:
    found = [None if snapshot.summary is None else snapshot.summary.get(name) for name in names]
    return [int(text) if text is not None and text.isascii() and text.isdigit() else None for text in found]


def _orphan_problems(count: int) -> Iterator[Problem]:
    if count:
        what = f"about {noun(count, 'file')} in the data folder, three days old or more, are in no snapshot"
        to_do = "Run t.maintain.remove_orphan_files(dry_run=True), which tells exactly, and then without dry_run."
        yield Problem("orphan-files", what, to_do, procedure="remove_orphan_files")


def _size_names() -> list[str]:
    steps = [name for name, _ in SIZE_STEPS]
    between = [f"data_files_of_{low}_to_{high}" for low, high in pairwise(steps)]
    return [f"data_files_below_{steps[0]}", *between, f"data_files_of_{steps[-1]}_or_more"]


def _bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}"
