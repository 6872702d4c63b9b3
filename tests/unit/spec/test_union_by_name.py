"""Unions of schemas by name. After Iceberg Java's cases."""

from __future__ import annotations

import pytest

from frazil.errors import SchemaChangeError
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import EvolvedSchema, SchemaUpdate
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
    TIMESTAMPTZ_NS,
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
from frazil.spec.union_by_name import union_by_name

TYPES: tuple[Type, ...] = (
    STRING, TIME, TIMESTAMP, TIMESTAMPTZ, UUID, DATE, BOOLEAN, BINARY, DOUBLE, INT, FixedType(10), DecimalType(10, 2),
    LONG, FLOAT, VARIANT, UNKNOWN, TIMESTAMP_NS, TIMESTAMPTZ_NS, GeometryType(), GeometryType("EPSG:3857"),
    GeographyType(), GeographyType("EPSG:4269", "karney"),
)  # fmt: skip


def opt(field_id: int, name: str, kind: Type) -> NestedField:
    return NestedField(field_id, name, kind)


def column(kind: Type, **options: object) -> Schema:
    return Schema((NestedField(1, "col", kind, **options),))  # type: ignore[arg-type]


def union(table: Schema, other: Schema, version: int = 3, *, case_sensitive: bool = True) -> EvolvedSchema:
    update = SchemaUpdate(table, table.highest_field_id, version, case_sensitive=case_sensitive)
    return union_by_name(update, other).apply()


# Adding


def test_columns_of_every_type_are_added() -> None:
    other = Schema(tuple(opt(at, str(kind), kind) for at, kind in enumerate(TYPES, start=1)))
    assert union(Schema(), other) == (other, len(TYPES))
    table = Schema((opt(1, "s", StructType(())),))
    inner = StructType(tuple(opt(at, str(kind), kind) for at, kind in enumerate(TYPES, start=2)))
    assert union(table, Schema((opt(1, "s", inner),))).schema == Schema((opt(1, "s", inner),))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_lists_maps_and_structs_of_every_type_are_added(kind: Type) -> None:
    for nested in (ListType(2, kind), MapType(2, STRING, 3, kind), StructType((opt(2, "a", kind),))):
        assert union(Schema(), column(nested)).schema == column(nested)


def test_deep_columns_are_added() -> None:
    kinds: list[Type] = [DecimalType(11, 2), STRING, STRING]
    for depth in range(8, 1, -1):
        kinds[0] = ListType(depth, kinds[0])
        kinds[1] = StructType((opt(depth, f"s{depth}", kinds[1]),))
        kinds[2] = MapType(2 * depth - 2, STRING, 2 * depth - 1, kinds[2])
    for kind in kinds:
        assert union(Schema(), column(kind)).schema == column(kind)


def test_added_columns_are_optional_with_docs_and_defaults() -> None:
    other = column(LONG, required=True, doc="text", initial_default=34, write_default=35)
    assert union(Schema(), other).schema == column(LONG, doc="text", initial_default=34, write_default=35)


def test_fields_are_added_inside_structs_lists_and_maps() -> None:
    def table(*names: tuple[int, str]) -> Schema:
        inner = StructType(tuple(opt(field_id, name, STRING) for field_id, name in names))
        return Schema((opt(1, "m", MapType(2, STRING, 3, ListType(4, StructType((opt(5, "s", inner),))))),))

    assert union(table((6, "a")), table((60, "b"))) == (table((6, "a"), (7, "b")), 7)


def test_columns_missing_in_the_other_schema_stay() -> None:
    table, other = Schema((opt(1, "a", INT), opt(2, "b", INT))), Schema((opt(9, "c", INT), opt(8, "a", INT)))
    assert union(table, other).schema == Schema((opt(1, "a", INT), opt(2, "b", INT), opt(3, "c", INT)))


def test_struct_with_a_name_seen_above_is_added_whole() -> None:
    inner = StructType((opt(5, "s1", StructType((opt(6, "s2", STRING),))),))
    table = Schema((opt(1, "s1", StructType((opt(2, "s2", STRING),))),))
    other = Schema((opt(1, "s1", StructType((opt(2, "s2", STRING), opt(4, "repeat", inner)))),))
    assert union(table, other).schema.name_of(5) == "s1.repeat.s1.s2"


def test_ids_of_the_other_schema_are_ignored() -> None:
    table = Schema(
        (opt(9, "s", StructType((opt(8, "a", STRING),))), opt(6, "l", ListType(7, STRING)), opt(5, "b", INT))
    )
    other = Schema(
        (opt(1, "s", StructType((opt(2, "a", STRING),))), opt(3, "l", ListType(4, STRING)), opt(5, "b", INT))
    )
    assert union(table, other) == (table, 9)


# Changing


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (INT, LONG),
        (FLOAT, DOUBLE),
        (DecimalType(20, 1), DecimalType(22, 1)),
        (DATE, TIMESTAMP),
        (UNKNOWN, STRING),
        (UNKNOWN, ListType(2, INT)),
    ],
    ids=str,
)
def test_types_are_promoted_and_narrower_ones_ignored(old: Type, new: Type) -> None:
    assert union(column(old), column(new)).schema == column(new)
    assert union(column(new), column(old)).schema == column(new)


def test_nested_types_are_promoted() -> None:
    assert union(column(ListType(2, INT)), column(ListType(2, LONG))).schema == column(ListType(2, LONG))
    table, other = column(MapType(2, LONG, 3, FLOAT)), column(MapType(2, INT, 3, DOUBLE))
    assert union(table, other).schema == column(MapType(2, LONG, 3, DOUBLE))


def test_required_columns_become_optional_if_the_other_are() -> None:
    table = column(ListType(2, INT, element_required=True), required=True)
    assert union(table, column(ListType(2, INT))).schema == column(ListType(2, INT))
    assert union(column(INT), column(INT, required=True)).schema == column(INT)


def test_docs_are_taken_over_and_not_removed() -> None:
    assert union(column(INT, doc="old"), column(INT, doc="new")).schema == column(INT, doc="new")
    assert union(column(INT, doc="old"), column(INT)).schema == column(INT, doc="old")


def test_only_the_write_default_of_an_existing_column_is_taken_over() -> None:
    other = column(INT, initial_default=34, write_default=35)
    assert union(column(INT), other).schema == column(INT, write_default=35)
    assert union(column(TIMESTAMP), column(DATE, write_default=1)).schema == column(
        TIMESTAMP, write_default=86_400_000_000
    )


def test_case_may_be_ignored() -> None:
    table = Schema((opt(1, "Col", INT), opt(2, "S", StructType((opt(3, "A", INT),)))))
    other = Schema((opt(1, "COL", LONG), opt(2, "s", StructType((opt(3, "a", LONG), opt(4, "B", INT))))))
    assert union(table, other, case_sensitive=False).schema == Schema(
        (opt(1, "Col", LONG), opt(2, "S", StructType((opt(3, "A", LONG), opt(4, "B", INT)))))
    )
    assert len(union(table, other).schema) == 4


# Refusing


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (ListType(2, STRING), ListType(2, LONG), "col.element"),
        (MapType(2, STRING, 3, STRING), MapType(2, STRING, 3, LONG), "col.value"),
        (MapType(2, STRING, 3, STRING), MapType(2, UUID, 3, STRING), "col.key"),
        (MapType(2, INT, 3, STRING), MapType(2, LONG, 3, STRING), "col.key"),
        (ListType(2, STRING), STRING, "col"),
        (STRING, ListType(2, STRING), "col"),
        (STRING, StructType((opt(2, "a", STRING),)), "col"),
        (StructType((opt(2, "a", STRING),)), ListType(2, STRING), "col"),
        (INT, STRING, "col"),
        (VARIANT, STRING, "col"),
    ],
    ids=str,
)
def test_incompatible_types_are_refused_with_the_column(old: Type, new: Type, name: str) -> None:
    with pytest.raises(SchemaChangeError, match=f"Cannot change the type of column '{name}'"):
        union(column(old), column(new))


def test_fields_cannot_be_added_to_map_keys() -> None:
    def table(*names: str) -> Schema:
        key = StructType(tuple(opt(10 + at, name, INT) for at, name in enumerate(names)))
        return column(MapType(2, key, 3, INT))

    assert union(table("a", "b"), table("b")).schema == table("a", "b")
    with pytest.raises(SchemaChangeError, match="the keys of maps cannot change"):
        union(table("a"), table("a", "b"))


def test_unsupported_features_are_refused_but_null_columns_fit() -> None:
    with pytest.raises(SchemaChangeError, match="needs format version 3"):
        union(Schema(), column(UNKNOWN), version=2)
    for kind in (INT, StructType((opt(2, "a", INT),))):
        assert union(column(kind), column(UNKNOWN), version=2).schema == column(kind)


def test_columns_differing_in_case_are_refused_if_case_insensitive() -> None:
    other = Schema((opt(1, "a", INT), opt(2, "A", INT)))
    with pytest.raises(SchemaChangeError, match="'a' and 'A' differ in case only"):
        union(Schema(), other, case_sensitive=False)
