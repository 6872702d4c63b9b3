"""Decoding of manifests into columns. Specification: "Manifests", "Manifest Entry Fields", "Data File Fields".

A manifest list names manifests, this module decodes one of them into Arrow columns, and the scan prunes those. A
manifest of a hundred thousand files is a few dozen arrays, never a hundred thousand objects; `iter_entries` creates
objects for callers that change a few files. `codec/encode_manifest.py` writes manifests.

Null fields of an entry are inherited here from the manifest's line in the list ("Sequence Number Inheritance", "First
Row ID Inheritance"), so that callers need not handle inheritance:

    snapshot_id            the manifest's, if null
    sequence numbers       the manifest's, if null and added; 0 if v1 wrote none
    first_row_id           counted from the manifest's, over live files that have none

Two leniencies are those of Iceberg Java: a deleted entry may lack sequence numbers, and any entry its file sequence
number, since older writers omitted them. A live file without a data sequence number is refused, since it would be read
with the wrong deletes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.avro_columns import FieldReader, Source
from frazil.codec.avro_container import DEFAULT_LIMITS, AvroHeader, AvroLimits, AvroOrigin, read_header
from frazil.codec.avro_types import type_of
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import parse_json
from frazil.codec.manifest_fields import (
    ARROW_TYPES,
    COLUMNS,
    DATA_FILE_ID,
    PARTITION_ID,
    PATHS,
    partition_arrow_type,
)
from frazil.codec.partition_arrow import arrow_type_of, values_of
from frazil.codec.partition_spec_json import decode_partition_fields
from frazil.codec.schema_json import decode_schema
from frazil.errors import CorruptTableError, InvalidManifestError, InvalidRequestError
from frazil.spec import versions
from frazil.spec.data_file import METRIC_MAPS, UNKNOWN_COUNT, DataFile, FileContent, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.partitioning import INITIAL_SPEC_ID, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, StructType

HEADING = "Manifests"
_REQUIRED = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
_FORMATS = tuple(FileFormat)


@dataclass(frozen=True)
class ManifestColumns:
    """A manifest as columns, with one row per entry, in the file's order.

    `table` holds the requested fields, under the specification's names, in the types of `codec/manifest_fields.py`.
    `metadata` is the file's key-value metadata.
    """

    table: pa.Table
    metadata: Mapping[str, str]
    content: ManifestContent
    format_version: int
    spec_id: int
    partition_type: StructType
    path: str | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a decoded column, or refuse one that was not requested."""
        try:
            return self.table.column(name)
        except KeyError:
            raise InvalidRequestError(
                f"Cannot use column {name!r} of a manifest: it was not read",
                hint=f"The columns read are: {', '.join(self.table.column_names)}.",
            ) from None

    @cached_property
    def known_stats(self) -> dict[Any, Any]:
        """A cache of statistics that planning derived from the metrics of these files, by request."""
        return {}

    @cached_property
    def schema(self) -> Schema:
        """The table's schema when the manifest was written."""
        value = self._header_json("schema")
        obj = JsonObject(value, where="the manifest's schema", heading=HEADING, error=InvalidManifestError)
        try:
            return decode_schema(obj)
        except CorruptTableError as problem:
            raise self._fail(problem.message) from problem

    @cached_property
    def partition_spec(self) -> PartitionSpec:
        """The partition spec that the manifest was written with."""
        try:
            return decode_partition_fields(
                self._header_json("partition-spec"),
                spec_id=self.spec_id,
                where="the manifest's partition spec",
                heading=HEADING,
                error=InvalidManifestError,
            )
        except CorruptTableError as problem:
            raise self._fail(problem.message) from problem

    def _header_json(self, key: str) -> object:
        text = self.metadata.get(key)
        if text is None:
            raise self._fail(f"Cannot read the manifest's {key}: its header has none")
        return parse_json(text.encode(), where=f"the manifest's {key}", heading=HEADING, error=InvalidManifestError)

    def _fail(self, message: str) -> CorruptTableError:
        return InvalidManifestError(message, path=self.path, heading=HEADING)


def decode_manifest(
    data: bytes,
    *,
    manifest: ManifestFile | None = None,
    partition_type: StructType | None = None,
    fields: Collection[str] | None = None,
    path: str | None = None,
    limits: AvroLimits = DEFAULT_LIMITS,
    threads: int = 1,
    may_be_encrypted: bool = False,
) -> ManifestColumns:
    """Decode a manifest into columns.

    `manifest` is its line in the manifest list, from which entries inherit; without it, nulls stay null.
    `partition_type` is that of its partition spec, by default as declared in the file. `fields` are the columns to
    decode, by default all; other columns cost little. A manifest that tracks encrypted files is refused unless
    `may_be_encrypted`.
    """
    path = path if path is not None or manifest is None else manifest.manifest_path
    origin = AvroOrigin("manifest", HEADING, path)
    if manifest is not None and manifest.is_encrypted:
        raise origin.unsupported("it is encrypted", hint="Encrypted tables are not supported yet.")
    asked = _asked_fields(fields)
    header = read_header(data, origin, limits)
    reader = FieldReader(data, header, origin)
    version = _format_version(header, origin)
    content = manifest.content if manifest is not None else _content(header, origin)
    if partition_type is None:
        partition_type = _partition_type(reader, origin)

    rows = _read_columns(reader, asked, partition_type, origin, limits, threads)
    _check(rows, content, origin, may_be_encrypted=may_be_encrypted)
    if manifest is not None:
        _inherit(rows, manifest, origin)
    if content is ManifestContent.DELETES and "first_row_id" in asked:
        rows.columns["first_row_id"] = pa.chunked_array([pa.nulls(rows.count, pa.int64())])
    table = pa.table({name: rows.columns[name] for name in COLUMNS if name in asked})
    return ManifestColumns(
        table,
        FrozenMap({key: value.decode(errors="replace") for key, value in header.metadata.items()}),
        content,
        version,
        _spec_id(header, origin) if manifest is None else manifest.partition_spec_id,
        partition_type,
        path,
    )


def _asked_fields(fields: Collection[str] | None) -> frozenset[str]:
    if fields is None:
        return frozenset(COLUMNS)
    unknown = [name for name in fields if name not in COLUMNS]
    if unknown:
        raise InvalidRequestError(
            f"Cannot read field {unknown[0]!r} of a manifest: there is no such field",
            hint=f"The fields are: {', '.join(COLUMNS)}.",
        )
    return frozenset(fields)


def _format_version(header: AvroHeader, origin: AvroOrigin) -> int:
    version = _header_int(header, "format-version", versions.MIN, origin)
    if version > versions.LATEST:
        raise origin.unsupported(f"it is of format version {version}, and {versions.LATEST} is the latest known")
    if version < versions.MIN:
        raise origin.fail(f"its format version is {version}")
    return version


def _spec_id(header: AvroHeader, origin: AvroOrigin) -> int:
    return _header_int(header, "partition-spec-id", INITIAL_SPEC_ID, origin)


def _header_int(header: AvroHeader, key: str, default: int, origin: AvroOrigin) -> int:
    text = header.text(key)
    if text is None and key not in header.metadata:
        return default
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 10:
        raise origin.fail(f"{key} in its header is {text if text is None else text[:40]!r}")
    return int(text)


def _content(header: AvroHeader, origin: AvroOrigin) -> ManifestContent:
    text = header.text("content")
    if text is None and "content" not in header.metadata:
        return ManifestContent.DATA
    for content in ManifestContent:
        if text == content.label:
            return content
    raise origin.fail(f"content in its header is {text if text is None else text[:40]!r}, not data or deletes")


def _partition_type(reader: FieldReader, origin: AvroOrigin) -> StructType:
    """Return the partition type that the file itself declares."""
    parts = []
    for record_field in reader.record_fields((DATA_FILE_ID, PARTITION_ID)):
        data_type = type_of(record_field.avro_type)
        if record_field.field_id is None or data_type is None:
            raise origin.fail(f"partition field {record_field.name[:80]!r} has no id or no type that partitions have")
        parts.append(NestedField(record_field.field_id, record_field.name, data_type))
    return StructType(tuple(parts))


@dataclass(slots=True)
class _Rows:
    """The columns decoded so far; `absent` names those that the file lacks."""

    columns: dict[str, pa.ChunkedArray]
    absent: frozenset[str]
    count: int


def _read_columns(
    reader: FieldReader,
    asked: frozenset[str],
    partition_type: StructType,
    origin: AvroOrigin,
    limits: AvroLimits,
    threads: int,
) -> _Rows:
    needed = _needed(asked)
    sources: dict[str, Source | None] = {name: reader.find(PATHS[name]) for name in needed if name != "partition"}
    for name in _REQUIRED:
        if name in sources and sources[name] is None:
            raise origin.fail(f"its schema has no field {name!r} (id {COLUMNS[name].field_id})")
    partition_sources = (
        [reader.find((DATA_FILE_ID, PARTITION_ID, field.field_id)) for field in partition_type.fields]
        if "partition" in asked
        else []
    )
    present = [source for source in (*sources.values(), *partition_sources) if source is not None]
    table = reader.read(present, limits=limits, threads=threads)
    columns: dict[str, pa.ChunkedArray] = {}
    for name, source in sources.items():
        target = ARROW_TYPES[name]
        columns[name] = (
            pa.chunked_array([pa.nulls(table.num_rows, target)])
            if source is None
            else reader.column(table, source, name, COLUMNS[name].field_type, target)
        )
    if "partition" in asked:
        columns["partition"] = _read_partition(reader, table, partition_type, partition_sources)
    absent = frozenset(name for name, source in sources.items() if source is None)
    return _Rows(columns, absent, table.num_rows)


def _needed(asked: frozenset[str]) -> frozenset[str]:
    """Return the columns to decode: the requested ones, and those needed for checks and inheritance."""
    needed = {*asked, "status", "content", "key_metadata"}
    if "first_row_id" in asked:
        needed.add("record_count")
    return frozenset(needed)


def _read_partition(
    reader: FieldReader, table: pa.Table, partition_type: StructType, sources: list[Source | None]
) -> pa.ChunkedArray:
    lengths = [chunk.num_rows for chunk in table.to_batches()]
    columns = []
    for field, source in zip(partition_type.fields, sources, strict=True):
        target = arrow_type_of(field.field_type)
        if source is None:
            columns.append([pa.nulls(length, target) for length in lengths])
        else:
            name = f"partition.{field.name}"
            columns.append(reader.column(table, source, name, field.field_type, target).chunks)
    struct = partition_arrow_type(partition_type)
    chunks = [
        pa.Array.from_buffers(struct, length, [None], children=[column[index] for column in columns])
        for index, length in enumerate(lengths)
    ]
    return pa.chunked_array(chunks, struct)


def _check(rows: _Rows, content: ManifestContent, origin: AvroOrigin, *, may_be_encrypted: bool) -> None:
    """Refuse values that are invalid in a manifest."""
    columns = rows.columns
    for name in _REQUIRED:
        if name in columns and columns[name].null_count:
            raise origin.fail(f"field {name!r} is null in {columns[name].null_count} entries")
    _check_range(columns["status"], "status", 0, 2, origin)
    for name in ("record_count", "file_size_in_bytes"):
        if name in columns:
            _check_range(columns[name], name, UNKNOWN_COUNT, 2**63 - 1, origin)
    if "content" in columns:
        kinds = pc.fill_null(columns["content"], 0)
        columns["content"] = kinds
        is_data = content is ManifestContent.DATA
        low, high = (0, 0) if is_data else (FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
        _check_range(kinds, "content", low, high, origin, what=f" in a manifest of {content.label}")
    if "file_format" in columns:
        columns["file_format"] = _file_formats(columns["file_format"], origin)
    keys = columns["key_metadata"]
    if not may_be_encrypted and keys.null_count < len(keys) and pc.max(pc.binary_length(keys)).as_py():
        raise origin.unsupported("it tracks encrypted files", hint="Encrypted tables are not supported yet.")


def _check_range(
    column: pa.ChunkedArray, name: str, low: int, high: int, origin: AvroOrigin, *, what: str = ""
) -> None:
    if len(column) == 0 or column.null_count == len(column):
        return
    bounds = pc.min_max(column).as_py()
    for value in bounds.values():
        if not low <= value <= high:
            raise origin.fail(f"field {name!r} is {value}{what}")


def _file_formats(column: pa.ChunkedArray, origin: AvroOrigin) -> pa.ChunkedArray:
    """Return file formats in lower case, since some writers use upper case."""
    formats: list[str] = pc.unique(column).to_pylist()
    for name in formats:
        if name[:16].lower() not in _FORMATS:
            raise origin.fail(f"field 'file_format' is {name[:40]!r}", hint=f"Known formats are {', '.join(_FORMATS)}.")
    return column if all(name.islower() for name in formats) else pc.utf8_lower(column)


def _inherit(rows: _Rows, manifest: ManifestFile, origin: AvroOrigin) -> None:
    """Fill in the fields that entries inherit from their manifest."""
    columns = rows.columns
    if "snapshot_id" in columns and manifest.added_snapshot_id is not None:
        columns["snapshot_id"] = pc.fill_null(columns["snapshot_id"], manifest.added_snapshot_id)
    is_committed = manifest.sequence_number >= 0
    if is_committed:
        for name in ("sequence_number", "file_sequence_number"):
            if name in columns:
                columns[name] = _inherit_sequence_number(rows, name, manifest.sequence_number)
        if "sequence_number" in columns:
            _check_sequence_numbers(rows, origin)
    if "first_row_id" in columns and manifest.content is ManifestContent.DATA:
        if manifest.first_row_id is not None:
            columns["first_row_id"] = _inherit_row_ids(rows, manifest.first_row_id, origin)
        elif is_committed:
            # The snapshot predates row lineage; any ids in the file are meaningless.
            columns["first_row_id"] = pa.chunked_array([pa.nulls(rows.count, pa.int64())])


def _inherit_sequence_number(rows: _Rows, name: str, inherited: int) -> pa.ChunkedArray:
    column = rows.columns[name]
    if column.null_count == 0:
        return column
    if inherited == 0:
        return pc.fill_null(column, 0)
    is_added = pc.equal(rows.columns["status"], EntryStatus.ADDED.value)
    filled = pc.if_else(pc.and_(pc.is_null(column), is_added), pa.scalar(inherited, pa.int64()), column)
    # A manifest without the column was written in v1, before sequence numbers.
    return pc.fill_null(filled, 0) if name in rows.absent else filled


def _check_sequence_numbers(rows: _Rows, origin: AvroOrigin) -> None:
    column = rows.columns["sequence_number"]
    if column.null_count == 0:
        return
    is_live = pc.not_equal(rows.columns["status"], EntryStatus.DELETED.value)
    missing = pc.sum(pc.and_(pc.is_null(column), is_live)).as_py()
    if missing:
        raise origin.fail(f"{missing} existing entries have no sequence number, and only added ones inherit it")


def _inherit_row_ids(rows: _Rows, first_row_id: int, origin: AvroOrigin) -> pa.ChunkedArray:
    column = rows.columns["first_row_id"].combine_chunks()
    is_live = rows.columns["status"].to_numpy() != EntryStatus.DELETED.value
    unassigned = is_live & column.is_null().to_numpy(zero_copy_only=False)
    counts = np.where(unassigned, np.maximum(rows.columns["record_count"].to_numpy(), 0), 0)
    following = np.cumsum(counts)
    if len(following) and (np.any(counts > 2**62) or np.any(following < 0) or first_row_id > 2**63 - 1 - following[-1]):
        raise origin.fail("the row ids of its files do not fit 64 bits")
    assigned = pa.array(first_row_id + following - counts, pa.int64())
    return pa.chunked_array([pc.if_else(pa.array(unassigned), assigned, column)])


def iter_entries(columns: ManifestColumns) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest as values; fields that were not decoded are None.

    Use it for manifests of which few entries are needed. If a metric has two values for a column, the last wins.
    """
    names = columns.table.column_names
    for needed in _REQUIRED:
        columns.column(needed)
    parts = columns.partition_type.fields
    for batch in columns.table.to_batches():
        values: dict[str, list[Any]] = {
            name: _maps(batch.column(name)) if name in METRIC_MAPS else batch.column(name).to_pylist()
            for name in names
            if name != "partition"
        }
        partitions: list[tuple[object, ...]] = [()] * batch.num_rows
        if "partition" in names and parts:
            struct = batch.column("partition")
            by_field = [values_of(struct.field(index), field.field_type) for index, field in enumerate(parts)]
            partitions = list(zip(*by_field, strict=True))
        for index in range(batch.num_rows):
            row = {name: column[index] for name, column in values.items()}
            entry = {name: row.pop(name, None) for name in _ENTRY_ONLY}
            status = EntryStatus(row.pop("status"))
            yield ManifestEntry(status, DataFile(partition=partitions[index], spec_id=columns.spec_id, **row), **entry)


_ENTRY_ONLY = ("snapshot_id", "sequence_number", "file_sequence_number")


def _maps(lists: pa.Array) -> list[FrozenMap[int, Any] | None]:
    """Return lists of pairs as maps, without creating an object for each pair."""
    offsets = lists.offsets.to_pylist()
    pairs = lists.values
    keys, values = pairs.field(0).to_pylist(), pairs.field(1).to_pylist()
    if pairs.field(1).null_count:
        # A pair without a value carries no information.
        present = [value is not None for value in values]
        before = list(accumulate(present, initial=0))
        offsets = [before[offset] for offset in offsets]
        keys, values = list(compress(keys, present)), list(compress(values, present))
    spans = pairwise(offsets)
    if lists.null_count == 0:
        return [FrozenMap(zip(keys[start:end], values[start:end], strict=True)) for start, end in spans]
    valid = lists.is_valid().to_pylist()
    return [
        FrozenMap(zip(keys[start:end], values[start:end], strict=True)) if is_valid else None
        for (start, end), is_valid in zip(spans, valid, strict=True)
    ]
