"""The manifests that a metadata table is about: those of one snapshot, or all that some snapshot still has.

`read_rows` reads some of them, a few at a time, and makes something of what each holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.columns.manifest_columns import live_mask
from frazil.errors import InvalidManifestError
from frazil.loaded import LoadedTable
from frazil.progress import counted
from frazil.scan.choose_snapshot import SnapshotChoice, choose_snapshot, partition_types
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.threads import default_threads, map_in_order

Made = TypeVar("Made")


def read_chosen_manifests(loaded: LoadedTable, choice: SnapshotChoice) -> list[ManifestFile]:
    """Return the manifests of the chosen snapshot; none where the table has no snapshot."""
    snapshot, _ = choose_snapshot(loaded.metadata, choice)
    return [] if snapshot is None else read_manifest_list(loaded.storage, snapshot)


def read_manifests_by_snapshot(
    loaded: LoadedTable, *, threads: int | None = None
) -> Iterator[tuple[Snapshot, list[ManifestFile]]]:
    """Yield every snapshot of a table, whatever branch it is on, with its manifests."""

    def read_one(snapshot: Snapshot) -> tuple[Snapshot, list[ManifestFile]]:
        return snapshot, read_manifest_list(loaded.storage, snapshot)

    return map_in_order(read_one, loaded.metadata.snapshots, threads=threads or default_threads())


def read_reachable_manifests(loaded: LoadedTable, *, threads: int | None = None) -> list[ManifestFile]:
    """Return the manifests of all snapshots, each once, as the newest of the lists that have it describes it."""
    found: dict[str, ManifestFile] = {}
    for _, manifests in read_manifests_by_snapshot(loaded, threads=threads):
        # A table that was upgraded gives old manifests row ids in newer lists.
        found.update((manifest.manifest_path, manifest) for manifest in manifests)
    return list(found.values())


def with_content(manifests: Iterable[ManifestFile], content: ManifestContent | None) -> list[ManifestFile]:
    """Return the manifests of data files or of delete files; all for None."""
    return [manifest for manifest in manifests if content is None or manifest.content is content]


def read_rows(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    fields: Collection[str],
    make: Callable[[ManifestColumns], Made],
    *,
    only_live: bool,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> list[Made]:
    """Return what is made of each manifest's rows, in the order of the manifests.

    `fields` are the columns of a manifest that are needed. With `only_live`, entries of deleted files are left
    out, and manifests that say they have no others are not read.
    """
    specs = partition_types(loaded.metadata)
    chosen = [manifest for manifest in manifests if manifest.has_live_files] if only_live else list(manifests)
    wanted = {*fields, "status"}

    def read_one(manifest: ManifestFile) -> Made:
        known = specs.get(manifest.partition_spec_id)
        if known is None:
            raise InvalidManifestError(
                f"Cannot read the manifest: the table has no partition spec {manifest.partition_spec_id}",
                path=manifest.manifest_path,
                heading="Manifest Lists",
            )
        files = read_manifest(loaded.storage, manifest, known[1], wanted, cache=cache)
        if only_live:
            live = live_mask(files)
            if not live.all():
                files = replace(files, table=files.table.filter(pa.array(live)))
        return make(files)

    made = map_in_order(read_one, chosen, threads=threads or default_threads())
    return list(counted("manifests read", made, len(chosen)))
