"""Check that the files of one snapshot are consistent: no duplicates, one vector per file, row ids and totals.

Part of `maintenance/check_table.py`, on the arrays that are kept of each manifest. Specification: "Snapshots", "Row
Lineage", "Deletion Vectors", "Optional Snapshot Summary Fields".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from frazil.maintenance.check_manifest import FOREIGN, NO_ROW_ID, Longs, ManifestFacts
from frazil.maintenance.report import Problem
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import ManifestContent
from frazil.spec.snapshot import Snapshot, Summary

_TOTAL_TO_DO: Final = (
    "Readers do not depend on it. Later snapshots are computed from it, so their totals are off by as much."
)


@dataclass(frozen=True)
class SnapshotFacts:
    """The facts of a snapshot's manifests; `is_whole` if all of them could be read."""

    manifests: Sequence[ManifestFacts]
    is_whole: bool

    @cached_property
    def data(self) -> list[ManifestFacts]:
        """The manifests of data files."""
        return [manifest for manifest in self.manifests if manifest.content is ManifestContent.DATA]

    @cached_property
    def deletes(self) -> list[ManifestFacts]:
        """The manifests of delete files."""
        return [manifest for manifest in self.manifests if manifest.content is ManifestContent.DELETES]


def check_snapshot(
    snapshot: Snapshot, facts: SnapshotFacts, last_positions: Mapping[int, tuple[int, str]]
) -> Iterator[Problem]:
    """Yield inconsistencies. `last_positions` are the highest positions of vectors, by data file."""

    def problem(code: str, what: str, to_do: str = FOREIGN) -> Problem:
        return Problem(code, what, to_do, snapshot.manifest_list, snapshot.snapshot_id)

    paths = _concatenated([manifest_facts.paths for manifest_facts in facts.data])
    twice = _repeated(paths)
    if twice:
        yield problem("duplicate-file", f"{twice:,} data files are live twice: their rows are read twice")
    references = _concatenated([delete.references[delete.vectors] for delete in facts.deletes])
    twice = _repeated(references)
    if twice:
        yield problem("duplicate-deletion-vector", f"{twice:,} data files have more than one deletion vector")
    rows = _concatenated([manifest_facts.record_counts for manifest_facts in facts.data])
    yield from (problem("wrong-row-ids", what) for what in _row_ids(facts.data, rows))
    yield from (problem("wrong-deletion-vector", what) for what in _positions(paths, rows, references, last_positions))
    if facts.is_whole:
        yield from (problem("wrong-total", what, _TOTAL_TO_DO) for what in _totals(snapshot, facts))


def _concatenated(parts: Sequence[Longs]) -> Longs:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _repeated(values: Longs) -> int:
    """Return the number of repeated values."""
    ordered = np.sort(values)
    return int(np.count_nonzero(ordered[1:] == ordered[:-1]))


def _row_ids(manifests: Sequence[ManifestFacts], rows: Longs) -> Iterator[str]:
    first = _concatenated([manifest.first_row_ids for manifest in manifests])
    assigned: npt.NDArray[np.bool_] = (first != NO_ROW_ID) & (rows > 0)
    first, count = first[assigned], rows[assigned]
    order = np.argsort(first, kind="stable")
    starts, ends = first[order], first[order] + count[order]
    overlapping = np.flatnonzero(starts[1:] < ends[:-1])
    if len(overlapping):
        index = int(overlapping[0])
        yield (
            f"the row ids of {len(overlapping):,} data files overlap those of others, first those from "
            f"{int(starts[index + 1]):,} on"
        )


def _positions(
    paths: Longs, rows: Longs, references: Longs, last_positions: Mapping[int, tuple[int, str]]
) -> Iterator[str]:
    """Yield the vectors that delete rows which their data file does not have."""
    if not last_positions or len(references) == 0:
        return
    live = np.isin(paths, references)
    for key, count in zip(paths[live].tolist(), rows[live].tolist(), strict=True):
        last, path = last_positions.get(key, (-1, ""))
        if last >= count >= 0:
            yield f"a deletion vector of {path} has position {last:,}, but that file has {count:,} rows"


def _totals(snapshot: Snapshot, facts: SnapshotFacts) -> Iterator[str]:
    if snapshot.summary is None:
        return
    deletes = facts.deletes
    kinds = [delete.kinds for delete in deletes]
    record_counts = [manifest.record_counts for manifest in facts.manifests]
    if any(bool((counts < 0).any()) for counts in record_counts):
        return
    actual = {
        Summary.TOTAL_DATA_FILES: sum(len(manifest_facts.paths) for manifest_facts in facts.data),
        Summary.TOTAL_RECORDS: sum(int(manifest_facts.record_counts.sum()) for manifest_facts in facts.data),
        Summary.TOTAL_DELETE_FILES: sum(len(delete.paths) for delete in deletes),
        Summary.TOTAL_FILES_SIZE: sum(int(manifest.sizes.sum()) for manifest in facts.manifests),
        Summary.TOTAL_POSITION_DELETES: sum(
            int(delete.record_counts[content == FileContent.POSITION_DELETES].sum())
            for delete, content in zip(deletes, kinds, strict=True)
        ),
        Summary.TOTAL_EQUALITY_DELETES: sum(
            int(delete.record_counts[content == FileContent.EQUALITY_DELETES].sum())
            for delete, content in zip(deletes, kinds, strict=True)
        ),
    }
    for name, count in actual.items():
        text = snapshot.summary.get(name)
        if text is not None and text != str(count):
            yield f"the summary's {name} is {text}, but the manifests hold {count:,}"
