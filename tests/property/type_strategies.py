"""Hypothesis strategies for types, schemas and internal values. Import as `tests.property.type_strategies`."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

from frazil.spec.decimals import decimal_of
from frazil.spec.fresh_ids import reassign_ids
from frazil.spec.iso8601 import MICROS_PER_DAY
from frazil.spec.schema import Schema
from frazil.spec.types import (
    EDGE_ALGORITHMS,
    SIMPLE_TYPES,
    UNKNOWN,
    VARIANT,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
    Type,
    UuidType,
)
from frazil.spec.values import map_key

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
EDGE_INT64 = INT64 | st.sampled_from([0, -1, 1, 2**63 - 1, -(2**63), MICROS_PER_DAY, -MICROS_PER_DAY])
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)

DECIMAL_TYPES = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, precision))
)
FIXED_TYPES = st.builds(FixedType, st.integers(0, 20))
GEO_TYPES = st.builds(GeometryType, st.sampled_from(["OGC:CRS84", "EPSG:3857", "srid: 4326"])) | st.builds(
    GeographyType, st.sampled_from(["OGC:CRS84", "EPSG:4326"]), st.sampled_from(EDGE_ALGORITHMS)
)
VALUE_TYPES = (
    st.sampled_from([kind for kind in SIMPLE_TYPES.values() if kind not in (UNKNOWN, VARIANT)])
    | DECIMAL_TYPES
    | FIXED_TYPES
)
"""Primitive types whose values every codec has a form for."""

ALL_LEAF_TYPES = VALUE_TYPES | GEO_TYPES | st.sampled_from([UNKNOWN, VARIANT])


def nested_types(leaves: st.SearchStrategy[Type], *, max_leaves: int = 8) -> st.SearchStrategy[Type]:
    """Types of any shape over some leaves; ids are unique and in the order of a new table."""
    return st.recursive(leaves, _wrap, max_leaves=max_leaves).map(_numbered)


def _wrap(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    known = inner.filter(lambda kind: kind != UNKNOWN)
    required = st.booleans()
    fields = st.builds(
        lambda name, kind, req: NestedField(0, name, kind, req and kind != UNKNOWN), NAMES, inner, required
    )
    structs = st.lists(fields, max_size=4, unique_by=lambda part: part.name).map(lambda parts: StructType(tuple(parts)))
    lists = st.builds(lambda kind, req: ListType(0, kind, req and kind != UNKNOWN), inner, required)
    maps = st.builds(lambda key, kind, req: MapType(0, key, 0, kind, req and kind != UNKNOWN), known, inner, required)
    return structs | lists | maps


def _numbered(kind: Type) -> Type:
    fresh = count(1)
    return reassign_ids(kind, lambda _: next(fresh))


def schemas(leaves: st.SearchStrategy[Type] = ALL_LEAF_TYPES) -> st.SearchStrategy[Schema]:
    """Schemas of up to five columns, docs included, numbered as in a new table."""
    kinds = nested_types(leaves, max_leaves=4)
    columns = st.builds(
        lambda name, kind, req, doc: NestedField(0, name, kind, req and kind != UNKNOWN, doc),
        NAMES,
        kinds,
        st.booleans(),
        st.none() | TEXT,
    )
    structs = st.lists(columns, max_size=5, unique_by=lambda part: part.name).map(
        lambda parts: StructType(tuple(parts))
    )
    return structs.map(_numbered).map(lambda struct: Schema(struct.fields))  # type: ignore[attr-defined]


def values_of(kind: Type, *, finite: bool = False) -> st.SearchStrategy[Any]:
    """Internal values of a type; with `finite`, no NaN and no infinity."""
    match kind:
        case BooleanType():
            return st.booleans()
        case IntType() | DateType():
            return INT32
        case LongType():
            return EDGE_INT64
        case FloatType():
            return st.floats(width=32, allow_nan=not finite, allow_infinity=not finite)
        case DoubleType():
            return st.floats(allow_nan=not finite, allow_infinity=not finite)
        case DecimalType():
            largest = 10**kind.precision - 1
            return st.integers(-largest, largest).map(lambda unscaled: decimal_of(unscaled, kind.scale))
        case TimeType():
            return st.integers(0, MICROS_PER_DAY - 1)
        case StringType():
            return TEXT
        case UuidType():
            return st.uuids()
        case FixedType():
            return st.binary(min_size=kind.length, max_size=kind.length)
        case BinaryType() | GeometryType() | GeographyType():
            return st.binary(max_size=20)
        case StructType():
            return _structs_of(kind, finite=finite)
        case ListType():
            return st.lists(_part(kind.element_type, required=kind.element_required, finite=finite), max_size=3)
        case MapType():
            keys = values_of(kind.key_type, finite=True).map(map_key)
            return st.dictionaries(
                keys, _part(kind.value_type, required=kind.value_required, finite=finite), max_size=3
            )
        case _ if kind in (UNKNOWN, VARIANT):
            return st.none()
    return EDGE_INT64  # timestamps


def _structs_of(kind: StructType, *, finite: bool) -> st.SearchStrategy[dict[str, Any]]:
    parts = {part.name: _part(part.field_type, required=part.required, finite=finite) for part in kind.fields}
    return st.fixed_dictionaries(parts)


def _part(kind: Type, *, required: bool, finite: bool) -> st.SearchStrategy[Any]:
    values = values_of(kind, finite=finite)
    return values if required else st.none() | values
