"""The files that a batch of a stream reads: all live files of a snapshot, or those that snapshots added.

Consecutive appends are a run: nothing was removed in between, so the manifest list of the last one leads to the files
of all, however manifests were merged. A backlog of a thousand appends costs one manifest list. If limits split a
snapshot, its own list gives the numbers of its files (`streams/offsets.py`).

Deletes are applied to live files of a snapshot. Added files are read as they were added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.expr.bind import bind
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import Mask, to_mask
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.explain import PlanCounts
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import Plan
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.threads import default_threads, map_in_order

_LAST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FilesPart:
    """A range of file numbers of one snapshot, with an exclusive end."""

    snapshot_id: int
    first: int = 0
    end: int = _LAST


@dataclass(frozen=True, slots=True)
class StreamFiles:
    """The files of a batch: of runs of snapshots, and of parts of others.

    With `is_whole`, parts are of all live files of a snapshot, with its deletes applied.
    """

    runs: tuple[tuple[int, ...], ...] = ()
    parts: tuple[FilesPart, ...] = ()
    is_whole: bool = False

    @property
    def last_snapshot_id(self) -> int:
        """The newest snapshot whose files are read."""
        return self.parts[-1].snapshot_id if self.is_whole or not self.runs else self.runs[-1][-1]


@dataclass(frozen=True, slots=True)
class NumberedManifest:
    """A manifest of a snapshot with the numbers of its files to read."""

    manifest: ManifestFile
    first: int
    count: int

    @property
    def end(self) -> int:
        """The number after its last file."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """The files of a snapshot in order, with their numbers, rows and bytes."""

    numbers: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def after(self, first: int) -> NumberedFiles:
        """Return the files from a number on."""
        keep = self.numbers >= first
        return NumberedFiles(self.numbers[keep], self.rows[keep], self.sizes[keep])


def number_manifests(
    loaded: LoadedTable,
    snapshot: Snapshot,
    *,
    is_whole: bool,
    manifests: Iterable[ManifestFile] | None = None,
    cache: ManifestCache | None = None,
) -> list[NumberedManifest]:
    """Return the data manifests of a snapshot, or only those it wrote, with the numbers of their files."""
    listed = read_manifest_list(loaded.storage, snapshot, cache) if manifests is None else manifests
    numbered: list[NumberedManifest] = []
    first = 0
    for manifest in listed:
        is_own = is_whole or manifest.added_snapshot_id in (None, snapshot.snapshot_id)
        if manifest.content is not ManifestContent.DATA or not is_own:
            continue
        added, existing = manifest.added_files_count, manifest.existing_files_count
        if added is None or existing is None:
            # Old writers leave out the counts.
            status = _read(loaded, manifest, {"status"}, cache).column("status").to_numpy()
            added = int((status == EntryStatus.ADDED.value).sum())
            existing = int((status == EntryStatus.EXISTING.value).sum())
        numbered.append(NumberedManifest(manifest, first, added + existing if is_whole else added))
        first += added + existing
    return numbered


def end_of_snapshot(
    loaded: LoadedTable, snapshot: Snapshot, *, is_whole: bool = False, cache: ManifestCache | None = None
) -> int:
    """Return the number after the last file of a snapshot."""
    return end_of_manifests(number_manifests(loaded, snapshot, is_whole=is_whole, cache=cache))


def end_of_manifests(manifests: list[NumberedManifest]) -> int:
    """Return the number after the last file of numbered manifests."""
    return max((manifest.end for manifest in manifests if manifest.count), default=0)


def number_files(
    loaded: LoadedTable, snapshot: Snapshot, *, is_whole: bool, cache: ManifestCache | None = None
) -> NumberedFiles:
    """Return the files of a snapshot, or only those it added, in order, by reading its manifests."""
    manifests = [
        manifest for manifest in number_manifests(loaded, snapshot, is_whole=is_whole, cache=cache) if manifest.count
    ]
    fields = {"status", "snapshot_id", "record_count", "file_size_in_bytes"}

    def read(numbered_manifest: NumberedManifest) -> tuple[npt.NDArray[np.int64], ...]:
        files = _read(loaded, numbered_manifest.manifest, fields, cache)
        mask = live_mask(files) if is_whole else _is_added(snapshot.snapshot_id, files)
        rows = files.column("record_count").to_numpy()[mask].astype(np.int64)
        sizes = files.column("file_size_in_bytes").to_numpy()[mask].astype(np.int64)
        return (
            np.arange(numbered_manifest.first, numbered_manifest.first + len(rows), dtype=np.int64),
            np.maximum(rows, 0),
            sizes,
        )

    parts = list(map_in_order(read, manifests, threads=default_threads()))
    nothing = np.zeros(0, dtype=np.int64)
    numbers, rows, sizes = (
        np.concatenate([columns[index] for columns in parts]) if parts else nothing for index in range(3)
    )
    return NumberedFiles(numbers, rows, sizes)


def _read(
    loaded: LoadedTable, manifest: ManifestFile, fields: set[str], cache: ManifestCache | None
) -> ManifestColumns:
    partition_type = partition_types(loaded.metadata)[manifest.partition_spec_id][1]
    return read_manifest(loaded.storage, manifest, partition_type, fields, cache=cache)


def _is_added(snapshot_id: int, files: ManifestColumns) -> Mask:
    is_added: Mask = files.column("status").to_numpy() == EntryStatus.ADDED.value
    is_own: Mask = files.column("snapshot_id").to_numpy() == snapshot_id
    return is_added & is_own


def _is_added_by(snapshot_ids: pa.Array, files: ManifestColumns) -> Mask:
    return live_mask(files) & to_mask(pc.is_in(files.column("snapshot_id"), value_set=snapshot_ids))


def _numbered(mask: Mask, first: int, files_part: FilesPart) -> Mask:
    """Return which entries, numbered from `first` on, belong to a part."""
    numbers = first + np.cumsum(mask) - 1
    in_part: Mask = mask & (numbers >= files_part.first) & (numbers < files_part.end)
    return in_part


def plan_stream_files(
    loaded: LoadedTable,
    files: StreamFiles,
    predicate: Predicate = TRUE,
    *,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> StreamPlan:
    """Plan the files of a batch that can hold rows of a filter; reads no manifest before the plan is used."""
    schema = loaded.metadata.current_schema
    snapshot = loaded.metadata.snapshot(files.last_snapshot_id)
    plan = StreamPlan(loaded, snapshot, schema, bind(schema, predicate), cache, threads or default_threads())
    plan.files = files
    return plan


class StreamPlan(Plan):
    """The files of one batch. Created by `plan_stream_files`."""

    files: StreamFiles = StreamFiles()
    _subject = "a batch of a stream"

    @cached_property
    def _chosen(self) -> dict[str, tuple[ManifestFile, Callable[[ManifestColumns], Mask]]]:
        """The manifests with data of the batch, with the mask of their entries in it."""
        chosen: dict[str, tuple[ManifestFile, Callable[[ManifestColumns], Mask]]] = {}
        metadata, storage = self.loaded.metadata, self.loaded.storage
        last = [metadata.snapshot(run[-1]) for run in self.files.runs]
        lists = map_in_order(lambda snapshot: read_manifest_list(storage, snapshot, self._cache), last, threads=4)
        for run, manifests in zip(self.files.runs, lists, strict=True):
            ids = frozenset(run)
            selects = partial(_is_added_by, pa.array(run, pa.int64()))
            for manifest in manifests:
                is_own = manifest.added_snapshot_id is None or manifest.added_snapshot_id in ids
                if manifest.content is ManifestContent.DATA and is_own:
                    chosen[manifest.manifest_path] = (manifest, selects)
        for files_part in self.files.parts:
            snapshot = metadata.snapshot(files_part.snapshot_id)
            listed = self._whole_list if self.files.is_whole else None
            numbered = number_manifests(
                self.loaded, snapshot, is_whole=self.files.is_whole, manifests=listed, cache=self._cache
            )
            for each in numbered:
                if each.count and each.first < files_part.end and each.end > files_part.first:
                    chosen[each.manifest.manifest_path] = (
                        each.manifest,
                        partial(self._of_part, files_part, each.first),
                    )
        return chosen

    def _of_part(self, files_part: FilesPart, first: int, files: ManifestColumns) -> Mask:
        mask = live_mask(files) if self.files.is_whole else _is_added(files_part.snapshot_id, files)
        return _numbered(mask, first, files_part)

    @cached_property
    def _whole_list(self) -> list[ManifestFile]:
        return [] if self.snapshot is None else read_manifest_list(self.loaded.storage, self.snapshot, self._cache)

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """The manifests with data of the batch, and with deletes if they apply."""
        data = [manifest for manifest, _ in self._chosen.values()]
        if not self.files.is_whole:
            return data
        return [*data, *(manifest for manifest in self._whole_list if manifest.content is ManifestContent.DELETES)]

    def _files_of(
        self,
        manifest: ManifestFile,
        fields: set[str],
        *,
        keeps: bool = True,
        selects: Callable[[ManifestColumns], Mask] | None = None,
    ) -> tuple[ManifestColumns, PlanCounts]:
        if selects is None and manifest.content is ManifestContent.DATA:
            selects = self._chosen[manifest.manifest_path][1]
        return super()._files_of(manifest, fields, keeps=keeps, selects=selects)

    def _file_fields(self) -> set[str]:
        return super()._file_fields() | {"snapshot_id"}
