"""The tables of files: `files`, `data_files`, `delete_files`, and their `all_` variants for all snapshots.

A row is a live file of a manifest. The `all_` tables read each manifest once, even if several snapshots have it; a file
in several manifests appears several times, as in Iceberg Java.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.inspect.file_columns import files_schema, read_file_rows
from frazil.inspect.reachable import read_chosen_manifests, read_reachable_manifests, read_rows, with_content
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.manifest import ManifestContent, ManifestFile


def files(
    loaded: LoadedTable,
    *,
    content: ManifestContent | None = None,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the data files, the delete files and vectors, or all files of a snapshot."""
    return _rows_of(loaded, with_content(read_chosen_manifests(loaded, choice), content), columns, cache, threads)


def all_files(
    loaded: LoadedTable,
    *,
    content: ManifestContent | None = None,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return the data files, the delete files and vectors, or all files of all snapshots."""
    chosen = with_content(read_reachable_manifests(loaded, threads=threads), content)
    return _rows_of(loaded, chosen, columns, cache, threads)


def find_file(loaded: LoadedTable, path: str, choice: SnapshotChoice = CURRENT) -> dict[str, Any] | None:
    """Return the row of `files` for a path, or None if the snapshot has no such file."""

    def has_path(rows: ManifestColumns) -> bool:
        return bool(pc.any(pc.equal(rows.column("file_path"), path)).as_py())

    manifests = [
        chosen_manifest for chosen_manifest in read_chosen_manifests(loaded, choice) if chosen_manifest.has_live_files
    ]
    hits = read_rows(loaded, manifests, ("file_path",), has_path, only_live=True)
    chosen = [manifest for manifest, is_hit in zip(manifests, hits, strict=True) if is_hit]
    if not chosen:
        return None
    rows = _rows_of(loaded, chosen[:1], None, None, None)
    row: dict[str, Any] = rows.filter(pc.equal(rows.column("file_path"), path)).slice(0, 1).to_pylist()[0]
    return row


def _rows_of(
    loaded: LoadedTable,
    manifests: Iterable[ManifestFile],
    columns: Sequence[str] | None,
    cache: ManifestCache | None,
    threads: int | None,
) -> pa.Table:
    schema = files_schema(loaded.metadata)
    return read_file_rows(loaded, manifests, schema, columns=columns, only_live=True, cache=cache, threads=threads)
