from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.defaults import (
    check_schema_version,
    default_problem,
    effective_default,
    fill_defaults,
    min_format_version_of,
    version_problems,
)
from frazil.spec.schema import Schema
from frazil.spec.types import (
    INT,
    LONG,
    STRING,
    TIMESTAMP_NS,
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)


@pytest.mark.parametrize("kind", [UNKNOWN, VARIANT, GeometryType(), GeographyType()])
def test_unknown_variant_and_geospatial_fields_default_to_null_only(kind: Type) -> None:
    assert default_problem(None, kind) is None
    assert "must default to null" in str(default_problem(b"", kind))


def test_struct_default_is_null_or_empty() -> None:
    struct = StructType((NestedField(2, "x", INT),))
    assert default_problem({}, struct) is None
    assert "values belong in the defaults of its fields" in str(default_problem({"x": 1}, struct))
    assert default_problem(0, struct) is not None


def test_list_and_map_defaults_are_lists_and_maps() -> None:
    assert default_problem([1], ListType(1, INT)) is None
    assert default_problem({"a": 1}, MapType(1, STRING, 2, INT)) is None
    assert default_problem({}, ListType(1, INT)) is not None
    assert default_problem([], MapType(1, STRING, 2, INT)) is not None


def test_zero_and_empty_text_are_defaults() -> None:
    assert effective_default(NestedField(1, "n", INT, initial_default=0), "initial") == 0
    assert effective_default(NestedField(1, "s", STRING, required=True, write_default=""), "write") == ""


def test_required_field_without_a_write_default_must_be_given() -> None:
    with pytest.raises(SchemaMismatchError, match="no write-default"):
        effective_default(NestedField(1, "n", INT, required=True), "write")
    assert effective_default(NestedField(1, "n", INT, required=True), "initial") is None


def test_initial_and_write_defaults_fill_separately() -> None:
    part = NestedField(2, "x", INT, initial_default=1, write_default=2)
    point = NestedField(1, "point", StructType((part,)), initial_default={}, write_default={})
    assert effective_default(point, "initial") == {"x": 1}
    assert effective_default(point, "write") == {"x": 2}


def test_null_struct_stays_null_and_nested_fields_are_filled() -> None:
    inner = StructType((NestedField(3, "y", INT, initial_default=7),))
    outer = StructType((NestedField(1, "x", INT, initial_default=5), NestedField(2, "in", inner)))
    assert fill_defaults({"x": None, "in": {}}, outer, "initial") == {"x": None, "in": {"y": 7}}
    assert fill_defaults({}, outer, "initial") == {"x": 5, "in": None}


@pytest.mark.parametrize(
    "field, version",
    [
        (NestedField(1, "a", LONG), 1),
        (NestedField(1, "a", LONG, write_default=1), 1),
        (NestedField(1, "a", LONG, initial_default=0), 3),
        (NestedField(1, "a", TIMESTAMP_NS), 3),
        (NestedField(1, "a", ListType(2, VARIANT)), 3),
        (NestedField(1, "a", GeometryType()), 3),
        (NestedField(1, "a", UNKNOWN), 3),
    ],
)
def test_schema_reports_its_minimum_format_version(field: NestedField, version: int) -> None:
    schema = Schema((field,))
    assert min_format_version_of(schema) == version
    check_schema_version(schema, version)
    if version > 1:
        with pytest.raises(InvalidRequestError, match="format version 2"):
            check_schema_version(schema, 2)


def test_unsupported_fields_are_named_in_id_order() -> None:
    fields: tuple[Any, ...] = (
        NestedField(1, "a", LONG, initial_default=0),
        NestedField(3, "b", ListType(2, TIMESTAMP_NS)),
    )
    assert version_problems(Schema(fields), 2) == [
        "'a' has an initial-default, which needs v3",
        "'b.element' has the type timestamp_ns, which needs v3",
    ]
    assert version_problems(Schema(fields), 3) == []
