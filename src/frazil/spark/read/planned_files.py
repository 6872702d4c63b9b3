"""The files of a scan, planned while Spark plans a query: the Python half of the lazy relation.

A table is read by one relation per `FileGroup`: files of one format with the same sources of columns and the same kind
of deletes. When Spark requests the files of a relation, its pushed filters are combined with the scan's own, the
planner prunes (`scan/plan.py`), and the files of the group are returned as an Arrow stream: path, size, rows, and the
group's constants, which Spark adds to each row of a file at no cost.

A `ScanFiles` lives as long as Spark holds the relation, so it retains only what one snapshot needs. The last plan is
cached, since the groups of one query make requests one after the other with the same filters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.deletion_vector import DeletionVector
from frazil.codec.manifest_avro import ManifestColumns
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.errors import FrazilError, InvalidManifestError
from frazil.expr.columns.partition_keys import partition_keys
from frazil.expr.predicates import Predicate, all_of
from frazil.loaded import LoadedTable
from frazil.scan.incremental import Appends, plan_appends
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import FileBatch, Plan, plan_scan
from frazil.scan.tasks import FileScanTask
from frazil.spark.arrow_types import to_arrow_type
from frazil.spark.jvm.engine_errors import FILE_HINT, file_mark, name_error
from frazil.spark.read.file_shapes import BY_ID, FileShape, FileShapes
from frazil.spark.read.predicates import Paths, pruning_predicate
from frazil.spark.types import stored_type
from frazil.spec.data_file import DataFile, FileContent, FileFormat, PartitionKey
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.transforms import Identity
from frazil.spec.types import DoubleType, FloatType, NestedField, Type
from frazil.storage.base import Storage
from frazil.storage.choose import FILE_SCHEME, GCS_SCHEMES, S3_SCHEMES, SchemeStorage, check_readable
from frazil.streams.files import StreamFiles, plan_stream_files
from frazil.threads import default_threads, map_in_order

Mask = npt.NDArray[np.bool_]
_KNOWN_SCHEMES = rf"^(/|({'|'.join((FILE_SCHEME, *S3_SCHEMES, *GCS_SCHEMES))}):)"
BLOCK_BITS = 4
_MAX_ROWS = 1 << 31
_ROWS_AT_ONCE = 1 << 20
"""Bitmaps are 16-bit numbers, high byte first, as `bit_at` of `spark/jvm` reads them."""


class DeleteKind(Enum):
    """The kind of deletes that apply to the files of a group."""

    NONE = "none"
    POSITIONS = "positions"
    EQUALITY = "equality"


_ORDER = tuple(DeleteKind)
"""Each kind handles the deletes of those before it, too."""


@dataclass(frozen=True)
class FileGroup:
    """Files that one relation reads: their format, the columns that partition values provide, and their deletes."""

    file_format: FileFormat
    identity_ids: frozenset[int]
    deletes: DeleteKind
    shape: FileShape = BY_ID
    is_native: bool = True
    """Whether Spark's own reader can read the files. Python reads others and applies their deletes."""

    @property
    def label(self) -> str:
        """The text of the group in a relation's key."""
        ids = ",".join(map(str, sorted(self.identity_ids)))
        return f"{self.file_format.name}:{ids}:{self.deletes.value}:{self.shape.label}:{self.is_native}"


@dataclass(frozen=True)
class PlannedBatch:
    """Files of a group from one manifest, with their plan and scan."""

    scan: ScanFiles
    plan: Plan
    batch: FileBatch

    @property
    def files(self) -> ManifestColumns:
        """The files as manifest columns."""
        return self.batch.files


@dataclass(frozen=True)
class Constant:
    """A column that is constant within each file: its name, its Arrow type, and a function for its values."""

    name: str
    arrow_type: pa.DataType
    values: Callable[[PlannedBatch], pa.Array | pa.ChunkedArray]


def identity_columns(spec: PartitionSpec, schema: Schema) -> dict[int, int]:
    """Return the columns whose exact value is a partition value: field ids with their positions in the tuple.

    Nested fields are left out, and so is floating point, since two zeros and many NaNs share one partition value.
    """
    top = {field.field_id for field in schema.fields}
    return {
        field_id: index
        for field_id, index in identity_sources(spec, schema).items()
        if field_id in top and not isinstance(schema.field(field_id).field_type, FloatType | DoubleType)
    }


def identity_sources(spec: PartitionSpec, schema: Schema) -> dict[int, int]:
    """Return every field whose value the partition provides if a file lacks it: ids with positions in the tuple."""
    positions: dict[int, int] = {}
    for index, field in enumerate(spec.fields):
        if isinstance(field.transform, Identity) and len(field.source_ids) == 1:
            source = schema.find_field(field.source_ids[0])
            if source is not None:
                positions.setdefault(source.field_id, index)
    return positions


def slim_table(
    loaded: LoadedTable, snapshot: Snapshot | None, schema: Schema, *, with_history: bool = False
) -> LoadedTable:
    """Return a table with one snapshot and no history, so that retaining it takes little memory."""
    chosen = () if snapshot is None else (snapshot,)
    metadata: TableMetadata = replace(
        loaded.metadata,
        snapshots=loaded.metadata.snapshots if with_history else chosen,  # type: ignore[arg-type]
        current_snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        current_schema_id=schema.schema_id,
        refs={},  # type: ignore[arg-type]
        snapshot_log=(),
        metadata_log=(),
        statistics=(),
        partition_statistics=(),
    )
    # Planning alone does not mean that files are read; `ScanFiles` reports reads.
    return replace(loaded, metadata=metadata, on_read=None)


def _pairs(kinds: list[FileGroup], deletes: list[DeleteKind]) -> list[tuple[FileGroup, DeleteKind]]:
    """Zip the two lists per file; a list of one item applies to all files of a batch."""
    count = max(len(kinds), len(deletes))
    each_kind = kinds * count if len(kinds) == 1 else kinds
    return list(zip(each_kind, deletes * count if len(deletes) == 1 else deletes, strict=True))


def _by_python(file_format: FileFormat) -> FileGroup:
    return FileGroup(file_format, frozenset(), DeleteKind.NONE, is_native=False)


def _with_deletes(group: FileGroup, deletes: DeleteKind) -> FileGroup:
    """Return the group for files with deletes; Python reads ORC files with deletes."""
    if not group.is_native or deletes is DeleteKind.NONE:
        return group
    return replace(group, deletes=deletes) if group.file_format is FileFormat.PARQUET else _by_python(group.file_format)


class ScanFiles:
    """The files of one scan of one snapshot, planned for any later filter."""

    def __init__(
        self,
        loaded: LoadedTable,
        snapshot: Snapshot | None,
        schema: Schema,
        predicate: Predicate,
        cache: ManifestCache | None,
        appends: Appends | StreamFiles | None = None,
    ) -> None:
        self.loaded = slim_table(loaded, snapshot, schema, with_history=appends is not None)
        self._on_read = loaded.on_read
        self._last_reported: Plan | None = None
        self.appends = appends
        self.snapshot = snapshot
        self.schema = schema
        self.predicate = predicate
        self.paths: Paths = {}
        self.shapes: FileShapes | None = None
        self.reaches: Callable[[str], bool] = lambda _: True
        """Whether Spark can open a path."""
        self.is_parquet_native = True
        """Whether Spark's own reader reads Parquet files."""
        self.is_orc_native = False
        """Whether Spark's own reader, which finds columns by name, reads ORC files without deletes."""
        self.session: Any = None
        """The Java session with the settings for the relations of this scan."""
        self.reads_clean_with_marked = False
        """Whether files without deletes are read in one group with those that have deleted positions."""
        self._cache = cache
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._last: tuple[Predicate, Plan] | None = None
        self._positions = DeleteCache()
        self._groups: frozenset[FileGroup] = frozenset()
        specs = loaded.metadata.partition_specs
        self._identity = {spec.spec_id: identity_columns(spec, schema) for spec in specs}
        self._sources = {spec.spec_id: identity_sources(spec, schema) for spec in specs}

    def plan(self, pushed: Predicate | None = None) -> Plan:
        """Return the plan for the scan's filter and Spark's pushed filter."""
        predicate = self.predicate if pushed is None else all_of(self.predicate, pushed)
        with self._lock:
            if self._last is not None and self._last[0] == predicate:
                return self._last[1]
        plan = self._plan(predicate)
        with self._lock:
            self._last = (predicate, plan)
        return plan

    def _plan(self, predicate: Predicate) -> Plan:
        if self.appends is None:
            return plan_scan(self.loaded, predicate, cache=self._cache, expects_filters=True)
        if isinstance(self.appends, StreamFiles):
            return plan_stream_files(self.loaded, self.appends, predicate, cache=self._cache)
        return plan_appends(
            self.loaded,
            predicate,
            from_snapshot_id=self.appends.after_snapshot_id,
            to_snapshot_id=self.appends.to_snapshot_id,
            has_overwrites=self.appends.has_overwrites,
            cache=self._cache,
        )

    def source_at(self, spec_id: int, field_id: int) -> int:
        """Return the position in the partition tuple of a field's value."""
        return self._sources[spec_id][field_id]

    def _partition_ids(self, spec_id: int, shape: FileShape) -> frozenset[int]:
        """Return the fields that are read from partition values: for files without ids, all that have one.

        Otherwise those with exact values, and those that the file lacks.
        """
        sources = self._sources[spec_id]
        return frozenset(self._identity[spec_id].keys() | (sources.keys() & shape.absent) if shape.has_ids else sources)

    def inexact_sources(self) -> frozenset[int]:
        """Return the fields with partition values that are less exact than the values in files."""
        return frozenset(
            key for spec_id, source in self._sources.items() for key in source.keys() - self._identity[spec_id].keys()
        )

    def whole(self, plan: Plan) -> list[FileBatch]:
        """Return the batches of a plan; several threads may request the same plan."""
        with self._reading:
            return list(plan.batches())

    def groups(self) -> list[FileGroup]:
        """Return the groups of the scan's files for any later filter; reads all manifests."""
        plan = self.plan()
        groups: dict[FileGroup, None] = {}
        for batch in self.whole(plan):
            kinds, deletes = self._groups_without_deletes(batch), self._delete_kinds(plan, batch)
            if len(kinds) == 1:
                deletes = list(dict.fromkeys(deletes))
            for group, applying in dict.fromkeys(_pairs(kinds, deletes)):
                groups.setdefault(_with_deletes(group, applying))
        if self.reads_clean_with_marked:
            marked = {replace(one, deletes=DeleteKind.NONE) for one in groups if one.deletes is DeleteKind.POSITIONS}
            groups = {one: None for one in groups if one not in marked}
        self._groups = frozenset(groups)
        if not all(one.is_native for one in groups):
            self._notify_read(plan)
        return list(groups)

    def _notify_read(self, plan: Plan) -> None:
        """Notify the observer that the files of a plan are read, once for all groups."""
        if self._on_read is not None and plan is not self._last_reported:
            self._last_reported = plan
            self._on_read(plan)

    def _group_of(self, kind: FileGroup, deletes: DeleteKind) -> FileGroup:
        """Return the existing group that reads a file.

        A later filter may prune deletes of the file. The file then stays in a group that handles more deletes than it
        has.
        """
        for delete_kind in _ORDER[_ORDER.index(deletes) :]:
            group = _with_deletes(kind, delete_kind)
            if group in self._groups:
                return group
        return _with_deletes(kind, deletes)

    def _groups_without_deletes(self, batch: FileBatch) -> list[FileGroup]:
        """Return the group of each file, ignoring deletes; one group if it is the same for the whole batch."""
        files = batch.files
        formats = pc.unique(files.column("file_format")).to_pylist()
        is_reached = self._reached(files)
        if len(formats) == 1 and (self.shapes is None or not self.shapes.are_needed) and len(set(is_reached)) == 1:
            return [self._group(FileFormat(formats[0]), files.spec_id, BY_ID, is_reached=is_reached[0])]
        shapes = [BY_ID] * len(files) if self.shapes is None else self.shapes.of(files)
        names = files.column("file_format").to_pylist()
        reached = is_reached * len(files) if len(is_reached) == 1 else is_reached
        return [
            self._group(FileFormat(name), files.spec_id, shape, is_reached=may)
            for name, shape, may in zip(names, shapes, reached, strict=True)
        ]

    def _group(self, file_format: FileFormat, spec_id: int, shape: FileShape, *, is_reached: bool) -> FileGroup:
        readable = {FileFormat.PARQUET: self.is_parquet_native, FileFormat.ORC: self.is_orc_native}
        is_native = readable.get(file_format, False)
        if not is_native or not is_reached:
            return _by_python(file_format)
        return FileGroup(file_format, self._partition_ids(spec_id, shape), DeleteKind.NONE, shape)

    def _reached(self, files: ManifestColumns) -> list[bool]:
        """Return whether Spark can open each file, or one item if all are in one location; raise on forbidden paths."""
        paths = files.column("file_path")
        first = paths[0].as_py()
        root = root_of(first)
        if root and pc.all(pc.starts_with(paths, pattern=root)).as_py():
            is_fenced = isinstance(self.loaded.storage, SchemeStorage) and self.loaded.storage.is_fenced
            check_paths(self.loaded.storage, paths if is_fenced else paths.slice(0, 1))
            return [self.reaches(first)]
        check_paths(self.loaded.storage, paths)
        return [self.reaches(path) for path in paths.to_pylist()]

    def planner(
        self, group: FileGroup, constants: Sequence[Constant], paths: Paths | None = None
    ) -> Callable[[str], bytes]:
        """Return a function that answers Spark's requests for a group's files; `paths` are the names in its filters."""

        def answer(request: str) -> bytes:
            try:
                pushed = pruning_predicate(request, self.paths if paths is None else paths, self.schema)
                stream = self.stream(group, constants, pushed)
                if self._on_read is not None:
                    self._notify_read(self.plan(pushed))
                return stream
            except FrazilError as error:
                raise name_error(error, self.loaded.name, self.snapshot_id) from error

        return answer

    @property
    def snapshot_id(self) -> int | None:
        """The id of the scanned snapshot."""
        return None if self.snapshot is None else self.snapshot.snapshot_id

    def stream(self, group: FileGroup, constants: Sequence[Constant], pushed: Predicate | None) -> bytes:
        """Return the files of a group that can match, with their constants, as an Arrow stream."""
        fields = [pa.field("path", pa.string()), pa.field("size", pa.int64()), pa.field("rows", pa.int64())]
        fields += [pa.field(constant.name, constant.arrow_type) for constant in constants]
        schema = pa.schema(fields, metadata=self._totals())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in self.batches(group, pushed):
                columns = [
                    spark_paths(batch.files.column("file_path").cast(pa.string())),
                    batch.files.column("file_size_in_bytes").cast(pa.int64()),
                    batch.files.column("record_count").cast(pa.int64()),
                    *(constant.values(batch) for constant in constants),
                ]
                writer.write_table(pa.table(columns, schema=schema))
        return bytes(sink.getvalue())

    def _totals(self) -> dict[str, str]:
        """Return schema metadata for Spark's explain and errors: the snapshot's number of files, table and id."""
        summary = None if self.snapshot is None else self.snapshot.summary
        total = None if summary is None else summary.get(Summary.TOTAL_DATA_FILES)
        totals = {"about": self.about, "mark": self.mark}
        # A summary may hold any text, and Spark's plans show this one as a path.
        is_count = total is not None and total.isascii() and total.isdigit()
        return {**totals, "total-files": str(total)} if is_count else totals

    @property
    def about(self) -> str:
        """The text that follows errors about a file: the table, the snapshot and a hint."""
        return f"\n  table: {self.loaded.name}\n  snapshot: {self.snapshot_id}\nHint: {FILE_HINT}"

    @property
    def mark(self) -> str:
        """The suffix of a file's path in Spark's errors, which `engine_errors.py` parses."""
        return file_mark(self.loaded.name, self.snapshot_id)

    def batches(self, group: FileGroup, pushed: Predicate | None) -> list[PlannedBatch]:
        """Return the planned files of a group."""
        plan = self.plan(pushed)
        planned = []
        for batch in self.whole(plan):
            file_batch = chosen_part(batch, self._members(plan, batch, group))
            if file_batch is not None:
                planned.append(PlannedBatch(self, plan, file_batch))
        return planned

    def _members(self, plan: Plan, batch: FileBatch, group: FileGroup) -> Mask:
        """Return a mask of the files of a batch that belong to a group."""
        kinds, deletes = self._groups_without_deletes(batch), self._delete_kinds(plan, batch)
        if len(kinds) == 1:
            member_kinds = tuple(
                deletes_kind for deletes_kind in DeleteKind if self._group_of(kinds[0], deletes_kind) == group
            )
            is_member = [applying in member_kinds for applying in deletes]
        else:
            is_member = [self._group_of(*pair) == group for pair in _pairs(kinds, deletes)]
        return np.full(len(batch.files), is_member[0]) if len(is_member) == 1 else np.array(is_member, dtype=bool)

    def _delete_kinds(self, plan: Plan, batch: FileBatch) -> list[DeleteKind]:
        """Return the kind of deletes of each file, or one item for a batch without deletes."""
        if batch.deletes is None:
            return [DeleteKind.NONE]
        kinds: dict[tuple[int, ...], DeleteKind] = {(): DeleteKind.NONE}
        delete_files = plan.delete_files
        for numbers in batch.deletes:
            if numbers not in kinds:
                by_value = any(
                    delete_files[number].data_file.content is FileContent.EQUALITY_DELETES for number in numbers
                )
                kinds[numbers] = DeleteKind.EQUALITY if by_value else DeleteKind.POSITIONS
        return [kinds[numbers] for numbers in batch.deletes]

    def vector_bytes(self) -> int:
        """Return about how many bytes the deleted positions of all files would take as bits."""
        plan = self.plan()
        total = 0
        by_position = [
            delete_file.data_file.content is FileContent.POSITION_DELETES for delete_file in plan.delete_files
        ]
        if not any(by_position):
            return total
        for batch in self.whole(plan):
            if batch.deletes is None:
                continue
            rows = batch.files.column("record_count").to_pylist()
            for numbers, count in zip(batch.deletes, rows, strict=True):
                total += most_vector_bytes(count) if any(by_position[number] for number in numbers) else 0
        return total

    def vectors_of(self, planned: PlannedBatch) -> pa.Array:
        """Return for each file the bitmap of its deleted rows; it is empty if there are none, never null."""

        def bits(task: FileScanTask) -> bytes:
            vector = load_positions(self.loaded.storage, task, self._positions)
            return b"" if vector is None else vector_bytes(vector, task.data_file)

        tasks = planned.plan.tasks_of(planned.batch)
        return pa.array(list(map_in_order(bits, tasks, threads=default_threads())), pa.binary())


def chosen_part(batch: FileBatch, keep: Mask) -> FileBatch | None:
    """Return the files of a batch that a mask selects, or None if there are none."""
    if keep.all() or not keep.any():
        return batch if keep.any() else None
    files = replace(batch.files, table=batch.files.table.filter(pa.array(keep)))
    if batch.deletes is None:
        return FileBatch(files, None)
    return FileBatch(files, [delete for delete, is_kept in zip(batch.deletes, keep.tolist(), strict=True) if is_kept])


def files_stream(scan: ScanFiles, files: Sequence[DataFile], constants: Mapping[str, pa.Array]) -> bytes:
    """Return given files of a scan as an Arrow stream, in the form of a planner's answer."""
    paths = pa.chunked_array([pa.array([file.file_path for file in files], pa.string())])
    check_paths(scan.loaded.storage, paths)
    sizes = pa.array([file.file_size_in_bytes for file in files], pa.int64())
    rows = pa.array([file.record_count for file in files], pa.int64())
    table = pa.table({"path": spark_paths(paths), "size": sizes, "rows": rows, **constants})
    table = table.replace_schema_metadata({"about": scan.about, "mark": scan.mark})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def check_paths(storage: Storage, paths: pa.ChunkedArray) -> None:
    """Raise if Spark must not receive a path; it opens paths directly, bypassing the storage's checks."""
    if isinstance(storage, SchemeStorage) and not storage.is_fenced:
        # One pattern over the column filters nearly all paths. Paths in Azure name hosts, so they are checked one by
        # one.
        paths = paths.filter(pc.invert(pc.match_substring_regex(paths.cast(pa.string()), _KNOWN_SCHEMES)))
    if len(paths):
        check_readable(storage, paths.to_pylist())


def spark_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return paths as Spark must open them: those without a scheme become `file:` URIs."""
    if not pc.any(pc.equal(pc.find_substring(paths, ":/"), -1)).as_py():
        return paths
    return pa.chunked_array(
        [[path if ":/" in path else f"file://{Path(path).absolute()}" for path in paths.to_pylist()]], pa.string()
    )


def root_of(path: str) -> str:
    """Return the scheme and authority of a path, or an empty text for a plain path."""
    scheme, mark, rest = path.partition(":/")
    if not mark or "/" in scheme:
        return ""
    return f"{scheme}://{rest[1:].partition('/')[0]}/" if rest.startswith("/") else f"{scheme}:/"


def most_vector_bytes(rows: int) -> int:
    """Return the maximum size of the bitmap for a file with a number of rows."""
    return -(-rows >> BLOCK_BITS) * 2


def vector_bytes(vector: DeletionVector, file: DataFile) -> bytes:
    """Return the deleted positions of a file as a bitmap of 16-bit numbers, high byte first; empty if there are none.

    Positions beyond the end of the file are ignored.
    """
    within = vector if file.record_count < 0 else vector.below(file.record_count)
    if within.last is None:
        return b""
    rows = (within.last >> BLOCK_BITS) + 1 << BLOCK_BITS
    if rows > _MAX_ROWS:
        raise InvalidManifestError(
            f"Cannot read the deleted rows of {file.file_path}: row {within.last} is deleted, above the limit of "
            f"{_MAX_ROWS} rows in one file",
            hint="Write the file's rows again as several files, or read it without Spark.",
            path=file.file_path,
            heading="Deletion Vectors",
        )
    # Masks take eight times the memory of the bitmap, so they are built for a part of the rows at a time.
    masks = (within.mask(start, min(_ROWS_AT_ONCE, rows - start)) for start in range(0, rows, _ROWS_AT_ONCE))
    bits = np.concatenate([np.packbits(mask, bitorder="little") for mask in masks])
    return bytes(bits.reshape(-1, 2)[:, ::-1].tobytes())


def arrow_type_of(data_type: Type) -> pa.DataType:
    """Return the Arrow type of a type's stored form."""
    arrow_type: pa.DataType = to_arrow_type(stored_type(data_type))
    return arrow_type


def partition_constant(name: str, field: NestedField) -> Constant:
    """Return the constant for a column whose value is a partition value."""
    target = arrow_type_of(field.field_type)

    def values(batch: PlannedBatch) -> pa.Array:
        partition_values = to_stored(
            _child(batch.files, batch.scan.source_at(batch.files.spec_id, field.field_id)), target
        )
        if field.required and partition_values.null_count:
            raise InvalidManifestError(
                f"Cannot read column {field.name!r} (field id {field.field_id}): it is required, but the partition of "
                "a file has no value for it",
                hint="Make the column optional, or leave it out of the columns to read.",
                path=batch.files.path,
                heading="Column Projection",
            )
        return partition_values

    return Constant(name, target, values)


def _child(files: ManifestColumns, index: int) -> pa.Array:
    partition = files.column("partition").combine_chunks()
    return pc.struct_field(partition, [index])


def to_stored(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an Arrow array of manifest values to the stored form."""
    if array.type == target:
        return array
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        return array.cast(pa.int64()).cast(target)
    if pa.types.is_integer(target) and (pa.types.is_timestamp(array.type) or pa.types.is_time(array.type)):
        return array.cast(pa.int64())
    if pa.types.is_binary(target) and isinstance(array.type, pa.ExtensionType):
        return array.storage.cast(target)
    return array.cast(target)


def column_constant(name: str, source: str, target: pa.DataType) -> Constant:
    """Return the constant for a column of the manifest."""
    return Constant(name, target, lambda batch: batch.files.column(source).cast(target))


def spec_constant(name: str) -> Constant:
    """Return the constant for the id of each file's partition spec."""
    return Constant(
        name, pa.int32(), lambda batch: pa.array(np.full(len(batch.files), batch.files.spec_id), pa.int32())
    )


def vector_constant(name: str) -> Constant:
    """Return the constant for each file's deleted positions as a bitmap."""
    return Constant(name, pa.binary(), lambda batch: batch.scan.vectors_of(batch))


def has_vector_constant(name: str) -> Constant:
    """Return the constant for whether a file has a deletion vector, which replaces all its position deletes."""

    def values(batch: PlannedBatch) -> pa.Array:
        applying = batch.batch.deletes or [()] * len(batch.files)
        delete_files = batch.plan.delete_files
        return pa.array(
            [any(delete_files[number].data_file.is_deletion_vector for number in numbers) for numbers in applying]
        )

    return Constant(name, pa.bool_(), values)


def key_constant(name: str, keys: dict[PartitionKey, int]) -> Constant:
    """Return the constant for the number of each file's partition in `keys`, or -1."""
    return Constant(
        name,
        pa.int32(),
        lambda batch: pa.array(
            [keys.get(partition_key, -1) for partition_key in partition_keys(batch.files)], pa.int32()
        ),
    )


def tuple_constant(name: str, nested_field: NestedField) -> Constant:
    """Return the constant for one field of each file's partition, null if the file's spec has no such field.

    The fields are separate columns, since Spark before 4.3 accepts no struct constants, and filters on them stay exact.
    """
    target = arrow_type_of(nested_field.field_type)

    def values(batch: PlannedBatch) -> pa.Array:
        for index, field in enumerate(batch.files.partition_type.fields):
            if field.field_id == nested_field.field_id:
                return to_stored(_child(batch.files, index), target)
        return pa.nulls(len(batch.files), target)

    return Constant(name, target, values)
