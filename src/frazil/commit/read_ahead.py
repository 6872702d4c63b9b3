"""Manifests that a stream's next batches need, read between its batches.

Each append adds a manifest, and one of a hundred merges them: it would read a hundred of them then, and be late. So
after a batch its manifest list and small manifests are read into the cache by a thread, while Spark notes that the
batch is done and looks for the next one. What cannot be read is left to the commit that needs it, which says why.
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

_MOST_BYTES = 64 << 10
_WAIT_SECONDS = 0.01
"""Two threads of Python would wait for each other: first the batch's own ends."""


def read_ahead(loaded: LoadedTable, made: Snapshot, cache: ManifestCache | None) -> threading.Thread | None:
    """Begin to read the small manifests of a new snapshot into the cache; None where none will be merged."""
    if cache is None or not read_property(loaded.metadata.properties, MANIFEST_MERGE_ENABLED):
        return None
    thread = threading.Timer(_WAIT_SECONDS, _read, (loaded, made, cache))
    thread.name, thread.daemon = "frazil reads ahead", True
    thread.start()
    return thread


def _read(loaded: LoadedTable, made: Snapshot, cache: ManifestCache) -> None:
    specs = partition_types(loaded.metadata)
    least = read_property(loaded.metadata.properties, MANIFEST_MIN_MERGE_COUNT)
    with suppress(FrazilError, OSError):
        for manifest in read_manifest_list(loaded.storage, made, cache)[:least]:
            if manifest.manifest_length <= _MOST_BYTES and manifest.partition_spec_id in specs:
                partition_type = specs[manifest.partition_spec_id][1]
                read_manifest(loaded.storage, manifest, partition_type, COLUMNS, cache=cache)
