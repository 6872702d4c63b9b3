"""A table with files of every kind, and ways to damage one thing of it at a time."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa

import frazil
from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from tests.support.copied_tables import copy_table
from tests.support.equality_delete_writer import write_equality_deletes

DDL = "id bigint not null, ts timestamptz, kind string, score double, place struct<x: bigint, name: string>"


def rows(start: int, end: int, kind: str = "a") -> pa.Table:
    """Rows of one kind, some of their values null or NaN."""
    ids = range(start, end)
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([moment + datetime.timedelta(hours=at) for at in ids], pa.timestamp("us", "UTC")),
            "kind": [kind for _ in ids],
            "score": pa.array([None if at % 4 == 0 else float("nan") if at % 4 == 1 else at * 0.5 for at in ids]),
            "place": [{"x": at, "name": f"place {at}"} if at % 3 else None for at in ids],
        }
    )


@cache
def _sound_table(format_version: int, properties: FrozenMap[str, str]) -> frazil.Table:
    table = frazil.connect("memory:").create_table(
        "db.t", DDL, partition_by=["kind"], format_version=format_version, properties=properties
    )
    for start, kind in ((0, "a"), (10, "b")):
        table.append(pa.concat_tables([rows(start, start + 5, kind), rows(start + 5, start + 10, "c")]))
    if format_version > 1:
        _delete_rows(table)
    table.create_tag("kept")
    return table


def _delete_rows(table: frazil.Table) -> None:
    files = [task.data_file for task in table.scan().plan().tasks]
    loaded = table.state
    assert loaded.metadata.current_snapshot is not None
    some = [DeletedRows.of(files[0], [1, 3]), DeletedRows.of(files[1], [0])]
    write = write_deletion_vectors if table.format_version >= 3 else write_position_deletes
    deletes = [
        *write(some, loaded),
        *write_equality_deletes(pa.table({"id": [12]}), loaded, ["id"], partition=("b",)),
    ]
    read = ReadSet(loaded.metadata.current_snapshot.snapshot_id, TRUE)
    commit_actions(table._catalog, loaded, RowDelta(tuple(deletes), read, "delete", tuple(files[:2])))
    table.refresh()


class Damaged:
    """A table in memory: two appends of two partitions each, deletes of every kind its version has, and a tag."""

    def __init__(self, format_version: int = 3, properties: Mapping[str, str] | None = None) -> None:
        self.lake = frazil.connect("memory:")
        self.table = copy_table(_sound_table(format_version, FrozenMap(properties or {})), self.lake)

    @property
    def loaded(self) -> LoadedTable:
        """The state to damage."""
        return self.table.state

    @property
    def storage(self) -> Storage:
        """Where the files are."""
        return self.loaded.storage

    @property
    def snapshot(self) -> Snapshot:
        """The current snapshot."""
        found = self.table.current_snapshot
        assert found is not None
        return found

    def manifests(self, content: ManifestContent = ManifestContent.DATA) -> list[ManifestFile]:
        """The current snapshot's manifests of data or of deletes, the newest first."""
        return [one for one in read_manifest_list(self.storage, self.snapshot) if one.content is content]

    def files(self, content: ManifestContent = ManifestContent.DATA) -> list[DataFile]:
        """The current snapshot's live files."""
        return [one.data_file for manifest in self.manifests(content) for one in self._entries(manifest)]

    def vectors(self) -> list[DataFile]:
        """The current snapshot's deletion vectors."""
        return [one for one in self.files(ManifestContent.DELETES) if one.is_deletion_vector]

    def _entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        spec = self.table.metadata.spec(manifest.partition_spec_id)
        kind = spec.partition_type(self.table.schema)
        data = self.storage.read(manifest.manifest_path)
        return list(iter_entries(decode_manifest(data, partition_type=kind, path=manifest.manifest_path)))

    def change_bytes(self, path: str, change: Callable[[bytes], bytes]) -> None:
        """Put other bytes into a file."""
        self.storage.replace(path, change(self.storage.read(path)))

    def change_list(
        self, change: Callable[[list[ManifestFile]], list[ManifestFile]], snapshot: Snapshot | None = None
    ) -> None:
        """Write a snapshot's manifest list anew, the current one's unless given, its lines changed."""
        target = self.snapshot if snapshot is None else snapshot
        assert target.manifest_list is not None
        encoded = encode_manifest_list(
            change(read_manifest_list(self.storage, target)),
            format_version=self.table.format_version,
            snapshot_id=target.snapshot_id,
            parent_snapshot_id=target.parent_snapshot_id,
            sequence_number=target.sequence_number,
            first_row_id=target.first_row_id,
        )
        self.storage.replace(target.manifest_list, encoded.data)

    def change_line(self, content: ManifestContent = ManifestContent.DATA, **changes: Any) -> str:
        """Change the current list's line of the newest manifest of a content; return the manifest's path."""
        target = self.manifests(content)[0]
        self.change_list(lambda lines: [replace(one, **changes) if one == target else one for one in lines])
        return target.manifest_path

    def _change_lines(self, path: str, changes: Mapping[str, Any]) -> None:
        """Change the lines of a manifest in every list that has it."""
        for snapshot in self.table.snapshots:
            self.change_list(
                lambda lines: [replace(one, **changes) if one.manifest_path == path else one for one in lines], snapshot
            )

    def change_entries(
        self,
        change: Callable[[list[ManifestEntry]], list[ManifestEntry]],
        content: ManifestContent = ManifestContent.DATA,
    ) -> str:
        """Write the newest manifest of a content anew, its entries changed, and its lines to go with it."""
        target = self.manifests(content)[0]
        encoded = encode_manifest(
            change(self._entries(target)),
            path=target.manifest_path,
            spec=self.table.metadata.spec(target.partition_spec_id),
            schema=self.table.schema,
            format_version=self.table.format_version,
            snapshot_id=target.added_snapshot_id,
            content=content,
        )
        self.storage.replace(target.manifest_path, encoded.data)
        new = encoded.manifest
        kept: dict[str, Any] = {"manifest_length": new.manifest_length, "partitions": new.partitions}
        for status in ("added", "existing", "deleted"):
            for what in ("files", "rows"):
                kept[f"{status}_{what}_count"] = getattr(new, f"{status}_{what}_count")
        self._change_lines(target.manifest_path, kept)
        return target.manifest_path

    def change_file(self, content: ManifestContent = ManifestContent.DATA, **changes: Any) -> str:
        """Change what the newest manifest of a content says of its first file; return the file's path."""
        path = ""

        def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            nonlocal path
            first, *others = entries
            path = first.data_file.file_path
            return [replace(first, data_file=replace(first.data_file, **changes)), *others]

        self.change_entries(change, content)
        return path

    def with_metadata(self, **changes: Any) -> LoadedTable:
        """Return the state with its metadata changed, as if it had never been written."""
        metadata: TableMetadata = replace(self.table.metadata, **changes)
        return LoadedTable(self.loaded.identifier, metadata, None, self.storage)

    def with_snapshot(self, **changes: Any) -> LoadedTable:
        """Return the state with its current snapshot changed."""
        target = self.snapshot.snapshot_id
        return self.with_metadata(
            snapshots=tuple(
                replace(one, **changes) if one.snapshot_id == target else one for one in self.table.metadata.snapshots
            )
        )
