"""Partition specs: building, checking, types, paths."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from frazil.errors import FieldNotFoundError, InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    PartitionTerm,
    active_partition_type,
    build_partition_spec,
    check_partition_spec,
    check_writable,
    parse_partition_term,
    unified_partition_type,
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
from frazil.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "ts", TIMESTAMPTZ),
        NestedField(3, "other_ts", TIMESTAMPTZ),
        NestedField(4, "data", STRING),
        NestedField(5, "v", VARIANT),
        NestedField(6, "geom", GeometryType()),
        NestedField(7, "geog", GeographyType()),
        NestedField(8, "u", UNKNOWN),
        NestedField(9, "place", StructType((NestedField(10, "city", STRING), NestedField(11, "zip code", STRING)))),
        NestedField(12, "tags", ListType(13, StructType((NestedField(14, "tag", STRING),)))),
        NestedField(15, "props", MapType(16, STRING, 17, STRING)),
    )
)


def field(source_id: int, field_id: int, name: str, transform: Transform) -> PartitionField:
    return PartitionField((source_id,), field_id, name, transform)


@pytest.mark.parametrize(
    "term, expected",
    [
        ("id", field(1, 1000, "id", IDENTITY)),
        ("identity(id)", field(1, 1000, "id", IDENTITY)),
        ("bucket(16, id)", field(1, 1000, "id_bucket", Bucket(16))),
        ("truncate(4, data)", field(4, 1000, "data_trunc", Truncate(4))),
        ("year(ts)", field(2, 1000, "ts_year", YEAR)),
        ("month(ts)", field(2, 1000, "ts_month", MONTH)),
        ("day(ts)", field(2, 1000, "ts_day", DAY)),
        ("hour(ts)", field(2, 1000, "ts_hour", HOUR)),
        ("void(id)", field(1, 1000, "id_null", VOID)),
        ("void(id) as id", field(1, 1000, "id", VOID)),
        ("bucket(16, id) as shard", field(1, 1000, "shard", Bucket(16))),
        ("place.city", field(10, 1000, "place.city", IDENTITY)),
        ("bucket(4, place.`zip code`)", field(11, 1000, "place.zip code_bucket", Bucket(4))),
        (PartitionTerm("id", Bucket(8), "b"), field(1, 1000, "b", Bucket(8))),
        ("u", field(8, 1000, "u", IDENTITY)),
    ],
)
def test_new_partition_fields_have_the_names_of_iceberg_java(
    term: PartitionTerm | str, expected: PartitionField
) -> None:
    assert build_partition_spec(SCHEMA, [term]) == PartitionSpec(0, (expected,))


def test_field_ids_continue_from_1000_or_the_last_one() -> None:
    spec = build_partition_spec(SCHEMA, ["id", "day(ts)"])
    assert [one.field_id for one in spec.fields] == [1000, 1001]
    assert spec.has_sequential_ids
    later = build_partition_spec(SCHEMA, ["id"], spec_id=3, last_assigned_field_id=1001)
    assert (later.spec_id, later.fields[0].field_id, later.last_assigned_field_id) == (3, 1002, 1002)
    assert not later.has_sequential_ids
    assert UNPARTITIONED.last_assigned_field_id == 999


@pytest.mark.parametrize("one", ["year", "month", "day", "hour"])
@pytest.mark.parametrize("other", ["year", "month", "day", "hour"])
def test_column_is_partitioned_by_one_time_unit_only(one: str, other: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"already partitions it|are named"):
        build_partition_spec(SCHEMA, [f"{one}(ts)", f"{other}(ts) as x"])
    assert len(build_partition_spec(SCHEMA, [f"{one}(ts)", f"{other}(other_ts)"]).fields) == 2


def test_column_is_an_identity_partition_once() -> None:
    with pytest.raises(InvalidRequestError, match="already partitions it by identity"):
        build_partition_spec(SCHEMA, ["id", "id as other"])
    assert len(build_partition_spec(SCHEMA, ["year(ts)", "ts", "bucket(4, ts)", "bucket(8, ts) as b"]).fields) == 4


@pytest.mark.parametrize("term", ["year(ts) as data", "bucket(4, id) as data", "bucket(4, id) as id", "id as data"])
def test_field_cannot_take_a_column_name(term: str) -> None:
    with pytest.raises(InvalidRequestError, match="the schema has a column of that name"):
        build_partition_spec(SCHEMA, [term])


def test_two_fields_cannot_share_a_name_or_an_id() -> None:
    with pytest.raises(InvalidRequestError, match="two fields are named 'x'"):
        build_partition_spec(SCHEMA, ["bucket(4, id) as x", "truncate(4, data) as x"])
    with pytest.raises(InvalidRequestError, match="two fields have the id 1000"):
        PartitionSpec(0, (field(1, 1000, "a", IDENTITY), field(4, 1000, "b", IDENTITY)))
    with pytest.raises(InvalidRequestError, match="its name is empty"):
        field(1, 1000, "", IDENTITY)


@pytest.mark.parametrize(
    "term, reason",
    [
        ("bucket(5, v)", "not a primitive type"),
        ("place", "not a primitive type"),
        ("bucket(5, geom)", "does not accept 'geom' of type geometry"),
        ("geog", "does not accept 'geog' of type geography"),
        ("bucket(5, u)", "does not accept 'u' of type unknown"),
        ("day(data)", "day does not accept 'data' of type string"),
        ("tags.element.tag", "inside a list or map"),
        ("props.key", "inside a list or map"),
    ],
)
def test_source_must_be_a_primitive_column_accepted_by_the_transform(term: str, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        build_partition_spec(SCHEMA, [term])


def test_source_must_exist() -> None:
    with pytest.raises(FieldNotFoundError, match="Cannot find column 'missing'"):
        build_partition_spec(SCHEMA, ["day(missing)"])
    with pytest.raises(FieldNotFoundError):
        build_partition_spec(SCHEMA, ["ID"])
    assert build_partition_spec(SCHEMA, ["ID"], case_sensitive=False).fields[0].name == "id"


def test_old_specs_may_lack_their_sources() -> None:
    spec = PartitionSpec(0, (field(99, 1000, "gone", IDENTITY),))
    check_partition_spec(SCHEMA, spec, may_miss_sources=True)
    with pytest.raises(InvalidRequestError, match="no column with the id 99"):
        check_partition_spec(SCHEMA, spec)
    check_partition_spec(SCHEMA, PartitionSpec(0, (field(99, 1000, "gone", VOID),)))


def test_spec_of_void_fields_is_unpartitioned() -> None:
    assert UNPARTITIONED.is_unpartitioned
    assert PartitionSpec(1, (field(1, 1000, "id", VOID),)).is_unpartitioned
    assert PartitionSpec(1, (field(1, 1000, "id", VOID), field(2, 1001, "ts_day", DAY))).is_partitioned
    assert PartitionSpec(1, (field(1, 1000, "z", UnknownTransform("zorder")),)).is_partitioned


def test_partition_type_has_field_ids_and_optional_fields() -> None:
    spec = build_partition_spec(SCHEMA, ["id", "bucket(4, data)", "day(ts)", "truncate(2, data)", "void(id)"])
    assert spec.partition_type(SCHEMA) == StructType(
        (
            NestedField(1000, "id", LONG),
            NestedField(1001, "data_bucket", INT),
            NestedField(1002, "ts_day", DATE),
            NestedField(1003, "data_trunc", STRING),
            NestedField(1004, "id_null", LONG),
        )
    )


def test_type_of_a_dropped_source_comes_from_older_schemas() -> None:
    spec = build_partition_spec(SCHEMA, ["data", "bucket(4, id)"])
    now = Schema((NestedField(20, "x", INT),), schema_id=1)
    assert [one.field_type for one in spec.partition_type(now)] == [UNKNOWN, INT]
    assert [one.field_type for one in spec.partition_type(now, other_schemas=[SCHEMA])] == [STRING, INT]


def test_type_of_an_unknown_transform_is_string() -> None:
    spec = PartitionSpec(1, (field(99, 1000, "custom", UnknownTransform("custom")),))
    assert spec.partition_type(SCHEMA) == StructType((NestedField(1000, "custom", STRING),))


def test_fields_are_found_by_id_and_source() -> None:
    spec = build_partition_spec(SCHEMA, ["id", "bucket(4, id)", "day(ts)"])
    assert spec.find_field("ts_day") == spec.find_field(1002) == spec.fields[2]
    assert spec.find_field("nope") is None
    assert spec.find_field(1) is None
    assert spec.fields_of_source(1) == spec.fields[:2]
    assert spec.identity_source_ids == {1}


def test_specs_pickle_print_and_hash() -> None:
    spec = build_partition_spec(SCHEMA, ["id", "bucket(4, id)"])
    with_extra = PartitionSpec(0, spec.fields, FrozenMap({"x": [1]}))
    assert pickle.loads(pickle.dumps(with_extra)) == with_extra
    assert hash(with_extra) == hash(spec)
    assert str(spec) == "[\n  1000: id: identity(1)\n  1001: id_bucket: bucket[4](1)\n]"
    assert str(UNPARTITIONED) == "[]"


# --- several sources, unknown transforms


def test_multi_source_field_has_an_unknown_transform() -> None:
    several = PartitionField((1, 2), 1000, "z", UnknownTransform("zorder"))
    assert str(several) == "1000: z: zorder(1, 2)"
    with pytest.raises(UnsupportedError, match="zorder takes 2 columns"):
        _ = several.source_id
    with pytest.raises(InvalidRequestError, match=r"bucket\[4\] takes one source column, not 2"):
        PartitionField((1, 2), 1000, "z", Bucket(4))
    with pytest.raises(InvalidRequestError, match="it has no source column"):
        PartitionField((), 1000, "z", Bucket(4))


def test_spec_with_an_unknown_transform_is_refused_for_writing() -> None:
    spec = PartitionSpec(7, (field(1, 1000, "id", IDENTITY), field(1, 1001, "z", UnknownTransform("zorder"))))
    assert spec.unknown_fields == spec.fields[1:]
    with pytest.raises(UnsupportedError, match="Cannot write with partition spec 7: field 'z' uses the unknown"):
        check_writable(spec)
    check_writable(build_partition_spec(SCHEMA, ["id"]))


# --- equivalence


def test_equivalent_specs_have_equal_sources_transforms_and_names_in_order() -> None:
    spec = build_partition_spec(SCHEMA, ["id", "day(ts)"])
    other_ids = PartitionSpec(9, (field(1, 1007, "id", IDENTITY), field(2, 1008, "ts_day", DAY)))
    assert spec.same_fields(other_ids) and spec != other_ids
    assert not spec.same_fields(PartitionSpec(0, spec.fields[::-1]))
    assert not spec.same_fields(PartitionSpec(0, spec.fields[:1]))
    assert not spec.same_fields(build_partition_spec(SCHEMA, ["id", "day(ts) as d"]))
    assert not spec.same_fields(build_partition_spec(SCHEMA, ["id", "month(ts) as ts_day"]))
    assert not spec.same_fields(build_partition_spec(SCHEMA, ["id", "day(other_ts) as ts_day"]))


# --- paths

PATHS = Schema(
    (
        NestedField(1, "id", INT),
        NestedField(2, "data", STRING),
        NestedField(3, "ts", TIMESTAMP),
        NestedField(4, '"esc"#1', STRING),
    )
)


@pytest.mark.parametrize(
    "terms, values, expected",
    [
        (["hour(ts)", "bucket(10, id)"], (420034, 7), "ts_hour=2017-12-01-10/id_bucket=7"),
        (["data", "truncate(10, data)"], ("a/b/c/d", "a/b/c/d"), "data=a%2Fb%2Fc%2Fd/data_trunc=a%2Fb%2Fc%2Fd"),
        (['`"esc"#1`'], ("a/b/c/d",), "%22esc%22%231=a%2Fb%2Fc%2Fd"),
        (["data"], ("",), "data="),
        (["data"], (None,), "data=null"),
        (["data"], ("a b+c~d*e-f_g.h=i%é",), "data=a+b%2Bc%7Ed*e-f_g.h%3Di%25%C3%A9"),
        (["data"], ("\ud800",), "data=%3F"),
        (["data"], ("..",), "data=.."),
        (["data", "id"], {"id": 3, "data": "x"}, "data=x/id=3"),
        (["ts"], (1_512_123_175_038_194,), "ts=2017-12-01T10%3A12%3A55.038194"),
        ([], (), ""),
    ],
)
def test_partition_paths_match_iceberg_java(terms: list[str], values: Any, expected: str) -> None:
    assert build_partition_spec(PATHS, terms).partition_path(values, PATHS) == expected


def test_path_requires_a_value_per_field() -> None:
    with pytest.raises(InvalidRequestError, match="1 values for 2 partition fields"):
        build_partition_spec(PATHS, ["data", "id"]).partition_path(("x",), PATHS)


# --- the unified type


def test_unified_type_is_the_union_of_all_fields_by_id() -> None:
    first = build_partition_spec(SCHEMA, ["data"])
    second = PartitionSpec(1, (field(1, 1001, "id_bucket", Bucket(8)),))
    expected = StructType((NestedField(1000, "data", STRING), NestedField(1001, "id_bucket", INT)))
    assert unified_partition_type([first, second], SCHEMA) == expected
    assert unified_partition_type([second, first], SCHEMA) == expected
    assert unified_partition_type([], SCHEMA) == StructType()


def test_unified_type_uses_the_newest_name_and_the_type_before_void() -> None:
    first = PartitionSpec(0, (field(4, 1000, "p1", Truncate(2)), field(2, 1001, "ts_day", DAY)))
    second = PartitionSpec(1, (field(4, 1000, "p2", Truncate(2)), field(2, 1001, "ts_day_1001", VOID)))
    assert unified_partition_type([first, second], SCHEMA) == StructType(
        (NestedField(1000, "p2", STRING), NestedField(1001, "ts_day_1001", DATE))
    )


def test_name_of_two_fields_goes_to_the_newest() -> None:
    first = PartitionSpec(0, (field(2, 1000, "t", MONTH),))
    second = PartitionSpec(1, (field(2, 1001, "t", DAY),))
    assert unified_partition_type([first, second], SCHEMA) == StructType(
        (NestedField(1000, "t_1000", INT), NestedField(1001, "t", DATE))
    )


def test_id_with_two_meanings_cannot_be_unified() -> None:
    first = build_partition_spec(SCHEMA, ["data"])
    second = build_partition_spec(SCHEMA, ["id"], spec_id=1)
    with pytest.raises(UnsupportedError, match="field id 1000 is both"):
        unified_partition_type([first, second], SCHEMA)


def test_fields_of_unknown_transforms_are_not_unified() -> None:
    spec = PartitionSpec(0, (field(1, 1000, "id", IDENTITY), field(1, 1001, "z", UnknownTransform("z"))))
    assert unified_partition_type([spec], SCHEMA) == StructType((NestedField(1000, "id", LONG),))


def test_fields_of_dropped_columns_are_unified_but_not_active() -> None:
    spec = build_partition_spec(SCHEMA, ["data", "bucket(4, id)"])
    now = Schema((NestedField(4, "data", STRING),), schema_id=1)
    assert active_partition_type([spec], now) == StructType((NestedField(1000, "data", STRING),))
    empty = Schema((NestedField(20, "x", INT),), schema_id=2)
    assert active_partition_type([spec], empty) == StructType()
    assert unified_partition_type([spec], empty) == StructType(
        (NestedField(1000, "data", UNKNOWN), NestedField(1001, "id_bucket", INT))
    )
    assert unified_partition_type([spec], empty, other_schemas=[SCHEMA]).fields[0].field_type == STRING


def test_term_is_a_column_transform_and_name() -> None:
    assert parse_partition_term("bucket(16, id) as shard") == PartitionTerm("id", Bucket(16), "shard")
