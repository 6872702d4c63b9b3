"""Partition specs as JSON. Specification: "Appendix C: JSON serialization", "Partition Specs".

Used by table metadata and, as the bare list of fields, by manifests and the `partition-spec` of v1.
A field of one source column is written with `source-id`, of several with `source-ids`; both are read. Fields
without `field-id` (v1) get ids in order from 1000. Unrecognised JSON fields are kept and written back.
"""

from __future__ import annotations

from typing import Any

from frazil.codec.json_fields import JsonObject
from frazil.errors import CorruptTableError, InvalidMetadataError, InvalidRequestError
from frazil.spec.partitioning import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from frazil.spec.transforms import Transform, UnknownTransform, parse_transform

HEADING = "Partition Specs"


def encode_partition_spec(spec: PartitionSpec) -> dict[str, Any]:
    """Return a spec as a JSON object."""
    return {"spec-id": spec.spec_id, "fields": encode_partition_fields(spec), **spec.extra}


def encode_partition_fields(spec: PartitionSpec) -> list[dict[str, Any]]:
    """Return a spec's fields as a JSON list, without the spec's id."""
    return [
        {
            "name": field.name,
            "transform": str(field.transform),
            **encode_sources(field.source_ids),
            "field-id": field.field_id,
            **field.extra,
        }
        for field in spec.fields
    ]


def decode_partition_spec(obj: JsonObject) -> PartitionSpec:
    """Return the spec of a JSON object."""
    spec_id = obj.int32("spec-id")
    fields = _decode_fields(obj, obj.objects("fields"))
    try:
        return PartitionSpec(spec_id, fields, obj.extra())
    except InvalidRequestError as problem:
        raise obj.fail(problem.message) from problem


def decode_partition_fields(
    values: object,
    *,
    spec_id: int,
    where: str,
    heading: str = HEADING,
    error: type[CorruptTableError] = InvalidMetadataError,
) -> PartitionSpec:
    """Return the spec of a JSON list of fields, with a spec id from elsewhere."""
    obj = JsonObject({"fields": values}, where=where, heading=heading, error=error)
    fields = _decode_fields(obj, obj.objects("fields"))
    try:
        return PartitionSpec(spec_id, fields)
    except InvalidRequestError as problem:
        raise obj.fail(problem.message) from problem


def encode_sources(source_ids: tuple[int, ...]) -> dict[str, Any]:
    """Return the JSON field that names a partition or sort field's source columns."""
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def decode_sources(obj: JsonObject) -> tuple[int, ...]:
    """Return the source column ids of a partition or sort field."""
    single: int | None = obj.int32("source-id", None)
    several: tuple[int, ...] | None = obj.int32s("source-ids", None)
    if several is None:
        return (obj.int32("source-id"),) if single is None else (single,)
    if not several:
        raise obj.fail("the list of source columns is empty", field="source-ids")
    if len(several) == 1 and single is not None and single != several[0]:
        raise obj.fail(f"source-id is {single} but source-ids is [{several[0]}]", field="source-ids")
    return several


def decode_transform(obj: JsonObject, source_ids: tuple[int, ...]) -> Transform:
    """Return the transform of a partition or sort field."""
    text = obj.string("transform")
    if len(source_ids) > 1:
        # No transform of several columns is defined yet, so even a familiar name has no defined meaning.
        return UnknownTransform(text)
    try:
        return parse_transform(text)
    except InvalidRequestError as problem:
        raise obj.fail(problem.message, field="transform") from problem


def _decode_fields(obj: JsonObject, parts: list[JsonObject]) -> tuple[PartitionField, ...]:
    with_id = sum("field-id" in item for item in parts)
    if with_id not in (0, len(parts)):
        raise obj.fail(f"{len(parts) - with_id} of {len(parts)} partition fields have no field-id", field="fields")
    return tuple(_decode_field(item, index) for index, item in enumerate(parts, FIRST_PARTITION_FIELD_ID))


def _decode_field(obj: JsonObject, default_id: int) -> PartitionField:
    source_ids = decode_sources(obj)
    transform = decode_transform(obj, source_ids)
    field_id = obj.int32("field-id", default_id)
    name = obj.string("name")
    try:
        return PartitionField(source_ids, field_id, name, transform, obj.extra())
    except InvalidRequestError as problem:
        raise obj.fail(problem.message) from problem
