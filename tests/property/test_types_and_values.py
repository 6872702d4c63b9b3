"""Laws of types, schemas and values: every codec gives back what it was given."""

from __future__ import annotations

import io
import json
import math
import pickle
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.arrow_schema import from_arrow_schema, to_arrow_schema, to_arrow_type
from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import decode_schema, encode_schema, encode_type
from frazil.codec.single_value import decode_bound, decode_value, encode_bound, encode_value
from frazil.codec.single_value_json import decode_json_value, encode_json_value
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.errors import FrazilError
from frazil.spec.parse_type import parse_schema, parse_type
from frazil.spec.schema import Schema
from frazil.spec.types import BINARY, STRING, Type
from frazil.spec.values import compare_values, format_value, sort_key, to_internal, to_python
from frazil.sql.type_names import plain_type_name
from tests.property.type_strategies import ALL_LEAF_TYPES, VALUE_TYPES, nested_types, schemas, values_of
from tests.support.type_json import decode_type

TYPES_AND_VALUES = VALUE_TYPES.flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind)))
FINITE = nested_types(VALUE_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind, finite=True)))
THREE_VALUES = VALUE_TYPES.flatmap(lambda kind: st.tuples(st.just(kind), *[values_of(kind)] * 3))


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return bool(left == right) and type(left) is type(right)


@given(TYPES_AND_VALUES)
def test_binary_single_values_round_trip(case: tuple[Type, Any]) -> None:
    kind, value = case
    assert same(decode_value(encode_value(value, kind), kind), value)
    assert same(decode_bound(encode_bound(value, kind), kind), value)


@given(ALL_LEAF_TYPES, st.binary(max_size=40))
def test_any_bytes_decode_or_raise_a_frazil_error(kind: Type, data: bytes) -> None:
    try:
        decode_bound(data, kind)
        value = decode_value(data, kind)
    except FrazilError:
        return
    decode_value(encode_value(value, kind), kind)


@given(FINITE)
def test_json_single_values_round_trip_through_text(case: tuple[Type, Any]) -> None:
    kind, value = case
    text = json.dumps(encode_json_value(value, kind), allow_nan=False)
    read = decode_json_value(json.loads(text), kind)
    # Fields that are null are left out of structs, so that the forms are compared, not the dicts.
    assert json.dumps(encode_json_value(read, kind)) == text


@given(VALUE_TYPES.flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind, finite=True))))
def test_primitive_json_single_values_round_trip(case: tuple[Type, Any]) -> None:
    kind, value = case
    assert same(decode_json_value(json.loads(json.dumps(encode_json_value(value, kind))), kind), value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(nested_types(ALL_LEAF_TYPES), JSON_VALUES)
def test_any_json_decodes_or_raises_a_frazil_error(kind: Type, json_value: Any) -> None:
    try:
        encode_json_value(decode_json_value(json_value, kind), kind)
    except FrazilError:
        pass


@given(JSON_VALUES)
def test_any_json_is_a_type_or_raises_a_frazil_error(json_value: Any) -> None:
    try:
        decode_type(json_value)
    except FrazilError:
        pass


@given(FINITE)
def test_values_round_trip_between_python_and_internal_form(case: tuple[Type, Any]) -> None:
    kind, value = case
    assert to_internal(to_python(value, kind), kind) == value
    assert to_internal(value, kind) == value


@given(TYPES_AND_VALUES)
def test_text_of_dates_and_times_round_trips(case: tuple[Type, Any]) -> None:
    kind, value = case
    text = format_value(value, kind)
    if str(kind).startswith(("date", "time", "uuid", "decimal")):
        assert to_internal(text, kind) == value


@given(nested_types(ALL_LEAF_TYPES), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary())
def test_any_value_converts_or_raises_a_frazil_error(kind: Type, value: Any) -> None:
    try:
        to_internal(value, kind)
    except FrazilError:
        pass


@given(THREE_VALUES)
def test_values_are_totally_ordered_and_sort_keys_agree(case: tuple[Any, ...]) -> None:
    kind, *values = case
    ordered = sorted(values, key=cmp_to_key(lambda left, right: compare_values(left, right, kind)))
    assert [sort_key(one, kind) for one in ordered] == sorted(sort_key(one, kind) for one in values)
    for left, right in pairwise(ordered):
        assert compare_values(left, right, kind) == -compare_values(right, left, kind) <= 0


@given(
    st.sampled_from([STRING, BINARY]).flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind))), st.integers(1, 8)
)
def test_truncated_bounds_enclose_their_value(case: tuple[Type, Any], length: int) -> None:
    kind, value = case
    assert compare_values(truncate_lower_bound(value, kind, length), value, kind) <= 0
    upper = truncate_upper_bound(value, kind, length)
    assert upper is None or compare_values(value, upper, kind) <= 0


@given(schemas())
def test_schemas_round_trip_through_json(schema: Schema) -> None:
    text = json.dumps(encode_schema(schema))
    assert decode_schema(JsonObject(json.loads(text), heading="Schemas")) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


@given(nested_types(ALL_LEAF_TYPES))
def test_types_round_trip_through_json(kind: Type) -> None:
    assert decode_type(json.loads(json.dumps(encode_type(kind)))) == kind


@given(nested_types(ALL_LEAF_TYPES))
def test_text_of_a_type_round_trips_with_its_ids(kind: Type) -> None:
    assert str(parse_type(str(kind))) == str(kind)


@given(nested_types(ALL_LEAF_TYPES))
def test_text_of_a_type_without_ids_round_trips_as_text(kind: Type) -> None:
    assert plain_type_name(parse_type(plain_type_name(kind))) == plain_type_name(kind)


@given(ALL_LEAF_TYPES)
def test_text_of_a_type_without_fields_round_trips_as_type(kind: Type) -> None:
    assert parse_type(str(kind)) == kind


@given(st.text(st.sampled_from("abint<>(),:`'\" 019struclmdeog[]\n-.X"), max_size=40))
def test_any_text_parses_or_raises_a_frazil_error(text: str) -> None:
    for parse in (parse_type, parse_schema):
        try:
            parse(text)
        except FrazilError:
            pass


@given(schemas())
def test_schemas_round_trip_through_arrow(schema: Schema) -> None:
    assert from_arrow_schema(to_arrow_schema(schema)) == schema
    assert from_arrow_schema(to_arrow_schema(schema, has_extensions=False)) == schema
    assert from_arrow_schema(to_arrow_schema(schema, with_ids=False)) == schema


@given(schemas(VALUE_TYPES).filter(lambda schema: "struct<>" not in str(schema) and "fixed[0]" not in str(schema)))
def test_schemas_round_trip_through_parquet_files(schema: Schema) -> None:
    buffer = io.BytesIO()
    pq.ParquetWriter(buffer, to_arrow_schema(schema)).close()
    assert from_arrow_schema(pq.read_schema(buffer)) == schema


@given(VALUE_TYPES)
def test_arrow_types_allow_null_for_every_type(kind: Type) -> None:
    assert pa.nulls(1, to_arrow_type(kind)).null_count == 1
