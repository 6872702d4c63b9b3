from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.arrow_schema import FIELD_ID_KEY, to_arrow_schema
from frazil.datafile.file_schema import FileSchema, describe_arrow, prune
from frazil.datafile.project import DICTIONARY, Projection, needed_leaves
from frazil.datafile.read_file import resolve
from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spec.schema import Schema
from frazil.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP_NS,
    UNKNOWN,
    VARIANT,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from tests.support.file_writers import Rows, rows_to_table, table_to_rows


def field(field_id: int, name: str, kind: Type, **options: Any) -> NestedField:
    return NestedField(field_id, name, kind, **options)


def project(
    written: Schema,
    rows: Rows,
    wanted: Schema,
    *,
    arrow: pa.Table | None = None,
    values: Mapping[int, Any] | None = None,
) -> Rows:
    """Read rows that were written with one schema with another, and check that only what is needed is read."""
    table = rows_to_table(rows, written) if arrow is None else arrow
    file = FileSchema(describe_arrow(table.schema, FIELD_ID_KEY))
    columns = resolve(wanted, file, "f", partition_values=values or {})
    leaves = needed_leaves(columns, file.fields)
    pruned = prune(file.fields, leaves)
    names = {part.name for part in pruned}
    batch = table.combine_chunks().to_batches()[0]
    # Whole top-level columns: pruning inside of them is the Parquet reader's own.
    whole = describe_arrow(pa.schema([one for one in batch.schema if one.name in names]), FIELD_ID_KEY)
    projection = Projection(columns, whole)
    made = projection.batch(batch.select([one.name for one in whole]), batch.num_rows)
    made.validate(full=True)
    assert made.schema.types == to_arrow_schema(wanted).types
    sliced = projection.batch(batch.select([one.name for one in whole]).slice(1), batch.num_rows - 1)
    sliced.validate(full=True)
    assert table_to_rows(sliced, wanted) == table_to_rows(made, wanted)[1:]
    return table_to_rows(made, wanted)


INNER = StructType((field(3, "x", INT), field(4, "y", STRING)))
ITEM = StructType((field(7, "a", INT), field(8, "b", INT)))
ENTRY = StructType((field(12, "v", INT), field(13, "w", INT)))
WRITTEN = Schema(
    (
        field(1, "id", INT),
        field(2, "point", INNER),
        field(5, "list", ListType(6, ITEM)),
        field(9, "map", MapType(10, STRING, 11, ENTRY)),
    )
)
ROWS: Rows = [
    {
        "id": 1,
        "point": {"x": 1, "y": "a"},
        "list": [{"a": 1, "b": 2}, None],
        "map": {"k": {"v": 1, "w": 2}, "n": None},
    },
    {"id": None, "point": None, "list": None, "map": None},
    {"id": 3, "point": {"x": None, "y": None}, "list": [], "map": {}},
]


def test_same_schema_gives_the_same_rows() -> None:
    assert project(WRITTEN, ROWS, WRITTEN) == ROWS


def test_columns_are_found_by_id_under_other_names_and_orders() -> None:
    wanted = Schema(
        (
            field(2, "p", StructType((field(4, "why", STRING), field(3, "ex", INT)))),
            field(1, "point", INT),
        )
    )
    assert project(WRITTEN, ROWS, wanted) == [
        {"p": {"why": "a", "ex": 1}, "point": 1},
        {"p": None, "point": None},
        {"p": {"why": None, "ex": None}, "point": 3},
    ]


def test_nested_fields_are_promoted_renamed_and_filled() -> None:
    wanted = Schema(
        (
            field(5, "l", ListType(6, StructType((field(8, "bb", LONG), field(20, "new", INT, initial_default=7))))),
            field(9, "m", MapType(10, STRING, 11, StructType((field(13, "ww", LONG), field(21, "none", STRING))))),
        )
    )
    assert project(WRITTEN, ROWS, wanted) == [
        {"l": [{"bb": 2, "new": 7}, None], "m": {"k": {"ww": 2, "none": None}, "n": None}},
        {"l": None, "m": None},
        {"l": [], "m": {}},
    ]


def test_struct_of_only_new_fields_keeps_its_nulls() -> None:
    wanted = Schema((field(2, "point", StructType((field(20, "z", INT, initial_default=5),))),))
    assert project(WRITTEN, ROWS, wanted) == [{"point": {"z": 5}}, {"point": None}, {"point": {"z": 5}}]


def test_missing_columns_use_partition_value_default_or_null() -> None:
    inner = StructType((field(32, "a", INT, initial_default=1), field(33, "b", STRING)))
    wanted = Schema(
        (
            field(1, "id", INT),
            field(30, "part", STRING, initial_default="not this"),
            field(31, "filled", inner, initial_default={}),
            field(34, "text", STRING, initial_default="d", required=True),
            field(35, "nothing", LONG),
            field(36, "unknown", UNKNOWN),
        )
    )
    rows = project(WRITTEN, ROWS, wanted, values={30: "p", 1: 99})
    assert [row.pop("id") for row in rows] == [1, None, 3]
    filled = {"part": "p", "filled": {"a": 1, "b": None}, "text": "d", "nothing": None, "unknown": None}
    assert rows == [filled] * 3


def test_missing_required_column_without_default_is_refused() -> None:
    with pytest.raises(InvalidDataFileError, match=r"'gone'.*required"):
        project(WRITTEN, ROWS, Schema((field(40, "gone", INT, required=True),)))


@pytest.mark.parametrize(
    "wanted",
    [
        field(1, "id", INT, required=True),
        field(2, "point", StructType((field(3, "x", INT, required=True),))),
        field(5, "list", ListType(6, ITEM, element_required=True)),
        field(9, "map", MapType(10, STRING, 11, ENTRY, value_required=True)),
    ],
    ids=lambda one: str(one.name),
)
def test_nulls_in_a_required_field_are_refused(wanted: NestedField) -> None:
    with pytest.raises(InvalidDataFileError, match=r"required"):
        project(WRITTEN, ROWS, Schema((wanted,)))


def test_required_field_below_a_null_struct_is_accepted() -> None:
    wanted = Schema((field(2, "point", StructType((field(3, "x", INT, required=True),))),))
    assert project(WRITTEN, ROWS[:2], wanted) == [{"point": {"x": 1}}, {"point": None}]


def test_unreferenced_nulls_of_a_list_are_accepted() -> None:
    wanted = Schema((field(5, "list", ListType(6, INT, element_required=True)),))
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array([1, None], pa.int32()))
    metadata = {FIELD_ID_KEY: b"5"}
    table = pa.table([hidden.slice(0, 1)], schema=pa.schema([pa.field("list", hidden.type, metadata=metadata)]))
    file = describe_arrow(table.schema, FIELD_ID_KEY)
    columns = resolve(wanted, FileSchema(file), "f")
    assert Projection(columns, file).batch(table.to_batches()[0], 1).column(0).to_pylist() == [[1]]


@pytest.mark.parametrize(
    "layout", [pa.large_list(pa.int32()), pa.list_(pa.int32(), 2), pa.list_view(pa.int32())], ids=str
)
def test_lists_of_any_layout_are_read(layout: pa.DataType) -> None:
    wanted = Schema((field(5, "list", ListType(6, LONG)),))
    table = pa.table(
        [pa.array([[1, 2], None, [3, None]], layout)],
        schema=pa.schema([pa.field("list", layout, metadata={FIELD_ID_KEY: b"5"})]),
    )
    assert project(wanted, [], wanted, arrow=table) == [{"list": [1, 2]}, {"list": None}, {"list": [3, None]}]


def test_structs_are_found_by_the_ids_of_their_fields() -> None:
    arrow = to_arrow_schema(WRITTEN)
    bare = pa.schema([arrow.field(0), arrow.field(1).remove_metadata()])
    table = rows_to_table(ROWS, WRITTEN).select(["id", "point"]).cast(bare)
    wanted = Schema((field(2, "point", StructType((field(4, "y", STRING),))),))
    assert project(WRITTEN, ROWS, wanted, arrow=table) == [
        {"point": {"y": "a"}},
        {"point": None},
        {"point": {"y": None}},
    ]


@pytest.mark.parametrize(
    "kind", [LONG, STRING, StructType((field(3, "x", INT),)), ListType(50, INT), MapType(51, STRING, 52, INT)], ids=str
)
def test_incompatible_columns_are_refused(kind: Type) -> None:
    stored = {1: INT, 2: INNER} if kind == LONG else {1: INT}
    written = Schema(tuple(field(number, f"c{number}", one) for number, one in stored.items()))
    number = 2 if kind == LONG else 1
    rows: Rows = [{"c1": 1, "c2": None}] * 2
    with pytest.raises(InvalidDataFileError, match=r"Cannot read column 'w' .field id"):
        project(written, rows, Schema((field(number, "w", kind),)))


def test_date_outside_the_range_of_its_new_type_is_refused() -> None:
    written = Schema((field(1, "d", DATE),))
    wanted = Schema((field(1, "d", TIMESTAMP_NS),))
    assert project(written, [{"d": 1}, {"d": 2}], wanted)[0] == {"d": 86_400_000_000_000}
    with pytest.raises(InvalidDataFileError, match=r"Cannot read column 'd'.*does not fit timestamp_ns"):
        project(written, [{"d": 200_000}, {"d": 2}], wanted)


def test_only_requested_stored_columns_are_read() -> None:
    file = describe_arrow(to_arrow_schema(WRITTEN), FIELD_ID_KEY)

    def leaves_of(*wanted: NestedField) -> set[int]:
        return needed_leaves(resolve(Schema(wanted), FileSchema(file), "f"), file)

    assert leaves_of(field(1, "id", INT)) == {0}
    assert leaves_of(field(2, "p", StructType((field(4, "y", STRING),)))) == {2}
    assert leaves_of(field(5, "l", ListType(6, StructType((field(8, "b", INT),))))) == {4}
    assert leaves_of(field(9, "m", MapType(10, STRING, 11, StructType((field(13, "w", INT),))))) == {5, 7}
    assert leaves_of(field(2, "p", StructType((field(60, "new", INT),)))) == {1}
    assert leaves_of(field(60, "new", INT)) == set()


def test_variants_are_read_by_field_names() -> None:
    value = [{"metadata": b"\x01", "value": b"\x02"}, None]
    kind = pa.struct([("value", pa.binary()), ("metadata", pa.large_binary())])
    schema = pa.schema([pa.field("v", kind, metadata={FIELD_ID_KEY: b"1"})])
    wanted = Schema((field(1, "v", VARIANT),))
    table = pa.table([pa.array(value, kind)], schema=schema)
    file = describe_arrow(schema, FIELD_ID_KEY)
    columns = resolve(wanted, FileSchema(file), "f")
    made = Projection(columns, file).batch(table.to_batches()[0], 2)
    assert made.column(0).to_pylist() == value


def test_shredded_variants_are_refused() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    file = describe_arrow(pa.schema([pa.field("v", kind, metadata={FIELD_ID_KEY: b"1"})]), FIELD_ID_KEY)
    columns = resolve(Schema((field(1, "v", VARIANT),)), FileSchema(file), "f")
    with pytest.raises(UnsupportedError, match=r"shredded"):
        Projection(columns, file)


def test_dictionaries_are_kept_for_comparisons() -> None:
    schema = pa.schema([pa.field("t", DICTIONARY, metadata={FIELD_ID_KEY: b"1"})])
    table = pa.table([pa.array(["a", None, "a"]).dictionary_encode()], schema=schema)
    file = describe_arrow(schema, FIELD_ID_KEY)
    columns = resolve(Schema((field(1, "t", STRING),)), FileSchema(file), "f")
    batch = table.to_batches()[0]
    assert Projection(columns, file, keeps_dictionaries=True).batch(batch, 3).column(0).type == DICTIONARY
    assert Projection(columns, file).batch(batch, 3).column(0).to_pylist() == ["a", None, "a"]
