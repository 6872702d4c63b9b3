"""All metadata tables by name."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.metadata_tables.tables import (
    METADATA_TABLES,
    find_metadata_table,
    metadata_table_schema,
    read_metadata_table,
)
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from tests.support.builders import schema
from tests.support.tables import TableBuilder

OF_SNAPSHOT = {"entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes"}
NAMES = [
    "entries",
    "files",
    "data_files",
    "delete_files",
    "history",
    "metadata_log_entries",
    "snapshots",
    "refs",
    "manifests",
    "partitions",
    "all_data_files",
    "all_delete_files",
    "all_files",
    "all_manifests",
    "all_entries",
    "position_deletes",
]


def busy_table(**options: Any) -> TableBuilder:
    table = TableBuilder(schema(), **options)
    kind = options.get("partition_by", ())
    (file, *_) = table.append([{"id": 1, "ts": 0, "kind": "a"}, {"id": 2, "ts": 0, "kind": "a"}])
    assert not kind or file.partition
    if options["format_version"] == 2:
        table.commit(table.write_position_deletes({file: [1]}))
    elif options["format_version"] == 3:
        table.commit(*table.write_vectors({file: [1]}))
    return table


def test_sixteen_metadata_tables_match_iceberg_java() -> None:
    assert list(METADATA_TABLES) == NAMES
    assert {name for name, one in METADATA_TABLES.items() if one.is_of_snapshot} == OF_SNAPSHOT


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partition_by", [(), ("day(ts)", "kind")])
def test_every_table_has_its_schema_with_and_without_rows(version: int, partition_by: tuple[str, ...]) -> None:
    empty = TableBuilder(schema(), partition_by=partition_by, format_version=version).load()
    full = busy_table(partition_by=partition_by, format_version=version).load()
    for name in NAMES:
        expected = metadata_table_schema(full.metadata, name)
        assert metadata_table_schema(empty.metadata, name).equals(expected)
        without, found = read_metadata_table(empty, name), read_metadata_table(full, name)
        assert without.schema.equals(expected)
        assert found.schema.equals(expected)
        found.validate(full=True)
        assert without.num_rows == (1 if name == "metadata_log_entries" else 0)
        has_rows = version > 1 or "delete" not in name
        assert (found.num_rows > 0) is has_rows


def test_tables_can_be_written_to_parquet_and_pickled() -> None:
    full = busy_table(partition_by=["kind"], format_version=2).load()
    for name in NAMES:
        found = read_metadata_table(full, name)
        sink = pa.BufferOutputStream()
        pq.write_table(found, sink)
        assert pickle.loads(pickle.dumps(found)).equals(found)


def test_names_are_case_insensitive_and_unknown_ones_refused_with_the_valid() -> None:
    table = busy_table(format_version=2).load()
    assert read_metadata_table(table, "Snapshots").num_rows == 2
    assert find_metadata_table("changes") is None
    with pytest.raises(NotFoundError, match="'changes': there is no such table") as caught:
        read_metadata_table(table, "changes")
    assert ", ".join(NAMES) in str(caught.value)
    with pytest.raises(NotFoundError):
        metadata_table_schema(table.metadata, "")


@pytest.mark.parametrize("name", NAMES)
def test_snapshot_tables_travel_in_time_and_the_others_refuse(name: str) -> None:
    table = busy_table(format_version=2)
    table.append([{"id": 3}])
    loaded = table.load()
    choice = SnapshotChoice(snapshot_id=1)
    if name not in OF_SNAPSHOT:
        with pytest.raises(InvalidRequestError, match="it belongs to the whole table"):
            read_metadata_table(loaded, name, choice=choice)
        return
    then, now = read_metadata_table(loaded, name, choice=choice), read_metadata_table(loaded, name)
    assert then.schema.equals(now.schema)
    assert not then.equals(now)


def test_manifest_cache_serves_later_reads() -> None:
    table = busy_table(format_version=2)
    loaded = table.load()
    cache = ManifestCache()
    first = read_metadata_table(loaded, "files", cache=cache)
    for manifest in read_metadata_table(loaded, "manifests").column("path").to_pylist():
        table.storage.delete(manifest)
    assert read_metadata_table(loaded, "files", cache=cache).equals(first)
    assert read_metadata_table(loaded, "files", columns=["file_path"], cache=cache).num_rows == 2
