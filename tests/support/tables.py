"""Whole tables for tests: files, manifests, snapshots and metadata on any storage.

    table = TableBuilder(schema, partition_by=["day(ts)"], format_version=3)
    first = table.write_data(rows)                       # a DataFile; rows are dicts of values, or an Arrow table
    table.commit(first)                                  # a snapshot
    table.commit(*table.write_vectors({first: [0, 2]}))  # deletes the first and third row
    table.update_schema(lambda u: u.rename_column("a", "b"))
    loaded = table.load()                                # what a catalog would return

Only codecs are used: nothing here knows of the code that plans, reads or commits. Ids, names and times are
counted, so that a table is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file
from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import decode_manifest_list, encode_manifest_list
from frazil.codec.partition_arrow import values_of as partition_values_of
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.expr.columns.transforms import transform_column
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.partitioning import PartitionSpec, build_partition_spec
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, SnapshotLogEntry, SnapshotRef
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import StructType
from frazil.spec.upgrade import upgrade_table_metadata
from frazil.storage.base import Storage
from frazil.storage.memory import MemoryStorage
from tests.support.equality_delete_writer import position_delete_schema
from tests.support.file_writers import Rows, encode_file, metrics_of, rows_to_table, split_offsets_of, table_to_rows

START_MS = 1_700_000_000_000
STEP_MS = 60_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
UNIQUE_SUFFIX = "5e0f"
Place = tuple[str, int | None]


class TableBuilder:
    """A table under construction; `metadata` is its present state."""

    def __init__(
        self,
        schema: Schema,
        *,
        partition_by: Sequence[str] = (),
        format_version: int = 2,
        storage: Storage | None = None,
        location: str = "memory://lake/db/t",
        properties: Mapping[str, str] | None = None,
        identifier: tuple[str, ...] = ("db", "t"),
        keeps_ids: bool = False,
    ) -> None:
        """Make an empty table. Ids of the schema are new, as in any new table, unless `keeps_ids`."""
        self.storage: Storage = MemoryStorage() if storage is None else storage
        self.identifier = identifier
        self.metadata: TableMetadata = new_table_metadata(
            schema,
            build_partition_spec(schema, partition_by),
            location=location,
            properties=properties,
            format_version=format_version,
            uuid=UUID,
            now_ms=START_MS,
        )
        if keeps_ids:
            self.metadata = replace(
                self.metadata,
                schemas=(schema,),
                current_schema_id=schema.schema_id,
                last_column_id=schema.highest_field_id,
                partition_specs=(build_partition_spec(schema, partition_by),),
            )
        self._files = 0
        self._snapshots = 0
        self._manifests = 0
        self._versions = 0

    # --- the present state

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.current_schema

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.metadata.default_spec

    @property
    def snapshot(self) -> Snapshot | None:
        """The current snapshot."""
        return self.metadata.current_snapshot

    def load(self) -> LoadedTable:
        """Write a metadata file and return the table as a catalog would."""
        self._versions += 1
        path = f"{self.metadata.location}/metadata/{self._versions:05d}-{UUID}.metadata.json"
        self.storage.create(path, encode_table_metadata(self.metadata))
        return LoadedTable(self.identifier, self.metadata, path, self.storage)

    # --- files

    def write_data(
        self,
        rows: Rows | pa.Table,
        *,
        file_format: FileFormat | str = FileFormat.PARQUET,
        schema: Schema | None = None,
        spec: PartitionSpec | None = None,
        partition: tuple[Any, ...] | None = None,
        has_metrics: bool = True,
        first_row_id: int | None = None,
        **options: Any,
    ) -> DataFile:
        """Write a data file; all of its rows must be of one partition, which is computed where it is not given.

        `schema` is the one to write with, the current one unless told; `options` go to the format's writer
        (`with_ids=False`, `row_group_size=`, `store_schema=True`, `compression=`, ...).
        """
        schema = self.schema if schema is None else schema
        spec = self.spec if spec is None else spec
        table = rows_to_table(rows, schema) if isinstance(rows, list) else rows
        if partition is None:
            partition = self.partition_of(table, schema, spec)
        return self._store(
            table,
            schema,
            file_format,
            options,
            has_metrics=has_metrics,
            spec_id=spec.spec_id,
            partition=partition,
            first_row_id=first_row_id,
        )

    def write_partitions(self, rows: Rows | pa.Table, **options: Any) -> list[DataFile]:
        """Write rows of several partitions, a data file for each, in the order in which partitions first occur."""
        schema, spec = options.get("schema") or self.schema, options.get("spec") or self.spec
        given = rows if isinstance(rows, list) else table_to_rows(rows, schema)
        groups: dict[tuple[Any, ...], Rows] = {}
        for row in given:
            key = self.partition_of(rows_to_table([row], schema), schema, spec)
            groups.setdefault(key, []).append(row)
        return [self.write_data(group, partition=key, **options) for key, group in groups.items()]

    def partition_of(self, table: pa.Table, schema: Schema, spec: PartitionSpec) -> tuple[Any, ...]:
        """Return the one partition tuple of some rows."""
        values: list[Any] = []
        kind = self.partition_type(spec)
        for one, part in zip(spec.fields, kind.fields, strict=True):
            if one.transform.is_void:
                values.append(None)
                continue
            column: Any = table
            for name in schema.name_of(one.source_id).split("."):
                column = column.column(name) if isinstance(column, pa.Table) else pc.struct_field(column, name)
            source = schema.field(one.source_id).field_type
            found = set(partition_values_of(transform_column(one.transform, column, source), part.field_type))
            assert len(found) == 1, f"rows are of several partitions: {found}"
            values.append(found.pop())
        return tuple(values)

    def partition_type(self, spec: PartitionSpec) -> StructType:
        """Return the type of a spec's partition tuples."""
        return spec.partition_type(self.schema, other_schemas=self.metadata.schemas)

    def write_position_deletes(
        self,
        deletes: Mapping[Any, Iterable[int]],
        *,
        file_format: FileFormat | str = FileFormat.PARQUET,
        rows: Mapping[tuple[str, int], dict[str, Any]] | None = None,
        names_file: bool = False,
        spec: PartitionSpec | None = None,
        partition: tuple[Any, ...] | None = None,
        has_metrics: bool = True,
        **options: Any,
    ) -> DataFile:
        """Write a position delete file: positions by data file. `rows` adds the deleted rows, by path and position.

        The partition is that of the first data file unless it is given. With `names_file` the entry's
        `referenced_data_file` is set, as for files about one data file only.
        """
        by_file: list[tuple[DataFile | str, Iterable[int]]] = list(deletes.items())
        first = by_file[0][0]
        if isinstance(first, DataFile):
            spec = self.metadata.spec(first.spec_id) if spec is None else spec
            partition = first.partition if partition is None else partition
        spec = self.spec if spec is None else spec
        pairs = sorted((_path(file), pos) for file, positions in by_file for pos in positions)
        schema = position_delete_schema(None if rows is None else self.schema.struct)
        content: Rows = [{DELETE_FILE_PATH.name: path, DELETE_POS.name: pos} for path, pos in pairs]
        if rows is not None:
            for row, key in zip(content, pairs, strict=True):
                row["row"] = rows[key]
        return self._store(
            rows_to_table(content, schema),
            schema,
            file_format,
            options,
            has_metrics=has_metrics,
            full_bounds=True,
            content=FileContent.POSITION_DELETES,
            spec_id=spec.spec_id,
            partition=partition or (),
            referenced_data_file=_path(first) if names_file else None,
        )

    def write_equality_deletes(
        self,
        rows: Rows | pa.Table,
        columns: Sequence[str | int],
        *,
        file_format: FileFormat | str = FileFormat.PARQUET,
        schema: Schema | None = None,
        other_columns: Sequence[str] = (),
        spec: PartitionSpec | None = None,
        partition: tuple[Any, ...] = (),
        has_metrics: bool = True,
        **options: Any,
    ) -> DataFile:
        """Write an equality delete file that compares some columns, by name or id."""
        schema = self.schema if schema is None else schema
        spec = self.spec if spec is None else spec
        ids = [schema.field(one).field_id for one in columns]
        stored = schema.project([*ids, *(schema.field(one).field_id for one in other_columns)])
        table = rows_to_table(rows, stored) if isinstance(rows, list) else rows
        return self._store(
            table,
            stored,
            file_format,
            options,
            has_metrics=has_metrics,
            content=FileContent.EQUALITY_DELETES,
            spec_id=spec.spec_id,
            partition=partition,
            equality_ids=tuple(ids),
        )

    def write_vectors(self, deletes: Mapping[DataFile, Iterable[int]]) -> list[DataFile]:
        """Write deletion vectors of several data files into one Puffin file."""
        vectors = {file.file_path: DeletionVector(positions) for file, positions in deletes.items()}
        encoded = encode_deletion_vector_file(vectors, created_by="frazil tests")
        path = self._new_path("puffin")
        self.storage.create(path, encoded.data)
        return [
            DataFile(
                path,
                FileFormat.PUFFIN,
                stored.cardinality,
                len(encoded.data),
                FileContent.POSITION_DELETES,
                file.spec_id,
                file.partition,
                referenced_data_file=stored.referenced_data_file,
                content_offset=stored.content_offset,
                content_size_in_bytes=stored.content_size_in_bytes,
            )
            for file, stored in zip(deletes, encoded.vectors, strict=True)
        ]

    def _store(
        self,
        table: pa.Table,
        schema: Schema,
        file_format: FileFormat | str,
        options: dict[str, Any],
        *,
        has_metrics: bool,
        full_bounds: bool = False,
        **fields: Any,
    ) -> DataFile:
        data = encode_file(table, schema, file_format, **options)
        path = self._new_path(str(FileFormat(file_format)))
        self.storage.create(path, data)
        if has_metrics and FileFormat(file_format) is not FileFormat.AVRO:
            metrics = metrics_of(table, schema, bound_length=None if full_bounds else 16)
            fields |= vars(metrics)
        if FileFormat(file_format) is FileFormat.PARQUET:
            fields["split_offsets"] = split_offsets_of(data)
        return DataFile(path, FileFormat(file_format), table.num_rows, len(data), **fields)

    def _new_path(self, extension: str) -> str:
        self._files += 1
        return f"{self.metadata.location}/data/{self._files:05d}-{UNIQUE_SUFFIX}.{extension}"

    # --- snapshots

    def commit(
        self,
        *added: DataFile,
        deleted: Iterable[DataFile | str | tuple[str, int | None]] = (),
        operation: str | None = None,
        manifests: int = 1,
        branch: str = MAIN_BRANCH,
        sequence_numbers: Mapping[str, int] | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Add a snapshot that adds and removes files, as the next commit of a branch.

        Added files go into `manifests` manifests for each content and partition spec. Manifests with a removed
        file are rewritten. `sequence_numbers`, by path, are data sequence numbers that differ from the commit's.
        """
        metadata = self.metadata
        self._snapshots += 1
        snapshot_id = self._snapshots
        ref = metadata.refs.get(branch)
        parent = None if ref is None else metadata.snapshot(ref.snapshot_id)
        kept = [] if parent is None else self.manifests_of(parent)
        removed = {_place(one) for one in deleted}
        kept, gone = self._without(kept, removed, snapshot_id)
        counts = _count(added, gone, parent)
        new = self._new_manifests(added, snapshot_id, manifests, sequence_numbers or {})
        sequence_number = metadata.next_sequence_number
        first_row_id = metadata.next_row_id if metadata.format_version >= 3 else None
        encoded = encode_manifest_list(
            [*new, *kept],
            format_version=metadata.format_version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=None if parent is None else parent.snapshot_id,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
        )
        path = f"{metadata.location}/metadata/snap-{snapshot_id}-1-{UUID}.avro"
        self.storage.create(path, encoded.data)
        now_ms = START_MS + STEP_MS * snapshot_id
        snapshot = Snapshot(
            snapshot_id,
            now_ms,
            path,
            FrozenMap({"operation": operation or _operation(added, removed), **counts, **(summary or {})}),
            None if parent is None else parent.snapshot_id,
            sequence_number,
            metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=None if first_row_id is None else (encoded.next_row_id or 0) - first_row_id,
        )
        is_main = branch == MAIN_BRANCH
        log = (*metadata.snapshot_log, SnapshotLogEntry(now_ms, snapshot_id)) if is_main else metadata.snapshot_log
        old = metadata.refs.get(branch)
        self.metadata = replace(
            metadata,
            snapshots=metadata.snapshots.with_added(snapshot),
            current_snapshot_id=snapshot_id if is_main else metadata.current_snapshot_id,
            snapshot_log=log,
            refs=FrozenMap(
                {
                    **metadata.refs,
                    branch: SnapshotRef(snapshot_id) if old is None else replace(old, snapshot_id=snapshot_id),
                }
            ),
            last_sequence_number=sequence_number,
            last_updated_ms=now_ms,
            next_row_id=encoded.next_row_id if encoded.next_row_id is not None else metadata.next_row_id,
        )
        return snapshot

    def commit_vectors(self, added: Sequence[DataFile], replaced: Iterable[DataFile] = ()) -> Snapshot:
        """Commit deletion vectors in place of others, which may share a Puffin file with vectors that stay."""
        gone = {(one.file_path, one.content_offset) for one in replaced}
        return self.commit(*added, deleted=gone)

    def append(self, rows: Rows | pa.Table, **options: Any) -> list[DataFile]:
        """Write rows, a file for each partition, and commit them."""
        files = self.write_partitions(rows, **options) if self.spec.fields else [self.write_data(rows, **options)]
        self.commit(*files)
        return files

    def manifests_of(self, snapshot: Snapshot) -> list[ManifestFile]:
        """Return the manifests of a snapshot."""
        assert snapshot.manifest_list is not None
        return decode_manifest_list(self.storage.read(snapshot.manifest_list), path=snapshot.manifest_list)

    def entries_of(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return the entries of a manifest, with what they inherit."""
        kind = self.partition_type(self.metadata.spec(manifest.partition_spec_id))
        data = self.storage.read(manifest.manifest_path)
        return list(iter_entries(decode_manifest(data, manifest=manifest, partition_type=kind)))

    def live_files(self) -> list[ManifestEntry]:
        """Return the live entries of the current snapshot, delete files included."""
        found = [] if self.snapshot is None else self.manifests_of(self.snapshot)
        return [entry for one in found for entry in self.entries_of(one) if entry.is_live]

    def _new_manifests(
        self, added: Sequence[DataFile], snapshot_id: int, manifests: int, sequence_numbers: Mapping[str, int]
    ) -> list[ManifestFile]:
        groups: dict[tuple[ManifestContent, int], list[DataFile]] = {}
        for file in added:
            content = ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
            groups.setdefault((content, file.spec_id), []).append(file)
        made = []
        for (content, spec_id), files in groups.items():
            for part in _cut(files, manifests):
                entries = [
                    ManifestEntry(EntryStatus.ADDED, file, snapshot_id, sequence_numbers.get(file.file_path))
                    for file in part
                ]
                made.append(self._write_manifest(entries, content, spec_id, snapshot_id))
        return made

    def _without(
        self, manifests: list[ManifestFile], removed: set[Place], snapshot_id: int
    ) -> tuple[list[ManifestFile], list[DataFile]]:
        """Return manifests with removed files marked as such; those that held none are kept as they are."""
        result: list[ManifestFile] = []
        gone: list[DataFile] = []
        for manifest in manifests:
            entries = self.entries_of(manifest) if removed else []
            hit = {_place(one.data_file) for one in entries if one.is_live} & removed
            if not hit:
                if manifest.has_live_files:
                    result.append(manifest)
                continue
            gone += [one.data_file for one in entries if _place(one.data_file) in hit and one.is_live]
            rewritten = [
                replace(one, status=EntryStatus.DELETED, snapshot_id=snapshot_id)
                if _place(one.data_file) in hit
                else replace(one, status=EntryStatus.EXISTING)
                for one in entries
                if one.is_live
            ]
            result.append(self._write_manifest(rewritten, manifest.content, manifest.partition_spec_id, snapshot_id))
        missing = removed - {_place(one) for one in gone}
        assert not missing, f"not in the table: {missing}"
        return result, gone

    def _write_manifest(
        self, entries: list[ManifestEntry], content: ManifestContent, spec_id: int, snapshot_id: int
    ) -> ManifestFile:
        self._manifests += 1
        path = f"{self.metadata.location}/metadata/{UUID}-m{self._manifests}.avro"
        encoded = encode_manifest(
            entries,
            path=path,
            spec=self.metadata.spec(spec_id),
            schema=self.schema,
            other_schemas=self.metadata.schemas,
            format_version=self.metadata.format_version,
            snapshot_id=snapshot_id,
            content=content,
        )
        self.storage.create(path, encoded.data)
        return encoded.manifest

    # --- changes of metadata

    def update_schema(self, change: Callable[[SchemaUpdate], object]) -> Schema:
        """Make a schema current: `change` is called with an update of the present one."""
        metadata = self.metadata
        update = SchemaUpdate(
            self.schema, metadata.last_column_id, metadata.format_version, specs=metadata.partition_specs
        )
        change(update)
        evolved = update.apply(schema_id=max(one.schema_id for one in metadata.schemas) + 1)
        self.metadata = replace(
            metadata,
            schemas=(*metadata.schemas, evolved.schema),
            current_schema_id=evolved.schema.schema_id,
            last_column_id=evolved.last_column_id,
        )
        return evolved.schema

    def update_spec(self, change: Callable[[PartitionSpecUpdate], object]) -> PartitionSpec:
        """Make a partition spec the default: `change` is called with an update of the present one."""
        metadata = self.metadata
        update = PartitionSpecUpdate(
            self.schema,
            metadata.partition_specs,
            self.spec,
            format_version=metadata.format_version,
            last_partition_id=metadata.last_partition_id,
        )
        change(update)
        evolved = update.build()
        specs = (*metadata.partition_specs, evolved.spec) if evolved.is_new else metadata.partition_specs
        self.metadata = replace(
            metadata,
            partition_specs=specs,
            default_spec_id=evolved.spec.spec_id,
            last_partition_id=max(metadata.last_partition_id, evolved.last_partition_id),
        )
        return evolved.spec

    def set_properties(self, **properties: str) -> None:
        """Set table properties; `a__b_c` is the property `a.b-c`."""
        named = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
        self.metadata = replace(self.metadata, properties=FrozenMap({**self.metadata.properties, **named}))

    def set_ref(self, name: str, snapshot_id: int, kind: Any = "branch") -> None:
        """Make or move a branch or a tag."""
        refs = {**self.metadata.refs, name: SnapshotRef(snapshot_id, kind)}
        self.metadata = replace(self.metadata, refs=FrozenMap(refs))

    def upgrade(self, format_version: int) -> None:
        """Raise the format version."""
        self.metadata = upgrade_table_metadata(self.metadata, format_version)


def _path(file: DataFile | str) -> str:
    return file.file_path if isinstance(file, DataFile) else file


def _place(file: DataFile | str | Place) -> Place:
    """Return what tells a file from others: its path, and for a deletion vector where it is in the file."""
    if isinstance(file, DataFile):
        return (file.file_path, file.content_offset)
    return (file, None) if isinstance(file, str) else file


def _cut(files: list[DataFile], parts: int) -> list[list[DataFile]]:
    size = -(-len(files) // max(parts, 1))
    return [files[at : at + size] for at in range(0, len(files), size)]


def _operation(added: Sequence[DataFile], removed: set[Place]) -> str:
    has_data = any(one.content is FileContent.DATA for one in added)
    has_deletes = any(one.content is not FileContent.DATA for one in added)
    if removed or (has_data and has_deletes):
        return "overwrite"
    return "delete" if has_deletes else "append"


def _count(added: Sequence[DataFile], removed: Sequence[DataFile], parent: Snapshot | None) -> dict[str, str]:
    """Return a snapshot's summary: what was added and removed, and the totals with it."""
    before = {} if parent is None or parent.summary is None else parent.summary
    plus, minus = _totals(added), _totals(removed)
    counts: dict[str, int] = {}
    for name, value in plus.items():
        counts[f"added-{name}"] = value
        counts[_REMOVED.get(name, f"removed-{name}")] = minus[name]
    shown = {name: str(value) for name, value in counts.items() if value > 0}
    totals = {f"total-{name}": str(int(before.get(f"total-{name}", 0)) + plus[name] - minus[name]) for name in plus}
    return {**shown, **totals}


_REMOVED = {"data-files": "deleted-data-files", "records": "deleted-records"}


def _totals(files: Sequence[DataFile]) -> dict[str, int]:
    data = [one for one in files if one.content is FileContent.DATA]
    positions = [one for one in files if one.content is FileContent.POSITION_DELETES]
    equalities = [one for one in files if one.content is FileContent.EQUALITY_DELETES]
    return {
        "data-files": len(data),
        "delete-files": len(files) - len(data),
        "records": sum(one.record_count for one in data),
        "files-size": sum(one.content_size_in_bytes or one.file_size_in_bytes for one in files),
        "position-deletes": sum(one.record_count for one in positions),
        "equality-deletes": sum(one.record_count for one in equalities),
    }
