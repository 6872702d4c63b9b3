"""Figures of a snapshot's files for charts, in bounded memory: sizes, partitions, deletes per file.

Manifests are read a few at a time, with only the needed columns, and each is summed before the next is read. Only sums
are kept, and the largest files and those with most deletes. Delete manifests come first, since data files are matched
with their delete files if those name a data file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.partition_arrow import values_of
from frazil.expr.columns.manifest_columns import single_chunk
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_chosen_manifests, read_rows, with_content
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, partition_types
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import ManifestContent
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.types import StructType

MAX_PARTITIONS: Final = 100_000
MAX_NAMED: Final = 500_000
"""The number of data files with deletes above which deletes are not counted per file."""
TOP: Final = 50
SHARES: Final = (0.0, 0.01, 0.1, 0.3, 0.6)
"""The bounds of the histogram of deleted shares; files without deletes are below the first."""
_DATA_FIELDS: Final = ("file_path", "partition", "record_count", "file_size_in_bytes")
_DELETE_FIELDS: Final = ("content", "record_count", "file_size_in_bytes", "referenced_data_file")


@dataclass(slots=True)
class PartitionFigures:
    """The contents of a partition."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class FileLine:
    """One data file."""

    path: str
    bytes: int
    rows: int
    deleted: int
    partition: str


@dataclass(slots=True)
class FileFigures:
    """The figures of one snapshot."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    delete_files: int = 0
    delete_bytes: int = 0
    deleted_rows: int = 0
    """Rows counted by position deletes and vectors."""
    equality_deletes: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    """Data files by the power of two of their size."""
    shares: Counter[int] = field(default_factory=Counter)
    """Data files by the step of `SHARES` of their deleted rows; 0 for none."""
    partitions: dict[str, PartitionFigures] = field(default_factory=dict)
    further_partitions: int = 0
    largest: list[FileLine] = field(default_factory=list)
    most_deleted: list[FileLine] = field(default_factory=list)
    listed: list[FileLine] = field(default_factory=list)
    """The first files of the requested partition."""


@dataclass(slots=True)
class _ManifestFigures:
    """The figures of one data manifest."""

    files: int
    bytes: int
    rows: int
    sizes: dict[int, int]
    shares: dict[int, int]
    partitions: list[tuple[str, PartitionFigures]]
    lines: list[FileLine]
    listed: list[FileLine]


def file_figures(
    loaded: LoadedTable, choice: SnapshotChoice = CURRENT, *, partition: str | None = None, threads: int | None = None
) -> FileFigures:
    """Return the figures of a snapshot's files; `partition` is the text of a partition whose files are listed."""
    manifests = read_chosen_manifests(loaded, choice)
    figures = FileFigures()
    deleted: Counter[str] = Counter()
    deletes = with_content(manifests, ManifestContent.DELETES)
    for more in read_rows(loaded, deletes, _DELETE_FIELDS, lambda files: files, only_live=True, threads=threads):
        _add_deletes(figures, deleted, more)
    specs = partition_types(loaded.metadata)

    def add_up(files: ManifestColumns) -> _ManifestFigures:
        return _add_up(files, specs[files.spec_id], deleted, partition)

    data = with_content(manifests, ManifestContent.DATA)
    for row in read_rows(loaded, data, _DATA_FIELDS, add_up, only_live=True, threads=threads):
        _merge(figures, row)
    return figures


def partition_text(spec: PartitionSpec, data_type: StructType, values: Sequence[Any]) -> str:
    """Return a partition in human-readable form: `ts_day=2026-01-05, kind=web`."""
    return ", ".join(
        f"{partition_field.name}={partition_field.transform.human_text(value, nested_field.field_type)}"
        for partition_field, nested_field, value in zip(spec.fields, data_type.fields, values, strict=True)
    )


def _add_deletes(figures: FileFigures, deleted: Counter[str], files: ManifestColumns) -> None:
    rows = np.maximum(files.column("record_count").to_numpy(), 0)
    is_position = files.column("content").to_numpy() == FileContent.POSITION_DELETES
    figures.delete_files += len(files)
    figures.delete_bytes += int(np.maximum(files.column("file_size_in_bytes").to_numpy(), 0).sum())
    figures.deleted_rows += int(rows[is_position].sum())
    figures.equality_deletes += int((~is_position).sum())
    if len(deleted) <= MAX_NAMED:
        for name, count in zip(files.column("referenced_data_file").to_pylist(), rows.tolist(), strict=True):
            if name is not None:
                deleted[name] += count


def _add_up(
    files: ManifestColumns,
    spec_and_type: tuple[PartitionSpec, StructType],
    deleted: Mapping[str, int],
    partition: str | None,
) -> _ManifestFigures:
    spec, partition_type = spec_and_type
    sizes = np.maximum(files.column("file_size_in_bytes").to_numpy(), 0)
    rows = np.maximum(files.column("record_count").to_numpy(), 0)
    deleted_rows = np.zeros(len(files), np.int64)
    if deleted:
        deleted_rows = np.fromiter(
            (deleted.get(value, 0) for value in files.column("file_path").to_pylist()), np.int64, len(files)
        )
    steps, counts = np.unique(np.frexp(np.maximum(sizes, 1).astype(np.float64))[1] - 1, return_counts=True)
    share = np.where(deleted_rows > 0, np.searchsorted(SHARES, deleted_rows / np.maximum(rows, 1), side="right"), 0)
    shares, share_counts = np.unique(share, return_counts=True)
    names, groups = _partitions(files, partition_type)
    texts = [partition_text(spec, partition_type, name) for name in names]

    def sums(values: Any) -> Any:
        return np.bincount(groups, weights=values, minlength=len(texts)).astype(np.int64)

    by_files, by_bytes, by_rows, by_deleted = (
        np.bincount(groups, minlength=len(texts)),
        sums(sizes),
        sums(rows),
        sums(deleted_rows),
    )
    paths = files.column("file_path")

    def lines(indexes: Any) -> list[FileLine]:
        return [
            FileLine(
                paths[int(index)].as_py(),
                int(sizes[index]),
                int(rows[index]),
                int(deleted_rows[index]),
                texts[groups[index]],
            )
            for index in indexes
        ]

    top = {
        *np.argsort(sizes)[-TOP:].tolist(),
        *[index for index in np.argsort(deleted_rows)[-TOP:].tolist() if deleted_rows[index]],
    }
    chosen: Any = (
        [] if partition is None or partition not in texts else np.flatnonzero(groups == texts.index(partition))[:200]
    )
    return _ManifestFigures(
        len(files),
        int(sizes.sum()),
        int(rows.sum()),
        dict(zip(steps.tolist(), counts.tolist(), strict=True)),
        dict(zip(shares.tolist(), share_counts.tolist(), strict=True)),
        [
            (text, PartitionFigures(*(int(sums[index]) for sums in (by_files, by_bytes, by_rows, by_deleted))))
            for index, text in enumerate(texts)
        ],
        lines(sorted(top)),
        lines(chosen),
    )


def _partitions(files: ManifestColumns, data_type: StructType) -> tuple[list[tuple[Any, ...]], Any]:
    """Return the distinct partitions of a manifest, and for each file the number of its partition."""
    if not data_type.fields:
        return [()], np.zeros(len(files), np.int64)
    children = single_chunk(files.column("partition")).flatten()
    keys = {f"k{index}": child for index, child in enumerate(children)}
    numbered = pa.table({**keys, "at": pa.array(np.arange(len(files)))})
    grouped = numbered.group_by(list(keys), use_threads=False).aggregate([("at", "list")])
    groups = np.zeros(len(files), np.int64)
    lists = single_chunk(grouped.column("at_list"))
    groups[lists.flatten().to_numpy()] = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
    columns = [
        values_of(grouped.column(name), nested_field.field_type)
        for name, nested_field in zip(keys, data_type.fields, strict=True)
    ]
    return list(zip(*columns, strict=True)), groups


def _merge(figures: FileFigures, manifest_figures: _ManifestFigures) -> None:
    figures.files += manifest_figures.files
    figures.bytes += manifest_figures.bytes
    figures.rows += manifest_figures.rows
    figures.sizes.update(manifest_figures.sizes)
    figures.shares.update(manifest_figures.shares)
    for text, added in manifest_figures.partitions:
        partition = figures.partitions.get(text)
        if partition is None:
            if len(figures.partitions) >= MAX_PARTITIONS:
                figures.further_partitions += 1
                continue
            partition = figures.partitions[text] = PartitionFigures()
        partition.files += added.files
        partition.bytes += added.bytes
        partition.rows += added.rows
        partition.deleted += added.deleted
    figures.largest = sorted([*figures.largest, *manifest_figures.lines], key=lambda file_line: -file_line.bytes)[:TOP]
    more_deleted = [*figures.most_deleted, *(line for line in manifest_figures.lines if line.deleted)]
    figures.most_deleted = sorted(more_deleted, key=lambda file_line: -file_line.deleted)[:TOP]
    figures.listed = [*figures.listed, *manifest_figures.listed][:200]
