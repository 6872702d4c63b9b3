"""Check a table: every file that its metadata references exists and agrees with the metadata. `t.check()`.

This is the read path without trust. Findings never raise; they become problems with a path and a remedy.

    metadata       the file is readable and holds the state that the catalog returned; the files of its log exist;
                   ids of snapshots, schemas and rows are consistent
    lists          each snapshot's manifest list is readable; its entries are consistent with the snapshot
    manifests      each is checked once, however many snapshots have it: `maintenance/check_manifest.py`
    snapshots      no duplicate files, one vector per data file, unique row ids, positions inside their file, totals
    files          each is checked once: `maintenance/check_files.py`, and with rows `maintenance/check_rows.py`
    statistics     each file exists, with the sizes and blobs in the metadata

Manifests and files are read in parallel, a few at a time. Memory holds about sixty bytes per manifest entry, and a
bounded number of problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from frazil.catalog.base import Catalog
from frazil.catalog.metadata_files import read_table_metadata
from frazil.codec.puffin import read_puffin_footer
from frazil.datafile.read_task import TableView, view_table
from frazil.errors import FrazilError, InvalidRequestError
from frazil.expr.columns.seen_hashes import SeenHashes
from frazil.loaded import LoadedTable
from frazil.maintenance.check_files import CheckedGroup, FileGroup, check_group, groups_of
from frazil.maintenance.check_manifest import (
    FOREIGN,
    CheckedManifest,
    ManifestFacts,
    check_manifest,
    hashes_of,
    unreadable,
)
from frazil.maintenance.check_snapshot import SnapshotFacts, check_snapshot
from frazil.maintenance.report import MAX_PROBLEMS, Findings, Problem, Report
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.threads import default_threads, map_in_order

_FILE_THREADS: Final = 16
"""The number of files to check in parallel: most of the time is spent waiting for the storage."""

_Key = tuple[object, ...]


def check_table(
    loaded: LoadedTable,
    *,
    only_current: bool = False,
    with_rows: bool = False,
    threads: int | None = None,
    max_problems: int = MAX_PROBLEMS,
) -> Report:
    """Check a table as it was loaded: all its snapshots, or only the current one.

    With rows, every data file is read completely. Concurrent commits do not matter, but an expiry deletes files that
    this check still looks for.
    """
    if max_problems < 1:
        raise InvalidRequestError(f"Cannot report {max_problems} problems: the number must be at least 1")
    return _Check(loaded, only_current, with_rows, threads, Findings(max_problems)).run()


def check_beside_writers(
    catalog: Catalog,
    loaded: LoadedTable,
    *,
    only_current: bool = False,
    with_rows: bool = False,
    threads: int | None = None,
) -> Report:
    """Check a table as it was loaded, or in its present state if snapshots were expired concurrently."""
    while True:
        report = check_table(loaded, with_rows=with_rows, only_current=only_current, threads=threads)
        if report.ok:
            return report
        # A concurrent expiry may have deleted files of snapshots that no longer exist.
        now = catalog.refresh(loaded)
        if now.metadata.snapshots.ids >= loaded.metadata.snapshots.ids:
            return report
        loaded = now


_ODD_TO_DO: Final = (
    "The table is readable nevertheless. The next commit corrects counters; types and defaults of a later version "
    "need t.upgrade(3) before any write."
)


class _Check:
    def __init__(
        self, loaded: LoadedTable, only_current: bool, with_rows: bool, threads: int | None, findings: Findings
    ) -> None:
        self._loaded = loaded
        self._metadata = loaded.metadata
        self._only_current = only_current
        self._view: TableView | None = None
        self._with_rows = with_rows
        self._threads = threads
        self._findings = findings
        self._facts: dict[_Key, ManifestFacts] = {}
        self._seen = SeenHashes()
        self._last_positions: dict[int, tuple[int, str]] = {}
        """The highest position in a vector of each data file that has one."""

    def run(self) -> Report:
        self._check_metadata()
        if self._with_rows:
            try:
                self._view = view_table(self._metadata)
            except FrazilError as error:
                self._findings.add(unreadable(error, "table's metadata", self._loaded.metadata_location, None))
        lists: list[tuple[Snapshot, list[_Key]]] = []
        manifests: dict[_Key, tuple[ManifestFile, int]] = {}
        for snapshot, listed in self._read_lists():
            keys = [_key(listed_manifest) for listed_manifest in listed]
            lists.append((snapshot, keys))
            for key, manifest in zip(keys, listed, strict=True):
                manifests.setdefault(key, (manifest, snapshot.snapshot_id))
        self._check_files(self._read_manifests(manifests))
        for snapshot, keys in lists:
            facts = [self._facts[key] for key in keys if key in self._facts]
            is_whole = len(facts) == len(keys)
            self._findings.add(*check_snapshot(snapshot, SnapshotFacts(facts, is_whole), self._last_positions))
        self._check_statistics()
        what = "the current snapshot" if self._only_current else "all snapshots"
        return self._findings.report(f"Check of {self._loaded.name}, {what}")

    # Metadata

    def _snapshots(self) -> list[Snapshot]:
        """Return the snapshots to check: the current one first, then the others, newest first."""
        metadata = self._metadata
        current = metadata.current_snapshot
        if self._only_current:
            return [] if current is None else [current]
        others = [
            snapshot
            for snapshot in metadata.snapshots
            if current is None or snapshot.snapshot_id != current.snapshot_id
        ]
        others.sort(key=lambda snapshot: (snapshot.sequence_number, snapshot.timestamp_ms), reverse=True)
        return ([] if current is None else [current]) + others

    def _check_metadata(self) -> None:
        loaded, metadata, findings = self._loaded, self._metadata, self._findings
        location = loaded.metadata_location
        if location is not None:
            findings.count("metadata_files")
            try:
                if read_table_metadata(loaded.storage, location) != metadata:
                    what = "the file holds a different state from the one that was loaded from it"
                    findings.add(Problem("corrupt-file", what, "Metadata files are immutable: restore it.", location))
            except FrazilError as error:
                findings.add(unreadable(error, "metadata file", location, None))
        if not self._only_current:
            for entry in metadata.metadata_log:
                findings.count("metadata_files")
                try:
                    if not loaded.storage.exists(entry.metadata_file):
                        to_do = "Reads do not need it; later commits remove it from the log."
                        what = "an older metadata file of the log does not exist"
                        findings.add(Problem("missing-file", what, to_do, entry.metadata_file))
                except FrazilError as error:
                    findings.add(unreadable(error, "metadata file", entry.metadata_file, None))
        findings.add(*_row_id_ranges(metadata), *_repeated_sequence_numbers(metadata))
        for what in metadata.oddities:
            findings.add(Problem("odd-metadata", what, _ODD_TO_DO, loaded.metadata_location, is_warning=True))

    def _read_lists(self) -> Iterator[tuple[Snapshot, list[ManifestFile]]]:
        def read(snapshot: Snapshot) -> tuple[Snapshot, list[ManifestFile] | FrazilError]:
            try:
                return snapshot, read_manifest_list(self._loaded.storage, snapshot)
            except FrazilError as error:
                return snapshot, error

        for snapshot, listed in map_in_order(read, self._snapshots(), threads=self._threads or _FILE_THREADS):
            self._findings.count("snapshots")
            if isinstance(listed, FrazilError):
                problem = unreadable(listed, "manifest list", snapshot.manifest_list, snapshot.snapshot_id)
                self._findings.add(problem)
                continue
            self._findings.add(*_check_lines(snapshot, listed, self._metadata))
            yield snapshot, listed

    # Manifests and files

    def _read_manifests(self, manifests: dict[_Key, tuple[ManifestFile, int]]) -> Iterator[FileGroup]:
        """Check each manifest, keep its facts, and yield its live files that have not been checked yet."""

        def check(item: tuple[_Key, tuple[ManifestFile, int]]) -> tuple[_Key, int, CheckedManifest]:
            key, (manifest, snapshot_id) = item
            return key, snapshot_id, check_manifest(self._loaded, manifest, snapshot_id, with_metrics=self._with_rows)

        threads = self._threads or default_threads()
        reported: set[tuple[str, str]] = set()
        for key, snapshot_id, checked in map_in_order(check, manifests.items(), threads=threads):
            self._findings.count("manifests")
            # A manifest that two lists describe differently is read twice; common problems are reported once.
            self._findings.add(
                *(problem for problem in checked.problems if (problem.path or "", problem.what) not in reported)
            )
            reported |= {(problem.path or "", problem.what) for problem in checked.problems}
            if checked.facts is not None and checked.live is not None:
                self._facts[key] = checked.facts
                yield from groups_of(checked.live, self._unseen(checked.facts), snapshot_id)

    def _unseen(self, facts: ManifestFacts) -> npt.NDArray[np.bool_]:
        """Return which live files of a manifest have not been checked; vectors are identified by their data file."""
        return self._seen.add(np.where(facts.vectors, facts.paths ^ facts.references, facts.paths))

    def _check_files(self, groups: Iterator[FileGroup]) -> None:
        threads = self._threads or (default_threads() if self._with_rows else _FILE_THREADS)

        def check(group: FileGroup) -> CheckedGroup:
            return check_group(self._loaded, group, self._view)

        for checked in map_in_order(check, groups, threads=threads, ahead=4 * threads):
            files = checked.group.files
            fact = "deletion_vectors" if files[0].is_deletion_vector else _FACTS[files[0].content]
            self._findings.count(fact, len(files))
            self._findings.add(*checked.problems)
            for target, last in checked.last_positions:
                key = int(hashes_of([target])[0])
                if last > self._last_positions.get(key, (-1, ""))[0]:
                    self._last_positions[key] = (last, target)

    # Statistics

    def _check_statistics(self) -> None:
        snapshot_ids = {snapshot.snapshot_id for snapshot in self._snapshots()} if self._only_current else None
        listed: list[StatisticsFile | PartitionStatisticsFile] = [*self._metadata.statistics]
        for file in [*listed, *self._metadata.partition_statistics]:
            if snapshot_ids is not None and file.snapshot_id not in snapshot_ids:
                continue
            self._findings.count("statistics_files")
            path, storage = file.statistics_path, self._loaded.storage
            try:
                size = storage.size(path)
                if size != file.file_size_in_bytes:
                    what = f"the statistics file has {size:,} bytes, but the metadata says {file.file_size_in_bytes:,}"
                    self._wrong_statistics(what, path, file.snapshot_id)
                elif isinstance(file, StatisticsFile):
                    self._check_blobs(file)
            except FrazilError as error:
                problem = unreadable(error, "statistics file", path, file.snapshot_id)
                self._findings.add(Problem(problem.kind, problem.what, _STATISTICS, path, file.snapshot_id))

    def _check_blobs(self, statistics: StatisticsFile) -> None:
        path, storage = statistics.statistics_path, self._loaded.storage
        footer = read_puffin_footer(
            lambda offset, length: storage.read_range(path, offset, length),
            statistics.file_size_in_bytes,
            footer_size=statistics.file_footer_size_in_bytes,
        )
        stored = [(blob.type, tuple(blob.fields), blob.snapshot_id) for blob in footer.blobs]
        for blob in statistics.blob_metadata:
            if (blob.type, blob.fields, blob.snapshot_id) not in stored:
                what = (
                    f"the file has no blob {blob.type} for columns {list(blob.fields)} and snapshot {blob.snapshot_id}"
                )
                self._wrong_statistics(what, path, statistics.snapshot_id)

    def _wrong_statistics(self, what: str, path: str, snapshot_id: int) -> None:
        self._findings.add(Problem("wrong-statistics", what, _STATISTICS, path, snapshot_id))


_FACTS: Final = ("data_files", "position_delete_files", "equality_delete_files")
_STATISTICS: Final = "Statistics are informative only: remove them (remove_statistics), or recompute them."


def _key(manifest: ManifestFile) -> _Key:
    """Return the key of a manifest as one list entry describes it."""
    return (
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.content,
        manifest.sequence_number,
        manifest.min_sequence_number,
        manifest.added_snapshot_id,
        manifest.first_row_id,
    )


def _row_id_ranges(metadata: TableMetadata) -> Iterator[Problem]:
    """Yield the row ids that two snapshots assigned, or that the table does not count as assigned."""
    ranges = sorted(
        (head.first_row_id, head.first_row_id + (head.added_rows or 0), head.snapshot_id)
        for head in metadata.snapshots.heads
        if head.first_row_id is not None and head.added_rows
    )
    for (_, end, before), (start, _, snapshot_id) in pairwise(ranges):
        if start < end:
            what = f"snapshots {before} and {snapshot_id} both assigned the row ids from {start:,} to {end - 1:,}"
            yield Problem("wrong-row-ids", what, FOREIGN, None, snapshot_id)
    for _, end, snapshot_id in ranges[-1:]:
        if end > metadata.next_row_id:
            what = (
                f"snapshot {snapshot_id} assigned row ids up to {end - 1:,}, but the table's next one is "
                f"{metadata.next_row_id:,}"
            )
            yield Problem("wrong-row-ids", what, FOREIGN, None, snapshot_id)


def _repeated_sequence_numbers(metadata: TableMetadata) -> Iterator[Problem]:
    """Yield snapshots that share a sequence number; before version 2 none has one."""
    seen: dict[int, int] = {}
    for head in metadata.snapshots.heads:
        if head.sequence_number in seen:
            what = (
                f"snapshots {seen[head.sequence_number]} and {head.snapshot_id} both have number {head.sequence_number}"
            )
            yield Problem("wrong-sequence-number", what, FOREIGN, None, head.snapshot_id)
        elif head.sequence_number > 0:
            seen[head.sequence_number] = head.snapshot_id


def _check_lines(snapshot: Snapshot, manifests: list[ManifestFile], metadata: TableMetadata) -> Iterator[Problem]:
    """Yield the entries of a manifest list that are inconsistent with their snapshot."""
    path, snapshot_id = snapshot.manifest_list, snapshot.snapshot_id

    def problem(code: str, what: str, to_do: str = FOREIGN) -> Problem:
        return Problem(code, what, to_do, path, snapshot_id)

    if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas_by_id:
        yield problem("wrong-schema", f"the snapshot is of schema {snapshot.schema_id}, which the table does not have")
    paths: set[str] = set()
    for manifest in manifests:
        name = manifest.manifest_path
        if name in paths:
            yield problem("duplicate-file", f"the list contains the manifest {name} twice")
        paths.add(name)
        number = manifest.sequence_number
        if number > snapshot.sequence_number:
            what = f"sequence number {number} of {name} is above the snapshot's {snapshot.sequence_number}"
            yield problem("wrong-sequence-number", what)
        if manifest.min_sequence_number > number:
            what = f"the lowest sequence number {manifest.min_sequence_number} of {name} is above its own {number}"
            yield problem("wrong-sequence-number", what)
        is_new = manifest.added_snapshot_id == snapshot_id
        if is_new and metadata.format_version > 1 and number not in (0, snapshot.sequence_number):
            what = f"the snapshot {snapshot.sequence_number} added {name}, which has sequence number {number}"
            yield problem("wrong-sequence-number", what)
        if snapshot.first_row_id is not None and manifest.content is ManifestContent.DATA:
            yield from (problem(*row_id_problem) for row_id_problem in _row_ids_of_line(snapshot, manifest))


def _row_ids_of_line(snapshot: Snapshot, manifest: ManifestFile) -> Iterator[tuple[str, str]]:
    if manifest.first_row_id is None:
        yield "wrong-row-ids", f"the list has no first row id for {manifest.manifest_path}, which version 3 requires"
        return
    start, end = snapshot.first_row_id or 0, (snapshot.first_row_id or 0) + (snapshot.added_rows or 0)
    rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
    if manifest.first_row_id >= start and manifest.first_row_id + rows > end:
        what = (
            f"{manifest.manifest_path} takes the row ids from {manifest.first_row_id:,} to "
            f"{manifest.first_row_id + rows - 1:,}, but the snapshot has those from {start:,} to {end - 1:,}"
        )
        yield "wrong-row-ids", what
