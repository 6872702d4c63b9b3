"""PyIceberg reads the metadata we write, and we read what it writes. Needs no JVM, so it runs with the unit tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MetadataLogEntry, SnapshotLogEntry, SnapshotRef
from frazil.spec.snapshot_history import snapshot_as_of
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.sorting import build_sort_order
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from tests.support.metadata_builders import LOCATION, START_MS, UUID, snapshot

theirs = pytest.importorskip("pyiceberg.table.metadata")


def full_table(version: int) -> TableMetadata:
    """A table with something in every field PyIceberg knows."""
    point = StructType((NestedField(10, "x", INT, required=True), NestedField(11, "y", INT)))
    schema = Schema(
        (
            NestedField(1, "id", LONG, required=True, doc="the key"),
            NestedField(2, "ts", TIMESTAMPTZ),
            NestedField(3, "kind", STRING),
            NestedField(4, "price", DecimalType(9, 2)),
            NestedField(5, "day", DATE),
            NestedField(6, "points", ListType(7, point)),
            NestedField(8, "tags", MapType(9, STRING, 12, LONG)),
        ),
        identifier_field_ids=(1,),
    )
    table = new_table_metadata(
        schema,
        build_partition_spec(schema, ["day(ts)", "bucket(16, id)", "truncate(4, kind)"]),
        build_sort_order(schema, ["ts desc nulls last", "id"]),
        location=LOCATION,
        properties={"owner": "me", 'quo"ted': "ünï"},
        format_version=version,
        uuid=UUID,
        now_ms=START_MS,
    )
    rows: dict[str, Any] = {"first_row_id": 0, "added_rows": 5} if version >= 3 else {}
    numbers = [0, 0] if version == 1 else [1, 2]
    snapshots = [
        snapshot(1, sequence_number=numbers[0], **rows),
        snapshot(2, 1, sequence_number=numbers[1], summary={"operation": "overwrite", "added-records": "5"}, **rows),
    ]
    blob = BlobMetadata("apache-datasketches-theta-v1", 2, numbers[1], (1,), {"ndv": "3"})  # type: ignore[arg-type]
    return TableMetadata(
        **{
            **{name: getattr(table, name) for name in table.__dataclass_fields__},
            "last_updated_ms": START_MS + 2,
            "last_sequence_number": numbers[1],
            "snapshots": SnapshotList(snapshots),
            "current_snapshot_id": 2,
            "snapshot_log": (SnapshotLogEntry(START_MS + 1, 1), SnapshotLogEntry(START_MS + 2, 2)),
            "metadata_log": (MetadataLogEntry(START_MS, f"{LOCATION}/metadata/00000.metadata.json"),),
            "refs": {
                "main": SnapshotRef(2),
                "audit": SnapshotRef(1, "branch", 3, 1000, 2000),
                "v1": SnapshotRef(1, "tag", max_ref_age_ms=5000),
            },
            "statistics": (StatisticsFile(2, "s3://b/stats.puffin", 100, 40, (blob,)),),
            "partition_statistics": (PartitionStatisticsFile(2, "s3://b/parts.parquet", 30),),
            "next_row_id": 5 if version >= 3 else 0,
        }
    )


def read_by_them(text: bytes) -> Any:
    return theirs.TableMetadataUtil.parse_raw(text.decode())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_frazil_metadata(version: int) -> None:
    ours = full_table(version)
    found = read_by_them(encode_table_metadata(ours))
    assert found.format_version == version
    assert str(found.table_uuid) == UUID
    assert found.location == ours.location
    assert found.properties == ours.properties
    assert found.current_snapshot().snapshot_id == 2
    assert found.current_snapshot().parent_snapshot_id == 1
    assert found.current_snapshot().summary.operation.value == "overwrite"
    assert {name: ref.snapshot_id for name, ref in found.refs.items()} == {"main": 2, "audit": 1, "v1": 1}
    assert found.refs["audit"].min_snapshots_to_keep == 3
    assert [one.snapshot_id for one in found.snapshot_log] == [1, 2]
    assert [str(one.transform) for one in found.spec().fields] == ["day", "bucket[16]", "truncate[4]"]
    assert [one.field_id for one in found.spec().fields] == [1000, 1001, 1002]
    assert found.sort_order().fields[0].source_id == ours.default_sort_order.fields[0].source_id
    assert found.schema().find_column_name(1) == "id"
    assert {one: found.schema().find_column_name(one) for one in ours.current_schema.fields_by_id} == (
        ours.current_schema.names_by_id
    )
    assert (found.last_column_id, found.last_partition_id) == (ours.last_column_id, ours.last_partition_id)


@pytest.mark.parametrize("version", [1, 2])
def test_frazil_reads_pyiceberg_metadata(version: int) -> None:
    ours = full_table(version)
    rewritten = read_by_them(encode_table_metadata(ours)).model_dump_json(exclude_none=True).encode()
    assert decode_table_metadata(rewritten) == ours


@pytest.mark.parametrize("version", [1, 2])
def test_tables_created_by_pyiceberg_are_usable(version: int) -> None:
    schemas = pytest.importorskip("pyiceberg.schema")
    types = pytest.importorskip("pyiceberg.types")
    partitioning = pytest.importorskip("pyiceberg.partitioning")
    transforms = pytest.importorskip("pyiceberg.transforms")
    sorting = pytest.importorskip("pyiceberg.table.sorting")
    made = theirs.new_table_metadata(
        schema=schemas.Schema(
            types.NestedField(40, "id", types.LongType(), required=True),
            types.NestedField(30, "at", types.TimestamptzType(), required=False),
        ),
        partition_spec=partitioning.PartitionSpec(
            partitioning.PartitionField(30, 1000, transforms.DayTransform(), "at_day")
        ),
        sort_order=sorting.SortOrder(sorting.SortField(40, transforms.IdentityTransform())),
        location=LOCATION,
        properties={"format-version": str(version), "owner": "them"},
    )
    table = decode_table_metadata(made.model_dump_json(exclude_none=True).encode())
    assert table.format_version == version
    assert table.current_schema.names_by_id == {1: "id", 2: "at"}
    assert str(table.default_spec.fields[0]) == "1000: at_day: day(2)"
    assert table.current_snapshot is None
    again = read_by_them(encode_table_metadata(table))
    assert again.model_dump(exclude_none=True) == made.model_dump(exclude_none=True)


def test_pyiceberg_reads_an_empty_table_of_every_version() -> None:
    for version in (1, 2, 3):
        schema = Schema((NestedField(1, "id", LONG),))
        table = new_table_metadata(schema, location=LOCATION, format_version=version, uuid=UUID, now_ms=START_MS)
        assert read_by_them(encode_table_metadata(table)).current_snapshot() is None


def test_time_travel_equals_pyiceberg_for_an_ordered_log() -> None:
    ours = full_table(2)
    found = read_by_them(encode_table_metadata(ours))
    for at in (START_MS + 1, START_MS + 2, START_MS + 99):
        expected = next(one for one in reversed(found.snapshot_log) if one.timestamp_ms <= at)
        assert snapshot_as_of(ours, at).snapshot_id == expected.snapshot_id


def test_unknown_fields_that_pyiceberg_drops_are_preserved() -> None:
    document = json.loads(encode_table_metadata(full_table(2)))
    document["snapshots"][0]["new-field"] = {"a": [1]}
    text = json.dumps(document).encode()
    assert "new-field" not in read_by_them(text).model_dump_json()
    assert json.loads(encode_table_metadata(decode_table_metadata(text))) == document
