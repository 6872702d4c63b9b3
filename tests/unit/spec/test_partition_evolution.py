"""Partition evolution, with Iceberg Java's case table and the cases it gets wrong."""

import pytest

from frazil.errors import FieldNotFoundError, InvalidRequestError, SchemaChangeError, UnsupportedError
from frazil.spec.partition_evolution import EvolvedSpec, PartitionSpecUpdate
from frazil.spec.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    PartitionTerm,
    build_partition_spec,
)
from frazil.spec.schema import Schema
from frazil.spec.transforms import (
    DAY,
    HOUR,
    IDENTITY,
    MONTH,
    VOID,
    YEAR,
    Bucket,
    Transform,
    Truncate,
    UnknownTransform,
)
from frazil.spec.types import DATE, LONG, STRING, TIMESTAMPTZ, NestedField

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "ts", TIMESTAMPTZ, required=True),
        NestedField(3, "category", STRING, required=True),
        NestedField(4, "data", STRING),
    )
)
PARTITIONED = build_partition_spec(SCHEMA, ["category", "day(ts)", "bucket(16, id) as shard"])
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def update(version: int, spec: PartitionSpec, *history: PartitionSpec) -> PartitionSpecUpdate:
    return PartitionSpecUpdate(SCHEMA, (*history, spec), spec, format_version=version)


def field(source_id: int, field_id: int, name: str, transform: Transform) -> PartitionField:
    return PartitionField((source_id,), field_id, name, transform)


CATEGORY = field(3, 1000, "category", IDENTITY)
TS_DAY = field(2, 1001, "ts_day", DAY)
SHARD = field(1, 1002, "shard", Bucket(16))


@VERSIONS
@pytest.mark.parametrize(
    "term, expected",
    [
        ("category", field(3, 1000, "category", IDENTITY)),
        ("identity(category)", field(3, 1000, "category", IDENTITY)),
        ("year(ts)", field(2, 1000, "ts_year", YEAR)),
        ("months(ts)", field(2, 1000, "ts_month", MONTH)),
        ("day(ts)", field(2, 1000, "ts_day", DAY)),
        ("hour(ts)", field(2, 1000, "ts_hour", HOUR)),
        ("bucket(16, id)", field(1, 1000, "id_bucket_16", Bucket(16))),
        ("truncate(4, data)", field(4, 1000, "data_trunc_4", Truncate(4))),
        ("void(data)", field(4, 1000, "data_null", VOID)),
        ("bucket(16, id) as shard", field(1, 1000, "shard", Bucket(16))),
    ],
)
def test_first_partition_field_has_the_default_name_of_iceberg_java(
    version: int, term: str, expected: PartitionField
) -> None:
    assert update(version, UNPARTITIONED).add_field(term).build() == EvolvedSpec(
        PartitionSpec(1, (expected,)), 1000, is_new=True
    )


@VERSIONS
def test_named_partition_field_keeps_its_name(version: int) -> None:
    built = update(version, UNPARTITIONED).add_field("bucket(16, id) as other", "shard").build().spec
    assert built.fields == (field(1, 1000, "shard", Bucket(16)),)


@VERSIONS
def test_added_partition_field_comes_last_with_the_next_id(version: int) -> None:
    built = update(version, PARTITIONED).add_field("truncate(4, data)").build()
    assert built.spec.fields == (*PARTITIONED.fields, field(4, 1003, "data_trunc_4", Truncate(4)))
    assert built.last_partition_id == 1003
    assert built.spec.spec_id == 1


@VERSIONS
def test_several_fields_are_added_in_order(version: int) -> None:
    built = (
        update(version, UNPARTITIONED)
        .add_field("category")
        .add_field("day(ts)")
        .add_field("bucket(16, id)", "shard")
        .add_field("truncate(4, data)", "prefix")
        .build()
    )
    assert built.spec.fields == (CATEGORY, TS_DAY, SHARD, field(4, 1003, "prefix", Truncate(4)))


@VERSIONS
def test_hour_may_be_added_beside_day(version: int) -> None:
    by_day = update(version, UNPARTITIONED).add_field("day(ts)").build().spec
    by_hour = update(version, by_day).add_field("hour(ts)").build().spec
    assert by_hour.fields == (field(2, 1000, "ts_day", DAY), field(2, 1001, "ts_hour", HOUR))


@VERSIONS
def test_second_bucket_of_a_column_may_be_added(version: int) -> None:
    first = update(version, UNPARTITIONED).add_field("bucket(16, id)").build().spec
    second = update(version, first).add_field("bucket(8, id)").build().spec
    assert second.fields == (field(1, 1000, "id_bucket_16", Bucket(16)), field(1, 1001, "id_bucket_8", Bucket(8)))


@VERSIONS
@pytest.mark.parametrize(
    "removed, at",
    [
        ("category", 0),
        (PartitionTerm("category", IDENTITY), 0),
        ("day(ts)", 1),
        (PartitionTerm("ts", DAY), 1),
        ("shard", 2),
        ("bucket(16, id)", 2),
    ],
)
def test_v1_voids_a_removed_field_and_v2_drops_it(version: int, removed: PartitionTerm | str, at: int) -> None:
    built = update(version, PARTITIONED).remove_field(removed).build().spec
    fields = list(PARTITIONED.fields)
    if version == 1:
        fields[at] = field(fields[at].source_id, fields[at].field_id, fields[at].name, VOID)
    else:
        del fields[at]
    assert built.fields == tuple(fields)


@VERSIONS
def test_field_is_renamed_and_keeps_its_id(version: int) -> None:
    built = update(version, PARTITIONED).rename_field("shard", "id_bucket").build()
    assert built.spec.fields == (CATEGORY, TS_DAY, field(1, 1002, "id_bucket", Bucket(16)))
    assert built.last_partition_id == 1002


@VERSIONS
def test_rename_remove_and_add_combine(version: int) -> None:
    built = (
        update(version, PARTITIONED)
        .rename_field("shard", "id_bucket")
        .remove_field("day(ts)")
        .add_field("truncate(4, data)", "prefix")
        .build()
        .spec
    )
    middle = (field(2, 1001, "ts_day", VOID),) if version == 1 else ()
    assert built.fields == (
        CATEGORY,
        *middle,
        field(1, 1002, "id_bucket", Bucket(16)),
        field(4, 1003, "prefix", Truncate(4)),
    )


@VERSIONS
@pytest.mark.parametrize("removed", ["prefix", "truncate(4, data)", PartitionTerm("data", Truncate(4))])
def test_field_added_in_the_update_cannot_be_removed(version: int, removed: PartitionTerm | str) -> None:
    changes = update(version, PARTITIONED).add_field("truncate(4, data)", "prefix")
    with pytest.raises(SchemaChangeError, match="this update adds it"):
        changes.remove_field(removed)


@VERSIONS
@pytest.mark.parametrize("again", ["truncate(4, data)", "truncate(6, data) as prefix"])
def test_field_cannot_be_added_twice_in_one_update(version: int, again: str) -> None:
    changes = update(version, PARTITIONED).add_field("truncate(4, data)", "prefix")
    with pytest.raises(SchemaChangeError, match="Cannot add partition field"):
        changes.add_field(again)


@VERSIONS
def test_two_time_transforms_of_one_column_cannot_be_added_together(version: int) -> None:
    with pytest.raises(SchemaChangeError, match="already partitions 'ts' by day"):
        update(version, UNPARTITIONED).add_field("day(ts)").add_field("hour(ts)")
    with pytest.raises(SchemaChangeError, match="already partitions 'ts' by hour"):
        update(version, PARTITIONED).add_field("hour(ts)").add_field("month(ts)")


@VERSIONS
@pytest.mark.parametrize("again", ["bucket(16, id) as shard", "bucket(16, id)"])
def test_readding_a_removed_field_changes_nothing(version: int, again: str) -> None:
    built = update(version, PARTITIONED).remove_field("shard").add_field(again).build()
    assert built == EvolvedSpec(PARTITIONED, 1002, is_new=False)


@VERSIONS
def test_readding_a_removed_field_under_another_name_renames_it(version: int) -> None:
    built = update(version, PARTITIONED).remove_field("shard").add_field("bucket(16, id)", "new_shard").build().spec
    assert built.fields == (CATEGORY, TS_DAY, field(1, 1002, "new_shard", Bucket(16)))


@VERSIONS
@pytest.mark.parametrize("again", ["category", "identity(category)", "bucket(16, id)", "bucket(16, id) as b16"])
def test_existing_field_cannot_be_added(version: int, again: str) -> None:
    with pytest.raises(SchemaChangeError, match="is the same"):
        update(version, PARTITIONED).add_field(again)


@VERSIONS
@pytest.mark.parametrize("missing", ["moon", "hour(ts)", "bucket(8, id)", "not a term", "day(nowhere)"])
def test_missing_field_cannot_be_removed(version: int, missing: str) -> None:
    with pytest.raises(SchemaChangeError, match="Cannot remove partition field") as caught:
        update(version, PARTITIONED).remove_field(missing)
    assert caught.value.hint == "The partition fields are: category, ts_day, shard."


@VERSIONS
def test_missing_field_cannot_be_renamed(version: int) -> None:
    with pytest.raises(SchemaChangeError, match="Cannot rename partition field 'shake'"):
        update(version, PARTITIONED).rename_field("shake", "seal")


@VERSIONS
def test_field_added_in_the_update_cannot_be_renamed(version: int) -> None:
    changes = update(version, PARTITIONED).add_field("truncate(4, data)", "data_trunc")
    with pytest.raises(SchemaChangeError, match="this update adds it"):
        changes.rename_field("data_trunc", "prefix")


@VERSIONS
def test_field_cannot_be_both_renamed_and_removed(version: int) -> None:
    with pytest.raises(SchemaChangeError, match="this update renames it"):
        update(version, PARTITIONED).rename_field("shard", "id_bucket").remove_field("bucket(16, id)")
    with pytest.raises(SchemaChangeError, match="this update removes it"):
        update(version, PARTITIONED).remove_field("bucket(16, id)").rename_field("shard", "id_bucket")


@VERSIONS
def test_empty_or_used_field_name_is_refused(version: int) -> None:
    with pytest.raises(SchemaChangeError, match="the new name is empty"):
        update(version, PARTITIONED).rename_field("shard", "")
    with pytest.raises(SchemaChangeError, match="two fields would be named 'ts_day'"):
        update(version, PARTITIONED).rename_field("shard", "ts_day").build()
    with pytest.raises(SchemaChangeError, match="two fields would be named 'ts_day'"):
        update(version, PARTITIONED).add_field("truncate(4, data)", "ts_day").build()


@VERSIONS
def test_repeated_removal_frees_the_name_each_time(version: int) -> None:
    spec = UNPARTITIONED
    for change in ("+day(ts) as ts_date", "-day(ts)", "+day(ts) as ts_date", "-day(ts)", "+month(ts)"):
        changes = update(version, spec)
        if change[0] == "+":
            changes.add_field(change[1:])
        else:
            changes.remove_field(change[1:])
        spec = changes.build().spec
    final = update(version, spec).rename_field("ts_month", "ts_date").build().spec
    if version == 1:
        assert [str(one.transform) for one in final.fields] == ["void", "void", "month"]
        assert [one.name for one in final.fields] == ["ts_date_1000", "ts_date_1001", "ts_date"]
    else:
        assert [(one.name, one.transform) for one in final.fields] == [("ts_date", MONTH)]


@VERSIONS
def test_removed_field_name_may_be_reused_by_another_transform(version: int) -> None:
    spec = build_partition_spec(SCHEMA, ["month(ts) as ts_transformed"])
    built = update(version, spec).remove_field("ts_transformed").add_field("day(ts)", "ts_transformed").build().spec
    kept = (field(2, 1000, "ts_transformed_1000", VOID),) if version == 1 else ()
    assert built.fields == (*kept, field(2, 1001, "ts_transformed", DAY))


@VERSIONS
def test_field_may_be_renamed_to_a_removed_name(version: int) -> None:
    built = update(version, PARTITIONED).remove_field("ts_day").rename_field("shard", "ts_day").build().spec
    kept = (field(2, 1001, "ts_day_1001", VOID),) if version == 1 else ()
    assert built.fields == (CATEGORY, *kept, field(1, 1002, "ts_day", Bucket(16)))


def test_v2_reuses_the_old_id_and_name_of_a_field() -> None:
    without = update(2, PARTITIONED).remove_field("shard").build()
    again = PartitionSpecUpdate(
        SCHEMA, (PARTITIONED, without.spec), without.spec, format_version=2, last_partition_id=1002
    ).add_field("bucket(16, id)")
    assert again.build() == EvolvedSpec(PARTITIONED, 1002, is_new=False)
    other = PartitionSpecUpdate(
        SCHEMA, (PARTITIONED, without.spec), without.spec, format_version=2, last_partition_id=1002
    )
    built = other.add_field("bucket(16, id)", "other").build()
    assert built.spec.fields == (CATEGORY, TS_DAY, field(1, 1003, "other", Bucket(16)))


def test_newest_spec_decides_the_restored_name() -> None:
    renamed = update(2, PARTITIONED).rename_field("shard", "bucketed").build().spec
    without = PartitionSpec(2, (CATEGORY, TS_DAY))
    changes = PartitionSpecUpdate(SCHEMA, (PARTITIONED, renamed, without), without, format_version=2)
    assert changes.add_field("bucket(16, id)").build() == EvolvedSpec(renamed, 1002, is_new=False)


def test_new_ids_follow_the_last_partition_id() -> None:
    changes = PartitionSpecUpdate(
        SCHEMA, (UNPARTITIONED,), UNPARTITIONED, format_version=2, last_partition_id=1010
    ).add_field("category")
    built = changes.build()
    assert built.spec.fields[0].field_id == 1011
    assert built.last_partition_id == 1011


def test_v1_refuses_unordered_ids() -> None:
    changes = PartitionSpecUpdate(
        SCHEMA, (UNPARTITIONED,), UNPARTITIONED, format_version=1, last_partition_id=1010
    ).add_field("category")
    with pytest.raises(SchemaChangeError, match="these would be 1011"):
        changes.build()


def test_ambiguous_field_id_is_not_reused() -> None:
    # Specs of a former v1 table: both used 1000, for different things.
    first = PartitionSpec(0, (field(1, 1000, "id_bucket", Bucket(16)),))
    second = PartitionSpec(1, (field(3, 1000, "category", IDENTITY),))
    changes = PartitionSpecUpdate(SCHEMA, (first, second), second, format_version=2, last_partition_id=1000)
    built = changes.add_field("bucket(16, id)").build().spec
    assert built.fields == (field(3, 1000, "category", IDENTITY), field(1, 1001, "id_bucket_16", Bucket(16)))


def test_void_field_of_a_former_v1_table_is_restored() -> None:
    voided = update(1, PARTITIONED).remove_field("ts_day").build().spec
    changes = PartitionSpecUpdate(SCHEMA, (PARTITIONED, voided), voided, format_version=2, last_partition_id=1002)
    built = changes.add_field("day(ts)").build().spec
    assert built.fields == (CATEGORY, SHARD, TS_DAY)
    assert built.spec_id == 2


@VERSIONS
def test_update_without_changes_returns_the_default_spec(version: int) -> None:
    assert update(version, PARTITIONED).build() == EvolvedSpec(PARTITIONED, 1002, is_new=False)
    same_name = update(version, PARTITIONED).rename_field("shard", "shard")
    assert same_name.build() == EvolvedSpec(PARTITIONED, 1002, is_new=False)


def test_existing_spec_is_reused() -> None:
    built = PartitionSpecUpdate(
        SCHEMA, (UNPARTITIONED, PARTITIONED.with_spec_id(1)), PARTITIONED.with_spec_id(1), format_version=2
    )
    for name in ("category", "ts_day", "shard"):
        built.remove_field(name)
    assert built.build() == EvolvedSpec(UNPARTITIONED, 1002, is_new=False)


@VERSIONS
def test_partition_field_cannot_take_a_column_name(version: int) -> None:
    with pytest.raises(SchemaChangeError, match="the schema has a column of that name"):
        update(version, PARTITIONED).add_field("truncate(4, data)", "id").build()
    with pytest.raises(SchemaChangeError, match="the schema has a column of that name"):
        update(version, PARTITIONED).rename_field("shard", "data").build()
    own = update(version, PARTITIONED).rename_field("shard", "id").build().spec
    assert own.fields[2].name == "id"


@VERSIONS
def test_column_with_a_partition_field_name_does_not_block_updates(version: int) -> None:
    schema = Schema((*SCHEMA.fields, NestedField(5, "shard", STRING)))
    changes = PartitionSpecUpdate(schema, (PARTITIONED,), PARTITIONED, format_version=version)
    assert changes.add_field("truncate(4, data)").build().spec.fields[2] == SHARD


def test_transform_must_accept_its_column() -> None:
    with pytest.raises(InvalidRequestError, match="day does not accept 'data' of type string"):
        update(2, UNPARTITIONED).add_field("day(data)").build()
    with pytest.raises(FieldNotFoundError):
        update(2, UNPARTITIONED).add_field("day(nowhere)")


def test_columns_are_case_insensitive_on_request() -> None:
    changes = PartitionSpecUpdate(SCHEMA, (PARTITIONED,), PARTITIONED, format_version=2, case_sensitive=False)
    built = changes.remove_field("DAY(TS)").add_field("bucket(4, ID)").build().spec
    assert built.fields == (CATEGORY, SHARD, field(1, 1003, "id_bucket_4", Bucket(4)))


def test_field_of_an_unknown_transform_can_only_be_removed() -> None:
    unknown = PartitionSpec(0, (CATEGORY, field(2, 1001, "z", UnknownTransform("zorder"))))
    with pytest.raises(UnsupportedError, match="unknown transform zorder"):
        update(2, unknown).add_field("bucket(4, id)").build()
    assert update(2, unknown).remove_field("z").build().spec.fields == (CATEGORY,)


def test_field_of_a_dropped_column_can_be_removed_by_name() -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(5, "day", DATE)))
    changes = PartitionSpecUpdate(schema, (PARTITIONED,), PARTITIONED, format_version=2)
    built = changes.remove_field("category").remove_field("ts_day").add_field("month(day)").build().spec
    assert built.fields == (SHARD, field(5, 1003, "day_month", MONTH))
    kept = PartitionSpecUpdate(schema, (PARTITIONED,), PARTITIONED, format_version=2).add_field("month(day)")
    with pytest.raises(InvalidRequestError, match="no column with the id 3"):
        kept.build()
