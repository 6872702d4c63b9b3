"""Schema updates: moving columns. After Iceberg Java's cases."""

from __future__ import annotations

import pytest

from frazil.errors import FieldNotFoundError, SchemaChangeError
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.types import INT, STRING, ListType, MapType, NestedField, NestedType, StructType, Type


def fields(first_id: int, names: str) -> tuple[NestedField, ...]:
    return tuple(NestedField(first_id + at, name, INT) for at, name in enumerate(names.split()))


SCHEMA = Schema(
    (
        *fields(1, "a b c d"),
        NestedField(10, "s", StructType(fields(11, "x y z"))),
        NestedField(20, "l", ListType(21, StructType(fields(22, "x y z")))),
        NestedField(30, "m", MapType(31, StructType(fields(32, "k1 k2")), 35, StructType(fields(36, "x y z")))),
        NestedField(40, "t", StructType(fields(41, "x y"))),
        NestedField(50, "p", MapType(51, STRING, 52, STRING)),
        NestedField(53, "q", ListType(54, STRING)),
    )
)


def change(*, case_sensitive: bool = True) -> SchemaUpdate:
    return SchemaUpdate(SCHEMA, 100, 2, case_sensitive=case_sensitive)


def names(update: SchemaUpdate, column: str | None = None) -> str:
    schema = update.apply().schema
    kind: Type = schema.struct if column is None else schema.field(column).field_type
    assert isinstance(kind, NestedType)
    return " ".join(part.name for part in kind.fields)


def top(update: SchemaUpdate) -> str:
    return names(update).removesuffix(" s l m t p q")


def test_column_is_moved_first() -> None:
    assert top(change().move_first("d")) == "d a b c"
    assert top(change().move_first("a")) == "a b c d"


def test_column_is_moved_before_and_after_another() -> None:
    assert top(change().move_before("d", "a")) == "d a b c"
    assert top(change().move_before("c", "b")) == "a c b d"
    assert top(change().move_before("a", "d")) == "b c a d"
    assert top(change().move_after("a", "d")) == "b c d a"
    assert top(change().move_after("c", "a")) == "a c b d"
    assert names(change().move_after("a", "q")).endswith("p q a")


def test_moves_are_applied_in_order() -> None:
    moved = change().move_first("d").move_first("c").move_after("b", "d").move_before("d", "a")
    assert top(moved) == "c b d a"


@pytest.mark.parametrize(
    ("column", "path"), [("s", "s"), ("l.element", "l"), ("l.element", "l.element"), ("m.value", "m")]
)
def test_fields_move_within_structs_elements_and_values(column: str, path: str) -> None:
    assert names(change().move_first(f"{path}.z"), column) == "z x y"
    assert names(change().move_before(f"{path}.z", f"{path}.y"), column) == "x z y"
    assert names(change().move_after((*path.split("."), "x"), f"{path}.z"), column) == "y z x"


def test_added_columns_can_be_moved() -> None:
    assert top(change().add_column("n", INT).move_after("n", "a")) == "a n b c d"
    both = change().add_column("n", INT).add_column("o", INT).move_after("n", "a").move_after("o", "n")
    assert top(both) == "a n o b c d"
    assert names(change().add_column("s.n", INT).move_before("s.n", "s.x"), "s") == "n x y z"
    assert names(change().add_column("l.n", INT).move_first("l.n"), "l.element") == "n x y z"
    assert names(change().add_column("l.n", INT).move_first("l.element.n"), "l.element") == "n x y z"
    assert names(change().add_column(("m", "n.n"), INT).move_first("m.n.n"), "m.value") == "n.n x y z"
    chained = change().add_column("s.n", INT).add_column("s.o", INT).move_first("s.n").move_before("s.o", "s.n")
    assert names(chained, "s") == "o n x y z"


def test_columns_replacing_dropped_ones_are_moved_by_name() -> None:
    again = change().drop_column("a").add_column("a", STRING)
    assert top(again.move_after("a", "b")) == "b a c d"
    assert again.apply().schema.field("a").field_id == 101
    nested = change().drop_column("s.y").add_column("s.y", STRING).move_before("s.y", "s.z")
    assert names(nested, "s") == "x y z"


def test_renamed_columns_are_moved_by_old_name() -> None:
    assert top(change().rename_column("d", "e").move_first("d").move_after("a", "d")) == "e a b c"


def test_case_may_be_ignored() -> None:
    assert top(change(case_sensitive=False).move_after("D", "A")) == "a d b c"
    assert top(change(case_sensitive=False).add_column("new", INT).move_first("NeW")) == "new a b c d"
    added = change(case_sensitive=False).add_column("S.n", INT).add_column("s.o", INT).move_after("S.O", "s.X")
    assert names(added, "s") == "x o y z n"


@pytest.mark.parametrize("path", ["p.key", "p.value", "q.element", "m.key", "l.element"], ids=lambda path: path)
def test_list_and_map_parts_cannot_move(path: str) -> None:
    with pytest.raises(SchemaChangeError, match=r"it is a part of a list or map|the keys of maps cannot change"):
        change().move_first(path)


def test_fields_inside_map_keys_cannot_move() -> None:
    with pytest.raises(SchemaChangeError, match="the keys of maps cannot change"):
        change().move_before("m.key.k2", "m.key.k1")


@pytest.mark.parametrize(
    ("path", "reference"), [("a", "s.x"), ("s.x", "a"), ("s.x", "t.x"), ("l.x", "l"), ("s.x", "x")]
)
def test_columns_cannot_move_to_another_struct(path: str, reference: str) -> None:
    with pytest.raises((SchemaChangeError, FieldNotFoundError), match=f"Cannot move column '{path}' before column"):
        change().move_before(path, reference)


def test_column_cannot_move_relative_to_itself() -> None:
    with pytest.raises(SchemaChangeError, match="it cannot stand before itself"):
        change().move_before("a", "a")
    with pytest.raises(SchemaChangeError, match="it cannot stand after itself"):
        change().move_after("s.x", ("s", "x"))


def test_missing_columns_cannot_move() -> None:
    with pytest.raises(FieldNotFoundError, match="Cannot move column 'n': the schema has no such column"):
        change().move_first("n").add_column("n", INT)
    with pytest.raises(FieldNotFoundError, match="Cannot move column 'n'"):
        change().move_before("n", "a")
    with pytest.raises(FieldNotFoundError, match="Cannot move column 'a' after column 'n': the schema has no such"):
        change().move_after("a", "n")
