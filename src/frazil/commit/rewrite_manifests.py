"""Write manifests anew, for faster planning: files of one partition side by side, manifests of the target size.

No file is added or removed; every entry that was live is EXISTING, with its ids, numbers and row ids. The snapshot's
operation is `replace`. Which manifests are rewritten is decided anew at each attempt, from those that are there,
so other writers are no conflict; rewritten manifests are kept for later attempts while their sources stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.columns.manifest_columns import live_mask
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import MAIN, Target, find_parent, snapshot_changes
from frazil.commit.summary import SummaryCounts
from frazil.commit.write_manifests import ManifestWriter, manifest_key, without_files
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec import properties
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.property_kinds import read_property
from frazil.spec.snapshot import Operation, Summary


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
            written, count = _rewrite(writer, context, group, self._first_fields(writer, group[0].partition_spec_id))
            new += written
            replaced += group
            entries += count
        if not replaced:
            return NOTHING
        gone = {one.manifest_path for one in replaced}
        kept = [one for one in base if one.manifest_path not in gone]
        # Data manifests first, as readers of the reference expect.
        manifests = sorted([*new, *kept], key=lambda one: one.content)
        return snapshot_changes(
            loaded,
            context,
            writer,
            target=self.target,
            parent=parent,
            manifests=manifests,
            replaced_manifests=len(replaced),
            operation=Operation.REPLACE,
            counts=SummaryCounts(),
            extra={Summary.ENTRIES_PROCESSED: str(entries)},
        )

    def groups(self, loaded: LoadedTable, base: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
        """Return the manifests to rewrite, those of one content and spec together."""

        def group_of(one: ManifestFile) -> tuple[ManifestContent, int]:
            return one.content, one.partition_spec_id

        chosen = sorted([one for one in base if self._chooses(loaded, one)], key=group_of)
        found = [list(members) for _, members in groupby(chosen, key=group_of)]
        return [one for one in found if not _is_settled(one)]

    def _chooses(self, loaded: LoadedTable, manifest: ManifestFile) -> bool:
        if self.spec_id is not None and manifest.partition_spec_id != self.spec_id:
            return False
        if manifest.content is ManifestContent.DELETES and not self.includes_deletes:
            return False
        target = read_property(loaded.metadata.properties, properties.MANIFEST_TARGET_SIZE_BYTES)
        return not self.only_small or manifest.manifest_length < target

    def _first_fields(self, writer: ManifestWriter, spec_id: int) -> list[int]:
        """Return the places of the fields that entries of a spec are sorted by before the others."""
        spec = writer.specs[spec_id][0]
        names = [one.name for one in spec.fields]
        unknown = [one for one in self.sort_by if one not in names]
        if unknown:
            raise InvalidRequestError(
                f"Cannot sort manifests by {unknown[0]!r}: partition spec {spec_id} has no such field",
                hint=f"Its fields are: {', '.join(names)}." if names else "It has no fields.",
            )
        return [names.index(one) for one in self.sort_by]


def _is_settled(group: Sequence[ManifestFile]) -> bool:
    """Return whether rewriting changes nothing: one manifest, all of it live."""
    return len(group) == 1 and not group[0].has_deleted_files and group[0].has_live_files


def _rewrite(
    writer: ManifestWriter, context: CommitContext, group: Sequence[ManifestFile], first_fields: Sequence[int]
) -> tuple[list[ManifestFile], int]:
    key = ("rewritten", writer.format_version, *map(manifest_key, group))
    known: tuple[list[ManifestFile], int] | None = context.written.find(key)
    if known is None:
        parts = []
        for manifest in group:
            if manifest.has_live_files:
                columns = writer.read(manifest)
                nothing = np.zeros(len(columns), dtype=bool)
                if live_mask(columns).any():
                    parts.append(without_files(columns, nothing, context.snapshot_id))
        if not parts:
            return [], 0
        rows = _clustered(pa.concat_tables(parts), first_fields)
        first = group[0]
        known = writer.write_rows(rows, first.partition_spec_id, first.content), rows.num_rows
        context.written.keep(key, known)
    return known


def _clustered(rows: pa.Table, first_fields: Sequence[int]) -> pa.Table:
    """Return entries with those of one partition side by side, in the order of partition values."""
    partition = rows.column("partition").combine_chunks()
    fields = partition.type.num_fields
    if fields == 0:
        return rows
    places = dict.fromkeys([*first_fields, *range(fields)])
    keys = pa.table({str(at): _sortable(partition.field(at)) for at in places})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return rows.take(order)


def _sortable(column: pa.Array) -> pa.Array:
    """Return a column in a type that Arrow sorts."""
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
