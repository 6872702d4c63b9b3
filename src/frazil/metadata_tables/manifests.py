"""The tables of manifests: `manifests` of a snapshot, and `all_manifests` of all snapshots.

A row is an entry of a manifest list. `all_manifests` has a row for each snapshot of a manifest, named by
`reference_snapshot_id`. Counts are in the columns of the manifest's content, with 0 in the others. They and the
partition summaries are null in old v1 tables whose writers left them out. Bounds of partition summaries are
human-readable text, or null if there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from frazil.codec.single_value import decode_bound
from frazil.errors import FrazilError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_chosen_manifests, read_manifests_by_snapshot
from frazil.metadata_tables.select_columns import project_table, select_columns
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, partition_types
from frazil.spec.manifest import FieldSummary, ManifestContent, ManifestFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType

_SUMMARY = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
_COUNTS = {"added": "added_files_count", "existing": "existing_files_count", "deleted": "deleted_files_count"}

MANIFESTS_SCHEMA = pa.schema(
    [
        pa.field("content", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("added_snapshot_id", pa.int64()),
        *(pa.field(f"{name}_data_files_count", pa.int32()) for name in _COUNTS),
        *(pa.field(f"{name}_delete_files_count", pa.int32()) for name in _COUNTS),
        pa.field("partition_summaries", pa.list_(pa.field("element", _SUMMARY, nullable=False))),
    ]
)

ALL_MANIFESTS_SCHEMA = pa.schema(
    [
        *MANIFESTS_SCHEMA,
        pa.field("reference_snapshot_id", pa.int64(), nullable=False),
        pa.field("key_metadata", pa.binary()),
    ]
)


def manifests(
    loaded: LoadedTable, *, choice: SnapshotChoice = CURRENT, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the manifests of a snapshot."""
    chosen = select_columns(MANIFESTS_SCHEMA, columns)
    listed = read_chosen_manifests(loaded, choice)
    return project_table(pa.table(_columns(loaded.metadata, listed), schema=MANIFESTS_SCHEMA), chosen)


def all_manifests(loaded: LoadedTable, *, columns: Sequence[str] | None = None, threads: int | None = None) -> pa.Table:
    """Return the manifests of all snapshots, once per snapshot."""
    chosen = select_columns(ALL_MANIFESTS_SCHEMA, columns)
    all_listed: list[ManifestFile] = []
    references: list[int] = []
    for snapshot, listed in read_manifests_by_snapshot(loaded, threads=threads):
        all_listed += listed
        references += [snapshot.snapshot_id] * len(listed)
    columns_by_name = {
        **_columns(loaded.metadata, all_listed),
        "reference_snapshot_id": pa.array(references, pa.int64()),
        "key_metadata": pa.array([manifest.key_metadata for manifest in all_listed], pa.binary()),
    }
    return project_table(pa.table(columns_by_name, schema=ALL_MANIFESTS_SCHEMA), chosen)


def _columns(metadata: TableMetadata, listed: Sequence[ManifestFile]) -> dict[str, pa.Array]:
    is_data = [manifest.content is ManifestContent.DATA for manifest in listed]
    columns = {
        "content": [int(manifest.content) for manifest in listed],
        "path": [manifest.manifest_path for manifest in listed],
        "length": [manifest.manifest_length for manifest in listed],
        "partition_spec_id": [manifest.partition_spec_id for manifest in listed],
        "added_snapshot_id": [manifest.added_snapshot_id for manifest in listed],
    }
    for name, source in _COUNTS.items():
        counts = [getattr(manifest, source) for manifest in listed]
        columns[f"{name}_data_files_count"] = [n if own else 0 for n, own in zip(counts, is_data, strict=True)]
        columns[f"{name}_delete_files_count"] = [0 if own else n for n, own in zip(counts, is_data, strict=True)]
    arrays = {
        field.name: pa.array(columns[field.name], field.type) for field in MANIFESTS_SCHEMA if field.name in columns
    }
    return {**arrays, "partition_summaries": _summaries(metadata, listed)}


def _summaries(metadata: TableMetadata, listed: Iterable[ManifestFile]) -> pa.Array:
    texts = _BoundTexts(partition_types(metadata))
    rows = [
        None
        if manifest.partitions is None
        else [
            texts.row(manifest.partition_spec_id, index, summary) for index, summary in enumerate(manifest.partitions)
        ]
        for manifest in listed
    ]
    return pa.array(rows, MANIFESTS_SCHEMA.field("partition_summaries").type)


class _BoundTexts:
    """Partition bounds as text; manifests share most of their bounds, so texts are cached."""

    def __init__(self, specs: dict[int, tuple[PartitionSpec, StructType]]) -> None:
        self._specs = specs
        self._cache: dict[tuple[int, int, bytes], str | None] = {}

    def row(self, spec_id: int, index: int, summary: FieldSummary) -> dict[str, object]:
        return {
            "contains_null": summary.contains_null,
            "contains_nan": summary.contains_nan,
            "lower_bound": self._text(spec_id, index, summary.lower_bound),
            "upper_bound": self._text(spec_id, index, summary.upper_bound),
        }

    def _text(self, spec_id: int, index: int, bound: bytes | None) -> str | None:
        if bound is None:
            return None
        key = (spec_id, index, bound)
        if key not in self._cache:
            self._cache[key] = self._format(spec_id, index, bound)
        return self._cache[key]

    def _format(self, spec_id: int, index: int, bound: bytes) -> str | None:
        spec, partition_type = self._specs.get(spec_id, (PartitionSpec(), StructType()))
        if index >= len(spec.fields):
            return None
        field_type = partition_type.fields[index].field_type
        try:
            return spec.fields[index].transform.human_text(decode_bound(bound, field_type), field_type)
        except FrazilError:
            # Bounds are informative here, and users may inspect a table because it has corrupt bounds.
            return None
