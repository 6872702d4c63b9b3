"""Whatever decides by the type of a column knows every type of `spec/types.py`: a new one fails here until it does."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.codec.arrow_schema import to_arrow_type
from frazil.codec.avro_types import encode_avro_schema
from frazil.codec.schema_json import encode_type
from frazil.codec.single_value import decode_value, encode_value
from frazil.codec.single_value_json import decode_json_value, encode_json_value
from frazil.datafile.value_arrays import array_of, repeat_value, values_of
from frazil.datafile.write_casts import find_cast
from frazil.errors import InvalidRequestError
from frazil.spec.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    VariantType,
)
from frazil.spec.values import format_value, to_internal
from frazil.sql.type_names import spark_type_name, sql_type_name
from tests.support.type_json import decode_type
from tests.support.type_samples import CLASSES, SAMPLES

NO_SINGLE_VALUE = (UnknownType, VariantType, StructType, ListType, MapType)

pytestmark = pytest.mark.every_case
every_type = pytest.mark.parametrize("data_type", SAMPLES, ids=str)


def test_every_type_has_a_sample() -> None:
    assert {type(data_type) for data_type in SAMPLES} == CLASSES


@every_type
def test_every_type_round_trips_through_json(data_type: Type) -> None:
    assert decode_type(encode_type(data_type)) == data_type


@every_type
def test_every_type_has_an_avro_type(data_type: Type) -> None:
    encoded = encode_avro_schema(StructType((NestedField(9, "x", data_type),)), "r")
    assert encoded["fields"][0]["field-id"] == 9


@every_type
def test_every_type_has_a_sql_name(data_type: Type) -> None:
    assert sql_type_name(data_type)
    assert spark_type_name(data_type)


@every_type
def test_values_of_every_type_round_trip_through_arrays(data_type: Type) -> None:
    value = SAMPLES[data_type]
    arrow = to_arrow_type(data_type)
    assert values_of(array_of([value, None], data_type), data_type) == [value, None]
    assert values_of(repeat_value(value, data_type, arrow, 3), data_type) == [value] * 3


@every_type
def test_primitive_arrays_are_written_unchanged(data_type: Type) -> None:
    if data_type.is_primitive and not isinstance(data_type, UnknownType):
        assert find_cast(data_type, to_arrow_type(data_type), "x", format_version=3) is not None


@every_type
def test_values_of_every_type_are_displayed(data_type: Type) -> None:
    value = SAMPLES[data_type]
    if value is not None and not isinstance(data_type, VariantType):
        assert format_value(to_internal(value, data_type), data_type)


@every_type
def test_single_values_of_every_type_round_trip_or_are_refused(data_type: Type) -> None:
    value: Any = SAMPLES[data_type]
    if isinstance(data_type, NO_SINGLE_VALUE):
        with pytest.raises(InvalidRequestError, match="no binary form"):
            encode_value(value, data_type)
    else:
        assert decode_value(encode_value(value, data_type), data_type) == value


@every_type
def test_defaults_of_every_type_round_trip_through_json(data_type: Type) -> None:
    value = SAMPLES[data_type]
    if not isinstance(data_type, VariantType):
        assert decode_json_value(encode_json_value(value, data_type), data_type) == value
