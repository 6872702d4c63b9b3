"""Actions that change no files: schema, spec, sort order, properties, location, version, references, statistics."""

from __future__ import annotations

import pytest

from frazil.codec.name_mapping_json import decode_name_mapping, encode_name_mapping
from frazil.commit.append import Append
from frazil.commit.new_snapshot import Target
from frazil.commit.replace_table import ReplaceTable
from frazil.commit.update_properties import UpdateLocation, UpdateProperties, UpgradeFormat
from frazil.commit.update_refs import (
    CreateRef,
    DropRef,
    FastForward,
    RenameBranch,
    ReplaceBranch,
    Rollback,
    SetCurrentSnapshot,
    SetRetention,
)
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import (
    AlreadyExistsError,
    InvalidPropertyError,
    InvalidRequestError,
    ReferenceNotFoundError,
    SchemaChangeError,
    SnapshotNotFoundError,
)
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.schema import Schema
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.spec.types import LONG, NestedField
from tests.support.commit_lab import SCHEMA, Lab, paths_of


def three_snapshots(lab: Lab) -> list[int]:
    """Commit three appends and return their ids."""
    for at in range(3):
        lab.commit(Append((lab.file([at]),)))
    return list(lab.load().metadata.snapshots.ids)


# Schema


def test_schema_change_adds_a_schema_and_keeps_the_old() -> None:
    lab = Lab()
    state = lab.commit(UpdateSchema(lambda u: u.add_column("x", "long", doc="new")))
    assert sorted(state.metadata.schemas_by_id) == [0, 1]
    assert state.metadata.current_schema_id == 1
    assert state.metadata.last_column_id == 4


@pytest.mark.parametrize("is_dropped", [False, True], ids=["the spec now", "a spec before"])
def test_column_cannot_take_the_name_of_a_partition_field(is_dropped: bool) -> None:
    lab = Lab(partition_by=["bucket(4, id)", "k"])
    lab.commit(UpdateSchema(lambda u: u.rename_column("k", "key")))
    if is_dropped:
        lab.commit(UpdateSpec(lambda u: u.remove_field("id_bucket").remove_field("k")))
    for change in (
        UpdateSchema(lambda u: u.add_column("id_bucket", "int")),
        UpdateSchema(lambda u: u.rename_column("v", "k")),
        ReplaceTable(Schema((NestedField(1, "id", LONG), NestedField(2, "id_bucket", LONG)))),
    ):
        with pytest.raises(SchemaChangeError, match="a partition field of column"):
            lab.commit(change)
    assert lab.commit(UpdateSchema(lambda u: u.rename_column("key", "k"))).metadata.current_schema.find_field("k")


def test_partition_field_of_a_dropped_column_releases_its_name() -> None:
    lab = Lab(partition_by=["k"])
    lab.commit(UpdateSpec(lambda u: u.remove_field("k")))
    lab.commit(UpdateSchema(lambda u: u.drop_column("k")))
    assert lab.commit(UpdateSchema(lambda u: u.add_column("k", "int"))).metadata.current_schema.find_field("k")


def test_schema_change_without_effect_makes_no_commit() -> None:
    lab = Lab()
    before = lab.load()
    assert lab.commit(UpdateSchema(lambda u: u)).metadata_location == before.metadata_location


def test_ids_of_dropped_columns_are_never_reused() -> None:
    lab = Lab()
    lab.commit(UpdateSchema(lambda u: u.add_column("x", "long")))
    lab.commit(UpdateSchema(lambda u: u.drop_column("x")))
    state = lab.commit(UpdateSchema(lambda u: u.add_column("x", "string")))
    assert state.metadata.current_schema.field("x").field_id == 5


@pytest.mark.parametrize("use", ["partitioned", "sorted"])
def test_column_in_the_current_spec_or_order_cannot_be_dropped(use: str) -> None:
    lab = Lab(partition_by=["k"] if use == "partitioned" else [])
    if use == "sorted":
        lab.commit(UpdateSortOrder(("k desc",)))
    with pytest.raises(SchemaChangeError, match=f"the table is {use} by it"):
        lab.commit(UpdateSchema(lambda u: u.drop_column("k")))


def test_column_of_an_old_spec_may_be_dropped() -> None:
    lab = Lab(partition_by=["k"])
    one = lab.file([1], "a")
    lab.commit(Append((one,)))
    lab.commit(UpdateSpec(lambda u: u.remove_field("k")))
    lab.commit(UpdateSchema(lambda u: u.drop_column("k")))
    assert lab.paths() == paths_of(one)


def test_name_mapping_follows_the_schema() -> None:
    lab = Lab(properties={"schema.name-mapping.default": encode_name_mapping(create_name_mapping(SCHEMA))})
    state = lab.commit(UpdateSchema(lambda u: u.rename_column("k", "key").add_column("x", "long")))
    mapping = decode_name_mapping(state.metadata.properties["schema.name-mapping.default"])
    found = {one.field_id: one.names for one in mapping}
    assert found[2] == ("k", "key")
    assert found[4] == ("x",)


def test_column_properties_follow_renames_and_drops() -> None:
    lab = Lab(
        properties={
            "write.metadata.metrics.column.k": "full",
            "write.metadata.metrics.column.v": "none",
            "write.parquet.bloom-filter-enabled.column.k": "true",
        }
    )
    state = lab.commit(UpdateSchema(lambda u: u.rename_column("k", "key").drop_column("v")))
    stored = state.metadata.properties
    assert stored["write.metadata.metrics.column.key"] == "full"
    assert stored["write.parquet.bloom-filter-enabled.column.key"] == "true"
    assert "write.metadata.metrics.column.k" not in stored
    assert "write.metadata.metrics.column.v" not in stored


def test_column_properties_follow_swapped_names() -> None:
    lab = Lab(properties={"write.metadata.metrics.column.v": "none", "write.metadata.metrics.column.k": "full"})
    state = lab.commit(UpdateSchema(lambda u: u.rename_column("k", "v").rename_column("v", "k")))
    assert state.metadata.properties["write.metadata.metrics.column.v"] == "full"
    assert state.metadata.properties["write.metadata.metrics.column.k"] == "none"


# Spec and sort order


def test_spec_is_added_and_an_old_one_reused() -> None:
    lab = Lab(partition_by=["k"])
    lab.commit(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
    assert lab.load().metadata.default_spec_id == 1
    state = lab.commit(UpdateSpec(lambda u: u.remove_field("id_bucket_4")))
    assert state.metadata.default_spec_id == 0
    assert len(state.metadata.partition_specs) == 2
    before = lab.load()
    assert lab.commit(UpdateSpec(lambda u: u)).metadata_location == before.metadata_location


def test_spec_change_is_rebuilt_on_the_winning_spec() -> None:
    lab = Lab()
    lab.catalog.rivals = [lab.rival(UpdateSpec(lambda u: u.add_field("k")))]
    state = lab.commit(UpdateSpec(lambda u: u.add_field("bucket(4, id)")))
    assert [one.field_id for one in state.metadata.default_spec.fields] == [1000, 1001]


def test_sort_order_is_set_reused_and_removed() -> None:
    lab = Lab()
    state = lab.commit(UpdateSortOrder(("id desc nulls last",)))
    assert state.metadata.default_sort_order_id == 1
    before = state.metadata_location
    assert lab.commit(UpdateSortOrder(("id desc nulls last",))).metadata_location == before
    assert lab.commit(UpdateSortOrder(())).metadata.default_sort_order_id == 0
    assert lab.commit(UpdateSortOrder(("id desc nulls last",))).metadata.default_sort_order_id == 1
    with pytest.raises(InvalidRequestError, match="pass a list"):
        UpdateSortOrder("id")  # type: ignore[arg-type]


# Properties, location, version


def test_properties_are_set_and_removed_in_one_step() -> None:
    lab = Lab(properties={"a": "1", "b": "2"})
    stored = lab.commit(UpdateProperties(FrozenMap({"c": "3"}), frozenset({"a", "none"}))).metadata.properties
    assert {name: stored.get(name) for name in "abc"} == {"a": None, "b": "2", "c": "3"}


@pytest.mark.parametrize("wrong", [{"commit.retry.num-retries": "many"}, {"write.format.default": "csv"}])
def test_invalid_property_value_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidPropertyError):
        UpdateProperties(FrozenMap(wrong))


def test_property_cannot_be_set_and_removed_at_once() -> None:
    with pytest.raises(InvalidRequestError, match="at once"):
        UpdateProperties(FrozenMap({"a": "1"}), frozenset({"a"}))
    with pytest.raises(InvalidRequestError, match="pass a list"):
        UpdateProperties(removals="a")  # type: ignore[arg-type]


def test_moved_table_writes_new_files_to_its_new_location() -> None:
    lab = Lab()
    lab.commit(UpdateLocation("memory://lake/elsewhere/"))
    lab.commit(Append((lab.file([1]),)))
    assert lab.load().metadata.location == "memory://lake/elsewhere"
    assert (lab.snapshot.manifest_list or "").startswith("memory://lake/elsewhere/metadata/")
    before = lab.load().metadata_location
    assert lab.commit(UpdateLocation("memory://lake/elsewhere")).metadata_location == before


def test_format_version_only_increases() -> None:
    lab = Lab(format_version=1)
    assert lab.commit(UpgradeFormat(3)).metadata.format_version == 3
    before = lab.load().metadata_location
    assert lab.commit(UpgradeFormat(3)).metadata_location == before
    with pytest.raises(InvalidRequestError, match="never downgraded"):
        lab.commit(UpgradeFormat(2))


# References


def test_branches_and_tags_are_created_replaced_and_dropped() -> None:
    lab = Lab()
    first, second, third = three_snapshots(lab)
    lab.commit(CreateRef("b", "branch", first, min_snapshots_to_keep=2, max_snapshot_age_ms=5, max_ref_age_ms=7))
    lab.commit(CreateRef("t", "tag"))
    refs = lab.load().metadata.refs
    assert (refs["b"].snapshot_id, refs["b"].min_snapshots_to_keep) == (first, 2)
    assert (refs["t"].snapshot_id, refs["t"].type) == (third, "tag")
    with pytest.raises(AlreadyExistsError):
        lab.commit(CreateRef("b", "branch"))
    lab.commit(CreateRef("b", "branch", exist_ok=True))
    assert lab.load().metadata.ref("b").snapshot_id == first
    lab.commit(CreateRef("t", "tag", second, replaces=True))
    assert lab.load().metadata.ref("t").snapshot_id == second
    with pytest.raises(SnapshotNotFoundError):
        lab.commit(CreateRef("x", "tag", 99))
    with pytest.raises(ReferenceNotFoundError, match="but a tag of that name"):
        lab.commit(DropRef("t", "branch"))
    lab.commit(DropRef("t", "tag"))
    lab.commit(DropRef("t", "tag", missing_ok=True))
    with pytest.raises(InvalidRequestError, match="always has it"):
        lab.commit(DropRef("main", "branch"))
    assert sorted(lab.load().metadata.refs) == ["b", "main"]


def test_reference_requires_a_snapshot() -> None:
    with pytest.raises(InvalidRequestError, match="no snapshot yet"):
        lab = Lab()
        lab.commit(CreateRef("b", "branch"))


def test_retention_is_set_and_removed() -> None:
    lab = Lab()
    three_snapshots(lab)
    lab.commit(CreateRef("b", "branch", min_snapshots_to_keep=2))
    lab.commit(SetRetention("b", max_ref_age_ms=9))
    ref = lab.load().metadata.ref("b")
    assert (ref.min_snapshots_to_keep, ref.max_ref_age_ms) == (2, 9)
    lab.commit(SetRetention("b", min_snapshots_to_keep=0))
    assert lab.load().metadata.ref("b").min_snapshots_to_keep is None


def test_commits_to_a_branch_keep_its_retention() -> None:
    lab = Lab()
    three_snapshots(lab)
    lab.commit(CreateRef("b", "branch", min_snapshots_to_keep=2))
    lab.commit(Append((lab.file([1]),), Target("b")))
    assert lab.load().metadata.ref("b").min_snapshots_to_keep == 2


def test_tag_rejects_commits() -> None:
    lab = Lab()
    three_snapshots(lab)
    lab.commit(CreateRef("t", "tag"))
    with pytest.raises(InvalidRequestError, match="tags do not move"):
        lab.commit(Append((lab.file([1]),), Target("t")))


def test_branch_is_fast_forwarded_only_to_a_descendant() -> None:
    lab = Lab()
    first, _, third = three_snapshots(lab)
    lab.commit(CreateRef("audit", "branch"))
    lab.commit(Append((lab.file([9]),), Target("audit")))
    audit = lab.load().metadata.ref("audit").snapshot_id
    lab.commit(FastForward("main", "audit"))
    assert lab.snapshot.snapshot_id == audit
    lab.commit(FastForward("new", "main"))
    assert lab.load().metadata.ref("new").snapshot_id == audit
    lab.commit(CreateRef("old", "branch", first))
    with pytest.raises(InvalidRequestError, match="not an ancestor"):
        lab.commit(FastForward("main", "old"))
    lab.commit(ReplaceBranch("main", third))
    assert lab.snapshot.snapshot_id == third


def test_fast_forward_does_not_lose_a_concurrent_commit() -> None:
    lab = Lab()
    three_snapshots(lab)
    lab.commit(CreateRef("audit", "branch"))
    lab.commit(Append((lab.file([9]),), Target("audit")))
    lab.catalog.rivals = [lab.rival(Append((lab.file([10]),)))]
    with pytest.raises(InvalidRequestError, match="not an ancestor"):
        lab.commit(FastForward("main", "audit"))


def test_rollback_stays_within_the_history_of_the_branch() -> None:
    lab = Lab()
    first, second, third = three_snapshots(lab)
    lab.commit(Rollback(first))
    assert lab.snapshot.snapshot_id == first
    with pytest.raises(InvalidRequestError, match="not in the history"):
        lab.commit(Rollback(third))
    lab.commit(SetCurrentSnapshot(third))
    assert lab.snapshot.snapshot_id == third
    time_ms = lab.load().metadata.snapshot(third).timestamp_ms
    lab.commit(Rollback(before_ms=time_ms))
    assert lab.snapshot.snapshot_id == second
    with pytest.raises(SnapshotNotFoundError, match="no snapshot that old"):
        lab.commit(Rollback(before_ms=1))
    log = [one.snapshot_id for one in lab.load().metadata.snapshot_log]
    assert log == [first, second, third, first, third, second]


def test_current_snapshot_is_set_by_reference() -> None:
    lab = Lab()
    first, *_ = three_snapshots(lab)
    lab.commit(CreateRef("t", "tag", first))
    lab.commit(SetCurrentSnapshot(ref="t"))
    assert lab.snapshot.snapshot_id == first
    with pytest.raises(InvalidRequestError, match="either"):
        lab.commit(SetCurrentSnapshot())


def test_branch_is_renamed() -> None:
    lab = Lab()
    first, *_ = three_snapshots(lab)
    lab.commit(CreateRef("b", "branch", first))
    lab.commit(RenameBranch("b", "c"))
    assert sorted(lab.load().metadata.refs) == ["c", "main"]
    with pytest.raises(AlreadyExistsError):
        lab.commit(RenameBranch("c", "main"))
    with pytest.raises(InvalidRequestError):
        lab.commit(RenameBranch("main", "x"))


def test_staged_snapshot_moves_no_branch() -> None:
    lab = Lab()
    three_snapshots(lab)
    before = lab.snapshot
    lab.commit(Append((lab.file([7]),), Target(is_staged=True)))
    assert lab.snapshot == before
    assert len(lab.load().metadata.snapshots) == 4


# Statistics


def test_statistics_are_set_and_removed() -> None:
    lab = Lab()
    *_, last = three_snapshots(lab)
    lab.commit(
        UpdateStatistics((StatisticsFile(last, "memory://s", 5, 1),), (PartitionStatisticsFile(last, "memory://p", 3),))
    )
    metadata = lab.load().metadata
    assert metadata.find_statistics(last) is not None and metadata.find_partition_statistics(last) is not None
    lab.commit(UpdateStatistics(removed=(last, 99), removed_partition=(last,)))
    metadata = lab.load().metadata
    assert metadata.statistics == () and metadata.partition_statistics == ()
    with pytest.raises(SnapshotNotFoundError):
        lab.commit(UpdateStatistics((StatisticsFile(99, "memory://s", 5, 1),)))
