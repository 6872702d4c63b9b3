"""Replace a prefix of paths: in a path, in table metadata, in a manifest, in files of position deletes.

Part of `maintenance/rewrite_table_path.py`. It covers everything that stores an absolute path: table metadata (the
location, logs, manifest lists, statistics, folders in properties), manifest lists, manifests (files, files referenced
by deletes, bounds of paths), position delete files, and the footers of files of deletion vectors. Nothing else changes:
numbers, ids, statuses and inherited fields of entries stay as stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.encode_manifest import EncodedManifest, encode_manifest
from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.codec.puffin import PuffinWriter, decode_puffin_footer, range_reader, read_blob
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.datafile.write import make_format
from frazil.errors import FileAlreadyExistsError, InvalidRequestError
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestContent, ManifestFile
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.reserved_columns import DELETE_FILE_PATH
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from frazil.storage.locations import is_within, strip_slashes
from frazil.storage.new_file import BufferedNewFile

_FOLDERS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_SUSPICIOUS: Final = r"/\.\.?(/|$)|[%\\\x00-\x1f\x7f]"
"""Syntax that may lead a path out of its prefix; such paths are checked individually."""
_REFERENCED: Final = "referenced-data-file"
_DELETE_RULES: Final = ReadRules(POSITION_DELETE_SCHEMA, create_name_mapping(POSITION_DELETE_SCHEMA))


@dataclass(frozen=True, slots=True)
class Prefixes:
    """A source prefix and its replacement: whole path components, ignoring trailing slashes."""

    source: str
    target: str

    def covers(self, path: str) -> bool:
        """Return whether a path is the source prefix or below it; `..` would also leave the target."""
        return f"{path.rstrip('/')}/".startswith(f"{self.source.rstrip('/')}/") and is_within(path, self.source)

    def below(self, path: str, what: str) -> str:
        """Return the part of a path below the source prefix; refuse a path that is not below it."""
        if not self.covers(path):
            raise InvalidRequestError(
                f"Cannot rewrite the paths of the table: {what} {path} is not below {self.source}",
                hint="Pass a prefix that all files of the table have.",
            )
        return path[len(self.source.rstrip("/")) :].lstrip("/")

    def move(self, path: str, what: str) -> str:
        """Return a path with the target prefix in place of the source prefix."""
        below = self.below(path, what)
        return f"{self.target.rstrip('/')}/{below}" if below else strip_slashes(self.target)

    def stage(self, path: str, staging: str, what: str) -> str:
        """Return the staging path of a rewritten file before it is copied to its place."""
        return f"{staging.rstrip('/')}/{self.below(path, what)}"


@dataclass(slots=True)
class SizeChange:
    """The change in bytes of a snapshot's files: in total, of those it added, and of those it removed."""

    total: int = 0
    added: int = 0
    removed: int = 0


def move_metadata(metadata: TableMetadata, prefixes: Prefixes, sizes: Mapping[int, SizeChange]) -> TableMetadata:
    """Return table metadata for the target; `sizes` are the size changes of snapshots, by id.

    Older metadata files outside the prefix are removed from the log, since they are not copied.
    """
    properties = dict(metadata.properties)
    for name in _FOLDERS:
        if "/" in properties.get(name, ""):
            properties[name] = prefixes.move(properties[name], f"the folder {name}")
    return replace(
        metadata,
        location=prefixes.move(metadata.location, "the table's location"),
        properties=FrozenMap(properties),
        snapshots=SnapshotList(
            [_move_snapshot(snapshot, prefixes, sizes.get(snapshot.snapshot_id)) for snapshot in metadata.snapshots]
        ),
        metadata_log=tuple(
            replace(entry, metadata_file=prefixes.move(entry.metadata_file, "the metadata file"))
            for entry in metadata.metadata_log
            if prefixes.covers(entry.metadata_file)
        ),
        statistics=tuple(
            replace(
                statistics_file, statistics_path=prefixes.move(statistics_file.statistics_path, "the statistics file")
            )
            for statistics_file in metadata.statistics
        ),
        partition_statistics=tuple(
            replace(
                statistics_file, statistics_path=prefixes.move(statistics_file.statistics_path, "the statistics file")
            )
            for statistics_file in metadata.partition_statistics
        ),
    )


def _move_snapshot(snapshot: Snapshot, prefixes: Prefixes, sizes: SizeChange | None) -> Snapshot:
    listed = snapshot.manifest_list
    manifests = snapshot.manifests
    summary = snapshot.summary
    if summary is not None and sizes is not None:
        changes = (
            (Summary.TOTAL_FILES_SIZE, sizes.total),
            (Summary.ADDED_FILES_SIZE, sizes.added),
            (Summary.REMOVED_FILES_SIZE, sizes.removed),
        )
        counted = {
            name: str(int(summary[name]) + change) for name, change in changes if summary.get(name, "").isdigit()
        }
        summary = FrozenMap({**summary, **counted})
    return replace(
        snapshot,
        summary=summary,
        manifest_list=None if listed is None else prefixes.move(listed, "the manifest list"),
        manifests=None
        if manifests is None
        else tuple(prefixes.move(manifest, "the manifest") for manifest in manifests),
    )


def move_manifest_list(
    snapshot: Snapshot, manifests: list[ManifestFile], lengths: Mapping[str, int], prefixes: Prefixes
) -> bytes:
    """Return a snapshot's manifest list for the target; `lengths` are those of the new manifests, by path."""
    relocated = [
        replace(
            manifest,
            manifest_path=prefixes.move(manifest.manifest_path, "the manifest"),
            manifest_length=lengths[manifest.manifest_path],
        )
        for manifest in manifests
    ]
    if snapshot.first_row_id is not None:
        version = 3
    else:
        is_old = all(
            manifest.content is ManifestContent.DATA and manifest.sequence_number == 0 for manifest in manifests
        )
        version = 1 if is_old and snapshot.sequence_number == 0 else 2
    return encode_manifest_list(
        relocated,
        format_version=version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    ).data


@dataclass(frozen=True, slots=True)
class MovedDeletes:
    """A rewritten file of position deletes: its size and, for a file of vectors, their new offsets and lengths."""

    size: int
    offsets: Mapping[int, tuple[int, int]]


def move_manifest(
    columns: ManifestColumns, manifest: ManifestFile, deletes: Mapping[str, MovedDeletes], prefixes: Prefixes
) -> EncodedManifest:
    """Return a manifest for the target; `columns` are its own, without inherited values."""
    table = columns.table
    table = _set(table, "file_path", _move_column(table.column("file_path"), prefixes, "the file"))
    if columns.content is ManifestContent.DELETES:
        table = _move_delete_columns(table, columns.table.column("file_path").to_pylist(), deletes, prefixes)
    return encode_manifest(
        table,
        path=prefixes.move(manifest.manifest_path, "the manifest"),
        spec=columns.partition_spec,
        schema=columns.schema,
        format_version=columns.format_version,
        snapshot_id=manifest.added_snapshot_id,
        content=columns.content,
        partition_type=columns.partition_type,
    )


def _move_column(column: pa.ChunkedArray, prefixes: Prefixes, what: str) -> pa.ChunkedArray:
    """Return a column of paths for the target; nulls stay."""
    source = f"{prefixes.source.rstrip('/')}/"
    inside = pc.fill_null(pc.starts_with(column, source), True)
    if not pc.all(inside, min_count=0).as_py():
        first_outside = pc.index(inside, False).as_py()
        prefixes.below(column[first_outside].as_py(), what)
    for path in column.filter(pc.match_substring_regex(column, _SUSPICIOUS)).to_pylist():
        prefixes.below(path, what)
    rest = pc.utf8_slice_codeunits(column, len(source))
    return pc.binary_join_element_wise(f"{prefixes.target.rstrip('/')}/", rest, "")


def _move_delete_columns(
    table: pa.Table, old_paths: list[str], deletes: Mapping[str, MovedDeletes], prefixes: Prefixes
) -> pa.Table:
    """Return entries of delete files with the paths in their other columns replaced too."""
    referenced = table.column("referenced_data_file")
    table = _set(table, "referenced_data_file", _move_column(referenced, prefixes, "the data file"))
    kinds = table.column("content").to_pylist()
    names = ("file_size_in_bytes", "content_offset", "content_size_in_bytes", "split_offsets")
    values: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in names}
    bounds = {name: table.column(name).to_pylist() for name in ("lower_bounds", "upper_bounds")}
    for index, (path, content) in enumerate(zip(old_paths, kinds, strict=True)):
        if content != FileContent.POSITION_DELETES.value:
            continue
        _move_bounds(bounds, index, prefixes)
        relocated = deletes.get(path)
        if relocated is None:
            continue
        values["file_size_in_bytes"][index] = relocated.size
        values["split_offsets"][index] = None
        offset = values["content_offset"][index]
        if offset is not None:
            values["content_offset"][index], values["content_size_in_bytes"][index] = relocated.offsets[offset]
    for name, column in {**values, **bounds}.items():
        table = _set(table, name, pa.chunked_array([pa.array(column, table.schema.field(name).type)]))
    return table


def _move_bounds(bounds: dict[str, list[Any]], index: int, prefixes: Prefixes) -> None:
    """Replace the bounds of the paths in a position delete file; drop them if they do not contain the whole prefix."""
    key = DELETE_FILE_PATH.field_id
    new_bounds: dict[str, bytes] = {}
    for name, column in bounds.items():
        bound = next((pair["value"] for pair in column[index] or () if pair["key"] == key), None)
        text = None if bound is None else bound.decode(errors="replace")
        if text is not None and prefixes.covers(text) and len(text) > len(prefixes.source.rstrip("/")):
            new_bounds[name] = prefixes.move(text, "the bound").encode()
    for name, column in bounds.items():
        if column[index] is not None:
            remaining = [pair for pair in column[index] if pair["key"] != key or len(new_bounds) == len(bounds)]
            column[index] = [{**pair, "value": new_bounds[name]} if pair["key"] == key else pair for pair in remaining]


def _set(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), column.cast(table.schema.field(index).type))


# Delete files


def write_once(storage: Storage, path: str, data: bytes) -> None:
    """Write a new file, or do nothing if the same file exists. Another file is never overwritten."""
    try:
        storage.create(path, data)
    except FileAlreadyExistsError:
        if storage.size(path) != len(data) or storage.read(path) != data:
            raise InvalidRequestError(
                f"Cannot rewrite the paths of the table: {path} exists already with other content",
                hint="Pass another staging_location.",
            ) from None


def move_deletes(storage: Storage, file: DataFile, path: str, prefixes: Prefixes) -> MovedDeletes:
    """Write a position delete file, or a file of vectors, for the target to a path.

    The output depends only on the file and the prefixes, so repeating it is harmless.
    """
    if file.is_deletion_vector:
        return _move_vectors(storage, file, path, prefixes)
    form = make_format(file.file_format, POSITION_DELETE_SCHEMA, {}, is_delete=True)
    with BufferedNewFile(path, partial(write_once, storage)) as target:
        writer = form.open(target)
        try:
            for batch in read_columns(storage, file, POSITION_DELETE_SCHEMA, _DELETE_RULES):
                rows = pa.Table.from_batches([batch])
                paths = _move_column(rows.column(0), prefixes, f"in {file.file_path}, the data file")
                writer.write(rows.set_column(0, rows.schema.field(0), paths.cast(rows.schema.field(0).type)))
            writer.close()
        except BaseException:
            writer.abandon()
            raise
        target.publish()
        return MovedDeletes(target.size, {})


def _move_vectors(storage: Storage, file: DataFile, path: str, prefixes: Prefixes) -> MovedDeletes:
    data = storage.read(file.file_path)
    footer = decode_puffin_footer(data)
    writer = PuffinWriter(footer.properties)
    offsets: dict[int, tuple[int, int]] = {}
    for blob in footer.blobs:
        properties = dict(blob.properties)
        if _REFERENCED in properties:
            properties[_REFERENCED] = prefixes.move(properties[_REFERENCED], "the data file")
        new_blob = writer.add_blob(
            blob.type,
            read_blob(range_reader(data), blob),
            fields=blob.fields,
            snapshot_id=blob.snapshot_id,
            sequence_number=blob.sequence_number,
            compression_codec=blob.compression_codec,  # type: ignore[arg-type]
            properties=properties,
        )
        offsets[blob.offset] = (new_blob.offset, new_blob.length)
    relocated = writer.finish()
    write_once(storage, path, relocated)
    return MovedDeletes(len(relocated), offsets)
