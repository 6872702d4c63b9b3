"""Columns of data as columns of a table."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.input_rows import open_input
from frazil.datafile.match_columns import ColumnMatcher
from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec.reserved_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from frazil.spec.schema import Schema
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
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from tests.support.builders import field, schema

pd: Any = pytest.importorskip("pandas")


def match(table: Schema, data: Any, *, format_version: int = 3, case_sensitive: bool = True) -> pa.Table:
    rows = open_input(data, table)
    matcher = ColumnMatcher(table, rows.schema, format_version=format_version, case_sensitive=case_sensitive)
    return pa.Table.from_batches([matcher.match(batch) for batch in rows.batches], matcher.arrow_schema)


def one_column(kind: Type, *, required: bool = False) -> Schema:
    return schema(field(1, "c", kind, required=required))


def write_one(kind: Type, column: Any, **options: Any) -> pa.ChunkedArray:
    return match(one_column(kind), pa.table({"c": column}), **options).column(0)


def test_columns_are_matched_by_name_in_any_order() -> None:
    table = schema(field(1, "a", LONG), field(2, "b", STRING))
    made = match(table, pa.table({"b": ["x"], "a": [1]}))
    assert made.schema.equals(to_arrow_schema(table), check_metadata=True)
    assert made.to_pylist() == [{"a": 1, "b": "x"}]


def test_missing_optional_column_is_null_or_its_default() -> None:
    table = schema(
        field(1, "a", LONG),
        field(2, "b", STRING),
        NestedField(3, "c", UUID, required=True, write_default=uuid.UUID(int=5)),
        NestedField(4, "d", ListType(5, INT), write_default=[1, 2]),
        NestedField(6, "e", TIMESTAMP_NS, write_default=7),
    )
    made = match(table, pa.table({"a": [1, 2]}))
    assert made.column("b").null_count == 2
    assert made.column("c").to_pylist() == [uuid.UUID(int=5)] * 2
    assert made.column("d").to_pylist() == [[1, 2]] * 2
    assert made.column("e").cast(pa.int64()).to_pylist() == [7, 7]


def test_defaults_fill_struct_fields_too() -> None:
    inner = StructType((NestedField(2, "x", INT), NestedField(3, "y", STRING, required=True, write_default="?")))
    made = match(
        schema(field(1, "s", inner)), pa.table({"s": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    )
    assert made.column("s").to_pylist() == [{"x": 1, "y": "?"}, None]


def test_every_incompatible_column_is_named_in_one_error() -> None:
    table = schema(
        field(1, "a", INT), field(2, "b", LONG, required=True), field(3, "s", StructType((field(4, "x", INT),)))
    )
    data = pa.table({"a": pa.array([1], pa.int64()), "s": pa.array([{"x": "t", "z": 1}]), "extra": [1], "more": [2]})
    with pytest.raises(SchemaMismatchError) as caught:
        match(table, data)
    text = str(caught.value)
    for part in (
        "a: int64 cannot be written as int (int32)",
        "b: it is required, but missing in the data",
        "s.x: string cannot be written as int",
        "s.z: the table has no such column",
        "extra: the table has no such column",
        "more: the table has no such column",
    ):
        assert part in text


def test_long_list_of_problems_is_truncated() -> None:
    data = pa.table({f"x{at}": [1] for at in range(30)})
    with pytest.raises(SchemaMismatchError, match="and 20 more"):
        match(schema(field(1, "a")), data)


def test_duplicate_column_names_are_refused() -> None:
    data = pa.table([pa.array([1]), pa.array([2])], names=["c", "c"])
    with pytest.raises(SchemaMismatchError, match="the data has two columns of that name"):
        match(one_column(LONG), data)


def test_names_may_differ_in_case_on_request() -> None:
    table = schema(field(1, "Id", LONG), field(2, "id", LONG), field(3, "Text", StructType((field(4, "Inner", INT),))))
    data = pa.table({"ID": [1], "id": [2], "TEXT": pa.array([{"inner": 3}], pa.struct([("inner", pa.int32())]))})
    assert match(table, data, case_sensitive=False).to_pylist() == [{"Id": 1, "id": 2, "Text": {"Inner": 3}}]
    with pytest.raises(SchemaMismatchError, match="ID: the table has no such column"):
        match(table, data)


def test_columns_differing_in_case_are_refused_if_case_insensitive() -> None:
    with pytest.raises(SchemaMismatchError, match="the data has another column for 'c'"):
        match(one_column(LONG), pa.table({"C": [1], "c": [2]}), case_sensitive=False)


SAFE: list[tuple[Type, pa.DataType, list[Any]]] = [
    (INT, pa.int8(), [-1]), (INT, pa.int16(), [2]), (INT, pa.uint8(), [255]), (INT, pa.uint16(), [65535]),
    (LONG, pa.int32(), [-(2**31)]), (LONG, pa.uint32(), [2**32 - 1]), (LONG, pa.int64(), [2**63 - 1]),
    (FLOAT, pa.float16(), [1.5]), (DOUBLE, pa.float32(), [1.5]), (DOUBLE, pa.float16(), [0.5]),
    (DecimalType(9, 2), pa.decimal128(5, 2), [Decimal("1.25")]),
    (DecimalType(9, 4), pa.decimal128(5, 2), [Decimal("1.25")]),
    (DecimalType(38, 2), pa.decimal256(38, 2), [Decimal("1.25")]),
    (DecimalType(9, 2), pa.decimal32(9, 2), [Decimal("1.25")]),
    (DecimalType(20, 2), pa.decimal64(18, 2), [Decimal("1.25")]),
    (DATE, pa.date64(), [datetime.date(2020, 1, 2)]), (TIME, pa.time32("ms"), [datetime.time(1, 2, 3)]),
    (TIME, pa.time64("ns"), [datetime.time(1, 2, 3, 4)]),
    (TIMESTAMP, pa.timestamp("s"), [datetime.datetime(2020, 1, 2)]),
    (TIMESTAMP, pa.timestamp("ms"), [datetime.datetime(2020, 1, 2)]),
    (TIMESTAMP, pa.timestamp("ns"), [datetime.datetime(2020, 1, 2, 3, 4, 5, 6)]),
    (STRING, pa.large_string(), ["a"]), (STRING, pa.string_view(), ["a"]),
    (STRING, pa.dictionary(pa.int8(), pa.string()), ["a"]),
    (BINARY, pa.large_binary(), [b"a"]), (BINARY, pa.binary_view(), [b"a"]), (BINARY, pa.binary(2), [b"ab"]),
    (FixedType(2), pa.binary(2), [b"ab"]),
    (FixedType(2), pa.binary(), [b"ab"]), (FixedType(2), pa.binary_view(), [b"ab"]), (BOOLEAN, pa.bool_(), [True]),
    (GeometryType(), pa.large_binary(), [b"\x01"]),
]  # fmt: skip


@pytest.mark.parametrize("kind, arrow, values", SAFE, ids=lambda one: str(one).replace(" ", ""))
def test_other_widths_and_layouts_of_a_type_keep_their_values(
    kind: Type, arrow: pa.DataType, values: list[Any]
) -> None:
    column = pa.array([*values, None], arrow)
    assert write_one(kind, column).to_pylist() == [*values, None]
    assert write_one(kind, column.slice(1)).to_pylist() == [None]


def test_run_end_encoded_uuid_and_json_arrays_are_unwrapped() -> None:
    assert write_one(LONG, pc.run_end_encode(pa.array([1, 1, None]))).to_pylist() == [1, 1, None]
    plain = pa.array([b"a" * 16, None], pa.binary(16))
    wrapped = pa.ExtensionArray.from_storage(pa.uuid(), plain)
    for column in (plain, wrapped):
        assert write_one(UUID, column).type == pa.uuid()
        assert write_one(UUID, column).to_pylist() == [uuid.UUID(bytes=b"a" * 16), None]
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))
    assert write_one(STRING, json).to_pylist() == ["{}"]


def test_timestamps_of_any_zone_become_utc() -> None:
    column = pa.array([datetime.datetime(2020, 7, 1, 12)], pa.timestamp("ms")).cast(pa.timestamp("ms", "Europe/Paris"))
    made = write_one(TIMESTAMPTZ, column)
    assert made.type == pa.timestamp("us", "UTC")
    assert made.cast(pa.int64()).to_pylist() == [column.cast(pa.int64())[0].as_py() * 1000]


UNSAFE: list[tuple[Type, Any]] = [
    (INT, pa.array([1], pa.int64())), (INT, pa.array([1], pa.uint32())), (LONG, pa.array([1], pa.uint64())),
    (LONG, pa.array([1.0])), (DOUBLE, pa.array([1])), (FLOAT, pa.array([1.0], pa.float64())), (STRING, pa.array([1])),
    (STRING, pa.array([b"a"])), (BINARY, pa.array(["a"])), (FixedType(3), pa.array([b"ab"], pa.binary(2))),
    (TIMESTAMP, pa.array([1], pa.timestamp("us", "UTC"))),
    (TIMESTAMPTZ, pa.array([1], pa.timestamp("us"))), (DATE, pa.array([1], pa.timestamp("us"))),
    (DecimalType(9, 2), pa.array([Decimal("1.25")], pa.decimal128(10, 2))),
    (DecimalType(9, 2), pa.array([Decimal("1.250")], pa.decimal128(9, 3))), (DecimalType(9, 2), pa.array([1])),
    (BOOLEAN, pa.array([1])), (VARIANT, pa.array(["{}"])),
    (VARIANT, pa.array([{"metadata": b"", "value": "x"}])), (ListType(2, INT), pa.array([1])),
    (StructType((field(2, "x"),)), pa.array([[1]])), (MapType(2, STRING, 3, INT), pa.array([{"a": 1}])),
    (GeometryType(), pa.array(["POINT(1 2)"])), (TIME, pa.array([1], pa.int64())),
    (LONG, pa.array([1], pa.duration("s"))),
]  # fmt: skip


@pytest.mark.parametrize("kind, column", UNSAFE, ids=lambda one: str(getattr(one, "type", one)).replace(" ", ""))
def test_lossy_conversion_is_refused_with_column_and_type(kind: Type, column: Any) -> None:
    with pytest.raises(SchemaMismatchError, match=r"c: .* cannot be written as"):
        write_one(kind, column)


INEXACT: list[tuple[Type, Any]] = [
    (TIMESTAMP, pa.array([1001], pa.timestamp("ns"))), (TIMESTAMPTZ, pa.array([1], pa.timestamp("ns", "UTC"))),
    (TIME, pa.array([1], pa.time64("ns"))), (TIMESTAMP, pa.array([2**60], pa.timestamp("s"))),
    (TIMESTAMP_NS, pa.array([2**62], pa.timestamp("us"))), (DATE, pa.array([1], pa.int64()).view(pa.date64())),
    (FixedType(3), pa.array([b"ab"])), (UUID, pa.array(["a" * 33])), (UUID, pa.array([b"ab"], pa.large_binary())),
]  # fmt: skip


@pytest.mark.parametrize("kind, column", INEXACT, ids=lambda one: str(getattr(one, "type", one)).replace(" ", ""))
def test_value_that_would_lose_digits_is_refused_with_its_column(kind: Type, column: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot write the column 'c': a value of type"):
        write_one(kind, column)


def test_dates_become_timestamps_only_if_the_version_promotes_them() -> None:
    dates = pa.array([datetime.date(1970, 1, 2)])
    assert write_one(TIMESTAMP, dates).cast(pa.int64()).to_pylist() == [86_400_000_000]
    with pytest.raises(SchemaMismatchError, match="cannot be written as timestamp"):
        write_one(TIMESTAMP, dates, format_version=2)


def test_null_column_fits_any_optional_type() -> None:
    kinds: list[Type] = [
        INT,
        UUID,
        VARIANT,
        REQUIRED,
        StructType((field(9, "s", REQUIRED, required=True),)),
        ListType(2, INT),
        MapType(2, INT, 3, INT),
        StructType((field(2, "x"),)),
    ]
    for kind in kinds:
        made = write_one(kind, pa.nulls(2))
        made.validate(full=True)
        assert made.null_count == 2
    with pytest.raises(SchemaMismatchError, match="required column 'c': 2 values are null"):
        match(one_column(LONG, required=True), pa.table({"c": pa.nulls(2)}))


def test_null_in_a_required_column_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="required column 'c': 1 value is null"):
        match(one_column(LONG, required=True), pa.table({"c": [1, None]}))


REQUIRED = StructType((field(2, "x", LONG, required=True), field(3, "y", STRING)))


@pytest.mark.parametrize(
    "kind, good, bad, path",
    [
        (REQUIRED, [{"x": 1, "y": None}, None], [{"x": None, "y": "a"}, None], "c.x"),
        (ListType(2, LONG, True), [[1], None, []], [[1, None]], "c.element"),
        (MapType(2, STRING, 3, LONG, True), [[("a", 1)], None, []], [[("a", None)]], "c.value"),
        (
            StructType((field(9, "s", REQUIRED, required=True),)),
            [{"s": {"x": 1, "y": None}}, None],
            [{"s": None}, None],
            "c.s",
        ),
        (ListType(9, REQUIRED), [[{"x": 1, "y": None}, None]], [[{"x": None, "y": None}]], "c.element.x"),
    ],
)
def test_nested_nulls_are_refused_except_below_a_null_struct(
    kind: Type, good: list[Any], bad: list[Any], path: str
) -> None:
    table = one_column(kind)
    optional = _optional_type(to_arrow_schema(table).field(0).type)
    made = match(table, pa.table({"c": pa.array(good, optional)}))
    made.validate(full=True)
    assert made.column("c").to_pylist() == good
    with pytest.raises(SchemaMismatchError, match=f"Cannot write the required column '{path}': 1 value is null"):
        match(table, pa.table({"c": pa.array(bad, optional)}))


def _optional_type(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with no field required, as data mostly has it."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _optional_type(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(_optional_type(kind.key_type), _optional_type(kind.item_type))
    return pa.list_(_optional_type(kind.value_type)) if pa.types.is_list(kind) else kind


LISTS = [
    pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 2), pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()),
]  # fmt: skip


@pytest.mark.parametrize("arrow", LISTS, ids=str)
def test_lists_of_any_layout_including_slices_are_accepted(arrow: pa.DataType) -> None:
    column = pa.array([[1, 2], None, [3, None], [4, 5]], arrow)
    assert write_one(ListType(2, LONG), column).to_pylist() == [[1, 2], None, [3, None], [4, 5]]
    assert write_one(ListType(2, LONG), column.slice(1, 2)).to_pylist() == [None, [3, None]]


def test_items_below_null_lists_are_dropped() -> None:
    column = pa.ListArray.from_arrays(
        pa.array([0, 2, 4], pa.int32()), pa.array([1, None, 3, 4], pa.int64()), mask=pa.array([True, False])
    )
    made = match(one_column(ListType(2, LONG, True)), pa.table({"c": column})).column("c")
    assert made.to_pylist() == [None, [3, 4]]
    assert len(made.chunk(0).values) == 2


def test_slices_of_structs_and_maps_keep_their_rows() -> None:
    kind = StructType((field(2, "m", MapType(3, STRING, 4, REQUIRED_VALUE)),))
    rows: list[Any] = [{"m": [("a", {"x": 1})]}, None, {"m": None}, {"m": [("b", None), ("c", {"x": 2})]}]
    arrow = pa.struct([("m", pa.map_(pa.string(), pa.struct([("x", pa.int32())])))])
    column = pa.array(rows, arrow)
    for start in range(4):
        assert write_one(kind, column.slice(start)).to_pylist() == rows[start:]


REQUIRED_VALUE = StructType((field(5, "x", INT, required=True),))


def test_variants_are_pairs_of_non_null_binaries() -> None:
    rows = [{"value": b"\0", "metadata": b"\x01\0\0"}, None]
    made = write_one(VARIANT, pa.array(rows, pa.struct([("value", pa.large_binary()), ("metadata", pa.binary())])))
    assert made.to_pylist() == [{"metadata": b"\x01\0\0", "value": b"\0"}, None]
    with pytest.raises(SchemaMismatchError, match=r"'c\.value': 1 value is null"):
        write_one(
            VARIANT,
            pa.array(
                [{"metadata": b"", "value": None}], pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
            ),
        )


def test_unknown_columns_are_checked_and_not_written() -> None:
    table = schema(
        field(1, "a", LONG),
        field(2, "u", UNKNOWN),
        field(3, "s", StructType((field(4, "v", UNKNOWN), field(5, "w", INT)))),
    )
    arrow = pa.struct([("v", pa.null()), ("w", pa.int32())])
    made = match(table, pa.table({"a": [1], "u": pa.nulls(1), "s": pa.array([{"v": None, "w": 2}], arrow)}))
    assert made.to_pylist() == [{"a": 1, "s": {"w": 2}}]
    assert match(table, pa.table({"a": [1]})).to_pylist() == [{"a": 1, "s": None}]


@pytest.mark.parametrize(
    "kind", [ListType(2, UNKNOWN), MapType(2, STRING, 3, UNKNOWN), StructType((field(2, "u", UNKNOWN),))]
)
def test_table_of_unknown_columns_only_cannot_be_written(kind: Type) -> None:
    with pytest.raises(UnsupportedError, match="Cannot write the column 'c'"):
        match(one_column(kind), pa.table({"c": pa.nulls(1)}))
    with pytest.raises(SchemaMismatchError, match="u: int64 cannot be written as unknown"):
        match(schema(field(1, "c"), field(2, "u", UNKNOWN)), pa.table({"c": [1], "u": [1]}))
    with pytest.raises(UnsupportedError, match="no column that a file could store"):
        match(one_column(UNKNOWN), pa.table({"c": pa.nulls(1)}))


def test_row_lineage_columns_are_written_in_version_3_only() -> None:
    data = pa.table({"_row_id": pa.array([7, None], pa.int64()), "c": [1, 2], "_last_updated_sequence_number": [3, 4]})
    made = match(one_column(LONG), data)
    assert made.column_names == ["c", "_row_id", "_last_updated_sequence_number"]
    assert [made.schema.field(at).metadata[b"PARQUET:field_id"] for at in (1, 2)] == [
        str(part.field_id).encode() for part in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    ]
    assert made.column("_row_id").to_pylist() == [7, None]
    with pytest.raises(SchemaMismatchError, match="_row_id: the table has no such column"):
        match(one_column(LONG), data, format_version=2)


# --- where rows come from


def test_rows_may_be_tables_batches_readers_frames_or_dicts() -> None:
    table = schema(field(1, "a", LONG), field(2, "b", STRING))
    arrow = pa.table({"a": [1, 2], "b": ["x", None]})
    sources: list[Any] = [
        arrow,
        arrow.to_batches()[0],
        arrow.to_reader(max_chunksize=1),
        pd.DataFrame({"a": [1, 2], "b": pd.Series(["x", None], dtype="string")}).set_index(pd.Index([7, 8])),
        [{"a": 1, "b": "x"}, {"b": None, "a": 2}],
        [{"a": 1, "b": "x"}, {"a": 2}],
        _Stream(arrow),
    ]
    for source in sources:
        assert match(table, source).to_pylist() == arrow.to_pylist()


class _Stream:
    """Something that offers the Arrow C stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_dict_rows_take_the_types_of_the_table() -> None:
    table = schema(
        field(1, "t", TIMESTAMPTZ),
        field(2, "d", DecimalType(5, 2)),
        field(3, "u", UUID),
        field(4, "l", ListType(5, INT)),
        NestedField(6, "e", STRING, write_default="none"),
    )
    rows = [{"t": "2020-01-01T00:00:00+00:00", "d": "1.5", "u": uuid.UUID(int=1), "l": (1, 2)}, {"t": None, "e": "x"}]
    made = match(table, rows)
    assert made.column("d").to_pylist() == [Decimal("1.50"), None]
    assert made.column("l").to_pylist() == [[1, 2], None]
    assert made.column("e").to_pylist() == ["none", "x"]
    with pytest.raises(SchemaMismatchError, match="Cannot write the column 'd'"):
        match(table, [{"d": "1.555"}])
    with pytest.raises(SchemaMismatchError, match="the table has no column 'zz'"):
        match(table, [{"zz": 1}])


def test_empty_input_is_accepted_in_any_form() -> None:
    table = schema(field(1, "a", LONG, required=True))
    sources: list[Any] = [
        [],
        pa.table({"a": pa.array([], pa.int64())}),
        pd.DataFrame({"a": pd.Series([], dtype="int64")}),
    ]
    for source in sources:
        assert match(table, source).num_rows == 0


@pytest.mark.parametrize("data", [5, "text", [1, 2], None, {"a": [1]}])
def test_other_inputs_are_refused(data: Any) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot write data of type"):
        open_input(data, schema())


def test_frame_arrow_cannot_convert_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="Cannot write the pandas DataFrame"):
        open_input(pd.DataFrame({"a": [1, "x", object()]}), schema())


def test_failing_reader_is_a_frazil_error() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise pa.ArrowInvalid("torn stream")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    with pytest.raises(InvalidRequestError, match="torn stream"):
        match(schema(field(1, "a", LONG)), reader)
