"""Partition specs as JSON: what is written, what is read, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.codec.json_fields import JsonObject
from frazil.codec.partition_spec_json import (
    decode_partition_fields,
    decode_partition_spec,
    encode_partition_fields,
    encode_partition_spec,
)
from frazil.errors import InvalidManifestError, InvalidMetadataError
from frazil.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from frazil.spec.transforms import DAY, IDENTITY, VOID, Bucket, Truncate, UnknownTransform


def decode(value: object) -> PartitionSpec:
    return decode_partition_spec(JsonObject(value, where="partition-specs[0]", heading="Partition Specs"))


def field(**changes: Any) -> dict[str, Any]:
    return {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1000, **changes}


EXAMPLE = {
    "spec-id": 0,
    "fields": [
        {"name": "ts_day", "transform": "day", "source-id": 4, "field-id": 1000},
        {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1001},
    ],
}


def test_specification_example_round_trips() -> None:
    spec = decode(EXAMPLE)
    assert spec == PartitionSpec(
        0, (PartitionField((4,), 1000, "ts_day", DAY), PartitionField((1,), 1001, "id_bucket", Bucket(16)))
    )
    assert encode_partition_spec(spec) == EXAMPLE
    assert [list(one) for one in encode_partition_fields(spec)] == [["name", "transform", "source-id", "field-id"]] * 2


@pytest.mark.parametrize(
    "transform", [IDENTITY, VOID, DAY, Bucket(1), Truncate(2**31 - 1), UnknownTransform("Zorder(a)")], ids=str
)
def test_every_transform_round_trips(transform: Any) -> None:
    spec = PartitionSpec(3, (PartitionField((1,), 1005, "x", transform),))
    assert decode(encode_partition_spec(spec)) == spec


def test_unpartitioned_spec_round_trips() -> None:
    assert encode_partition_spec(UNPARTITIONED) == {"spec-id": 0, "fields": []}
    assert decode({"spec-id": 0, "fields": []}) == UNPARTITIONED


def test_unknown_json_fields_are_preserved() -> None:
    value = {"spec-id": 1, "fields": [field(**{"x-note": {"deep": [1, None]}})], "x-more": True}
    assert encode_partition_spec(decode(value)) == value


def test_fields_without_ids_are_numbered_from_1000() -> None:
    listed = [{"name": "a", "transform": "identity", "source-id": 1}, {"name": "b", "transform": "day", "source-id": 2}]
    spec = decode_partition_fields(listed, spec_id=7, where="partition-spec")
    assert spec.spec_id == 7
    assert [one.field_id for one in spec.fields] == [1000, 1001]


def test_ids_in_any_order_are_kept() -> None:
    spec = decode({"spec-id": 1, "fields": [field(**{"field-id": 1001}), field(name="b", **{"field-id": 1000})]})
    assert [one.field_id for one in spec.fields] == [1001, 1000]


def test_all_fields_have_ids_or_none() -> None:
    without = field(name="b")
    del without["field-id"]
    with pytest.raises(InvalidMetadataError, match="1 of 2 partition fields have no field-id"):
        decode({"spec-id": 1, "fields": [field(), without]})


def test_multi_source_field_is_written_with_source_ids() -> None:
    written = {"name": "z", "transform": "bucket[4]", "source-ids": [1, 2], "field-id": 1000}
    spec = decode({"spec-id": 1, "fields": [written]})
    assert spec.fields == (PartitionField((1, 2), 1000, "z", UnknownTransform("bucket[4]")),)
    assert encode_partition_fields(spec) == [written]


def test_single_source_is_read_in_either_form_and_written_as_source_id() -> None:
    listed = field(**{"source-ids": [1]})
    del listed["source-id"]
    for value in (listed, field(**{"source-ids": [1]})):
        spec = decode({"spec-id": 1, "fields": [value]})
        assert spec.fields[0] == PartitionField((1,), 1000, "id_bucket", Bucket(16))
        assert encode_partition_fields(spec) == [field()]


def test_source_ids_win_if_both_are_given() -> None:
    spec = decode({"spec-id": 1, "fields": [field(transform="zorder", **{"source-ids": [1, 2]})]})
    assert spec.fields[0].source_ids == (1, 2)


@pytest.mark.parametrize(
    "bad, reason",
    [
        ([], r"Cannot read partition-specs\[0\]: expected an object, found a list"),
        ({"fields": []}, r"partition-specs\[0\].spec-id: the required field is missing"),
        ({"spec-id": 2**31, "fields": []}, "does not fit 32 bits"),
        ({"spec-id": 1}, r"partition-specs\[0\].fields: the required field is missing"),
        ({"spec-id": 1, "fields": {}}, "expected a list, found an object"),
        ({"spec-id": 1, "fields": [1]}, r"partition-specs\[0\].fields\[0\]: expected an object"),
        ({"spec-id": 1, "fields": [field(name=None)]}, r"fields\[0\].name: the required field is missing"),
        ({"spec-id": 1, "fields": [field(name="")]}, "its name is empty"),
        ({"spec-id": 1, "fields": [field(transform=5)]}, r"fields\[0\].transform: expected a string"),
        ({"spec-id": 1, "fields": [field(transform="bucket[0]")]}, r"fields\[0\].transform: Cannot make bucket\[0\]"),
        ({"spec-id": 1, "fields": [field(transform=f"bucket[{'9' * 100}]")]}, "does not fit 32 bits"),
        ({"spec-id": 1, "fields": [field(**{"source-id": None})]}, "source-id: the required field is missing"),
        ({"spec-id": 1, "fields": [field(**{"source-id": True})]}, "expected an integer, found the boolean"),
        ({"spec-id": 1, "fields": [field(**{"source-ids": []})]}, "the list of source columns is empty"),
        ({"spec-id": 1, "fields": [field(**{"source-ids": [2]})]}, r"source-id is 1 but source-ids is \[2\]"),
        ({"spec-id": 1, "fields": [field(**{"source-ids": ["1"]})]}, r"source-ids\[0\]: expected a 32-bit integer"),
        ({"spec-id": 1, "fields": [field(), field(name="b")]}, "two fields have the id 1000"),
        ({"spec-id": 1, "fields": [field(), field(**{"field-id": 1001})]}, "two fields are named 'id_bucket'"),
    ],
)
def test_invalid_spec_is_refused_with_its_position(bad: object, reason: str) -> None:
    with pytest.raises(InvalidMetadataError, match=reason) as caught:
        decode(bad)
    assert caught.value.context["heading"] == "Partition Specs"


def test_invalid_field_list_is_refused_with_the_class_of_the_caller() -> None:
    with pytest.raises(InvalidManifestError, match=r"Cannot read partition-spec.fields: expected a list") as caught:
        decode_partition_fields({}, spec_id=0, where="partition-spec", heading="Manifests", error=InvalidManifestError)
    assert caught.value.context["heading"] == "Manifests"
    with pytest.raises(InvalidManifestError, match="two fields have the id 1000"):
        decode_partition_fields([field(), field(name="b")], spec_id=0, where="x", error=InvalidManifestError)
