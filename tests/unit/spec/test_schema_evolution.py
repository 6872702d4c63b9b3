"""Schema updates: adding, dropping, renaming and changing columns. After Iceberg Java's cases for schema updates."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import FieldNotFoundError, InvalidRequestError, SchemaChangeError, TextSyntaxError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.transforms import IDENTITY, MONTH, VOID, Bucket, Transform, Truncate
from frazil.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_FIELD_ID,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)


def req(field_id: int, name: str, kind: Type, doc: str | None = None) -> NestedField:
    return NestedField(field_id, name, kind, required=True, doc=doc)


def opt(field_id: int, name: str, kind: Type, doc: str | None = None) -> NestedField:
    return NestedField(field_id, name, kind, doc=doc)


ADDRESS = StructType(
    (req(20, "address", STRING), req(21, "city", STRING), req(22, "state", STRING), req(23, "zip", INT))
)
SCHEMA = Schema(
    (
        req(1, "id", INT),
        opt(2, "data", STRING),
        opt(3, "preferences", StructType((req(8, "feature1", BOOLEAN), opt(9, "feature2", BOOLEAN))), "named options"),
        req(
            4,
            "locations",
            MapType(10, ADDRESS, 11, StructType((req(12, "lat", FLOAT), req(13, "long", FLOAT))), value_required=True),
            "address to coordinate",
        ),
        opt(5, "points", ListType(14, StructType((req(15, "x", LONG), req(16, "y", LONG)))), "2-D points"),
        req(6, "doubles", ListType(17, DOUBLE, element_required=True)),
        opt(7, "properties", MapType(18, STRING, 19, STRING), "string properties"),
    )
)
LAST_ID = 23


def change(schema: Schema = SCHEMA, version: int = 2, **options: Any) -> SchemaUpdate:
    return SchemaUpdate(schema, schema.highest_field_id, version, **options)


def one_column(kind: Type = INT, **options: Any) -> Schema:
    return Schema((NestedField(1, "col", kind, **options),))


def without(schema: Schema, dropped: int) -> Schema:
    """Return a schema without a field, by way of projection."""
    inside = {one for one in schema.fields_by_id if dropped in {part.field_id for part in schema.ancestors_of(one)}}
    leaves = set(schema.fields_by_id) - set(schema.parents_by_id.values())
    keys = {one for one in leaves if ".key" in schema.name_of(one)}  # They come with their map.
    return schema.project(leaves - keys - inside - {dropped})


def test_empty_update_changes_nothing() -> None:
    update = change()
    assert not update.has_changes
    assert update.apply() == (SCHEMA, LAST_ID)


# Dropping

DROPS = [
    "id", "data", "preferences", "preferences.feature1", "preferences.feature2", "locations", "locations.lat",
    "locations.value.long", "points", "points.x", "points.element.y", "doubles", "properties",
]  # fmt: skip


@pytest.mark.parametrize("name", DROPS)
def test_dropped_column_is_removed_with_its_nested_fields(name: str) -> None:
    evolved = change().drop_column(name).apply()
    assert evolved == (without(SCHEMA, SCHEMA.field(name).field_id), LAST_ID)


@pytest.mark.parametrize("name", DROPS)
def test_drop_may_ignore_case(name: str) -> None:
    expected = without(SCHEMA, SCHEMA.field(name).field_id)
    assert change(case_sensitive=False).drop_column(name.upper()).apply().schema == expected


def test_missing_column_cannot_be_dropped() -> None:
    with pytest.raises(FieldNotFoundError, match="Cannot drop column 'col': the schema has no such column"):
        change().drop_column("col")
    with pytest.raises(FieldNotFoundError):
        change().drop_column("ID")


def test_field_may_be_dropped_before_its_struct_and_again() -> None:
    update = change().drop_column("preferences.feature1").drop_column("preferences").drop_column("preferences")
    assert update.apply().schema == without(SCHEMA, 3)


@pytest.mark.parametrize("name", ["locations.key", "locations.key.zip", "properties.key"])
def test_map_keys_and_their_fields_cannot_be_dropped(name: str) -> None:
    with pytest.raises(SchemaChangeError, match="the keys of maps cannot change"):
        change().drop_column(name)


@pytest.mark.parametrize("name", ["locations.value", "points.element", "doubles.element"])
def test_elements_and_values_cannot_be_dropped(name: str) -> None:
    with pytest.raises(SchemaChangeError, match="it is a part of a list or map"):
        change().drop_column(name)


# Adding


def test_columns_are_added_to_tables_structs_elements_and_values() -> None:
    evolved = (
        change()
        .add_column("toplevel", DecimalType(9, 2))
        .add_column("locations.alt", "float")
        .add_column("points.z", LONG, doc="height")
        .add_column(("points", "t.t"), LONG)
        .add_column(("preferences", "feature3"), "boolean")
        .apply()
    )
    schema = evolved.schema
    assert evolved.last_column_id == 28
    assert [part.name for part in schema.fields][-1] == "toplevel"
    assert schema.field("toplevel") == opt(24, "toplevel", DecimalType(9, 2))
    assert schema.field("locations.value.alt") == opt(25, "alt", FLOAT)
    assert schema.field("points.element.z") == opt(26, "z", LONG, "height")
    assert schema.field("points.element.t.t") == opt(27, "t.t", LONG)
    assert schema.field("preferences.feature3") == opt(28, "feature3", BOOLEAN)
    assert schema.field("locations").doc == "address to coordinate"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (StructType((req(1, "lat", INT), opt(2, "long", INT))), StructType((req(3, "lat", INT), opt(4, "long", INT)))),
        (
            MapType(1, StructType((req(20, "a", INT), req(21, "b", INT))), 2, StructType((req(9, "c", INT),))),
            MapType(3, StructType((req(5, "a", INT), req(6, "b", INT))), 4, StructType((req(7, "c", INT),))),
        ),
        (ListType(1, StructType((req(9, "lat", INT),))), ListType(3, StructType((req(4, "lat", INT),)))),
        (
            StructType((opt(1, "a", StructType((opt(2, "b", INT),))), opt(3, "c", INT))),
            StructType((opt(3, "a", StructType((opt(5, "b", INT),))), opt(4, "c", INT))),
        ),
    ],
    ids=["struct", "map", "list", "struct of struct"],
)
def test_nested_types_get_fresh_ids(kind: Type, expected: Type) -> None:
    evolved = change(Schema((req(1, "id", INT),))).add_column("new", kind).apply()
    assert evolved.schema.field("new") == opt(2, "new", expected)
    assert evolved.last_column_id == evolved.schema.highest_field_id


def test_types_may_be_text() -> None:
    schema = change().add_column("new", "map<string, struct<a: int, b: list<long>>>").apply().schema
    assert schema.field("new.value.b.element").field_type == LONG
    with pytest.raises(TextSyntaxError):
        change().add_column("new", "strnig")


def test_ids_of_dropped_columns_are_never_reused() -> None:
    dropped = change(one_column()).drop_column("col").apply()
    again = SchemaUpdate(dropped.schema, dropped.last_column_id, 2).add_column("col", INT).apply()
    assert again == (Schema((opt(2, "col", INT),)), 2)


def test_schema_ids_count_even_above_the_last_assigned_id() -> None:
    assert SchemaUpdate(SCHEMA, 0, 2).add_column("new", INT).apply().last_column_id == 24


def test_ids_may_be_exhausted() -> None:
    update = SchemaUpdate(one_column(), MAX_FIELD_ID - 1, 2)
    with pytest.raises(SchemaChangeError, match="field ids are used up"):
        update.add_column("new", "struct<a: int>")
    assert update.add_column("new", INT).apply().last_column_id == MAX_FIELD_ID
    with pytest.raises(SchemaChangeError, match=f"the last possible one is {MAX_FIELD_ID}"):
        update.add_column("newer", INT)


def test_new_column_may_have_a_position() -> None:
    schema = (
        change(one_column())
        .add_column("a", INT, first=True)
        .add_column("b", INT, after="a")
        .add_column("c", INT, before="b")
        .apply()
        .schema
    )
    assert [part.name for part in schema.fields] == ["a", "c", "b", "col"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"first": True, "after": "id"}, "more than one place"),
        ({"before": "points.x"}, "columns move within their own struct only"),
    ],
)
def test_invalid_position_is_refused_and_adds_nothing(options: dict[str, Any], reason: str) -> None:
    update = change()
    with pytest.raises(SchemaChangeError, match=reason):
        update.add_column("new", INT, **options)
    with pytest.raises(FieldNotFoundError, match="Cannot add column 'new' after column 'none'"):
        update.add_column("new", INT, after="none")
    assert update.apply() == (SCHEMA, LAST_ID)


def test_existing_name_cannot_be_added() -> None:
    for name in ("preferences", "preferences.feature1", "points.x", "points.element.x"):
        with pytest.raises(SchemaChangeError, match="a column of that name exists"):
            change().add_column(name, BOOLEAN)
    with pytest.raises(SchemaChangeError, match="'new' is added in the same update"):
        change().add_column("new", INT).add_column("new", INT)


def test_existing_name_in_another_case_is_added_only_if_case_sensitive() -> None:
    assert "ID" in [part.name for part in change().add_column("ID", INT).apply().schema.fields]
    with pytest.raises(SchemaChangeError, match=r"Cannot add column 'ID': a column of that name exists \(1: id"):
        change(case_sensitive=False).add_column("ID", INT)
    with pytest.raises(SchemaChangeError, match="'data2' is added in the same update"):
        change(case_sensitive=False).add_column("data2", INT).add_column("DATA2", INT)


def test_dotted_name_without_a_parent_is_refused_and_a_tuple_is_literal() -> None:
    with pytest.raises(FieldNotFoundError, match="there is no column 'dot' to add it to") as caught:
        change().add_column("dot.field", STRING)
    assert "('a.b',)" in str(caught.value)
    with pytest.raises(FieldNotFoundError, match=r"there is no column 'points\.t' to add it to"):
        change().add_column("points.t.t", STRING)
    with pytest.raises(FieldNotFoundError, match="there is no column '' to add it to"):
        change().add_column(".new", STRING)
    assert change().add_column(("dot.field",), STRING).apply().schema.field("dot.field").field_id == 24


def test_colliding_full_names_are_refused() -> None:
    with pytest.raises(SchemaChangeError, match=r"two columns would be named 'preferences\.feature1'"):
        change().add_column(("preferences.feature1",), STRING).apply()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("id.new", "column 'id' is int"),
        ("doubles.new", "column 'doubles' is a list"),
        ("properties.new", "column 'properties' is a map"),
        ("locations.key.line2", "the keys of maps cannot change"),
        ("", "the name is empty"),
        ("points.", "the name is empty"),
        ((), "the path is empty"),
    ],
)
def test_column_cannot_be_added_to_a_non_struct(path: str | tuple[str, ...], reason: str) -> None:
    with pytest.raises(SchemaChangeError, match=reason):
        change().add_column(path, STRING)


def test_field_cannot_be_added_to_a_column_of_the_same_update() -> None:
    with pytest.raises(SchemaChangeError, match="column 's' is added in the same update"):
        change().add_column("s", "struct<a: int>").add_column("s.b", INT)
    for kind in ("struct<a: int>", "map<string, struct<a: int>>"):
        with pytest.raises(SchemaChangeError, match="column 'col' gets its type in the same update"):
            change(one_column(UNKNOWN), 3).set_type("col", kind).add_column("col.b", INT)


def test_types_newer_than_the_table_cannot_be_added() -> None:
    for kind in (TIMESTAMP_NS, UNKNOWN, VARIANT, GeometryType(), ListType(1, VARIANT)):
        with pytest.raises(SchemaChangeError, match="needs format version 3, the table has 2"):
            change(version=2).add_column("new", kind)
        assert change(version=3).add_column("new", kind).apply().schema.find_field("new") is not None


def test_deeply_nested_type_is_refused() -> None:
    kind: Type = INT
    for _ in range(5000):
        kind = ListType(1, kind)
    with pytest.raises(SchemaChangeError, match="nested too deep"):
        change().add_column("new", kind)


def test_struct_with_duplicate_field_names_is_refused() -> None:
    with pytest.raises(SchemaChangeError, match=r"two columns would be named 'new\.a'"):
        change().add_column("new", StructType((opt(1, "a", INT), opt(2, "a", INT)))).apply()


def test_unknown_columns_are_optional() -> None:
    update = change(version=3).allow_incompatible_changes()
    for kind in (UNKNOWN, ListType(1, UNKNOWN, element_required=True), MapType(1, UNKNOWN, 2, INT)):
        with pytest.raises(SchemaChangeError, match="fields of type unknown must be optional"):
            update.add_required_column("new", kind)
    with pytest.raises(SchemaChangeError, match="hold nothing but nulls"):
        update.add_column("unk", UNKNOWN).make_required("unk")


# Defaults and required columns


def test_default_is_both_initial_and_write_default() -> None:
    schema = change(version=3).add_column("new", STRING, doc="text", default="unknown").apply().schema
    assert schema.field("new") == NestedField(24, "new", STRING, False, "text", "unknown", "unknown")


def test_later_default_is_the_write_default_only() -> None:
    schema = change(version=3).add_column("new", STRING).set_default("new", "unknown").apply().schema
    assert schema.field("new") == NestedField(24, "new", STRING, write_default="unknown")


@pytest.mark.parametrize("value", [0, False, ""])
def test_falsy_defaults_are_defaults(value: object) -> None:
    kind = {int: INT, bool: BOOLEAN, str: STRING}[type(value)]
    part = change(version=3).add_required_column("new", kind, default=value).apply().schema.field("new")
    assert (part.required, part.initial_default, part.write_default) == (True, value, value)


def test_defaults_are_converted_to_internal_form() -> None:
    schema = change(version=3).add_column("day", DATE, default=datetime.date(1970, 1, 3)).apply().schema
    assert schema.field("day").initial_default == 2


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (INT, "one"),
        (INT, 2**31),
        (STRING, 1),
        (BOOLEAN, 1),
        (UNKNOWN, "string!"),
        (VARIANT, 1),
        (GeometryType(), b""),
        (DOUBLE, float("nan")),
        (StructType((opt(1, "a", INT),)), {"a": 1}),
        (ListType(1, INT), ["a"]),
    ],
)
def test_incompatible_defaults_are_refused(kind: Type, default: object) -> None:
    with pytest.raises(SchemaChangeError, match="Cannot add column 'new': its default"):
        change(version=3).add_column("new", kind, default=default)


def test_defaults_require_format_version_3() -> None:
    defaulted = StructType((NestedField(1, "a", INT, initial_default=1),))
    steps: tuple[Callable[[], SchemaUpdate], ...] = (
        lambda: change().add_column("new", INT, default=1),
        lambda: change().add_column("new", defaulted),
        lambda: change().set_default("id", 1),
    )
    for step in steps:
        with pytest.raises(SchemaChangeError, match="the default 1 needs format version 3, the table has 2"):
            step()
    assert change().set_default("id", None).apply().schema == SCHEMA


def test_struct_default_is_empty_and_its_required_fields_need_their_own() -> None:
    inner = StructType((NestedField(1, "x", INT, required=True, initial_default=0, write_default=0),))
    part = change(version=3).add_column("p", inner, default={}).apply().schema.field("p")
    assert part.initial_default == {}
    with pytest.raises(SchemaChangeError, match=r"'p' has the default \{\}, but its required field 'x' has none"):
        change(version=3).add_column("p", StructType((req(1, "x", INT),)), default={})


def test_required_column_needs_a_default_or_permission() -> None:
    with pytest.raises(SchemaChangeError, match="it is required and has no default"):
        change(version=3).add_required_column("new", STRING)
    with pytest.raises(SchemaChangeError, match="it is required and has no default"):
        change(version=3).add_column("new", STRING, required=True).set_default("new", "unknown")
    allowed = change().allow_incompatible_changes().add_required_column("new", STRING).apply().schema
    assert allowed.field("new") == req(24, "new", STRING)


def test_columns_become_optional_freely_and_required_with_permission() -> None:
    assert change(one_column(required=True)).make_optional("col").apply().schema == one_column()
    with pytest.raises(SchemaChangeError, match="Cannot make column 'col' required: existing rows may hold nulls"):
        change(one_column()).make_required("col")
    allowed = change(one_column()).allow_incompatible_changes().make_required("col").apply().schema
    assert allowed == one_column(required=True)
    assert change(one_column(required=True)).make_required("col").apply().schema == one_column(required=True)


def test_column_added_with_a_default_may_become_required() -> None:
    update = change(version=3).add_column("new", STRING, default="unknown").make_required("new")
    assert update.apply().schema.field("new").required
    with pytest.raises(SchemaChangeError, match="existing rows may hold nulls"):
        change(version=3).add_column("new", STRING).set_default("new", "unknown").make_required("new")


def test_elements_and_values_may_become_optional() -> None:
    schema = change().make_optional("doubles.element").make_optional("locations.value").apply().schema
    assert schema.field("doubles.element").optional
    assert schema.field("locations.value").optional


# Renaming


def test_columns_are_renamed_by_their_original_names_at_every_level() -> None:
    schema = (
        change()
        .rename_column("data", "json")
        .rename_column("preferences", "options")
        .rename_column("preferences.feature2", "newfeature")
        .rename_column("locations.lat", "latitude")
        .rename_column("points.x", "X")
        .rename_column(("points", "y"), "y.y")
        .apply()
        .schema
    )
    expected = {2: "json", 3: "options", 9: "options.newfeature", 12: "locations.value.latitude"}
    assert {one: schema.name_of(one) for one in expected} == expected
    assert [part.name for part in schema.field("points.element").field_type.fields] == ["X", "y.y"]  # type: ignore[attr-defined]
    assert schema.field("options").doc == "named options"


def test_rename_may_ignore_case() -> None:
    schema = change(case_sensitive=False).rename_column("DATA", "json").rename_column("Points.X", "x1").apply().schema
    assert (schema.name_of(2), schema.name_of(15)) == ("json", "points.element.x1")


def test_names_may_be_swapped_and_reused_from_dropped_columns() -> None:
    swapped = change().rename_column("id", "data").rename_column("data", "id").apply().schema
    assert (swapped.name_of(1), swapped.name_of(2)) == ("data", "id")
    taken = change().drop_column("data").rename_column("id", "data").apply().schema
    assert taken.field("data").field_id == 1


@pytest.mark.parametrize("steps", ["rename", "add"])
def test_duplicate_name_is_refused(steps: str) -> None:
    update = change().rename_column("id", "data") if steps == "rename" else change()
    if steps == "add":
        update.rename_column("id", "new").add_column("new", INT)
    with pytest.raises(SchemaChangeError, match="Cannot change the schema: two columns would be named"):
        update.apply()


def test_names_differing_in_case_are_refused_if_case_insensitive_unless_preexisting() -> None:
    with pytest.raises(SchemaChangeError, match="'data' and 'DATA', which differ in case only"):
        change(case_sensitive=False).rename_column("id", "DATA").apply()
    both = Schema((opt(1, "a", INT), opt(2, "A", INT), opt(3, "b", INT)))
    assert change(both, case_sensitive=False).rename_column("b", "c").apply().schema.name_of(3) == "c"
    with pytest.raises(InvalidRequestError, match="it matches a, A"):
        change(both, case_sensitive=False).drop_column("a")


def test_invalid_renames_are_refused() -> None:
    with pytest.raises(FieldNotFoundError, match="Cannot rename column 'col'"):
        change().rename_column("col", "fail")
    with pytest.raises(SchemaChangeError, match="the name is empty"):
        change().rename_column("id", "")
    with pytest.raises(SchemaChangeError, match="it is a part of a list or map"):
        change().rename_column("points.element", "item")
    with pytest.raises(SchemaChangeError, match="the keys of maps cannot change"):
        change().rename_column("locations.key.zip", "code")
    with pytest.raises(SchemaChangeError, match="it is added in the same update"):
        change().add_column("new", INT).rename_column("new", "newer")


def test_new_name_is_not_yet_usable_and_the_error_explains_it() -> None:
    with pytest.raises(FieldNotFoundError) as caught:
        change().rename_column("id", "key").set_doc("key", "unique")
    assert caught.value.hint == "Within the update that renames it, the column is still 'id'."


# Types


def test_types_are_promoted_at_every_level() -> None:
    schema = change().set_type("id", LONG).set_type("locations.lat", "double").apply().schema
    assert schema.field("id") == req(1, "id", LONG)
    assert schema.field("locations.value.lat") == req(12, "lat", DOUBLE)
    assert schema.field("locations.value.long") == req(13, "long", FLOAT)
    assert change(case_sensitive=False).set_type("Locations.LAT", DOUBLE).apply().schema.field(12).field_type == DOUBLE


def test_changed_field_keeps_its_other_attributes() -> None:
    part = NestedField(1, "i", INT, True, "text", 34, 35, FrozenMap({"vendor": 1}))
    schema = Schema((part,), 4, (1,), FrozenMap({"note": "x"}))
    update = change(schema, 3)
    assert update.set_type("i", LONG).apply().schema == replace(schema, fields=(replace(part, field_type=LONG),))
    evolved = update.set_doc("i", "longer").set_default("i", 123456).rename_column("i", "j").apply(schema_id=5).schema
    (changed,) = evolved.fields
    assert changed == NestedField(1, "j", LONG, True, "longer", 34, 123456, FrozenMap({"vendor": 1}))
    assert (evolved.schema_id, evolved.identifier_field_ids, evolved.extra) == (5, (1,), {"note": "x"})


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        (INT, LONG, 1),
        (FLOAT, DOUBLE, 1),
        (DecimalType(9, 2), DecimalType(18, 2), 1),
        (DATE, TIMESTAMP, 3),
        (DATE, TIMESTAMP_NS, 3),
        (LONG, INT, None),
        (DOUBLE, FLOAT, None),
        (DecimalType(9, 2), DecimalType(9, 3), None),
        (DecimalType(9, 2), DecimalType(8, 2), None),
        (DATE, TIMESTAMPTZ, None),
        (INT, STRING, None),
        (STRING, INT, None),
        (TIMESTAMP, DATE, None),
        (INT, StructType((opt(5, "a", INT),)), None),
        (StructType((opt(5, "a", INT),)), INT, None),
        (StructType((opt(5, "a", INT),)), StructType((opt(5, "a", LONG),)), None),
        (ListType(5, INT), ListType(5, LONG), None),
    ],
    ids=str,
)
def test_only_promotions_of_the_table_version_are_allowed(
    old: Type, new: Type, since: int | None, version: int
) -> None:
    update = change(one_column(old), version)
    if since is not None and version >= since:
        assert update.set_type("col", new).apply().schema == one_column(new)
    else:
        with pytest.raises(SchemaChangeError, match="Cannot change the type of column 'col' from"):
            update.set_type("col", new)
        assert not update.has_changes


def test_refused_promotion_has_a_hint() -> None:
    with pytest.raises(SchemaChangeError) as caught:
        change(one_column(DATE), 2).set_type("col", TIMESTAMP)
    assert caught.value.hint == "Upgrade the table to format version 3 first."
    with pytest.raises(SchemaChangeError) as caught:
        change(one_column(INT), 3).set_type("col", STRING)
    assert "Add a column of the new type" in (caught.value.hint or "")


def test_unchanged_type_is_accepted() -> None:
    assert not change().set_type("id", INT).has_changes


def test_unknown_becomes_any_type_and_nested_ones_get_fresh_ids() -> None:
    assert change(one_column(UNKNOWN), 3).set_type("col", STRING).apply().schema == one_column(STRING)
    evolved = change(one_column(UNKNOWN), 3).set_type("col", "struct<a: int, b: list<int>>").apply()
    inner = StructType((opt(2, "a", INT), opt(3, "b", ListType(4, INT))))
    assert evolved == (one_column(inner), 4)


def test_date_defaults_become_timestamps_with_the_column() -> None:
    schema = one_column(DATE, initial_default=1, write_default=-1)
    day = 86_400_000_000
    assert change(schema, 3).set_type("col", TIMESTAMP).apply().schema == one_column(
        TIMESTAMP, initial_default=day, write_default=-day
    )
    with pytest.raises(SchemaChangeError, match="its default does not fit"):
        change(one_column(DATE, initial_default=10**6), 3).set_type("col", TIMESTAMP_NS)


@pytest.mark.parametrize(
    ("transform", "allowed"),
    [(IDENTITY, False), (Bucket(16), False), (MONTH, True), (VOID, True)],
    ids=str,
)
def test_partitioning_date_is_promoted_only_if_partitions_are_unchanged(transform: Transform, allowed: bool) -> None:
    specs = (PartitionSpec(0), PartitionSpec(1, (PartitionField((1,), 1000, "p", transform),)))
    update = change(one_column(DATE), 3, specs=specs)
    if allowed:
        assert update.set_type("col", TIMESTAMP).apply().schema == one_column(TIMESTAMP)
    else:
        with pytest.raises(SchemaChangeError, match=r"the partition field 'p' .* would have other values"):
            update.set_type("col", TIMESTAMP)


def test_partitioning_integers_and_decimals_may_be_promoted() -> None:
    for old, new in ((INT, LONG), (DecimalType(9, 2), DecimalType(18, 2))):
        for transform in (IDENTITY, Bucket(4), Truncate(10)):
            specs = (PartitionSpec(0, (PartitionField((1,), 1000, "p", transform),)),)
            assert change(one_column(old), specs=specs).set_type("col", new).apply().schema == one_column(new)


@pytest.mark.parametrize("name", ["locations.key.zip", "m.key"])
def test_map_key_types_cannot_change(name: str) -> None:
    schema = Schema((*SCHEMA.fields, req(30, "m", MapType(31, INT, 32, DOUBLE))))
    with pytest.raises(SchemaChangeError, match="the keys of maps cannot change"):
        change(schema).set_type(name, LONG)


def test_columns_of_the_same_update_may_be_changed() -> None:
    update = change(version=3).add_column("new", INT).set_type("new", LONG).set_doc("new", "text")
    assert update.make_optional("new").apply().schema.field("new") == opt(24, "new", LONG, "text")


def test_docs_and_defaults_belong_to_columns() -> None:
    for step in (change(version=3).set_doc, change(version=3).set_default):
        with pytest.raises(SchemaChangeError, match="it is a part of a list or map"):
            step("properties.value", "text")
        with pytest.raises(FieldNotFoundError):
            step("col", "text")
    assert change().set_doc("points", None).apply().schema.field("points").doc is None


# Several steps


def test_mixed_steps_make_one_schema() -> None:
    schema = (
        change()
        .add_column("toplevel", DecimalType(9, 2))
        .add_column("locations.alt", FLOAT)
        .rename_column("data", "json")
        .rename_column("preferences", "options")
        .rename_column("preferences.feature2", "newfeature")
        .rename_column("locations.lat", "latitude")
        .rename_column("points.x", "X")
        .set_type("id", LONG)
        .set_doc("id", "unique id")
        .set_type("locations.lat", DOUBLE)
        .set_doc("locations.lat", "latitude")
        .drop_column("locations.long")
        .drop_column("properties")
        .make_optional("points.x")
        .allow_incompatible_changes()
        .make_required("data")
        .add_required_column("locations.description", STRING, doc="Location description")
        .apply()
        .schema
    )
    place = StructType(
        (
            req(12, "latitude", DOUBLE, "latitude"),
            opt(25, "alt", FLOAT),
            req(26, "description", STRING, "Location description"),
        )
    )
    assert schema == Schema(
        (
            req(1, "id", LONG, "unique id"),
            req(2, "json", STRING),
            opt(
                3, "options", StructType((req(8, "feature1", BOOLEAN), opt(9, "newfeature", BOOLEAN))), "named options"
            ),
            req(4, "locations", MapType(10, ADDRESS, 11, place, value_required=True), "address to coordinate"),
            opt(5, "points", ListType(14, StructType((opt(15, "X", LONG), req(16, "y", LONG)))), "2-D points"),
            req(6, "doubles", ListType(17, DOUBLE, element_required=True)),
            opt(24, "toplevel", DecimalType(9, 2)),
        )
    )


def test_dropped_column_may_be_added_again_and_changed() -> None:
    update = change(one_column(required=True)).drop_column("col").add_column("col", INT).set_doc("col", "new")
    assert update.apply().schema == Schema((opt(2, "col", INT, "new"),))
    nested = change().drop_column("preferences.feature1").add_column("preferences.feature1", STRING).apply().schema
    assert nested.field("preferences").field_type == StructType(
        (opt(9, "feature2", BOOLEAN), opt(24, "feature1", STRING))
    )
    with pytest.raises(SchemaChangeError, match="it is added in the same update"):
        change(one_column()).drop_column("col").add_column("col", INT).drop_column("col")


def test_dropped_column_cannot_be_changed() -> None:
    steps: list[tuple[str, tuple[Any, ...]]] = [
        ("rename_column", ("new",)),
        ("set_type", (LONG,)),
        ("make_optional", ()),
        ("set_doc", ("text",)),
        ("set_default", (1,)),
        ("move_first", ()),
    ]
    for name, arguments in steps:
        update = change(version=3).drop_column("id").drop_column("preferences")
        for path in ("id", "preferences.feature1"):
            with pytest.raises(SchemaChangeError, match="it is dropped in the same update"):
                getattr(update, name)(path, *arguments)
    with pytest.raises(SchemaChangeError, match="it is dropped in the same update"):
        change().drop_column("preferences").add_column("preferences.new", INT)
    with pytest.raises(SchemaChangeError, match="that column is dropped in the same update"):
        change().drop_column("id").move_after("data", "id")


@pytest.mark.parametrize("path", ["preferences", "preferences.feature1"])
def test_changed_column_and_its_parents_cannot_be_dropped(path: str) -> None:
    for update in (
        change().rename_column("preferences.feature1", "f"),
        change().set_doc("preferences.feature1", "text"),
        change().make_optional("preferences.feature1"),
        change().move_first("preferences.feature1"),
        change().move_after("preferences.feature2", "preferences.feature1"),
    ):
        with pytest.raises(SchemaChangeError, match="has other changes in the same update"):
            update.drop_column(path)
    with pytest.raises(SchemaChangeError, match="has other changes in the same update"):
        change().add_column("preferences.feature3", INT).drop_column("preferences")


def test_column_added_in_the_update_cannot_be_dropped() -> None:
    with pytest.raises(SchemaChangeError, match="it is added in the same update"):
        change().add_column("col", INT).drop_column("col")


def test_refused_step_leaves_the_update_unchanged() -> None:
    update = change(version=3)
    with pytest.raises(SchemaChangeError):
        update.add_column("new", "struct<a: int>", default={"a": 1})
    with pytest.raises(SchemaChangeError):
        update.set_type("id", STRING)
    assert not update.has_changes
    assert update.apply() == (SCHEMA, LAST_ID)


def test_result_is_the_same_each_time() -> None:
    update = change().add_column("new", INT, first=True).drop_column("data")
    assert update.apply() == update.apply()
    assert update.schema == SCHEMA
