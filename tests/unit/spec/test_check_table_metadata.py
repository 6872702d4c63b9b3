"""The invariants of table metadata: what is refused, and what only looks wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import InvalidMetadataError, TableNotFoundError, UnsupportedError
from frazil.spec.check_table_metadata import check_same_table, check_table_metadata
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.snapshot import MetadataLogEntry, SnapshotLogEntry, SnapshotRef
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spec.statistics import StatisticsFile
from frazil.spec.transforms import UnknownTransform, parse_transform
from frazil.spec.types import LONG, MAX_FIELD_ID, TIMESTAMP_NS, NestedField
from tests.support import builders
from tests.support.metadata_builders import START_MS, UUID, chain, metadata, snapshot

MINUTE_MS = 60_000


def spec(spec_id: int, *fields: tuple[int, int, str]) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((source,), field_id, f"p{field_id}", parse_transform(how))
            for source, field_id, how in fields
        ),
    )


def order(order_id: int, source_id: int, transform: str = "identity") -> SortOrder:
    one = SortField((source_id,), parse_transform(transform), SortDirection.ASC, NullOrder.NULLS_FIRST)
    return SortOrder(order_id, (one,))


def log(*times_ms: int) -> tuple[SnapshotLogEntry, ...]:
    return tuple(SnapshotLogEntry(one, 1) for one in times_ms)


def files(*times_ms: int) -> tuple[MetadataLogEntry, ...]:
    return tuple(MetadataLogEntry(one, "f") for one in times_ms)


@pytest.mark.parametrize(
    "fields, reason",
    [
        # Identity
        ({"format_version": 0}, "format_version is 0"),
        ({"table_uuid": None}, "table_uuid is missing, and format version 2 requires it"),
        ({"location": ""}, "location is empty"),
        ({"properties": FrozenMap({"a": 1})}, "properties"),
        ({"last_updated_ms": -1}, "last_updated_ms is -1"),
        ({"last_sequence_number": -1}, "last_sequence_number is -1"),
        ({"last_sequence_number": 2**63}, "last_sequence_number is"),
        ({"next_row_id": 5}, "next_row_id is 5, and version 2 has none"),
        ({"format_version": 3, "next_row_id": -1}, "next_row_id is -1"),
        ({"format_version": 1, "last_sequence_number": 1}, "version 1 has none"),
        # Schemas
        ({"schemas": ()}, "current_schema_id is 0, and no schema"),
        ({"current_schema_id": 4}, "current_schema_id is 4, and no schema in schemas has that id"),
        ({"schemas": (builders.schema(), builders.schema())}, "schemas has the schema_id 0 twice"),
        ({"schemas": (builders.schema(schema_id=-1), builders.schema())}, "schemas has the schema_id -1"),
        ({"last_column_id": 2}, "last_column_id is 2, and schema 0 has a field with the id 3"),
        ({"last_column_id": -1}, "last_column_id -1 is not a column id"),
        ({"last_column_id": 2**31 - 1}, "is not a column id"),
        ({"schema": builders.schema(builders.field(-1, "a")), "last_column_id": 5}, "a field with the id -1"),
        (
            {"schema": builders.schema(builders.field(MAX_FIELD_ID + 1, "a")), "last_column_id": MAX_FIELD_ID},
            "ids above 2147483447 are reserved",
        ),
        ({"schema": builders.schema(builders.field(1, "t", TIMESTAMP_NS))}, "t is timestamp_ns, which needs version 3"),
        (
            {"schema": builders.schema(NestedField(1, "a", LONG, initial_default=1))},
            "a has an initial default, which needs version 3",
        ),
        # Partition specs
        ({"partition_specs": ()}, "default_spec_id is 0, and no spec"),
        ({"default_spec_id": 1}, "default_spec_id is 1, and no spec in partition_specs has that id"),
        ({"partition_specs": (spec(0), spec(0))}, "partition_specs has the spec_id 0 twice"),
        ({"partition_specs": (spec(-1), spec(0))}, "partition_specs has the spec_id -1"),
        ({"partition_specs": (spec(0, (1, 1000, "identity")),)}, "last_partition_id is 999, and spec 0 has a field"),
        ({"partition_specs": (spec(0), spec(1, (1, 1001, "void"))), "last_partition_id": 1000}, "with the id 1001"),
        ({"last_partition_id": -1}, "last_partition_id -1"),
        ({"partition_specs": (spec(0, (1, -1, "void")),)}, "an id that is negative"),
        ({"partition_specs": (spec(0, (-1, 1, "void")),)}, "an id that is negative"),
        (
            {"partition_specs": (spec(0, (9, 1000, "identity")),), "last_partition_id": 1000},
            "default_spec_id is 0: the schema has no column with the id 9",
        ),
        (
            {"partition_specs": (spec(0, (3, 1000, "day")),), "last_partition_id": 1000},
            "day does not accept 'kind' of type string",
        ),
        # Sort orders
        ({"default_sort_order_id": 3}, "default_sort_order_id is 3, and no order in sort_orders has that id"),
        ({"sort_orders": (order(1, 1), order(1, 2))}, "sort_orders has the order_id 1 twice"),
        ({"sort_orders": (order(-1, 1),)}, "sort_orders has the order_id -1"),
        ({"sort_orders": (order(1, 9),), "default_sort_order_id": 1}, "default_sort_order_id is 1: the schema has no"),
        # References
        ({"current_snapshot_id": 8}, "current_snapshot_id is 8, and no snapshot in snapshots has that id"),
        ({"refs": {"b": SnapshotRef(9)}}, "refs['b'] names snapshot 9"),
        ({"refs": {"main": SnapshotRef(1)}}, "current_snapshot_id is 2, and the branch main is at 1"),
        ({"refs": {"main": SnapshotRef(2, "tag")}}, "refs['main'] is a tag"),
        ({"refs": {"main": SnapshotRef(2)}, "current_snapshot_id": None}, "the branch main is at 2"),
        # Logs
        ({"snapshot_log": log(START_MS, START_MS - MINUTE_MS - 1)}, "snapshot_log is not in order"),
        ({"metadata_log": files(START_MS, START_MS - MINUTE_MS - 1)}, "metadata_log is not in order"),
        ({"snapshot_log": log(START_MS + 5 + MINUTE_MS)}, "before the last entry of snapshot_log"),
        ({"metadata_log": files(START_MS + 5 + MINUTE_MS)}, "before the last entry of metadata_log"),
        # Keys
        ({"encryption_keys": (EncryptedKey("k", b""), EncryptedKey("k", b""))}, "the key_id 'k' twice"),
    ],
)
def test_metadata_violating_an_invariant_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        check_table_metadata(chain(2, **fields))
    assert caught.value.message.startswith("Cannot use the table metadata: ")
    assert reason in caught.value.message
    assert caught.value.context["heading"]


def test_current_snapshot_without_main_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="current_snapshot_id is 2, and refs has no branch main"):
        check_table_metadata(replace(chain(2), refs=FrozenMap()))


def test_newer_version_is_unsupported_rather_than_corrupt() -> None:
    with pytest.raises(UnsupportedError, match="format_version 4"):
        check_table_metadata(metadata(format_version=4))


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"snapshot_id": -5, "sequence_number": 1}, "the snapshot_id -5"),
        ({"snapshot_id": 2**63, "sequence_number": 1}, "the snapshot_id"),
        ({"sequence_number": 6}, "the sequence_number 6, and last_sequence_number is 5"),
        ({"sequence_number": -1}, "the sequence_number -1"),
        ({"first_row_id": -1, "added_rows": 1}, "the first_row_id -1"),
        ({"added_rows": -1}, "added_rows -1"),
        ({"first_row_id": 90, "added_rows": 11}, "the row ids from 90 to 101, and next_row_id is 100"),
    ],
)
def test_snapshot_violating_an_invariant_is_refused(fields: dict[str, Any], reason: str) -> None:
    bad = replace(snapshot(1), **fields)
    table = metadata(bad, format_version=3, next_row_id=100, last_sequence_number=5)
    with pytest.raises(InvalidMetadataError) as caught:
        check_table_metadata(table)
    assert reason in caught.value.message


def test_nonzero_sequence_numbers_are_refused_in_version_1() -> None:
    with pytest.raises(InvalidMetadataError, match="sequence_number 1"):
        check_table_metadata(chain(1, format_version=1))


def test_parent_cycles_are_refused_anywhere() -> None:
    for table in (
        metadata(snapshot(1, 1)),
        metadata(snapshot(1, 2), snapshot(2, 1)),
        metadata(snapshot(4, 3), snapshot(1, 3), snapshot(2, 1), snapshot(3, 2)),
    ):
        with pytest.raises(InvalidMetadataError, match="is its own ancestor"):
            check_table_metadata(table)


def test_long_chain_in_any_order_is_checked_in_linear_time() -> None:
    snapshots = [snapshot(one, one - 1 or None) for one in range(1, 20_001)]
    check_table_metadata(metadata(*snapshots))
    last = snapshots[-1].timestamp_ms
    check_table_metadata(metadata(*reversed(snapshots), snapshot_log=(), last_updated_ms=last))


@pytest.mark.parametrize(
    "table",
    [
        metadata(),
        chain(3),
        # Snapshots expire: parents, log entries, statistics and other branches' history may be gone.
        metadata(snapshot(7, 6), snapshot_log=(SnapshotLogEntry(START_MS, 3), SnapshotLogEntry(START_MS, 7))),
        metadata(snapshot(7), statistics=(StatisticsFile(3, "s", 5, 5),)),
        metadata(snapshot(7, schema_id=44)),
        # Two branches from one parent, and one with no history in common.
        metadata(snapshot(1), snapshot(2, 1), snapshot(3, 1), snapshot(4), refs={"b": SnapshotRef(4)}),
        # Clocks differ by up to a minute.
        chain(1, snapshot_log=log(START_MS, START_MS - MINUTE_MS), last_updated_ms=START_MS),
        chain(1, metadata_log=files(START_MS, START_MS - MINUTE_MS), last_updated_ms=START_MS),
        chain(1, snapshot_log=log(START_MS), last_updated_ms=START_MS - MINUTE_MS),
        # Only the default spec and order must fit the current schema; void fields always do.
        metadata(partition_specs=(spec(0), spec(1, (77, 1000, "identity"))), last_partition_id=1000),
        metadata(partition_specs=(spec(0, (77, 1000, "void")),), last_partition_id=1000),
        metadata(sort_orders=(SortOrder(), order(4, 77))),
        metadata(
            partition_specs=(PartitionSpec(0, (PartitionField((1,), 1000, "z", UnknownTransform("zorder")),)),),
            last_partition_id=1000,
        ),
        # The unsorted order need not be listed.
        metadata(sort_orders=(order(1, 1),)),
        # Version 1.
        metadata(format_version=1, table_uuid=None),
        metadata(table_uuid=UUID.upper()),
        # Row ids: absent before the upgrade, an upper bound after it.
        metadata(
            snapshot(1), snapshot(2, 1, first_row_id=0, added_rows=0), snapshot(3, 2, first_row_id=0, added_rows=40),
            format_version=3, next_row_id=50,
        ),
        metadata(snapshot(1, added_rows=5), format_version=3),
        metadata(snapshot(1, first_row_id=5, added_rows=5), format_version=2),
        # `main` may carry an age, which is ignored.
        metadata(snapshot(1), refs={"main": SnapshotRef(1, max_ref_age_ms=1)}),
    ],
)  # fmt: skip
def test_metadata_of_known_writers_is_accepted(table: Any) -> None:
    check_table_metadata(table)


def test_changed_uuid_after_a_refresh_is_refused() -> None:
    other = metadata(table_uuid=UUID.replace("9", "8"))
    with pytest.raises(TableNotFoundError, match=r"table db\.t any more: its UUID was 9c12d441") as caught:
        check_same_table(metadata(), other, "db.t")
    assert caught.value.hint is not None and "dropped" in caught.value.hint


def test_missing_uuid_or_different_case_is_the_same_table() -> None:
    check_same_table(metadata(), metadata(table_uuid=UUID.upper()), "db.t")
    check_same_table(metadata(format_version=1, table_uuid=None), metadata(), "db.t")
    check_same_table(metadata(), metadata(format_version=1, table_uuid=None), "db.t")
