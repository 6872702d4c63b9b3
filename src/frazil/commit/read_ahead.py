"""Read the manifests that the next batches of a stream need, between batches.

Each append adds a manifest, and one append in a hundred merges them: it would have to read a hundred manifests and be
late. So after each batch a thread reads its manifest list and small manifests into the cache, while Spark records the
end of the batch and looks for the next. Read errors are left to the commit that needs the manifest.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from frazil.codec.manifest_fields import COLUMNS
from frazil.errors import FrazilError
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import partition_types
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec.properties import MANIFEST_MERGE_ENABLED, MANIFEST_MIN_MERGE_COUNT, read_property
from frazil.spec.snapshot import Snapshot

_MAX_BYTES = 64 << 10
_WAIT_SECONDS = 0.01
"""Delays the thread, since two Python threads would slow each other down: the batch ends first."""


def read_ahead(loaded: LoadedTable, snapshot: Snapshot, cache: ManifestCache | None) -> threading.Thread | None:
    """Start reading the small manifests of a new snapshot into the cache, or return None if none will be merged."""
    if cache is None or not read_property(loaded.metadata.properties, MANIFEST_MERGE_ENABLED):
        return None
    thread = threading.Timer(_WAIT_SECONDS, _read, (loaded, snapshot, cache))
    thread.name, thread.daemon = "frazil reads ahead", True
    thread.start()
    return thread


def _read(loaded: LoadedTable, snapshot: Snapshot, cache: ManifestCache) -> None:
    specs = partition_types(loaded.metadata)
    count = read_property(loaded.metadata.properties, MANIFEST_MIN_MERGE_COUNT)
    with suppress(FrazilError, OSError):
        for manifest in read_manifest_list(loaded.storage, snapshot, cache)[:count]:
            if manifest.manifest_length <= _MAX_BYTES and manifest.partition_spec_id in specs:
                partition_type = specs[manifest.partition_spec_id][1]
                read_manifest(loaded.storage, manifest, partition_type, COLUMNS, cache=cache)
