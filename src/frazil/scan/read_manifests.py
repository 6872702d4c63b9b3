"""The reads of a plan: from a snapshot to its manifests, and from a manifest to its columns.

`read_manifest_list` also serves v1 snapshots that name their manifests without a list: the fields of the list are then
read from the header of each manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from frazil.codec.manifest_avro import ManifestColumns, decode_manifest
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.errors import UnsupportedError
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.manifest import ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import StructType
from frazil.storage.base import Storage
from frazil.storage.choose import storage_of
from frazil.storage.local import LocalStorage

HEADER_FIELDS = ("status",)
_SMALL_BYTES = 1 << 20


def read_manifest_list(storage: Storage, snapshot: Snapshot, cache: ManifestCache | None = None) -> list[ManifestFile]:
    """Return the manifests of a snapshot, from the cache if possible."""
    if snapshot.key_id is not None:
        raise UnsupportedError(
            f"Cannot read snapshot {snapshot.snapshot_id}: its manifest list is encrypted with key {snapshot.key_id!r}",
            hint="Encrypted tables are not supported yet.",
        )
    path = snapshot.manifest_list
    if path is not None:
        manifests = None if cache is None else cache.find_list(path)
        if manifests is None:
            manifests = decode_manifest_list(storage.read(path), path=path)
            if cache is not None:
                cache.keep_list(path, manifests)
        return manifests
    return [_describe(storage, path, snapshot) for path in snapshot.manifests or ()]


def _describe(storage: Storage, path: str, snapshot: Snapshot) -> ManifestFile:
    data = storage.read(path)
    columns = decode_manifest(data, fields=HEADER_FIELDS, path=path)
    return ManifestFile(path, len(data), columns.spec_id, snapshot.snapshot_id, columns.content)


def read_manifest(
    storage: Storage,
    manifest: ManifestFile,
    partition_type: StructType,
    fields: Collection[str],
    *,
    cache: ManifestCache | None = None,
    keeps: bool = True,
    threads: int = 1,
) -> ManifestColumns:
    """Return columns of a manifest, from the cache if possible; `keeps` stores them there."""
    field_names = frozenset(fields)
    key = (
        manifest.manifest_path,
        manifest.sequence_number,
        manifest.added_snapshot_id,
        manifest.first_row_id,
        partition_type,
    )
    if cache is not None:
        cached = cache.find(key, field_names)
        if cached is not None:
            return cached
    data = storage.read(manifest.manifest_path)
    columns = decode_manifest(
        data, manifest=manifest, partition_type=partition_type, fields=field_names, threads=threads
    )
    if cache is not None and keeps:
        cache.keep(key, columns)
    return columns


def worthwhile_threads(storage: Storage, manifests: Sequence[ManifestFile], threads: int) -> int:
    """Return the number of threads for reading manifests: one if they are small local files.

    Those are decoded in Python, which runs one thread at a time, and their reads do not block.
    """
    if not manifests or sum(manifest.manifest_length for manifest in manifests) > _SMALL_BYTES:
        return threads
    is_local = all(isinstance(storage_of(storage, manifest.manifest_path), LocalStorage) for manifest in manifests)
    return 1 if is_local else threads
