"""What keeps data of one schema from being read as another; after Iceberg Java's readability checks."""

from __future__ import annotations

import itertools

import pytest

from frazil.spec.schema import Schema
from frazil.spec.schema_compatibility import Incompatibility, check_read_compatible
from frazil.spec.type_promotion import is_promotion_allowed
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

PRIMITIVES: tuple[Type, ...] = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, STRING, UUID, FixedType(3),
    FixedType(4), BINARY, DecimalType(9, 2), DecimalType(11, 2), DecimalType(9, 3), GeometryType(),
    GeometryType("EPSG:3857"), GeographyType(), GeographyType("EPSG:4269"), GeographyType("EPSG:4269", "karney"),
)  # fmt: skip


def required(field_id: int, name: str, kind: Type) -> NestedField:
    return NestedField(field_id, name, kind, required=True)


def optional(field_id: int, name: str, kind: Type) -> NestedField:
    return NestedField(field_id, name, kind)


def nested(*fields: NestedField) -> Schema:
    return Schema((required(100, "nested", StructType(fields)),))


def read_problems(table: Schema, data: Schema) -> list[str]:
    return [str(one) for one in check_read_compatible(table, data)]


def test_primitives_are_compatible_if_promotable() -> None:
    for old, new in itertools.product(PRIMITIVES, PRIMITIVES):
        problems = check_read_compatible(Schema((required(1, "to", new),)), Schema((required(1, "from", old),)))
        if is_promotion_allowed(old, new):
            assert problems == []
        else:
            (problem,) = problems
            assert problem.column == "to"
            assert f"{old} cannot be promoted to {new}" in problem.problem


def test_dates_are_incompatible_with_timestamps_before_v3() -> None:
    table, data = Schema((required(1, "at", TIMESTAMP),)), Schema((required(1, "at", DATE),))
    assert check_read_compatible(table, data) == []
    assert len(check_read_compatible(table, data, format_version=2)) == 1


@pytest.mark.parametrize("kind", [*PRIMITIVES, VARIANT], ids=str)
def test_primitive_is_incompatible_with_a_nested_column(kind: Type) -> None:
    data = Schema((required(1, "from", kind),))
    for target, name in (
        (StructType((required(2, "a", kind),)), "a struct"),
        (ListType(2, kind, element_required=True), "a list"),
        (MapType(2, STRING, 3, kind, value_required=True), "a map"),
    ):
        assert read_problems(Schema((required(1, "to", target),)), data) == [f"to: {kind} cannot be read as {name}"]


@pytest.mark.parametrize(
    "kind",
    [StructType((required(2, "a", INT),)), ListType(2, STRING), MapType(2, STRING, 3, INT), *PRIMITIVES],
    ids=str,
)
def test_only_variants_are_compatible_with_a_variant(kind: Type) -> None:
    table = Schema((required(1, "to", VARIANT),))
    assert check_read_compatible(table, Schema((required(1, "from", VARIANT),))) == []
    (problem,) = check_read_compatible(table, Schema((required(1, "from", kind),)))
    assert "variant" in problem.problem


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (StructType((required(2, "a", STRING),)), "a struct"),
        (ListType(2, STRING), "a list"),
        (MapType(2, STRING, 3, STRING), "a map"),
    ],
)
def test_nested_data_is_incompatible_with_a_primitive(kind: Type, name: str) -> None:
    table, data = Schema((required(1, "to", STRING),)), Schema((required(1, "from", kind),))
    assert read_problems(table, data) == [f"to: {name} cannot be read as string"]


def test_null_column_is_compatible_with_every_optional_column() -> None:
    data = Schema((optional(1, "from", UNKNOWN),))
    for kind in (*PRIMITIVES, StructType(()), VARIANT):
        assert check_read_compatible(Schema((optional(1, "to", kind),)), data) == []


def test_optional_data_is_incompatible_with_a_required_column_unless_ignored() -> None:
    table, data = Schema((required(1, "to", INT),)), Schema((optional(1, "from", INT),))
    assert read_problems(table, data) == ["to: it must be required, but the data has it optional"]
    assert check_read_compatible(table, data, check_nullability=False) == []


def test_missing_required_column_is_reported() -> None:
    table, data = Schema((required(1, "to", INT),)), Schema((required(2, "other", INT),))
    assert [one.column for one in check_read_compatible(table, data)] == ["to"]


def test_missing_optional_column_is_read_as_null() -> None:
    data = nested(required(2, "a", INT))
    assert check_read_compatible(nested(optional(1, "b", INT)), data) == []


def test_missing_required_column_may_have_a_default() -> None:
    read = Schema((NestedField(1, "a", INT, required=True, initial_default=34),))
    written = Schema((NestedField(1, "a", INT, required=True, write_default=34),))
    assert check_read_compatible(read, Schema()) == []
    assert len(check_read_compatible(written, Schema())) == 1


def test_extra_column_is_compatible_for_reading() -> None:
    table, data = nested(), nested(optional(2, "extra", INT))
    assert check_read_compatible(table, data) == []


def test_nested_problems_have_full_names_and_are_all_reported() -> None:
    table = nested(required(1, "a", FLOAT), required(2, "b", INT))
    data = nested(optional(1, "a", INT))
    assert check_read_compatible(table, data) == [
        Incompatibility("nested.a", "it must be required, but the data has it optional"),
        Incompatibility("nested.a", "int cannot be promoted to float (it may become only long)"),
        Incompatibility("nested.b", "it is required, but the data lacks it and it has no default"),
    ]


def test_elements_keys_and_values_are_compared() -> None:
    table = Schema(
        (
            required(1, "l", ListType(2, INT, element_required=True)),
            required(3, "m", MapType(4, DOUBLE, 5, INT, value_required=True)),
        )
    )
    data = Schema((required(1, "l", ListType(2, STRING)), required(3, "m", MapType(4, INT, 5, STRING))))
    assert [one.column for one in check_read_compatible(table, data)] == [
        "l.element", "l.element", "m.key", "m.value", "m.value",
    ]  # fmt: skip
    assert [one.column for one in check_read_compatible(table, data, check_nullability=False)] == [
        "l.element", "m.key", "m.value",
    ]  # fmt: skip


def test_column_order_does_not_matter_for_reading() -> None:
    table = nested(required(1, "a", INT), required(2, "b", INT))
    data = nested(required(2, "b", INT), required(1, "a", INT))
    assert check_read_compatible(table, data) == []
