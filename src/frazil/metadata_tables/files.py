"""The tables of files and of manifest entries, of a snapshot, and their `all_` kin over every snapshot.

A row of `files`, `data_files` and `delete_files` is a live file of a manifest; of `entries` an entry, those of deleted
files included, with the sequence numbers and ids it inherits. The `all_` tables read each manifest once, however many
snapshots have it; a file that several manifests hold is there several times, as in Iceberg Java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.loaded import LoadedTable
from frazil.metadata_tables.file_columns import entries_schema, files_schema, read_file_rows
from frazil.metadata_tables.reachable import read_chosen_manifests, read_reachable_manifests, read_rows, with_content
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestContent
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class FileRows:
    """A table with a row for each entry of manifests: of one snapshot or of all, each manifest once."""

    content: ManifestContent | None = None
    is_of_all: bool = False
    only_live: bool = True
    """Whether entries of deleted files are left out; with them, a row is the whole entry."""

    def schema(self, metadata: TableMetadata) -> pa.Schema:
        """Return the columns of the table."""
        return files_schema(metadata) if self.only_live else entries_schema(metadata)

    def __call__(
        self,
        loaded: LoadedTable,
        *,
        choice: SnapshotChoice = CURRENT,
        columns: Sequence[str] | None = None,
        cache: ManifestCache | None = None,
        threads: int | None = None,
    ) -> pa.Table:
        """Return the rows."""
        manifests = (
            read_reachable_manifests(loaded, threads=threads)
            if self.is_of_all
            else read_chosen_manifests(loaded, choice)
        )
        return read_file_rows(
            loaded,
            with_content(manifests, self.content),
            self.schema(loaded.metadata),
            columns=columns,
            only_live=self.only_live,
            cache=cache,
            threads=threads,
        )


files = FileRows()
FILE_TABLES: Mapping[str, FileRows] = FrozenMap(
    {
        "entries": FileRows(only_live=False),
        "files": files,
        "data_files": FileRows(ManifestContent.DATA),
        "delete_files": FileRows(ManifestContent.DELETES),
        "all_data_files": FileRows(ManifestContent.DATA, is_of_all=True),
        "all_delete_files": FileRows(ManifestContent.DELETES, is_of_all=True),
        "all_files": FileRows(is_of_all=True),
        "all_entries": FileRows(is_of_all=True, only_live=False),
    }
)


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
    rows = read_file_rows(loaded, chosen[:1], files_schema(loaded.metadata), columns=None, only_live=True)
    found: dict[str, Any] = rows.filter(pc.equal(rows.column("file_path"), path)).slice(0, 1).to_pylist()[0]
    return found
