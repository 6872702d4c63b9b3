"""The summary of a snapshot: its additions and removals, and the totals of the table after it.

Specification: "Snapshots", "Optional Snapshot Summary Fields". Counts of zero are left out, but totals are written
even if zero. A total is the parent's plus the additions minus the removals. If the parent has no valid total, or the
result would be negative, it is left out: a missing total is better than a wrong one. The first snapshot of a table
starts at zero.

Sizes are those of the content: the blob of a deletion vector, not the file that it shares with others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.expr.columns.partition_keys import partition_tuples
from frazil.expr.columns.stats_masks import to_mask
from frazil.spec import properties
from frazil.spec.data_file import DataFile, FileContent, FileFormat, PartitionKey
from frazil.spec.partition_key import partition_key
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Snapshot, Summary, summary_number
from frazil.spec.table_metadata import TableMetadata

COMMIT_ID: Final = "frazil-commit-id"
"""The key of the commit id, which identifies the commit that created a snapshot."""
VERSION: Final = "frazil-version"

SUMMARY_FIELDS = (
    "content",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "content_offset",
    "content_size_in_bytes",
)
"""The columns of removed files that a summary counts."""

_TOTALS = (
    (Summary.TOTAL_RECORDS, Summary.ADDED_RECORDS, Summary.DELETED_RECORDS),
    (Summary.TOTAL_FILES_SIZE, Summary.ADDED_FILES_SIZE, Summary.REMOVED_FILES_SIZE),
    (Summary.TOTAL_DATA_FILES, Summary.ADDED_DATA_FILES, Summary.DELETED_DATA_FILES),
    (Summary.TOTAL_DELETE_FILES, Summary.ADDED_DELETE_FILES, Summary.REMOVED_DELETE_FILES),
    (Summary.TOTAL_POSITION_DELETES, Summary.ADDED_POSITION_DELETES, Summary.REMOVED_POSITION_DELETES),
    (Summary.TOTAL_EQUALITY_DELETES, Summary.ADDED_EQUALITY_DELETES, Summary.REMOVED_EQUALITY_DELETES),
)
ENGINE: Final = "frazil"
"""The engine in summaries, if none is named."""
_VECTOR: Final = -1
"""The kind of a deletion vector, beside those of `FileContent`."""


@lru_cache(maxsize=1)
def frazil_version() -> str:
    """Return the version of this library."""
    try:
        return version("frazil")
    except PackageNotFoundError:
        return "unknown"


class SummaryCounts:
    """Counts of added and removed files, in total and per partition."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._partitions: dict[PartitionKey, Counter[str]] = defaultdict(Counter)
        self._tuples: dict[PartitionKey, tuple[Any, ...]] = {}

    def add_files(self, files: Iterable[DataFile]) -> None:
        """Count added files."""
        for file in files:
            content = _VECTOR if file.is_deletion_vector else int(file.content)
            size = file.content_size_in_bytes if file.is_deletion_vector else file.file_size_in_bytes
            counts = _counted(content, 1, file.record_count, size or 0, is_added=True)
            key = partition_key(file.spec_id, file.partition)
            self._tuples.setdefault(key, file.partition)
            _add(self.counts, counts)
            _add(self._partitions[key], counts)

    def remove_files(self, files: ManifestColumns) -> None:
        """Count removed files; every row is one."""
        if len(files) == 0:
            return
        rows = np.maximum(files.column("record_count").to_numpy(), 0)
        vectors = to_mask(pc.equal(files.column("file_format"), FileFormat.PUFFIN.value))
        blobs = files.column("content_size_in_bytes")
        sizes = np.maximum(pc.if_else(pc.is_valid(blobs), blobs, files.column("file_size_in_bytes")).to_numpy(), 0)
        contents = np.where(vectors, _VECTOR, files.column("content").to_numpy())
        indexes: dict[tuple[PartitionKey, int], list[int]] = defaultdict(list)
        for index, (values, content) in enumerate(zip(partition_tuples(files), contents.tolist(), strict=True)):
            key = partition_key(files.spec_id, values)
            self._tuples.setdefault(key, values)
            indexes[key, content].append(index)
        for (key, content), chosen in indexes.items():
            counts = _counted(content, len(chosen), int(rows[chosen].sum()), int(sizes[chosen].sum()), is_added=False)
            self.counts.update(counts)
            self._partitions[key].update(counts)

    def summary(
        self, metadata: TableMetadata, parent: Snapshot | None, operation: str, *, extra: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the whole summary of a snapshot on top of a parent; `extra` are the caller's additions."""
        summary = {**extra, Summary.OPERATION: operation}
        summary |= {name: str(count) for name, count in self.counts.items() if count > 0}
        summary |= self._partition_summary(metadata)
        summary |= totals_after(parent, self.counts)
        return summary

    def _partition_summary(self, metadata: TableMetadata) -> dict[str, str]:
        summary = {Summary.CHANGED_PARTITION_COUNT: str(len(self._partitions))}
        limit = read_property(metadata.properties, properties.WRITE_PARTITION_SUMMARY_LIMIT)
        if not 0 < len(self._partitions) <= limit:
            return summary
        summary[Summary.PARTITION_SUMMARIES_INCLUDED] = "true"
        for key, counts in self._partitions.items():
            spec = metadata.spec(key[0])
            path = spec.partition_path(self._tuples[key], metadata.current_schema, other_schemas=metadata.schemas)
            if path:
                text = ",".join(f"{name}={count}" for name, count in counts.items() if count > 0)
                summary[f"{Summary.CHANGED_PARTITION_PREFIX}{path}"] = text
        return summary


def _counted(content: int, files: int, rows: int, size: int, *, is_added: bool) -> dict[str, int]:
    """Return the counts of added or removed files of one content."""
    counts = {Summary.ADDED_FILES_SIZE if is_added else Summary.REMOVED_FILES_SIZE: size}
    if content == FileContent.DATA:
        counts[Summary.ADDED_DATA_FILES if is_added else Summary.DELETED_DATA_FILES] = files
        counts[Summary.ADDED_RECORDS if is_added else Summary.DELETED_RECORDS] = rows
        return counts
    counts[Summary.ADDED_DELETE_FILES if is_added else Summary.REMOVED_DELETE_FILES] = files
    if content == FileContent.EQUALITY_DELETES:
        counts[Summary.ADDED_EQUALITY_DELETE_FILES if is_added else Summary.REMOVED_EQUALITY_DELETE_FILES] = files
        counts[Summary.ADDED_EQUALITY_DELETES if is_added else Summary.REMOVED_EQUALITY_DELETES] = rows
        return counts
    if content == _VECTOR:
        counts[Summary.ADDED_DVS if is_added else Summary.REMOVED_DVS] = files
    else:
        counts[Summary.ADDED_POSITION_DELETE_FILES if is_added else Summary.REMOVED_POSITION_DELETE_FILES] = files
    counts[Summary.ADDED_POSITION_DELETES if is_added else Summary.REMOVED_POSITION_DELETES] = rows
    return counts


def _add(counts: Counter[str], more: Mapping[str, int]) -> None:
    # `Counter.update` takes three times as long, and there may be many partitions.
    for name, count in more.items():
        counts[name] += count


def totals_after(parent: Snapshot | None, counts: Mapping[str, int]) -> dict[str, str]:
    """Return the totals of the table after a commit, computed from those of its parent."""
    totals = {}
    for name, added, removed in _TOTALS:
        before = 0 if parent is None else summary_number(parent, name)
        if before is not None:
            after = before + counts.get(added, 0) - counts.get(removed, 0)
            if after >= 0:
                totals[name] = str(after)
    return totals
