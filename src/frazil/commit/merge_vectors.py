"""One deletion vector for each data file, whoever else deletes rows of it. Specification: "Deletion Vectors".

A file that has a vector gets a new one in its place, never a second. Whoever deletes rows writes a vector with all
positions deleted so far; where another writer has put a newer vector in the place of the one that was read, or
one commit brings several for a file, their union is written here. Deletes only ever add positions, so a union
loses none and brings no row back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file, read_deletion_vector
from frazil.codec.manifest_avro import iter_entries
from frazil.columns.manifest_columns import live_mask
from frazil.columns.stats_masks import to_mask
from frazil.commit.action import CommitContext
from frazil.commit.change_files import DeleteKey, delete_key
from frazil.commit.summary import frazil_version
from frazil.commit.write_manifests import ManifestWriter
from frazil.errors import CorruptTableError, InvalidManifestError
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
    """The vectors to add, one for each data file, and the live ones they take the place of."""

    added: tuple[DataFile, ...]
    replaced: frozenset[DeleteKey]


def find_live_vectors(
    writer: ManifestWriter, manifests: Iterable[ManifestFile], paths: Collection[str]
) -> dict[str, DataFile]:
    """Return the live deletion vectors of data files, by the data file's path."""
    found: dict[str, DataFile] = {}
    wanted = pa.array(sorted(paths), pa.string())
    for manifest in manifests:
        if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
            continue
        files = writer.read(manifest, _FIELDS)
        is_vector = to_mask(pc.equal(files.column("file_format"), FileFormat.PUFFIN.value))
        is_wanted = to_mask(pc.is_in(files.column("referenced_data_file"), value_set=wanted))
        mask = live_mask(files) & is_vector & is_wanted
        if not mask.any():
            continue
        for entry in iter_entries(replace(files, table=files.table.filter(pa.array(mask)))):
            path = entry.data_file.referenced_data_file or ""
            if path in found:
                raise InvalidManifestError(
                    f"Cannot add a deletion vector: two are live for data file {path}",
                    path=manifest.manifest_path,
                    heading="Deletion Vectors",
                )
            found[path] = entry.data_file
    return found


def merge_vectors(
    loaded: LoadedTable,
    context: CommitContext,
    vectors: Sequence[DataFile],
    live: Mapping[str, DataFile],
    known: frozenset[DeleteKey],
) -> MergedVectors:
    """Return the vectors to commit: given ones where they replace what is live, unions where they do not.

    `live` are the vectors the data files have now, `known` those that the given ones were made from and include.
    """
    groups: dict[str, list[DataFile]] = defaultdict(list)
    for vector in vectors:
        groups[vector.referenced_data_file or ""].append(vector)
    whole: list[DataFile] = []
    parts: dict[str, list[DataFile]] = {}
    replaced: set[DeleteKey] = set()
    for path, given in groups.items():
        present = live.get(path)
        if present is not None:
            replaced.add(delete_key(present))
        is_unknown = present is not None and delete_key(present) not in known
        if len(given) == 1 and not is_unknown:
            whole += given
        else:
            parts[path] = [*given, *([present] if is_unknown and present is not None else [])]
    if parts:
        whole += _write_unions(loaded, context, parts)
    return MergedVectors(tuple(whole), frozenset(replaced))


def _write_unions(
    loaded: LoadedTable, context: CommitContext, parts: Mapping[str, Sequence[DataFile]]
) -> list[DataFile]:
    key = ("vectors", frozenset((path, *map(delete_key, files)) for path, files in parts.items()))
    made: list[DataFile] | None = context.written.find(key)
    if made is not None:
        return made
    unions = {
        path: DeletionVector().union(*(_read(loaded.storage, file) for file in files)) for path, files in parts.items()
    }
    encoded = encode_deletion_vector_file(unions, created_by=f"frazil {frazil_version()}")
    metadata = loaded.metadata
    name = f"merged-dvs-{context.snapshot_id}-{context.written.next_number()}-{context.commit_id}.puffin"
    path = data_locations(metadata.location, metadata.properties).new_data_location(name)
    context.written.write(loaded.storage, path, encoded.data)
    made = [
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
    context.written.keep(key, made)
    return made


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
