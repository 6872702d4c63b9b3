"""Keep one deletion vector per data file when writers delete rows concurrently. Specification: "Deletion Vectors".

A data file that has a vector gets a replacement, never a second one. A delete writes a vector with all positions
deleted so far. If another writer has replaced the vector that was read, or one commit brings several for a file, their
union is written here. Deletes only ever add positions, so a union loses none and restores no row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file, read_deletion_vector
from frazil.codec.manifest_avro import iter_entries
from frazil.commit.action import CommitContext
from frazil.commit.change_files import DeleteKey, delete_key
from frazil.commit.summary import frazil_version
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import CorruptTableError, InvalidManifestError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.columns.stats_masks import to_mask
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.storage.base import Storage
from frazil.storage.locations import data_locations

_FIELDS = (
    "status",
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


@dataclass(frozen=True, slots=True)
class MergedVectors:
    """The vectors to add, one per data file, and the live vectors they replace."""

    added: tuple[DataFile, ...]
    replaced: frozenset[DeleteKey]


def find_live_vectors(
    writer: ManifestWriter, manifests: Iterable[ManifestFile], paths: Collection[str]
) -> dict[str, DataFile]:
    """Return the live deletion vectors of data files, by the path of the data file."""
    live: dict[str, DataFile] = {}
    targets = pa.array(sorted(paths), pa.string())
    for manifest in manifests:
        if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
            continue
        files = writer.read(manifest, _FIELDS)
        is_vector = to_mask(pc.equal(files.column("file_format"), FileFormat.PUFFIN.value))
        is_target = to_mask(pc.is_in(files.column("referenced_data_file"), value_set=targets))
        mask = live_mask(files) & is_vector & is_target
        if not mask.any():
            continue
        for entry in iter_entries(replace(files, table=files.table.filter(pa.array(mask)))):
            path = entry.data_file.referenced_data_file or ""
            if path in live:
                raise InvalidManifestError(
                    f"Cannot add a deletion vector: two are live for data file {path}",
                    path=manifest.manifest_path,
                    heading="Deletion Vectors",
                )
            live[path] = entry.data_file
    return live


def merge_vectors(
    loaded: LoadedTable,
    context: CommitContext,
    vectors: Sequence[DataFile],
    live: Mapping[str, DataFile],
    included: frozenset[DeleteKey],
) -> MergedVectors:
    """Return the vectors to commit: new ones if they include what is live, or else unions.

    `live` are the present vectors of the data files, `included` those that the new ones include.
    """
    groups: dict[str, list[DataFile]] = defaultdict(list)
    for vector in vectors:
        groups[vector.referenced_data_file or ""].append(vector)
    whole: list[DataFile] = []
    parts: dict[str, list[DataFile]] = {}
    replaced: set[DeleteKey] = set()
    for path, new in groups.items():
        present = live.get(path)
        if present is not None:
            replaced.add(delete_key(present))
        is_unknown = present is not None and delete_key(present) not in included
        if len(new) == 1 and not is_unknown:
            whole += new
        else:
            parts[path] = [*new, *([present] if is_unknown and present is not None else [])]
    if parts:
        whole += _write_unions(loaded, context, parts)
    return MergedVectors(tuple(whole), frozenset(replaced))


def _write_unions(
    loaded: LoadedTable, context: CommitContext, parts: Mapping[str, Sequence[DataFile]]
) -> list[DataFile]:
    key = ("vectors", frozenset((path, *map(delete_key, files)) for path, files in parts.items()))
    merged: list[DataFile] | None = context.written.find(key)
    if merged is not None:
        return merged
    unions = {
        path: DeletionVector().union(*(_read(loaded.storage, file) for file in files)) for path, files in parts.items()
    }
    encoded = encode_deletion_vector_file(unions, created_by=f"frazil {frazil_version()}")
    metadata = loaded.metadata
    name = f"merged-dvs-{context.snapshot_id}-{context.written.next_number()}-{context.commit_id}.puffin"
    path = data_locations(metadata.location, metadata.properties).new_data_location(name)
    context.written.write(loaded.storage, path, encoded.data)
    merged = [
        replace(
            parts[stored.referenced_data_file][0],
            file_path=path,
            record_count=stored.cardinality,
            file_size_in_bytes=len(encoded.data),
            content_offset=stored.content_offset,
            content_size_in_bytes=stored.content_size_in_bytes,
        )
        for stored in encoded.vectors
    ]
    context.written.keep(key, merged)
    return merged


def _read(storage: Storage, vector: DataFile) -> DeletionVector:
    offset, size = vector.content_offset or 0, vector.content_size_in_bytes or 0
    try:
        return read_deletion_vector(
            lambda index, length: storage.read_range(vector.file_path, index, length),
            offset,
            size,
            record_count=vector.record_count,
        )
    except CorruptTableError as problem:
        raise problem.at_path(vector.file_path) from problem
