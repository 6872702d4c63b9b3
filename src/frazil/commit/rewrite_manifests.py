"""Rewrite manifests for faster planning: files of a partition next to each other, manifests of the target size.

No file is added or removed. Every live entry becomes EXISTING and keeps its ids, sequence numbers and row ids. The
operation of the snapshot is `replace`. The manifests to rewrite are chosen at each attempt from the present ones, so
other writers do not conflict; rewritten manifests are reused by later attempts while their sources stay.

Memory is bounded for any number of files: see `commit/cluster_entries.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np
import pyarrow as pa

from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.change_files import ChangedFiles
from frazil.commit.cluster_entries import Clusters, rank_entries
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.summary import SummaryCounts
from frazil.commit.write_manifests import ManifestWriter, manifest_key, without_files
from frazil.errors import InvalidRequestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.spec import properties
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Operation, Summary
from frazil.threads import map_in_order

_SAMPLED = 2_000
"""The number of entries whose size is measured before all are written."""
_SLACK = 1.2
"""How far a manifest may exceed the target size before it is split; until then sizes are estimates."""


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Rewrite manifests of data files and, on request, of delete files.

    `spec_id` limits it to one partition spec. With `only_small`, manifests of at least the target size stay. Entries
    are sorted by `sort_by`, names of partition fields, and then by the other fields.
    """

    spec_id: int | None = None
    includes_deletes: bool = False
    only_small: bool = False
    target: Target = MAIN
    sort_by: tuple[str, ...] = ()

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot with fewer manifests, or nothing if there is nothing to gain."""
        parent = find_parent(loaded.metadata, self.target.branch)
        writer = ManifestWriter(loaded, context)
        base = writer.read_base(parent)
        new: list[ManifestFile] = []
        replaced: list[ManifestFile] = []
        entries = 0
        for group in self.groups(loaded, base):
            written, count = _rewrite(writer, context, group, self._first_fields(loaded, group[0].partition_spec_id))
            new += written
            replaced += group
            entries += count
        if not replaced:
            return NOTHING
        replaced_paths = {manifest.manifest_path for manifest in replaced}
        kept = [manifest for manifest in base if manifest.manifest_path not in replaced_paths]
        # Data manifests first, as Iceberg Java expects.
        manifests = sorted([*new, *kept], key=lambda manifest: manifest.content)
        return snapshot_changes(
            writer,
            ChangedFiles(manifests, SummaryCounts(), len(replaced)),
            parent,
            self.target,
            Operation.REPLACE,
            extra={Summary.ENTRIES_PROCESSED: str(entries)},
        )

    def groups(self, loaded: LoadedTable, base: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
        """Return the manifests to rewrite, grouped by content and spec."""
        spec_ids = [partition_spec.spec_id for partition_spec in loaded.metadata.partition_specs]
        if self.spec_id is not None and self.spec_id not in spec_ids:
            raise InvalidRequestError(
                f"Cannot rewrite manifests of partition spec {self.spec_id}: {loaded.name} has no such spec",
                hint=f"Its specs are: {', '.join(map(str, spec_ids))}.",
            )

        def group_of(manifest: ManifestFile) -> tuple[ManifestContent, int]:
            return manifest.content, manifest.partition_spec_id

        chosen = sorted([manifest for manifest in base if self._includes(loaded, manifest)], key=group_of)
        groups = [list(members) for _, members in groupby(chosen, key=group_of)]
        for group in groups:
            self._first_fields(loaded, group[0].partition_spec_id)
        return [group for group in groups if not _is_settled(group)]

    def _includes(self, loaded: LoadedTable, manifest: ManifestFile) -> bool:
        if self.spec_id is not None and manifest.partition_spec_id != self.spec_id:
            return False
        if manifest.content is ManifestContent.DELETES and not self.includes_deletes:
            return False
        target = read_property(loaded.metadata.properties, properties.MANIFEST_TARGET_SIZE_BYTES)
        return not self.only_small or manifest.manifest_length < target

    def _first_fields(self, loaded: LoadedTable, spec_id: int) -> list[int]:
        """Return the indexes of the fields that entries of a spec are sorted by before the others."""
        spec = loaded.metadata.spec(spec_id)
        names = [field.name for field in spec.fields]
        unknown = [name for name in self.sort_by if name not in names]
        if unknown:
            raise InvalidRequestError(
                f"Cannot sort manifests by {unknown[0]!r}: partition spec {spec_id} has no such field",
                hint=f"Its fields are: {', '.join(names)}." if names else "It has no fields.",
            )
        return [names.index(name) for name in self.sort_by]


def _is_settled(group: Sequence[ManifestFile]) -> bool:
    """Return whether a rewrite would change nothing: a single manifest without removed entries."""
    return len(group) == 1 and not group[0].has_deleted_files and group[0].has_live_files


def _rewrite(
    writer: ManifestWriter, context: CommitContext, group: Sequence[ManifestFile], first_fields: Sequence[int]
) -> tuple[list[ManifestFile], int]:
    key = ("rewritten", writer.format_version, *map(manifest_key, group))
    rewritten: tuple[list[ManifestFile], int] | None = context.written.find(key)
    if rewritten is None:
        rewritten = _write(writer, context, [manifest for manifest in group if manifest.has_live_files], first_fields)
        context.written.keep(key, rewritten)
    return rewritten


def _write(
    writer: ManifestWriter, context: CommitContext, group: Sequence[ManifestFile], first_fields: Sequence[int]
) -> tuple[list[ManifestFile], int]:
    def read_keys(manifest: ManifestFile) -> pa.Table:
        columns = writer.read(manifest, ("status", "partition"), caches=False)
        return columns.table.select(["partition"]).filter(pa.array(live_mask(columns)))

    def read_rows(manifest: ManifestFile) -> pa.Table:
        columns = writer.read(manifest, caches=False)
        return without_files(columns, np.zeros(len(columns), dtype=bool), context.snapshot_id)

    # The manifests that were read to measure entries are not read again; if they are few, those are all.
    sample = _read_some(counted("manifests read", map_in_order(read_rows, group, threads=context.threads)))
    rest = group[len(sample) :]
    ranks = rank_entries(chain(sample, map_in_order(read_keys, rest, threads=context.threads)), first_fields)
    if len(ranks) == 0:
        return [], 0
    first = group[0]
    made: list[ManifestFile] = []
    count, max_bytes = _needed(writer, first, pa.concat_tables(sample), len(ranks))
    with Clusters(ranks, count) as clusters:
        more = map_in_order(read_rows, rest, threads=context.threads, ahead=context.threads)
        for rows in chain(sample, counted("manifests read", more)):
            clusters.deal(rows)
        for rows in clusters.take():
            parts = writer.write_rows(rows, first.partition_spec_id, first.content, max_bytes=max_bytes)
            made += counted("manifests written", parts)
    return made, len(ranks)


def _read_some(manifests: Iterable[pa.Table]) -> list[pa.Table]:
    """Return the entries of the first manifests, as many as are needed to measure the size of entries."""
    sample: list[pa.Table] = []
    count = 0
    for rows in manifests:
        sample.append(rows)
        count += rows.num_rows
        if count >= _SAMPLED:
            break
    return sample


def _needed(writer: ManifestWriter, like: ManifestFile, sample: pa.Table, entries: int) -> tuple[int, int]:
    """Return how many manifests the entries need, extrapolated from a sample, and the maximum size of one."""
    rows = sample.slice(0, _SAMPLED)
    # Every manifest begins with the schema, so a manifest of a single entry is nearly all header.
    measured = (writer.measure(sample, like.partition_spec_id, like.content) for sample in (rows.slice(0, 1), rows))
    header, whole = measured
    per_entry = (whole - header) / max(rows.num_rows - 1, 1)
    needed: int = math.ceil((header + entries * per_entry) / writer.target_bytes)
    return max(needed, 1), header + int(_SLACK * writer.target_bytes)
