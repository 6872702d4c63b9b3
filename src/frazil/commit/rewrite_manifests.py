"""Write manifests anew, for faster planning: files of one partition side by side, manifests of the target size.

No file is added or removed; every entry that was live is EXISTING, with its ids, numbers and row ids. The snapshot's
operation is `replace`. Which manifests are rewritten is decided anew at each attempt, from those that are there,
so other writers are no conflict; rewritten manifests are kept for later attempts while their sources stay.

Memory is bounded, however many files there are: see `commit/cluster_entries.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np
import pyarrow as pa

from frazil.columns.manifest_columns import live_mask
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.change_files import ChangedFiles
from frazil.commit.cluster_entries import Clusters, rank_entries
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.summary import SummaryCounts
from frazil.commit.write_manifests import ManifestWriter, manifest_key, without_files
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.spec import properties
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Operation, Summary
from frazil.threads import map_in_order

_SAMPLED = 2_000
"""Of how many entries the size is measured before all are written."""
_SLACK = 1.2
"""How much larger than the target a manifest may get before it is cut in two; sizes are estimates until then."""


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Rewrite manifests of data files, and of delete files where asked.

    `spec_id` limits it to one partition spec. With `only_small`, manifests of at least the target size stay. Entries
    come in the order of `sort_by`, names of partition fields, and then of the other fields.
    """

    spec_id: int | None = None
    includes_deletes: bool = False
    only_small: bool = False
    target: Target = MAIN
    sort_by: tuple[str, ...] = ()

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot with fewer manifests; nothing where there is nothing to gain."""
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
        gone = {manifest.manifest_path for manifest in replaced}
        kept = [manifest for manifest in base if manifest.manifest_path not in gone]
        # Data manifests first, as readers of Iceberg Java expect.
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
        """Return the manifests to rewrite, those of one content and spec together."""
        known = [partition_spec.spec_id for partition_spec in loaded.metadata.partition_specs]
        if self.spec_id is not None and self.spec_id not in known:
            raise InvalidRequestError(
                f"Cannot rewrite manifests of partition spec {self.spec_id}: {loaded.name} has no such spec",
                hint=f"Its specs are: {', '.join(map(str, known))}.",
            )

        def group_of(manifest: ManifestFile) -> tuple[ManifestContent, int]:
            return manifest.content, manifest.partition_spec_id

        chosen = sorted([manifest for manifest in base if self._chooses(loaded, manifest)], key=group_of)
        found = [list(members) for _, members in groupby(chosen, key=group_of)]
        for group in found:
            self._first_fields(loaded, group[0].partition_spec_id)
        return [group for group in found if not _is_settled(group)]

    def _chooses(self, loaded: LoadedTable, manifest: ManifestFile) -> bool:
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
    """Return whether rewriting changes nothing: one manifest, all of it live."""
    return len(group) == 1 and not group[0].has_deleted_files and group[0].has_live_files


def _rewrite(
    writer: ManifestWriter, context: CommitContext, group: Sequence[ManifestFile], first_fields: Sequence[int]
) -> tuple[list[ManifestFile], int]:
    key = ("rewritten", writer.format_version, *map(manifest_key, group))
    known: tuple[list[ManifestFile], int] | None = context.written.find(key)
    if known is None:
        known = _write(writer, context, [manifest for manifest in group if manifest.has_live_files], first_fields)
        context.written.keep(key, known)
    return known


def _write(
    writer: ManifestWriter, context: CommitContext, group: Sequence[ManifestFile], first_fields: Sequence[int]
) -> tuple[list[ManifestFile], int]:
    def read_keys(manifest: ManifestFile) -> pa.Table:
        columns = writer.read(manifest, ("status", "partition"), keeps=False)
        return columns.table.select(["partition"]).filter(pa.array(live_mask(columns)))

    def read_rows(manifest: ManifestFile) -> pa.Table:
        columns = writer.read(manifest, keeps=False)
        return without_files(columns, np.zeros(len(columns), dtype=bool), context.snapshot_id)

    # What is read to see how large entries are is not read again, and that is all of them where they are few.
    sample = _read_some(counted("manifests read", map_in_order(read_rows, group, threads=context.threads)))
    rest = group[len(sample) :]
    ranks = rank_entries(chain(sample, map_in_order(read_keys, rest, threads=context.threads)), first_fields)
    if len(ranks) == 0:
        return [], 0
    first = group[0]
    made: list[ManifestFile] = []
    count, most_bytes = _needed(writer, first, pa.concat_tables(sample), len(ranks))
    with Clusters(ranks, count) as clusters:
        more = map_in_order(read_rows, rest, threads=context.threads, ahead=context.threads)
        for rows in chain(sample, counted("manifests read", more)):
            clusters.deal(rows)
        for rows in clusters.take():
            written = writer.write_rows(rows, first.partition_spec_id, first.content, most_bytes=most_bytes)
            made += counted("manifests written", written)
    return made, len(ranks)


def _read_some(manifests: Iterable[pa.Table]) -> list[pa.Table]:
    """Return the entries of the first manifests, of enough of them to see how large entries are."""
    found: list[pa.Table] = []
    count = 0
    for rows in manifests:
        found.append(rows)
        count += rows.num_rows
        if count >= _SAMPLED:
            break
    return found


def _needed(writer: ManifestWriter, like: ManifestFile, sample: pa.Table, entries: int) -> tuple[int, int]:
    """Return how many manifests some entries need, by what a sample takes, and how large one may get."""
    rows = sample.slice(0, _SAMPLED)
    # Every manifest begins with the schema, so one of a single entry is nearly all beginning.
    begin, whole = (writer.measure(sample, like.partition_spec_id, like.content) for sample in (rows.slice(0, 1), rows))
    per_entry = (whole - begin) / max(rows.num_rows - 1, 1)
    needed: int = math.ceil((begin + entries * per_entry) / writer.target_bytes)
    return max(needed, 1), begin + int(_SLACK * writer.target_bytes)
