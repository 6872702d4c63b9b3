"""The tables of manifest entries: `entries` of a snapshot, and `all_entries` over every snapshot.

A row is an entry of a manifest, those of deleted files included, with the sequence numbers and ids it inherits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from frazil.inspect.file_columns import FileColumns, entries_schema, manifest_fields_of
from frazil.inspect.reachable import read_chosen_manifests, read_reachable_manifests, read_rows
from frazil.inspect.select_columns import select_columns
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import CURRENT, SnapshotChoice
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
    """Return the entries of all snapshots' manifests, each manifest once."""
    return _rows_of(loaded, read_reachable_manifests(loaded, threads=threads), columns, cache, threads)


def _rows_of(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    columns: Sequence[str] | None,
    cache: ManifestCache | None,
    threads: int | None,
) -> pa.Table:
    schema = select_columns(entries_schema(loaded.metadata), columns)
    maker = FileColumns(loaded.metadata)
    tables = read_rows(
        loaded,
        manifests,
        manifest_fields_of(schema),
        lambda rows: maker.table_of(rows, schema),
        only_live=False,
        cache=cache,
        threads=threads,
    )
    return pa.concat_tables(tables) if tables else schema.empty_table()
