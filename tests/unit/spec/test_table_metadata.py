"""Lookups of table metadata, new tables and upgrades."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import (
    FieldNotFoundError,
    InvalidPropertyError,
    InvalidRequestError,
    NotFoundError,
    ReferenceNotFoundError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import PartitionField, PartitionSpec, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MetadataLogEntry, SnapshotRef
from frazil.spec.sorting import UNSORTED, SortOrder, build_sort_order
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.transforms import UnknownTransform
from frazil.spec.types import LONG, STRING, TIMESTAMP_NS, ListType, MapType, NestedField, StructType
from frazil.spec.upgrade import upgrade_table_metadata
from tests.support import builders
from tests.support.metadata_builders import LOCATION, START_MS, UUID, chain, metadata, snapshot


def test_objects_are_found_by_id() -> None:
    table = chain(3, refs={"t": SnapshotRef(1, "tag")})
    assert table.current_schema is table.schemas[0]
    assert table.default_spec is table.partition_specs[0]
    assert table.default_sort_order is table.sort_orders[0]
    assert table.current_snapshot == snapshot(3, 2)
    assert table.ref_snapshot("t") == snapshot(1)
    assert table.find_ref("main") == SnapshotRef(3)
    assert table.find_ref("nope") is None
    assert table.find_snapshot(9) is None


def test_unknown_id_is_refused_with_the_known_ones() -> None:
    table = chain(1, refs={"t": SnapshotRef(1, "tag")})
    with pytest.raises(NotFoundError, match="schema 7"):
        table.schema(7)
    with pytest.raises(NotFoundError, match="partition spec 7"):
        table.spec(7)
    with pytest.raises(NotFoundError, match="sort order 7"):
        table.sort_order(7)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 7"):
        table.snapshot(7)
    with pytest.raises(NotFoundError, match="encryption key 'k'"):
        table.encryption_key("k")
    with pytest.raises(ReferenceNotFoundError) as caught:
        table.ref("nope")
    assert caught.value.hint == "Its branches and tags are: main, t."


def test_empty_table_has_no_current_snapshot() -> None:
    table = metadata()
    assert table.current_snapshot is None
    with pytest.raises(ReferenceNotFoundError) as caught:
        table.ref("main")
    assert "Nothing has been committed" in str(caught.value)


def test_unsorted_order_always_exists() -> None:
    assert metadata(sort_orders=()).sort_order(0) == UNSORTED


def test_last_statistics_of_a_snapshot_win() -> None:
    first, second = StatisticsFile(1, "a", 10, 5), StatisticsFile(1, "b", 10, 5)
    parts = PartitionStatisticsFile(1, "p", 3)
    table = chain(1, statistics=(first, second), partition_statistics=[parts])
    assert table.find_statistics(1) is second
    assert table.find_statistics(2) is None
    assert table.find_partition_statistics(1) is parts
    assert table.find_partition_statistics(2) is None


def test_encryption_keys_are_found_by_id_and_not_printed() -> None:
    key = EncryptedKey("k", b"wrapped-secret", properties={"a": "b"})  # type: ignore[arg-type]
    assert metadata(encryption_keys=(key,)).encryption_key("k") is key
    assert "wrapped-secret" not in repr(key)
    assert isinstance(key.properties, FrozenMap)


def test_sequence_numbers_stay_zero_in_version_1() -> None:
    assert metadata(format_version=1).next_sequence_number == 0
    assert chain(3).next_sequence_number == 4


def test_metadata_is_compared_by_value() -> None:
    table = chain(3, properties={"a": "b"}, schemas=[builders.schema()], snapshots=list(chain(3).snapshots))
    assert table.snapshots == chain(3).snapshots
    assert isinstance(table.properties, FrozenMap)
    assert isinstance(table.schemas, tuple)
    assert table.schemas_by_id and table.specs_by_id  # fill the caches, which are not part of the value
    again = pickle.loads(pickle.dumps(table))
    assert again == table and hash(again) == hash(table)
    assert "schemas_by_id" not in again.__dict__
    assert replace(table, location="x") != table


def test_blob_metadata_holds_tuples() -> None:
    blob = BlobMetadata("t", 1, 1, [3, 4], {"ndv": "5"})  # type: ignore[arg-type]
    assert blob.fields == (3, 4) and isinstance(blob.properties, FrozenMap)
    assert StatisticsFile(1, "p", 1, 1, [blob]).blob_metadata == (blob,)  # type: ignore[arg-type]


# New tables


def nested_schema() -> Schema:
    """A schema whose ids are out of order, to be given new ones."""
    point = StructType((NestedField(70, "x", LONG), NestedField(71, "y", LONG)))
    return Schema(
        (
            NestedField(50, "id", LONG, required=True),
            NestedField(40, "points", ListType(41, point)),
            NestedField(30, "tags", MapType(31, STRING, 32, STRING)),
            NestedField(20, "kind", STRING),
        ),
        schema_id=9,
        identifier_field_ids=(50,),
    )


def create(schema: Schema | None = None, **fields: Any) -> Any:
    given: dict[str, Any] = {"location": LOCATION, "uuid": UUID, "now_ms": START_MS}
    return new_table_metadata(schema or nested_schema(), **(given | fields))


def test_new_table_gets_column_ids_in_the_order_of_iceberg_java() -> None:
    table = create()
    names = {field_id: table.current_schema.name_of(field_id) for field_id in sorted(table.current_schema.fields_by_id)}
    assert names == {
        1: "id",
        2: "points",
        3: "tags",
        4: "kind",
        5: "points.element",
        6: "points.element.x",
        7: "points.element.y",
        8: "tags.key",
        9: "tags.value",
    }
    assert table.last_column_id == 9
    assert table.current_schema.schema_id == 0
    assert table.current_schema.identifier_field_ids == (1,)


def test_spec_and_order_of_a_new_table_follow_columns_by_name() -> None:
    schema = nested_schema()
    spec = build_partition_spec(schema, ["bucket(4, id)", "kind"], spec_id=7, last_assigned_field_id=1500)
    order = build_sort_order(schema, ["kind desc"], order_id=9)
    table = create(schema, spec=spec, sort_order=order)
    assert [(one.field_id, one.source_id, one.name) for one in table.default_spec.fields] == [
        (1000, 1, "id_bucket"),
        (1001, 4, "kind"),
    ]
    assert (table.default_spec_id, table.last_partition_id) == (0, 1001)
    assert [one.source_id for one in table.default_sort_order.fields] == [4]
    assert table.default_sort_order_id == 1


def test_new_table_defaults_to_version_2_unpartitioned_and_unsorted() -> None:
    table = create()
    assert table.format_version == 2
    assert (table.default_spec_id, table.last_partition_id) == (0, 999)
    assert table.sort_orders == (UNSORTED,)
    assert (table.current_snapshot_id, len(table.snapshots), table.refs) == (None, 0, {})
    assert (table.last_sequence_number, table.next_row_id) == (0, 0)


def test_new_table_stores_default_properties_and_no_reserved_names() -> None:
    table = create(properties={"owner": "me", "format-version": "2"})
    assert table.properties == {"write.parquet.compression-codec": "zstd", "owner": "me"}


def test_trailing_slashes_of_a_new_location_are_removed() -> None:
    assert create(location="s3://bucket/t//").location == "s3://bucket/t"


@pytest.mark.parametrize(
    "fields, error",
    [
        ({"format_version": 4}, UnsupportedError),
        ({"format_version": 0}, InvalidRequestError),
        ({"location": ""}, InvalidRequestError),
        ({"location": "//"}, InvalidRequestError),
        ({"uuid": "not-a-uuid"}, InvalidRequestError),
        ({"properties": {"commit.retry.num-retries": "many"}}, InvalidPropertyError),
        ({"properties": {"encryption.key-id": "k"}}, UnsupportedError),
        ({"properties": {"write.metadata.metrics.column.nope": "full"}}, InvalidPropertyError),
        ({"spec": PartitionSpec(0, (PartitionField((50,), 1000, "p", UnknownTransform("zorder")),))}, UnsupportedError),
        ({"spec": build_partition_spec(builders.schema(), ["kind"])}, FieldNotFoundError),
        ({"sort_order": build_sort_order(builders.schema(), ["kind"])}, FieldNotFoundError),
        ({"schema": builders.schema(builders.field(1, "t", TIMESTAMP_NS))}, InvalidRequestError),
    ],
)
def test_invalid_table_is_not_created(fields: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        create(**fields)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_new_table_of_each_version_satisfies_the_invariants(version: int) -> None:
    check_table_metadata(create(format_version=version))


# Upgrades


def v1_table(**fields: Any) -> Any:
    return metadata(
        snapshot(1, sequence_number=0),
        snapshot(2, 1, sequence_number=0),
        format_version=1,
        metadata_log=(MetadataLogEntry(START_MS, "v1"),),
        **fields,
    )


def test_upgrade_goes_step_by_step_and_keeps_everything() -> None:
    old = v1_table(properties=FrozenMap({"a": "b"}))
    new = upgrade_table_metadata(old, 3)
    check_table_metadata(new)
    assert new.format_version == 3
    assert (new.last_sequence_number, new.next_row_id) == (0, 0)
    assert replace(new, format_version=1) == old


def test_old_snapshots_still_have_no_row_ids() -> None:
    new = upgrade_table_metadata(chain(2), 3)
    assert [one.first_row_id for one in new.snapshots] == [None, None]
    assert new.snapshots == chain(2).snapshots


def test_row_ids_from_before_version_3_are_dropped() -> None:
    old = metadata(snapshot(1, first_row_id=0, added_rows=10))
    new = upgrade_table_metadata(old, 3)
    check_table_metadata(new)
    assert new.snapshots[0] == snapshot(1)


def test_upgrade_from_version_1_requires_a_uuid() -> None:
    old = v1_table(table_uuid=None)
    with pytest.raises(InvalidRequestError, match="it has no UUID"):
        upgrade_table_metadata(old, 2)
    assert upgrade_table_metadata(old, 2, new_uuid=UUID).table_uuid == UUID
    kept = upgrade_table_metadata(v1_table(), 2, new_uuid="0" * 8 + "-0000-0000-0000-" + "0" * 12)
    assert kept.table_uuid == UUID


def test_upgrade_to_the_same_version_changes_nothing() -> None:
    table = chain(2)
    assert upgrade_table_metadata(table, 2) is table


def test_unknown_fields_survive_unless_the_new_version_defines_them() -> None:
    old = metadata(extra={"next-row-id": 99, "last-sequence-number": 5, "mine": {"a": 1}})
    assert upgrade_table_metadata(old, 3).extra == {"mine": {"a": 1}}


@pytest.mark.parametrize("current, wanted, error", [(2, 1, InvalidRequestError), (3, 4, UnsupportedError)])
def test_downgrade_or_unknown_version_is_refused(current: int, wanted: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="Cannot"):
        upgrade_table_metadata(metadata(format_version=current), wanted)


def test_sort_order_id_of_a_new_table_is_one() -> None:
    schema = builders.schema()
    order = SortOrder(5, build_sort_order(schema, ["id"]).fields)
    assert create(schema, sort_order=order).default_sort_order_id == 1
