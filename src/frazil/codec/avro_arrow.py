"""The Arrow types that Avro values are decoded to, by either decoder."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.codec.avro_schema import AvroType
from frazil.spec.frozen_map import FrozenMap


def arrow_type(avro_type: AvroType) -> pa.DataType:
    """Return the Arrow type that a leaf is decoded to, with the field names and nullability that DataFusion uses."""
    if avro_type.kind in ("array", "map"):
        assert avro_type.items is not None
        inner = arrow_type(avro_type.items)
        if avro_type.kind == "map":
            return pa.map_(pa.string(), inner)
        return pa.list_(pa.field("item", inner, nullable=avro_type.items.is_optional))
    if avro_type.kind == "record":
        parts = [
            (index, field.avro_type) for index, field in enumerate(avro_type.fields) if field.avro_type.min_size > 0
        ]
        return pa.struct([pa.field(f"c{index}", arrow_type(leaf), nullable=leaf.is_optional) for index, leaf in parts])
    if avro_type.kind == "fixed":
        return pa.binary(avro_type.size)
    return _ARROW_TYPES[avro_type.kind]


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
