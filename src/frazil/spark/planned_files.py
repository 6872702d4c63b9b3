"""A scan's files, planned while Spark plans a query: the Python half of the lazy relation.

A table's files are read by one relation for each `FileGroup`: files of one format whose columns come from the same
places, apart by what deletes apply to them. When Spark asks a relation for its files, the filters it pushed are joined
to the scan's own, the planner prunes (`scan/plan.py`), and the files of the group go back as an Arrow stream: path,
size, and the group's constants, which Spark gives to each row of a file as columns that cost nothing.

A `ScanFiles` lives as long as Spark holds the relation, so it keeps no more of the table than one snapshot needs. What
was planned last is kept for a moment: the groups of one query ask one after the other with the same filters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type

from frazil.codec.deletion_vector import DeletionVector
from frazil.codec.manifest_avro import ManifestColumns
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DeleteCache
from frazil.expr.predicates import Predicate, all_of
from frazil.loaded import LoadedTable
from frazil.scan.delete_index import PartitionKey, partition_keys
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import FileBatch, Plan, plan_scan
from frazil.scan.prune import to_mask
from frazil.spark.predicates import Paths, pruning_predicate
from frazil.spark.types import stored_type
from frazil.spec.data_file import FileContent, FileFormat
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.transforms import Identity
from frazil.spec.types import DoubleType, FloatType, StructType, Type

_BITS = np.array([1, 2, 4, 8, 16, 32, 64], dtype=np.uint8)


class DeleteKind(Enum):
    """What deletes apply to the files of a group."""

    NONE = "none"
    POSITIONS = "positions"
    EQUALITY = "equality"


@dataclass(frozen=True)
class FileGroup:
    """Files that one relation reads: their format, the columns their partition gives, and their deletes."""

    file_format: FileFormat
    identity_ids: frozenset[int]
    deletes: DeleteKind

    @property
    def label(self) -> str:
        """The group in a relation's key."""
        ids = ",".join(map(str, sorted(self.identity_ids)))
        return f"{self.file_format.name}:{ids}:{self.deletes.value}"


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
    """Return the columns whose value a file's partition tells exactly: field ids with their places in the tuple.

    Floating point is left out, since two zeros and many NaNs are one partition value.
    """
    found: dict[int, int] = {}
    for at, part in enumerate(spec.fields):
        if isinstance(part.transform, Identity) and len(part.source_ids) == 1:
            source = schema.find_field(part.source_ids[0])
            is_top = source is not None and any(one.field_id == source.field_id for one in schema.fields)
            if source is not None and is_top and not isinstance(source.field_type, FloatType | DoubleType):
                found.setdefault(source.field_id, at)
    return found


def slim_table(loaded: LoadedTable, snapshot: Snapshot | None, schema: Schema) -> LoadedTable:
    """Return a table that knows one snapshot and no history, so that holding it costs little."""
    metadata: TableMetadata = replace(
        loaded.metadata,
        snapshots=() if snapshot is None else (snapshot,),  # type: ignore[arg-type]
        current_snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        current_schema_id=schema.schema_id,
        refs={},  # type: ignore[arg-type]
        snapshot_log=(),
        metadata_log=(),
        statistics=(),
        partition_statistics=(),
    )
    return replace(loaded, metadata=metadata)


class ScanFiles:
    """The files of one scan of one snapshot, for any filter that comes later."""

    def __init__(
        self,
        loaded: LoadedTable,
        snapshot: Snapshot | None,
        schema: Schema,
        predicate: Predicate,
        cache: ManifestCache | None,
    ) -> None:
        self.loaded = slim_table(loaded, snapshot, schema)
        self.snapshot = snapshot
        self.schema = schema
        self.predicate = predicate
        self.paths: Paths = {}
        self._cache = cache
        self._lock = threading.Lock()
        self._last: tuple[Predicate, Plan] | None = None
        self._positions = DeleteCache()
        self._identity = {spec.spec_id: identity_columns(spec, schema) for spec in loaded.metadata.partition_specs}

    def plan(self, pushed: Predicate | None = None) -> Plan:
        """Return the plan for the scan's filter and what Spark pushed."""
        asked = self.predicate if pushed is None else all_of(self.predicate, pushed)
        with self._lock:
            if self._last is not None and self._last[0] == asked:
                return self._last[1]
        plan = plan_scan(self.loaded, asked, cache=self._cache)
        with self._lock:
            self._last = (asked, plan)
        return plan

    def identity_of(self, spec_id: int) -> dict[int, int]:
        """Return the columns that partitions of a spec tell, with their places in the tuple."""
        return self._identity[spec_id]

    def groups(self) -> list[FileGroup]:
        """Return the groups that the scan's files fall into, whatever filter comes later; reads all manifests."""
        plan = self.plan()
        kinds: dict[tuple[FileFormat, frozenset[int]], None] = {}
        for batch in plan.batches():
            identity = frozenset(self._identity[batch.files.spec_id])
            for name in pc.unique(batch.files.column("file_format")).to_pylist():
                kinds.setdefault((FileFormat(name), identity))
        contents = {one.data_file.content for one in plan.delete_files}
        deletes = [DeleteKind.NONE]
        if FileContent.POSITION_DELETES in contents:
            deletes.append(DeleteKind.POSITIONS)
        if FileContent.EQUALITY_DELETES in contents:
            deletes.append(DeleteKind.EQUALITY)
        return [FileGroup(file_format, identity, kind) for file_format, identity in kinds for kind in deletes]

    def planner(self, group: FileGroup, constants: Sequence[Constant]) -> Callable[[str], bytes]:
        """Return what answers Spark's questions for the files of a group."""

        def answer(request: str) -> bytes:
            pushed = pruning_predicate(request, self.paths, self.schema)
            return self.stream(group, constants, pushed)

        return answer

    def stream(self, group: FileGroup, constants: Sequence[Constant], pushed: Predicate | None) -> bytes:
        """Return the files of a group that can match, with their constants, as an Arrow stream."""
        fields = [pa.field("path", pa.string()), pa.field("size", pa.int64())]
        fields += [pa.field(one.name, one.arrow_type) for one in constants]
        schema = pa.schema(fields)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in self.batches(group, pushed):
                columns = [
                    batch.files.column("file_path").cast(pa.string()),
                    batch.files.column("file_size_in_bytes").cast(pa.int64()),
                    *(one.values(batch) for one in constants),
                ]
                writer.write_table(pa.table(columns, schema=schema))
        return bytes(sink.getvalue())

    def batches(self, group: FileGroup, pushed: Predicate | None) -> list[PlannedBatch]:
        """Return the planned files of a group."""
        plan = self.plan(pushed)
        found = []
        for batch in plan.batches():
            if frozenset(self._identity[batch.files.spec_id]) != group.identity_ids:
                continue
            keep = to_mask(pc.equal(batch.files.column("file_format"), group.file_format.value))
            if batch.deletes is not None or group.deletes is not DeleteKind.NONE:
                keep = keep & np.array([kind is group.deletes for kind in self._delete_kinds(plan, batch)])
            if keep.all():
                found.append(PlannedBatch(self, plan, batch))
            elif keep.any():
                files = replace(batch.files, table=batch.files.table.filter(pa.array(keep)))
                deletes = None
                if batch.deletes is not None:
                    deletes = [one for one, is_kept in zip(batch.deletes, keep.tolist(), strict=True) if is_kept]
                found.append(PlannedBatch(self, plan, FileBatch(files, deletes)))
        return found

    def _delete_kinds(self, plan: Plan, batch: FileBatch) -> list[DeleteKind]:
        if batch.deletes is None:
            return [DeleteKind.NONE] * len(batch.files)
        kinds: dict[tuple[int, ...], DeleteKind] = {(): DeleteKind.NONE}
        for numbers in batch.deletes:
            if numbers not in kinds:
                by_value = any(
                    plan.delete_files[one].data_file.content is FileContent.EQUALITY_DELETES for one in numbers
                )
                kinds[numbers] = DeleteKind.EQUALITY if by_value else DeleteKind.POSITIONS
        return [kinds[numbers] for numbers in batch.deletes]

    def vectors_of(self, planned: PlannedBatch) -> pa.Array:
        """Return for each file the bits of its deleted rows, seven to a byte; none are an empty value, never null."""
        found = []
        for task in planned.plan.tasks_of(planned.batch):
            vector = load_positions(self.loaded.storage, task, self._positions)
            found.append(b"" if vector is None else vector_bytes(vector))
        return pa.array(found, pa.binary())


def vector_bytes(vector: DeletionVector) -> bytes:
    """Return deleted positions as bits, seven to a byte, so that each byte is a character that SQL's ascii() reads."""
    last = vector.last
    if last is None:
        return b""
    bits = np.zeros((last // 7 + 1) * 7, dtype=np.uint8)
    bits[vector.to_numpy()] = 1
    packed: bytes = (bits.reshape(-1, 7) * _BITS).sum(axis=1).astype(np.uint8).tobytes()
    return packed


def arrow_type_of(kind: Type) -> pa.DataType:
    """Return the Arrow type that Spark reads as the stored form of a type."""
    found: pa.DataType = to_arrow_type(stored_type(kind), timezone="UTC")
    return found


def partition_constant(name: str, field_id: int, kind: Type) -> Constant:
    """Return the constant for a column whose value a file's partition tells."""
    target = arrow_type_of(kind)

    def values(batch: PlannedBatch) -> pa.Array:
        at = batch.scan.identity_of(batch.files.spec_id)[field_id]
        return to_stored(_child(batch.files, at), target)

    return Constant(name, target, values)


def _child(files: ManifestColumns, at: int) -> pa.Array:
    partition = files.column("partition").combine_chunks()
    return pc.struct_field(partition, [at])


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


def key_constant(name: str, keys: dict[PartitionKey, int]) -> Constant:
    """Return the number that each file's partition has among `keys`, -1 where it has none."""
    return Constant(
        name, pa.int32(), lambda batch: pa.array([keys.get(one, -1) for one in partition_keys(batch.files)], pa.int32())
    )


def tuple_constant(name: str, kind: StructType) -> Constant:
    """Return each file's partition as a struct of all specs' fields."""
    target = arrow_type_of(kind)

    def values(batch: PlannedBatch) -> pa.Array:
        known = {part.field_id: at for at, part in enumerate(batch.files.partition_type.fields)}
        children = []
        for part, field in zip(kind.fields, target, strict=True):
            at = known.get(part.field_id)
            count = len(batch.files)
            children.append(
                pa.nulls(count, field.type) if at is None else to_stored(_child(batch.files, at), field.type)
            )
        return pa.StructArray.from_arrays(children, fields=list(target))

    return Constant(name, target, values)
