"""Where the values of a wanted column come from, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import SchemaMismatchError
from frazil.spec.column_projection import ResolvedColumn, ValueSource, resolve_columns
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, INT, LONG, STRING, UNKNOWN, ListType, MapType, NestedField, StructType

FILE, PARTITION, DEFAULT, NULL = ValueSource.FILE, ValueSource.PARTITION, ValueSource.DEFAULT, ValueSource.NULL


def sources(columns: tuple[ResolvedColumn, ...]) -> list[tuple[str, ValueSource, Any]]:
    return [(one.field.name, one.source, one.value) for one in columns]


def one_column(part: NestedField, *file_ids: int, **rules: Any) -> ResolvedColumn:
    (column,) = resolve_columns(Schema((part,)), set(file_ids), **rules)
    return column


def test_specification_example_of_renamed_reordered_and_new_columns() -> None:
    wanted = Schema((NestedField(3, "measurement", DOUBLE), NestedField(2, "name", STRING), NestedField(4, "a", INT)))
    assert sources(resolve_columns(wanted, {1, 2, 3})) == [
        ("measurement", FILE, None),
        ("name", FILE, None),
        ("a", NULL, None),
    ]


def test_projection_rules_apply_in_order() -> None:
    part = NestedField(1, "a", INT, initial_default=7)
    everything: dict[str, Any] = {"partition_values": {1: 5}, "name_mapped_ids": {1}}
    assert one_column(part, 1, **everything).source is FILE
    partition = one_column(part, **everything)
    assert (partition.source, partition.value) == (PARTITION, 5)
    assert one_column(part, name_mapped_ids={1}).source is FILE
    default = one_column(part)
    assert (default.source, default.value) == (DEFAULT, 7)
    null = one_column(NestedField(1, "a", INT))
    assert (null.source, null.value) == (NULL, None)


def test_constants_need_no_reading() -> None:
    assert not one_column(NestedField(1, "a", INT), 1).is_constant
    assert one_column(NestedField(1, "a", INT)).is_constant


@pytest.mark.parametrize("value", [0, False, ""])
def test_falsy_values_are_values(value: object) -> None:
    assert one_column(NestedField(1, "a", INT, required=True), partition_values={1: value}).value == value
    assert one_column(NestedField(1, "a", INT, required=True, initial_default=value)).source is DEFAULT


def test_null_partition_value_counts_as_present() -> None:
    column = one_column(NestedField(1, "a", INT, initial_default=7), partition_values={1: None})
    assert (column.source, column.value) == (PARTITION, None)


def test_write_default_does_not_affect_existing_rows() -> None:
    assert one_column(NestedField(1, "a", INT, write_default=7)).source is NULL


def test_required_column_without_a_value_is_refused_with_its_full_name() -> None:
    inner = StructType((NestedField(2, "b", INT, required=True),))
    with pytest.raises(SchemaMismatchError, match=r"Cannot read column 'a\.b' \(field id 2\): it is required, but"):
        one_column(NestedField(1, "a", inner), 1)
    with pytest.raises(SchemaMismatchError, match="the file's partition value is null"):
        one_column(NestedField(1, "a", INT, required=True), partition_values={1: None})


def test_unknown_columns_are_always_null() -> None:
    assert one_column(NestedField(1, "a", UNKNOWN), 1).source is NULL
    elements = one_column(NestedField(1, "a", ListType(2, UNKNOWN)), 1, 2)
    assert elements.source is FILE
    assert elements.parts[0].source is NULL


# Nested columns


def test_struct_fields_are_resolved_individually() -> None:
    inner = StructType(
        (
            NestedField(2, "in_file", INT),
            NestedField(3, "partitioned", INT),
            NestedField(4, "defaulted", INT, initial_default=1),
            NestedField(5, "missing", INT),
        )
    )
    column = one_column(NestedField(1, "s", inner), 1, 2, partition_values={3: 9})
    assert column.source is FILE
    assert sources(column.parts) == [
        ("in_file", FILE, None),
        ("partitioned", PARTITION, 9),
        ("defaulted", DEFAULT, 1),
        ("missing", NULL, None),
    ]


def test_fields_of_structs_in_lists_and_maps_are_resolved() -> None:
    inner = StructType((NestedField(10, "old", INT), NestedField(11, "new", INT, initial_default=3)))
    in_list = one_column(NestedField(1, "l", ListType(2, inner)), 1, 2, 10)
    (element,) = in_list.parts
    assert element.source is FILE
    assert sources(element.parts) == [("old", FILE, None), ("new", DEFAULT, 3)]
    in_map = one_column(NestedField(1, "m", MapType(2, STRING, 3, inner)), 1, 2, 3, 10)
    assert sources(in_map.parts) == [("key", FILE, None), ("value", FILE, None)]
    assert sources(in_map.parts[1].parts) == [("old", FILE, None), ("new", DEFAULT, 3)]


def test_struct_is_present_if_any_field_is() -> None:
    inner = StructType((NestedField(2, "l", ListType(3, INT)), NestedField(4, "other", INT)))
    column = one_column(NestedField(1, "s", inner), 3)
    assert column.source is FILE
    assert sources(column.parts) == [("l", FILE, None), ("other", NULL, None)]


@pytest.mark.parametrize(
    ("default", "source", "value"), [(None, NULL, None), ({}, DEFAULT, {"x": 0, "y": {"z": 1}, "n": None})]
)
def test_missing_struct_is_null_or_built_from_field_defaults(
    default: object, source: ValueSource, value: object
) -> None:
    inner = StructType(
        (
            NestedField(2, "x", INT, required=True, initial_default=0),
            NestedField(3, "y", StructType((NestedField(4, "z", LONG, initial_default=1),)), initial_default={}),
            NestedField(5, "n", INT),
        )
    )
    column = one_column(NestedField(1, "point", inner, initial_default=default))
    assert (column.source, column.value) == (source, value)


def test_missing_struct_with_a_partition_value_is_not_null() -> None:
    inner = StructType((NestedField(2, "day", INT), NestedField(3, "other", INT)))
    column = one_column(NestedField(1, "s", inner), partition_values={2: 17})
    assert (column.source, column.value) == (PARTITION, {"day": 17, "other": None})
    assert one_column(NestedField(1, "s", inner), partition_values={2: None}).source is NULL


def test_missing_optional_struct_with_required_fields_is_null() -> None:
    inner = StructType((NestedField(2, "a", INT, required=True),))
    assert one_column(NestedField(1, "s", inner)).source is NULL


def test_missing_list_has_its_default() -> None:
    column = one_column(NestedField(1, "l", ListType(2, INT), initial_default=[1, 2]))
    assert (column.source, column.value) == (DEFAULT, [1, 2])
