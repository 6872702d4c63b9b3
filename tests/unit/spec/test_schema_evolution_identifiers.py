"""Schema updates: identifier fields. After Iceberg Java's cases."""

from __future__ import annotations

import pytest

from frazil.errors import SchemaChangeError
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.types import DOUBLE, FLOAT, INT, LONG, STRING, ListType, MapType, NestedField, StructType, Type


def req(field_id: int, name: str, kind: Type = STRING) -> NestedField:
    return NestedField(field_id, name, kind, required=True)


SCHEMA = Schema(
    (
        req(1, "id", INT),
        NestedField(2, "data", STRING),
        req(3, "out", StructType((req(4, "nested"), req(5, "deeper", StructType((req(6, "leaf"),)))))),
        NestedField(7, "maybe", StructType((req(8, "a"),))),
        req(10, "list", ListType(11, StructType((req(12, "x", LONG),)), element_required=True)),
        req(20, "map", MapType(21, StructType((req(22, "k"),)), 23, StructType((req(24, "v"),)), value_required=True)),
        req(30, "f", FLOAT),
        req(31, "d", DOUBLE),
        req(32, "other"),
    )
)


def change(*identifiers: int) -> SchemaUpdate:
    return SchemaUpdate(Schema(SCHEMA.fields, identifier_field_ids=identifiers), 100, 2)


def ids(update: SchemaUpdate) -> tuple[int, ...]:
    return update.apply().schema.identifier_field_ids


def test_existing_columns_become_identifier_fields() -> None:
    assert ids(change().set_identifier_fields(["id"])) == (1,)
    assert ids(change().set_identifier_fields(["out.nested", ("out", "deeper", "leaf"), "id", "id"])) == (4, 6, 1)
    assert ids(change().set_identifier_fields("id")) == (1,)


@pytest.mark.parametrize("is_added_first", [True, False])
def test_columns_added_before_or_after_become_identifier_fields(is_added_first: bool) -> None:
    update = change().allow_incompatible_changes()
    if is_added_first:
        update.add_required_column("new", STRING)
    update.set_identifier_fields(["id", "new"])
    if not is_added_first:
        update.add_required_column("new", STRING)
    assert ids(update) == (1, 101)


def test_nested_added_fields_and_dotted_names_become_identifier_fields() -> None:
    struct = "struct<field: struct<nested: string not null> not null>"
    update = change().allow_incompatible_changes().add_required_column("new", struct)
    assert ids(update.set_identifier_fields(["new.field.nested"])) == (103,)
    assert ids(update.set_identifier_fields([("new", "field", "nested")])) == (103,)
    dotted = change().allow_incompatible_changes().add_required_column(("dot.field",), STRING)
    assert ids(dotted.set_identifier_fields(["dot.field", "id"])) == (101, 1)


def test_identifier_fields_are_replaced_and_removed() -> None:
    assert ids(change(1, 4).set_identifier_fields(["other"])) == (32,)
    assert ids(change(1, 4).set_identifier_fields([])) == ()
    assert ids(change(1, 4)) == (1, 4)


def test_case_may_be_ignored() -> None:
    update = SchemaUpdate(SCHEMA, 100, 2, case_sensitive=False)
    assert ids(update.set_identifier_fields(["ID", "Out.NESTED"])) == (1, 4)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unknown", "Cannot make column 'unknown' an identifier field: the new schema has no such column"),
        ("map", "is not a primitive type"),
        ("data", "it is optional"),
        ("map.key.k", "it is inside a list or map"),
        ("map.value.v", "it is inside a list or map"),
        ("list.element.x", "it is inside a list or map"),
        ("f", "cannot be compared exactly"),
        ("d", "cannot be compared exactly"),
        ("maybe.a", "it is inside the optional struct 'maybe'"),
    ],
)
def test_unsuitable_identifier_columns_are_refused(name: str, reason: str) -> None:
    with pytest.raises(SchemaChangeError, match=reason):
        change().set_identifier_fields([name]).apply()


def test_identifier_field_is_dropped_only_after_it_is_unset() -> None:
    assert ids(change(1).drop_column("id").set_identifier_fields([])) == ()
    assert ids(change(1).set_identifier_fields(["other"]).drop_column("id")) == (32,)
    with pytest.raises(SchemaChangeError, match="Cannot drop column 'id': it is an identifier field") as caught:
        change(1).drop_column("id").apply()
    assert "set_identifier_fields()" in (caught.value.hint or "")
    with pytest.raises(SchemaChangeError, match="it is dropped in the same update"):
        change().drop_column("id").set_identifier_fields(["id"]).apply()


@pytest.mark.parametrize("name", ["out", "out.deeper"])
def test_struct_holding_an_identifier_field_cannot_be_dropped(name: str) -> None:
    with pytest.raises(
        SchemaChangeError, match=f"Cannot drop column '{name}': it holds the identifier field 'out.deeper"
    ):
        change(6).drop_column(name).apply()


def test_column_replacing_a_dropped_one_becomes_the_identifier_field() -> None:
    update = change(1).allow_incompatible_changes().drop_column("id").add_required_column("id", LONG)
    assert ids(update.set_identifier_fields(["id"])) == (101,)


def test_renaming_and_moving_do_not_change_identifier_fields() -> None:
    update = change(1, 6).rename_column("id", "id2").rename_column("out", "outer").rename_column("out.deeper", "down")
    assert ids(update.move_after("id", "data").move_first("id")) == (1, 6)


def test_old_and_new_names_are_accepted() -> None:
    assert ids(change().rename_column("id", "id2").set_identifier_fields(["id"])) == (1,)
    assert ids(change().rename_column("id", "id2").set_identifier_fields(["id2"])) == (1,)


def test_identifier_fields_and_their_parents_stay_required() -> None:
    with pytest.raises(SchemaChangeError, match="Cannot use 'id' as an identifier field: it is optional"):
        change(1).make_optional("id").apply()
    with pytest.raises(SchemaChangeError, match="it is inside the optional struct 'out'"):
        change(4).make_optional("out").apply()
