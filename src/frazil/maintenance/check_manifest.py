"""Check one manifest against its entry in a manifest list and against the table's metadata.

Part of `maintenance/check_table.py`. Of a manifest, only a few numbers per live file are kept in arrays
(`ManifestFacts`): a hash of its path, its rows, its first row id. That suffices to detect, snapshot by snapshot,
whether files are listed twice, row ids overlap or totals are wrong, without reading a manifest again for each snapshot
that has it. Specification: "Manifests", "Manifest Lists", "Row Lineage".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns, decode_manifest
from frazil.codec.partition_arrow import values_of
from frazil.errors import CorruptTableError, FrazilError, MissingFileError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.evaluate_manifest import summary_stats
from frazil.loaded import LoadedTable
from frazil.maintenance.report import Problem
from frazil.spec.data_file import FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType

FIELDS: Final = (
    "status",
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "equality_ids",
)
METRIC_FIELDS: Final = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")

Longs = npt.NDArray[np.int64]
NO_ROW_ID: Final = -1

REPAIR: Final = "Restore the file from a backup, or roll back to a snapshot from before it was written."
REWRITE: Final = "Rewrite the manifests (rewrite_manifests), which recounts the entries."
FOREIGN: Final = "Find out which writer made the commit; roll back to the snapshot before it."


@dataclass(frozen=True, slots=True)
class ManifestFacts:
    """The numbers that are kept for each live file of a manifest, in the order of its entries."""

    content: ManifestContent
    paths: Longs
    """Hashes of the locations."""
    record_counts: Longs
    sizes: Longs
    first_row_ids: Longs
    kinds: npt.NDArray[np.int8]
    """The content of each file: 0 data, 1 position deletes, 2 equality deletes."""
    vectors: npt.NDArray[np.bool_]
    references: Longs
    """For deletion vectors, hashes of their data files."""


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """The result for one manifest, with its live entries as columns, or None if it cannot be read."""

    manifest: ManifestFile
    facts: ManifestFacts | None
    live: ManifestColumns | None
    problems: tuple[Problem, ...]


def check_manifest(
    loaded: LoadedTable, manifest: ManifestFile, snapshot_id: int, *, with_metrics: bool = False
) -> CheckedManifest:
    """Read a manifest and compare it with its entry in a snapshot's list; never raises on bad files."""
    path = manifest.manifest_path
    spec = loaded.metadata.specs_by_id.get(manifest.partition_spec_id)
    if spec is None:
        what = f"the list says partition spec {manifest.partition_spec_id}, which the table does not have"
        return CheckedManifest(
            manifest, None, None, (Problem("wrong-partition-spec", what, FOREIGN, path, snapshot_id),)
        )
    try:
        partition_type = spec.partition_type(loaded.metadata.current_schema, other_schemas=loaded.metadata.schemas)
        data = loaded.storage.read(path)
        fields = (*FIELDS, *METRIC_FIELDS) if with_metrics else FIELDS
        files = decode_manifest(data, manifest=manifest, partition_type=partition_type, fields=fields)
    except FrazilError as error:
        return CheckedManifest(manifest, None, None, (unreadable(error, "manifest", path, snapshot_id),))
    problems = [
        Problem(name, what, to_do, path, snapshot_id)
        for name, what, to_do in (
            *_size(manifest, data),
            *_header(manifest, files, spec),
            *_counts(manifest, files),
            *_sequence_numbers(manifest, files),
            *_vectors(manifest, files, loaded.metadata.format_version),
            *_equality_ids(manifest, files, loaded.metadata.schemas),
            *_row_ids(manifest, files, loaded.metadata.next_row_id),
            *_summaries(manifest, files, partition_type),
        )
    ]
    mask = live_mask(files)
    live = files if mask.all() else replace(files, table=files.table.filter(pa.array(mask)))
    return CheckedManifest(manifest, _facts(manifest, live), live, tuple(problems))


def unreadable(error: FrazilError, what: str, path: str | None, snapshot_id: int | None) -> Problem:
    """Return the problem of a file that cannot be read, by cause."""
    if isinstance(error, MissingFileError):
        return Problem("missing-file", f"the {what} does not exist", REPAIR, path, snapshot_id)
    if isinstance(error, CorruptTableError):
        return Problem(
            "corrupt-file", f"the {what} breaks the specification: {error.message}", REPAIR, path, snapshot_id
        )
    to_do = "Check the storage, and that this process has permission to read the file; then check again."
    return Problem("unreadable-file", f"the {what} cannot be checked: {error.message}", to_do, path, snapshot_id)


_Finding = tuple[str, str, str]


def _size(manifest: ManifestFile, data: bytes) -> Iterator[_Finding]:
    if len(data) != manifest.manifest_length:
        what = f"the manifest has {len(data):,} bytes, but the list says {manifest.manifest_length:,}"
        yield "wrong-size", what, REWRITE


def _header(manifest: ManifestFile, files: ManifestColumns, spec: PartitionSpec) -> Iterator[_Finding]:
    """Compare the manifest's header with its entry in the list and with the table's spec."""
    text = files.metadata.get("partition-spec-id")
    if text is not None and text != str(manifest.partition_spec_id):
        what = f"the manifest was written with partition spec {text}, but the list says {manifest.partition_spec_id}"
        yield "wrong-partition-spec", what, FOREIGN
    try:
        stored = files.partition_spec
    except FrazilError as error:
        yield "corrupt-file", f"the manifest's partition spec cannot be read: {error.message}", REWRITE
        return
    if _shape(stored) != _shape(spec):
        what = f"the manifest's own copy of partition spec {spec.spec_id} is {stored}, but the table's is {spec}"
        yield "wrong-partition-spec", what, FOREIGN


def _shape(spec: PartitionSpec) -> list[tuple[Any, ...]]:
    # Names may change, and readers number the ids of v1 specs, but sources and transforms may not differ.
    return [(field.source_ids, str(field.transform)) for field in spec.fields]


def _counts(manifest: ManifestFile, files: ManifestColumns) -> Iterator[_Finding]:
    status = files.column("status").to_numpy()
    rows = np.maximum(files.column("record_count").to_numpy(), 0)
    for entry_status in EntryStatus:
        chosen = status == entry_status.value
        name = entry_status.name.lower()
        for what, recorded, actual in (
            ("files", getattr(manifest, f"{name}_files_count"), int(chosen.sum())),
            ("rows", getattr(manifest, f"{name}_rows_count"), int(rows[chosen].sum())),
        ):
            if recorded is not None and recorded != actual:
                yield "wrong-count", f"it has {actual:,} {name} {what}, but the list says {recorded:,}", REWRITE
    unknown = int((files.column("record_count").to_numpy() < 0).sum())
    if unknown:
        yield (
            "wrong-count",
            f"{unknown:,} entries have no record count",
            "Rewrite these data files (rewrite_data_files).",
        )


def _sequence_numbers(manifest: ManifestFile, files: ManifestColumns) -> Iterator[_Finding]:
    live = pa.array(live_mask(files))
    numbers = pc.drop_null(files.column("sequence_number").filter(live))
    if len(numbers) == 0:
        return
    low, high = (pc.min_max(numbers)[name].as_py() for name in ("min", "max"))
    if low < manifest.min_sequence_number:
        what = (
            f"an entry has sequence number {low}, but the list says that {manifest.min_sequence_number} is the lowest"
        )
        yield "wrong-sequence-number", what, REWRITE
    if high > manifest.sequence_number:
        what = f"an entry has sequence number {high}, above the manifest's {manifest.sequence_number}"
        yield "wrong-sequence-number", what, FOREIGN
    later = pc.drop_null(files.column("file_sequence_number").filter(live))
    if len(later) and pc.max(later).as_py() > manifest.sequence_number:
        what = f"an entry has file sequence number {pc.max(later)}, above the manifest's {manifest.sequence_number}"
        yield "wrong-sequence-number", what, FOREIGN


def _vectors(manifest: ManifestFile, files: ManifestColumns, format_version: int) -> Iterator[_Finding]:
    """Check entries of deletion vectors: only where they are allowed, and complete."""
    is_puffin = pc.equal(files.column("file_format"), FileFormat.PUFFIN.value)
    if not pc.any(is_puffin).as_py():
        return
    puffins = files.table.filter(is_puffin)
    if manifest.content is ManifestContent.DATA or format_version < 3:
        what = f"{puffins.num_rows:,} entries are Puffin files, not allowed here in format version {format_version}"
        yield "wrong-deletion-vector", what, FOREIGN
    if pc.any(pc.not_equal(puffins.column("content"), FileContent.POSITION_DELETES.value)).as_py():
        yield "wrong-deletion-vector", "a Puffin entry does not hold position deletes", FOREIGN
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        if puffins.column(name).null_count:
            yield "wrong-deletion-vector", f"{puffins.column(name).null_count:,} vectors have no {name}", FOREIGN


def _equality_ids(manifest: ManifestFile, files: ManifestColumns, schemas: Iterable[Schema]) -> Iterator[_Finding]:
    """Check equality deletes: they must compare columns, and columns that the table has or had."""
    if manifest.content is not ManifestContent.DELETES:
        return
    is_equality = pc.equal(files.column("content"), FileContent.EQUALITY_DELETES.value)
    ids = files.column("equality_ids").filter(pc.and_(is_equality, pa.chunked_array([live_mask(files)])))
    empty = sum(1 for value in ids.to_pylist() if not value)
    if empty:
        yield "wrong-equality-ids", f"{empty:,} equality delete files compare no columns", FOREIGN
    known = {field_id for schema in schemas for field_id in schema.fields_by_id}
    unknown = sorted({field_id for entry_ids in ids.to_pylist() for field_id in entry_ids or ()} - known)
    if unknown:
        what = f"equality delete files compare columns {unknown[:10]}, which no schema of the table has"
        yield "wrong-equality-ids", what, FOREIGN


def _row_ids(manifest: ManifestFile, files: ManifestColumns, next_row_id: int) -> Iterator[_Finding]:
    if manifest.content is not ManifestContent.DATA or manifest.first_row_id is None:
        return
    live = pa.array(live_mask(files))
    first = files.column("first_row_id").filter(live)
    if first.null_count:
        yield "wrong-row-ids", f"{first.null_count:,} live files have no first row id", FOREIGN
    rows = files.column("record_count").filter(live)
    ends = pc.add(first, rows)
    if len(ends) and (pc.max(ends).as_py() or 0) > next_row_id:
        what = f"row ids go up to {pc.max(ends).as_py() - 1:,}, but the table has not assigned {next_row_id:,} yet"
        yield "wrong-row-ids", what, FOREIGN
    if len(first) and (pc.min(first).as_py() or 0) < 0:
        yield "wrong-row-ids", f"a file's first row id is {pc.min(first).as_py()}", FOREIGN


def _summaries(manifest: ManifestFile, files: ManifestColumns, data_type: StructType) -> Iterator[_Finding]:
    """Check the summaries of partition values, which prune manifests: they must hold for every live file."""
    if manifest.partitions is None or not data_type.fields:
        return
    if len(manifest.partitions) != len(data_type.fields):
        what = (
            f"the list summarises {len(manifest.partitions)} partition fields, but the spec has {len(data_type.fields)}"
        )
        yield "wrong-partition-summary", what, REWRITE
        return
    struct = files.column("partition").filter(pa.array(live_mask(files))).combine_chunks()
    if len(struct) == 0:
        return
    for index, (field, summary) in enumerate(zip(data_type.fields, manifest.partitions, strict=True)):
        column = struct.field(index)
        if column.null_count and not summary.contains_null:
            what = f"{column.null_count:,} files have null in {field.name!r}, but the list says that none has"
            yield "wrong-partition-summary", what, REWRITE
        yield from _outside(field, summary_stats(summary, field.field_type), column)


def _outside(field: NestedField, stats: Any, column: pa.Array) -> Iterator[_Finding]:
    distinct = pc.unique(pc.drop_null(column))
    values = [
        value for value in values_of(distinct, field.field_type) if value == value
    ]  # NaN is not within any bounds
    if not values:
        return
    low, high = min(values), max(values)
    if stats.lower is None or stats.upper is None or low < stats.lower or high > stats.upper:
        what = (
            f"values of {field.name!r} range from {low!r} to {high!r}, but the list says from {stats.lower!r} "
            f"to {stats.upper!r}"
        )
        yield "wrong-partition-summary", what, REWRITE


def hashes_of(texts: list[str | None]) -> Longs:
    """Return a hash of each text, consistent within this process."""
    return np.fromiter((hash(text) for text in texts), np.int64, len(texts))


def _facts(manifest: ManifestFile, live: ManifestColumns) -> ManifestFacts:
    count = len(live)
    is_vector = pc.equal(live.column("file_format"), FileFormat.PUFFIN.value).to_numpy()
    sizes = live.column("file_size_in_bytes").to_numpy()
    blobs = pc.fill_null(live.column("content_size_in_bytes"), 0).to_numpy()
    row_ids = pc.fill_null(live.column("first_row_id"), NO_ROW_ID).to_numpy()
    references = hashes_of(live.column("referenced_data_file").to_pylist()) if is_vector.any() else np.zeros(count, int)
    return ManifestFacts(
        manifest.content,
        hashes_of(live.column("file_path").to_pylist()),
        np.asarray(live.column("record_count").to_numpy(), np.int64),
        np.where(is_vector, blobs, sizes).astype(np.int64),
        row_ids.astype(np.int64),
        pc.fill_null(live.column("content"), 0).to_numpy().astype(np.int8),
        is_vector,
        references.astype(np.int64),
    )
