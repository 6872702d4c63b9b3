"""The tables of manifests: `manifests` of a snapshot, and `all_manifests` over every snapshot.

A row is a line of a manifest list. `all_manifests` has a row for each snapshot that a manifest is in, named by
`reference_snapshot_id`. Counts are shown under the content they are about, with 0 for the other; they, and the
partition summaries, are null in old v1 tables whose writers left them out. Bounds of partition summaries are
text as people read it, null where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from frazil.codec.single_value import decode_bound
from frazil.errors import FrazilError
from frazil.inspect.reachable import read_chosen_manifests, read_manifests_by_snapshot
from frazil.inspect.select_columns import project_table, select_columns
from frazil.loaded import LoadedTable
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
    found = read_chosen_manifests(loaded, choice)
    return project_table(pa.table(_columns(loaded.metadata, found), schema=MANIFESTS_SCHEMA), chosen)


def all_manifests(loaded: LoadedTable, *, columns: Sequence[str] | None = None, threads: int | None = None) -> pa.Table:
    """Return the manifests of all snapshots, once for each snapshot they are in."""
    chosen = select_columns(ALL_MANIFESTS_SCHEMA, columns)
    found: list[ManifestFile] = []
    references: list[int] = []
    for snapshot, listed in read_manifests_by_snapshot(loaded, threads=threads):
        found += listed
        references += [snapshot.snapshot_id] * len(listed)
    made = {
        **_columns(loaded.metadata, found),
        "reference_snapshot_id": pa.array(references, pa.int64()),
        "key_metadata": pa.array([manifest.key_metadata for manifest in found], pa.binary()),
    }
    return project_table(pa.table(made, schema=ALL_MANIFESTS_SCHEMA), chosen)


def _columns(metadata: TableMetadata, found: Sequence[ManifestFile]) -> dict[str, pa.Array]:
    is_data = [manifest.content is ManifestContent.DATA for manifest in found]
    columns = {
        "content": [int(manifest.content) for manifest in found],
        "path": [manifest.manifest_path for manifest in found],
        "length": [manifest.manifest_length for manifest in found],
        "partition_spec_id": [manifest.partition_spec_id for manifest in found],
        "added_snapshot_id": [manifest.added_snapshot_id for manifest in found],
    }
    for name, source in _COUNTS.items():
        counts = [getattr(manifest, source) for manifest in found]
        columns[f"{name}_data_files_count"] = [n if own else 0 for n, own in zip(counts, is_data, strict=True)]
        columns[f"{name}_delete_files_count"] = [0 if own else n for n, own in zip(counts, is_data, strict=True)]
    arrays = {
        field.name: pa.array(columns[field.name], field.type) for field in MANIFESTS_SCHEMA if field.name in columns
    }
    return {**arrays, "partition_summaries": _summaries(metadata, found)}


def _summaries(metadata: TableMetadata, found: Iterable[ManifestFile]) -> pa.Array:
    texts = _BoundTexts(partition_types(metadata))
    rows = [
        None
        if manifest.partitions is None
        else [
            texts.row(manifest.partition_spec_id, index, summary) for index, summary in enumerate(manifest.partitions)
        ]
        for manifest in found
    ]
    return pa.array(rows, MANIFESTS_SCHEMA.field("partition_summaries").type)


class _BoundTexts:
    """Partition bounds as text; manifests share most of their bounds, so each is made once."""

    def __init__(self, specs: dict[int, tuple[PartitionSpec, StructType]]) -> None:
        self._specs = specs
        self._known: dict[tuple[int, int, bytes], str | None] = {}

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
        if key not in self._known:
            self._known[key] = self._make(spec_id, index, bound)
        return self._known[key]

    def _make(self, spec_id: int, index: int, bound: bytes) -> str | None:
        spec, partition_type = self._specs.get(spec_id, (PartitionSpec(), StructType()))
        if index >= len(spec.fields):
            return None
        field_type = partition_type.fields[index].field_type
        try:
            return spec.fields[index].transform.human_text(decode_bound(bound, field_type), field_type)
        except FrazilError:
            # Bounds only inform here, and a table whose bounds are broken is one that people look into.
            return None
