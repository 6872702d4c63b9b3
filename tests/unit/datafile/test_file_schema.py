from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import FIELD_ID_KEY, to_arrow_schema
from frazil.datafile.file_schema import FileField, describe_arrow, prune, walk, with_ids
from frazil.errors import InvalidDataFileError, SchemaMismatchError
from frazil.spec.name_mapping import MappedField, NameMapping
from frazil.spec.schema import Schema
from frazil.spec.types import INT, LONG, STRING, ListType, MapType, NestedField, StructType

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "point", StructType((NestedField(4, "x", INT), NestedField(5, "y", INT)))),
        NestedField(3, "tags", ListType(6, STRING)),
        NestedField(
            7, "marks", MapType(8, STRING, 9, StructType((NestedField(10, "a", INT), NestedField(11, "b", INT))))
        ),
    )
)


def ids_of(fields: tuple[FileField, ...]) -> list[int | None]:
    return [part.field_id for part in walk(fields)]


def fields_of(schema: Schema, *, has_ids: bool = True) -> tuple[FileField, ...]:
    return describe_arrow(to_arrow_schema(schema, with_ids=has_ids), FIELD_ID_KEY)


def test_ids_and_stored_columns_are_found_at_every_level() -> None:
    fields = fields_of(SCHEMA)
    assert ids_of(fields) == [1, 2, 4, 5, 3, 6, 7, 8, 9, 10, 11]
    assert [(part.start, part.end) for part in fields] == [(0, 1), (1, 3), (3, 4), (4, 7)]
    assert with_ids(fields, SCHEMA, None, by_position=True).field_ids == set(range(1, 12))


def test_invalid_ids_count_as_missing() -> None:
    texts = [b"-1", b"", b"x", b"99999999999", b"4294967296"]
    fields = [pa.field(f"c{at}", pa.int32(), metadata={FIELD_ID_KEY: text}) for at, text in enumerate(texts)]
    assert ids_of(describe_arrow(pa.schema(fields), FIELD_ID_KEY)) == [None] * 5


def test_duplicate_column_ids_are_refused() -> None:
    field = pa.field("a", pa.int32(), metadata={FIELD_ID_KEY: b"1"})
    fields = describe_arrow(pa.schema([field, field.with_name("b")]), FIELD_ID_KEY)
    with pytest.raises(InvalidDataFileError, match="'a' and 'b' have the same field id 1"):
        with_ids(fields, SCHEMA, None, by_position=True)


def test_parquet_columns_without_ids_are_numbered_by_position_and_nested_ones_by_name() -> None:
    other_names = Schema(
        (
            NestedField(1, "renamed", LONG),
            NestedField(2, "renamed_too", StructType((NestedField(3, "y", INT), NestedField(4, "z", INT)))),
        )
    )
    found = with_ids(fields_of(other_names, has_ids=False), SCHEMA, None, by_position=True)
    assert found.is_mapped
    assert ids_of(found.fields) == [1, 2, 5, None]


def test_position_of_a_nested_field_is_not_a_column() -> None:
    flat = Schema(tuple(NestedField(at, f"c{at}", INT) for at in range(1, 6)))
    found = with_ids(fields_of(flat, has_ids=False), SCHEMA, None, by_position=True)
    assert ids_of(found.fields) == [1, 2, 3, None, None]


def test_other_formats_without_ids_use_the_names_of_the_schema() -> None:
    found = with_ids(fields_of(SCHEMA, has_ids=False), SCHEMA, None, by_position=False)
    assert found.is_mapped
    assert ids_of(found.fields) == [1, 2, 4, 5, 3, 6, 7, 8, 9, 10, 11]


def test_name_mapping_wins_over_positions_and_names() -> None:
    mapping = NameMapping((MappedField(("point",), 9, (MappedField(("y",), 12),)), MappedField(("tags",), None)))
    for by_position in (True, False):
        found = with_ids(fields_of(SCHEMA, has_ids=False), SCHEMA, mapping, by_position=by_position)
        assert ids_of(found.fields) == [None, 9, None, 12, *[None] * 7]


def test_name_mapping_does_not_apply_to_files_with_ids() -> None:
    mapping = NameMapping((MappedField(("id",), 99),))
    found = with_ids(fields_of(SCHEMA), SCHEMA, mapping, by_position=True)
    assert not found.is_mapped
    assert 99 not in found.field_ids


def test_two_columns_mapped_to_one_id_are_refused() -> None:
    mapping = NameMapping((MappedField(("a", "b"), 1),))
    fields = describe_arrow(pa.schema([("a", pa.int32()), ("b", pa.int32())]), FIELD_ID_KEY)
    with pytest.raises(SchemaMismatchError, match="'a' and 'b'"):
        with_ids(fields, SCHEMA, mapping, by_position=True)


def test_pruning_keeps_the_path_to_a_stored_column() -> None:
    (point, marks) = prune(fields_of(SCHEMA), {2, 4, 6})
    assert (point.name, point.index, [(part.name, part.index) for part in point.parts]) == ("point", 0, [("y", 0)])
    assert (marks.name, marks.index) == ("marks", 1)
    assert [part.name for part in walk(marks.parts)] == ["key", "value", "b"]


def test_fields_of_extension_types_are_counted_as_stored() -> None:
    class Pair(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.struct([("a", pa.int32()), ("b", pa.int32())]), "frazil.test.pair")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

    kind = Pair()
    first, second = describe_arrow(pa.schema([("p", kind), ("q", pa.int32())]), FIELD_ID_KEY)
    assert (first.start, first.end, second.start) == (0, 2, 2)


def test_deeply_nested_columns_are_refused() -> None:
    kind = pa.int32()
    for _ in range(300):
        kind = pa.list_(kind)
    with pytest.raises(InvalidDataFileError, match="nested deeper"):
        describe_arrow(pa.schema([("deep", kind)]), FIELD_ID_KEY)
