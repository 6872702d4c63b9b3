"""The manifests for a metadata table: those of one snapshot, or of all snapshots.

`read_rows` reads manifests, a few at a time, and maps each to a result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import InvalidManifestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.scan.choose_snapshot import SnapshotChoice, choose_snapshot, partition_types
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.threads import default_threads, map_in_order

Result = TypeVar("Result")


def read_chosen_manifests(loaded: LoadedTable, choice: SnapshotChoice) -> list[ManifestFile]:
    """Return the manifests of the chosen snapshot, or none if the table has no snapshot."""
    snapshot, _ = choose_snapshot(loaded.metadata, choice)
    return [] if snapshot is None else read_manifest_list(loaded.storage, snapshot)


def read_manifests_by_snapshot(
    loaded: LoadedTable, *, threads: int | None = None
) -> Iterator[tuple[Snapshot, list[ManifestFile]]]:
    """Yield every snapshot of a table, on any branch, with its manifests."""

    def read_one(snapshot: Snapshot) -> tuple[Snapshot, list[ManifestFile]]:
        return snapshot, read_manifest_list(loaded.storage, snapshot)

    return map_in_order(read_one, loaded.metadata.snapshots, threads=threads or default_threads())


def read_reachable_manifests(loaded: LoadedTable, *, threads: int | None = None) -> list[ManifestFile]:
    """Return the manifests of all snapshots, each once, as described by the newest list that has it."""
    by_path: dict[str, ManifestFile] = {}
    for _, manifests in read_manifests_by_snapshot(loaded, threads=threads):
        # In an upgraded table, newer lists assign row ids to old manifests.
        by_path.update((manifest.manifest_path, manifest) for manifest in manifests)
    return list(by_path.values())


def with_content(manifests: Iterable[ManifestFile], content: ManifestContent | None) -> list[ManifestFile]:
    """Return the manifests of data files or of delete files, or all for None."""
    return [manifest for manifest in manifests if content is None or manifest.content is content]


def read_rows(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    fields: Collection[str],
    convert: Callable[[ManifestColumns], Result],
    *,
    only_live: bool,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> list[Result]:
    """Return the conversion of each manifest's rows, in the order of the manifests.

    `fields` are the columns of a manifest that are needed. With `only_live`, entries of deleted files are left out, and
    manifests without other entries are not read.
    """
    specs = partition_types(loaded.metadata)
    chosen = [manifest for manifest in manifests if manifest.has_live_files] if only_live else list(manifests)
    columns = {*fields, "status"}

    def read_one(manifest: ManifestFile) -> Result:
        spec = specs.get(manifest.partition_spec_id)
        if spec is None:
            raise InvalidManifestError(
                f"Cannot read the manifest: the table has no partition spec {manifest.partition_spec_id}",
                path=manifest.manifest_path,
                heading="Manifest Lists",
            )
        files = read_manifest(loaded.storage, manifest, spec[1], columns, cache=cache)
        if only_live:
            live = live_mask(files)
            if not live.all():
                files = replace(files, table=files.table.filter(pa.array(live)))
        return convert(files)

    results = map_in_order(read_one, chosen, threads=threads or default_threads())
    return list(counted("manifests read", results, len(chosen)))
