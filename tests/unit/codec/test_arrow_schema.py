from __future__ import annotations

import io
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.arrow_schema import (
    from_arrow_schema,
    from_arrow_type,
    to_arrow_field,
    to_arrow_schema,
    to_arrow_type,
)
from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec.name_mapping import MappedField, NameMapping
from frazil.spec.parse_type import parse_schema
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema
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
    Type,
)

EVERYTHING = parse_schema(
    "id bigint not null comment 'k', b boolean, i int, f float, d double, dec decimal(38, 10), dt date, t time, "
    "ts timestamp, tz timestamptz, tn timestamp_ns, tzn timestamptz_ns, s string, u uuid, fx fixed(4), bin binary, "
    "g geometry(EPSG:3857), gg geography(EPSG:4326, karney), v variant, "
    "l list<struct<a: int not null, u: uuid>>, m map<string, geometry not null>, st struct<x: list<int not null>>"
)


@pytest.mark.parametrize(
    "kind, arrow",
    [
        (BOOLEAN, pa.bool_()),
        (INT, pa.int32()),
        (LONG, pa.int64()),
        (FLOAT, pa.float32()),
        (DOUBLE, pa.float64()),
        (DecimalType(38, 10), pa.decimal128(38, 10)),
        (DATE, pa.date32()),
        (TIME, pa.time64("us")),
        (TIMESTAMP, pa.timestamp("us")),
        (TIMESTAMPTZ, pa.timestamp("us", "UTC")),
        (TIMESTAMP_NS, pa.timestamp("ns")),
        (TIMESTAMPTZ_NS, pa.timestamp("ns", "UTC")),
        (STRING, pa.string()),
        (UUID, pa.uuid()),
        (FixedType(4), pa.binary(4)),
        (FixedType(0), pa.binary(0)),
        (BINARY, pa.binary()),
        (UNKNOWN, pa.null()),
    ],
)
def test_primitive_types_round_trip_through_arrow(kind: Type, arrow: pa.DataType) -> None:
    assert to_arrow_type(kind) == arrow
    assert from_arrow_type(arrow) == kind


def test_every_type_round_trips_with_and_without_extension_types() -> None:
    assert from_arrow_schema(to_arrow_schema(EVERYTHING)) == EVERYTHING
    assert from_arrow_schema(to_arrow_schema(EVERYTHING, has_extensions=False)) == EVERYTHING


def test_schemas_without_ids_are_numbered_as_in_a_new_table() -> None:
    arrow = to_arrow_schema(EVERYTHING, with_ids=False)
    assert b"PARQUET:field_id" not in (arrow.field("m").type.key_field.metadata or {})
    assert from_arrow_schema(arrow) == EVERYTHING


def test_ids_docs_and_types_round_trip_through_parquet() -> None:
    buffer = io.BytesIO()
    pq.ParquetWriter(buffer, to_arrow_schema(EVERYTHING)).close()
    assert from_arrow_schema(pq.read_schema(buffer)) == EVERYTHING
    file = pq.ParquetFile(buffer)
    columns = {file.schema.column(at).path: file.schema.column(at) for at in range(len(file.schema))}
    assert str(columns["u"].logical_type) == "UUID"
    assert "l.list.element.a" in columns
    assert "m.key_value.key" in columns


def test_uuids_are_sixteen_bytes_without_extension_types() -> None:
    field = to_arrow_field(NestedField(1, "u", UUID), has_extensions=False)
    assert field.type == pa.binary(16)
    assert field.metadata == {b"PARQUET:field_id": b"1", b"frazil.type": b"uuid"}
    values = pa.array([uuid.UUID(int=5).bytes], field.type)
    assert values.to_pylist() == [uuid.UUID(int=5).bytes]


def test_required_fields_are_not_nullable() -> None:
    assert not to_arrow_field(NestedField(1, "a", INT, required=True)).nullable
    assert to_arrow_field(NestedField(1, "a", INT)).nullable
    assert not to_arrow_type(ListType(1, INT, element_required=True)).value_field.nullable
    assert to_arrow_type(MapType(1, INT, 2, INT)).item_field.nullable


@pytest.mark.parametrize(
    "arrow, kind",
    [
        (pa.int8(), INT),
        (pa.int16(), INT),
        (pa.uint8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.float16(), FLOAT),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.large_binary(), BINARY),
        (pa.binary_view(), BINARY),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.run_end_encoded(pa.int32(), pa.date32()), DATE),
        (pa.date64(), DATE),
        (pa.time32("s"), TIME),
        (pa.time32("ms"), TIME),
        (pa.timestamp("s"), TIMESTAMP),
        (pa.timestamp("ms", "Europe/Paris"), TIMESTAMPTZ),
        (pa.timestamp("ns", "+02:00"), TIMESTAMPTZ_NS),
        (pa.decimal32(9, 2), DecimalType(9, 2)),
        (pa.decimal64(18, 2), DecimalType(18, 2)),
        (pa.decimal256(38, 2), DecimalType(38, 2)),
        (pa.json_(), STRING),
        (pa.large_list(pa.int32()), ListType(1, INT)),
        (pa.list_view(pa.int32()), ListType(1, INT)),
        (pa.large_list_view(pa.int32()), ListType(1, INT)),
        (pa.list_(pa.int32(), 3), ListType(1, INT)),
        (pa.list_(pa.field("item", pa.int32(), nullable=False)), ListType(1, INT, element_required=True)),
        (pa.map_(pa.string(), pa.large_string()), MapType(1, STRING, 2, STRING)),
    ],
)
def test_alternative_arrow_layouts_are_accepted(arrow: pa.DataType, kind: Type) -> None:
    assert from_arrow_type(arrow) == kind


@pytest.mark.parametrize(
    "arrow, reason",
    [
        (pa.uint64(), "the format has no unsigned 64-bit integers"),
        (pa.time64("ns"), "the format's times are in microseconds"),
        (pa.duration("us"), "the format has no such type"),
        (pa.month_day_nano_interval(), "the format has no such type"),
        (pa.decimal256(50, 2), "decimals have at most 38 digits"),
        (pa.decimal128(9, -2), "a scale from 0"),
        (pa.dense_union([pa.field("a", pa.int32())]), "the format has no such type"),
        (pa.bool8(), "the extension type arrow.bool8"),
    ],
)
def test_unsupported_types_are_refused_with_the_column_name(arrow: pa.DataType, reason: str) -> None:
    schema = pa.schema([("ok", pa.int32()), ("outer", pa.struct([("inner", arrow)]))])
    with pytest.raises(SchemaMismatchError) as caught:
        from_arrow_schema(schema)
    assert "'outer.inner'" in caught.value.message
    assert reason in caught.value.message
    assert caught.value.hint is not None


@pytest.mark.parametrize("arrow", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.null()])
def test_version_3_types_are_refused_in_version_2(arrow: pa.DataType) -> None:
    schema = pa.schema([("c", pa.list_(arrow))])
    assert from_arrow_schema(schema).fields[0].name == "c"
    with pytest.raises(SchemaMismatchError, match=r"'c\.element'.*needs format version 3, not 2"):
        from_arrow_schema(schema, format_version=2)


def test_null_type_in_a_required_column_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="a column of nulls cannot be required"):
        from_arrow_schema(pa.schema([pa.field("n", pa.dictionary(pa.int32(), pa.null()), nullable=False)]))
    with pytest.raises(SchemaMismatchError, match=r"'m\.key'.*a column of nulls cannot be required"):
        from_arrow_type(pa.map_(pa.dictionary(pa.int32(), pa.null()), pa.int32()), column="m")


def test_required_field_of_type_unknown_has_no_arrow_type() -> None:
    with pytest.raises(InvalidRequestError, match="fields of type unknown are optional"):
        to_arrow_field(NestedField(1, "n", UNKNOWN, required=True))


def test_schema_with_ids_on_some_fields_is_refused() -> None:
    arrow = pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"}), pa.field("b", pa.int32())])
    with pytest.raises(SchemaMismatchError, match="'b' has no field id, and 'a' has one"):
        from_arrow_schema(arrow)
    assert from_arrow_schema(arrow, has_fresh_ids=True) == parse_schema("a int, b int")


@pytest.mark.parametrize("text", ["x", "", "-5", "99999999999", "2147483600", "1.0"])
def test_invalid_field_id_is_refused(text: str) -> None:
    arrow = pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": text})])
    with pytest.raises(SchemaMismatchError, match="is not a field id"):
        from_arrow_schema(arrow)


def test_field_id_minus_one_counts_as_missing() -> None:
    arrow = pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "-1"})])
    assert from_arrow_schema(arrow) == parse_schema("a int")


def test_duplicate_field_ids_are_refused() -> None:
    field = pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"})
    with pytest.raises(InvalidRequestError, match="share the id 1"):
        from_arrow_schema(pa.schema([field, field.with_name("b")]))


def test_name_mapping_assigns_ids_and_skips_unmapped_columns() -> None:
    mapping = NameMapping((MappedField(("a", "x"), 7), MappedField(("l",), 8, (MappedField(("element",), 9),))))
    arrow = pa.schema([("x", pa.int32()), ("other", pa.int32()), ("l", pa.list_(pa.string()))])
    assert from_arrow_schema(arrow, name_mapping=mapping) == Schema(
        (NestedField(7, "x", INT), NestedField(8, "l", ListType(9, STRING)))
    )


def test_ids_in_the_schema_win_over_the_name_mapping() -> None:
    mapping = NameMapping((MappedField(("a",), 7),))
    arrow = pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "3"})])
    assert from_arrow_schema(arrow, name_mapping=mapping).fields[0].field_id == 3


@pytest.mark.parametrize(
    "arrow, marker, kind",
    [
        (pa.large_binary(), "geometry(EPSG:1)", GeometryType("EPSG:1")),
        (pa.binary_view(), "geography", GeographyType()),
        (pa.struct([("value", pa.large_binary()), ("metadata", pa.large_binary())]), "variant", VARIANT),
        (pa.uuid(), "uuid", UUID),
    ],
)
def test_extension_fields_may_use_another_layout(arrow: pa.DataType, marker: str, kind: Type) -> None:
    schema = pa.schema([pa.field("c", arrow, metadata={"frazil.type": marker})])
    assert from_arrow_schema(schema).fields[0].field_type == kind


@pytest.mark.parametrize(
    "arrow, marker, reason",
    [
        (pa.int32(), "geometry", "marked as geometry, which is stored as binary"),
        (pa.struct([("a", pa.binary()), ("b", pa.binary())]), "variant", "marked as variant"),
        (pa.binary(15), "uuid", "marked as uuid"),
        (pa.binary(), "nonsense", "Cannot read the type 'nonsense'"),
    ],
)
def test_extension_type_with_unsuitable_storage_is_refused(arrow: pa.DataType, marker: str, reason: str) -> None:
    schema = pa.schema([pa.field("c", arrow, metadata={"frazil.type": marker})])
    with pytest.raises(SchemaMismatchError) as caught:
        from_arrow_schema(schema)
    assert reason in caught.value.message
    assert "'c'" in caught.value.message


def test_version_3_extension_types_are_refused_in_version_2() -> None:
    schema = pa.schema([pa.field("c", pa.binary(), metadata={"frazil.type": "geometry"})])
    with pytest.raises(SchemaMismatchError, match="needs format version 3"):
        from_arrow_schema(schema, format_version=2)


def test_deeply_nested_arrow_types_are_refused_without_recursion_errors() -> None:
    arrow: Any = pa.int32()
    for _ in range(MAX_NESTING_DEPTH + 5):
        arrow = pa.list_(arrow)
    with pytest.raises(SchemaMismatchError, match="nested deeper than"):
        from_arrow_schema(pa.schema([("c", arrow)]))


def test_name_that_arrow_would_truncate_is_refused() -> None:
    schema = Schema((NestedField(1, "a\0b", LONG),))
    with pytest.raises(UnsupportedError, match="NUL character"):
        to_arrow_schema(schema)
