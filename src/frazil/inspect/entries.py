"""The tables of manifest entries: `entries` of a snapshot, and `all_entries` of all snapshots.

A row is an entry of a manifest, including entries of deleted files, with its inherited sequence numbers and ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from frazil.inspect.file_columns import entries_schema, read_file_rows
from frazil.inspect.reachable import read_chosen_manifests, read_reachable_manifests
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.manifest import ManifestFile


def entries(
    loaded: LoadedTable,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the entries of a snapshot's manifests."""
    return _rows_of(loaded, read_chosen_manifests(loaded, choice), columns, cache, threads)


def all_entries(
    loaded: LoadedTable,
    *,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the entries of the manifests of all snapshots, each manifest once."""
    return _rows_of(loaded, read_reachable_manifests(loaded, threads=threads), columns, cache, threads)


def _rows_of(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    columns: Sequence[str] | None,
    cache: ManifestCache | None,
    threads: int | None,
) -> pa.Table:
    schema = entries_schema(loaded.metadata)
    return read_file_rows(loaded, manifests, schema, columns=columns, only_live=False, cache=cache, threads=threads)
