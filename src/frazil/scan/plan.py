"""The read path: snapshot, manifest list, manifests, files, deletes, tasks.

    choose      the snapshot (current, by id, by time, by branch or tag) and its schema (`scan/choose_snapshot.py`)
    list        the snapshot's manifests, except those without live files and those whose partition summaries
                rule out a match
    deletes     delete manifests are read first and whole, since a task needs all of its deletes
    files       data manifests are read and decoded a few at a time, with only the columns that are needed, and
                pruned as columns: by partition tuple, then by metrics (`scan/prune.py`)
    tasks       each remaining file gets the deletes that apply to it (`scan/delete_index.py`) and the residual
                filter of its partition (`expr/residual.py`)
    splits      tasks are split and packed (`scan/split.py`)

A `Plan` streams: the first files are yielded while later manifests are still being read, and yielded files are kept as
columns, so that a plan can be iterated again. No object is created for a file unless tasks are requested; bulk users
call `to_arrow()`.

Reading storage and decoding its files may fail. A manifest that cannot be read fails the plan; no plan leaves files out
because of an error.

A plan belongs to one snapshot and never changes: concurrent commits do not affect it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_fields import COLUMNS
from frazil.errors import InvalidManifestError
from frazil.expr.bind import bind
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import Mask
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.expr.residual import Residuals
from frazil.loaded import LoadedTable
from frazil.pictures.markup import element
from frazil.pictures.pruning import PrunedManifest, draw_pruning
from frazil.pictures.style import in_notebook
from frazil.progress import counted
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, choose_snapshot, partition_types
from frazil.scan.delete_index import DELETE_FIELDS, DeleteIndex
from frazil.scan.explain import PlanCounts, explain_counts
from frazil.scan.file_rows import FILE_FIELDS, data_files_of, unify_partitions
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.prune import METRIC_FIELDS, Pruner
from frazil.scan.read_manifests import read_manifest, read_manifest_list, worthwhile_threads
from frazil.scan.split import SplitOptions, adaptive_target_bytes, plan_groups
from frazil.scan.tasks import DeleteTask, FileScanTask, TaskGroup
from frazil.spec import properties
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.property_kinds import read_property
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import StructType
from frazil.threads import default_threads, map_in_order
from frazil.visible_text import visible

_BYTES_WITHOUT_METRICS = 150
_BYTES_WITH_METRICS = 500
"""The approximate size of a decoded entry, with metrics of ten columns."""


def plan_scan(
    loaded: LoadedTable,
    predicate: Predicate | str = TRUE,
    *,
    choice: SnapshotChoice = CURRENT,
    case_sensitive: bool = True,
    cache: ManifestCache | None = None,
    threads: int | None = None,
    with_metrics: bool = False,
    keeps_files: bool = True,
    expects_filters: bool = False,
) -> Plan:
    """Plan the files to read for a filter; reads no manifest before the plan is used.

    Without `keeps_files`, a plan can be iterated once and does not keep the yielded files in memory. `expects_filters`
    announces plans of the same snapshot with other filters: metrics are then read at once, if the cache has room for
    them.
    """
    snapshot, schema = choose_snapshot(loaded.metadata, choice)
    unbound = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    bound = bind(schema, unbound, case_sensitive=case_sensitive)
    plan = Plan(loaded, snapshot, schema, bound, cache, threads or default_threads(), with_metrics=with_metrics)
    plan.keeps_files, plan.expects_filters = keeps_files, expects_filters
    return plan


@dataclass(frozen=True, slots=True)
class FileBatch:
    """The remaining files of one manifest, and for each the numbers of the deletes that apply, or None if none do."""

    files: ManifestColumns
    deletes: list[tuple[int, ...]] | None


class Plan:
    """The files of one snapshot that can hold rows of one filter. Created by `plan_scan`."""

    keeps_files = True
    """Whether yielded files are kept, so that the plan can be iterated again."""
    expects_filters = False
    """Whether plans with other filters follow, which need the metrics of files."""
    _subject = "the scan"
    """The object of planning, for errors."""

    def __init__(
        self,
        loaded: LoadedTable,
        snapshot: Snapshot | None,
        schema: Schema,
        predicate: Predicate,
        cache: ManifestCache | None,
        threads: int,
        *,
        with_metrics: bool = False,
    ) -> None:
        self.loaded = loaded
        self.snapshot = snapshot
        self.schema = schema
        self.predicate = predicate
        self.data_counts = PlanCounts()
        self.delete_counts = PlanCounts()
        self._cache = cache
        self._threads = threads
        self._with_metrics = with_metrics
        self._specs = partition_types(loaded.metadata)
        self._pruner = Pruner(predicate, self._specs)
        self._done: list[FileBatch] = []
        self._read_counts: dict[str, PlanCounts] = {}
        """The counts of each data manifest that was read."""
        self._applied = 0
        self._source = self._read()
        self._is_complete = False

    def batches(self) -> Iterator[FileBatch]:
        """Yield the remaining files as manifests are read; files that were read before are kept."""
        index = 0
        while True:
            while index < len(self._done):
                yield self._done[index]
                index += 1
            batch = next(self._source, None)
            if batch is None:
                if not self._is_complete:
                    for observe in (self.loaded.on_plan, self.loaded.on_read):
                        if observe is not None:
                            observe(self)
                self._is_complete = True
                return
            if self.keeps_files:
                self._done.append(batch)
            else:
                yield batch

    @property
    def tasks(self) -> Tasks:
        """The tasks, one per data file: iterate to stream them, or use as a sequence."""
        return Tasks(self)

    def iter_tasks(self) -> Iterator[FileScanTask]:
        """Yield the tasks as manifests are read."""
        for batch in self.batches():
            yield from self.tasks_of(batch)

    def tasks_of(self, batch: FileBatch) -> Iterator[FileScanTask]:
        """Yield the tasks of one batch of this plan's files."""
        residuals = self.residuals_of(batch)
        for index, (file, sequence_number) in enumerate(data_files_of(batch.files)):
            applying = (
                () if batch.deletes is None else tuple(self._index.task(number) for number in batch.deletes[index])
            )
            yield FileScanTask(file, sequence_number, applying, residuals.of(file.partition))

    def residuals_of(self, batch: FileBatch) -> Residuals:
        """Return the residual filters of the partitions of a batch's files."""
        return self._pruner.for_spec(batch.files.spec_id).residuals

    def delete_task(self, number: int) -> DeleteTask:
        """Return a delete by its number in batches."""
        return self._index.task(number)

    def partition_type(self, spec_id: int) -> StructType:
        """Return the type of the partition tuples of one of the table's specs."""
        return self._specs[spec_id][1]

    @property
    def delete_files(self) -> Sequence[DeleteTask]:
        """The delete files and deletion vectors that may apply; `to_arrow()` refers to them by number."""
        return self._index.tasks

    def splits(self, target_bytes: int | None = None, *, parallelism: int | None = None) -> list[TaskGroup]:
        """Return the tasks, split and packed into groups by the table's split properties.

        An explicit target size is used unchanged; the table's is lowered if some of `parallelism` readers would
        otherwise be idle.
        """
        table = self.loaded.metadata.properties
        target = target_bytes if target_bytes is not None else read_property(table, properties.SPLIT_SIZE)
        tasks: Iterator[FileScanTask] | list[FileScanTask] = self.iter_tasks()
        if (
            target_bytes is None
            and parallelism is not None
            and read_property(table, properties.ADAPTIVE_SPLIT_SIZE_ENABLED)
        ):
            tasks = list(tasks)
            target = adaptive_target_bytes(sum(task.size_bytes for task in tasks), parallelism, target)
        options = SplitOptions(
            target,
            read_property(table, properties.SPLIT_OPEN_FILE_COST),
            read_property(table, properties.SPLIT_LOOKBACK),
        )
        return list(plan_groups(tasks, options))

    def to_arrow(self) -> pa.Table:
        """Return the files as a table, without creating an object per file.

        `partition` has the fields of all specs of the table; `delete_files` indexes the plan's `delete_files`.
        """
        unified = unify_partitions(self.loaded.metadata)
        tables = [unified.table_of(batch.files, batch.deletes) for batch in self.batches()]
        return pa.concat_tables(tables) if tables else unified.empty()

    def explain(self) -> str:
        """Return what was considered, pruned and kept at each step, after reading the whole plan."""
        for _ in self.batches():
            pass
        return explain_counts(
            None if self.snapshot is None else self.snapshot.snapshot_id,
            self.predicate,
            self.data_counts,
            self.delete_counts,
            self._applied,
            is_complete=self._is_complete,
        )

    def pruned_manifests(self) -> list[PrunedManifest]:
        """Return the pruning of each data manifest with live files, after reading the whole plan."""
        for _ in self.batches():
            pass
        pruned = []
        for manifest in self.manifests:
            if manifest.content is not ManifestContent.DATA or not manifest.has_live_files:
                continue
            name = manifest.manifest_path.rpartition("/")[2]
            counts = self._read_counts.get(manifest.manifest_path)
            files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            pruned.append(
                PrunedManifest(name, summary=files)
                if counts is None
                else PrunedManifest(name, counts.kept, counts.pruned_by_metrics, counts.pruned_by_partition)
            )
        return pruned

    def __repr__(self) -> str:
        snapshot = None if self.snapshot is None else self.snapshot.snapshot_id
        filter_text = "" if self.predicate == TRUE else f", filter {visible(str(self.predicate))}"
        name = f"{type(self).__name__} of {self.loaded.name!r}"
        return f"<{name}, snapshot {snapshot}{filter_text}; explain() shows what was pruned>"

    def _repr_html_(self) -> str:
        text = element("pre", self.explain())
        return in_notebook(draw_pruning(self.pruned_manifests()), text)

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """All manifests of the snapshot."""
        return [] if self.snapshot is None else read_manifest_list(self.loaded.storage, self.snapshot, self._cache)

    def _fits_cache(self, manifests: list[ManifestFile], fields: set[str]) -> bool:
        """Return whether all manifests fit the cache: if not, each would evict another before it is read again."""
        if self._cache is None:
            return False
        files = sum((manifest.added_files_count or 0) + (manifest.existing_files_count or 0) for manifest in manifests)
        one_file = _BYTES_WITH_METRICS if fields & {*METRIC_FIELDS} else _BYTES_WITHOUT_METRICS
        return files * one_file <= self._cache.budget_bytes

    def _read(self) -> Iterator[FileBatch]:
        """Read and prune the data manifests, a few at a time, in their order."""
        chosen = self._choose(ManifestContent.DATA, self.data_counts)
        read = counted("manifests read", self._read_some(chosen), len(chosen))
        for manifest, (batch, counts, applied) in zip(chosen, read, strict=True):
            add_counts(self.data_counts, counts)
            self._read_counts[manifest.manifest_path] = counts
            self._applied += applied
            if len(batch.files):
                yield batch

    def chosen_manifests(self) -> list[ManifestFile]:
        """Return the data manifests that can hold a file of the plan, for callers that read them in parts."""
        return self._choose(ManifestContent.DATA, PlanCounts())

    def batches_of(self, manifests: list[ManifestFile]) -> Generator[FileBatch, None, None]:
        """Yield the remaining files of each manifest; nothing is kept, and the method is thread-safe."""
        for batch, _, _ in self._read_some(manifests):
            yield batch

    @property
    def prunes_files(self) -> bool:
        """Whether the filter may leave out files of a manifest that is read."""
        return self._pruner.needs_metrics

    def _read_some(self, chosen: list[ManifestFile]) -> Iterator[tuple[FileBatch, PlanCounts, int]]:
        index = self._index
        fields = self._file_fields()
        if self.expects_filters and self._fits_cache(chosen, {*METRIC_FIELDS}):
            # Finding the entries takes three quarters of the time, so do it only once.
            fields |= {*METRIC_FIELDS}
        keeps = self._fits_cache(chosen, fields)
        kept_columns = [
            name for name in COLUMNS if name in fields and (self._with_metrics or name not in METRIC_FIELDS)
        ]

        def plan_one(manifest: ManifestFile) -> tuple[FileBatch, PlanCounts, int]:
            files, counts = self._files_of(manifest, fields, keeps=keeps)
            deletes = None if index.is_empty else index.deletes_for(files)
            applied = 0 if deletes is None else sum(map(len, deletes))
            files = replace(files, table=files.table.select(kept_columns))
            return FileBatch(files, deletes if applied else None), counts, applied

        yield from map_in_order(plan_one, chosen, threads=self._threads_for(chosen))

    def _threads_for(self, manifests: list[ManifestFile]) -> int:
        return worthwhile_threads(self.loaded.storage, manifests, self._threads)

    def _file_fields(self) -> set[str]:
        """Return the columns of a data manifest that this plan needs."""
        fields = {*FILE_FIELDS}
        if self._pruner.needs_metrics or self._with_metrics or self._index.has_equality_deletes:
            fields |= {*METRIC_FIELDS}
        if self._with_metrics:
            fields.add("column_sizes")
        return fields

    @cached_property
    def _index(self) -> DeleteIndex:
        """The deletes of the snapshot that may apply to rows of the filter."""
        chosen = self._choose(ManifestContent.DELETES, self.delete_counts)
        delete_files = []
        for files, counts in map_in_order(
            lambda manifest: self._files_of(manifest, {*DELETE_FIELDS}), chosen, threads=self._threads_for(chosen)
        ):
            add_counts(self.delete_counts, counts)
            if len(files):
                delete_files.append(files)
        return DeleteIndex(delete_files, self.loaded.metadata)

    def _choose(self, content: ManifestContent, counts: PlanCounts) -> list[ManifestFile]:
        chosen = []
        for manifest in self.manifests:
            if manifest.content is not content:
                continue
            counts.manifests += 1
            if not manifest.has_live_files:
                counts.manifests_without_live_files += 1
                continue
            self._check_spec(manifest)
            if self._pruner.keeps_manifest(manifest):
                chosen.append(manifest)
            else:
                counts.manifests_pruned += 1
        return chosen

    def _check_spec(self, manifest: ManifestFile) -> None:
        """Refuse a manifest whose partition spec the table does not have."""
        if manifest.partition_spec_id not in self._specs:
            raise InvalidManifestError(
                f"Cannot plan {self._subject}: the table has no partition spec {manifest.partition_spec_id}",
                path=manifest.manifest_path,
                heading="Manifest Lists",
            )

    def _selected_entries(self, files: ManifestColumns) -> Mask:
        """Return which entries of a manifest belong to the plan: the live ones."""
        return live_mask(files)

    def _files_of(
        self,
        manifest: ManifestFile,
        fields: set[str],
        *,
        keeps: bool = True,
        selects: Callable[[ManifestColumns], Mask] | None = None,
    ) -> tuple[ManifestColumns, PlanCounts]:
        """Return a manifest's selected files, by default the live ones, that can hold a match, and the counts."""
        partition_type = self._specs[manifest.partition_spec_id][1]
        files = read_manifest(self.loaded.storage, manifest, partition_type, fields, cache=self._cache, keeps=keeps)
        live = self._selected_entries(files) if selects is None else selects(files)
        pruned = self._pruner.prune_files(files, live)
        kept = rows_of(files, pruned.keep)
        counts = PlanCounts(
            manifests_read=1,
            files_considered=int(live.sum()),
            pruned_by_partition=pruned.dropped_by_partition,
            pruned_by_metrics=pruned.dropped_by_metrics,
            kept=len(kept),
            kept_rows=_total(kept, "record_count"),
            kept_bytes=_total(kept, "file_size_in_bytes"),
        )
        return kept, counts


def rows_of(files: ManifestColumns, keep: Mask) -> ManifestColumns:
    """Return some of a manifest's entries."""
    return files if keep.all() else replace(files, table=files.table.filter(pa.array(keep)))


def _total(files: ManifestColumns, name: str) -> int:
    values = files.column(name).to_numpy()
    return int(np.maximum(values, 0).sum())


def add_counts(total: PlanCounts, plan_counts: PlanCounts) -> None:
    """Add the counts of one manifest to those of the plan."""
    total.manifests_read += plan_counts.manifests_read
    total.files_considered += plan_counts.files_considered
    total.pruned_by_partition += plan_counts.pruned_by_partition
    total.pruned_by_metrics += plan_counts.pruned_by_metrics
    total.kept += plan_counts.kept
    total.kept_rows += plan_counts.kept_rows
    total.kept_bytes += plan_counts.kept_bytes


class Tasks(Sequence[FileScanTask]):
    """A plan's tasks: streamed when iterated, countable once the plan is complete."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __iter__(self) -> Iterator[FileScanTask]:
        return self._plan.iter_tasks()

    def __len__(self) -> int:
        return sum(len(batch.files) for batch in self._plan.batches())

    @overload
    def __getitem__(self, index: int) -> FileScanTask: ...

    @overload
    def __getitem__(self, index: slice) -> list[FileScanTask]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return list(self)[index]
