"""Laws of written files: rows come back as they went in, in each format, and their metrics are those of the rows."""

from __future__ import annotations

import math
import re
import struct
import uuid
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from frazil.codec.variant import encode_variant
from frazil.datafile.write import write_data_files
from frazil.spec.data_file import check_data_file
from frazil.spec.decimals import decimal_of
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema, walk_fields
from frazil.spec.sorting import sort_key
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
    TIMESTAMPTZ_NS,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    VariantType,
)
from frazil.spec.values import map_key
from tests.property.type_strategies import GEO_TYPES, VALUE_TYPES, schemas, values_of
from tests.support.file_writers import Rows, rows_to_table
from tests.support.variants import variant_of
from tests.support.written_files import check_metrics, comparable, ids, read_rows, same_rows, target, value_at

POINTS = st.tuples(st.floats(-180, 180), st.floats(-90, 90)).map(lambda point: struct.pack("<BIdd", 1, 1, *point))
VARIANTS = (st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=5)).map(
    lambda value: dict(zip(("metadata", "value"), encode_variant(variant_of(value)), strict=True))
)
ORC_MICROS = st.integers(0, 2**63 // 1000 - 1) | st.integers(-(2**63) // 10**9 + 1, 0).map(lambda one: one * 10**6)
ORC_NANOS = st.integers(0, 2**63 - 1) | st.integers(-(2**63) // 10**9 + 1, 0).map(lambda one: one * 10**9)


def values(kind: Type, *, is_orc: bool) -> st.SearchStrategy[Any]:
    """Values of a type, variants and geometries included; of times those that Arrow writes to ORC and reads back."""
    if isinstance(kind, GeometryType | GeographyType):
        return POINTS
    if isinstance(kind, VariantType):
        return VARIANTS
    if is_orc and isinstance(kind, TimestampType | TimestamptzType):
        return ORC_MICROS
    if is_orc and isinstance(kind, TimestampNsType | TimestamptzNsType):
        return ORC_NANOS
    if isinstance(kind, StructType):
        return st.fixed_dictionaries({one.name: part(one.field_type, one.required, is_orc) for one in kind.fields})
    if isinstance(kind, ListType):
        return st.lists(part(kind.element_type, kind.element_required, is_orc), max_size=3)
    if isinstance(kind, MapType):
        keys = values_of(kind.key_type, finite=True) if not is_orc else values(kind.key_type, is_orc=True)
        return st.dictionaries(keys.map(map_key), part(kind.value_type, kind.value_required, is_orc), max_size=3)
    return values_of(kind)


def part(kind: Type, required: bool, is_orc: bool) -> st.SearchStrategy[Any]:
    inner = values(kind, is_orc=is_orc)
    return inner if required else st.none() | inner


def is_storable(schema: Schema) -> bool:
    """Whether files can hold the schema, and Python dicts its maps' keys."""
    for one, _, _ in walk_fields(schema.struct):
        kind = one.field_type
        if (isinstance(kind, StructType) and not kind.fields) or kind == FixedType(0):
            return False
        if isinstance(kind, MapType) and isinstance(
            kind.key_type, NestedType | VariantType | GeometryType | GeographyType
        ):
            return False
    return len(schema.fields) > 0


SCHEMAS = schemas(VALUE_TYPES | GEO_TYPES | st.just(VARIANT)).filter(is_storable)


@st.composite
def tables(draw: st.DrawFn, *, is_orc: bool = False) -> tuple[Schema, Rows]:
    schema: Schema = draw(SCHEMAS)
    rows = draw(st.lists(values(schema.struct, is_orc=is_orc), max_size=12))
    return schema, rows


MODES = st.sampled_from(["none", "counts", "truncate(1)", "truncate(4)", "full"])


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@hypothesis.given(data=st.data())
def test_written_rows_and_metrics_match_the_input(file_format: str, data: st.DataObject) -> None:
    schema, rows = data.draw(tables(is_orc=file_format == "orc"))
    place = target(schema, write__format__default=file_format, write__metadata__metrics__default=data.draw(MODES))
    files = write_data_files(rows_to_table(rows, schema), place, new_id=ids(), threads=1)
    assert len(files) == (1 if rows else 0)
    assert same_rows(read_rows(place.storage, files, schema), rows)
    for file in files:
        check_data_file(file, 3)
        assert file.file_size_in_bytes == place.storage.size(file.file_path)
        check_metrics(file, rows, schema, metrics_modes(schema, place.properties))


# --- partitions and order

EVENTS = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "n", INT),
        NestedField(3, "d", DATE),
        NestedField(4, "ts", TIMESTAMP),
        NestedField(5, "tz", TIMESTAMPTZ_NS),
        NestedField(6, "text", STRING),
        NestedField(7, "data", BINARY),
        NestedField(8, "price", DecimalType(9, 2)),
        NestedField(9, "key", UUID),
        NestedField(10, "code", FixedType(3)),
        NestedField(11, "flag", BOOLEAN),
        NestedField(12, "x", FLOAT),
        NestedField(13, "y", DOUBLE),
        NestedField(14, "at", TIME),
        NestedField(15, "place", StructType((NestedField(16, "city", STRING), NestedField(17, "zip", INT, True)))),
        NestedField(18, "tags", ListType(19, STRING)),
    )
)
SMALL_DATES = st.integers(-400, 400)
SMALL_MICROS = st.integers(-(10**14), 10**14)
SMALL = {
    "n": st.integers(-5, 5) | st.just(2**31 - 1),
    "d": SMALL_DATES,
    "ts": SMALL_MICROS,
    "tz": SMALL_MICROS.map(lambda micros: micros * 1000 + 1),
    "text": st.sampled_from(["", "a", "ab", "abc", "é\U0001f600x", "\U0010ffff"]),
    "data": st.sampled_from([b"", b"\0", b"a", b"\xff\xff"]),
    "price": st.integers(-300, 300).map(lambda cents: decimal_of(cents, 2)),
    "key": st.sampled_from([uuid.UUID(int=0), uuid.UUID(int=2**127), uuid.UUID(int=1)]),
    "code": st.sampled_from([b"aaa", b"aab", b"\xff\0\0"]),
    "flag": st.booleans(),
    "x": st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5]),
    "y": st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5]),
    "at": st.sampled_from([0, 1, 86_399_999_999]),
    "place": st.fixed_dictionaries({"city": st.none() | st.sampled_from(["", "x"]), "zip": st.integers(0, 2)}),
    "tags": st.lists(st.none() | st.sampled_from(["", "t"]), max_size=2),
}
ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 50), **{name: st.none() | one for name, one in SMALL.items()}}),
    max_size=40,
)
IDENTITIES = ["id", "n", "d", "ts", "tz", "text", "data", "price", "key", "code", "flag", "x", "y", "at", "place.city"]
TERMS = st.sampled_from(
    [
        *IDENTITIES,
        *(f"bucket(3, {name})" for name in ("id", "d", "ts", "tz", "text", "data", "price", "key", "code", "at")),
        *(f"truncate(2, {name})" for name in ("id", "text", "data", "price")),
        *(f"{unit}({name})" for unit in ("year", "month", "day") for name in ("d", "ts", "tz")),
        "hour(ts)",
        "hour(tz)",
        "void(text)",
        "place.zip",
    ]
)


@hypothesis.given(
    rows=ROWS,
    terms=st.lists(TERMS, max_size=2, unique_by=lambda term: re.sub(r".*[ (](\w+).*", r"\1", term)),
    held=st.sampled_from([1, 3000, 1 << 30]),
    threads=st.sampled_from([1, 2]),
    max_open=st.sampled_from([1, 2, 100]),
)
def test_each_file_holds_rows_of_one_partition_and_none_is_lost(
    rows: Rows, terms: list[str], held: int, threads: int, max_open: int
) -> None:
    place = target(EVENTS, partition_by=[f"{term} as f{at}" for at, term in enumerate(terms)])
    reader = rows_to_table(rows, EVENTS).to_reader(max_chunksize=7)
    files = write_data_files(reader, place, new_id=ids(), held_bytes=held, threads=threads, max_open_files=max_open)
    assert same_rows(read_rows(place.storage, files, EVENTS), rows)
    partitions = set()
    for file in files:
        found = read_rows(place.storage, [file], EVENTS)
        check_metrics(file, found, EVENTS, metrics_modes(EVENTS, place.properties))
        expected = {repr(comparable(_partition_of(row, place.spec))) for row in found}
        assert expected == {repr(comparable(file.partition))}
        partitions |= expected
    if held > 1 << 20:
        assert len(partitions) == len(files)


def _partition_of(row: dict[str, Any], spec: PartitionSpec) -> tuple[Any, ...]:
    values = []
    for one in spec.fields:
        source = EVENTS.field(one.source_id)
        way = [*(part.name for part in reversed(EVENTS.ancestors_of(one.source_id))), source.name]
        values.append(one.transform.apply(value_at(row, tuple(way)), source.field_type))
    return tuple(values)


SORT_TERMS = st.builds(
    lambda term, way, nulls: f"{term} {way} nulls {nulls}",
    TERMS,
    st.sampled_from(["asc", "desc"]),
    st.sampled_from(["first", "last"]),
)


@pytest.mark.extended
@hypothesis.given(
    rows=ROWS,
    terms=st.lists(SORT_TERMS, min_size=1, max_size=3),
    by=st.sampled_from([[], ["flag"], ["bucket(2, id)"]]),
    held=st.sampled_from([1, 3000, 1 << 30]),
    target_bytes=st.sampled_from([2000, 1 << 30]),
)
def test_file_with_a_sort_order_id_is_sorted_throughout(
    rows: Rows, terms: list[str], by: list[str], held: int, target_bytes: int
) -> None:
    place = target(EVENTS, partition_by=by, sort_by=terms)
    reader = rows_to_table(rows, EVENTS).to_reader(max_chunksize=7)
    files = write_data_files(reader, place, new_id=ids(), held_bytes=held, threads=1, target_file_bytes=target_bytes)
    assert same_rows(read_rows(place.storage, files, EVENTS), rows)
    key = sort_key(place.sort_order, EVENTS)
    for file in files:
        assert file.sort_order_id == place.sort_order.order_id
        keys = [key(row) for row in read_rows(place.storage, [file], EVENTS)]
        assert keys == sorted(keys)
