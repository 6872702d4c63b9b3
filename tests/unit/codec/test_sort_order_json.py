"""Sort orders as JSON: what is written, what is read, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.codec.json_fields import JsonObject
from frazil.codec.sort_order_json import decode_sort_order, encode_sort_order
from frazil.errors import InvalidMetadataError
from frazil.spec.sorting import UNSORTED, NullOrder, SortDirection, SortField, SortOrder
from frazil.spec.transforms import IDENTITY, Bucket, UnknownTransform


def decode(value: object) -> SortOrder:
    return decode_sort_order(JsonObject(value, where="sort-orders[0]", heading="Sort Orders"))


def field(**changes: Any) -> dict[str, Any]:
    return {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first", **changes}


EXAMPLE = {
    "order-id": 1,
    "fields": [
        {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
        {"transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"},
    ],
}


def test_specification_example_round_trips() -> None:
    order = decode(EXAMPLE)
    assert order == SortOrder(
        1,
        (
            SortField((2,), IDENTITY, SortDirection.ASC, NullOrder.NULLS_FIRST),
            SortField((3,), Bucket(4), SortDirection.DESC, NullOrder.NULLS_LAST),
        ),
    )
    assert encode_sort_order(order) == EXAMPLE


def test_unsorted_order_round_trips() -> None:
    assert encode_sort_order(UNSORTED) == {"order-id": 0, "fields": []}
    assert decode({"order-id": 0, "fields": []}) == UNSORTED


def test_unknown_json_fields_and_transforms_are_preserved() -> None:
    value = {"order-id": 1, "fields": [field(transform="Zorder", extra=[1])], "more": {"a": None}}
    assert encode_sort_order(decode(value)) == value


def test_sort_direction_is_read_in_any_case() -> None:
    order = decode({"order-id": 1, "fields": [field(direction="DESC", **{"null-order": "NULLS-LAST"})]})
    assert order.fields[0].direction is SortDirection.DESC
    assert order.fields[0].null_order is NullOrder.NULLS_LAST


def test_multi_source_field_is_written_with_source_ids() -> None:
    written = field(transform="zorder", **{"source-ids": [1, 2]})
    del written["source-id"]
    order = decode({"order-id": 1, "fields": [written]})
    assert order.fields[0].source_ids == (1, 2)
    assert order.fields[0].transform == UnknownTransform("zorder")
    assert encode_sort_order(order) == {"order-id": 1, "fields": [written]}


@pytest.mark.parametrize(
    "bad, reason",
    [
        ([], "expected an object, found a list"),
        ({"fields": []}, r"sort-orders\[0\].order-id: the required field is missing"),
        ({"order-id": 1}, r"sort-orders\[0\].fields: the required field is missing"),
        ({"order-id": 0, "fields": [field()]}, "the id 0 is reserved for the unsorted order"),
        ({"order-id": 1, "fields": [field(direction="up")]}, r"fields\[0\].direction: expected asc or desc"),
        ({"order-id": 1, "fields": [field(**{"null-order": "first"})]}, "expected nulls-first or nulls-last"),
        ({"order-id": 1, "fields": [field(direction=None)]}, "direction: the required field is missing"),
        ({"order-id": 1, "fields": [field(transform="truncate[0]")]}, r"Cannot make truncate\[0\]"),
        ({"order-id": 1, "fields": [field(**{"source-id": "2"})]}, "source-id: expected an integer"),
    ],
)
def test_invalid_sort_order_is_refused_with_its_position(bad: object, reason: str) -> None:
    with pytest.raises(InvalidMetadataError, match=reason) as caught:
        decode(bad)
    assert caught.value.context["heading"] == "Sort Orders"
