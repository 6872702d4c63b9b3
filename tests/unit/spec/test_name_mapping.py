"""Name mappings: made of a schema, kept up to date, and given to files without ids."""

from __future__ import annotations

import pickle

import pytest

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.name_mapping import (
    MappedField,
    NamedColumn,
    NameMapping,
    apply_name_mapping,
    assign_ids_by_name,
    create_name_mapping,
    update_name_mapping,
)
from frazil.spec.schema import Schema
from frazil.spec.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    VARIANT,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

NESTED = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "data", VARIANT),
        NestedField(
            3, "map", MapType(4, DOUBLE, 5, StructType((NestedField(6, "x", DOUBLE), NestedField(7, "y", DOUBLE))))
        ),
        NestedField(8, "list", ListType(9, STRING)),
        NestedField(10, "location", StructType((NestedField(11, "lat", FLOAT), NestedField(12, "long", FLOAT)))),
    )
)


def mapped(field_id: int | None, *names: str, fields: tuple[MappedField, ...] | None = None) -> MappedField:
    return MappedField(names, field_id, fields)


def columns(*names: str) -> tuple[NamedColumn, ...]:
    return tuple(NamedColumn(name) for name in names)


def flat(*fields: tuple[int, str]) -> Schema:
    return Schema(tuple(NestedField(field_id, name, STRING) for field_id, name in fields))


def point(*fields: tuple[int, str], name: str = "point") -> Schema:
    inner = StructType(tuple(NestedField(field_id, part, DOUBLE) for field_id, part in fields))
    return Schema((NestedField(1, "id", LONG), NestedField(3, name, inner)))


# Making


def test_mapping_of_a_schema_names_every_field() -> None:
    assert create_name_mapping(NESTED).fields == (
        mapped(1, "id"),
        mapped(2, "data"),
        mapped(3, "map", fields=(mapped(4, "key"), mapped(5, "value", fields=(mapped(6, "x"), mapped(7, "y"))))),
        mapped(8, "list", fields=(mapped(9, "element"),)),
        mapped(10, "location", fields=(mapped(11, "lat"), mapped(12, "long"))),
    )


def test_struct_keys_are_mapped() -> None:
    key = StructType((NestedField(6, "x", DOUBLE),))
    mapping = create_name_mapping(Schema((NestedField(3, "map", MapType(4, key, 5, DOUBLE)),)))
    assert mapping.find_field(("map", "key", "x")) == mapped(6, "x")


def test_fields_are_found_by_id() -> None:
    mapping = create_name_mapping(NESTED)
    assert mapping.find_field(100) is None
    assert mapping.find_field(6) == mapped(6, "x")
    assert mapping.find_field(9) == mapped(9, "element")
    assert mapping.find_field(10) == mapped(10, "location", fields=(mapped(11, "lat"), mapped(12, "long")))


def test_fields_are_found_by_full_path_and_not_by_nested_name() -> None:
    mapping = create_name_mapping(NESTED)
    for name in ("element", "x", "key", "value", "location.lat"):
        assert mapping.find_field(name) is None
    assert mapping.find_field("data") == mapped(2, "data")
    assert mapping.find_field(("map", "value", "x")) == mapped(6, "x")
    assert mapping.find_field(("list", "element")) == mapped(9, "element")
    assert mapping.find_field(("list", "element", "deeper")) is None
    assert mapping.find_field(()) is None


def test_name_may_contain_dots() -> None:
    mapping = NameMapping((mapped(1, "a.b"), mapped(2, "a", fields=(mapped(3, "b"),))))
    assert mapping.find_field("a.b") == mapped(1, "a.b")
    assert mapping.find_field(("a", "b")) == mapped(3, "b")


def test_duplicate_sibling_name_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the name 'x' is mapped to the field ids 1 and 2"):
        NameMapping((mapped(1, "x"), mapped(2, "y", "x")))
    with pytest.raises(InvalidRequestError, match="'x'"):
        NameMapping((mapped(1, "a", fields=(mapped(2, "x"), mapped(None, "x"))),))


def test_same_name_at_different_levels_is_allowed() -> None:
    NameMapping((mapped(1, "x", fields=(mapped(3, "x"),)), mapped(2, "y", fields=(mapped(4, "x"),))))


def test_duplicate_id_is_refused_and_missing_ids_are_not_ids() -> None:
    with pytest.raises(InvalidRequestError, match="the field id 1 is mapped twice"):
        NameMapping((mapped(1, "x"), mapped(2, "y", fields=(mapped(1, "z"),))))
    NameMapping((mapped(None, "x"), mapped(None, "y")))


def test_repeated_name_of_one_field_counts_once() -> None:
    assert MappedField(("a", "b", "a"), 1).names == ("a", "b")


def test_deeply_nested_mapping_is_refused() -> None:
    one = mapped(None, "leaf")
    for _ in range(5000):
        one = mapped(None, "a", fields=(one,))
    with pytest.raises(InvalidRequestError, match="nested deeper than 64 levels"):
        NameMapping((one,))


def test_mappings_are_picklable_after_use() -> None:
    mapping = create_name_mapping(NESTED)
    mapping.find_field(("location", "lat"))
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    assert len(mapping) == len(list(mapping)) == 5


# Keeping up to date


def test_added_column_is_mapped() -> None:
    before, after = flat((1, "id"), (2, "data")), flat((1, "id"), (3, "ts"), (2, "data"))
    updated = update_name_mapping(create_name_mapping(before), before, after)
    assert updated.fields == (mapped(1, "id"), mapped(2, "data"), mapped(3, "ts"))


def test_added_struct_and_its_fields_are_mapped() -> None:
    empty = Schema((NestedField(1, "id", LONG),))
    first, second = point((4, "x"), (5, "y")), point((4, "x"), (5, "y"), (6, "z"))
    added = update_name_mapping(create_name_mapping(empty), empty, first)
    assert added.fields == (mapped(1, "id"), mapped(3, "point", fields=(mapped(4, "x"), mapped(5, "y"))))
    grown = update_name_mapping(added, first, second)
    assert grown.find_field(3) == mapped(3, "point", fields=(mapped(4, "x"), mapped(5, "y"), mapped(6, "z")))


def test_first_field_added_to_an_empty_struct_is_mapped() -> None:
    before, after = point(), point((4, "x"))
    mapping = NameMapping((mapped(1, "id"), mapped(3, "point")))
    assert update_name_mapping(mapping, before, after).find_field(("point", "x")) == mapped(4, "x")


def test_renamed_column_keeps_its_old_name() -> None:
    before, after = flat((1, "id"), (2, "data")), flat((1, "object_id"), (2, "data"))
    updated = update_name_mapping(create_name_mapping(before), before, after)
    assert updated.fields == (mapped(1, "id", "object_id"), mapped(2, "data"))


def test_renamed_structs_and_fields_keep_their_old_names() -> None:
    before, after = point((4, "x"), (5, "y")), point((4, "X"), (5, "y"), name="p2")
    updated = update_name_mapping(create_name_mapping(before), before, after)
    assert updated.find_field(3) == mapped(3, "point", "p2", fields=(mapped(4, "x", "X"), mapped(5, "y")))


def test_renamed_field_inside_a_list_keeps_its_old_name() -> None:
    def items(name: str) -> Schema:
        return Schema((NestedField(1, "l", ListType(2, StructType((NestedField(3, name, INT),)))),))

    updated = update_name_mapping(create_name_mapping(items("a")), items("a"), items("b"))
    assert updated.find_field(("l", "element", "b")) == mapped(3, "a", "b")


def test_reused_name_is_removed_from_its_former_field() -> None:
    before = flat((1, "id"), (2, "data"))
    renamed = flat((1, "object_id"), (2, "data"))
    mapping = update_name_mapping(create_name_mapping(before), before, renamed)
    reused = flat((1, "object_id"), (2, "data"), (3, "id"))
    assert update_name_mapping(mapping, renamed, reused).fields == (
        mapped(1, "object_id"),
        mapped(2, "data"),
        mapped(3, "id"),
    )


def test_several_reused_names_are_removed_at_once() -> None:
    before, after = flat((1, "a")), flat((1, "c"), (2, "a"), (3, "b"))
    mapping = NameMapping((mapped(1, "a", "b"),))
    assert update_name_mapping(mapping, before, after).fields == (mapped(1, "c"), mapped(2, "a"), mapped(3, "b"))


def test_swapped_names_are_swapped() -> None:
    before, after = flat((1, "a"), (2, "b")), flat((1, "b"), (2, "a"))
    updated = update_name_mapping(create_name_mapping(before), before, after)
    assert updated.fields == (mapped(1, "b"), mapped(2, "a"))


def test_dropped_column_stays_mapped_until_its_name_is_reused() -> None:
    before, dropped = flat((1, "id"), (2, "data")), flat((1, "id"))
    mapping = update_name_mapping(create_name_mapping(before), before, dropped)
    assert mapping.fields == (mapped(1, "id"), mapped(2, "data"))
    again = update_name_mapping(mapping, dropped, flat((1, "id"), (3, "data")))
    assert again.fields == (mapped(1, "id"), mapped(2), mapped(3, "data"))


def test_deliberately_unmapped_names_stay_unmapped() -> None:
    before, after = flat((1, "id"), (2, "secret")), flat((1, "id"), (2, "secret"), (3, "ts"))
    mapping = NameMapping((mapped(1), mapped(None, "junk")))
    assert update_name_mapping(mapping, before, after).fields == (mapped(1), mapped(None, "junk"), mapped(3, "ts"))


# Giving ids to files


def test_columns_get_ids_by_any_name_and_unknown_ones_get_none() -> None:
    mapping = NameMapping(
        (
            mapped(1, "id", "record_id"),
            mapped(None, "ignored", fields=(mapped(9, "inner"),)),
            mapped(3, "location", fields=(mapped(4, "latitude", "lat"), mapped(5, "longitude", "long"))),
        )
    )
    file = (
        NamedColumn("record_id"),
        NamedColumn("ignored", columns("inner")),
        NamedColumn("location", columns("lat", "height", "longitude")),
        NamedColumn("lat"),
    )
    assert assign_ids_by_name(file, mapping) == {
        ("record_id",): 1,
        ("ignored", "inner"): 9,
        ("location",): 3,
        ("location", "lat"): 4,
        ("location", "longitude"): 5,
    }


def test_two_columns_of_one_id_are_refused() -> None:
    mapping = NameMapping((mapped(1, "id", "record_id"),))
    with pytest.raises(SchemaMismatchError, match="'id' and 'record_id': both have the field id 1"):
        assign_ids_by_name(columns("id", "record_id"), mapping)


def test_mapping_of_a_schema_restores_the_schema() -> None:
    stripped = _without_ids(NESTED.struct)
    assert isinstance(stripped, StructType)
    assert apply_name_mapping(stripped, create_name_mapping(NESTED)) == NESTED.struct


def test_unmapped_columns_are_omitted_with_incomplete_lists_and_maps() -> None:
    file = StructType(
        (
            NestedField(-1, "id", LONG),
            NestedField(-1, "other", LONG),
            NestedField(-1, "items", ListType(-1, LONG)),
            NestedField(-1, "pairs", MapType(-1, STRING, -1, LONG)),
            NestedField(-1, "place", StructType((NestedField(-1, "x", LONG),))),
        )
    )
    mapping = NameMapping(
        (
            mapped(1, "id"),
            mapped(2, "items"),
            mapped(3, "pairs", fields=(mapped(4, "key"),)),
            mapped(5, "place"),
        )
    )
    assert apply_name_mapping(file, mapping) == StructType(
        (NestedField(1, "id", LONG), NestedField(5, "place", StructType(())))
    )


def test_deeply_nested_file_is_refused() -> None:
    kind: Type = LONG
    for _ in range(5000):
        kind = StructType((NestedField(-1, "a", kind),))
    assert isinstance(kind, StructType)
    with pytest.raises(InvalidRequestError, match="nested deeper"):
        apply_name_mapping(kind, NameMapping((mapped(1, "a"),)))


def _without_ids(kind: Type) -> Type:
    if isinstance(kind, StructType):
        return StructType(tuple(NestedField(-1, part.name, _without_ids(part.field_type)) for part in kind.fields))
    if isinstance(kind, ListType):
        return ListType(-1, _without_ids(kind.element_type))
    if isinstance(kind, MapType):
        return MapType(-1, _without_ids(kind.key_type), -1, _without_ids(kind.value_type))
    return kind
