"""The table of partitions."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.metadata_tables.partitions import partitions
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.types import BINARY, BOOLEAN, DOUBLE, LONG, STRING, UNKNOWN, UUID, DecimalType, FixedType, Type
from tests.support.builders import field, schema
from tests.support.tables import START_MS, STEP_MS, TableBuilder

DAY = 86_400_000_000
SUMS = [
    "record_count",
    "file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
]


def rows(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def committed(snapshot_id: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp((START_MS + STEP_MS * snapshot_id) / 1000, datetime.UTC)


def test_columns_and_types_match_iceberg_java() -> None:
    found = partitions(TableBuilder(schema(), partition_by=["kind"]).load())
    assert [(part.name, str(part.type)) for part in found.schema] == [
        ("partition", "struct<kind: string>"),
        ("spec_id", "int32"),
        ("record_count", "int64"),
        ("file_count", "int32"),
        ("total_data_file_size_in_bytes", "int64"),
        ("position_delete_record_count", "int64"),
        ("position_delete_file_count", "int32"),
        ("equality_delete_record_count", "int64"),
        ("equality_delete_file_count", "int32"),
        ("last_updated_at", "timestamp[us, tz=UTC]"),
        ("last_updated_snapshot_id", "int64"),
    ]
    assert found.num_rows == 0


def test_files_and_deletes_are_summed_per_partition() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    a, b = table.append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "b"}])
    (more,) = table.append([{"id": 4, "kind": "a"}])
    table.commit(table.write_position_deletes({b: [0, 1]}), table.write_position_deletes({b: [0]}))
    table.commit(table.write_equality_deletes([{"id": 1}, {"id": 8}], ["id"], partition=a.partition))
    shown = {row["partition"]["kind"]: row for row in rows(partitions(table.load()))}
    sizes = a.file_size_in_bytes + more.file_size_in_bytes
    assert [shown["a"][name] for name in SUMS] == [2, 2, sizes, 0, 0, 2, 1]
    assert [shown["b"][name] for name in SUMS] == [2, 1, b.file_size_in_bytes, 3, 2, 0, 0]
    assert (shown["a"]["last_updated_snapshot_id"], shown["a"]["last_updated_at"]) == (4, committed(4))
    assert (shown["b"]["last_updated_snapshot_id"], shown["b"]["last_updated_at"]) == (3, committed(3))


def test_only_live_files_are_counted_and_empty_partitions_omitted() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    a, _ = table.append([{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}])
    table.commit(deleted=[a])
    (row,) = rows(partitions(table.load()))
    assert (row["partition"], row["file_count"], row["last_updated_snapshot_id"]) == ({"kind": "b"}, 1, 1)
    before = partitions(table.load(), choice=SnapshotChoice(snapshot_id=1))
    assert before.num_rows == 2


def test_unpartitioned_table_is_one_row_without_partition_and_spec() -> None:
    table = TableBuilder(schema())
    assert partitions(table.load()).num_rows == 0
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    (row,) = rows(partitions(table.load()))
    assert list(row) == [*SUMS, "last_updated_at", "last_updated_snapshot_id"]
    assert (row["file_count"], row["record_count"], row["last_updated_snapshot_id"]) == (2, 2, 2)


def test_specs_with_different_fields_are_different_partitions() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    table.append([{"id": 1, "kind": "a"}])
    table.update_spec(lambda u: u.add_field("bucket(4, ts)"))
    table.append([{"id": 2, "kind": "a"}])
    found = [(row["partition"], row["spec_id"], row["file_count"]) for row in rows(partitions(table.load()))]
    assert sorted(found, key=lambda one: one[1]) == [
        ({"kind": "a", "ts_bucket_4": None}, 0, 1),
        ({"kind": "a", "ts_bucket_4": None}, 1, 1),
    ]


def test_specs_with_the_same_tuple_share_a_row_under_the_newest_spec() -> None:
    table = TableBuilder(schema(), partition_by=["kind", "bucket(4, id)"])
    table.append([{"id": 1, "kind": "a"}])
    table.update_spec(lambda u: u.remove_field("id_bucket").add_field("bucket(8, id)"))
    table.update_spec(lambda u: u.remove_field("id_bucket_8").add_field("bucket(4, id)", "id_bucket"))
    table.append([{"id": 1, "kind": "a"}])
    (row,) = rows(partitions(table.load()))
    assert row["file_count"] == 2
    assert row["spec_id"] == table.spec.spec_id


def test_last_update_by_an_expired_snapshot_is_unknown() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    table.update_spec(lambda u: u.add_field("bucket(4, id)"))
    table.append([{"id": 1, "kind": "a"}])
    table.append([{"id": 1, "kind": "b"}])
    metadata = table.metadata
    table.metadata = replace(metadata, snapshots=SnapshotList([metadata.snapshot(2)]))
    shown = {row["partition"]["kind"]: row for row in rows(partitions(table.load()))}
    assert (shown["a"]["last_updated_at"], shown["a"]["last_updated_snapshot_id"], shown["a"]["spec_id"]) == (
        None,
        None,
        1,
    )
    assert shown["b"]["last_updated_snapshot_id"] == 2


def test_later_commit_wins_within_one_millisecond() -> None:
    table = TableBuilder(schema(), partition_by=["kind"])
    table.append([{"id": 1, "kind": "a"}])
    table.append([{"id": 2, "kind": "a"}])
    metadata = table.metadata
    same = [replace(one, timestamp_ms=START_MS) for one in metadata.snapshots]
    table.metadata = replace(metadata, snapshots=SnapshotList(reversed(same)))
    (row,) = rows(partitions(table.load()))
    assert row["last_updated_snapshot_id"] == 2


@pytest.mark.parametrize(
    "kind, values",
    [
        (BOOLEAN, [True, False]),
        (DOUBLE, [float("nan"), float("nan"), 0.0, -0.0]),
        (DecimalType(9, 2), [Decimal("1.00"), Decimal("2.00")]),
        (UUID, [uuid.UUID(int=1), uuid.UUID(int=2)]),
        (FixedType(2), [b"ab", b"cd"]),
        (BINARY, [b"", b"x"]),
        (STRING, ["", "x"]),
        (LONG, [None, 0]),
        (UNKNOWN, [None]),
    ],
)
def test_partitions_of_any_type_are_grouped(kind: Type, values: list[Any]) -> None:
    table = TableBuilder(schema(field(1, "c1", kind)), partition_by=["c1"], format_version=3)
    table.commit(
        *(
            DataFile(f"memory://lake/{at}", FileFormat.PARQUET, 1, 1, partition=(one,))
            for at, one in enumerate([*values, *values])
        )
    )
    found = rows(partitions(table.load()))
    distinct = {repr(one) for one in values}
    assert {repr(row["partition"]["c1"]) for row in found} == distinct
    assert sum(row["file_count"] for row in found) == 2 * len(values)
    assert len(found) == len(distinct)


def test_columns_can_be_selected() -> None:
    table = TableBuilder(schema(), partition_by=["kind", "day(ts)"])
    table.append([{"id": 1, "kind": "a", "ts": DAY}])
    found = partitions(table.load(), columns=["file_count", "partition.ts_day"])
    assert rows(found) == [{"file_count": 1, "partition": {"ts_day": datetime.date(1970, 1, 2)}}]
