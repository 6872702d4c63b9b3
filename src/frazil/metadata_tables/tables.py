"""The registry of metadata tables by name, for SQL, the Python API and the terminal.

    of a snapshot     entries, files, data_files, delete_files, manifests, partitions, position_deletes
    of the table      history, snapshots, refs, metadata_log_entries
    of all snapshots  all_entries, all_files, all_data_files, all_delete_files, all_manifests

Those of a snapshot support time travel; for the others it is refused, as in Iceberg Java. Names, columns, their order
and their types are Iceberg Java's. The columns follow the table's present schema and specs, whichever snapshot is
chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.files import FILE_TABLES
from frazil.metadata_tables.manifests import ALL_MANIFESTS_SCHEMA, MANIFESTS_SCHEMA, all_manifests, manifests
from frazil.metadata_tables.partitions import partitions, partitions_schema
from frazil.metadata_tables.position_deletes import position_deletes, position_deletes_schema
from frazil.metadata_tables.snapshots import (
    HISTORY_SCHEMA,
    METADATA_LOG_ENTRIES_SCHEMA,
    REFS_SCHEMA,
    SNAPSHOTS_SCHEMA,
    history,
    metadata_log_entries,
    refs,
    snapshots,
)
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A metadata table: how to read it, its columns for a table, and whether it belongs to one snapshot.

    `reads_manifests` means that it accepts a manifest cache and a number of threads.
    """

    read: Callable[..., pa.Table]
    schema: Callable[[TableMetadata], pa.Schema]
    is_of_snapshot: bool = False
    reads_manifests: bool = False


def _always(schema: pa.Schema) -> Callable[[TableMetadata], pa.Schema]:
    return lambda _: schema


def _of_files(name: str) -> MetadataTable:
    rows = FILE_TABLES[name]
    return MetadataTable(rows, rows.schema, is_of_snapshot=not rows.is_of_all, reads_manifests=True)


METADATA_TABLES: Mapping[str, MetadataTable] = FrozenMap(
    {
        **{name: _of_files(name) for name in ("entries", "files", "data_files", "delete_files")},
        "history": MetadataTable(history, _always(HISTORY_SCHEMA)),
        "metadata_log_entries": MetadataTable(metadata_log_entries, _always(METADATA_LOG_ENTRIES_SCHEMA)),
        "snapshots": MetadataTable(snapshots, _always(SNAPSHOTS_SCHEMA)),
        "refs": MetadataTable(refs, _always(REFS_SCHEMA)),
        "manifests": MetadataTable(manifests, _always(MANIFESTS_SCHEMA), is_of_snapshot=True),
        "partitions": MetadataTable(partitions, partitions_schema, is_of_snapshot=True, reads_manifests=True),
        **{name: _of_files(name) for name in ("all_data_files", "all_delete_files", "all_files")},
        "all_manifests": MetadataTable(all_manifests, _always(ALL_MANIFESTS_SCHEMA)),
        "all_entries": _of_files("all_entries"),
        "position_deletes": MetadataTable(
            position_deletes, position_deletes_schema, is_of_snapshot=True, reads_manifests=True
        ),
    }
)
"""The metadata tables by name, in Iceberg Java's order."""


def find_metadata_table(name: str) -> MetadataTable | None:
    """Return the metadata table with a name, in any case, or None."""
    return METADATA_TABLES.get(name.lower())


def metadata_table_schema(metadata: TableMetadata, name: str) -> pa.Schema:
    """Return the columns of a metadata table, without reading anything."""
    return _table(name).schema(metadata)


def read_metadata_table(
    loaded: LoadedTable,
    name: str,
    *,
    choice: SnapshotChoice = CURRENT,
    columns: Sequence[str] | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Return a metadata table by name.

    `columns` are names, which may refer to nested fields by dots; other columns are not decoded. Concurrent commits do
    not affect the result, which is of the loaded state.
    """
    table = _table(name)
    options: dict[str, Any] = {"columns": columns}
    if table.is_of_snapshot:
        options["choice"] = choice
    elif choice != CURRENT:
        of_snapshot = ", ".join(
            table_name for table_name, metadata_table in METADATA_TABLES.items() if metadata_table.is_of_snapshot
        )
        raise InvalidRequestError(
            f"Cannot choose a snapshot of the metadata table {name!r}: it belongs to the whole table",
            hint=f"The tables of one snapshot are: {of_snapshot}.",
        )
    if table.reads_manifests:
        options |= {"cache": cache, "threads": threads}
    return table.read(loaded, **options)


def _table(name: str) -> MetadataTable:
    table = find_metadata_table(name)
    if table is None:
        raise NotFoundError(
            f"Cannot find the metadata table {name[:80]!r}: there is no such table",
            hint=f"The metadata tables are: {', '.join(METADATA_TABLES)}.",
        )
    return table
