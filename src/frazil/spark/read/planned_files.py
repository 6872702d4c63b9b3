"""A scan's files, planned while Spark plans a query: the Python half of the lazy relation.

A table's files are read by one relation for each `FileGroup`: files of one format whose columns come from the same
places, apart by what deletes apply to them. When Spark asks a relation for its files, the filters it pushed are joined
to the scan's own, the planner prunes (`scan/plan.py`), and the files of the group go back as an Arrow stream: path,
size, rows, and the group's constants, which Spark gives to each row of a file as columns that cost nothing.

A `ScanFiles` lives as long as Spark holds the relation, so it keeps no more of the table than one snapshot needs. What
was planned last is kept for a moment: the groups of one query ask one after the other with the same filters.
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
from frazil.columns.partition_keys import partition_keys
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.errors import FrazilError, InvalidManifestError
from frazil.expr.predicates import Predicate, all_of
from frazil.loaded import LoadedTable
from frazil.scan.incremental import Appends, plan_appends
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import FileBatch, Plan, plan_scan
from frazil.scan.stream_files import StreamFiles, plan_stream_files
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
from frazil.threads import default_threads, map_in_order

Mask = npt.NDArray[np.bool_]
_OWN_PATHS = rf"^(/|({'|'.join((FILE_SCHEME, *S3_SCHEMES, *GCS_SCHEMES))}):)"
BLOCK_BITS = 4
_MOST_ROWS = 1 << 31
_ROWS_AT_ONCE = 1 << 20
"""Bits come in numbers of 2^4, high byte first, as `bit_at` of `spark/jvm` reads them."""


class DeleteKind(Enum):
    """What deletes apply to the files of a group."""

    NONE = "none"
    POSITIONS = "positions"
    EQUALITY = "equality"


_ORDER = tuple(DeleteKind)
"""Each kind is read as those before it are, and looks for more."""


@dataclass(frozen=True)
class FileGroup:
    """Files that one relation reads: their format, the columns their partition gives, and their deletes."""

    file_format: FileFormat
    identity_ids: frozenset[int]
    deletes: DeleteKind
    shape: FileShape = BY_ID
    is_native: bool = True
    """Whether Spark's own reader can read the files; others are read by Python, their deletes applied there."""

    @property
    def label(self) -> str:
        """The group in a relation's key."""
        ids = ",".join(map(str, sorted(self.identity_ids)))
        return f"{self.file_format.name}:{ids}:{self.deletes.value}:{self.shape.label}:{self.is_native}"


@dataclass(frozen=True)
class PlannedBatch:
    """Files of a group from one manifest, with the plan and the scan they belong to."""

    scan: ScanFiles
    plan: Plan
    batch: FileBatch

    @property
    def files(self) -> ManifestColumns:
        """The files as columns of their manifest."""
        return self.batch.files


@dataclass(frozen=True)
class Constant:
    """A value that all rows of a file share: the column's name, its Arrow type, and how to make it for many files."""

    name: str
    arrow_type: pa.DataType
    values: Callable[[PlannedBatch], pa.Array | pa.ChunkedArray]


def identity_columns(spec: PartitionSpec, schema: Schema) -> dict[int, int]:
    """Return the columns whose value a file's partition tells exactly: field ids with their positions in the tuple.

    Floating point is left out, since two zeros and many NaNs are one partition value, and so are parts of columns.
    """
    top = {field.field_id for field in schema.fields}
    return {
        field_id: index
        for field_id, index in identity_sources(spec, schema).items()
        if field_id in top and not isinstance(schema.field(field_id).field_type, FloatType | DoubleType)
    }


def identity_sources(spec: PartitionSpec, schema: Schema) -> dict[int, int]:
    """Return every field that a file's partition tells where the file itself does not hold it."""
    found: dict[int, int] = {}
    for index, field in enumerate(spec.fields):
        if isinstance(field.transform, Identity) and len(field.source_ids) == 1:
            source = schema.find_field(field.source_ids[0])
            if source is not None:
                found.setdefault(source.field_id, index)
    return found


def slim_table(
    loaded: LoadedTable, snapshot: Snapshot | None, schema: Schema, *, with_history: bool = False
) -> LoadedTable:
    """Return a table that knows one snapshot and no history, so that holding it costs little."""
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
    # Spark has files planned to know what there is: they are read where it asks for them.
    return replace(loaded, metadata=metadata, on_read=None)


def _pairs(kinds: list[FileGroup], deletes: list[DeleteKind]) -> list[tuple[FileGroup, DeleteKind]]:
    """Return the two for each file, where one answer may stand for all files of a batch."""
    count = max(len(kinds), len(deletes))
    each_kind = kinds * count if len(kinds) == 1 else kinds
    return list(zip(each_kind, deletes * count if len(deletes) == 1 else deletes, strict=True))


def _by_python(file_format: FileFormat) -> FileGroup:
    return FileGroup(file_format, frozenset(), DeleteKind.NONE, is_native=False)


def _with_deletes(group: FileGroup, deletes: DeleteKind) -> FileGroup:
    """Return the group of files with deletes: Spark's ORC reader knows no positions, and Python applies all of them."""
    if not group.is_native or deletes is DeleteKind.NONE:
        return group
    return replace(group, deletes=deletes) if group.file_format is FileFormat.PARQUET else _by_python(group.file_format)


class ScanFiles:
    """The files of one scan of one snapshot, for any filter that comes later."""

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
        self._read_last: Plan | None = None
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
        """Whether Spark's own reader, which goes by names and knows no positions, reads ORC files without deletes."""
        self.session: Any = None
        """Where Spark looks up settings for the relations of this scan."""
        self.reads_clean_with_marked = False
        """Whether files without deletes are read together with those that have deleted positions."""
        self._cache = cache
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._last: tuple[Predicate, Plan] | None = None
        self._positions = DeleteCache()
        self._known: frozenset[FileGroup] = frozenset()
        specs = loaded.metadata.partition_specs
        self._identity = {spec.spec_id: identity_columns(spec, schema) for spec in specs}
        self._sources = {spec.spec_id: identity_sources(spec, schema) for spec in specs}

    def plan(self, pushed: Predicate | None = None) -> Plan:
        """Return the plan for the scan's filter and what Spark pushed."""
        asked = self.predicate if pushed is None else all_of(self.predicate, pushed)
        with self._lock:
            if self._last is not None and self._last[0] == asked:
                return self._last[1]
        plan = self._plan(asked)
        with self._lock:
            self._last = (asked, plan)
        return plan

    def _plan(self, asked: Predicate) -> Plan:
        if self.appends is None:
            return plan_scan(self.loaded, asked, cache=self._cache, expects_filters=True)
        if isinstance(self.appends, StreamFiles):
            return plan_stream_files(self.loaded, self.appends, asked, cache=self._cache)
        return plan_appends(
            self.loaded,
            asked,
            from_snapshot_id=self.appends.after_snapshot_id,
            to_snapshot_id=self.appends.to_snapshot_id,
            has_overwrites=self.appends.has_overwrites,
            cache=self._cache,
        )

    def source_at(self, spec_id: int, field_id: int) -> int:
        """Return the position in the tuple of what a partition tells of a field."""
        return self._sources[spec_id][field_id]

    def _told(self, spec_id: int, shape: FileShape) -> frozenset[int]:
        """Return the fields that are taken from the partition: for files without ids, all that it tells.

        What it does not tell exactly is taken from it where a file does not hold it.
        """
        sources = self._sources[spec_id]
        return frozenset(self._identity[spec_id].keys() | (sources.keys() & shape.absent) if shape.has_ids else sources)

    def inexact_sources(self) -> frozenset[int]:
        """Return the fields that some partition tells, but files tell better."""
        return frozenset(
            key for spec_id, source in self._sources.items() for key in source.keys() - self._identity[spec_id].keys()
        )

    def whole(self, plan: Plan) -> list[FileBatch]:
        """Return the batches of a plan that are read; several threads may ask for the same plan."""
        with self._reading:
            return list(plan.batches())

    def groups(self) -> list[FileGroup]:
        """Return the groups that the scan's files fall into, whatever filter comes later; reads all manifests."""
        plan = self.plan()
        found: dict[FileGroup, None] = {}
        for batch in self.whole(plan):
            kinds, deletes = self._kinds(batch), self._delete_kinds(plan, batch)
            if len(kinds) == 1:
                deletes = list(dict.fromkeys(deletes))
            for group, applying in dict.fromkeys(_pairs(kinds, deletes)):
                found.setdefault(_with_deletes(group, applying))
        if self.reads_clean_with_marked:
            marked = {replace(one, deletes=DeleteKind.NONE) for one in found if one.deletes is DeleteKind.POSITIONS}
            found = {one: None for one in found if one not in marked}
        self._known = frozenset(found)
        if not all(one.is_native for one in found):
            self._tell_read(plan)
        return list(found)

    def _tell_read(self, plan: Plan) -> None:
        """Tell whoever wants to know that a plan's files are read, once for all groups."""
        if self._on_read is not None and plan is not self._read_last:
            self._read_last = plan
            self._on_read(plan)

    def _home(self, kind: FileGroup, deletes: DeleteKind) -> FileGroup:
        """Return the group that reads a file of a kind.

        A filter that came later may have left out deletes of the file. It stays in a group there is: one that looks for
        more deletes than the file has finds none.
        """
        for delete_kind in _ORDER[_ORDER.index(deletes) :]:
            group = _with_deletes(kind, delete_kind)
            if group in self._known:
                return group
        return _with_deletes(kind, deletes)

    def _kinds(self, batch: FileBatch) -> list[FileGroup]:
        """Return the group of each file, deletes aside; of a batch whose files are all alike, that one group."""
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
        return FileGroup(file_format, self._told(spec_id, shape), DeleteKind.NONE, shape)

    def _reached(self, files: ManifestColumns) -> list[bool]:
        """Return whether Spark can open each file; one answer where all are at one location. Refuse what it may not."""
        paths = files.column("file_path")
        first = paths[0].as_py()
        root = place_of(first)
        if root and pc.all(pc.starts_with(paths, pattern=root)).as_py():
            is_fenced = isinstance(self.loaded.storage, SchemeStorage) and self.loaded.storage.is_fenced
            check_paths(self.loaded.storage, paths if is_fenced else paths.slice(0, 1))
            return [self.reaches(first)]
        check_paths(self.loaded.storage, paths)
        return [self.reaches(path) for path in paths.to_pylist()]

    def planner(
        self, group: FileGroup, constants: Sequence[Constant], paths: Paths | None = None
    ) -> Callable[[str], bytes]:
        """Return what answers Spark's questions for the files of a group; `paths` are the names its filters use."""

        def answer(request: str) -> bytes:
            try:
                pushed = pruning_predicate(request, self.paths if paths is None else paths, self.schema)
                found = self.stream(group, constants, pushed)
                if self._on_read is not None:
                    self._tell_read(self.plan(pushed))
                return found
            except FrazilError as error:
                raise name_error(error, self.loaded.name, self.snapshot_id) from error

        return answer

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot that is read."""
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
        """Return what Spark's explain and errors say: how many files the snapshot has, and which one it is."""
        summary = None if self.snapshot is None else self.snapshot.summary
        total = None if summary is None else summary.get(Summary.TOTAL_DATA_FILES)
        totals = {"about": self.about, "mark": self.mark}
        # A summary may hold any text; Spark's plans show this one as a path.
        is_count = total is not None and total.isascii() and total.isdigit()
        return {**totals, "total-files": str(total)} if is_count else totals

    @property
    def about(self) -> str:
        """What follows an error about a file: the table and snapshot it is of, and what to do."""
        return f"\n  table: {self.loaded.name}\n  snapshot: {self.snapshot_id}\nHint: {FILE_HINT}"

    @property
    def mark(self) -> str:
        """What Spark's own errors show behind the path of a file (`engine_errors.py` reads it there)."""
        return file_mark(self.loaded.name, self.snapshot_id)

    def batches(self, group: FileGroup, pushed: Predicate | None) -> list[PlannedBatch]:
        """Return the planned files of a group."""
        plan = self.plan(pushed)
        found = []
        for batch in self.whole(plan):
            file_batch = chosen_part(batch, self._members(plan, batch, group))
            if file_batch is not None:
                found.append(PlannedBatch(self, plan, file_batch))
        return found

    def _members(self, plan: Plan, batch: FileBatch, group: FileGroup) -> Mask:
        """Return which files of a batch are in a group."""
        kinds, deletes = self._kinds(batch), self._delete_kinds(plan, batch)
        if len(kinds) == 1:
            here = tuple(deletes_kind for deletes_kind in DeleteKind if self._home(kinds[0], deletes_kind) == group)
            found = [applying in here for applying in deletes]
        else:
            found = [self._home(*pair) == group for pair in _pairs(kinds, deletes)]
        return np.full(len(batch.files), found[0]) if len(found) == 1 else np.array(found, dtype=bool)

    def _delete_kinds(self, plan: Plan, batch: FileBatch) -> list[DeleteKind]:
        """Return which deletes each file has; of a batch without any, that one answer."""
        if batch.deletes is None:
            return [DeleteKind.NONE]
        kinds: dict[tuple[int, ...], DeleteKind] = {(): DeleteKind.NONE}
        known = plan.delete_files
        for numbers in batch.deletes:
            if numbers not in kinds:
                by_value = any(known[number].data_file.content is FileContent.EQUALITY_DELETES for number in numbers)
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
        """Return for each file the bits of its deleted rows, eight to a byte; none are an empty value, never null."""

        def bits(task: FileScanTask) -> bytes:
            vector = load_positions(self.loaded.storage, task, self._positions)
            return b"" if vector is None else vector_bytes(vector, task.data_file)

        tasks = planned.plan.tasks_of(planned.batch)
        return pa.array(list(map_in_order(bits, tasks, threads=default_threads())), pa.binary())


def chosen_part(batch: FileBatch, keep: Mask) -> FileBatch | None:
    """Return the files of a batch that are kept, None where none is."""
    if keep.all() or not keep.any():
        return batch if keep.any() else None
    files = replace(batch.files, table=batch.files.table.filter(pa.array(keep)))
    if batch.deletes is None:
        return FileBatch(files, None)
    return FileBatch(files, [delete for delete, is_kept in zip(batch.deletes, keep.tolist(), strict=True) if is_kept])


def files_stream(scan: ScanFiles, files: Sequence[DataFile], constants: Mapping[str, pa.Array]) -> bytes:
    """Return files of a scan that are known already as an Arrow stream, as a planner answers."""
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
    """Refuse paths that are not to be handed to Spark: it opens them past the storage, whatever their scheme."""
    if isinstance(storage, SchemeStorage) and not storage.is_fenced:
        # Nearly always all are local or on one store; a few patterns over the column tell. In Azure they name hosts.
        paths = paths.filter(pc.invert(pc.match_substring_regex(paths.cast(pa.string()), _OWN_PATHS)))
    if len(paths):
        check_readable(storage, paths.to_pylist())


def spark_paths(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return paths as Spark opens them: one without a scheme is local, whatever file system Spark takes for it."""
    if not pc.any(pc.equal(pc.find_substring(paths, ":/"), -1)).as_py():
        return paths
    return pa.chunked_array(
        [[path if ":/" in path else f"file://{Path(path).absolute()}" for path in paths.to_pylist()]], pa.string()
    )


def place_of(path: str) -> str:
    """Return what tells which storage a path is of: its scheme and authority, nothing for a plain path."""
    scheme, mark, rest = path.partition(":/")
    if not mark or "/" in scheme:
        return ""
    return f"{scheme}://{rest[1:].partition('/')[0]}/" if rest.startswith("/") else f"{scheme}:/"


def most_vector_bytes(rows: int) -> int:
    """Return how many bytes the deleted positions of a file of so many rows take at most."""
    return -(-rows >> BLOCK_BITS) * 2


def vector_bytes(vector: DeletionVector, file: DataFile) -> bytes:
    """Return the deleted positions of a file as bits, in numbers of 16 with the high byte first; none are no bytes.

    Positions beyond the file's end delete nothing, and cost nothing.
    """
    within = vector if file.record_count < 0 else vector.below(file.record_count)
    if within.last is None:
        return b""
    rows = (within.last >> BLOCK_BITS) + 1 << BLOCK_BITS
    if rows > _MOST_ROWS:
        raise InvalidManifestError(
            f"Cannot read the deleted rows of {file.file_path}: row {within.last} is deleted, above the limit of "
            f"{_MOST_ROWS} rows in one file",
            hint="Write the file's rows again as several files, or read it without Spark.",
            path=file.file_path,
            heading="Deletion Vectors",
        )
    # A byte for each row is eight times what is kept: not for all rows at once.
    masks = (within.mask(start, min(_ROWS_AT_ONCE, rows - start)) for start in range(0, rows, _ROWS_AT_ONCE))
    bits = np.concatenate([np.packbits(mask, bitorder="little") for mask in masks])
    return bytes(bits.reshape(-1, 2)[:, ::-1].tobytes())


def arrow_type_of(data_type: Type) -> pa.DataType:
    """Return the Arrow type that Spark reads as the stored form of a type."""
    found: pa.DataType = to_arrow_type(stored_type(data_type))
    return found


def partition_constant(name: str, field: NestedField) -> Constant:
    """Return the constant for a column whose value a file's partition tells."""
    target = arrow_type_of(field.field_type)

    def values(batch: PlannedBatch) -> pa.Array:
        found = to_stored(_child(batch.files, batch.scan.source_at(batch.files.spec_id, field.field_id)), target)
        if field.required and found.null_count:
            raise InvalidManifestError(
                f"Cannot read column {field.name!r} (field id {field.field_id}): it is required, but the partition of "
                "a file has no value for it",
                hint="Make the column optional, or leave it out of the columns to read.",
                path=batch.files.path,
                heading="Column Projection",
            )
        return found

    return Constant(name, target, values)


def _child(files: ManifestColumns, index: int) -> pa.Array:
    partition = files.column("partition").combine_chunks()
    return pc.struct_field(partition, [index])


def to_stored(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values as they stand in manifests in the form Spark is given."""
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
    """Return a constant that is a column of the manifest."""
    return Constant(name, target, lambda batch: batch.files.column(source).cast(target))


def spec_constant(name: str) -> Constant:
    """Return the number of each file's partition spec."""
    return Constant(
        name, pa.int32(), lambda batch: pa.array(np.full(len(batch.files), batch.files.spec_id), pa.int32())
    )


def vector_constant(name: str) -> Constant:
    """Return each file's deleted positions as bits."""
    return Constant(name, pa.binary(), lambda batch: batch.scan.vectors_of(batch))


def has_vector_constant(name: str) -> Constant:
    """Return whether each file has a deletion vector, which replaces all its position deletes."""

    def values(batch: PlannedBatch) -> pa.Array:
        applying = batch.batch.deletes or [()] * len(batch.files)
        known = batch.plan.delete_files
        return pa.array([any(known[number].data_file.is_deletion_vector for number in numbers) for numbers in applying])

    return Constant(name, pa.bool_(), values)


def key_constant(name: str, keys: dict[PartitionKey, int]) -> Constant:
    """Return the number that each file's partition has among `keys`, -1 where it has none."""
    return Constant(
        name,
        pa.int32(),
        lambda batch: pa.array(
            [keys.get(partition_key, -1) for partition_key in partition_keys(batch.files)], pa.int32()
        ),
    )


def tuple_constant(name: str, nested_field: NestedField) -> Constant:
    """Return one part of each file's partition, null where the file's spec has no such part.

    Parts are apart, since readers of Spark before 4.3 take no structs as constants, and filters on them stay exact.
    """
    target = arrow_type_of(nested_field.field_type)

    def values(batch: PlannedBatch) -> pa.Array:
        for index, field in enumerate(batch.files.partition_type.fields):
            if field.field_id == nested_field.field_id:
                return to_stored(_child(batch.files, index), target)
        return pa.nulls(len(batch.files), target)

    return Constant(name, target, values)
