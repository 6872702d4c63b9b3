"""Sort orders as JSON. Specification: "Appendix C: JSON serialization", "Sort Orders".

A field of one source column is written with `source-id`, of several with `source-ids`; both are read.
Unrecognised JSON fields are kept and written back.
"""

from __future__ import annotations

from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.codec.partition_spec_json import decode_sources, decode_transform, encode_sources
from frazil.errors import InvalidRequestError
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder

HEADING = "Sort Orders"

_DIRECTIONS = {"asc": SortDirection.ASC, "desc": SortDirection.DESC}
_NULL_ORDERS = {"nulls-first": NullOrder.NULLS_FIRST, "nulls-last": NullOrder.NULLS_LAST}
_NULL_ORDER_NAMES = {value: name for name, value in _NULL_ORDERS.items()}


def encode_sort_order(order: SortOrder) -> dict[str, Any]:
    """Return an order as a JSON object."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": str(field.transform),
                **encode_sources(field.source_ids),
                "direction": field.direction.value,
                "null-order": _NULL_ORDER_NAMES[field.null_order],
                **field.extra,
            }
            for field in order.fields
        ],
        **order.extra,
    }


def decode_sort_order(obj: JsonObject) -> SortOrder:
    """Return the order of a JSON object."""
    order_id = obj.int32("order-id")
    fields = tuple(_decode_field(item) for item in obj.objects("fields"))
    try:
        return SortOrder(order_id, fields, obj.extra())
    except InvalidRequestError as problem:
        raise obj.fail(problem.message) from problem


def _decode_field(obj: JsonObject) -> SortField:
    source_ids = decode_sources(obj)
    transform = decode_transform(obj, source_ids)
    direction = _DIRECTIONS.get(obj.string("direction").lower())
    if direction is None:
        raise obj.fail("expected asc or desc", field="direction")
    null_order = _NULL_ORDERS.get(obj.string("null-order").lower())
    if null_order is None:
        raise obj.fail("expected nulls-first or nulls-last", field="null-order")
    return SortField(source_ids, transform, direction, null_order, obj.extra())
