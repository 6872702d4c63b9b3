"""Metadata and updates to new metadata: what each update does, and what holds between base and result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.catalog.metadata_files import forgotten_metadata_files
from frazil.changes import updates as change
from frazil.changes.apply import apply_updates
from frazil.changes.updates import LAST_ADDED, TableUpdate
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import (
    CommitConflictError,
    InvalidPropertyError,
    InvalidRequestError,
    NotFoundError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import PartitionField, PartitionSpec, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.snapshot_history import snapshot_id_as_of
from frazil.spec.sorting import UNSORTED, SortOrder, build_sort_order
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.transforms import parse_transform
from frazil.spec.types import TIMESTAMP_NS
from tests.support import builders
from tests.support.metadata_builders import LOCATION, START_MS, UUID, chain, metadata, snapshot

NOW_MS = START_MS + 1000
BASE_FILE = f"{LOCATION}/metadata/00007-x.metadata.json"


def apply(base: TableMetadata | None, *updates: TableUpdate, now_ms: int = NOW_MS) -> TableMetadata:
    changed = apply_updates(base, updates, now_ms=now_ms, base_location=None if base is None else BASE_FILE)
    check_table_metadata(changed)
    assert decode_table_metadata(encode_table_metadata(changed)) == changed
    return changed


def set_main(snapshot_id: int) -> change.SetSnapshotRef:
    return change.SetSnapshotRef("main", SnapshotRef(snapshot_id))


def append(snapshot_id: int, parent: int | None = None, **fields: Any) -> tuple[TableUpdate, TableUpdate]:
    return change.AddSnapshot(snapshot(snapshot_id, parent, **fields)), set_main(snapshot_id)


def logged(table: TableMetadata) -> list[int]:
    return [one.snapshot_id for one in table.snapshot_log]


def wider(*extra_ids: int) -> Schema:
    return builders.schema(*builders.schema().fields, *(builders.field(one) for one in extra_ids))


CREATE: tuple[TableUpdate, ...] = (
    change.AssignUuid(UUID),
    change.UpgradeFormatVersion(2),
    change.AddSchema(builders.schema()),
    change.SetCurrentSchema(),
    change.AddPartitionSpec(PartitionSpec()),
    change.SetDefaultSpec(),
    change.AddSortOrder(UNSORTED),
    change.SetDefaultSortOrder(),
    change.SetLocation(LOCATION + "/"),
    change.SetProperties(FrozenMap({"owner": "me"})),
)


class TestCreate:
    def test_table_is_built_from_updates_alone(self) -> None:
        made = apply(None, *CREATE)
        assert (made.format_version, made.table_uuid, made.location) == (2, UUID, LOCATION)
        assert (made.current_schema, made.default_spec, made.default_sort_order) == (
            builders.schema(),
            PartitionSpec(),
            UNSORTED,
        )
        assert (made.last_column_id, made.last_partition_id, made.properties) == (3, 999, {"owner": "me"})
        assert (made.last_updated_ms, made.metadata_log, made.snapshot_log) == (NOW_MS, (), ())

    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_first_requested_format_version_is_used(self, version: int) -> None:
        updates = [change.UpgradeFormatVersion(version) if at == 1 else one for at, one in enumerate(CREATE)]
        assert apply(None, *updates).format_version == version

    def test_default_format_version_is_used_if_none_is_requested(self) -> None:
        assert apply(None, *CREATE[:1], *CREATE[2:]).format_version == 2

    def test_table_is_created_with_its_first_snapshot(self) -> None:
        made = apply(None, *CREATE, *append(1))
        assert (made.current_snapshot_id, logged(made), made.last_sequence_number) == (1, [1], 1)

    @pytest.mark.parametrize("missing", [0, 8])
    def test_table_without_uuid_or_location_is_refused(self, missing: int) -> None:
        with pytest.raises(InvalidRequestError, match=r"table_uuid is missing|location is empty"):
            apply(None, *(one for at, one in enumerate(CREATE) if at != missing))

    @pytest.mark.parametrize("missing", [2, 3, 4, 5, 6, 7])
    def test_table_without_schema_spec_or_order_is_refused(self, missing: int) -> None:
        with pytest.raises((InvalidRequestError, NotFoundError)):
            apply(None, *(one for at, one in enumerate(CREATE) if at != missing))

    def test_snapshot_before_the_schema_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="no schema, partition spec and sort order yet"):
            apply(None, *append(1), *CREATE)


class TestIdentity:
    def test_empty_change_returns_the_base(self) -> None:
        base = chain(2, properties={"a": "b"})
        same = (
            change.AssignUuid(UUID.upper()),
            change.UpgradeFormatVersion(2),
            change.AddSchema(builders.schema()),
            change.SetCurrentSchema(),
            change.AddPartitionSpec(PartitionSpec(7)),
            change.SetDefaultSpec(),
            change.AddSortOrder(UNSORTED),
            change.SetDefaultSortOrder(),
            change.SetLocation(LOCATION + "//"),
            change.SetProperties(FrozenMap({"a": "b"})),
            change.RemoveProperties(("absent",)),
            set_main(2),
            change.RemoveSnapshots((99,)),
            change.RemoveSnapshotRef("absent"),
            change.RemoveStatistics(1),
            change.RemovePartitionStatistics(1),
            change.RemovePartitionSpecs((9,)),
            change.RemoveSchemas((9,)),
            change.RemoveEncryptionKey("absent"),
        )
        assert apply_updates(base, same, now_ms=NOW_MS, base_location=BASE_FILE) is base
        assert apply_updates(base, (), now_ms=NOW_MS, base_location=BASE_FILE) is base

    def test_uuid_never_changes(self) -> None:
        with pytest.raises(InvalidRequestError, match="never changes"):
            apply(chain(1), change.AssignUuid("00000000-0000-0000-0000-000000000000"))

    def test_old_table_gets_a_uuid_once(self) -> None:
        old = metadata(format_version=1, table_uuid=None)
        assert apply(old, change.AssignUuid(UUID)).table_uuid == UUID

    def test_table_is_upgraded_and_never_downgraded(self) -> None:
        upgraded = apply(chain(2), change.UpgradeFormatVersion(3))
        assert (upgraded.format_version, upgraded.next_row_id) == (3, 0)
        with pytest.raises(InvalidRequestError, match="never downgraded"):
            apply(upgraded, change.UpgradeFormatVersion(2))
        with pytest.raises(UnsupportedError):
            apply(upgraded, change.UpgradeFormatVersion(4))

    def test_upgrade_from_version_1_adds_a_uuid(self) -> None:
        old = metadata(format_version=1, table_uuid=None)
        with pytest.raises(InvalidRequestError, match="no UUID"):
            apply(old, change.UpgradeFormatVersion(2))
        assert apply(old, change.AssignUuid(UUID), change.UpgradeFormatVersion(3)).format_version == 3

    def test_empty_location_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="empty"):
            apply(chain(1), change.SetLocation(""))

    def test_properties_are_set_and_removed_in_order(self) -> None:
        base = metadata(properties={"a": "1", "b": "2"})
        changed = apply(
            base, change.SetProperties(FrozenMap({"a": "3", "c": ""})), change.RemoveProperties(("b", "absent"))
        )
        assert changed.properties == {"a": "3", "c": ""}

    @pytest.mark.parametrize("name", ["format-version", "uuid", "current-snapshot-id"])
    def test_reserved_properties_are_refused(self, name: str) -> None:
        with pytest.raises(InvalidPropertyError, match="reserved for the table's metadata"):
            apply(chain(1), change.SetProperties(FrozenMap({name: "1"})))

    def test_property_values_must_be_text(self) -> None:
        with pytest.raises(InvalidPropertyError, match="both must be text"):
            apply(chain(1), change.SetProperties(FrozenMap({"a": 1})))  # type: ignore[dict-item]
        assert change.SetProperties({"a": "b"}).updates == FrozenMap({"a": "b"})  # type: ignore[arg-type]
        with pytest.raises(InvalidRequestError, match="list of names"):
            change.RemoveProperties("abc")  # type: ignore[arg-type]

    def test_view_updates_are_refused_on_tables(self) -> None:
        with pytest.raises(InvalidRequestError, match="not an update of tables"):
            apply(chain(1), change.SetCurrentViewVersion(1))  # type: ignore[arg-type]


class TestSchemas:
    def test_new_schema_gets_the_next_id(self) -> None:
        changed = apply(chain(1), change.AddSchema(wider(4)), change.SetCurrentSchema())
        assert (changed.current_schema_id, changed.last_column_id) == (1, 4)
        assert changed.current_schema.fields == wider(4).fields
        assert [one.schema_id for one in changed.schemas] == [0, 1]

    def test_equal_schema_keeps_its_id_and_becomes_the_last_added(self) -> None:
        base = apply(chain(1), change.AddSchema(wider(4)), change.SetCurrentSchema())
        again = apply(base, change.AddSchema(builders.schema(schema_id=55)), change.SetCurrentSchema(LAST_ADDED))
        assert again.current_schema_id == 0
        assert len(again.schemas) == 2
        assert again.last_column_id == 4

    def test_ids_of_dropped_columns_are_not_reused(self) -> None:
        assert apply(chain(1), change.AddSchema(wider(4), last_column_id=9)).last_column_id == 9

    def test_last_column_id_below_the_current_one_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="assigned IDs up to 3"):
            apply(chain(1), change.AddSchema(builders.schema(builders.field(1)), last_column_id=2))

    def test_last_added_without_an_added_schema_is_refused(self) -> None:
        for update in (change.SetCurrentSchema(), change.SetDefaultSpec(), change.SetDefaultSortOrder()):
            with pytest.raises(InvalidRequestError, match="this change added none"):
                apply(chain(1), update)

    def test_unknown_id_is_refused(self) -> None:
        for update in (change.SetCurrentSchema(7), change.SetDefaultSpec(7), change.SetDefaultSortOrder(7)):
            with pytest.raises(NotFoundError, match="7"):
                apply(chain(1), update)

    def test_schema_beyond_the_format_version_is_refused(self) -> None:
        schema = builders.schema(builders.field(1, "t", TIMESTAMP_NS))
        with pytest.raises(InvalidRequestError, match="needs version 3"):
            apply(chain(1), change.AddSchema(schema))

    def test_schema_incompatible_with_the_default_spec_is_refused(self) -> None:
        base = partitioned()
        schema = builders.schema(builders.field(1, "id", required=True))
        with pytest.raises(InvalidRequestError, match="default_spec_id"):
            apply(base, change.AddSchema(schema), change.SetCurrentSchema())

    def test_only_unused_schemas_are_removed(self) -> None:
        base = apply(chain(2), change.AddSchema(wider(4)), change.AddSchema(wider(4, 5)), change.SetCurrentSchema())
        assert [one.schema_id for one in apply(base, change.RemoveSchemas((1, 8))).schemas] == [0, 2]
        with pytest.raises(InvalidRequestError, match="current one"):
            apply(base, change.RemoveSchemas((2,)))
        with pytest.raises(CommitConflictError, match="snapshot 1 was written with it"):
            apply(base, change.RemoveSchemas((0,)))

    def test_schema_may_be_removed_together_with_its_snapshots(self) -> None:
        base = apply(chain(2), change.AddSchema(wider(4)), change.SetCurrentSchema(), *append(3, 2, schema_id=1))
        changed = apply(base, change.RemoveSchemas((0,)), change.RemoveSnapshots((1, 2)))
        assert [one.schema_id for one in changed.schemas] == [1]


def partitioned(*terms: str) -> TableMetadata:
    base = chain(1)
    spec = build_partition_spec(base.current_schema, terms or ("day(ts)",))
    return apply(base, change.AddPartitionSpec(spec), change.SetDefaultSpec())


class TestSpecsAndOrders:
    def test_new_spec_gets_the_next_id(self) -> None:
        changed = partitioned("day(ts)", "bucket(4, id)")
        assert (changed.default_spec_id, changed.last_partition_id) == (1, 1001)
        assert changed.default_spec.spec_id == 1

    def test_equivalent_spec_keeps_its_id_and_field_ids(self) -> None:
        base = partitioned()
        same = PartitionSpec(9, (replace(base.default_spec.fields[0], field_id=1234),))
        changed = apply(base, change.SetDefaultSpec(0), change.AddPartitionSpec(same), change.SetDefaultSpec())
        assert changed.default_spec == base.default_spec
        assert changed.last_partition_id == 1000

    def test_partition_field_id_keeps_its_meaning(self) -> None:
        base = partitioned("day(ts)")
        other = PartitionSpec(0, (PartitionField((1,), 1000, "id_bucket", parse_transform("bucket[4]")),))
        with pytest.raises(InvalidRequestError, match="the ID 1000 belongs to"):
            apply(base, change.AddPartitionSpec(other))
        renamed = PartitionSpec(0, (replace(base.default_spec.fields[0], name="d"),))
        assert apply(base, change.AddPartitionSpec(renamed)).specs_by_id[2].fields[0].field_id == 1000

    def test_partition_field_id_is_not_reused_for_another_transform(self) -> None:
        base = partitioned("bucket(4, id)")
        finer = PartitionSpec(0, (PartitionField((1,), 1000, "id_bucket_8", parse_transform("bucket[8]")),))
        with pytest.raises(InvalidRequestError, match="the ID 1000 belongs to"):
            apply(base, change.AddPartitionSpec(finer))

    def test_version_1_requires_ordered_field_ids(self) -> None:
        base = chain(1, format_version=1, last_sequence_number=0)
        base = replace(base, snapshots=(snapshot(1, sequence_number=0),))  # type: ignore[arg-type]
        spec = PartitionSpec(0, (PartitionField((1,), 1005, "id", parse_transform("identity")),))
        with pytest.raises(InvalidRequestError, match="go up from 1000"):
            apply(base, change.AddPartitionSpec(spec))

    def test_spec_incompatible_with_the_schema_is_refused(self) -> None:
        spec = PartitionSpec(0, (PartitionField((9,), 1000, "x", parse_transform("identity")),))
        with pytest.raises(InvalidRequestError, match="no column with the id 9"):
            apply(chain(1), change.AddPartitionSpec(spec))

    def test_unknown_transform_is_not_committed(self) -> None:
        spec = PartitionSpec(0, (PartitionField((1,), 1000, "x", parse_transform("zorder[3]")),))
        with pytest.raises(UnsupportedError, match="unknown transform"):
            apply(chain(1), change.AddPartitionSpec(spec))

    def test_all_specs_but_the_default_can_be_removed(self) -> None:
        base = partitioned()
        assert [one.spec_id for one in apply(base, change.RemovePartitionSpecs((0,))).partition_specs] == [1]
        with pytest.raises(InvalidRequestError, match="the default"):
            apply(base, change.RemovePartitionSpecs((1,)))

    def test_new_order_gets_the_next_id_and_an_equal_one_is_reused(self) -> None:
        base = chain(1)
        order = build_sort_order(base.current_schema, ["ts desc"])
        changed = apply(base, change.AddSortOrder(order), change.SetDefaultSortOrder())
        assert (changed.default_sort_order_id, len(changed.sort_orders)) == (1, 2)
        back = apply(changed, change.AddSortOrder(UNSORTED), change.SetDefaultSortOrder())
        assert back.default_sort_order_id == 0
        again = apply(back, change.AddSortOrder(order.with_order_id(8)), change.SetDefaultSortOrder())
        assert (again.default_sort_order_id, len(again.sort_orders)) == (1, 2)

    def test_unsorted_order_is_listed_once_it_is_the_default(self) -> None:
        order = build_sort_order(builders.schema(), ["id"])
        base = metadata(sort_orders=(order,), default_sort_order_id=1)
        changed = apply(base, change.SetDefaultSortOrder(0))
        assert changed.sort_orders == (UNSORTED, order)

    def test_order_incompatible_with_the_schema_is_refused(self) -> None:
        wide = wider(4)
        order: SortOrder = build_sort_order(wide, ["c4"])
        with pytest.raises(InvalidRequestError, match="no column with the id 4"):
            apply(chain(1), change.AddSortOrder(order))


class TestSnapshots:
    def test_unreferenced_snapshot_is_stored(self) -> None:
        changed = apply(chain(1), change.AddSnapshot(snapshot(2, 1)))
        assert (changed.current_snapshot_id, len(changed.snapshots), logged(changed)) == (1, 2, [1])
        assert changed.last_sequence_number == 2

    def test_main_moves_and_the_log_records_it(self) -> None:
        changed = apply(chain(1), *append(2, 1))
        assert changed.current_snapshot_id == 2
        assert changed.refs["main"] == SnapshotRef(2)
        assert [(one.timestamp_ms, one.snapshot_id) for one in changed.snapshot_log] == [
            (START_MS + 1, 1),
            (START_MS + 2, 2),
        ]
        assert changed.last_updated_ms == NOW_MS

    def test_transaction_of_many_snapshots_is_one_log_entry(self) -> None:
        changed = apply(chain(1), *append(2, 1), *append(3, 2), *append(4, 3))
        assert logged(changed) == [1, 4]
        assert len(changed.snapshots) == 4

    def test_intermediate_snapshots_leave_no_log_entry(self) -> None:
        assert logged(apply(chain(3), set_main(1), set_main(2))) == [1, 2, 3, 2]
        there_and_back = apply(chain(3), set_main(1), set_main(3), change.SetLocation("s3://elsewhere"))
        assert logged(there_and_back) == [1, 2, 3]

    def test_rollback_is_logged_at_its_own_time(self) -> None:
        changed = apply(chain(3), set_main(1))
        assert changed.snapshot_log[-1].timestamp_ms == NOW_MS
        assert snapshot_id_as_of(changed, NOW_MS) == 1
        assert snapshot_id_as_of(changed, NOW_MS - 1) == 3

    def test_retention_of_main_adds_no_log_entry(self) -> None:
        kept = change.SetSnapshotRef("main", SnapshotRef(3, min_snapshots_to_keep=7))
        changed = apply(chain(3), kept)
        assert logged(changed) == [1, 2, 3]
        assert changed.refs["main"].min_snapshots_to_keep == 7

    def test_snapshot_id_is_used_once(self) -> None:
        with pytest.raises(InvalidRequestError, match="already has a snapshot with that ID"):
            apply(chain(2), change.AddSnapshot(snapshot(1, 2, sequence_number=9)))

    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_used_sequence_number_is_a_conflict(self, number: int) -> None:
        with pytest.raises(CommitConflictError, match="the table is at 2"):
            apply(chain(2), change.AddSnapshot(snapshot(3, 2, sequence_number=number)))

    def test_replaced_table_keeps_its_last_sequence_number(self) -> None:
        changed = apply(chain(2), change.AddSnapshot(snapshot(3, None, sequence_number=1)))
        assert changed.last_sequence_number == 2
        with pytest.raises(CommitConflictError, match="the table is at 2"):
            apply(changed, change.AddSnapshot(snapshot(4, 3, sequence_number=2)))

    def test_version_1_has_no_sequence_numbers(self) -> None:
        base = metadata(format_version=1)
        assert apply(base, *append(1, sequence_number=0)).last_sequence_number == 0
        with pytest.raises(InvalidRequestError, match="have none"):
            apply(base, *append(1, sequence_number=1))

    def test_concurrently_removed_schema_is_a_conflict(self) -> None:
        with pytest.raises(CommitConflictError, match="its schema 5"):
            apply(chain(1), *append(2, 1, schema_id=5))

    def test_snapshot_without_operation_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="no summary"):
            apply(chain(1), *append(2, 1, summary=None))

    def test_inline_manifests_are_for_version_1(self) -> None:
        inline: dict[str, Any] = {"manifest_list": None, "manifests": ("s3://a/m.avro",), "sequence_number": 0}
        assert apply(metadata(format_version=1), *append(1, **inline)).current_snapshot_id == 1
        with pytest.raises(InvalidRequestError, match="inline"):
            apply(chain(1), *append(2, 1, manifest_list=None, manifests=("s3://a/m.avro",)))

    def test_row_ids_continue_after_the_last_snapshot(self) -> None:
        base = metadata(format_version=3)
        once = apply(base, *append(1, first_row_id=0, added_rows=10))
        assert once.next_row_id == 10
        staged = apply(once, change.AddSnapshot(snapshot(2, 1, first_row_id=10, added_rows=5)))
        assert staged.next_row_id == 15

    def test_row_ids_in_a_gap_are_not_reassigned(self) -> None:
        assert apply(metadata(format_version=3), *append(1, first_row_id=7, added_rows=10)).next_row_id == 17

    def test_assigned_row_ids_are_a_conflict(self) -> None:
        base = apply(metadata(format_version=3), *append(1, first_row_id=0, added_rows=10))
        with pytest.raises(CommitConflictError, match="first row id 9: the table is at 10"):
            apply(base, *append(2, 1, first_row_id=9, added_rows=1))

    def test_version_3_requires_row_ids_and_earlier_versions_refuse_them(self) -> None:
        with pytest.raises(InvalidRequestError, match="no first row id"):
            apply(metadata(format_version=3), *append(1))
        with pytest.raises(InvalidRequestError, match="adds -1 rows"):
            apply(metadata(format_version=3), *append(1, first_row_id=0, added_rows=-1))
        with pytest.raises(InvalidRequestError, match="row lineage"):
            apply(chain(1), *append(2, 1, first_row_id=0, added_rows=1))

    def test_snapshot_that_is_its_own_ancestor_is_refused(self) -> None:
        with pytest.raises(InvalidRequestError, match="own ancestor"):
            apply(chain(1), *append(2, 2))


class TestReferences:
    def test_branches_and_tags_are_created_moved_and_removed(self) -> None:
        tag = change.SetSnapshotRef("eom", SnapshotRef(1, "tag", max_ref_age_ms=5))
        branch = change.SetSnapshotRef("audit", SnapshotRef(2, min_snapshots_to_keep=3))
        changed = apply(chain(3), tag, branch)
        assert set(changed.refs) == {"main", "eom", "audit"}
        moved = apply(changed, change.SetSnapshotRef("audit", SnapshotRef(3)), change.RemoveSnapshotRef("eom"))
        assert moved.refs == {"main": SnapshotRef(3), "audit": SnapshotRef(3)}
        assert logged(moved) == [1, 2, 3]

    def test_main_must_be_a_branch(self) -> None:
        with pytest.raises(InvalidRequestError, match="always a branch"):
            apply(chain(2), change.SetSnapshotRef("main", SnapshotRef(1, "tag")))

    def test_tag_cannot_become_a_branch(self) -> None:
        base = apply(chain(2), change.SetSnapshotRef("x", SnapshotRef(1, "tag")))
        with pytest.raises(InvalidRequestError, match="a tag of that name exists"):
            apply(base, change.SetSnapshotRef("x", SnapshotRef(2)))
        replaced = apply(base, change.RemoveSnapshotRef("x"), change.SetSnapshotRef("x", SnapshotRef(2)))
        assert replaced.refs["x"].is_branch

    def test_reference_must_name_an_existing_snapshot(self) -> None:
        with pytest.raises(SnapshotNotFoundError, match="snapshot 9"):
            apply(chain(2), change.SetSnapshotRef("x", SnapshotRef(9)))
        with pytest.raises(InvalidRequestError, match="empty"):
            apply(chain(2), change.SetSnapshotRef("", SnapshotRef(1)))

    def test_no_main_means_no_current_snapshot(self) -> None:
        changed = apply(chain(2), change.RemoveSnapshotRef("main"))
        assert changed.current_snapshot_id is None
        assert logged(changed) == [1, 2]
        again = apply(changed, set_main(1))
        assert logged(again) == [1, 2, 1]

    def test_replaced_table_keeps_its_history(self) -> None:
        changed = apply(chain(2), change.RemoveSnapshotRef("main"), change.AddSnapshot(snapshot(3)), set_main(3))
        assert logged(changed) == [1, 2, 3]
        assert len(changed.snapshots) == 3


class TestRemovingSnapshots:
    def test_removing_a_snapshot_truncates_the_log_before_it(self) -> None:
        assert logged(apply(chain(4), change.RemoveSnapshots((2,)))) == [3, 4]
        assert logged(apply(chain(4), change.RemoveSnapshots((1,)))) == [2, 3, 4]
        assert logged(apply(chain(4), change.RemoveSnapshots((3, 1)))) == [4]

    def test_removing_a_snapshot_that_was_current_twice_truncates_at_its_last_entry(self) -> None:
        base = apply(apply(chain(3), set_main(1)), set_main(3))
        assert logged(base) == [1, 2, 3, 1, 3]
        assert logged(apply(base, change.RemoveSnapshots((1,)))) == [3]

    def test_tag_created_during_an_expiry_is_a_conflict(self) -> None:
        tagged = apply(chain(3), change.SetSnapshotRef("eom", SnapshotRef(1, "tag")))
        with pytest.raises(CommitConflictError, match="tag 'eom' refers to it"):
            apply(tagged, change.RemoveSnapshots((1,)))

    def test_current_snapshot_cannot_be_removed(self) -> None:
        with pytest.raises(CommitConflictError, match="branch 'main' refers to it"):
            apply(chain(3), change.RemoveSnapshots((3,)))

    def test_reference_and_snapshot_may_be_removed_in_any_order(self) -> None:
        tagged = apply(chain(3), change.SetSnapshotRef("eom", SnapshotRef(1, "tag")))
        gone = (change.RemoveSnapshots((1,)), change.RemoveSnapshotRef("eom"))
        for order in (gone, gone[::-1]):
            changed = apply(tagged, *order)
            assert set(changed.refs) == {"main"}
            assert list(changed.snapshots.ids) == [2, 3]

    def test_statistics_are_removed_with_their_snapshot(self) -> None:
        base = chain(3)
        for one in (1, 3):
            base = apply(
                base,
                change.SetStatistics(StatisticsFile(one, f"{LOCATION}/s{one}.puffin", 10, 4)),
                change.SetPartitionStatistics(PartitionStatisticsFile(one, f"{LOCATION}/p{one}.parquet", 10)),
            )
        changed = apply(base, change.RemoveSnapshots((1,)))
        assert [one.snapshot_id for one in changed.statistics] == [3]
        assert [one.snapshot_id for one in changed.partition_statistics] == [3]

    def test_all_snapshots_of_a_table_may_be_removed(self) -> None:
        changed = apply(chain(2), change.RemoveSnapshotRef("main"), change.RemoveSnapshots((1, 2)))
        assert (len(changed.snapshots), changed.snapshot_log, changed.last_sequence_number) == (0, (), 2)


class TestStatisticsAndKeys:
    def test_statistics_replace_those_of_their_snapshot(self) -> None:
        first, second = (StatisticsFile(1, f"{LOCATION}/{name}.puffin", 10, 4) for name in "ab")
        base = apply(chain(2), change.SetStatistics(first))
        changed = apply(base, change.SetStatistics(second))
        assert changed.statistics == (second,)
        assert apply(changed, change.RemoveStatistics(1)).statistics == ()

    def test_partition_statistics_replace_those_of_their_snapshot(self) -> None:
        first, second = (PartitionStatisticsFile(1, f"{LOCATION}/{name}.parquet", 10) for name in "ab")
        base = apply(chain(2), change.SetPartitionStatistics(first))
        changed = apply(base, change.SetPartitionStatistics(second))
        assert changed.partition_statistics == (second,)
        assert apply(changed, change.RemovePartitionStatistics(1)).partition_statistics == ()

    def test_statistics_of_an_unknown_snapshot_are_refused(self) -> None:
        with pytest.raises(SnapshotNotFoundError):
            apply(chain(1), change.SetStatistics(StatisticsFile(9, "s3://a/b.puffin", 1, 1)))
        with pytest.raises(SnapshotNotFoundError):
            apply(chain(1), change.SetPartitionStatistics(PartitionStatisticsFile(9, "s3://a/b.parquet", 1)))

    def test_encryption_keys_are_added_once_and_removed_if_unused(self) -> None:
        outer, inner = EncryptedKey("a", b"\x01"), EncryptedKey("b", b"\x02", "a")
        base = apply(metadata(format_version=3), change.AddEncryptionKey(outer), change.AddEncryptionKey(inner))
        assert apply_updates(base, [change.AddEncryptionKey(outer)], now_ms=NOW_MS) is base
        with pytest.raises(InvalidRequestError, match="another key with that ID"):
            apply(base, change.AddEncryptionKey(EncryptedKey("a", b"\x03")))
        with pytest.raises(InvalidRequestError, match="key 'b' is wrapped with it"):
            apply(base, change.RemoveEncryptionKey("a"))
        used = apply(base, *append(1, first_row_id=0, added_rows=0, key_id="b"))
        with pytest.raises(CommitConflictError, match="snapshot 1 needs it"):
            apply(used, change.RemoveEncryptionKey("b"))
        assert apply(base, change.RemoveEncryptionKey("b"), change.RemoveEncryptionKey("a")).encryption_keys == ()

    def test_encryption_keys_require_version_3(self) -> None:
        with pytest.raises(InvalidRequestError, match="encryption keys"):
            apply(chain(1), change.AddEncryptionKey(EncryptedKey("a", b"\x01")))


class TestTimes:
    def test_clock_going_backwards_does_not_move_the_table_back(self) -> None:
        base = chain(3)
        changed = apply(base, set_main(1), now_ms=START_MS - 10_000_000)
        assert changed.last_updated_ms == base.last_updated_ms
        assert changed.snapshot_log[-1].timestamp_ms == base.last_updated_ms
        changed = apply(changed, *append(4, 1, timestamp_ms=5), now_ms=7)
        assert changed.snapshot_log[-1].timestamp_ms == base.last_updated_ms
        assert changed.last_updated_ms == base.last_updated_ms

    def test_snapshot_from_the_future_moves_the_table_forward(self) -> None:
        changed = apply(chain(1), *append(2, 1, timestamp_ms=NOW_MS + 5_000_000))
        assert changed.last_updated_ms == NOW_MS + 5_000_000


class TestMetadataLog:
    def test_base_metadata_is_logged_at_its_own_time(self) -> None:
        base = chain(1)
        changed = apply(base, change.SetLocation("s3://elsewhere"))
        assert [(one.timestamp_ms, one.metadata_file) for one in changed.metadata_log] == [
            (base.last_updated_ms, BASE_FILE)
        ]

    def test_unwritten_base_metadata_is_not_logged(self) -> None:
        changed = apply_updates(chain(1), [change.SetLocation("s3://b")], now_ms=NOW_MS, base_location=None)
        assert changed.metadata_log == ()

    @pytest.mark.parametrize(("limit", "kept"), [("0", 1), ("1", 1), ("2", 2), ("100", 5)])
    def test_metadata_log_is_capped_and_reports_removed_entries(self, limit: str, kept: int) -> None:
        table = metadata(properties={"write.metadata.previous-versions-max": limit})
        forgotten: list[str] = []
        for at in range(5):
            changed = apply_updates(
                table, [change.SetProperties(FrozenMap({"at": str(at)}))], now_ms=NOW_MS, base_location=f"f{at}"
            )
            forgotten += [one.metadata_file for one in forgotten_metadata_files(table, changed)]
            table = changed
        assert [one.metadata_file for one in table.metadata_log] == [f"f{at}" for at in range(5 - kept, 5)]
        assert forgotten == [f"f{at}" for at in range(5 - kept)]

    def test_invalid_limit_is_fixed_by_the_change_that_corrects_it(self) -> None:
        base = metadata(properties={"write.metadata.previous-versions-max": "many"})
        with pytest.raises(InvalidPropertyError):
            apply(base, change.SetLocation("s3://b"))
        fixed = {"write.metadata.previous-versions-max": "3"}
        assert apply(base, change.SetProperties(FrozenMap(fixed))).properties == fixed


def test_unknown_table_fields_survive_every_change() -> None:
    base = chain(1, extra=FrozenMap({"x-vendor": {"a": 1}}))
    assert apply(base, *append(2, 1)).extra == {"x-vendor": {"a": 1}}
