from __future__ import annotations

from itertools import count

from frazil.spec.fresh_ids import assign_fresh_ids, reassign_ids
from frazil.spec.schema import Schema
from frazil.spec.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType, Type


def numbers(start: int = 1) -> count[int]:
    return count(start)


def test_ids_of_a_struct_precede_those_of_nested_fields() -> None:
    point = StructType((NestedField(0, "x", INT), NestedField(0, "y", ListType(0, INT))))
    kind = StructType(
        (
            NestedField(0, "a", point),
            NestedField(0, "m", MapType(0, point, 0, ListType(0, point))),
            NestedField(0, "b", LONG),
        )
    )
    fresh = numbers()
    assert str(assign_fresh_ids(kind, lambda: next(fresh))) == (
        "struct<1: a: optional struct<4: x: optional int, 5: y: optional list<int>>, "
        "2: m: optional map<struct<9: x: optional int, 10: y: optional list<int>>, "
        "list<struct<13: x: optional int, 14: y: optional list<int>>>>, 3: b: optional long>"
    )


def test_identifier_fields_docs_and_defaults_follow_their_fields() -> None:
    schema = Schema(
        (
            NestedField(10, "id", LONG, required=True, doc="key", write_default=5),
            NestedField(20, "s", StructType((NestedField(30, "k", INT, required=True),)), required=True),
        ),
        schema_id=4,
        identifier_field_ids=(30, 10),
    )
    fresh = numbers(100)
    numbered = assign_fresh_ids(schema, lambda: next(fresh))
    assert numbered.identifier_field_ids == (102, 100)
    assert numbered.schema_id == 4
    assert numbered.fields[0] == NestedField(100, "id", LONG, required=True, doc="key", write_default=5)


def test_columns_of_a_base_schema_keep_their_ids() -> None:
    base = Schema(
        (NestedField(1, "id", LONG), NestedField(2, "l", ListType(3, StructType((NestedField(4, "x", INT),)))))
    )
    columns = StructType((NestedField(8, "x", INT), NestedField(9, "y", INT)))
    new = Schema(
        (NestedField(5, "name", STRING), NestedField(6, "l", ListType(7, columns)), NestedField(10, "id", LONG))
    )
    fresh = numbers(50)
    numbered = assign_fresh_ids(new, lambda: next(fresh), base=base)
    assert {
        name: numbered.field(name).field_id for name in ("name", "id", "l", "l.element", "l.element.x", "l.element.y")
    } == {
        "name": 50,
        "id": 1,
        "l": 2,
        "l.element": 3,
        "l.element.x": 4,
        "l.element.y": 51,
    }


def test_primitive_types_are_returned_unchanged() -> None:
    kind: Type = INT
    assert reassign_ids(kind, lambda old: old + 1) is kind
