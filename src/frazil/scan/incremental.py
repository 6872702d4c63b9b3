"""Appended rows between two snapshots, as in Iceberg Java's incremental append scan.

The window is the ancestry of the end snapshot back to the start, which must be in it. Only `append` snapshots
contribute; others are skipped, since their files are not new rows. The files are those that the appends added, live or
not, and deletes are not applied: rows are read as they were appended.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.columns.stats_masks import Mask, to_mask
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import Plan
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.snapshot import Operation
from frazil.spec.snapshot_history import ancestor_ids, ancestor_ids_between
from frazil.threads import default_threads, map_in_order


@dataclass(frozen=True, slots=True)
class Appends:
    """The appends after one snapshot, up to and including another; without a start, from the beginning."""

    after_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    has_overwrites: bool = False
    """Whether files added by snapshots that are not appends are included."""


def plan_appends(
    loaded: LoadedTable,
    predicate: Predicate | str = TRUE,
    *,
    from_snapshot_id: int | None = None,
    to_snapshot_id: int | None = None,
    has_overwrites: bool = False,
    case_sensitive: bool = True,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> AppendsPlan:
    """Plan the files appended after one snapshot, up to and including another.

    Without a start, the plan begins at the oldest ancestor; without an end, it ends at the current snapshot. With
    `has_overwrites`, files added by snapshots that are not appends are included.
    """
    metadata = loaded.metadata
    end = metadata.current_snapshot if to_snapshot_id is None else metadata.snapshot(to_snapshot_id)
    if end is None and from_snapshot_id is not None:
        raise InvalidRequestError(
            f"Cannot plan appends after snapshot {from_snapshot_id}: {loaded.name} has no current snapshot"
        )
    unbound = parse_predicate(predicate) if isinstance(predicate, str) else predicate
    bound = bind(metadata.current_schema, unbound, case_sensitive=case_sensitive)
    ids: list[int] = []
    if end is not None and from_snapshot_id is None:
        ids = list(ancestor_ids(metadata, end.snapshot_id))
    elif end is not None:
        between = ancestor_ids_between(metadata, after_snapshot_id=from_snapshot_id, to_snapshot_id=end.snapshot_id)
        ids = list(between)
    plan = AppendsPlan(loaded, end, metadata.current_schema, bound, cache, threads or default_threads())
    plan.append_ids = tuple(
        snapshot_id
        for snapshot_id in reversed(ids)
        if has_overwrites or metadata.snapshot(snapshot_id).operation == Operation.APPEND
    )
    return plan


class AppendsPlan(Plan):
    """The files that append snapshots added. Created by `plan_appends`."""

    append_ids: tuple[int, ...] = ()

    @cached_property
    def manifests(self) -> list[ManifestFile]:
        """The data manifests that the appends wrote, oldest first."""
        snapshots = [self.loaded.metadata.snapshot(append_id) for append_id in self.append_ids]
        ids = set(self.append_ids)
        by_path: dict[str, ManifestFile] = {}
        storage = self.loaded.storage
        for manifests in map_in_order(lambda snapshot: read_manifest_list(storage, snapshot), snapshots, threads=4):
            for manifest in manifests:
                is_data = manifest.content is ManifestContent.DATA
                if is_data and (manifest.added_snapshot_id is None or manifest.added_snapshot_id in ids):
                    by_path.setdefault(manifest.manifest_path, manifest)
        return list(by_path.values())

    def _selected_entries(self, files: ManifestColumns) -> Mask:
        added = to_mask(pc.equal(files.column("status"), int(EntryStatus.ADDED)))
        by_append = pc.is_in(files.column("snapshot_id"), value_set=pa.array(self.append_ids, pa.int64()))
        return added & to_mask(by_append)

    def _file_fields(self) -> set[str]:
        return super()._file_fields() | {"snapshot_id"}
