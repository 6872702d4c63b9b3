"""A table in a memory catalog, and what is needed to commit to it and look at it.

    lab = Lab(partition_by=["k"], format_version=3)
    one = lab.file([1, 2, 3], k="a")           # describes a data file; no bytes are written unless asked
    lab.commit(Append((one,)))
    lab.paths()                                # of the live data files

Time and ids are counted, nothing sleeps, and one thread does the work, so that every run is the same. The lab's
catalog can be told to lose answers: see `Fault`.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.catalog.base import Catalog
from frazil.catalog.memory import MemoryPointers
from frazil.catalog.outcomes import Rejected
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.catalog.pointers import Pointer, PointerChange, Stale
from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file, read_deletion_vector
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.single_value import encode_bound
from frazil.commit.action import Action
from frazil.commit.commit_loop import Pace
from frazil.commit.transaction import Transaction
from frazil.errors import CommitConflictError, CommitStateUnknownError
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.manifest import ManifestEntry, ManifestFile
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import LONG, STRING, NestedField
from frazil.storage.base import Storage
from frazil.storage.memory import MemoryStorage

START_MS = 1_700_000_000_000
TABLE = ("db", "t")
SCHEMA_IDS = {"id": 1, "k": 2, "v": 3}
SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "k", STRING), NestedField(3, "v", LONG)))


class LabClock:
    """Time and ids that are counted, so that every run is the same."""

    def __init__(self) -> None:
        self.ms = START_MS
        self.ids = 0

    def now(self) -> int:
        """Return the time, a millisecond later at every call."""
        self.ms += 1
        return self.ms

    def new_id(self) -> str:
        """Return the next of a fixed row of UUIDs."""
        self.ids += 1
        return str(uuid.uuid5(uuid.NAMESPACE_OID, str(self.ids)))


class Fault(Enum):
    """What happens to one move of the pointer."""

    LOST_BEFORE = "nothing happens, and the answer is lost"
    LOST_AFTER = "it happens, and the answer is lost"
    LANDS_LATE = "the answer is lost, and it happens afterwards, if it still can"


class FaultyPointers(MemoryPointers):
    """Pointers of which some moves go wrong. `faults` are taken in order, None for a move that goes well."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault | None] = []
        self.swaps = 0
        self._late: Sequence[PointerChange] | None = None

    def swap(self, changes: Sequence[PointerChange]) -> Stale | None:
        """Move the pointers, as planned."""
        self.swaps += 1
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            return super().swap(changes)
        lost = CommitStateUnknownError(f"Cannot tell whether it happened: {fault.value}")
        if fault is Fault.LOST_BEFORE:
            raise lost
        if fault is Fault.LANDS_LATE:
            self._late = changes
            raise lost
        super().swap(changes)
        raise lost

    def find_settled(self, change: PointerChange) -> tuple[Pointer | None, tuple[str, ...] | None]:
        """Let what was late land, then look."""
        if self._late is not None:
            super().swap(self._late)
            self._late = None
        return super().find_settled(change)


class LabCatalog(PointerCatalog):
    """A memory catalog in which other writers come first: before commit n, `rivals[n]` is called.

    Where `false_refusals[n]`, commit n is answered with a refusal, whatever it did.
    """

    def __init__(self, storage: Storage, pointers: FaultyPointers, **sources: Any) -> None:
        super().__init__("lab", "memory://lake", storage, pointers, **sources)
        self.rivals: list[Callable[[], object] | None] = []
        self.false_refusals: list[bool] = []
        self._is_rival = False

    def _commit(self, kind: Any, changes: Any) -> Any:
        if self.rivals and not self._is_rival:
            rival = self.rivals.pop(0)
            if rival is not None:
                self._is_rival = True
                rival()
                self._is_rival = False
        outcome = super()._commit(kind, changes)
        if not self._is_rival and self.false_refusals and self.false_refusals.pop(0):
            return Rejected(CommitConflictError("Cannot commit: a repeated request met its own commit"))
        return outcome


class TableLab:
    """One table in any catalog, and its files; with `writes_files` those are real, so that a check finds them."""

    catalog: Catalog

    def __init__(self, catalog: Catalog, storage: Storage, clock: LabClock, *, writes_files: bool = False) -> None:
        self.catalog = catalog
        self.storage: Storage = storage
        self.clock = clock
        self.sleeps: list[float] = []
        self.writes_files = writes_files
        self._files = 0

    def add_table(
        self,
        name: tuple[str, ...],
        *,
        partition_by: Sequence[str] = (),
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        schema: Schema = SCHEMA,
    ) -> LoadedTable:
        """Create a table."""
        return self.catalog.create_table(
            name,
            schema,
            build_partition_spec(schema, partition_by),
            properties=properties,
            format_version=format_version,
        )

    @property
    def now_ms(self) -> int:
        """The lab's time."""
        return self.clock.ms

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.clock.ms = value

    def new_id(self) -> str:
        """Return the next of a fixed row of UUIDs."""
        return self.clock.new_id()

    # Committing

    @property
    def pace(self) -> Pace:
        """A pace at which sleeping takes no time, but the clock knows of it."""
        return Pace(self.sleeps.append, lambda: sum(self.sleeps), lambda: 0.5)

    def transaction(self) -> Transaction:
        """Return a new transaction."""
        return Transaction(self.catalog, pace=self.pace, threads=1)

    def load(self, name: tuple[str, ...] = TABLE) -> LoadedTable:
        """Return the table's present state."""
        return self.catalog.load_table(name)

    def commit(self, *actions: Action, loaded: LoadedTable | None = None) -> LoadedTable:
        """Commit actions in one transaction, starting from the present state unless another is given."""
        transaction = self.transaction()
        table = transaction.table(self.load() if loaded is None else loaded)
        for action in actions:
            table.add(action)
        return transaction.commit()[0]

    def rival(self, *actions: Action) -> Callable[[], object]:
        """Return a call that commits actions as another writer."""
        return lambda: self.commit(*actions)

    # Files

    def file(
        self,
        ids: Iterable[int] = (1,),
        k: str | None = "a",
        *,
        v: int | None = None,
        has_metrics: bool = True,
        spec_id: int | None = None,
        partition: tuple[Any, ...] | None = None,
    ) -> DataFile:
        """Describe a data file with rows of these ids, all with one `k`, in the partition that follows from it."""
        values = list(ids)
        metadata = self.load().metadata
        spec = metadata.default_spec if spec_id is None else metadata.spec(spec_id)
        if partition is None:
            partition = tuple({"k": k, "id": values[0], "v": v}[one.name] for one in spec.fields)
        count = len(values)
        metrics: dict[str, Any] = {}
        if has_metrics:
            present = {1: (min(values), max(values), LONG), 2: (k, k, STRING), 3: (v, v, LONG)}
            metrics = {
                "value_counts": dict.fromkeys(present, count),
                "null_value_counts": {at: 0 if low is not None else count for at, (low, _, _) in present.items()},
                "lower_bounds": {
                    at: encode_bound(low, kind) for at, (low, _, kind) in present.items() if low is not None
                },
                "upper_bounds": {at: encode_bound(up, kind) for at, (_, up, kind) in present.items() if up is not None},
            }
        path = self._new_path("parquet", metadata)
        rows: dict[str, list[Any]] = {"id": values, "k": [k] * count, "v": [v] * count}
        return DataFile(
            path,
            FileFormat.PARQUET,
            count,
            self._write(path, rows, SCHEMA_IDS) or 100 * count,
            spec_id=spec.spec_id,
            partition=partition,
            **metrics,
        )

    def position_deletes(self, file: DataFile, count: int = 1, *, names_file: bool = True) -> DataFile:
        """Describe a position delete file about one data file."""
        path = self._new_path("parquet")
        rows: dict[str, list[Any]] = {"file_path": [file.file_path] * count, "pos": list(range(count))}
        return DataFile(
            path,
            FileFormat.PARQUET,
            count,
            self._write(path, rows, {"file_path": 2147483546, "pos": 2147483545}) or 50,
            FileContent.POSITION_DELETES,
            file.spec_id,
            file.partition,
            referenced_data_file=file.file_path if names_file else None,
        )

    def equality_deletes(
        self, ids: Sequence[int] = (1,), *, spec_id: int | None = None, partition: tuple[Any, ...] = ()
    ) -> DataFile:
        """Describe an equality delete file by `id`."""
        path = self._new_path("parquet")
        return DataFile(
            path,
            FileFormat.PARQUET,
            len(ids),
            self._write(path, {"id": list(ids)}, SCHEMA_IDS) or 60,
            FileContent.EQUALITY_DELETES,
            self.load().metadata.default_spec_id if spec_id is None else spec_id,
            partition,
            equality_ids=(1,),
            value_counts={1: len(ids)},
            null_value_counts={1: 0},
            lower_bounds={1: encode_bound(min(ids), LONG)},
            upper_bounds={1: encode_bound(max(ids), LONG)},
        )

    def vectors(self, positions: Mapping[DataFile, Iterable[int]]) -> tuple[DataFile, ...]:
        """Write deletion vectors of data files into one Puffin file."""
        encoded = encode_deletion_vector_file(
            {file.file_path: DeletionVector(sorted(at)) for file, at in positions.items()}, created_by="tests"
        )
        path = self._new_path("puffin")
        self.storage.create(path, encoded.data)
        return tuple(
            DataFile(
                path,
                FileFormat.PUFFIN,
                stored.cardinality,
                len(encoded.data),
                FileContent.POSITION_DELETES,
                file.spec_id,
                file.partition,
                referenced_data_file=file.file_path,
                content_offset=stored.content_offset,
                content_size_in_bytes=stored.content_size_in_bytes,
            )
            for file, stored in zip(positions, encoded.vectors, strict=True)
        )

    def positions(self, vector: DataFile) -> list[int]:
        """Return the positions in a deletion vector."""
        assert vector.content_offset is not None and vector.content_size_in_bytes is not None
        return list(
            read_deletion_vector(
                lambda at, length: self.storage.read_range(vector.file_path, at, length),
                vector.content_offset,
                vector.content_size_in_bytes,
            )
        )

    def _write(self, path: str, rows: Mapping[str, list[Any]], field_ids: Mapping[str, int]) -> int:
        """Write a Parquet file of these rows where files are real, and return its size; else 0."""
        if not self.writes_files:
            return 0
        fields = [
            pa.field(
                name,
                pa.string() if name in ("k", "file_path") else pa.int64(),
                metadata={"PARQUET:field_id": str(field_ids[name])},
            )
            for name in rows
        ]
        buffer = io.BytesIO()
        pq.write_table(pa.table(dict(rows), pa.schema(fields)), buffer, compression="none")
        self.storage.create(path, buffer.getvalue())
        return len(buffer.getvalue())

    def _new_path(self, extension: str, metadata: TableMetadata | None = None) -> str:
        self._files += 1
        location = (self.load().metadata if metadata is None else metadata).location
        return f"{location}/data/{self._files:05d}.{extension}"

    # Looking

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot."""
        found = self.load().metadata.current_snapshot
        assert found is not None
        return found

    @property
    def summary(self) -> Mapping[str, str]:
        """The current snapshot's summary."""
        assert self.snapshot.summary is not None
        return self.snapshot.summary

    def head(self, branch: str = MAIN_BRANCH) -> Snapshot | None:
        """Return the snapshot of a branch, None where there is none."""
        metadata = self.load().metadata
        return metadata.ref_snapshot(branch) if metadata.find_ref(branch) is not None else None

    def manifests(self, snapshot: Snapshot | None = None) -> list[ManifestFile]:
        """Return the manifests of a snapshot, the current one unless given."""
        return read_manifest_list(self.storage, self.snapshot if snapshot is None else snapshot)

    def entries(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        """Return all entries of a snapshot, with what they inherit."""
        metadata = self.load().metadata
        found: list[ManifestEntry] = []
        for manifest in self.manifests(snapshot):
            kind = metadata.spec(manifest.partition_spec_id).partition_type(
                metadata.current_schema, other_schemas=metadata.schemas
            )
            data = self.storage.read(manifest.manifest_path)
            found += iter_entries(decode_manifest(data, manifest=manifest, partition_type=kind))
        return found

    def live(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        """Return the live entries of a snapshot."""
        return [one for one in self.entries(snapshot) if one.is_live]

    def paths(self, snapshot: Snapshot | None = None) -> set[str]:
        """Return the paths of the live data files."""
        live = self.live(snapshot)
        found = [one.data_file.file_path for one in live if one.data_file.content is FileContent.DATA]
        assert len(found) == len(set(found)), "a data file is live twice"
        return set(found)

    def deletes(self, snapshot: Snapshot | None = None) -> list[DataFile]:
        """Return the live delete files and deletion vectors."""
        return [one.data_file for one in self.live(snapshot) if one.data_file.content is not FileContent.DATA]

    def stored(self) -> set[str]:
        """Return the locations of all files in storage."""
        return {one.path for one in self.storage.list(self.catalog.warehouse)}

    def check_readable(self) -> None:
        """Check that every manifest list and manifest of every snapshot is there and can be read."""
        for snapshot in self.load().metadata.snapshots:
            self.live(snapshot)


class Lab(TableLab):
    """One table, in a memory catalog that can be told to lose answers."""

    catalog: LabCatalog

    def __init__(
        self,
        *,
        partition_by: Sequence[str] = (),
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        storage: Storage | None = None,
        schema: Schema = SCHEMA,
    ) -> None:
        clock = LabClock()
        kept: Storage = MemoryStorage(now_ms=clock.now) if storage is None else storage
        self.pointers = FaultyPointers()
        catalog = LabCatalog(kept, self.pointers, now_ms=clock.now, new_id=clock.new_id)
        super().__init__(catalog, kept, clock)
        self.catalog.create_namespace(("db",))
        self.add_table(
            TABLE, partition_by=partition_by, format_version=format_version, properties=properties, schema=schema
        )


def paths_of(*files: DataFile) -> set[str]:
    """Return the paths of files."""
    return {one.file_path for one in files}
