"""The Arrow types that values of an Avro container are decoded to, whoever decodes them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.codec.avro_schema import AvroType
from frazil.spec.frozen_map import FrozenMap


def arrow_type(one: AvroType) -> pa.DataType:
    """Return the Arrow type that a leaf is decoded to, in the names and with the nulls that DataFusion gives it."""
    if one.kind in ("array", "map"):
        assert one.items is not None
        inner = arrow_type(one.items)
        if one.kind == "map":
            return pa.map_(pa.string(), inner)
        return pa.list_(pa.field("item", inner, nullable=one.items.is_optional))
    if one.kind == "record":
        parts = [(index, field.avro_type) for index, field in enumerate(one.fields) if field.avro_type.min_size > 0]
        return pa.struct([pa.field(f"c{at}", arrow_type(part), nullable=part.is_optional) for at, part in parts])
    if one.kind == "fixed":
        return pa.binary(one.size)
    return _ARROW_TYPES[one.kind]


_ARROW_TYPES: Mapping[str, pa.DataType] = FrozenMap(
    {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
    }
)
